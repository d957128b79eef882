//! Tests that the shared memory's readers come to no harm, whatever a program writes there.

use crate::counts::TIMED;
use proptest::prelude::*;
use std::sync::atomic::AtomicU64;
use systoll_hooks::assemble::{
    Blob, FramePointer, Room, Step, TreeError, Words, assemble, grow, long_calls, number_site, read_slot, slots_drawn,
};
use systoll_hooks::layout::{self, GLOBAL, IMAGE, NODE_SIZE, NUMBERS, global, image, node, slot};
use systoll_hooks::plan::{Plan, Site, Span};

const REGION: u64 = IMAGE + image::ROOTS;

fn blob() -> Blob {
    let span = |start, bytes: &[u8]| Some(Span { start, bytes: bytes.to_vec(), instructions: 1, padding: 0 });
    let site = |address, number, before| Site {
        entry_span: before,
        return_span: span(address + 2, &[0x48, 0x3d, 1, 0xf0, 0xff, 0xff]),
        ..Site::new(address, number)
    };
    let known = site(0x1005, Some(110), span(0x1000, &[0xb8, 110, 0, 0, 0]));
    let unknown = site(0x2005, None, span(0x2000, &[0x4c, 0x8b, 0x4c, 0x24, 8]));
    let plan = Plan { sites: vec![known, unknown], ..Plan::default() };
    assemble(&plan, &TIMED, -0x10_0000).unwrap()
}

/// An image of pseudo-random words, many of which look valid.
struct Garbage {
    seed: u64,
}

