//! Instructions by which a thread enters the kernel: system calls, and the return from a signal handler.

use crate::elf::ElfFile;

/// Bytes of an instruction that makes a system call.
pub(crate) const CALL: u64 = 2;

/// Returns true if the instruction at `addr` is `syscall`, `sysenter` or `int $0x80`.
pub(crate) fn is_system_call(elf: &ElfFile, addr: u64) -> bool {
    let mut code = [0; 2];
    elf.read_code_into(addr, &mut code) == 2 && matches!(code, [0x0f, 0x05 | 0x34] | [0xcd, 0x80])
}

/// Returns true if `addr` is in `mov $__NR_rt_sigreturn,%eax; syscall`, the code to which signal handlers return (gdb
/// recognizes it the same way): at its start if `addr` is a return address, otherwise at its `syscall`. The stack
/// pointer then points to the signal context.
pub(crate) fn is_signal_return(elf: &ElfFile, addr: u64, is_return: bool) -> bool {
    const MOVES: [&[u8]; 2] = [&[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0], &[0xb8, 0x0f, 0, 0, 0]];
    MOVES.iter().any(|mov| {
        let start = if is_return { addr } else { addr.wrapping_sub(mov.len() as u64) };
        let mut code = [0; 9];
        let got = elf.read_code_into(start, &mut code);
        code.get(..got).and_then(|c| c.strip_prefix(*mov)).is_some_and(|rest| rest.starts_with(&[0x0f, 0x05]))
    })
}
