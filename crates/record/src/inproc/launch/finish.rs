//! From what the launcher gathered to a recording.

use super::super::layout::image;
use super::engine::Engine;
use super::harvest::Beside;
use super::in_place::in_place;
use super::own_cpu::OwnCpu;
use super::program::Program;
use super::share::Again;
use super::sys;
use crate::cpu::not_below;
use crate::named::{Names, note_bounds, rows, threads, vdso_rows, windows};
use crate::windows::{fault_price, switch_price};
use std::collections::{BTreeMap, HashMap};
use systoll_model::{BackendKind, Counts, Header, Prices, Problem, ProblemKind, Process, Recording, Row, Spread};

/// What was measured around the run.
#[derive(Default)]
pub(super) struct Around {
    pub(super) command: Vec<String>,
    pub(super) crossing_before: Spread,
    /// For measuring the crossing at the end as it was before.
    pub(super) again: Option<Again>,
    pub(super) children_before: (u64, u64),
    pub(super) started_unix: u64,
    /// Cycles of every timed call that are our own.
    pub(super) own_cycles: f64,
    /// What counting and timing adds to a call, ns.
    pub(super) added_ns: f64,
    /// Whether both were measured, not guessed.
    pub(super) share_measured: bool,
}

impl Around {
    /// Leaves out what children of ours have used between two readings.
    fn leave_out(&mut self, from: (u64, u64), to: (u64, u64)) {
        self.children_before.0 += to.0.saturating_sub(from.0);
        self.children_before.1 += to.1.saturating_sub(from.1);
    }
}

impl Engine {
    /// The recording of a run that has ended.
    pub(super) fn finish(mut self) -> Recording {
        let wall_ns = self.at(sys::now());
        self.harvest_all();
        self.count_first_exec();
        self.audit();
        self.files.keep_fixed(&self.symbols);
        let children = sys::children_times();
        let crossing = super::crossing(self.around.again.as_ref(), &self.ratio);
        self.around.leave_out(children, sys::children_times());
        self.recording(wall_ns, crossing)
    }

    /// The recording of a run that goes on.
    pub(super) fn recording_so_far(&mut self) -> Recording {
        // Counts are read into the table once only: a copy of it takes those of the living.
        let kept = self.table.clone();
        let (vdso_calls, asked, problems) = (self.vdso_calls, self.asked, self.problems.clone());
        let (refused, in_place) = (self.windows.refused, self.in_place);
        let ids: Vec<u32> = self.programs.keys().copied().collect();
        for id in ids {
            let Some(mut program) = self.programs.remove(&id) else { continue };
            let (at_main, unopened) = (program.at_main.clone(), program.unopened.clone());
            let beside = self.harvest(&mut program);
            self.take(&program, &beside);
            (program.at_main, program.unopened) = (at_main, unopened);
            program.forks.retain(|_, image| (*image as usize) < kept.images.len());
            self.programs.insert(id, program);
        }
        self.count_first_exec();
        let wall_ns = self.at(sys::now());
        let recording = self.recording(wall_ns, self.around.crossing_before);
        (self.table, self.vdso_calls, self.asked, self.problems) = (kept, vdso_calls, asked, problems);
        (self.windows.refused, self.in_place) = (refused, in_place);
        recording
    }

    /// The command's own exec was made before anything of ours was in it.
    fn count_first_exec(&mut self) {
        let (Some(image), Some(execve)) = (self.root_image, systoll_model::Sysno::from_name("execve")) else { return };
        let (row, _) = self.table.row(image, execve, &[]);
        if let Some(row) = self.table.rows.get_mut(row as usize) {
            row.entered += 1;
            row.counts.calls += 1;
            row.counts.startup_calls += 1;
            self.table.calls += 1;
            let pid = self.table.images.get(image as usize).map_or(0, |i| i.pid as u32);
            self.table.by_thread(image, pid, execve, &Counts { calls: 1, ..Counts::default() });
        }
    }

