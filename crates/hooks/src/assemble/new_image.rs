//! The initial contents of an image.

use super::{call_kinds, find_fde};
use crate::layout::{
    GLOBAL, IMAGE, NODE_SIZE, NUMBERS, VERSION, global, image, root_record_offset, root_words, slot, slot_address,
    transfers,
};

/// Returns the words of a new image, as (offset in the image, value); all others are zero. `id` is the launcher's
/// number for it, `rseq_signature` the one by which C libraries register rseq areas (0x53053053 on x86, by glibc's and
/// the kernel's headers).
///
/// The program's first thread has slot 0; the launcher points its gs base there.
#[must_use]
pub fn new_image(id: u32, rseq_signature: u32) -> Vec<(u64, u64)> {
    let mut words = every_image(rseq_signature);
    words.extend(own_words(id));
    words
}

/// Returns the words of [`new_image`] that differ between images.
#[must_use]
pub fn own_words(id: u32) -> [(u64, u64); 3] {
    let tag = |slot: u64| (image::SLOTS + slot * slot::SIZE + slot::TAG, u64::from(id) << 16 | (slot + 1));
    [(image::ID, u64::from(id)), tag(0), tag(image::SLOT_COUNT - 1)]
}

/// Returns the words of [`new_image`] that are the same in all images.
fn every_image(rseq_signature: u32) -> Vec<(u64, u64)> {
    let mut words = vec![
        (image::VERSION, VERSION),
        (image::NEXT_SLOT, 0),
        (image::QUIET, u64::from(rseq_signature) << 32),
        (image::MAPS, 1),
        (image::GIVEN, image::FIRST_SLOTS),
        (image::RSEQ_CS, 0),
        (image::RSEQ_CS + 8, IMAGE + image::RSEQ_START),
        (image::RSEQ_CS + 16, 1),
        (image::RSEQ_CS + 24, IMAGE + image::RSEQ_ABORT),
        (image::RSEQ_ABORT - 8, u64::from(rseq_signature) << 32),
        (image::NAME, image::NAME_WORD),
        (image::SLOTS + slot::SELF, slot_address(0)),
    ];
    let name = image::MAPPED_FILE_NAME.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    words.extend((image::MAPPED_FILE..).step_by(8).zip(name));
    words.extend(heeded());
    // Tickets are for the slots from 1 on; a word holds two entries of four bytes.
    let ticket = |entry: u64| entry + 2;
    words
        .extend((0..image::FIRST_SLOTS / 2).map(|i| (image::TICKETS + 8 * i, ticket(2 * i) | ticket(2 * i + 1) << 32)));
    let last = image::SLOTS + (image::SLOT_COUNT - 1) * slot::SIZE;
    words.push((last + slot::SELF, IMAGE + last));
    words.extend(find_fde::frames());
    words
}

/// Returns the words of [`image::HEEDED`].
fn heeded() -> impl Iterator<Item = (u64, u64)> {
    let byte = |n: u64| u8::from(u32::try_from(n).is_ok_and(call_kinds::is_heeded));
    let word = move |i: u64| u64::from_le_bytes(std::array::from_fn(|byte_of| byte(8 * i + byte_of as u64)));
    (0..NUMBERS.div_ceil(8)).map(move |i| (image::HEEDED + 8 * i, word(i)))
}

/// Returns the contents of [`global::NUMBER_ROOTS`]: the root of each number, whose record has the same index among the
/// roots' records.
#[must_use]
pub fn number_roots() -> Vec<u8> {
    let mut bytes = Vec::with_capacity((NUMBERS * NODE_SIZE) as usize);
    for n in 0..NUMBERS {
        let moves = u32::try_from(n).is_ok_and(transfers);
        let at = GLOBAL + global::NUMBER_ROOTS + n * NODE_SIZE;
        // The words come in the order of their offsets, so they are the root's bytes.
        let words = root_words(at, root_record_offset(n).unwrap_or(0), 0, moves);
        bytes.extend(words.into_iter().flat_map(|(_, word)| word.to_le_bytes()));
    }
    bytes
}
