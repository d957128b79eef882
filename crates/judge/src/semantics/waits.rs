//! Calls that wait, and set timers.

use super::traits::{TRAITS, Trait};
use super::vocabulary::When::{self, AllBits};
use systoll_model::Sysno;
use systoll_model::constants::*;

/// The place before `main` where a wait counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// Anywhere before `main`, also where `main` was not seen.
    Anywhere,
    /// Before a `main` that was seen, or in a constructor.
    BeforeMain,
    /// In a constructor only.
    Constructor,
}

/// A call whose waits before `main` are worth reporting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SuspectWait {
    /// The system call's name.
    pub call: &'static str,
    /// The place before `main` where the waits count.
    pub place: Where,
    /// The awaited thing, for a sentence.
    pub waits_for: &'static str,
}

const fn wait(call: &'static str, place: Where, waits_for: &'static str) -> SuspectWait {
    SuspectWait { call, place, waits_for }
}

/// The waits worth reporting. Absent on purpose: futex (the program's own threads), wait4 and waitid, reads from
/// pipes and sockets (its own children).
#[rustfmt::skip]
pub(crate) static SUSPECT_WAITS: &[SuspectWait] = &[
    wait("membarrier", Where::Anywhere, "until every processor has been through the scheduler"),
    wait("flock", Where::BeforeMain, "for a lock on a file"),
    wait("connect", Where::BeforeMain, "for a connection"),
    wait("sync", Where::BeforeMain, "for the disk"),
    wait("syncfs", Where::BeforeMain, "for the disk"),
    wait("fsync", Where::BeforeMain, "for the disk"),
    wait("fdatasync", Where::BeforeMain, "for the disk"),
    wait("getrandom", Where::BeforeMain, "for random numbers"),
    wait("poll", Where::Constructor, "for a descriptor or a timeout"),
    wait("ppoll", Where::Constructor, "for a descriptor or a timeout"),
    wait("select", Where::Constructor, "for a descriptor or a timeout"),
    wait("pselect6", Where::Constructor, "for a descriptor or a timeout"),
    wait("nanosleep", Where::Constructor, "for time to pass"),
    wait("clock_nanosleep", Where::Constructor, "for time to pass"),
];

/// A call that sets a timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arm {
    /// The system call's name.
    pub call: &'static str,
    /// The argument that identifies the timer; `None` if the process has only one.
    pub timer: Option<u8>,
    /// The argument that points to a `struct itimerspec` or `itimerval` of four words, or, with
    /// [`Arm::plain`], is the time itself.
    pub time: u8,
    /// The call that owns the timer: two calls may set the same one.
    pub of: &'static str,
    /// True if `time` is a number of seconds.
    pub plain: bool,
    /// True if the timer sends a signal; false if its descriptor is read.
    pub signals: bool,
    /// The length of one unit of the time's fraction, ns.
    pub fraction_ns: u64,
    /// The call that makes such timers; `None` if the process has them from the start.
    pub made_by: Option<&'static str>,
    /// The argument and its bit with which the time is one of the clock, not a length; 0 if no bit says so.
    pub absolute: (u8, u64),
}

/// The calls that set timers.
#[rustfmt::skip]
pub(crate) static ARMS: &[Arm] = &[
    Arm { call: "timerfd_settime", of: "timerfd_settime", timer: Some(0), time: 2, plain: false, signals: false,
        fraction_ns: 1, made_by: Some("timerfd_create"), absolute: (1, 1) },
    Arm { call: "timer_settime", of: "timer_settime", timer: Some(0), time: 2, plain: false, signals: true,
        fraction_ns: 1, made_by: Some("timer_create"), absolute: (1, 1) },
    Arm { call: "setitimer", of: "setitimer", timer: Some(0), time: 1, plain: false, signals: true,
        fraction_ns: 1_000, made_by: None, absolute: (0, 0) },
    // alarm sets ITIMER_REAL, whose number is 0.
    Arm { call: "alarm", of: "setitimer", timer: None, time: 0, plain: true, signals: true,
        fraction_ns: 1, made_by: None, absolute: (0, 0) },
];

/// A call whose waiting other processes do not notice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnWait {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// True for pure sleeps, whose time counts in the calling thread.
    pub sleeps: bool,
}

/// The calls whose waiting other processes do not notice.
#[rustfmt::skip]
pub(crate) static OWN_WAITS: &[OwnWait] = &[
    OwnWait { call: "futex", when: &[AllBits(1, FUTEX_PRIVATE_FLAG)], sleeps: false },
    OwnWait { call: "nanosleep", when: &[], sleeps: true },
    OwnWait { call: "clock_nanosleep", when: &[], sleeps: true },
];

/// A call that sleeps until an absolute time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SleepsUntil {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// The argument that points to the time, a `struct timespec`.
    pub moment: u8,
}

/// The calls that sleep until an absolute time.
pub(crate) static SLEEPS_UNTIL: &[SleepsUntil] =
    &[SleepsUntil { call: "clock_nanosleep", when: &[AllBits(1, TIMER_ABSTIME)], moment: 2 }];

/// The way in which a call lets time pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// Time always passes.
    Always,
    /// Time passes until a descriptor is ready.
    UnlessReady,
}

impl Sleep {
    /// Returns the way in which a call lets time pass; `None` if it is not made for that.
    #[must_use]
    pub fn of(syscall: Sysno) -> Option<Self> {
        let name = syscall.name()?;
        if OWN_WAITS.iter().any(|line| line.sleeps && line.call == name) {
            return Some(Self::Always);
        }
        TRAITS.iter().any(|line| line.of == Trait::TellsReady && line.call == name).then_some(Self::UnlessReady)
    }
}

/// Programs that do nothing but let time pass.
pub(crate) const WAITING_PROGRAMS: &[&str] = &["sleep", "usleep"];
