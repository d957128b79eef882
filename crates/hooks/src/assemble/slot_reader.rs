//! Reads back the counts of each thread, by record.
//!
//! The memory belongs to the watched program, which may have written anything there: nothing read is used as an
//! address before it is checked, and no loop ends only by what is read. [`super::Room`] knows what is counted at a
//! record, so the trees are not read.

use crate::layout::{image, record, slot, slot_address, slots_used, timing, trunk};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of an image, by their offset in bytes; words that are not mapped are zero.
///
/// An image consists mostly of holes. Reading holes of a mapped memfd allocates them, so a caller that reads many
/// threads should implement this by the file's data ranges.
pub trait Words {
    /// Returns the word at `offset`, a multiple of 8.
    fn word(&self, offset: u64) -> u64;

    /// Returns ranges of `within`, ascending, outside which every word is zero.
    fn data(&self, within: Range<u64>) -> Vec<Range<u64>> {
        vec![within]
    }

    /// Returns the bytes from `offset` on, if they are stored in one piece, so that one look-up finds all words of a
    /// node or a record.
    fn together(&self, _offset: u64, _len: usize) -> Option<&[u8]> {
        None
    }
}

/// Adjacent words of an image.
struct Part<'w, W: ?Sized> {
    words: &'w W,
    offset: u64,
    together: Option<&'w [u8]>,
}

impl<'w, W: Words + ?Sized> Part<'w, W> {
    fn new(words: &'w W, offset: u64, len: u64) -> Self {
        Self { words, offset, together: words.together(offset, len as usize) }
    }

    /// Returns the word at offset `field` in the part.
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

/// The counts of one thread at a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotCounts {
    /// Calls entered.
    pub entered: u64,
    /// Calls whose return was seen.
    pub returned: u64,
    /// True if a call was pending, according to the thread's own notes. Other calls without a seen return were left by
    /// a jump out of a signal handler: the kernel had ended them before the handler began.
    pub under_way: bool,
    /// Returned calls that failed.
    pub failed: u64,
    /// Cycles inside calls.
    pub cycles: u64,
    /// Cycles inside calls during which the thread was scheduled out or received a signal.
    pub waited: u64,
    /// Cycles of the longest call.
    pub longest: u64,
    /// Cycles of the shortest call; `None` if none was timed.
    pub shortest: Option<u64>,
    /// Bytes moved.
    pub bytes: u64,
    /// Calls answered in place, besides `entered`.
    pub elided: u64,
    /// Figures of the calls that were timed for their blocks.
    pub sampled: Sampled,
    /// Comparisons of the stack above the context.
    pub trunk: TrunkLooks,
    /// Number of calls by power of two of their cycles. A call timed for its block counts for all calls of the block.
    /// The sum is less than `returned` if some calls could not be timed.
    pub histogram: [u64; record::BUCKETS as usize],
    /// Failed calls by errno; there are fewer than `failed` if the table was full.
    pub errors: Vec<(u16, u64)>,
}

/// Calls of a node that were timed for their blocks, see [`crate::layout::timing`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    /// Number of calls.
    pub calls: u64,
    /// Cycles of these calls, a part of all cycles.
    pub cycles: u64,
    /// Sum of squares of their cycles, see [`crate::layout::timing::SQUARED_MOST`].
    pub squares: u64,
    /// Cycles of these calls during which the thread waited, not included in `waited` of [`SlotCounts`].
    pub waited: u64,
    /// True if one call of a block is timed now, even if none has been yet.
    pub settled: bool,
}

/// Comparisons of the stack above a context with its trunk, see [`crate::layout::trunk`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrunkLooks {
    /// Number of comparisons that found the same trunk.
    pub looks: u64,
    /// Number of calls for which the comparisons that found the same trunk stand.
    pub seen: u64,
    /// Number of calls for which those comparisons stand that found another stack and did not ask.
    pub others: u64,
    /// Number of the trunk's outermost addresses that were not found, in the comparison that found fewest.
    pub missed: u64,
}

/// The facts about a thread in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Index of the slot.
    pub slot: u64,
    /// Index of its maker's slot; `None` for the first thread.
    pub parent: Option<u64>,
    /// Thread id, zero if never known.
    pub tid: u32,
    /// Process id, zero if never known.
    pub pid: u32,
    /// Thread id as its maker saw it; zero if never known.
    pub made_as: u32,
    /// True if the thread was about to end.
    pub leaving: bool,
}

/// Events because of which counts may be short, or less detailed than they could be. If all are zero, the counts are
/// exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Threads that shared a slot, where additions may have been lost.
    pub homeless: u64,
    /// Questions without an answer: contexts after that are counted at roots.
    pub unanswered: u64,
    /// Questions, other than for a context, that were not asked: new code or a new program is unwatched.
    pub unheard: u64,
    /// Returns that could not be matched with their calls: they are counted, at the root, untimed.
    pub unmatched: u64,
    /// Signal handlers that returned to another place than where their returns are counted.
    pub astray: u64,
    /// Contexts for which nobody asked; their calls are counted at roots.
    pub unasked: u64,
    /// Failed calls whose errno is unknown.
    pub errors: u64,
    /// Slots whose words make no sense, and records that the launcher has not assigned. Readers leave them out.
    pub damaged: u64,
}

impl Losses {
    /// Returns the losses that an image's header tells; those of its slots are added to them.
    #[must_use]
    pub fn of_image<W: Words + ?Sized>(words: &W) -> Self {
        Self {
            homeless: words.word(image::HOMELESS),
            unanswered: words.word(image::UNANSWERED),
            unheard: words.word(image::UNHEARD),
            unmatched: words.word(image::UNMATCHED),
            astray: words.word(image::ASTRAY),
            ..Self::default()
        }
    }

