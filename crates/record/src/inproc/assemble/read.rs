//! Reading counts back: from an image's memory to rows for each site, context and thread.
//!
//! The memory belongs to the watched program, which may have written anything there: nothing read
//! is used as a place before it is checked, and no loop ends only by what is read.

use super::super::layout::{IMAGE, NODE_SIZE, NUMBERS, image, node, record, slot, slot_address};
use super::Blob;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of an image, by their offset in bytes. Where nothing is mapped there is zero.
///
/// An image is mostly holes. Reading holes of a mapped memfd fills them with memory, so whoever
/// has many threads to read rather implements this by reading the file's data ranges.
pub trait Words {
    /// The word at `offset`, a multiple of 8.
    fn word(&self, offset: u64) -> u64;
}

impl Words for [u8] {
    fn word(&self, offset: u64) -> u64 {
        let bytes = usize::try_from(offset).ok().and_then(|o| self.get(o..)?.first_chunk::<8>());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

impl Words for [AtomicU64] {
    fn word(&self, offset: u64) -> u64 {
        let cell = usize::try_from(offset / 8).ok().and_then(|i| self.get(i));
        cell.map_or(0, |cell| cell.load(Ordering::Acquire))
    }
}

/// All counts of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What was counted, by site and context; only where something was.
    pub rows: Vec<Row>,
    /// The threads that had a slot.
    pub threads: Vec<Thread>,
    /// What the counts lack.
    pub losses: Losses,
}

/// Calls from one site in one context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Index of the file in what was given to [`read`], and of the site in [`Blob::sites`];
    /// `None`: counted by number alone.
    pub site: Option<(usize, usize)>,
    /// The system call; `None` for vDSO functions, and where the number was lost.
    pub number: Option<u32>,
    /// Return addresses from the site outwards, as far as the tree tells them apart. Empty:
    /// context unknown, or the site tells none apart.
    pub path: Vec<u64>,
    /// Counts of each thread, by index of its slot.
    pub threads: Vec<(u64, SlotCounts)>,
}

/// What one thread counted of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotCounts {
    /// Calls entered.
    pub entered: u64,
    /// Calls whose return was seen.
    pub returned: u64,
    /// Whether a call was under way, as far as the thread's own notes tell. Others that were not
    /// seen to return were left by a jump out of a signal handler: the kernel had ended them before
    /// the handler began.
    pub under_way: bool,
    /// Of these, failed ones.
    pub failed: u64,
    /// Cycles inside calls.
    pub cycles: u64,
    /// Cycles inside calls during which the thread was scheduled out or met a signal.
    pub waited: u64,
    /// Cycles of the longest call.
    pub longest: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Calls answered in place, besides `entered`.
    pub elided: u64,
    /// Calls by power of two of cycles; fewer than `returned` where some could not be timed.
    pub histogram: [u64; record::BUCKETS as usize],
    /// Failed calls by errno; fewer than `failed` where the table was full.
    pub errors: Vec<(u16, u64)>,
}

/// A thread's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Index of the slot.
    pub slot: u64,
    /// Index of its maker's slot.
    pub parent: Option<u64>,
    /// Thread id, zero if never known.
    pub tid: u32,
    /// Process id, zero if never known.
    pub pid: u32,
    /// Thread id as its maker saw it, zero if never known.
    pub made_as: u32,
    /// Whether it was about to end.
    pub leaving: bool,
}

/// Why counts may be short, or less told apart than they could be. All zero: they are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Threads that shared a slot, where additions may have been lost.
    pub homeless: u64,
    /// Questions nobody answered: contexts after that are counted at roots.
    pub unanswered: u64,
    /// Questions that were not contexts and were not asked: new code or a new program unwatched.
    pub unheard: u64,
    /// Returns that could not be matched with their calls: counted, at the root, untimed.
    pub unmatched: u64,
    /// Contexts not asked for, counted at roots.
    pub unasked: u64,
    /// Failed calls whose errno is not known.
    pub errors: u64,
    /// Nodes or slots whose words make no sense, and were left out.
    pub damaged: u64,
}

/// A failed call's key in a slot's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Failure {
    /// Offset of the record.
    pub record: u64,
    /// Why.
    pub errno: u16,
}

/// Reads an image whose files' roots lie in the given regions. The program may be running: what
/// is read then is what each thread had counted at some moment during it.
#[must_use]
pub fn read<W: Words + ?Sized>(words: &W, files: &[(u64, &Blob)]) -> Reading {
    let mut reader = Reader { words, slots: Vec::new(), seen: HashSet::new(), out: Reading::default() };
    reader.threads();
    for (file, (region, blob)) in files.iter().enumerate() {
        for (index, site) in blob.sites.iter().enumerate() {
            let at = Some((file, index));
            reader.tree(at, site.number, region.wrapping_add(index as u64 * NODE_SIZE));
            let Some(table) = site.table else { continue };
            for number in 0..NUMBERS {
                let entry = region.wrapping_add(u64::from(table) + 8 * number);
                let root = words.word(entry.wrapping_sub(IMAGE));
                if root != 0 {
                    reader.tree(at, Some(number as u32), root);
                }
            }
        }
    }
    for number in 0..NUMBERS {
        reader.tree(None, Some(number as u32), IMAGE + image::NUMBER_ROOTS + number * NODE_SIZE);
    }
    reader.out
}

struct Slot {
    index: u64,
    /// Record of the call under way.
    under_way: Option<u64>,
    errors: BTreeMap<Failure, u64>,
}

struct Reader<'a, W: ?Sized> {
    words: &'a W,
    slots: Vec<Slot>,
    /// Nodes and records met: none is counted twice.
    seen: HashSet<u64>,
    out: Reading,
}

