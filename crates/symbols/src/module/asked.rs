//! What is asked of a file's tables, and what was answered: in this run, or in an earlier one.
//!
//! A large library has a hundred thousand symbols, of which a run asks for a few hundred, nearly the same in
//! every run. So answers are kept, and the tables are read when something new is asked. The same holds of lines,
//! to find a single one of which debug information of megabytes is read, and of the ways from frame to frame.

use crate::names::{Function, Names};
use foldhash::HashMap;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use systoll_model::Location;

/// What is asked of a file's symbol tables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameQuestion {
    /// The function around an address.
    Around(u64),
    /// The function that starts at an address.
    StartsAt(u64),
    /// The same, if others can link to it.
    ExportedAt(u64),
    /// The exported function of a name.
    Exported(Arc<str>),
    /// Any function of a name.
    Named(Arc<str>),
    /// Whether the function that starts at an address also goes by a name; the answer is an empty one.
    AlsoCalled(u64, Arc<str>),
    /// The first function behind an address whose name is one of a C library's own.
    FirstOfLibc(u64),
    /// Whether there is any function; the answer is an empty one.
    Any,
    /// The program's `main`.
    Main,
    /// What is called by the call that returns to an address: a function of the file, or one of a name.
    CalledBefore(u64),
    /// Where the call lies that returns to an address.
    CallBefore(u64),
    /// Whether the function that starts at an address, below 2^52, reaches so many bytes further, below
    /// [`MOST_REACH`](crate::MOST_REACH), by its code; the answer is an empty one.
    Reaches(u64, u16),
    /// Where the function around an address begins and ends, by call frame information.
    Framed(u64),
    /// Where a jump leads that the function at an address makes as its last act, by its number among those: at most
    /// [`MOST_LAST_JUMPS`].
    LastJump(u64, u8),
    /// Whether the file is a language's run-time; the answer is an empty one.
    Runtime,
}

/// Jumps of one function that are asked about.
pub const MOST_LAST_JUMPS: u8 = 128;

/// A function; `None`: there is no such one.
pub type NameAnswer = Option<Function>;

/// Questions and answers.
pub type NameAnswers = HashMap<NameQuestion, NameAnswer>;

/// What stands at addresses of a file: functions inlined into each other, innermost first, with their lines. Empty where
/// nothing is known of an address.
pub type LineAnswers = BTreeMap<u64, Arc<[Location]>>;

/// A place that unwinding comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameQuestion {
    /// An address; the byte before a return address where it was returned to.
    pub address: u64,
    /// Whether it was returned to.
    pub is_return: bool,
}

/// What unwinding found out about places of a file, in bytes that the same build of this library reads.
pub type FrameAnswers = BTreeMap<FrameQuestion, Arc<[u8]>>;

/// What an earlier run was answered, from where it is kept. A run asks for a small part of it.
pub trait KeptAnswers: fmt::Debug + Send + Sync {
    /// What was answered; `None` where that was not asked.
    fn answer(&self, question: &NameQuestion) -> Option<NameAnswer>;

    /// What stands at an address; `None` where that was not asked.
    fn lines(&self, address: u64) -> Option<Arc<[Location]>>;

    /// What unwinding found out about a place; `None` where it did not come there, or was another build's.
    fn frame(&self, question: FrameQuestion) -> Option<&[u8]>;

    /// How many questions were asked, those for lines and of unwinding included.
    fn count(&self) -> usize;

    /// Those for names.
    fn all(&self) -> NameAnswers;

    /// Those for lines.
    fn all_lines(&self) -> LineAnswers;

    /// Those of unwinding.
    fn all_frames(&self) -> FrameAnswers;
}

/// How much was asked of a file's tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameCounts {
    /// Different questions, those of an earlier run included.
    pub asked: usize,
    /// Of them, those that an earlier run has kept.
    pub kept: usize,
}

/// What was asked of one file so far.
#[derive(Debug, Default)]
pub(super) struct Asked(Mutex<Answers>);

#[derive(Debug, Default)]
struct Answers {
    /// Those that this run wanted.
    wanted: NameAnswers,
    /// How many of them no earlier run has kept.
    new: usize,
    /// Lines that no earlier run has kept.
    new_lines: LineAnswers,
    /// The same of unwinding.
    new_frames: FrameAnswers,
    kept: Option<Arc<dyn KeptAnswers>>,
}

impl Answers {
    fn kept(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.count())
    }

    /// What this run or an earlier one was answered.
    fn known(&mut self, question: &NameQuestion) -> Option<NameAnswer> {
        if let Some(answer) = self.wanted.get(question) {
            return Some(answer.clone());
        }
        let answer = self.kept.as_ref()?.answer(question)?;
        self.wanted.insert(question.clone(), answer.clone());
        Some(answer)
    }
}

impl Asked {
    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes answers of an earlier run; those of this run stay.
    pub(super) fn know(&self, kept: Arc<dyn KeptAnswers>) {
        let mut asked = self.lock();
        asked.new = asked.wanted.keys().filter(|question| kept.answer(question).is_none()).count();
        asked.kept = Some(kept);
    }

    /// How much was asked so far.
    pub(super) fn counts(&self) -> NameCounts {
        let asked = self.lock();
        let new = asked.new + asked.new_lines.len() + asked.new_frames.len();
        NameCounts { asked: asked.kept() + new, kept: asked.kept() }
    }

