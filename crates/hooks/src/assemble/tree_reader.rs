//! Reading counts back: from an image's memory to rows for each site, context and thread.
//!
//! The memory belongs to the watched program, which may have written anything there: nothing read
//! is used as a place before it is checked, and no loop ends only by what is read.

use super::Blob;
use crate::layout::{
    IMAGE, NODE_SIZE, NUMBERS, TABLE_LEN, call_of_entry, image, may_hold_node, node, record, root_record_offset, slot,
    slot_address, slots_used, timing,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use systoll_model::Sysno;

/// Words of an image, by their offset in bytes. Where nothing is mapped there is zero.
///
/// An image is mostly holes. Reading holes of a mapped memfd fills them with memory, so a caller that
/// has many threads to read rather implements this by reading the file's data ranges.
pub trait Words {
    /// The word at `offset`, a multiple of 8.
    fn word(&self, offset: u64) -> u64;

    /// Ranges of `within`, ascending, outside which every word is zero.
    fn data(&self, within: Range<u64>) -> Vec<Range<u64>> {
        vec![within]
    }

    /// The bytes from `offset` on, where it has them in one piece: all words of a node or a record are found by one look
    /// then.
    fn together(&self, _offset: u64, _len: usize) -> Option<&[u8]> {
        None
    }
}

/// Some words that lie next to each other.
struct Part<'w, W: ?Sized> {
    words: &'w W,
    offset: u64,
    together: Option<&'w [u8]>,
}

impl<'w, W: Words + ?Sized> Part<'w, W> {
    fn new(words: &'w W, offset: u64, len: u64) -> Self {
        Self { words, offset, together: words.together(offset, len as usize) }
    }

    /// The word at `field`, counted from the beginning.
    fn word(&self, field: u64) -> u64 {
        let here = self.together.and_then(|bytes| bytes.get(field as usize..)?.first_chunk());
        here.map_or_else(|| self.words.word(self.offset.wrapping_add(field)), |word| u64::from_le_bytes(*word))
    }
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
    /// Calls made that were to be answered in place.
    pub in_place: MadeInPlace,
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
    /// Cycles of the shortest call; `None`: none was timed.
    pub shortest: Option<u64>,
    /// Bytes moved.
    pub bytes: u64,
    /// Calls answered in place, besides `entered`.
    pub elided: u64,
    /// What is known of the calls that were timed for their blocks, and by them.
    pub sampled: Sampled,
    /// Calls by power of two of cycles, one timed for its block counted for all of it; fewer than `returned`
    /// where some could not be timed.
    pub histogram: [u64; record::BUCKETS as usize],
    /// Failed calls by errno; fewer than `failed` where the table was full.
    pub errors: Vec<(u16, u64)>,
}

/// Calls of a node that were timed for their blocks, see [`crate::layout::timing`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    /// How many.
    pub calls: u64,
    /// How many of all cycles are theirs.
    pub cycles: u64,
    /// Sum of squares of their cycles, see [`crate::layout::timing::SQUARED_MOST`].
    pub squares: u64,
    /// Like `waited` of [`SlotCounts`], of theirs, which are not among that.
    pub waited: u64,
    /// Whether one of a block is timed now, though perhaps of none yet.
    pub settled: bool,
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
    /// Questions without an answer: contexts after that are counted at roots.
    pub unanswered: u64,
    /// Questions that were not contexts and were not asked: new code or a new program unwatched.
    pub unheard: u64,
    /// Returns that could not be matched with their calls: counted, at the root, untimed.
    pub unmatched: u64,
    /// Signals' handlers that returned elsewhere than where their returns are counted.
    pub astray: u64,
    /// Contexts not asked for, counted at roots.
    pub unasked: u64,
    /// Failed calls whose errno is not known.
    pub errors: u64,
    /// Nodes or slots whose words make no sense, and were left out.
    pub damaged: u64,
}

