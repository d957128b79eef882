//! A fast keyed hash of whole files, for their names in the cache.
//!
//! Nobody who makes a file may be able to make it pass for another, so this is not [`super::checksum`]. Each block of a
//! kilobyte is folded into 16 bytes by NH (Black et al., "UMAC: Fast and Secure Message Authentication", 1999): two
//! different blocks collide for one secret in 2^64, whatever they hold, if they were chosen without knowing it. These
//! bytes, a sixty-fourth of the file, go through SipHash, keyed by the secret. The secret never leaves its folder, and
//! no answer reveals anything of it.

use std::hash::{DefaultHasher, Hasher};

/// Words of a block.
const WORDS: usize = 128;
const WORD: usize = size_of::<u64>();
const BLOCK: usize = WORDS * WORD;

/// The numbers that blocks are folded with, drawn from a secret.
pub(super) struct ContentHash {
    drawn: [u64; WORDS],
    hasher: DefaultHasher,
}

impl ContentHash {
    pub(super) fn new(secret: &[u8; 32]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(secret);
        hasher.write(b"content");
        let draw = |n: usize| {
            let mut one = hasher.clone();
            one.write_usize(n);
            one.finish()
        };
        let drawn = std::array::from_fn(draw);
        Self { drawn, hasher }
    }

    /// Returns the hash of a file's `content`.
    pub(super) fn of(&self, content: &[u8]) -> u64 {
        let mut hasher = self.hasher.clone();
        // The length tells padding from zeroes that were in the file.
        hasher.write_usize(content.len());
        let (blocks, rest) = content.as_chunks::<BLOCK>();
        for block in blocks {
            hasher.write_u128(self.fold(block));
        }
        if !rest.is_empty() {
            let mut last = [0; BLOCK];
            last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            hasher.write_u128(self.fold(&last));
        }
        hasher.finish()
    }

    /// Returns NH of a block: the sum of products of pairs of words, each with its own drawn number added.
    fn fold(&self, block: &[u8; BLOCK]) -> u128 {
        let pairs = block.as_chunks::<{ 2 * WORD }>().0.iter().zip(self.drawn.as_chunks::<2>().0);
        // Use two sums, so that no addition waits for the previous one.
        let mut sums = [0u128; 2];
        for (n, (pair, [first, second])) in pairs.enumerate() {
            let pair = u128::from_le_bytes(*pair);
            let (low, high) = ((pair as u64).wrapping_add(*first), ((pair >> 64) as u64).wrapping_add(*second));
            let sum = &mut sums[n % 2];
            *sum = sum.wrapping_add(u128::from(low) * u128::from(high));
        }
        sums[0].wrapping_add(sums[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_bit_counts_and_so_do_length_and_secret() {
        let hash = ContentHash::new(&[7; 32]);
        let bytes: Vec<u8> = (0..2 * BLOCK + 100).map(|n| (n * n + 1) as u8).collect();
        let mut seen = HashSet::from([hash.of(&bytes), ContentHash::new(&[8; 32]).of(&bytes)]);
        assert_eq!(seen.len(), 2);
        for bit in (0..8 * bytes.len()).step_by(3) {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(seen.insert(hash.of(&other)), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(seen.insert(hash.of(&bytes[..len])), "{len} bytes");
            assert!(seen.insert(hash.of(&vec![0; len])) || len == 0, "{len} zeroes");
        }
    }

    #[test]
    fn words_and_blocks_that_change_places_are_noticed() {
        let hash = ContentHash::new(&[9; 32]);
        let bytes: Vec<u8> = (0..3 * BLOCK).map(|n| (n / WORD * 31) as u8).collect();
        let mut seen = HashSet::from([hash.of(&bytes)]);
        for (from, to, len) in [(0, WORD, WORD), (0, 2 * WORD, 2 * WORD), (0, BLOCK, BLOCK), (BLOCK, 2 * BLOCK, BLOCK)]
        {
            let mut other = bytes.clone();
            let (first, second) = other.split_at_mut(to);
            first[from..from + len].swap_with_slice(&mut second[..len]);
            assert!(seen.insert(hash.of(&other)), "{from} {to}");
        }
    }

    #[test]
    fn the_numbers_drawn_differ() {
        let drawn = ContentHash::new(&[1; 32]).drawn;
        assert_eq!(HashSet::from(drawn).len(), WORDS);
    }
}