    /// What an earlier run found at an address.
    pub(super) fn kept_lines(&self, address: u64) -> Option<Arc<[Location]>> {
        self.lock().kept.as_ref()?.lines(address)
    }

    /// Notes what stands at an address, for later runs.
    pub(super) fn note_lines(&self, address: u64, lines: Arc<[Location]>) {
        self.lock().new_lines.insert(address, lines);
    }

    /// All lines that were asked for and may be kept.
    pub(super) fn all_lines(&self) -> LineAnswers {
        let asked = self.lock();
        let mut all = asked.kept.as_ref().map_or_else(LineAnswers::default, |kept| kept.all_lines());
        all.extend(asked.new_lines.clone());
        all
    }

    /// What `read` makes of what an earlier run found out about a place.
    pub(super) fn kept_frame<T>(&self, question: FrameQuestion, read: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        read(self.lock().kept.as_ref()?.frame(question)?)
    }

    /// Notes what unwinding found out about a place, for later runs.
    pub(super) fn note_frame(&self, question: FrameQuestion, found: &[u8]) {
        self.lock().new_frames.insert(question, found.into());
    }

    /// All that unwinding found out.
    pub(super) fn all_frames(&self) -> FrameAnswers {
        let asked = self.lock();
        let mut all = asked.kept.as_ref().map_or_else(FrameAnswers::default, |kept| kept.all_frames());
        all.extend(asked.new_frames.clone());
        all
    }

    /// All that was asked for names.
    pub(super) fn all(&self) -> NameAnswers {
        let asked = self.lock();
        let mut all = asked.kept.as_ref().map_or_else(NameAnswers::default, |kept| kept.all());
        all.extend(asked.wanted.clone());
        all
    }

    /// What `find` finds, unless that was asked before. Not locked meanwhile: it may ask in turn.
    pub(super) fn ask(&self, question: NameQuestion, find: impl FnOnce() -> NameAnswer) -> NameAnswer {
        if let Some(known) = self.lock().known(&question) {
            return known;
        }
        let answer = find();
        let mut asked = self.lock();
        let before = asked.wanted.insert(question, answer.clone());
        asked.new += usize::from(before.is_none());
        answer
    }
}

/// Who has a file's symbol tables.
pub(super) trait HasTables {
    /// All symbols, read now if they have not been.
    fn tables(&self) -> &Names;
}

/// The functions of a file, by address and by name.
#[derive(Clone, Copy)]
pub(crate) struct Functions<'m> {
    pub(super) asked: &'m Asked,
    pub(super) file: &'m dyn HasTables,
}

impl Functions<'_> {
    fn ask(&self, question: NameQuestion, find: impl FnOnce(&Names) -> NameAnswer) -> NameAnswer {
        self.asked.ask(question, || find(self.file.tables()))
    }

    /// The function around `addr`; one without a size may or may not reach so far.
    pub(crate) fn around(&self, addr: u64) -> Option<Function> {
        self.ask(NameQuestion::Around(addr), |names| names.around(addr))
    }

    /// The best name of the function that starts at `addr`.
    pub(crate) fn exactly(&self, addr: u64) -> Option<Arc<str>> {
        self.ask(NameQuestion::StartsAt(addr), |names| names.exactly(addr)).map(|f| f.name)
    }

    /// The same, if others can link to it.
    pub(crate) fn exported_at(&self, addr: u64) -> Option<Arc<str>> {
        self.ask(NameQuestion::ExportedAt(addr), |names| names.exported_at(addr)).map(|f| f.name)
    }

    /// The extent of the exported function of this name.
    pub(crate) fn export(&self, name: &str) -> Option<Range<u64>> {
        let place = |names: &Names| names.export(name).map(Function::nameless);
        self.ask(NameQuestion::Exported(name.into()), place).map(|f| f.extent())
    }

    /// The extent of the function of this name, empty where the tables do not say.
    pub(crate) fn find(&self, name: &str) -> Option<Range<u64>> {
        let place = |names: &Names| names.find(name).map(Function::nameless);
        self.ask(NameQuestion::Named(name.into()), place).map(|f| f.extent())
    }

    /// Whether the function at `addr` also goes by `name`.
    pub(crate) fn is_called(&self, addr: u64, name: &str) -> bool {
        let is = |names: &Names| names.is_called(addr, name).then(Function::default);
        self.ask(NameQuestion::AlsoCalled(addr, name.into()), is).is_some()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        let any = |names: &Names| (!names.is_empty()).then(Function::default);
        self.ask(NameQuestion::Any, any).is_none()
    }

    /// Where the first function behind `after` begins whose name is one of a C library's own.
    pub(crate) fn first_of_libc(&self, after: u64) -> Option<u64> {
        let first = |names: &Names| names.first_of_libc(after).map(|start| Function::nameless(start..start));
        self.ask(NameQuestion::FirstOfLibc(after), first).map(|f| f.start)
    }

    /// The extent of the program's `main`, which `find` finds.
    pub(super) fn main(&self, find: impl FnOnce() -> Option<Range<u64>>) -> Option<Range<u64>> {
        self.asked.ask(NameQuestion::Main, || find().map(Function::nameless)).map(|f| f.extent())
    }
}
