//! Copies the memory to which the arguments of a window's call point. The copy can't fault and waits for nobody: the
//! call's result must be the same as without it.

use super::emitter::{Emitted, Emitter, asm, gs, gs_at, gs32};
use super::private_memory;
use crate::layout::ring::{self, call};
use crate::layout::{IMAGE, Saved, capture, image, slot, stack, want};
use crate::numbers::{FCNTL, GETRUSAGE, PROCESS_VM_READV, READLINK};
use iced_x86::code_asm::*;

// The following are offsets of scratch words in the slot.

/// Scratch word: the call that is being written.
pub(super) const CALL: u64 = slot::RING_SCRATCH + 8;
/// Scratch word: address of the call's entry in the table of memory to copy.
const CAPTURES: u64 = slot::RING_SCRATCH + 16;
/// Scratch word: number of the argument.
const ARGUMENT: u64 = slot::RING_SCRATCH + 24;
/// Scratch word: the argument's byte in the table.
const KIND: u64 = slot::RING_SCRATCH + 32;
/// Scratch word: address of the bytes that are copied next.
const SOURCE: u64 = slot::RING_SCRATCH + 40;
/// Scratch word: number of those bytes.
const CHUNK: u64 = slot::RING_SCRATCH + 48;
/// Scratch word: address to which the bytes are copied.
const TARGET: u64 = slot::RING_SCRATCH + 56;
/// Scratch word: number of bytes still to copy.
const LEFT: u64 = slot::RING_SCRATCH + 64;

/// Lowest address of any program's memory: the kernel's minimum for mmap_min_addr.
const FIRST_PAGE: i32 = 4096;
/// Bytes above a thread's stack pointer that no other thread unmaps.
const STACK: i32 = 1 << 16;
/// Bytes of the ABI's red zone below the stack pointer, which no other thread unmaps either.
const RED_ZONE: i32 = 128;
/// Offset of `ru_minflt` in struct rusage.
const MINOR_FAULTS: u64 = 64;
const RUSAGE_THREAD: i32 = 1;
/// Folder in which each thread finds its own descriptors, whatever it shares with others.
const FOLDER: &[u8; 21] = b"/proc/thread-self/fd/";
/// Pieces of eight bytes in which the folder's name is written, by their distance from its end.
const FOLDER_PIECES: [usize; 3] = [21, 16, 8];
/// Highest descriptor that programs use in practice.
const MOST_FD: i32 = 0xffff;
/// Number of descriptors whose names are remembered.
const REMEMBERED: i32 = 64;

/// Memory to copy, and the time of copying.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyKind {
    /// Memory of the thread's own stack that the call is about to read.
    OwnStack,
    /// Memory that the call has read, by its result, and that was not copied before.
    Given,
    /// Memory that the call has written.
    Got,
}

/// Stores r8, the address of the call's captures, in the slot.
pub(super) fn keep(e: &mut Emitter) -> Emitted {
    asm!(e; mov(gs(CAPTURES), r8););
    Ok(())
}

/// Counts the thread's page faults, if the call may cause some. In: r8 the call's captures, r9 the call.
pub(super) fn page_faults(e: &mut Emitter) -> Emitted {
    let done = e.label();
    asm!(e; test(byte_ptr(r8 + capture::FLAGS as i32), capture::FAULTS as i32); je(done););
    faults_so_far(e, done)?;
    asm!(e; sub(rax, gs(slot::RING_FAULTS)); mov(gs_at(r9, call::FAULTS), rax););
    asm!(e; or(gs_at(r9, call::FLAGS), call::HAS_FAULTS as i32););
    e.here(done)?;
    Ok(())
}

/// Reads the thread's minor page faults into rax; goes to `untold` if that fails. Lost: rdi, rsi.
fn faults_so_far(e: &mut Emitter, untold: CodeLabel) -> Emitted {
    asm!(e; mov(edi, RUSAGE_THREAD); mov(rsi, gs(slot::SELF)); add(rsi, slot::RING_USAGE as i32););
    asm!(e; mov(eax, GETRUSAGE); syscall(); test(eax, eax); jne(untold););
    asm!(e; mov(rax, gs(slot::RING_USAGE + MINOR_FAULTS)););
    Ok(())
}

