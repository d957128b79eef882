//! Implements `systoll diff`.

use crate::cli::DiffArgs;
use crate::explain::catalogue;
use crate::failure::{Failure, ended_by};
use crate::output::{Left, Output, progress_line, to_stderr};
use crate::report::read;
use crate::watched_run::WatchedRun;
use indicatif::ProgressBar;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use systoll_compare::{Side, diff};
use systoll_judge::{Catalogue, Judgement, Options, judge};
use systoll_model::{InertJson, Recording};
use systoll_present::{DiffOptions, diff_json, write_diff, write_diff_markdown};

/// Extension of recordings in a folder.
const EXTENSION: &str = "systoll";
/// Largest number of recordings of one side; all are held in memory.
const MOST: usize = 100;

/// The recordings of both sides.
#[derive(Default)]
struct Sides {
    old: Vec<Recording>,
    new: Vec<Recording>,
    /// The signal that interrupted the runs. The recordings made before are complete.
    cut_short: Option<i32>,
}

pub(crate) fn diff_sides(args: &DiffArgs) -> Result<ExitCode, Failure> {
    let catalogue = catalogue(args.causes.folder.as_deref())?;
    let mut output = Output::open(args.output.as_deref(), Output::Stdout)?;
    let style = output.style(args.color.when);
    let sides = sides(args)?;
    let judged = [&sides.old, &sides.new].map(|side| judgements(side, &catalogue));
    let side = |recordings, judgements| Side { recordings, judgements };
    let changes = diff(side(&sides.old, &judged[0]), side(&sides.new, &judged[1]), args.by);
    let options = DiffOptions { all: args.all, limit: args.limit };
    output.write("report", |w| {
        if args.json {
            serde_json::to_writer_pretty(InertJson(&mut *w), &diff_json(&changes, env!("CARGO_PKG_VERSION")))?;
            writeln!(w)
        } else if args.markdown {
            write_diff_markdown(w, &changes, options)
        } else {
            write_diff(w, &changes, options, &style)
        }
    })?;
    if let Some(signal) = sides.cut_short {
        let (runs, of) = (sides.new.len(), args.runs);
        to_stderr(&format!("systoll: interrupted after {runs} of {of} runs: this is what is known so far\n"));
        return Ok(ExitCode::from(ended_by(signal)));
    }
    Ok(ExitCode::from(u8::from(args.exit_code && !changes.is_empty())))
}

/// Judges each recording.
pub(crate) fn judgements(recordings: &[Recording], catalogue: &Catalogue) -> Vec<Judgement> {
    recordings.iter().map(|r| judge(r, catalogue, &Options::default())).collect()
}

fn sides(args: &DiffArgs) -> Result<Sides, Failure> {
    if args.recordings.is_empty() {
        return run_both(args);
    }
    if !args.command.is_empty() {
        if args.recordings.iter().any(|p| p == Path::new(":")) {
            return Err(Failure::Usage("with a command after --, all recordings are the old side: no : between them"));
        }
        let watched = WatchedRun { command: args.command.clone(), env: args.env.clone(), ..WatchedRun::default() };
        let mut sides = Sides { old: read_all(&args.recordings)?, ..Sides::default() };
        let mut turns = Turns::new(args);
        for seed in 0..args.runs {
            if !turns.run(&watched, seed, &mut sides.new)? {
                break;
            }
        }
        return turns.end(sides);
    }
    let (old, new) = split(&args.recordings)?;
    Ok(Sides { old: read_all(old)?, new: read_all(new)?, cut_short: None })
}

/// Runs both commands in turns: a change on the box meanwhile affects both.
fn run_both(args: &DiffArgs) -> Result<Sides, Failure> {
    let Some(vs) = &args.vs else {
        if args.env.is_empty() {
            return Err(Failure::Usage("with what? two recordings, --vs 'COMMAND', or -E VAR=VALUE"));
        }
        return run_turns(args, &args.command);
    };
    run_turns(args, &vs.0)
}

fn run_turns(args: &DiffArgs, new: &[std::ffi::OsString]) -> Result<Sides, Failure> {
    let old = WatchedRun { command: args.command.clone(), ..WatchedRun::default() };
    let new = WatchedRun { command: new.to_vec(), env: args.env.clone(), ..WatchedRun::default() };
    let (mut sides, mut turns) = (Sides::default(), Turns::new(args));
    for seed in 0..args.runs {
        if !turns.run(&old, seed, &mut sides.old)? || !turns.run(&new, seed, &mut sides.new)? {
            break;
        }
    }
    // Both sides get the same number of runs.
    sides.old.truncate(sides.new.len());
    turns.end(sides)
}

