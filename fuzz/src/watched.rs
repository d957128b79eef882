//! Targets for what systoll reads of a watched program: its memory and the files it names.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use systoll_hooks::assemble::{
    Blob, FramePointer, Options, Room, Step, Words, assemble, grow, long_calls, number_site, read_slot, slots_drawn,
};
use systoll_hooks::layout::{IMAGE, NODE_SIZE, image, ring, slot};
use systoll_hooks::plan::{Plan, build_id, plan as plan_of};
use systoll_hooks::ring_reader::written_calls;
use systoll_record::any_target::{use_arguments, use_image, use_proc, use_written};
use systoll_symbols::fuzzing::{use_heap, use_maps, use_perf_map, use_stack};

/// Distance from a file's load address to our code, in bytes.
const DELTA: i64 = 1 << 26;
/// Offsets of an image that an input fills, one range after the other.
const PARTS: [Range<u64>; 4] = [
    0..0x8000,
    image::ROOTS..image::ROOTS + 0x4000,
    image::SLOTS..image::SLOTS + 0xc000,
    image::SLOTS + slot::SIZE..image::SLOTS + slot::SIZE + 0xc000,
];
/// Bytes in these ranges together.
pub const IMAGE_BYTES: u64 = 0x8000 + 0x4000 + 2 * 0xc000;

/// An image whose ranges contain an input's bytes over and over.
struct Sparse<'a>(&'a [u8]);

impl Words for Sparse<'_> {
    fn word(&self, offset: u64) -> u64 {
        let mut before = 0;
        for part in PARTS {
            if part.contains(&offset) {
                let at = (before + offset - part.start) as usize % self.0.len().max(8);
                return self.0.get(at..).and_then(|b| b.first_chunk::<8>()).map_or(0, |b| u64::from_le_bytes(*b));
            }
            before += part.end - part.start;
        }
        0
    }

    fn data(&self, within: Range<u64>) -> Vec<Range<u64>> {
        let cut = PARTS.map(|part| part.start.max(within.start)..part.end.min(within.end));
        cut.into_iter().filter(|part| part.start < part.end).collect()
    }
}

fn all() -> Options {
    Options {
        results: true,
        time: true,
        waited: true,
        sampled: true,
        windows: true,
        elide: true,
        receives: true,
        writes: true,
        long: Some(20),
        totals: false,
    }
}

/// Reads a window that its thread, or the program, has written.
fn window(data: &[u8]) {
    let word = |chunk: &[u8]| u64::from_le_bytes(std::array::from_fn(|i| chunk.get(i).copied().unwrap_or(0)));
    let words: Vec<u64> = data.chunks(8).map(word).cycle().take((ring::BUFFER / 8) as usize).collect();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    for index in [0, ring::COUNT - 1] {
        for call in written_calls(&bytes, index, words.last().copied().unwrap_or(0)) {
            use_written(&call);
        }
    }
}

/// Reads an image that its program has overwritten.
pub fn image(data: &[u8]) {
    window(data);
    let words = Sparse(data);
    assert!(slots_drawn(&words).count() as u64 <= image::SLOT_COUNT);
    let room = Room::default();
    for index in 0..2 {
        let slot = read_slot(&words, index, |node| room.record_of(node));
        let records: Vec<u64> = slot.iter().flat_map(|slot| slot.counts(&words)).map(|(record, _)| record).collect();
        assert!(records.is_sorted() && records.len() < slot::RECORD_COUNT as usize);
        let long = long_calls(&words, index, |node| room.record_of(node));
        assert!(long.calls.len() as u64 <= systoll_hooks::layout::long::LEN);
    }
    let cells: Vec<AtomicU64> =
        (0..image::NODES / 8 + 0x2000).map(|i| AtomicU64::new(words.word(8 * i % 0x8000))).collect();
    let mut room = Room::default();
    let root = IMAGE + image::NODES + words.word(0) % 64 * NODE_SIZE;
    for n in 0..32 {
        let step = |i| {
            let distance = words.word(8 * (n * i));
            let saved = (distance % 2 == 0).then_some(words.word(16 * i));
            let pointer = (distance % 3 == 0).then_some(FramePointer { saved, distance });
            Step { word: words.word(8 * (n + i)), next: words.word(8 * i), pointer }
        };
        let steps: Vec<Step> = (0..1 + n % 5).map(step).collect();
        let _ = grow(&cells, &mut room, root, &steps);
        let _ = number_site(&cells, &mut room, words.word(8 * n), words.word(16 * n) as u32, n);
    }
}

/// Runs the launcher's part on an image that its program has overwritten: the queue, the slots,
/// their totals.
pub fn shared(data: &[u8]) {
    let words = Sparse(data);
    assert!(use_image(&PARTS, &|offset| words.word(offset)), "it can't be tried here");
}

/// Plans a file as if it were to be hooked.
pub fn plan(data: &[u8]) {
    let _ = build_id(data);
    let Ok(plan) = plan_of(data) else { return };
    let kept = Plan::from_bytes(&plan.to_bytes()).expect("what was stored can be read");
    assert_eq!(kept.sites.len(), plan.sites.len(), "a plan survives");
    assert!(kept.is_for(data), "a plan is for its file");
    coded(&plan);
}

/// Reads plans and code that an earlier run stored.
pub fn stored(data: &[u8]) {
    if let Some(plan) = Plan::from_bytes(data) {
        coded(&plan);
        let _ = plan.is_for(data);
    }
    if let Some(blob) = Blob::from_bytes(data.to_vec()) {
        let _ = blob.code_for(IMAGE + image::ROOTS);
        let _ = blob.roots(IMAGE + image::ROOTS, 0);
        let _ = blob.region_size();
    }
}

fn coded(plan: &Plan) {
    if let Ok(blob) = assemble(plan, &all(), DELTA) {
        let _ = blob.code_for(IMAGE + image::ROOTS);
        let kept = Blob::from_bytes(blob.to_bytes()).expect("what was stored can be read");
        assert_eq!(kept.sites, blob.sites, "code survives");
    }
}

/// Reads a target's memory, and its files under /proc.
pub fn target(data: &[u8]) {
    let seed = seed(data);
    use_heap(data, seed);
    use_perf_map(data, seed);
    use_maps(data);
    use_proc(data);
    use_arguments(data, seed);
}

/// Unwinds an arbitrary stack with a file's tables.
pub fn stack(data: &[u8]) {
    use_stack(data, seed(data));
}

fn seed(data: &[u8]) -> u64 {
    data.iter().take(64).fold(1, |sum: u64, b| sum.wrapping_mul(257).wrapping_add(u64::from(*b)))
}
