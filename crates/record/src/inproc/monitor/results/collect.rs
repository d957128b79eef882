//! Collects the counts of programs: those of ended programs, those of slots before they are wiped, and all others at
//! the end.

use crate::inproc::monitor::handles::{ProgramId, SlotRef};
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::results::images;
use crate::inproc::monitor::results::images::{image_of, note_maker};
use crate::inproc::monitor::results::losses;
use crate::inproc::monitor::results::ring_take::{self, Take};
use crate::inproc::monitor::results::rows::RowBuilder;
use crate::inproc::monitor::results::tally::Tally;
use crate::inproc::monitor::session::{Chores, DraftRecording, FileKnowledge, Provisioning, Reuse, Session, Targets};
use crate::inproc::monitor::shared::memory::Memory;
use crate::inproc::monitor::shared::peer;
use crate::inproc::monitor::sys;
use crate::table::Table;
use std::collections::HashSet;
use systoll_hooks::assemble::{Losses, SlotReading, read_slot, slots_drawn};
use systoll_model::ProblemKind;

/// Finds programs that have ended.
pub(crate) fn find_ended(targets: &Targets, chores: &mut Chores) {
    chores.ended = targets.programs.keys().copied().filter(|id| !is_alive(targets, *id)).collect();
}

/// Collects one program that has ended and frees its image. Returns true if there was one. It takes only one at a time,
/// because a thread may be waiting for an answer meanwhile.
pub(crate) fn collect_ended(session: &mut Session) -> bool {
    let Some(id) = session.chores.ended.pop() else { return false };
    if let Some(mut program) = session.targets.programs.remove(&id) {
        take_windows(&session.targets.memory, &mut session.draft, &mut program);
        let tally = collect(&session.targets.memory, &mut session.draft, &mut program);
        take(&session.targets, &session.knowledge.provisioning, &mut session.draft, &program, &tally);
        end_images(&mut session.knowledge.reuse, &mut session.draft, &program);
        session.draft.windows.close_all(&mut session.draft.table, id);
        session.targets.memory.free_image(id);
    }
    true
}

/// Collects all remaining programs; they have ended or are no longer watched.
pub(crate) fn collect_all(targets: &mut Targets, knowledge: &mut FileKnowledge, draft: &mut DraftRecording) {
    let mut ids: Vec<ProgramId> = targets.programs.keys().copied().collect();
    ids.sort_unstable();
    for id in ids {
        if let Some(mut program) = targets.programs.remove(&id) {
            take_windows(&targets.memory, draft, &mut program);
            let tally = collect(&targets.memory, draft, &mut program);
            take(targets, &knowledge.provisioning, draft, &program, &tally);
            end_images(&mut knowledge.reuse, draft, &program);
            draft.windows.close_all(&mut draft.table, id);
        }
    }
}

/// Takes all windows that a program's threads have written. Its slots are read for the last time here.
fn take_windows(memory: &Memory, draft: &mut DraftRecording, program: &mut Program) {
    let slots: Vec<u64> = (0..memory.slots_drawn_at_last(program.id)).collect();
    ring_take::take(memory, draft, program, &slots, Take::All);
}

fn end_images(reuse: &mut Reuse, draft: &mut DraftRecording, program: &Program) {
    let now = draft.clock.at(sys::now());
    let exe = draft.table.images.get(program.image.index()).map(|image| &image.exe);
    if let Some(earlier) = exe.and_then(|exe| reuse.by_file.get_mut(exe)) {
        earlier.looked = earlier.looked.max(program.looked);
    }
    let first = (!program.processes.first_has_parted).then_some(&program.image);
    for id in program.processes.forks.values().chain(first) {
        images::end_image(&mut draft.table, *id, now);
    }
}

pub(crate) fn take(
    targets: &Targets,
    provisioning: &Provisioning,
    draft: &mut DraftRecording,
    program: &Program,
    tally: &Tally,
) {
    if targets.memory.is_sealed_off(program.id) {
        let exe = draft.table.images.get(program.image.index()).map(|i| i.exe.clone()).unwrap_or_default();
        let what = "has sealed the memory it shares with systoll: what it did is not all known";
        draft.problems.note(ProblemKind::Lost, format!("{exe} {what}"));
    }
    draft.stats.counted.vdso_calls = draft.stats.counted.vdso_calls.saturating_add(tally.vdso_calls);
    draft.windows.budget.refused = draft.windows.budget.refused.saturating_add(tally.unopened);
    draft.stats.counted.in_place.add(&tally.in_place);
    draft.stats.counted.asked.add(tally.asking);
    losses::note_losses(targets, provisioning, draft, program, tally);
}