/// Runs commands one after the other, with a progress line.
struct Turns {
    done: u32,
    of: u32,
    line: ProgressBar,
    left: Left,
    cut_short: Option<i32>,
}

impl Turns {
    fn new(args: &DiffArgs) -> Self {
        let sides = if args.recordings.is_empty() { 2 } else { 1 };
        let of = args.runs.saturating_mul(sides);
        Self { done: 0, of, line: progress_line(false), left: Left::new(), cut_short: None }
    }

    /// Adds one more run to its side. Returns true if it was not interrupted.
    fn run(&mut self, what: &WatchedRun, seed: u32, side: &mut Vec<Recording>) -> Result<bool, Failure> {
        let left = self.left.words(self.done.into(), self.of.into());
        self.line.set_message(format!("run {} of {}{left}", self.done + 1, self.of));
        self.line.tick();
        match (WatchedRun { seed: seed.into(), ..what.clone() }).run() {
            Ok(recording) => side.push(recording),
            Err(Failure::Interrupted(signal)) => self.cut_short = Some(signal),
            Err(e) => return Err(e),
        }
        self.done += 1;
        Ok(self.cut_short.is_none())
    }

    /// Returns the sides, or an error if they are too few to compare.
    fn end(self, mut sides: Sides) -> Result<Sides, Failure> {
        self.line.finish_and_clear();
        sides.cut_short = self.cut_short;
        match sides.cut_short {
            Some(signal) if sides.new.is_empty() => Err(Failure::Interrupted(signal)),
            _ => Ok(sides),
        }
    }
}

/// Splits `OLD NEW`, or several recordings of each side with a `:` between the sides.
fn split(paths: &[PathBuf]) -> Result<(&[PathBuf], &[PathBuf]), Failure> {
    let mut parts = paths.split(|p| p == Path::new(":"));
    match (parts.next(), parts.next(), parts.next()) {
        (Some([_, _]), None, _) => Ok(paths.split_at(1)),
        (Some([_]), None, _) => Err(Failure::Usage("only one recording: compare it with what? diff OLD NEW")),
        (Some(_), None, _) => {
            Err(Failure::Usage("which of them are old and which new? put a : between: diff OLD… : NEW…"))
        }
        (Some(old), Some(new), None) if !old.is_empty() && !new.is_empty() => Ok((old, new)),
        (_, Some(_), None) => Err(Failure::Usage("one side of the : has no recording")),
        _ => Err(Failure::Usage("a : more than once: there are two sides")),
    }
}

/// Reads all recordings of files and folders.
pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Vec<Recording>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(|e| Failure::file("read", path, e))?;
        let mut found: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
        // Opening a FIFO would wait for its writer.
        found.retain(|p| p.extension() == Some(OsStr::new(EXTENSION)) && p.is_file());
        if found.is_empty() {
            return Err(Failure::NoRecordings(path.clone()));
        }
        found.sort();
        files.extend(found);
    }
    if files.len() > MOST {
        return Err(Failure::Usage("more than 100 recordings on one side"));
    }
    files.iter().map(|path| read(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_in_a_folder_is_no_recording() {
        let folder = tempfile::tempdir().unwrap();
        nix::unistd::mkfifo(&folder.path().join("a.systoll"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert!(matches!(read_all(&[folder.path().to_owned()]), Err(Failure::NoRecordings(_))));
    }

    #[test]
    fn paths_are_split_into_two_sides() {
        let of = |words: &[&str]| {
            let paths: Vec<PathBuf> = words.iter().map(PathBuf::from).collect();
            split(&paths).map(|(a, b)| (a.len(), b.len())).ok()
        };
        assert_eq!(of(&["a", "b"]), Some((1, 1)));
        assert_eq!(of(&["a", "b", ":", "c"]), Some((2, 1)));
        for wrong in [&["a"][..], &["a", "b", "c"], &["a", ":"], &[":", "a"], &["a", ":", "b", ":", "c"]] {
            assert_eq!(of(wrong), None, "{wrong:?}");
        }
    }
}
