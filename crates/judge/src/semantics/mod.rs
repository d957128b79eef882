//! What system calls mean: which ask about what, which set what, what they change on the way.
//!
//! The tables are data; detectors read them and name no call themselves.

mod effects;
mod flow;
mod habits;
#[cfg(test)]
mod left_out;
mod read;
mod roads;
mod table;
mod topics;

pub(crate) use effects::{EFFECTS, Effect, EffectEntry, Effects};
pub(crate) use flow::{
    COUNTERS, LOOK, Look, MADE_UP, Nothing, RANDOM_FILES, TERMINALS, TRANSFERS, Transfer, Unit, Way,
};
pub(crate) use habits::{
    ARMS, Amount, Arm, FREES, Frees, GIVES_BACK, GivesBack, HOPELESS, Hopeless, LOADS, SEQUELS, Sequel, Spare, Tie,
    WAKES, Wake,
};
pub(crate) use read::{Generations, Key, Known, Subject, Value, answer, value};
pub(crate) use roads::{CHEAPER, Cheaper, PAIRS, Pair, Place, WAITS, Wait};
pub(crate) use table::ENTRIES;
pub(crate) use topics::{
    ADVICE, ATTRIBUTES, CAPABILITIES, CREDENTIALS, CWD, FD_FLAGS, FILE_STATUS, FOLDER, IDENTITY, NAME, PATH, POSITION,
    PROTECTION, SCHEDULING, SIZE, STATUS_FLAGS, SYNCED,
};

use systoll_model::{ArgKind, Sysno};

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
    /// The first so many bytes of it, whether or not all of it was read.
    OutStart(u8, usize),
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
    /// This number.
    Const(u64),
    /// A value that nothing here tells.
    Unread,
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
    /// All of these bits are set in the argument.
    AllBits(u8, u64),
    /// None of these bits is set in the argument.
    NoBits(u8, u64),
    /// The argument's low 32 bits are more than this.
    Above(u8, u32),
    /// What the argument points to is known and begins with two words of zero: no time at all.
    InZero(u8),
    /// What the argument points to is known: a `struct timespec` of a millisecond or less.
    InShort(u8),
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
    /// Whether descriptors share it, or calls that say it in other words.
    pub shared: Shared,
    /// Whether only a strict alternation of two values counts as a toggle.
    pub strict: bool,
}

/// Which keys of a topic may be one piece of state, so that a set by one leaves what is known by the others
/// in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    /// None: each piece has one key, or what a call changes beside its own stands among the effects.
    No,
    /// Those of one file: descriptors that were duplicated, and calls that set the same bits.
    ByFile,
    /// All of the process: one device may have several names.
    All,
}

/// A topic in tables: each stands in one static place, whose address is quicker to hash than a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TopicId(usize);

impl Topic {
    /// What tells it from others.
    pub(crate) fn id(&'static self) -> TopicId {
        TopicId(std::ptr::from_ref(self).addr())
    }
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
    /// It does something; that it can't is an answer.
    Try,
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

/// All that the tables say of one system call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    entries: Vec<&'static Entry>,
    effects: Vec<&'static EffectEntry>,
    cheaper: Vec<&'static Cheaper>,
    makes: Vec<&'static Pair>,
    transfers: Vec<&'static Transfer>,
    looks: Vec<&'static Look>,
    wakes: Vec<&'static Wake>,
    gives_back: Vec<&'static GivesBack>,
    frees: Vec<&'static Frees>,
    /// Questions that a later call may make needless, and those later calls.
    pub sequels: Vec<(&'static Sequel, Vec<Sysno>)>,
    /// The timer it sets.
    pub arm: Option<&'static Arm>,
    /// Whether it maps memory.
    pub maps: bool,
    /// Whether it moves what others make to another place.
    pub moves: bool,
    /// Whether it unmakes what others make.
    pub ends: bool,
    /// Whether waiting is what it is for.
    pub waits: bool,
    /// The argument that says what it does, for calls that do many things.
    pub command: Option<usize>,
    /// The argument that holds the descriptor it works on.
    pub fd: Option<usize>,
}

/// The tables by system call number.
pub(crate) struct Semantics {
    calls: Vec<Lines>,
    none: Lines,
}

impl Semantics {
    /// Indexes the tables.
    pub(crate) fn new() -> Self {
        let signatures = systoll_model::signatures();
        let numbers = signatures.iter().map(|s| s.sysno.0 as usize + 1).max().unwrap_or(0);
        let mut it = Self { calls: vec![Lines::default(); numbers], none: Lines::default() };
        for signature in signatures {
            let lines = &mut it.calls[signature.sysno.0 as usize];
            lines.waits = signature.waits;
            lines.fd = signature.fd_arg();
            let by_command = signature.args.iter().position(|a| a.kind == ArgKind::ByCommand);
            lines.command = by_command.and_then(|at| at.checked_sub(1));
        }
        ENTRIES.iter().for_each(|e| it.lines_mut(e.call, |l| l.entries.push(e)));
        EFFECTS.iter().for_each(|e| it.lines_mut(e.call, |l| l.effects.push(e)));
        CHEAPER.iter().for_each(|e| it.lines_mut(e.call, |l| l.cheaper.push(e)));
        TRANSFERS.iter().for_each(|e| it.lines_mut(e.call, |l| l.transfers.push(e)));
        LOOK.iter().for_each(|e| it.lines_mut(e.call, |l| l.looks.push(e)));
        WAKES.iter().for_each(|e| it.lines_mut(e.call, |l| l.wakes.push(e)));
        GIVES_BACK.iter().for_each(|e| it.lines_mut(e.call, |l| l.gives_back.push(e)));
        for sequel in SEQUELS {
            let then = sequel.then.iter().filter_map(|name| Sysno::from_name(name)).collect();
            it.lines_mut(sequel.first, |l| l.sequels.push((sequel, then)));
        }
        FREES.iter().for_each(|e| it.lines_mut(e.call, |l| l.frees.push(e)));
        ARMS.iter().for_each(|e| it.lines_mut(e.call, |l| l.arm = Some(e)));
        it.lines_mut(LOADS.0, |l| l.maps = true);
        for pair in PAIRS {
            it.lines_mut(pair.makes, |l| l.makes.push(pair));
            it.lines_mut(pair.ends, |l| l.ends = true);
            pair.moves.into_iter().for_each(|moves| it.lines_mut(moves, |l| l.moves = true));
        }
        it
    }

