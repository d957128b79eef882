//! Code that a stopped thread of a running program executes for the launcher: it makes system calls and restores the
//! thread.
//!
//! If the launcher fails, the thread returns by itself to the place where it was stopped, with all its registers, flags
//! and signals. The code uses no stack and no memory except a page of its own, and every wait in it ends.
//!
//! ```text
//!   maps a page at an unused address
//!   blocks all signals
//!   waits until the launcher has written the calls
//!   makes them and stores their results
//!   waits until the launcher has read these
//!   unmaps the page
//!   waits for the launcher, which restores the thread's registers
//!   if it did not: unblocks signals and continues
//! ```

use super::AssembleError;
use iced_x86::BlockEncoderOptions;
use iced_x86::code_asm::*;
use std::sync::OnceLock;

/// Offset in the page of a u64 that is not zero once the calls are written there.
pub const GO: u64 = 0x00;
/// Offset of a u64 that is not zero once the calls were made.
pub const DONE: u64 = 0x08;
/// Offset of a u64 that is not zero once the launcher has read the results.
pub const READ: u64 = 0x10;
/// Offset of the calls, [`CALL`] bytes each: the addresses of the number and of the six arguments, and the result. A
/// call whose first address is zero ends the list.
pub const CALLS: u64 = 0x40;
/// Size of a call in bytes.
pub const CALL: u64 = 0x40;
/// Offset of the result in a call.
pub const RESULT: u64 = 0x38;

/// Number of times that a waiting thread polls before it yields its processor once: some 30 µs. A yield leaves the
/// processor for milliseconds to another process that computes.
const LOOKS: u32 = 1_000;

/// Registers that the code restores, in the order in which it loads them.
const REGISTERS: usize = 15;

/// Input of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errand {
    /// Address of the page, where nothing is mapped.
    pub page: u64,
    /// Size of the page in bytes.
    pub size: u64,
    /// Longest time of each wait, in cycles of the time stamp counter.
    pub patience: u64,
    /// The thread's blocked signals.
    pub mask: u64,
    /// Address at which the thread continues.
    pub rip: u64,
    /// Flags of the thread.
    pub flags: u64,
    /// Registers of the thread: rax, rbx, rcx, rdx, rsi, rdi, r8 to r15, rbp.
    pub registers: [u64; REGISTERS],
}

/// Offset of the page's address in the words behind the code; those of other words follow.
const PAGE: i32 = 0;
const SIZE: i32 = 8;
const MASK: i32 = 16;
const ALL: i32 = 24;
const FLAGS: i32 = 32;
const PATIENCE: i32 = 40;
/// Offset of the registers, behind the address at which the thread continues.
const SAVED: i32 = 56;
/// Number of words before the address at which the thread continues.
const WORDS: usize = 6;

/// Flags that `lahf` loads and `sahf` stores.
const OF_LAHF: u64 = 0xd5;
/// The overflow flag, which `lahf` does not load.
const OVERFLOW: u64 = 1 << 11;

/// Bytes with which the code begins, before and after the four bytes that hold the distance to the words.
const BEGINS: ([u8; 3], [u8; 8]) = ([0x48, 0x8d, 0x2d], [0x48, 0x8b, 0x7d, 0x00, 0x48, 0x8b, 0x75, 0x08]);

/// Returns the offset of an errand's code in `bytes`, if they contain one.
#[must_use]
pub fn find(bytes: &[u8]) -> Option<usize> {
    let (first, last) = BEGINS;
    let len = first.len() + 4 + last.len();
    bytes.windows(len).position(|window| window.starts_with(&first) && window.ends_with(&last))
}

impl Errand {
    /// Returns the code, which runs at any address, from its first byte.
    ///
    /// # Errors
    /// If an instruction can't be encoded, which is a mistake of ours.
    pub fn code(&self) -> Result<Vec<u8>, AssembleError> {
        let instructions = assembled()?;
        let flags = (self.flags & OF_LAHF) << 8 | u64::from(self.flags & OVERFLOW != 0);
        let words = [self.page, self.size, self.mask, u64::MAX, flags, self.patience, self.rip];
        let words = words.into_iter().chain(self.registers).flat_map(u64::to_le_bytes);
        Ok(instructions.iter().copied().chain(words).collect())
    }
}

