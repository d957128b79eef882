//! Implements `systoll top`.

mod judging;
mod pace;
mod viewer;
mod watcher;

use crate::cli::{TopArgs, TopGroup, TopSort};
use crate::explain::catalogue;
use crate::failure::Failure;
use crate::output::{ascii, to_stderr};
use crate::{attach, processes, run};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use systoll_model::{Exit, Recording};
use systoll_record::{HowToWatch, Launch, Running, run_with_first};
use systoll_top::{Choice, GroupBy, Look, SortBy, State, restore_terminal};
use viewer::{Kind, Viewer};
use watcher::Watcher;

/// Watches running processes or a program, and shows what calls cost a second until the user leaves.
pub(crate) fn top(args: &TopArgs) -> Result<ExitCode, Failure> {
    if args.select.is_empty() && args.command.is_empty() {
        return Err(Failure::Usage("which process? systoll top PID|NAME|:PORT, or a program: systoll top -- CMD"));
    }
    if args.batch.is_none() && !io::stdout().is_terminal() {
        return Err(Failure::NoTerminal);
    }
    let catalogue = catalogue(args.causes.folder.as_deref())?;
    let mut backend = attach::backend_for(&args.select, args.backend)?;
    let pids = if args.command.is_empty() { processes::found(&args.select)? } else { Vec::new() };
    let launch = launch(args)?;
    let limits = systoll_record::Raised::new();
    restore_on_panic();
    let kind = args.batch.map_or(Kind::Terminal, Kind::Batch);
    let viewer = Viewer::new(state(args), kind, !args.command.is_empty());
    let mut watcher = Watcher::new(args.every, args.window, viewer, catalogue);
    let recording = if args.command.is_empty() {
        let running = Running {
            pids: pids.clone(),
            whole_box: args.select.whole_box,
            how: launch.how,
            limit: args.window,
            calls: None,
            no_children: args.select.no_children,
            in_turns: false,
        };
        backend.attach(&running, &mut watcher)
    } else {
        run_with_first(&mut run::choose(args.backend), &launch, &mut watcher)
    };
    drop(limits);
    let shown = watcher.end(recording.as_ref().ok());
    let recording = recording?;
    shown?;
    to_stderr(&told(&recording, &pids));
    Ok(match recording.header.exit {
        Some(exit) if !args.command.is_empty() => run::end_as(Some(exit)),
        _ => attach::tell_what_stays(&recording),
    })
}

/// Returns the state before the first snapshot.
fn state(args: &TopArgs) -> State {
    let group = match args.by {
        TopGroup::Row => GroupBy::Row,
        TopGroup::Call => GroupBy::Call,
        TopGroup::Api => GroupBy::Api,
        TopGroup::Line => GroupBy::Line,
        TopGroup::Process => GroupBy::Process,
    };
    let sort = match args.sort {
        TopSort::Toll => SortBy::Toll,
        TopSort::Calls => SortBy::Calls,
        TopSort::Waited => SortBy::Waited,
        TopSort::Name => SortBy::Name,
    };
    // A text is plain unless colours are asked for.
    let has_colour = args.color.colours(args.batch.is_none());
    let look = Look { has_colour, is_ascii: ascii::wanted(), is_batch: args.batch.is_some() };
    State::new(Choice { group, sort, is_reversed: false, filter: args.filter.clone() }, look)
}

/// Returns the way to watch, and to start the command, whose output does not go to the screen.
fn launch(args: &TopArgs) -> Result<Launch, Failure> {
    let mut launch = Launch {
        command: args.command.clone(),
        linger: run::LINGER,
        discard_output: true,
        how: HowToWatch {
            sampled_time: args.time == crate::cli::Timed::Sampled,
            seed: args.seed.unwrap_or_else(crate::seed::fresh),
            forward_signals: true,
            ..HowToWatch::default()
        },
        ..Launch::default()
    };
    if !args.command.is_empty() {
        let null = Path::new("/dev/null");
        launch.streams[0] = Some(Arc::new(File::open(null).map_err(|e| Failure::file("read", null, e))?));
    }
    if let Some(path) = &args.output {
        let file = Arc::new(File::create(path).map_err(|e| Failure::file("write", path, e))?);
        launch.streams[1] = Some(Arc::clone(&file));
        launch.streams[2] = Some(file);
    }
    Ok(launch)
}

/// Makes a panic in any thread give the terminal back before its message is printed.
fn restore_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        restore_terminal();
        before(info);
    }));
}

/// Returns what has become of the watched processes, as a line.
fn told(recording: &Recording, pids: &[i32]) -> String {
    let header = &recording.header;
    let time = systoll_present::units::time(header.wall_ns);
    let which = match pids {
        [] => recording.processes.iter().filter(|p| p.end_ns == 0).map(|p| p.pid.to_string()).collect(),
        pids => pids.iter().map(ToString::to_string).collect::<Vec<_>>(),
    };
    let (process, runs) = if which.len() == 1 { ("process", "runs") } else { ("processes", "run") };
    let which = match which.len() {
        0..=8 => which.join(", "),
        n => format!("{} and {} more", which[..8].join(", "), n - 8),
    };
    let end = match (header.attached, header.exit) {
        (Some(attached), _) if attached.left_running => {
            let how = if recording.problems.iter().any(attach::stays) { "" } else { " as before" };
            format!("{process} {which} {runs} on{how}")
        }
        (Some(_), _) => format!("{process} {which} ended"),
        (None, Some(Exit::Code(code))) => format!("the program ended, exit {code}"),
        (None, Some(Exit::Signal(signal))) => {
            format!("the program was ended by {}", systoll_model::signal_name(signal))
        }
        (None, None) if which.is_empty() => "the program runs on, unwatched".into(),
        (None, None) => format!("{process} {which} {runs} on, unwatched"),
    };
    format!("systoll: watched for {time}; {end}\n")
}
