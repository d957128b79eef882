//! Detects a program that is started anew for each item. It reads exact counts, since processes leave no windows.

use super::families::{Family, Starting, begins, done, executed, families};
use crate::collections::sums::Sums;
use crate::evidence::standing_for;
use crate::options::Options;
use crate::semantics::{Effect, Semantics, WAITING_PROGRAMS};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use systoll_model::{FrameId, ProcessId, Recording, Row, RowId, RowLine};

/// System calls that wait for a process.
pub(super) const AWAITS: [&str; 3] = ["wait4", "waitid", "waitpid"];

/// Least average life of a program, ns, beside which its start is negligible: a hundred times what a start takes.
const LONG_LIFE: u64 = 100_000_000;

/// Many short-lived children of one process.
pub(crate) struct Children {
    /// Programs that the children run, the most frequent first; never empty.
    pub programs: Vec<Started>,
    /// Process images of the children.
    pub images: BTreeSet<ProcessId>,
    /// Programs that the children start in turn, as shells do.
    pub within: BTreeSet<Arc<str>>,
    /// Number of children.
    pub count: u64,
    /// Processor time of starting the children, ns: until their `main`, with the parent's calls.
    pub start_ns: f64,
    /// Rows whose calls made, started and awaited the children.
    pub rows: Vec<RowId>,
    /// The number of calls of each row that served these children: their makers may fork and await others as well.
    pub served: BTreeMap<RowId, u64>,
    /// Facts of children that run no program of their own; `None` for children that run one.
    pub copies: Option<Copies>,
    /// True if the programs' own work costs more than their starts.
    pub works: bool,
    /// Scripts' lines that waited for the children, program by program; empty if none is known for the first program. `None` if
    /// no line is known.
    pub lines: Option<Vec<RowLine>>,
}

/// Facts of children that are copies of their maker and run no program of their own.
#[derive(Clone, Copy)]
pub(crate) struct Copies {
    /// True if the maker makes a pipe for each child, as a shell does for `$(…)`.
    pub is_piped: bool,
    /// True if the maker makes a pipe for each two children, as a shell does for `… | …`.
    pub is_pipeline: bool,
    /// Bounds of the processor time that is won without the children, ns.
    pub gain: [f64; 2],
}

impl Children {
    /// Returns the program if all children run the same one.
    pub(crate) fn single(&self) -> Option<&Started> {
        self.programs.first().filter(|_| self.programs.len() == 1)
    }

    /// Notes the lines that made the children and waited for them, of those by which each process was waited for. A line that
    /// runs other programs by the same calls is none of them.
    pub(crate) fn note_lines(&mut self, recording: &Recording, awaited_at: &BTreeMap<u32, FrameId>) {
        let makes = |row: &&Row| !begins(row) && !row.syscall.name().is_some_and(|name| AWAITS.contains(&name));
        let makers = self.rows.iter().filter_map(|id| recording.rows.get(id.0 as usize)).filter(makes);
        let makers: BTreeSet<FrameId> = makers.flat_map(|row| &row.lines).map(|line| line.frame).collect();
        let of_image = |image: &ProcessId| {
            let image = recording.processes.get(image.0 as usize)?;
            let line = awaited_at.get(&image.pid).filter(|line| makers.contains(line))?;
            Some((&image.exe, *line))
        };
        let mut known: BTreeMap<&Arc<str>, BTreeMap<FrameId, u64>> = BTreeMap::new();
        for (program, line) in self.images.iter().filter_map(of_image) {
            known.entry(program).or_default().add(line, 1);
        }
        // Of programs that are started as often, one whose line is known comes first.
        self.programs.sort_by_key(|started| (Reverse(started.count), !known.contains_key(&started.program)));
        let is_first_known = self.programs.first().is_some_and(|first| known.contains_key(&first.program));
        let mut lines: Vec<RowLine> = Vec::new();
        for started in self.programs.iter().filter(|_| is_first_known) {
            let of_program = known.get(&started.program).map(|lines| standing_for(started.count, lines));
            for line in of_program.into_iter().flatten() {
                match lines.iter_mut().find(|of| of.frame == line.frame) {
                    Some(of) => (of.looks, of.weight) = (of.looks + line.looks, of.weight.saturating_add(line.weight)),
                    None => lines.push(line),
                }
            }
        }
        self.lines = (!known.is_empty()).then_some(lines);
    }
}

