//! Writes CSV (RFC 4180): one line for each row of the exact table.
//!
//! A spreadsheet takes a cell that starts with `=`, `+`, `-`, `@`, a tab or a line's end for a
//! formula, quoted or not. Such names get a `'` in front, which spreadsheets take as a sign of
//! text.

use crate::error::ExportError;
use crate::judged_recording::{JudgedRecording, JudgedRow, short};
use std::fmt::Write as _;
use std::io::Write;
use systoll_fleet::{Answer, Cell as Answered};
use systoll_model::acts_on_terminals;

/// A cell, with the types that typed formats need.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cell {
    Text(String),
    /// A number, or `None` if it is not known.
    Number(Option<u64>),
}

/// A column, with the types that typed formats need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// True for text, false for numbers.
    pub(crate) is_text: bool,
}

impl Column {
    pub(crate) const fn text(name: &'static str) -> Self {
        Self { name, is_text: true }
    }

    pub(crate) const fn number(name: &'static str) -> Self {
        Self { name, is_text: false }
    }
}

/// The columns. Their order is part of the format; new ones come last.
pub(crate) const COLUMNS: [Column; 20] = [
    Column::number("row"),
    Column::text("syscall"),
    Column::text("program"),
    Column::number("pid"),
    Column::text("api"),
    Column::text("function"),
    Column::text("file"),
    Column::number("line"),
    Column::text("module"),
    Column::number("calls"),
    Column::number("errors"),
    Column::number("bytes"),
    Column::number("toll_ns"),
    Column::number("waited_ns"),
    Column::number("elapsed_ns"),
    Column::number("longest_ns"),
    Column::number("startup_calls"),
    Column::number("needless_calls"),
    Column::number("needless_ns"),
    Column::text("cause"),
];

/// Writes a line of names, then all rows.
pub(crate) fn write(judged: &JudgedRecording<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut csv = csv::WriterBuilder::new().from_writer(out);
    csv.write_record(COLUMNS.iter().map(|column| column.name)).map_err(io)?;
    for told in judged.rows() {
        let text = cells(judged, &told).into_iter().map(|cell| match cell {
            Cell::Text(text) => harmless(text),
            Cell::Number(number) => number.map_or_else(String::new, |n| n.to_string()),
        });
        csv.write_record(text).map_err(io)?;
    }
    csv.flush()?;
    Ok(())
}

/// Writes the result of a query over many recordings: exact figures. A figure that is not known is
/// an empty field.
///
/// # Errors
///
/// [`ExportError`] if `out` fails.
pub fn answer_csv(answer: &Answer, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut csv = csv::WriterBuilder::new().from_writer(out);
    csv.write_record(answer.columns.iter().map(|name| harmless(name.clone()))).map_err(io)?;
    for row in &answer.rows {
        let text = row.iter().map(|cell| match cell {
            Answered::None => String::new(),
            Answered::Number(number) => number.to_string(),
            Answered::Text(text) => harmless(text.clone()),
            Answered::Flag(flag) => flag.to_string(),
        });
        csv.write_record(text).map_err(io)?;
    }
    csv.flush()?;
    Ok(())
}

/// Returns a row's cells, in the order of [`COLUMNS`]. Text that is not known is empty.
pub(crate) fn cells(judged: &JudgedRecording<'_>, told: &JudgedRow<'_>) -> Vec<Cell> {
    let (row, counts) = (told.row, &told.row.counts);
    let user = row.user.map(|id| judged.recording.frame(id));
    let place = user.and_then(|frame| frame.location());
    let module = user.and_then(|frame| frame.module).map(|id| &*judged.recording.module(id).path);
    let text = |text: Option<&str>| Cell::Text(short(text.unwrap_or_default()).to_owned());
    let number = |number: u64| Cell::Number(Some(number));
    vec![
        number(told.index as u64),
        Cell::Text(row.syscall.to_string()),
        text(Some(judged.program(row))),
        number(judged.recording.process(row.process).pid.into()),
        text(row.api.as_deref()),
        text(place.map(|p| &*p.function)),
        text(place.and_then(|p| p.file.as_deref())),
        Cell::Number(place.and_then(|p| p.line).map(u64::from)),
        text(module),
        number(counts.calls),
        number(counts.failed()),
        number(counts.bytes),
        Cell::Number(counts.toll_ns),
        Cell::Number(counts.waited_ns),
        number(counts.elapsed_ns),
        number(counts.max_ns),
        number(counts.startup_calls),
        number(told.needless_calls),
        number(told.needless_ns),
        text(told.cause),
    ]
}

/// Returns a name that no spreadsheet takes for a formula, that ends no line for readers without
/// quotes, and that a terminal does not act on. A tab stays.
fn harmless(text: String) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    if text.starts_with(['=', '+', '-', '@', '\t', '\'']) {
        out.push('\'');
    }
    for c in text.chars() {
        match c {
            '\0' => out.push_str("\\0"),
            '\r' => out.push_str("\\r"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push(c),
            // Writing to a String does not fail.
            c if c.is_control() => drop(write!(out, "\\x{:02x}", u32::from(c))),
            c if acts_on_terminals(c) => drop(write!(out, "\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

fn io(error: csv::Error) -> ExportError {
    ExportError::Io(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_a_formula() {
        for name in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "'=1"] {
            assert!(harmless(name.into()).starts_with('\''), "{name}");
        }
        assert_eq!(harmless("\r=1\n".into()), "\\r=1\\n");
        assert_eq!(harmless("\u{1b}]0;a\u{7}\t\u{9b}2J\u{7f}".into()), "\\x1b]0;a\\x07\t\\x9b2J\\x7f");
        assert_eq!(harmless("\u{202e}cba".into()), "\\u{202e}cba");
        assert_eq!(harmless("localtime".into()), "localtime");
    }
}
