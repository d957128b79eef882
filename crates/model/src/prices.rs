//! What calls cost on the box of the recording.

use crate::sysno::Sysno;
use std::collections::BTreeMap;

/// Several batches of one measurement, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Fastest batch: the figure quoted.
    pub min: f64,
    /// Median batch.
    pub median: f64,
    /// Slowest batch but the worst twentieth.
    pub high: f64,
}

/// Where a price comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriceSource {
    /// The call itself was timed on this box, around this run.
    Measured,
    /// Processor time the watched thread spent inside its own calls, the observer's share off.
    InCall,
    /// Nothing better than the crossing is known: the price is a lower bound.
    CrossingOnly,
}

/// The price of one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// ns a call.
    pub ns: f64,
    /// ns a call, at least.
    pub low: f64,
    /// ns a call, at most.
    pub high: f64,
    /// How it is known.
    pub source: PriceSource,
}

/// Prices of the box, measured around the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    /// A getppid just before the run: the crossing.
    pub crossing_before: Spread,
    /// The same just after it.
    pub crossing_after: Spread,
    /// A minor page fault: the first touch of a page of anonymous memory, measured after the run
    /// where it gave memory back.
    pub fault: Option<Spread>,
    /// A switch from one thread of a process to another, measured after the run where it waited
    /// again and again.
    pub switch: Option<Spread>,
    /// Prices of calls the run made.
    pub calls: BTreeMap<Sysno, Price>,
}

impl Prices {
    /// The crossing in ns: the lower of before and after.
    pub fn crossing_ns(&self) -> f64 {
        let (b, a) = (self.crossing_before.min, self.crossing_after.min);
        if b > 0.0 && a > 0.0 { b.min(a) } else { b.max(a) }
    }

    /// Whether before and after differ by more than a tenth.
    pub fn moved(&self) -> bool {
        let (b, a) = (self.crossing_before.min, self.crossing_after.min);
        b > 0.0 && a > 0.0 && (b - a).abs() > 0.1 * b.min(a)
    }
}
