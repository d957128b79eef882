//! Parts that several objects of the contract share.

use serde::Serialize;

/// A place in the program's code.
#[derive(Serialize)]
pub(super) struct User<'a> {
    pub(super) function: &'a str,
    pub(super) file: Option<&'a str>,
    pub(super) line: Option<u32>,
    pub(super) module: Option<&'a str>,
}

/// A number estimated from windows, with its bounds.
#[derive(Serialize)]
pub(super) struct Estimate {
    pub(super) estimate: u64,
    pub(super) low: u64,
    pub(super) high: u64,
}

/// Converts the judge's estimate to its JSON form.
pub(super) fn estimate(e: systoll_judge::Estimate) -> Estimate {
    Estimate { estimate: e.estimate, low: e.low, high: e.high }
}

/// Returns the figure if JSON can represent it; `None` for infinity and NaN.
pub(super) fn finite(f: f64) -> Option<f64> {
    f.is_finite().then_some(f)
}
