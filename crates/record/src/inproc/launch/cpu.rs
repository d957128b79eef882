//! Processor time of each process, the observer's part in it told apart.
//!
//! A process notes what it has used right before it ends by itself, and is asked now and then and
//! at its exec; of one that is killed only the last answer is known, at most
//! a tenth of a second old.

use super::super::assemble::{Reading, Words};
use super::super::layout::{image, slot};
use super::engine::{Engine, SPINS};
use super::memory::Snapshot;
use super::program::Program;
use super::sys;
use crate::table::Table;
use std::collections::{BTreeMap, HashSet};

/// What going to sleep and waking takes, ns.
const SLEEP_NS: f64 = 4_000.0;

impl Engine {
    /// Asks what the living have used.
    pub(super) fn note_cpu(&mut self) {
        let ids: Vec<u32> = self.programs.keys().copied().collect();
        for id in ids {
            let drawn = self.slots_drawn(id);
            let (Some(area), Some(program)) = (self.memory.image(id), self.programs.get_mut(&id)) else { continue };
            if program.newborn.is_some() {
                continue;
            }
            let pid = |index| area.get(image::SLOTS + index * slot::SIZE + slot::PID) as i32;
            let pids: HashSet<i32> = (0..drawn).map(pid).filter(|pid| *pid > 0).collect();
            for pid in pids.difference(&program.execed) {
                if let Some(ns) = sys::process_cpu(*pid) {
                    program.cpu_seen.insert(*pid, ns);
                }
            }
        }
    }

    /// Process `pid` is about to be another program: what it has used was this one's.
    pub(super) fn note_exec_cpu(&mut self, id: u32, pid: i32) {
        let Some(program) = self.programs.get_mut(&id) else { return };
        program.execed.insert(pid);
        if let Some(ns) = sys::process_cpu(pid) {
            program.cpu_seen.insert(pid, ns);
        }
    }

    /// A thread's wait is over, which was so long that it slept.
    pub(super) fn note_sleep(&mut self, id: u32, index: u64) {
        let base = image::SLOTS + index * slot::SIZE;
        let Some(area) = self.memory.image(id) else { return };
        let (start, pid) = (area.get(base + slot::WAIT_START), area.get(base + slot::PID) as i32);
        let waited = sys::tsc().saturating_sub(start) as f64 / self.ratio.cycles_per_ns();
        if waited > self.look_ns * SPINS as f64
            && let Some(program) = self.programs.get_mut(&id)
        {
            *program.sleeps.entry(pid).or_default() += 1;
        }
    }
}

/// Adds what a program's processes have used to their images, less what they spent on waiting for
/// answers: that, in ns. `look_ns` is what looking once takes.
pub(super) fn add(
    table: &mut Table,
    program: &mut Program,
    snapshot: &Snapshot,
    reading: &Reading,
    look_ns: f64,
    mut image_of: impl FnMut(&mut Program, &mut Table, i32) -> u32,
) -> u64 {
    let mut used: BTreeMap<i32, (u64, f64)> = BTreeMap::new();
    for thread in &reading.threads {
        let field = |offset| snapshot.word(image::SLOTS + thread.slot * slot::SIZE + offset);
        let said = field(slot::CPU).saturating_mul(1_000_000_000).saturating_add(field(slot::CPU + 8));
        let pid = thread.pid as i32;
        if pid > 0 {
            let (known, asking) = used.entry(pid).or_default();
            // Of one that is another program now, what its other threads said is no longer news.
            let said = if program.execed.contains(&pid) { 0 } else { said };
            *known = (*known).max(said);
            *asking += field(slot::LOOKS) as f64 * look_ns;
        }
    }
    let mut all = 0;
    for (pid, (said, asking)) in used {
        let total = said.max(program.cpu_seen.get(&pid).copied().unwrap_or(0));
        let before = if pid == program.pid { program.cpu_before } else { 0 };
        let ours = (asking + program.sleeps.get(&pid).copied().unwrap_or(0) as f64 * SLEEP_NS) as u64;
        all += ours;
        let image = image_of(program, table, pid);
        if let Some(image) = table.images.get_mut(image as usize) {
            image.cpu_ns += total.saturating_sub(before).saturating_sub(ours);
        }
    }
    all
}
