//! Unwinding on aarch64.

mod epilogue;
mod switch;

use crate::unwind::Rule;
pub(crate) use epilogue::find_epilogue;
pub(crate) use switch::Switches;

/// DWARF number of x29 (DWARF for the Arm 64-bit Architecture, section 4.1): the frame pointer.
pub(crate) const FP: usize = 29;
/// DWARF number of x30, in which a call leaves its return address.
pub(crate) const LINK: usize = 30;
/// DWARF number of the stack pointer.
pub(crate) const SP: usize = 31;
/// Place of the instruction pointer, which has no rule of its own: the caller goes on where x30 says.
pub(crate) const RA: usize = 32;
/// Column of the return address in call frame information.
pub(crate) const RETURN_COLUMN: usize = LINK;
/// Extensions of call frame information (signed return addresses).
pub(crate) const VENDOR: gimli::Vendor = gimli::Vendor::AArch64;
/// True if calls leave the return address in a register.
pub(crate) const LINKS: bool = true;
/// Number of registers in a row, with the instruction pointer.
pub(crate) const REGISTERS: usize = 33;
/// Registers that a rule restores, at most: the ABI preserves x19 to x29, and there is the return address.
pub(crate) const MAX_SAVED: usize = 12;

/// Offset in bytes of the saved registers from the stack pointer after a handler returned: behind `siginfo` (128) and
/// the other parts of `struct ucontext` (176) the word with the address of a fault (asm/ucontext.h, sigcontext.h).
pub(crate) const MCONTEXT: u64 = 128 + 176 + 8;
/// DWARF numbers in the order of `struct sigcontext`: x0 to x30, sp, pc.
pub(crate) const CONTEXT: [usize; REGISTERS] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, FP, LINK,
    SP, RA,
];

/// Puts the return address that a rule has restored into its place.
pub(crate) fn return_to(next: &mut [u64; REGISTERS]) {
    next[LINK] = strip(next[LINK]);
    next[RA] = next[LINK];
}

/// Returns an address without the signature that pointer authentication puts into return addresses. Programs have 48
/// bits for addresses, unless they ask for more by a hint, which no loader gives.
pub(crate) fn strip(address: u64) -> u64 {
    address & ((1 << 48) - 1)
}

/// Returns the rule for a function of Go's whose frame has `bytes`: the caller's frame pointer lies below the stack
/// pointer, the return address at it (src/cmd/internal/obj/arm64/obj7.go).
pub(crate) fn rule_of_go_frame(bytes: u32) -> Option<Rule> {
    let bytes = i32::try_from(bytes).ok()?;
    let mut rule = Rule::new(SP as u8, bytes);
    if bytes > 0 {
        (rule.save(LINK as u8, -bytes) && rule.save(FP as u8, bytes.checked_neg()?.checked_sub(8)?)).then_some(())?;
    }
    Some(rule)
}

/// The general registers of a stopped thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// x0 to x30.
    pub x: [u64; 31],
    /// The stack pointer.
    pub sp: u64,
    /// The address of the next instruction.
    pub pc: u64,
}

impl Registers {
    /// Returns registers of which the instruction pointer, the stack pointer and the frame pointer are known.
    pub(crate) fn at(pc: u64, sp: u64, fp: u64) -> Self {
        let mut registers = Self { sp, pc, ..Self::default() };
        registers.x[FP] = fp;
        registers
    }

    /// Returns the registers in DWARF's order, then the instruction pointer.
    pub(crate) fn in_dwarf_order(&self) -> [u64; REGISTERS] {
        let mut all = [0; REGISTERS];
        all[..31].copy_from_slice(&self.x);
        (all[SP], all[RA]) = (self.sp, self.pc);
        all
    }
}
