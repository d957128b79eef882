//! The launcher's loop: answers threads' questions, follows execs, and recognises when the run is over.

use crate::assemble::RunFacts;
use crate::backend::{Closely, Control, HowToWatch};
use crate::ending::CutShort;
use crate::error::Error;
use crate::inproc::monitor::attach::leave;
use crate::inproc::monitor::death_notice::DeathNotice;
use crate::inproc::monitor::exec::files::Files;
use crate::inproc::monitor::exec::{on_exec, provision, seccomp};
use crate::inproc::monitor::handles::ProgramId;
use crate::inproc::monitor::next_question::{Kind, LastWork};
use crate::inproc::monitor::polling::{BUSY_LIMIT, LIMIT, LONG_LIMIT, Polling};
use crate::inproc::monitor::program::{Program, Programs};
use crate::inproc::monitor::requests::open_windows::OpenWindows;
use crate::inproc::monitor::requests::{frequent_first, late_code, received, serve, short_threads, slots, windows};
use crate::inproc::monitor::results::clock::{self, Ratio, RunClock};
use crate::inproc::monitor::results::cpu_time::AskingCost;
use crate::inproc::monitor::results::run_stats::{Around, ImageSums, RunStats};
use crate::inproc::monitor::results::sites::AllSites;
use crate::inproc::monitor::results::{collect, in_place, recording, ring_take, turns};
use crate::inproc::monitor::root_process::RootProcess;
use crate::inproc::monitor::session::{
    Chores, DraftRecording, FileKnowledge, NoCalls, Provisioning, Reuse, Session, Targets, TracedProcesses,
};
use crate::inproc::monitor::shared::memory::{Area, Memory};
use crate::inproc::monitor::spending::Spending;
use crate::inproc::monitor::sys::{self, ChildSignal};
use crate::inproc::monitor::tracees::{Seized, Tracees};
use crate::launch::Held;
use crate::moment::{Awaited, is_asked_at};
use crate::problems::Problems;
use crate::signals::{LETTING_GO_NS, Signals};
use crate::sys::own_cpu;
use crate::table::Table;
use crate::tracee::{self, Stop, Waited};
use crate::windows::Windows;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use systoll_hooks::layout::{capture, global, ring};
use systoll_model::{BackendKind, Exit, ProblemKind, Signature};
use systoll_symbols::Symbols;

/// Longest sleep of the launcher.
const SLEEP: Duration = Duration::from_millis(20);
/// Longest sleep when nothing has happened for some time: threads, children and signals wake the launcher.
const CALM_SLEEP: Duration = Duration::from_millis(100);
/// Time without events after which [`CALM_SLEEP`] applies, ns.
const CALM_AFTER_NS: u64 = 300_000_000;
/// Longest sleep while there are programs that may not wake it, or that make threads so quickly that they would have to
/// wait for slots.
const QUIET_SLEEP: Duration = Duration::from_micros(300);
/// Longest sleep while windows are to open where threads receive.
const RECEIVING_SLEEP: Duration = Duration::from_millis(5);
/// Longest sleep where calls are answered in turns: orders wake nobody.
const TURN_SLEEP: Duration = Duration::from_millis(10);
/// Interval between progress reports, and between searches for ended programs at most, ns.
const HOUSEKEEPING_NS: u64 = 100_000_000;

/// Creates a session in which nothing is watched yet.
pub(crate) fn new_session(
    how: &HowToWatch,
    (memory, polling): (Memory, Polling),
    (files, symbols): (Files, Symbols),
    (facts, around): (RunFacts, Around),
    ratio: Ratio,
) -> Session {
    let mut session = Session {
        _death_notice: DeathNotice::new(memory.global()),
        targets: Targets { memory, programs: Programs::default() },
        knowledge: FileKnowledge {
            symbols,
            provisioning: Provisioning {
                files,
                spare: None,
                maps_file: None,
                elided: in_place::bits(&how.elisions),
                writes_code: seccomp::may_write_code(),
                writes_windows: writes_windows(how),
                kinds: HashMap::new(),
                no_calls: NoCalls::default(),
                sites: AllSites::default(),
            },
            reuse: Reuse::default(),
        },
        draft: DraftRecording {
            table: Table::listing_longer(how.longer),
            windows: OpenWindows::new(Windows::new(how.windows.clone(), how.seed)),
            stats: RunStats {
                facts,
                around,
                counted: ImageSums::default(),
                starts_ns: 0,
                watching_ns: 0,
                launcher_ns: 0,
                starts: 0,
                asking: AskingCost::new(clock::cpu_reading_ns(), ratio.cycles_per_ns()),
            },
            clock: RunClock::begin(ratio),
            problems: Problems::default(),
            awaited: Awaited::default(),
        },
        traced: TracedProcesses { tracees: Tracees::new(), root: RootProcess::default() },
        polling,
        chores: Chores::default(),
        spending: Spending::new(&how.windows, own_cpu()),
    };
    set_up_global(&session, how);
    if let Ok(metadata) = session.targets.memory.metadata() {
        session.knowledge.symbols.ignore(&metadata);
    }
    session
}