    /// Adds further losses.
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

/// Calls that were made although they were to be answered in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MadeInPlace {
    /// Calls that had to be made, for each of [`slot::ANSWERS`], then `rt_sigprocmask`.
    pub needed: [u64; slot::ANSWER_COUNT as usize + 1],
    /// `rt_sigprocmask` calls that changed nothing, by [`slot::WHY`].
    pub missed: [u64; slot::WHYS as usize],
}

impl MadeInPlace {
    /// Adds further calls.
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
    /// Error number.
    pub errno: u16,
}

/// Returns the slots that may have been used: those drawn, as far as they exist, and the last one if any thread shared
/// it.
pub fn slots_drawn<W: Words + ?Sized>(words: &W) -> impl Iterator<Item = u64> + use<W> {
    let drawn = slots_used(words.word(image::NEXT_SLOT), words.word(image::GIVEN));
    let shared = words.word(image::HOMELESS) > 0 && drawn < image::SLOT_COUNT;
    (0..drawn).chain(shared.then_some(image::SLOT_COUNT - 1))
}

/// The contents of a slot.
#[derive(Clone, Debug)]
pub struct SlotReading {
    /// Thread of the slot; `None` if the slot's words make no sense.
    pub thread: Option<Thread>,
    /// Events that the slot's counts lack.
    pub losses: Losses,
    /// Calls that were made although they were to be answered in place.
    pub in_place: MadeInPlace,
    /// Offset of the slot.
    start: u64,
    /// Records at which anything is counted, ascending.
    touched: Vec<u64>,
    /// Record of the pending call.
    under_way: Option<u64>,
    errors: BTreeMap<Failure, u64>,
}

impl SlotReading {
    /// Returns the reading of a slot that tells nothing but `losses`.
    fn none(losses: Losses) -> Self {
        let (touched, errors) = Default::default();
        Self { thread: None, losses, in_place: MadeInPlace::default(), start: 0, touched, under_way: None, errors }
    }

    /// Returns the counts by record (see [`crate::layout::record_at`]), ascending, where there are any. `words` must be
    /// those that the slot was read from.
    pub fn counts<W: Words + ?Sized>(&self, words: &W) -> impl ExactSizeIterator<Item = (u64, SlotCounts)> {
        self.touched.iter().map(|index| (*index, self.counts_at(words, *index)))
    }

    fn counts_at<W: Words + ?Sized>(&self, words: &W, index: u64) -> SlotCounts {
        let record = record(words, self.start, index);
        let at = record.offset - self.start;
        let field = |offset| record.word(offset);
        let (entered, returned, elided) = (field(record::ENTERED), field(record::RETURNED), field(record::ELIDED));
        let failed = field(record::FAILED);
        let of_record = Failure { record: at, errno: 0 }..Failure { record: at + 1, errno: 0 };
        let errors = if failed == 0 { None } else { Some(self.errors.range(of_record)) };
        SlotCounts {
            entered,
            returned,
            under_way: self.under_way == Some(index),
            elided,
            failed,
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
            trunk: TrunkLooks {
                looks: field(record::TRUNK_LOOKS),
                seen: field(record::TRUNK_SEEN),
                others: field(record::TRUNK_OTHERS),
                missed: field(record::TRUNK_MISSED) / trunk::PAIR,
            },
            histogram: std::array::from_fn(|i| field(record::HISTOGRAM + 8 * i as u64)),
            errors: errors.into_iter().flatten().map(|(key, count)| (key.errno, *count)).collect(),
        }
    }
}

/// Returns true if anything is counted in a record.
fn has_counts<W: Words + ?Sized>(record: &Part<'_, W>) -> bool {
    [record::ENTERED, record::RETURNED, record::ELIDED].iter().any(|field| record.word(*field) != 0)
}

/// Reads slot `index`; returns `None` if no thread has it. If the thread is running, each count is its value at some
/// moment during the reading. `record_of` returns the record of a node, see [`super::Room::record_of`].
#[must_use]
pub fn read_slot<W: Words + ?Sized>(
    words: &W,
    index: u64,
    record_of: impl Fn(u64) -> Option<u64>,
) -> Option<SlotReading> {
    let start = image::SLOTS + index * slot::SIZE;
    let field = |offset| words.word(start + offset);
    let own = field(slot::SELF);
    if own != slot_address(index) {
        return (own != 0).then(|| SlotReading::none(Losses { damaged: 1, ..Losses::default() }));
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
    // A thread may be inside a call from which it has not returned. A thread about to end is in no other call:
    // everything else in the slot is left over.
    let inside = field(slot::RSP) != 0 && field(slot::LEAVING) == 0;
    let under_way = inside.then(|| record_of(field(slot::NODE))).flatten();
    let records = start + slot::RECORDS;
    let (mut touched, mut next) = (Vec::new(), 0);
    for range in words.data(records..records + slot::RECORD_COUNT * record::SIZE) {
        let (first, end) = ((range.start - records) / record::SIZE, (range.end - records).div_ceil(record::SIZE));
        touched.extend((first.max(next)..end).filter(|index| has_counts(&record(words, start, *index))));
        next = next.max(end);
    }
    let in_place = MadeInPlace {
        needed: std::array::from_fn(|i| field(slot::NEEDED + 8 * i as u64)),
        missed: std::array::from_fn(|i| field(slot::MISSED + 8 * i as u64)),
    };
    let errors = errors(words, start);
    Some(SlotReading { thread: Some(thread), losses, in_place, start, touched, under_way, errors })
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

/// Returns record `index` of the slot at `start`.
fn record<W: Words + ?Sized>(words: &W, start: u64, index: u64) -> Part<'_, W> {
    Part::new(words, start + slot::RECORDS + index * record::SIZE, record::SIZE)
}

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}
