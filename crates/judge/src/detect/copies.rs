//! Detects a process that is forked for each item and ends after a little work, without running another program. Counts of
//! forks are exact; their price is read from processor times and from windows, which show how long a fork takes.

use super::children::{AWAITS, Children, Copies, Started, rows_of_threads};
use super::families::{begins, done, roots, started};
use crate::collections::sums::Sums;
use crate::semantics::{Effect, Semantics, shares_memory};
use crate::world::bounds::OFTEN;
use std::collections::{BTreeMap, BTreeSet};
use systoll_model::{ProblemKind, Process, ProcessId, Recording, RowId, Window};

/// System calls that make a pipe, through which a child hands over what it printed.
const PIPES: [&str; 2] = ["pipe", "pipe2"];
/// System calls, besides those that change ids and rights, by which a child gets another root or other limits than its
/// parent: what it does then needs a process of its own.
const CONFINES: [&str; 7] =
    ["chroot", "pivot_root", "setrlimit", "seccomp", "ptrace", "landlock_restrict_self", "sched_setscheduler"];
/// System call that changes the group of a process: a shell's job control calls it for each child.
const GROUPS: &str = "setpgid";
/// System call that asks for a limit, or sets it if its third argument is not null.
const LIMITS: &str = "prlimit64";
/// Number of forked processes that run no program from which on they are a habit: pools of workers are smaller, or live as
/// long as their maker.
const MANY: u64 = 50;
/// Largest ratio of a child's processor time to the time of a fork for a child that does little. A child that does nothing
/// takes 0.7 to 2.8 of it (dash, bash, zsh, Perl, Ruby, Python, C); one of Python's `multiprocessing` 4.
const LITTLE: f64 = 5.0;
/// Least ratio of a single child's processor time to the time of a fork for a child that has another job than the others.
/// A child with less was interrupted.
const MUCH: f64 = 20.0;
/// Least number of pipes for each fork where each child has one, and where two children share one.
const PIPED: [f64; 2] = [0.75, 0.4];
/// Part of a child's processor time that is its copying and end, at most: a multiple of the time of a fork.
const OF_CHILD: f64 = 3.0;
/// Largest processor time of the maker for each fork, as a multiple of the time of a fork: after the fork, writes to pages
/// that it shares with the child fault.
const OF_MAKER: f64 = 2.0;
/// Largest mean life of a child, ns. A child that waits longer serves a slow client.
const LONG_LIFE: u64 = 1_000_000_000;
/// Share of the copies, 0 to 1, that live at the same time in a pool of workers.
const POOL: f64 = 0.5;

/// The processes that one image forked, directly or by its forks.
#[derive(Default)]
struct Family {
    /// The image and its forks.
    members: BTreeSet<ProcessId>,
    /// Rows of forks that copy the process.
    forks: Vec<RowId>,
    /// Number of these forks.
    forked: u64,
    /// Number of forked processes that began to run a program.
    executed: u64,
    /// Number of copies: forked processes that ran no program.
    count: u64,
    /// The copies, image by image.
    images: Vec<CopiesOfImage>,
}

/// The copies among the processes of one image.
struct CopiesOfImage {
    number: f64,
    /// Processor time of all of them, ns.
    cpu_ns: f64,
    /// Sum of their lives, ns.
    life_ns: f64,
}

impl Family {
    /// Returns the sum of a figure of the copies.
    fn sum(&self, of: fn(&CopiesOfImage) -> f64) -> f64 {
        self.images.iter().map(of).sum()
    }

    /// Returns the processor time of all copies, ns.
    fn cpu_ns(&self) -> f64 {
        self.sum(|image| image.cpu_ns)
    }

    /// Leaves out copies that work very much longer than a fork takes: another job's child among those of the items.
    fn leave_out_workers(&mut self, fork_ns: f64) {
        self.images.retain(|image| image.cpu_ns <= MUCH * fork_ns * image.number);
        self.count = self.sum(|image| image.number).round() as u64;
    }
}

/// The rows and windows of each process, and the rows that set a limit.
struct ByProcess<'a> {
    rows: BTreeMap<ProcessId, Vec<RowId>>,
    windows: BTreeMap<ProcessId, Vec<&'a Window>>,
    limits: BTreeSet<RowId>,
}

