//! Hash tables for the judge. With the standard hash, hashing took most of the judge's time. foldhash is quick, and
//! seeded with random numbers of the process, so that nobody can write a recording whose keys all collide.

pub(crate) use foldhash::fast::RandomState as Seeded;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// A hash table; its order has no meaning.
pub(crate) type Map<K, V> = std::collections::HashMap<K, V, Seeded>;
/// A hash set; its order has no meaning.
pub(crate) type Set<K> = std::collections::HashSet<K, Seeded>;

/// A table that numbers byte strings in the order in which they are first met.
///
/// All bytes lie in one buffer: with an allocation for each string, allocating took much of the judge's time.
#[derive(Default)]
pub(crate) struct Spellings {
    bytes: Vec<u8>,
    /// For each string, the offset in `bytes` at which it ends.
    ends: Vec<usize>,
    table: HashTable<Spelled>,
    seeded: Seeded,
}

/// The entry of a byte string in the table.
struct Spelled {
    hash: u64,
    number: u32,
}

impl Spellings {
    /// Returns an empty table with room for `strings` strings of `bytes` bytes each. Growing it in small steps would
    /// cost as much as the entries themselves.
    pub(crate) fn with_room(strings: usize, bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(strings * bytes),
            ends: Vec::with_capacity(strings),
            table: HashTable::with_capacity(strings),
            seeded: Seeded::default(),
        }
    }

    /// Returns the string's number, a new one if it was not met before; `None` if there are too many.
    pub(crate) fn number(&mut self, spelled: &[u8]) -> Option<u32> {
        let hash = self.seeded.hash_one(spelled);
        let same = |other: &Spelled| other.hash == hash && self.spelling(other.number) == Some(spelled);
        if let Some(known) = self.table.find(hash, same) {
            return Some(known.number);
        }
        let number = u32::try_from(self.ends.len()).ok()?;
        self.table.insert_unique(hash, Spelled { hash, number }, |other| other.hash);
        self.bytes.extend_from_slice(spelled);
        self.ends.push(self.bytes.len());
        Some(number)
    }

    fn spelling(&self, number: u32) -> Option<&[u8]> {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.bytes.get(start..*self.ends.get(number)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_spelling_has_the_same_number() {
        let mut spellings = Spellings::default();
        let all: Vec<String> = (0..5000).map(|n| "x".repeat(n % 7) + &n.to_string()).collect();
        let mut numbers = std::collections::BTreeMap::new();
        for text in all.iter().chain(&all).chain([&String::new()]) {
            let next = numbers.len() as u32;
            let expected = *numbers.entry(text.as_str()).or_insert(next);
            assert_eq!(spellings.number(text.as_bytes()), Some(expected), "{text}");
        }
    }
}
