//! Takes systoll's jumps, code and memory out of a process.
//!
//! First all threads are stopped and all jumps taken out, so that no thread enters our code any more. Threads inside it
//! leave by themselves within microseconds, except one that waits there in a call of its own: it is moved behind the
//! same call in the program's code. Once no thread is inside and no handler returns there, each thread loses its slot
//! and our rseq area, and one of them unmaps our memory. If that takes too long, the memory stays mapped, unused.

use crate::inproc::monitor::attach::errands::{Errands, left_pages, our_mappings, unfinished};
use crate::inproc::monitor::attach::frames;
use crate::inproc::monitor::attach::mapping::Process;
use crate::inproc::monitor::attach::stop_all::{self, AllStopped, IfHalted, NotStopped, Stopped};
use crate::inproc::monitor::shared::maps::Maps;
use crate::inproc::monitor::shared::remote::Mem;
use crate::inproc::monitor::sys;
use crate::tracee;
use nix::errno::Errno;
use std::ops::Range;
use std::time::Duration;
use systoll_hooks::assemble::errand::assemble_ahead;
use systoll_hooks::layout::{BLOBS_AT, BLOBS_SIZE, IMAGE, areas, code, image, slot, slot_index};

/// Time within which all threads must have left our code; then our memory stays.
const PATIENCE: Duration = Duration::from_secs(8);
/// Time for which a process runs between two looks, at first.
const PAUSE: Duration = Duration::from_micros(200);
/// Longest time between two looks. It exceeds the time for which a thread waits to be handed files
/// ([`super::mapping`]): each stop restarts that wait, so shorter pauses would never let it end.
const LONGEST_PAUSE: Duration = Duration::from_millis(800);
const PAGE: u64 = 4096;
/// Offset of `rseq_cs` in `struct rseq`, bytes.
const SEQUENCE: u64 = 8;
/// RSEQ_FLAG_UNREGISTER of include/uapi/linux/rseq.h.
const UNREGISTER: u64 = 1;

/// Bytes that were written over a program's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) at: u64,
    /// The program's original bytes.
    pub(crate) was: Vec<u8>,
    /// The bytes that replaced the original ones.
    pub(crate) new: Vec<u8>,
}

/// The rseq area of a thread as hooked code uses it.
#[derive(Clone, Copy, Debug)]
struct RseqUse {
    /// Address of the area; zero if the thread has none.
    area: u64,
    /// Address of the area that we would give to the thread.
    own: u64,
    /// True if the area names our restartable sequence.
    in_ours: bool,
}

/// The state in which a process was left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// True if the program's code has its original bytes.
    pub(crate) restored: bool,
    /// True if the process has no memory, slot or code of systoll any more.
    pub(crate) clean: bool,
    /// The longest time for which the process's threads were stopped at once, ns.
    pub(crate) stopped_ns: u64,
}

/// The jumps, code and memory of systoll in a process.
pub(crate) struct Ours {
    pub(crate) pid: i32,
    pub(crate) mem: Mem,
    /// Addresses of our code that lies near the program's files.
    pub(crate) near: Vec<Range<u64>>,
    /// The jumps, by rising address.
    pub(crate) written: Vec<Written>,
    /// The code of errands that a killed systoll has left in the process.
    pub(crate) errands: Vec<Written>,
}

