//! By what windows show, whether a detector has anything to look for there: most look for what few windows hold.

use crate::semantics::{ATTEMPT, Act, FILE_STATUS, Lines, NAME, PATH, STATUS_FLAGS};
use crate::step::{Meaning, Opened, Step};
use systoll_model::Errno;

/// What a step, or one of a window's, shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signs(u32);

macro_rules! signs {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The places of signs in [`Signs`].
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Place { $($name,)* }

        impl Signs {
            $($(#[$doc])* pub(crate) const $name: Self = Self(1 << Place::$name as u32);)*
        }
    };
}

signs! {
    /// Any call at all.
    CALL,
    /// Bytes moved, or an attempt to.
    MOVES,
    /// The same at a place of the file that the call names.
    MOVES_AT,
    /// A path opened.
    OPENS,
    /// One that was open before, to be read.
    OPENS_AGAIN,
    /// A file made or emptied, to be written.
    OPENS_ANEW,
    /// State set.
    SETS,
    /// Flags of an open file asked for or set.
    STATUS_FLAGS,
    /// The status of an open file asked for.
    FILE_STATUS,
    /// A question whose answer was known.
    KNOWN,
    /// A path asked about, or tried.
    PATH,
    /// The same, and nothing was there.
    MISSING,
    /// State that was there before the window.
    FROM_BEFORE,
    /// A look without waiting that found nothing.
    NOTHING,
    /// Something made that may be unmade.
    MAKES,
    /// Something unmade.
    ENDS,
    /// A call with a cheaper way to the same end, or one that another one makes needless.
    SLOW,
    /// A call that may take or leave a file's lock.
    LOCKS,
    /// A timer set.
    ARMS,
    /// A call that may set what others see.
    SHOWS,
    /// A call that may give memory back which stays the program's.
    GIVES_BACK,
    /// An attribute of a file asked for.
    ATTRIBUTE,
    /// A ring entered.
    ENTERS,
    /// A call that may be refused in vain.
    IN_VAIN,
    /// A call that may wake waiters, or wait for being woken.
    WAKES,
}

impl Signs {
    /// None at all.
    pub(crate) const NONE: Self = Self(0);

    /// These and those.
    pub(crate) const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// These too, where it holds.
    #[must_use]
    pub(crate) fn with(self, signs: Self, holds: bool) -> Self {
        if holds { self.and(signs) } else { self }
    }

    /// Whether one of those is among them.
    pub(crate) const fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    /// What all calls show of which the tables say the same.
    pub(crate) fn of_lines(lines: &Lines) -> Self {
        Self::CALL
            .with(Self::SLOW, !lines.sequels().is_empty())
            .with(Self::LOCKS, lines.may_lock())
            .with(Self::ARMS, lines.arm().is_some())
            .with(Self::SHOWS, lines.may_show())
            .with(Self::GIVES_BACK, lines.may_give_back())
            .with(Self::ATTRIBUTE, lines.attribute().is_some())
            .with(Self::ENTERS, lines.enters())
            .with(Self::IN_VAIN, lines.may_be_in_vain())
            .with(Self::WAKES, lines.may_wake())
    }

    /// What one step shows.
    pub(crate) fn of(step: &Step<'_>) -> Self {
        step.lines
            .signs
            .with(Self::MOVES, step.moved.is_some())
            .with(Self::MOVES_AT, step.moved.is_some_and(|moved| moved.line.at.is_some()))
            .with(Self::NOTHING, step.nothing)
            .with(Self::MAKES, step.makes.is_some())
            .with(Self::ENDS, step.ends)
            .with(Self::SLOW, step.cheaper.is_some())
            .and(step.opened.as_ref().map_or(Self::NONE, Self::of_opened))
            .and(step.meaning.as_ref().map_or(Self::NONE, |meaning| Self::of_meaning(meaning, step)))
    }

    fn of_opened(opened: &Opened<'_>) -> Self {
        Self::OPENS
            .with(Self::OPENS_AGAIN, opened.again && !opened.writes)
            .with(Self::OPENS_ANEW, opened.anew && opened.writes)
    }

    fn of_meaning(meaning: &Meaning<'_>, step: &Step<'_>) -> Self {
        let about = meaning.line.about;
        let of_act = match meaning.line.act {
            Act::Set { .. } => Self::SETS,
            Act::Ask(_) | Act::Try => Self::NONE.with(Self::KNOWN, meaning.known_already()),
        };
        let path = about.is(&PATH) || about.is(&NAME) || about.is(&ATTEMPT);
        of_act
            .with(Self::STATUS_FLAGS, about.is(&STATUS_FLAGS))
            .with(Self::FILE_STATUS, about.is(&FILE_STATUS))
            .with(Self::FROM_BEFORE, meaning.from_before)
            .with(Self::PATH, path)
            .with(Self::MISSING, path && step.observed.call.errno() == Some(Errno::ENOENT))
    }
}
