//! Makes a recording from the counts and measurements of the launcher.

use crate::assemble::{self, NamedTable, Parts, Progress};
use crate::cpu::not_below;
use crate::inproc::monitor::exec::no_calls;
use crate::inproc::monitor::handles::ProgramId;
use crate::inproc::monitor::results::in_place::in_place;
use crate::inproc::monitor::results::overhead::{self};
use crate::inproc::monitor::results::own_cpu::{MeasuredTimes, UnseenTime};
use crate::inproc::monitor::results::twins::Twins;
use crate::inproc::monitor::results::{collect, ring_take};
use crate::inproc::monitor::root_process::RootProcess;
use crate::inproc::monitor::session::{DraftRecording, Session};
use crate::inproc::monitor::sys;
use crate::raw_window::RawWindow;
use crate::table::{ImageId, Table};
use crate::windows::{self, Windows};
use std::collections::HashMap;
use systoll_model::{BackendKind, Counts, Header, Problem, ProblemKind, Process, ProcessId, Recording, Row, Spread};

/// A run that has ended.
pub(crate) struct Finished {
    /// The recording, complete but for the command's own processor time.
    recording: Recording,
    spent: MeasuredTimes,
    /// Twins that would improve the estimate of that time.
    pub(crate) twins: Option<Twins>,
}

impl Finished {
    /// Returns the recording; `beside` is the cost of watching that no clock of the run saw.
    pub(crate) fn recording(self, beside: UnseenTime) -> Recording {
        let mut recording = self.recording;
        let own = self.spent.own(beside);
        let header = &mut recording.header;
        header.watching_ns = header.watching_ns.max(self.spent.longer_ns(own));
        own.tell(&mut recording);
        recording
    }
}

/// Finishes a run that has ended. `ends_process`: see [`crate::HowToWatch::ends_process`].
pub(crate) fn finish(mut session: Session, ends_process: bool) -> Finished {
    let wall_ns = end_timing(&mut session);
    collect::collect_all(&mut session.targets, &mut session.knowledge, &mut session.draft);
    count_first_exec(&mut session.draft.table, &session.traced.root);
    audit(&mut session.draft, &session.traced.root);
    session.knowledge.reuse.kept.keep(&mut session.knowledge.provisioning.files, &session.knowledge.reuse.contexts);
    no_calls::keep(&mut session.knowledge);
    let children = sys::children_times();
    let crossing = overhead::crossing(session.draft.stats.around.again.as_ref(), &session.draft.clock.ratio);
    session.draft.stats.facts.leave_out(children, sys::children_times());
    let finished = recording(&mut session, wall_ns, crossing, Windows::take_all);
    session.knowledge.provisioning.files.keep_notes(&session.knowledge.symbols);
    if ends_process {
        // Skip freeing mappings, files and a hundred thousand allocations.
        std::mem::forget(session);
    }
    finished
}

/// Returns the times of an ended run, for a caller that needs nothing else.
pub(crate) fn spent(mut session: Session) -> MeasuredTimes {
    let wall_ns = end_timing(&mut session);
    collect::collect_all(&mut session.targets, &mut session.knowledge, &mut session.draft);
    MeasuredTimes::of(&session.draft, &session.traced.root, wall_ns, sys::children_times())
}

/// Notes the processor time that the launcher has taken for a run that has ended, and returns the run's elapsed time, ns.
fn end_timing(session: &mut Session) -> u64 {
    let (before, now) = (session.draft.stats.facts.ours_before, crate::sys::launcher_times());
    session.draft.stats.launcher_ns = now.0.saturating_sub(before.0) + now.1.saturating_sub(before.1);
    session.draft.clock.at(sys::now())
}

/// Returns the recording of a run that goes on.
pub(crate) fn recording_so_far(session: &mut Session) -> Recording {
    ring_take::take_new(&mut session.targets, &mut session.draft);
    with_the_living(session, |session| {
        count_first_exec(&mut session.draft.table, &session.traced.root);
        let wall_ns = session.draft.clock.at(sys::now());
        let copied = |windows: &mut Windows| windows.all().into_iter().cloned().collect();
        recording(session, wall_ns, session.draft.stats.facts.crossing_before, copied).recording(UnseenTime::UNMEASURED)
    })
}

