//! The tracer's loop: one stop after the other, each answered and let go at once.

use super::calibrate::Cost;
use super::patience::Patience;
use super::sampler::Sampler;
use super::state::{ById, Process, Thread};
use crate::backend::{Control, Launch};
use crate::ending::Ending;
use crate::parts::RunFacts;
use crate::problems::Problems;
use crate::procfs::IoCalls;
use crate::signals::{LETTING_GO_NS, Signals};
use crate::sys;
use crate::table::Table;
use crate::tracee::{self, Stop, Waited};
use crate::windows::Windows;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use systoll_model::{Exit, ProblemKind};
use systoll_symbols::{PlacedFrame, Symbols};

/// A wait that took longer than this has slept.
const SLEPT_NS: u64 = 2_000;
/// Handling a stop takes this long only where a file's names are read.
const LOADING_NS: u64 = 500_000;
/// Stops answered one after the other where several threads run, before those of all are taken in.
const MOST_UNTAKEN: u32 = 3;
/// So many threads are looked at before each wait.
const FEW_THREADS: usize = 4;
/// How often progress is told.
const PROGRESS_NS: u64 = 100_000_000;

/// Everything a run's tracing knows.
pub(super) struct Engine {
    pub(super) processes: ById<Process>,
    pub(super) threads: ById<Thread>,
    pub(super) table: Table,
    pub(super) symbols: Symbols,
    pub(super) windows: Windows,
    pub(super) problems: Problems,
    /// What the kernel had counted of processes that ended and were not waited for yet.
    pub(super) ended: HashMap<i32, IoCalls>,
    pub(super) root: Root,
    /// Whether contexts are unwound; the calibration does without.
    pub(super) names: bool,
    /// Whether set-id programs keep their privilege while we trace.
    pub(super) privileged: bool,
    pub(super) start_ns: u64,
    pub(super) seen: Seen,
    pub(super) stops: Stops,
    patience: Patience,
    pub(super) stack: UnwoundStack,
    pub(super) measured: Measured,
    progress: Progress,
}

/// The command's own process.
#[derive(Default)]
pub(super) struct Root {
    pub(super) pid: i32,
    pub(super) exit: Option<Exit>,
    pub(super) exec_done: bool,
    /// Set at its first execve: what it did before was systoll's own.
    pub(super) counting: bool,
}

/// Threads so far.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) threads: u32,
    /// Most at a time.
    pub(super) most_threads: usize,
}

/// Stops of threads, and when they came.
#[derive(Default)]
pub(super) struct Stops {
    /// Taken in, and when, that are not answered yet; first come, first served.
    told: VecDeque<(Stop, u64)>,
    /// Answered since stops were last taken in, without that.
    untaken: u32,
    /// When we were told of the stop that is being answered, and when its turn came.
    pub(super) told_ns: u64,
    begun_ns: u64,
    /// When the tracer last woke up having slept: no stop had been left waiting then, so one
    /// found without sleeping has happened since.
    pub(super) woken_ns: u64,
    /// Time between being told of a system call stop and letting go, ns, and such stops.
    pub(super) handling: (u64, u64),
}

/// The stack that was unwound last.
#[derive(Default)]
pub(super) struct UnwoundStack {
    pub(super) frames: Vec<PlacedFrame>,
    /// Its bytes, kept for their room.
    pub(super) memory: Vec<u8>,
}

/// What was measured before the run and in it.
pub(super) struct Measured {
    pub(super) facts: RunFacts,
    /// What being watched costs, on a child of our own.
    pub(super) cost: Cost,
    pub(super) sampler: Sampler,
}

/// How far the loop has come.
#[derive(Default)]
struct Progress {
    ending: Ending,
    cut_short: bool,
    /// When progress was last told, ns.
    last_told: u64,
}

impl Engine {
    pub(super) fn new(launch: &Launch, names: bool) -> Self {
        Self {
            processes: ById::default(),
            threads: ById::default(),
            table: Table::telling(launch.longer),
            symbols: Symbols::new(),
            windows: Windows::new(launch.windows.clone(), launch.seed),
            problems: Problems::default(),
            ended: HashMap::new(),
            root: Root::default(),
            names,
            privileged: crate::setid::can_trace_privileged(),
            start_ns: sys::now(),
            seen: Seen::default(),
            stops: Stops::default(),
            patience: Patience::new(),
            stack: UnwoundStack::default(),
            measured: Measured {
                facts: RunFacts::default(),
                cost: Cost::default(),
                sampler: Sampler::new(launch.seed),
            },
            progress: Progress::default(),
        }
    }

