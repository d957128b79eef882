//! Memory from which a single thread may copy by itself: memory without a file and without sharers, such as heaps. Only
//! the program's own calls unmap it, and those forget it ([`super::stack_bounds`]).
//!
//! A copy of 256 bytes by the kernel took 811 ns on a machine whose cheapest call took 110 (Linux 6.18), and in
//! programs that ask about paths, thousands of calls are sampled. Therefore the kernel is asked once for the mapping of
//! an address, if it supports that (Linux 6.11); all other memory is still copied by the kernel.

use super::emitter::{Emitted, Emitter, asm, gs};
use super::stack_bounds::Table;
use crate::layout::{IMAGE, image, slot, stack};
use crate::numbers::{CLOSE, IOCTL, OPEN};
use iced_x86::code_asm::*;

/// Request PROCMAP_QUERY of include/uapi/linux/fs.h; sizes and offsets of its struct procmap_query follow.
const QUERY: u32 = 0xc068_6611;
const QUERY_SIZE: u64 = 0x68;
const ADDRESS: u64 = 0x10;
const START: u64 = 0x18;
const END: u64 = 0x20;
const FLAGS: u64 = 0x28;
const INODE: u64 = 0x40;
/// Bits of the flags that count: readable, writable, shared.
const OF_FLAGS: i32 = 1 | 2 | 8;
/// Value of these bits for a thread's own memory: readable and writable, not shared.
const OWN: i32 = 1 | 2;
/// Path of the maps file, with a NUL, in two words.
const MAPS: [u64; 2] = [u64::from_le_bytes(*b"/proc/se"), u64::from_le_bytes(*b"lf/maps\0")];
/// Number of a thread's misses at which it first asks the kernel. The number doubles each time, since asking takes as
/// long as four copies.
const ASK_FROM: i32 = 8;
/// The table of private memory that is known.
const TABLE: Table = Table { at: slot::OWN_MEMORY, count: slot::OWN_MEMORY_COUNT, len: stack::OWN_LEN };

/// Goes to `not` unless rsi points into known private memory. rcx: bytes from there to its end. Lost: rax; if it goes
/// to `not`, all but rsi, rdi, r8, r9.
pub(super) fn holds(e: &mut Emitter, not: CodeLabel) -> Emitted {
    let (next, missed, found) = (e.label(), e.label(), e.label());
    asm!(e; mov(rcx, IMAGE + image::THREADS); cmp(dword_ptr(rcx), 0); jne(not););
    TABLE.end(e, rax)?;
    let next = e.here(next)?;
    asm!(e; sub(eax, stack::ENTRY as i32); jb(missed););
    asm!(e; cmp(rsi, TABLE.word(rax, 0)); jb(next); mov(rcx, TABLE.word(rax, 8)); sub(rcx, rsi); jbe(next););
    e.here(found)?;
    e.cold(move |e| {
        e.here(missed)?;
        asm!(e; inc(gs(slot::OWN_MEMORY_MISSED)); mov(rax, gs(slot::OWN_MEMORY_MISSED)); cmp(rax, gs(slot::OWN_MEMORY_ASK)); jb(not););
        asm!(e; cmp(rax, ASK_FROM); jb(not); add(rax, rax); mov(gs(slot::OWN_MEMORY_ASK), rax););
        ask(e, not)?;
        asm!(e; mov(rcx, gs(slot::RING_BOUNCE + END)); sub(rcx, rsi); jbe(not); jmp(found););
        Ok(())
    });
    Ok(())
}

/// Learns the mapping of rsi, or goes to `not` if it is not private memory or the kernel does not tell. Lost: all but
/// rsi, rdi, r8, r9.
fn ask(e: &mut Emitter, not: CodeLabel) -> Emitted {
    let (own, forgotten) = (slot::RING_BOUNCE, e.label());
    for word in (0..QUERY_SIZE).step_by(8) {
        asm!(e; mov(gs(own + word), 0););
    }
    for (word, at) in MAPS.into_iter().zip([slot::RING_PATH, slot::RING_PATH + 8]) {
        asm!(e; mov(rax, word); mov(gs(at), rax););
    }
    asm!(e; mov(gs(own), QUERY_SIZE as i32); mov(gs(own + ADDRESS), rsi); mov(gs(KEPT_SOURCE), rsi); mov(gs(KEPT_TARGET), rdi););
    asm!(e; mov(rdi, gs(slot::SELF)); add(rdi, slot::RING_PATH as i32); mov(esi, libc::O_RDONLY | libc::O_CLOEXEC););
    asm!(e; xor(edx, edx); mov(eax, OPEN); syscall(); test(rax, rax); js(forgotten););
    asm!(e; mov(r10, rax); mov(rdi, rax); mov(esi, QUERY); mov(rdx, gs(slot::SELF)); add(rdx, own as i32););
    asm!(e; mov(eax, IOCTL); syscall(); mov(rdx, rax); mov(rdi, r10); mov(eax, CLOSE); syscall(); mov(rax, rdx););
    e.here(forgotten)?;
    asm!(e; mov(rsi, gs(KEPT_SOURCE)); mov(rdi, gs(KEPT_TARGET)); test(rax, rax); jne(not););
    asm!(e; cmp(gs(own + INODE), 0); jne(not); mov(rax, gs(own + FLAGS)); and(eax, OF_FLAGS); cmp(eax, OWN); jne(not););
    asm!(e; mov(rax, gs(own + START)); mov(rdx, gs(own + END)););
    TABLE.put(e, rax, rdx)?;
    Ok(())
}

/// Word in which rsi is saved while the kernel is asked.
const KEPT_SOURCE: u64 = slot::RING_VECTORS;
/// Word in which rdi is saved meanwhile.
const KEPT_TARGET: u64 = slot::RING_VECTORS + 8;
const _: () = assert!(slot::RING_PATH + 16 <= slot::RING_PATH_END && QUERY_SIZE <= crate::layout::ring::MOST);