/// Assembles the instructions of every errand, so that [`Errand::code`] takes microseconds: the assembler takes half a
/// millisecond at first.
///
/// # Errors
/// If an instruction can't be encoded, which is a mistake of ours.
pub fn assemble_ahead() -> Result<(), AssembleError> {
    assembled().map(|_| ())
}

/// Returns the instructions of every errand.
fn assembled() -> Result<&'static [u8], AssembleError> {
    static INSTRUCTIONS: OnceLock<Vec<u8>> = OnceLock::new();
    if INSTRUCTIONS.get().is_none() {
        let code = instructions(0)?;
        return Ok(INSTRUCTIONS.get_or_init(|| code));
    }
    Ok(INSTRUCTIONS.get().map_or(&[], Vec::as_slice))
}

/// Returns the instructions of every errand, assembled for address `at`. The words that they use lie behind them.
fn instructions(at: u64) -> Result<Vec<u8>, AssembleError> {
    let mut a = CodeAssembler::new(64)?;
    let (mut words, mut entry) = (a.create_label(), a.create_label());
    write(&mut a, words, entry)?;
    a.set_label(&mut words)?;
    a.dq(&[0; WORDS])?;
    a.set_label(&mut entry)?;
    a.dq(&[0])?;
    let mut code = a.assemble_options(at, BlockEncoderOptions::NONE)?.inner.code_buffer;
    code.truncate(code.len().saturating_sub(8 * (WORDS + 1)));
    Ok(code)
}

/// Waits until the word at an offset of the page is not zero, then jumps to a label, but at most for
/// [`Errand::patience`]. Without `until`, waits for all of that time.
fn wait(a: &mut CodeAssembler, until: Option<(u64, CodeLabel)>) -> Result<(), AssembleError> {
    let (mut turn, mut look) = (a.create_label(), a.create_label());
    a.rdtsc()?;
    a.shl(rdx, 32u32)?;
    a.or(rax, rdx)?;
    a.mov(r12, rax)?;
    a.add(r12, qword_ptr(rbp + PATIENCE))?;
    a.set_label(&mut turn)?;
    a.mov(r13d, LOOKS)?;
    a.set_label(&mut look)?;
    if let Some((offset, on)) = until {
        a.cmp(qword_ptr(rbx + offset as i32), 0)?;
        a.jne(on)?;
    }
    a.pause()?;
    a.sub(r13d, 1)?;
    a.jne(look)?;
    a.mov(eax, libc::SYS_sched_yield as u32)?;
    a.syscall()?;
    a.rdtsc()?;
    a.shl(rdx, 32u32)?;
    a.or(rax, rdx)?;
    a.cmp(rax, r12)?;
    a.jb(turn)?;
    Ok(())
}

/// Changes the signal mask by `how` with the word at `from`.
fn set_mask(a: &mut CodeAssembler, how: i32, from: i32) -> Result<(), AssembleError> {
    a.mov(edi, how as u32)?;
    a.lea(rsi, qword_ptr(rbp + from))?;
    a.xor(edx, edx)?;
    a.mov(r10d, size_of::<u64>() as u32)?;
    a.mov(eax, libc::SYS_rt_sigprocmask as u32)?;
    a.syscall()?;
    Ok(())
}