impl<'a> ByProcess<'a> {
    fn of(recording: &'a Recording) -> Self {
        let mut rows: BTreeMap<ProcessId, Vec<RowId>> = BTreeMap::new();
        for (at, row) in (0u32..).zip(&recording.rows) {
            rows.entry(row.process).or_default().push(RowId(at));
        }
        let mut windows: BTreeMap<ProcessId, Vec<&Window>> = BTreeMap::new();
        for window in &recording.windows {
            windows.entry(window.process).or_default().push(window);
        }
        let calls = recording.windows.iter().flat_map(|window| &window.calls).filter(|call| call.args[2] != 0);
        let is_limit = |row: &RowId| recording.row(*row).syscall.name() == Some(LIMITS);
        Self { rows, windows, limits: calls.map(|call| call.row).filter(is_limit).collect() }
    }

    fn rows_of(&self, process: ProcessId) -> &[RowId] {
        self.rows.get(&process).map_or(&[], Vec::as_slice)
    }

    /// Returns the windows of all members of a family.
    fn windows_of(&self, family: &Family) -> impl Iterator<Item = &'a Window> {
        family.members.iter().filter_map(|id| self.windows.get(id)).flatten().copied()
    }
}

/// Returns the processes that are forked at least [`MANY`] times and end after a little work. Where most of
/// the forks lead to a program, their price is added to the one of its starts instead.
pub(crate) fn copies(recording: &Recording, semantics: &Semantics, programs: &mut [Children]) -> Vec<Children> {
    let mut all = Vec::new();
    let roots = roots(recording);
    let mut families = families(recording, semantics, &roots);
    families.retain(|_, family| family.count >= MANY && !is_pool(recording, family));
    if families.is_empty() {
        return all;
    }
    let by_process = ByProcess::of(recording);
    let root_of = |id: &RowId| roots.get(recording.row(*id).process.0 as usize).copied();
    let makers: Vec<BTreeSet<ProcessId>> =
        programs.iter().map(|children| children.rows.iter().filter_map(root_of).collect()).collect();
    for (root, mut family) in families {
        if is_confined(recording, semantics, &family, &by_process) {
            continue;
        }
        let Some(fork_ns) = fork_ns(recording, &family, &by_process) else { continue };
        let before = family.count;
        family.leave_out_workers(fork_ns);
        let mean_ns = family.cpu_ns() / family.count.max(1) as f64;
        if family.count < MANY || 2 * family.count < before || mean_ns > LITTLE * fork_ns {
            continue;
        }
        let price = Price::of(recording, root, &family, fork_ns, &by_process);
        let of_root = |(children, makers): &(&mut Children, &BTreeSet<ProcessId>)| {
            makers.contains(&root) && children.count >= family.count / 2
        };
        match programs.iter_mut().zip(&makers).find(of_root) {
            Some((children, _)) => {
                let most = recording.own_cpu_at_most_ns().map_or(f64::INFINITY, |ns| ns as f64);
                children.start_ns = (children.start_ns + price.ns).min(most);
            }
            None if 2 * family.executed <= family.count => all.push(told(recording, root, &family, price, &by_process)),
            None => {}
        }
    }
    all
}

/// Returns the family of each image that forks copies of itself.
fn families(recording: &Recording, semantics: &Semantics, roots: &[ProcessId]) -> BTreeMap<ProcessId, Family> {
    let of_threads = rows_of_threads(recording, semantics);
    let shared = rows_of_shared_memory(recording, semantics);
    let mut families: BTreeMap<ProcessId, Family> = BTreeMap::new();
    for (at, row) in (0u32..).zip(&recording.rows) {
        let id = RowId(at);
        let forks = semantics.lines_of(row.syscall).does(|e| matches!(e, Effect::Forks));
        let copies = forks && row.syscall.name() != Some("vfork") && !of_threads.contains(&id) && !shared.contains(&id);
        let made = done(row);
        if let Some(root) = roots.get(row.process.0 as usize).filter(|_| copies && made > 0) {
            let family = families.entry(*root).or_default();
            family.forks.push(id);
            family.forked = family.forked.saturating_add(made);
        }
    }
    for (at, root) in (0u32..).zip(roots) {
        if let Some(family) = families.get_mut(root) {
            family.members.insert(ProcessId(at));
        }
    }
    let mut stubs = BTreeSet::new();
    for (at, image) in (0u32..).zip(&recording.processes) {
        let Some(before) = image.parent.filter(|before| before.0 != at) else { continue };
        let (Some(stub), Some(root)) = (recording.processes.get(before.0 as usize), roots.get(before.0 as usize))
        else {
            continue;
        };
        let became = stub.pid == image.pid || stub.instances > 1 && image.exe != stub.exe;
        if became && before != *root {
            stubs.insert(before);
            if let Some(family) = families.get_mut(root) {
                let begun = started(recording, semantics, at, image);
                family.executed = family.executed.saturating_add(begun);
            }
        }
    }
    let begun = begun(recording);
    for (root, family) in &mut families {
        if !begun.is_empty() {
            family.executed = family.began(recording, *root, &begun);
        }
        family.add_copies(recording, *root, &stubs);
    }
    families
}

