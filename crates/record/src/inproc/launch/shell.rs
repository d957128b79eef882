//! The code a new program runs before its first own instruction: maps the shared memory and asks
//! to be patched.
//!
//! It needs nobody: without an answer, or without the memory, it starts the program as it is.

use super::super::layout::{GLOBAL, IMAGE, Question, global, image, slot_address};
use super::memory::{BLOBS, BLOBS_AT, BLOBS_SIZE};
use iced_x86::IcedError;
use iced_x86::code_asm::*;

/// The saved rax of a new program's question, which is no address of a mapping.
pub(super) const NEWBORN: u64 = 1;

const OPEN: u32 = 2;
const CLOSE: u32 = 3;
const MMAP: u32 = 9;
const MADVISE: u32 = 28;
const READ_WRITE: u32 = 3;
const READ_EXECUTE: u32 = 5;

/// A range of the shared file to be mapped at an address of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapping {
    pub(super) at: u64,
    pub(super) size: u64,
    pub(super) offset: u64,
    pub(super) executable: bool,
}

/// What every program has mapped: the global area, its image, and all code.
pub(super) fn common(image_offset: u64) -> [Mapping; 3] {
    [
        Mapping { at: GLOBAL, size: global::SIZE, offset: 0, executable: false },
        Mapping { at: IMAGE, size: image::SIZE, offset: image_offset, executable: false },
        Mapping { at: BLOBS_AT, size: BLOBS_SIZE, offset: BLOBS, executable: true },
    ]
}

/// The code, to be run at `at`: opens `path`, maps `mappings`, asks by the hand-shake code at
/// `stub`, and goes on as `regs` say.
///
/// # Errors
/// An operand that can't be encoded: a mistake of ours.
pub(super) fn code(
    at: u64,
    path: &str,
    mappings: &[Mapping],
    stub: u64,
    regs: &libc::user_regs_struct,
) -> Result<Vec<u8>, IcedError> {
    let mut a = CodeAssembler::new(64)?;
    let (mut name, mut begin, mut asked) = (a.create_label(), a.create_label(), a.create_label());
    let (mut stub_at, mut entry_at) = (a.create_label(), a.create_label());
    a.lea(rdi, ptr(name))?;
    a.mov(esi, (libc::O_RDWR | libc::O_CLOEXEC) as u32)?;
    a.xor(edx, edx)?;
    a.mov(eax, OPEN)?;
    a.syscall()?;
    a.mov(r12, rax)?;
    a.test(rax, rax)?;
    a.js(begin)?;
    a.xor(r13d, r13d)?;
    for mapping in mappings {
        map(&mut a, mapping)?;
    }
    a.mov(rdi, IMAGE)?;
    a.mov(rsi, image::SIZE)?;
    a.mov(edx, libc::MADV_DONTDUMP as u32)?;
    a.mov(eax, MADVISE)?;
    a.syscall()?;
    a.mov(rdi, r12)?;
    a.mov(eax, CLOSE)?;
    a.syscall()?;
    a.test(r13, r13)?;
    a.jne(begin)?;
    a.mov(rcx, slot_address(0))?;
    a.wrgsbase(rcx)?;
    a.mov(eax, NEWBORN as u32)?;
    a.lea(rcx, ptr(asked))?;
    a.rol(rcx, 16u32)?;
    a.or(rcx, Question::Mapped as i32)?;
    a.ror(rcx, 16u32)?;
    a.xor(r11d, r11d)?;
    a.jmp(qword_ptr(stub_at))?;
    a.set_label(&mut asked)?;
    a.nop()?;
    a.set_label(&mut begin)?;
    restore(&mut a, regs)?;
    a.jmp(qword_ptr(entry_at))?;
    a.set_label(&mut stub_at)?;
    a.dq(&[stub])?;
    a.set_label(&mut entry_at)?;
    a.dq(&[regs.rip])?;
    a.set_label(&mut name)?;
    a.db(path.as_bytes())?;
    a.db(&[0])?;
    a.assemble(at)
}

/// Maps one range; what goes wrong is gathered in r13.
fn map(a: &mut CodeAssembler, mapping: &Mapping) -> Result<(), IcedError> {
    let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
    a.mov(rdi, mapping.at)?;
    a.mov(rsi, mapping.size)?;
    a.mov(edx, if mapping.executable { READ_EXECUTE } else { READ_WRITE })?;
    a.mov(r10d, flags as u32)?;
    a.mov(r8, r12)?;
    a.mov(r9, mapping.offset)?;
    a.mov(eax, MMAP)?;
    a.syscall()?;
    // Kernels before 4.17 take NOREPLACE for a mere wish and may map elsewhere.
    a.mov(rdi, mapping.at)?;
    a.xor(rax, rdi)?;
    a.or(r13, rax)
}

/// Registers as the kernel left them for the program's start.
fn restore(a: &mut CodeAssembler, regs: &libc::user_regs_struct) -> Result<(), IcedError> {
    let all = [
        (rax, regs.rax),
        (rbx, regs.rbx),
        (rcx, regs.rcx),
        (rdx, regs.rdx),
        (rsi, regs.rsi),
        (rdi, regs.rdi),
        (rbp, regs.rbp),
        (r8, regs.r8),
        (r9, regs.r9),
        (r10, regs.r10),
        (r11, regs.r11),
        (r12, regs.r12),
        (r13, regs.r13),
        (r14, regs.r14),
        (r15, regs.r15),
    ];
    for (register, value) in all {
        a.mov(register, value)?;
    }
    Ok(())
}
