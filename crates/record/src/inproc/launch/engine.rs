//! The launcher's loop: answers what threads ask, follows execs, and knows when all is over.

use super::files::Files;
use super::finish::Around;
use super::memory::Memory;
use super::program::Program;
use super::seeds::Seeds;
use super::sites::AllSites;
use super::sys::{self, ChildSignal, Stop};
use super::will::Will;
use crate::Error;
use crate::backend::{Control, Launch};
use crate::launch::Held;
use crate::signals::{LETTING_GO_NS, STAYS, Signals};
use crate::table::Table;
use crate::windows::Windows;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use systoll_hooks::assemble::MadeInPlace;
use systoll_hooks::layout::{global, image, slots_used};
use systoll_hooks::plan::Kind;
use systoll_model::{Exit, Problem, ProblemKind};
use systoll_symbols::{ModuleKey, Symbols};

/// How long a thread waits for an answer before it goes on by itself.
pub(super) const LIMIT: Duration = Duration::from_millis(250);
/// The same where a file may have to be planned: tens of milliseconds for a C library, on a busy
/// box and by unoptimised code many times that.
pub(super) const LONG_LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 2 });
/// How long it waits for a launcher that is at something.
pub(super) const BUSY_LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 8 });
/// How often a waiting thread looks before it sleeps, where launcher and thread can run at once. More
/// would serve programs that begin, but where thousands of threads ask at once all of them look before
/// the launcher has its turn, and that must come within [`LIMIT`].
const SPINS: u64 = 2_000;
/// How long it sleeps at most.
const SLEEP: Duration = Duration::from_millis(20);
/// The same while there are programs that may not wake it, or that make threads so quickly that they
/// would have to wait for slots.
const QUIET_SLEEP: Duration = Duration::from_micros(300);
/// How often progress is told, and ended programs are looked for.
const HOUSEKEEPING_NS: u64 = 100_000_000;

/// A thread that was seized for its coming exec.
pub(super) struct Seized {
    /// Its program and slot.
    pub(super) from: Option<(u32, u64)>,
}

