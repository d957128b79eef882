//! The tracer's loop: handles one stop after the other and resumes the thread at once.

use super::arch::OfRun;
use super::calibrate::Cost;
use super::patience::Patience;
use super::sampler::Sampler;
use super::state::{Attachment, ById, Process, Thread};
use crate::assemble::RunFacts;
use crate::backend::{Control, HowToWatch};
use crate::ending::Ending;
use crate::moment::Awaited;
use crate::problems::Problems;
use crate::procfs::IoCalls;
use crate::signals::{LETTING_GO_NS, Signals};
use crate::sys;
use crate::table::Table;
use crate::tracee::{self, Call, Stop, Waited};
use crate::windows::Windows;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use systoll_model::{Exit, ProblemKind};
use systoll_symbols::{PlacedFrame, Symbols};

/// Duration of a wait from which on the tracer is taken to have slept, ns.
const SLEPT_NS: u64 = 2_000;
/// Duration of handling a stop that is exceeded only when a file's names are read, ns.
const LOADING_NS: u64 = 500_000;
/// Number of stops, while several threads run, that are handled one by one before the stops of all threads are
/// collected.
const MOST_UNTAKEN: u32 = 3;
/// Number of threads up to which each thread's call is checked before the tracer waits.
const FEW_THREADS: usize = 4;
/// Interval between progress reports, ns.
const PROGRESS_NS: u64 = 100_000_000;

/// The state of a run that is traced.
pub(super) struct Engine {
    pub(super) processes: ById<Process>,
    pub(super) threads: ById<Thread>,
    pub(super) table: Table,
    pub(super) symbols: Symbols,
    pub(super) windows: Windows,
    pub(super) problems: Problems,
    /// The kernel's counts of reads and writes of processes that have ended and that their parents have not waited for.
    pub(super) ended: HashMap<i32, IoCalls>,
    pub(super) root: Root,
    /// True if contexts are unwound. The calibration does without them.
    pub(super) names: bool,
    /// True if set-id programs keep their privilege while we trace.
    pub(super) privileged: bool,
    pub(super) start_ns: u64,
    pub(super) seen: ThreadsSeen,
    pub(super) stops: Stops,
    patience: Patience,
    pub(super) stack: UnwoundStack,
    pub(super) measured: Measured,
    /// The moment at which watching ends.
    pub(super) awaited: Awaited,
    /// Facts and limits if processes are watched that ran already.
    pub(super) attachment: Option<Attachment>,
    progress: Progress,
    pub(super) inside: OfRun,
}

/// State of the command's own process.
#[derive(Default)]
pub(super) struct Root {
    pub(super) pid: i32,
    pub(super) exit: Option<Exit>,
    pub(super) exec_done: bool,
    /// True from the command's first execve on: its calls before that were systoll's own.
    pub(super) counting: bool,
}

/// Numbers of threads seen so far.
#[derive(Default)]
pub(super) struct ThreadsSeen {
    pub(super) threads: u32,
    /// Largest number of threads at a time.
    pub(super) most_threads: usize,
}

/// The stops of threads, and the times at which they came.
#[derive(Default)]
pub(super) struct Stops {
    /// Stops that were collected but not handled yet, oldest first, each with the time of collection.
    told: VecDeque<(Stop, u64)>,
    /// Number of stops handled since all stops were last collected.
    untaken: u32,
    /// Time at which the stop in work was reported to us, ns; the next field is when its turn came.
    pub(super) told_ns: u64,
    begun_ns: u64,
    /// Time at which the tracer last woke up after sleeping, ns. No stop was pending then, so any stop reported without
    /// sleeping has happened since.
    pub(super) woken_ns: u64,
    /// Sum of the times from the report of a system call stop to resuming the thread, ns, and the number of such stops.
    pub(super) handling: (u64, u64),
}

/// The stack that was unwound last.
#[derive(Default)]
pub(super) struct UnwoundStack {
    /// Frames of the stack, innermost first.
    pub(super) frames: Vec<PlacedFrame>,
    /// Bytes of the stack's memory; the allocation is reused.
    pub(super) memory: Vec<u8>,
}

