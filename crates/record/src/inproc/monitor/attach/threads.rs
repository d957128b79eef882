//! Gives existing threads their slots, and notes the calls that they are in.

use crate::inproc::monitor::attach::places::Left;
use crate::inproc::monitor::attach::stop_all::Stopped;
use crate::inproc::monitor::exec::provision;
use crate::inproc::monitor::handles::{NodeAddr, ProgramId, SiteRef, SlotRef};
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::requests::tickets;
use crate::inproc::monitor::session::{Provisioning, Targets};
use crate::inproc::monitor::shared::memory::{Area, Memory};
use crate::inproc::monitor::shared::peer;
use crate::inproc::monitor::sys;
use crate::tracee;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use systoll_hooks::assemble::start_of_pending;
use systoll_hooks::layout::{NODE_SIZE, image, record, slot, slot_address};

/// Touches the memory of the slots that a process's threads will get, while they still run: each page takes the kernel
/// microseconds at first.
pub(crate) fn touch_slots(memory: &mut Memory, id: ProgramId, pid: i32) {
    let count = peer::threads(pid).map_or(0, |threads| threads.len() as u64);
    let last = count.saturating_sub(1).min(tickets::MOST);
    memory.see_slot(id.slot(last));
    let Some(area) = memory.image(id) else { return };
    for index in 1..=last {
        area.set(id.slot(index).offset() + slot::TAG, 0);
    }
}

/// Gives each of a process's threads a slot of its image; the main thread gets the first. Returns the slots in the
/// threads' order. The threads do not know them yet.
///
/// # Errors
/// A text, if there are more threads than slots or if the shared memory can't be written.
pub(crate) fn give_slots(
    targets: &mut Targets,
    id: ProgramId,
    pid: i32,
    threads: &[Stopped],
) -> Result<Vec<SlotRef>, String> {
    const FULL: &str = "it has more threads than there is room for counters";
    if !provision::enter(&targets.memory, id, pid) {
        return Err("the memory shared with it can't be written".into());
    }
    let mut slots = Vec::with_capacity(threads.len());
    for thread in threads {
        let slot = if thread.tid == pid { id.slot(0) } else { draw(targets, id, pid, thread.tid).ok_or(FULL)? };
        note_area(&targets.memory, slot, thread.tid);
        slots.push(slot);
    }
    if threads.len() > 1
        && let Some(area) = targets.memory.image(id)
    {
        area.set(image::THREADS, 1);
    }
    Ok(slots)
}

/// Draws a slot, as hooked code does for a thread that it makes.
fn draw(targets: &mut Targets, id: ProgramId, pid: i32, tid: i32) -> Option<SlotRef> {
    let program = targets.programs.get_mut(&id)?;
    let area = targets.memory.image(id)?;
    program.threads.tickets.note_drawn(area);
    program.threads.tickets.grow_if_short(area);
    let ticket = area.get(image::NEXT_SLOT);
    let entry = area.half(image::TICKETS + 4 * (ticket % image::TICKETS_LEN))?;
    let index = u64::from(entry.swap(0, Ordering::SeqCst).checked_sub(1)?);
    area.set(image::NEXT_SLOT, ticket + 1);
    let thread = id.slot(index);
    targets.memory.see_slot(thread);
    let area = targets.memory.image(id)?;
    let words = [
        (slot::TAG, thread.tag()),
        (slot::SELF, slot_address(index)),
        (slot::PARENT, slot_address(0)),
        (slot::MADE_AS, tid as u64),
        (slot::TID, tid as u64),
        (slot::PID, pid as u64),
    ];
    words.into_iter().for_each(|(at, word)| area.set(thread.offset() + at, word));
    Some(thread)
}

