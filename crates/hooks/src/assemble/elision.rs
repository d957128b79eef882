//! Counts calls that are answered in place.

use super::emitter::{Emitted, Emitter, asm, at, gs_at};
use super::entry::Entry;
use super::tree_walk::walk;
use crate::layout::{GLOBAL, IMAGE, global, image, node, record};
use iced_x86::code_asm::*;

/// Goes to `real` unless calls with this bit may be answered in place now: both the image's word and the global word
/// must allow it. Lost: `free`, flags.
pub(super) fn may_answer(e: &mut Emitter, bit: u32, free: AsmRegister64, real: CodeLabel) -> Emitted {
    for word in [IMAGE + image::ELIDE, GLOBAL + global::ANSWERING] {
        asm!(e; mov(free, word); test(dword_ptr(free), bit as i32); je(real););
    }
    Ok(())
}

/// Counts a call that is answered in place.
pub(super) fn count(e: &mut Emitter, entry: Entry) -> Emitted {
    walk(e, entry.start, entry.base, rcx)?;
    asm!(e; mov(rcx, at(r11, node::RECORD)); inc(gs_at(rcx, record::ELIDED)););
    Ok(())
}