impl Ours {
    /// Takes our jumps, code and memory out of the process, in several looks if need be. Returns `None` if the process
    /// has ended. Calls `meanwhile` before each look.
    pub(crate) fn take_out(&self, meanwhile: &dyn Fn()) -> Option<Outcome> {
        // If that fails, so does the errand, and our memory stays.
        let _ = assemble_ahead();
        let (deadline, mut pause, mut outcome) = (sys::now() + PATIENCE.as_nanos() as u64, PAUSE, Outcome::default());
        loop {
            meanwhile();
            match AllStopped::of(self.pid, IfHalted::Take) {
                Ok(stopped) => {
                    // No thread can be inside a jump: a jump is one instruction, and none was written around a thread.
                    outcome.restored |= self.restore(&self.written);
                    outcome.clean = outcome.restored && self.leave_stopped(&stopped.threads);
                    outcome.stopped_ns = outcome.stopped_ns.max(stopped.let_go());
                }
                Err(NotStopped::Gone) => return None,
                Err(_) => {}
            }
            // A thread that has unmapped our memory may not have come back yet.
            outcome.clean &= !unfinished::finish().contains(&self.pid);
            if outcome.clean || sys::now() >= deadline {
                return Some(outcome);
            }
            std::thread::sleep(pause);
            stop_all::late::let_go();
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Returns true if `address` lies in code of systoll.
    fn has(&self, address: u64) -> bool {
        let of_errand = |left: &Written| (left.at..left.at + left.new.len() as u64).contains(&address);
        (BLOBS_AT..BLOBS_AT + BLOBS_SIZE).contains(&address)
            || self.near.iter().any(|code| code.contains(&address))
            || self.errands.iter().any(of_errand)
    }

    /// Returns the word at an address of the process's memory.
    fn word(&self, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.mem.read(at, &mut bytes).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    /// Takes our memory out of a process whose threads are stopped, unless one of them is in our code. Returns true if
    /// nothing is left.
    fn leave_stopped(&self, threads: &[Stopped]) -> bool {
        let maps = Maps::of(self.pid);
        let mut inside = false;
        for thread in threads {
            inside |= self.has(thread.regs.rip) && !self.moved_out(thread);
        }
        let pointers: Vec<u64> = threads.iter().map(|thread| thread.regs.rsp).collect();
        let frames = threads.first().and_then(|first| frames::interrupted(first.tid, &pointers, &maps.all));
        inside |= frames.is_none_or(|frames| frames.into_iter().any(|rip| self.has(rip)));
        if inside || !self.restore(&self.errands) {
            return false;
        }
        let given = self.word(IMAGE + image::GIVES_AREAS).unwrap_or(0) as u32 != 0;
        let given_back = |(thread, rseq): (&Stopped, RseqUse)| self.give_back(thread, rseq, &maps, given);
        self.rseq_areas(threads).into_iter().all(given_back) && self.unmap(threads, &maps, given)
    }

    /// Restores the bytes that were overwritten, page by page. Returns true if none had to stay.
    fn restore(&self, written: &[Written]) -> bool {
        let mut whole = true;
        let pages: Vec<&[Written]> = written.chunk_by(|a, b| a.at / PAGE == b.at / PAGE).collect();
        let extent = |page: &&[Written]| {
            let (first, last) = (page.first(), page.last());
            first.zip(last).map_or((0, 0), |(first, last)| (first.at, (last.at - first.at) as usize + last.new.len()))
        };
        let places: Vec<(u64, usize)> = pages.iter().map(extent).collect();
        let mut all: Vec<Vec<u8>> = places.iter().map(|(_, len)| vec![0; *len]).collect();
        let read = self.mem.read_at_once(&places, &mut all);
        for ((page, (start, _)), mut bytes) in pages.into_iter().zip(places).zip(all) {
            if !read && self.mem.read(start, &mut bytes).is_err() {
                // The code is no longer mapped.
                continue;
            }
            let mut changed = false;
            for Written { at, was, new } in page {
                let index = (at - start) as usize;
                if let Some(there) = bytes.get_mut(index..index + new.len()).filter(|there| **there == **new) {
                    there.copy_from_slice(was);
                    changed = true;
                }
            }
            whole &= !changed || self.mem.write(start, &bytes).is_ok();
        }
        whole
    }

    /// Returns the address in the program's code that corresponds to `address` in ours. Returns `None` if it depends on
    /// the thread, or if no code is known there.
    fn stands_for(&self, address: u64) -> Option<u64> {
        let count = self.word(IMAGE + image::CODE_COUNT)?.min(image::CODES_LEN);
        let entry = (0..count).map(|n| IMAGE + image::CODES + n * image::CODE_ENTRY).find(|entry| {
            let (start, size) = (self.word(entry + code::START), self.word(entry + code::SIZE));
            start.zip(size).is_some_and(|(start, size)| (start..start.saturating_add(size)).contains(&address))
        })?;
        let (start, table) = (self.word(entry + code::START)?, self.word(entry + code::TABLE)?);
        let (mut first, mut end) = (0, self.word(entry + code::LEN)?);
        while first < end {
            let middle = first.midpoint(end);
            match u64::from(self.word(table + 8 * middle)? as u32) <= address - start {
                true => first = middle + 1,
                false => end = middle,
            }
        }
        let value = (self.word(table + 8 * first.checked_sub(1)?)? >> 32) as i32;
        let told = ![code::IN_RCX, code::IN_SLOT, code::IN_SIGNAL].contains(&value);
        told.then(|| start.wrapping_add_signed(i64::from(value)))
    }

    /// Moves a thread that waits in a call of our code behind the same call in the program's code. Returns true if it
    /// did.
    fn moved_out(&self, thread: &Stopped) -> bool {
        let is_call = |behind: u64| {
            let mut bytes = [0; 2];
            self.mem.read(behind.wrapping_sub(2), &mut bytes).is_ok() && bytes == [0x0f, 0x05]
        };
        if !thread.in_call() || !is_call(thread.regs.rip) {
            return false;
        }
        let Some(rip) = self.stands_for(thread.regs.rip).filter(|rip| is_call(*rip)) else { return false };
        tracee::set_registers(thread.tid, &crate::tracee::Regs { rip, ..thread.regs }).is_ok()
    }

    /// Returns the words at these addresses; `None` for one that can't be read.
    fn words(&self, at: &[u64]) -> Vec<Option<u64>> {
        let places: Vec<(u64, usize)> = at.iter().map(|at| (*at, 8)).collect();
        let mut all = vec![vec![0; 8]; places.len()];
        if !self.mem.read_at_once(&places, &mut all) {
            return at.iter().map(|at| self.word(*at)).collect();
        }
        all.into_iter().map(|bytes| bytes.try_into().ok().map(u64::from_le_bytes)).collect()
    }

    /// Returns the threads that have a slot of ours, with the rseq area that hooked code uses for each.
    fn rseq_areas<'t>(&self, threads: &'t [Stopped]) -> Vec<(&'t Stopped, RseqUse)> {
        let slots = threads.iter().filter_map(|thread| Some((thread, slot_index(thread.regs.gs_base)?)));
        let slots: Vec<(&Stopped, u64)> = slots.collect();
        let at: Vec<u64> = slots.iter().map(|(thread, _)| thread.regs.gs_base + slot::RSEQ).collect();
        let areas: Vec<u64> = self.words(&at).into_iter().map(Option::unwrap_or_default).collect();
        let at: Vec<u64> = areas.iter().filter(|area| **area != 0).map(|area| area + SEQUENCE).collect();
        let mut sequences = self.words(&at).into_iter();
        let of = |((thread, index), area): ((_, u64), u64)| {
            let sequence = if area == 0 { None } else { sequences.next().flatten() };
            (
                thread,
                RseqUse { area, own: areas::area_address(index), in_ours: sequence == Some(IMAGE + image::RSEQ_CS) },
            )
        };
        slots.into_iter().zip(areas).map(of).collect()
    }

    /// Takes the slot, our restartable sequence and our rseq area from a stopped thread. Returns true if the thread has
    /// none of them any more.
    fn give_back(&self, thread: &Stopped, rseq: RseqUse, maps: &Maps, given: bool) -> bool {
        let RseqUse { area, own, in_ours } = rseq;
        if in_ours && self.mem.write(area + SEQUENCE, &[0; 8]).is_err() {
            return false;
        }
        if given && area == own {
            let signature = self.word((IMAGE + image::RSEQ_SIGNATURE) & !7).unwrap_or(0) >> 32;
            let Ok(mut errands) = Errands::new(maps) else { return false };
            errands.plain(libc::SYS_rseq, [own, areas::AREA, UNREGISTER, signature, 0, 0]);
            if errands.run(thread, (&self.mem, maps), &mut || ()) != Ok(vec![0]) {
                return false;
            }
        }
        // A thread that was killed meanwhile has no registers.
        matches!(tracee::set_gs_base(thread.tid, 0), Ok(()) | Err(Errno::ESRCH))
    }

    /// Makes one of the stopped threads unmap all our memory. Returns true if it did.
    fn unmap(&self, threads: &[Stopped], maps: &Maps, given: bool) -> bool {
        let areas = given.then_some(areas::AT..areas::AT + areas::SIZE);
        // The image comes last: if we are killed in between, it still lists our other memory.
        let (image, fixed): (Vec<_>, Vec<_>) = our_mappings(maps).partition(|range| range.contains(&IMAGE));
        // The process may have unmapped a file and our code near it, and mapped memory of its own there.
        let near = self.near.iter().filter(|near| maps.are_ours(near)).cloned();
        let all: Vec<Range<u64>> = left_pages(maps).chain(areas).chain(near).chain(fixed).chain(image).collect();
        Process { pid: self.pid, threads, mem: &self.mem, maps }.unmap(&all).is_ok()
    }
}
