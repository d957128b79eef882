//! The list of all tables, with their lines by system call. A new table is a line of [`tables!`] below.

use super::alternatives::{CHEAPER, Cheaper};
use super::call_pairs::{SEQUELS, Sequel};
use super::effects::{EFFECT_LINES, Effect, EffectLine, Effects};
use super::errors::{ATTRIBUTE_QUESTIONS, Attribute, IN_VAIN, InVain, NOT_YETS, NotYet};
use super::io::{ENTERS, Enter, LOOKS, Look, TRANSFERS, Transfer, Way};
use super::locks::{FILE_LOCKS, FileLock, KERNEL_LOCKS, KernelLock};
use super::memory::{Amount, FREES, Frees};
use super::names::runs_program;
use super::ranges::{RANGED, Ranged};
use super::read::ObservedCall;
use super::state::{NAME, PATH, POSITION, State, WATCH};
#[cfg(test)]
use super::state::{SIZE, SYNCED};
use super::state_lines::{STATE_LINES, StateLine};
use super::stores::{STORES, Store};
use super::things::{End, THINGS, Thing};
use super::threads::{SPAWNS, Spawn, THREAD_SETUPS, ThreadSetup};
use super::traits::{TRAITS, Trait, TraitLine};
#[cfg(test)]
use super::vocabulary::Eight;
use super::vocabulary::{Act, When};
use super::waits::{ARMS, Arm, OWN_WAITS, OwnWait, SLEEPS_UNTIL, SUSPECT_WAITS, SleepsUntil, SuspectWait};
use crate::semantics::signs::Signs;
use std::cell::OnceCell;
use systoll_model::{ArgKind, Signature, Sysno};

/// A line of a table.
pub(crate) trait Line: Sized + 'static {
    /// Returns the table's lines among those of a system call.
    fn among(lines: &Lines) -> &[&'static Self];
    /// Returns the conditions of the line's call.
    fn when(&self) -> &'static [When];
    /// Returns the other system calls that the line names.
    #[cfg(test)]
    fn beside(&self) -> Vec<&'static str>;
}

/// For each system call the range of its lines in a table: the index of the first, and one past the last.
struct Places([(u8, u8); Sysno::NATIVE as usize]);

impl Places {
    /// Returns the ranges for a table whose lines are for these calls.
    const fn of(calls: &[Sysno]) -> Self {
        assert!(calls.len() <= u8::MAX as usize, "a longer table needs wider places");
        let mut places = [(0, 0); Sysno::NATIVE as usize];
        let mut at = calls.len();
        while at > 0 {
            at -= 1;
            let (first, end) = places[calls[at].0 as usize];
            places[calls[at].0 as usize] = (at as u8, if first == end { at as u8 + 1 } else { end });
        }
        Self(places)
    }

    /// Returns the indices among which a call's lines are.
    fn lines(&self, call: Sysno) -> impl Iterator<Item = usize> {
        let (first, end) = self.0.get(call.0 as usize).copied().unwrap_or_default();
        usize::from(first)..usize::from(end)
    }
}

