//! Reads back the long calls that a thread has kept one by one.

use super::Words;
use crate::layout::{image, long, slot, slot_address};

/// A call that took long, as its thread kept it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongCall {
    /// The record at which it was counted, see [`crate::layout::record_at`].
    pub record: u64,
    /// Cycles inside the call.
    pub cycles: u64,
    /// Time stamp counter at its entry.
    pub start: u64,
    /// Number of the thread's long calls that returned before it.
    pub nth: u64,
}

/// Returns the long calls in slot `index`: the thread's newest. The program may have written anything there, so the
/// record comes from `record_of`, which returns the record of a node.
#[must_use]
pub fn long_calls<W: Words + ?Sized>(words: &W, index: u64, record_of: impl Fn(u64) -> Option<u64>) -> Vec<LongCall> {
    let start = image::SLOTS + index * slot::SIZE;
    let drawn = words.word(start + slot::LONG_COUNT);
    if drawn == 0 || words.word(start + slot::SELF) != slot_address(index) {
        return Vec::new();
    }
    let entry = |nth: u64| {
        let at = start + slot::LONG_CALLS + nth % long::LEN * long::ENTRY;
        let record = record_of(words.word(at + long::NODE))?;
        Some(LongCall { record, cycles: words.word(at + long::CYCLES), start: words.word(at + long::START), nth })
    };
    (drawn.saturating_sub(long::LEN)..drawn).filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    struct Sparse(HashMap<u64, u64>);

    impl Words for Sparse {
        fn word(&self, offset: u64) -> u64 {
            self.0.get(&offset).copied().unwrap_or(0)
        }
    }

    /// Returns slot 1 after `drawn` long calls: the nth took 1000 + n cycles from time stamp n on, at the node at `at`.
    fn drawn(drawn: u64, at: u64) -> Sparse {
        let start = image::SLOTS + slot::SIZE;
        let mut words = HashMap::from([(start + slot::SELF, slot_address(1)), (start + slot::LONG_COUNT, drawn)]);
        for nth in 0..drawn {
            let entry = start + slot::LONG_CALLS + nth % long::LEN * long::ENTRY;
            words.extend([(entry + long::CYCLES, 1000 + nth), (entry + long::START, nth), (entry + long::NODE, at)]);
        }
        Sparse(words)
    }

    #[test]
    fn the_newest_are_read_back_and_no_others() {
        let long_calls = |words: &Sparse, index| long_calls(words, index, |node| (node == 0x5000).then_some(7));
        let read = long_calls(&drawn(3, 0x5000), 1);
        assert_eq!(read[2], LongCall { record: 7, cycles: 1002, start: 2, nth: 2 });
        assert_eq!(read.len(), 3);
        let over = long_calls(&drawn(long::LEN + 5, 0x5000), 1);
        assert_eq!((over.len() as u64, over[0].nth, over[0].start), (long::LEN, 5, 5));
        // Neither an unused slot nor an address that is no node gives a call, and an impossible count gives no more
        // than fit.
        assert!(long_calls(&drawn(3, 0x5000), 0).is_empty() && long_calls(&drawn(3, 0x6000), 1).is_empty());
        let mut wild = drawn(1, 0x5000);
        wild.0.insert(image::SLOTS + slot::SIZE + slot::LONG_COUNT, u64::MAX);
        assert!(long_calls(&wild, 1).len() as u64 <= long::LEN);
    }
}
