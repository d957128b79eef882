//! What system calls mean: which ask about what, which set what, what they change on the way.
//!
//! The tables are data; detectors read them and name no call themselves.

mod effects;
mod read;
mod roads;
mod table;
mod topics;

pub(crate) use effects::{EFFECTS, Effect, EffectEntry};
pub(crate) use read::{Generations, Key, Subject, answer, value};
pub(crate) use roads::{CHEAPER, Cheaper, PAIRS, Pair, Place, WAITS, Wait};
pub(crate) use table::ENTRIES;
pub(crate) use topics::{
    CAPABILITIES, CREDENTIALS, CWD, FILE_STATUS, IDENTITY, NAME, PATH, POSITION, PROTECTION, SIZE, SYNCED,
};

use std::collections::HashMap;
use systoll_model::Sysno;

/// Where a value of a call is found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// An argument register.
    Arg(u8),
    /// An argument register's bits under a mask.
    ArgMask(u8, u64),
    /// The first so many argument registers.
    Args(u8),
    /// What an argument pointed to before the call.
    In(u8),
    /// The same where it is an absolute path; a relative one means something else each time.
    InAbsolute(u8),
    /// What an argument pointed to after the call.
    Out(u8),
    /// The same, less the bytes from..to, which change by themselves.
    OutBut(u8, usize, usize),
    /// The same as a string, up to its NUL.
    OutStr(u8),
    /// The result.
    Result,
    /// The result's bits under a mask.
    ResultMask(u64),
    /// The system call's number: different calls ask different things.
    Call,
    /// A descriptor argument, in its present generation.
    Fd(u8),
    /// A path argument, relative to a descriptor argument where there is one, in its present
    /// generation.
    Path {
        /// The argument that holds the directory's descriptor.
        at: Option<u8>,
        /// The argument that points to the path.
        path: u8,
    },
    /// Nothing: the value is always the same.
    Nothing,
}

/// What must hold for an entry to apply.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    /// The argument's low 32 bits are this.
    Is(u8, u32),
    /// The argument's low 32 bits are one of these.
    OneOf(u8, &'static [u32]),
    /// The argument's low 32 bits are none of these.
    NoneOf(u8, &'static [u32]),
    /// The pointer is NULL.
    Null(u8),
    /// The pointer is not NULL.
    NotNull(u8),
    /// One of these bits is set in the argument.
    AnyBits(u8, u64),
    /// The argument's low 32 bits are negative.
    Negative(u8),
    /// What the argument points to is known and its first 32 bits have none of these set.
    InNoBits(u8, u32),
    /// The path is empty and the call is about the descriptor (AT_EMPTY_PATH).
    EmptyPath(u8),
}

/// Whose state a topic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The thread's own.
    Thread,
    /// The process image's, its descriptors included.
    Process,
}

/// Whether an answer may be kept over the calls between two windows, which nobody looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Across {
    /// An equal answer later is proof enough (it carries a change time, or nothing changes it).
    Keep,
    /// Only while the process never made any of these calls.
    Unless(&'static [&'static str]),
    /// No.
    Drop,
}

/// A kind of state that calls ask for and set.
#[derive(Debug)]
pub(crate) struct Topic {
    /// Unique name.
    pub name: &'static str,
    /// Whose it is.
    pub scope: Scope,
    /// Over the gap between windows.
    pub across: Across,
    /// Words for a sentence: "asks for …", "sets …".
    pub thing: &'static str,
    /// What keeping the answer gives up.
    pub gives_up: &'static str,
    /// Whether signal delivery and the return from a handler may change it.
    pub signals: bool,
    /// Whether keys are address ranges, so that an overlapping set voids what was known.
    pub ranges: bool,
    /// Whether others may change it unseen, so that its claims are remarks.
    pub unsure: bool,
    /// Whether only a strict alternation of two values counts as a toggle.
    pub strict: bool,
}

/// How a set combines with what was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The value replaces it.
    Replace,
    /// Bits are added.
    Add,
    /// Bits are taken off.
    Remove,
}

