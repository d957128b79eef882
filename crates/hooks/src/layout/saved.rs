//! The registers that a hook saves.

use super::slot;

/// A register saved in [`slot::REGISTERS`], which holds them in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Saved {
    /// The call's number on entry, its result on return.
    Rax,
    /// First argument of the call.
    Rdi,
    /// Second argument of the call.
    Rsi,
    /// Third argument of the call.
    Rdx,
    /// Fourth argument of the call.
    R10,
    /// Fifth argument of the call.
    R8,
    /// Sixth argument of the call.
    R9,
    /// Stack pointer at the hook.
    Rsp,
    /// Register that is saved for unwinding, as are those that follow.
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
