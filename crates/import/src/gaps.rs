//! Measures the time between a thread's calls. From it follows how long the program computed,
//! without the tracer's own share and that of others on the box.

/// Time of a call that does not wait, ns, from which on it was waiting for a processor.
const LONG_NS: u64 = 300_000;
/// Ratio of the long calls' time to the other calls' time from which on other programs took too
/// much of the gaps to tell what is left.
const DISTURBED: f64 = 0.15;

/// The gaps whose lengths lie within one power of two of ns.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    times: u64,
    ns: u64,
}

/// All gaps of a trace, and the time inside calls that do not wait.
#[derive(Clone, Debug)]
pub(crate) struct Gaps {
    buckets: [Bucket; 64],
    inside_ns: u64,
    inside_long_ns: u64,
}

impl Default for Gaps {
    fn default() -> Self {
        Self { buckets: [Bucket::default(); 64], inside_ns: 0, inside_long_ns: 0 }
    }
}

/// The result of measuring gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Computed {
    /// The trace has no times.
    Untimed,
    /// Other programs on the box took too much of the time.
    Disturbed,
    /// The program computed for about this time, ns.
    About(u64),
}

impl Gaps {
    /// Adds the gap between two calls of a thread.
    pub(crate) fn between(&mut self, from: Option<u64>, to: Option<u64>) {
        let Some(ns) = from.zip(to).and_then(|(from, to)| to.checked_sub(from)) else { return };
        if let Some(bucket) = self.buckets.get_mut(ns.max(1).ilog2() as usize) {
            bucket.times += 1;
            bucket.ns = bucket.ns.saturating_add(ns);
        }
    }

    /// Adds the time of a call that does not wait.
    pub(crate) fn inside(&mut self, ns: u64) {
        let sum = if ns > LONG_NS { &mut self.inside_long_ns } else { &mut self.inside_ns };
        *sum = sum.saturating_add(ns);
    }

    /// Returns the program's own computing time: the sum of all gaps, each shortened by the median gap, which is taken
    /// to be the tracer's.
    pub(crate) fn computed(&self) -> Computed {
        let gaps: u64 = self.buckets.iter().map(|b| b.times).sum();
        let mut before = 0;
        let middle = self.buckets.iter().find(|b| {
            before += b.times;
            b.times > 0 && before.saturating_mul(2) >= gaps
        });
        let Some(middle) = middle else { return Computed::Untimed };
        // Programs that made the calls long have made the gaps long too.
        let others = self.inside_long_ns as f64 / (self.inside_ns.max(1)) as f64;
        if others > DISTURBED {
            return Computed::Disturbed;
        }
        let tracers = middle.ns / middle.times;
        let longer = self.buckets.iter().map(|b| b.ns.saturating_sub(tracers.saturating_mul(b.times)));
        let longer = longer.fold(0, u64::saturating_add);
        let all = self.buckets.iter().fold(0, |sum: u64, b| sum.saturating_add(b.ns));
        let others = others * all.saturating_sub(longer) as f64;
        Computed::About(longer.saturating_sub(others as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tracer_and_others_take_is_taken_off() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.computed(), Computed::Untimed);
        for _ in 0..99 {
            gaps.between(Some(0), Some(30_000));
        }
        gaps.between(Some(0), Some(10_030_000));
        gaps.between(Some(9), Some(3));
        assert_eq!(gaps.computed(), Computed::About(10_000_000));
        (0..100).for_each(|_| gaps.inside(100_000));
        gaps.inside(1_000_000);
        let Computed::About(less) = gaps.computed() else { panic!("not told") };
        assert!((9_600_000..9_800_000).contains(&less), "{less}");
        gaps.inside(1_000_000);
        assert_eq!(gaps.computed(), Computed::Disturbed);
    }
}