/// Everything a run's watching knows.
pub(super) struct Engine {
    /// Dropped before the memory it speaks of.
    _will: Will,
    pub(super) memory: Memory,
    pub(super) files: Files,
    pub(super) symbols: Symbols,
    pub(super) table: Table,
    pub(super) windows: Windows,
    pub(super) seeds: Seeds,
    pub(super) programs: HashMap<u32, Program>,
    /// What is known of programs of each file.
    pub(super) alike: HashMap<std::sync::Arc<str>, super::furnish::Alike>,
    /// The `maps` file that was looked at last, and of which program's thread it is.
    pub(super) maps_file: Option<(u32, i32, std::rc::Rc<std::fs::File>)>,
    /// The stack that was unwound for the last question, if that was about a context.
    pub(super) unwound: Option<super::window::LastUnwound>,
    /// Windows open in threads, by program and slot.
    pub(super) open: HashMap<(u32, u64), super::window::Open>,
    pub(super) ordinals: HashMap<(u32, u64), u32>,
    pub(super) next_ordinal: u32,
    pub(super) seized: HashMap<i32, Seized>,
    /// Of them, those whose exec has failed: they are let go unless another follows at once.
    pub(super) lingering: Vec<i32>,
    /// An image made ahead of the next exec.
    pub(super) spare: Option<u32>,
    /// Programs whose trees are to be grown from those of others once their thread has gone on.
    pub(super) unsown: Vec<u32>,
    pub(super) problems: Vec<Problem>,
    pub(super) root: i32,
    pub(super) root_image: Option<u32>,
    pub(super) root_exit: Option<Exit>,
    /// Whether the command has ended since anybody looked whether all is over.
    just_ended: bool,
    /// Programs that have ended and are not harvested yet.
    pub(super) ended: Vec<u32>,
    pub(super) root_refused: Option<String>,
    pub(super) exec_done: bool,
    pub(super) privileged: bool,
    pub(super) start_ns: u64,
    /// By the time stamp counter.
    pub(super) start_cycles: u64,
    pub(super) ratio: super::clock::Ratio,
    pub(super) around: Around,
    pub(super) seed: u64,
    pub(super) audit_base: Option<crate::procfs::IoCalls>,
    pub(super) audit_end: Option<crate::procfs::IoCalls>,
    /// Execs and forks below the command's own process: its audit says nothing then.
    pub(super) quiet: bool,
    pub(super) vdso_calls: u64,
    /// Processor time new programs spent on mapping our memory, ns.
    pub(super) births_ns: u64,
    /// How many did.
    pub(super) births: u64,
    /// Processor time threads spent on asking.
    pub(super) asked: super::cpu::Ours,
    /// What the command's own process had used before its exec, ns.
    pub(super) before_exec_ns: u64,
    /// What a hand-shake takes beside what is seen of it.
    pub(super) asking: super::cpu::Asking,
    /// Bits of what is to be answered in place.
    pub(super) elided: u32,
    /// Calls made that were to be answered so.
    pub(super) in_place: MadeInPlace,
    /// Whether programs may write over their own code.
    pub(super) writes_code: bool,
    /// Files and places found whose calls nobody counts, again and again.
    pub(super) unhooked: u64,
    /// Of files that map others, and of the first that they map.
    pub(super) kinds: HashMap<ModuleKey, Option<Kind>>,
    /// How places that make calls were hooked.
    pub(super) sites: AllSites,
    /// Processors that launcher, targets and who reads ahead have between them.
    pub(super) processors: usize,
    /// Who reads ahead.
    pub(super) reader: Option<JoinHandle<()>>,
    /// Held while the launcher stays on one processor.
    pub(super) stay: Option<sys::Stay>,
    /// Whether who asked last was on our processor, or would not look for an answer.
    pub(super) asked_here: bool,
    /// When what the launcher is at was begun, by the time stamp counter.
    pub(super) item: u64,
    /// Until when more questions of programs that begin are to be expected.
    pub(super) births_until: u64,
    /// Until when somebody else is taken to want our processor.
    pub(super) crowded_until: u64,
    /// When it was last offered.
    pub(super) offered: u64,
    /// When there last was something to do, ns.
    pub(super) answered: u64,
    told_to_end: Option<u64>,
    last_housekeeping: u64,
    last_desertion: u64,
    last_reap: u64,
    cut_short: bool,
}

impl Engine {
    /// # Errors
    /// When no memory can be shared.
    pub(super) fn new(
        launch: &Launch,
        (files, symbols): (Files, Symbols),
        around: Around,
        ratio: super::clock::Ratio,
    ) -> Result<Self, Error> {
        let memory = Memory::new()?;
        let mut engine = Self {
            _will: Will::new(memory.global()),
            memory,
            files,
            symbols,
            table: Table::default(),
            windows: Windows::new(launch.windows.clone(), launch.seed),
            seeds: Seeds::default(),
            programs: HashMap::new(),
            alike: HashMap::new(),
            maps_file: None,
            unwound: None,
            open: HashMap::new(),
            ordinals: HashMap::new(),
            next_ordinal: 0,
            seized: HashMap::new(),
            lingering: Vec::new(),
            spare: None,
            unsown: Vec::new(),
            problems: Vec::new(),
            root: 0,
            root_image: None,
            root_exit: None,
            just_ended: false,
            ended: Vec::new(),
            root_refused: None,
            exec_done: false,
            privileged: crate::setid::can_trace_privileged(),
            start_ns: sys::now(),
            start_cycles: sys::tsc(),
            ratio,
            around,
            seed: launch.seed,
            audit_base: None,
            audit_end: None,
            quiet: false,
            vdso_calls: 0,
            births_ns: 0,
            births: 0,
            asked: super::cpu::Ours::default(),
            before_exec_ns: 0,
            asking: super::cpu::Asking::new(super::clock::cpu_reading_ns(), ratio.cycles_per_ns()),
            elided: super::elided(&launch.elisions),
            in_place: MadeInPlace::default(),
            writes_code: super::filter::may_write_code(),
            unhooked: 0,
            kinds: HashMap::new(),
            sites: AllSites::default(),
            processors: sys::processors(),
            reader: None,
            stay: None,
            asked_here: false,
            item: 0,
            births_until: 0,
            crowded_until: 0,
            offered: 0,
            answered: 0,
            told_to_end: None,
            last_housekeeping: 0,
            last_desertion: 0,
            last_reap: 0,
            cut_short: false,
        };
        engine.set_up_global();
        if let Ok(metadata) = engine.memory.metadata() {
            engine.symbols.ignore(&metadata);
        }
        Ok(engine)
    }

