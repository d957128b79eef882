//! Implements `systoll check`.

use crate::cli::{CheckArgs, Format};
use crate::diff::{judgements, read_all};
use crate::drain_pipe::DrainPipe;
use crate::explain::catalogue;
use crate::failure::Failure;
use crate::output::{Left, Output, ResultPath, keep, progress_line, to_stderr};
use crate::watched_run::WatchedRun;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use systoll_compare::{Budget, BudgetError, MAX_TEXT, Run, Units, hold, learn};
use systoll_model::{Exit, InertJson, Recording};
use systoll_present::{
    BudgetReport, bencher_json, benchmark_json, sarif_json, write_check, write_github, write_junit, write_vim,
};

/// Exit code if the budget is broken.
const BROKEN: u8 = 1;
/// Exit code if the command failed.
const FAILED: u8 = 2;
/// Number of runs from which a budget is learnt by default.
const LEARNING: u32 = 3;

/// The recordings, and the number of units of work that each run did.
#[derive(Default)]
struct Runs {
    recordings: Vec<Recording>,
    units: Vec<Option<f64>>,
}

pub(crate) fn check(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let catalogue = catalogue(args.causes.folder.as_deref())?;
    let text = budget_text(&args.budget)?;
    let told = |e: BudgetError| Failure::Budget(args.budget.clone(), e.to_string());
    let budget = match &text {
        Some(text) => Budget::parse(text).map_err(told)?,
        None if args.update => Budget::default(),
        None => return Err(Failure::NoBudget(args.budget.clone())),
    };
    // The budget's place is checked before anything is run.
    let mut place = args.update.then(|| ResultPath::open(&args.budget)).transpose();
    if let Err(e) = place {
        return Err(Failure::file("write", &args.budget, e));
    }
    let mut output = Output::open(args.output.as_deref(), Output::Stdout)?;
    let style = output.style(args.color.when);
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
        if !args.quiet {
            to_stderr(&format!("systoll: {} is written: systoll check holds runs to it\n", args.budget.display()));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let held = hold(&budget, &each);
    let command: Vec<String> = runs.recordings.first().map(|r| r.header.command.clone()).unwrap_or_default();
    let (name, root) = (args.budget.to_string_lossy(), root());
    let report = BudgetReport { held: &held, budget: &name, command: &command, root: &root };
    output.write("report", |w| {
        let json = |w: &mut dyn Write, value: serde_json::Value| {
            serde_json::to_writer_pretty(InertJson(&mut *w), &value)?;
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

/// Returns the folder that shown paths are relative to.
fn root() -> String {
    std::env::current_dir().map_or_else(|_| String::new(), |dir| format!("{}/", dir.display()))
}

/// Returns the budget's text, or `None` if there is no such file.
fn budget_text(path: &Path) -> Result<Option<String>, Failure> {
    let failed = |e| Failure::file("read", path, e);
    let file = match systoll_files::input(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(failed)?,
    };
    let mut bytes = Vec::new();
    file.take(MAX_TEXT as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    String::from_utf8(bytes).map(Some).map_err(|_| Failure::Budget(path.to_owned(), "it is no UTF-8 text".into()))
}

fn runs(args: &CheckArgs, per: Option<&Units>) -> Result<Runs, Failure> {
    if !args.recordings.is_empty() {
        let recordings = read_all(&args.recordings)?;
        // A recording does not hold what the command printed.
        let units = recordings.iter().map(|_| per.and_then(|per| per.count(""))).collect();
        return Ok(Runs { recordings, units });
    }
    let mut runs = Runs::default();
    let of = args.runs.unwrap_or(if args.update { LEARNING } else { 1 });
    // The command's output goes to the same terminal, unless the user disabled it.
    let (line, left) = (progress_line(!args.quiet), Left::new());
    let nothing = if args.update { "learnt" } else { "held" };
    for seed in 0..of {
        line.set_message(format!("run {} of {of}{}", seed + 1, left.words(seed.into(), of.into())));
        line.tick();
        let known = || format!(" after {seed} of {of} runs: nothing was {nothing}");
        let (recording, printed) = one_run(args, seed).map_err(|e| e.knowing(known))?;
        runs.recordings.push(recording);
        runs.units.push(per.and_then(|per| per.count(&printed)));
    }
    line.finish_and_clear();
    Ok(runs)
}

/// Watches the command once. Returns its recording and its standard output (the end of it, if it is
/// long). Both streams are pipes, whatever ours are: a budget learnt at a terminal then holds in
/// CI.
fn one_run(args: &CheckArgs, seed: u32) -> Result<(Recording, String), Failure> {
    let pipe = || DrainPipe::new(!args.quiet).map_err(|e| Failure::Stream("a pipe", e));
    let (output, errors) = (pipe()?, pipe()?);
    let watched = WatchedRun {
        command: args.command.clone(),
        env: args.env.clone(),
        output: Some(output.writer()),
        errors: Some(errors.writer()),
        seed: seed.into(),
        ..WatchedRun::default()
    };
    let recording = watched.run();
    drop(watched);
    let printed = output.text();
    errors.text();
    Ok((recording?, printed))
}
