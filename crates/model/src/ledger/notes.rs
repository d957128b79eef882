//! Collects the looks of a run within bounds, for any program.

use super::question::{Question, hasher};
use super::{Before, Ledger, LedgerObject};
use crate::row::RowId;
use crate::sysno::Sysno;
use foldhash::HashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Questions of all processes plus objects of all rows that are kept, at most. Beyond that, every
/// other object is dropped.
const MOST: usize = 1 << 16;
/// Levels of thinning, at most. Each uses one bit of the hash of an object's name.
const LEVELS: usize = 24;
/// Objects of a row that are named, at most.
const TOP: usize = 5;
/// Other system calls that are named for an object, at most.
const ALSO: usize = 4;
/// Rows that get a ledger, at most: those with most calls looked at.
const ROWS: usize = 256;
/// Number of looks from which on a row gets a ledger.
const LEAST_LOOKS: u64 = 16;
/// Bytes of an object's name that are kept, at most.
const LONGEST: usize = 256;

/// A look: a sampled call whose question and answer are known.
#[derive(Clone, Copy, Debug)]
pub struct Looked<'a> {
    /// Number that identifies the process image that made the call.
    pub process: u32,
    /// Number that identifies the call's row. All calls of a row are of one system call.
    pub row: u32,
    /// The system call that was made.
    pub syscall: Sysno,
    /// The question that the call asked, and its answer.
    pub question: &'a Question<'a>,
    /// Time of the call, ns since the run's start.
    pub at_ns: u64,
    /// Number of the row's calls that the look stands for. It is 0 if the call was not drawn at
    /// random: then it is only remembered.
    pub stands_for: u64,
}

/// The looks of a run, and the objects they were about.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// Last answers, by process, question and object.
    asked: HashMap<Key, LastAnswer>,
    rows: BTreeMap<u32, RowNotes>,
    /// Number of objects of all rows together.
    objects: usize,
    names: HashMap<u64, ObjectName>,
    level: usize,
}

/// A process's question and its answer, as [`Notes`] keeps them: by hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuestionAsked {
    name: u64,
    question: u64,
    /// Hash of the same question with links followed or not, if there are two ways to ask.
    other_way: Option<u64>,
    answer: u64,
}

impl QuestionAsked {
    /// Computes the hashes of `question`. `process` is any number that identifies the process
    /// image.
    pub fn new(process: u32, question: &Question<'_>) -> Self {
        let name = hash(&question.path);
        let by = |way| key(process, question, way, name).question;
        Self { name, question: by(question.way), other_way: question.way.other().map(by), answer: question.answer }
    }
}

/// A question about an object, by hashes. The object's name comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    name: u64,
    question: u64,
}

#[derive(Clone, Copy, Debug)]
struct LastAnswer {
    answer: u64,
    /// First time at which this was the answer, ns since the run's start; the next field is the
    /// last time.
    since_ns: u64,
    last_ns: u64,
}

#[derive(Clone, Debug)]
struct ObjectName {
    text: Arc<str>,
    calls: Vec<Sysno>,
}

#[derive(Clone, Debug, Default)]
struct RowNotes {
    looks: u64,
    relative: bool,
    /// Sums over looks, by the highest level at which the object is kept.
    sums: Vec<Sums>,
    objects: HashMap<u64, ObjectNotes>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    calls: u64,
    squares: u64,
    repeats: u64,
    other_way: u64,
    changes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct ObjectNotes {
    looks: u64,
    calls: u64,
    same: u64,
}

/// The relation of an answer to earlier answers to the same question.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EarlierAnswer {
    None,
    Same,
    OtherWay,
    Different,
}

impl Notes {
    /// Adds a look to the ledger of its row.
    pub fn add(&mut self, look: Looked<'_>) {
        let name = hash(&look.question.path);
        let depth = depth(name);
        let kept = depth >= self.level;
        let known = if kept { self.learn(look, name) } else { EarlierAnswer::None };
        // All calls of a row are of one system call, so a second look at an object adds nothing to
        // its name's entry.
        let new = look.stands_for == 0 || self.count(look, kept.then_some((name, depth)), known);
        if kept && new {
            self.name(look, name);
        }
        while self.asked.len() + self.objects > MOST && self.level < LEVELS {
            self.thin();
        }
    }

    /// Returns the relation of a question, asked after `at_ns`, to earlier ones.
    pub fn before(&self, asked: &QuestionAsked, at_ns: u64) -> Before {
        let QuestionAsked { name, question, other_way, answer } = *asked;
        let told = |question| {
            let known = self.asked.get(&Key { name, question })?;
            Some(known.answer == answer && known.since_ns < at_ns)
        };
        if told(question) == Some(true) {
            return Before::Same;
        }
        if other_way.and_then(told) == Some(true) { Before::OtherWay } else { Before::Unknown }
    }

    /// Returns the rows' ledgers, most calls first.
    pub fn ledgers(&self) -> Vec<Ledger> {
        let mut all: Vec<Ledger> = self.rows.iter().map(|(row, of)| self.ledger(*row, of)).collect();
        all.retain(|ledger| ledger.looks >= LEAST_LOOKS && ledger.calls > 0);
        all.sort_by_key(|ledger| (Reverse(ledger.calls), ledger.row));
        all.truncate(ROWS);
        all
    }

