//! Changes bytes at random, for compilers that have no coverage to guide the changes.

/// A small generator (xorshift64*, Marsaglia 2003, Vigna 2016): equal seeds give equal changes.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator from any seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number less than `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 1) as usize % bound.max(1)
    }
}

/// Numbers that programs often handle wrongly.
const EDGES: [u64; 8] = [0, 1, 0x7f, 0x80, 0xff, 0x7fff_ffff, u32::MAX as u64, u64::MAX];

/// Returns one of `seeds` with one to eight changes; now and then splices it with another seed.
pub fn mutated(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let Some(seed) = seeds.get(random.below(seeds.len())) else { return Vec::new() };
    let mut bytes = seed.clone();
    for _ in 0..=random.below(8) {
        change(random, &mut bytes, seeds);
    }
    bytes
}

fn change(random: &mut Random, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    let at = random.below(bytes.len());
    let end = (at + random.below(64)).min(bytes.len());
    match random.below(8) {
        0 | 1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        2 | 3 => {
            let edge = EDGES[random.below(EDGES.len())].to_le_bytes();
            let width = [1, 2, 4, 8][random.below(4)];
            bytes.iter_mut().skip(at).zip(&edge[..width]).for_each(|(byte, new)| *byte = *new);
        }
        4 => bytes.truncate(at),
        5 => drop(bytes.drain(at..end)),
        6 => {
            let again = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
        _ => {
            if let Some(other) = seeds.get(random.below(seeds.len())) {
                let from = random.below(other.len());
                let piece = other[from..other.len().min(from + 256)].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
}
