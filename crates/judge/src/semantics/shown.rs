//! Calls that set state for other processes to look at, which hardly see the first of two in quick succession.

use super::vocabulary::Source::{self, Arg, In};
use super::vocabulary::When::{self, Is, NotNull, Null};
use systoll_model::constants::PR_SET_NAME;

/// A call that sets state for other processes to look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// Values that identify the piece of state.
    pub key: &'static [Source],
    /// The state, for a sentence.
    pub thing: &'static str,
    /// The advice, for a sentence.
    pub instead: &'static str,
    /// The drawback of the advice; empty if there is none.
    pub gives_up: &'static str,
}

const fn times(call: &'static str, when: &'static [When], key: &'static [Source]) -> Shown {
    Shown {
        call,
        when,
        key,
        thing: "a file's times, before a reader could look at them",
        instead: "set them once a second: that is enough for programs that watch the file",
        gives_up: "the file's times lag behind by that much",
    }
}

/// The calls that set such state. Paths are compared as texts.
#[rustfmt::skip]
pub(crate) static SHOWN: &[Shown] = &[
    Shown {
        call: "prctl", when: &[Is(0, PR_SET_NAME)], key: &[],
        thing: "the name that ps and top show, before a user could look at it",
        instead: "set it when it has held for a while, or a few times a second",
        gives_up: "ps shows what a worker does a moment later",
    },
    times("utimensat", &[Null(1)], &[Arg(0)]),
    times("utimensat", &[NotNull(1)], &[Arg(0), In(1)]),
    times("futimesat", &[NotNull(1)], &[Arg(0), In(1)]),
    // Some programs change the mode as a sign of life: each change sets the change time.
    times("fchmod", &[], &[Arg(0)]),
    times("utimes", &[], &[In(0)]),
    times("utime", &[], &[In(0)]),
];
