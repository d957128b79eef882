//! Implements `systoll attach`.

use crate::cli::{AttachArgs, BackendChoice, Timed};
use crate::control::Live;
use crate::failure::Failure;
use crate::output::to_stderr;
use crate::processes;
use crate::run::{Places, add};
use std::process::ExitCode;
use systoll_model::{BackendKind, Recording};
use systoll_record::{Backend, Launch, Running, WindowPolicy, backend};

/// Watches running processes for a while, and shows the requested report.
pub(crate) fn attach(args: &AttachArgs) -> Result<ExitCode, Failure> {
    let pids = processes::found(&args.select)?;
    if args.clean {
        return clean(&pids);
    }
    let limits = systoll_record::Raised::new();
    let mut places = Places::open(&args.show, &args.keep, args.quiet)?;
    let recording = record(args, pids, &places)?;
    let kept = places.keep(&recording);
    let labels = args.labels.labels(args.select.units.first().map(String::as_str));
    let added = add(&args.keep, &args.show, &recording, &labels, args.quiet);
    let told = places.tell(&recording);
    drop(limits);
    let mut code = ExitCode::SUCCESS;
    for failure in [told, kept, added].into_iter().filter_map(Result::err) {
        code = failure.tell();
    }
    Ok(code)
}

fn record(args: &AttachArgs, pids: Vec<i32>, places: &Places) -> Result<Recording, Failure> {
    let how = Launch {
        windows: WindowPolicy::default(),
        longer: args.show.longer,
        sampled_time: args.time == Timed::Sampled,
        seed: args.seed.unwrap_or_else(crate::seed::fresh),
        forward_signals: true,
        ends_process: true,
        ..Launch::default()
    };
    let running = Running { pids, how, limit: args.window, calls: args.calls };
    let mut backend: Box<dyn Backend> = match args.backend {
        BackendChoice::Ptrace => backend(BackendKind::Ptrace),
        BackendChoice::Auto | BackendChoice::Inproc => backend(BackendKind::Inproc),
    };
    let recording = match places.shown() {
        Some(shown) => {
            let mut live = Live::new(shown, args.every, args.quiet > 0);
            let recording = backend.attach(&running, &mut live);
            live.done();
            recording
        }
        None => backend.attach(&running, &mut systoll_record::Quiet),
    };
    Ok(recording?)
}

/// Removes from processes what a killed systoll left there.
fn clean(pids: &[i32]) -> Result<ExitCode, Failure> {
    for pid in pids {
        let told = match systoll_record::clean(*pid)? {
            true => "has no hook and no memory of systoll's any more",
            false => "had nothing of systoll's",
        };
        to_stderr(&format!("systoll: process {pid} {told}\n"));
    }
    Ok(ExitCode::SUCCESS)
}
