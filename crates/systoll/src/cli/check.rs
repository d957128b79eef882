//! Defines the command line of `systoll check`.

use super::values::env_change;
use super::{ColorArgs, ExtraCauses};
use clap::{ArgGroup, Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use systoll_compare::Units;
use systoll_model::EnvChange;

/// Examples of `check`, for `--help` and the man page.
pub(super) const EXAMPLES: &str = "Examples:
  systoll check --update -- ./app              run it three times, write systoll.toml
  systoll check -- ./app                       run it once, hold it against systoll.toml
  systoll check --per 1000 -- ./app 1000       rates are of 1,000 units of work
  systoll check --per 'served {} requests' -- ./app    of as many as it prints there
  systoll check --format junit -o check.xml -- ./app   or sarif, github, vim, bencher, benchmark
  systoll check --budget ci.toml a.systoll     a recording that `run --save` kept
docs/use/check.md tells what a budget can hold.

Exit codes:
  0  the budget holds            1  it does not
  2  CMD did not end as the budget says (by default with 0): nothing was compared
  125  systoll itself failed     126, 127  CMD can't be executed, was not found";

/// The arguments of `systoll check`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").args(["recordings", "command"]).required(true))]
pub struct CheckArgs {
    /// The budget
    #[arg(short, long, value_name = "FILE", default_value = "systoll.toml")]
    pub budget: PathBuf,
    /// Write the budget's figures anew from these runs, or a new budget
    #[arg(long, conflicts_with_all = ["format", "output"])]
    pub update: bool,
    /// Run CMD N times: a limit holds if one run keeps it; --update learns what varies [default: 1, with --update 3]
    #[arg(long, value_name = "N", requires = "command", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: Option<u32>,
    /// Units of work that a run does: a number, or a text that CMD prints with {} for the number
    #[arg(long, value_name = "N|TEXT", value_parser = Units::parse)]
    pub per: Option<Units>,
    /// How to tell: text, junit (XML), sarif (2.1.0), github (annotations), vim (its quickfix list),
    /// bencher (its metric format), benchmark (github-action-benchmark, customSmallerIsBetter)
    #[arg(short, long, value_name = "HOW", default_value = "text", hide_possible_values = true)]
    pub format: Format,
    /// Write that to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Tell also what holds
    #[arg(long)]
    pub all: bool,
    /// Set (VAR=VALUE) or remove (VAR) a variable in CMD's environment
    #[arg(short = 'E', long = "env", value_name = "VAR[=VALUE]", value_parser = env_change, requires = "command")]
    pub env: Vec<EnvChange>,
    /// Discard what CMD writes; otherwise it goes to standard error
    #[arg(short, long)]
    pub quiet: bool,
    #[command(flatten)]
    pub(crate) color: ColorArgs,
    #[command(flatten)]
    pub(crate) causes: ExtraCauses,
    /// Compare recordings that `run --save` kept, and run nothing
    #[arg(value_name = "REC")]
    pub recordings: Vec<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Output formats of `check`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people: one line a breach.
    #[default]
    Text,
    /// JUnit's XML.
    Junit,
    /// SARIF 2.1.0.
    Sarif,
    /// GitHub's workflow commands.
    Github,
    /// Compilers' messages, for vim's quickfix list.
    Vim,
    /// Bencher's metric format.
    Bencher,
    /// github-action-benchmark's `customSmallerIsBetter`.
    Benchmark,
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use super::Format;
    use clap::Parser;

    #[test]
    fn a_command_or_recordings_are_checked() {
        let read = |words: &[&str]| {
            let all = ["systoll", "check"].iter().chain(words);
            match Cli::try_parse_from(all).map_err(|e| e.to_string())?.command {
                Command::Check(args) => Ok::<_, String>(args),
                other => panic!("{other:?}"),
            }
        };
        let args = read(&["--format", "sarif", "--per", "10", "--", "ls", "-f"]).unwrap();
        assert_eq!((args.format, args.command.len(), args.budget.to_str()), (Format::Sarif, 2, Some("systoll.toml")));
        assert!(read(&["a.systoll", "b.systoll"]).is_ok());
        for wrong in [&[][..], &["a.systoll", "--", "ls"], &["--per", "0", "--", "ls"], &["--runs", "0", "--", "ls"]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
