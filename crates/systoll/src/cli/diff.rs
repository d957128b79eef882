//! Defines the command line of `systoll diff`.

use super::prove::words;
use super::values::{env_change, number};
use super::{ColorArgs, ExtraCauses, Words};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args};
use std::ffi::OsString;
use std::path::PathBuf;
use systoll_compare::By;
use systoll_model::EnvChange;

/// Examples of `diff`, for `--help` and the man page.
pub(super) const EXAMPLES: &str = "Examples:
  systoll diff old.systoll new.systoll            two recordings that `run --save` kept
  systoll diff old-*.systoll : new-*.systoll      several a side: what varies by itself is set apart
  systoll diff before/ after/                     all recordings in a folder are one side
  systoll diff --vs './new --fast' -- ./old       two commands, each run three times, in turns
  systoll diff before/ -- ./app                   recordings against the command of today
  systoll diff --by line old.systoll new.systoll  or syscall, row, api, caller, library, process
  systoll diff --markdown before/ after/          for a pull request

Exit codes:
  0  they were compared          1  with --exit-code: something changed by more than it varies
  125  systoll itself failed     126, 127  a command can't be executed, was not found";

/// The arguments of `systoll diff`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("sides").args(["recordings", "command"]).required(true).multiple(true))]
pub struct DiffArgs {
    /// OLD and NEW: recordings, or folders of them (*.systoll); several a side with a : between the sides
    #[arg(value_name = "REC", num_args = 0..)]
    pub recordings: Vec<PathBuf>,
    /// Compare with this command, in a shell's words, rather than with recordings; no shell runs it
    #[arg(long, value_name = "COMMAND", value_parser = words, requires = "command", conflicts_with = "recordings")]
    pub vs: Option<Words>,
    /// Set (VAR=VALUE) or remove (VAR) a variable on the new side
    #[arg(short = 'E', long = "env", value_name = "VAR[=VALUE]", value_parser = env_change, requires = "command")]
    pub env: Vec<EnvChange>,
    /// How often to run a command
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// Tell changes by: syscall (and who, beneath), row, api, caller, line, library or process
    #[arg(long, value_name = "WHAT", default_value = "syscall", hide_possible_values = true, value_parser = by())]
    pub by: By,
    /// At most N rows (default: 20; --all shows all)
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true, value_parser = number)]
    pub limit: Option<usize>,
    /// All rows and callers, not just the first few
    #[arg(long)]
    pub all: bool,
    /// Write the report to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write JSON (docs/reference/json.md, docs/reference/diff.schema.json)
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Write a table in Markdown
    #[arg(long)]
    pub markdown: bool,
    /// End with 1 where something changed
    #[arg(long)]
    pub exit_code: bool,
    #[command(flatten)]
    pub(crate) color: ColorArgs,
    #[command(flatten)]
    pub(crate) causes: ExtraCauses,
    /// The old command and its arguments; with recordings but no --vs, the new one
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

fn by() -> impl TypedValueParser<Value = By> {
    PossibleValuesParser::new(By::ALL.map(By::name))
        .try_map(|name| By::from_name(&name).ok_or("nothing that distinguishes rows"))
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use clap::Parser;

    #[test]
    fn sides_are_recordings_or_commands() {
        let read = |words: &[&str]| {
            let all = ["systoll", "diff"].iter().chain(words);
            match Cli::try_parse_from(all).map_err(|e| e.to_string())?.command {
                Command::Diff(args) => Ok::<_, String>(args),
                other => panic!("{other:?}"),
            }
        };
        let args = read(&["a", "b", ":", "c"]).unwrap();
        assert_eq!((args.recordings.len(), args.runs, args.command.len()), (4, 3, 0));
        let args = read(&["--vs", "./new 'a b'", "--", "./old", "--json"]).unwrap();
        assert_eq!((args.vs.unwrap().0.len(), args.command.len(), args.json), (2, 2, false));
        assert!(read(&["a", "--", "./new"]).is_ok());
        for wrong in
            [&[][..], &["--vs", "./new"], &["a", "--vs", "./new", "--", "./old"], &["--json", "--markdown", "a", "b"]]
        {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