/// A program that is started again and again.
pub(crate) struct Started {
    /// The program's path.
    pub program: Arc<str>,
    /// Number of times that the program was started.
    pub count: u64,
}

/// Returns the programs that one program started at least [`Options::min_children`] times and that were mostly
/// short-lived.
pub(crate) fn children(recording: &Recording, semantics: &Semantics, options: &Options) -> Vec<Children> {
    let mut families = families(recording, semantics);
    // On a busy box processes live long and work little: all together took at most the run's processor time.
    let most = recording.own_cpu_at_most_ns().unwrap_or(u64::MAX);
    for family in families.values_mut() {
        family.count = family.count.min(executed(recording, family));
    }
    let is_short = |f: &Family| f.cpu_ns.min(most) / f.count.max(1) <= options.short_life_ns;
    let many = |f: &Family| f.count >= options.min_children && is_short(f);
    let idle = idle(recording, semantics, &families);
    let runs: Vec<(ProcessId, Arc<str>)> = families.keys().cloned().collect();
    let started: BTreeMap<ProcessId, u64> =
        Sums::of(families.iter().map(|((maker, _), family)| (*maker, family.count)));
    families.retain(|family, f| many(f) && !idle.contains(family));
    let images: Vec<(ProcessId, u64)> =
        families.values().flat_map(|f| f.images.iter().map(|image| (*image, f.count))).collect();
    // `popen` starts a shell that starts the program: the program that starts the shells must change.
    let only_between = |maker: ProcessId, f: &Family| {
        let of = images.iter().find(|(image, _)| *image == maker);
        of.is_some_and(|(_, makers)| f.count < makers.saturating_mul(options.min_children))
    };
    let mut by_maker: BTreeMap<ProcessId, Vec<(Arc<str>, Family)>> = BTreeMap::new();
    for ((maker, program), family) in families {
        if !only_between(maker, &family) {
            by_maker.entry(maker).or_default().push((program, family));
        }
    }
    let of_maker = |(maker, mut of_one): (ProcessId, Vec<(Arc<str>, Family)>)| {
        // Programs that do much work have a reason to be started: they do not count towards a finding about those that do little.
        let works = of_one.iter().all(|(_, family)| family.works());
        of_one.retain(|(_, family)| works || !family.works());
        let all = started.get(&maker).copied().unwrap_or(0);
        Children { works, ..gather(recording, semantics, of_one, all) }
    };
    let mut all: Vec<Children> = by_maker.into_iter().map(of_maker).collect();
    for children in &mut all {
        let within = runs.iter().filter(|(maker, _)| children.images.contains(maker));
        children.within = within.map(|(_, program)| program.clone()).collect();
    }
    all
}

/// Returns the programs whose starts are not needless: they live long compared with their start, or they only wait (`sleep`)
/// and their starter does not poll something, at least half as often, that it could wait for instead.
fn idle(recording: &Recording, semantics: &Semantics, families: &BTreeMap<Starting, Family>) -> BTreeSet<Starting> {
    let waits = |program: &str| program.rsplit('/').next().is_some_and(|name| WAITING_PROGRAMS.contains(&name));
    let looks = |(maker, _): &Starting, f: &Family| {
        let others = families.iter().filter(|((of, program), _)| of == maker && !waits(program));
        let rows = recording.rows.iter().filter(|row| row.process == *maker || f.makers.contains(&row.process));
        let asked = |row: &Row| match semantics.lines_of(row.syscall) {
            lines if lines.asks_about_paths() => row.counts.calls,
            lines if lines.may_open => row.counts.failed(),
            _ => 0,
        };
        let all = others.map(|(_, f)| f.count).chain(rows.map(asked)).fold(0, u64::saturating_add);
        2 * all >= f.count
    };
    let is_idle = |(family, f): &(&Starting, &Family)| {
        f.life_ns / f.count.max(1) >= LONG_LIFE || waits(&family.1) && !looks(family, f)
    };
    families.iter().filter(is_idle).map(|(family, _)| family.clone()).collect()
}