/// Returns true if threads may write windows by themselves: the launcher samples calls at all, a window has as many
/// calls as threads write, their clocks tell the time, and no filter forbids the calls that copying takes.
fn writes_windows(how: &HowToWatch) -> bool {
    let as_many = how.closely == Closely::All && how.windows.calls == ring::CALLS as usize;
    as_many && clock::is_constant() && seccomp::may_copy()
}

fn set_up_global(session: &Session, how: &HowToWatch) {
    let g = session.targets.memory.global();
    let cycles = |d: Duration| (d.as_nanos() as f64 * session.draft.clock.ratio.cycles_per_ns()) as u64;
    g.set(global::SPINS, session.polling.spins());
    g.set(global::LIMIT, LIMIT.as_secs());
    g.set(global::LIMIT + 8, u64::from(LIMIT.subsec_nanos()));
    g.set(global::LIMIT_CYCLES, cycles(LIMIT));
    g.set(global::LONG_LIMIT_CYCLES, cycles(LONG_LIMIT));
    g.set(global::BUSY_CYCLES, cycles(BUSY_LIMIT));
    g.set(global::AWAKE, 1);
    g.set(global::ANSWERING, session.knowledge.provisioning.elided.into());
    let receives = session.draft.windows.budget.tells_requests();
    let asks = |signature: &Signature| is_asked_at(how, signature);
    capture::words(session.knowledge.provisioning.writes_windows, receives, &asks)
        .into_iter()
        .for_each(|(at, word)| g.set(at, word));
}

/// Adds the held child and drives it until its exec has succeeded or failed.
///
/// # Errors
/// If it can't be attached to.
pub(crate) fn begin(session: &mut Session, mut held: Held) -> Result<Option<Held>, Error> {
    let pid = held.pid;
    session.traced.root.pid = pid;
    if let Err(errno) = tracee::seize(pid, tracee::EXECS) {
        // When the pipe is dropped, the child exits without executing the program.
        drop(held);
        let _ = tracee::wait_for(pid, true);
        return Err(Error::refused(
            BackendKind::Inproc,
            format!("PTRACE_SEIZE of a child of our own: {}", errno.desc()),
        ));
    }
    session.traced.tracees.seized.insert(pid, Seized { from: None });
    session.traced.root.before_exec_ns = sys::process_cpu(pid).unwrap_or(0);
    session.draft.stats.facts.children_before = sys::children_times();
    session.draft.stats.facts.ours_before = crate::sys::launcher_times();
    session.draft.clock.restart();
    held.release().map_err(|e| Error::own("can't let the child go", e))?;
    while !session.traced.root.exec_done && session.traced.root.exit.is_none() {
        match tracee::wait_any(true) {
            Waited::Stop(stop) => {
                let began = sys::now();
                on_stop(session, stop, None);
                session.draft.stats.watched_since(began);
            }
            Waited::NothingYet | Waited::Interrupted => {}
            Waited::NoChildren => break,
        }
    }
    Ok((!session.traced.root.exec_done).then_some(held))
}

/// Waits for the end of the command's own process, which has been told to end.
pub(crate) fn wait_for_root(session: &mut Session) {
    while session.traced.root.exit.is_none() {
        match tracee::wait_for(session.traced.root.pid, true) {
            Waited::Stop(stop) => on_stop(session, stop, None),
            Waited::NothingYet | Waited::Interrupted => {}
            Waited::NoChildren => break,
        }
    }
}