impl Words for Garbage {
    fn word(&self, offset: u64) -> u64 {
        let mixed =
            (offset ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(self.seed | 1);
        match mixed >> 61 {
            0 => 0,
            1 => mixed,
            2 => IMAGE + image::NODES + (mixed % 64) * NODE_SIZE,
            3 => GLOBAL + global::NUMBER_ROOTS + (mixed % NUMBERS) * NODE_SIZE,
            4 => layout::slot_address(mixed % image::SLOT_COUNT),
            5 => slot::RECORDS + (mixed % 100) * layout::record::SIZE,
            6 => u64::MAX - mixed % 100,
            _ if offset >= image::SLOTS && (offset - image::SLOTS) % slot::SIZE == slot::SELF => {
                (IMAGE - slot::SELF).wrapping_add(offset)
            }
            _ => mixed % 5,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn reading_garbage_ends(seed in any::<u64>()) {
        let (garbage, room) = (Garbage { seed }, Room::default());
        prop_assert!(slots_drawn(&garbage).count() as u64 <= image::SLOT_COUNT);
        for index in [0, 1, image::SLOT_COUNT - 1] {
            let slot = read_slot(&garbage, index, |node| room.record_of(node));
            let records: Vec<u64> = slot.iter().flat_map(|s| s.counts(&garbage)).map(|(record, _)| record).collect();
            // Sorted without repetition, so no record is counted twice.
            prop_assert!(records.is_sorted_by(|a, b| a < b));
            prop_assert!(records.last().is_none_or(|last| *last < slot::RECORD_COUNT));
            let long = long_calls(&garbage, index, |node| room.record_of(node)).calls;
            prop_assert!(long.len() as u64 <= layout::long::LEN);
        }
    }

    #[test]
    fn reading_random_bytes_ends(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
        prop_assert!((0..image::SLOT_COUNT).all(|index| read_slot(bytes.as_slice(), index, Some).is_none()));
    }

    #[test]
    fn growing_in_garbage_ends(words in prop::collection::vec(garbage_word(), 1 << 12), steps in 1u64..5, at in 0u64..64) {
        // The image is short: words beyond its end are missing.
        let words: Vec<AtomicU64> = words.into_iter().map(AtomicU64::new).collect();
        let mut room = Room::default();
        let pointer = |i| (i % 2 == 1).then_some(FramePointer { saved: (i == 1).then_some(8 * i), distance: 0 });
        let steps: Vec<_> = (0..steps).map(|i| Step { word: 7 + i, next: 8 * i, pointer: pointer(i) }).collect();
        let _ = grow(&words, &mut room, IMAGE + 8 * at, &steps);
        let _ = number_site(&words, &mut room, IMAGE + 8 * at, at as u32, 0);
        let _ = grow(&words, &mut room, u64::MAX - at, &steps);
    }
}

fn garbage_word() -> impl Strategy<Value = u64> {
    let frame = (0u64..64).prop_map(|i| node::FRAME | (8 * i));
    prop_oneof![Just(0), Just(1), Just(2), any::<u64>(), (0u64..4096).prop_map(|i| IMAGE + 8 * i), frame]
}

/// Returns an image with room for a root and a few nodes, and the root's address.
fn small() -> (Vec<AtomicU64>, u64) {
    let words: Vec<AtomicU64> = (0..(image::NODES + 10 * NODE_SIZE) / 8).map(|_| AtomicU64::new(0)).collect();
    let root = IMAGE + image::NODES - NODE_SIZE;
    for (offset, word) in layout::root_words(root, slot::RECORDS, 16, false) {
        words[((root - IMAGE + offset) / 8) as usize].store(word, std::sync::atomic::Ordering::SeqCst);
    }
    (words, root)
}

#[test]
fn trees_grow_and_say_when_they_are_full() {
    let (words, root) = small();
    let mut room = Room::default();
    let step = |word, next| Step { word, next, ..Step::default() };
    let one = grow(&words, &mut room, root, &[step(10, 40), step(20, 0)]).unwrap();
    let two = grow(&words, &mut room, root, &[step(10, 40), step(21, 0)]).unwrap();
    let three = grow(&words, &mut room, root, &[step(11, 0)]).unwrap();
    assert_eq!(grow(&words, &mut room, root, &[step(10, 40), step(20, 0)]), Ok(one));
    assert_eq!(room.nodes(), 4);
    let get = |at: u64, field| words.word(at - IMAGE + field);
    assert_eq!([one, two, three].map(|n| get(n, node::OFFSET)), [40, 40, 16]);
    assert_eq!([one, two, three].map(|n| get(n, node::ROOT)), [root; 3]);
    // A path that is longer than one in the tree counts there.
    let longer = grow(&words, &mut room, root, &[step(11, 8), step(1, 0)]);
    assert_eq!(longer, Err(TreeError::Varies { node: three, callers: 1 }));
    assert_eq!(grow(&words, &mut room, root, &[]), Err(TreeError::Depth));
    for word in 100..106 {
        grow(&words, &mut room, root, &[step(word, 0)]).unwrap();
    }
    let before = room.clone();
    assert_eq!(grow(&words, &mut room, root, &[step(200, 0)]), Err(TreeError::Full));
    assert_eq!(room, before);
    // The last sibling says that further contexts are not told apart: the tree is closed.
    let last = grow(&words, &mut room, root, &[step(105, 0)]).unwrap();
    words[((last - IMAGE + node::SIBLING) / 8) as usize].store(node::OTHERS, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(grow(&words, &mut room, root, &[step(300, 0)]), Err(TreeError::Closed));
}

#[test]
fn blobs_refuse_invalid_regions() {
    let blob = blob();
    assert!(blob.code_for(REGION - 8).is_err());
    assert!(blob.code_for(IMAGE + image::SLOTS - 64).is_err());
    assert!(blob.roots(REGION, slot::RECORD_COUNT - 1).is_err());
    assert_eq!(blob.roots(REGION, slot::RECORD_COUNT - 2).unwrap().len(), 16);
    // Every reference moves with the region, and nothing else does.
    let (here, there) = (blob.code_for(REGION).unwrap(), blob.code_for(REGION + 0x1_0000).unwrap());
    let differ = here.iter().zip(&there).filter(|(a, b)| a != b).count();
    assert_eq!(differ, blob.references.len());
    let far = assemble(&Plan::default(), &TIMED, i64::MAX).map(|b| b.patches.len());
    assert!(matches!(far, Ok(0) | Err(_)));
}
