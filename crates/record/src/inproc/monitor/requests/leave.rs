//! Removes everything of ours from a process whose jumps are gone: no thread of it is left in our code, none comes back
//! there, and the kernel writes to no area of ours.
//!
//! The thread that asks waits in our code, with its program's registers in its slot. It is stopped there and resumed
//! where it would be without us: right before its call, which it then makes at the call's own place. Other threads
//! leave our code by themselves within a moment, except one that is blocked in a call made there: it is moved behind
//! the same call in its program's own code, where the jump was.

use crate::inproc::monitor::exec::{provision, rseq_areas};
use crate::inproc::monitor::handles::{NodeAddr, ProgramId, SlotRef};
use crate::inproc::monitor::program::Patched;
use crate::inproc::monitor::requests::end_of_watching::EndOfWatching;
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::requests::{identity, leave_alone};
use crate::inproc::monitor::session::Targets;
use crate::inproc::monitor::shared::maps::Maps;
use crate::inproc::monitor::shared::memory::{CodeRoom, Memory};
use crate::inproc::monitor::shared::peer::{self, Held};
use crate::inproc::monitor::shared::remote::Mem;
use crate::inproc::monitor::sys;
use crate::inproc::monitor::tracees::Tracees;
use crate::problems::Problems;
use crate::tracee;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use systoll_hooks::layout::{BLOBS_AT, BLOBS_SIZE, GLOBAL, IMAGE, areas, image, slot, slot_index, state};

/// Searches of a process for threads in our code, at most.
const ROUNDS: usize = 100;
/// Number of searches after which a thread in our code is taken to be blocked there: our code itself takes
/// microseconds.
const WAITS_AFTER: usize = 20;
const PAUSE: Duration = Duration::from_millis(1);

const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Flags as `lahf` puts them into ah, and the one that `seto` puts into al.
const OF_LAHF: u64 = 0xd5;
const OVERFLOW: u64 = 1 << 11;

/// Fate of our memory in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ours {
    /// Our memory is unmapped.
    Unmapped,
    /// Our memory stays, because the call that is about to be made is about it.
    Stays,
}

/// The place where a waiting thread would be without us.
struct Place {
    /// Address of the next instruction.
    resume: u64,
    /// Address of the `syscall` instruction of the thread's call.
    call: u64,
    /// The call's number, if the counting code keeps flags in rax.
    keeps_flags: Option<u32>,
}

/// Our code in a process.
struct OurCode {
    files: Rc<[Patched]>,
    room: CodeRoom,
}

impl OurCode {
    fn has(&self, address: u64) -> bool {
        (BLOBS_AT..BLOBS_AT + BLOBS_SIZE).contains(&address)
            || self.files.iter().any(|file| file.code_range().contains(&address))
    }

    /// Returns the address at which a thread at an address of our code would be without us; `None` if that depends on
    /// the thread.
    fn stands_for(&self, address: u64) -> Option<u64> {
        let file = self.files.iter().find(|file| file.code_range().contains(&address))?;
        let start = file.code_range().start;
        Some(start.wrapping_add_signed(file.code.stands_for(&self.room, address - start)?))
    }

    /// Returns the address at which a thread would be without us that is blocked in a call of the program's, made at
    /// `address` of our code.
    fn waits_behind(&self, mem: &Mem, address: u64) -> Option<u64> {
        let is_call = |behind: u64| {
            let mut bytes = [0; 2];
            mem.read(behind.wrapping_sub(2), &mut bytes).is_ok() && bytes == SYSCALL
        };
        self.stands_for(address).filter(|behind| is_call(address) && is_call(*behind))
    }
}

/// Handles a thread that is about to make a call after which its process can't be watched any more. Returns true if it
/// was released to make the call.
pub(crate) fn on_last(
    targets: &mut Targets,
    problems: &mut Problems,
    tracees: &Tracees,
    waiter: &Waiter,
    last: EndOfWatching,
) -> bool {
    leave_alone::leave_alone(&targets.programs, problems, waiter.slot.program, waiter.tid, last.why());
    if leave(targets, tracees, waiter, ours_after(last)) {
        return true;
    }
    rseq_areas::take_area_back(targets, waiter.slot);
    if last == EndOfWatching::Locks {
        leave_alone::take_back(targets, waiter.slot, waiter.tid);
    }
    false
}

/// Returns the fate of our memory before a process makes its last call.
fn ours_after(last: EndOfWatching) -> Ours {
    if last == EndOfWatching::Touches { Ours::Stays } else { Ours::Unmapped }
}

