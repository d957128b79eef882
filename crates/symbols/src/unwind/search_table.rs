//! The search table of call frame information that linkers write.

use crate::elf::View;

/// The binary search table of `.eh_frame_hdr` (Linux Standard Base, "Exception Frames"), in the only encoding that
/// linkers write. A lookup reads a few pieces of it. gimli's reader is not used, because it overflows on a damaged
/// count.
#[derive(Debug)]
pub(super) struct SearchTable {
    header: View,
    addr: u64,
    rows: u64,
}

impl SearchTable {
    /// Opens a table of version 1: a pointer of 4 bytes to `.eh_frame`, a count of 4 bytes, rows of two 4-byte offsets
    /// from the header. Returns `None` for other encodings.
    pub(super) fn new(header: View, addr: u64) -> Option<Self> {
        const VERSION: u8 = 1;
        const POINTERS: [u8; 2] = [0x1b, 0x3b];
        const COUNT: u8 = 0x03;
        const ROWS: u8 = 0x3b;
        let known = matches!(header.read(0, 4)?[..], [VERSION, pointer, COUNT, ROWS] if POINTERS.contains(&pointer));
        let rows = u64::from(header.half(8)?).min(header.size().checked_sub(12)? / 8);
        (known && rows > 0).then_some(Self { header, addr, rows })
    }

    fn field(&self, row: u64, field: u64) -> u64 {
        let offset = self.header.half(12 + 8 * row + 4 * field).unwrap_or(0).cast_signed();
        self.addr.wrapping_add_signed(offset.into())
    }

    /// Returns the address of the last entry that starts at or before `addr`.
    pub(super) fn lookup(&self, addr: u64) -> Option<u64> {
        let (mut low, mut high) = (0, self.rows);
        while low < high {
            let middle = low.midpoint(high);
            if self.field(middle, 0) <= addr { low = middle + 1 } else { high = middle }
        }
        Some(self.field(low.checked_sub(1)?, 1))
    }
}
