//! Processor time of each process, the observer's part in it told apart.
//!
//! A process notes what it has used right before it ends by itself, and is asked now and then and
//! at its exec; of one that is killed only the last answer is known, at most
//! a tenth of a second old.

use super::super::layout::{global, image, slot};
use super::engine::Engine;
use super::program::Program;
use super::sys;
use crate::table::Table;
use std::collections::HashSet;

/// What going to sleep and waking takes, ns.
const SLEEP_NS: f64 = 4_000.0;

impl Engine {
    /// Asks what the living have used.
    pub(super) fn note_cpu(&mut self) {
        let ids: Vec<u32> = self.programs.keys().copied().collect();
        for id in ids {
            let (Some(area), Some(program)) = (self.memory.image(id), self.programs.get_mut(&id)) else { continue };
            if program.newborn.is_some() {
                continue;
            }
            program.tickets.look(area);
            let slots = program.tickets.busy().iter().chain([&0]);
            let pids = slots.map(|index| self.memory.head(id, *index).pid as i32).filter(|pid| *pid > 0);
            let pids: HashSet<i32> = pids.collect();
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
        if waited > self.look_ns * self.memory.global.get(global::SPINS) as f64
            && let Some(program) = self.programs.get_mut(&id)
        {
            *program.sleeps.entry(pid).or_default() += 1;
        }
    }
}

/// What a process has used of a processor, by what its threads have noted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    /// Processor time when one of its threads was about to end, ns; zero where none has said.
    said: u64,
    /// How often they have looked for an answer.
    looks: u64,
}

impl Used {
    /// As the slot with these fields has it. Of one that is another program now, what its other
    /// threads said is no longer news.
    pub(super) fn read(field: impl Fn(u64) -> u64, execed: bool) -> Self {
        let said = field(slot::CPU).saturating_mul(1_000_000_000).saturating_add(field(slot::CPU + 8));
        Self { said: if execed { 0 } else { said }, looks: field(slot::LOOKS) }
    }

    pub(super) fn add(&mut self, more: &Self) {
        self.said = self.said.max(more.said);
        self.looks = self.looks.saturating_add(more.looks);
    }

    /// Adds what process `pid` has used to its image, less what it spent on waiting for answers:
    /// that, in ns. `look_ns` is what looking once takes.
    pub(super) fn settle(self, table: &mut Table, program: &Program, (pid, image): (i32, u32), look_ns: f64) -> u64 {
        let total = self.said.max(program.cpu_seen.get(&pid).copied().unwrap_or(0));
        let before = if pid == program.pid { program.cpu_before } else { 0 };
        let sleeps = program.sleeps.get(&pid).copied().unwrap_or(0);
        let ours = (self.looks as f64 * look_ns + sleeps as f64 * SLEEP_NS) as u64;
        if let Some(image) = table.images.get_mut(image as usize) {
            image.cpu_ns += total.saturating_sub(before).saturating_sub(ours);
        }
        ours
    }
}
