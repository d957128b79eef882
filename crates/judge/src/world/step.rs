//! One call of a window with everything known of it.

use crate::names::paths::{Parts, PathId, Text};
use crate::semantics::signs::Signs;
use crate::semantics::{
    ATTEMPT, Act, Cheaper, Effect, Effects, FILE_STATUS, FileLock, KernelLock, Key, Line, Lines, Look, MAKING, NAME,
    ObservedCall, PATH, POSITION, ROOM, SIZE, STATUS_FLAGS, SYNCED, Source, State, StateLine, Thing, Transfer, Unit,
    Value, Way,
};
use crate::world::barrier::Barrier;
use systoll_model::{Errno, Moment};

/// The question or the set that a call makes.
pub(crate) struct Meaning<'a> {
    /// The call's line of the table.
    pub line: &'static StateLine,
    /// The piece of state that the call is about.
    pub key: Key,
    /// The generations' version when the key was made.
    pub version: u32,
    /// True if the state existed before the window's first call and only calls of its key have changed it since: no
    /// answer kept from another window tells what it was then.
    pub from_before: bool,
    /// The value known before the call.
    pub known: Option<Value<'a>>,
    /// The answer, or the value after the set; `None` if it is unknown.
    pub now: Option<Value<'a>>,
    /// The operand, if the call combines it with the old value.
    pub operand: Option<Value<'a>>,
    /// True if the call changes nothing, whatever the old value was.
    pub changes_nothing: bool,
}

impl Meaning<'_> {
    /// Returns true if the call told, or set, the value that was known already.
    pub(crate) fn known_already(&self) -> bool {
        self.now.is_some() && self.now == self.known
    }
}

/// A path that a call opened.
pub(crate) struct Opened<'a> {
    /// The path.
    pub path: Text<'a>,
    /// True if the path is open for writing.
    pub writes: bool,
    /// True if the call created or truncated the file, so that it is a different one.
    pub anew: bool,
    /// True if the same file was opened in the same way before.
    pub again: bool,
    /// True if windows show that; the ledger may know it alone.
    pub shown: bool,
}

/// The bytes that a call moved, or tried to move.
#[derive(Clone, Copy)]
pub(crate) struct Moved {
    /// The call's line of the table.
    pub line: &'static Transfer,
    /// The descriptor.
    pub fd: Option<i32>,
    /// Number of bytes asked for, if an argument tells it.
    pub asked: Option<u64>,
    /// Number of bytes moved; `None` if the call failed.
    pub got: Option<u64>,
}

/// One call with everything known of it.
pub(crate) struct Step<'a> {
    /// The call.
    pub observed: ObservedCall<'a>,
    /// Number of the process, or of the thread if the entry represents many processes, to which
    /// state that is kept from window to window belongs.
    pub who: u32,
    /// Index of the call in the window.
    pub index: usize,
    /// The question or the set that the call makes.
    pub meaning: Option<Meaning<'a>>,
    /// A cheaper way to the same result.
    pub cheaper: Option<&'static Cheaper>,
    /// The thing that the call makes, which can be undone.
    pub makes: Option<&'static Thing>,
    /// True if the call moves a thing to another place.
    pub moves: bool,
    /// True if the call undoes a thing.
    pub ends: bool,
    /// The path that the call opened.
    pub opened: Option<Opened<'a>>,
    /// The bytes that the call moved, or tried to move.
    pub moved: Option<Moved>,
    /// The call's line of the table if it is a poll.
    pub look: Option<&'static Look>,
    /// True if the call is a poll that found nothing.
    pub nothing: bool,
    /// True if the call waited, or could have waited.
    pub pauses: bool,
    /// True if the call wakes waiters.
    pub wakes: bool,
    /// The state that the call changes beside its own, if it succeeded.
    pub effects: Effects<'a>,
    /// The tables' lines for the call.
    pub lines: &'a Lines,
    /// The path or the file that the call is about.
    pub object: Option<Text<'a>>,
    /// Number of `object`'s path.
    pub object_id: Option<PathId>,
    /// Parts of `object`'s path, if a detector asks for them.
    pub parts: Option<Parts>,
    /// The signs that the step shows.
    pub signs: Signs,
    /// What the call let happen beside its own effect.
    pub barrier: Barrier,
}

/// The bits of a file's mode that hold its type (S_IFMT).
const FORMAT: u32 = 0o170_000;
/// The type of a directory (S_IFDIR).
const DIRECTORY: u32 = 0o040_000;
/// The type of an ordinary file (S_IFREG).
const REGULAR: u32 = 0o100_000;
/// Offset of the mode in `struct stat`, bytes.
const STAT_MODE: usize = 24;

