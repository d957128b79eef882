//! One call of a window with all that is known of it.

use crate::paths::{Parts, PathId, Text};
use crate::semantics::{
    ATTEMPT, Act, Cheaper, Effect, Effects, FILE_STATUS, Key, Lines, Look, NAME, ObservedCall, PATH, SIZE,
    STATUS_FLAGS, Source, StateLine, Thing, Transfer, Value,
};
use crate::signs::Signs;
use systoll_model::{Errno, Moment};

/// What a call asked or set.
pub(crate) struct Meaning<'a> {
    /// The line of the table.
    pub line: &'static StateLine,
    /// What it is about.
    pub key: Key,
    /// What the key's generations were.
    pub version: u32,
    /// Whether it is about something that was there before the window's first call and that only calls
    /// of its key changed since: what these were before, no answer kept from window to window tells.
    pub from_before: bool,
    /// What was known before the call.
    pub known: Option<Value<'a>>,
    /// The answer, or what is so after the set. `None` where it can't be told.
    pub now: Option<Value<'a>>,
    /// The operand, where the call combines it with what was there.
    pub operand: Option<Value<'a>>,
    /// Whether the call changes nothing, whatever was there.
    pub changes_nothing: bool,
}

impl Meaning<'_> {
    /// Whether the call told or set what was known already.
    pub(crate) fn known_already(&self) -> bool {
        self.now.is_some() && self.now == self.known
    }
}

/// A path that a call opened.
pub(crate) struct Opened<'a> {
    /// The path.
    pub path: Text<'a>,
    /// Whether it is open for writing.
    pub writes: bool,
    /// Whether it was made or emptied: it is not the file it was.
    pub anew: bool,
    /// Whether the same file was opened in the same way before.
    pub again: bool,
}

/// Bytes that a call moved, or tried to.
#[derive(Clone, Copy)]
pub(crate) struct Moved {
    /// The line of the table.
    pub line: &'static Transfer,
    /// The descriptor.
    pub fd: Option<i32>,
    /// Bytes wanted, where an argument tells.
    pub asked: Option<u64>,
    /// Bytes moved; `None` if it failed.
    pub got: Option<u64>,
}

/// One call with all that is known of it.
pub(crate) struct Step<'a> {
    /// The call.
    pub observed: ObservedCall<'a>,
    /// Who made it, as far as what is known holds from window to window: a process, or a thread of one of many processes
    /// that are told of together.
    pub who: u32,
    /// Its place in the window.
    pub index: usize,
    /// What it asked or set.
    pub meaning: Option<Meaning<'a>>,
    /// A cheaper way to the same end.
    pub cheaper: Option<&'static Cheaper>,
    /// What it makes that may be unmade.
    pub makes: Option<&'static Thing>,
    /// Whether it moves what was made to another place.
    pub moves: bool,
    /// Whether it unmakes something.
    pub ends: bool,
    /// Whether it made a child.
    pub forks: bool,
    /// The path it opened.
    pub opened: Option<Opened<'a>>,
    /// What it moved, or tried to move.
    pub moved: Option<Moved>,
    /// The look without waiting that it is.
    pub look: Option<&'static Look>,
    /// Whether that look found nothing.
    pub nothing: bool,
    /// Whether it waited for something, or could have.
    pub pauses: bool,
    /// Whether it maps a file's code.
    pub loads: bool,
    /// Whether it wakes waiters.
    pub wakes: bool,
    /// What it changes on the way, if it succeeded.
    pub effects: Effects<'a>,
    /// What the tables say of the call.
    pub lines: &'a Lines,
    /// The path or the file it is about.
    pub object: Option<Text<'a>>,
    /// Its number.
    pub object_id: Option<PathId>,
    /// What that is made of.
    pub parts: Option<Parts>,
    /// What detectors look for.
    pub signs: Signs,
}

/// S_IFMT and S_IFDIR, and where `struct stat` and `struct statx` have the file's mode.
const FORMAT: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const STAT_MODE: usize = 24;

impl Step<'_> {
    /// What it shows.
    pub(crate) fn shows(&self) -> Signs {
        self.lines
            .signs
            .with(Signs::MOVES, self.moved.is_some())
            .with(Signs::MOVES_AT, self.moved.is_some_and(|moved| moved.line.at.is_some()))
            .with(Signs::NOTHING, self.nothing)
            .with(Signs::MAKES, self.makes.is_some())
            .with(Signs::ENDS, self.ends)
            .with(Signs::SLOW, self.cheaper.is_some())
            .and(self.opened.as_ref().map_or(Signs::NONE, signs_of_opening))
            .and(self.meaning.as_ref().map_or(Signs::NONE, |meaning| signs_of_meaning(meaning, self)))
    }

    /// Whether the descriptor may be of another file after it, or of none.
    pub(crate) fn lets_go(&self, fd: i32) -> bool {
        self.effects.iter().any(|effect| match effect {
            Effect::Closes(arg) | Effect::Redirects(arg) => self.observed.descriptor(arg) == fd,
            Effect::Descriptors => true,
            _ => false,
        })
    }

    /// Whether it sets where the descriptor stands in its file.
    pub(crate) fn seeks(&self, fd: i32) -> bool {
        self.effects.iter().any(|e| matches!(e, Effect::Moves(arg) if self.observed.descriptor(arg) == fd))
    }

    /// Whether it made the descriptor.
    pub(crate) fn makes_descriptor(&self, fd: i32) -> bool {
        let makes = |effect| matches!(effect, Effect::Opens | Effect::OpensPath { .. } | Effect::Shares);
        self.effects.iter().any(makes) && self.observed.call.result == Some(fd.into())
    }

    /// Whether it asked for the status of what turned out to be a directory, by its path.
    pub(crate) fn asks_directory(&self) -> bool {
        let Some(meaning) = self.meaning.as_ref().filter(|m| m.line.about.is(&PATH)) else { return false };
        let Act::Ask(&[Source::OutBut(arg, from, _)]) = meaning.line.act else { return false };
        let Some(status) = self.observed.data(arg, Moment::Exit) else { return false };
        // statx keeps a 16-bit mode at 28, stat a 32-bit one at 24.
        let mode = if from == 64 { half(status, 28) } else { half(status, STAT_MODE) };
        mode.is_some_and(|m| m & FORMAT == DIRECTORY)
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 2)?.first_chunk().map(|b| u16::from_le_bytes(*b).into())
}

/// What an opening shows.
fn signs_of_opening(opened: &Opened<'_>) -> Signs {
    Signs::OPENS.with(Signs::OPENS_AGAIN, opened.again && !opened.writes)
}

/// What a question or a set shows.
fn signs_of_meaning(meaning: &Meaning<'_>, step: &Step<'_>) -> Signs {
    let about = meaning.line.about;
    let of_act = match meaning.line.act {
        Act::Set { .. } => Signs::SETS,
        Act::Ask(_) | Act::Try => Signs::NONE.with(Signs::KNOWN, meaning.known_already()),
    };
    let path = about.is(&PATH) || about.is(&NAME) || about.is(&ATTEMPT);
    of_act
        .with(Signs::SIZES, about.is(&SIZE))
        .with(Signs::STATUS_FLAGS, about.is(&STATUS_FLAGS))
        .with(Signs::FILE_STATUS, about.is(&FILE_STATUS))
        .with(Signs::FROM_BEFORE, meaning.from_before)
        .with(Signs::PATH, path)
        .with(Signs::MISSING, path && step.observed.call.errno() == Some(Errno::ENOENT))
}
