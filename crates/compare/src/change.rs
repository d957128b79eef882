//! A row that is not the same on both sides, and what it is made of.

use crate::key::Key;
use crate::range::Range;
use crate::table::sum;
use crate::vary::Chance;
use std::sync::Arc;
use systoll_judge::Judgement;
use systoll_model::Recording;

/// What a call costs where nothing is known of it, ns: an order of magnitude, to sort by.
const ANY_CALL_NS: f64 = 200.0;

/// One side: the recordings of several runs, and what the judge says of each.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The recordings; [`Recording::check`] holds for each.
    pub recordings: &'a [Recording],
    /// One for each.
    pub judgements: &'a [Judgement],
}

/// The figures of one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Calls.
    pub calls: Range,
    /// Of these, failed.
    pub failed: Range,
    /// What they cost in the middle run, ns; `None` where it is not known.
    pub toll_ns: Option<u64>,
}

/// How far it can be said that something changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// By more than it varies.
    Changed,
    /// It varies from run to run on one side, and both sides lie within that.
    Varies,
    /// The runs do not tell; it depends on chance.
    ByChance(Chance),
}

/// A row that is not the same on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What it is.
    pub key: Key,
    /// On the old side.
    pub old: Figures,
    /// On the new side.
    pub new: Figures,
    /// How far it can be said.
    pub verdict: Verdict,
    /// Where it is called in the source, on the side that has more calls.
    pub place: Option<Place>,
    /// What it is about, where all calls that were looked at are about one thing.
    pub object: Option<String>,
    /// Who makes the calls, for changes told by system call: those that changed, most first.
    pub beneath: Vec<Change>,
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The function.
    pub function: Arc<str>,
    /// The file, as its debug information or interpreter names it.
    pub file: Option<Arc<str>>,
    /// The line, from 1.
    pub line: Option<u32>,
}

impl Change {
    /// What the calls that came or went cost, about: their number by what one of them costs on either side. The toll
    /// itself varies more than the calls do.
    pub(crate) fn weight(&self) -> f64 {
        let toll = sum(self.old.toll_ns, self.new.toll_ns);
        let calls = self.old.calls.median.saturating_add(self.new.calls.median);
        let each = toll.filter(|_| calls > 0).map_or(ANY_CALL_NS, |ns| ns as f64 / calls as f64);
        let failed = self.old.failed.median.abs_diff(self.new.failed.median);
        self.old.calls.median.abs_diff(self.new.calls.median).max(failed) as f64 * each
    }
}