impl Losses {
    /// Adds what else is lost.
    pub fn add(&mut self, more: &Self) {
        let Self { homeless, unanswered, unheard, unmatched, astray, unasked, errors, damaged } = *more;
        add(&mut self.homeless, homeless);
        add(&mut self.unanswered, unanswered);
        add(&mut self.unheard, unheard);
        add(&mut self.unmatched, unmatched);
        add(&mut self.astray, astray);
        add(&mut self.unasked, unasked);
        add(&mut self.errors, errors);
        add(&mut self.damaged, damaged);
    }
}

/// Calls made that were to be answered in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MadeInPlace {
    /// Those that had to be, for each of [`slot::ANSWERS`], then `rt_sigprocmask`.
    pub needed: [u64; slot::ANSWER_COUNT as usize + 1],
    /// `rt_sigprocmask` calls that changed nothing, by [`slot::WHY`].
    pub missed: [u64; slot::WHYS as usize],
}

impl MadeInPlace {
    /// Adds others.
    pub fn add(&mut self, more: &Self) {
        let sums = self.needed.iter_mut().chain(&mut self.missed);
        sums.zip(more.needed.iter().chain(&more.missed)).for_each(|(sum, n)| add(sum, *n));
    }
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
    let mut counted = Touched::default();
    let had = |index: &u64| words.word(image::SLOTS + index * slot::SIZE + slot::SELF) != 0;
    (0..image::SLOT_COUNT).filter(had).for_each(|index| counted.add(words, index));
    let nodes = Nodes::read_counted(words, files, &counted);
    let mut out = Reading { losses: nodes.losses, ..Reading::default() };
    let mut counts: Vec<Vec<(u64, SlotCounts)>> = vec![Vec::new(); nodes.all.len()];
    for index in 0..image::SLOT_COUNT {
        let Some(slot) = nodes.slot(words, index) else { continue };
        out.losses.add(&slot.losses);
        out.in_place.add(&slot.in_place);
        out.threads.extend(slot.thread);
        for (node, of_slot) in slot.counts {
            if let Some(of_node) = counts.get_mut(node) {
                of_node.push((index, of_slot));
            }
        }
    }
    let counted = nodes.all.into_iter().zip(counts).filter(|(_, threads)| !threads.is_empty());
    let mut rows: Vec<_> = counted.collect();
    rows.sort_by_key(|(node, _)| node.order);
    let row = |(node, threads): (Node, Vec<_>)| Row { site: node.site, number: node.number, path: node.path, threads };
    out.rows = rows.into_iter().map(row).collect();
    out
}

/// Slots that may have been used: as many as were drawn and there were, and the last, if any thread
/// shared it.
pub fn slots_drawn<W: Words + ?Sized>(words: &W) -> impl Iterator<Item = u64> + use<W> {
    let drawn = slots_used(words.word(image::NEXT_SLOT), words.word(image::GIVEN));
    let shared = words.word(image::HOMELESS) > 0 && drawn < image::SLOT_COUNT;
    (0..drawn).chain(shared.then_some(image::SLOT_COUNT - 1))
}

/// Where calls are counted: a site's root, or a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// File, as in what [`Nodes::read`] was given, and site; none for a number counted without.
    pub site: Option<(usize, usize)>,
    /// The system call, where it is known.
    pub number: Option<u32>,
    /// Return addresses, innermost first.
    pub path: Vec<u64>,
    /// Its own address in a watched process.
    pub address: u64,
    /// Offset of its record in every slot.
    record: u64,
    /// Its place in the order they were met.
    order: usize,
}

#[cfg(test)]
impl Node {
    /// One that stands for no site.
    pub(super) fn alone(address: u64) -> Self {
        Self { site: None, number: Some(0), path: Vec::new(), address, record: 0, order: 0 }
    }
}

/// All nodes of an image, and what the image's header says is lost.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    /// By rising record.
    pub all: Vec<Node>,
    /// Of the whole image; what slots lack comes on top.
    pub losses: Losses,
}

/// What a slot holds.
#[derive(Clone, Debug)]
pub struct SlotReading {
    /// Its thread; none where it is the last slot and makes no claim.
    pub thread: Option<Thread>,
    /// Index of the node, and counts; only where there are any.
    pub counts: Vec<(usize, SlotCounts)>,
    /// What its counts lack.
    pub losses: Losses,
    /// Calls made that were to be answered in place.
    pub in_place: MadeInPlace,
}

