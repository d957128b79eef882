//! Compares the processor time of watching with that of the watched programs, while they run.
//!
//! Work without which a count would be wrong, or a program would run unwatched, is left out: a program's start, new
//! code, an end. All else that the launcher does (it looks up callers, samples calls, reads samples) may take a share of
//! the programs' time. Beyond that share it asks less until their time has caught up: no window opens, no line is
//! sampled, and a new context is counted at the callers that are known already. In the first seconds of the programs'
//! work, in which most contexts are new, nothing is held back but by the windows' own budget.

use crate::backend::WindowPolicy;
use std::time::Duration;
use systoll_model::{Problem, ProblemKind};

/// Time after which watching is held to its share, ns.
const STEADY_NS: u64 = 2_000_000_000;
/// Processor time that the programs have used by then; until then watching is not held to its share, but for
/// [`STEADY_AT_LAST_NS`] at most. A service's start takes the first seconds, and its first requests are as new: Puma's
/// connections to its backend, made from the third second on, were never sampled in 4 of 6 runs.
const STEADY_THEIRS_NS: u64 = 2_000_000_000;
const STEADY_AT_LAST_NS: u64 = 20_000_000_000;
/// Time without samples that is worth a sentence, ns. A shorter pause changes no finding: a run so short makes all its
/// windows within the allowance.
const WORTH_SAYING_NS: u64 = 1_000_000_000;
/// Share of the run, 0 to 1, without samples that puts it in doubt that nothing was found.
const MUCH: f64 = 0.5;

/// Processor times of watching and of the watched programs.
pub(crate) struct Spending {
    allowance: Duration,
    share: f64,
    /// Processor time of the launcher when it was last read.
    read: Duration,
    /// Time of work that could have been left out, since watching is held to its share.
    ours: Duration,
    /// Processor time of the watched programs when they were first compared, ns; and when watching was held to its share.
    first_ns: Option<u64>,
    before_ns: u64,
    /// Largest processor time of the watched programs that was read, ns.
    theirs_ns: u64,
    /// Time of the last comparison, ns since the run's start.
    compared_ns: u64,
    /// True once watching is held to its share.
    is_steady: bool,
    is_over: bool,
    /// Time for which the limit was exceeded, ns.
    over_ns: u64,
}

impl Spending {
    /// Begins with a launcher that has used `read` of processor time so far.
    pub(crate) fn new(policy: &WindowPolicy, read: Duration) -> Self {
        let (allowance, share) = (policy.allowance, policy.share);
        Self {
            allowance,
            share,
            read,
            ours: Duration::ZERO,
            first_ns: None,
            before_ns: 0,
            theirs_ns: 0,
            compared_ns: 0,
            is_steady: false,
            is_over: false,
            over_ns: 0,
        }
    }

    /// Accounts for the launcher's work since the last call, at whose end it has used `read` of processor time;
    /// `needed` is true if a part of it could not be left out.
    pub(crate) fn note(&mut self, read: Duration, needed: bool) {
        let used = read.saturating_sub(std::mem::replace(&mut self.read, read));
        if !needed {
            self.ours += used;
        }
    }

    /// Compares with the processor time `theirs_ns` of the watched programs, in a run that has lasted `run_ns`. Returns
    /// true if watching has used more than its share.
    pub(crate) fn compare(&mut self, theirs_ns: u64, run_ns: u64) -> bool {
        self.theirs_ns = self.theirs_ns.max(theirs_ns);
        let worked = self.theirs_ns - *self.first_ns.get_or_insert(theirs_ns);
        let is_new = run_ns < STEADY_NS || worked < STEADY_THEIRS_NS && run_ns < STEADY_AT_LAST_NS;
        self.is_steady |= !is_new;
        if is_new {
            (self.ours, self.before_ns) = (Duration::ZERO, self.theirs_ns);
            return false;
        }
        if self.is_over {
            self.over_ns += run_ns.saturating_sub(self.compared_ns);
        }
        self.compared_ns = run_ns;
        let theirs = Duration::from_nanos(self.theirs_ns - self.before_ns);
        self.is_over = self.ours > self.allowance + theirs.mul_f64(self.share);
        self.is_over
    }

    /// Returns true once the programs have worked for so long that new contexts are rare.
    pub(crate) fn is_steady(&self) -> bool {
        self.is_steady
    }

    /// Returns the problem for the report if calls were sampled for a part of the time only.
    pub(crate) fn problem(&self) -> Option<Problem> {
        let (percent, seconds) = (100.0 * self.share, self.over_ns as f64 / 1e9);
        let is_most = self.over_ns as f64 > MUCH * self.compared_ns as f64;
        let kind = if is_most { ProblemKind::Unsampled } else { ProblemKind::Bounded };
        let text = format!(
            "calls were not sampled for {seconds:.1} s, since watching had used {percent:.0} % of the program's processor \
             time"
        );
        (self.over_ns >= WORTH_SAYING_NS).then(|| Problem::new(kind, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn watching_pauses_until_the_programs_time_has_caught_up() {
        let ms = Duration::from_millis;
        let at = |run_ms: u64| STEADY_NS + run_ms * MS;
        let mut spending = Spending::new(&WindowPolicy::default(), ms(0));
        spending.note(ms(500), false);
        assert!(!spending.compare(0, STEADY_NS - 1), "most contexts are new at first");
        spending.note(ms(510), false);
        assert!(!spending.compare(1_000 * MS, STEADY_NS + 1), "the programs have hardly begun");
        spending.note(ms(540), false);
        let mut idle = Spending::new(&WindowPolicy::default(), ms(0));
        assert!(!idle.compare(0, 1) && !idle.compare(MS, STEADY_AT_LAST_NS - 1));
        idle.note(ms(30), false);
        assert!(!idle.is_steady());
        assert!(idle.compare(MS, STEADY_AT_LAST_NS) && idle.is_steady());
        assert!(!spending.is_steady());
        assert!(!spending.compare(2_000 * MS, at(0)) && spending.is_steady());
        spending.note(ms(900), true);
        assert!(!spending.compare(1_000 * MS, at(100)), "what is needed does not count");
        spending.note(ms(905), false);
        assert!(spending.compare(2_499 * MS, at(200)));
        assert_eq!(spending.problem(), None, "no time has passed yet");
        assert!(!spending.compare(2_500 * MS, at(1_200)));
        let text = "calls were not sampled for 1.0 s, since watching had used 1 % of the program's processor time";
        assert_eq!(spending.problem(), Some(Problem::new(ProblemKind::Bounded, text)));
        // A program that ends takes its time out of the sum.
        spending.note(ms(906), false);
        assert!(spending.compare(10 * MS, at(1_300)));
        assert!(!spending.compare(2_600 * MS, at(1_400)));
    }
}
