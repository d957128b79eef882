//! Questions about a file's tables, and their answers from this run or an earlier one.
//!
//! A large library has a hundred thousand symbols. A run asks for a few hundred of them, mostly the same as other
//! runs. So answers are kept, and the tables are read only for a new question. The same holds for lines, a single one
//! of which takes reading megabytes of debug information, and for the steps of unwinding.

use crate::names::{Function, Names};
use foldhash::HashMap;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use systoll_model::Location;

/// A question about a file's symbol tables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameQuestion {
    /// The function around an address.
    Around(u64),
    /// The function that starts at an address.
    StartsAt(u64),
    /// The function that starts at an address, if other files can link to it.
    ExportedAt(u64),
    /// The exported function of a name.
    Exported(Arc<str>),
    /// Any function of a name.
    Named(Arc<str>),
    /// A test if the function that starts at an address also has this name; an empty function means yes.
    AlsoCalled(u64, Arc<str>),
    /// The first function behind an address whose name a C library reserves.
    FirstOfLibc(u64),
    /// A test if the file has any function; an empty function means yes.
    Any,
    /// The `main` of the program.
    Main,
    /// The target of the call that returns to an address: a function of the file, or a name.
    CalledBefore(u64),
    /// The call instruction that returns to an address.
    CallBefore(u64),
    /// A test if the code of the function that starts at an address, below 2^52, extends by so many bytes, below
    /// [`MOST_REACH`](crate::MOST_REACH); an empty function means yes.
    Reaches(u64, u16),
    /// The range of the function around an address, by call frame information.
    Framed(u64),
    /// The target of a tail call of the function at an address, by the number of the tail call: less than
    /// [`MOST_LAST_JUMPS`].
    LastJump(u64, u8),
    /// A test if the file is a language's run-time; an empty function means yes.
    Runtime,
}

/// Tail calls of a function that are asked about, at most.
pub const MOST_LAST_JUMPS: u8 = 128;

/// The function that answers a question; `None` if there is no such function.
pub type NameAnswer = Option<Function>;

/// Answers by question.
pub type NameAnswers = HashMap<NameQuestion, NameAnswer>;

/// Lines by address in a file: functions inlined into each other, innermost first, with their lines. The list of an
/// address is empty if nothing is known of it.
pub type LineAnswers = BTreeMap<u64, Arc<[Location]>>;

/// An address that unwinding passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameQuestion {
    /// The address; for a return address, the byte before it.
    pub address: u64,
    /// True for a return address.
    pub is_return: bool,
}

/// Results of unwinding by address, in bytes that only the same build of this library reads.
pub type FrameAnswers = BTreeMap<FrameQuestion, Arc<[u8]>>;

/// Answers that an earlier run has stored. A run asks for a small part of them.
pub trait KeptAnswers: fmt::Debug + Send + Sync {
    /// Returns the answer to a question; `None` if the earlier run did not ask it.
    fn answer(&self, question: &NameQuestion) -> Option<NameAnswer>;

    /// Returns the lines at an address; `None` if the earlier run did not ask for them.
    fn lines(&self, address: u64) -> Option<Arc<[Location]>>;

    /// Returns the result of unwinding at an address; `None` if there was none, or another build stored it.
    fn frame(&self, question: FrameQuestion) -> Option<&[u8]>;

    /// Returns the number of answers, those about lines and unwinding included.
    fn count(&self) -> usize;

    /// Returns all answers about names.
    fn all(&self) -> NameAnswers;

    /// Returns all answers about lines.
    fn all_lines(&self) -> LineAnswers;

    /// Returns all results of unwinding.
    fn all_frames(&self) -> FrameAnswers;
}

/// Numbers of questions asked about a file's tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameCounts {
    /// Number of different questions, those of an earlier run included.
    pub asked: usize,
    /// Number of these that an earlier run answered.
    pub kept: usize,
}

/// Questions asked about one file so far, with their answers.
#[derive(Debug, Default)]
pub(super) struct FileAnswers(Mutex<Answers>);

#[derive(Debug, Default)]
struct Answers {
    /// Answers that this run has asked for.
    wanted: NameAnswers,
    /// Number of these answers that no earlier run had.
    new: usize,
    /// Lines that no earlier run has found.
    new_lines: LineAnswers,
    /// Results of unwinding that no earlier run has found.
    new_frames: FrameAnswers,
    kept: Option<Arc<dyn KeptAnswers>>,
}

impl Answers {
    fn kept(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.count())
    }

    /// Returns the answer of this run or of an earlier one.
    fn known(&mut self, question: &NameQuestion) -> Option<NameAnswer> {
        if let Some(answer) = self.wanted.get(question) {
            return Some(answer.clone());
        }
        let answer = self.kept.as_ref()?.answer(question)?;
        self.wanted.insert(question.clone(), answer.clone());
        Some(answer)
    }
}

impl FileAnswers {
    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes answers of an earlier run; those of this run stay.
    pub(super) fn know(&self, kept: Arc<dyn KeptAnswers>) {
        let mut asked = self.lock();
        asked.new = asked.wanted.keys().filter(|question| kept.answer(question).is_none()).count();
        asked.kept = Some(kept);
    }

