//! Answering calls in place on machines for which no such code is written.

use crate::error::Error;
use systoll_model::{BackendKind, Machine};

/// Refuses to answer calls in place.
///
/// # Errors
/// Always.
pub fn can_answer() -> Result<(), Error> {
    let why = format!(
        "the code that answers calls is written for x86-64, and this machine is {}, and ptrace, which watches here, would stop \
         the program twice for a call that it answers: nothing to win could be measured",
        Machine::HERE.name()
    );
    Err(Error::refused(BackendKind::Inproc, why))
}

/// Returns false: counting code that a killed systoll has left in process `pid` does nothing.
///
/// # Errors
/// None here.
pub fn clean(_pid: i32) -> Result<bool, Error> {
    Ok(false)
}
