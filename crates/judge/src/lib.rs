//! From a recording to findings. Pure: the same recording gives the same findings, no I/O.
#![forbid(unsafe_code)]

mod finding;

pub use finding::{Confidence, Estimate, Evidence, Finding, Judgement, Kind};