/// Returns true if any process of a program may still run its code.
fn is_alive(targets: &Targets, id: ProgramId) -> bool {
    let Some(program) = targets.programs.get(&id) else { return false };
    if program.hooks.starting.is_some() {
        return sys::exists(program.pid);
    }
    let mut asked = HashSet::new();
    (0..targets.memory.slots_drawn(id)).any(|index| {
        let head = targets.memory.head(id.slot(index));
        let pid = head.pid as i32;
        let gone = program.threads.gone_by_exec.contains(&index) || head.own == 0;
        !gone && (pid == 0 || (asked.insert(pid) && sys::exists(pid)))
    })
}

/// Returns true if any process that a program's slots name has its image mapped.
pub(crate) fn is_mapped(memory: &Memory, id: ProgramId) -> bool {
    let pids: HashSet<i32> = (0..memory.slots_drawn(id)).map(|n| memory.head(id.slot(n)).pid as i32).collect();
    pids.into_iter().any(|pid| pid > 0 && peer::maps_image(pid, id))
}

/// Returns the number of calls counted so far, including those of running programs.
pub(crate) fn counted_so_far(targets: &Targets, table: &Table) -> u64 {
    let of_slot = |thread: SlotRef, program: &Program| {
        let words = targets.memory.slot(thread);
        let slot = read_slot(&words, thread.index, |node| program.hooks.room.record_of(node));
        let tells = |pid: u32| program.processes.tells(pid as i32);
        let slot = slot.filter(|slot| slot.thread.as_ref().is_none_or(|thread| tells(thread.pid)));
        let calls = |slot: &SlotReading| {
            let made = slot.counts(&words).filter(|(record, _)| !program.is_of_vdso(*record));
            made.fold(0u64, |sum, (_, counts)| sum.saturating_add(counts.entered))
        };
        slot.as_ref().map_or(0, calls)
    };
    let running = targets.programs.values().flat_map(|program| {
        let slots = 0..targets.memory.slots_drawn(program.id);
        slots.map(|index| of_slot(program.id.slot(index), program))
    });
    running.fold(table.calls, u64::saturating_add)
}

/// Returns the number of programs with a process that may be alive.
pub(crate) fn living(targets: &Targets) -> usize {
    targets.programs.keys().filter(|id| is_alive(targets, **id)).count()
}

/// Adds a program's counts to the table, except the counts of slots collected earlier. Returns the program's totals,
/// which include those slots.
pub(crate) fn collect(memory: &Memory, draft: &mut DraftRecording, program: &mut Program) -> Tally {
    let header = memory.header(program.id);
    let slots: Vec<u64> = slots_drawn(&header).collect();
    let mut tally = fill((memory, false), draft, program, &slots, Losses::of_image(&header));
    tally.add(&program.threads.recycled);
    let now = draft.clock.at(sys::now());
    for (pid, used) in std::mem::take(&mut tally.used) {
        let image = image_of(program, &mut draft.table, pid, now);
        tally.asking.add(used.settle(
            draft.table.images.get_mut(image.index()),
            program.cpu_of(pid),
            draft.stats.asking,
        ));
    }
    for (image, seen) in &tally.threads {
        if let Some(image) = draft.table.images.get_mut(image.index()) {
            // The first thread of each process was counted with its image.
            image.threads += (seen.threads).saturating_sub(seen.processes.len() as u64);
        }
    }
    tally
}

/// Adds the counts in some slots of a program, whose threads are gone, to the table, before the slots are wiped.
pub(crate) fn collect_slots(memory: &Memory, draft: &mut DraftRecording, program: &mut Program, slots: &[u64]) {
    ring_take::take(memory, draft, program, slots, Take::All);
    let losses = Losses::of_image(&memory.header(program.id));
    let mut tally = fill((memory, true), draft, program, slots, losses);
    // Losses of the whole image are added once, when the image is freed, so leave them out here.
    tally.losses = Losses { unasked: tally.losses.unasked, errors: tally.losses.errors, ..Losses::default() };
    program.threads.recycled.add(&tally);
    for index in slots {
        let thread = program.id.slot(*index);
        draft.windows.close(&mut draft.table, thread);
        draft.windows.ordinals.remove(&thread);
        program.threads.told.remove(index);
    }
}

/// Adds the counts in slots to the table; `are_gone` is true if their threads are gone. `losses` come from the image's
/// header.
fn fill(
    (memory, are_gone): (&Memory, bool),
    draft: &mut DraftRecording,
    program: &mut Program,
    slots: &[u64],
    losses: Losses,
) -> Tally {
    let (clock, now) = (draft.clock.reading(draft.stats.around.own_cycles), draft.clock.at(sys::now()));
    for index in slots {
        let thread = program.id.slot(*index);
        note_maker(memory, program, &mut draft.table, thread, now);
    }
    let mut rows = RowBuilder::new(&mut draft.table, program, losses, (clock, now));
    for index in slots {
        let thread = rows.program.id.slot(*index);
        match are_gone.then(|| memory.gone(thread)).flatten() {
            Some(words) => rows.slot(&words, *index),
            None => rows.slot(&memory.slot(thread), *index),
        }
    }
    rows.end()
}
