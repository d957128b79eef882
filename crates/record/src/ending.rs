//! Decides when watching ends although processes still run, because a signal told systoll to end.

use crate::signals::{STAYS, SignalRequests};
use std::time::Duration;

/// Time at which systoll was told to end, if it was.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    told: Option<u64>,
}

/// Why watching ends although processes still run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutShort {
    /// The command itself does not end.
    CommandStays,
    /// The command has ended, and the time for the processes that it left behind is over.
    LeftBehind,
}

impl CutShort {
    /// Returns the sentence for the recording; `left` processes were still running.
    pub(crate) fn text(self, left: usize) -> String {
        match self {
            Self::CommandStays => STAYS.to_owned(),
            Self::LeftBehind => {
                format!("{left} processes the command left behind were still running and are no longer watched")
            }
        }
    }
}

impl Ending {
    /// Returns why watching ends now, if it does, by what signals have asked for so far. Processes that the command
    /// leaves behind may run for `linger` after the signal.
    pub(crate) fn look(
        &mut self,
        wanted: &SignalRequests,
        now: u64,
        command_ended: bool,
        linger: Duration,
    ) -> Option<CutShort> {
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
        assert_eq!(ending.look(&quiet, 0, true, SECOND), None);
        assert_eq!(ending.look(&told, 10, false, SECOND), None);
        assert_eq!(ending.look(&give_up, 20, false, SECOND), Some(CutShort::CommandStays));
        assert_eq!(ending.look(&give_up, 1_000_000_009, true, SECOND), None);
        assert_eq!(ending.look(&quiet, 1_000_000_010, true, SECOND), Some(CutShort::LeftBehind));
    }
}