/// Measurements made before and during the run.
pub(super) struct Measured {
    pub(super) facts: RunFacts,
    /// Cost of being watched, as measured on a child of our own.
    pub(super) cost: Cost,
    pub(super) sampler: Sampler,
}

/// Progress of the loop, by which it ends.
#[derive(Default)]
struct Progress {
    ending: Ending,
    cut_short: bool,
    /// Time of the last report of progress, ns.
    last_told: u64,
}

impl Engine {
    pub(super) fn new(how: &HowToWatch, names: bool) -> Self {
        Self {
            processes: ById::default(),
            threads: ById::default(),
            table: Table::listing_longer(how.longer),
            symbols: Symbols::new(),
            windows: Windows::new(how.windows.clone(), how.seed),
            problems: Problems::default(),
            ended: HashMap::new(),
            root: Root::default(),
            names,
            privileged: crate::setid::can_trace_privileged(),
            start_ns: sys::now(),
            seen: ThreadsSeen::default(),
            stops: Stops::default(),
            patience: Patience::new(),
            stack: UnwoundStack::default(),
            measured: Measured { facts: RunFacts::default(), cost: Cost::default(), sampler: Sampler::new(how.seed) },
            awaited: Awaited::default(),
            attachment: None,
            progress: Progress::default(),
            inside: OfRun::default(),
        }
    }

    /// Returns the time since the run's start, ns.
    pub(super) fn at(&self, now: u64) -> u64 {
        now.saturating_sub(self.start_ns)
    }

    /// Watches until every traced process has ended, until the command has ended and we were asked to end, or until
    /// running processes have been watched for long enough.
    pub(super) fn watch(&mut self, signals: Option<&Signals>, control: &mut dyn Control, linger: Duration) {
        loop {
            match self.wait() {
                Waited::Stop(stop) => self.answer(stop, signals),
                Waited::NoChildren => break,
                Waited::Interrupted | Waited::NothingYet => {}
            }
            if let Some(signals) = signals {
                self.handle_signals(signals, control, linger);
            }
            let has_ended = self.root.exit.is_some() || self.attachment.is_some();
            if self.progress.cut_short || self.threads.is_empty() && has_ended {
                break;
            }
            if self.has_seen_enough(sys::now()) {
                self.leave_all();
                break;
            }
            if self.stops.told_ns.saturating_sub(self.progress.last_told) >= PROGRESS_NS {
                self.progress.last_told = self.stops.told_ns;
                control.progress(self.table.calls, self.processes.len(), self.root.exit.is_some());
            }
        }
    }

    /// Returns the next stop. The kernel reports stops in an order of its own, in which busy threads would starve
    /// others. Therefore, after every few stops, the stops of all threads are collected and handled in turn.
    fn wait(&mut self) -> Waited {
        if self.stops.told.is_empty() && self.threads.len() > 1 {
            // Collecting costs twice as much as a single wait. While one thread's stops arrive by themselves, a few are
            // handled as they come: no other thread waits longer than these take.
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
            // Another program may have had our processor for long after the stop came.
            Some(none_yet) => self.stops.woken_ns = none_yet,
            None if self.stops.told_ns.saturating_sub(asked) > SLEPT_NS => self.stops.woken_ns = self.stops.told_ns,
            None => {}
        }
        waited
    }

    /// Returns true if yielding the processor falsifies no measured wait: no thread is in a call that may wait.
    fn may_give_way(&self) -> bool {
        let waits = |thread: &Thread| {
            thread.pending.as_ref().is_some_and(|call| call.signature.is_none_or(|signature| signature.waits))
        };
        self.threads.len() <= FEW_THREADS && !self.threads.values().any(waits)
    }

    /// Returns true if we yielded our processor for long while we waited for the last stop.
    pub(super) fn gave_way(&self) -> bool {
        self.patience.gave_way_at().is_some()
    }