/// Watches until every process that has our memory mapped has ended, or until the command has ended and we were told to
/// end.
pub(crate) fn watch(session: &mut Session, signals: &Signals, control: &mut dyn Control, linger: Duration) {
    let _child_signal = ChildSignal::new();
    session.spending.note(own_cpu(), true);
    while !over(session) {
        session.polling.look_for_reader(session.targets.memory.global());
        sys::aim(wake_word(&session.targets.memory));
        let seen = wake_word(&session.targets.memory).map_or(0, |w| w.load(Ordering::SeqCst));
        let began = sys::now();
        // Programs may ask without end, so the other work gets its turn after [`HOUSEKEEPING_NS`].
        loop {
            let now = sys::now();
            if now.saturating_sub(began) >= HOUSEKEEPING_NS {
                break;
            }
            session.polling.begin_item(session.targets.memory.global());
            let before = std::mem::take(&mut session.polling.done);
            if serve::serve(session) | reap(session, Some(signals)) {
                session.draft.stats.watched_since(now);
                session.polling.note_found(&before, now);
                session.polling.answered = sys::now();
                ring_take::take_new(&mut session.targets, &mut session.draft);
                windows::settle_who_opens(&mut session.targets, &session.knowledge.provisioning, &session.draft);
                received::arm_one(&session.targets.memory, &mut session.draft);
                provision::make_ahead(session);
            } else {
                session.polling.done = before;
                if session.traced.root.just_ended || !session.polling.looks_on() {
                    break;
                }
            }
            // Signals are checked however much there is to answer.
            if signals.is_asking() || session.draft.awaited.is_seen() {
                break;
            }
        }
        session.polling.begin_item(session.targets.memory.global());
        for tid in std::mem::take(&mut session.traced.tracees.lingering) {
            session.traced.tracees.let_go(&mut session.traced.root, tid);
        }
        // Recycled slots are wiped: they don't tell any more how many calls their threads made.
        short_threads::sample_again(&mut session.targets, &mut session.draft.windows);
        let brisk = slots::recycle_some(&mut session.targets, &mut session.draft);
        ring_take::take_new(&mut session.targets, &mut session.draft);
        windows::settle_who_opens(&mut session.targets, &session.knowledge.provisioning, &session.draft);
        received::arm_one(&session.targets.memory, &mut session.draft);
        handle_signals(session, signals, control, linger);
        housekeeping(session, control);
        let more = collect::collect_ended(session) | std::mem::take(&mut session.traced.root.just_ended);
        let needed = std::mem::take(&mut session.chores.did_needed) | more;
        session.spending.note(own_cpu(), needed);
        if !session.traced.root.cut_short && !more {
            sleep(session, seen, brisk);
        }
    }
    sys::aim(None);
    session.targets.memory.global().set(global::BUSY, 0);
    session.targets.memory.global().set(global::DEAD, 1);
}

fn wake_word(memory: &Memory) -> Option<&AtomicU32> {
    memory.global().half(global::WAKE)
}

/// Sleeps unless something has happened since `seen` was read. `brisk` is true if threads come and go quickly.
fn sleep(session: &mut Session, seen: u32, brisk: bool) {
    let quiet = session.polling.quiet;
    let Some(word) = wake_word(&session.targets.memory) else { return };
    session.targets.memory.global().set(global::BUSY, 0);
    session.targets.memory.global().set(global::AWAKE, 0);
    std::sync::atomic::fence(Ordering::SeqCst);
    if !serve::is_asked(&session.targets) {
        let ended = session.traced.root.exit.is_some();
        let limit = if quiet || brisk {
            QUIET_SLEEP
        } else if ended {
            Duration::from_millis(2)
        } else if !session.draft.windows.receive_nodes.is_empty() {
            RECEIVING_SLEEP
        } else if sys::now().saturating_sub(session.polling.answered) >= CALM_AFTER_NS {
            CALM_SLEEP
        } else {
            SLEEP
        };
        let deadline = session.traced.root.attached.and_then(|attached| attached.deadline);
        let left = deadline.map(|deadline| Duration::from_nanos(deadline.saturating_sub(sys::now())));
        let limit =
            if session.traced.root.attached.is_some_and(|attached| attached.in_turns) { TURN_SLEEP } else { limit };
        sys::futex_wait(word, seen, left.map_or(limit, |left| left.min(limit)));
    }
    session.targets.memory.global().set(global::AWAKE, 1);
}

/// Returns true if it is time to check for changed children without a signal. The signal may have come before there was
/// a handler, or may have gone to a caller of systoll that waits for it in another way.
fn look_anyway(chores: &mut Chores) -> bool {
    const EVERY_NS: u64 = 10_000_000;
    let now = sys::now();
    let due = now.saturating_sub(chores.last_reap) >= EVERY_NS;
    if due {
        chores.last_reap = now;
    }
    due
}

/// Takes the reports of children that have stopped or ended. Returns true if there were any.
fn reap(session: &mut Session, signals: Option<&Signals>) -> bool {
    let mut did = false;
    if !sys::children_changed() && !look_anyway(&mut session.chores) {
        return false;
    }
    if session.traced.root.exit.is_none() && tracee::has_ended(session.traced.root.pid) {
        // This is the last moment at which these figures can be read.
        session.traced.root.audit_end = crate::procfs::io_calls(session.traced.root.pid);
        note_cpu(&mut session.targets);
        note_queued(session);
    }
    while let Waited::Stop(stop) = tracee::wait_any(false) {
        on_stop(session, stop, signals);
        did = true;
    }
    session.chores.did_needed |= did;
    did
}

