//! The slot that is shared by all threads that found no free one.

use super::emitter::{Emitted, Emitter, asm};
use crate::layout::{image, slot};
use iced_x86::code_asm::*;

/// Goes to `shared` if several threads share the slot: nothing can be known of one thread there.
pub(super) fn unless_shared(e: &mut Emitter, shared: CodeLabel) -> Emitted {
    asm!(e; cmp(word_ptr(slot::TAG).gs(), image::SLOT_COUNT as i32); je(shared););
    Ok(())
}