/// Returns the number of programs that each process began to run, by its exact counts of `execve`. Empty if the recording
/// has no such calls.
fn begun(recording: &Recording) -> BTreeMap<ProcessId, u64> {
    Sums::of(recording.rows.iter().filter(|row| begins(row)).map(|row| (row.process, done(row))))
}

impl Family {
    /// Returns the number of the family's forks that began to run a program, or more: a folded image of the family's
    /// program has calls of other families' processes as well, and names only one maker.
    fn began(&self, recording: &Recording, root: ProcessId, begun: &BTreeMap<ProcessId, u64>) -> u64 {
        let of = |id: ProcessId| recording.processes.get(id.0 as usize);
        let program = of(root).map(|image| &image.exe);
        let is_own = |id: &ProcessId| match of(*id) {
            Some(image) if image.is_many() => Some(&image.exe) == program,
            _ => *id != root && self.members.contains(id),
        };
        begun.iter().filter(|(id, _)| is_own(id)).fold(0, |sum, (_, programs)| sum.saturating_add(*programs))
    }

    /// Adds up the copies' number, processor time and lives.
    fn add_copies(&mut self, recording: &Recording, root: ProcessId, stubs: &BTreeSet<ProcessId>) {
        self.count = self.forked.saturating_sub(self.executed);
        let of = |id: &ProcessId| recording.processes.get(id.0 as usize);
        let is_copy = |(id, image): &(&ProcessId, &Process)| **id != root && (image.is_many() || !stubs.contains(id));
        let images = self.members.iter().filter_map(|id| Some((id, of(id)?))).filter(is_copy);
        let (many, single): (Vec<_>, Vec<_>) = images.map(|(_, image)| image).partition(|image| image.is_many());
        let mut left = self.count;
        // Images of one process first: the copies among folded ones are what is left.
        for image in single.into_iter().chain(many) {
            let copies = image.instances.min(left);
            left -= copies;
            let part = copies as f64 / image.instances.max(1) as f64;
            // Without a processor time the child may have done anything.
            let cpu_ns = image.cpu_ns.map_or(f64::INFINITY, |ns| ns as f64) * part;
            if copies > 0 {
                let life_ns = image.life_ns as f64 * part;
                self.images.push(CopiesOfImage { number: copies as f64, cpu_ns, life_ns });
            }
        }
        // Forks whose process was never seen have no price.
        self.count -= left;
    }
}

/// Returns the rows with a call that makes a process in its maker's memory, as `posix_spawn` does.
fn rows_of_shared_memory(recording: &Recording, semantics: &Semantics) -> BTreeSet<RowId> {
    let forks = semantics.calls_in_windows(recording, |lines| lines.does(|e| matches!(e, Effect::Forks)));
    forks.filter(shares_memory).map(|fork| fork.call.row).collect()
}

/// Returns true if the copies live side by side, as workers do that are forked once.
fn is_pool(recording: &Recording, family: &Family) -> bool {
    let count = family.count.max(1) as f64;
    let wall = recording.header.wall_ns.max(1) as f64;
    let life_ns = family.sum(|image| image.life_ns);
    life_ns / wall >= POOL * count || life_ns / count >= LONG_LIFE as f64
}

