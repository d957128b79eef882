//! What the arguments of a window's call point to, copied by the thread in a way that cannot fault.
//!
//! A pointer may be wrong, or its memory gone at any moment. So the kernel is asked first whether there is
//! memory: `rt_sigprocmask` with a new mask there and an unknown way to change it reads eight bytes of the page
//! and then fails, EFAULT or EINVAL, which costs no more than the cheapest call. Then it is read. In between
//! nothing of the program runs but a handler of this thread; where other threads may take memory away, only
//! what lies next to the thread's own stack pointer is read so, and the rest by `process_vm_readv`, which
//! costs eight times as much.

use super::emitter::{Emitted, Emitter, asm, gs, gs_at, gs32};
use crate::layout::ring::{self, call};
use crate::layout::{IMAGE, Saved, capture, image, slot, want};
use crate::numbers::{FCNTL, GETRUSAGE, PROCESS_VM_READV, READLINK, RT_SIGPROCMASK};
use iced_x86::code_asm::*;

/// Offset in the slot of the call that is written.
pub(super) const CALL: u64 = slot::RING_SCRATCH + 8;
/// Address of the call's entry in the table of what is copied.
const CAPTURES: u64 = slot::RING_SCRATCH + 16;
/// Which argument.
const ARGUMENT: u64 = slot::RING_SCRATCH + 24;
/// Its byte in the table.
const KIND: u64 = slot::RING_SCRATCH + 32;
/// Where the bytes that are copied next lie.
const SOURCE: u64 = slot::RING_SCRATCH + 40;
/// How many they are.
const CHUNK: u64 = slot::RING_SCRATCH + 48;
/// Where they go, and how many there are at all, meanwhile.
const TARGET: u64 = slot::RING_SCRATCH + 56;
/// See [`TARGET`].
const LEFT: u64 = slot::RING_SCRATCH + 64;

/// No program has memory below: the kernel's least for mmap_min_addr.
const FIRST_PAGE: i32 = 4096;
/// Bytes from a thread's stack pointer on, and below by as much as the ABI's red zone, that no other thread takes away.
const STACK: i32 = 1 << 16;
const RED_ZONE: i32 = 128;
/// No way in which `rt_sigprocmask` can change a mask: an offset in a buffer of the slot.
const _: () = assert!(slot::RINGS > libc::SIG_SETMASK as u64);
/// struct rusage: `ru_minflt`.
const MINOR_FAULTS: u64 = 64;
const RUSAGE_THREAD: i32 = 1;
/// Where each thread finds its own descriptors, whatever it shares with others. In pieces of eight bytes,
/// and how far before the end each begins.
const FOLDER: &[u8; 21] = b"/proc/thread-self/fd/";
const FOLDER_PIECES: [usize; 3] = [21, 16, 8];
/// Descriptors above are none that programs have.
const MOST_FD: i32 = 0xffff;
/// Descriptors whose names are remembered.
const REMEMBERED: i32 = 64;

/// When memory is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    Entry,
    Return,
}

/// Has the thread's page faults counted, where the call may bring some. In: r8 the call's captures, r9 the call.
pub(super) fn page_faults(e: &mut Emitter) -> Emitted {
    let done = e.label();
    asm!(e; mov(gs(CAPTURES), r8););
    asm!(e; test(byte_ptr(r8 + capture::FLAGS as i32), capture::FAULTS as i32); je(done););
    faults_so_far(e, done)?;
    asm!(e; sub(rax, gs(slot::RING_FAULTS)); mov(gs_at(r9, call::FAULTS), rax););
    asm!(e; or(gs_at(r9, call::FLAGS), call::HAS_FAULTS as i32););
    e.here(done)?;
    Ok(())
}

/// rax: minor page faults that the thread has taken; goes to `untold` where it can't be told. Lost: rdi, rsi.
fn faults_so_far(e: &mut Emitter, untold: CodeLabel) -> Emitted {
    asm!(e; mov(edi, RUSAGE_THREAD); mov(rsi, gs(slot::SELF)); add(rsi, slot::RING_USAGE as i32););
    asm!(e; mov(eax, GETRUSAGE); syscall(); test(eax, eax); jne(untold););
    asm!(e; mov(rax, gs(slot::RING_USAGE + MINOR_FAULTS)););
    Ok(())
}

