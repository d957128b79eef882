//! What the user is told beside reports.

use std::io::{self, Write};

/// Tells the user something on standard error; a failure to do so is passed over.
pub(crate) fn to_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