    fn lines_mut(&mut self, call: &str, put: impl FnOnce(&mut Lines)) {
        let sysno = Sysno::from_name(call);
        if let Some(lines) = sysno.and_then(|s| self.calls.get_mut(s.0 as usize)) {
            put(lines);
        }
    }

    /// What the tables say of a call; nothing of one they do not know.
    pub(crate) fn of(&self, syscall: Sysno) -> &Lines {
        self.calls.get(syscall.0 as usize).unwrap_or(&self.none)
    }

    /// Topics that a signal's delivery may change.
    pub(crate) fn shaken_by_signals() -> impl Iterator<Item = &'static Topic> {
        ENTRIES.iter().map(|e| e.about).filter(|t| t.signals)
    }
}

fn first<T>(lines: &[&'static T], call: &Subject<'_>, when: impl Fn(&T) -> &'static [When]) -> Option<&'static T> {
    lines.iter().copied().find(|l| call.holds(when(l)))
}

impl Lines {
    /// What the call asks or sets: the first entry that applies.
    pub(crate) fn entry(&self, call: &Subject<'_>) -> Option<&'static Entry> {
        first(&self.entries, call, |e| e.when)
    }

    /// What the call changes on the way.
    pub(crate) fn effects(&self, call: &Subject<'_>) -> Effects {
        let mut effects = Effects::default();
        self.effects.iter().filter(|e| call.holds(e.when)).for_each(|e| effects.add(e.effect));
        effects
    }

    /// The cheaper way to what the call does, where there is one.
    pub(crate) fn cheaper(&self, call: &Subject<'_>) -> Option<&'static Cheaper> {
        first(&self.cheaper, call, |c| c.when)
    }

    /// What the call makes that another call would undo.
    pub(crate) fn makes(&self, call: &Subject<'_>) -> Option<&'static Pair> {
        first(&self.makes, call, |p| p.when)
    }

    /// What it moves.
    pub(crate) fn transfer(&self, call: &Subject<'_>) -> Option<&'static Transfer> {
        first(&self.transfers, call, |t| t.when)
    }

    /// The look without waiting that it is.
    pub(crate) fn look(&self, call: &Subject<'_>) -> Option<&'static Look> {
        first(&self.looks, call, |l| l.when)
    }

    /// Whether it gives memory back that stays the program's.
    pub(crate) fn gives_back(&self, call: &Subject<'_>) -> bool {
        first(&self.gives_back, call, |g| g.when).is_some()
    }

    /// Whether the tables say anything of it.
    #[cfg(test)]
    fn say_anything(&self) -> bool {
        let lists = [
            self.entries.is_empty(),
            self.effects.is_empty(),
            self.cheaper.is_empty(),
            self.makes.is_empty(),
            self.transfers.is_empty(),
            self.looks.is_empty(),
            self.wakes.is_empty(),
            self.gives_back.is_empty(),
            self.frees.is_empty(),
            self.sequels.is_empty(),
        ];
        lists.contains(&false) || self.arm.is_some() || self.ends || self.waits
    }

    /// How much of its memory it gives back.
    pub(crate) fn freed(&self, call: &Subject<'_>) -> Option<Amount> {
        first(&self.frees, call, |f| f.when).map(|f| f.amount)
    }

    /// Whether it may give memory back at all.
    pub(crate) fn frees(&self) -> bool {
        !self.frees.is_empty()
    }

    /// Whether it may have such an effect at all.
    pub(crate) fn does(&self, test: impl Fn(Effect) -> bool) -> bool {
        self.effects.iter().any(|e| test(e.effect))
    }

    /// Whether it may set such state.
    pub(crate) fn sets(&self, topic: &str) -> bool {
        self.entries.iter().any(|e| e.about.name == topic && matches!(e.act, Act::Set { .. }))
    }

    /// Whether it may move bytes out of the program.
    pub(crate) fn transfers_out(&self) -> bool {
        self.transfers.iter().any(|t| t.way == Way::Out)
    }

    /// Whether it maps a file's code.
    pub(crate) fn loads(&self, call: &Subject<'_>) -> bool {
        self.maps && call.holds(LOADS.1)
    }

    /// Whether it may give the processor to somebody else, and is of use where it does.
    pub(crate) fn hands_over(&self) -> bool {
        self.looks.iter().any(|look| look.hands_over)
    }

    /// Whether it may wake waiters at all.
    pub(crate) fn may_wake(&self) -> bool {
        !self.wakes.is_empty()
    }

    /// Whether it wakes waiters.
    pub(crate) fn wakes(&self, call: &Subject<'_>) -> bool {
        first(&self.wakes, call, |w| w.when).is_some()
    }
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
            .chain(PAIRS.iter().flat_map(|p| [p.makes, p.ends].into_iter().chain(p.moves)))
            .chain(TRANSFERS.iter().map(|t| t.call))
            .chain(LOOK.iter().map(|l| l.call))
            .chain(WAKES.iter().map(|w| w.call))
            .chain(GIVES_BACK.iter().map(|g| g.call))
            .chain(FREES.iter().map(|f| f.call))
            .chain(ARMS.iter().flat_map(|a| [a.call, a.of]))
            .chain([LOADS.0])
            .chain(SEQUELS.iter().flat_map(|s| s.then.iter().copied().chain([s.first])));
        for name in names {
            assert!(Sysno::from_name(name).is_some(), "{name}");
        }
        for call in EFFECTS {
            let lines = EFFECTS.iter().filter(|e| e.call == call.call).count();
            assert!(lines <= Effects::MOST, "{}: {lines}", call.call);
        }
        for entry in ENTRIES {
            if let Across::Unless(calls) = entry.about.across {
                assert!(calls.iter().all(|c| Sysno::from_name(c).is_some()), "{}", entry.about.name);
            }
        }
    }

    /// What tells pieces of a topic's state apart, but for which argument holds it.
    fn shape(entry: &Entry) -> Vec<(&'static str, u64)> {
        let part = |source: &Source| match *source {
            Source::Arg(_) => ("argument", u64::MAX),
            Source::ArgMask(_, mask) => ("argument", mask),
            Source::Args(n) => ("arguments", n.into()),
            Source::In(_) | Source::InAbsolute(_) => ("memory", 0),
            Source::Fd(_) => ("descriptor", 0),
            Source::Path { .. } => ("path", 0),
            Source::Const(n) => ("number", n),
            Source::Call => ("call", Sysno::from_name(entry.call).map_or(0, |s| s.0.into())),
            _ => ("other", 0),
        };
        entry.detail.iter().map(part).collect()
    }

    #[test]
    fn what_sets_one_state_has_one_key_or_leaves_the_others_in_doubt() {
        let sets: Vec<&Entry> = ENTRIES.iter().filter(|e| matches!(e.act, Act::Set { .. })).collect();
        let voids = |entry: &Entry| {
            let of = EFFECTS.iter().filter(|e| e.call == entry.call);
            of.map(|e| e.effect).any(|effect| match effect {
                Effect::Changes(topic) | Effect::ChangesOf(_, topic) => topic.id() == entry.about.id(),
                Effect::Identity => [CREDENTIALS.id(), ATTRIBUTES.id()].contains(&entry.about.id()),
                _ => false,
            })
        };
        // Options of prctl, and pieces that one call tells apart by what it is asked for, are different state.
        let apart = |one: &Entry, other: &Entry| {
            one.call == other.call
                && one.when.iter().chain(other.when).any(|w| matches!(w, When::OneOf(0, _) | When::Is(0, 15)))
        };
        for (n, one) in sets.iter().enumerate() {
            for other in &sets[n + 1..] {
                if one.about.id() != other.about.id() || apart(one, other) {
                    continue;
                }
                let well = shape(one) == shape(other)
                    || one.about.shared != Shared::No
                    || (voids(one) && voids(other))
                    || one.about.name == SCHEDULING.name;
                assert!(well, "{} and {} set {} by different keys", one.call, other.call, one.about.name);
            }
        }
    }
}
