//! The part of the hand-shake's code with which a thread writes windows by itself, see [`crate::layout::ring`]. It runs
//! behind the same lock and does not ask the launcher.
//!
//! A call's registers, place, time and result go into a buffer of the thread's slot, with the memory that its arguments
//! point to ([`super::ring_data`]): what the kernel has read and what it has written. Calls that a signal handler makes
//! while its thread waits in a call are written in between, each under its own stack pointer. Calls that a handler
//! makes while the thread is in this code are not written, and the next call written says so.
//!
//! All registers except rbp, rsp, rbx and r12 to r15 are free: the slot holds them. Everything else is reached through
//! gs and offsets, so that a process forked in the middle continues in a slot of its own.

use super::emitter::{Emitted, Emitter, NUMBER_BIT, asm, at, gs, gs_at, gs32};
use super::look;
use super::ring_buffer::{close, draw, free_buffer, is_full, leave};
use super::ring_data::{CALL, CopyKind, fetch, keep, name, names_change, page_faults, reach};
use super::trunk::{self, CRUMB_CYCLES};
use crate::layout::ring::{self, call, state};
use crate::layout::{IMAGE, NUMBERS, Question, Saved, global, image, node, record, slot, want, windows};
use iced_x86::code_asm::*;

/// Time stamp counter when the thread began to write.
const BEGAN: u64 = slot::RING_SCRATCH;
/// Argument registers, in their order.
const ARGUMENTS: [Saved; 6] = [Saved::Rdi, Saved::Rsi, Saved::Rdx, Saved::R10, Saved::R8, Saved::R9];
/// Mask of a question's number in a word that holds flags above it.
const QUESTION: i32 = (1 << NUMBER_BIT) - 1;
/// Cycles that count for writing, at most: during longer ones other programs had the processor.
const LONGEST: u32 = 1 << 15;
/// Octaves of a node's count (bit n: calls 2^n to 2^(n+1)-1) in which cheap calls need no sample besides a window: the
/// sample of the first call covers about eight calls, the one in the octave from call 8 on covers about seventy.
const CRUMBS: u32 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5;
/// Offset in the slot of the state of the buffer that is taken last.
const LAST_STATE: u64 = slot::RING_HEADERS + (ring::COUNT - 1) * ring::HEADER + ring::STATE;

/// Continuations of the hand-shake's code.
#[derive(Clone, Copy)]
pub(super) struct Ways {
    /// Continuation if the launcher must be asked.
    pub(super) ask: CodeLabel,
    /// Continuation after the launcher has answered, or nothing was asked: the call may have to be written.
    pub(super) asked: CodeLabel,
    /// Continuation after everything is done.
    pub(super) done: CodeLabel,
}