/// Removes everything of ours from the process of a thread that waits to make its last call, and releases the thread to
/// make it. Its jumps are gone already. Returns false if that is impossible: then the thread still waits.
fn leave(targets: &Targets, tracees: &Tracees, waiter: &Waiter, ours: Ours) -> bool {
    let thread = waiter.slot;
    let pid = targets.memory.head(thread).pid as i32;
    if pid <= 0 || thread.is_last() || identity::may_share_memory(targets, thread.program, pid) {
        return false;
    }
    let Some((place, code)) = place(targets, waiter) else { return false };
    let Ok(mem) = provision::memory_of(targets, thread) else { return false };
    let mut bytes = [0; 2];
    if mem.read(place.call, &mut bytes).is_err() || bytes != SYSCALL {
        return false;
    }
    let given = rseq_areas::are_given(&targets.memory, thread.program);
    let Some(held) = all_out(&targets.memory, tracees, waiter, (&code, &mem), given) else { return false };
    let Some(state) = targets.memory.image(thread.program).and_then(|area| area.half(thread.offset() + slot::STATE))
    else {
        return false;
    };
    // The thread is stopped now, so it can't go on by itself any more.
    if state.load(Ordering::SeqCst) != state::WAITING || put_back(waiter, &place).is_err() {
        return false;
    }
    state.store(state::IDLE, Ordering::SeqCst);
    disarm(&targets.memory, thread, pid, &mem);
    for other in &held {
        clean(&targets.memory, thread.program, other.tid, (place.call, given));
    }
    if ours == Ours::Unmapped {
        unmap(&code, waiter.tid, (place.call, given));
    }
    true
}

/// Returns the place where the waiting thread would be without us, and our code in its process.
fn place(targets: &Targets, waiter: &Waiter) -> Option<(Place, OurCode)> {
    let program = targets.programs.get(&waiter.slot.program)?;
    let area = targets.memory.image(waiter.slot.program)?;
    let word = |at: u64| area.get(waiter.slot.offset() + at);
    let at = program.site_of(NodeAddr(word(slot::ANSWER)))?;
    let file = program.hooks.files.get(at.file)?;
    let vaddr = file.code.blob.sites.get(at.site)?.address;
    let planned = file.known.plan.sites.iter().find(|site| site.address == vaddr)?;
    // Other processes of the program may have code at places where this process has something else.
    let maps = Maps::of(waiter.tid);
    let here = program.hooks.files.iter().filter(|file| maps.are_ours(&file.code_range()));
    let code = OurCode { files: here.cloned().collect(), room: targets.memory.codes().clone() };
    let resume = code.stands_for(word(slot::RESUME) & ((1 << 48) - 1))?;
    let keeps_flags = planned.number.filter(|_| planned.keeps_flags);
    Some((Place { resume, call: file.bias.wrapping_add(vaddr), keeps_flags }, code))
}

/// Makes sure that no thread of the waiting thread's process is in our code, except the waiting thread itself, which is
/// stopped. Returns the threads that were stopped for that: all of the process's threads if `all` is true. Returns
/// `None` if some can't be stopped or do not leave.
fn all_out(
    memory: &Memory,
    tracees: &Tracees,
    waiter: &Waiter,
    (code, mem): (&OurCode, &Mem),
    all: bool,
) -> Option<Vec<Held>> {
    let pid = memory.head(waiter.slot).pid as i32;
    let mut held: Vec<Held> = Vec::new();
    for round in 0..ROUNDS {
        answer_others(memory, waiter.slot, pid);
        let threads = peer::threads(pid)?;
        let mut some_in = false;
        for tid in &threads {
            let stays = !all && *tid != waiter.tid && waits_at(*tid).is_some_and(|at| !code.has(at));
            if stays || held.iter().any(|held| held.tid == *tid) {
                continue;
            }
            if tracees.seized.contains_key(tid) {
                return None;
            }
            // A thread that has ended is in no code.
            let Some(stopped) = peer::stop(*tid).ok()? else { continue };
            let is_in = *tid != waiter.tid && !moved_out(*tid, (code, mem), round >= WAITS_AFTER)?;
            some_in |= is_in;
            if !is_in {
                held.push(stopped);
            }
        }
        // Threads outside can't enter our code again, so only a thread that was inside can have started another one
        // there.
        if !some_in && peer::threads(pid)?.iter().all(|tid| threads.contains(tid)) {
            return Some(held);
        }
        std::thread::sleep(PAUSE);
    }
    None
}

/// Returns true if a stopped thread is not in our code, or if it was moved out because it is blocked there in a call
/// (`waits`).
fn moved_out(tid: i32, (code, mem): (&OurCode, &Mem), waits: bool) -> Option<bool> {
    let regs = tracee::registers(tid).ok()?;
    if !code.has(regs.rip) {
        return Some(true);
    }
    let in_call = regs.orig_rax != u64::MAX;
    let Some(rip) = code.waits_behind(mem, regs.rip).filter(|_| waits && in_call) else { return Some(false) };
    tracee::set_registers(tid, &crate::tracee::Regs { rip, ..regs }).ok()?;
    Some(true)
}

/// Returns the address at which a thread continues after the call that it is blocked in; `None` if the thread runs, or
/// if the kernel does not tell.
fn waits_at(tid: i32) -> Option<u64> {
    let line = crate::procfs::read(format!("/proc/{tid}/syscall"))?;
    let last = std::str::from_utf8(&line).ok()?.split_ascii_whitespace().next_back()?;
    u64::from_str_radix(last.strip_prefix("0x")?, 16).ok()
}