/// Has the pages there that what this call points to may need, and notes how many page faults that took. Where a handler's
/// calls take them, this one's come as they are written. In: r9 the call. Lost: all but r9.
pub(super) fn reach(e: &mut Emitter) -> Emitted {
    let (more, page, there, done) = (e.label(), e.label(), e.label(), e.label());
    let needed = |e: &mut Emitter| -> Emitted {
        asm!(e; mov(rax, gs(slot::RING_DATA)); add(rax, ring::ROOM as i32););
        Ok(())
    };
    needed(e)?;
    asm!(e; cmp(rax, gs(slot::RING_REACH)); ja(more););
    e.here(done)?;
    e.cold(move |e| {
        e.here(more)?;
        // Looks have no pages ahead, as none of them is compared with the next.
        asm!(e; cmp(gs(slot::WANT), want::WRITING as i32); jne(done););
        faults_so_far(e, done)?;
        asm!(e; sub(gs(slot::RING_FAULTS), rax););
        e.here(page)?;
        // A process forked meanwhile has a slot in which no window reaches anywhere.
        asm!(e; mov(rdi, gs(slot::RING_REACH)); mov(rax, rdi); sub(rax, gs(slot::RING_BUFFER)););
        asm!(e; cmp(rax, ring::BUFFER as i32); jae(there););
        // What a handler's calls have written there stays.
        asm!(e; or(gs_at(rdi, 0), 0); add(gs(slot::RING_REACH), ring::PAGE as i32););
        needed(e)?;
        asm!(e; cmp(rax, gs(slot::RING_REACH)); ja(page););
        e.here(there)?;
        faults_so_far(e, done)?;
        asm!(e; add(gs(slot::RING_FAULTS), rax); jmp(done););
        Ok(())
    });
    Ok(())
}

/// Writes what the call's descriptor is behind, unless that stands in the window already and can't have
/// changed. In: r9 the call. Lost: all but r9.
pub(super) fn name(e: &mut Emitter) -> Emitted {
    let (ask, digit, done) = (e.label(), e.label(), e.label());
    asm!(e; mov(r8, gs(CAPTURES)); movzx(eax, byte_ptr(r8 + capture::FD as i32)); test(eax, eax); je(done););
    asm!(e; lea(ecx, dword_ptr(rax - 1)); mov(gs(ARGUMENT), rcx););
    asm!(e; mov(eax, dword_ptr(r9 + rcx * 8 + call::ARGS as i32).gs()); cmp(eax, MOST_FD); ja(done););
    // Of several threads each may give it another meaning at any time.
    others(e, ask)?;
    asm!(e; cmp(eax, REMEMBERED); jae(ask); mov(rcx, gs(slot::RING_NAMED)); bts(rcx, rax); jc(done););
    asm!(e; mov(gs(slot::RING_NAMED), rcx););
    e.here(ask)?;
    asm!(e; mov(edi, (slot::RING_PATH_END - 1) as u32); mov(byte_ptr(rdi).gs(), 0); mov(ecx, 10););
    e.here(digit)?;
    asm!(e; xor(edx, edx); div(ecx); add(edx, i32::from(b'0')); sub(edi, 1); mov(byte_ptr(rdi).gs(), dl););
    asm!(e; test(eax, eax); jne(digit););
    for from_end in FOLDER_PIECES {
        let start = FOLDER.len() - from_end;
        let piece: [u8; 8] = std::array::from_fn(|i| FOLDER.get(start + i).copied().unwrap_or(0));
        asm!(e; mov(rax, u64::from_le_bytes(piece)); mov(qword_ptr(rdi - from_end as i32).gs(), rax););
    }
    asm!(e; sub(edi, FOLDER.len() as i32); add(rdi, gs(slot::SELF)););
    asm!(e; mov(rsi, gs(slot::RING_DATA)); mov(rdx, gs(slot::RING_BUFFER)); add(rdx, ring::BUFFER as i32););
    // One that is cut is none.
    asm!(e; sub(rdx, rsi); cmp(rdx, ring::MOST as i32); jb(done); mov(edx, ring::MOST as u32););
    asm!(e; add(rsi, gs(slot::SELF)); mov(eax, READLINK); syscall(); test(rax, rax); jle(done););
    asm!(e; cmp(rax, ring::MOST as i32); jae(done););
    asm!(e; mov(rdi, gs(slot::RING_DATA)); add(rdi, rax););
    note_piece(e, call::NAME)?;
    e.here(done)?;
    Ok(())
}

