//! Groups the processes of a run by who started them and what program they run.

use crate::collections::sums::Sums;
use crate::semantics::{Effect, Semantics};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use systoll_model::{Process, ProcessId, Recording, Row};

/// System calls by which a process becomes a program. Other calls of their class, such as signals and questions about
/// processes, are made for other reasons: Go's run-time sends its own threads signals all the time.
const BECOMES: [&str; 2] = ["execve", "execveat"];

/// Largest number of programs that replace one another in a process; a damaged recording may hold a circle.
const MOST_REPLACED: usize = 64;

/// Least number of processes between fork and exec that were not folded, for their mean to stand for the others: the
/// forks of a test runner, which work, had raised the price of 300 starts from 0.25 to 0.67 s.
const KNOWN_STUBS: u64 = 8;

/// Least work of started programs, as a multiple of the price of their starts, for which they are started for their work.
/// `git cat-file -s`, one for each object, does 0.9 to 1.2 times the work that its start costs, by chance.
const WORKS: f64 = 1.5;

/// The processes that one process made to execute one program.
#[derive(Default)]
pub(super) struct Family {
    /// The images of the program.
    pub images: Vec<ProcessId>,
    /// Images between fork and exec.
    pub stubs: Vec<ProcessId>,
    /// Images that made the children: the program itself and its forks.
    pub makers: BTreeSet<ProcessId>,
    /// Number of starts.
    pub count: u64,
    /// Processor time of the images, ns.
    pub cpu_ns: u64,
    /// Sum of the children's lives, ns.
    pub life_ns: u64,
    /// Processor time between fork and exec, summed, ns.
    start_ns: u64,
    /// The part of `start_ns` measured in processes that were not folded, ns, and the number of these processes.
    single: (u64, u64),
    /// Number of programs in folded images whose stub is not known.
    unknown: u64,
    /// Sum over the images of the processor time of one start-up, ns. An image of several folded
    /// processes counts once, since only its first start-up was measured.
    startup_ns: u64,
}

impl Family {
    /// Adds the life and the processor time of an image. Returns the latter, ns.
    fn add_life(&mut self, image: &Process) -> u64 {
        // If the processor time is unknown, its upper bound is the time that all threads lived.
        let cpu_ns = image.cpu_ns.unwrap_or(image.life_ns.saturating_mul(image.threads.max(1)));
        self.cpu_ns = self.cpu_ns.saturating_add(cpu_ns);
        self.life_ns = self.life_ns.saturating_add(image.life_ns);
        cpu_ns
    }

    /// Returns the processor time of all starts, ns.
    pub(super) fn started_ns(&self) -> f64 {
        self.before_ns() + self.startup_mean_ns() * self.count as f64
    }

    /// Returns true if the programs do so much that their starts are the smaller part of what they cost. False if nothing
    /// tells how long a start takes.
    pub(super) fn works(&self) -> bool {
        let work = self.cpu_ns as f64 - self.startup_mean_ns() * self.count as f64;
        self.startup_ns > 0 && work > WORKS * self.started_ns()
    }

    /// Returns the processor time between fork and exec, ns. The unknown stubs are taken to be like the known ones.
    fn before_ns(&self) -> f64 {
        let (ns, processes) = self.single;
        self.start_ns as f64 + ns as f64 / processes.max(1) as f64 * self.unknown as f64
    }

    fn startup_mean_ns(&self) -> f64 {
        self.startup_ns as f64 / self.images.len().max(1) as f64
    }
}

/// A program that one process starts.
pub(super) type Starting = (ProcessId, Arc<str>);