    /// Nanoseconds since the run's start.
    pub(super) fn at(&self, now: u64) -> u64 {
        now.saturating_sub(self.start_ns)
    }

    /// Watches until every traced process has ended, or the command has and we were told to end.
    pub(super) fn watch(&mut self, signals: Option<&Signals>, control: &mut dyn Control, linger: Duration) {
        loop {
            match self.wait() {
                Waited::Stop(stop) => self.answer(stop, signals),
                Waited::NoChildren => break,
                Waited::Interrupted | Waited::NothingYet => {}
            }
            if let Some(signals) = signals {
                self.look(signals, control, linger);
            }
            if self.progress.cut_short || self.threads.is_empty() && self.root.exit.is_some() {
                break;
            }
            if self.stops.told_ns.saturating_sub(self.progress.last_told) >= PROGRESS_NS {
                self.progress.last_told = self.stops.told_ns;
                control.progress(self.table.calls, self.processes.len(), self.root.exit.is_some());
            }
        }
    }

    /// The next stop. The kernel tells of them in an order of its own, in which busy threads would
    /// keep others for ever; so those of all threads are taken in and answered in turn, every few stops.
    fn wait(&mut self) -> Waited {
        if self.stops.told.is_empty() && self.threads.len() > 1 {
            // To take costs twice as much as to look. Where one thread's stops come by themselves, a few of them
            // are answered as they are: no other waits for longer than these take.
            if self.stops.untaken < MOST_UNTAKEN {
                self.stops.untaken += 1;
            } else {
                self.stops.untaken = 0;
                self.take_all();
            }
        }
        if let Some((stop, told_ns)) = self.stops.told.pop_front() {
            self.stops.told_ns = told_ns;
            self.stops.begun_ns = sys::now();
            return Waited::Stop(stop);
        }
        let asked = sys::now();
        let waited = self.patience.wait(asked, self.may_give_way(), tracee::next);
        self.stops.told_ns = sys::now();
        self.stops.begun_ns = self.stops.told_ns;
        match self.patience.gave_way_at() {
            // Another program may have had our processor long after the stop came.
            Some(none_yet) => self.stops.woken_ns = none_yet,
            None if self.stops.told_ns.saturating_sub(asked) > SLEPT_NS => self.stops.woken_ns = self.stops.told_ns,
            None => {}
        }
        waited
    }

    /// Whether how long a call waits is told as well by a tracer whose processor others may have had: where no
    /// thread is in a call that waits.
    fn may_give_way(&self) -> bool {
        let waits = |thread: &Thread| {
            thread.pending.as_ref().is_some_and(|call| call.signature.is_none_or(|signature| signature.waits))
        };
        self.threads.len() <= FEW_THREADS && !self.threads.values().any(waits)
    }

    /// Whether others had our processor while we waited for the last stops.
    pub(super) fn gave_way(&self) -> bool {
        self.patience.gave_way_at().is_some()
    }

    /// Takes in all stops there are. A signal is given back at once: it must not be lost if we are
    /// killed now.
    fn take_all(&mut self) {
        while let Waited::Stop(stop) = tracee::next(false) {
            let taken = match stop {
                Stop::Signal { tid, signal } => {
                    self.on_signal(tid, signal);
                    continue;
                }
                Stop::Exited { .. } | Stop::Killed { .. } => Waited::Stop(stop),
                Stop::Event { event: libc::PTRACE_EVENT_EXEC, .. } => Waited::Stop(stop),
                Stop::Syscall { tid } | Stop::Event { tid, .. } => tracee::wait_for(tid, false),
            };
            if let Waited::Stop(stop) = taken {
                self.stops.told.push_back((stop, sys::now()));
            }
        }
    }

    /// A stop of thread `tid` that we have been told of and not yet answered.
    pub(super) fn take_told(&mut self, tid: i32) -> Option<Stop> {
        let at = self.stops.told.iter().position(|(stop, _)| stop.tid() == tid)?;
        self.stops.told.remove(at).map(|(stop, _)| stop)
    }

    /// Watches until the command's first exec has succeeded or its process has ended.
    pub(super) fn watch_until_exec(&mut self) {
        while !self.root.exec_done && self.root.exit.is_none() {
            match self.wait() {
                Waited::Stop(stop) => self.answer(stop, None),
                Waited::NoChildren => break,
                Waited::Interrupted | Waited::NothingYet => {}
            }
        }
    }