/// After a call that may give descriptors another meaning, their names are not known, unless they follow from what is.
/// In: r8 the call's captures, r9 the call, which has returned. Lost: all but r9.
pub(super) fn names_change(e: &mut Emitter) -> Emitted {
    let (all, opened, forget, done) = (e.label(), e.label(), e.label(), e.label());
    let (opened_below, follows) = (e.label(), e.label());
    let flags = byte_ptr(r8 + capture::FLAGS as i32);
    let argument = |n: u64| dword_ptr(r9 + (call::ARGS + 8 * n) as i32).gs();
    let any = capture::CHANGES_FDS | capture::OPENS_FD | capture::CLOSES_FD;
    asm!(e; mov(gs(CAPTURES), r8););
    asm!(e; test(flags, i32::from(any)); je(done); test(flags, i32::from(capture::CHANGES_FDS)); jne(all););
    asm!(e; mov(rax, gs_at(r9, call::RESULT)); test(flags, i32::from(capture::CLOSES_FD)); je(opened););
    asm!(e; mov(eax, argument(0)); cmp(rax, REMEMBERED); jb(forget); jmp(done););
    e.here(opened)?;
    // A failure is no descriptor.
    asm!(e; cmp(rax, REMEMBERED); jae(done););
    asm!(e; test(flags, i32::from(capture::OPENS_BELOW)); jne(opened_below););
    asm!(e; test(flags, i32::from(capture::COPIES_FD)); je(forget););
    asm!(e; cmp(dword_ptr(r9 + call::NUMBER as i32).gs(), FCNTL as i32); jne(follows); mov(edx, argument(1)););
    for command in capture::DUPLICATE {
        asm!(e; cmp(edx, command as i32); je(follows););
    }
    asm!(e; jmp(done););
    e.here(opened_below)?;
    asm!(e; mov(edx, argument(2)); test(edx, libc::O_NOFOLLOW); je(forget););
    // A file without a name.
    asm!(e; test(edx, libc::O_TMPFILE & !libc::O_DIRECTORY); jne(forget););
    is_one_name(e, 1, forget)?;
    e.here(follows)?;
    others(e, forget)?;
    asm!(e; mov(ecx, argument(0)); cmp(ecx, REMEMBERED); jae(forget););
    asm!(e; mov(rdx, gs(slot::RING_NAMED)); bt(rdx, rcx); jnc(forget););
    asm!(e; bts(rdx, rax); mov(gs(slot::RING_NAMED), rdx); or(gs_at(r9, call::FLAGS), call::NAMES as i32); jmp(done););
    e.here(forget)?;
    asm!(e; mov(rcx, gs(slot::RING_NAMED)); btr(rcx, rax););
    asm!(e; mov(gs(slot::RING_NAMED), rcx); jmp(done););
    e.here(all)?;
    asm!(e; mov(gs(slot::RING_NAMED), 0););
    e.here(done)?;
    Ok(())
}

/// Goes to `other` unless what was copied of an argument before the call is the name of one thing in a folder, whole; one
/// that begins with a dot may be the folder itself. In: r9 the call. Lost: rcx, rdx, rsi, rdi, r10.
fn is_one_name(e: &mut Emitter, argument: u64, other: CodeLabel) -> Emitted {
    let (piece, letter, one) = (e.label(), e.label(), e.label());
    let kind = (call::AT_RETURN | call::NAME | 0xff) as i32;
    asm!(e; mov(rcx, gs_at(r9, call::PIECE_COUNT)); mov(r10, r9););
    e.here(piece)?;
    asm!(e; sub(rcx, 1); jb(other); mov(rdx, gs_at(r10, call::PIECES)); add(r10, 8););
    asm!(e; mov(esi, edx); and(esi, kind); cmp(esi, argument as i32); jne(piece););
    asm!(e; mov(rsi, rdx); shr(rsi, 32u32); shr(edx, 16u32); lea(rdi, qword_ptr(rsi + rdx)););
    asm!(e; mov(dl, byte_ptr(rsi).gs()); test(dl, dl); je(other); cmp(dl, i32::from(b'.')); je(other););
    e.here(letter)?;
    asm!(e; cmp(rsi, rdi); jae(other); mov(dl, byte_ptr(rsi).gs()); add(rsi, 1););
    asm!(e; test(dl, dl); je(one); cmp(dl, i32::from(b'/')); jne(letter); jmp(other););
    e.here(one)?;
    Ok(())
}

