//! Pieces that several of the contract's objects have.

use serde::Serialize;

/// A place in the code.
#[derive(Serialize)]
pub(super) struct User<'a> {
    pub(super) function: &'a str,
    pub(super) file: Option<&'a str>,
    pub(super) line: Option<u32>,
    pub(super) module: Option<&'a str>,
}

/// A number that windows tell, with its bounds.
#[derive(Serialize)]
pub(super) struct Estimate {
    pub(super) estimate: u64,
    pub(super) low: u64,
    pub(super) high: u64,
}

/// Returns the judge's estimate as it is written.
pub(super) fn estimate(e: systoll_judge::Estimate) -> Estimate {
    Estimate { estimate: e.estimate, low: e.low, high: e.high }
}

/// Returns a figure that JSON can hold.
pub(super) fn finite(f: f64) -> Option<f64> {
    f.is_finite().then_some(f)
}
