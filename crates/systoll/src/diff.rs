//! `systoll diff`.

use crate::cli::DiffArgs;
use crate::explain::catalogue;
use crate::failure::Failure;
use crate::output::Output;
use crate::report::read;
use crate::watched::Watched;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use systoll_compare::{Side, diff};
use systoll_judge::{Catalogue, Judgement, Options, judge};
use systoll_model::Recording;
use systoll_present::{DiffOptions, diff_json, write_diff, write_diff_markdown};

/// How a folder's recordings are named.
const EXTENSION: &str = "systoll";
/// Recordings of one side, at most: each is held in memory whole.
const MOST: usize = 100;

/// The recordings of both sides.
#[derive(Default)]
struct Sides {
    old: Vec<Recording>,
    new: Vec<Recording>,
}

pub(crate) fn diff_sides(args: &DiffArgs) -> Result<ExitCode, Failure> {
    let catalogue = catalogue(args.causes.as_deref())?;
    let mut output = Output::open(args.output.as_deref(), Output::Stdout)?;
    let style = output.style(args.color);
    let sides = sides(args)?;
    let judged = [&sides.old, &sides.new].map(|side| judgements(side, &catalogue));
    let side = |recordings, judgements| Side { recordings, judgements };
    let changes = diff(side(&sides.old, &judged[0]), side(&sides.new, &judged[1]), args.by);
    let options = DiffOptions { all: args.all, limit: args.limit };
    output.write("report", |w| {
        if args.json {
            serde_json::to_writer_pretty(&mut *w, &diff_json(&changes, env!("CARGO_PKG_VERSION")))?;
            writeln!(w)
        } else if args.markdown {
            write_diff_markdown(w, &changes, options)
        } else {
            write_diff(w, &changes, options, &style)
        }
    })?;
    Ok(ExitCode::from(u8::from(args.exit_code && !changes.is_empty())))
}

/// What the judge says of each.
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
        let watched = Watched { command: args.command.clone(), env: args.env.clone(), ..Watched::default() };
        let mut sides = Sides { old: read_all(&args.recordings)?, ..Sides::default() };
        for seed in 0..args.runs {
            sides.new.push(Watched { seed: seed.into(), ..watched.clone() }.run()?);
        }
        return Ok(sides);
    }
    let (old, new) = split(&args.recordings)?;
    Ok(Sides { old: read_all(old)?, new: read_all(new)? })
}

/// Both commands, in turns: what changes on the box meanwhile changes for both.
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
    let old = Watched { command: args.command.clone(), ..Watched::default() };
    let new = Watched { command: new.to_vec(), env: args.env.clone(), ..Watched::default() };
    let mut sides = Sides::default();
    for seed in 0..args.runs {
        sides.old.push(Watched { seed: seed.into(), ..old.clone() }.run()?);
        sides.new.push(Watched { seed: seed.into(), ..new.clone() }.run()?);
    }
    Ok(sides)
}

/// `OLD NEW`, or several a side with a `:` between.
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

/// All recordings of files and folders.
pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Vec<Recording>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(|e| Failure::file("read", path, e))?;
        let mut found: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
        found.retain(|p| p.extension() == Some(OsStr::new(EXTENSION)));
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
    fn sides_are_told_apart() {
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
