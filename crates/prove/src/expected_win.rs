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

    /// The middle of what several runs tell, each bound for itself; `None` of no runs.
    pub fn middle(mut runs: Vec<Self>) -> Option<Self> {
        let own = |run: &Self| run.own_cpu_ns.unwrap_or(0);
        runs.sort_by_key(own);
        let like = runs.get(runs.len() / 2).copied()?;
        let all: Vec<Self> = runs.iter().map(|run| run.beside(own(&like) as f64)).collect();
        let middle = |of: fn(&Self) -> f64| {
            let mut bounds: Vec<f64> = all.iter().map(of).collect();
            bounds.sort_by(f64::total_cmp);
            bounds.get(bounds.len() / 2).copied()
        };
        Some(Self { low_ns: middle(|run| run.low_ns)?, high_ns: middle(|run| run.high_ns)?, ..like })
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
    fn one_run_on_a_slow_machine_moves_nothing() {
        let runs = vec![told(20.0, 60.0, Some(100)), told(60.0, 180.0, Some(300)), told(22.0, 58.0, Some(100))];
        assert_eq!(ExpectedWin::middle(runs), Some(told(20.0, 60.0, Some(100))));
        assert_eq!(ExpectedWin::middle(Vec::new()), None);
    }
}
