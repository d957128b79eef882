//! Parses the command line and calls the command's implementation. Has no logic of its own.
#![forbid(unsafe_code)]

mod agent;
mod attach;
mod bisect;
mod call_set;
mod check;
pub mod cli;
pub mod completions;
mod containers;
mod control;
mod demo;
mod diff;
mod doctor;
mod drain_pipe;
pub mod environment;
mod explain;
mod export;
mod failure;
mod fleet;
mod import;
mod mcp;
mod nearest;
mod output;
mod page;
mod processes;
mod prove;
mod python;
mod report;
mod run;
mod seed;
mod strace_options;
mod suggest;
mod tables;
mod top;
mod turns;
mod until;
mod watched_run;
mod why_not;

use cli::{Cli, Command};
use failure::Failure;
use std::process::ExitCode;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    systoll_record::keep_memory();
    if let Err(why) = systoll_record::prepare_limits() {
        output::to_stderr(&format!("systoll: {why}\n"));
        return ExitCode::from(failure::EXIT_OF_SYSTOLL);
    }
    let words: Vec<_> = std::env::args_os().collect();
    let cli = match Cli::read(&words) {
        Ok(cli) => cli,
        Err(e) => return failure::usage(&e),
    };
    match dispatch(cli.command) {
        Ok(code) => code,
        Err(failure) => failure.unless_interrupted().tell(),
    }
}

fn dispatch(command: Command) -> Result<ExitCode, Failure> {
    // Commands that run programs check for interrupts themselves and report partial results. `run`
    // passes the signal on to the program, and `cure` becomes the program.
    let takes_no_time = matches!(command, Command::Explain(_) | Command::Causes(_) | Command::Completions(_));
    if !takes_no_time && !matches!(command, Command::Run(_) | Command::Attach(_) | Command::Top(_) | Command::Cure(_)) {
        // Without the handler, a signal simply ends this process.
        let _ = systoll_cure::catch_interrupts();
    }
    if matches!(
        command,
        Command::Report(_) | Command::Export(_) | Command::Import(_) | Command::Box(_) | Command::Doctor(_)
    ) {
        systoll_cure::end_at_once(" before there was anything to report");
    }
    match command {
        Command::Run(args) => run::run(&args),
        Command::Attach(args) => attach::attach(&args),
        Command::Agent(args) => agent::agent(&args),
        Command::Top(args) => top::top(&args),
        Command::Report(args) => report::report(&args),
        Command::Export(args) => export::write(&args),
        Command::Fleet(args) => fleet::fleet(&args),
        Command::Import(args) => import::import(&args),
        Command::Prove(args) => prove::prove(&args),
        Command::Diff(args) => diff::diff_sides(&args),
        Command::Bisect(args) => bisect::bisect(&args),
        Command::Check(args) => check::check(&args),
        Command::Cure(args) => prove::cure(&args),
        Command::Demo(args) => demo::demo(&args),
        Command::Box(args) => report::survey(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Explain(args) => match &args.why_not {
            Some(what) => why_not::why_not(what, &args),
            None => explain::explain(&args),
        },
        Command::Causes(args) => explain::causes(&args),
        Command::Mcp => mcp::serve(),
        Command::Completions(args) => completions::write(&args),
    }
}