impl<W: Words + ?Sized> Reader<'_, W> {
    fn threads(&mut self) {
        let header = |offset| self.words.word(offset);
        self.out.losses = Losses {
            homeless: header(image::HOMELESS),
            unanswered: header(image::UNANSWERED),
            unheard: header(image::UNHEARD),
            unmatched: header(image::UNMATCHED),
            ..Losses::default()
        };
        for index in 0..image::SLOT_COUNT {
            let field = |offset| self.words.word(image::SLOTS + index * slot::SIZE + offset);
            let own = field(slot::SELF);
            if own != slot_address(index) {
                self.out.losses.damaged += u64::from(own != 0);
                continue;
            }
            let parent = field(slot::PARENT).checked_sub(slot_address(0));
            self.out.threads.push(Thread {
                slot: index,
                parent: parent.map(|p| p / slot::SIZE).filter(|p| *p < image::SLOT_COUNT),
                tid: field(slot::TID) as u32,
                pid: field(slot::PID) as u32,
                made_as: field(slot::MADE_AS) as u32,
                leaving: field(slot::LEAVING) != 0,
            });
            add(&mut self.out.losses.unasked, field(slot::UNASKED));
            add(&mut self.out.losses.errors, field(slot::ERRORS_LOST));
            self.slots.push(Slot { index, under_way: self.under_way(index), errors: self.errors(index) });
        }
    }

    /// Record of the call that a slot's thread has not come back from. Who is about to end is in
    /// none but that: what else stands in the slot was left behind.
    fn under_way(&self, index: u64) -> Option<u64> {
        let field = |offset| self.words.word(image::SLOTS + index * slot::SIZE + offset);
        let node = field(slot::NODE).wrapping_sub(IMAGE);
        let within = (image::NUMBER_ROOTS..image::SLOTS).contains(&node) && node.is_multiple_of(8);
        (field(slot::RSP) != 0 && field(slot::LEAVING) == 0 && within).then(|| self.words.word(node + node::RECORD))
    }

    fn errors(&self, index: u64) -> BTreeMap<Failure, u64> {
        let entries = slot::ERROR_GROUPS * slot::ERROR_GROUP / 16;
        let at = |i| image::SLOTS + index * slot::SIZE + slot::ERRORS + 16 * i;
        let entry = |i| (self.words.word(at(i)), self.words.word(at(i) + 8));
        let used = (0..entries).map(entry).filter(|(key, _)| *key != 0);
        used.fold(BTreeMap::new(), |mut errors, (key, count)| {
            add(errors.entry(Failure { record: key >> 12, errno: (key & 0xfff) as u16 }).or_default(), count);
            errors
        })
    }

    /// Rows of the tree whose root is at address `root`.
    fn tree(&mut self, site: Option<(usize, usize)>, number: Option<u32>, root: u64) {
        let Some(own) = self.node(root) else { return };
        self.row(site, number, Vec::new(), own);
        // (node, its path's length) still to be looked at; `path` is that of the last one.
        let mut open = vec![(self.words.word(own + node::CHILD), 0)];
        let mut path = Vec::new();
        while let Some((at, depth)) = open.pop() {
            if at == root || at <= node::OTHERS {
                continue;
            }
            let Some(offset) = self.node(at) else { continue };
            path.truncate(depth);
            path.push(self.words.word(offset + node::WORD));
            self.row(site, number, path.clone(), offset);
            open.push((self.words.word(offset + node::SIBLING), depth));
            open.push((self.words.word(offset + node::CHILD), depth + 1));
        }
    }

    /// Offset of the node at an address, if one may lie there and it is a new one.
    fn node(&mut self, at: u64) -> Option<u64> {
        let offset = at.wrapping_sub(IMAGE);
        let within = (image::NUMBER_ROOTS..image::SLOTS).contains(&offset) && offset.is_multiple_of(8);
        let new = within && self.seen.len() < MOST_NODES && self.seen.insert(at);
        self.out.losses.damaged += u64::from(!new);
        new.then_some(offset)
    }

    fn row(&mut self, site: Option<(usize, usize)>, number: Option<u32>, path: Vec<u64>, node: u64) {
        let at = self.words.word(node + node::RECORD);
        let within = (slot::RECORDS..=slot::SIZE - record::SIZE).contains(&at);
        if !within || !(at - slot::RECORDS).is_multiple_of(record::SIZE) || !self.seen.insert(at) {
            self.out.losses.damaged += 1;
            return;
        }
        let counts = |s: &Slot| Some((s.index, self.counts(s, at)?));
        let threads: Vec<_> = self.slots.iter().filter_map(counts).collect();
        if !threads.is_empty() {
            self.out.rows.push(Row { site, number, path, threads });
        }
    }

    /// What a slot has in a record, if anything.
    fn counts(&self, of: &Slot, at: u64) -> Option<SlotCounts> {
        let field = |offset| self.words.word(image::SLOTS + of.index * slot::SIZE + at + offset);
        let (entered, returned, elided) = (field(record::ENTERED), field(record::RETURNED), field(record::ELIDED));
        if entered | returned | elided == 0 {
            return None;
        }
        let of_record = Failure { record: at, errno: 0 }..Failure { record: at + 1, errno: 0 };
        Some(SlotCounts {
            entered,
            returned,
            under_way: of.under_way == Some(at),
            elided,
            failed: field(record::FAILED),
            cycles: field(record::CYCLES),
            waited: field(record::WAITED),
            longest: field(record::LONGEST),
            bytes: field(record::BYTES),
            histogram: std::array::from_fn(|i| field(record::HISTOGRAM + 8 * i as u64)),
            errors: of.errors.range(of_record).map(|(key, count)| (key.errno, *count)).collect(),
        })
    }
}

/// More nodes than any image has room for records.
const MOST_NODES: usize = 1 << 20;

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}
