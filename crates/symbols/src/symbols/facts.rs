//! Caches facts about addresses: unwinding asks about the same ones again and again.

use crate::ModuleKey;
use crate::module::FrameQuestion;
use crate::unwind::Step;
use systoll_model::FrameClass;

/// Entries of the cache at first; a power of two. Short programs have few addresses, and touching new memory costs
/// more than working the facts out again.
const FEWEST: usize = 64;
/// Entries of the cache, at most; a power of two.
const MOST: usize = 4096;

/// An address in a file; if `is_return`, the byte before a return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FactsKey {
    pub(super) module: ModuleKey,
    pub(super) addr: u64,
    pub(super) is_return: bool,
}

impl FactsKey {
    /// Returns the question under which a later run finds the facts.
    pub(super) fn question(self) -> FrameQuestion {
        FrameQuestion { address: self.addr, is_return: self.is_return }
    }
}

/// Facts about an address that unwinding needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameFacts {
    pub(super) key: FactsKey,
    /// Address for the [`RawFrame`](crate::RawFrame): that of the `syscall` instruction, if the address asked about
    /// follows one.
    pub(crate) address: u64,
    /// Address by which call frame information is looked up.
    pub(crate) lookup: u64,
    pub(crate) class: FrameClass,
    pub(crate) step: Step,
}

impl FrameFacts {
    /// Encodes the facts for a later run of the same build: the distances by which `address` and `lookup` lie before
    /// the address asked about, the class, and the step.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let before = |address: u64| self.key.addr.wrapping_sub(address) as u8;
        let class =
            FrameClass::ALL.iter().position(|class| *class == self.class).unwrap_or(FrameClass::ALL.len()) as u8;
        let mut bytes = vec![before(self.address), before(self.lookup), class];
        self.step.write(&mut bytes);
        bytes
    }

    /// Decodes the result of [`FrameFacts::to_bytes`] for `key`; `None` if it is invalid.
    pub(super) fn read(key: FactsKey, bytes: &[u8]) -> Option<Self> {
        let (&[address, lookup, class], step) = bytes.split_first_chunk()?;
        // A return address lies one byte after the address asked about, so the distance is signed.
        let at = |before: u8| key.addr.wrapping_sub(before.cast_signed() as u64);
        let class = *FrameClass::ALL.get(usize::from(class))?;
        Some(Self { key, address: at(address), lookup: at(lookup), class, step: Step::read(step)? })
    }
}

/// A cache of facts, in which a new address can replace another one in its entry.
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

    /// Returns the index of a key's entry by Fibonacci hashing, which puts neighbouring addresses into distant
    /// entries.
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
    fn stored_facts_are_found_again() {
        let mut rule = crate::unwind::Rule::new(7, -8);
        (0..8).for_each(|n| assert!(rule.save(n, i32::from(n) * -0x10_0000)));
        let steps = [Step::Rule(rule), Step::Epilogue(crate::unwind::Rule::new(6, i32::MAX)), Step::Expression];
        let steps = steps.into_iter().chain([Step::SignalFrame, Step::End, Step::NoReturn, Step::Guess]);
        for (step, class) in steps.zip(FrameClass::ALL.iter().cycle()) {
            for (is_return, address, lookup) in [(true, 101, 100), (false, 98, 98), (false, 100, 100)] {
                let key = FactsKey { module: ModuleKey(1), addr: 100, is_return };
                let facts = FrameFacts { key, address, lookup, class: *class, step };
                let bytes = facts.to_bytes();
                let read = FrameFacts::read(key, &bytes).unwrap();
                assert_eq!((read.key, read.address, read.lookup), (key, address, lookup));
                assert_eq!((read.class, read.step), (*class, step));
                assert!((0..bytes.len()).all(|len| FrameFacts::read(key, &bytes[..len]).is_none()));
                assert!(FrameFacts::read(key, &[&bytes[..], &[0]].concat()).is_none());
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn decoding_any_bytes_yields_a_step_or_none(bytes: Vec<u8>, address: u64) {
            let key = FactsKey { module: ModuleKey(1), addr: address, is_return: true };
            if let Some(facts) = FrameFacts::read(key, &bytes) {
                proptest::prop_assert_eq!(facts.to_bytes(), bytes);
            }
        }
    }

    #[test]
    fn the_cache_grows_to_its_limit() {
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
        // Another file, or another value of `is_return`, makes another key.
        assert!(
            (0..100_000).all(|addr| cache.get(FactsKey { module: ModuleKey(2), addr, is_return: false }).is_none())
        );
    }
}
