//! Reads back the long calls that a thread has kept one by one.

use super::{Words, sampling};
use crate::layout::{image, long, slot, slot_address};

/// A call that took long, as its thread kept it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongCall {
    /// The record at which it was counted, see [`crate::layout::record_at`].
    pub record: u64,
    /// Cycles inside the call; 0 if it has not returned.
    pub cycles: u64,
    /// Time stamp counter at its entry.
    pub start: u64,
    /// Number of the thread's long calls that returned before it.
    pub nth: u64,
    /// The call's result, as in rax; `None` if it has not returned.
    pub result: Option<i64>,
    /// False if the thread surely was not scheduled out during the call; `None` if it can't tell.
    pub waited: Option<bool>,
    /// The six argument registers.
    pub args: [u64; 6],
    /// The thread's number of calls at the record when it entered this one, which is included; 0 if it has not returned.
    pub entered: u64,
}

/// The long calls of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LongCalls {
    /// The newest of those that returned.
    pub calls: Vec<LongCall>,
    /// Number of older ones, which the newest replaced.
    pub overwritten: u64,
    /// The call in which the thread is, if its time is taken. Its arguments are unknown, and are 0.
    pub pending: Option<LongCall>,
}

/// Returns the long calls in slot `index`. The program may have written anything there, so the record comes from
/// `record_of`, which returns the record of a node.
#[must_use]
pub fn long_calls<W: Words + ?Sized>(words: &W, index: u64, record_of: impl Fn(u64) -> Option<u64>) -> LongCalls {
    let start = image::SLOTS + index * slot::SIZE;
    if words.word(start + slot::SELF) != slot_address(index) {
        return LongCalls::default();
    }
    let drawn = words.word(start + slot::LONG_COUNT);
    let entry = |nth: u64| {
        let at = start + slot::LONG_CALLS + nth % long::LEN * long::ENTRY;
        let word = |field: u64| words.word(at + field);
        let waited = match word(long::RAN) {
            0 => Some(true),
            1 => None,
            _ => Some(false),
        };
        Some(LongCall {
            record: record_of(word(long::NODE))?,
            cycles: word(long::CYCLES),
            start: word(long::START),
            nth,
            result: Some(word(long::RESULT) as i64),
            waited,
            args: std::array::from_fn(|nth| word(long::ARGS + 8 * nth as u64)),
            entered: word(long::ENTERED),
        })
    };
    let began = words.word(start + slot::START) & !sampling::ALL_MARKS;
    let is_pending = words.word(start + slot::RSP) != 0 && began != 0;
    let pending = || {
        let record = record_of(words.word(start + slot::NODE))?;
        let (result, waited) = (None, None);
        Some(LongCall { record, cycles: 0, start: began, nth: drawn, result, waited, args: [0; 6], entered: 0 })
    };
    LongCalls {
        calls: (drawn.saturating_sub(long::LEN)..drawn).filter_map(entry).collect(),
        overwritten: drawn.saturating_sub(long::LEN),
        pending: is_pending.then(pending).flatten(),
    }
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
            words.extend([
                (entry + long::CYCLES, 1000 + nth),
                (entry + long::START, nth),
                (entry + long::NODE, at),
                (entry + long::ENTERED, 40 + nth),
            ]);
            words.extend([(entry + long::RESULT, -4i64 as u64), (entry + long::RAN, nth % 3), (entry + long::ARGS, 7)]);
        }
        Sparse(words)
    }

    #[test]
    fn the_newest_are_read_back_and_no_others() {
        let long_calls = |words: &Sparse, index| long_calls(words, index, |node| (node == 0x5000).then_some(7));
        let read = long_calls(&drawn(3, 0x5000), 1).calls;
        let args = [7, 0, 0, 0, 0, 0];
        let (result, waited) = (Some(-4), Some(false));
        let third = LongCall { record: 7, cycles: 1002, start: 2, nth: 2, result, waited, args, entered: 42 };
        assert_eq!(read[2], third);
        assert_eq!((read[0].waited, read[1].waited), (Some(true), None));
        assert_eq!(read.len(), 3);
        let LongCalls { calls: over, overwritten, .. } = long_calls(&drawn(long::LEN + 5, 0x5000), 1);
        assert_eq!(overwritten, 5);
        assert_eq!((over.len() as u64, over[0].nth, over[0].start), (long::LEN, 5, 5));
        // Neither an unused slot nor an address that is no node gives a call, and an impossible count gives no more
        // than fit.
        assert!(long_calls(&drawn(3, 0x5000), 0).calls.is_empty() && long_calls(&drawn(3, 0x6000), 1).calls.is_empty());
        let mut wild = drawn(1, 0x5000);
        wild.0.insert(image::SLOTS + slot::SIZE + slot::LONG_COUNT, u64::MAX);
        assert!(long_calls(&wild, 1).calls.len() as u64 <= long::LEN);
    }

    #[test]
    fn the_call_in_which_a_thread_is_is_pending() {
        let start = image::SLOTS + slot::SIZE;
        let mut words = drawn(0, 0x5000);
        let long_calls = |words: &Sparse| long_calls(words, 1, |node| (node == 0x5000).then_some(7));
        assert_eq!(long_calls(&words).pending, None);
        words.0.extend([
            (start + slot::RSP, 0x7f00),
            (start + slot::NODE, 0x5000),
            (start + slot::START, 1 << 62 | 90),
        ]);
        let pending = long_calls(&words).pending.unwrap();
        assert_eq!((pending.record, pending.start, pending.result), (7, 90, None));
        // The time of a call that is not timed is unknown.
        words.0.insert(start + slot::START, 0);
        assert_eq!(long_calls(&words).pending, None);
    }
}
