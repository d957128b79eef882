//! What has been found out about addresses, for those that are asked for again and again.

use crate::ModuleKey;
use crate::rule::Step;
use systoll_model::FrameClass;

/// Slots at first, and at most; both powers of two. Short programs have few addresses, and memory that
/// is touched for the first time costs more than finding them out.
const FEWEST: usize = 64;
const MOST: usize = 4096;

/// What unwinding has to know of an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) key: (ModuleKey, u64, bool),
    /// What a [`RawFrame`](crate::RawFrame) says: the `syscall` instruction, where the address asked for
    /// is behind one.
    pub(crate) address: u64,
    /// What to look up call frame information by.
    pub(crate) lookup: u64,
    pub(crate) class: FrameClass,
    pub(crate) step: Step,
}

/// A cache that forgets an address for another one in its slot.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    slots: Vec<Option<Known>>,
    used: usize,
}

impl Remembered {
    pub(crate) fn get(&self, key: (ModuleKey, u64, bool)) -> Option<Known> {
        self.slots.get(self.slot(key))?.filter(|known| known.key == key)
    }

    pub(crate) fn keep(&mut self, known: Known) {
        if 2 * self.used >= self.slots.len() && self.slots.len() < MOST {
            let larger = (4 * self.slots.len()).clamp(FEWEST, MOST);
            let before = std::mem::replace(&mut self.slots, vec![None; larger]);
            self.used = 0;
            before.into_iter().flatten().for_each(|known| self.put(known));
        }
        self.put(known);
    }

    fn put(&mut self, known: Known) {
        let slot = self.slot(known.key);
        if let Some(slot) = self.slots.get_mut(slot) {
            self.used += usize::from(slot.is_none());
            *slot = Some(known);
        }
    }

    /// By Fibonacci hashing: neighbouring addresses go to distant slots.
    fn slot(&self, (module, addr, _): (ModuleKey, u64, bool)) -> usize {
        let hash = (addr ^ (u64::from(module.0) << 48)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 52) as usize & self.slots.len().wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(addr: u64) -> Known {
        let key = (ModuleKey(1), addr, false);
        Known { key, address: addr, lookup: addr, class: FrameClass::User, step: Step::Guess }
    }

    #[test]
    fn few_addresses_take_little_and_many_no_more_than_the_most() {
        let mut remembered = Remembered::default();
        assert!(remembered.get(known(1).key).is_none());
        for addr in 0..20 {
            remembered.keep(known(16 * addr));
            assert_eq!(remembered.get(known(16 * addr).key).map(|k| k.address), Some(16 * addr));
        }
        assert_eq!(remembered.slots.len(), FEWEST);
        let still = (0..20).filter(|addr| remembered.get(known(16 * addr).key).is_some()).count();
        assert!(still > 10, "{still} of 20");
        (0..100_000).for_each(|addr| remembered.keep(known(addr)));
        assert_eq!(remembered.slots.len(), MOST);
        assert!(remembered.used <= MOST);
        let answered = (0..100_000).filter_map(|addr| Some((addr, remembered.get(known(addr).key)?.address)));
        assert!(answered.clone().count() > MOST / 2 && answered.into_iter().all(|(asked, found)| asked == found));
        // What differs in the file or in being returned to is another one.
        assert!((0..100_000).all(|addr| remembered.get((ModuleKey(2), addr, false)).is_none()));
    }
}
