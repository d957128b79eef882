//! Measures the time that watching costs the target in this very run, on random calls.
//!
//! A call under a tracer has two stops, one before and one after it. The processor time of a thread between them is
//! that of the call itself and of one stop. If the price of the call itself is known and small, the rest is the cost of
//! a stop under the load of this run.

use std::collections::BTreeMap;
use systoll_model::{Price, PriceSource, Random, Sysno};

/// Number of a run's first calls, of which one in `DENSE` is sampled on average; of later calls, one in `SPARSE` is.
const DENSE_CALLS: u64 = 2_000;
const DENSE: u64 = 8;
const SPARSE: u64 = 48;
/// Number of samples that an estimate needs.
const MIN_SAMPLES: u64 = 60;
/// Price above which calls vary too much by themselves to be used, ns.
const CHEAP_NS: f64 = 2_500.0;

/// Random picks of calls, and the sums of their processor time.
pub(super) struct Sampler {
    random: Random,
    until_next: u64,
    seen: u64,
    samples: BTreeMap<Sysno, (u64, u64)>,
}

impl Sampler {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: Random::new(seed ^ 0x5eed), until_next: 0, seen: 0, samples: BTreeMap::new() }
    }

    /// Returns true if the next call is to be sampled.
    pub(super) fn picks(&mut self) -> bool {
        self.seen += 1;
        if self.until_next > 0 {
            self.until_next -= 1;
            return false;
        }
        let mean = if self.seen < DENSE_CALLS { DENSE } else { SPARSE };
        self.until_next = self.random.below(2 * mean);
        true
    }

    /// Adds a sampled call whose thread ran for `ns` between its stops.
    pub(super) fn add(&mut self, syscall: Sysno, ns: u64) {
        let entry = self.samples.entry(syscall).or_default();
        entry.0 += ns;
        entry.1 += 1;
    }

    /// Returns the target's cost of one stop, ns of processor time; `None` if too few calls of known price were
    /// sampled.
    pub(super) fn stop_ns(&self, prices: &BTreeMap<Sysno, Price>) -> Option<f64> {
        let (mut sum, mut count) = (0.0, 0);
        for (syscall, (ns, calls)) in &self.samples {
            let Some(price) = prices.get(syscall) else { continue };
            if price.source == PriceSource::Measured && price.ns < CHEAP_NS {
                sum += *ns as f64 - price.ns * *calls as f64;
                count += calls;
            }
        }
        (count >= MIN_SAMPLES).then(|| (sum / count as f64).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_price_is_taken_off() {
        let mut sampler = Sampler::new(1);
        let picked = (0..10_000).filter(|_| sampler.picks()).count();
        assert!((200..800).contains(&picked), "{picked}");
        for _ in 0..100 {
            sampler.add(Sysno(39), 3_100);
            sampler.add(Sysno(9), 900_000);
        }
        let price = |ns, source| Price { ns, low: ns, high: ns, source };
        let prices = [(Sysno(39), price(100.0, PriceSource::Measured)), (Sysno(9), price(100.0, PriceSource::InCall))];
        assert_eq!(sampler.stop_ns(&prices.into()), Some(3_000.0));
        assert_eq!(sampler.stop_ns(&BTreeMap::new()), None);
    }
}
