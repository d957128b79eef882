//! The slowest calls of a run, kept one by one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use systoll_model::{LongCall, RowId};

/// Slowest calls remembered by default, at most.
const FEW_LONGEST: usize = 256;
/// Slowest calls remembered, at most, if the user asks for all calls above a given time.
const MOST_LONGEST: usize = 8_192;
/// Duration below which calls are never listed among the longest by default, ns.
const LONG_NS: u64 = 200_000;

/// A slow call that is listed by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RawLong {
    pub(crate) ns: u64,
    pub(crate) row: u32,
    pub(crate) at_ns: u64,
    pub(crate) thread: Arc<str>,
    pub(crate) startup: bool,
}

/// The slowest calls so far.
#[derive(Clone, Default)]
pub(crate) struct SlowestCalls {
    kept: BinaryHeap<Reverse<RawLong>>,
    /// Time from which on calls are listed one by one, ns, if the user asked for that.
    pub(crate) longer_ns: Option<u64>,
}

impl SlowestCalls {
    /// Creates an empty list of the calls above a time, ns; of the usual ones if there is none.
    pub(crate) fn above(longer_ns: Option<u64>) -> Self {
        Self { longer_ns, ..Self::default() }
    }

    /// Returns true if a call of `ns` would be among the longest.
    pub(crate) fn is_long(&self, ns: u64) -> bool {
        let (from, most) = self.limits();
        ns >= from && (self.kept.len() < most || self.kept.peek().is_some_and(|l| l.0.ns < ns))
    }

    /// Remembers a slow call. If there are too many, drops the fastest.
    pub(crate) fn add(&mut self, call: RawLong) {
        let (_, most) = self.limits();
        self.kept.push(Reverse(call));
        if self.kept.len() > most {
            self.kept.pop();
        }
    }

    /// Returns the time from which on calls are remembered, ns, and their number at most.
    fn limits(&self) -> (u64, usize) {
        self.longer_ns.map_or((LONG_NS, FEW_LONGEST), |ns| (ns, MOST_LONGEST))
    }

    /// Returns the slowest calls, slowest first.
    pub(crate) fn listed(&self) -> Vec<LongCall> {
        let mut longest: Vec<_> = self.kept.iter().map(|l| &l.0).collect();
        longest.sort_by(|a, b| b.ns.cmp(&a.ns).then(a.at_ns.cmp(&b.at_ns)));
        let told = |l: &&RawLong| {
            let RawLong { ns, at_ns, startup, .. } = **l;
            LongCall { row: RowId(l.row), ns, at_ns, thread: l.thread.clone(), startup }
        };
        longest.iter().map(told).collect()
    }
}
