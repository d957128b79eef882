//! Counts calls that are answered in place.

use super::emitter::{Emitted, Emitter, asm, at, gs_at};
use super::entry::Entry;
use super::tree_walk::walk;
use crate::layout::{node, record};
use iced_x86::code_asm::*;

/// Counts a call that is answered in place.
pub(super) fn count(e: &mut Emitter, entry: Entry) -> Emitted {
    walk(e, entry.start, entry.base, rcx)?;
    asm!(e; mov(rcx, at(r11, node::RECORD)); inc(gs_at(rcx, record::ELIDED)););
    Ok(())
}
