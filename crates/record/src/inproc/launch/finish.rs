//! From what the launcher gathered to a recording.

use super::engine::Engine;
use super::harvest::Beside;
use super::program::Program;
use super::sys;
use crate::table::{RawRow, Table};
use std::collections::{BTreeMap, HashMap};
use systoll_model::{
    BackendKind, Counts, Frame, FrameClass, FrameId, Header, Module, ModuleId, Prices, Problem, ProblemKind, Process,
    ProcessId, Recording, Row, RowId, Spread, Stack, StackId, Window, WindowCall,
};
use systoll_symbols::{ModuleKey, RawFrame};

/// What was measured around the run.
#[derive(Clone, Debug, Default)]
pub(super) struct Around {
    pub(super) command: Vec<String>,
    pub(super) crossing_before: Spread,
    pub(super) children_before: (u64, u64),
    pub(super) started_unix: u64,
    /// Cycles of every timed call that are our own.
    pub(super) own_cycles: u64,
    /// What counting and timing adds to a call, ns.
    pub(super) added_ns: f64,
}

impl Engine {
    /// The recording of a run that has ended.
    pub(super) fn finish(mut self) -> Recording {
        let wall_ns = self.at(sys::now());
        self.harvest_all();
        self.count_first_exec();
        self.audit();
        let crossing = systoll_price::crossing(super::CROSSING);
        self.recording(wall_ns, crossing)
    }

