//! Gives rseq areas of ours to programs that register none, so that waiting can be told from working there too.

use crate::inproc::monitor::exec::seccomp;
use crate::inproc::monitor::handles::{ProgramId, SlotRef};
use crate::inproc::monitor::program::Patched;
use crate::inproc::monitor::requests::request;
use crate::inproc::monitor::results::run_stats::RunStats;
use crate::inproc::monitor::session::Targets;
use crate::inproc::monitor::shared::memory::Memory;
use crate::inproc::monitor::sys;
use std::ops::Range;
use systoll_hooks::assemble::{Refused, Unhooked};
use systoll_hooks::layout::{areas, image, slot};
use systoll_hooks::numbers::{MADVISE, MMAP, RSEQ};

/// RSEQ_FLAG_UNREGISTER of include/uapi/linux/rseq.h.
const UNREGISTER: u64 = 1;
const OWN: u64 = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE) as u64;
const READ_WRITE: u64 = (libc::PROT_READ | libc::PROT_WRITE) as u64;

impl Patched {
    /// Returns true if the file never calls `rseq`: no site has its number, and every site that tells no number can be
    /// intercepted. The GNU C library calls it in each thread from 2.35 on, and ends the program if that fails.
    fn registers_no_area(&self) -> bool {
        let (plan, blob) = (&self.known.plan, &self.code.blob);
        let losses_before = |address: u64| {
            let refused = |r: &Refused| r.address == address && r.what != Unhooked::Return;
            plan.unplanned.iter().any(|u| u.address == address) || blob.refused.iter().any(refused)
        };
        plan.sites.iter().all(|site| match site.number {
            Some(number) => number != RSEQ,
            None => !losses_before(site.address),
        })
    }
}

/// Gives the threads of a new program areas, if it seems to register none. Its first thread waits in slot
/// `thread.index`.
pub(crate) fn give_areas(targets: &mut Targets, stats: &mut RunStats, thread: SlotRef) {
    let Some(program) = targets.programs.get(&thread.program) else { return };
    if program.hooks.files.is_empty()
        || !program.hooks.files.iter().all(Patched::registers_no_area)
        || !seccomp::may_register()
    {
        return;
    }
    let pid = program.pid;
    let before = sys::process_cpu(pid);
    let taken = give_area(targets, thread).map_or(0, |()| 1);
    let took = sys::process_cpu(pid).zip(before).map_or(0, |(after, before)| after.saturating_sub(before));
    if let Some(program) = targets.programs.get_mut(&thread.program) {
        // The time and the faults of these calls are not the program's own.
        stats.starts_ns += took;
        program.processes.cpu_before += took;
        program.hooks.faults += taken;
    }
}

fn give_area(targets: &mut Targets, thread: SlotRef) -> Option<()> {
    let mapped =
        request::request(targets, thread, [MMAP.into(), areas::AT, areas::SIZE, READ_WRITE, OWN, u64::MAX, 0])?;
    if mapped != areas::AT {
        return None;
    }
    // Exclude the areas from core dumps, which must be the same as without us.
    let _ = request::request(
        targets,
        thread,
        [MADVISE.into(), areas::AT, areas::SIZE, libc::MADV_DONTDUMP as u64, 0, 0, 0],
    );
    // Set `GIVES_AREAS` first, so that the area is given back before the program registers its own, even if we never
    // get the reply.
    targets.memory.image(thread.program)?.set(image::GIVES_AREAS, 1);
    let reply = request::request(targets, thread, registering(&targets.memory, thread, 0)?)?;
    let area = targets.memory.image(thread.program)?;
    match reply {
        0 => area.set(thread.offset() + slot::RSEQ, areas::area_address(thread.index)),
        _ => area.set(image::GIVES_AREAS, 0),
    }
    (reply == 0).then_some(())
}

/// Returns the call by which the thread of slot `thread.index` registers its area, or unregisters it.
fn registering(memory: &Memory, thread: SlotRef, flags: u64) -> Option<[u64; 7]> {
    let signature = memory.image(thread.program)?.get(image::RSEQ_SIGNATURE & !7) >> 32;
    Some([RSEQ.into(), areas::area_address(thread.index), areas::AREA, flags, signature, 0, 0])
}

/// Returns true if threads of a program may have areas of ours.
pub(crate) fn are_given(memory: &Memory, id: ProgramId) -> bool {
    memory.image(id).is_some_and(|area| area.get(image::GIVES_AREAS) as u32 != 0)
}

/// Returns the call by which the thread of a slot unregisters its area: number and arguments.
pub(crate) fn taking_back(memory: &Memory, thread: SlotRef) -> Option<(i64, [u64; 6])> {
    let [number, args @ ..] = registering(memory, thread, UNREGISTER)?;
    Some((number as i64, args))
}

/// Makes a waiting thread, whose calls will no longer be hooked, unregister our area: otherwise its program could
/// register none of its own.
pub(crate) fn take_area_back(targets: &mut Targets, thread: SlotRef) {
    let Some(area) = targets.memory.image(thread.program) else { return };
    let given = area.get(image::GIVES_AREAS) as u32 != 0 && area.get(image::QUIET) as u32 == 0;
    if !given || thread.index + 1 >= image::SLOT_COUNT {
        return;
    }
    if let Some(call) = registering(&targets.memory, thread, UNREGISTER) {
        let _ = request::request(targets, thread, call);
    }
}

/// Returns the whole pages of areas that no thread of a program can have; `None` if there are none.
pub(crate) fn unused_areas(memory: &Memory, id: ProgramId) -> Option<Range<u64>> {
    let start = areas::area_address(memory.slots_drawn(id)).next_multiple_of(4096);
    let unused = start..areas::AT + areas::SIZE;
    (are_given(memory, id) && !unused.is_empty()).then_some(unused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_shares_a_word_with_what_comes_before() {
        assert_eq!(image::RSEQ_SIGNATURE % 8, 4);
    }
}
