//! Predicts a gain from findings.

use crate::result::Comparison;

/// The gain of processor time that findings of watched runs predict if their calls are avoided, in
/// ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedWin {
    /// Lower bound of the gain.
    pub low_ns: f64,
    /// Upper bound of the gain; without meaning if [`ExpectedWin::is_at_least`].
    pub high_ns: f64,
    /// True if only the lower bound is known: work of the program's own around the calls may go with them.
    pub is_at_least: bool,
    /// The program's processor time in the watched run without the cost of watching; `None` if it
    /// is not known.
    pub own_cpu_ns: Option<u64>,
}

impl ExpectedWin {
    /// Scales the prediction to runs of `cpu_ns`. The speed of a machine varies, and a watched run
    /// differs from others; the predicted fraction of processor time stays valid.
    pub fn beside(self, cpu_ns: f64) -> Self {
        let Some(own) = self.own_cpu_ns.filter(|own| *own > 0 && cpu_ns.is_finite() && cpu_ns > 0.0) else {
            return self;
        };
        let of = |ns: f64| (ns * cpu_ns / own as f64).min(cpu_ns);
        let own_cpu_ns = Some(cpu_ns.round() as u64);
        Self { low_ns: of(self.low_ns), high_ns: of(self.high_ns), own_cpu_ns, ..self }
    }

    /// Returns the prediction of the run that was disturbed least: the one with the least processor
    /// time. Other users of the machine only add to it, and more to the program's own work than to
    /// its calls, whose outliers are excluded. Returns `None` if there are no runs.
    pub fn least_disturbed(runs: Vec<Self>) -> Option<Self> {
        runs.into_iter().min_by_key(|run| run.own_cpu_ns.unwrap_or(u64::MAX))
    }
}

/// A predicted gain beside the measured one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedBeside {
    /// The prediction, at the speed of the timed runs.
    pub told: ExpectedWin,
    /// The measured gain of processor time, ns: the median of the pairs.
    pub won_ns: f64,
}

impl Comparison {
    /// Returns the prediction beside the measurement. Returns `None` if nothing was measured, or if
    /// the times include the cost of watching.
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
        ExpectedWin { low_ns, high_ns, is_at_least: false, own_cpu_ns }
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
