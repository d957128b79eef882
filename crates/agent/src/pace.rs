//! Decides how long to watch, how closely, and how long to rest, so that watching costs no more than the budget.
//!
//! A span costs a part that grows with its length (calls, context switches, samples) and a part that does not (entering all
//! processes, naming, judging). The length is such that both together are what the budget gives in [`CYCLE`]. What a span
//! has cost is a debt that time pays off; the next one begins when nothing is owed.

use std::time::Duration;

/// Time in which the budget pays for a span, unless an interval is shorter than ten of these.
const CYCLE: Duration = Duration::from_secs(60);
/// Spans of an interval, at least: the last one may exceed the budget, by a tenth at most.
const SPANS: u32 = 10;
/// Shortest and longest span. A shorter one sees few calls of what sleeps for seconds; a longer one shows its results late.
pub(crate) const SHORTEST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(60);
/// Length of the first span, from which the costs are learned.
pub(crate) const FIRST: Duration = Duration::from_secs(2);
/// Number of spans that only count between two that sample, at most.
const MOST_COUNTED: u32 = 20;
/// Part of a new measurement in what is known of costs.
const NEW: f64 = 0.5;
/// Factor by which a span may be longer than the one before.
const GROWS: f64 = 4.0;

/// The plan of a span: how long, and how closely it is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) length: Duration,
    /// True if calls are sampled and judged, false if they are counted only.
    pub(crate) samples: bool,
    /// Cost at which the span is cut short, ns of processors.
    pub(crate) most_ns: u64,
}

/// The cost of a kind of span, as spans before it have shown.
#[derive(Clone, Copy, Debug)]
struct Known {
    fixed_ns: f64,
    /// Processors that watching takes meanwhile: 0.01 is a hundredth of one.
    share: f64,
    length: Duration,
}

/// Keeps to the budget.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// Processors that watching may take on average.
    rate: f64,
    /// Cost of a span that is aimed at, ns.
    target_ns: f64,
    /// Cost that time has not paid yet, ns; negative if time has paid more.
    debt_ns: f64,
    sampled: Option<Known>,
    counted: Option<Known>,
    /// Spans that are to count only before the next one samples.
    only_counts: u32,
}

impl Pace {
    /// Creates the pace for a share of so many processors.
    pub(crate) fn new(share: f64, processors: f64, interval: Duration) -> Self {
        let rate = (share * processors).max(1e-6);
        let cycle = CYCLE.min(interval / SPANS);
        let target_ns = rate * cycle.as_nanos() as f64;
        Self { rate, target_ns, debt_ns: 0.0, sampled: None, counted: None, only_counts: 0 }
    }

    /// Notes that time has passed, and what it has cost.
    pub(crate) fn spend(&mut self, elapsed: Duration, cost_ns: u64) {
        let paid = self.rate * elapsed.as_nanos() as f64;
        // What was not spent in time is lost: an idle hour does not pay for an expensive one.
        self.debt_ns = (self.debt_ns - paid).max(-self.target_ns) + cost_ns as f64;
    }

    /// Returns the time for which to rest now.
    pub(crate) fn rest(&self) -> Duration {
        Duration::from_nanos((self.debt_ns / self.rate).max(0.0) as u64)
    }

    /// Returns the next span, which ends before `most`.
    pub(crate) fn plan(&self, most: Duration) -> Plan {
        let samples = self.only_counts == 0;
        let known = if samples { self.sampled } else { self.counted };
        let length = known.map_or(FIRST, |known| {
            let left = (self.target_ns - known.fixed_ns).max(0.0);
            let affordable = Duration::from_nanos((left / known.share.max(1e-9)).min(LONGEST.as_nanos() as f64) as u64);
            affordable.min(known.length.mul_f64(GROWS))
        });
        let fixed_ns = known.map_or(0.0, |known| known.fixed_ns);
        // A load that grows meanwhile ends the span.
        let most_ns = (self.target_ns - fixed_ns).max(self.target_ns / 4.0) as u64;
        Plan { length: length.clamp(SHORTEST, LONGEST).min(most), samples, most_ns }
    }