fn write(a: &mut CodeAssembler, words: CodeLabel, entry: CodeLabel) -> Result<(), AssembleError> {
    let (mut restore, mut run, mut next, mut done) =
        (a.create_label(), a.create_label(), a.create_label(), a.create_label());
    let mut leave = a.create_label();
    a.lea(rbp, ptr(words))?;
    a.mov(rdi, qword_ptr(rbp + PAGE))?;
    a.mov(rsi, qword_ptr(rbp + SIZE))?;
    a.mov(edx, (libc::PROT_READ | libc::PROT_WRITE) as u32)?;
    a.mov(r10d, (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE) as u32)?;
    a.mov(r8, -1i64)?;
    a.xor(r9d, r9d)?;
    a.mov(eax, libc::SYS_mmap as u32)?;
    a.syscall()?;
    a.cmp(rax, qword_ptr(rbp + PAGE))?;
    a.jne(restore)?;
    a.mov(rbx, rax)?;
    set_mask(a, libc::SIG_BLOCK, ALL)?;
    wait(a, Some((GO, run)))?;
    a.jmp(leave)?;
    a.set_label(&mut run)?;
    a.lea(r15, qword_ptr(rbx + CALLS as i32))?;
    a.set_label(&mut next)?;
    a.mov(r14, qword_ptr(r15))?;
    a.test(r14, r14)?;
    a.je(done)?;
    for (place, register) in (1..).zip([rdi, rsi, rdx, r10, r8, r9]) {
        a.mov(register, qword_ptr(r15 + 8 * place))?;
        a.mov(register, qword_ptr(register))?;
    }
    a.mov(rax, qword_ptr(r14))?;
    a.syscall()?;
    a.mov(qword_ptr(r15 + RESULT as i32), rax)?;
    a.add(r15, CALL as i32)?;
    a.jmp(next)?;
    a.set_label(&mut done)?;
    a.mov(qword_ptr(rbx + DONE as i32), 1)?;
    wait(a, Some((READ, leave)))?;
    a.set_label(&mut leave)?;
    a.mov(rdi, rbx)?;
    a.mov(rsi, qword_ptr(rbp + SIZE))?;
    a.mov(eax, libc::SYS_munmap as u32)?;
    a.syscall()?;
    wait(a, None)?;
    set_mask(a, libc::SIG_SETMASK, MASK)?;
    a.set_label(&mut restore)?;
    // Adding 127 to 1 sets the overflow flag; sahf stores all other flags.
    a.mov(rax, qword_ptr(rbp + FLAGS))?;
    a.add(al, 127)?;
    a.sahf()?;
    let all = [rax, rbx, rcx, rdx, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15, rbp];
    for (n, register) in (0..).zip(all) {
        a.mov(register, qword_ptr(rbp + SAVED + 8 * n))?;
    }
    a.jmp(qword_ptr(entry))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};

    const ERRAND: Errand = Errand {
        page: 0x7000,
        size: 4096,
        patience: 9,
        mask: 5,
        rip: 0x1234,
        flags: OVERFLOW | 1,
        registers: [7; REGISTERS],
    };

    fn decoded(at: u64) -> Vec<Instruction> {
        let code = instructions(at).unwrap();
        Decoder::with_ip(64, &code, at, DecoderOptions::NONE).into_iter().collect()
    }

    #[test]
    fn its_code_is_the_same_at_each_address() {
        assert_eq!(instructions(0).unwrap(), instructions(0x7fff_1234_5670).unwrap());
    }

    #[test]
    fn it_ends_where_the_thread_was_and_leads_nowhere_else() {
        let all = decoded(0x40_0000);
        let last = all.last().unwrap();
        assert_eq!(last.flow_control(), FlowControl::IndirectBranch);
        let code = ERRAND.code().unwrap();
        let at = (last.memory_displacement64() - 0x40_0000) as usize;
        assert_eq!(u64::from_le_bytes(code[at..at + 8].try_into().unwrap()), 0x1234);
        let end = last.next_ip();
        let branches = all.iter().filter(|i| i.near_branch_target() != 0);
        assert!(branches.map(Instruction::near_branch_target).all(|to| (0x40_0000..end).contains(&to)));
        assert!(all.iter().all(|i| !i.is_invalid()));
    }

    #[test]
    fn it_is_found_where_it_was_left() {
        let mut bytes = vec![0; 100];
        assert_eq!(find(&bytes), None);
        bytes.extend(ERRAND.code().unwrap());
        assert_eq!(find(&bytes), Some(100));
    }

    #[test]
    fn its_stack_is_never_touched() {
        let uses = |i: &Instruction| i.stack_pointer_increment() != 0 || i.memory_base() == iced_x86::Register::RSP;
        assert!(!decoded(0x1000).iter().any(uses));
    }
}
