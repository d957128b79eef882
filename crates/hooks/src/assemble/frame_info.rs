//! Call frame information for our code: it leads an unwinder from there to the place at which the thread would be
//! without us.

use super::{Blob, Origin};
use crate::layout::{Saved, slot};
use gimli::constants::{
    DW_CFA_advance_loc, DW_CFA_def_cfa, DW_CFA_def_cfa_expression, DW_CFA_expression, DW_CFA_nop,
    DW_CFA_val_expression, DW_EH_PE_pcrel, DW_EH_PE_sdata4, DW_OP_addr, DW_OP_and, DW_OP_breg0, DW_OP_const8u,
    DW_OP_deref,
};
use gimli::{DwCfa, DwOp};
use iced_x86::{Decoder, DecoderOptions};

// DWARF's register numbers (x86-64 psABI, figure 3.36).
const RCX: u8 = 2;
const RBP: u8 = 6;
const RSP: u8 = 7;
const RIP: u8 = 16;

/// The address bits of a word that also holds a question.
const ADDRESS: u64 = (1 << 48) - 1;

impl Blob {
    /// Returns an `.eh_frame` section for the code, valid for any load address, to lie at `at` bytes from the code's
    /// start. It ends with a terminator, as `__register_frame` expects.
    #[must_use]
    pub fn eh_frame(&self, at: u32) -> Vec<u8> {
        let mut out = Vec::new();
        cie(&mut out);
        for (range, origin) in &self.origins {
            let rules = match origin {
                Origin::Address(address) => self.rows(range.start, range.end, *address),
                Origin::InRcx => val_expression(RIP, &masked(&breg(RCX, 0))),
                Origin::InSlot => in_slot(),
            };
            fde(&mut out, at, range.start, range.end, &rules);
        }
        out.extend([0; 4]);
        out
    }

    /// Returns the rules for code that stands for one address. Each instruction has a distance to it, since the
    /// file's load address is unknown here.
    fn rows(&self, start: u32, end: u32, address: u64) -> Vec<u8> {
        let code = self.code.get(start as usize..end as usize).unwrap_or_default();
        let mut rules = Vec::new();
        let mut last = 0;
        for instruction in Decoder::with_ip(64, code, 0, DecoderOptions::NONE) {
            let offset = instruction.ip();
            if offset != last {
                // An instruction has at most 15 bytes, so its length fits the operation itself.
                rules.push(DW_CFA_advance_loc.0 | (offset - last) as u8);
                last = offset;
            }
            let here = (u64::from(start) + offset).wrapping_add_signed(self.delta);
            rules.extend(val_expression(RIP, &breg(RIP, address.wrapping_sub(here) as i64)));
        }
        rules
    }
}

/// Returns a CIE and an FDE of its own for code that stands for `origin`: the offset of the FDE, the offset of the
/// address (if it is one), and the bytes. The FDE's range of code is left empty.
pub(super) fn piece(origin: Origin) -> (usize, usize, Vec<u8>) {
    let mut out = Vec::new();
    cie(&mut out);
    let begins = out.len();
    let rules = match origin {
        Origin::Address(address) => {
            let mut expression = vec![DW_OP_addr.0];
            expression.extend(address.to_le_bytes());
            val_expression(RIP, &expression)
        }
        Origin::InRcx => val_expression(RIP, &masked(&breg(RCX, 0))),
        Origin::InSlot => in_slot(),
    };
    // The fields are length, distance of the CIE, start and length of the code, and length of the augmentation; then
    // those of the rule: operation, register, length, operation.
    const ADDRESS_AT: usize = 4 + 4 + 4 + 4 + 1 + 4;
    fde(&mut out, 0, 0, 0, &rules);
    (begins, begins + ADDRESS_AT, out)
}