/// Copies what the arguments point to. In: r9 the call. Lost: all but r9.
pub(super) fn fetch(e: &mut Emitter, moment: Moment) -> Emitted {
    let (next, skip, sized, any, length) = (e.label(), e.label(), e.label(), e.label(), e.label());
    let (room, end) = (e.label(), e.label());
    let from = if moment == Moment::Entry { 0 } else { capture::AT_RETURN as i32 };
    asm!(e; mov(gs(ARGUMENT), 0););
    e.here(next)?;
    asm!(e; mov(r10, gs(ARGUMENT)); mov(r8, gs(CAPTURES)); movzx(r8d, byte_ptr(r8 + r10 + from)););
    asm!(e; test(r8d, r8d); je(skip););
    asm!(e; mov(rsi, qword_ptr(r9 + r10 * 8 + call::ARGS as i32).gs()); cmp(rsi, FIRST_PAGE); jb(skip););
    asm!(e; mov(gs(KIND), r8); cmp(r8d, i32::from(capture::STRING)); jne(sized););
    asm!(e; mov(r8d, ring::MOST as u32); jmp(length););
    e.here(sized)?;
    if moment == Moment::Return {
        asm!(e; mov(rax, gs_at(r9, call::RESULT)); test(r8d, i32::from(capture::GOOD)); je(any); cmp(rax, -4096); ja(skip););
    } else {
        asm!(e; mov(rax, qword_ptr(r9 + r10 * 8 + (call::ARGS as i32 + 8)).gs()););
    }
    e.here(any)?;
    asm!(e; mov(ecx, r8d); and(r8d, i32::from(capture::UNITS)); shl(r8d, 3u32););
    asm!(e; test(ecx, i32::from(capture::BOUNDED)); je(length); cmp(rax, r8); cmovb(r8, rax););
    e.here(length)?;
    asm!(e; mov(rdi, gs(slot::RING_DATA)); mov(rax, gs(slot::RING_BUFFER)); add(rax, ring::BUFFER as i32););
    asm!(e; test(r8, r8); je(skip); sub(rax, rdi); cmp(r8, rax); jbe(room););
    asm!(e; or(gs_at(r9, call::FLAGS), call::NO_ROOM as i32); jmp(end););
    e.here(room)?;
    copy(e)?;
    note_piece(e, if moment == Moment::Return { call::AT_RETURN } else { 0 })?;
    e.here(skip)?;
    asm!(e; inc(gs(ARGUMENT)); cmp(gs(ARGUMENT), 6); jb(next););
    e.here(end)?;
    Ok(())
}

/// Goes to `label` if the process has had other threads. Lost: rcx.
fn others(e: &mut Emitter, label: CodeLabel) -> Emitted {
    asm!(e; mov(rcx, IMAGE + image::THREADS); cmp(dword_ptr(rcx), 0); jne(label););
    Ok(())
}

/// Copies r8 bytes from the address in rsi to the offset in rdi, page by page, as far as there is memory; of a
/// string no further than to its end. rdi: behind what was copied. Lost: all but r9.
fn copy(e: &mut Emitter) -> Emitted {
    let (page, ask, other, there, done) = (e.label(), e.label(), e.label(), e.label(), e.label());
    e.here(page)?;
    asm!(e; mov(gs(SOURCE), rsi); mov(ecx, esi); and(ecx, 4095); mov(eax, 4096); sub(eax, ecx););
    asm!(e; cmp(eax, r8d); cmova(eax, r8d); mov(gs(CHUNK), rax););
    others(e, other)?;
    e.here(ask)?;
    asm!(e; and(rsi, -8); xor(edx, edx); mov(r10d, 8); mov(eax, RT_SIGPROCMASK); syscall(););
    asm!(e; mov(rsi, gs(SOURCE)); cmp(eax, -libc::EINVAL); jne(done););
    e.here(there)?;
    chunk(e, done)?;
    asm!(e; test(r8d, r8d); je(done); mov(rsi, gs(SOURCE)); add(rsi, gs(CHUNK)); jmp(page););
    e.cold(move |e| {
        e.here(other)?;
        asm!(e; mov(rax, rsi); sub(rax, gs(Saved::Rsp.offset())); add(rax, RED_ZONE); cmp(rax, STACK); jb(ask););
        asm!(e; mov(gs(TARGET), rdi); mov(gs(LEFT), r8); mov(rax, gs(slot::SELF)); mov(rcx, gs(CHUNK)););
        asm!(e; lea(rdx, qword_ptr(rax + slot::RING_BOUNCE as i32)); mov(gs(slot::RING_VECTORS), rdx););
        asm!(e; mov(gs(slot::RING_VECTORS + 8), rcx); mov(gs(slot::RING_VECTORS + 16), rsi););
        asm!(e; mov(gs(slot::RING_VECTORS + 24), rcx); lea(rsi, qword_ptr(rax + slot::RING_VECTORS as i32)););
        asm!(e; lea(r10, qword_ptr(rsi + 16)); mov(edi, gs32(slot::PID)); mov(edx, 1); mov(r8d, 1); xor(r9d, r9d););
        asm!(e; mov(eax, PROCESS_VM_READV); syscall(););
        asm!(e; mov(rdi, gs(TARGET)); mov(r8, gs(LEFT)); mov(r9, gs(CALL)); cmp(rax, gs(CHUNK)); jne(done););
        asm!(e; mov(rsi, gs(slot::SELF)); add(rsi, slot::RING_BOUNCE as i32); jmp(there););
        Ok(())
    });
    e.here(done)?;
    Ok(())
}

