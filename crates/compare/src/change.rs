//! Describes a row that differs between the two sides.

use crate::key::Key;
use crate::range::Range;
use crate::table::sum;
use crate::vary::Chance;
use std::sync::Arc;
use systoll_judge::Judgement;
use systoll_model::{Location, Recording};

/// Cost of a call whose cost is not known, in ns: an order of magnitude, for sorting.
const ANY_CALL_NS: f64 = 200.0;

/// One side of a comparison: the recordings of several runs and their judgements.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The recordings. [`Recording::check`] holds for each.
    pub recordings: &'a [Recording],
    /// The judgements, one for each recording.
    pub judgements: &'a [Judgement],
}

/// The figures of one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Number of calls.
    pub calls: Range,
    /// Number of calls that failed.
    pub failed: Range,
    /// Cost of the calls in the median run, ns; `None` if it is not known.
    pub toll_ns: Option<u64>,
}

/// The verdict on a difference between two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The difference is larger than the variation between runs.
    Changed,
    /// The count varies from run to run on one side, and both sides lie within that variation.
    Varies,
    /// The count depends on chance, and the runs do not tell more.
    ByChance(Chance),
}

/// A row that differs between the two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The key of the row.
    pub key: Key,
    /// The row's figures on the old side.
    pub old: Figures,
    /// The row's figures on the new side.
    pub new: Figures,
    /// The verdict on the difference.
    pub verdict: Verdict,
    /// The place in the source that makes the calls, on the side with more calls.
    pub place: Option<SourcePlace>,
    /// The object of the calls, if all sampled calls have the same one.
    pub object: Option<String>,
    /// The callers whose rows changed, those with most calls first. Only for changes by system
    /// call.
    pub beneath: Vec<Change>,
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePlace {
    /// The function.
    pub function: Arc<str>,
    /// The file, as debug information or the interpreter names it.
    pub file: Option<Arc<str>>,
    /// The line, from 1.
    pub line: Option<u32>,
}

impl From<&Location> for SourcePlace {
    fn from(at: &Location) -> Self {
        Self { function: at.function.clone(), file: at.file.clone(), line: at.line }
    }
}

impl Change {
    /// Returns the approximate cost of the calls that came or went: their number times the cost of
    /// one, averaged over both sides. The toll itself varies more than the number of calls.
    pub(crate) fn weight(&self) -> f64 {
        let toll = sum(self.old.toll_ns, self.new.toll_ns);
        let calls = self.old.calls.median.saturating_add(self.new.calls.median);
        let each = toll.filter(|_| calls > 0).map_or(ANY_CALL_NS, |ns| ns as f64 / calls as f64);
        let failed = self.old.failed.median.abs_diff(self.new.failed.median);
        self.old.calls.median.abs_diff(self.new.calls.median).max(failed) as f64 * each
    }
}
