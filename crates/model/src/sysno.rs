//! System call numbers and names.

use crate::syscalls::{self, Signature};
use std::fmt;
use std::sync::OnceLock;

/// A system call of x86-64, by number. Calls made through the 32-bit gate carry
/// [`Sysno::I386`], those of the x32 ABI keep their own bit 30 ([`Sysno::X32`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sysno(pub u32);

impl Sysno {
    /// Set in the number of a call made through the 32-bit gate (`int 0x80`).
    pub const I386: u32 = 0x8000_0000;
    /// Set in the number of a call of the x32 ABI, which few kernels have: elsewhere it fails with ENOSYS.
    pub const X32: u32 = 0x4000_0000;
    /// Any number made by `syscall` that is none of the kernel's, now or soon: they are not told apart.
    pub const UNKNOWN: Self = Self(0x7fff_ffff);
    /// How many numbers of the 64-bit ABI are told apart.
    pub const NATIVE: u32 = 511;
    /// How many of the x32 ABI (it ends with 547 in the kernel's syscall_64.tbl).
    pub const X32_NUMBERS: u32 = 552;

    /// The call made by `syscall` with `eax` in that register; the kernel looks at no more of it.
    pub fn made(eax: u32) -> Self {
        match eax & !Self::X32 {
            number if number < Self::NATIVE || Self(eax).is_x32() && number < Self::X32_NUMBERS => Self(eax),
            _ => Self::UNKNOWN,
        }
    }

    /// Whether it is one of the x32 ABI.
    pub fn is_x32(self) -> bool {
        self != Self::UNKNOWN && self.0 & (Self::I386 | Self::X32) == Self::X32
    }
}

/// What [`Sysno::UNKNOWN`] is called.
const UNKNOWN: &str = "unknown_syscall";

impl fmt::Display for Sysno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None if *self == Self::UNKNOWN => f.write_str(UNKNOWN),
            None if self.0 & Self::I386 != 0 => write!(f, "i386_syscall_{:#x}", self.0 & !Self::I386),
            None => write!(f, "syscall_{:#x}", self.0),
        }
    }
}

impl Sysno {
    /// Its name as in the kernel's table, e.g. `newfstatat`; `None` for a number without one.
    pub fn name(self) -> Option<&'static str> {
        self.signature().map(|s| s.name)
    }

    /// The call with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        static BY_NAME: OnceLock<Vec<(&str, Sysno)>> = OnceLock::new();
        let by_name = BY_NAME.get_or_init(|| {
            let mut all: Vec<_> = syscalls::signatures().iter().map(|s| (s.name, s.sysno)).collect();
            all.sort_unstable();
            all
        });
        by_name.binary_search_by_key(&name, |(name, _)| name).ok().and_then(|i| by_name.get(i)).map(|(_, sysno)| *sysno)
    }

    /// The call that is displayed so: by name, or `syscall_0x151` and `i386_syscall_0x14`.
    pub fn from_display(text: &str) -> Option<Self> {
        if text == UNKNOWN {
            return Some(Self::UNKNOWN);
        }
        let hex = |text: &str| u32::from_str_radix(text, 16).ok();
        if let Some(number) = text.strip_prefix("i386_syscall_0x") {
            return hex(number).map(|n| Self(n | Self::I386));
        }
        text.strip_prefix("syscall_0x").map_or_else(|| Self::from_name(text), |number| hex(number).map(Self))
    }

    /// What the system call table knows of it; `None` for a number without a call.
    pub fn signature(self) -> Option<&'static Signature> {
        syscalls::signature(self)
    }
}
