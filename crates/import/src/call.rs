//! Holds one call of a trace, in whichever format it was written.

use systoll_model::{Signature, Sysno};

/// A call that has returned, or never will. One value is filled anew for each call, so that its
/// text is copied and not allocated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    /// Thread id; 0 if the trace tells none.
    pub(crate) tid: u32,
    /// The system call.
    pub(crate) syscall: Syscall,
    /// The text between the call's brackets.
    pub(crate) text: Vec<u8>,
    /// The notation of `text`.
    pub(crate) written: Written,
    /// The result as in rax; `None` if the call never returned.
    pub(crate) result: Option<i64>,
    /// The text behind the equals sign, which may hold a descriptor's file or a set of flags.
    pub(crate) told: Vec<u8>,
    /// Time of entry and elapsed time.
    pub(crate) times: Times,
}

/// A system call's number; by default one that no system call has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Syscall(pub(crate) Sysno);

impl Default for Syscall {
    fn default() -> Self {
        Self(Sysno::UNKNOWN)
    }
}

/// The notation of a call's arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Written {
    /// Strings, structs and names, as strace has them.
    #[default]
    Decoded,
    /// The six registers, in hexadecimal.
    Registers,
    /// `name: value`, and constants without their prefixes, as perf trace writes them.
    Named,
}

/// Time at which a call was entered, and its length, as far as the trace tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// Time of entry, ns on any clock that the whole trace shares.
    pub(crate) entry_ns: Option<u64>,
    /// Elapsed time, ns.
    pub(crate) elapsed_ns: Option<u64>,
}

/// A set of system calls.
pub(crate) struct Calls([bool; 512]);

impl Calls {
    /// Returns the calls for which `are` is true.
    pub(crate) fn those(are: impl Fn(&Signature) -> bool) -> Self {
        let mut all = [false; 512];
        for (number, place) in (0..).zip(&mut all) {
            *place = Sysno(number).signature().is_some_and(&are);
        }
        Self(all)
    }

    /// Returns true if the call is in the set.
    pub(crate) fn contains(&self, syscall: Sysno) -> bool {
        self.0.get(syscall.0 as usize).copied().unwrap_or(false)
    }
}