    fn ledger(&self, row: u32, of: &RowNotes) -> Ledger {
        let mut sums = Sums::default();
        for part in of.sums.iter().skip(self.level) {
            sums.add(part);
        }
        let with = |looks: u64| of.objects.values().filter(|o| o.looks == looks).count() as u64;
        let mut most: Vec<(&u64, &ObjectNotes)> = of.objects.iter().collect();
        most.sort_by_key(|(name, o)| (Reverse(o.calls), Reverse(o.looks), **name));
        let object = |(name, o): (&u64, &ObjectNotes)| {
            let name = self.names.get(name)?;
            let also = name.calls.clone();
            Some(LedgerObject { name: name.text.clone(), looks: o.looks, calls: o.calls, same: o.same, also })
        };
        Ledger {
            row: RowId(row),
            looks: of.looks,
            calls: sums.calls,
            squares: sums.squares,
            repeats: sums.repeats,
            other_way: sums.other_way,
            changes: sums.changes,
            objects: of.objects.len() as u64,
            once: with(1),
            twice: with(2),
            level: self.level as u8,
            relative: of.relative,
            top: most.into_iter().take(TOP).filter_map(object).collect(),
        }
    }

    /// Notes a question and its answer. Returns its relation to earlier answers.
    fn learn(&mut self, look: Looked<'_>, name: u64) -> EarlierAnswer {
        let question = look.question;
        let own = key(look.process, question, question.way, name);
        let new = LastAnswer { answer: question.answer, since_ns: look.at_ns, last_ns: look.at_ns };
        let Some(asked) = self.asked.get_mut(&own) else {
            let other = question.way.other().and_then(|way| self.asked.get(&key(look.process, question, way, name)));
            let known = if other.is_some_and(|o| o.answer == new.answer) {
                EarlierAnswer::OtherWay
            } else {
                EarlierAnswer::None
            };
            self.asked.insert(own, new);
            return known;
        };
        if asked.answer == new.answer {
            asked.since_ns = asked.since_ns.min(look.at_ns);
            asked.last_ns = asked.last_ns.max(look.at_ns);
            return EarlierAnswer::Same;
        }
        if look.at_ns > asked.last_ns {
            *asked = new;
        }
        EarlierAnswer::Different
    }

    /// Notes an object's name and the system call that asked about it.
    fn name(&mut self, look: Looked<'_>, name: u64) {
        let text = || ObjectName { text: cut(&look.question.path), calls: Vec::new() };
        let calls = &mut self.names.entry(name).or_insert_with(text).calls;
        if !calls.contains(&look.syscall) && calls.len() <= ALSO {
            calls.push(look.syscall);
        }
    }

    /// Counts a look, and its object if the object is kept. Returns true if it is the first look at
    /// the object.
    fn count(&mut self, look: Looked<'_>, object: Option<(u64, usize)>, known: EarlierAnswer) -> bool {
        let row = self.rows.entry(look.row).or_default();
        row.looks += 1;
        row.relative |= !look.question.path.starts_with('/');
        let Some((name, depth)) = object else { return false };
        if row.sums.len() <= depth {
            row.sums.resize(depth + 1, Sums::default());
        }
        let weight = look.stands_for;
        let of = |wanted| if known == wanted { weight } else { 0 };
        if let Some(sums) = row.sums.get_mut(depth) {
            sums.add(&Sums {
                calls: weight,
                squares: weight.saturating_mul(weight),
                repeats: of(EarlierAnswer::Same),
                other_way: of(EarlierAnswer::OtherWay),
                changes: of(EarlierAnswer::Different),
            });
        }
        let object = row.objects.entry(name).or_default();
        object.looks += 1;
        object.calls = object.calls.saturating_add(weight);
        object.same += u64::from(known == EarlierAnswer::Same);
        let first = object.looks == 1;
        self.objects += usize::from(first);
        first
    }

    /// Raises the level of thinning, which drops every other object.
    fn thin(&mut self) {
        self.level += 1;
        let stays = |name: &u64| depth(*name) >= self.level;
        self.asked.retain(|key, _| stays(&key.name));
        self.names.retain(|name, _| stays(name));
        self.rows.values_mut().for_each(|row| row.objects.retain(|name, _| stays(name)));
        self.objects = self.rows.values().map(|row| row.objects.len()).sum();
    }
}

impl Sums {
    fn add(&mut self, more: &Self) {
        let Self { calls, squares, repeats, other_way, changes } = *more;
        self.calls = self.calls.saturating_add(calls);
        self.squares = self.squares.saturating_add(squares);
        self.repeats = self.repeats.saturating_add(repeats);
        self.other_way = self.other_way.saturating_add(other_way);
        self.changes = self.changes.saturating_add(changes);
    }
}

fn key(process: u32, question: &Question<'_>, way: super::Way, name: u64) -> Key {
    Key { name, question: hash(&(process, question.what, way)) }
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = hasher();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Returns the highest level at which an object is kept.
fn depth(name: u64) -> usize {
    (name.trailing_zeros() as usize).min(LEVELS)
}

fn cut(path: &str) -> Arc<str> {
    let end = (0..=path.len().min(LONGEST)).rev().find(|end| path.is_char_boundary(*end)).unwrap_or(0);
    path.get(..end).unwrap_or(path).into()
}
