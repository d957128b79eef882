//! Conversion between names and numbers of system calls.

use super::signature::Signature;
use super::table;
use crate::sysno::Sysno;
use foldhash::HashMap;
use std::fmt;
use std::sync::OnceLock;

/// Name of [`Sysno::UNKNOWN`].
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

/// Compares byte strings at compile time, where the standard library cannot.
const fn same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

impl Sysno {
    /// Returns the call's name in the kernel's table, e.g. `newfstatat`; `None` for a number
    /// without one.
    pub fn name(self) -> Option<&'static str> {
        self.signature().map(|s| s.name)
    }

    /// Returns the call with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        static BY_NAME: OnceLock<HashMap<&str, Sysno>> = OnceLock::new();
        let by_name = BY_NAME.get_or_init(|| table::signatures().iter().map(|s| (s.name, s.sysno)).collect());
        by_name.get(name).copied()
    }

    /// Returns the call with this name, at compile time, or [`Sysno::UNKNOWN`] if there is none.
    /// Slow: it compares all names.
    pub const fn named(name: &str) -> Self {
        let all = table::signatures();
        let mut at = 0;
        while at < all.len() {
            if same(all[at].name.as_bytes(), name.as_bytes()) {
                return all[at].sysno;
            }
            at += 1;
        }
        Self::UNKNOWN
    }

    /// Parses the text that `Display` writes: a name, or `syscall_0x151` and `i386_syscall_0x14`.
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

    /// Returns the call's entry in the system call table; `None` for a number without a call.
    pub fn signature(self) -> Option<&'static Signature> {
        table::signature(self)
    }
}