/// At which records threads have counted. Most of a program's nodes are none of theirs: places in its files that made no
/// call.
#[derive(Clone, Debug, Default)]
pub struct Touched(Vec<bool>);

impl Touched {
    /// Takes in what slot `index` holds.
    pub fn add<W: Words + ?Sized>(&mut self, words: &W, index: u64) {
        self.0.resize(slot::RECORD_COUNT as usize, false);
        let records = image::SLOTS + index * slot::SIZE + slot::RECORDS;
        let end = records + slot::RECORD_COUNT * record::SIZE;
        for range in words.data(records..end) {
            let (first, last) = ((range.start - records) / record::SIZE, (range.end - records).div_ceil(record::SIZE));
            for (at, counted) in (first..last).zip(self.0.iter_mut().skip(first as usize)) {
                *counted |= has_counts(&Part::new(words, records + at * record::SIZE, record::SIZE));
            }
        }
    }

    fn has(&self, record: usize) -> bool {
        self.0.get(record).is_some_and(|counted| *counted)
    }

    /// Whether anything was counted by number alone.
    fn by_number(&self) -> bool {
        let index = |n| Some(((root_record_offset(n)? - slot::RECORDS) / record::SIZE) as usize);
        (0..NUMBERS).filter_map(index).any(|index| self.has(index))
    }
}

/// Whether anything is counted in a record.
fn has_counts<W: Words + ?Sized>(record: &Part<'_, W>) -> bool {
    [record::ENTERED, record::RETURNED, record::ELIDED].iter().any(|field| record.word(*field) != 0)
}

impl Nodes {
    /// Reads an image's trees.
    #[must_use]
    pub fn read<W: Words + ?Sized>(words: &W, files: &[(u64, &Blob)]) -> Self {
        Self::read_some(words, files, None)
    }

    /// The same without nodes at which nothing was counted.
    #[must_use]
    pub fn read_counted<W: Words + ?Sized>(words: &W, files: &[(u64, &Blob)], counted: &Touched) -> Self {
        Self::read_some(words, files, Some(counted))
    }

    fn read_some<W: Words + ?Sized>(words: &W, files: &[(u64, &Blob)], counted: Option<&Touched>) -> Self {
        let header = |offset| words.word(offset);
        let losses = Losses {
            homeless: header(image::HOMELESS),
            unanswered: header(image::UNANSWERED),
            unheard: header(image::UNHEARD),
            unmatched: header(image::UNMATCHED),
            astray: header(image::ASTRAY),
            ..Losses::default()
        };
        let mut reader = Reader {
            words,
            seen: vec![false; slot::RECORD_COUNT as usize],
            counted,
            between: 0,
            out: Self { all: Vec::new(), losses },
        };
        for (file, (region, blob)) in files.iter().enumerate() {
            for (index, site) in blob.sites.iter().enumerate() {
                let at = Some((file, index));
                reader.tree(at, site.number.map(|n| Sysno::made(n).0), region.wrapping_add(index as u64 * NODE_SIZE));
                let Some(table) = site.table else { continue };
                let table = region.wrapping_add(u64::from(table));
                let start = table.wrapping_sub(IMAGE);
                if words.data(start..start.saturating_add(8 * TABLE_LEN)).is_empty() {
                    continue;
                }
                for number in 0..TABLE_LEN {
                    let entry = table.wrapping_add(8 * number);
                    let root = words.word(entry.wrapping_sub(IMAGE));
                    if root != 0 {
                        reader.tree(at, Some(call_of_entry(number).0), root);
                    }
                }
            }
        }
        let by_number = counted.is_none_or(Touched::by_number);
        for number in (0..NUMBERS).filter(|_| by_number) {
            reader.tree(None, Some(call_of_entry(number).0), IMAGE + image::NUMBER_ROOTS + number * NODE_SIZE);
        }
        let mut out = reader.out;
        out.all.sort_by_key(|node| node.record);
        out
    }