/// Returns true if at least half of the copies give up rights or get limits of their own, or may do so unseen.
fn is_confined(recording: &Recording, semantics: &Semantics, family: &Family, by_process: &ByProcess<'_>) -> bool {
    if recording.problems.iter().any(|problem| problem.kind == ProblemKind::Unwatched) {
        // What was not watched may be the children, and their calls what they are there for.
        return true;
    }
    let forks: BTreeSet<ProcessId> = family.forks.iter().map(|id| recording.row(*id).process).collect();
    let confines = |id: &RowId| {
        let syscall = recording.row(*id).syscall;
        let name = syscall.name().unwrap_or_default();
        let changes = semantics.lines_of(syscall).always_does(|effect| matches!(effect, Effect::Identity));
        changes && name != GROUPS || CONFINES.contains(&name) || by_process.limits.contains(id)
    };
    let copies = family.members.iter().filter(|id| !forks.contains(id));
    let rows = copies.flat_map(|id| by_process.rows_of(*id)).filter(|id| confines(id));
    let calls = rows.map(|id| done(recording.row(*id))).fold(0, u64::saturating_add);
    calls.saturating_mul(2) >= family.count
}

/// Returns the time that a fork takes its maker, ns: from its beginning to the next call of the maker, or to the first call
/// of the child if that comes sooner. It is the lower quartile, since a thread may wait for a processor in between. Returns
/// `None` if windows show too few.
fn fork_ns(recording: &Recording, family: &Family, by_process: &ByProcess<'_>) -> Option<f64> {
    let forks: BTreeSet<RowId> = family.forks.iter().copied().collect();
    let mut first: BTreeMap<u32, u64> = BTreeMap::new();
    for window in by_process.windows_of(family) {
        let pid = recording.processes.get(window.process.0 as usize).filter(|p| !p.is_many()).map(|p| p.pid);
        if let (Some(pid), Some(call)) = (pid, window.calls.first()) {
            let entry = first.entry(pid).or_insert(call.entry_ns);
            *entry = call.entry_ns.min(*entry);
        }
    }
    let mut all: Vec<u64> = by_process.windows_of(family).flat_map(|window| forks_in(window, &forks, &first)).collect();
    all.sort_unstable();
    if all.len() < OFTEN { None } else { all.get(all.len() / 4).map(|ns| *ns as f64) }
}

/// Returns the time after each fork in a window until the maker or the child makes another call, ns.
fn forks_in(window: &Window, forks: &BTreeSet<RowId>, first: &BTreeMap<u32, u64>) -> Vec<u64> {
    let pairs = window.calls.windows(2).filter_map(|two| match two {
        [call, next] if forks.contains(&call.row) => Some((call, next)),
        _ => None,
    });
    let until_next = pairs.filter_map(|(call, next)| {
        let pid = u32::try_from(call.result?).ok().filter(|pid| *pid > 0)?;
        let of_child = first.get(&pid).copied().filter(|at| *at > call.entry_ns);
        let until = of_child.map_or(next.entry_ns, |at| at.min(next.entry_ns));
        until.checked_sub(call.entry_ns)
    });
    until_next.collect()
}

/// The processor time that copies take beside their work, ns.
#[derive(Clone, Copy)]
struct Price {
    /// Estimate.
    ns: f64,
    /// Bounds of what is won without the copies.
    gain: [f64; 2],
}

impl Price {
    fn of(recording: &Recording, root: ProcessId, family: &Family, fork_ns: f64, by_process: &ByProcess<'_>) -> Self {
        let count = family.count as f64;
        let child = family.cpu_ns() / count;
        // The maker's time beside its calls has its own work, too, so that it is only an upper bound.
        let tolls = by_process.rows_of(root).iter().filter_map(|id| recording.row(*id).counts.toll_ns);
        let toll: u64 = tolls.fold(0, u64::saturating_add);
        let made = family.forks.iter().map(|id| recording.row(*id)).filter(|row| row.process == root);
        let made: u64 = made.map(|row| row.counts.calls).fold(0, u64::saturating_add);
        let cpu_ns = recording.processes.get(root.0 as usize).and_then(|image| image.cpu_ns);
        let beside = cpu_ns.map(|ns| ns.saturating_sub(toll) as f64 / made.max(1) as f64).filter(|_| made > 0);
        let maker = beside.unwrap_or(fork_ns).min(OF_CHILD * child.max(fork_ns));
        let most = recording.own_cpu_at_most_ns().map_or(f64::INFINITY, |ns| ns as f64);
        let all = |maker: f64, child: f64| (count * (maker + child)).min(most);
        Self {
            ns: all(maker.min(OF_MAKER * fork_ns), child.min(OF_CHILD * fork_ns)),
            gain: [
                0.9 * all(maker.min(fork_ns), child.min(fork_ns)),
                (1.2 * all(maker.min(OF_CHILD * fork_ns), child)).min(most),
            ],
        }
    }
}

