//! Who else is there: another for the processors, another process with our memory.

use crate::inproc::monitor::exec::read_ahead::{Ahead, Reading};
use crate::inproc::monitor::exec::seccomp;
use crate::inproc::monitor::outlook::{Done, Outlook};
use crate::inproc::monitor::shared::memory::Area;
use crate::inproc::monitor::sys;
use crate::limits;
use crate::procfs;
use nix::sched::CpuSet;
use std::thread::JoinHandle;
use std::time::Duration;
use systoll_hooks::layout::global;
use systoll_symbols::Spawn;

/// How long a thread waits for an answer before it goes on by itself.
pub(crate) const LIMIT: Duration = Duration::from_millis(250);

/// The same where a file may have to be planned: tens of milliseconds for a C library, on a busy
/// box and by unoptimised code many times that.
pub(crate) const LONG_LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 2 });

/// How long it waits for a launcher that is at something.
pub(crate) const BUSY_LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 8 });

/// How often a waiting thread looks before it sleeps, where launcher and thread can run at once. More
/// would serve programs that begin, but where thousands of threads ask at once all of them look before
/// the launcher has its turn, and that must come within [`LIMIT`].
const SPINS: u64 = 2_000;

/// How long the launcher looks for questions, where others want its processor, before it sleeps; and how
/// often it offers it.
const LOOKS: Duration = Duration::from_micros(60);
/// How long it looks where no other process wants the processor: to wake it takes longer than most answers,
/// and where there is one question more come soon. Looks of a millisecond save programs that start one by one
/// beside an idle processor (`make -j1`) a tenth of their time, and cost scripts and compilers a tenth to a third
/// more of a processor.
const LOOKS_ON: Duration = Duration::from_micros(100);
/// How long it looks where what was done last has mostly been followed by nothing soon: between the questions of a
/// compiler's programs three looks in five were in vain, a quarter of what the launcher did.
const GLANCE: Duration = Duration::from_micros(10);
/// What sleeps and is woken is found so much later, at most.
const WAKE: Duration = Duration::from_micros(50);
/// Offered for as long as this, a processor was taken by a process that has more to do on it.
const AWAY: Duration = Duration::from_micros(200);
/// For how long that is taken to be so.
const CROWDED: Duration = Duration::from_millis(10);

