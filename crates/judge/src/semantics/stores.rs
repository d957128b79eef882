//! Calls that set a value for later use: of two sets without a use in between the first is
//! needless.

use super::effects::OTHER_OPTIONS;
use super::state_lines::{FILTERS, NO_VALUES};
use super::vocabulary::Source::{self, Arg, In};
use super::vocabulary::When::{self, Is, NoneOf, NotNull, Null, OneOf};
use systoll_model::constants::*;

/// The users of a value that a call sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsedBy {
    /// Other processes, which look now and then, and the program itself where it asks.
    Others,
    /// Calls about the descriptor in the first argument, and calls that wait or start a child.
    Calls,
    /// Readers of the file behind the descriptor in the first argument, and those that a message tells of it; others
    /// look now and then.
    Readers,
}

/// A call that sets a value for later use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Store {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// Values that identify the object whose value is set.
    pub key: &'static [Source],
    /// The users of the value.
    pub used_by: UsedBy,
    /// Least number of overwritten sets in a window for a habit.
    pub habit: usize,
    /// The value, or the waste as a verb and its object; for a sentence.
    pub thing: &'static str,
    /// The advice, for a sentence.
    pub instead: &'static str,
    /// The drawback of the advice; empty if there is none.
    pub gives_up: &'static str,
}

const fn times(call: &'static str, when: &'static [When], key: &'static [Source]) -> Store {
    Store {
        call,
        when,
        key,
        used_by: UsedBy::Others,
        habit: 1,
        thing: "a file's times, before a reader could look at them",
        instead: "set them once a second: that is enough for programs that watch the file",
        gives_up: "the file's times lag behind by that much",
    }
}

/// Returns a line for an option that has no effect until a call uses the descriptor.
const fn option(when: &'static [When]) -> Store {
    Store {
        used_by: UsedBy::Calls,
        habit: 3,
        thing: "sets what the next call sets to something else, with nothing in between that uses it",
        instead: "set it once, to what it is to be",
        gives_up: "",
        ..times("setsockopt", when, &[Arg(0), Arg(1), Arg(2)])
    }
}

/// Table of the calls that set values for later use. Equal paths count as the same file. Flags and
/// positions of descriptors are absent: the table of state holds them.
#[rustfmt::skip]
pub(crate) static STORES: &[Store] = &[
    Store {
        thing: "the name that ps and top show, before a user could look at it",
        instead: "set it when it has held for a while, or a few times a second",
        gives_up: "ps shows what a worker does a moment later",
        ..times("prctl", &[Is(0, PR_SET_NAME)], &[])
    },
    times("utimensat", &[Null(1)], &[Arg(0)]),
    times("utimensat", &[NotNull(1)], &[Arg(0), In(1)]),
    times("futimesat", &[NotNull(1)], &[Arg(0), In(1)]),
    // Some programs change a file's mode as a sign of life, since that sets its change time.
    times("fchmod", &[], &[Arg(0)]),
    times("utimes", &[], &[In(0)]),
    times("utime", &[], &[In(0)]),
    Store {
        used_by: UsedBy::Readers,
        habit: 3,
        thing: "writes a place of a file that is written again before anybody could read it",
        instead: "write it when it has held for a while, or at the end",
        gives_up: "what stands there lags behind if the program is killed",
        ..times("pwrite64", &[], &[Arg(0), Arg(2), Arg(3)])
    },
    option(&[Is(1, SOL_SOCKET), NoneOf(2, FILTERS), NoneOf(2, OTHER_OPTIONS)]),
    option(&[OneOf(1, &[SOL_IP, SOL_TCP, SOL_IPV6]), NoneOf(2, NO_VALUES)]),
];
