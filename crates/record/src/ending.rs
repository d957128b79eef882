//! Decides when watching ends although processes still run, because a signal told systoll to end.

use crate::signals::{STAYS, SignalRequests};
use std::time::Duration;

/// Time at which systoll was told to end, if it was.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    told: Option<u64>,
}

/// The reason why watching ends although processes still run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutShort {
    /// The command was told to end, and does not.
    CommandStays,
    /// The caller has seen enough.
    Left,
    /// The command has ended, and the time granted to the processes that it left behind is over.
    LeftBehind,
}

impl CutShort {
    /// Returns the sentence for the recording; `left` processes were still running.
    pub(crate) fn text(self, left: usize) -> String {
        match self {
            Self::CommandStays => STAYS.to_owned(),
            Self::Left => format!("{left} processes were left running and are no longer watched"),
            Self::LeftBehind => {
                format!("{left} processes the command left behind were still running and are no longer watched")
            }
        }
    }
}

impl Ending {
    /// Returns the reason to end watching now, if there is one, according to the signals so far. Processes that the
    /// command left behind may run for `linger` after the signal. `leaves` is true if the caller has seen enough.
    pub(crate) fn reason_to_end(
        &mut self,
        wanted: &SignalRequests,
        now: u64,
        (command_ended, leaves): (bool, bool),
        linger: Duration,
    ) -> Option<CutShort> {
        if leaves {
            return Some(CutShort::Left);
        }
        if wanted.ending.is_some() {
            self.told.get_or_insert(now);
        }
        if !command_ended {
            return wanted.give_up.then_some(CutShort::CommandStays);
        }
        let over = self.told.is_some_and(|told| now.saturating_sub(told) >= linger.as_nanos() as u64);
        over.then_some(CutShort::LeftBehind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn watching_ends_for_a_command_that_stays_and_after_lingering() {
        let quiet = SignalRequests { snapshot: false, ending: None, give_up: false };
        let told = SignalRequests { ending: Some(libc::SIGTERM), ..quiet };
        let give_up = SignalRequests { give_up: true, ..told };
        let mut ending = Ending::default();
        assert_eq!(ending.reason_to_end(&quiet, 0, (true, false), SECOND), None);
        assert_eq!(ending.reason_to_end(&quiet, 0, (false, true), SECOND), Some(CutShort::Left));
        assert_eq!(ending.reason_to_end(&told, 10, (false, false), SECOND), None);
        assert_eq!(ending.reason_to_end(&give_up, 20, (false, false), SECOND), Some(CutShort::CommandStays));
        assert_eq!(ending.reason_to_end(&give_up, 1_000_000_009, (true, false), SECOND), None);
        assert_eq!(ending.reason_to_end(&quiet, 1_000_000_010, (true, false), SECOND), Some(CutShort::LeftBehind));
    }
}
