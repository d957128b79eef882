//! The list of all tables, with their lines by system call. A new table is a line of [`tables!`] below.

use super::alternatives::{CHEAPER, Cheaper};
use super::call_pairs::{SEQUELS, Sequel};
use super::effects::{EFFECT_LINES, Effect, EffectLine, Effects};
use super::errors::{ATTRIBUTE_QUESTIONS, Attribute, IN_VAIN, InVain, NOT_YETS, NotYet};
use super::io::{ENTERS, Enter, LOOKS, Look, TRANSFERS, Transfer, Way};
use super::locks::{FILE_LOCKS, FileLock, KERNEL_LOCKS, KernelLock};
use super::memory::{Amount, FREES, Frees, LOADS, Loads};
use super::names::{NO_FOLLOWS, NoFollow, runs_program};
use super::ranges::{RANGED, Ranged};
use super::read::ObservedCall;
use super::state::{KEPT_UNLESS, NAME, PATH, State, WATCH};
#[cfg(test)]
use super::state::{POSITION, SIZE, SYNCED};
use super::state_lines::{STATE_LINES, StateLine};
use super::stores::{STORES, Store};
use super::things::{End, THINGS, Thing};
use super::threads::{SPAWNS, Spawn, THREAD_SETUPS, ThreadSetup};
#[cfg(test)]
use super::vocabulary::Eight;
use super::vocabulary::{Act, When};
use super::waits::{
    ARMS, Arm, OWN_WAITS, OwnWait, SEND_AT_ONCE, SLEEPS_UNTIL, SUSPECT_WAITS, SendsAtOnce, SleepsUntil, SuspectWait,
    TELL_READY, TellsReady, WAKES, Wake,
};
use crate::semantics::signs::Signs;
use std::cell::OnceCell;
use systoll_model::{ArgKind, Signature, Sysno};

/// A line of a table.
trait Line {
    /// Returns the conditions of the line's call.
    fn when(&self) -> &'static [When];
    /// Returns the other system calls that the line names.
    #[cfg(test)]
    fn beside(&self) -> Vec<&'static str>;
}

/// Implements [`Line`] for a type: names the fields of its call and of its conditions, if any, and the other calls
/// that it names.
macro_rules! line {
    ($line:ty, $call:ident $(when $when:ident)? $(, beside $names:expr)?) => {
        impl $line {
            /// Returns the line's system call.
            const fn call(&self) -> Sysno {
                Sysno::named(self.$call)
            }
        }

        impl Line for $line {
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
        }
    };
}

line!(StateLine, call when when);
line!(EffectLine, call when when);
line!(Cheaper, call when when);
line!(Transfer, call when when);
line!(Look, call when when);
line!(Wake, call when when);
line!(SuspectWait, call);
line!(Arm, call, beside | arm | vec![arm.of]);
line!(Frees, call when when);
line!(Loads, call when when);
line!(Thing, makes when when, beside |thing| thing.moves.into_iter().chain([thing.ends.call]).collect());
line!(Store, call when when);
line!(OwnWait, call when when);
line!(TellsReady, call);
line!(SleepsUntil, call when when);
line!(SendsAtOnce, call when when);
line!(InVain, call);
line!(Attribute, call);
line!(NotYet, call when when);
line!(Enter, call);
line!(FileLock, call when when);
line!(KernelLock, call when when);
line!(Spawn, call when when);
line!(Ranged, call when when);
line!(NoFollow, call when when);
line!(ThreadSetup, call when when);
line!(Sequel, first when when, beside |sequel| sequel.then.to_vec());

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