    /// Reads slot `index`; `None` if no thread has it.
    #[must_use]
    pub fn slot<W: Words + ?Sized>(&self, words: &W, index: u64) -> Option<SlotReading> {
        let start = image::SLOTS + index * slot::SIZE;
        let field = |offset| words.word(start + offset);
        let own = field(slot::SELF);
        if own != slot_address(index) {
            let losses = Losses { damaged: u64::from(own != 0), ..Losses::default() };
            let in_place = MadeInPlace::default();
            return (own != 0).then_some(SlotReading { thread: None, counts: Vec::new(), losses, in_place });
        }
        let parent = field(slot::PARENT).checked_sub(slot_address(0));
        let thread = Thread {
            slot: index,
            parent: parent.map(|p| p / slot::SIZE).filter(|p| *p < image::SLOT_COUNT),
            tid: field(slot::TID) as u32,
            pid: field(slot::PID) as u32,
            made_as: field(slot::MADE_AS) as u32,
            leaving: field(slot::LEAVING) != 0,
        };
        let losses = Losses { unasked: field(slot::UNASKED), errors: field(slot::ERRORS_LOST), ..Losses::default() };
        let held = Held { start, under_way: self.under_way(words, start), errors: errors(words, start) };
        let mut counts = Vec::new();
        let mut next = 0;
        for range in words.data(start + slot::RECORDS..start + slot::LONG_CALLS) {
            let first = self.all.partition_point(|n| start + n.record + record::SIZE <= range.start).max(next);
            next = self.all.partition_point(|n| start + n.record < range.end).max(first);
            let nodes = (first..next).zip(self.all.get(first..next).unwrap_or_default());
            counts.extend(nodes.filter_map(|(i, n)| Some((i, slot_counts(words, &held, n.record)?))));
        }
        let in_place = MadeInPlace {
            needed: std::array::from_fn(|i| field(slot::NEEDED + 8 * i as u64)),
            missed: std::array::from_fn(|i| field(slot::MISSED + 8 * i as u64)),
        };
        Some(SlotReading { thread: Some(thread), counts, losses, in_place })
    }

    /// Record of the call that the thread of the slot at offset `start` has not come back from. Who
    /// is about to end is in none but that: what else stands in the slot was left behind.
    fn under_way<W: Words + ?Sized>(&self, words: &W, start: u64) -> Option<u64> {
        let field = |offset| words.word(start + offset);
        let node = field(slot::NODE);
        let inside = field(slot::RSP) != 0 && field(slot::LEAVING) == 0;
        self.all.iter().find(|n| inside && n.address == node).map(|n| n.record)
    }
}

/// What of a slot is beside its records.
struct Held {
    /// Offset of the slot.
    start: u64,
    /// Record of the call under way.
    under_way: Option<u64>,
    errors: BTreeMap<Failure, u64>,
}

fn errors<W: Words + ?Sized>(words: &W, slot: u64) -> BTreeMap<Failure, u64> {
    let start = slot + slot::ERRORS;
    let mut errors = BTreeMap::new();
    for range in words.data(start..start + slot::ERROR_GROUPS * slot::ERROR_GROUP) {
        for at in (range.start.next_multiple_of(16)..range.end).step_by(16) {
            let (key, count) = (words.word(at), words.word(at + 8));
            if key != 0 {
                add(errors.entry(Failure { record: key >> 12, errno: (key & 0xfff) as u16 }).or_default(), count);
            }
        }
    }
    errors
}

/// What a slot has in a record, if anything.
fn slot_counts<W: Words + ?Sized>(words: &W, slot: &Held, at: u64) -> Option<SlotCounts> {
    let record = Part::new(words, slot.start + at, record::SIZE);
    let field = |offset| record.word(offset);
    if !has_counts(&record) {
        return None;
    }
    let (entered, returned, elided) = (field(record::ENTERED), field(record::RETURNED), field(record::ELIDED));
    let of_record = Failure { record: at, errno: 0 }..Failure { record: at + 1, errno: 0 };
    Some(SlotCounts {
        entered,
        returned,
        under_way: slot.under_way == Some(at),
        elided,
        failed: field(record::FAILED),
        cycles: field(record::CYCLES),
        waited: field(record::WAITED),
        longest: field(record::LONGEST),
        shortest: Some(!field(record::SHORTEST)).filter(|cycles| *cycles != u64::MAX),
        bytes: field(record::BYTES),
        sampled: Sampled {
            calls: field(record::SAMPLED),
            cycles: field(record::SAMPLED_CYCLES),
            squares: field(record::SAMPLED_SQUARES),
            waited: field(record::SAMPLED_WAITED),
            settled: field(record::CALM) >= timing::SETTLED,
        },
        histogram: std::array::from_fn(|i| field(record::HISTOGRAM + 8 * i as u64)),
        errors: slot.errors.range(of_record).map(|(key, count)| (key.errno, *count)).collect(),
    })
}

