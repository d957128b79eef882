//! Implements `systoll explain --why-not`: why no more of a line's or a call's calls is reported.

use crate::cli::ExplainArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::report::read;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use systoll_judge::{Catalogue, Options, UseOfReasons, judge};
use systoll_model::{Frame, InertJson, Location, Recording, Row, RowId};
use systoll_present::{why_not_json, write_why_not};

/// Says of `what` in a recording, by default that on standard input, why no more was reported.
pub(crate) fn why_not(what: &str, args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let piped = (!io::stdin().is_terminal()).then_some("-");
    let path =
        args.cause.as_deref().or(piped).ok_or(Failure::Usage("which recording? systoll explain --why-not WHAT REC"))?;
    let recording = read(Path::new(path))?;
    let rows = rows_of(&recording, what);
    if rows.is_empty() {
        let known = recording.by_syscall().iter().map(|total| total.syscall.to_string()).collect();
        let help = "a system call, a function, or a line as app.py:12; systoll report REC --by line lists the lines";
        return Err(Failure::Unknown {
            what: "call or line of this recording",
            name: what.to_owned(),
            known,
            help: help.into(),
        });
    }
    let judgement =
        judge(&recording, &Catalogue::builtin(), &Options { reasons: UseOfReasons::Explain, ..Options::default() });
    let mut output = Output::open(None, Output::Stdout)?;
    let style = output.style(args.color.when);
    output.write("text", |w| {
        if args.json {
            serde_json::to_writer_pretty(InertJson(&mut *w), &why_not_json(&recording, &judgement, what, &rows))?;
            return writeln!(w);
        }
        write_why_not(w, &recording, &judgement, &rows, &style)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the rows with calls that a line or a function makes, directly or by what it calls, or that are of this system
/// call or library function.
fn rows_of(recording: &Recording, what: &str) -> Vec<RowId> {
    let is_at = is_at(what);
    let has = |frame: &Frame| frame.locations.iter().any(&is_at);
    // Of a wait, the line that led to it may be known though no sample of the row shows it.
    let of_waits = recording.wait_spans.spans.iter();
    let of_waits = of_waits.filter(|span| span.line.is_some_and(|line| has(recording.frame(line))));
    let of_waits: BTreeSet<RowId> = of_waits.map(|span| span.row).collect();
    let is_of = |id: &RowId, row: &Row| {
        row.syscall.name() == Some(what)
            || row.api.as_deref() == Some(what)
            || row.lines.iter().any(|line| has(recording.frame(line.frame)))
            || recording.row_frames(row).any(has)
            || of_waits.contains(id)
    };
    let rows = (0u32..).map(RowId).zip(&recording.rows).filter(|(id, row)| row.counts.calls > 0 && is_of(id, row));
    rows.map(|(id, _)| id).collect()
}

/// Returns a function that returns true for the locations that `what` names: a line (`app.py:12`) or a function.
pub(crate) fn is_at(what: &str) -> impl Fn(&Location) -> bool {
    let line = what.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    move |location| match line {
        Some((file, line)) => {
            location.line == Some(line) && location.file.as_deref().is_some_and(|of| is_file(of, file))
        }
        None => is_function(&location.function, what),
    }
}

/// Returns true if a path ends with a file's name, or with a folder's and its.
fn is_file(path: &str, name: &str) -> bool {
    path.strip_suffix(name).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
}

/// Returns true if a function has this name, with or without what it belongs to.
fn is_function(function: &str, name: &str) -> bool {
    let bare = function.split('(').next().unwrap_or(function);
    function == name || bare.strip_suffix(name).is_some_and(|of| of.is_empty() || of.ends_with([':', '.', '#']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_a_function_are_found_by_the_end_of_their_names() {
        assert!(is_file("/srv/app/log.py", "log.py") && is_file("/srv/app/log.py", "app/log.py"));
        assert!(is_file("log.py", "log.py") && !is_file("/srv/catalog.py", "log.py"));
        assert!(is_function("main.flush", "flush") && is_function("app::Log::flush(int)", "flush"));
        assert!(is_function("flush", "flush") && !is_function("reflush", "flush"));
    }
}
