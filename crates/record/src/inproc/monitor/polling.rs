//! Decides how long launcher and threads poll or sleep while they wait for each other, depending on who else needs the
//! processors.

use crate::inproc::monitor::exec::read_ahead::{Ahead, Reading};
use crate::inproc::monitor::exec::seccomp;
use crate::inproc::monitor::next_question::{LastWork, NextQuestion};
use crate::inproc::monitor::shared::memory::Area;
use crate::inproc::monitor::sys;
use crate::{limits, procfs};
use nix::sched::CpuSet;
use std::thread::JoinHandle;
use std::time::Duration;
use systoll_hooks::layout::global;
use systoll_symbols::Spawn;

/// Time for which a thread waits for an answer before it goes on by itself.
pub(crate) const LIMIT: Duration = Duration::from_millis(250);

/// Time for which a thread waits if a file may have to be planned: planning takes tens of milliseconds for a C library,
/// and many times that on a busy machine or by unoptimised code.
pub(crate) const LONG_LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 2 });

/// Time for which a thread waits if the launcher is known to be working on something.
pub(crate) const BUSY_LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 8 });

/// Polls of a waiting thread before it sleeps, if launcher and thread can run at once. More polls would help programs
/// that are starting; but if thousands of threads ask at once, all of them poll before the launcher has its turn, and
/// its turn must come within [`LIMIT`].
const SPINS: u64 = 2_000;

/// Time for which the launcher polls for questions before it sleeps, if others want its processor; also the interval at
/// which it yields.
const LOOKS: Duration = Duration::from_micros(60);
/// Time for which the launcher polls if no other process wants the processor: waking the launcher takes longer than
/// most answers, and further questions come soon. Polls of a millisecond would save programs that start one by one
/// beside an idle processor (`make -j1`) a tenth of their time, and cost scripts and compilers a tenth to a third more
/// of a processor.
const LOOKS_ON: Duration = Duration::from_micros(100);
/// Time for which the launcher polls if questions rarely follow soon after its last work: between the questions of a
/// compiler's programs three polls in five were in vain, a quarter of the launcher's work.
const LOOKS_ON_BRIEFLY: Duration = Duration::from_micros(10);
/// Longest delay until a sleeping thread notices that it was woken.
const WAKE: Duration = Duration::from_micros(50);
/// Duration of a yield from which on another process is taken to need the processor for longer.
const AWAY: Duration = Duration::from_micros(200);
/// Time for which a process that outlasted a yield is assumed to need the processor.
const CROWDED: Duration = Duration::from_millis(10);

