//! Contents of an image at one moment.

use std::cell::Cell;
use std::ops::Range;

/// An image's words at one moment.
#[derive(Default)]
pub(crate) struct Snapshot {
    /// Offset and bytes of each range, by rising offset.
    ranges: Vec<(u64, Vec<u8>)>,
    /// Index of the range read last: the next word usually lies there too.
    last: Cell<usize>,
}

impl Snapshot {
    /// Creates a snapshot of data from [`Memory::slot_data`](super::memory::Memory::slot_data).
    pub(crate) fn of(ranges: Vec<(u64, Vec<u8>)>) -> Self {
        Self { ranges, last: Cell::new(0) }
    }
}

impl systoll_hooks::assemble::Words for Snapshot {
    fn data(&self, within: Range<u64>) -> Vec<Range<u64>> {
        let first = self.ranges.partition_point(|(start, bytes)| start + bytes.len() as u64 <= within.start);
        let ranges = self.ranges.get(first..).unwrap_or_default().iter();
        let cut =
            |(start, bytes): &(u64, Vec<u8>)| (*start).max(within.start)..(start + bytes.len() as u64).min(within.end);
        ranges.map(cut).take_while(|range| range.start < range.end).collect()
    }

    fn word(&self, offset: u64) -> u64 {
        let found = self.together(offset, 8).and_then(<[u8]>::first_chunk);
        found.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    fn together(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let within = |index: usize| {
            let (start, bytes) = self.ranges.get(index)?;
            bytes.get(usize::try_from(offset.checked_sub(*start)?).ok()?..)?.get(..len)
        };
        within(self.last.get()).or_else(|| {
            let index = self.ranges.partition_point(|(start, _)| *start <= offset).checked_sub(1)?;
            self.last.set(index);
            within(index)
        })
    }
}
