//! Defines the command line of `systoll top`.

use super::values::{duration, period};
use super::{BackendChoice, ExtraCauses, SelectArgs, Timed, When};
use clap::{Args, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const EXAMPLES: &str = "Examples:
  systoll top redis-server                 what all processes of that name do, until q
  systoll top :8080                        whoever listens on that port
  systoll top --tree 4711 --by process     with the processes that it has made, one line each
  sudo systoll top --box --by process      everything that runs on this box
  systoll top -- ./app --its --flags       a program from its start on; its output goes nowhere
  systoll top --batch 3 --every 10s 4711   three screens as plain text, one every ten seconds

Keys: ? tells them all; q leaves, and what is watched runs on as it was (docs/use/attach.md)";

/// The things that lines of the table stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TopGroup {
    /// A system call from one place.
    Row,
    /// A system call.
    Call,
    /// A public function.
    Api,
    /// A line of code.
    Line,
    /// A process.
    Process,
}

/// What lines are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TopSort {
    /// Processor time a second.
    Toll,
    /// Calls a second.
    Calls,
    /// Time waited a second.
    Waited,
    /// The name.
    Name,
}

/// The arguments of `systoll top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Print N screens as plain text and leave; takes no terminal
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: Option<u32>,
    /// Time between two screens
    #[arg(long, visible_alias = "delay", value_name = "TIME", default_value = "1s", value_parser = period)]
    pub every: Duration,
    /// What a line stands for
    #[arg(long, value_name = "WHAT", default_value = "row")]
    pub by: TopGroup,
    /// What lines are sorted by
    #[arg(long, value_name = "WHAT", default_value = "toll")]
    pub sort: TopSort,
    /// Only lines with this text in the names of call, function, caller or program
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub filter: String,
    /// Watch for this long, e.g. 30s; without it until q, or until all have ended
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub window: Option<Duration>,
    /// Write CMD's output to FILE; without it, it goes nowhere
    #[arg(short, long, value_name = "FILE", requires = "command", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Which calls to read the clock around, as for `run`
    #[arg(long, value_name = "WHICH", default_value = "all")]
    pub time: Timed,
    /// When to colour: auto (unless NO_COLOR is set, and without --batch), always or never
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub color: When,
    #[command(flatten)]
    pub(crate) causes: ExtraCauses,
    /// Seed of the windows' random places, to repeat a run's choices
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How to watch: auto picks the cheapest that can serve here
    #[arg(long, value_name = "HOW", default_value = "auto", hide = true)]
    pub backend: BackendChoice,
    /// A program to start and watch, with its arguments
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["pids", "tree", "units", "cgroup", "containers", "whole_box", "no_children", "processes"], value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}