    /// Collects all pending stops. Hands each signal back at once: it would be lost if we were killed.
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

    /// Returns a stop of thread `tid` that was collected but not handled yet.
    pub(super) fn take_collected(&mut self, tid: i32) -> Option<Stop> {
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

    fn handle_signals(&mut self, signals: &Signals, control: &mut dyn Control, linger: Duration) {
        let wanted = signals.take_requests();
        if wanted.snapshot && control.wants_snapshot() {
            let recording = self.recording_so_far();
            control.snapshot(recording);
        }
        if self.awaited.take_seen() {
            control.seen();
        }
        if self.attachment.is_some() && (wanted.ending.is_some() || control.leaves()) {
            self.leave_all();
            self.progress.cut_short = true;
            return;
        }
        let ended = self.root.exit.is_some();
        let state = (ended, control.leaves());
        let Some(why) = self.progress.ending.reason_to_end(&wanted, sys::now(), state, linger) else { return };
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
        if self.is_asked(tid, signal) {
            return self.resume(tid, 0);
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.signals += 1;
        }
        self.before_handler(tid, signal);
        self.resume(tid, signal);
    }

    fn resume_at(&mut self, tid: i32) {
        let now = sys::now();
        let took = now.saturating_sub(self.stops.begun_ns);
        // The time for reading a new file's names is not part of each call's cost.
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

    /// Resumes a thread, even one that we don't know, since only its tracer can resume it. A thread that was killed
    /// meanwhile reports its own end, and a thread that was let go is not ours to resume.
    pub(super) fn resume(&self, tid: i32, signal: i32) {
        let _ = match self.counts_itself(tid) {
            true => tracee::resume(tid, signal),
            false => tracee::resume_to_call(tid, signal),
        };
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
                // The thread was killed before its first stop, and its parent before reporting it.
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
                self.restart_at_entering(tid);
                self.begins(tid);
                self.resume(tid, 0);
            }
            _ => self.resume(tid, 0),
        }
    }

    /// Detaches from every thread; they run on unwatched.
    pub(super) fn let_everything_go(&mut self) {
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
                stop => self.leave_stopped(stop),
            }
            waiting.retain(|tid| self.threads.contains_key(tid));
        }
        for tid in self.threads.keys().copied().collect::<Vec<_>>() {
            self.release(tid, 0);
        }
    }

    /// Makes a thread restart its call if it stops for the first time, and entering it has cut the call off.
    fn restart_at_entering(&mut self, tid: i32) {
        if let Some(waits) = self.threads.get_mut(&tid).and_then(|thread| thread.entered.take()) {
            waits.restart(tid);
        }
    }

    /// Detaches from a thread that has stopped, as if nothing had stopped it.
    pub(super) fn leave_stopped(&mut self, stop: Stop) {
        let tid = stop.tid();
        let asked = matches!(stop, Stop::Signal { signal, .. } if self.is_asked(tid, signal));
        // Watching may end before the stop of entering has been seen.
        if matches!(stop, Stop::Event { event: libc::PTRACE_EVENT_STOP, .. }) && !stop.is_group_stop() {
            self.restart_at_entering(tid);
        }
        let call = self.threads.get(&tid).and_then(|thread| thread.pending.as_ref());
        if call.is_some_and(|call| tracee::is_cut_off(call.syscall))
            && tracee::call(tid) == Ok(Call::Exit { result: tracee::CUT_OFF })
        {
            // A thread that was killed meanwhile has no result.
            let _ = tracee::set_result(tid, tracee::RESTART_UNLESS_HANDLED);
        }
        let signal = if asked { None } else { stop.signal_to_leave_with() };
        self.release(tid, signal.unwrap_or(0));
    }

    /// Detaches from one thread and forgets it.
    pub(super) fn release(&mut self, tid: i32, signal: i32) {
        self.take_out(tid);
        let _ = tracee::detach(tid, signal);
        self.end_thread(tid);
    }
}
