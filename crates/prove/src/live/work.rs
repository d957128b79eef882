//! The unit in which a running program's work is counted.

use super::LiveTurn;
use crate::ProveError;
use systoll_model::Sysno;

/// Calls in a turn, at least, for their number to tell how much was done.
const ENOUGH: u64 = 20;

/// The unit in which a program's work is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Requests, as the load prints them.
    Requests,
    /// Runs of the load, which prints no requests.
    Loads,
    /// Calls of this system call, which are made in both kinds of turns.
    Calls(Sysno),
    /// The calls that may be answered, whether they are made or answered: the program makes no others to speak of.
    Asked,
}

impl Work {
    /// Chooses the unit by a turn of the program as it is: what its load counts, else `per`, else its most frequent call
    /// that is made in any case.
    ///
    /// # Errors
    /// The program makes too few calls of `per`.
    pub(super) fn of(turn: &LiveTurn, per: Option<Sysno>) -> Result<Self, ProveError> {
        let count = |syscall: &Sysno| turn.made.get(syscall).copied().unwrap_or(0);
        let is_asked = |syscall: &Sysno| turn.in_place.iter().any(|p| p.syscall == *syscall);
        if let Some(load) = &turn.load {
            return Ok(if load.told { Self::Requests } else { Self::Loads });
        }
        if let Some(per) = per {
            let (n, seconds) = (count(&per), turn.seconds);
            return match is_asked(&per) {
                true => Ok(Self::Asked),
                false if n >= ENOUGH => Ok(Self::Calls(per)),
                false => Err(ProveError::Options(format!(
                    "the program made {n} {per} calls in {seconds:.1} s: too few to measure by"
                ))),
            };
        }
        let others = turn.made.iter().filter(|(syscall, n)| !is_asked(syscall) && **n >= ENOUGH);
        Ok(others.max_by_key(|(_, n)| **n).map_or(Self::Asked, |(syscall, _)| Self::Calls(*syscall)))
    }

    /// Returns the units that were done in a turn.
    fn done(&self, turn: &LiveTurn) -> Option<f64> {
        let load = turn.load.as_ref();
        match self {
            // If the load prints no number of requests, its rate and the turn's length give the number.
            Self::Requests => load?.work.map_or_else(|| Some(load?.per_second * turn.seconds), |n| Some(n as f64)),
            Self::Loads => load?.work.map(|n| n as f64),
            Self::Calls(syscall) => Some(turn.made.get(syscall).copied().unwrap_or(0) as f64),
            Self::Asked => Some(turn.asked() as f64),
        }
    }

    /// Returns the units done in a second of a turn.
    pub(super) fn per_second(&self, turn: &LiveTurn) -> Option<f64> {
        match (self, &turn.load) {
            (Self::Requests | Self::Loads, Some(load)) => Some(load.per_second),
            _ => Some(self.done(turn)? / turn.seconds.max(1e-9)),
        }
    }

    /// Returns the processor time of a unit in a turn, ns; `None` where none was done.
    pub(super) fn cpu_ns(&self, turn: &LiveTurn) -> Option<f64> {
        self.done(turn).filter(|n| *n > 0.0).map(|n| turn.cpu_ns as f64 / n)
    }
}
