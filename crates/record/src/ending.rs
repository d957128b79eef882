//! When watching ends although processes go on: a signal has told systoll to end.

use crate::signals::{STAYS, Wanted};
use std::time::Duration;

/// Since when systoll is told to end.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    told: Option<u64>,
}

/// Why watching ends although processes go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutShort {
    /// The command itself does not end.
    CommandStays,
    /// It has ended, and the processes it left behind have had their time.
    LeftBehind,
}

impl CutShort {
    /// What a recording says of it; `left` processes were still running.
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
    /// Whether watching ends now, by what signals have asked for so far. Processes that the command leaves
    /// behind have `linger` from the signal on.
    pub(crate) fn look(
        &mut self,
        wanted: &Wanted,
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
    fn a_command_that_stays_is_given_up_and_what_it_leaves_has_its_time() {
        let quiet = Wanted { snapshot: false, ending: None, give_up: false };
        let told = Wanted { ending: Some(libc::SIGTERM), ..quiet };
        let give_up = Wanted { give_up: true, ..told };
        let mut ending = Ending::default();
        assert_eq!(ending.look(&quiet, 0, true, SECOND), None);
        assert_eq!(ending.look(&told, 10, false, SECOND), None);
        assert_eq!(ending.look(&give_up, 20, false, SECOND), Some(CutShort::CommandStays));
        assert_eq!(ending.look(&give_up, 1_000_000_009, true, SECOND), None);
        assert_eq!(ending.look(&quiet, 1_000_000_010, true, SECOND), Some(CutShort::LeftBehind));
    }
}