/// Declares the tables: a field of [`Lines`] for each, filled from its table, and functions over all of them.
macro_rules! tables {
    ($($field:ident: $line:ty = $table:ident),* $(,)?) => {
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
    states: StateLine = STATE_LINES,
    effects: EffectLine = EFFECT_LINES,
    cheaper: Cheaper = CHEAPER,
    transfers: Transfer = TRANSFERS,
    looks: Look = LOOKS,
    wakes: Wake = WAKES,
    suspect_waits: SuspectWait = SUSPECT_WAITS,
    arms: Arm = ARMS,
    frees: Frees = FREES,
    loads: Loads = LOADS,
    makes: Thing = THINGS,
    sequels: Sequel = SEQUELS,
    stores: Store = STORES,
    own_waits: OwnWait = OWN_WAITS,
    send_at_once: SendsAtOnce = SEND_AT_ONCE,
    in_vain: InVain = IN_VAIN,
    attributes: Attribute = ATTRIBUTE_QUESTIONS,
    not_yets: NotYet = NOT_YETS,
    tell_ready: TellsReady = TELL_READY,
    sleeps_until: SleepsUntil = SLEEPS_UNTIL,
    enters: Enter = ENTERS,
    file_locks: FileLock = FILE_LOCKS,
    kernel_locks: KernelLock = KERNEL_LOCKS,
    ranged: Ranged = RANGED,
    spawns: Spawn = SPAWNS,
    no_follows: NoFollow = NO_FOLLOWS,
    thread_setups: ThreadSetup = THREAD_SETUPS,
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
                !self.arms.is_empty() || self.may_store() || self.transfers_out() || overwritten
            }
            Eight::Undone => sets || self.may_lock() || things,
            Eight::MadeAgain => {
                things
                    || opens
                    || self.connects()
                    || !self.spawns.is_empty()
                    || self.does(|e| matches!(e, Effect::Forks))
            }
            Eight::InPieces => !self.transfers.is_empty() || !self.ranged.is_empty() || self.enter().is_some(),
            Eight::DearerRoad => {
                let locks = self.may_lock_in_kernel() || self.may_wake();
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

/// Returns the first line whose conditions hold for the call.
fn first<T: Line>(lines: &[&'static T], call: &ObservedCall<'_>) -> Option<&'static T> {
    lines.iter().copied().find(|line| call.holds(line.when()))
}

impl Lines {
    fn of(signature: &Signature) -> Self {
        let by_command = signature.args.iter().position(|a| a.kind == ArgKind::ByCommand);
        let mut lines = Self {
            waits: signature.waits,
            ends_answers: KEPT_UNLESS.iter().any(|state| state.ends_with(signature.name)),
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
            .with(Signs::LOCKS, self.may_lock())
            .with(Signs::ARMS, self.arm().is_some())
            .with(Signs::STORES, self.may_store())
            .with(Signs::ATTRIBUTE, self.attribute().is_some())
            .with(Signs::ENTERS, self.enter().is_some())
            .with(Signs::IN_VAIN, self.may_be_in_vain())
            .with(Signs::KERNEL_LOCKS, self.may_lock_in_kernel())
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

    /// Returns the side effects of the call.
    pub(crate) fn effects(&self, call: &ObservedCall<'_>) -> Effects<'_> {
        Effects::of(&self.effects, |line| call.holds(line.when))
    }

    /// Returns the line with the cheaper way, if there is one.
    pub(crate) fn cheaper(&self, call: &ObservedCall<'_>) -> Option<&'static Cheaper> {
        first(&self.cheaper, call)
    }

    /// Returns the line of the thing that the call makes.
    pub(crate) fn makes(&self, call: &ObservedCall<'_>) -> Option<&'static Thing> {
        first(&self.makes, call)
    }

    /// Returns true if the call moves things that other calls make.
    pub(crate) fn moves(&self) -> bool {
        self.links.moves
    }

    /// Returns the line by which the call ends a thing.
    pub(crate) fn ends(&self, call: &ObservedCall<'_>) -> Option<&'static End> {
        self.links.ends.iter().copied().find(|end| call.holds(end.when))
    }

    /// Returns the line of the value that the call sets for later use.
    pub(crate) fn store(&self, call: &ObservedCall<'_>) -> Option<&'static Store> {
        first(&self.stores, call)
    }

    /// Returns true if the call may set a value for later use.
    pub(crate) fn may_store(&self) -> bool {
        !self.stores.is_empty()
    }

    /// Returns the line of a wait that concerns nobody but the process.
    pub(crate) fn own_wait(&self, call: &ObservedCall<'_>) -> Option<&'static OwnWait> {
        first(&self.own_waits, call)
    }

    /// Returns true if the call waits until one of several descriptors is ready.
    pub(crate) fn tells_ready(&self) -> bool {
        !self.tell_ready.is_empty()
    }

    /// Returns the argument that points to the time until which the call sleeps.
    pub(crate) fn sleeps_until(&self, call: &ObservedCall<'_>) -> Option<u8> {
        first(&self.sleeps_until, call).map(|line| line.moment)
    }

    /// Returns the line of the call's error, if this type of file always refuses the call.
    pub(crate) fn in_vain(&self, call: &ObservedCall<'_>) -> Option<&'static InVain> {
        self.in_vain.iter().copied().find(|line| call.call.errno() == Some(line.errno))
    }

    /// Returns true if some type of file always refuses the call.
    pub(crate) fn may_be_in_vain(&self) -> bool {
        !self.in_vain.is_empty()
    }

    /// Returns true if the call asks about a symbolic link itself.
    pub(crate) fn no_follow(&self, call: &ObservedCall<'_>) -> bool {
        first(&self.no_follows, call).is_some()
    }

    /// Returns the line by which the call asks a file for an attribute.
    pub(crate) fn attribute(&self) -> Option<&'static Attribute> {
        self.attributes.first().copied()
    }

    /// Returns true if the call makes a stream send its data at once.
    pub(crate) fn sends_at_once(&self, call: &ObservedCall<'_>) -> bool {
        first(&self.send_at_once, call).is_some()
    }

    /// Returns true if the call may make a stream send its data at once.
    pub(crate) fn may_send_at_once(&self) -> bool {
        !self.send_at_once.is_empty()
    }

    /// Returns the line by which the call enters a ring.
    pub(crate) fn enter(&self) -> Option<&'static Enter> {
        self.enters.first().copied()
    }

    /// Returns the line by which the call locks or unlocks a file.
    pub(crate) fn file_lock(&self, call: &ObservedCall<'_>) -> Option<&'static FileLock> {
        first(&self.file_locks, call)
    }

    /// Returns true if the call may lock or unlock a file.
    pub(crate) fn may_lock(&self) -> bool {
        !self.file_locks.is_empty()
    }

    /// Returns the line by which the call takes or releases a lock in the kernel.
    pub(crate) fn kernel_lock(&self, call: &ObservedCall<'_>) -> Option<&'static KernelLock> {
        first(&self.kernel_locks, call)
    }

    /// Returns true if the call may take or release a lock in the kernel.
    pub(crate) fn may_lock_in_kernel(&self) -> bool {
        !self.kernel_locks.is_empty()
    }

    /// Returns the address of the stack of the thread that the call makes.
    pub(crate) fn spawns(&self, call: &ObservedCall<'_>) -> Option<u64> {
        first(&self.spawns, call)?.stack(call)
    }

    /// Returns the line of the range to which the call applies.
    pub(crate) fn ranged(&self, call: &ObservedCall<'_>) -> Option<&'static Ranged> {
        first(&self.ranged, call)
    }

    /// Returns the line of a call that belongs to the beginning or end of a thread.
    pub(crate) fn thread_setup(&self, call: &ObservedCall<'_>) -> Option<&'static ThreadSetup> {
        first(&self.thread_setups, call)
    }

    /// Returns the pairs that the call begins, each with the calls that may follow.
    pub(crate) fn sequels(&self) -> &[Followed] {
        &self.links.followed
    }

    /// Returns the line of the data that the call moves.
    pub(crate) fn transfer(&self, call: &ObservedCall<'_>) -> Option<&'static Transfer> {
        first(&self.transfers, call)
    }

    /// Returns the line of the call if it is a poll.
    pub(crate) fn poll_line(&self, call: &ObservedCall<'_>) -> Option<&'static Look> {
        first(&self.looks, call)
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
        first(&self.frees, call).map(|line| line.amount)
    }

    /// Returns true if the call may give memory back.
    pub(crate) fn frees(&self) -> bool {
        !self.frees.is_empty()
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
        !self.loads.is_empty()
    }

    /// Returns true if the call maps a file's code.
    pub(crate) fn loads(&self, call: &ObservedCall<'_>) -> bool {
        first(&self.loads, call).is_some()
    }

    /// Returns true if the call may give the processor to another thread, and is useful if it does.
    pub(crate) fn hands_over(&self) -> bool {
        self.looks.iter().any(|look| look.hands_over)
    }

    /// Returns true if the call may wake waiters.
    pub(crate) fn may_wake(&self) -> bool {
        !self.wakes.is_empty()
    }

    /// Returns true if the call wakes waiters.
    pub(crate) fn wakes(&self, call: &ObservedCall<'_>) -> bool {
        first(&self.wakes, call).is_some()
    }
}