const fn ns(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// State by which the launcher decides if it polls for questions or sleeps.
#[derive(Default)]
pub(crate) struct Polling {
    /// Number of processors that launcher, targets and the threads that read ahead may use.
    processors: usize,
    /// The set of the processors that launcher, targets and reading threads may use.
    everywhere: Option<CpuSet>,
    /// The thread that reads ahead, while it runs.
    reader: Option<JoinHandle<()>>,
    /// The launcher's usual affinity, while the launcher is kept on one processor.
    stay: Option<sys::SavedAffinity>,
    /// True if the thread that asked last was on the launcher's processor, or would not poll for an answer.
    pub(crate) asked_here: bool,
    /// Time stamp counter at the beginning of the launcher's current work.
    pub(crate) item: u64,
    /// Time until which another process is assumed to want the launcher's processor, ns.
    crowded_until: u64,
    /// Time of the launcher's last yield, ns.
    offered: u64,
    /// Time at which there was work last, ns.
    pub(crate) answered: u64,
    /// The work that was done last.
    pub(crate) done: LastWork,
    /// Counters that predict if another question will come soon.
    outlook: NextQuestion,
    /// True if threads of some program make no system calls for us any more: they don't wake the launcher, and their
    /// slots must be searched.
    pub(crate) quiet: bool,
}

impl Polling {
    /// Creates the state of a run in which nothing has been asked yet.
    pub(crate) fn new() -> Self {
        Self { processors: sys::processors(), everywhere: sys::may_run_on(), ..Self::default() }
    }

    /// Returns how often a thread polls for its answer before it sleeps.
    pub(crate) fn spins(&self) -> u64 {
        if self.processors > 1 && self.stay.is_none() { SPINS } else { 0 }
    }

    /// Returns the processors for threads that work beside the launcher: all that the launcher may use when it is not
    /// pinned. Returns `None` if there is only one.
    pub(crate) fn beside(&self) -> Option<CpuSet> {
        self.everywhere.filter(|_| self.processors > 1)
    }

    /// Returns a function that starts threads beside the launcher, on any of its processors. With a single processor it
    /// starts none, as the work would be done sooner without.
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

    /// Notes in shared memory that the launcher begins work that may take long.
    pub(crate) fn begin_item(&mut self, global: &Area) {
        self.item = sys::tsc();
        global.set(global::BUSY, self.item);
        global.set(global::PROCESSOR, sys::processor().into());
    }

    /// Starts a thread that reads ahead for process `pid`, a child that has not begun to run. With two processors the
    /// thread gets one to itself, and launcher and targets share the other. They sleep rather than poll for each other:
    /// getting the next turn on a shared processor takes a tenth of the time that waking an idle one takes.
    pub(crate) fn read_ahead(&mut self, ahead: &Ahead, what: Reading, pid: i32) {
        if self.processors < 2 {
            return;
        }
        let beside = if self.processors == 2 { procfs::processor(pid) } else { None };
        let stay = beside.and_then(|_| sys::SavedAffinity::as_it_is());
        // A thread starts on a processor that its maker may use. Therefore the launcher keeps off the child's processor
        // while it starts the thread: moving the thread once it runs would cost a tenth of its time.
        let is_there = |processor: &usize| usize::try_from(sys::processor()) == Ok(*processor);
        let moved = beside.filter(|p| !is_there(p)).zip(stay.as_ref()).is_some_and(|(p, stay)| stay.off(p));
        self.reader = ahead.begin(what, beside.filter(|_| !moved));
        self.stay = beside.filter(|_| self.reader.is_some()).zip(stay).and_then(|(p, stay)| stay.on(p).then_some(stay));
        self.asked_here = self.stay.is_some();
    }

    /// Returns true if a thread that is about to exec runs on another processor than the launcher's and should stay
    /// there: some kernels wake a program beside the process that wakes it, where it waits for the launcher and finds
    /// cold caches. Returns false if others want all those processors: the thread would wait for one while the
    /// launcher's is idle, which cost parallel builds a tenth of their time. `patience` is how long the thread would
    /// have polled.
    pub(crate) fn asked_elsewhere(&self, patience: u64) -> bool {
        let is_one_free = || procfs::running().is_none_or(|running| running < self.processors);
        let may = self.stay.is_none() && *seccomp::inherited() == seccomp::Inherited::Nothing;
        may && patience != 0 && is_one_free()
    }

    /// Lets the launcher use all processors again once the thread that reads ahead has finished.
    pub(crate) fn look_for_reader(&mut self, global: &Area) {
        if self.reader.take_if(|reader| reader.is_finished()).is_some() {
            self.stay = None;
            global.set(global::SPINS, self.spins());
        }
    }

    /// Notes that at `now`, or a little later, there was new work after the work `before`.
    pub(crate) fn note_found(&mut self, before: &LastWork, now: u64) {
        let gap = now.saturating_sub(self.answered);
        self.outlook.note(before, gap < ns(LOOKS_ON) + ns(WAKE));
    }

    /// Returns true if the launcher should poll once more rather than sleep.
    ///
    /// While the launcher polls, no other thread has its processor, and a thread that is ready to run there may have to
    /// wait for the timer. Therefore it yields, at once if the thread that asked last is on the same processor. If the
    /// launcher then gets its processor back late, it polls no further: a thread that sleeps gets the next turn when it
    /// is woken.
    pub(crate) fn looks_on(&mut self) -> bool {
        if self.processors < 2 || self.stay.is_some() {
            return false;
        }
        let now = sys::now();
        let idle = now.saturating_sub(self.answered);
        if idle >= ns(LOOKS_ON_BRIEFLY) && !self.outlook.is_soon(&self.done) {
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
