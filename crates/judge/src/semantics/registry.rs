//! The list of all tables, and their lines by system call. A new table is a line of [`tables!`] below.

use super::alternatives::{CHEAPER, Cheaper};
use super::call_pairs::{SEQUELS, Sequel};
use super::effects::{EFFECT_LINES, Effect, EffectLine, Effects};
use super::errors::{ATTRIBUTE_QUESTIONS, Attribute, IN_VAIN, InVain};
use super::io::{ENTERS, Enter, LOOKS, Look, TRANSFERS, Transfer, Way};
use super::locks::{FILE_LOCKS, FileLock, KERNEL_LOCKS, KernelLock};
use super::memory::{Amount, FREES, Frees, GIVES_BACK, GivesBack, LOADS, Loads};
use super::names::{NO_FOLLOWS, NoFollow};
use super::ranges::{RANGED, Ranged};
use super::read::ObservedCall;
use super::shown::{SHOWN, Shown};
use super::state::{KEPT_UNLESS, NAME, PATH, State};
#[cfg(test)]
use super::state::{POSITION, SIZE, SOCKET_OPTION, SYNCED};
use super::state_lines::{STATE_LINES, StateLine};
use super::things::{End, THINGS, Thing};
use super::threads::{SPAWNS, Spawn, THREAD_SETUPS, ThreadSetup};
use super::vocabulary::{Act, When};
use super::waits::{
    ARMS, Arm, OWN_WAITS, OwnWait, SEND_AT_ONCE, SLEEPS_UNTIL, SUSPECT_WAITS, SendsAtOnce, SleepsUntil, SuspectWait,
    TELL_READY, TellsReady, WAKES, Wake,
};
use crate::signs::Signs;
use std::cell::OnceCell;
use systoll_model::{ArgKind, Signature, Sysno};

/// A line of a table.
trait Line {
    /// What must hold of that call.
    fn when(&self) -> &'static [When];
    /// Other system calls that it names.
    #[cfg(test)]
    fn beside(&self) -> Vec<&'static str>;
}