/// Decides if the launcher is asked, or if the thread handles the call by itself. In: the question, in the slot. Lost:
/// rax, rcx, r11, flags.
pub(super) fn divide(e: &mut Emitter, ways: Ways) -> Emitted {
    let (entry, open, write, ret, skip, own) = (e.label(), e.label(), e.label(), e.label(), e.label(), e.label());
    let (look, window, alone, go) = (e.label(), e.label(), e.label(), e.label());
    asm!(e; mov(rax, gs(slot::RESUME)); shr(rax, 48u32); and(eax, QUESTION); cmp(eax, Question::WindowEntry as i32); je(entry););
    asm!(e; cmp(eax, Question::WindowReturn as i32); jne(ways.ask););
    asm!(e; cmp(gs(slot::WANT), want::HAND_SHAKE as i32); je(ways.ask); ja(ret); jmp(ways.done););
    e.cold(move |e| {
        e.here(entry)?;
        look::plan(e)?;
        look::unfinished(e)?;
        asm!(e; test(gs(slot::LOOK_FLAGS), call::BY_LAUNCHER as i32); jne(ways.ask););
        asm!(e; mov(r11, IMAGE + image::WINDOWS); mov(ecx, dword_ptr(r11)); mov(rax, gs(slot::WANT)););
        asm!(e; cmp(eax, want::HAND_SHAKE as i32); je(ways.ask); jb(own); cmp(eax, want::RING as i32); je(open););
        // Within a window, the launcher is asked only if it wants a sample.
        asm!(e; cmp(ecx, windows::ASKED_ONCE as i32); jbe(look););
        asks(e)?;
        asm!(e; js(look););
        is_due(e, write)?;
        trunk::compare(e, ways.ask)?;
        asm!(e; jmp(write););
        e.here(look)?;
        is_due(e, write)?;
        asks(e)?;
        asm!(e; js(ways.ask););
        is_crumb(e, write)?;
        asm!(e; jmp(ways.ask););
        e.here(own)?;
        // A window is due at this call, or a sample, or both: then the window comes first.
        asm!(e; mov(r11, gs(slot::ANSWER)); mov(rdx, at(r11, node::RECORD)); mov(rdx, gs_at(rdx, record::ENTERED)););
        asm!(e; cmp(rdx, at(r11, node::WINDOW_AT)); je(window););
        e.here(alone)?;
        look::begin(e, ways.done)?;
        begin(e)?;
        entered(e, ways.done)?;
        e.here(window)?;
        asks(e)?;
        asm!(e; js(ways.ask););
        asm!(e; cmp(ecx, windows::OWN as i32); jb(ways.ask););
        trunk::compare(e, ways.ask)?;
        asm!(e; mov(r11, IMAGE + image::WINDOWS); cmp(dword_ptr(r11), windows::OWN as i32); ja(skip););
        asm!(e; mov(r11, gs(slot::ANSWER)); mov(rdx, at(r11, node::RECORD)); mov(rdx, gs_at(rdx, record::ENTERED)););
        // If the launcher has not read the earlier windows, a call made for the first time waits until it has.
        asm!(e; cmp(rdx, 1); ja(open); cmp(gs(LAST_STATE), state::FREE as i32); jne(ways.ask););
        e.here(open)?;
        begin(e)?;
        plan_next(e)?;
        open_buffer(e, ways.done)?;
        entered(e, ways.done)?;
        e.here(write)?;
        begin(e)?;
        plan_next(e)?;
        entered(e, ways.done)?;
        e.here(skip)?;
        plan_next(e)?;
        asm!(e; inc(gs(slot::RING_REFUSED)); jmp(alone););
        e.here(ret)?;
        asm!(e; mov(rax, gs(slot::WANT)); cmp(eax, want::LOOK as i32); je(go); cmp(eax, want::WRITING as i32); jne(ways.done););
        e.here(go)?;
        begin(e)?;
        returned(e, ways.done)?;
        // The launcher was asked at a call's entry, and may have opened a window there.
        e.here(ways.asked)?;
        asm!(e; mov(rax, gs(slot::RESUME)); shr(rax, 48u32); and(eax, QUESTION); cmp(eax, Question::WindowEntry as i32); jne(ways.done););
        asm!(e; cmp(gs(slot::WANT), want::RING as i32); jb(ways.done); je(open); jmp(write););
        Ok(())
    });
    Ok(())
}

/// Sets the sign flag if the launcher must be asked when a window is due at this call's node. Lost: r11.
fn asks(e: &mut Emitter) -> Emitted {
    const { assert!(node::ASKS == 1 << 63) };
    asm!(e; mov(r11, gs(slot::ANSWER)); cmp(at(r11, node::TRANSFERS), 0););
    Ok(())
}

/// Goes to `not` unless a window is due at this call. rcx: number of the call at its node, r11, by this thread's count.
/// Lost: rax, rdx.
fn is_due(e: &mut Emitter, not: CodeLabel) -> Emitted {
    asm!(e; mov(r11, gs(slot::ANSWER)); mov(rcx, at(r11, node::RECORD)); mov(rcx, gs_at(rcx, record::ENTERED)););
    // Zero means that no window is ever due.
    asm!(e; mov(rax, at(r11, node::WINDOW_AT)); lea(rdx, qword_ptr(rax - 1)); cmp(rdx, rcx); jae(not););
    Ok(())
}

/// Goes to `write` if this call is in one of [`CRUMBS`] and earlier calls of its node have taken next to no time: the
/// launcher's sample would add only the line of a script. In: as [`is_due`] leaves it. Lost: rax, rdx.
fn is_crumb(e: &mut Emitter, write: CodeLabel) -> Emitted {
    let tells = e.label();
    asm!(e; bsr(rax, rcx); je(tells); mov(edx, CRUMBS); bt(rdx, rax); jnc(tells););
    asm!(e; mov(rax, at(r11, node::RECORD)); mov(edx, CRUMB_CYCLES); cmp(gs_at(rax, record::CYCLES), rdx); jb(write););
    e.here(tells)?;
    Ok(())
}

