//! Finds out if code uses the gs segment itself, and by which instruction.
//!
//! Some compilers keep data among the code (GHC a table before each function). Decoded from a function's start to its
//! end, such data may look like anything. An instruction is evidence if control flow reaches it; one that changes the
//! gs base and hardly occurs by chance is evidence in any function.

use super::effects::is_plausible;
use super::image::Image;
use super::types::Evidence;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

/// Returns true if `i` accesses memory by gs, or its base or selector.
pub(super) fn uses_gs(i: &Instruction) -> bool {
    let selects = || {
        matches!(i.mnemonic(), Mnemonic::Mov | Mnemonic::Pop) && i.op0_register() == Register::GS
            || i.mnemonic() == Mnemonic::Lgs
    };
    match i.code() {
        Code::Wrgsbase_r32 | Code::Wrgsbase_r64 | Code::Rdgsbase_r32 | Code::Rdgsbase_r64 => true,
        _ if i.mnemonic() == Mnemonic::INVALID => false,
        _ if selects() => true,
        _ if i.segment_prefix() != Register::GS || i.mnemonic() == Mnemonic::Nop => false,
        _ => i.op_kinds().any(|kind| kind == OpKind::Memory),
    }
}

/// Returns true if `i` suggests that a function is not all code: no program may run it, it is what zeroes decode to,
/// or it uses gs, which hardly any program does.
pub(super) fn is_doubtful(i: &Instruction) -> bool {
    let zeroes = i.mnemonic() == Mnemonic::Add
        && i.len() == 2
        && i.op0_kind() == OpKind::Memory
        && i.memory_base() == Register::RAX
        && i.op1_register() == Register::AL;
    !is_plausible(i) || zeroes || uses_gs(i)
}

/// Returns true if `i` sets the gs base: it has at least four bytes, which hardly occur by chance.
pub(super) fn sets_gs_base(i: &Instruction) -> bool {
    matches!(i.code(), Code::Wrgsbase_r32 | Code::Wrgsbase_r64)
}

/// Returns the instruction at `address`, as evidence.
pub(super) fn evidence(image: &Image<'_>, address: u64) -> Option<Evidence> {
    let region = image.region(address)?;
    let bytes = region.slice(address, region.end());
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let len = decoder.can_decode().then(|| decoder.decode().len())?;
    Some(Evidence { address, bytes: bytes.get(..len)?.to_vec() })
}