fn on_stop(session: &mut Session, stop: Stop, signals: Option<&Signals>) {
    let kind = match stop {
        Stop::Event { event: libc::PTRACE_EVENT_EXEC, .. } => Kind::Exec,
        Stop::Exited { .. } | Stop::Killed { .. } => Kind::Ended,
        _ => Kind::Other,
    };
    session.polling.done = LastWork { kind, place: None };
    match stop {
        Stop::Event { tid, event: libc::PTRACE_EVENT_EXEC, .. } => {
            let former = tracee::event_message(tid).unwrap_or(tid);
            let seized = session.traced.tracees.forget(former).or_else(|| session.traced.tracees.forget(tid));
            session.traced.root.exec_done = true;
            on_exec::on_exec(session, tid, seized.and_then(|s| s.from));
        }
        _ if stop.is_group_stop() => drop(tracee::listen(stop.tid())),
        Stop::Event { tid, .. } | Stop::Syscall { tid } => drop(tracee::resume(tid, 0)),
        Stop::Signal { tid, signal } => drop(tracee::resume(tid, signal)),
        Stop::Exited { tid, code } => on_gone(&mut session.traced, tid, Exit::Code(code), signals),
        Stop::Killed { tid, signal } => on_gone(&mut session.traced, tid, Exit::Signal(signal), signals),
    }
}

fn on_gone(traced: &mut TracedProcesses, tid: i32, exit: Exit, signals: Option<&Signals>) {
    traced.tracees.forget(tid);
    if traced.root.note_end(tid, exit)
        && let Some(signals) = signals
    {
        signals.target_gone();
    }
}

fn handle_signals(session: &mut Session, signals: &Signals, control: &mut dyn Control, linger: Duration) {
    let wanted = signals.take_requests();
    if wanted.snapshot && control.wants_snapshot() {
        let recording = recording::recording_so_far(session);
        control.snapshot(recording);
    }
    if session.draft.awaited.take_seen() {
        control.seen();
    }
    if session.traced.root.attached.is_some() {
        turns::follow(session, control);
        let is_told = wanted.ending.is_some() || control.leaves();
        return leave_when_over(session, is_told);
    }
    let ended = session.traced.root.exit.is_some();
    let Some(why) = session.traced.root.ending.reason_to_end(&wanted, sys::now(), (ended, control.leaves()), linger)
    else {
        return;
    };
    let left = if ended || why == CutShort::Left { collect::living(&session.targets) } else { 0 };
    session.draft.problems.note(ProblemKind::CutShort, why.text(left));
    note_cpu(&mut session.targets);
    let_everything_go(&session.targets, &mut session.traced);
    session.traced.root.cut_short = true;
}

/// Leaves attached processes once their time is over, enough calls are counted, or systoll was `told` to end.
fn leave_when_over(session: &mut Session, told: bool) {
    let Session { targets, knowledge, draft, traced, .. } = session;
    let Some(attached) = traced.root.attached else { return };
    let counted = |most: u64| collect::counted_so_far(targets, &draft.table) >= most;
    let over = attached.deadline.is_some_and(|deadline| sys::now() >= deadline);
    let enough = || attached.calls.is_some_and(counted);
    if !told && !over && !enough() {
        return;
    }
    let pids = draft.table.images.iter().map(|image| image.pid);
    let used = match attached.no_children {
        true => crate::procfs::own_times(pids),
        false => crate::procfs::running_times(pids),
    };
    note_cpu(targets);
    late_code::on_leaving(&mut targets.programs, knowledge);
    let_everything_go(targets, traced);
    let stopped = leave::leave_all(targets, &mut draft.problems);
    if let Some(attached) = &mut traced.root.attached {
        attached.used = Some(used);
        attached.longest_stop_ns = attached.longest_stop_ns.max(stopped);
    }
    traced.root.cut_short = true;
}

fn let_everything_go(targets: &Targets, traced: &mut TracedProcesses) {
    targets.memory.global().set(global::DEAD, 1);
    leave::answer_all(targets);
    let deadline = sys::now() + LETTING_GO_NS;
    for tid in traced.tracees.seized.keys().copied().collect::<Vec<_>>() {
        traced.tracees.let_go_by(&mut traced.root, tid, deadline);
    }
}

