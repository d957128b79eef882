//! Processor time of each process, the observer's part in it told apart.
//!
//! A process notes what it has used right before it ends by itself, and is asked now and then and
//! at its exec; of one that is killed only the last answer is known, at most
//! a tenth of a second old.

use super::super::layout::{image, slot};
use super::engine::Engine;
use super::memory::Area;
use super::program::Program;
use super::sys;
use crate::table::Table;
use std::collections::HashSet;

/// What going to sleep and waking takes, ns.
const SLEEP_NS: f64 = 4_000.0;
/// Fewer hand-shakes that were seen say too little.
const MIN_SEEN: u64 = 30;
/// What hand-shakes take, by what was calculated, where more may be another thread's.
const AT_MOST: f64 = 2.0;
/// Of a window's calls, one in so many is seen to.
const ONE_IN: usize = 4;

/// What a hand-shake takes of its thread's processor time.
///
/// Looking once was measured by itself; beside a busy launcher, in a busy box, it takes more, and so
/// does falling asleep. By how much is seen in windows: between the answers before and after a call
/// the thread does nothing but that call and the second hand-shake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    /// What looking for an answer once takes, by itself, ns.
    pub(super) look_ns: f64,
    seen_ns: f64,
    calculated_ns: f64,
    count: u64,
}

impl Asking {
    pub(super) fn new(look_ns: f64) -> Self {
        Self { look_ns, seen_ns: 0.0, calculated_ns: 0.0, count: 0 }
    }

    /// What a thread spends on looking at most, before it sleeps.
    fn looking_ns(&self, wait: Wait) -> f64 {
        self.look_ns * wait.looks as f64
    }

    fn sleeps(&self, wait: Wait) -> bool {
        wait.ns > self.looking_ns(wait)
    }

    /// A thread that waited used so much, the call apart; what threads beside it used
    /// is in that too, if it is not `alone`.
    fn add(&mut self, wait: Wait, used_ns: f64, alone: bool) {
        let looked = wait.ns.min(self.looking_ns(wait));
        let calculated_ns = looked + if self.sleeps(wait) { SLEEP_NS } else { 0.0 };
        if !alone && used_ns > AT_MOST * calculated_ns {
            return;
        }
        self.calculated_ns += calculated_ns;
        self.seen_ns += used_ns;
        self.count += 1;
    }

    fn ns(&self, looks: u64, sleeps: u64) -> u64 {
        let factor = if self.count >= MIN_SEEN { self.seen_ns / self.calculated_ns.max(1.0) } else { 1.0 };
        // Others' threads are none of it, and looking takes no less than when nothing else is done.
        ((looks as f64 * self.look_ns + sleeps as f64 * SLEEP_NS) * factor.clamp(1.0, 8.0)) as u64
    }
}

/// A thread's wait for an answer.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// How long it has lasted.
    ns: f64,
    /// How often the thread looks before it sleeps.
    looks: u64,
}

/// Whether to see what the hand-shakes around a window's `n`th call take.
pub(super) fn is_seen_to(n: usize) -> bool {
    n.is_multiple_of(ONE_IN)
}

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
        let Some((wait, pid)) = self.waited_so_far(id, index) else { return };
        if self.asking.sleeps(wait)
            && let Some(program) = self.programs.get_mut(&id)
        {
            *program.sleeps.entry(pid).or_default() += 1;
        }
    }

    /// How long a thread has waited for its answer, and its process.
    fn waited_so_far(&self, id: u32, index: u64) -> Option<(Wait, i32)> {
        let base = image::SLOTS + index * slot::SIZE;
        let area = self.memory.image(id)?;
        let (start, pid) = (area.get(base + slot::WAIT_START), area.get(base + slot::PID) as i32);
        let ns = sys::tsc().saturating_sub(start) as f64 / self.ratio.cycles_per_ns();
        Some((Wait { ns, looks: area.get(base + slot::PATIENCE) }, pid))
    }

    /// What the process of a thread that waits has used.
    pub(super) fn used(&self, id: u32, index: u64) -> Option<u64> {
        let pid = self.memory.image(id)?.get(image::SLOTS + index * slot::SIZE + slot::PID) as i32;
        (pid > 0).then(|| sys::process_cpu(pid))?
    }

    /// The thread waits again, after a call that worked for `worked_ns`; it had used `before` at the
    /// last answer.
    pub(super) fn note_asking(&mut self, (id, index): (u32, u64), worked_ns: u64, before: Option<u64>) {
        let Some((before, now)) = before.zip(self.used(id, index)) else { return };
        // No other thread ever drew a slot.
        let alone = index == 0 && self.memory.image(id).is_some_and(Area::no_slot_drawn);
        if let Some((wait, _)) = self.waited_so_far(id, index) {
            self.asking.add(wait, now.saturating_sub(before).saturating_sub(worked_ns) as f64, alone);
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
    /// that, in ns.
    pub(super) fn settle(self, table: &mut Table, program: &Program, (pid, image): (i32, u32), asking: Asking) -> u64 {
        let total = self.said.max(program.cpu_seen.get(&pid).copied().unwrap_or(0));
        let before = if pid == program.pid { program.cpu_before } else { 0 };
        let sleeps = program.sleeps.get(&pid).copied().unwrap_or(0);
        let ours = asking.ns(self.looks, sleeps);
        if let Some(image) = table.images.get_mut(image as usize) {
            image.cpu_ns += total.saturating_sub(before).saturating_sub(ours);
        }
        ours
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_shakes_cost_what_they_were_seen_to() {
        let mut asking = Asking::new(10.0);
        assert_eq!(asking.ns(100, 1), 1_000 + SLEEP_NS as u64);
        // One that slept, at half as much again as was calculated.
        let slept = 2_000.0 * 10.0;
        let wait = Wait { ns: slept + 9_000.0, looks: 2_000 };
        for _ in 0..MIN_SEEN {
            asking.add(wait, 1.5 * (slept + SLEEP_NS), true);
            asking.add(wait, 2.5 * (slept + SLEEP_NS), false);
        }
        assert_eq!(asking.ns(2_000, 1), (1.5 * (slept + SLEEP_NS)) as u64);
        assert_eq!(asking.ns(0, 0), 0);
    }
}
