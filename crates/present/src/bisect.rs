//! The `bisect` screen: the first bad commit, the row that grew, and the lines that the commit
//! changes there.

use crate::json::SCHEMA_VERSION;
use crate::style::{Line, Role, Style};
use crate::text::{clean, columns, shorten};
use crate::units::{counted, grouped};
use serde_json::{Value, json};
use std::io::{self, Write};
use systoll_compare::SourcePlace;
use systoll_model::short_file;

/// Characters of a commit's id that are shown.
const SHORT: usize = 10;

/// The result of a bisection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BisectReport {
    /// The commit at the good end of the range.
    pub good: TriedCommit,
    /// The commit at the bad end of the range.
    pub bad: TriedCommit,
    /// The row that was followed; `None` if nothing differs.
    pub row: Option<String>,
    /// The first bad commit, if it was found.
    pub first: Option<TriedCommit>,
    /// Number of the row's calls before the first bad commit.
    pub calls_before: Option<u64>,
    /// The place in the source that makes the calls.
    pub place: Option<SourcePlace>,
    /// Lines at `place` that the first bad commit changes.
    pub hunks: Vec<Hunk>,
    /// Number of commits tried between the ends.
    pub steps: usize,
    /// Number of runs, including the runs of the two ends.
    pub runs: usize,
    /// The commits that could not be built or run.
    pub skipped: Vec<String>,
}

/// A commit that was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TriedCommit {
    /// Hash of the commit.
    pub id: String,
    /// First line of the commit's message.
    pub subject: String,
    /// Author of the commit.
    pub author: String,
    /// Date of the commit, as YYYY-MM-DD.
    pub date: String,
    /// Number of calls counted when the commit's program ran.
    pub calls: Option<u64>,
}

/// Consecutive lines that a commit changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// Path of the file from the repository's root.
    pub file: String,
    /// Number of the first line after the change, from 1.
    pub line: u32,
    /// The changed lines, with their `-` or `+`.
    pub lines: Vec<String>,
}

/// Writes the result of a bisection.
///
/// # Errors
/// The errors of `w`.
pub fn write_bisect(w: &mut dyn Write, report: &BisectReport, style: &Style) -> io::Result<()> {
    for line in lines(report, style) {
        writeln!(w, "{}", line.render(style))?;
    }
    Ok(())
}

fn lines(report: &BisectReport, style: &Style) -> Vec<Line> {
    let width = style.columns();
    let short = |tried: &TriedCommit| tried.id.chars().take(SHORT).collect::<String>();
    let counts = match (report.good.calls, report.bad.calls) {
        (Some(good), Some(bad)) => format!("{} → {} calls", grouped(good), grouped(bad)),
        _ => String::new(),
    };
    let mut effort =
        format!("{}, {}", counted(report.steps as u64, "step", "steps"), counted(report.runs as u64, "run", "runs"));
    if !report.skipped.is_empty() {
        effort.push_str(&format!(", {} skipped", grouped(report.skipped.len() as u64)));
    }
    let Some(row) = report.row.as_deref().filter(|_| !counts.is_empty()) else {
        let (good, bad) = (short(&report.good), short(&report.bad));
        let text = match &report.row {
            None => format!("nothing differs between {good} and {bad}, but for what varies by itself"),
            Some(row) => format!("{} is called as often by {good} as by {bad}, or by neither", clean(row)),
        };
        return vec![Line::of(Role::Warn, text)];
    };
    let Some(first) = &report.first else {
        let text = format!("not found: what is left can't be built or run ({effort})");
        let row = Line::of(Role::Plain, format!("  {}    {counts}", clean(row)));
        return vec![Line::of(Role::Warn, text), row];
    };
    let mut head = Line::of(Role::Faint, format!("  {effort}    ")).with(Role::Plain, "first bad  ");
    head.push(Role::Strong, short(first));
    head.push(Role::Plain, "  ");
    let room = width.saturating_sub(head.width()).max(16);
    head.push(Role::Plain, shorten(&format!("\"{}\"", clean(&first.subject)), room));
    let by = format!("  {}, {}", clean(&first.author), clean(&first.date));
    let mut what = Line::of(Role::Plain, "  ").with(Role::Name, clean(row));
    if let Some(place) = &report.place
        && let (Some(file), Some(line)) = (place.file.as_deref(), place.line)
    {
        what.push(Role::Faint, format!(" {}:{line}", clean(short_file(file))));
    }
    let (old, new) = (report.calls_before.unwrap_or(0), first.calls.unwrap_or(0));
    what.push(Role::Bad, format!("    {} → {} calls", grouped(old), grouped(new)));
    let mut lines = vec![head, Line::of(Role::Faint, by), what];
    for hunk in &report.hunks {
        lines.push(
            Line::of(Role::Plain, "  the commit changes  ")
                .with(Role::Strong, format!("{}:{}", clean(&hunk.file), hunk.line)),
        );
        for line in &hunk.lines {
            let role = if line.starts_with('+') { Role::Good } else { Role::Bad };
            // A changed line is not shortened, since its middle may be the only difference.
            lines.extend(
                in_pieces(&clean(line), width.saturating_sub(6))
                    .into_iter()
                    .enumerate()
                    .map(|(n, piece)| Line::of(role, format!("{}{piece}", if n == 0 { "    " } else { "      " }))),
            );
        }
    }
    lines
}

/// Least width of a piece of a line, in columns.
const SHORTEST_PIECE: usize = 16;

/// Splits a line of code into pieces of at most `max` columns; its spaces stay.
fn in_pieces(line: &str, max: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for c in line.chars() {
        if let Some(last) = pieces.last_mut() {
            last.push(c);
            if columns(last) > max.max(SHORTEST_PIECE) {
                last.pop();
                pieces.push(c.to_string());
            }
        }
    }
    pieces
}

/// Converts the result to one JSON object (docs/reference/bisect.schema.json). `version` is that of systoll.
pub fn bisect_json(report: &BisectReport, version: &str) -> Value {
    let tried = |t: &TriedCommit| json!({"id": t.id, "subject": t.subject, "author": t.author, "date": t.date, "calls": t.calls});
    let place = report.place.as_ref();
    json!({
        "systoll": {"version": version, "schema": SCHEMA_VERSION},
        "good": tried(&report.good),
        "bad": tried(&report.bad),
        "row": report.row,
        "first_bad": report.first.as_ref().map(tried),
        "calls_before": report.calls_before,
        "place": place.map(|p| json!({"function": &*p.function, "file": p.file.as_deref(), "line": p.line})),
        "hunks": report.hunks.iter().map(|h| json!({"file": h.file, "line": h.line, "lines": h.lines})).collect::<Vec<_>>(),
        "steps": report.steps,
        "runs": report.runs,
        "skipped": report.skipped,
    })
}