    /// Says what a program's counts lack.
    pub(super) fn note_losses(&mut self, program: &Program, beside: &Beside) {
        let exe = self.table.images.get(program.image as usize).map(|i| i.exe.clone()).unwrap_or_default();
        let l = beside.losses;
        let all = [
            (l.homeless, ProblemKind::Lost, "threads shared a slot for want of room: calls may be missing"),
            (
                l.unheard,
                ProblemKind::Lost,
                "questions about new code or a new program came to nothing: it ran uncounted",
            ),
            (l.astray, ProblemKind::Lost, "signals' handlers ended in ways that are not counted"),
            (l.damaged, ProblemKind::Lost, "counts make no sense: the program wrote over them"),
            (l.errors, ProblemKind::Bounded, "failed calls are counted without their error"),
            (l.unanswered, ProblemKind::Bounded, "calls waited for a context in vain and are counted without"),
            (l.unasked, ProblemKind::Bounded, "calls of signal handlers are counted without their context"),
            (l.unmatched, ProblemKind::Note, "calls came back otherwise than they were made: counted, not timed"),
        ];
        for (n, kind, what) in all {
            if n > 0 {
                self.problem(kind, format!("{exe}: {what} ({n})"));
            }
        }
        if beside.foreign > 0 {
            let n = beside.foreign;
            self.problem(ProblemKind::Lost, format!("{exe}: x32 calls are counted, not what they start ({n})"));
        }
        for (syscall, n) in &beside.blind {
            self.problem(
                ProblemKind::Lost,
                format!("{exe}: calls of {syscall} are counted whose errors could not be seen ({n})"),
            );
        }
        if beside.untold > 0 {
            let n = beside.untold;
            self.problem(
                ProblemKind::Price,
                format!(
                    "{exe}: calls that can block are left out of the toll: nothing there tells waiting from working ({n})"
                ),
            );
        }
        self.note_generated(program, &exe);
        if self.elided != 0 {
            let unseen = self.memory.image(program.id).is_some_and(|a| a.get(image::UNSEEN) as u32 != 0);
            let why = match (program.seen_whole, unseen) {
                (false, _) => Some("not every place in its files that makes calls is seen"),
                (true, true) => Some("it has made memory executable that is no file"),
                (true, false) => None,
            };
            if let Some(why) = why {
                self.problem(ProblemKind::Note, format!("{exe}: its calls are not answered in place: {why}"));
            }
        }
        if program.newborn.is_some() && self.memory.could_not_be_mapped(program.id) {
            self.problem(ProblemKind::Unwatched, format!("{exe} ran unwatched: it could not map the shared memory"));
        }
    }

    fn recording(&mut self, wall_ns: u64, crossing_after: Spread) -> Recording {
        let mut problems = self.problems.clone();
        note_bounds(&self.table, &mut problems);
        if !self.around.share_measured {
            let text = "what watching adds to a call could not be measured here: its share is a guess";
            problems.push(Problem::new(ProblemKind::Price, text));
        }
        let names = Names::resolve(&self.table, &mut self.symbols);
        // Our own memory is mapped there too.
        problems.extend(names.problems.iter().filter(|p| !p.text.starts_with("/memfd:systoll:")).cloned());
        // That takes children, which are none of the command's.
        let children = sys::children_times();
        let (fault, switch) = (fault_price(&self.table), switch_price(&self.table));
        let crossing_before = self.around.crossing_before;
        let prices = Prices { crossing_before, crossing_after, fault, switch, calls: BTreeMap::new() };
        let rows = rows(&self.table, &names, &mut self.symbols);
        let vdso = vdso_rows(&self.table, &names, &mut self.symbols);
        let used = self.with_running(children);
        let own = self.own_cpu(used);
        problems.extend(own.problem());
        let header = self.header(wall_ns, used, &own);
        self.around.leave_out(children, sys::children_times());
        let processes = self.processes(&rows, &header);
        let in_place = in_place(self.elided, &self.in_place, &rows);
        Recording {
            header,
            processes,
            modules: names.modules,
            frames: names.frames,
            stacks: names.stacks,
            rows,
            vdso,
            threads: threads(&self.table),
            windows: windows(&self.windows),
            longest: Vec::new(),
            prices,
            problems,
            in_place,
        }
    }

