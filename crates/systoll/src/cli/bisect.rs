//! Defines the command line of `systoll bisect`.

use super::ColorArgs;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use systoll_compare::Selector;

/// Examples of `bisect`, for `--help` and the man page.
pub(super) const EXAMPLES: &str = "Examples:
  systoll bisect v1.2 HEAD -- 'make -s && ./app'      the row that differs most between the two
  systoll bisect --calls 'fstat < read_config' v1.2 HEAD -- 'make -s && ./app'
  systoll bisect --build 'cargo build -q' v1.2 HEAD -- target/debug/app --its --flags
  systoll bisect v1.2 HEAD -- python3 app.py
It works in a worktree of its own, removes it at the end, and changes nothing in yours.

Exit codes:
  0  the commit was found
  1  it was not: both ends are alike, or what is left can't be built
  125  systoll itself failed";

/// The arguments of `systoll bisect`.
#[derive(Debug, Args)]
pub struct BisectArgs {
    /// Calls to look for: the system call or public function, then functions that called it, innermost
    /// first, e.g. 'fstat < read_config' [default: the row that differs most between GOOD and BAD]
    #[arg(long, value_name = "CALLS", value_parser = chain)]
    pub calls: Option<Calls>,
    /// A shell command before each run, not watched; a commit it fails on is skipped. In a CMD of one word,
    /// what stands before the last && is the build
    #[arg(long, value_name = "CMD")]
    pub build: Option<OsString>,
    /// The repository
    #[arg(short = 'C', long, value_name = "DIR")]
    pub repository: Option<PathBuf>,
    /// Write the report to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write JSON (docs/reference/json.md, docs/reference/bisect.schema.json)
    #[arg(long)]
    pub json: bool,
    /// No progress
    #[arg(short, long)]
    pub quiet: bool,
    #[command(flatten)]
    pub(crate) color: ColorArgs,
    /// A commit from before the change
    #[arg(value_name = "GOOD")]
    pub good: String,
    /// A commit from after it
    #[arg(value_name = "BAD")]
    pub bad: String,
    /// What to run in the worktree's folder: a program and its arguments, or a shell's text in one word
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// A chain of calls, as typed and parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calls {
    /// The words as typed.
    pub text: String,
    /// The rows that they select.
    pub selector: Selector,
}

fn chain(text: &str) -> Result<Calls, String> {
    let selector = Selector::chain(text).map_err(|e| e.to_string())?;
    Ok(Calls { text: text.split('<').map(str::trim).collect::<Vec<_>>().join(" < "), selector })
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use clap::Parser;

    #[test]
    fn two_ends_and_a_command() {
        let line = ["systoll", "bisect", "--calls", "fstat<read_config", "v1", "HEAD", "--", "make && ./app"];
        let Command::Bisect(args) = Cli::try_parse_from(line).unwrap().command else { panic!("not bisect") };
        assert_eq!((args.calls.unwrap().text.as_str(), args.good.as_str()), ("fstat < read_config", "v1"));
        assert!(Cli::try_parse_from(["systoll", "bisect", "v1", "--", "ls"]).is_err());
        assert!(Cli::try_parse_from(["systoll", "bisect", "--calls", "<", "v1", "v2", "--", "ls"]).is_err());
    }
}