/// What a line's fields are called: its call, its conditions where it has any, and other calls it names.
macro_rules! line {
    ($line:ty, $call:ident $(when $when:ident)? $(, beside $names:expr)?) => {
        impl $line {
            /// The system call it is about.
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
line!(GivesBack, call when when);
line!(Frees, call when when);
line!(Loads, call when when);
line!(Thing, makes when when, beside |thing| thing.moves.into_iter().chain([thing.ends.call]).collect());
line!(Shown, call when when);
line!(OwnWait, call when when);
line!(TellsReady, call);
line!(SleepsUntil, call when when);
line!(SendsAtOnce, call when when);
line!(InVain, call);
line!(Attribute, call);
line!(Enter, call);
line!(FileLock, call when when);
line!(KernelLock, call when when);
line!(Spawn, call when when);
line!(Ranged, call when when);
line!(NoFollow, call when when);
line!(ThreadSetup, call when when);
line!(Sequel, first when when, beside |sequel| sequel.then.to_vec());

/// Where the lines of a system call stand in a table, by its number: the first of them, and behind the last.
struct Places([(u8, u8); Sysno::NATIVE as usize]);

impl Places {
    /// Of a table whose lines are about these calls.
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

    /// The lines among which those of a call are.
    fn lines(&self, call: Sysno) -> impl Iterator<Item = usize> {
        let (first, end) = self.0.get(call.0 as usize).copied().unwrap_or_default();
        usize::from(first)..usize::from(end)
    }
}

/// Declares the tables: a field of [`Lines`] for each, filled from its table, and what tests ask of all.
macro_rules! tables {
    ($($field:ident: $line:ty = $table:ident),* $(,)?) => {
        /// All that the tables say of one system call.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct Lines {
            $($field: Vec<&'static $line>,)*
            /// What the tables' other ends say of it.
            links: Links,
            /// Whether waiting is what it is for.
            pub waits: bool,
            /// The argument that says what it does, for calls that do many things.
            pub command: Option<usize>,
            /// The argument that holds the descriptor it works on.
            pub fd: Option<usize>,
            /// Whether it may open a path.
            pub may_open: bool,
            /// Whether what some answers hold for ends with it.
            pub ends_answers: bool,
            /// What every such call shows.
            pub signs: Signs,
        }

        impl Lines {
            /// Takes those of this call from the tables.
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
            /// Every system call that any table names.
            #[cfg(test)]
            pub(super) fn named_calls() -> Vec<&'static str> {
                let mut names = Vec::new();
                $($table.iter().for_each(|line| { names.extend(line.beside()); names.extend(line.call().name()) });)*
                names
            }
        }

        impl Lines {
            /// Whether any table has a line of it.
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
    gives_back: GivesBack = GIVES_BACK,
    frees: Frees = FREES,
    loads: Loads = LOADS,
    makes: Thing = THINGS,
    sequels: Sequel = SEQUELS,
    shown: Shown = SHOWN,
    own_waits: OwnWait = OWN_WAITS,
    send_at_once: SendsAtOnce = SEND_AT_ONCE,
    in_vain: InVain = IN_VAIN,
    attributes: Attribute = ATTRIBUTE_QUESTIONS,
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

/// What follows of lines that are about other calls, or are about other calls too.
#[derive(Clone, Debug, Default)]
struct Links {
    /// Whether it moves what others make to another place.
    moves: bool,
    /// How it gives up what others make.
    ends: Vec<&'static End>,
    /// The calls that may follow its sequels.
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

/// A sequel whose first call this is.
#[derive(Clone, Debug)]
pub(crate) struct Followed {
    /// The line.
    pub sequel: &'static Sequel,
    by: OnceCell<Vec<Sysno>>,
}

impl Followed {
    /// The calls that may follow, by number: looked up when first asked for, as most programs never ask.
    pub(crate) fn by(&self) -> &[Sysno] {
        self.by.get_or_init(|| self.sequel.then.iter().filter_map(|name| Sysno::from_name(name)).collect())
    }
}

/// The tables by system call number, of each call when it is first asked for: a program makes a few dozen of all that
/// there are.
pub(crate) struct Semantics {
    calls: Vec<OnceCell<Box<Lines>>>,
    none: Lines,
}

/// What a compiler could do to a sequence of calls.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eight {
    SameQuestion,
    Contained,
    NoChange,
    DeadStore,
    Undone,
    MadeAgain,
    InPieces,
    DearerRoad,
}

#[cfg(test)]
impl Eight {
    /// In the order in which the table has them.
    pub(super) const ALL: [Self; 8] = [
        Self::SameQuestion,
        Self::Contained,
        Self::NoChange,
        Self::DeadStore,
        Self::Undone,
        Self::MadeAgain,
        Self::InPieces,
        Self::DearerRoad,
    ];
}

#[cfg(test)]
impl Lines {
    /// Whether a line of the call serves one of the eight.
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
                let idle = [&SOCKET_OPTION, &SIZE, &SYNCED];
                let overwritten = opens || renames || idle.into_iter().any(|state| self.sets(state));
                !self.arms.is_empty() || self.may_show() || self.transfers_out() || overwritten
            }
            Eight::Undone => sets || self.may_lock() || things,
            Eight::MadeAgain => things || opens || !self.spawns.is_empty() || self.does(|e| matches!(e, Effect::Forks)),
            Eight::InPieces => !self.transfers.is_empty() || !self.ranged.is_empty() || self.enters(),
            Eight::DearerRoad => {
                let locks = self.may_lock_in_kernel() || self.may_wake();
                !self.cheaper.is_empty() || !self.looks.is_empty() || locks || self.sets(&POSITION)
            }
        }
    }
}

impl Semantics {
    /// Nothing looked up yet.
    pub(crate) fn new() -> Self {
        Self { calls: vec![OnceCell::new(); Sysno::NATIVE as usize], none: Lines::default() }
    }

    /// What the tables say of a call; nothing of one they do not know.
    pub(crate) fn of(&self, syscall: Sysno) -> &Lines {
        let Some(lines) = self.calls.get(syscall.0 as usize) else { return &self.none };
        lines.get_or_init(|| Box::new(syscall.signature().map_or_else(Lines::default, Lines::of)))
    }

    /// State that a signal's delivery may change.
    pub(crate) fn shaken_by_signals() -> impl Iterator<Item = &'static State> {
        STATE_LINES.iter().map(|line| line.about).filter(|state| state.signals)
    }
}

/// The first line that applies to the call.
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
        lines.may_open = lines.does(|effect| matches!(effect, Effect::OpensPath { .. }));
        lines.signs = lines.to_signs();
        lines
    }

    /// What every such call shows.
    fn to_signs(&self) -> Signs {
        Signs::CALL
            .with(Signs::SLOW, !self.sequels().is_empty())
            .with(Signs::LOCKS, self.may_lock())
            .with(Signs::ARMS, self.arm().is_some())
            .with(Signs::SHOWS, self.may_show())
            .with(Signs::GIVES_BACK, self.may_give_back())
            .with(Signs::ATTRIBUTE, self.attribute().is_some())
            .with(Signs::ENTERS, self.enters())
            .with(Signs::IN_VAIN, self.may_be_in_vain())
            .with(Signs::KERNEL_LOCKS, self.may_lock_in_kernel())
            .with(Signs::SLEEPS, !self.sleeps_until.is_empty())
            .with(Signs::RANGED, !self.ranged.is_empty())
            .with(Signs::WAKES, self.may_wake())
    }

    /// What the call asks, sets or tries: the first line that applies. What failed set nothing, and is a try where
    /// a line says so.
    pub(crate) fn state(&self, call: &ObservedCall<'_>) -> Option<&'static StateLine> {
        let in_vain = |line: &StateLine| call.call.errno().is_some() && matches!(line.act, Act::Set { .. });
        self.states.iter().copied().find(|line| call.holds(line.when) && !in_vain(line))
    }

    /// What the call changes on the way.
    pub(crate) fn effects(&self, call: &ObservedCall<'_>) -> Effects<'_> {
        Effects::of(&self.effects, |line| call.holds(line.when))
    }

    /// The cheaper way to what the call does, where there is one.
    pub(crate) fn cheaper(&self, call: &ObservedCall<'_>) -> Option<&'static Cheaper> {
        first(&self.cheaper, call)
    }

    /// What the call makes that another call would undo.
    pub(crate) fn makes(&self, call: &ObservedCall<'_>) -> Option<&'static Thing> {
        first(&self.makes, call)
    }

    /// Whether it moves what others make to another place.
    pub(crate) fn moves(&self) -> bool {
        self.links.moves
    }

    /// How it gives up what others make.
    pub(crate) fn ends(&self, call: &ObservedCall<'_>) -> Option<&'static End> {
        self.links.ends.iter().copied().find(|end| call.holds(end.when))
    }

    /// What it sets for others to see.
    pub(crate) fn shown(&self, call: &ObservedCall<'_>) -> Option<&'static Shown> {
        first(&self.shown, call)
    }

    /// Whether it may set something for others to see.
    pub(crate) fn may_show(&self) -> bool {
        !self.shown.is_empty()
    }

    /// How its waiting is the process's own affair.
    pub(crate) fn own_wait(&self, call: &ObservedCall<'_>) -> Option<&'static OwnWait> {
        first(&self.own_waits, call)
    }

    /// Whether it waits until one of several descriptors is ready.
    pub(crate) fn tells_ready(&self) -> bool {
        !self.tell_ready.is_empty()
    }

    /// The argument that points to the moment until which it sleeps.
    pub(crate) fn sleeps_until(&self, call: &ObservedCall<'_>) -> Option<u8> {
        first(&self.sleeps_until, call).map(|line| line.moment)
    }

    /// How it was refused, where it always is.
    pub(crate) fn in_vain(&self, call: &ObservedCall<'_>) -> Option<&'static InVain> {
        self.in_vain.iter().copied().find(|line| call.call.errno() == Some(line.errno))
    }

    /// Whether there is a way in which it always is refused.
    pub(crate) fn may_be_in_vain(&self) -> bool {
        !self.in_vain.is_empty()
    }

    /// Whether it asks about a name itself, where that is a symbolic link.
    pub(crate) fn no_follow(&self, call: &ObservedCall<'_>) -> bool {
        first(&self.no_follows, call).is_some()
    }

    /// How it asks a file for an attribute.
    pub(crate) fn attribute(&self) -> Option<&'static Attribute> {
        self.attributes.first().copied()
    }

    /// Whether it has a stream send what it is given at once.
    pub(crate) fn sends_at_once(&self, call: &ObservedCall<'_>) -> bool {
        first(&self.send_at_once, call).is_some()
    }

    /// Whether it may do so.
    pub(crate) fn may_send_at_once(&self) -> bool {
        !self.send_at_once.is_empty()
    }

    /// How it enters a ring.
    pub(crate) fn enter(&self) -> Option<&'static Enter> {
        self.enters.first().copied()
    }

    /// Whether it enters a ring.
    pub(crate) fn enters(&self) -> bool {
        !self.enters.is_empty()
    }

    /// How it takes or leaves a lock of a file.
    pub(crate) fn file_lock(&self, call: &ObservedCall<'_>) -> Option<&'static FileLock> {
        first(&self.file_locks, call)
    }

    /// Whether it may take or leave a lock of a file.
    pub(crate) fn may_lock(&self) -> bool {
        !self.file_locks.is_empty()
    }

    /// How it takes or leaves a lock that lies in the kernel.
    pub(crate) fn kernel_lock(&self, call: &ObservedCall<'_>) -> Option<&'static KernelLock> {
        first(&self.kernel_locks, call)
    }

    /// Whether it may take or leave a lock that lies in the kernel.
    pub(crate) fn may_lock_in_kernel(&self) -> bool {
        !self.kernel_locks.is_empty()
    }

    /// The stack of the thread that it makes.
    pub(crate) fn spawns(&self, call: &ObservedCall<'_>) -> Option<u64> {
        first(&self.spawns, call)?.stack(call)
    }

    /// The range that it takes.
    pub(crate) fn ranged(&self, call: &ObservedCall<'_>) -> Option<&'static Ranged> {
        first(&self.ranged, call)
    }

    /// What it is for where threads begin and end.
    pub(crate) fn thread_setup(&self, call: &ObservedCall<'_>) -> Option<&'static ThreadSetup> {
        first(&self.thread_setups, call)
    }

    /// Questions that a later call may make needless, and those later calls.
    pub(crate) fn sequels(&self) -> &[Followed] {
        &self.links.followed
    }

    /// What it moves.
    pub(crate) fn transfer(&self, call: &ObservedCall<'_>) -> Option<&'static Transfer> {
        first(&self.transfers, call)
    }

    /// The look without waiting that it is.
    pub(crate) fn look(&self, call: &ObservedCall<'_>) -> Option<&'static Look> {
        first(&self.looks, call)
    }

    /// The timer it sets.
    pub(crate) fn arm(&self) -> Option<&'static Arm> {
        self.arms.first().copied()
    }

    /// What it waits for where waiting before `main` is worth telling.
    pub(crate) fn suspect_wait(&self) -> Option<&'static SuspectWait> {
        self.suspect_waits.first().copied()
    }

    /// Whether it gives memory back that stays the program's.
    pub(crate) fn gives_back(&self, call: &ObservedCall<'_>) -> bool {
        first(&self.gives_back, call).is_some()
    }

    /// Whether it may give back memory that stays the program's.
    pub(crate) fn may_give_back(&self) -> bool {
        !self.gives_back.is_empty()
    }

    /// How much of its memory it gives back.
    pub(crate) fn freed(&self, call: &ObservedCall<'_>) -> Option<Amount> {
        first(&self.frees, call).map(|line| line.amount)
    }

    /// Whether it may give memory back at all.
    pub(crate) fn frees(&self) -> bool {
        !self.frees.is_empty()
    }

    /// Whether it may have such an effect at all.
    pub(crate) fn does(&self, test: impl Fn(Effect) -> bool) -> bool {
        self.effects.iter().any(|line| test(line.effect))
    }

    /// Whether it has such an effect whatever its arguments.
    pub(crate) fn always_does(&self, test: impl Fn(Effect) -> bool) -> bool {
        self.effects.iter().any(|line| line.when.is_empty() && test(line.effect))
    }

    /// Whether it gives a file another name, or one more.
    pub(crate) fn names(&self) -> bool {
        self.effects.iter().filter(|line| matches!(line.effect, Effect::Path { .. })).count() == 2
    }

    /// Whether it may ask what a path leads to.
    pub(crate) fn asks_about_paths(&self) -> bool {
        let asks = |line: &StateLine| line.about.is(&PATH) || line.about.is(&NAME);
        self.states.iter().any(|line| asks(line) && matches!(line.act, Act::Ask(_)))
    }

    /// Whether it may set such state.
    pub(crate) fn sets(&self, state: &'static State) -> bool {
        self.states.iter().any(|line| line.about.id() == state.id() && matches!(line.act, Act::Set { .. }))
    }

    /// Whether it may move bytes out of the program.
    pub(crate) fn transfers_out(&self) -> bool {
        self.transfers.iter().any(|line| line.way == Way::Out)
    }

    /// Whether it maps memory, a file's code among other things.
    pub(crate) fn maps(&self) -> bool {
        !self.loads.is_empty()
    }

    /// Whether it maps a file's code.
    pub(crate) fn loads(&self, call: &ObservedCall<'_>) -> bool {
        first(&self.loads, call).is_some()
    }

    /// Whether it may give the processor to another thread, and is of use where it does.
    pub(crate) fn hands_over(&self) -> bool {
        self.looks.iter().any(|look| look.hands_over)
    }

    /// Whether it may wake waiters at all.
    pub(crate) fn may_wake(&self) -> bool {
        !self.wakes.is_empty()
    }

    /// Whether it wakes waiters.
    pub(crate) fn wakes(&self, call: &ObservedCall<'_>) -> bool {
        first(&self.wakes, call).is_some()
    }
}
