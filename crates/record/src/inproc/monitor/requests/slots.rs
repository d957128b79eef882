//! Recycles slots of threads that have ended: collects their counts, wipes them, and gives them to new threads.
//!
//! Invariant: no slot is recycled while a thread may still use it: neither its thread, nor the thread's maker, who
//! writes to it when the call that made the thread returns.

use crate::inproc::monitor::handles::ProgramId;
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::requests::tickets::MOST;
use crate::inproc::monitor::results::{collect, images};
use crate::inproc::monitor::session::{DraftRecording, Targets};
use crate::inproc::monitor::shared::memory::{Head, Memory};
use crate::inproc::monitor::sys;
use systoll_hooks::layout::image;

/// Generations of a thread's makers that are checked, at most.
const GENERATIONS: usize = 64;

/// Returns true if a thread has ended and only waits for its parent to notice.
fn is_zombie(head: &Head) -> bool {
    let stat = crate::procfs::read(format!("/proc/{}/task/{}/stat", head.pid, head.tid)).unwrap_or_default();
    // The state stands behind the name in parentheses, which may hold any byte.
    let state = stat.iter().rposition(|b| *b == b')').and_then(|end| stat.get(end + 2));
    matches!(state, Some(b'Z' | b'X'))
}

/// Recycles slots of threads that are gone, in programs that have drawn many since the last time. Returns true if there
/// are such programs.
pub(crate) fn recycle_some(targets: &mut Targets, draft: &mut DraftRecording) -> bool {
    let drawn = |p: &Program| targets.memory.image(p.id).map_or(0, |a| a.get(image::NEXT_SLOT));
    let brisk: Vec<ProgramId> =
        targets.programs.values().filter(|p| p.threads.tickets.is_brisk(drawn(p))).map(|p| p.id).collect();
    for id in &brisk {
        recycle(targets, draft, *id, false);
    }
    !brisk.is_empty()
}

/// Recycles slots of a program's threads that are gone, and adds slots if they are short. `pressed` is true if a thread
/// waits for a slot.
pub(crate) fn recycle(targets: &mut Targets, draft: &mut DraftRecording, id: ProgramId, pressed: bool) {
    let Some(mut program) = targets.programs.remove(&id) else { return };
    let pressed = pressed && program.threads.tickets.given() >= MOST;
    if let Some(area) = targets.memory.image(id) {
        program.threads.tickets.note_drawn(area);
        program.threads.tickets.recycled = program.threads.tickets.seen;
    }
    let busy = std::mem::take(&mut program.threads.tickets.busy);
    let heads: Vec<(u64, Head)> = busy.iter().map(|index| (*index, targets.memory.head(id.slot(*index)))).collect();
    let (over, rest): (Vec<_>, Vec<_>) =
        heads.into_iter().partition(|(index, head)| is_over(&targets.memory, &program, *index, head, pressed));
    program.threads.tickets.busy = rest.iter().map(|(index, _)| *index).collect();
    if !over.is_empty() {
        let slots: Vec<u64> = over.iter().map(|(index, _)| *index).collect();
        collect::collect_slots(&targets.memory, draft, &mut program, &slots);
        for index in slots {
            targets.memory.clean_slot(id.slot(index));
            program.threads.gone_by_exec.remove(&index);
            program.threads.changed.remove(&index);
            if let Some(area) = targets.memory.image(id) {
                program.threads.tickets.put_back(area, index);
            }
        }
        let lives = |pid: u32| pid as i32 == program.pid || rest.iter().any(|(_, head)| head.pid == pid);
        let mut ended: Vec<u32> = over.iter().map(|(_, head)| head.pid).filter(|pid| !lives(*pid)).collect();
        ended.dedup();
        end_forks(draft, &mut program, &ended);
    }
    if let Some(area) = targets.memory.image(id) {
        program.threads.tickets.grow_if_short(area);
    }
    targets.memory.see_slot(id.slot(program.threads.tickets.given().min(MOST)));
    targets.programs.insert(id, program);
}

/// Returns true if a slot's thread is gone for good, and its maker does not use the slot any more.
fn is_over(memory: &Memory, program: &Program, index: u64, head: &Head, pressed: bool) -> bool {
    if head.own == 0 || program.hooks.starting.is_some() {
        return false;
    }
    let quiet = memory.image(program.id).is_none_or(|a| a.get(image::QUIET) as u32 != 0);
    if head.tid == 0 {
        // The thread was never made. But if threads don't note their identity (`quiet`), it may be about to end.
        return head.leaving && head.made_as == 0 && !quiet;
    }
    // `thread_exists` asks in our PID namespace, where the number of a thread of another namespace means another
    // thread. If the id that the maker got (`made_as`) is not the one that the thread has of itself, one of the two is
    // in another namespace.
    if head.tid != head.made_as || !is_of_our_namespace(memory, program.id, head) {
        return false;
    }
    let gone = program.threads.gone_by_exec.contains(&index);
    gone || !sys::thread_exists(head.pid as i32, head.tid as i32) || pressed && is_zombie(head)
}

fn is_of_our_namespace(memory: &Memory, id: ProgramId, head: &Head) -> bool {
    let mut parent = head.parent;
    for _ in 0..GENERATIONS {
        // The first slot's thread was checked when its program began.
        let Some(index) = parent.filter(|index| *index != 0) else { return parent == Some(0) };
        let head = memory.head(id.slot(index));
        if head.own == 0 {
            // This maker was checked when its slot was recycled.
            return true;
        }
        if head.tid == 0 || head.tid != head.made_as {
            return false;
        }
        parent = head.parent;
    }
    false
}

/// Ends the processes of a program that have no slot any more.
fn end_forks(draft: &mut DraftRecording, program: &mut Program, pids: &[u32]) {
    let now = draft.clock.at(sys::now());
    for pid in pids.iter().map(|pid| *pid as i32) {
        let Some(image) = program.processes.forks.remove(&pid) else { continue };
        if let Some(used) = program.threads.recycled.used.remove(&pid) {
            program.threads.recycled.asking.add(used.settle(
                draft.table.images.get_mut(image.index()),
                program.cpu_of(pid),
                draft.stats.asking,
            ));
        }
        program.processes.cpu_seen.remove(&pid);
        program.processes.execed.remove(&pid);
        images::end_image(&mut draft.table, image, now);
    }
}
