//! The next command to type after a finding: an experiment, or a question.

use crate::causes::catalogue::Cause;
use crate::results::finding::{Finding, Kind};
use crate::semantics::Sleep;
use crate::time::{NeedlessWaits, only_sleeps};
use systoll_model::{Elision, Frame, Header, Recording, Row, RowId, RowLine, short_file};

/// Returns the next command to type, as argv; it is one of this version's commands. If systoll can
/// apply the cure itself, the command proves its gain.
pub(super) fn next_command(
    cause: Option<&Cause>,
    applied: Option<String>,
    (finding, late): (&Finding, Option<&NeedlessWaits>),
    recording: &Recording,
) -> Vec<String> {
    let Header { backend, command, attached, .. } = &recording.header;
    let backend = *backend;
    // A command that the trace cut off can't be typed, nor one over which a server has written what it does.
    let cut = backend.is_trace() && command.iter().any(|word| word.ends_with('…'));
    let is_title = attached.is_some() && command.len() == 1 && command.iter().any(|word| word.contains(' '));
    let unknown = ["CMD".to_owned()];
    let command = if cut || is_title { unknown.as_slice() } else { command.as_slice() };
    let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let elide = answered_in_place(finding).filter(|_| backend.answers_in_place() && !command.is_empty());
    let experiment = |calls: String| {
        if let Some(pid) = runs_on(finding, recording) {
            return words(&["systoll", "prove", "--live", &pid.to_string(), "--elide", &calls]);
        }
        let mut argv = words(&["systoll", "prove", "--elide", &calls, "--"]);
        argv.extend_from_slice(command);
        argv
    };
    let is_applied = applied.is_some() || command.is_empty() || attached.is_some();
    if let Some(place) = sleeping_place(finding, late, recording).filter(|_| !is_applied) {
        let mut argv = words(&["systoll", "prove", "--shorten", &place, "--"]);
        argv.extend_from_slice(command);
        return argv;
    }
    // Without a known cause, whole stacks show which code makes the calls.
    let Some(cause) = cause else {
        if command.is_empty() {
            return words(&["systoll", "causes"]);
        }
        if let Some(calls) = elide {
            return experiment(calls);
        }
        let mut argv = words(&["systoll", "run", "-k", "--"]);
        argv.extend_from_slice(command);
        return argv;
    };
    let Some(applied) = applied.filter(|_| !command.is_empty()) else {
        return elide.map_or_else(|| words(&["systoll", "explain", &cause.id]), experiment);
    };
    let mut argv = words(&["systoll", "prove", "--cure", &applied, "--"]);
    argv.extend_from_slice(command);
    argv
}

/// Returns the id of the process of a finding's first row, if systoll has watched it for a while and it runs on.
fn runs_on(finding: &Finding, recording: &Recording) -> Option<u32> {
    recording.header.attached.filter(|attached| attached.left_running)?;
    let row = recording.rows.get(finding.rows.first()?.0 as usize)?;
    let process = recording.processes.get(row.process.0 as usize)?;
    (process.end_ns == 0 && process.pid > 0).then_some(process.pid)
}

/// Returns the finding's system calls, separated by commas, if each of its needless calls can be answered without the
/// kernel: an experiment then shows the gain before the program is changed. Returns `None` otherwise.
fn answered_in_place(finding: &Finding) -> Option<String> {
    let names: Vec<&str> = finding
        .syscalls
        .iter()
        .map(|s| s.name().and_then(Elision::from_name).map(Elision::name))
        .collect::<Option<_>>()?;
    // systoll doesn't track signal masks that are set by `syscall(SYS_rt_sigprocmask, …)`.
    let by_number = finding.apis.iter().any(|a| &**a == "syscall") && names.contains(&"rt_sigprocmask");
    let answered = matches!(finding.kind, Kind::Repeat | Kind::NoOp) && !names.is_empty() && !by_number;
    answered.then(|| names.join(","))
}

/// Returns the line, or else the function, whose sleeps a finding is about: sleeps that do nothing else, and those that a
/// needless wait is.
fn sleeping_place(finding: &Finding, late: Option<&NeedlessWaits>, recording: &Recording) -> Option<String> {
    let sleeps = |call: &_| match Sleep::of(*call) {
        Some(Sleep::Always) => true,
        Some(Sleep::UnlessReady) => late.is_some_and(|late| late.kind.is_sleep()),
        None => false,
    };
    let is_sleep = |id: &RowId| only_sleeps(recording, *id);
    if finding.syscalls.is_empty() || !finding.syscalls.iter().all(sleeps) || !finding.rows.iter().all(is_sleep) {
        return None;
    }
    let row = recording.rows.get(finding.rows.first()?.0 as usize)?;
    let waiting = finding.at_lines.as_ref().filter(|lines| !lines.is_empty()).unwrap_or(&row.lines);
    // The sleeps of lines that share a call can't be shortened apart.
    if waiting.len() > 1 || row.lines.len() > 1 {
        return None;
    }
    let frame = waiting.first().map(|line| line.frame).or(row.user)?;
    // What a scheduler of the program's own waits for does not sleep by itself.
    let on_stack = || recording.row_frame_ids(row).any(|id| id == frame);
    let of_scheduler = recording.frames.get(frame.0 as usize)?.language.is_none() && !on_stack();
    // Nor can those of scripts that one interpreter runs in several processes.
    let at = |line: &RowLine| recording.frames.get(line.frame.0 as usize).and_then(place);
    let here = recording.frames.get(frame.0 as usize).and_then(place);
    let alike = |other: &Row| other.process != row.process && (other.syscall, &other.api) == (row.syscall, &row.api);
    let shared = |other: &Row| alike(other) && other.lines.iter().any(|line| at(line) != here);
    if of_scheduler || recording.rows.iter().any(shared) {
        return None;
    }
    place(recording.frames.get(frame.0 as usize)?)
}

fn place(frame: &Frame) -> Option<String> {
    let location = frame.locations.first()?;
    match (&location.file, location.line) {
        (Some(file), Some(line)) => Some(format!("{}:{line}", short_file(file))),
        _ => Some(location.function.to_string()).filter(|name| !name.is_empty() && !name.contains(' ')),
    }
}
