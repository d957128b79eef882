//! Unwinding on x86-64.

mod epilogue;

use super::super::step::Rule;
pub(crate) use epilogue::find_epilogue;

/// DWARF number of rbp (System V ABI, AMD64 supplement, figure 3.36).
const RBP: usize = 6;
/// DWARF number of rsp.
const RSP: usize = 7;
/// Number of the frame pointer.
pub(crate) const FP: usize = RBP;
/// Number of the stack pointer.
pub(crate) const SP: usize = RSP;
/// Column of the return address in a row, and place of the instruction pointer.
pub(crate) const RA: usize = 16;
/// Column of the return address in call frame information.
pub(crate) const RETURN_COLUMN: usize = RA;
/// Extensions of call frame information.
pub(crate) const VENDOR: gimli::Vendor = gimli::Vendor::Default;
/// True if calls leave the return address in a register.
pub(crate) const LINKS: bool = false;
/// Number of registers in a row, with the return address.
pub(crate) const REGISTERS: usize = 17;
/// Registers that a rule restores, at most: the ABI preserves six, and there is the return address.
pub(crate) const MAX_SAVED: usize = 8;

/// Offset in bytes of the saved registers from the stack pointer after a handler returned: `uc_mcontext` in `struct
/// ucontext` (arch/x86/include/uapi/asm/ucontext.h, sigcontext.h).
pub(crate) const MCONTEXT: u64 = 40;
/// DWARF numbers in the order of `struct sigcontext`: r8–r15, di, si, bp, bx, dx, ax, cx, sp, ip.
pub(crate) const CONTEXT: [usize; REGISTERS] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, RBP, 3, 1, 0, 2, RSP, RA];

/// Return addresses that no stack and no register has: there are none on this machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Switches;

impl Switches {
    /// Returns `None`: on this machine, call frame information leads to every caller.
    pub(crate) fn step(&mut self, _: &mut [u64; REGISTERS], _: &mut dyn FnMut(u64) -> Option<u64>) -> Option<()> {
        None
    }
}

/// Puts the return address that a rule has restored into its place: it is there.
pub(crate) fn return_to(_next: &mut [u64; REGISTERS]) {}

/// Returns an address without the signature that other machines put into return addresses.
pub(crate) fn strip(address: u64) -> u64 {
    address
}

/// Returns the rule for a function of Go's that has `bytes` on the stack below its return address; `None` if that is
/// more than any stack has.
pub(crate) fn rule_of_go_frame(bytes: u32) -> Option<Rule> {
    let mut rule = Rule::new(RSP as u8, i32::try_from(bytes).ok()?.checked_add(8)?);
    rule.save(RA as u8, -8).then_some(rule)
}

/// The general registers of a stopped thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the processor's own names")]
pub struct Registers {
    pub ip: u64,
    pub sp: u64,
    pub bp: u64,
    pub ax: u64,
    pub bx: u64,
    pub cx: u64,
    pub dx: u64,
    pub si: u64,
    pub di: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
}

impl Registers {
    /// Returns registers of which the instruction pointer, the stack pointer and the frame pointer are known.
    pub(crate) fn at(ip: u64, sp: u64, bp: u64) -> Self {
        Self { ip, sp, bp, ..Self::default() }
    }

    /// Returns the registers in DWARF's order (System V ABI, AMD64 supplement, figure 3.36): 0–15, then the return
    /// address.
    pub(crate) fn in_dwarf_order(&self) -> [u64; 17] {
        [
            self.ax, self.dx, self.cx, self.bx, self.si, self.di, self.bp, self.sp, self.r8, self.r9, self.r10,
            self.r11, self.r12, self.r13, self.r14, self.r15, self.ip,
        ]
    }
}