/// Returns all children of one process, with the rows that made them. The process started `all` programs, some of
/// which may be none of them; which of its calls served those is not known.
fn gather(recording: &Recording, semantics: &Semantics, families: Vec<(Arc<str>, Family)>, all: u64) -> Children {
    let makers = |p: &ProcessId| families.iter().any(|(_, f)| f.makers.contains(p));
    let stubs = |p: &ProcessId| families.iter().any(|(_, f)| f.stubs.contains(p));
    let of_threads = rows_of_threads(recording, semantics);
    let (mut spawning, mut forking, mut beginning, mut awaiting) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (id, row) in (0u32..).map(RowId).zip(&recording.rows) {
        let is_any = |of: &[&str]| row.syscall.name().is_some_and(|name| of.contains(&name));
        let (maker, stub) = (makers(&row.process), stubs(&row.process));
        let forks = semantics.lines_of(row.syscall).does(|e| matches!(e, Effect::Forks)) && !of_threads.contains(&id);
        if begins(row) && (maker || stub) {
            beginning.push(id);
        } else if is_any(&AWAITS) && (maker || stub) {
            awaiting.push(id);
        } else if forks && maker {
            if starts_programs_only(row) { &mut spawning } else { &mut forking }.push(id);
        }
    }
    let count = families.iter().fold(0u64, |n, (_, family)| n.saturating_add(family.count));
    let all = all.max(count);
    // The maker's other forks ran the remaining programs.
    let forked = all.saturating_sub(done_by(recording, &spawning));
    let (mut served, mut toll) = (BTreeMap::new(), 0.0);
    let of_these = count as f64 / all.max(1) as f64;
    let parts = [
        (&spawning, all, of_these, true),
        (&forking, forked, of_these, true),
        (&beginning, count, 1.0, false),
        (&awaiting, all, of_these, false),
    ];
    for (of, starts, of_these, forks) in parts {
        let share = served_share(recording, of, starts) * of_these;
        for id in of.iter().filter(|_| share > 0.0) {
            let counts = &recording.row(*id).counts;
            served.insert(*id, (counts.calls as f64 * share).round() as u64);
            toll += if forks { counts.toll_ns.unwrap_or(0) as f64 * share } else { 0.0 };
        }
    }
    let rows = served.keys().copied().collect();
    // The known parts of a start are estimates where processes were folded; all starts together took no more than the
    // run.
    let most = recording.own_cpu_at_most_ns().map_or(f64::INFINITY, |ns| ns as f64);
    let start_ns = (families.iter().map(|(_, f)| f.started_ns()).sum::<f64>() + toll).min(most);
    let images = families.iter().flat_map(|(_, f)| f.images.iter().copied()).collect();
    let mut programs: Vec<Started> =
        families.into_iter().map(|(program, f)| Started { program, count: f.count }).collect();
    programs.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.program.cmp(&b.program)));
    Children {
        programs,
        images,
        within: BTreeSet::new(),
        count,
        start_ns,
        rows,
        served,
        copies: None,
        works: false,
        lines: None,
    }
}

/// Returns the share of the rows' calls, 0 to 1, that `count` starts need, one successful call for each.
fn served_share(recording: &Recording, rows: &[RowId], count: u64) -> f64 {
    let done = done_by(recording, rows);
    if done > count { count as f64 / done as f64 } else { 1.0 }
}

/// Returns the number of successful calls of the rows.
fn done_by(recording: &Recording, rows: &[RowId]) -> u64 {
    rows.iter().map(|id| done(recording.row(*id))).fold(0, u64::saturating_add)
}

/// Returns true if the row's children share the maker's memory until they run a program, so that they do nothing else.
fn starts_programs_only(row: &Row) -> bool {
    row.syscall.name() == Some("vfork") || row.api.as_deref().is_some_and(|api| api.starts_with("posix_spawn"))
}

