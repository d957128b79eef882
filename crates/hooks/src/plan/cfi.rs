//! Call frame information: the ranges of functions, the places where exceptions land, and the distance of the frame
//! from rsp.
//!
//! Formats: "DWARF Extensions" and "Exception Frames" in the LSB core specification 5.0; the language-specific data
//! as gcc's `unwind-c.c` reads it.

use super::image::Image;
use super::types::CfaOffset;
use gimli::{EhFrame, LittleEndian, UnwindSection};
use systoll_binfile::cfi::Functions;

/// Number of rsp (System V ABI).
const RSP: gimli::Register = gimli::Register(7);
/// Bytes read of tables that functions may share, at most, so that a million functions can't refer to one long table.
const BUDGET: usize = 256 << 20;

type Slice<'a> = gimli::EndianSlice<'a, LittleEndian>;

/// A file's call frame information.
pub(super) struct Cfi<'a> {
    section: EhFrame<Slice<'a>>,
    bases: gimli::BaseAddresses,
    pub(super) functions: Functions,
    context: Box<gimli::UnwindContext<usize>>,
    budget: usize,
}

impl<'a> Cfi<'a> {
    /// Reads all entries; there are none if the file has no such table. A damaged table ends early.
    pub(super) fn read(image: &Image<'a>) -> Self {
        let (at, data) = image.eh_frame.unwrap_or_default();
        Self {
            section: EhFrame::new(data, LittleEndian),
            bases: gimli::BaseAddresses::default().set_eh_frame(at).set_text(image.text),
            functions: Functions::of_eh_frame(at, data, Some(image.text)),
            context: Box::default(),
            budget: BUDGET,
        }
    }

    /// Calls `land` with every address at which an exception may land. Returns `None` if the tables are damaged or
    /// absurd, so that nothing may be assumed.
    pub(super) fn landing_pads(&self, image: &Image<'_>, mut land: impl FnMut(u64)) -> Option<()> {
        let mut budget = BUDGET;
        for function in self.functions.all() {
            let Some(lsda) = function.lsda else { continue };
            let Some(bytes) = image.from(lsda) else { continue };
            let used = call_sites(lsda, bytes, function.start, &mut land)?;
            budget = budget.checked_sub(used)?;
        }
        Some(())
    }

    /// Returns the distance of the frame above rsp at `address`, if the table defines the frame by rsp.
    pub(super) fn cfa_offset(&mut self, address: u64) -> Option<CfaOffset> {
        let function = *self.functions.around(address)?;
        self.budget = self.budget.checked_sub(function.entry_size)?;
        let fde = self.section.fde_from_offset(&self.bases, function.offset.into(), EhFrame::cie_from_offset).ok()?;
        let row = fde.unwind_info_for_address(&self.section, &self.bases, &mut self.context, address).ok()?;
        match row.cfa() {
            gimli::CfaRule::RegisterAndOffset { register: RSP, offset } => u32::try_from(*offset).ok().map(CfaOffset),
            _ => None,
        }
    }
}

/// Reads one function's call-site table, and calls `land` for each landing pad. Returns the number of bytes read.
fn call_sites(at: u64, bytes: &[u8], function: u64, land: &mut impl FnMut(u64)) -> Option<usize> {
    let mut reader = Lsda { at, rest: bytes };
    let base_encoding = reader.byte()?;
    let base = if base_encoding == OMIT { function } else { reader.encoded(base_encoding)? };
    if reader.byte()? != OMIT {
        reader.uleb()?;
    }
    let encoding = reader.byte()?;
    let size = usize::try_from(reader.uleb()?).ok()?;
    let mut table = Lsda { at: reader.at, rest: reader.rest.get(..size)? };
    while !table.rest.is_empty() {
        let (_start, _length) = (table.encoded(encoding)?, table.encoded(encoding)?);
        let pad = table.encoded(encoding)?;
        table.uleb()?;
        if pad != 0 {
            land(base.wrapping_add(pad));
        }
    }
    Some(bytes.len() - reader.rest.len() + size)
}

/// Encoding that means no value (DW_EH_PE_omit).
const OMIT: u8 = 0xff;

/// Language-specific data, read from the front.
struct Lsda<'a> {
    at: u64,
    rest: &'a [u8],
}

impl Lsda<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        self.at = self.at.wrapping_add(N as u64);
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[b]| b)
    }

    fn uleb(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// Reads a value in one of the forms of DW_EH_PE_*, absolute or relative to its own place.
    fn encoded(&mut self, encoding: u8) -> Option<u64> {
        let at = self.at;
        let value = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => u64::from_le_bytes(self.take()?),
            0x01 => self.uleb()?,
            0x02 => u64::from(u16::from_le_bytes(self.take()?)),
            0x03 => u64::from(u32::from_le_bytes(self.take()?)),
            0x0a => i64::from(i16::from_le_bytes(self.take()?)) as u64,
            0x0b => i64::from(i32::from_le_bytes(self.take()?)) as u64,
            _ => return None,
        };
        match encoding & 0xf0 {
            0x00 => Some(value),
            0x10 if value != 0 => Some(value.wrapping_add(at)),
            0x10 => Some(0),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::call_sites;

    fn pads(at: u64, bytes: &[u8], function: u64) -> Option<Vec<u64>> {
        let mut pads = Vec::new();
        call_sites(at, bytes, function, &mut |pad| pads.push(pad)).map(|_| pads)
    }

    #[test]
    fn landing_pads_are_relative_to_the_function() {
        // The table has no base, types 16 bytes on, and uleb128 call sites: one lands at 0x20, one nowhere, one at
        // 0x90.
        let table = [0xff, 0x9b, 16, 0x01, 13, 0, 5, 0x20, 0, 5, 6, 0, 0, 12, 3, 0x90, 0x01, 1, 0, 0];
        assert_eq!(pads(0x9000, &table, 0x1000), Some(vec![0x1020, 0x1090]));
    }

    #[test]
    fn a_split_function_has_a_base_of_its_own() {
        // The table is one that gcc writes for a `.cold` part: its base is pcrel sdata4, 0x100 before its own place.
        let table = [0x1b, 0x00, 0xff, 0xff, 0xff, 0xff, 0x03, 13, 0, 0, 0, 0, 4, 0, 0, 0, 8, 0, 0, 0, 0];
        assert_eq!(pads(0x9000, &table, 0x1000), Some(vec![0x8f01 + 8]));
    }

    #[test]
    fn damaged_tables_are_rejected() {
        assert_eq!(pads(0, &[], 0), None);
        assert_eq!(pads(0, &[0xff, 0xff, 0x01, 200, 0, 0, 0, 0], 0), None);
        assert_eq!(pads(0, &[0xff, 0xff, 0x01, 2, 0, 0], 0), None, "ends amid an entry");
        assert_eq!(pads(0, &[0xff, 0xff, 0x77, 4, 0, 0, 0, 0], 0), None, "no such encoding");
    }
}