    fn look(&mut self, signals: &Signals, control: &mut dyn Control, linger: Duration) {
        let wanted = signals.look();
        if wanted.snapshot {
            let recording = self.recording_so_far();
            control.snapshot(&recording);
        }
        let ended = self.root.exit.is_some();
        let Some(why) = self.progress.ending.look(&wanted, sys::now(), ended, linger) else { return };
        self.problems.note(ProblemKind::CutShort, why.text(self.processes.len()));
        self.let_everything_go();
        self.progress.cut_short = true;
    }

    fn answer(&mut self, stop: Stop, signals: Option<&Signals>) {
        match stop {
            Stop::Syscall { tid } => {
                self.adopt_unknown(tid);
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.stopped(self.stops.told_ns);
                }
                self.on_call(tid);
                self.resume_at(tid);
            }
            Stop::Signal { tid, signal } => self.on_signal(tid, signal),
            Stop::Event { tid, event, signal } => self.on_event(tid, event, signal),
            Stop::Exited { tid, code } => self.on_gone(tid, Exit::Code(code), signals),
            Stop::Killed { tid, signal } => self.on_gone(tid, Exit::Signal(signal), signals),
        }
    }

    fn on_signal(&mut self, tid: i32, signal: i32) {
        self.adopt_unknown(tid);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.signals += 1;
        }
        self.resume(tid, signal);
    }

    fn resume_at(&mut self, tid: i32) {
        let now = sys::now();
        let took = now.saturating_sub(self.stops.begun_ns);
        // Reading a new file's names is no part of what each call pays.
        if took < LOADING_NS {
            self.stops.handling.0 += took;
            self.stops.handling.1 += 1;
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.let_go(now);
            if let Some(pending) = thread.pending.as_mut().filter(|call| call.resumed_ns == 0) {
                pending.resumed_ns = now;
            }
        }
        self.resume(tid, 0);
    }

    /// Lets a thread run on, whether or not we know it: only its tracer can. One that has been
    /// killed meanwhile reports its end by itself, one let go is not ours to be resumed.
    pub(super) fn resume(&self, tid: i32, signal: i32) {
        let _ = tracee::resume_to_call(tid, signal);
    }

    fn on_event(&mut self, tid: i32, event: i32, signal: i32) {
        match event {
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                self.adopt_unknown(tid);
                if let Some(new) = tracee::event_message(tid) {
                    self.adopt(new, Some(tid));
                }
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.told_of_child = true;
                }
                self.resume(tid, 0);
            }
            libc::PTRACE_EVENT_EXEC => {
                self.root.exec_done = true;
                self.on_exec(tid);
                self.resume(tid, 0);
            }
            libc::PTRACE_EVENT_EXIT => {
                // Killed before its first stop, and its parent before telling of it.
                self.adopt_unknown(tid);
                self.on_exit_begun(tid);
                self.resume(tid, 0);
            }
            _ if (Stop::Event { tid, event, signal }).is_group_stop() => {
                self.adopt_unknown(tid);
                let _ = tracee::listen(tid);
            }
            libc::PTRACE_EVENT_STOP => {
                self.adopt_unknown(tid);
                self.resume(tid, 0);
            }
            _ => self.resume(tid, 0),
        }
    }

    /// Detaches from every thread, which then runs on as without us.
    fn let_everything_go(&mut self) {
        let mut waiting: Vec<i32> = self.threads.keys().copied().collect();
        waiting.retain(|tid| tracee::interrupt(*tid).is_ok());
        let deadline = sys::now() + LETTING_GO_NS;
        while !waiting.is_empty() && sys::now() < deadline {
            let told = self.stops.told.pop_front();
            let stop = match told.map_or_else(|| tracee::next(false), |(stop, _)| Waited::Stop(stop)) {
                Waited::Stop(stop) => stop,
                Waited::NoChildren => break,
                _ => {
                    std::thread::sleep(Duration::from_micros(200));
                    continue;
                }
            };
            match stop {
                Stop::Exited { tid, code } => self.on_gone(tid, Exit::Code(code), None),
                Stop::Killed { tid, signal } => self.on_gone(tid, Exit::Signal(signal), None),
                stop => self.release(stop.tid(), stop.signal_to_leave_with().unwrap_or(0)),
            }
            waiting.retain(|tid| self.threads.contains_key(tid));
        }
        for tid in self.threads.keys().copied().collect::<Vec<_>>() {
            self.release(tid, 0);
        }
    }

    /// Detaches from one thread and forgets it.
    pub(super) fn release(&mut self, tid: i32, signal: i32) {
        let _ = tracee::detach(tid, signal);
        self.end_thread(tid);
    }
}
