//! Instructions by which a thread enters the kernel: system calls, and the return from a signal handler.

use crate::elf::ElfFile;

/// Bytes of an instruction that makes a system call.
pub(crate) const CALL: u64 = 4;
/// `svc #0`.
const SVC: [u8; 4] = 0xd400_0001u32.to_le_bytes();
/// `mov x8, #139`: the number of rt_sigreturn.
const MOV: [u8; 4] = 0xd280_1168u32.to_le_bytes();

/// Returns true if the instruction at `addr` is `svc #0`.
pub(crate) fn is_system_call(elf: &ElfFile, addr: u64) -> bool {
    let mut code = [0; 4];
    elf.read_code_into(addr, &mut code) == 4 && code == SVC
}

/// Returns true if `addr` is in `mov x8, #__NR_rt_sigreturn; svc #0`, the code to which signal handlers return (gdb
/// recognizes it the same way): at its start if `addr` is a return address, otherwise at its `svc`. The stack pointer
/// then points to the signal frame.
pub(crate) fn is_signal_return(elf: &ElfFile, addr: u64, is_return: bool) -> bool {
    let start = if is_return { addr } else { addr.wrapping_sub(4) };
    let mut code = [0; 8];
    elf.read_code_into(start, &mut code) == 8 && code.starts_with(&MOV) && code.ends_with(&SVC)
}
