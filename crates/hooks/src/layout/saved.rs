//! The registers that a hook saves.

use super::slot;

/// A register saved in [`slot::REGISTERS`], in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Saved {
    /// Number on entry, result on return.
    Rax,
    /// First argument.
    Rdi,
    /// Second argument.
    Rsi,
    /// Third argument.
    Rdx,
    /// Fourth argument.
    R10,
    /// Fifth argument.
    R8,
    /// Sixth argument.
    R9,
    /// Stack pointer at the hook.
    Rsp,
    /// Saved for unwinding, as are those that follow.
    Rbx,
    #[allow(missing_docs)]
    Rbp,
    #[allow(missing_docs)]
    R12,
    #[allow(missing_docs)]
    R13,
    #[allow(missing_docs)]
    R14,
    #[allow(missing_docs)]
    R15,
}

impl Saved {
    /// Number of saved registers.
    pub const COUNT: u64 = 14;

    /// Returns the register's offset in a slot.
    #[must_use]
    pub const fn offset(self) -> u64 {
        slot::REGISTERS + 8 * self as u64
    }
}