struct Reader<'a, W: ?Sized> {
    words: &'a W,
    /// Records met, by index: no leaf and no root is met twice, for each has a record of its own.
    seen: Vec<bool>,
    /// Which of them are to be kept; none said, all are.
    counted: Option<&'a Touched>,
    /// Nodes met that are neither: damaged ones may lead to each other.
    between: u64,
    out: Nodes,
}

impl<'a, W: Words + ?Sized> Reader<'a, W> {
    /// Nodes of the tree whose root is at address `root`.
    fn tree(&mut self, site: Option<(usize, usize)>, number: Option<u32>, root: u64) {
        let Some(own) = self.node(root) else { return };
        if !self.keep(site, number, &[], &own) {
            return;
        }
        let first = own.word(node::CHILD);
        if first == root || first <= node::OTHERS {
            return;
        }
        // (node, its path's length) still to be looked at; `path` is that of the last one.
        let mut open = vec![(first, 0)];
        let mut path = Vec::new();
        while let Some((at, depth)) = open.pop() {
            if at == root || at <= node::OTHERS {
                continue;
            }
            if depth >= DEEPEST {
                self.out.losses.damaged += 1;
                continue;
            }
            let Some(node) = self.node(at) else { continue };
            path.truncate(depth);
            if node.word(node::OFFSET) & node::FRAME == 0 {
                path.push(node.word(node::WORD));
            }
            if self.is_between(&node) || self.keep(site, number, &path, &node) {
                open.push((node.word(node::SIBLING), depth));
                open.push((node.word(node::CHILD), path.len()));
            }
        }
    }

    /// The node at address `at`, if one may lie there.
    fn node(&mut self, at: u64) -> Option<Part<'a, W>> {
        let offset = at.wrapping_sub(IMAGE);
        if may_hold_node(offset) && offset.is_multiple_of(8) {
            return Some(Part::new(self.words, offset, NODE_SIZE));
        }
        self.out.losses.damaged += 1;
        None
    }

    /// Whether a node is one on the way to others, where nothing is counted.
    fn is_between(&mut self, node: &Part<'_, W>) -> bool {
        let is_between = node.word(node::RECORD) == 0 && node.word(node::CHILD) != 0;
        self.between += u64::from(is_between);
        is_between && self.between <= MOST_BETWEEN
    }

    /// Takes in a node where something may be counted, unless nothing was; whether it is a new one.
    fn keep(&mut self, site: Option<(usize, usize)>, number: Option<u32>, path: &[u64], node: &Part<'_, W>) -> bool {
        let record = node.word(node::RECORD);
        let place = record.checked_sub(slot::RECORDS).filter(|place| place.is_multiple_of(record::SIZE));
        let index = place.map(|place| (place / record::SIZE) as usize);
        let seen = index.and_then(|index| self.seen.get_mut(index));
        if seen.is_none_or(|seen| std::mem::replace(seen, true)) {
            self.out.losses.damaged += 1;
            return false;
        }
        if self.counted.zip(index).is_none_or(|(counted, index)| counted.has(index)) {
            let (address, order) = (IMAGE + node.offset, self.out.all.len());
            self.out.all.push(Node { site, number, path: path.to_vec(), address, record, order });
        }
        true
    }
}

/// No context has more return addresses: no stack is unwound further.
pub const DEEPEST: usize = 256;

/// More nodes that count nothing are not ours: each way to a context has some of its own at most.
const MOST_BETWEEN: u64 = 32 * slot::RECORD_COUNT;

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}
