//! aarch64.

use crate::host::{cpuinfo_field, with_product};
use crate::sys::Args;
use std::arch::asm;

/// Returns the processor's name by the numbers of its maker and part in a text of /proc/cpuinfo: the kernel gives no
/// name. The most common of the main identification register's (MIDR_EL1) are named.
pub(crate) fn processor(cpuinfo: &str) -> String {
    let field = |name| cpuinfo_field(cpuinfo, name).unwrap_or_default();
    let (maker, part) = (field("CPU implementer"), field("CPU part"));
    let name = match (maker.as_str(), part.as_str()) {
        ("0x41", "0xd03") => "Arm Cortex-A53",
        ("0x41", "0xd08") => "Arm Cortex-A72",
        ("0x41", "0xd0b") => "Arm Cortex-A76",
        ("0x41", "0xd0c") => "Arm Neoverse N1",
        ("0x41", "0xd40") => "Arm Neoverse V1",
        ("0x41", "0xd49") => "Arm Neoverse N2",
        ("0x41", "0xd4f") => "Arm Neoverse V2",
        ("0xc0", "0xac3" | "0xac4" | "0xac5") => "Ampere One",
        ("0x61", _) => "Apple silicon",
        ("", _) => return String::new(),
        _ => return format!("aarch64 processor of maker {maker}, part {part}"),
    };
    name.to_owned()
}

/// Returns the hypervisor, if the device tree or the firmware names one: no instruction does.
pub(crate) fn virtualization(_cpuinfo: &str) -> Option<String> {
    let compatible = std::fs::read_to_string("/sys/firmware/devicetree/base/hypervisor/compatible");
    if compatible.is_ok_and(|text| text.starts_with("xen")) {
        return Some(with_product("Xen".to_owned()));
    }
    let vendor = std::fs::read_to_string("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let product = std::fs::read_to_string("/sys/class/dmi/id/product_name").unwrap_or_default();
    let is_virtual = vendor.trim() == "QEMU" || product.contains("Virtual");
    is_virtual.then(|| with_product("a virtual machine".to_owned()))
}

/// Makes system call `nr` by an `svc` instruction inlined into the caller's code.
///
/// # Safety
/// As [`crate::sys::call`].
#[inline(always)]
pub(crate) unsafe fn instruction(nr: i64, args: Args) -> isize {
    let result;
    // SAFETY: the kernel changes no register but x0; the caller guarantees the rest.
    unsafe {
        asm!(
            "svc #0",
            in("x8") nr,
            inlateout("x0") args[0] as isize => result,
            in("x1") args[1],
            in("x2") args[2],
            in("x3") args[3],
            in("x4") args[4],
            in("x5") args[5],
            options(nostack),
        );
    }
    result
}

/// Numbers of the calls of x86-64 that aarch64 lacks.
#[expect(non_upper_case_globals, reason = "the names of the libc crate")]
pub(crate) mod absent {
    use crate::table::ABSENT;

    pub(crate) const SYS_access: i64 = ABSENT;
    pub(crate) const SYS_alarm: i64 = ABSENT;
    pub(crate) const SYS_arch_prctl: i64 = ABSENT;
    pub(crate) const SYS_dup2: i64 = ABSENT;
    pub(crate) const SYS_epoll_wait: i64 = ABSENT;
    pub(crate) const SYS_getpgrp: i64 = ABSENT;
    pub(crate) const SYS_lstat: i64 = ABSENT;
    pub(crate) const SYS_open: i64 = ABSENT;
    pub(crate) const SYS_pipe: i64 = ABSENT;
    pub(crate) const SYS_poll: i64 = ABSENT;
    pub(crate) const SYS_readlink: i64 = ABSENT;
    pub(crate) const SYS_select: i64 = ABSENT;
    pub(crate) const SYS_stat: i64 = ABSENT;
    pub(crate) const SYS_time: i64 = ABSENT;
}