fn begin(e: &mut Emitter) -> Emitted {
    asm!(e; rdtsc(); shl(rdx, 32u32); or(rax, rdx); mov(gs(BEGAN), rax););
    Ok(())
}

/// Draws the next place for a window if one is due here: in the second half of the octave of the count, or in the first
/// half of the next octave.
fn plan_next(e: &mut Emitter) -> Emitted {
    let (later, place, done) = (e.label(), e.label(), e.label());
    is_due(e, done)?;
    draw(e)?;
    asm!(e; mov(r8, rcx); bsr(r10, r8); je(done); test(r10d, r10d); je(later););
    asm!(e; lea(ecx, dword_ptr(r10 - 1)); mov(edx, 1); shl(rdx, cl); test(r8, rdx); jne(later););
    asm!(e; lea(r8, qword_ptr(rdx + rdx * 2)); jmp(place););
    e.here(later)?;
    asm!(e; mov(ecx, r10d); mov(edx, 1); shl(rdx, cl); lea(r8, qword_ptr(rdx + rdx)););
    e.here(place)?;
    asm!(e; sub(rdx, 1); and(rax, rdx); add(rax, r8); mov(at(r11, node::WINDOW_AT), rax););
    e.here(done)?;
    Ok(())
}

/// Takes a free buffer.
fn open_buffer(e: &mut Emitter, done: CodeLabel) -> Emitted {
    let none = e.label();
    free_buffer(e, ring::SHARE, none)?;
    asm!(e; lea(rax, qword_ptr(rdi + ring::DATA as i32)); mov(gs(slot::RING_DATA), rax););
    asm!(e; mov(gs(slot::RING_MOST), ring::CALLS as i32););
    // Allocate these pages now: page faults counted between calls must be the program's own.
    for page in (0..ring::REACH).step_by(ring::PAGE as usize) {
        asm!(e; mov(gs_at(rdi, page), 0););
    }
    asm!(e; add(rdi, ring::REACH as i32); mov(gs(slot::RING_REACH), rdi););
    asm!(e; mov(gs(slot::WANT), want::WRITING as i32););
    e.cold(move |e| {
        e.here(none)?;
        asm!(e; inc(gs(slot::RING_REFUSED)); mov(gs(slot::WANT), want::NOTHING as i32); jmp(done););
        Ok(())
    });
    Ok(())
}

/// Writes a call that is about to be made into the open buffer.
fn entered(e: &mut Emitter, done: CodeLabel) -> Emitted {
    let (room, known, whole, waits, plain) = (e.label(), e.label(), e.label(), e.label(), e.label());
    is_full(e, room)?;
    // The buffer is full but still open, because its last call never returned.
    close(e)?;
    asm!(e; jmp(done););
    e.here(room)?;
    asm!(e; mov(r9, gs_at(r8, ring::LEN)); imul_3(r9, r9, ring::CALL as i32); add(r9, gs(slot::RING_BUFFER)); mov(gs(CALL), r9););
    asm!(e; mov(r11, gs(slot::ANSWER)); mov(gs_at(r9, call::NODE), r11); mov(rcx, at(r11, node::RECORD)););
    for (from, to) in [(record::ENTERED, call::NTH), (record::CYCLES, call::CYCLES), (record::WAITED, call::WAITED)] {
        asm!(e; mov(rax, gs_at(rcx, from)); mov(gs_at(r9, to), rax););
    }
    for (argument, i) in ARGUMENTS.into_iter().zip(0..) {
        asm!(e; mov(rax, gs(argument.offset())); mov(gs_at(r9, call::ARGS + 8 * i), rax););
    }
    // Use the site's number, otherwise eax.
    asm!(e; mov(rax, gs(slot::RESUME)); shr(rax, 48 + NUMBER_BIT); sub(eax, 1); jae(known););
    asm!(e; mov(eax, gs32(Saved::Rax.offset())););
    e.here(known)?;
    asm!(e; mov(gs_at(r9, call::NUMBER), rax););
    for (from, to) in [(Saved::Rsp.offset(), call::RSP), (BEGAN, call::TIME), (slot::RING_UNDER_WAY, call::OUTER)] {
        asm!(e; mov(rax, gs(from)); mov(gs_at(r9, to), rax););
    }
    asm!(e; mov(gs_at(r9, call::PIECE_COUNT), 0); xor(eax, eax););
    asm!(e; cmp(gs(slot::RING_MISSED), 0); je(whole); mov(gs(slot::RING_MISSED), 0););
    // The missing calls may have been made at the same node, after its count was read above.
    asm!(e; mov(rcx, at(r11, node::RECORD)); mov(rax, gs_at(rcx, record::ENTERED)); mov(gs_at(r9, call::NTH), rax););
    asm!(e; mov(eax, call::AFTER_GAP as u32););
    e.here(whole)?;
    asm!(e; cmp(gs(slot::RSEQ), 0); je(waits); or(eax, call::HAS_WAITED as i32););
    e.here(waits)?;
    asm!(e; or(rax, gs(slot::LOOK_FLAGS)); mov(gs_at(r9, call::FLAGS), rax););
    captures(e, plain)?;
    keep(e)?;
    page_faults(e)?;
    reach(e)?;
    name(e)?;
    fetch(e, CopyKind::OwnStack)?;
    e.here(plain)?;
    asm!(e; mov(r9, gs(CALL)); mov(gs(slot::RING_UNDER_WAY), r9););
    asm!(e; mov(r8, gs(slot::RING_HEADER)); inc(gs_at(r8, ring::LEN)););
    spent(e)?;
    asm!(e; jmp(done););
    Ok(())
}

