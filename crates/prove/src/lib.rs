//! Runs two forms of a program in interleaved pairs, unwatched, and says what differs.
//!
//! Invariants: nothing is claimed where output or exit differ, or where the interval of a change
//! includes no change; programs are run through [`Executor`] alone; no unsafe code.
#![forbid(unsafe_code)]

mod calls;
mod compare;
mod digest;
mod executor;
mod options;
mod result;
mod stats;

pub use calls::CallCounts;
pub use compare::compare;
pub use digest::{Digest, Sameness};
pub use executor::{Executor, Output, Processes, Run};
pub use options::Options;
pub use result::{Change, Comparison, Difference, Estimate, Measured, Outcome, Side, Verdict};

use std::io;
use systoll_cure::RunError;

/// Why nothing could be proved.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// A run failed to start or took too long.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A program's output could not be kept for comparison.
    #[error("can't keep the output for comparison: {0}")]
    Output(#[source] io::Error),
    /// The options contradict themselves.
    #[error("{0}")]
    Options(String),
}
