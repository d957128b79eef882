//! Calls that make a thread, and what the C library and runtimes do once for each.

use super::read::ObservedCall;
use super::vocabulary::When::{self, AllBits, AnyBits};
use systoll_model::Moment;
use systoll_model::constants::MAP_STACK;

/// The new one is a thread of the process (linux/sched.h).
const CLONE_THREAD: u32 = 0x1_0000;

/// A call that makes a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spawn {
    /// The system call's name.
    pub call: &'static str,
    /// All must hold.
    pub when: &'static [When],
    /// Where the thread's stack stands.
    place: Place,
}

/// Where a word of a call stands.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In an argument.
    Arg(u8),
    /// So many bytes into what the first argument points to, whose first word is the flags.
    Struct(usize),
}

impl Spawn {
    /// The stack of the thread that the call makes: two threads that live at one time have two. `None` where it
    /// makes none, or was not read.
    pub(crate) fn stack(&self, call: &ObservedCall<'_>) -> Option<u64> {
        match self.place {
            Place::Arg(arg) => Some(call.arg(arg)),
            Place::Struct(at) => {
                let bytes = call.data(0, Moment::Entry)?;
                let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
                word(at).filter(|_| word(0).is_some_and(|flags| flags & u64::from(CLONE_THREAD) != 0))
            }
        }
    }
}

/// The table.
pub(crate) static SPAWNS: &[Spawn] = &[
    Spawn { call: "clone", when: &[AllBits(0, CLONE_THREAD)], place: Place::Arg(1) },
    // struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, stack …
    Spawn { call: "clone3", when: &[], place: Place::Struct(40) },
];

/// A call that is made around the making or the end of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadSetup {
    /// The system call's name.
    pub call: &'static str,
    /// All must hold.
    pub when: &'static [When],
    /// Whether it is made for nothing else.
    pub only: bool,
}

const fn setup(call: &'static str) -> ThreadSetup {
    ThreadSetup { call, when: &[], only: true }
}

const fn beside(call: &'static str) -> ThreadSetup {
    ThreadSetup { only: false, ..setup(call) }
}

/// The table: `only` for what begins a thread, the others count where they stand beside such.
#[rustfmt::skip]
pub(crate) static THREAD_SETUPS: &[ThreadSetup] = &[
    setup("set_robust_list"), setup("rseq"),
    ThreadSetup { when: &[AnyBits(3, MAP_STACK)], ..setup("mmap") },
    beside("sigaltstack"), beside("sched_getaffinity"), beside("gettid"), beside("rt_sigprocmask"),
    beside("mmap"), beside("mprotect"), beside("munmap"), beside("madvise"), beside("futex"),
];
