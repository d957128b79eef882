//! Prints messages to the user beside reports.

use super::ascii;
use std::io::{self, Write};

/// Prints a message on standard error, and ignores failures.
pub(crate) fn to_stderr(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = if ascii::wanted() {
        ascii::Ascii::new(&mut stderr).write_all(text.as_bytes())
    } else {
        stderr.write_all(text.as_bytes())
    };
}

/// Returns the width of the terminal on standard error; without a terminal, no bound.
pub(crate) fn stderr_columns() -> usize {
    terminal_size::terminal_size_of(io::stderr()).map_or(usize::MAX, |(width, _)| usize::from(width.0))
}