/// Allocates the pages that this call's memory may need, and notes the page faults for that. If a handler's calls use
/// these pages up, this call's are allocated when they are written. In: r9 the call. Lost: all but r9.
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
        // Samples allocate no pages ahead, as none is compared with the next.
        asm!(e; cmp(gs(slot::WANT), want::WRITING as i32); jne(done););
        faults_so_far(e, done)?;
        asm!(e; sub(gs(slot::RING_FAULTS), rax););
        e.here(page)?;
        // The slot of a process forked meanwhile has no window.
        asm!(e; mov(rdi, gs(slot::RING_REACH)); mov(rax, rdi); sub(rax, gs(slot::RING_BUFFER)););
        asm!(e; cmp(rax, ring::BUFFER as i32); jae(there););
        // The word keeps its value, since a handler's calls may have written it.
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

/// Writes the name of the call's descriptor, unless the window contains it already and it can't have changed. In: r9
/// the call. Lost: all but r9.
pub(super) fn name(e: &mut Emitter) -> Emitted {
    let (ask, digit, done) = (e.label(), e.label(), e.label());
    asm!(e; mov(r8, gs(CAPTURES)); movzx(eax, byte_ptr(r8 + capture::FD as i32)); test(eax, eax); je(done););
    asm!(e; lea(ecx, dword_ptr(rax - 1)); mov(gs(ARGUMENT), rcx););
    asm!(e; mov(eax, dword_ptr(r9 + rcx * 8 + call::ARGS as i32).gs()); cmp(eax, MOST_FD); ja(done););
    // If there are several threads, each may change the descriptor at any time.
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
    // A name that is cut short does not count.
    asm!(e; sub(rdx, rsi); cmp(rdx, ring::MOST as i32); jb(done); mov(edx, ring::MOST as u32););
    asm!(e; add(rsi, gs(slot::SELF)); mov(eax, READLINK); syscall(); test(rax, rax); jle(done););
    asm!(e; cmp(rax, ring::MOST as i32); jae(done););
    asm!(e; mov(rdi, gs(slot::RING_DATA)); add(rdi, rax););
    note_piece(e, call::NAME)?;
    e.here(done)?;
    Ok(())
}

