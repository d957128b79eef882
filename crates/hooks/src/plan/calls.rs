//! The calls in a stretch of code.

use super::extents::Extent;
use super::image::Image;
use super::pairs::{has_bytes, last_bytes};
use super::quick::{Step, Steps};
use iced_x86::{Instruction, Mnemonic};

/// Bytes of a `syscall` instruction.
pub(super) const SYSCALL_LEN: usize = 2;

/// Returns true for `int $0x80`, by which 64-bit programs, too, can make calls, with the numbers of 32-bit programs.
pub(super) fn is_interrupt(i: &Instruction) -> bool {
    i.mnemonic() == Mnemonic::Int && i.immediate8() == 0x80
}

/// Returns true if the bytes of a call occur in `extent`.
pub(super) fn may_have_call(image: &Image<'_>, extent: &Extent) -> bool {
    has_bytes(bytes_of(image, extent))
}

/// Returns the bytes of `extent`.
pub(super) fn bytes_of<'a>(image: &Image<'a>, extent: &Extent) -> &'a [u8] {
    image.region(extent.start).map_or(&[], |region| region.slice(extent.start, extent.end))
}

/// Returns true if a `syscall` or `int $0x80` is among the instructions of `extent`.
pub(super) fn has_call(image: &Image<'_>, extent: &Extent) -> bool {
    let Some(region) = image.region(extent.start).filter(|_| may_have_call(image, extent)) else { return false };
    let Some(last) = last_bytes(bytes_of(image, extent)) else { return false };
    let last = extent.start.saturating_add(last as u64);
    let mut steps = Steps::of(region, (extent.start, extent.end), image.is_fixed);
    while let Some((_, step)) = steps.next_of_note().filter(|(ip, _)| *ip <= last) {
        let i = steps.asked();
        if step == Step::Ask && (i.mnemonic() == Mnemonic::Syscall || is_interrupt(i)) {
            return true;
        }
    }
    false
}
