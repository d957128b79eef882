//! What was told beforehand of the calls that are gone.

use crate::result::Comparison;

/// What findings of watched runs tell to be won by being rid of their calls, ns of processor time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedWin {
    /// At least.
    pub low_ns: f64,
    /// At most.
    pub high_ns: f64,
    /// What the program took in that run without what watching added; `None` where that is not known.
    pub own_cpu_ns: Option<u64>,
}

impl ExpectedWin {
    /// The same for runs of `cpu_ns`. A machine is now faster and now slower, and a watched run is one of its own: the
    /// part of processor time that was told still holds.
    pub fn beside(self, cpu_ns: f64) -> Self {
        let Some(own) = self.own_cpu_ns.filter(|own| *own > 0 && cpu_ns.is_finite() && cpu_ns > 0.0) else {
            return self;
        };
        let of = |ns: f64| (ns * cpu_ns / own as f64).min(cpu_ns);
        Self { low_ns: of(self.low_ns), high_ns: of(self.high_ns), own_cpu_ns: Some(cpu_ns.round() as u64) }
    }

    /// What the least disturbed of several runs tells, which is the one that took the least processor time: who else
    /// uses the machine only adds to it, and to the program's own work more than to its calls, of which outliers are
    /// left out. `None` of no runs.
    pub fn least_disturbed(runs: Vec<Self>) -> Option<Self> {
        runs.into_iter().min_by_key(|run| run.own_cpu_ns.unwrap_or(u64::MAX))
    }
}

/// What was told, beside what was won.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedBeside {
    /// At the speed of the timed runs.
    pub told: ExpectedWin,
    /// Processor time won, ns: by the middle of the pairs.
    pub won_ns: f64,
}

impl Comparison {
    /// `told` beside what was measured; `None` where nothing was, or where the times hold what watching costs.
    pub fn expected(&self, told: Option<ExpectedWin>) -> Option<ExpectedBeside> {
        let m = self.measured.as_ref().filter(|_| !self.watched)?;
        let cpu_ns = m.a.cpu_ns.median;
        Some(ExpectedBeside { told: told?.beside(cpu_ns), won_ns: 0.0 - m.cpu.percent / 100.0 * cpu_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(low_ns: f64, high_ns: f64, own_cpu_ns: Option<u64>) -> ExpectedWin {
        ExpectedWin { low_ns, high_ns, own_cpu_ns }
    }

    #[test]
    fn beside_slower_runs_it_is_the_same_part() {
        assert_eq!(told(20.0, 60.0, Some(100)).beside(200.0), told(40.0, 120.0, Some(200)));
        assert_eq!(told(20.0, 130.0, Some(100)).beside(200.0), told(40.0, 200.0, Some(200)), "no more than all");
        let unknown = told(20.0, 60.0, None);
        assert_eq!(unknown.beside(200.0), unknown);
        assert_eq!(told(20.0, 60.0, Some(100)).beside(f64::NAN), told(20.0, 60.0, Some(100)));
    }

    #[test]
    fn runs_that_others_disturbed_tell_nothing() {
        let runs = vec![told(20.0, 60.0, Some(150)), told(22.0, 61.0, Some(100)), told(1.0, 2.0, None)];
        assert_eq!(ExpectedWin::least_disturbed(runs), Some(told(22.0, 61.0, Some(100))));
        assert_eq!(ExpectedWin::least_disturbed(Vec::new()), None);
    }
}
