//! Time between a thread's calls: what the program computed, the tracer's own share taken off.

/// Gaps of one power of two of nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    gaps: u64,
    ns: u64,
}

/// All gaps of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Gaps {
    buckets: [Bucket; 64],
}

impl Default for Gaps {
    fn default() -> Self {
        Self { buckets: [Bucket::default(); 64] }
    }
}

impl Gaps {
    /// A thread was between two calls.
    pub(crate) fn between(&mut self, from: Option<u64>, to: Option<u64>) {
        let Some(ns) = from.zip(to).and_then(|(from, to)| to.checked_sub(from)) else { return };
        if let Some(bucket) = self.buckets.get_mut(ns.max(1).ilog2() as usize) {
            bucket.gaps += 1;
            bucket.ns = bucket.ns.saturating_add(ns);
        }
    }

    /// What the program computed: all gaps, each by as much shorter as the middle one is long, which is taken to be the
    /// tracer's. `None` where the trace has no times.
    pub(crate) fn computed(&self) -> Option<u64> {
        let gaps: u64 = self.buckets.iter().map(|b| b.gaps).sum();
        let mut before = 0;
        let middle = self.buckets.iter().find(|b| {
            before += b.gaps;
            b.gaps > 0 && before.saturating_mul(2) >= gaps
        })?;
        let tracers = middle.ns / middle.gaps;
        let longer = self.buckets.iter().map(|b| b.ns.saturating_sub(tracers.saturating_mul(b.gaps)));
        Some(longer.fold(0, u64::saturating_add))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tracer_takes_is_taken_off() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.computed(), None);
        for _ in 0..99 {
            gaps.between(Some(0), Some(30_000));
        }
        gaps.between(Some(0), Some(10_030_000));
        gaps.between(Some(9), Some(3));
        assert_eq!(gaps.computed(), Some(10_000_000));
    }
}