/// Declares the tables: a field of [`Lines`] for each, filled from its table, and functions over all of them. Each names the
/// fields of its lines that hold the call and the conditions, if any, and the other calls that a line names.
macro_rules! tables {
    ($($field:ident: $line:ident($call:ident $(when $when:ident)? $(, beside $names:expr)?) = $table:ident),* $(,)?) => {
        $(impl $line {
            /// Returns the line's system call.
            const fn call(&self) -> Sysno {
                Sysno::named(self.$call)
            }
        }

        impl Line for $line {
            fn among(lines: &Lines) -> &[&'static Self] {
                &lines.$field
            }

            fn when(&self) -> &'static [When] {
                let when: &[When] = &[];
                $(let when = { let _ = when; self.$when };)?
                when
            }

            #[cfg(test)]
            fn beside(&self) -> Vec<&'static str> {
                let names: Vec<&'static str> = Vec::new();
                $(let names = { drop(names); let of: fn(&$line) -> Vec<&'static str> = $names; of(self) };)?
                names
            }
        })*

        /// The tables' lines for one system call.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct Lines {
            $($field: Vec<&'static $line>,)*
            /// Properties of the call that follow from other calls' lines.
            links: Links,
            /// True if the call is made for waiting.
            pub waits: bool,
            /// Index of the argument with the command, for calls that do many things.
            pub command: Option<usize>,
            /// Index of the argument with the descriptor that the call works on.
            pub fd: Option<usize>,
            /// True if the call may open a path.
            pub may_open: bool,
            /// True if the call runs a program.
            runs: bool,
            /// True if the call ends the validity of some answers.
            pub ends_answers: bool,
            /// Signs that each call with these lines shows.
            pub signs: Signs,
        }

        impl Lines {
            /// Collects the call's lines from the tables.
            fn take(&mut self, call: Sysno) {
                $({
                    const CALLS: &[Sysno] = &{
                        let mut calls = [Sysno::UNKNOWN; $table.len()];
                        let mut at = 0;
                        while at < $table.len() {
                            calls[at] = $table[at].call();
                            at += 1;
                        }
                        calls
                    };
                    static PLACES: Places = Places::of(CALLS);
                    self.$field.extend(PLACES.lines(call).filter_map(|at| $table.get(at).filter(|_| CALLS[at] == call)));
                })*
            }
        }

        impl Semantics {
            /// Returns every system call that a table names.
            #[cfg(test)]
            pub(super) fn named_calls() -> Vec<&'static str> {
                let mut names = Vec::new();
                $($table.iter().for_each(|line| { names.extend(line.beside()); names.extend(line.call().name()) });)*
                names
            }
        }

        impl Lines {
            /// Returns true if a table has a line for the call.
            pub(crate) fn say_anything(&self) -> bool {
                [$(!self.$field.is_empty()),*].contains(&true) || !self.links.ends.is_empty() || self.waits
            }
        }
    };
}

tables! {
    states: StateLine(call when when) = STATE_LINES,
    effects: EffectLine(call when when) = EFFECT_LINES,
    cheaper: Cheaper(call when when) = CHEAPER,
    transfers: Transfer(call when when) = TRANSFERS,
    looks: Look(call when when) = LOOKS,
    suspect_waits: SuspectWait(call) = SUSPECT_WAITS,
    arms: Arm(call, beside | arm | vec![arm.of]) = ARMS,
    frees: Frees(call when when) = FREES,
    makes: Thing(makes when when, beside |thing| thing.moves.into_iter().chain([thing.ends.call]).collect()) = THINGS,
    sequels: Sequel(first when when, beside |sequel| sequel.then.to_vec()) = SEQUELS,
    stores: Store(call when when) = STORES,
    own_waits: OwnWait(call when when) = OWN_WAITS,
    in_vain: InVain(call) = IN_VAIN,
    attributes: Attribute(call) = ATTRIBUTE_QUESTIONS,
    not_yets: NotYet(call when when) = NOT_YETS,
    sleeps_until: SleepsUntil(call when when) = SLEEPS_UNTIL,
    enters: Enter(call) = ENTERS,
    file_locks: FileLock(call when when) = FILE_LOCKS,
    kernel_locks: KernelLock(call when when) = KERNEL_LOCKS,
    ranged: Ranged(call when when) = RANGED,
    spawns: Spawn(call when when) = SPAWNS,
    traits: TraitLine(call when when) = TRAITS,
    thread_setups: ThreadSetup(call when when) = THREAD_SETUPS,
}

/// Properties of a call that follow from lines of other calls.
#[derive(Clone, Debug, Default)]
struct Links {
    /// True if the call moves things that other calls make.
    moves: bool,
    /// Lines of the things that the call ends.
    ends: Vec<&'static End>,
    /// Pairs that the call begins, each with the calls that may follow.
    followed: Vec<Followed>,
}

impl Links {
    fn of(call: &str) -> Self {
        let followed = |sequel: &'static Sequel| Followed { sequel, by: OnceCell::new() };
        Self {
            moves: THINGS.iter().any(|thing| thing.moves == Some(call)),
            ends: THINGS.iter().map(|thing| &thing.ends).filter(|end| end.call == call).collect(),
            followed: SEQUELS.iter().filter(|sequel| sequel.first == call).map(followed).collect(),
        }
    }
}