/// Returns the families of all processes: those that one process made to execute one program.
pub(super) fn families(recording: &Recording, semantics: &Semantics) -> BTreeMap<Starting, Family> {
    let mut families: BTreeMap<Starting, Family> = BTreeMap::new();
    let roots = roots(recording);
    for (at, image) in recording.processes.iter().enumerate() {
        let (Ok(at), Some(before)) = (u32::try_from(at), image.parent) else { continue };
        let Some(stub) = recording.processes.get(before.0 as usize) else { continue };
        // An image that exec replaced belongs to the same process; its parent made the process.
        let (Some(maker), true) = (stub.parent, stub.pid == image.pid || stub.instances > 1) else { continue };
        if let Some(first) = first_program(recording, before) {
            // The program replaced the one that was started, as a wrapper's last `exec` does: they are one start.
            let root = roots.get(first.maker.0 as usize);
            if let Some(family) = root.and_then(|root| families.get_mut(&(*root, first.exe.clone()))) {
                family.start_ns = family.start_ns.saturating_add(image.startup_cpu_ns.saturating_mul(image.instances));
                family.add_life(image);
            }
            continue;
        }
        let Some(root) = roots.get(maker.0 as usize).filter(|_| before.0 != at && maker.0 != at) else { continue };
        // A shell that forks for an item and starts a program in the fork counts as one shell.
        let family = families.entry((*root, image.exe.clone())).or_default();
        family.makers.insert(maker);
        family.images.push(ProcessId(at));
        // A folded image names the stub of its first process only; the stubs of the others were folded into one as
        // well.
        let others = if image.instances > 1 { folded_like(recording, stub) } else { None };
        for stub in [Some(before), others].into_iter().flatten() {
            if !family.stubs.contains(&stub) {
                family.stubs.push(stub);
            }
        }
        // Makers that are forks of the root were folded together with the stubs that they made.
        if let Some(others) = others.filter(|_| maker != *root) {
            family.makers.insert(others);
        }
        // Several processes folded into one may have executed other programs too, or none: then those that were not
        // folded tell more.
        let became = image.instances.min(stub.instances) as f64 / stub.instances.max(1) as f64;
        let (known_ns, known) = family.single;
        let start_ns = match became < 1.0 && known >= KNOWN_STUBS {
            true => {
                ((known_ns as f64 / known as f64 * image.instances as f64) as u64).min(stub.cpu_ns.unwrap_or(u64::MAX))
            }
            false => (stub.cpu_ns.unwrap_or(0) as f64 * became) as u64,
        };
        family.start_ns = family.start_ns.saturating_add(start_ns);
        if stub.instances <= 1 {
            family.single = (family.single.0.saturating_add(start_ns), family.single.1 + 1);
            family.unknown = family.unknown.saturating_add(image.instances.saturating_sub(1));
        }
        family.count = family.count.saturating_add(started(recording, semantics, at, image));
        let cpu_ns = family.add_life(image);
        let each = image.startup_cpu_ns.min(cpu_ns / image.instances.max(1));
        family.startup_ns = family.startup_ns.saturating_add(each);
    }
    add_folded(&mut families, recording, &roots);
    families
}

/// Adds the starts whose images were folded into their own forks, which hides who started them. The maker's forks executed
/// them all the same; if the maker started one program only, it was that one.
fn add_folded(families: &mut BTreeMap<Starting, Family>, recording: &Recording, roots: &[ProcessId]) {
    let mut begun: BTreeMap<ProcessId, BTreeMap<ProcessId, u64>> = BTreeMap::new();
    for row in recording.rows.iter().filter(|row| begins(row)) {
        if let Some(root) = roots.get(row.process.0 as usize).filter(|root| **root != row.process) {
            begun.entry(*root).or_default().add(row.process, done(row));
        }
    }
    for (root, stubs) in begun {
        let of_root = (root, Arc::from(""))..(ProcessId(root.0.saturating_add(1)), Arc::from(""));
        let mut of_root = families.range_mut(of_root);
        if let (Some((_, family)), None) = (of_root.next(), of_root.next()) {
            let all = stubs.values().fold(0, |all: u64, calls| all.saturating_add(*calls));
            let more = all.saturating_sub(family.count);
            family.count = family.count.saturating_add(more);
            family.unknown = family.unknown.saturating_add(more);
            let others = stubs.into_keys().filter(|stub| more > 0 && !family.stubs.contains(stub)).collect::<Vec<_>>();
            family.stubs.extend(others);
        }
    }
}

/// Returns the number of the row's calls that succeeded.
pub(super) fn done(row: &Row) -> u64 {
    row.counts.calls.saturating_sub(row.counts.failed())
}

/// Returns true if the row's calls execute programs.
pub(super) fn begins(row: &Row) -> bool {
    row.syscall.name().is_some_and(|name| BECOMES.contains(&name))
}

/// The first program that a process ran.
struct First<'r> {
    exe: &'r Arc<str>,
    /// The image that made the process.
    maker: ProcessId,
}

