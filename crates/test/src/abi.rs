//! Functions that begin and end a block separately, for the C interface of `systoll-test-c`.

use crate::counts::Counts;
use crate::dispatch::{self, Begin, PythonFrames};
use crate::problem::Unavailable;

/// Begins a block in the calling thread.
pub fn begin(python: Option<PythonFrames>) -> Result<(), Unavailable> {
    dispatch::begin(Begin { stack_end: u64::MAX, python })
}

/// Ends the calling thread's innermost block.
pub fn end() -> Result<Counts, Unavailable> {
    dispatch::end().map(Counts::new).ok_or(Unavailable::EndedElsewhere)
}