/// A pair of calls that begins with the system call of these lines.
#[derive(Clone, Debug)]
pub(crate) struct Followed {
    /// The line of the pair.
    pub sequel: &'static Sequel,
    by: OnceCell<Vec<Sysno>>,
}

impl Followed {
    /// Returns the calls that may follow. They are looked up when first asked for, since most programs never ask.
    pub(crate) fn by(&self) -> &[Sysno] {
        self.by.get_or_init(|| self.sequel.then.iter().filter_map(|name| Sysno::from_name(name)).collect())
    }
}

/// The tables' lines by system call, collected when first asked for: a program makes a few dozen of all calls.
pub(crate) struct Semantics {
    calls: Vec<OnceCell<Box<Lines>>>,
    none: Lines,
}

#[cfg(test)]
impl Lines {
    /// Returns true if a line of the call serves to find this kind of waste.
    pub(super) fn answer(&self, eight: Eight) -> bool {
        let acts = |test: fn(&Act) -> bool| self.states.iter().any(|line| test(&line.act));
        let sets = acts(|act| matches!(act, Act::Set { .. }));
        let opens = self.may_open;
        let things = !self.makes.is_empty() || self.links.moves || !self.links.ends.is_empty();
        match eight {
            Eight::SameQuestion => acts(|act| matches!(act, Act::Ask(_) | Act::Try)),
            Eight::Contained => !self.sequels.is_empty(),
            Eight::NoChange => sets,
            Eight::DeadStore => {
                let renames = self.names();
                let idle = [&SIZE, &SYNCED];
                let overwritten = opens || renames || idle.into_iter().any(|state| self.sets(state));
                !self.arms.is_empty() || self.has::<Store>() || self.transfers_out() || overwritten
            }
            Eight::Undone => sets || self.has::<FileLock>() || things,
            Eight::MadeAgain => {
                things
                    || opens
                    || self.connects()
                    || !self.spawns.is_empty()
                    || self.does(|e| matches!(e, Effect::Forks))
            }
            Eight::InPieces => !self.transfers.is_empty() || !self.ranged.is_empty() || self.has::<Enter>(),
            Eight::DearerRoad => {
                let locks = self.has::<KernelLock>() || self.may_wake();
                !self.cheaper.is_empty() || !self.looks.is_empty() || locks || self.sets(&POSITION)
            }
        }
    }
}

impl Semantics {
    /// Returns an empty list: no call is looked up yet.
    pub(crate) fn new() -> Self {
        Self { calls: vec![OnceCell::new(); Sysno::NATIVE as usize], none: Lines::default() }
    }

    /// Returns the lines of a call; an empty set for a call without lines.
    pub(crate) fn lines_of(&self, syscall: Sysno) -> &Lines {
        let Some(lines) = self.calls.get(syscall.0 as usize) else { return &self.none };
        lines.get_or_init(|| Box::new(syscall.signature().map_or_else(Lines::default, Lines::of)))
    }

    /// Returns the state that a signal's delivery may change.
    pub(crate) fn shaken_by_signals() -> impl Iterator<Item = &'static State> {
        STATE_LINES.iter().map(|line| line.about).filter(|state| state.signals)
    }
}

impl Lines {
    fn of(signature: &Signature) -> Self {
        let by_command = signature.args.iter().position(|a| a.kind == ArgKind::ByCommand);
        let mut lines = Self {
            waits: signature.waits,
            ends_answers: STATE_LINES.iter().any(|line| line.about.ends_with(signature.name)),
            fd: signature.fd_arg(),
            command: by_command.and_then(|at| at.checked_sub(1)),
            links: Links::of(signature.name),
            ..Self::default()
        };
        lines.take(signature.sysno);
        lines.runs = runs_program(signature.sysno);
        lines.may_open = lines.does(|effect| matches!(effect, Effect::OpensPath { .. }));
        lines.signs = lines.to_signs();
        lines
    }

