//! Reads and wipes slots without asking the kernel about each: a program that makes a thread for each request ends
//! thousands of them a second.
//!
//! Which pages of a slot have memory is kept. It holds as long as the kernel has given the file no further page, of which
//! it keeps the number.

use crate::inproc::monitor::sys;
use foldhash::HashMap;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::ops::Range;
use std::os::linux::fs::MetadataExt;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use systoll_hooks::assemble::Words;
use systoll_hooks::layout::{record, slot};

/// Bytes of a slot whose memory is kept when its thread is gone, from the slot's start on, if the slot has a lot of memory:
/// enough for a few dozen contexts.
pub(super) const KEPT: u64 = 1 << 16;
/// Bytes of a slot up to which all its memory is kept, and of an image up to which slots keep so much. Slots of Python
/// threads have 170 KB. Finding the pages, giving some back and touching them again took more than half of the time that an
/// ended thread of a C program cost: 20,000 threads took 1.66 s of processor time, and take 0.90 (0.27 unwatched).
const ALL_KEPT: (u64, u64) = (1 << 18, 64 << 20);
/// Bytes of a block in which the kernel counts a file's memory (stat(2)).
const BLOCK: u64 = 512;

/// The pages of an image's slots that have memory.
#[derive(Default)]
pub(super) struct SlotPages(RefCell<Known>);

#[derive(Default)]
struct Known {
    /// The file's number of blocks when it was read last.
    blocks: u64,
    /// Ranges by the slot's offset, whole pages, as they were with this number of blocks.
    of_slot: HashMap<u64, Rc<[Range<u64>]>>,
}

impl SlotPages {
    /// Returns the memory of the slot at `slot` in the image `words`, which `file` holds; `None` if it is not mapped here.
    /// `read` asks the kernel for the parts that have memory, if the file has got or lost pages since it was asked.
    ///
    /// The slot's thread must be gone: a page that a running thread touches may be among the file's blocks already while the
    /// kernel still adds it.
    pub(super) fn gone<'a>(
        &'a self,
        (file, words): (&'a File, &'a [AtomicU64]),
        slot: Range<u64>,
        read: impl FnOnce(Range<u64>) -> Vec<Range<u64>>,
    ) -> Option<GoneSlot<'a>> {
        words.get(in_words(&slot))?;
        let blocks = file.metadata().ok()?.st_blocks();
        let mut known = self.0.borrow_mut();
        if known.blocks != blocks {
            *known = Known { blocks, of_slot: HashMap::default() };
        }
        let pages = Rc::clone(known.of_slot.entry(slot.start).or_insert_with(|| read(slot.clone()).into()));
        let gives_back = blocks * BLOCK > ALL_KEPT.1;
        Some(GoneSlot { of: self, file, words, start: slot.start, pages, gives_back, last: Cell::new(0) })
    }
}

/// The memory of a slot whose thread is gone.
pub(crate) struct GoneSlot<'a> {
    of: &'a SlotPages,
    file: &'a File,
    /// The image.
    words: &'a [AtomicU64],
    /// Offset of the slot in the image.
    start: u64,
    pages: Rc<[Range<u64>]>,
    /// True if the image has so much memory that its slots keep little.
    gives_back: bool,
    /// Index of the range read last: the next word usually lies there too.
    last: Cell<usize>,
}

impl GoneSlot<'_> {
    /// Zeroes the slot, except its buffers for windows, which are written before they are read. Keeps memory: allocating a
    /// page costs a thread more than counting everything about its creation.
    pub(super) fn clean(&self) {
        let records = self.start + slot::RECORDS;
        self.wipe(self.start..records);
        self.wipe_records(records..self.start + slot::LONG_CALLS);
        let all: u64 = self.pages.iter().map(|range| range.end - range.start).sum();
        let kept = self.start + KEPT;
        if (self.gives_back || all > ALL_KEPT.0) && self.pages.last().is_some_and(|last| last.end > kept) {
            sys::punch_hole(self.file, kept, slot::SIZE - KEPT);
            *self.of.0.borrow_mut() = Known::default();
        }
    }

    /// Zeroes the words of a range that have memory. Most are zero already, and what is only read stays in the program's
    /// caches.
    fn wipe(&self, within: Range<u64>) {
        for range in self.data(within) {
            for word in self.words.get(in_words(&range)).unwrap_or_default() {
                if word.load(Ordering::Relaxed) != 0 {
                    word.store(0, Ordering::Relaxed);
                }
            }
        }
    }

    /// Zeroes the records in a range that count anything.
    fn wipe_records(&self, within: Range<u64>) {
        let mut next = within.start;
        for range in self.data(within.clone()) {
            let at = |offset: u64| within.start + (offset - within.start) / record::SIZE * record::SIZE;
            let records = (at(range.start).max(next)..range.end).step_by(record::SIZE as usize);
            for record in records {
                next = record + record::SIZE;
                if [record::ENTERED, record::RETURNED, record::ELIDED]
                    .iter()
                    .any(|field| self.word(record + field) != 0)
                {
                    self.wipe(record..next);
                }
            }
        }
    }
}

impl Words for GoneSlot<'_> {
    fn word(&self, offset: u64) -> u64 {
        let lies_in = |n: usize| self.pages.get(n).is_some_and(|range| range.contains(&offset));
        if !lies_in(self.last.get()) {
            let Some(n) = (0..self.pages.len()).find(|n| lies_in(*n)) else { return 0 };
            self.last.set(n);
        }
        self.words.get((offset / 8) as usize).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn data(&self, within: Range<u64>) -> Vec<Range<u64>> {
        let cut = |range: &Range<u64>| range.start.max(within.start)..range.end.min(within.end);
        self.pages.iter().map(cut).filter(|range| !range.is_empty()).collect()
    }
}

/// Returns the indices of the words in a range of bytes.
fn in_words(bytes: &Range<u64>) -> Range<usize> {
    (bytes.start / 8) as usize..(bytes.end / 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inproc::monitor::shared::memory::Memory;
    use systoll_hooks::layout::record_offset;

    #[test]
    fn a_wiped_slot_is_read_anew_when_its_next_thread_counts_elsewhere() {
        let mut memory = Memory::new().unwrap();
        let id = memory.new_image().unwrap();
        let thread = id.slot(3);
        let sum = |memory: &Memory| -> u64 {
            let (words, start) = (memory.gone(thread).unwrap(), thread.offset());
            let data = words.data(start..start + slot::RINGS);
            data.into_iter().flat_map(|range| range.step_by(8)).map(|at| words.word(at)).sum()
        };
        assert_eq!(sum(&memory), 0);
        for (nth, record) in [0, 0, 200, 3].into_iter().enumerate() {
            let at = thread.offset() + record_offset(record).unwrap();
            memory.image(id).unwrap().set(at, 7);
            memory.image(id).unwrap().set(thread.offset() + slot::RINGS + 64, 9);
            assert_eq!(sum(&memory), 7, "{nth}");
            memory.clean_slot(thread);
            assert_eq!(sum(&memory), 0, "{nth}");
        }
        // A slot with much memory gives it back.
        for record in 0..400 {
            memory.image(id).unwrap().set(thread.offset() + record_offset(record).unwrap(), 1);
        }
        assert_eq!(sum(&memory), 400);
        memory.clean_slot(thread);
        assert_eq!(
            memory.gone(thread).unwrap().pages.iter().map(|range| range.end - range.start).sum::<u64>(),
            KEPT - slot::RECORDS
        );
        assert_eq!(sum(&memory), 0);
    }
}
