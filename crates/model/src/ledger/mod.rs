//! The ledger of a run: what dear calls that name an object were about, from the first to the last.
//!
//! A window shows 32 calls in a row; what a program asks again a thousand calls later no window shows. So some
//! calls of each row are looked at one by one over the whole run, at random places ([`Looked`]), or all of them
//! where that costs nothing, and [`Notes`] keeps which object each was about and what the answer was. Threads of a
//! process share it. What comes of it is one [`Ledger`] a row, and for each call of a window how its question is
//! known from [`Before`].

mod notes;
mod question;

pub use notes::{Looked, Notes, QuestionAsked};
pub use question::{Question, Way};

use crate::row::RowId;
use crate::sysno::Sysno;
use std::sync::Arc;

/// How a call's question is known from before, by the ledger of its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Before {
    /// It is not, or it was answered otherwise.
    #[default]
    Unknown,
    /// The same was asked of the same object, and answered alike.
    Same,
    /// The same object was asked about by the other way, links followed or not, and the answer was alike: it is no link.
    OtherWay,
}

/// What a row's calls were about, over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The row.
    pub row: RowId,
    /// Calls that were looked at.
    pub looks: u64,
    /// Calls of the row that these stand for.
    pub calls: u64,
    /// The sum of the squares of what each look stands for.
    pub squares: u64,
    /// Of `calls`: the process had asked the same of the same object before, and was answered alike. No more than
    /// was seen: an object that was looked at once may have been asked about between the looks.
    pub repeats: u64,
    /// The same, but it had been asked by the other way, and not in this way.
    pub other_way: u64,
    /// Of `calls`: the process had asked before, and was answered otherwise.
    pub changes: u64,
    /// Different objects among the looks.
    pub objects: u64,
    /// Of these, looked at once, …
    pub once: u64,
    /// … and twice.
    pub twice: u64,
    /// Where there were too many objects to keep: one in so many was, as a power of two, picked by its name. All
    /// figures but `looks` are of those.
    pub level: u8,
    /// Whether some names were relative to a working directory.
    pub relative: bool,
    /// Objects that most looks were at, most first.
    pub top: Vec<LedgerObject>,
}

/// One object of a row's calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerObject {
    /// Its path.
    pub name: Arc<str>,
    /// Looks at calls about it.
    pub looks: u64,
    /// Calls these stand for.
    pub calls: u64,
    /// Looks that were answered as the same question had been before.
    pub same: u64,
    /// Other system calls that the process made about it, as far as they were looked at.
    pub also: Vec<Sysno>,
}

/// A figure between two bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Between {
    /// At least.
    pub low: f64,
    /// Probably.
    pub estimate: f64,
    /// At most.
    pub high: f64,
}

impl Ledger {
    /// Whether every call of the row, of which there were `calls`, was looked at and every object kept.
    pub fn whole(&self, calls: u64) -> bool {
        self.level == 0 && self.looks >= calls && self.calls == self.looks
    }

    /// The share of the row's calls that asked what the process had been told before, by whichever way: at least as
    /// large, for a first look at an object may have been a repeat too. The interval is of two standard errors; none
    /// where all of the row's `calls` were looked at. Calls that no look stands for, as where a loop outran the
    /// launcher, may all be repeats, or none.
    pub fn known_share(&self, calls: u64) -> Between {
        let share = self.repeats.saturating_add(self.other_way).min(self.calls) as f64 / self.calls.max(1) as f64;
        let scatter = 2.0 * (self.smoothed(share) / self.observations().max(1.0)).sqrt();
        let scatter = if self.whole(calls) { 0.0 } else { scatter };
        let missing = self.missing(calls);
        let of_all = |share: f64| share.clamp(0.0, 1.0) * (1.0 - missing);
        Between { low: of_all(share - scatter), estimate: share, high: of_all(share + scatter) + missing }
    }

    /// The share of the row's `calls` that no look stands for.
    fn missing(&self, calls: u64) -> f64 {
        let told = self.calls as f64 / calls.max(1) as f64;
        // Of objects that were picked by name, how many calls were left out is not known.
        if self.level == 0 { (1.0 - told).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The share of the row's calls whose answer had changed since the process last asked.
    pub fn changed_share(&self) -> f64 {
        self.changes.min(self.calls) as f64 / self.calls.max(1) as f64
    }

    /// As many looks that stand for one call each would say as much.
    pub fn observations(&self) -> f64 {
        let calls = self.calls as f64;
        let looks = calls * calls / (self.squares.max(1)) as f64;
        // Objects are what was picked, not calls.
        if self.level == 0 { looks } else { looks.min(self.objects as f64) }
    }

    /// The number of different objects that a row of `calls` calls was about: exact where all was looked at, else from
    /// how many were looked at once and twice (Chao and Lin 2012, of looks drawn without putting back). The low bound
    /// is what was seen; the high bound that of calls of which each look at a lone object is one of many.
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

    /// Variance of one look; a share that all looks agree on is not sure.
    fn smoothed(&self, share: f64) -> f64 {
        let n = self.observations();
        let p = (share * n + 1.0) / (n + 2.0);
        p * (1.0 - p)
    }
}
