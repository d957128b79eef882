//! Cuts one function's call frame information out of a large `.eh_frame`.
//!
//! Format: "Exception Frames" in the LSB core specification 5.0.

use super::arch::VENDOR;
use crate::elf::View;
use gimli::{
    BaseAddresses, CallFrameInstruction, EhFrame, EndianSlice, FrameDescriptionEntry, LittleEndian, UnwindSection,
};
use std::borrow::Cow;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Longest entry that is cut out, bytes. An entry with a 64-bit length is not: its first four bytes are 0xffffffff,
/// above this bound.
const MAX_ENTRY: u64 = 1 << 16;

/// `.eh_frame`, or a section cut out of it, and the offset of one entry.
pub(super) struct EhSection<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    pub(super) bases: BaseAddresses,
    pub(super) entry: usize,
}

impl EhSection<'_> {
    pub(super) fn section(&self) -> EhFrame<Slice<'_>> {
        let mut section = EhFrame::new(&self.bytes, LittleEndian);
        section.set_vendor(VENDOR);
        section
    }

    /// Returns the entry, if it covers `addr`.
    pub(super) fn entry(&self, addr: u64) -> Option<FrameDescriptionEntry<Slice<'_>>> {
        let parsed = self.section().fde_from_offset(&self.bases, self.entry.into(), EhFrame::cie_from_offset);
        parsed.ok().filter(|entry| entry.contains(addr))
    }
}

/// Returns a section with the entry at `offset` in `frames`, which is mapped at `addr`; before the entry is its CIE,
/// which it shares with others. Returns `None` if there is no such entry, or if it has a rare form for which the
/// whole section is needed.
pub(super) fn cut_out(frames: &View, offset: u64, addr: u64, bases: &BaseAddresses) -> Option<EhSection<'static>> {
    let mut entry = read(frames, offset)?;
    let field = offset.checked_add(4)?;
    let shared = read(frames, field.checked_sub(frames.half(field)?.into())?)?;
    let is_shared = shared.get(4..8)? == [0; 4];
    // An entry's second word is the distance back to the start of its CIE.
    entry.get_mut(4..8)?.copy_from_slice(&u32::try_from(shared.len() + 4).ok()?.to_le_bytes());
    let at = shared.len();
    // In the new section, PC-relative addresses come out right in the entry and wrong in the CIE. An unwinder needs
    // none of the CIE's, except for one instruction that no known CIE has.
    let bases = bases.clone().set_eh_frame(addr.wrapping_add(offset).wrapping_sub(at as u64));
    let small = EhSection { bytes: Cow::Owned([shared, entry].concat()), bases, entry: at };
    (is_shared && !sets_location(&small)?).then_some(small)
}

/// Returns the bytes of the entry at `offset`, with its length.
fn read(frames: &View, offset: u64) -> Option<Vec<u8>> {
    let len = u64::from(frames.half(offset)?);
    (4..MAX_ENTRY).contains(&len).then(|| frames.read(offset, len + 4))?
}

/// Returns true if an instruction of the CIE sets an address.
fn sets_location(small: &EhSection<'_>) -> Option<bool> {
    let section = small.section();
    let shared = section.cie_from_offset(&small.bases, 0.into()).ok()?;
    let mut instructions = shared.instructions(&section, &small.bases);
    while let Ok(Some(instruction)) = instructions.next() {
        if matches!(instruction, CallFrameInstruction::SetLoc { .. }) {
            return Some(true);
        }
    }
    Some(false)
}
