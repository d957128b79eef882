//! The price of calls on the box of the recording.

use crate::sysno::Sysno;
use std::collections::BTreeMap;

/// Distribution of the batches of one measurement, ns a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Time a call in the fastest batch, which is the figure quoted.
    pub min: f64,
    /// Time a call in the median batch.
    pub median: f64,
    /// Time a call in the slowest batch, after the worst twentieth is left out.
    pub high: f64,
}

/// The way a price was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriceSource {
    /// The call itself was timed on this box, around this run.
    Measured,
    /// The price is the watched thread's processor time inside its own calls, without the
    /// observer's share.
    InCall,
    /// Only the crossing is known: the price is a lower bound.
    CrossingOnly,
}

/// The price of one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// The price, ns a call.
    pub ns: f64,
    /// Lower bound of the price, ns a call.
    pub low: f64,
    /// Upper bound of the price, ns a call.
    pub high: f64,
    /// The way in which the price was found.
    pub source: PriceSource,
}

/// Prices of the box, measured around the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    /// Price of the crossing just before the run, by a getppid.
    pub crossing_before: Spread,
    /// Price of the crossing just after the run, by a getppid.
    pub crossing_after: Spread,
    /// Price of a minor page fault, the first touch of a page of anonymous memory. It is measured
    /// after a run that gave memory back.
    pub fault: Option<Spread>,
    /// Price of a switch between two threads of a process. It is measured after a run that waited
    /// again and again.
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
