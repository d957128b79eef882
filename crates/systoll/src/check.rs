//! `systoll check`.

use crate::cli::{CheckArgs, Format};
use crate::diff::{judgements, read_all};
use crate::explain::catalogue;
use crate::failure::Failure;
use crate::output::{Left, Output, Place, keep, progress_line, to_stderr};
use crate::watched::Watched;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use systoll_compare::{Budget, BudgetError, MAX_TEXT, Run, Units, hold, learn};
use systoll_model::{Exit, Recording};
use systoll_present::{
    BudgetReport, bencher_json, benchmark_json, sarif_json, write_check, write_github, write_junit, write_vim,
};

/// The budget does not hold.
const BROKEN: u8 = 1;
/// The command did not end as it should have.
const FAILED: u8 = 2;
/// Of what a command prints, so much is looked at for its units of work: the end.
const PRINTED: u64 = 1 << 20;
/// Runs from which ranges are learnt unless told.
const LEARNING: u32 = 3;

/// Runs, and how much work each did.
#[derive(Default)]
struct Runs {
    recordings: Vec<Recording>,
    units: Vec<Option<f64>>,
}

pub(crate) fn check(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let catalogue = catalogue(args.causes.as_deref())?;
    let text = budget_text(&args.budget)?;
    let told = |e: BudgetError| Failure::Budget(args.budget.clone(), e.to_string());
    let budget = match &text {
        Some(text) => Budget::parse(text).map_err(told)?,
        None if args.update => Budget::default(),
        None => return Err(Failure::NoBudget(args.budget.clone())),
    };
    // Looked at before anything is run.
    let mut place = args.update.then(|| Place::open(&args.budget)).transpose();
    if let Err(e) = place {
        return Err(Failure::file("write", &args.budget, e));
    }
    let mut output = Output::open(args.output.as_deref(), Output::Stdout)?;
    let style = output.style(args.color);
    let per = args.per.as_ref().or(budget.per.as_ref());
    let runs = runs(args, per)?;
    if let Some(exit) = runs.recordings.iter().map(|r| r.header.exit).find(|e| *e != Some(Exit::Code(budget.exit))) {
        let ended = exit.map_or_else(|| "did not end".into(), |exit| format!("ended with {exit}"));
        to_stderr(&format!(
            "systoll: the command {ended}, the budget wants exit code {}: nothing was held\n",
            budget.exit
        ));
        return Ok(ExitCode::from(FAILED));
    }
    let judged = judgements(&runs.recordings, &catalogue);
    let each = runs.recordings.iter().zip(&judged).zip(&runs.units);
    let each: Vec<Run<'_>> =
        each.map(|((recording, judgement), units)| Run { recording, judgement, units: *units }).collect();
    if let Ok(Some(place)) = &mut place {
        let learnt = learn(text.as_deref(), args.per.as_ref(), &each).map_err(told)?;
        keep("budget", place, learnt.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let held = hold(&budget, &each);
    let command: Vec<String> = runs.recordings.first().map(|r| r.header.command.clone()).unwrap_or_default();
    let (name, root) = (args.budget.to_string_lossy(), root());
    let report = BudgetReport { held: &held, budget: &name, command: &command, root: &root };
    output.write("report", |w| {
        let json = |w: &mut dyn Write, value: serde_json::Value| {
            serde_json::to_writer_pretty(&mut *w, &value)?;
            writeln!(w)
        };
        match args.format {
            Format::Text => write_check(w, &report, args.all, &style),
            Format::Junit => write_junit(w, &report),
            Format::Sarif => json(w, sarif_json(&report, env!("CARGO_PKG_VERSION"))),
            Format::Github => write_github(w, &report),
            Format::Vim => write_vim(w, &report),
            Format::Bencher => json(w, bencher_json(&report)),
            Format::Benchmark => json(w, benchmark_json(&report)),
        }
    })?;
    Ok(ExitCode::from(if held.holds() { 0 } else { BROKEN }))
}

/// The folder that paths are told from.
fn root() -> String {
    std::env::current_dir().map_or_else(|_| String::new(), |dir| format!("{}/", dir.display()))
}

/// The budget's text; `None` where there is no such file.
fn budget_text(path: &Path) -> Result<Option<String>, Failure> {
    let failed = |e| Failure::file("read", path, e);
    let meta = match std::fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        meta => meta.map_err(failed)?,
    };
    if meta.is_dir() {
        return Err(failed(io::Error::from_raw_os_error(nix::libc::EISDIR)));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAX_TEXT as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    String::from_utf8(bytes).map(Some).map_err(|_| Failure::Budget(path.to_owned(), "it is no UTF-8 text".into()))
}

fn runs(args: &CheckArgs, per: Option<&Units>) -> Result<Runs, Failure> {
    if !args.recordings.is_empty() {
        let recordings = read_all(&args.recordings)?;
        // What a command printed is not in its recording.
        let units = recordings.iter().map(|_| per.and_then(|per| per.count(""))).collect();
        return Ok(Runs { recordings, units });
    }
    let mut runs = Runs::default();
    let of = args.runs.unwrap_or(if args.update { LEARNING } else { 1 });
    // What the command writes goes to the same terminal, unless that is not wanted.
    let (line, left) = (progress_line(!args.quiet), Left::new());
    let nothing = if args.update { "learnt" } else { "held" };
    for seed in 0..of {
        line.set_message(format!("run {} of {of}{}", seed + 1, left.words(seed.into(), of.into())));
        line.tick();
        let printed = matches!(per, Some(Units::Printed(_))).then(tempfile::tempfile).transpose();
        let printed = printed.map_err(|e| Failure::file("create", &std::env::temp_dir(), e))?.map(Arc::new);
        let errors = if args.quiet { None } else { stderr() };
        let watched = Watched {
            command: args.command.clone(),
            env: args.env.clone(),
            output: printed.clone().or_else(|| errors.clone()),
            errors,
            seed: seed.into(),
            ..Watched::default()
        };
        let known = || format!(" after {seed} of {of} runs: nothing was {nothing}");
        runs.recordings.push(watched.run().map_err(|e| e.knowing(known))?);
        let text = printed.map(|file| end_of(&file)).transpose();
        let text = text.map_err(|e| Failure::file("read", &std::env::temp_dir(), e))?.unwrap_or_default();
        if !args.quiet {
            to_stderr(&text);
        }
        runs.units.push(per.and_then(|per| per.count(&text)));
    }
    line.finish_and_clear();
    Ok(runs)
}

/// Our standard error, for a command to write to.
fn stderr() -> Option<Arc<File>> {
    io::stderr().as_fd().try_clone_to_owned().ok().map(|fd| Arc::new(File::from(fd)))
}

/// The end of what was written.
fn end_of(file: &File) -> io::Result<String> {
    let mut file = file;
    let all = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(all.saturating_sub(PRINTED)))?;
    let mut bytes = Vec::new();
    file.take(PRINTED).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