/// Notes the address of the thread's rseq area, by which hooked code tells waiting from working.
fn note_area(memory: &Memory, thread: SlotRef, tid: i32) {
    let Some(area) = memory.image(thread.program) else { return };
    let Some(of_thread) = tracee::rseq_area(tid).filter(|area| area.at != 0) else { return };
    let usable = area.get(image::RSEQ_SIGNATURE & !7) >> 32 == u64::from(of_thread.signature);
    match usable {
        true => area.set(thread.offset() + slot::RSEQ, of_thread.at),
        // The thread's own area can't be used, and it is given none of ours.
        false => area.set(thread.offset() + slot::AREA_BUSY, 1),
    }
}

/// Tells each thread its slot by its gs base. Returns true if every thread was told.
pub(crate) fn tell_slots(threads: &[Stopped], slots: &[SlotRef]) -> bool {
    threads.iter().zip(slots).all(|(thread, slot)| tracee::set_gs_base(thread.tid, slot_address(slot.index)).is_ok())
}

/// Clears the threads' gs bases.
pub(crate) fn take_slots(threads: &[Stopped]) {
    for thread in threads {
        // A thread that was killed meanwhile has no registers.
        let _ = tracee::set_gs_base(thread.tid, 0);
    }
}

/// Counts the calls that stopped threads are in as entered now, each at the root of its site, since their returns will
/// be counted. Returns the number of these calls.
pub(crate) fn note_calls<'t>(
    targets: &mut Targets,
    provisioning: &Provisioning,
    id: ProgramId,
    threads: impl Iterator<Item = (&'t Stopped, SlotRef)>,
    left: &[Left],
) -> usize {
    let sampled = provisioning.files.samples_time();
    let Some((program, area)) = targets.programs.get_mut(&id).zip(targets.memory.image(id)) else { return 0 };
    // Many threads wait at the same place.
    let mut sites: HashMap<u64, Option<SiteRef>> = HashMap::new();
    let mut noted = 0;
    for (thread, slot) in threads.filter(|(thread, _)| thread.in_call()) {
        let site = *sites.entry(thread.regs.rip).or_insert_with(|| site_before(program, thread.regs.rip, left));
        let number = thread.regs.orig_rax as u32;
        let Some(site) = site else { continue };
        let Some((node, record)) = root_of(program, area, site, number) else { continue };
        let entered = slot.offset() + slot::RECORDS + record * record::SIZE + record::ENTERED;
        let start = start_of_pending(number_at(program, site), sampled, sys::tsc());
        let words = [
            (slot.offset() + slot::RSP, thread.regs.rsp),
            (slot.offset() + slot::NODE, node.0),
            (slot.offset() + slot::START, start),
            (entered, area.get(entered) + 1),
        ];
        words.into_iter().for_each(|(at, word)| area.set(at, word));
        noted += 1;
    }
    noted
}

/// Returns the hooked site whose `syscall` instruction lies before the address `behind`; `None` if its returns are not
/// counted.
fn site_before(program: &Program, behind: u64, left: &[Left]) -> Option<SiteRef> {
    program.hooks.files.iter().zip(left).enumerate().find_map(|(index, (file, left))| {
        let address = behind.wrapping_sub(file.bias).wrapping_sub(2);
        let site =
            file.code.blob.sites.iter().position(|site| site.address == address && site.results && !site.vdso)?;
        (!left.has(address)).then_some(SiteRef { file: index, site })
    })
}

/// Returns the number of the calls that a site makes; `None` if it makes any.
fn number_at(program: &Program, at: SiteRef) -> Option<u32> {
    program.hooks.files.get(at.file)?.code.blob.sites.get(at.site)?.number
}

/// Returns the node at which a site's call `number` is counted, and its record.
fn root_of(program: &mut Program, area: &Area, at: SiteRef, number: u32) -> Option<(NodeAddr, u64)> {
    let file = program.hooks.files.get(at.file)?;
    let node = match file.code.blob.sites.get(at.site)?.number {
        Some(_) => NodeAddr(file.known.region + at.site as u64 * NODE_SIZE),
        None => program.number_root(area, at, number)?,
    };
    Some((node, program.hooks.room.record_of(node.0)?))
}
