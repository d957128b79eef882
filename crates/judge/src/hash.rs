//! The judge's tables: with the standard hash, hashing was most of what judging took. foldhash is quick and
//! begins with random numbers of the process's own, so that a recording can't be written whose keys all fall
//! together.

pub(crate) use foldhash::fast::RandomState as Seeded;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// A table; its order says nothing.
pub(crate) type Map<K, V> = std::collections::HashMap<K, V, Seeded>;
/// A set; its order says nothing.
pub(crate) type Set<K> = std::collections::HashSet<K, Seeded>;

/// Numbers byte strings in the order they are first met.
///
/// Their bytes lie in one buffer: with a box each, allocating was much of what judging took.
#[derive(Default)]
pub(crate) struct Spellings {
    bytes: Vec<u8>,
    /// Where each one ends in `bytes`.
    ends: Vec<usize>,
    table: HashTable<Spelled>,
    seeded: Seeded,
}

/// A byte string of the table.
struct Spelled {
    hash: u64,
    number: u32,
}

impl Spellings {
    /// None yet, with room for so many of so many bytes each: growing bit by bit costs as much as what is kept.
    pub(crate) fn with_room(strings: usize, bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(strings * bytes),
            ends: Vec::with_capacity(strings),
            table: HashTable::with_capacity(strings),
            seeded: Seeded::default(),
        }
    }

    /// Its number. `None` where there are too many.
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