/// Returns the interval between searches for ended programs, ns, by their number. An ended program that is not
/// collected yet costs time: its results are searched for news again and again, and delay the end of the command;
/// checking one program takes a microsecond or two.
fn between_looks_for_ended(programs: usize) -> u64 {
    const EACH_NS: u64 = 100_000;
    (programs as u64).saturating_mul(EACH_NS).clamp(3_000_000, HOUSEKEEPING_NS)
}

fn housekeeping(session: &mut Session, control: &mut dyn Control) {
    let now = sys::now();
    if now.saturating_sub(session.chores.last_look_for_ended) >= between_looks_for_ended(session.targets.programs.len())
    {
        session.chores.last_look_for_ended = now;
        collect::find_ended(&session.targets, &mut session.chores);
    }
    if now.saturating_sub(session.chores.last_housekeeping) < HOUSEKEEPING_NS {
        return;
    }
    session.chores.last_housekeeping = now;
    note_cpu(&mut session.targets);
    note_queued(session);
    keep_within_share(session, now);
    frequent_first::sort_some(&mut session.targets, now);
    control.progress(session.draft.table.calls, session.targets.programs.len(), session.traced.root.exit.is_some());
}

/// Asks less while watching has used more than its share of processor time.
fn keep_within_share(session: &mut Session, now: u64) {
    let Session { targets, draft, spending, .. } = session;
    let ended = draft.table.images.iter().fold(0u64, |sum, image| sum.saturating_add(image.cpu_ns));
    let living = targets.programs.values().fold(0u64, |sum, program| sum.saturating_add(program.cpu_ns()));
    let run_ns = draft.clock.at(now);
    let is_over = spending.compare(ended.saturating_add(living), run_ns);
    draft.windows.budget.set_overspent(is_over);
    if spending.is_steady() {
        draft.windows.budget.be_steady();
    }
    if !is_over {
        targets.programs.values_mut().for_each(|program| program.contexts.ask_again(targets.memory.image(program.id)));
    }
}

/// Reads the processor time of the living processes.
fn note_cpu(targets: &mut Targets) {
    targets.programs.values_mut().for_each(|program| program.note_cpu(&targets.memory));
}

/// Reads the time for which threads waited for a processor: first that of the command's own first thread, which can be
/// read until it is waited for.
fn note_queued(session: &mut Session) {
    let Session { targets, draft, traced, .. } = session;
    let DraftRecording { table, clock, .. } = draft;
    let root = traced.root.pid as u32;
    let others = targets.programs.values().flat_map(|program| program.living_threads(&targets.memory));
    let first = (root > 0).then_some((root, root));
    let threads = first.into_iter().chain(others.filter(|thread| *thread != (root, root)));
    table.queued.read(threads, || clock.at(sys::now()));
}

/// Returns true if the run is over: the kernel says that no process has our memory mapped, and none is about to map it.
fn over(session: &mut Session) -> bool {
    if session.traced.root.cut_short {
        return true;
    }
    let attached = session.traced.root.attached.is_some();
    if session.traced.root.exit.is_none() && !attached || !session.traced.tracees.seized.is_empty() {
        return false;
    }
    let about_to = |p: &Program| p.hooks.starting.is_some() && sys::exists(p.pid);
    if session.targets.programs.values().any(about_to) {
        return false;
    }
    if !attached && was_alone(&session.targets, &session.draft.table, &session.traced.root) {
        return true;
    }
    let now = sys::now();
    if collect::living(&session.targets) > 0 && now.saturating_sub(session.chores.last_desertion) < HOUSEKEEPING_NS {
        return false;
    }
    session.chores.last_desertion = now;
    let ids: Vec<ProgramId> = session.targets.programs.keys().copied().collect();
    ids.into_iter().all(|id| match session.targets.memory.is_deserted(id) {
        Ok(deserted) => deserted.unwrap_or_else(|| !collect::is_mapped(&session.targets.memory, id)),
        Err(e) => {
            session.draft.problems.note(ProblemKind::CutShort, format!("can't share memory any more: {e}"));
            true
        }
    })
}

/// Returns true if the command, which has ended, was the only program, in one process that never made another, and each
/// of its calls was seen. Then no process has our memory mapped. Asking the kernel about that would take as long as
/// ending a process.
fn was_alone(targets: &Targets, table: &Table, root: &RootProcess) -> bool {
    let mut programs = targets.programs.values();
    let (Some(only), None, 1) = (programs.next(), programs.next(), table.images.len()) else { return false };
    let made_none = targets.memory.image(only.id).is_some_and(Area::no_slot_drawn);
    only.pid == root.pid && made_none && on_exec::has_no_filter_of_its_own(targets, only.id)
}
