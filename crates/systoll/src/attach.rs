//! Implements `systoll attach`.

use crate::cli::{AttachArgs, BackendChoice, LookArgs, SelectArgs, Timed, WatchArgs};
use crate::control::Live;
use crate::failure::{EXIT_OF_SYSTOLL, Failure};
use crate::output::{Output, to_stderr};
use crate::processes;
use crate::run::{Places, add, windows};
use crate::turns::{self, Answer, LeftState};
use std::process::ExitCode;
use systoll_model::{BackendKind, Problem, ProblemKind, Recording};
use systoll_record::{Backend, Closely, ENTERING, HowToWatch, Running, backend};

/// Watches running processes for a while, and shows the requested report.
pub(crate) fn attach(args: &AttachArgs) -> Result<ExitCode, Failure> {
    let backend = backend_for(&args.select, args.watch.backend)?;
    let pids = processes::found(&args.select)?;
    if args.clean {
        return clean(&pids);
    }
    if !args.elide.is_empty() {
        return Ok(in_turns(args, pids));
    }
    let left_out = if args.select.no_children || args.select.whole_box { None } else { processes::left_out(&pids) };
    let note = left_out.map(|text| Problem::new(ProblemKind::Note, text));
    let unit = args.select.units.first().map(String::as_str);
    let which =
        Running { pids, whole_box: args.select.whole_box, no_children: args.select.no_children, ..Running::default() };
    watch(&args.watch, backend, which, note, unit)
}

/// Watches all processes of a service, by the name that the agent gives it, and shows the requested report.
pub(crate) fn look(args: &LookArgs) -> Result<ExitCode, Failure> {
    let (service, pids) = processes::of_service(&args.unit)?;
    let which = Running { pids, ..Running::default() };
    watch(&args.watch, entering(args.watch.backend), which, None, service.as_deref())
}

/// Watches processes, adds `note` to what is to be known of the recording, and shows the requested report.
fn watch(
    args: &WatchArgs,
    backend: Box<dyn Backend>,
    which: Running,
    note: Option<Problem>,
    unit: Option<&str>,
) -> Result<ExitCode, Failure> {
    let limits = systoll_record::Raised::new();
    let mut places = Places::open(&args.show, &args.keep, args.quiet, Output::Stdout)?;
    let mut recording = record(args, backend, which, &places)?;
    recording.problems.extend(note);
    let kept = places.keep(&recording);
    let labels = args.labels.labels(unit);
    let added = add(&args.keep, &args.show, &recording, &labels, args.quiet);
    let told = places.tell(&recording);
    drop(limits);
    let mut code = tell_what_stays(&recording);
    for failure in [told, kept, added].into_iter().filter_map(Result::err) {
        code = failure.tell();
    }
    Ok(code)
}

fn record(
    args: &WatchArgs,
    mut backend: Box<dyn Backend>,
    which: Running,
    places: &Places,
) -> Result<Recording, Failure> {
    let how = HowToWatch {
        windows: windows(&args.show),
        longer: args.show.longer,
        sampled_time: args.time == Timed::Sampled,
        seed: args.seed.unwrap_or_else(crate::seed::fresh),
        forward_signals: true,
        ends_process: true,
        ..HowToWatch::default()
    };
    let running = Running { how, limit: args.window, calls: args.calls, ..which };
    let recording = match places.shown() {
        Some(shown) => {
            let mut live = Live::new(shown, args.every, args.quiet > 0, false);
            let recording = backend.attach(&running, &mut live);
            live.done();
            recording
        }
        None => backend.attach(&running, &mut systoll_record::Quiet),
    };
    Ok(recording?)
}

/// Returns the backend that watches the requested processes.
pub(crate) fn backend_for(select: &SelectArgs, choice: BackendChoice) -> Result<Box<dyn Backend>, Failure> {
    match choice {
        BackendChoice::Auto | BackendChoice::Bpf if select.whole_box => Ok(backend(BackendKind::Bpf)),
        _ if select.whole_box => Err(Failure::Usage("only bpf watches a whole box: --box without --backend")),
        _ => Ok(entering(choice)),
    }
}

/// Returns the backend that enters running processes.
fn entering(choice: BackendChoice) -> Box<dyn Backend> {
    match choice {
        BackendChoice::Bpf => backend(BackendKind::Bpf),
        BackendChoice::Ptrace => backend(BackendKind::Ptrace),
        BackendChoice::Inproc => backend(BackendKind::Inproc),
        BackendChoice::Auto => backend(ENTERING),
    }
}

/// Watches processes whose calls are answered in place in turns, as `prove --live` orders.
fn in_turns(args: &AttachArgs, pids: Vec<i32>) -> ExitCode {
    let how = HowToWatch {
        elisions: args.elide.clone(),
        closely: Closely::CountsOnly,
        forward_signals: true,
        ends_process: true,
        ..HowToWatch::default()
    };
    let running = Running { pids, how, in_turns: true, ..Running::default() };
    let (answer, code) = match backend(BackendKind::Inproc).attach(&running, &mut turns::Obeying::new()) {
        Ok(recording) => (Answer::Left(left(&recording)), ExitCode::SUCCESS),
        Err(error) => {
            let code = ExitCode::from(error.exit_code() as u8);
            (Answer::Refused(error.to_string(), error.advice()), code)
        }
    };
    // The reader of the answer may be gone. The processes have been left in any case.
    let _ = turns::say(&answer);
    code
}

/// Returns the state in which processes were left.
fn left(recording: &Recording) -> LeftState {
    let longest_stop_ns = recording.header.attached.map_or(0, |attached| attached.longest_stop_ns);
    let told = |problem: &&Problem| problem.kind == ProblemKind::Unwatched || stays(problem);
    let problems = recording.problems.iter().filter(told).map(|problem| problem.text.clone()).collect();
    LeftState { longest_stop_ns, problems }
}

/// Returns true if a problem is about a process that could not be left as it was.
pub(crate) fn stays(problem: &Problem) -> bool {
    problem.text.contains("systoll attach --clean")
}

/// Reports the processes in which something of systoll stays. Returns the exit code.
pub(crate) fn tell_what_stays(recording: &Recording) -> ExitCode {
    let staying: Vec<&Problem> = recording.problems.iter().filter(|problem| stays(problem)).collect();
    staying.iter().for_each(|problem| to_stderr(&format!("systoll: {}\n", systoll_present::clean(&problem.text))));
    if staying.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_OF_SYSTOLL) }
}

/// Removes from processes what a killed systoll left there.
fn clean(pids: &[i32]) -> Result<ExitCode, Failure> {
    for pid in pids {
        let told = match systoll_record::clean(*pid)? {
            true => "is clean: what a killed systoll had left is gone",
            false => "is clean: nothing of systoll's was in it",
        };
        to_stderr(&format!("systoll: process {pid} {told}\n"));
    }
    Ok(ExitCode::SUCCESS)
}