/// Layout of the kernel's struct ucontext, at the end of a handler's stack (struct ucontext of asm-generic/ucontext.h,
/// struct sigcontext_64 of arch/x86/include/uapi/asm/sigcontext.h): DWARF's number of each register, and its distance
/// from rsp where the handler returns.
const INTERRUPTED: [(u8, i64); 17] = [
    (0, 144),
    (1, 136),
    (RCX, 152),
    (3, 128),
    (4, 112),
    (5, 104),
    (RBP, 120),
    (RSP, 160),
    (8, 40),
    (9, 48),
    (10, 56),
    (11, 64),
    (12, 72),
    (13, 80),
    (14, 88),
    (15, 96),
    (RIP, 168),
];

/// Returns the same as [`piece`] for the place to which handlers return, in the form that glibc uses for its own: the
/// offset of the FDE, and the bytes.
pub(super) fn signal_piece() -> (usize, Vec<u8>) {
    let mut out = Vec::new();
    cie(&mut out);
    let begins = out.len();
    let mut rules = vec![DW_CFA_def_cfa_expression.0];
    let mut cfa = breg(RSP, INTERRUPTED[RSP as usize].1);
    cfa.push(DW_OP_deref.0);
    rules.push(cfa.len() as u8);
    rules.extend(cfa);
    for (register, distance) in INTERRUPTED {
        rules.extend(expression(DW_CFA_expression, register, &breg(RSP, distance)));
    }
    fde(&mut out, 0, 0, 0, &rules);
    (begins, out)
}

/// Returns the rules for the hand-shake's code, in which rbp is the slot's address.
fn in_slot() -> Vec<u8> {
    let mut resume = breg(RBP, slot::RESUME as i64);
    resume.push(DW_OP_deref.0);
    let mut rules = val_expression(RIP, &masked(&resume));
    rules.extend(expression(DW_CFA_expression, RBP, &breg(RBP, Saved::Rbp.offset() as i64)));
    rules
}

fn breg(register: u8, offset: i64) -> Vec<u8> {
    let mut out = vec![DwOp(DW_OP_breg0.0 + register).0];
    gimli::leb128::write::signed(&mut out, offset).map_or_else(|_| Vec::new(), |_| out)
}

fn masked(value: &[u8]) -> Vec<u8> {
    let mut out = value.to_vec();
    out.push(DW_OP_const8u.0);
    out.extend(ADDRESS.to_le_bytes());
    out.push(DW_OP_and.0);
    out
}

fn val_expression(register: u8, expression_of: &[u8]) -> Vec<u8> {
    expression(DW_CFA_val_expression, register, expression_of)
}

/// Returns a rule with an expression. Expressions are shorter than 128 bytes, so the length is one byte of LEB128.
fn expression(rule: DwCfa, register: u8, expression: &[u8]) -> Vec<u8> {
    let mut out = vec![rule.0, register, expression.len() as u8];
    out.extend(expression);
    out
}

fn cie(out: &mut Vec<u8>) {
    let mut body = vec![0, 0, 0, 0, 1];
    body.extend(b"zRS\0");
    // The values are: code alignment 1, data alignment -8, return address in rip; one byte of augmentation, the form
    // of addresses in FDEs.
    body.extend([1, 0x78, RIP, 1, DW_EH_PE_pcrel.0 | DW_EH_PE_sdata4.0]);
    body.extend([DW_CFA_def_cfa.0, RSP, 0]);
    entry(out, body);
}

/// Writes one entry; the CIE is the section's first.
fn fde(out: &mut Vec<u8>, at: u32, start: u32, end: u32, rules: &[u8]) {
    let here = out.len() as u32 + 4;
    let mut body = here.to_le_bytes().to_vec();
    body.extend((i64::from(start) - i64::from(at) - i64::from(here) - 4).to_le_bytes().into_iter().take(4));
    body.extend((end - start).to_le_bytes());
    body.push(0);
    body.extend(rules);
    entry(out, body);
}

fn entry(out: &mut Vec<u8>, mut body: Vec<u8>) {
    body.resize(body.len().next_multiple_of(8) + 4, DW_CFA_nop.0);
    out.extend((body.len() as u32).to_le_bytes());
    out.extend(body);
}