/// Calls `read` while the session's table and totals hold what living programs have counted too.
pub(crate) fn with_the_living<T>(session: &mut Session, read: impl FnOnce(&mut Session) -> T) -> T {
    // Counts can be added to the table only once, so a copy of the table takes those of living programs.
    let kept = session.draft.table.clone();
    let (counted, problems) = (session.draft.stats.counted.clone(), session.draft.problems.list.clone());
    let refused = session.draft.windows.budget.refused;
    let ids: Vec<ProgramId> = session.targets.programs.keys().copied().collect();
    for id in ids {
        let Some(mut program) = session.targets.programs.remove(&id) else { continue };
        let (at_main, unopened) = (program.contexts.at_main.clone(), program.contexts.unopened.clone());
        let tally = collect::collect(&session.targets.memory, &mut session.draft, &mut program);
        collect::take(&session.targets, &session.knowledge.provisioning, &mut session.draft, &program, &tally);
        (program.contexts.at_main, program.contexts.unopened) = (at_main, unopened);
        program.processes.forks.retain(|_, image| image.index() < kept.images.len());
        session.targets.programs.insert(id, program);
    }
    let result = read(session);
    (session.draft.table, session.draft.stats.counted, session.draft.problems.list) = (kept, counted, problems);
    session.draft.windows.budget.refused = refused;
    result
}

/// Adds the command's own exec, which was made before any of our code was in it.
fn count_first_exec(table: &mut Table, root: &RootProcess) {
    let (Some(image), Some(execve)) = (root.image, systoll_model::Sysno::from_name("execve")) else { return };
    let (row, _) = table.row(image, execve, &[]);
    if let Some(row) = table.rows.get_mut(row as usize) {
        row.entered += 1;
        row.counts.calls += 1;
        row.counts.startup_calls += 1;
        table.calls += 1;
        let pid = table.images.get(image.index()).map_or(0, |i| i.pid as u32);
        table.by_thread(image, pid, execve, &Counts { calls: 1, ..Counts::default() });
    }
}

fn recording(
    session: &mut Session,
    wall_ns: u64,
    crossing_after: Spread,
    windows: fn(&mut Windows) -> Vec<RawWindow>,
) -> Finished {
    let beside = windows::beside(&session.draft.table, &session.draft.windows.budget.all()).begin();
    let mut named =
        NamedTable::of(&session.draft.table, &mut session.knowledge.symbols, session.draft.problems.list.clone());
    named.problems.extend(session.spending.problem());
    if !session.draft.stats.around.share_measured {
        let text = "what watching adds to a call could not be measured here: its share is a guess";
        named.problems.push(Problem::new(ProblemKind::Price, text));
    }
    // Pricing runs children of our own; their time must not count as the command's, so the times are read before.
    let children = sys::children_times();
    let prices = session.draft.stats.facts.prices(crossing_after, beside);
    not_below_the_crossing(&mut named.rows, prices.crossing_ns());
    let progress = match session.traced.root.attached.and_then(|attached| attached.used) {
        Some(used) => Progress::of_left(wall_ns, children, used),
        None => Progress::of(&session.draft.table, wall_ns, session.traced.root.exit, children),
    };
    let spent = MeasuredTimes::of(&session.draft, &session.traced.root, wall_ns, progress.used());
    let twins = Twins::of(&session.draft.table, &spent).filter(|_| !session.traced.root.cut_short);
    let header = header(session, &progress);
    session.draft.stats.facts.leave_out(children, sys::children_times());
    let processes = processes(&session.draft, &session.traced.root, &named.rows, wall_ns);
    let in_place = in_place(session.knowledge.provisioning.elided, &session.draft.stats.counted.in_place, &named.rows);
    let windows = windows(&mut session.draft.windows.budget);
    let parts = Parts { header, processes, prices, longest: session.draft.table.slowest.listed(), in_place, windows };
    let recording = named.recording(&session.draft.table, &session.draft.windows.budget, parts);
    Finished { recording, spent, twins }
}

