//! Adds what threads have counted to the table, and leaves processes.

use super::calls::question;
use super::state::slot_at;
use crate::ptrace::engine::Engine;
use crate::sys;
use crate::tracee::{self, arch};
use std::io::IoSlice;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use systoll_hooks::aarch64::layout::{self, entry, slot};
use systoll_model::{Counts, Errno};

impl Engine {
    /// Adds what a stopped thread has counted since the last time.
    pub(crate) fn take_in(&mut self, tid: i32) {
        let Some(thread) = self.threads.get(&tid) else { return };
        let Some(slot) = thread.inside.slot.as_ref() else { return };
        let Some(process) = self.processes.get_mut(&thread.pid) else { return };
        let Some(inside) = process.inside.inside.as_ref() else { return };
        let ns_per_tick = 1e9 / arch::clock_rate() as f64;
        let ns = |ticks: u64| (ticks as f64 * ns_per_tick) as u64;
        for (at, id) in &slot.rows {
            let start = slot_at(slot.index) + slot::TABLE + at * entry::SIZE;
            let take = |offset| inside.shared.drain(start + offset);
            let calls = take(entry::RETURNED);
            let Some(row) = self.table.rows.get_mut(*id as usize).filter(|_| calls > 0) else { continue };
            let mut counts = Counts {
                calls,
                bytes: take(entry::BYTES),
                elapsed_ns: ns(take(entry::TICKS)),
                max_ns: ns(take(entry::LONGEST)),
                min_ns: Some(ns(!take(entry::SHORTEST))),
                startup_calls: if process.main_seen { 0 } else { calls },
                ..Counts::default()
            };
            for zeros in 0..entry::BUCKETS {
                let n = take(entry::HISTOGRAM + 8 * zeros);
                counts.histogram.add_many(ns(3 << (entry::BUCKETS - 1 - zeros) >> 1), n);
            }
            for errno in 0..entry::ERRNOS {
                let n = inside.shared.drain_half(start + entry::ERRORS + 4 * errno);
                if n > 0 {
                    counts.errors.insert(Errno(errno as u16), n.into());
                }
            }
            let audit = row.syscall.signature().and_then(|signature| signature.audit);
            for (errno, n) in &counts.errors {
                process.audit.returned(audit, -i64::from(errno.0), *n);
            }
            process.audit.returned(audit, 0, calls.saturating_sub(counts.failed()));
            row.entered = row.entered.saturating_add(calls);
            row.inside = (row.inside.0.saturating_add(calls), row.inside.1.saturating_add(counts.elapsed_ns));
            row.counts.merge(&counts);
            let (syscall, image) = (row.syscall, row.image);
            self.table.calls = self.table.calls.saturating_add(calls);
            self.table.by_thread(image, tid as u32, syscall, &counts);
        }
    }

    /// Adds what a thread has counted, and takes its slot: it ends, or executes another program.
    pub(crate) fn ends(&mut self, tid: i32) {
        self.take_in(tid);
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let Some(slot) = std::mem::take(&mut thread.inside).slot else { return };
        let Some(inside) = self.processes.get(&thread.pid).and_then(|process| process.inside.inside.as_ref()) else {
            return;
        };
        let under_way = inside.shared.drain(slot_at(slot.index) + slot::PENDING);
        let first = inside.base + slot_at(slot.index) + slot::TABLE;
        let row = slot.rows.iter().find(|(at, _)| first + at * entry::SIZE == under_way);
        if let Some(row) = row.and_then(|(_, row)| self.table.rows.get_mut(*row as usize)) {
            row.entered = row.entered.saturating_add(1);
            row.counts.unreturned = row.counts.unreturned.saturating_add(1);
        }
        inside.shared.give_back(slot.index, &slot.rows);
    }

    /// Takes a stopped thread out of the counting code before it is let go: it points to no slot any more, and no jump of its
    /// process leads there. The code remains, since another thread may be in it.
    pub(crate) fn take_out(&mut self, tid: i32) {
        self.put_aside(tid);
        self.take_in(tid);
        if let Some(thread) = self.threads.get_mut(&tid)
            && let Some(inside) = self.processes.get(&thread.pid).and_then(|process| process.inside.inside.as_ref())
            && let Some(slot) = thread.inside.slot.take()
        {
            // Nobody else gets the slot: the thread may be in the code that uses it.
            let start = slot_at(slot.index);
            inside.shared.word(start + slot::LEFT).store(1 << layout::OWNER_DIED, Ordering::Relaxed);
            inside.shared.word(start + slot::HEAD).store(inside.base + start + slot::LEFT, Ordering::Relaxed);
        }
        // A thread that was about to ask asks nobody any more.
        let traps = |at: u64| question(tid, at).is_some_and(|(_, to)| to == 4);
        if let Ok(mut regs) = tracee::registers(tid)
            && let Some(by) = [0, 4].into_iter().find(|by| traps(regs.pc + by))
        {
            regs.pc += by + 4;
            // A thread that was killed meanwhile has no registers.
            let _ = tracee::set_registers(tid, &regs);
        }
        let Some(pid) = self.threads.get(&tid).map(|thread| thread.pid) else { return };
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let Some(inside) = process.inside.inside.as_mut() else { return };
        process.inside.declined = true;
        let jumps = std::mem::take(&mut inside.jumps);
        if let Ok(memory) = super::enter::memory(pid) {
            for jump in jumps {
                let _ = memory.write_all_at(&jump.was.to_le_bytes(), jump.at);
            }
        }
    }

    /// Writes to memory of a process that it may write itself. Returns true if all was written.
    pub(super) fn write(&self, tid: i32, at: u64, bytes: &[u8]) -> bool {
        let to = [sys::range(at, bytes.len())];
        let written = nix::sys::uio::process_vm_writev(nix::unistd::Pid::from_raw(tid), &[IoSlice::new(bytes)], &to);
        written == Ok(bytes.len())
    }
}