const fn ns(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// When the launcher looks for questions rather than sleeps.
#[derive(Default)]
pub(crate) struct Polling {
    /// Processors that launcher, targets and the threads that read ahead have between them.
    processors: usize,
    /// Which ones.
    everywhere: Option<CpuSet>,
    /// The thread that reads ahead.
    reader: Option<JoinHandle<()>>,
    /// Held while the launcher stays on one processor.
    stay: Option<sys::Stay>,
    /// Whether the thread that asked last was on the launcher's processor, or would not look for an answer.
    pub(crate) asked_here: bool,
    /// When what the launcher is at was begun, by the time stamp counter.
    pub(crate) item: u64,
    /// Until when another process is taken to want the launcher's processor, ns.
    crowded_until: u64,
    /// When it was last offered, ns.
    offered: u64,
    /// When there last was something to do, ns.
    pub(crate) answered: u64,
    /// What that was.
    pub(crate) done: Done,
    /// What comes after it.
    outlook: Outlook,
    /// Whether threads of some program make no system calls of ours any more: they don't wake the launcher,
    /// and their slots are looked through.
    pub(crate) quiet: bool,
}

impl Polling {
    /// Of a run in which nothing has been asked yet.
    pub(crate) fn new() -> Self {
        Self { processors: sys::processors(), everywhere: sys::may_run_on(), ..Self::default() }
    }

    /// How often a thread looks for its answer before it sleeps.
    pub(crate) fn spins(&self) -> u64 {
        if self.processors > 1 && self.stay.is_none() { SPINS } else { 0 }
    }

    /// Which processors threads may have that work beside the launcher: all that it may have itself when it does not stay on
    /// one. `None` where there is one alone.
    pub(crate) fn beside(&self) -> Option<CpuSet> {
        self.everywhere.filter(|_| self.processors > 1)
    }

    /// What begins threads that work beside the launcher, on any processor that it may have itself when it does not
    /// stay on one; where there is a single processor it begins none, as all would be done sooner without.
    pub(crate) fn threads_beside(&self) -> Spawn {
        let everywhere = self.beside();
        Box::new(move |work| {
            let Some(everywhere) = everywhere else { return false };
            let beside = move || {
                sys::run_on(&everywhere);
                sys::take_short_turns();
                work();
            };
            limits::spawn("systoll-lines", beside).is_ok()
        })
    }

    /// Says that something is begun now, which may take long.
    pub(crate) fn begin_item(&mut self, global: &Area) {
        self.item = sys::tsc();
        global.set(global::BUSY, self.item);
        global.set(global::PROCESSOR, sys::processor().into());
    }

    /// Begins to read ahead for process `pid`, a child that has not begun to run, in a thread of its own.
    /// Where there are two processors it has one to itself: launcher and targets share the other, sleep
    /// rather than look for each other, and to have the next turn there takes a tenth of the time that it
    /// takes to wake a processor.
    pub(crate) fn read_ahead(&mut self, ahead: &Ahead, what: Reading, pid: i32) {
        if self.processors < 2 {
            return;
        }
        let beside = if self.processors == 2 { procfs::processor(pid) } else { None };
        let stay = beside.and_then(|_| sys::Stay::as_it_is());
        // A thread begins where its maker may run: to be moved once it runs would take it a tenth of its time.
        let is_there = |processor: &usize| usize::try_from(sys::processor()) == Ok(*processor);
        let moved = beside.filter(|p| !is_there(p)).zip(stay.as_ref()).is_some_and(|(p, stay)| stay.off(p));
        self.reader = ahead.begin(what, beside.filter(|_| !moved));
        self.stay = beside.filter(|_| self.reader.is_some()).zip(stay).and_then(|(p, stay)| stay.on(p).then_some(stay));
        self.asked_here = self.stay.is_some();
    }

    /// Whether a thread that is about to exec was on another processor than the launcher's, which it had better
    /// keep: some kernels wake a program beside the process that wakes it, where it waits for the launcher and
    /// finds nothing in the caches. Not where others want all those processors: it would wait for them while the
    /// launcher's is idle, which took parallel builds a tenth of their time. `patience`: what the thread would have
    /// waited.
    pub(crate) fn asked_elsewhere(&self, patience: u64) -> bool {
        let is_one_free = || procfs::running().is_none_or(|running| running < self.processors);
        let may = self.stay.is_none() && *seccomp::inherited() == seccomp::Inherited::Nothing;
        may && patience != 0 && is_one_free()
    }

    /// Has both processors used again once all has been read ahead.
    pub(crate) fn look_for_reader(&mut self, global: &Area) {
        if self.reader.take_if(|reader| reader.is_finished()).is_some() {
            self.stay = None;
            global.set(global::SPINS, self.spins());
        }
    }

    /// Notes that at `now`, or a little later, there was something to do after `before`.
    pub(crate) fn note_found(&mut self, before: &Done, now: u64) {
        let gap = now.saturating_sub(self.answered);
        self.outlook.note(before, gap < ns(LOOKS_ON) + ns(WAKE));
    }

    /// Whether to look for questions once more rather than sleep.
    ///
    /// While the launcher looks, no other thread has its processor, and what is only ready to run there may
    /// have to wait for the timer. So it offers it, at once if the thread that asked last is on it too,
    /// and does not look for long where it was taken: who sleeps has the next turn when woken.
    pub(crate) fn looks_on(&mut self) -> bool {
        if self.processors < 2 || self.stay.is_some() {
            return false;
        }
        let now = sys::now();
        let idle = now.saturating_sub(self.answered);
        if idle >= ns(GLANCE) && !self.outlook.is_soon(&self.done) {
            return false;
        }
        if now < self.crowded_until {
            std::hint::spin_loop();
            return !self.asked_here && idle < ns(LOOKS);
        }
        if idle >= ns(LOOKS_ON) {
            return false;
        }
        if self.asked_here || now.saturating_sub(self.offered) >= ns(LOOKS) {
            std::thread::yield_now();
            self.offered = sys::now();
            if self.offered.saturating_sub(now) >= ns(AWAY) {
                self.crowded_until = self.offered + ns(CROWDED);
            }
        }
        std::hint::spin_loop();
        true
    }
}