    /// With what processes have used that are not waited for yet, where the command has not ended.
    fn with_running(&self, (user, sys): (u64, u64)) -> (u64, u64) {
        if self.root_exit.is_some() {
            return (user, sys);
        }
        let running = crate::procfs::running_times(self.table.images.iter().map(|i| i.pid));
        (user.saturating_add(running.0), sys.saturating_add(running.1))
    }

    fn header(&self, wall_ns: u64, (user, sys): (u64, u64), own: &OwnCpu) -> Header {
        let before = self.around.children_before;
        let (user_ns, sys_ns) = (user.saturating_sub(before.0), sys.saturating_sub(before.1));
        Header {
            version: env!("CARGO_PKG_VERSION").into(),
            command: self.around.command.clone(),
            backend: BackendKind::Inproc,
            host: systoll_price::host(),
            started_unix: self.around.started_unix,
            exit: self.root_exit,
            wall_ns,
            user_ns,
            sys_ns,
            own_cpu_ns: own.known(),
            own_cpu_most_ns: Some(own.most()),
            observer_ns_per_call: self.around.added_ns,
            observer_wall_ns_per_call: self.around.added_ns,
            toll_estimated: false,
            lost: 0,
            vdso_calls: Some(self.vdso_calls),
            threads: self.table.threads_in_all(),
            seed: self.seed,
            windows_opened: self.windows.opened,
            windows_refused: self.windows.refused,
            sites: Some(self.sites.total()),
        }
    }

    fn processes(&self, rows: &[Row], header: &Header) -> Vec<Process> {
        let mut totals: HashMap<u32, (u64, f64)> = HashMap::new();
        for row in rows {
            let (toll, added) = totals.entry(row.process.0).or_default();
            *toll += row.counts.toll_ns.unwrap_or(0);
            *added += self.around.added_ns * row.counts.calls as f64;
        }
        let own_cpu = |id: u32, cpu_ns: u64| {
            let (toll, added) = totals.get(&id).copied().unwrap_or_default();
            not_below(cpu_ns.saturating_sub(added as u64), toll).filter(|ns| *ns > 0)
        };
        let alone = self.table.images.len() == 1;
        let images = (0..).zip(&self.table.images);
        images
            .map(|(id, i)| Process {
                cpu_ns: if alone { header.own_cpu_ns } else { own_cpu(id, i.cpu_ns) },
                exit: if Some(id) == self.root_image { self.root_exit } else { i.exit },
                ..i.process(header.wall_ns)
            })
            .collect()
    }

    /// Holds our count of reads and writes against the kernel's, where it is that of one program.
    fn audit(&mut self) {
        let alone = self.table.images.len() == 1 && !self.table.images_folded();
        let (Some(base), Some(end), true) = (self.audit_base, self.audit_end, alone) else { return };
        let (mut reads, mut writes) = ((0u64, 0u64), (0u64, 0u64));
        for row in &self.table.rows {
            let Some(audit) = row.syscall.signature().and_then(|s| s.audit) else { continue };
            let range = audit.range(&row.counts);
            for (applies, sum) in [(audit.reads(), &mut reads), (audit.writes(), &mut writes)] {
                if applies {
                    sum.0 += range.start();
                    sum.1 += range.end();
                }
            }
        }
        let exe = self.table.images.first().map(|i| i.exe.clone()).unwrap_or_default();
        let kernel = [("read", reads, end.reads - base.reads), ("write", writes, end.writes - base.writes)];
        for (name, ours, theirs) in kernel {
            if !(ours.0..=ours.1).contains(&theirs) {
                let text =
                    format!("{exe}: {theirs} {name} calls by the kernel's count, {} by ours (/proc/PID/io)", ours.1);
                self.problem(ProblemKind::Audit, text);
            }
        }
    }
}
