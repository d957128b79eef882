//! Finds the image of the table that a process of a program counts for.

use crate::inproc::monitor::handles::{ProgramId, SlotRef};
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::session::{DraftRecording, Targets};
use crate::inproc::monitor::shared::memory::Memory;
use crate::inproc::monitor::sys;
use crate::table::{Image, ImageId, Table};
use systoll_hooks::layout::{image, slot};

/// Generations of processes that may be new at the same time, at most.
const GENERATIONS: usize = 64;

/// Processes of a program that get images of their own, at most.
const MOST_PROCESSES: usize = 4 * image::SLOT_COUNT as usize;

/// Returns the image of the process that a slot belongs to; adds it if it is new.
pub(crate) fn image_of_slot(targets: &mut Targets, draft: &mut DraftRecording, thread: SlotRef) -> Option<ImageId> {
    let area = targets.memory.image(thread.program)?;
    let base = thread.offset();
    let pid = area.get(base + slot::PID) as i32;
    let now = draft.clock.at(sys::now());
    let program = targets.programs.get_mut(&thread.program)?;
    note_maker(&targets.memory, program, &mut draft.table, thread, now);
    Some(image_of(program, &mut draft.table, pid, now))
}

/// Returns the image of process `pid`, which is about to leave the program.
pub(crate) fn image_for(table: &mut Table, program: &mut Program, pid: i32, now: u64) -> ImageId {
    let image = image_of(program, table, pid, now);
    program.processes.forks.remove(&pid);
    image
}

/// Notes an image's end, unless it has ended before.
pub(crate) fn end_image(table: &mut Table, id: ImageId, now: u64) {
    let Some(image) = table.images.get_mut(id.index()).filter(|i| i.end_ns == 0) else { return };
    image.end_ns = now;
    image.life_ns += now.saturating_sub(image.start_ns);
}

/// Notes the maker of a slot's process, if the process is new: a shell's child may have children of its own before it
/// executes another program.
pub(crate) fn note_maker(memory: &Memory, program: &mut Program, table: &mut Table, thread: SlotRef, now: u64) {
    // Makers are collected from the youngest process up to one that is known.
    let mut line: Vec<i32> = Vec::new();
    let mut next = Some(thread.index);
    // The program may have written slots that name each other in a circle.
    for _ in 0..image::SLOT_COUNT {
        let Some(index) = next.filter(|_| line.len() < GENERATIONS) else { break };
        let head = memory.head(program.id.slot(index));
        let pid = head.pid as i32;
        if pid <= 0 || head.own == 0 && index != 0 {
            return;
        }
        // Threads of the same process have slots as well; note the process once.
        if line.last() != Some(&pid) {
            line.push(pid);
        }
        if pid == program.pid || program.processes.forks.contains_key(&pid) {
            break;
        }
        next = head.parent;
    }
    while let (Some(maker), Some(child)) = (line.pop(), line.last()) {
        let image = image_of(program, table, maker, now);
        program.processes.makers.insert(*child, image);
    }
}

/// Returns a number for process `pid` of a program that is almost certainly unique in a run.
pub(crate) fn process_number(id: ProgramId, pid: i32) -> u32 {
    // Program ids and pids are both small consecutive numbers. Multiplying the id spreads it, so that the two rarely
    // cancel each other.
    const SPREAD: u32 = 0x9e37_79b1;
    id.0.wrapping_mul(SPREAD) ^ pid as u32
}

/// Returns the image of process `pid` of a program; adds it if it is new.
pub(crate) fn image_of(program: &mut Program, table: &mut Table, pid: i32, now: u64) -> ImageId {
    // A program may claim more processes than there can be, so their number is bounded.
    let too_many = program.processes.forks.len() >= MOST_PROCESSES && !program.processes.forks.contains_key(&pid);
    if pid == 0 || pid == program.pid || too_many {
        return program.image;
    }
    let parent = program.processes.makers.remove(&pid).unwrap_or(program.image);
    *program.processes.forks.entry(pid).or_insert_with(|| {
        let like = table.images.get(parent.index()).cloned().unwrap_or_default();
        table.image(Image {
            pid,
            parent: Some(parent),
            exe: like.exe,
            argv: like.argv,
            start_ns: now,
            main_at_ns: like.main_at_ns.map(|_| now),
            ..Image::default()
        })
    })
}
