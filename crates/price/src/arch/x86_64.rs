//! x86-64.

use crate::host::{cpuinfo_field, hypervisor, with_product};
use crate::sys::Args;
use std::arch::asm;
use std::arch::x86_64::__cpuid;

/// Returns the processor's model name in a text of /proc/cpuinfo.
pub(crate) fn processor(cpuinfo: &str) -> String {
    cpuinfo_field(cpuinfo, "model name").unwrap_or_default()
}

/// Returns the hypervisor, with the product's name that the firmware gives.
pub(crate) fn virtualization(cpuinfo: &str) -> Option<String> {
    let flags = cpuinfo_field(cpuinfo, "flags").unwrap_or_default();
    if !flags.split_whitespace().any(|f| f == "hypervisor") {
        return None;
    }
    // Leaf 0x4000_0000 is reserved for hypervisors: their signature is in ebx, ecx, edx.
    let leaf = __cpuid(0x4000_0000);
    let signature: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|r| r.to_le_bytes()).collect();
    Some(with_product(hypervisor(&signature)))
}

/// Makes system call `nr` by a `syscall` instruction inlined into the caller's code.
///
/// # Safety
/// As [`call`].
#[inline(always)]
pub(crate) unsafe fn instruction(nr: i64, args: Args) -> isize {
    let result;
    // SAFETY: the syscall instruction only destroys rax, rcx and r11; the caller guarantees the
    // rest.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") nr as isize => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}