/// Returns what is told of a family: the forks, the waits for them, and their price.
fn told(recording: &Recording, root: ProcessId, family: &Family, price: Price, by_process: &ByProcess<'_>) -> Children {
    let makers: BTreeSet<ProcessId> = family.forks.iter().map(|id| recording.row(*id).process).collect();
    let calls_of = |names: &[&str]| {
        let is = |id: &&RowId| recording.row(**id).syscall.name().is_some_and(|name| names.contains(&name));
        let rows: BTreeSet<RowId> = makers.iter().flat_map(|id| by_process.rows_of(*id)).filter(is).copied().collect();
        rows
    };
    let pipes = calls_of(&PIPES).iter().fold(0u64, |n, id| n.saturating_add(recording.row(*id).counts.calls));
    let exe = recording.processes.get(root.0 as usize).map(|image| image.exe.clone()).unwrap_or_default();
    let per_fork = pipes as f64 / family.forked.max(1) as f64;
    let [each, shared] = PIPED;
    let rows: Vec<RowId> = family.forks.iter().copied().chain(calls_of(&AWAITS)).collect();
    Children {
        programs: vec![Started { program: exe, count: family.count }],
        images: family.members.iter().copied().filter(|id| *id != root).collect(),
        within: BTreeSet::new(),
        count: family.count,
        start_ns: price.ns,
        served: rows.iter().map(|id| (*id, recording.row(*id).counts.calls)).collect(),
        rows,
        copies: Some(Copies {
            is_piped: per_fork >= each,
            is_pipeline: (shared..each).contains(&per_fork),
            gain: price.gain,
        }),
        works: false,
        lines: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::children::children;
    use crate::options::Options;
    use systoll_model::{Counts, Row, Stack, Sysno, WindowCall};

    /// Returns a recording of a program that forks 60 processes of 200 µs, one after the other; a fork takes 100 µs.
    fn forking() -> Recording {
        forking_many(60)
    }

    /// Returns the recording of [`forking`] with another number of processes.
    fn forking_many(number: u32) -> Recording {
        let image = |pid: u32, parent: Option<u32>| Process {
            pid,
            exe: "/bin/app".into(),
            parent: parent.map(ProcessId),
            instances: 1,
            cpu_ns: Some(200_000),
            life_ns: 1_000_000,
            ..Process::default()
        };
        let mut recording = Recording::default();
        recording.header.wall_ns = 60_000_000;
        recording.stacks.push(Stack::default());
        recording.processes.push(Process { cpu_ns: Some(200_000 * u64::from(number)), ..image(1, None) });
        recording.processes.extend((0..number).map(|n| image(100 + n, Some(0))));
        let counts = |calls: u32| Counts { calls: calls.into(), ..Counts::default() };
        let row = |name, calls| Row::new(ProcessId(0), Sysno::named(name), counts(calls));
        recording.rows = vec![row("clone", number), row("wait4", number), row("pipe2", number)];
        let call = |row, result, entry_ns| WindowCall {
            row: RowId(row),
            result: Some(result),
            entry_ns,
            ..Default::default()
        };
        for n in 0..10 {
            let at = 1_000_000 * n as u64;
            let calls = vec![call(0, 100 + n, at), call(1, 100 + n, at + 100_000)];
            recording.windows.push(Window { process: ProcessId(0), thread: 0, row: RowId(0), octave: 0, calls });
        }
        recording
    }

    fn told(recording: &Recording) -> Vec<Children> {
        let semantics = Semantics::new();
        let mut programs = children(recording, &semantics, &Options::default());
        copies(recording, &semantics, &mut programs)
    }

    /// Returns the numbers of copies that are told of a recording after a change of it.
    fn counts(change: impl FnOnce(&mut Recording)) -> Vec<u64> {
        let mut recording = forking();
        change(&mut recording);
        told(&recording).iter().map(|children| children.count).collect()
    }

    fn each(recording: &mut Recording, change: impl Fn(&mut Process)) {
        recording.processes.iter_mut().skip(1).for_each(change);
    }

    #[test]
    fn a_process_for_each_item_that_does_little_is_told_with_what_it_takes() {
        let all = told(&forking());
        let [one] = &all[..] else { panic!("one family") };
        assert_eq!((one.count, one.rows.clone()), (60, vec![RowId(0), RowId(1)]));
        // 200 µs of each child and as much of its maker.
        assert!((one.start_ns - 24e6).abs() < 1e3, "{}", one.start_ns);
        let Some(Copies { is_piped: true, is_pipeline: false, gain: [low, high] }) = one.copies else {
            panic!("with pipes")
        };
        assert!(low < one.start_ns && one.start_ns < high, "{low} {high}");
        let mut pipeline = forking();
        pipeline.rows[2].counts.calls = 30;
        assert!(told(&pipeline)[0].copies.is_some_and(|copies| !copies.is_piped && copies.is_pipeline));
    }

    #[test]
    fn children_with_work_workers_and_confined_ones_are_not_told() {
        assert_eq!(counts(|_| ()), [60]);
        assert!(counts(|r| each(r, |p| p.cpu_ns = Some(600_000))).is_empty(), "work");
        assert!(counts(|r| each(r, |p| p.cpu_ns = None)).is_empty(), "unknown work");
        assert!(counts(|r| each(r, |p| p.life_ns = 40_000_000)).is_empty(), "a pool");
        assert!(counts(|r| r.windows.clear()).is_empty(), "no price");
        let confines = |r: &mut Recording| {
            let row = |at| Row::new(ProcessId(at), Sysno::named("setuid"), Counts { calls: 1, ..Counts::default() });
            r.rows.extend((1..61).map(row));
        };
        assert!(counts(confines).is_empty(), "other rights");
        let shares = |r: &mut Recording| r.windows.iter_mut().for_each(|w| w.calls[0].args[0] = 0x100);
        assert!(counts(shares).is_empty(), "posix_spawn copies nothing");
        assert!(counts(|r| drop(r.processes.drain(40..))).is_empty(), "fewer than a habit");
    }

    #[test]
    fn folded_forks_that_exec_are_no_copies() {
        let execs = |process, calls| Row::new(ProcessId(process), Sysno::named("execve"), counts_of(calls));
        // Only the forks' image was folded: the programs that they ran were folded into an image with another maker.
        let folded = |r: &mut Recording| {
            r.processes.truncate(11);
            let last = r.processes.last_mut().unwrap();
            (last.instances, last.cpu_ns, last.life_ns) = (51, Some(51 * 200_000), 51_000_000);
            r.rows.push(execs(0, 1));
        };
        assert_eq!(counts(folded), [60]);
        let run_programs = |r: &mut Recording| {
            folded(r);
            r.rows.extend((1..10).map(|at| execs(at, 1)).chain([execs(10, 51)]));
        };
        assert!(counts(run_programs).is_empty());
        // The folded image has forks of another process of the same program, too.
        let another_maker = |r: &mut Recording| {
            run_programs(r);
            let other = r.processes.len() as u32;
            r.processes.push(Process { argv: vec!["other".into()], parent: None, ..r.processes[0].clone() });
            r.processes[10].parent = Some(ProcessId(other));
            r.processes[10].argv = vec!["other".into()];
            r.rows[0].process = ProcessId(0);
        };
        assert!(counts(another_maker).is_empty());
    }

    fn counts_of(calls: u64) -> Counts {
        Counts { calls, ..Counts::default() }
    }

    #[test]
    fn a_child_of_another_kind_does_not_hide_the_others() {
        assert_eq!(counts(|r| r.processes[1].cpu_ns = Some(50_000_000)), [59]);
    }

    #[test]
    fn forks_that_run_programs_are_told_with_the_programs() {
        let mut recording = forking_many(120);
        for n in 0..60 {
            let program = Process {
                pid: 100 + n,
                exe: "/bin/cat".into(),
                parent: Some(ProcessId(1 + n)),
                instances: 1,
                cpu_ns: Some(500_000),
                ..Process::default()
            };
            recording.processes.push(program);
        }
        let semantics = Semantics::new();
        let mut programs = children(&recording, &semantics, &Options::default());
        let before: f64 = programs.iter().map(|children| children.start_ns).sum();
        let alone = copies(&recording, &semantics, &mut programs);
        let after: f64 = programs.iter().map(|children| children.start_ns).sum();
        assert!(alone.is_empty() && programs.len() == 1);
        assert!((after - before - 24e6).abs() < 1e3, "{before} {after}");
    }
}
