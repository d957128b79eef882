//! Removes the jumps from a process that can't be watched any more.

use crate::inproc::monitor::exec::rseq_areas;
use crate::inproc::monitor::handles::{ProgramId, SlotRef};
use crate::inproc::monitor::program::Programs;
use crate::inproc::monitor::requests::request;
use crate::inproc::monitor::session::Targets;
use crate::inproc::monitor::shared::remote::Mem;
use crate::problems::Problems;
use std::time::Duration;
use systoll_hooks::layout::{BLOBS_AT, BLOBS_SIZE, IMAGE, image, record_offset, root_record_offset, slot};
use systoll_hooks::numbers::MUNMAP;
use systoll_model::ProblemKind;

/// Time after which threads that were in our code when its jumps were removed have left it, except those that are
/// blocked in a call.
const LEAVES_OUR_CODE: Duration = Duration::from_millis(2);

/// Removes all jumps from the process of a waiting thread, which goes on by itself.
pub(crate) fn leave_alone(programs: &Programs, problems: &mut Problems, id: ProgramId, tid: i32, why: &str) {
    let Some(program) = programs.get(&id) else { return };
    // Use the thread's memory, not the program's: a forked process has memory of its own.
    if let Ok(mem) = Mem::open(tid) {
        for file in &program.hooks.files {
            mem.restore(&file.code.jumps, file.bias);
        }
    }
    let exe = crate::procfs::exe(tid).unwrap_or_default();
    problems.note(ProblemKind::Unwatched, format!("{exe} {why}: what it did from then on is not watched"));
}

/// Makes the waiting thread of a process that was let go unmap the memory that we share with it, except the parts that
/// threads in our code may use at this moment. Otherwise locking all memory would allocate gigabytes.
pub(crate) fn take_back(targets: &mut Targets, thread: SlotRef, tid: i32) {
    if targets.memory.image(thread.program).is_none_or(|area| area.get(image::QUIET) as u32 != 0) {
        return;
    }
    let Some(room) = targets.programs.get(&thread.program).map(|p| &p.hooks.room) else { return };
    let contexts = record_offset(room.contexts()).unwrap_or(slot::SIZE);
    let roots = root_record_offset(room.roots()).unwrap_or(contexts);
    if std::fs::read_dir(format!("/proc/{tid}/task")).is_ok_and(|all| all.count() > 1) {
        std::thread::sleep(LEAVES_OUR_CODE);
    }
    let unused =
        targets.memory.unused(thread.program, contexts..roots).into_iter().map(|r| IMAGE + r.start..IMAGE + r.end);
    let all = unused
        .chain(std::iter::once(BLOBS_AT..BLOBS_AT + BLOBS_SIZE))
        .chain(rseq_areas::unused_areas(&targets.memory, thread.program));
    for range in all.collect::<Vec<_>>() {
        let call = [MUNMAP.into(), range.start, range.end - range.start, 0, 0, 0, 0];
        if request::request(targets, thread, call) != Some(0) {
            return;
        }
    }
}
