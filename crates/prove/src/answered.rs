//! Counts the calls that an experiment answered in place, and decides whether they are enough to
//! predict the gain of all.

use std::collections::BTreeMap;
use systoll_model::{InPlace, Missed, Recording};

/// Share of the answerable calls that must be answered for a prediction: the gain of some calls
/// tells nothing about the gain of all.
const ENOUGH: f64 = 0.95;

/// Counts of the calls that were to be answered in place, over runs of the second side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answered {
    /// The counts by system call, over all runs.
    pub calls: Vec<InPlace>,
    /// Number of runs.
    pub runs: u32,
    /// The recordings' reasons for calls that were not answered, each once.
    pub told: Vec<String>,
}

impl Answered {
    /// Adds the counts of a run's recording.
    pub fn add(&mut self, recording: &Recording) {
        self.add_calls(&recording.in_place);
        let told = recording.problems.iter().map(|p| &p.text).filter(|text| text.contains("not answered in place"));
        for text in told {
            if !self.told.contains(text) {
                self.told.push(text.clone());
            }
        }
    }

    /// Adds the counts of a run.
    pub fn add_calls(&mut self, calls: &[InPlace]) {
        self.runs += 1;
        for more in calls {
            match self.calls.iter_mut().find(|known| known.syscall == more.syscall) {
                Some(known) => known.add(more),
                None => self.calls.push(more.clone()),
            }
        }
    }

    /// Returns the share of the answerable calls that were answered, 0 to 1; `None` if there were
    /// none.
    pub fn share(&self) -> Option<f64> {
        let sum = |of: fn(&InPlace) -> u64| self.calls.iter().map(of).fold(0u64, u64::saturating_add);
        let eligible = sum(InPlace::eligible);
        (eligible > 0).then(|| sum(|p| p.answered) as f64 / eligible as f64)
    }

    /// Returns true if enough calls were answered to predict the gain of all.
    pub fn is_enough(&self) -> bool {
        self.share().is_none_or(|share| share >= ENOUGH)
    }
}

/// Returns how many calls could have been answered and were not, by reason, the most frequent first.
#[must_use]
pub fn missed(calls: &[InPlace]) -> Vec<(Missed, u64)> {
    let mut sums: BTreeMap<Missed, u64> = BTreeMap::new();
    for (reason, n) in calls.iter().flat_map(|p| &p.missed) {
        let sum = sums.entry(*reason).or_default();
        *sum = sum.saturating_add(*n);
    }
    let mut all: Vec<(Missed, u64)> = sums.into_iter().collect();
    all.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    all
}

/// Returns a reason in words, as they follow a number of calls.
#[must_use]
pub fn words_of(why: Missed) -> &'static str {
    match why {
        Missed::Changes => "looked as if they changed something",
        Missed::Unknown => "came after a signal or a wait, or first in their thread: the mask was not known",
        Missed::Elsewhere => "point to memory that the kernel has not touched since some was taken away",
        Missed::Down => "were made while new code was being examined",
        Missed::Unseen => {
            "were made where nothing is answered: by number, where not every call is seen, or by a thread whose user has \
             changed or has no name"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{Missed, Problem, ProblemKind, Sysno};

    fn recording(answered: u64, missed: u64) -> Recording {
        let in_place = InPlace { syscall: Sysno(14), answered, needed: 9, missed: vec![(Missed::Elsewhere, missed)] };
        let problem = Problem::new(ProblemKind::Note, "x: its calls are not answered in place: why");
        Recording { in_place: vec![in_place], problems: vec![problem], ..Recording::default() }
    }

    #[test]
    fn a_part_is_not_enough() {
        let mut answered = Answered::default();
        assert_eq!((answered.share(), answered.is_enough()), (None, true));
        answered.add(&recording(97, 3));
        assert_eq!((answered.share(), answered.is_enough()), (Some(0.97), true));
        answered.add(&recording(50, 50));
        assert_eq!((answered.share(), answered.is_enough(), answered.runs), (Some(0.735), false, 2));
        assert_eq!((answered.calls.len(), answered.told.len()), (1, 1));
        answered.add(&recording(0, 0));
        assert_eq!(answered.share(), Some(0.735));
    }
}
