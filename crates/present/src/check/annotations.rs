//! Annotations for editors and for GitHub: a file, a line, a text.

use super::{BudgetReport, Message};
use crate::text::clean;
use std::io::{self, Write};

/// Writes `FILE:LINE:1: error: TEXT`, as compilers do and vim's quickfix list reads it.
///
/// # Errors
/// The errors of `w`.
pub fn write_vim(w: &mut dyn Write, checked: &BudgetReport<'_>) -> io::Result<()> {
    checked.messages().iter().try_for_each(|m| {
        let kind = if m.verdict.breaks() { "error" } else { "note" };
        writeln!(w, "{}:{}:1: {kind}: {} [{}]", clean(&m.file), m.line, m.text, clean(&m.rule))
    })
}

/// Writes GitHub's workflow commands: `::error file=…,line=…::TEXT`. Findings that the budget
/// accepts are left out, since they are no news in each build.
///
/// # Errors
/// The errors of `w`.
pub fn write_github(w: &mut dyn Write, checked: &BudgetReport<'_>) -> io::Result<()> {
    checked.messages().iter().filter(|m| m.verdict.breaks()).try_for_each(|m| writeln!(w, "{}", github(m)))
}

fn github(m: &Message) -> String {
    let (file, title) = (property(&m.file), property(&format!("systoll: {}", m.rule)));
    format!("::error file={file},line={},title={title}::{}", m.line, data(&m.text))
}

/// Escapes text as GitHub's runner unescapes it (actions/toolkit, `command.ts`).
fn data(text: &str) -> String {
    clean(text).replace('%', "%25")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