/// Copies what is on one page; goes to `done` at a string's end.
fn chunk(e: &mut Emitter, done: CodeLabel) -> Emitted {
    let (text, copied) = (e.label(), e.label());
    asm!(e; mov(rcx, gs(CHUNK)); sub(r8, rcx); cmp(gs(KIND), i32::from(capture::STRING)); je(text););
    words(e, copied, None)?;
    e.here(text)?;
    words(e, copied, Some(done))?;
    e.here(copied)?;
    Ok(())
}

/// Copies rcx bytes from rsi to rdi, not by string instructions: which way those go is for the program to say.
fn words(e: &mut Emitter, copied: CodeLabel, ended: Option<CodeLabel>) -> Emitted {
    let (word, byte) = (e.label(), e.label());
    if ended.is_some() {
        asm!(e; mov(rdx, 0x0101_0101_0101_0101u64); mov(r10, 0x8080_8080_8080_8080u64););
    }
    e.here(word)?;
    asm!(e; cmp(rcx, 8); jb(byte); mov(rax, qword_ptr(rsi)); mov(qword_ptr(rdi).gs(), rax););
    asm!(e; add(rsi, 8); add(rdi, 8); sub(rcx, 8););
    if let Some(ended) = ended {
        // A zero byte borrows from its own highest bit.
        asm!(e; mov(r11, rax); sub(r11, rdx); not(rax); and(r11, rax); test(r11, r10); jne(ended););
    }
    asm!(e; jmp(word););
    e.here(byte)?;
    asm!(e; test(rcx, rcx); je(copied); mov(al, byte_ptr(rsi)); mov(byte_ptr(rdi).gs(), al););
    asm!(e; add(rsi, 1); add(rdi, 1); sub(rcx, 1););
    if let Some(ended) = ended {
        asm!(e; test(al, al); je(ended););
    }
    asm!(e; jmp(byte););
    Ok(())
}

/// Notes a piece that ends at the offset in rdi, if it has any bytes. In: r9 the call. Lost: rax, rcx, rdi.
fn note_piece(e: &mut Emitter, kind: u64) -> Emitted {
    let done = e.label();
    asm!(e; mov(rcx, gs(slot::RING_DATA)); mov(rax, rdi); sub(rax, rcx); je(done););
    asm!(e; cmp(gs_at(r9, call::PIECE_COUNT), call::MOST_PIECES as i32); jae(done););
    asm!(e; add(rdi, 7); and(rdi, -8); mov(gs(slot::RING_DATA), rdi););
    asm!(e; shl(rcx, 32u32); shl(rax, 16u32); or(rax, rcx); or(rax, gs(ARGUMENT)); or(rax, kind as i32););
    asm!(e; mov(rcx, gs_at(r9, call::PIECE_COUNT)); lea(rdi, qword_ptr(r9 + rcx * 8)););
    asm!(e; mov(gs_at(rdi, call::PIECES), rax); inc(gs_at(r9, call::PIECE_COUNT)););
    e.here(done)?;
    Ok(())
}
