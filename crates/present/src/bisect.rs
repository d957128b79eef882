//! The `bisect` screen: the commit, the row that grew, and what the commit changes there.

use crate::json::SCHEMA_VERSION;
use crate::style::{Line, Role, Style};
use crate::text::{clean, columns, shorten};
use crate::units::{counted, grouped};
use serde_json::{Value, json};
use std::io::{self, Write};
use systoll_compare::Place;

/// A commit's id is cut to this where people read it.
const SHORT: usize = 10;

/// What a bisection came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BisectReport {
    /// The good end.
    pub good: Tried,
    /// The bad end.
    pub bad: Tried,
    /// The calls that were followed; `None` where nothing differs.
    pub row: Option<String>,
    /// The first bad commit, where it was found.
    pub first: Option<Tried>,
    /// Calls before it.
    pub calls_before: Option<u64>,
    /// Where they are made.
    pub place: Option<Place>,
    /// What the commit changes there.
    pub hunks: Vec<Hunk>,
    /// Commits tried between the ends.
    pub steps: usize,
    /// Runs, those of the ends among them.
    pub runs: usize,
    /// Commits that could not be built or run.
    pub skipped: Vec<String>,
}

/// A commit that was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Its id.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
    /// Who wrote it.
    pub author: String,
    /// When, as YYYY-MM-DD.
    pub date: String,
    /// Calls counted of it.
    pub calls: Option<u64>,
}

/// Some lines that a commit changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The file, as from the repository's root.
    pub file: String,
    /// Its first line afterwards, from 1.
    pub line: u32,
    /// The lines with their `-` or `+`.
    pub lines: Vec<String>,
}

/// Writes what a bisection came to.
///
/// # Errors
/// Where `w` fails.
pub fn write_bisect(w: &mut dyn Write, report: &BisectReport, style: &Style) -> io::Result<()> {
    for line in lines(report, style) {
        writeln!(w, "{}", line.render(style))?;
    }
    Ok(())
}

fn lines(report: &BisectReport, style: &Style) -> Vec<Line> {
    let width = style.columns();
    let short = |tried: &Tried| tried.id.chars().take(SHORT).collect::<String>();
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
        what.push(Role::Faint, format!(" {}:{line}", clean(file.rsplit('/').next().unwrap_or(file))));
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
            // Whole, however long: what is left out may be all in which two of them differ.
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

/// Columns of a piece of a line, at least.
const SHORTEST_PIECE: usize = 16;

/// A line of code in pieces of at most `max` columns, its spaces as they are.
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

/// The same as one JSON object (docs/reference/bisect.schema.json); `version` is that of systoll.
pub fn bisect_json(report: &BisectReport, version: &str) -> Value {
    let tried =
        |t: &Tried| json!({"id": t.id, "subject": t.subject, "author": t.author, "date": t.date, "calls": t.calls});
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
