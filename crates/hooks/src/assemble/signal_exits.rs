//! Counts a signal's return where handlers end, because the bytes of the return itself must stay.

use super::blob::{Base, CountedPlace, Refused, Unhooked};
use super::emitter::{Emitted, Emitter, Origin, asm, at};
use super::entry::{Entry, before};
use super::hook::{Hook, SiteCode};
use super::relocate::{BASE, decode, displace, movable};
use super::sampling::Timing;
use super::tree_walk::Start;
use super::{Options, elide_ids, elide_masks};
use crate::layout::{IMAGE, image};
use crate::numbers::RT_SIGRETURN;
use crate::plan::{SIGNAL_NUMBER_LEN, SIGNAL_RETURN, Site, Span};
use iced_x86::code_asm::*;
use iced_x86::{Code, Instruction, MemoryOperand, Register};

/// Writes the code of a site that is hooked at `site.exits`, and counts at the root at `root`.
pub(super) fn write(e: &mut Emitter, options: &Options, site: &Site, root: u64) -> Emitted<SiteCode> {
    let decoded = site.exits.iter().map(|span| Some((span, exit(span)?)));
    let Some(decoded) = decoded.collect::<Option<Vec<_>>>() else {
        let refused = Some(Refused { address: site.address, what: Unhooked::Site });
        return Ok(SiteCode { refused, ..SiteCode::default() });
    };
    let number = Some(crate::numbers::RT_SIGRETURN);
    let entry =
        Entry { number, start: Start::Root(root), base: None, results: false, timing: Timing::None, arms: false };
    let mut hooks = Vec::new();
    for (span, (head, back)) in decoded {
        let label = e.label();
        e.stands_for(Origin::Address(span.start));
        let label = e.here(label)?;
        displace(e, &head)?;
        ends(e, options, (site.address - SIGNAL_NUMBER_LEN, &back), entry)?;
        hooks.push(Hook { start: span.start, bytes: span.bytes.len(), label });
    }
    let counted = CountedPlace {
        address: site.address,
        number: site.number,
        offset: None,
        base: Base::Rsp,
        table: None,
        results: false,
        vdso: false,
    };
    Ok(SiteCode { hooks, counted: Some(counted), refused: None })
}

/// Returns the instructions before a handler's return, and the return.
fn exit(span: &Span) -> Option<(Vec<Instruction>, Instruction)> {
    let mut head = decode(span)?;
    let back = head.pop().filter(|i| i.code() == Code::Retnq)?;
    head.iter().all(movable).then_some((head, back))
}

/// Writes a handler's end: if it returns to `start`, the signal's return is counted; otherwise the handler just
/// returns.
fn ends(e: &mut Emitter, options: &Options, (start, back): (u64, &Instruction), entry: Entry) -> Emitted {
    let elsewhere = e.label();
    let there = MemoryOperand::with_base_displ(Register::RIP, BASE.wrapping_add(start) as i64);
    e.stands_for(Origin::Address(back.ip()));
    e.a.add_instruction(Instruction::with2(Code::Lea_r64_m, Register::RCX, there)?)?;
    asm!(e; cmp(qword_ptr(rsp), rcx); jne(elsewhere); lea(rsp, at(rsp, 8)););
    e.stands_for(Origin::Address(start));
    signal_ends(e, options, entry)?;
    asm!(e; jmp(BASE.wrapping_add(start)););
    let back = *back;
    e.stands_for(Origin::Address(back.ip()));
    e.here(elsewhere)?;
    astray(e)?;
    e.a.add_instruction(back)
}

/// Handles a handler that returns to another place. With cgo that is the C library's return from signals, or a caller
/// of the handler as a function: a signal's return is counted where it is made. A return whose bytes stay as well
/// belongs to another run-time, which does not count other ends than its own.
fn astray(e: &mut Emitter) -> Emitted {
    let counted = e.label();
    asm!(e; mov(rcx, qword_ptr(rsp)););
    // Compare one byte after the other: each is only read if the previous ones are as expected.
    for (nth, byte) in (0..).zip(SIGNAL_RETURN) {
        asm!(e; cmp(byte_ptr(rcx + nth), i32::from(byte as i8)); jne(counted););
    }
    asm!(e; mov(rcx, IMAGE + image::ASTRAY););
    e.a.lock().inc(qword_ptr(rcx))?;
    e.here(counted)?;
    Ok(())
}

/// Counts an `rt_sigreturn`, right before which all registers but rsp are free; behind it, eax holds the number again.
pub(super) fn signal_ends(e: &mut Emitter, options: &Options, entry: Entry) -> Emitted {
    elide_masks::forget_mask(e)?;
    if options.elide {
        elide_ids::before_others(e, RT_SIGRETURN)?;
    }
    before(e, options, entry)?;
    if options.results {
        super::on_return::made_again(e)?;
    }
    super::stack_bounds::handler_ends(e)
}
