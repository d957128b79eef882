//! Calls that make a thread, and calls that the C library and runtimes make once for each thread.

use super::read::{ObservedCall, word_at};
use super::vocabulary::When::{self, AllBits, AnyBits};
use systoll_model::Moment;
use systoll_model::constants::MAP_STACK;

/// The flag with which clone makes a thread of the process (linux/sched.h).
const CLONE_THREAD: u32 = 0x1_0000;

/// The flag with which clone makes a thread or process in the caller's memory (linux/sched.h).
const CLONE_VM: u64 = 0x100;

/// Returns true if a call that makes a thread or process makes it in the caller's memory, so that none is copied.
pub(crate) fn shares_memory(call: &ObservedCall<'_>) -> bool {
    let flags = match call.syscall.name() {
        Some("vfork") => return true,
        Some("clone") => Some(call.arg(0)),
        // struct clone_args begins with the flags.
        Some("clone3") => call.data(0, Moment::Entry).and_then(|args| word_at(args, 0)),
        _ => None,
    };
    flags.is_some_and(|flags| flags & CLONE_VM != 0)
}

/// A call that makes a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spawn {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// The place of the thread's stack.
    place: WordPlace,
}

/// The place of a word of a call.
#[derive(Clone, Copy, Debug)]
enum WordPlace {
    /// An argument.
    Arg(u8),
    /// Offset, bytes, in the struct that the first argument points to, whose first word is the flags.
    Struct(usize),
}

impl Spawn {
    /// Returns the address of the stack of the thread that the call makes: threads that live at the same time have
    /// different ones. Returns `None` if the call makes no thread, or its argument was not read.
    pub(crate) fn stack(&self, call: &ObservedCall<'_>) -> Option<u64> {
        match self.place {
            WordPlace::Arg(arg) => Some(call.arg(arg)),
            WordPlace::Struct(at) => {
                let bytes = call.data(0, Moment::Entry)?;
                word_at(bytes, at)
                    .filter(|_| word_at(bytes, 0).is_some_and(|flags| flags & u64::from(CLONE_THREAD) != 0))
            }
        }
    }
}

/// The calls that make threads.
pub(crate) static SPAWNS: &[Spawn] = &[
    Spawn { call: "clone", when: &[AllBits(0, CLONE_THREAD)], place: WordPlace::Arg(1) },
    // struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, stack …
    Spawn { call: "clone3", when: &[], place: WordPlace::Struct(40) },
];

/// A call made when a thread begins or ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadSetup {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// True if the call is made only when a thread begins or ends.
    pub only: bool,
}

const fn setup(call: &'static str) -> ThreadSetup {
    ThreadSetup { call, when: &[], only: true }
}

const fn beside(call: &'static str) -> ThreadSetup {
    ThreadSetup { only: false, ..setup(call) }
}

/// The calls around threads. Those of `only` begin a thread; the others count if they stand beside such a call.
#[rustfmt::skip]
pub(crate) static THREAD_SETUPS: &[ThreadSetup] = &[
    setup("set_robust_list"), setup("rseq"),
    ThreadSetup { when: &[AnyBits(3, MAP_STACK)], ..setup("mmap") },
    beside("sigaltstack"), beside("sched_getaffinity"), beside("gettid"), beside("rt_sigprocmask"),
    beside("mmap"), beside("mprotect"), beside("munmap"), beside("madvise"), beside("futex"),
];
