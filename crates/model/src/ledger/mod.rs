//! The ledger of a run: the objects named by expensive calls, from the first call to the last.
//!
//! A window shows 32 calls in a row, so no window shows a question that a program repeats a
//! thousand calls later. Therefore some calls of each row are looked at one by one over the whole
//! run, at random places, or all of them if that costs nothing. Such a call is a look ([`Looked`]).
//! [`Notes`] keeps the object and the answer of each. Threads of a process share them. The result
//! is one [`Ledger`] a row, and the relation of each window's calls to earlier questions
//! ([`Before`]).

mod notes;
mod question;

pub use notes::{Looked, Notes, QuestionAsked};
pub use question::{Question, Way};

use crate::row::RowId;
use crate::sysno::Sysno;
use std::sync::Arc;

/// The relation of a call's question to earlier ones, from the ledger of its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Before {
    /// The question was not asked before, or it was answered differently.
    #[default]
    Unknown,
    /// The process had asked the same question about the same object before, with the same answer.
    Same,
    /// The process had asked the same question before, with links followed if this call does not
    /// follow them, or the reverse, and with the same answer: the object is no link.
    OtherWay,
}

/// The objects of a row's calls over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The row whose calls the ledger describes.
    pub row: RowId,
    /// Number of looks: calls whose object and answer were noted.
    pub looks: u64,
    /// Number of the row's calls that the looks stand for.
    pub calls: u64,
    /// Sum of the squares of the numbers of calls that each look stands for.
    pub squares: u64,
    /// Number of `calls` before which the process had asked the same about the same object, with
    /// the same answer. A lower bound: an object with one look may have been asked about between
    /// the looks.
    pub repeats: u64,
    /// Number of `calls` with a question that the process had asked before, but only the other way
    /// ([`Before::OtherWay`]). They are not among `repeats`.
    pub other_way: u64,
    /// Number of `calls` that asked what the process had asked before, and got another answer.
    pub changes: u64,
    /// Number of different objects of the looks.
    pub objects: u64,
    /// Number of objects with one look.
    pub once: u64,
    /// Number of objects with two looks.
    pub twice: u64,
    /// Level of thinning: if there were too many objects to keep, only one of 2^`level` is kept,
    /// chosen by a hash of its name. All figures but `looks` count only the objects kept.
    pub level: u8,
    /// True if some names were relative to a working directory.
    pub relative: bool,
    /// The objects with most looks, most first.
    pub top: Vec<LedgerObject>,
}

/// One object of a row's calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerObject {
    /// Path of the object.
    pub name: Arc<str>,
    /// Number of looks at calls about the object.
    pub looks: u64,
    /// Number of calls that these looks stand for.
    pub calls: u64,
    /// Number of looks that repeated an earlier question and got the same answer.
    pub same: u64,
    /// Other system calls that the process made about the object, as far as looks saw them.
    pub also: Vec<Sysno>,
}

/// An estimated figure with its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Between {
    /// Lower bound of the interval.
    pub low: f64,
    /// Estimate, within the interval.
    pub estimate: f64,
    /// Upper bound of the interval.
    pub high: f64,
}

impl Ledger {
    /// Returns true if all `calls` of the row were looked at and every object is kept.
    pub fn whole(&self, calls: u64) -> bool {
        self.level == 0 && self.looks >= calls && self.calls == self.looks
    }

    /// Returns the share of the row's `calls` whose answer the process already knew, by asking
    /// either way. The share is a lower bound: the first look at an object may have been a repeat
    /// too. The interval is two standard errors wide on each side, or zero if all calls were looked
    /// at. Calls that no look stands for (e.g. a loop that outran the launcher) widen it: they may
    /// all be repeats, or none.
    pub fn known_share(&self, calls: u64) -> Between {
        let share = self.repeats.saturating_add(self.other_way).min(self.calls) as f64 / self.calls.max(1) as f64;
        let scatter = 2.0 * (self.smoothed(share) / self.observations().max(1.0)).sqrt();
        let scatter = if self.whole(calls) { 0.0 } else { scatter };
        let missing = self.missing(calls);
        let of_all = |share: f64| share.clamp(0.0, 1.0) * (1.0 - missing);
        Between { low: of_all(share - scatter), estimate: share, high: of_all(share + scatter) + missing }
    }

    /// Returns the share of the row's `calls` that no look stands for.
    fn missing(&self, calls: u64) -> f64 {
        let told = self.calls as f64 / calls.max(1) as f64;
        // If objects were drawn by name, the number of calls left out is unknown.
        if self.level == 0 { (1.0 - told).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Returns the share of the row's calls whose answer had changed since the process last asked.
    pub fn changed_share(&self) -> f64 {
        self.changes.min(self.calls) as f64 / self.calls.max(1) as f64
    }

    /// Returns the effective sample size: the number of looks with equal weights that would be as
    /// precise.
    pub fn observations(&self) -> f64 {
        let calls = self.calls as f64;
        let looks = calls * calls / (self.squares.max(1)) as f64;
        // From level 1 on, objects were drawn, not calls.
        if self.level == 0 { looks } else { looks.min(self.objects as f64) }
    }

    /// Returns the number of different objects in all `calls` of the row: exact if all were looked
    /// at, else estimated from the objects with one and with two looks (Chao and Lin 2012, for
    /// draws without replacement). The lower bound is the number seen. The upper bound assumes that
    /// each object with one look is one of many.
    pub fn objects_in_all(&self, calls: u64) -> Between {
        let kept = (1u64 << self.level.min(63)) as f64;
        let seen = self.objects as f64 * kept;
        let (once, twice) = (self.once as f64, self.twice as f64);
        let most = calls as f64;
        let share = (self.looks as f64 / most.max(1.0)).min(1.0);
        if self.whole(calls) || once == 0.0 || share >= 1.0 {
            return Between { low: seen, estimate: seen, high: seen.max(if self.whole(calls) { seen } else { most }) };
        }
        let unseen = once * once / (2.0 * twice + share / (1.0 - share) * once).max(f64::MIN_POSITIVE);
        let high = (self.objects as f64 - once + once / share) * kept;
        let high = high.min(most).max(seen);
        Between { low: seen, estimate: (seen + unseen * kept).clamp(seen, high), high }
    }

    /// Returns the variance of one look. It is smoothed, so that a share on which all looks agree
    /// is not taken to be certain.
    fn smoothed(&self, share: f64) -> f64 {
        let n = self.observations();
        let p = (share * n + 1.0) / (n + 2.0);
        p * (1.0 - p)
    }
}
