//! Implements `systoll run`.

mod straight;

use crate::cli::{BackendChoice, KeepArgs, Regroup, RunArgs, ShowArgs};
use crate::control::Live;
use crate::explain::catalogue;
use crate::failure::{EXIT_OF_SYSTOLL, Failure};
use crate::output::{Output, ResultPath};
use crate::report::{Shown, place_to_save, save};
use crate::tables;
use crate::until::{Awaited, Awaiting};
use std::process::ExitCode;
use std::time::Duration;
use systoll_export::Labels;
use systoll_model::{BackendKind, Exit, Recording};
use systoll_record::{Backend, Closely, Control, HowToWatch, Launch, WindowPolicy, automatic, backend, run_with_first};

/// Time for which processes that the command left behind are still watched after systoll was told
/// to end.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// Runs a command, shows the requested results, and exits as the command did.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let limits = systoll_record::Raised::new();
    let mut places = Places::open(&args.show, &args.keep, args.quiet, Output::Stderr)?;
    let awaited = args.until.as_ref().map(Awaited::new).transpose()?;
    let mut recording = record(args, &places, awaited.as_ref())?;
    let missed = awaited.as_ref().and_then(|awaited| awaited.finish(&mut recording, args.goes_on));
    // The command has run: if it failed, its exit code wins over a failure to write results.
    let kept = places.keep(&recording);
    let added = add(&args.keep, &args.show, &recording, &args.labels.labels(), args.quiet);
    let told = places.tell(&recording);
    drop(limits);
    let proved = if args.prove { prove_straight(args, &recording) } else { Ok(()) };
    let not_written = [told, kept, added].into_iter().filter_map(Result::err);
    let mut failed = false;
    for failure in not_written {
        failure.tell();
        failed = true;
    }
    if let Err(failure) = proved {
        failure.tell();
    }
    if let Some(missed) = missed {
        missed.tell();
        failed = true;
    } else if awaited.is_some() && !failed {
        return Ok(ExitCode::SUCCESS);
    }
    if failed && recording.header.exit == Some(Exit::Code(0)) {
        return Ok(ExitCode::from(EXIT_OF_SYSTOLL));
    }
    Ok(end_as(recording.header.exit))
}

/// Adds the run to the folder for `systoll fleet`, if there is one.
pub(crate) fn add(
    keep: &KeepArgs,
    show: &ShowArgs,
    recording: &Recording,
    labels: &Labels,
    quiet: u8,
) -> Result<(), Failure> {
    let Some(folder) = &keep.save_to else { return Ok(()) };
    let catalogue = catalogue(show.causes.folder.as_deref())?;
    tables::add(folder, recording, &catalogue, labels, quiet > 0)
}

fn prove_straight(args: &RunArgs, recording: &Recording) -> Result<(), Failure> {
    systoll_record::let_signals_through();
    // Without the handler, a signal simply ends this process.
    let _ = systoll_cure::catch_interrupts();
    straight::prove(args, recording)
}

fn record(args: &RunArgs, places: &Places, awaited: Option<&Awaited>) -> Result<Recording, Failure> {
    let mut backends = choose(args.backend);
    let launch = Launch {
        command: args.command.clone(),
        env: args.env.clone(),
        linger: LINGER,
        grace: args.grace,
        how: HowToWatch {
            windows: windows(&args.show),
            longer: args.show.longer,
            sampled_time: args.time == crate::cli::Timed::Sampled,
            seed: args.seed.unwrap_or_else(crate::seed::fresh),
            forward_signals: true,
            elisions: args.elide.clone(),
            ends_process: true,
            closely: closely(args),
            until: awaited.and_then(Awaited::moment),
        },
        ..Launch::default()
    };
    let mut watched = |control: &mut dyn Control| match awaited {
        Some(awaited) => run_with_first(&mut backends, &launch, &mut Awaiting { inner: control, awaited }),
        None => run_with_first(&mut backends, &launch, control),
    };
    let recording = match places.shown() {
        Some(shown) => {
            let mut live = Live::new(shown, args.every, args.quiet > 0, true);
            let recording = watched(&mut live);
            live.done();
            recording
        }
        None => watched(&mut systoll_record::Quiet),
    };
    Ok(recording?)
}

/// Returns the detail that the results need: a table of totals that is printed and not kept needs no contexts.
fn closely(args: &RunArgs) -> Closely {
    let only_printed = args.keep.save.is_none() && args.keep.save_to.is_none() && !args.prove;
    let only_counted = only_printed && args.show.longer.is_none() && args.until.is_none();
    match args.show.counts && only_counted {
        _ if args.counts_only => Closely::CountsOnly,
        true => Closely::Totals,
        false => Closely::All,
    }
}

/// Returns the limits of windows for what is to be shown.
pub(crate) fn windows(show: &ShowArgs) -> WindowPolicy {
    WindowPolicy { tells_requests: show.by == Some(Regroup::Request), ..WindowPolicy::default() }
}

/// The outputs for report and recording, checked before anything is watched.
pub(crate) struct Places {
    report: Option<(Output, Shown)>,
    save: Option<ResultPath>,
}

impl Places {
    /// Opens the outputs of the report, which goes to `stream` unless a file is named, and of the recording.
    pub(crate) fn open(show: &ShowArgs, keep: &KeepArgs, quiet: u8, stream: Output) -> Result<Self, Failure> {
        let save = keep.save.as_deref().map(|path| place_to_save(path, keep.force)).transpose()?;
        keep.save_to.as_deref().map_or(Ok(()), tables::prepare)?;
        let report = (show.output.is_some() || show.open || quiet == 0).then(|| Shown::open(show, stream));
        Ok(Self { report: report.transpose()?, save })
    }

    /// Returns the way in which the report is shown, if there is to be one.
    pub(crate) fn shown(&self) -> Option<&Shown> {
        self.report.as_ref().map(|(_, shown)| shown)
    }

    /// Keeps the recording, if that was requested.
    pub(crate) fn keep(&mut self, recording: &Recording) -> Result<(), Failure> {
        self.save.as_mut().map_or(Ok(()), |place| save(place, recording))
    }

    /// Writes the report, if there is to be one.
    pub(crate) fn tell(&mut self, recording: &Recording) -> Result<(), Failure> {
        self.report.as_mut().map_or(Ok(()), |(output, shown)| shown.tell(output, recording))
    }
}

pub(crate) fn choose(choice: BackendChoice) -> Vec<Box<dyn Backend>> {
    match choice {
        BackendChoice::Auto => automatic(),
        BackendChoice::Inproc => vec![backend(BackendKind::Inproc)],
        BackendChoice::Bpf => vec![backend(BackendKind::Bpf)],
        BackendChoice::Ptrace => vec![backend(BackendKind::Ptrace)],
    }
}

/// Exit code of shells for a process that SIGTERM ended.
const TOLD_TO_END: u8 = 143;

/// Exits as the command did: with its code, or by its signal. If it has not ended, systoll was told
/// to end, and exits with [`TOLD_TO_END`].
pub(crate) fn end_as(exit: Option<Exit>) -> ExitCode {
    match exit {
        Some(Exit::Code(code)) => ExitCode::from(code as u8),
        Some(Exit::Signal(number)) => {
            systoll_record::end_by_signal(number);
            ExitCode::from(128u8.wrapping_add(number as u8))
        }
        None => ExitCode::from(TOLD_TO_END),
    }
}