/// Writes the result of the call that has returned, if the call was written.
fn returned(e: &mut Emitter, done: CodeLabel) -> Emitted {
    let (next, found, full, plain) = (e.label(), e.label(), e.label(), e.label());
    asm!(e; mov(rax, gs(Saved::Rsp.offset())); mov(r9, gs(slot::RING_UNDER_WAY)););
    e.here(next)?;
    asm!(e; test(r9, r9); je(full); mov(rdx, rax); sub(rdx, gs_at(r9, call::RSP)); je(found););
    // The code behind the call may run after the call's function has returned, with rsp 8 higher.
    asm!(e; cmp(rdx, 8); je(found););
    asm!(e; mov(rcx, gs_at(r9, call::OUTER)); cmp(rcx, r9); jae(full); mov(r9, rcx); jmp(next););
    e.here(found)?;
    asm!(e; mov(rcx, gs_at(r9, call::OUTER)); mov(gs(slot::RING_UNDER_WAY), rcx); mov(gs(CALL), r9););
    asm!(e; mov(rax, gs(Saved::Rax.offset())); mov(gs_at(r9, call::RESULT), rax););
    // The slot of a process forked meanwhile holds no call.
    asm!(e; mov(r11, gs_at(r9, call::NODE)); test(r11, r11); je(plain); mov(rcx, at(r11, node::RECORD)););
    for (from, to) in [(record::CYCLES, call::CYCLES), (record::WAITED, call::WAITED)] {
        asm!(e; mov(rax, gs_at(rcx, from)); sub(rax, gs_at(r9, to)); mov(gs_at(r9, to), rax););
    }
    captures(e, plain)?;
    keep(e)?;
    fetch(e, CopyKind::Given)?;
    names_change(e)?;
    fetch(e, CopyKind::Got)?;
    e.here(plain)?;
    // Do this last: a call that is cut short here has not returned.
    asm!(e; mov(r9, gs(CALL)); or(gs_at(r9, call::FLAGS), call::RETURNED as i32););
    spent(e)?;
    e.here(full)?;
    leave(e, done)
}

/// Loads into r8 the entry of the call in r9 in the table of what is copied; goes to `none` if there is none, or if no
/// system call may be made, which copying needs. Lost: rax.
fn captures(e: &mut Emitter, none: CodeLabel) -> Emitted {
    asm!(e; mov(r8, IMAGE + image::QUIET); cmp(dword_ptr(r8), 0); jne(none););
    asm!(e; mov(rax, gs_at(r9, call::NUMBER)); cmp(eax, (NUMBERS - 1) as i32); jae(none););
    asm!(e; shl(eax, global::CAPTURE_SHIFT); mov(r8, crate::layout::GLOBAL + global::CAPTURES); add(r8, rax););
    Ok(())
}

fn spent(e: &mut Emitter) -> Emitted {
    asm!(e; rdtsc(); shl(rdx, 32u32); or(rax, rdx); sub(rax, gs(BEGAN)););
    asm!(e; mov(edx, LONGEST); cmp(rax, rdx); cmova(rax, rdx); add(gs(slot::RING_CYCLES), rax););
    asm!(e; inc(gs(slot::RING_CALLS)););
    Ok(())
}
