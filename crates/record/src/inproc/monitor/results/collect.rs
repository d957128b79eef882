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
use crate::inproc::monitor::session::Session;
use crate::inproc::monitor::shared::memory::Memory;
use crate::inproc::monitor::shared::peer;
use crate::inproc::monitor::sys;
use std::collections::HashSet;
use systoll_hooks::assemble::{Losses, SlotReading, read_slot, slots_drawn};
use systoll_model::ProblemKind;

/// Finds programs that have ended.
pub(crate) fn find_ended(session: &mut Session) {
    session.chores.ended = session.programs.keys().copied().filter(|id| !is_alive(session, *id)).collect();
}

/// Collects one program that has ended and frees its image. Returns true if there was one. It takes only one at a time,
/// because a thread may be waiting for an answer meanwhile.
pub(crate) fn collect_ended(session: &mut Session) -> bool {
    let Some(id) = session.chores.ended.pop() else { return false };
    if let Some(mut program) = session.programs.remove(&id) {
        take_windows(session, &mut program);
        let tally = collect(session, &mut program);
        take(session, &program, &tally);
        end_images(session, &program);
        session.windows.close_all(&mut session.table, id);
        session.memory.free_image(id);
    }
    true
}

/// Collects all remaining programs; they have ended or are no longer watched.
pub(crate) fn collect_all(session: &mut Session) {
    let mut ids: Vec<ProgramId> = session.programs.keys().copied().collect();
    ids.sort_unstable();
    for id in ids {
        if let Some(mut program) = session.programs.remove(&id) {
            take_windows(session, &mut program);
            let tally = collect(session, &mut program);
            take(session, &program, &tally);
            end_images(session, &program);
            session.windows.close_all(&mut session.table, id);
        }
    }
}

/// Takes all windows that a program's threads have written. Its slots are read for the last time here.
fn take_windows(session: &mut Session, program: &mut Program) {
    let slots: Vec<u64> = (0..session.memory.slots_drawn_at_last(program.id)).collect();
    ring_take::take(session, program, &slots, Take::All);
}

fn end_images(session: &mut Session, program: &Program) {
    let now = session.clock.at(sys::now());
    let exe = session.table.images.get(program.image.index()).map(|image| &image.exe);
    if let Some(earlier) = exe.and_then(|exe| session.reuse.by_file.get_mut(exe)) {
        earlier.looked = earlier.looked.max(program.looked);
    }
    let first = (!program.processes.first_has_parted).then_some(&program.image);
    for id in program.processes.forks.values().chain(first) {
        images::end_image(&mut session.table, *id, now);
    }
}

pub(crate) fn take(session: &mut Session, program: &Program, tally: &Tally) {
    if session.memory.is_sealed_off(program.id) {
        let exe = session.table.images.get(program.image.index()).map(|i| i.exe.clone()).unwrap_or_default();
        let what = "has sealed the memory it shares with systoll: what it did is not all known";
        session.problems.note(ProblemKind::Lost, format!("{exe} {what}"));
    }
    session.stats.counted.vdso_calls = session.stats.counted.vdso_calls.saturating_add(tally.vdso_calls);
    session.windows.budget.refused = session.windows.budget.refused.saturating_add(tally.unopened);
    session.stats.counted.in_place.add(&tally.in_place);
    session.stats.counted.asked.add(tally.asking);
    losses::note_losses(session, program, tally);
}

/// Returns true if any process of a program may still run its code.
fn is_alive(session: &Session, id: ProgramId) -> bool {
    let Some(program) = session.programs.get(&id) else { return false };
    if program.hooks.starting.is_some() {
        return sys::exists(program.pid);
    }
    let mut asked = HashSet::new();
    (0..session.memory.slots_drawn(id)).any(|index| {
        let head = session.memory.head(id.slot(index));
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
pub(crate) fn counted_so_far(session: &Session) -> u64 {
    let of_slot = |thread: SlotRef, program: &Program| {
        let words = session.memory.slot(thread);
        let slot = read_slot(&words, thread.index, |node| program.hooks.room.record_of(node));
        let tells = |pid: u32| program.processes.tells(pid as i32);
        let slot = slot.filter(|slot| slot.thread.as_ref().is_none_or(|thread| tells(thread.pid)));
        let calls = |slot: &SlotReading| {
            let made = slot.counts(&words).filter(|(record, _)| !program.is_of_vdso(*record));
            made.fold(0u64, |sum, (_, counts)| sum.saturating_add(counts.entered))
        };
        slot.as_ref().map_or(0, calls)
    };
    let running = session.programs.values().flat_map(|program| {
        let slots = 0..session.memory.slots_drawn(program.id);
        slots.map(|index| of_slot(program.id.slot(index), program))
    });
    running.fold(session.table.calls, u64::saturating_add)
}

/// Returns the number of programs with a process that may be alive.
pub(crate) fn living(session: &Session) -> usize {
    session.programs.keys().filter(|id| is_alive(session, **id)).count()
}

/// Adds a program's counts to the table, except the counts of slots collected earlier. Returns the program's totals,
/// which include those slots.
pub(crate) fn collect(session: &mut Session, program: &mut Program) -> Tally {
    let header = session.memory.header(program.id);
    let slots: Vec<u64> = slots_drawn(&header).collect();
    let mut tally = fill(session, program, &slots, Losses::of_image(&header));
    tally.add(&program.threads.recycled);
    let now = session.clock.at(sys::now());
    for (pid, used) in std::mem::take(&mut tally.used) {
        let image = image_of(program, &mut session.table, pid, now);
        tally.asking.add(used.settle(
            session.table.images.get_mut(image.index()),
            program.cpu_of(pid),
            session.stats.asking,
        ));
    }
    for (image, seen) in &tally.threads {
        if let Some(image) = session.table.images.get_mut(image.index()) {
            // The first thread of each process was counted with its image.
            image.threads += (seen.threads).saturating_sub(seen.processes.len() as u64);
        }
    }
    tally
}

/// Adds the counts in some slots of a program to the table, before the slots are wiped.
pub(crate) fn collect_slots(session: &mut Session, program: &mut Program, slots: &[u64]) {
    ring_take::take(session, program, slots, Take::All);
    let losses = Losses::of_image(&session.memory.header(program.id));
    let mut tally = fill(session, program, slots, losses);
    // Losses of the whole image are added once, when the image is freed, so leave them out here.
    tally.losses = Losses { unasked: tally.losses.unasked, errors: tally.losses.errors, ..Losses::default() };
    program.threads.recycled.add(&tally);
    for index in slots {
        let thread = program.id.slot(*index);
        session.windows.close(&mut session.table, thread);
        session.windows.ordinals.remove(&thread);
        program.threads.told.remove(index);
    }
}

/// Adds the counts in slots to the table. `losses` come from the image's header.
fn fill(session: &mut Session, program: &mut Program, slots: &[u64], losses: Losses) -> Tally {
    let (clock, now) = (session.clock.reading(session.stats.around.own_cycles), session.clock.at(sys::now()));
    for index in slots {
        let thread = program.id.slot(*index);
        note_maker(&session.memory, program, &mut session.table, thread, now);
    }
    let mut rows = RowBuilder::new(&mut session.table, program, losses, (clock, now));
    for index in slots {
        let words = session.memory.slot(rows.program.id.slot(*index));
        rows.slot(&words, *index);
    }
    rows.end()
}