    fn set_up_global(&self) {
        let g = self.memory.global();
        let cycles = |d: Duration| (d.as_nanos() as f64 * self.ratio.cycles_per_ns()) as u64;
        g.set(global::SPINS, self.spins());
        g.set(global::LIMIT, LIMIT.as_secs());
        g.set(global::LIMIT + 8, u64::from(LIMIT.subsec_nanos()));
        g.set(global::LIMIT_CYCLES, cycles(LIMIT));
        g.set(global::LONG_LIMIT_CYCLES, cycles(LONG_LIMIT));
        g.set(global::BUSY_CYCLES, cycles(BUSY_LIMIT));
        g.set(global::AWAKE, 1);
    }

    /// How often a thread looks for its answer before it sleeps.
    pub(super) fn spins(&self) -> u64 {
        if self.processors > 1 { SPINS } else { 0 }
    }

    /// Nanoseconds since the run's start.
    pub(super) fn at(&self, now: u64) -> u64 {
        now.saturating_sub(self.start_ns)
    }

    /// Notes a problem once.
    pub(super) fn problem(&mut self, kind: ProblemKind, text: impl Into<String>) {
        let problem = Problem::new(kind, text);
        self.unhooked += u64::from(kind == ProblemKind::Lost);
        if self.problems.len() < 64 && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Takes in the held child and drives it up to its exec's outcome.
    ///
    /// # Errors
    /// When it can't be attached to.
    pub(super) fn begin(&mut self, mut held: Held) -> Result<Option<Held>, Error> {
        let pid = held.pid;
        self.root = pid;
        if let Err(errno) = sys::seize(pid) {
            // Dropping the pipe makes the child leave without having become the program.
            drop(held);
            let _ = sys::wait(Some(pid), true);
            return Err(super::refused(format!("PTRACE_SEIZE of a child of our own: {}", errno.desc())));
        }
        self.seized.insert(pid, Seized { from: None });
        self.before_exec_ns = sys::process_cpu(pid).unwrap_or(0);
        self.around.children_before = sys::children_times();
        self.start_ns = sys::now();
        held.release().map_err(|e| Error::own("can't let the child go", e))?;
        while !self.exec_done && self.root_exit.is_none() {
            match sys::wait(None, true) {
                Ok(Some(stop)) => self.on_stop(stop, None),
                Ok(None) | Err(nix::errno::Errno::EINTR) => {}
                Err(_) => break,
            }
        }
        Ok((!self.exec_done).then_some(held))
    }

    /// Waits for the command's own process, which has been told to end.
    pub(super) fn wait_for_root(&mut self) {
        while self.root_exit.is_none() {
            match sys::wait(Some(self.root), true) {
                Ok(Some(stop)) => self.on_stop(stop, None),
                Ok(None) | Err(nix::errno::Errno::EINTR) => {}
                Err(_) => break,
            }
        }
    }

    /// Watches until every process that has our memory mapped has ended, or the command has and
    /// we were told to end.
    pub(super) fn watch(&mut self, signals: &Signals, control: &mut dyn Control, linger: Duration) {
        let _child_signal = ChildSignal::new();
        while !self.over() {
            self.look_for_reader();
            sys::aim(self.wake_word());
            let seen = self.wake_word().map_or(0, |w| w.load(Ordering::SeqCst));
            let began = sys::now();
            // Programs may ask without end: the rest has its turn all the same.
            while sys::now().saturating_sub(began) < HOUSEKEEPING_NS {
                self.begin_item();
                if self.serve() | self.reap(Some(signals)) {
                    self.answered = sys::now();
                    self.make_ahead();
                } else if self.just_ended || !self.looks_on() {
                    break;
                }
                // However much there is to answer.
                if signals.is_asking() {
                    break;
                }
            }
            self.begin_item();
            for tid in std::mem::take(&mut self.lingering) {
                self.let_go(tid);
            }
            let brisk = self.recycle_some();
            self.look(signals, control, linger);
            self.housekeeping(control);
            let more = self.harvest_ended() | std::mem::take(&mut self.just_ended);
            if !self.cut_short && !more {
                self.sleep(seen, brisk);
            }
        }
        sys::aim(None);
        self.memory.global().set(global::BUSY, 0);
        self.memory.global().set(global::DEAD, 1);
    }

    fn wake_word(&self) -> Option<&AtomicU32> {
        self.memory.global().half(global::WAKE)
    }

    /// Sleeps unless something came since `seen` was read. `brisk`: threads come and go quickly.
    fn sleep(&mut self, seen: u32, brisk: bool) {
        let quiet = self.quiet;
        let Some(word) = self.wake_word() else { return };
        self.memory.global().set(global::BUSY, 0);
        self.memory.global().set(global::AWAKE, 0);
        std::sync::atomic::fence(Ordering::SeqCst);
        if !self.is_asked() {
            let ended = self.root_exit.is_some();
            let limit = if quiet || brisk {
                QUIET_SLEEP
            } else if ended {
                Duration::from_millis(2)
            } else {
                SLEEP
            };
            sys::futex_wait(word, seen, limit);
        }
        self.memory.global().set(global::AWAKE, 1);
    }

    /// Slots of a program that may be in use: the first ones.
    pub(super) fn slots_drawn(&self, program: u32) -> u64 {
        let (drawn, given) =
            self.memory.image(program).map_or((0, 0), |a| (a.get(image::NEXT_SLOT), a.get(image::GIVEN)));
        slots_used(drawn, given)
    }

    /// Whether it is time to look for changed children though no signal told of one: it may have
    /// come before there was a handler, or to somebody who waits for it by other means.
    fn look_anyway(&mut self) -> bool {
        const EVERY_NS: u64 = 10_000_000;
        let now = sys::now();
        let due = now.saturating_sub(self.last_reap) >= EVERY_NS;
        if due {
            self.last_reap = now;
        }
        due
    }

    /// Takes what waitpid has; whether there was anything.
    fn reap(&mut self, signals: Option<&Signals>) -> bool {
        let mut did = false;
        if !sys::children_changed() && !self.look_anyway() {
            return false;
        }
        if self.root_exit.is_none() && sys::has_ended(self.root) {
            // What can be read of it can be read now only.
            self.audit_end = crate::procfs::io_calls(self.root);
            self.note_cpu();
        }
        while let Ok(Some(stop)) = sys::wait(None, false) {
            self.on_stop(stop, signals);
            did = true;
        }
        did
    }

    fn on_stop(&mut self, stop: Stop, signals: Option<&Signals>) {
        match stop {
            Stop::Event { tid, event: libc::PTRACE_EVENT_EXEC, .. } => {
                let former = sys::event_message(tid).unwrap_or(tid);
                let seized = self.no_longer_seized(former).or_else(|| self.no_longer_seized(tid));
                self.exec_done = true;
                self.expect_births();
                self.on_exec(tid, seized.and_then(|s| s.from));
            }
            Stop::Event { tid, event: libc::PTRACE_EVENT_STOP, signal } if is_job_control(signal) => {
                let _ = sys::listen(tid);
            }
            Stop::Event { tid, .. } => drop(sys::resume(tid, 0)),
            Stop::Signal { tid, signal } => drop(sys::resume(tid, signal)),
            Stop::Exited { tid, code } => self.on_gone(tid, Exit::Code(code), signals),
            Stop::Killed { tid, signal } => self.on_gone(tid, Exit::Signal(signal), signals),
        }
    }

    fn on_gone(&mut self, tid: i32, exit: Exit, signals: Option<&Signals>) {
        self.no_longer_seized(tid);
        if tid != self.root {
            return;
        }
        self.root_exit = Some(exit);
        self.just_ended = true;
        if let Some(signals) = signals {
            signals.target_gone();
        }
    }

    fn look(&mut self, signals: &Signals, control: &mut dyn Control, linger: Duration) {
        let wanted = signals.look();
        if wanted.snapshot {
            let recording = self.recording_so_far();
            control.snapshot(&recording);
        }
        let now = sys::now();
        if wanted.ending.is_some() {
            self.told_to_end.get_or_insert(now);
        }
        if wanted.give_up && self.root_exit.is_none() {
            self.problem(ProblemKind::CutShort, STAYS);
            self.let_everything_go();
            self.cut_short = true;
            return;
        }
        let Some(told) = self.told_to_end else { return };
        if self.root_exit.is_some() && now.saturating_sub(told) >= linger.as_nanos() as u64 {
            let left = self.living();
            self.problem(
                ProblemKind::CutShort,
                format!("{left} processes the command left behind were still running and are no longer watched"),
            );
            self.let_everything_go();
            self.cut_short = true;
        }
    }

    fn let_everything_go(&mut self) {
        self.memory.global().set(global::DEAD, 1);
        let deadline = sys::now() + LETTING_GO_NS;
        for tid in self.seized.keys().copied().collect::<Vec<_>>() {
            self.let_go_by(tid, deadline);
        }
    }

    fn no_longer_seized(&mut self, tid: i32) -> Option<Seized> {
        self.lingering.retain(|t| *t != tid);
        self.seized.remove(&tid)
    }

    /// Detaches from a thread that was seized and may be running: it has to stop first.
    pub(super) fn let_go(&mut self, tid: i32) {
        self.let_go_by(tid, sys::now() + 500_000_000);
    }

    /// The same, while it is not later than `deadline`.
    fn let_go_by(&mut self, tid: i32, deadline: u64) {
        self.no_longer_seized(tid);
        if sys::interrupt(tid).is_err() {
            return;
        }
        while sys::now() < deadline {
            let signal = match sys::wait(Some(tid), false) {
                Ok(None) | Err(nix::errno::Errno::EINTR) => {
                    std::thread::yield_now();
                    continue;
                }
                Ok(Some(Stop::Signal { signal, .. })) => signal,
                Ok(Some(Stop::Event { event: libc::PTRACE_EVENT_STOP, signal, .. })) if is_job_control(signal) => {
                    libc::SIGSTOP
                }
                Ok(Some(Stop::Event { .. })) => 0,
                Ok(Some(stop)) => return self.on_stop(stop, None),
                Err(_) => return,
            };
            let _ = sys::detach(tid, signal);
            return;
        }
    }

    fn housekeeping(&mut self, control: &mut dyn Control) {
        let now = sys::now();
        if now.saturating_sub(self.last_housekeeping) < HOUSEKEEPING_NS {
            return;
        }
        self.last_housekeeping = now;
        self.find_ended();
        self.note_cpu();
        control.progress(self.table.calls, self.programs.len(), self.root_exit.is_some());
    }

    /// Whether all is over: the kernel says that nobody has our memory mapped, and nobody is about to.
    fn over(&mut self) -> bool {
        if self.cut_short {
            return true;
        }
        if self.root_exit.is_none() || !self.seized.is_empty() {
            return false;
        }
        let about_to = |p: &Program| p.newborn.is_some() && sys::exists(p.pid);
        if self.programs.values().any(about_to) {
            return false;
        }
        if self.was_alone() {
            return true;
        }
        let now = sys::now();
        if self.living() > 0 && now.saturating_sub(self.last_desertion) < HOUSEKEEPING_NS {
            return false;
        }
        self.last_desertion = now;
        let ids: Vec<u32> = self.programs.keys().copied().collect();
        ids.into_iter().all(|id| match self.memory.is_deserted(id) {
            Ok(deserted) => deserted.unwrap_or_else(|| !self.is_mapped(id)),
            Err(e) => {
                self.problem(ProblemKind::CutShort, format!("can't share memory any more: {e}"));
                true
            }
        })
    }
}

fn is_job_control(signal: i32) -> bool {
    matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
}