/// Returns the rows whose calls in windows all make threads, so that none of them makes a process.
pub(super) fn rows_of_threads(recording: &Recording, semantics: &Semantics) -> BTreeSet<RowId> {
    let (mut threads, mut others) = (BTreeSet::new(), BTreeSet::new());
    let forks = semantics.calls_in_windows(recording, |lines| lines.does(|e| matches!(e, Effect::Forks)));
    for fork in forks.filter(|fork| fork.call.nth > 0) {
        let makes_thread = semantics.lines_of(fork.syscall).spawns(&fork).is_some();
        if makes_thread { &mut threads } else { &mut others }.insert(fork.call.row);
    }
    threads.retain(|row| !others.contains(row));
    threads
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::Process;

    /// Returns a row of calls of a process, without callers.
    fn row(process: ProcessId, name: &str, calls: u64) -> Row {
        Row::new(process, systoll_model::Sysno::named(name), systoll_model::Counts { calls, ..Default::default() })
    }

    /// Returns a recording of a program in which each of 30 items is a child, a child of that child, and a program
    /// started there; `between` is the first child's program.
    fn items(between: &str) -> Recording {
        let image = |pid: u32, exe: &str, parent: Option<u32>| Process {
            pid,
            exe: exe.into(),
            parent: parent.map(ProcessId),
            instances: 1,
            cpu_ns: Some(1_000_000),
            ..Process::default()
        };
        let mut recording = Recording::default();
        recording.processes.push(image(1, "/bin/sh", None));
        for n in 0..30 {
            let at = recording.processes.len() as u32;
            recording.processes.push(image(100 + 2 * n, between, Some(0)));
            recording.processes.push(image(101 + 2 * n, between, Some(at)));
            recording.processes.push(image(101 + 2 * n, "/bin/date", Some(at + 1)));
        }
        recording
    }

    #[test]
    fn lines_are_those_of_the_first_program_whose_line_is_known() {
        let of = |counts: [u64; 3], awaited: &[(u32, u32)]| {
            let image = |pid: u32, exe: &str| Process { pid, exe: exe.into(), ..Process::default() };
            let line = |frame: u32| RowLine { frame: FrameId(frame), looks: 1, weight: 1 };
            let recording = Recording {
                processes: vec![image(1, "/bin/a"), image(2, "/bin/b"), image(3, "/bin/b"), image(4, "/bin/c")],
                rows: vec![Row { lines: (1..5).map(line).collect(), ..row(ProcessId(0), "vfork", 60) }],
                ..Recording::default()
            };
            let mut children = gather(&recording, &Semantics::new(), Vec::new(), 0);
            children.rows = vec![RowId(0)];
            children.images = (0..4).map(ProcessId).collect();
            let programs = ["/bin/a", "/bin/b", "/bin/c"].into_iter().zip(counts);
            children.programs = programs.map(|(program, count)| Started { program: program.into(), count }).collect();
            let awaited = awaited.iter().map(|(pid, line)| (*pid, FrameId(*line))).collect();
            children.note_lines(&recording, &awaited);
            children.lines.map(|lines| lines.iter().map(|line| (line.frame.0, line.weight)).collect::<Vec<_>>())
        };
        assert_eq!(of([20; 3], &[]), None);
        // Of programs that are started as often, one whose line is known comes first; each line stands for its program.
        assert_eq!(of([20; 3], &[(2, 3), (3, 3), (4, 1)]), Some(vec![(3, 20), (1, 20)]));
        assert_eq!(of([21, 20, 20], &[(2, 3)]), Some(vec![]), "the line of another program");
        assert_eq!(of([20; 3], &[(1, 9)]), None, "a line that makes no process");
    }

    #[test]
    fn a_shell_that_forks_on_the_way_is_one_shell() {
        let of = |recording: &Recording| children(recording, &Semantics::new(), &Options::default());
        let counts: Vec<u64> = of(&items("/bin/sh")).iter().map(|c| c.count).collect();
        assert_eq!(counts, [30]);
        assert!(of(&items("/bin/other")).is_empty());
    }

    /// Returns the recording of [`items`] with another program for `date`, which lives for `life_ns`.
    fn starting(program: &str, life_ns: u64) -> Recording {
        let mut recording = items("/bin/sh");
        for image in recording.processes.iter_mut().filter(|p| &*p.exe == "/bin/date") {
            (image.exe, image.life_ns) = (program.into(), life_ns);
        }
        recording
    }

    #[test]
    fn a_program_that_takes_its_time_is_not_started_for_nothing() {
        let told = |recording: &Recording| children(recording, &Semantics::new(), &Options::default()).len();
        let (short, long) = (3_000_000, 300_000_000);
        assert_eq!((told(&starting("/bin/date", short)), told(&starting("/bin/date", long))), (1, 0));
        // A program that sleeps and polls nothing wants time to pass. One that polls could wait for
        // the event instead.
        let paces = starting("/bin/sleep", 20_000_000);
        assert_eq!(told(&paces), 0);
        let mut looks = paces;
        looks.rows.push(row(ProcessId(0), "newfstatat", 30));
        assert_eq!(told(&looks), 1);
    }

    #[test]
    fn programs_that_work_longer_than_they_start_are_kept_apart_from_others() {
        let options = Options { min_children: 10, ..Options::default() };
        let of = |recording: &Recording| {
            let [all] = &children(recording, &Semantics::new(), &options)[..] else { panic!("one finding") };
            (all.works, all.programs.iter().map(|s| (&*s.program == "/bin/expr", s.count)).collect::<Vec<_>>())
        };
        let mut recording = items("/bin/sh");
        for image in recording.processes.iter_mut().filter(|p| &*p.exe == "/bin/date") {
            (image.startup_cpu_ns, image.cpu_ns) = (500_000, Some(9_000_000));
        }
        assert_eq!(of(&recording), (true, vec![(false, 30)]));
        for image in recording.processes.iter_mut().filter(|p| &*p.exe == "/bin/date").step_by(3) {
            (image.exe, image.cpu_ns) = ("/bin/expr".into(), Some(1_000_000));
        }
        assert_eq!(of(&recording), (false, vec![(true, 10)]));
        // The duration of the start is unknown.
        recording.processes.iter_mut().for_each(|image| image.startup_cpu_ns = 0);
        assert!(!of(&recording).0);
    }

    #[test]
    fn what_one_program_starts_is_told_together() {
        let mut recording = items("/bin/sh");
        for (at, image) in recording.processes.iter_mut().filter(|p| &*p.exe == "/bin/date").enumerate() {
            if at % 3 == 0 {
                image.exe = "/bin/expr".into();
            }
        }
        let mut more = items("/bin/sh").processes;
        for image in more.iter_mut().skip(1) {
            image.parent = image.parent.map(|p| if p.0 == 0 { p } else { ProcessId(p.0 + 90) });
        }
        recording.processes.extend(more.drain(1..));
        let options = Options { min_children: 10, ..Options::default() };
        let [all] = &children(&recording, &Semantics::new(), &options)[..] else { panic!("one finding") };
        let programs: Vec<(&str, u64)> = all.programs.iter().map(|s| (&*s.program, s.count)).collect();
        assert_eq!((programs, all.count), (vec![("/bin/date", 50), ("/bin/expr", 10)], 60));
    }

    #[test]
    fn a_shell_between_is_not_who_starts_the_programs() {
        // As `popen` does it: the program forks and executes a shell, which forks and executes the command.
        let image = |pid: u32, exe: &str, parent: Option<u32>| Process {
            pid,
            exe: exe.into(),
            parent: parent.map(ProcessId),
            instances: 1,
            ..Process::default()
        };
        let mut recording = Recording::default();
        recording.processes.push(image(1, "/bin/app", None));
        for n in 0..30 {
            let at = recording.processes.len() as u32;
            recording.processes.push(image(100 + 2 * n, "/bin/app", Some(0)));
            recording.processes.push(image(100 + 2 * n, "/bin/sh", Some(at)));
            recording.processes.push(image(101 + 2 * n, "/bin/sh", Some(at + 1)));
            recording.processes.push(image(101 + 2 * n, "/bin/date", Some(at + 2)));
        }
        // Many more processes were folded into the last one.
        recording.processes.last_mut().unwrap().instances = 100;
        let [all] = &children(&recording, &Semantics::new(), &Options::default())[..] else { panic!("one finding") };
        assert_eq!(all.single().map(|s| (&*s.program, s.count)), Some(("/bin/sh", 30)));
        assert_eq!(all.within.iter().map(|p| &**p).collect::<Vec<_>>(), ["/bin/date"]);
    }

    #[test]
    fn programs_folded_into_the_last_one_were_started_like_the_others() {
        let of = |recording: &Recording| {
            let [family] = &children(recording, &Semantics::new(), &Options::default())[..] else {
                panic!("one family")
            };
            (family.count, family.start_ns)
        };
        let mut recording = items("/bin/sh");
        let (count, start_ns) = of(&recording);
        // Only the dates of 300 more items were folded into the last one; their shells have an entry of their own.
        let date = recording.processes.last_mut().unwrap();
        (date.instances, date.cpu_ns) = (301, Some(301_000_000));
        let mut shells = recording.processes[2].clone();
        (shells.pid, shells.instances, shells.cpu_ns) = (900, 300, Some(300_000_000));
        recording.processes.push(shells);
        let folded = of(&recording);
        assert_eq!((count, folded.0), (30, 330));
        // The other processes' calls that execute the program belong to the cost of starting it.
        let line = ProcessId(recording.processes.len() as u32 - 1);
        recording.rows.push(row(line, "execve", 0));
        let [family] = &children(&recording, &Semantics::new(), &Options::default())[..] else { panic!("one family") };
        assert_eq!(family.rows, [RowId(0)]);
        assert!((folded.1 / start_ns - 11.0).abs() < 0.01, "{start_ns} {}", folded.1);
    }

    #[test]
    fn children_that_share_their_makers_memory_are_those_that_run_programs() {
        let mut recording = items("/bin/sh");
        for at in 0..30 {
            recording.processes[2 + 3 * at].parent = Some(ProcessId(0));
        }
        recording.rows.push(row(ProcessId(0), "clone", 60));
        recording.rows.push(row(ProcessId(0), "vfork", 30));
        let of = |recording: &Recording| {
            let [family] = &children(recording, &Semantics::new(), &Options::default())[..] else { panic!("one") };
            family.served.iter().map(|(row, calls)| (row.0, *calls)).collect::<Vec<_>>()
        };
        assert_eq!(of(&recording), [(1, 30)]);
        recording.rows[1].counts.calls = 15;
        assert_eq!(of(&recording), [(0, 15), (1, 15)]);
    }

    #[test]
    fn forks_and_waits_for_others_do_not_serve_the_starts() {
        let mut recording = items("/bin/sh");
        recording.rows.push(row(ProcessId(0), "clone", 60));
        recording.rows.push(row(ProcessId(0), "wait4", 60));
        recording.rows.push(row(ProcessId(2), "execve", 30));
        // The shell forks the first children; half of its forks are of others.
        let of = |recording: &Recording| {
            let [family] = &children(recording, &Semantics::new(), &Options::default())[..] else { panic!("one") };
            family.served.values().copied().collect::<Vec<_>>()
        };
        for at in 0..30 {
            recording.processes[2 + 3 * at].parent = Some(ProcessId(0));
        }
        assert_eq!(of(&recording), [30, 30, 30]);
        recording.rows[0].counts.calls = 30;
        recording.rows[1].counts.calls = 31;
        recording.rows[1].counts.errors.insert(systoll_model::Errno::ECHILD, 1);
        assert_eq!(of(&recording), [30, 31, 30]);
    }

    #[test]
    fn signals_and_threads_start_no_program() {
        let mut recording = items("/bin/sh");
        // The process that forked on the way makes the calls.
        recording.rows =
            ["tgkill", "clone", "clone", "wait4", "pidfd_send_signal"].map(|name| row(ProcessId(1), name, 9)).to_vec();
        let call = |at: u32, flags: u64| systoll_model::WindowCall {
            row: RowId(at),
            nth: 1,
            args: [flags, 0x7000_0000, 0, 0, 0, 0],
            data: vec![],
            fd: None,
            result: Some(5),
            entry_ns: 0,
            elapsed_ns: 100,
            waited_ns: None,
            signals_before: 0,
            faults: None,
            stack: None,
            before: systoll_model::Before::Unknown,
            request: None,
        };
        // CLONE_THREAD, and the SIGCHLD of a fork.
        let calls = vec![call(1, 0x1_0000), call(2, 17)];
        let window = systoll_model::Window { process: ProcessId(0), thread: 0, row: RowId(1), octave: 0, calls };
        recording.windows.push(window);
        let [family] = &children(&recording, &Semantics::new(), &Options::default())[..] else { panic!("one family") };
        assert_eq!(family.rows, [RowId(2), RowId(3)]);
    }

    #[test]
    fn each_of_several_folded_into_one_was_started() {
        let mut recording = items("/bin/sh");
        for image in recording.processes.iter_mut().filter(|p| &*p.exe == "/bin/date") {
            image.startup_cpu_ns = 100_000;
        }
        let start = |recording: &Recording| {
            children(recording, &Semantics::new(), &Options::default()).iter().map(|c| c.start_ns).sum::<f64>()
        };
        let before = start(&recording);
        let folded = recording.processes.last_mut().unwrap();
        (folded.instances, folded.cpu_ns) = (11, Some(11_000_000));
        // Ten more processes cost ten more start-ups, and ten more shells like the others.
        assert_eq!(start(&recording) - before, 10.0 * (100_000.0 + 1_000_000.0));
        // Of 44 folded shells 11 executed date: as long as those that were not folded, but no longer than all 44 together.
        let before = start(&recording);
        let stub = recording.processes.iter_mut().rev().nth(1).unwrap();
        (stub.instances, stub.cpu_ns) = (44, Some(4_000_000));
        assert_eq!(start(&recording) - before, -7.0 * 1_000_000.0);
    }

    #[test]
    fn programs_folded_into_their_own_forks_are_told_by_who_executed_them() {
        // As `find -exec sh -c … ;` with more processes than are kept apart: the shells that follow were folded into the
        // fork of one of the first.
        let image = |pid: u32, exe: &str, parent: Option<u32>, instances: u64| Process {
            pid,
            exe: exe.into(),
            parent: parent.map(ProcessId),
            instances,
            ..Process::default()
        };
        let told = |others: &[&str]| {
            let mut recording = Recording::default();
            recording.processes.push(image(1, "/bin/find", None, 1));
            for n in 0..24 {
                let at = recording.processes.len() as u32;
                recording.processes.push(image(100 + 2 * n, "/bin/find", Some(0), 1));
                recording.processes.push(image(100 + 2 * n, "/bin/sh", Some(at), 1));
                recording.processes.push(image(101 + 2 * n, "/bin/sh", Some(at + 1), 1));
                recording.rows.push(row(ProcessId(at), "execve", 1));
            }
            recording.processes.last_mut().unwrap().instances = 175;
            let folded = recording.processes.len() as u32;
            recording.processes.push(image(200, "/bin/find", Some(0), 87));
            recording.rows.push(row(ProcessId(folded), "execve", 87));
            for (n, other) in (0u32..).zip(others) {
                let at = recording.processes.len() as u32;
                recording.processes.push(image(300 + n, "/bin/find", Some(0), 1));
                recording.processes.push(image(300 + n, other, Some(at), 1));
            }
            let found = children(&recording, &Semantics::new(), &Options::default());
            found.iter().map(|children| children.count).collect::<Vec<_>>()
        };
        assert_eq!(told(&[]), [111]);
        // Where several programs are started, nothing tells which of them the others were.
        assert_eq!(told(&["/bin/date"]), [24]);
    }
}