    /// Returns the numbers of questions asked so far.
    pub(super) fn counts(&self) -> NameCounts {
        let asked = self.lock();
        let new = asked.new + asked.new_lines.len() + asked.new_frames.len();
        NameCounts { asked: asked.kept() + new, kept: asked.kept() }
    }

    /// Returns the lines that an earlier run found at an address.
    pub(super) fn kept_lines(&self, address: u64) -> Option<Arc<[Location]>> {
        self.lock().kept.as_ref()?.lines(address)
    }

    /// Records the lines at an address for later runs.
    pub(super) fn note_lines(&self, address: u64, lines: Arc<[Location]>) {
        self.lock().new_lines.insert(address, lines);
    }

    /// Returns all lines that later runs may use.
    pub(super) fn all_lines(&self) -> LineAnswers {
        let asked = self.lock();
        let mut all = asked.kept.as_ref().map_or_else(LineAnswers::default, |kept| kept.all_lines());
        all.extend(asked.new_lines.clone());
        all
    }

    /// Returns the result of `read` for the bytes that an earlier run stored about an address.
    pub(super) fn kept_frame<T>(&self, question: FrameQuestion, read: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        read(self.lock().kept.as_ref()?.frame(question)?)
    }

    /// Records a result of unwinding for later runs.
    pub(super) fn note_frame(&self, question: FrameQuestion, found: &[u8]) {
        self.lock().new_frames.insert(question, found.into());
    }

    /// Returns all results of unwinding.
    pub(super) fn all_frames(&self) -> FrameAnswers {
        let asked = self.lock();
        let mut all = asked.kept.as_ref().map_or_else(FrameAnswers::default, |kept| kept.all_frames());
        all.extend(asked.new_frames.clone());
        all
    }

    /// Returns all answers about names.
    pub(super) fn all(&self) -> NameAnswers {
        let asked = self.lock();
        let mut all = asked.kept.as_ref().map_or_else(NameAnswers::default, |kept| kept.all());
        all.extend(asked.wanted.clone());
        all
    }

    /// Returns the known answer, or the result of `find`. The answers are not locked while `find` runs, because it
    /// may ask other questions.
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

/// A file with symbol tables.
pub(super) trait HasTables {
    /// Returns all symbols, reading them if necessary.
    fn tables(&self) -> &Names;
}

/// The functions of a file, by address and by name.
#[derive(Clone, Copy)]
pub(crate) struct Functions<'m> {
    pub(super) asked: &'m FileAnswers,
    pub(super) file: &'m dyn HasTables,
}

impl Functions<'_> {
    fn ask(&self, question: NameQuestion, find: impl FnOnce(&Names) -> NameAnswer) -> NameAnswer {
        self.asked.ask(question, || find(self.file.tables()))
    }

    /// Returns the function around `addr`. A function without a size may end before `addr`.
    pub(crate) fn around(&self, addr: u64) -> Option<Function> {
        self.ask(NameQuestion::Around(addr), |names| names.around(addr))
    }

    /// Returns the best name of the function that starts at `addr`.
    pub(crate) fn exactly(&self, addr: u64) -> Option<Arc<str>> {
        self.ask(NameQuestion::StartsAt(addr), |names| names.exactly(addr)).map(|f| f.name)
    }

    /// Returns the best name of the function that starts at `addr`, if other files can link to it.
    pub(crate) fn exported_at(&self, addr: u64) -> Option<Arc<str>> {
        self.ask(NameQuestion::ExportedAt(addr), |names| names.exported_at(addr)).map(|f| f.name)
    }

    /// Returns the range of the exported function of this name.
    pub(crate) fn export(&self, name: &str) -> Option<Range<u64>> {
        let place = |names: &Names| names.export(name).map(Function::nameless);
        self.ask(NameQuestion::Exported(name.into()), place).map(|f| f.extent())
    }

    /// Returns the range of the function of this name; it is empty if the tables have no size for it.
    pub(crate) fn find(&self, name: &str) -> Option<Range<u64>> {
        let place = |names: &Names| names.find(name).map(Function::nameless);
        self.ask(NameQuestion::Named(name.into()), place).map(|f| f.extent())
    }

    /// Returns true if the function at `addr` also has the name `name`.
    pub(crate) fn is_called(&self, addr: u64, name: &str) -> bool {
        let is = |names: &Names| names.is_called(addr, name).then(Function::default);
        self.ask(NameQuestion::AlsoCalled(addr, name.into()), is).is_some()
    }

    /// Returns true if there are no functions.
    pub(crate) fn is_empty(&self) -> bool {
        let any = |names: &Names| (!names.is_empty()).then(Function::default);
        self.ask(NameQuestion::Any, any).is_none()
    }

    /// Returns the start of the first function behind `after` whose name a C library reserves.
    pub(crate) fn first_of_libc(&self, after: u64) -> Option<u64> {
        let first = |names: &Names| names.first_of_libc(after).map(|start| Function::nameless(start..start));
        self.ask(NameQuestion::FirstOfLibc(after), first).map(|f| f.start)
    }

    /// Returns the range of the program's `main`, which `find` finds.
    pub(super) fn main(&self, find: impl FnOnce() -> Option<Range<u64>>) -> Option<Range<u64>> {
        self.asked.ask(NameQuestion::Main, || find().map(Function::nameless)).map(|f| f.extent())
    }
}