impl Step<'_> {
    /// Returns the signs that the step shows.
    pub(crate) fn shows(&self) -> Signs {
        self.lines
            .signs
            .with(Signs::MOVES, self.moved.is_some())
            .with(Signs::MOVES_AT, self.moved.is_some_and(|moved| moved.line.at.is_some()))
            .with(Signs::NOTHING, self.nothing)
            .with(Signs::MAKES, self.makes.is_some())
            .with(Signs::ENDS, self.ends)
            .with(Signs::SLOW, self.cheaper.is_some())
            .with(Signs::SEEKS, self.seeks_by_itself())
            .and(self.opened.as_ref().map_or(Signs::default(), signs_of_opening))
            .and(self.meaning.as_ref().map_or(Signs::default(), |meaning| signs_of_meaning(meaning, self)))
    }

    /// Returns what the call let happen beside its own effect.
    pub(crate) fn let_happen(&self) -> Barrier {
        let way = self.moved.map(|moved| moved.line.way);
        let of_file = || self.observed.call.fd.as_deref().is_some_and(|name| name.starts_with('/'));
        let outside = way.is_some() && !of_file();
        let lock = self.line::<FileLock>();
        let left = || self.line::<KernelLock>().is_some_and(|lock| lock.leaves);
        let resizes = |m: &Meaning<'_>| m.line.about.is(&SIZE) && matches!(m.line.act, Act::Set { .. });
        let effects = self.effects.iter().fold(Barrier::default(), |all, effect| match effect {
            Effect::Forks => all.and(Barrier::FORKED),
            Effect::Path { .. } => all.and(Barrier::NAMED),
            Effect::WorkingDirectory => all.and(Barrier::FOLDER),
            Effect::Identity => all.and(Barrier::IDENTITY),
            _ => all,
        });
        effects
            .with(Barrier::SIGNALLED, self.observed.call.signals_before > 0)
            .with(Barrier::PAUSED, self.pauses)
            .with(Barrier::SLEPT, self.pauses && way.is_none())
            .with(Barrier::POLLED, self.look.is_some_and(|look| look.sleeps))
            .with(Barrier::LOCKED, lock.is_some())
            .with(Barrier::UNLOCKED, lock.is_some_and(|lock| lock.leaves) || left())
            .with(Barrier::HEARD, outside && way == Some(Way::In))
            .with(Barrier::SHOWN, outside && way == Some(Way::Out))
            .with(Barrier::CARRIED, self.moved.is_some_and(|moved| moved.line.carries))
            .with(Barrier::WROTE, way == Some(Way::Out))
            .with(Barrier::RESIZED, self.meaning.as_ref().is_some_and(resizes))
            .with(Barrier::MAPPED, self.lines.maps())
            .with(Barrier::MOVED, self.moves)
            .with(Barrier::SYNCED, self.lines.sets(&SYNCED))
            .with(Barrier::OPENED, self.opened.is_some())
    }

    /// Returns the first line of a table that applies to the call.
    pub(crate) fn line<T: Line>(&self) -> Option<&'static T> {
        self.lines.line(&self.observed)
    }

    /// Returns true if the call asks for state of this kind, sets it or tries to.
    pub(crate) fn is_about(&self, state: &'static State) -> bool {
        self.meaning.as_ref().is_some_and(|meaning| meaning.line.about.is(state))
    }

    /// Returns true if the call asks for state of this kind.
    pub(crate) fn asks(&self, state: &'static State) -> bool {
        self.is_about(state) && self.meaning.as_ref().is_some_and(|meaning| matches!(meaning.line.act, Act::Ask(_)))
    }

    /// Returns the call's first argument, if that is a descriptor.
    pub(crate) fn descriptor(&self) -> Option<i32> {
        self.lines.fd.filter(|arg| *arg == 0).map(|_| self.observed.descriptor(0))
    }

    /// Returns the direction and the number of bytes that the call moved at its descriptor's own position.
    pub(crate) fn moved_in_turn(&self) -> Option<(Way, u64)> {
        let moved = self.moved.filter(|moved| moved.line.at.is_none() && moved.line.unit == Unit::Stream)?;
        Some((moved.line.way, moved.got?))
    }

    /// Returns true if the call let one of these things happen.
    pub(crate) fn lets(&self, barrier: Barrier) -> bool {
        self.barrier.any(barrier)
    }

    /// Returns true if the descriptor may refer to another file after the call, or to none.
    pub(crate) fn lets_go(&self, fd: i32) -> bool {
        self.effects.iter().any(|effect| match effect {
            Effect::Closes(arg) | Effect::Redirects(arg) => self.observed.descriptor(arg) == fd,
            Effect::Descriptors => true,
            _ => false,
        })
    }

    /// Returns true if the call sets the position of the descriptor in its file.
    pub(crate) fn seeks(&self, fd: i32) -> bool {
        self.effects.iter().any(|e| matches!(e, Effect::Moves(arg) if self.observed.descriptor(arg) == fd))
    }

    /// Returns true if the call sets a position relative to one that only its result tells.
    fn seeks_by_itself(&self) -> bool {
        self.lines.sets(&POSITION) && self.effects.iter().any(|effect| matches!(effect, Effect::Moves(_)))
    }

    /// Returns true if the call made the descriptor.
    pub(crate) fn makes_descriptor(&self, fd: i32) -> bool {
        let makes = |effect| matches!(effect, Effect::Opens | Effect::OpensPath { .. } | Effect::Shares);
        self.effects.iter().any(makes) && self.observed.call.result == Some(fd.into())
    }

    /// Returns true if the call asked by path for the status of a file that is a directory.
    pub(crate) fn asks_directory(&self) -> bool {
        self.file_type() == Some(DIRECTORY)
    }

    /// Returns false if the call's answer shows that nothing lies below the path that it asked about.
    pub(crate) fn may_be_folder(&self) -> bool {
        let is_missing = self.observed.call.errno().is_some_and(|e| [Errno::ENOENT, Errno::ENOTDIR].contains(&e));
        !is_missing && self.file_type() != Some(REGULAR)
    }

    /// Returns the type of the file for whose status the call asked by path, as its mode has it; `None` if it asked for
    /// something else, or got no answer.
    fn file_type(&self) -> Option<u32> {
        let meaning = self.meaning.as_ref().filter(|m| m.line.about.is(&PATH))?;
        let Act::Ask(&[Source::OutBut(arg, from, _)]) = meaning.line.act else { return None };
        let status = self.observed.data(arg, Moment::Exit)?;
        // `struct statx` has a 16-bit mode at 28, `struct stat` a 32-bit one at 24.
        Some(if from == 64 { half(status, 28) } else { half(status, STAT_MODE) }? & FORMAT)
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 2)?.first_chunk().map(|b| u16::from_le_bytes(*b).into())
}