/// Releases all other threads of the process that wait for the launcher. They go on with the answer that they have.
fn answer_others(memory: &Memory, thread: SlotRef, pid: i32) {
    let Some(area) = memory.image(thread.program) else { return };
    for index in (0..memory.slots_drawn(thread.program)).filter(|index| *index != thread.index) {
        let base = thread.program.slot(index).offset();
        let waits = area.get(base + slot::STATE) as u32 == state::WAITING && area.get(base + slot::PID) as i32 == pid;
        if let Some(word) = area.half(base + slot::STATE).filter(|_| waits)
            && word.compare_exchange(state::WAITING, state::ANSWERED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        {
            sys::futex_wake(word);
        }
    }
}

/// Clears the restartable sequence by which each thread notes if a call waits: the kernel would read it from our memory
/// when the call returns.
fn disarm(memory: &Memory, thread: SlotRef, pid: i32, mem: &Mem) {
    const SEQUENCE: u64 = 8;
    let Some(area) = memory.image(thread.program) else { return };
    for index in 0..memory.slots_drawn(thread.program) {
        let base = thread.program.slot(index).offset();
        let at = area.get(base + slot::RSEQ).wrapping_add(SEQUENCE);
        let mut armed = [0; 8];
        if area.get(base + slot::PID) as i32 == pid
            && mem.read(at, &mut armed).is_ok()
            && u64::from_ne_bytes(armed) == IMAGE + image::RSEQ_CS
        {
            let _ = mem.write(at, &[0; 8]);
        }
    }
}

/// Restores the stopped thread's program registers, at its call's own place.
fn put_back(waiter: &Waiter, place: &Place) -> nix::Result<()> {
    let (saved, regs) = (&waiter.registers, tracee::registers(waiter.tid)?);
    let (mut rax, mut eflags) = (saved.ax, regs.eflags);
    if let Some(number) = place.keeps_flags {
        let overflow = if saved.ax & 0xff != 0 { OVERFLOW } else { 0 };
        eflags = eflags & !(OF_LAHF | OVERFLOW) | saved.ax >> 8 & OF_LAHF | overflow;
        rax = u64::from(number);
    }
    let regs = crate::tracee::Regs {
        rax,
        rdi: saved.di,
        rsi: saved.si,
        rdx: saved.dx,
        r10: saved.r10,
        r8: saved.r8,
        r9: saved.r9,
        rbx: saved.bx,
        rbp: saved.bp,
        rsp: waiter.sp,
        r12: saved.r12,
        r13: saved.r13,
        r14: saved.r14,
        r15: saved.r15,
        rip: place.resume,
        // The kernel must not restart a call.
        orig_rax: u64::MAX,
        eflags,
        ..regs
    };
    tracee::set_registers(waiter.tid, &regs)
}

/// Takes the rseq area and the slot from a stopped thread. `call` is an address at which the thread can make a call.
fn clean(memory: &Memory, id: ProgramId, tid: i32, (call, given): (u64, bool)) {
    let Ok(regs) = tracee::registers(tid) else { return };
    let Some(index) = slot_index(regs.gs_base) else { return };
    if let Some(taking) = rseq_areas::taking_back(memory, id.slot(index)).filter(|_| given) {
        make_calls(tid, call, &regs, &[taking]);
    }
    let _ = tracee::set_registers(tid, &crate::tracee::Regs { gs_base: 0, ..regs });
}

/// Makes a stopped thread unmap everything of ours, which no thread of its process needs any more.
fn unmap(code: &OurCode, tid: i32, (call, given): (u64, bool)) {
    let fixed = [GLOBAL..IMAGE + image::SIZE, BLOBS_AT..BLOBS_AT + BLOBS_SIZE];
    let areas = given.then_some(areas::AT..areas::AT + areas::SIZE);
    let near = code.files.iter().map(Patched::code_range);
    let unmapping = |range: Range<u64>| (libc::SYS_munmap, [range.start, range.end - range.start, 0, 0, 0, 0]);
    let calls: Vec<_> = fixed.into_iter().chain(areas).chain(near).map(unmapping).collect();
    if let Ok(regs) = tracee::registers(tid) {
        make_calls(tid, call, &regs, &calls);
    }
}

/// Makes a stopped thread execute calls by the `syscall` instruction at an address, and restores its registers.
fn make_calls(tid: i32, at: u64, regs: &crate::tracee::Regs, calls: &[(i64, [u64; 6])]) {
    let Ok(mask) = tracee::signal_mask(tid) else { return };
    // Block all signals: no handler may run meanwhile, and signals stay pending.
    if tracee::set_signal_mask(tid, u64::MAX).is_ok() {
        for call in calls {
            let _ = tracee::make_call(tid, at, regs, *call);
        }
    }
    let _ = tracee::set_registers(tid, regs);
    let _ = tracee::set_signal_mask(tid, mask);
}
