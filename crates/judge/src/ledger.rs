//! What the ledger of a run says of rows: how many of their calls asked what was known, however far apart.

use crate::detect::Claim;
use crate::hash::Set;
use systoll_model::{Before, Between, Ledger, Recording, RowId, WindowCall};

/// Calls that the ledger knows from before and windows show, of which detectors have had their say, at least: what
/// they say of these holds for those that no window shows.
const ENOUGH: u64 = 16;
/// Looks that say something, as many as stand for one call each.
const LOOKS: f64 = 64.0;

/// What the ledger says of a row, and windows of the calls that it knows from before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LedgerView<'a> {
    /// What it says.
    pub told: Option<&'a Ledger>,
    known: u64,
    strong: u64,
    any: u64,
}

/// Calls that were known from before and are claimed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// By strong claims.
    pub strong: f64,
    /// By any.
    pub any: f64,
}

impl LedgerView<'_> {
    /// Takes in a call of a window.
    pub(crate) fn show(&mut self, call: &WindowCall, claim: Option<&Claim>) {
        if call.before != Before::Unknown {
            self.known += 1;
            self.strong += u64::from(claim.is_some_and(|c| !c.weak));
            self.any += u64::from(claim.is_some());
        }
    }

    /// How many of the row's `calls` calls were known from before and are claimed, as those that windows show.
    pub(crate) fn needless(&self, calls: u64) -> Option<Known> {
        let share = self.share(calls)?.estimate * calls as f64 / self.known as f64;
        Some(Known { strong: share * self.strong as f64, any: share * self.any as f64 })
    }

    /// The share of the row's calls that was known from before, where enough was looked at.
    pub(crate) fn share(&self, calls: u64) -> Option<Between> {
        let told = self.told?;
        let covered = told.calls.saturating_mul(1 << told.level.min(63)) >= calls / 2;
        (covered && self.known >= ENOUGH && told.observations() >= LOOKS).then(|| told.known_share(calls))
    }

    /// Whether nearly every call of the row, of which there are `calls`, was looked at: windows then know no better.
    pub(crate) fn nearly_whole(&self, calls: u64) -> bool {
        let nearly = |told: &Ledger| told.level == 0 && told.squares == told.calls && told.looks >= calls - calls / 5;
        self.told.is_some_and(nearly)
    }

    /// Whether windows show one thing of all calls that were known from before: what then decides is the ledger.
    pub(crate) fn settled(&self, calls: u64) -> Option<Between> {
        self.share(calls).filter(|_| 20 * self.strong >= 19 * self.known)
    }
}

/// The ledgers of a recording by their rows, but for those that may have taken several objects for one: relative
/// paths of a process whose working directory changes.
pub(crate) fn of_rows(recording: &Recording) -> impl Iterator<Item = (RowId, &Ledger)> {
    // Few recordings have any, and those that have none need not be looked through.
    let rows = if recording.ledgers.is_empty() { &[] } else { recording.rows.as_slice() };
    let wander = rows.iter().filter(|row| matches!(row.syscall.name(), Some("chdir" | "fchdir")));
    let wander: Set<u32> = wander.map(|row| row.process.0).collect();
    let sound = move |l: &&Ledger| {
        let row = recording.rows.get(l.row.0 as usize);
        row.is_some_and(|row| !l.relative || !wander.contains(&row.process.0))
    };
    recording.ledgers.iter().filter(sound).map(|l| (l.row, l))
}
