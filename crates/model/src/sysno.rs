//! System call numbers.

/// A system call of x86-64, by number. Calls made through the 32-bit gate carry
/// [`Sysno::I386`], those of the x32 ABI keep their own bit 30 ([`Sysno::X32`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sysno(pub u32);

impl Sysno {
    /// Bit that is set in the number of a call made through the 32-bit gate (`int 0x80`).
    pub const I386: u32 = 0x8000_0000;
    /// Bit that is set in the number of a call of the x32 ABI. Few kernels have that ABI; on others such a call fails
    /// with ENOSYS.
    pub const X32: u32 = 0x4000_0000;
    /// Number that replaces each number passed to `syscall` that the kernel does not have, now or soon.
    pub const UNKNOWN: Self = Self(0x7fff_ffff);
    /// Bound of the numbers of the 64-bit ABI that are told apart.
    pub const NATIVE: u32 = 511;
    /// Bound of the numbers of the x32 ABI that are told apart (the kernel's syscall_64.tbl ends with 547).
    pub const X32_NUMBERS: u32 = 552;

    /// Returns the call that `syscall` makes with `eax` in that register. The kernel looks at no
    /// other bits of rax.
    pub fn made(eax: u32) -> Self {
        match eax & !Self::X32 {
            number if number < Self::NATIVE || Self(eax).is_x32() && number < Self::X32_NUMBERS => Self(eax),
            _ => Self::UNKNOWN,
        }
    }

    /// Returns true if the call is of the x32 ABI.
    pub fn is_x32(self) -> bool {
        self != Self::UNKNOWN && self.0 & (Self::I386 | Self::X32) == Self::X32
    }
}
