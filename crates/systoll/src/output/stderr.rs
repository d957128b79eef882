//! What the user is told beside reports.

use super::ascii;
use std::io::{self, Write};

/// Tells the user something on standard error; a failure to do so is passed over.
pub(crate) fn to_stderr(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = if ascii::wanted() {
        ascii::Ascii::new(&mut stderr).write_all(text.as_bytes())
    } else {
        stderr.write_all(text.as_bytes())
    };
}

/// Columns of the terminal that standard error is, without bound where it is none.
pub(crate) fn stderr_columns() -> usize {
    terminal_size::terminal_size_of(io::stderr()).map_or(usize::MAX, |(width, _)| usize::from(width.0))
}