/// Returns the signs of an opening.
fn signs_of_opening(opened: &Opened<'_>) -> Signs {
    Signs::OPENS.with(Signs::OPENS_AGAIN, opened.again && !opened.writes)
}

/// Returns the signs of a question or a set.
fn signs_of_meaning(meaning: &Meaning<'_>, step: &Step<'_>) -> Signs {
    let about = meaning.line.about;
    let of_act = match meaning.line.act {
        Act::Set { .. } => Signs::SETS,
        Act::Ask(_) | Act::Try => Signs::default().with(Signs::KNOWN, meaning.known_already()),
    };
    let path = [&PATH, &NAME, &ATTEMPT, &MAKING].iter().any(|state| about.is(state));
    of_act
        .with(Signs::SIZES, about.is(&SIZE))
        .with(Signs::SEEKS, about.is(&POSITION) && matches!(meaning.line.act, Act::Set { .. }))
        .with(Signs::STATUS_FLAGS, about.is(&STATUS_FLAGS))
        .with(Signs::FILE_STATUS, about.is(&FILE_STATUS))
        .with(Signs::FROM_BEFORE, meaning.from_before)
        .with(Signs::ROOM, about.is(&ROOM))
        .with(Signs::PATH, path)
        .with(Signs::MISSING, path && step.observed.call.errno() == Some(Errno::ENOENT))
}

/// Returns the bytes that a call moved, or tried to move.
pub(crate) fn moved(line: &'static Transfer, observed: &ObservedCall<'_>) -> Moved {
    let got = observed.call.result.and_then(|r| u64::try_from(r).ok());
    Moved { line, fd: line.fd.map(|f| observed.descriptor(f)), asked: line.asked.map(|a| observed.arg(a)), got }
}

/// Returns true if the call counts as a poll: its line has no limit of time, or it found nothing within that limit.
pub(crate) fn is_look(look: &Look, observed: &ObservedCall<'_>) -> bool {
    look.most_ns == u64::MAX || (1..=look.most_ns).contains(&observed.call.elapsed_ns) && found_nothing(look, observed)
}

/// Returns true if the poll found nothing.
pub(crate) fn found_nothing(look: &Look, observed: &ObservedCall<'_>) -> bool {
    look.nothing.is_of(observed.call)
}