    /// Learns from a span: how long it was, its cost while watching, and after.
    pub(crate) fn learn(&mut self, plan: Plan, length: Duration, while_ns: u64, after_ns: u64) {
        let share = while_ns as f64 / length.as_nanos().max(1) as f64;
        let new = Known { fixed_ns: after_ns as f64, share, length: length.max(SHORTEST) };
        let of = if plan.samples { &mut self.sampled } else { &mut self.counted };
        let mix = |old: f64, new: f64| old + NEW * (new - old);
        *of = Some(of.map_or(new, |old| Known {
            fixed_ns: mix(old.fixed_ns, new.fixed_ns),
            share: mix(old.share, share),
            ..new
        }));
        // Samples are left out before counts are: a span that samples and costs several times as much as it should is
        // followed by spans that only count.
        let times = (while_ns.saturating_add(after_ns) as f64 / self.target_ns).round() as u32;
        self.only_counts = match plan.samples {
            true => times.saturating_sub(1).min(MOST_COUNTED),
            false => self.only_counts.saturating_sub(1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays an hour on a box of two processors. Returns the share of them that watching took, the time watched, and the
    /// numbers of spans that sampled and that only counted.
    fn hour(budget: f64, fixed: [Duration; 2], share: impl Fn(Duration) -> f64) -> (f64, Duration, [u32; 2]) {
        let hour = Duration::from_secs(3_600);
        let mut pace = Pace::new(budget, 2.0, hour);
        let (mut now, mut spent, mut watched, mut spans) = (Duration::ZERO, 0u64, Duration::ZERO, [0; 2]);
        while now < hour {
            let rest = pace.rest();
            if !rest.is_zero() {
                pace.spend(rest, 0);
                now += rest;
                continue;
            }
            let plan = pace.plan(hour.saturating_sub(now));
            let at = usize::from(!plan.samples);
            let while_ns = (plan.length.as_nanos() as f64 * share(now)) as u64;
            let (length, while_ns) = match while_ns > plan.most_ns {
                true => (plan.length.mul_f64(plan.most_ns as f64 / while_ns as f64), plan.most_ns),
                false => (plan.length, while_ns),
            };
            let after_ns = fixed[at].as_nanos() as u64;
            pace.spend(length, while_ns + after_ns);
            pace.learn(plan, length, while_ns, after_ns);
            (now, watched, spent) =
                (now + length + Duration::from_millis(1), watched + length, spent + while_ns + after_ns);
            spans[at] += 1;
        }
        (spent as f64 / (2.0 * now.as_nanos() as f64), watched, spans)
    }

    const CHEAP: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(30)];

    #[test]
    fn the_budget_is_kept_and_used() {
        for (share, budget) in [(0.01, 0.005), (0.3, 0.005), (0.8, 0.01)] {
            let (took, _, spans) = hour(budget, CHEAP, |_| share);
            assert!((0.9..1.1).contains(&(took / budget)), "{share}: {took} of {budget}");
            assert!(spans[0] > 20 && spans[1] == 0, "{share}: {spans:?}");
        }
    }

    #[test]
    fn a_quiet_box_is_watched_nearly_all_the_time() {
        let (took, watched, _) = hour(0.005, CHEAP, |_| 0.001);
        assert!(took < 0.005 && watched > Duration::from_secs(3_300), "{took} {watched:?}");
    }

    #[test]
    fn a_load_that_comes_suddenly_costs_one_span() {
        let (took, ..) = hour(0.005, CHEAP, |now| if now > Duration::from_secs(1_800) { 1.5 } else { 0.001 });
        assert!(took < 0.0055, "{took}");
    }

    #[test]
    fn samples_are_left_out_before_counts() {
        let dear = [Duration::from_secs(3), Duration::from_millis(50)];
        let (took, _, [sampled, counted]) = hour(0.005, dear, |_| 0.1);
        assert!(took < 0.0055 && sampled >= 3 && counted > 3 * sampled, "{took} {sampled} {counted}");
    }
}