/// Raises the toll of calls that waited to the price of entering the kernel, if it is lower: the moments at which
/// waiting began and ended are known only to some hundred ns.
fn not_below_the_crossing(rows: &mut [Row], crossing_ns: f64) {
    for counts in rows.iter_mut().map(|row| &mut row.counts) {
        if counts.waited_ns.is_some_and(|ns| ns > 0) {
            counts.toll_ns = counts.toll_ns.map(|toll| toll.max((counts.calls as f64 * crossing_ns) as u64));
        }
    }
}

fn header(session: &Session, progress: &Progress) -> Header {
    let added_ns = session.draft.stats.around.added_ns;
    let windows = &session.draft.windows.budget;
    Header {
        observer_ns_per_call: added_ns,
        observer_wall_ns_per_call: added_ns,
        watching_ns: session.draft.stats.watching_ns.saturating_add(session.draft.stats.starts_ns),
        vdso_calls: Some(session.draft.stats.counted.vdso_calls),
        sites: Some(session.knowledge.provisioning.sites.total()),
        attached: session.traced.root.attached.map(|attached| systoll_model::Attached {
            age_ns: attached.age_ns,
            longest_stop_ns: attached.longest_stop_ns,
            left_running: attached.used.is_some()
                || session.traced.root.exit.is_none() && !session.targets.programs.is_empty(),
        }),
        ..assemble::header(BackendKind::Inproc, &session.draft.stats.facts, progress, &session.draft.table, windows)
    }
}

fn processes(draft: &DraftRecording, root: &RootProcess, rows: &[Row], wall_ns: u64) -> Vec<Process> {
    let mut totals: HashMap<ProcessId, (u64, f64)> = HashMap::new();
    for row in rows {
        let (toll, added) = totals.entry(row.process).or_default();
        *toll += row.counts.toll_ns.unwrap_or(0);
        *added += draft.stats.around.added_ns * row.counts.calls as f64;
    }
    let own_cpu = |id: ProcessId, cpu_ns: u64| {
        let (toll, added) = totals.get(&id).copied().unwrap_or_default();
        not_below(cpu_ns.saturating_sub(added as u64), toll).filter(|ns| *ns > 0)
    };
    let images = (0..).map(ImageId::at).zip(&draft.table.images);
    images
        .map(|(id, i)| Process {
            cpu_ns: own_cpu(id.process(), i.cpu_ns),
            exit: if Some(id) == root.image { root.exit } else { i.exit },
            queued_ns: draft.table.queued.last((i.pid as u32, i.pid as u32)).filter(|_| i.instances <= 1),
            ..i.process(wall_ns)
        })
        .collect()
}

/// Compares our count of reads and writes with the kernel's, in a run of a single program.
fn audit(draft: &mut DraftRecording, root: &RootProcess) {
    // The kernel goes on counting for a process that was let go, which is reported already.
    let left = draft.problems.list.iter().any(|problem| problem.kind == ProblemKind::Unwatched);
    let alone = draft.table.images.len() == 1 && !draft.table.images_folded() && !left;
    let (Some(base), Some(end), true) = (root.audit_base, root.audit_end, alone) else { return };
    let (mut reads, mut writes) = ((0u64, 0u64), (0u64, 0u64));
    for row in &draft.table.rows {
        let Some(audit) = row.syscall.signature().and_then(|s| s.audit) else { continue };
        let range = audit.range(&row.counts);
        for (applies, sum) in [(audit.reads(), &mut reads), (audit.writes(), &mut writes)] {
            if applies {
                sum.0 += range.start();
                sum.1 += range.end();
            }
        }
    }
    let exe = draft.table.images.first().map(|i| i.exe.clone()).unwrap_or_default();
    let kernel = [("read", reads, end.reads - base.reads), ("write", writes, end.writes - base.writes)];
    for (name, ours, theirs) in kernel {
        if !(ours.0..=ours.1).contains(&theirs) {
            let text = format!("{exe}: {theirs} {name} calls by the kernel's count, {} by ours (/proc/PID/io)", ours.1);
            draft.problems.note(ProblemKind::Audit, text);
        }
    }
}
