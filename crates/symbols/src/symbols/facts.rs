//! What has been found out about addresses: unwinding asks for the same ones again and again.

use crate::ModuleKey;
use crate::unwind::Step;
use systoll_model::FrameClass;

/// Entries at first, and at most; both powers of two. Short programs have few addresses, and memory that
/// is touched for the first time costs more than finding them out.
const FEWEST: usize = 64;
const MOST: usize = 4096;

/// An address asked for: in a file, the byte before a return address where `is_return`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FactsKey {
    pub(super) module: ModuleKey,
    pub(super) addr: u64,
    pub(super) is_return: bool,
}

/// What unwinding has to know of an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameFacts {
    pub(super) key: FactsKey,
    /// What a [`RawFrame`](crate::RawFrame) says: the `syscall` instruction, where the address asked for
    /// follows one.
    pub(crate) address: u64,
    /// What to look up call frame information by.
    pub(crate) lookup: u64,
    pub(crate) class: FrameClass,
    pub(crate) step: Step,
}

/// A cache that forgets an address for another one in its entry.
#[derive(Debug, Default)]
pub(super) struct FactsCache {
    entries: Vec<Option<FrameFacts>>,
    used: usize,
}

impl FactsCache {
    pub(super) fn get(&self, key: FactsKey) -> Option<FrameFacts> {
        self.entries.get(self.entry(key))?.filter(|known| known.key == key)
    }

    pub(super) fn keep(&mut self, known: FrameFacts) {
        if 2 * self.used >= self.entries.len() && self.entries.len() < MOST {
            let larger = (4 * self.entries.len()).clamp(FEWEST, MOST);
            let before = std::mem::replace(&mut self.entries, vec![None; larger]);
            self.used = 0;
            before.into_iter().flatten().for_each(|known| self.put(known));
        }
        self.put(known);
    }

    fn put(&mut self, known: FrameFacts) {
        let entry = self.entry(known.key);
        if let Some(entry) = self.entries.get_mut(entry) {
            self.used += usize::from(entry.is_none());
            *entry = Some(known);
        }
    }

    /// By Fibonacci hashing: neighbouring addresses go to distant entries.
    fn entry(&self, key: FactsKey) -> usize {
        let hash = (key.addr ^ (u64::from(key.module.0) << 48)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 52) as usize & self.entries.len().wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(addr: u64) -> FrameFacts {
        let key = FactsKey { module: ModuleKey(1), addr, is_return: false };
        FrameFacts { key, address: addr, lookup: addr, class: FrameClass::User, step: Step::Guess }
    }

    #[test]
    fn few_addresses_take_little_and_many_no_more_than_the_most() {
        let mut cache = FactsCache::default();
        assert!(cache.get(known(1).key).is_none());
        for addr in 0..20 {
            cache.keep(known(16 * addr));
            assert_eq!(cache.get(known(16 * addr).key).map(|k| k.address), Some(16 * addr));
        }
        assert_eq!(cache.entries.len(), FEWEST);
        let still = (0..20).filter(|addr| cache.get(known(16 * addr).key).is_some()).count();
        assert!(still > 10, "{still} of 20");
        (0..100_000).for_each(|addr| cache.keep(known(addr)));
        assert_eq!(cache.entries.len(), MOST);
        assert!(cache.used <= MOST);
        let answered = (0..100_000).filter_map(|addr| Some((addr, cache.get(known(addr).key)?.address)));
        assert!(answered.clone().count() > MOST / 2 && answered.into_iter().all(|(asked, found)| asked == found));
        // What differs in the file or in being returned to is another one.
        assert!(
            (0..100_000).all(|addr| cache.get(FactsKey { module: ModuleKey(2), addr, is_return: false }).is_none())
        );
    }
}