/// Returns the first program that the image's process ran. Returns `None` if the image still runs the program of its maker,
/// and for the run's first process.
fn first_program(recording: &Recording, mut image: ProcessId) -> Option<First<'_>> {
    let of = |id: ProcessId| recording.processes.get(id.0 as usize);
    for _ in 0..MOST_REPLACED {
        let here = of(image)?;
        let before = here.parent?;
        let stub = of(before).filter(|stub| stub.pid == here.pid)?;
        let maker = stub.parent?;
        if of(maker)?.pid != stub.pid {
            return Some(First { exe: &here.exe, maker });
        }
        image = before;
    }
    None
}

/// Returns how many of an image's instances were started as programs. Instances folded into one include their own
/// forks, which do not count.
pub(super) fn started(recording: &Recording, semantics: &Semantics, at: u32, image: &Process) -> u64 {
    if image.instances <= 1 {
        return image.instances;
    }
    let forks =
        |row: &&Row| row.process.0 == at && semantics.lines_of(row.syscall).does(|e| matches!(e, Effect::Forks));
    let forked = recording.rows.iter().filter(forks).map(done).fold(0, u64::saturating_add);
    image.instances.saturating_sub(forked).max(1)
}

/// Returns the number of programs that the family's processes began to run: by exact counts, each at one `execve`. Returns
/// the largest number if the recording has no such calls, as that of a trace without them.
pub(super) fn executed(recording: &Recording, family: &Family) -> u64 {
    let of_family = |process: &ProcessId| {
        family.makers.contains(process) || family.stubs.contains(process) || family.images.contains(process)
    };
    let began = recording.rows.iter().filter(|row| of_family(&row.process) && begins(row));
    match began.map(done).fold(0, u64::saturating_add) {
        0 => u64::MAX,
        calls => calls,
    }
}

/// Returns the image into which several processes of the same program were folded.
fn folded_like(recording: &Recording, image: &Process) -> Option<ProcessId> {
    let at = recording.processes.iter().position(|p| p.instances > 1 && p.exe == image.exe)?;
    u32::try_from(at).ok().map(ProcessId)
}

/// Returns the root of each process's chain of forks: the image of the same program that it was forked from, directly or
/// indirectly.
pub(super) fn roots(recording: &Recording) -> Vec<ProcessId> {
    let of = |id: ProcessId| recording.processes.get(id.0 as usize);
    let maker = |id: ProcessId| {
        let (parent, image) = of(id).and_then(|image| Some((image.parent?, image)))?;
        let forked = |from: &Process| from.pid != image.pid && from.exe == image.exe && from.argv == image.argv;
        of(parent).is_some_and(forked).then_some(parent)
    };
    let all = || (0u32..).take(recording.processes.len()).map(ProcessId);
    let mut roots: Vec<Option<ProcessId>> = vec![None; recording.processes.len()];
    for mut id in all() {
        let mut chain = Vec::new();
        while let Some(root @ None) = roots.get_mut(id.0 as usize) {
            // The parents in a stranger's recording may form a circle, which ends at a process of the chain.
            *root = Some(id);
            chain.push(id);
            id = maker(id).unwrap_or(id);
        }
        let root = roots.get(id.0 as usize).copied().flatten();
        for of_chain in chain {
            roots.get_mut(of_chain.0 as usize).into_iter().for_each(|of_root| *of_root = root);
        }
    }
    all().zip(roots).map(|(id, root)| root.unwrap_or(id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_forks_has_one_root_and_a_circle_ends() {
        let image = |pid: u32, parent: Option<u32>, exe: &str| Process {
            pid,
            exe: exe.into(),
            parent: parent.map(ProcessId),
            ..Process::default()
        };
        let processes = vec![
            image(1, None, "/bin/sh"),
            image(2, Some(0), "/bin/sh"),
            image(3, Some(1), "/bin/sh"),
            image(3, Some(2), "/bin/cat"),
            image(5, Some(5), "/bin/a"),
            image(6, Some(4), "/bin/a"),
            image(7, Some(99), "/bin/b"),
        ];
        let found = roots(&Recording { processes, ..Recording::default() });
        assert_eq!(found[..4], [0, 0, 0, 3].map(ProcessId));
        assert!(found[4] == found[5] && [4, 5].map(ProcessId).contains(&found[4]), "{found:?}");
        assert_eq!(found[6], ProcessId(6));
    }
}