    /// Returns the signs that each call with these lines shows.
    fn to_signs(&self) -> Signs {
        Signs::CALL
            .with(Signs::SLOW, !self.sequels().is_empty())
            .with(Signs::LOCKS, self.has::<FileLock>())
            .with(Signs::ARMS, self.arm().is_some())
            .with(Signs::STORES, self.has::<Store>())
            .with(Signs::ATTRIBUTE, self.has::<Attribute>())
            .with(Signs::ENTERS, self.has::<Enter>())
            .with(Signs::IN_VAIN, self.has::<InVain>())
            .with(Signs::KERNEL_LOCKS, self.has::<KernelLock>())
            .with(Signs::SLEEPS, !self.sleeps_until.is_empty())
            .with(Signs::RANGED, !self.ranged.is_empty())
            .with(Signs::WAKES, self.may_wake())
            .with(Signs::WATCHES, self.sets(&WATCH))
    }

    /// Returns the first line that applies: the question, the set or the attempt that the call makes. A failed call
    /// set nothing; it may be an attempt.
    pub(crate) fn state(&self, call: &ObservedCall<'_>) -> Option<&'static StateLine> {
        let in_vain = |line: &StateLine| call.call.errno().is_some() && matches!(line.act, Act::Set { .. });
        self.states.iter().copied().find(|line| call.holds(line.when) && !in_vain(line))
    }

    /// Returns the first line of a table whose conditions hold for the call.
    pub(crate) fn line<T: Line>(&self, call: &ObservedCall<'_>) -> Option<&'static T> {
        T::among(self).iter().copied().find(|line| call.holds(line.when()))
    }

    /// Returns true if a table has a line for the system call.
    pub(crate) fn has<T: Line>(&self) -> bool {
        !T::among(self).is_empty()
    }

    /// Returns true if the call has a trait.
    pub(crate) fn is(&self, of: Trait, call: &ObservedCall<'_>) -> bool {
        self.traits.iter().any(|line| line.of == of && call.holds(line.when))
    }

    /// Returns true if calls of the system call may have a trait.
    pub(crate) fn may(&self, of: Trait) -> bool {
        self.traits.iter().any(|line| line.of == of)
    }

    /// Returns the side effects of the call.
    pub(crate) fn effects(&self, call: &ObservedCall<'_>) -> Effects<'_> {
        Effects::of(&self.effects, |line| call.holds(line.when))
    }

    /// Returns true if the call moves things that other calls make.
    pub(crate) fn moves(&self) -> bool {
        self.links.moves
    }

    /// Returns the line by which the call ends a thing.
    pub(crate) fn ends(&self, call: &ObservedCall<'_>) -> Option<&'static End> {
        self.links.ends.iter().copied().find(|end| call.holds(end.when))
    }

    /// Returns true if the call waits until one of several descriptors is ready.
    pub(crate) fn tells_ready(&self) -> bool {
        self.may(Trait::TellsReady)
    }

    /// Returns the argument that points to the time until which the call sleeps.
    pub(crate) fn sleeps_until(&self, call: &ObservedCall<'_>) -> Option<u8> {
        self.line::<SleepsUntil>(call).map(|line| line.moment)
    }

    /// Returns the line of the call's error, if this type of file always refuses the call.
    pub(crate) fn in_vain(&self, call: &ObservedCall<'_>) -> Option<&'static InVain> {
        self.in_vain.iter().copied().find(|line| call.call.errno() == Some(line.errno))
    }

    /// Returns the address of the stack of the thread that the call makes.
    pub(crate) fn spawns(&self, call: &ObservedCall<'_>) -> Option<u64> {
        self.line::<Spawn>(call)?.stack(call)
    }

    /// Returns the pairs that the call begins, each with the calls that may follow.
    pub(crate) fn sequels(&self) -> &[Followed] {
        &self.links.followed
    }

    /// Returns the line of the data that the call moves.
    pub(crate) fn transfer(&self, call: &ObservedCall<'_>) -> Option<&'static Transfer> {
        self.line::<Transfer>(call)
    }

    /// Returns true if the call asks for something, and the answer is that it is not there yet.
    pub(crate) fn is_not_yet(&self, call: &ObservedCall<'_>) -> bool {
        self.not_yets.iter().any(|line| call.holds(line.when) && line.answer.is_of(call.call))
    }

    /// Returns the line of the timer that the call sets.
    pub(crate) fn arm(&self) -> Option<&'static Arm> {
        self.arms.first().copied()
    }

    /// Returns the line of the call if its waits before `main` are worth reporting.
    pub(crate) fn suspect_wait(&self) -> Option<&'static SuspectWait> {
        self.suspect_waits.first().copied()
    }

    /// Returns the amount of memory that the call gives back.
    pub(crate) fn freed(&self, call: &ObservedCall<'_>) -> Option<Amount> {
        self.line::<Frees>(call).map(|line| line.amount)
    }

    /// Returns true if the call may have an effect for which `test` is true.
    pub(crate) fn does(&self, test: impl Fn(Effect) -> bool) -> bool {
        self.effects.iter().any(|line| test(line.effect))
    }

    /// Returns true if the call has, whatever its arguments, an effect for which `test` is true.
    pub(crate) fn always_does(&self, test: impl Fn(Effect) -> bool) -> bool {
        self.effects.iter().any(|line| line.when.is_empty() && test(line.effect))
    }

    /// Returns true if the call gives a file another name, or one more.
    pub(crate) fn names(&self) -> bool {
        self.effects.iter().filter(|line| matches!(line.effect, Effect::Path { .. })).count() == 2
    }

    /// Returns true if the call may ask what a path leads to.
    pub(crate) fn asks_about_paths(&self) -> bool {
        let asks = |line: &StateLine| line.about.is(&PATH) || line.about.is(&NAME);
        self.states.iter().any(|line| asks(line) && matches!(line.act, Act::Ask(_)))
    }

    /// Returns true if the call may look for a name, and fail because there is none: it asks about a path, opens or runs it.
    pub(crate) fn looks_for_names(&self) -> bool {
        self.asks_about_paths() || self.may_open || self.runs
    }

    /// Returns true if the call reads a file or a folder, or maps a file.
    pub(crate) fn may_read_files(&self) -> bool {
        self.transfers_in() || self.maps() || self.does(|effect| matches!(effect, Effect::Reads(_)))
    }

    /// Returns true if the call takes entries of a folder.
    pub(crate) fn lists(&self) -> bool {
        self.transfers.is_empty() && self.always_does(|effect| matches!(effect, Effect::Reads(0)))
    }

    /// Returns true if the call sets the position in a file, rather than asking for it.
    pub(crate) fn goes(&self, call: &ObservedCall<'_>) -> bool {
        self.sets(&POSITION) && self.state(call).is_none_or(|line| matches!(line.act, Act::Set { .. }))
    }

    /// Returns true if the call may set state of this kind.
    pub(crate) fn sets(&self, state: &'static State) -> bool {
        self.states.iter().any(|line| line.about.id() == state.id() && matches!(line.act, Act::Set { .. }))
    }

    /// Returns true if the call may set state of any kind.
    pub(crate) fn sets_any(&self) -> bool {
        self.states.iter().any(|line| matches!(line.act, Act::Set { .. }))
    }

    /// Returns true if the call may move bytes out of the program.
    pub(crate) fn transfers_out(&self) -> bool {
        self.transfers.iter().any(|line| line.way == Way::Out)
    }

    /// Returns true if the call may move bytes into the program.
    pub(crate) fn transfers_in(&self) -> bool {
        self.transfers.iter().any(|line| line.way == Way::In)
    }

    /// Returns true if the call maps memory, such as a file's code.
    pub(crate) fn maps(&self) -> bool {
        self.may(Trait::LoadsCode)
    }

    /// Returns true if the call may give the processor to another thread, and is useful if it does.
    pub(crate) fn hands_over(&self) -> bool {
        self.looks.iter().any(|look| look.hands_over)
    }

    /// Returns true if the call may wake waiters.
    pub(crate) fn may_wake(&self) -> bool {
        self.may(Trait::Wakes)
    }
}
