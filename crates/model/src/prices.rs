//! The price of calls on the box of the recording.

use crate::sysno::Sysno;
use std::collections::BTreeMap;

/// Batches of one measurement, in ns a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The fastest batch: the figure quoted.
    pub min: f64,
    /// The median batch.
    pub median: f64,
    /// The slowest batch when the worst twentieth is left out.
    pub high: f64,
}

/// The way a price was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriceSource {
    /// The call itself was timed on this box, around this run.
    Measured,
    /// The watched thread's processor time inside its own calls, without the observer's share.
    InCall,
    /// Only the crossing is known: the price is a lower bound.
    CrossingOnly,
}

/// The price of one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// The price, ns a call.
    pub ns: f64,
    /// Its lower bound, ns a call.
    pub low: f64,
    /// Its upper bound, ns a call.
    pub high: f64,
    /// The way it was found.
    pub source: PriceSource,
}

/// Prices of the box, measured around the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    /// A getppid just before the run: the price of the crossing.
    pub crossing_before: Spread,
    /// A getppid just after the run.
    pub crossing_after: Spread,
    /// A minor page fault: the first touch of a page of anonymous memory. Measured after a run that
    /// gave memory back.
    pub fault: Option<Spread>,
    /// A switch between two threads of a process. Measured after a run that waited again and again.
    pub switch: Option<Spread>,
    /// Prices of the calls that the run made.
    pub calls: BTreeMap<Sysno, Price>,
}

impl Prices {
    /// Returns the price of the crossing in ns: the lower of before and after.
    pub fn crossing_ns(&self) -> f64 {
        let (b, a) = (self.crossing_before.min, self.crossing_after.min);
        if b > 0.0 && a > 0.0 { b.min(a) } else { b.max(a) }
    }

    /// Returns true if the crossing's prices before and after the run differ by more than a tenth.
    pub fn moved(&self) -> bool {
        let (b, a) = (self.crossing_before.min, self.crossing_after.min);
        b > 0.0 && a > 0.0 && (b - a).abs() > 0.1 * b.min(a)
    }
}
