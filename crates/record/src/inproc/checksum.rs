//! A fast keyed checksum, for megabytes read at every start.
//!
//! It detects damage; it is no signature. Code that can write entries into a folder of this user's alone can change the
//! user's programs just as well.

/// Odd numbers with as many ones as zeroes, so that factors are never trivial.
const ODD: [u64; 4] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03, 0x8cb9_2ba7_2f3d_8dd7, 0xa24b_aed4_963e_e407];
const STEP: usize = 64;

/// Returns the checksum of `bytes` under a key.
pub(super) fn checksum(key: &[u8; 32], bytes: &[u8]) -> u64 {
    let mut sum = Checksum::new(key);
    sum.add(bytes);
    sum.end()
}

/// A [`checksum`] of bytes that arrive in pieces.
pub(super) struct Checksum {
    secret: [u64; 4],
    state: [u64; 4],
    len: u64,
    /// The last bytes: as many as `len` exceeds whole steps by.
    rest: [u8; STEP],
}

impl Checksum {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        let mut secret = ODD;
        for (word, bytes) in secret.iter_mut().zip(key.as_chunks::<8>().0) {
            *word ^= u64::from_le_bytes(*bytes);
        }
        Self { secret, state: secret, len: 0, rest: [0; STEP] }
    }

    pub(super) fn add(&mut self, mut bytes: &[u8]) {
        let waiting = (self.len % STEP as u64) as usize;
        self.len += bytes.len() as u64;
        if waiting != 0 {
            let (first, others) = bytes.split_at(bytes.len().min(STEP - waiting));
            self.rest.iter_mut().skip(waiting).zip(first).for_each(|(to, from)| *to = *from);
            bytes = others;
            if waiting + first.len() < STEP {
                return;
            }
            absorb(&mut self.state, &self.secret, &self.rest);
        }
        let (steps, rest) = bytes.as_chunks::<STEP>();
        for step in steps {
            absorb(&mut self.state, &self.secret, step);
        }
        self.rest.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    }

    pub(super) fn end(mut self) -> u64 {
        let waiting = (self.len % STEP as u64) as usize;
        if waiting != 0 {
            self.rest.iter_mut().skip(waiting).for_each(|byte| *byte = 0);
            absorb(&mut self.state, &self.secret, &self.rest);
        }
        // The length tells padding from zeroes that were in the data.
        let length = fold(self.len ^ ODD[0], self.secret[1]);
        self.state.iter().zip(ODD).fold(length, |all, (word, odd)| fold(all ^ word, odd))
    }
}

fn absorb(state: &mut [u64; 4], secret: &[u64; 4], step: &[u8; STEP]) {
    let (pairs, _) = step.as_chunks::<16>();
    for ((lane, secret), pair) in state.iter_mut().zip(secret).zip(pairs) {
        let pair = u128::from_le_bytes(*pair);
        *lane = fold(*lane ^ pair as u64, secret ^ (pair >> 64) as u64);
    }
}

/// Returns the xor of both halves of the product: each bit depends on all bits of both factors.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_counts_and_so_do_length_and_key() {
        let bytes: Vec<u8> = (1..200).collect();
        let mut seen = std::collections::HashSet::from([checksum(&[1; 32], &bytes)]);
        for bit in 0..8 * bytes.len() {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(seen.insert(checksum(&[1; 32], &other)), "bit {bit}");
        }
        for len in 1..bytes.len() {
            assert!(seen.insert(checksum(&[1; 32], &bytes[..len])), "{len} bytes");
            assert!(seen.insert(checksum(&[1; 32], &vec![0; len])), "{len} zeroes");
        }
        for byte in 0..32 {
            let mut key = [1; 32];
            key[byte] ^= 4;
            assert!(seen.insert(checksum(&key, &bytes)), "byte {byte} of the key");
        }
    }

    #[test]
    fn pieces_come_to_the_same() {
        let bytes: Vec<u8> = (0..1000u32).map(|n| (n * 7) as u8).collect();
        for len in [0, 1, 63, 64, 65, 128, 500, 1000] {
            for piece in [1, 7, 63, 64, 65, 200] {
                let mut sum = Checksum::new(&[9; 32]);
                bytes[..len].chunks(piece).for_each(|piece| sum.add(piece));
                assert_eq!(sum.end(), checksum(&[9; 32], &bytes[..len]), "{len} bytes by {piece}");
            }
        }
    }

    #[test]
    fn checksums_are_stable() {
        // Entries of earlier runs must stay readable.
        let bytes: Vec<u8> = (0..200).collect();
        assert_eq!(checksum(&[1; 32], &bytes), 0x57d8_6494_fdd4_4c60);
    }

    #[test]
    fn steps_that_change_places_are_noticed() {
        let (a, b) = ([3u8; STEP], [5u8; STEP]);
        assert_ne!(checksum(&[0; 32], &[a, b].concat()), checksum(&[0; 32], &[b, a].concat()));
        let mut lanes = [3u8; STEP];
        lanes[16..32].fill(5);
        let mut other = [3u8; STEP];
        other[32..48].fill(5);
        assert_ne!(checksum(&[0; 32], &lanes), checksum(&[0; 32], &other));
    }
}
