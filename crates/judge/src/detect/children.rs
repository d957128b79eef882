//! A program started anew for each item. Reads exact counts: processes leave no windows.

use crate::Options;
use crate::semantics::{Effect, Semantics};
use std::collections::BTreeMap;
use std::sync::Arc;
use systoll_model::{Class, ProcessId, Recording, RowId};

/// Many short children of one process that run the same program.
pub(crate) struct Children {
    /// Path of the program.
    pub program: Arc<str>,
    /// How many there were.
    pub count: u64,
    /// Processor time that starting them took, in ns: until their `main`, and the parent's calls.
    pub start_ns: f64,
    /// Rows that made, started and awaited them.
    pub rows: Vec<RowId>,
}

#[derive(Default)]
struct Family {
    images: Vec<ProcessId>,
    /// Images between fork and exec.
    stubs: Vec<ProcessId>,
    count: u64,
    cpu_ns: u64,
    start_ns: u64,
}

/// Programs started at least [`Options::min_children`] times by one process, mostly short-lived.
pub(crate) fn children(recording: &Recording, semantics: &Semantics, options: &Options) -> Vec<Children> {
    let mut families: BTreeMap<(ProcessId, Arc<str>), Family> = BTreeMap::new();
    for (at, image) in recording.processes.iter().enumerate() {
        let (Ok(at), Some(before)) = (u32::try_from(at), image.parent) else { continue };
        let Some(stub) = recording.processes.get(before.0 as usize) else { continue };
        // The image that an exec replaced is the same process; its parent made it.
        let (Some(maker), true) = (stub.parent, stub.pid == image.pid || stub.instances > 1) else { continue };
        if maker.0 as usize >= recording.processes.len() || before.0 == at || maker.0 == at {
            continue;
        }
        let family = families.entry((maker, image.exe.clone())).or_default();
        family.images.push(ProcessId(at));
        if !family.stubs.contains(&before) {
            family.stubs.push(before);
            family.start_ns = family.start_ns.saturating_add(stub.cpu_ns);
        }
        family.count = family.count.saturating_add(image.instances);
        family.cpu_ns = family.cpu_ns.saturating_add(image.cpu_ns);
        family.start_ns = family.start_ns.saturating_add(image.startup_cpu_ns.min(image.cpu_ns));
    }
    let many = |f: &Family| f.count >= options.min_children && f.cpu_ns / f.count.max(1) <= options.short_life_ns;
    let families = families.into_iter().filter(|(_, f)| many(f));
    families.map(|((maker, program), family)| gather(recording, semantics, maker, program, &family)).collect()
}

fn gather(
    recording: &Recording,
    semantics: &Semantics,
    maker: ProcessId,
    program: Arc<str>,
    family: &Family,
) -> Children {
    let of_family = |p: &ProcessId| family.images.contains(p) || family.stubs.contains(p);
    let mut rows = Vec::new();
    let mut toll = 0u64;
    for (at, row) in recording.rows.iter().enumerate() {
        let process = row.syscall.signature().is_some_and(|s| s.classes.contains(Class::Process) && !s.never_returns);
        let forks = semantics.of(row.syscall).does(|e| matches!(e, Effect::Forks));
        let Ok(at) = u32::try_from(at) else { break };
        if row.process == maker && (process || forks) || of_family(&row.process) && process {
            rows.push(RowId(at));
            if row.process == maker && forks {
                toll = toll.saturating_add(row.counts.toll_ns.unwrap_or(0));
            }
        }
    }
    Children { program, count: family.count, start_ns: family.start_ns.saturating_add(toll) as f64, rows }
}