/// Forgets the names of descriptors that the returned call may have changed, unless their new names follow from known
/// ones. In: r9 the call. Lost: all but r9.
pub(super) fn names_change(e: &mut Emitter) -> Emitted {
    let (all, opened, forget, done) = (e.label(), e.label(), e.label(), e.label());
    let (opened_below, follows) = (e.label(), e.label());
    let flags = byte_ptr(r8 + capture::FLAGS as i32);
    let argument = |n: u64| dword_ptr(r9 + (call::ARGS + 8 * n) as i32).gs();
    let any = capture::CHANGES_FDS | capture::OPENS_FD | capture::CLOSES_FD;
    asm!(e; mov(r8, gs(CAPTURES)););
    asm!(e; test(flags, i32::from(any)); je(done); test(flags, i32::from(capture::CHANGES_FDS)); jne(all););
    asm!(e; mov(rax, gs_at(r9, call::RESULT)); test(flags, i32::from(capture::CLOSES_FD)); je(opened););
    asm!(e; mov(eax, argument(0)); cmp(rax, REMEMBERED); jb(forget); jmp(done););
    e.here(opened)?;
    // A failed call returns no descriptor.
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
    // The file has no name.
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

/// Goes to `other` unless the copy of an argument before the call is the complete name of one thing in a folder; a name
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

/// Copies the memory to which the arguments point. In: r9 the call. Lost: all but r9.
pub(super) fn fetch(e: &mut Emitter, what: CopyKind) -> Emitted {
    let (next, skip, length, room, end) = (e.label(), e.label(), e.label(), e.label(), e.label());
    if what == CopyKind::OwnStack {
        serves_faults(e, end)?;
    }
    let from = if what == CopyKind::Got { capture::AT_RETURN as i32 } else { 0 };
    asm!(e; mov(gs(ARGUMENT), 0););
    e.here(next)?;
    asm!(e; mov(r10, gs(ARGUMENT)); mov(rcx, gs(CAPTURES)); movzx(r8d, byte_ptr(rcx + r10 + from)););
    asm!(e; test(r8d, r8d); je(skip););
    asm!(e; mov(rsi, qword_ptr(r9 + r10 * 8 + call::ARGS as i32).gs()); cmp(rsi, FIRST_PAGE); jb(skip); mov(gs(KIND), r8););
    match what {
        CopyKind::OwnStack => size(e, length)?,
        CopyKind::Given => given(e, length, skip)?,
        CopyKind::Got => got(e, skip)?,
    }
    // r8 is the number of bytes, at most.
    e.here(length)?;
    asm!(e; mov(rdi, gs(slot::RING_DATA)); mov(rax, gs(slot::RING_BUFFER)); add(rax, ring::BUFFER as i32););
    asm!(e; test(r8, r8); je(skip); sub(rax, rdi); cmp(r8, rax); jbe(room););
    asm!(e; or(gs_at(r9, call::FLAGS), call::NO_ROOM as i32); jmp(end););
    e.here(room)?;
    match what {
        CopyKind::OwnStack => copy_own(e, skip)?,
        CopyKind::Given | CopyKind::Got => copy(e)?,
    }
    note_piece(e, if what == CopyKind::Got { call::AT_RETURN } else { 0 })?;
    e.here(skip)?;
    asm!(e; inc(gs(ARGUMENT)); cmp(gs(ARGUMENT), 6); jb(next););
    e.here(end)?;
    Ok(())
}

/// Goes to `label` if the program has opened a `userfaultfd`. Lost: rcx.
fn serves_faults(e: &mut Emitter, label: CodeLabel) -> Emitted {
    asm!(e; mov(rcx, IMAGE + image::SERVES_FAULTS); cmp(dword_ptr(rcx), 0); jne(label););
    Ok(())
}

/// Computes the maximum number of bytes of argument r10 before the call, by its kind in r8; goes to `length` with the
/// maximum of a string. Lost: rax, rcx.
fn size(e: &mut Emitter, length: CodeLabel) -> Emitted {
    let sized = e.label();
    asm!(e; cmp(r8d, i32::from(capture::STRING)); jne(sized); mov(r8d, ring::MOST as u32); jmp(length););
    e.here(sized)?;
    asm!(e; mov(rax, qword_ptr(r9 + r10 * 8 + (call::ARGS as i32 + 8)).gs()););
    bounded(e)
}

/// Computes the number of bytes by the kind in r8, at most rax if it is bounded. Lost: rcx.
fn bounded(e: &mut Emitter) -> Emitted {
    let done = e.label();
    asm!(e; mov(ecx, r8d); and(r8d, i32::from(capture::UNITS)); shl(r8d, 3u32););
    asm!(e; test(ecx, i32::from(capture::BOUNDED)); je(done); cmp(rax, r8); cmovb(r8, rax););
    e.here(done)?;
    Ok(())
}

/// Does the work of [`size`] after the call, for memory that the call has read; goes to `skip` if that is unknown, or
/// was copied before. In: rcx the captures, rsi the pointer. Lost: all but rsi, r9, r10.
fn given(e: &mut Emitter, length: CodeLabel, skip: CodeLabel) -> Emitted {
    let (piece, copied, same, one) = (e.label(), e.label(), e.label(), e.label());
    let (failed, address, proved, result, served) = (e.label(), e.label(), e.label(), e.label(), e.label());
    let low = e.label();
    let kind = (call::AT_RETURN | call::NAME | 0xff) as i32;
    // Memory that the call updates has changed; memory that a command decides on is copied with what the call has
    // written.
    asm!(e; cmp(byte_ptr(rcx + r10 + capture::AT_RETURN as i32), 0); jne(skip); mov(r11, rcx););
    asm!(e; mov(rcx, gs_at(r9, call::PIECE_COUNT)); mov(rdx, r9););
    e.here(piece)?;
    asm!(e; sub(rcx, 1); jb(copied); mov(eax, dword_ptr(rdx + call::PIECES as i32).gs()); add(rdx, 8););
    asm!(e; and(eax, kind); cmp(eax, r10d); jne(piece); jmp(skip););
    e.here(copied)?;
    // If another argument points there too, the call may have overwritten it.
    asm!(e; mov(ecx, 6););
    let same = e.here(same)?;
    asm!(e; sub(ecx, 1); jb(one); cmp(byte_ptr(r11 + rcx + capture::AT_RETURN as i32), 0); je(same););
    asm!(e; cmp(rsi, qword_ptr(r9 + rcx * 8 + call::ARGS as i32).gs()); jne(same); jmp(skip););
    e.here(one)?;
    let flags = byte_ptr(r11 + capture::FLAGS as i32);
    asm!(e; mov(rax, gs_at(r9, call::RESULT)); cmp(rax, -4096); ja(failed););
    asm!(e; cmp(r8d, i32::from(capture::STRING)); je(proved); test(r8d, i32::from(capture::BOUNDED)); je(served););
    asm!(e; test(flags, i32::from(capture::MOVES)); jne(result););
    // Only the program's own length says that the call has read all of this memory. If the program serves its page
    // faults, a page may still be missing.
    e.here(served)?;
    serves_faults(e, skip)?;
    asm!(e; jmp(proved););
    e.here(failed)?;
    asm!(e; neg(rax); cmp(r8d, i32::from(capture::STRING)); jne(address); cmp(eax, 64); jae(skip););
    asm!(e; mov(rcx, capture::READ_STRINGS); bt(rcx, rax); jc(proved); jmp(skip););
    e.here(address)?;
    asm!(e; test(flags, i32::from(capture::MOVES)); jne(skip); sub(eax, 64); jb(low); cmp(eax, 64); jae(skip););
    asm!(e; mov(rcx, capture::READ_ADDRESSES); bt(rcx, rax); jc(served); jmp(skip););
    e.here(low)?;
    asm!(e; cmp(byte_ptr(r11 + capture::READS_FIRST as i32), 0); je(skip); add(eax, 64););
    asm!(e; mov(rcx, capture::READ_STRINGS); bt(rcx, rax); jc(served); jmp(skip););
    e.here(proved)?;
    size(e, length)?;
    asm!(e; jmp(length););
    e.here(result)?;
    bounded(e)
}

/// Computes the maximum number of bytes of argument r10 after the call, by its kind in r8; goes to `skip` if the call
/// has failed. Lost: rax, rcx.
fn got(e: &mut Emitter, skip: CodeLabel) -> Emitted {
    let any = e.label();
    asm!(e; mov(rax, gs_at(r9, call::RESULT)); test(r8d, i32::from(capture::GOOD)); je(any); cmp(rax, -4096); ja(skip););
    e.here(any)?;
    bounded(e)
}

/// Goes to `label` if the process has had other threads. Lost: rcx.
fn others(e: &mut Emitter, label: CodeLabel) -> Emitted {
    asm!(e; mov(rcx, IMAGE + image::THREADS); cmp(dword_ptr(rcx), 0); jne(label););
    Ok(())
}

/// Goes to `not` unless rsi points into the thread's stack near its stack pointer and within its bounds, which no other
/// thread unmaps. rcx: bytes from there on within the bounds. Lost: rax.
fn on_own_stack(e: &mut Emitter, not: CodeLabel) -> Emitted {
    asm!(e; mov(rax, rsi); sub(rax, gs(Saved::Rsp.offset())); add(rax, RED_ZONE); cmp(rax, STACK); jae(not););
    asm!(e; cmp(rsi, gs(slot::STACK_LOW)); jb(not););
    asm!(e; mov(rcx, gs(slot::STACK_HIGH)); add(rcx, stack::LAST as i32); sub(rcx, rsi); jbe(not););
    Ok(())
}

/// Copies r8 bytes of the thread's own stack from the address in rsi to the offset in rdi, or a string up to its end;
/// goes to `not` if they are not all known to be readable. rdi: offset behind the copy. Lost: all but r9.
fn copy_own(e: &mut Emitter, not: CodeLabel) -> Emitted {
    let (text, whole, cut, done) = (e.label(), e.label(), e.label(), e.label());
    on_own_stack(e, not)?;
    asm!(e; cmp(gs(KIND), i32::from(capture::STRING)); je(text); cmp(rcx, r8); jb(not); mov(rcx, r8););
    words(e, done, None)?;
    e.here(text)?;
    asm!(e; cmp(rcx, r8); cmova(rcx, r8); mov(r8, rcx););
    words(e, cut, Some(done))?;
    // A string that continues beyond the bounds is copied after the call has read it.
    e.here(cut)?;
    asm!(e; cmp(r8, ring::MOST as i32); jae(whole); jmp(not););
    e.here(whole)?;
    e.here(done)?;
    Ok(())
}

/// Copies r8 bytes from the address in rsi to the offset in rdi, page by page, as far as there is memory, or a string
/// up to its end. rdi: offset behind the copy. Lost: all but r9.
fn copy(e: &mut Emitter) -> Emitted {
    let (page, kernel, there, served, done) = (e.label(), e.label(), e.label(), e.label(), e.label());
    let elsewhere = e.label();
    e.here(page)?;
    asm!(e; mov(gs(SOURCE), rsi); mov(ecx, esi); and(ecx, 4095); mov(eax, 4096); sub(eax, ecx););
    asm!(e; cmp(eax, r8d); cmova(eax, r8d); mov(gs(CHUNK), rax););
    serves_faults(e, served)?;
    on_own_stack(e, elsewhere)?;
    asm!(e; cmp(rcx, gs(CHUNK)); jb(elsewhere););
    e.here(there)?;
    chunk(e, done)?;
    asm!(e; test(r8d, r8d); je(done); mov(rsi, gs(SOURCE)); add(rsi, gs(CHUNK)); jmp(page););
    e.cold(move |e| {
        e.here(elsewhere)?;
        private_memory::holds(e, kernel)?;
        asm!(e; cmp(rcx, gs(CHUNK)); jae(there); jmp(kernel););
        // Copy only up to the end of this page.
        e.here(served)?;
        asm!(e; mov(r8, gs(CHUNK)););
        e.here(kernel)?;
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

/// Copies the part that lies on one page; goes to `done` at a string's end.
fn chunk(e: &mut Emitter, done: CodeLabel) -> Emitted {
    let (text, copied) = (e.label(), e.label());
    asm!(e; mov(rcx, gs(CHUNK)); sub(r8, rcx); cmp(gs(KIND), i32::from(capture::STRING)); je(text););
    words(e, copied, None)?;
    e.here(text)?;
    words(e, copied, Some(done))?;
    e.here(copied)?;
    Ok(())
}

/// Copies rcx bytes from rsi to rdi, without string instructions: the program decides their direction.
fn words(e: &mut Emitter, copied: CodeLabel, ended: Option<CodeLabel>) -> Emitted {
    let (word, byte) = (e.label(), e.label());
    if ended.is_some() {
        asm!(e; mov(rdx, 0x0101_0101_0101_0101u64); mov(r10, 0x8080_8080_8080_8080u64););
    }
    e.here(word)?;
    asm!(e; cmp(rcx, 8); jb(byte); mov(rax, qword_ptr(rsi)); mov(qword_ptr(rdi).gs(), rax););
    asm!(e; add(rsi, 8); add(rdi, 8); sub(rcx, 8););
    if let Some(ended) = ended {
        // A zero byte sets its own highest bit in this expression.
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

/// Notes a piece that ends at the offset in rdi, unless it is empty. In: r9 the call. Lost: rax, rcx, rdi.
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