    /// The recording of a run that goes on.
    pub(super) fn recording_so_far(&mut self) -> Recording {
        // Counts are read into the table once only: a copy of it takes those of the living.
        let kept = self.table.clone();
        let (vdso_calls, problems) = (self.vdso_calls, self.problems.clone());
        let ids: Vec<u32> = self.programs.keys().copied().collect();
        for id in ids {
            let Some(mut program) = self.programs.remove(&id) else { continue };
            let at_main = program.at_main.clone();
            let beside = self.harvest(&mut program);
            self.vdso_calls += beside.vdso_calls;
            self.note_losses(&program, &beside);
            program.at_main = at_main;
            program.forks.retain(|_, image| (*image as usize) < kept.images.len());
            self.programs.insert(id, program);
        }
        self.count_first_exec();
        let wall_ns = self.at(sys::now());
        let recording = self.recording(wall_ns, self.around.crossing_before);
        (self.table, self.vdso_calls, self.problems) = (kept, vdso_calls, problems);
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
            (l.damaged, ProblemKind::Lost, "counts make no sense: the program wrote over them"),
            (l.errors, ProblemKind::Bounded, "failed calls are counted without their error"),
            (l.unanswered, ProblemKind::Bounded, "calls waited for a context in vain and are counted without"),
            (l.unasked, ProblemKind::Bounded, "calls of signal handlers are counted without their context"),
            (l.unmatched, ProblemKind::Note, "calls came back otherwise than they were made: counted, not timed"),
        ];
        for (n, kind, what) in all {
            if n > 0 {
                self.problem(kind, format!("{exe}: {n} {what}"));
            }
        }
        for (syscall, n) in &beside.blind {
            self.problem(
                ProblemKind::Lost,
                format!("{exe}: {n} calls of {syscall} are counted whose errors could not be seen"),
            );
        }
        if program.newborn.is_some() {
            self.problem(ProblemKind::Unwatched, format!("{exe} ran unwatched: it could not map the shared memory"));
        }
    }

    fn recording(&mut self, wall_ns: u64, crossing_after: Spread) -> Recording {
        let mut problems = self.problems.clone();
        note_bounds(&self.table, &mut problems);
        let names = Names::resolve(self);
        // Our own memory is mapped there too.
        problems.extend(names.problems.iter().filter(|p| !p.text.starts_with("/memfd:systoll:")).cloned());
        let prices = Prices { crossing_before: self.around.crossing_before, crossing_after, calls: BTreeMap::new() };
        let rows = self.rows(&names);
        let header = self.header(wall_ns);
        let processes = self.processes(&rows, &header);
        Recording {
            header,
            processes,
            modules: names.modules,
            frames: names.frames,
            stacks: names.stacks,
            rows,
            windows: self.windows(),
            longest: Vec::new(),
            prices,
            problems,
        }
    }

    fn header(&self, wall_ns: u64) -> Header {
        let (user, sys) = sys::children_times();
        let before = self.around.children_before;
        let (user_ns, sys_ns) = (user.saturating_sub(before.0), sys.saturating_sub(before.1));
        let added = (self.around.added_ns * self.table.calls as f64) as u64;
        let toll: u64 = self.table.rows.iter().filter_map(|r| r.counts.toll_ns).sum();
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
            own_cpu_ns: (user_ns + sys_ns).saturating_sub(added).max(toll),
            observer_ns_per_call: self.around.added_ns,
            observer_wall_ns_per_call: self.around.added_ns,
            toll_estimated: false,
            lost: 0,
            vdso_calls: Some(self.vdso_calls),
            threads: self.table.images.iter().map(|i| i.threads).max().unwrap_or(1),
            seed: self.seed,
            windows_opened: self.windows.opened,
            windows_refused: self.windows.refused,
        }
    }

    fn rows(&mut self, names: &Names) -> Vec<Row> {
        let mut rows = Vec::with_capacity(self.table.rows.len());
        for raw in &self.table.rows {
            let Some(context) = self.table.stacks.get(raw.context as usize) else { continue };
            let context = &context.frames;
            let api = self.symbols.api(context);
            let api_module = api.as_ref().and_then(|(_, key)| *key).and_then(|key| names.module_of(key));
            let user = context.last().and_then(|f| names.frame_id(f));
            rows.push(Row {
                process: ProcessId(raw.image),
                syscall: raw.syscall,
                context: StackId(raw.context),
                outer: names.outer_of(raw, &self.table),
                api: api.map(|(name, _)| name),
                api_module,
                user: user.filter(|f| names.class_of(*f) == Some(FrameClass::User)),
                counts: raw.counts.clone(),
            });
        }
        rows
    }

    fn windows(&self) -> Vec<Window> {
        let call = |c: &crate::windows::RawCall| WindowCall {
            row: RowId(c.row),
            nth: c.nth,
            args: c.args,
            data: c.data.clone(),
            fd: c.fd.clone(),
            result: c.result,
            entry_ns: c.entry_ns,
            elapsed_ns: c.elapsed_ns,
            waited_ns: c.waited_ns,
            signals_before: c.signals_before,
            stack: c.stack.map(StackId),
        };
        let window = |w: &crate::windows::RawWindow| Window {
            process: ProcessId(w.image),
            thread: w.thread,
            row: RowId(w.row),
            octave: w.octave,
            calls: w.calls.iter().map(call).collect(),
        };
        self.windows.all().into_iter().map(window).collect()
    }

    fn processes(&self, rows: &[Row], header: &Header) -> Vec<Process> {
        let mut tolls: HashMap<u32, u64> = HashMap::new();
        for row in rows {
            *tolls.entry(row.process.0).or_default() += row.counts.toll_ns.unwrap_or(0);
        }
        let alone = self.table.images.len() == 1;
        let images = (0..).zip(&self.table.images);
        images
            .map(|(id, i)| Process {
                pid: i.pid as u32,
                parent: i.parent.map(ProcessId),
                exe: i.exe.clone(),
                argv: i.argv.clone(),
                instances: i.instances,
                threads: i.threads,
                start_ns: i.start_ns,
                end_ns: i.end_ns,
                life_ns: if i.end_ns == 0 { header.wall_ns.saturating_sub(i.start_ns) } else { i.life_ns },
                cpu_ns: if alone { header.own_cpu_ns } else { i.cpu_ns }.max(tolls.get(&id).copied().unwrap_or(0)),
                main_at_ns: i.main_at_ns,
                startup_cpu_ns: i.startup_cpu_ns,
                exit: if Some(id) == self.root_image { self.root_exit } else { i.exit },
            })
            .collect()
    }

    /// Holds our count of reads and writes against the kernel's, where it is that of one program.
    fn audit(&mut self) {
        let alone = self.table.images.len() == 1 && !self.table.images_folded();
        let (Some(base), Some(end), true) = (self.audit_base, self.audit_end, alone) else { return };
        let (mut reads, mut writes) = ((0, 0), (0, 0));
        for row in &self.table.rows {
            let Some(audit) = row.syscall.signature().and_then(|s| s.audit) else { continue };
            let range = audited(audit, &row.counts);
            for (applies, sum) in [(audit.reads(), &mut reads), (audit.writes(), &mut writes)] {
                if applies {
                    sum.0 += range.0;
                    sum.1 += range.1;
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

/// How many of a row's calls the kernel has counted: at least, at most.
fn audited(audit: systoll_model::Audit, counts: &Counts) -> (u64, u64) {
    use systoll_model::Counted;
    let failed: u64 = counts.errors.values().sum();
    let mut range = (0, counts.unreturned);
    let outcomes = counts.errors.iter().map(|(errno, n)| (audit.failure(*errno), *n));
    for (counted, n) in outcomes.chain([(audit.success(), counts.calls.saturating_sub(failed))]) {
        range.0 += if counted == Counted::Yes { n } else { 0 };
        range.1 += if counted == Counted::No { 0 } else { n };
    }
    range
}

fn note_bounds(table: &Table, problems: &mut Vec<Problem>) {
    if table.rows_folded {
        problems.push(Problem::new(
            ProblemKind::Bounded,
            "too many calling contexts: some calls are counted without theirs",
        ));
    }
    if table.images_folded() {
        problems.push(Problem::new(ProblemKind::Bounded, "many processes: later ones are folded by program"));
    }
}

/// Names of everything the table refers to.
struct Names {
    modules: Vec<Module>,
    frames: Vec<Frame>,
    stacks: Vec<Stack>,
    problems: Vec<Problem>,
    ids: HashMap<RawFrame, FrameId>,
    module_ids: HashMap<ModuleKey, ModuleId>,
    outers: HashMap<(u32, usize, usize), StackId>,
    empty: StackId,
}

impl Names {
    fn resolve(engine: &mut Engine) -> Self {
        let mut distinct = Vec::new();
        let mut ids = HashMap::new();
        for frame in engine.table.stacks.iter().flat_map(|s| &s.frames) {
            ids.entry(*frame).or_insert_with(|| {
                distinct.push(*frame);
                FrameId(distinct.len() as u32 - 1)
            });
        }
        let resolved = engine.symbols.resolve(&distinct);
        let frames_of = |raw: &[RawFrame]| raw.iter().filter_map(|f| ids.get(f).copied()).collect();
        let mut stacks: Vec<Stack> =
            engine.table.stacks.iter().map(|s| Stack { frames: frames_of(&s.frames), complete: s.complete }).collect();
        let mut outers = HashMap::new();
        for row in &engine.table.rows {
            let Some((key, source)) = outer_key(row, &engine.table) else { continue };
            outers.entry(key).or_insert_with(|| {
                let frames = source.frames.get(key.1..key.2.max(key.1)).unwrap_or_default();
                let complete = source.complete && key.2 == source.frames.len();
                stacks.push(Stack { frames: frames_of(frames), complete });
                StackId(stacks.len() as u32 - 1)
            });
        }
        let empty = StackId(stacks.len() as u32);
        stacks.push(Stack::default());
        Self {
            modules: resolved.modules,
            frames: resolved.frames,
            stacks,
            problems: resolved.problems,
            ids,
            module_ids: resolved.module_ids,
            outers,
            empty,
        }
    }

    fn frame_id(&self, frame: &RawFrame) -> Option<FrameId> {
        self.ids.get(frame).copied()
    }

    fn class_of(&self, frame: FrameId) -> Option<FrameClass> {
        self.frames.get(frame.0 as usize).map(|f| f.class)
    }

    fn module_of(&self, key: ModuleKey) -> Option<ModuleId> {
        self.module_ids.get(&key).copied()
    }

    fn outer_of(&self, row: &RawRow, table: &Table) -> StackId {
        outer_key(row, table).and_then(|(key, _)| self.outers.get(&key).copied()).unwrap_or(self.empty)
    }
}

/// Above a row's context: what all its whole stacks share. Whole stack, from, to.
fn outer_key<'a>(row: &RawRow, table: &'a Table) -> Option<((u32, usize, usize), &'a crate::table::RawStack)> {
    let context = table.stacks.get(row.context as usize)?.frames.len();
    let (whole, shared) = row.whole?;
    Some(((whole, context, shared), table.stacks.get(whole as usize)?))
}
