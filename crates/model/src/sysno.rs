//! System call numbers.

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