/// What a call does to a topic.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// It asks; the sources make up the answer.
    Ask(&'static [Source]),
    /// It sets.
    Set {
        /// The new value.
        value: Source,
        /// Where the call itself tells the old value.
        old: Option<Source>,
        /// How they combine.
        how: How,
        /// Bits the kernel never sets, whatever is asked.
        never: u64,
    },
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The system call's name.
    pub call: &'static str,
    /// All must hold.
    pub when: &'static [When],
    /// What it is about.
    pub about: &'static Topic,
    /// What tells one piece of such state from another.
    pub detail: &'static [Source],
    /// What it does.
    pub act: Act,
    /// Whether consecutive questions may walk down one path, each extending the last.
    pub chain: bool,
}

/// The tables by system call number.
pub(crate) struct Semantics {
    entries: HashMap<Sysno, Vec<&'static Entry>>,
    effects: HashMap<Sysno, Vec<&'static EffectEntry>>,
    cheaper: HashMap<Sysno, Vec<&'static Cheaper>>,
    makes: HashMap<Sysno, Vec<&'static Pair>>,
    ends: HashMap<Sysno, Vec<&'static Pair>>,
}

impl Semantics {
    /// Indexes the tables.
    pub(crate) fn new() -> Self {
        Self {
            entries: index(ENTRIES, |e| e.call),
            effects: index(EFFECTS, |e| e.call),
            cheaper: index(CHEAPER, |c| c.call),
            makes: index(PAIRS, |p| p.makes),
            ends: index(PAIRS, |p| p.ends),
        }
    }

    /// What the call asks or sets: the first entry that applies.
    pub(crate) fn entry(&self, call: &Subject<'_>) -> Option<&'static Entry> {
        self.entries.get(&call.syscall)?.iter().copied().find(|e| call.holds(e.when))
    }

    /// What the call changes on the way.
    pub(crate) fn effects<'s>(&'s self, call: &'s Subject<'_>) -> impl Iterator<Item = Effect> + 's {
        let entries = self.effects.get(&call.syscall).map_or(&[][..], |v| v);
        entries.iter().filter(|e| call.holds(e.when)).map(|e| e.effect)
    }

    /// The cheaper way to what the call does, where there is one.
    pub(crate) fn cheaper(&self, call: &Subject<'_>) -> Option<&'static Cheaper> {
        self.cheaper.get(&call.syscall)?.iter().copied().find(|c| call.holds(c.when))
    }

    /// What the call makes that another call would undo.
    pub(crate) fn makes(&self, call: &Subject<'_>) -> Option<&'static Pair> {
        self.makes.get(&call.syscall)?.iter().copied().find(|p| call.holds(p.when))
    }

    /// Whether the call undoes what others make.
    pub(crate) fn ends(&self, call: &Subject<'_>) -> bool {
        self.ends.contains_key(&call.syscall)
    }

    /// Topics that a signal's delivery may change.
    pub(crate) fn shaken_by_signals() -> impl Iterator<Item = &'static Topic> {
        ENTRIES.iter().map(|e| e.about).filter(|t| t.signals)
    }
}

fn index<T>(table: &'static [T], name: fn(&T) -> &'static str) -> HashMap<Sysno, Vec<&'static T>> {
    let mut map: HashMap<Sysno, Vec<&'static T>> = HashMap::new();
    for line in table {
        if let Some(sysno) = Sysno::from_name(name(line)) {
            map.entry(sysno).or_default().push(line);
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_names_a_call_the_kernel_has() {
        let names = ENTRIES
            .iter()
            .map(|e| e.call)
            .chain(EFFECTS.iter().map(|e| e.call))
            .chain(CHEAPER.iter().map(|c| c.call))
            .chain(WAITS.iter().map(|w| w.call))
            .chain(PAIRS.iter().flat_map(|p| [p.makes, p.ends]));
        for name in names {
            assert!(Sysno::from_name(name).is_some(), "{name}");
        }
        for entry in ENTRIES {
            if let Across::Unless(calls) = entry.about.across {
                assert!(calls.iter().all(|c| Sysno::from_name(c).is_some()), "{}", entry.about.name);
            }
        }
    }
}
