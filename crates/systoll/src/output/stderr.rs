//! What the user is told beside reports.

use std::io::{self, Write};

/// Tells the user something on standard error; where that fails there is nobody to tell.
pub(crate) fn to_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
