//! One call, as any format tells it.

use systoll_model::{Signature, Sysno};

/// A call that has returned, or never will. Kept and filled anew, so that its text is copied and not allocated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    /// Thread id; 0 where the trace tells none.
    pub(crate) tid: u32,
    /// Which it is.
    pub(crate) syscall: Syscall,
    /// The text between its brackets.
    pub(crate) text: Vec<u8>,
    /// The notation of `text`.
    pub(crate) written: Written,
    /// The result as in rax; `None` if it never returned.
    pub(crate) result: Option<i64>,
    /// The text behind the equals sign, which may hold a descriptor's file or a set of flags.
    pub(crate) told: Vec<u8>,
    /// When and how long.
    pub(crate) times: Times,
}

/// A call's number; by default one that no system call has.
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
    /// `name: value`, constants without what they begin with, as perf trace has them.
    Named,
}

/// When a call was entered and how long it took, as far as the trace says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// Entry, ns on any clock that the whole trace shares.
    pub(crate) entry_ns: Option<u64>,
    /// Elapsed ns.
    pub(crate) elapsed_ns: Option<u64>,
}

/// Some of all calls.
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

    /// Returns true if the call is one of them.
    pub(crate) fn contains(&self, syscall: Sysno) -> bool {
        self.0.get(syscall.0 as usize).copied().unwrap_or(false)
    }
}
