//! The ledger's figures of a row: the number of its calls that asked a known question, however far apart the calls
//! are.

use crate::collections::hash::Set;
use crate::evidence::claim::Claim;
use systoll_model::{Before, Between, Ledger, Recording, RowId, WindowCall};

/// Least number of calls in windows that repeat an earlier question according to the ledger, for their claims to hold
/// for calls that no window shows.
const ENOUGH: u64 = 16;
/// Least number of a ledger's looks, counted as looks of equal weight.
const LOOKS: f64 = 64.0;

/// A row's ledger, and the claims of those calls in windows that the ledger knows from before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LedgerView<'a> {
    /// The row's ledger, or one of a like row.
    pub told: Option<&'a Ledger>,
    known: u64,
    strong: u64,
    any: u64,
}

/// Numbers of calls that repeat a known question and are claimed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepeatCounts {
    /// Number of the calls with a strong claim.
    pub strong: f64,
    /// Number of the calls with any claim.
    pub any: f64,
}

impl LedgerView<'_> {
    /// Counts a call of a window.
    pub(crate) fn show(&mut self, call: &WindowCall, claim: Option<&Claim>) {
        if call.before != Before::Unknown {
            self.known += 1;
            self.strong += u64::from(claim.is_some_and(|c| !c.weak));
            self.any += u64::from(claim.is_some());
        }
    }

    /// Returns how many of the row's `calls` calls repeat a known question and are claimed, in proportion to such
    /// calls in windows. Returns `None` if the ledger or the windows hold too few.
    pub(crate) fn needless(&self, calls: u64) -> Option<RepeatCounts> {
        let share = self.share(calls)?.estimate * calls as f64 / self.known as f64;
        Some(RepeatCounts { strong: share * self.strong as f64, any: share * self.any as f64 })
    }

    /// Returns the share of the row's calls that repeat a known question; `None` if the ledger or the windows hold
    /// too few calls.
    pub(crate) fn share(&self, calls: u64) -> Option<Between> {
        let told = self.told?;
        let covered = told.calls.saturating_mul(1 << told.level.min(63)) >= calls / 2;
        (covered && self.known >= ENOUGH && told.observations() >= LOOKS).then(|| told.known_share(calls))
    }

    /// Returns true if nearly all of the row's `calls` calls were looked at, so that windows know no better.
    pub(crate) fn nearly_whole(&self, calls: u64) -> bool {
        let nearly = |told: &Ledger| told.level == 0 && told.squares == told.calls && told.looks >= calls - calls / 5;
        self.told.is_some_and(nearly)
    }

    /// Returns the share of the row's calls that repeat a known question, if windows claim nearly all such calls
    /// strongly: the ledger's share then decides. Returns `None` if they do not.
    pub(crate) fn decisive_share(&self, calls: u64) -> Option<Between> {
        self.share(calls).filter(|_| 20 * self.strong >= 19 * self.known)
    }
}

/// Returns the ledgers of a recording with their rows. Leaves out ledgers that may have taken several objects for
/// one: those with relative paths in a process that changes its working directory.
pub(crate) fn of_rows(recording: &Recording) -> impl Iterator<Item = (RowId, &Ledger)> {
    // Few recordings have ledgers; the rows of others need no search.
    let rows = if recording.ledgers.is_empty() { &[] } else { recording.rows.as_slice() };
    let wander = rows.iter().filter(|row| matches!(row.syscall.name(), Some("chdir" | "fchdir")));
    let wander: Set<u32> = wander.map(|row| row.process.0).collect();
    let sound = move |l: &&Ledger| {
        let row = recording.rows.get(l.row.0 as usize);
        row.is_some_and(|row| !l.relative || !wander.contains(&row.process.0))
    };
    recording.ledgers.iter().filter(sound).map(|l| (l.row, l))
}
