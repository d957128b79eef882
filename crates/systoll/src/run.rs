//! `systoll run`.

mod straight;

use crate::cli::{BackendChoice, RunArgs};
use crate::control::Live;
use crate::failure::Failure;
use crate::output::Output;
use crate::report::{Shown, save};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use systoll_model::{BackendKind, EnvChange, Exit, Recording};
use systoll_record::{Backend, Closely, Launch, WindowPolicy, automatic, backend, run_with_first};

/// Once told to end, how long what the command left behind is still watched.
const LINGER: Duration = Duration::from_secs(1);

/// Runs a command, shows what was asked for, and ends as the command did.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let limits = systoll_record::Raised::new();
    let mut places = Places::open(args)?;
    let recording = match record(args, &places) {
        Ok(recording) => recording,
        Err(failure) => {
            places.abandon();
            return Err(failure);
        }
    };
    if let Some(save_to) = &mut places.save {
        save(save_to, &recording)?;
    }
    if let Some((output, shown)) = &mut places.report {
        output.write(|w| shown.write(w, &recording, false))?;
    }
    drop(limits);
    if args.prove {
        systoll_record::let_signals_through();
        let _ = systoll_cure::end_with_children();
        straight::prove(args, &recording)?;
    }
    Ok(end_as(recording.header.exit))
}

fn record(args: &RunArgs, places: &Places) -> Result<Recording, Failure> {
    let mut backends = choose(args.backend);
    let launch = Launch {
        command: args.command.clone(),
        env: args.env.iter().map(|e| env_change(e)).collect(),
        windows: WindowPolicy::default(),
        seed: args.seed.unwrap_or_else(seed),
        linger: LINGER,
        forward_signals: true,
        grace: args.grace,
        elisions: args.elide.clone(),
        closely: if args.counts_only { Closely::CountsOnly } else { Closely::All },
        ..Launch::default()
    };
    let recording = match &places.report {
        Some((_, shown)) => {
            let mut live = Live::new(shown, args.every, args.quiet > 0);
            let recording = run_with_first(&mut backends, &launch, &mut live);
            live.done();
            recording
        }
        None => run_with_first(&mut backends, &launch, &mut systoll_record::Quiet),
    };
    Ok(recording?)
}

/// Where report and recording go, opened before anything is started.
struct Places {
    report: Option<(Output, Shown)>,
    save: Option<Output>,
}

impl Places {
    fn open(args: &RunArgs) -> Result<Self, Failure> {
        let mut places = Self { report: None, save: None };
        let opened = places.fill(args);
        if opened.is_err() {
            places.abandon();
        }
        opened.map(|()| places)
    }

    fn fill(&mut self, args: &RunArgs) -> Result<(), Failure> {
        if let Some(path) = &args.save {
            self.save = Some(Output::open(Some(path), Output::Stderr)?);
        }
        if args.show.output.is_some() || args.quiet == 0 {
            let output = Output::open(args.show.output.as_deref(), Output::Stderr)?;
            match Shown::new(&args.show, &output) {
                Ok(shown) => self.report = Some((output, shown)),
                Err(failure) => {
                    output.abandon();
                    return Err(failure);
                }
            }
        }
        Ok(())
    }

    fn abandon(&mut self) {
        if let Some((output, _)) = self.report.take() {
            output.abandon();
        }
        if let Some(output) = self.save.take() {
            output.abandon();
        }
    }
}

fn choose(choice: BackendChoice) -> Vec<Box<dyn Backend>> {
    match choice {
        BackendChoice::Auto => automatic(),
        BackendChoice::Inproc => backend(BackendKind::Inproc).into_iter().collect(),
        BackendChoice::Ptrace => backend(BackendKind::Ptrace).into_iter().collect(),
    }
}

pub(crate) fn env_change(text: &str) -> EnvChange {
    match text.split_once('=') {
        Some((name, value)) => EnvChange::Set(OsString::from(name), OsString::from(value)),
        None => EnvChange::Remove(OsString::from(text)),
    }
}

pub(crate) fn seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64)
}

/// What a shell says of a process that SIGTERM ended.
const TOLD_TO_END: u8 = 143;

/// Ends as the command did: with its code, or by its signal. Where it has not ended, systoll was told to.
fn end_as(exit: Option<Exit>) -> ExitCode {
    match exit {
        Some(Exit::Code(code)) => ExitCode::from(code as u8),
        Some(Exit::Signal(number)) => {
            systoll_record::end_by_signal(number);
            ExitCode::from(128u8.wrapping_add(number as u8))
        }
        None => ExitCode::from(TOLD_TO_END),
    }
}
