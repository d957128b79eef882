//! Defines the command line. One definition produces the parser, `--help`, the man page and
//! completions.

mod agent;
mod attach;
mod bisect;
mod check;
mod color;
mod diff;
mod export;
mod fleet;
mod import;
mod prove;
mod run;
mod top;
mod until;
mod values;

pub use agent::{AgentArgs, AgentCommand, LookArgs};
pub use attach::{AttachArgs, SelectArgs, WatchArgs};
pub use bisect::{BisectArgs, Calls};
pub use check::{CheckArgs, Format};
pub use color::{ColorArgs, When};
pub use diff::DiffArgs;
pub use export::ExportArgs;
pub use fleet::{BuildLabelArgs, EngineName, FleetArgs, LabelArgs};
pub use import::ImportArgs;
pub use prove::{CureArgs, KeepFor, ProveArgs, Words};
pub use run::RunArgs;
pub use top::{TopArgs, TopGroup, TopSort};
pub use until::Sign;
pub use values::Columns;

use crate::call_set::CallSet;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use systoll_judge::CodeLanguage;
use systoll_present::TableSort;
pub use values::Regroup;
use values::{any_of, by, column_names, columns, duration, language, number, overhead, sort_by};

/// Exit codes, as text for `--help` and the man page.
const EXIT_CODES: &str = "Exit codes:
  CMD's own, or 128+n where signal n ended it (systoll then ends by that signal)
  125  systoll itself failed: wrong arguments, nothing to watch, a file it can't read or write
  126  CMD can't be executed      127  CMD was not found
  143  systoll got SIGTERM and CMD did not end: it runs on unwatched";

const FIRST_EXAMPLES: &str = "Examples:
  systoll run -- ./app                     which of its system calls are needless
  systoll explain tz-unset                 why, and every cure of it
  systoll prove --cure tz-unset -- ./app   what the cure wins
  systoll cure --print tz-unset            how to keep it";

const REPORT_EXAMPLES: &str = "Examples:
  systoll report a.systoll                 what `systoll run --save a.systoll` would have printed
  systoll report -c -S calls a.systoll     strace's table of it, most calls first
  systoll report --by thread a.systoll     who of the threads made the calls
  systoll report --longer 1ms a.systoll    with every single call of a millisecond or more
  systoll report --html -o a.html a.systoll   a page to open or send, everything in it
  ssh box cat a.systoll | systoll report --json -";

const DEMO_EXAMPLES: &str = "Examples:
  systoll demo                             all five, some half a minute; builds small C programs,
                                           so it needs a C compiler
  systoll demo localtime                   one of them
  systoll demo --prove                     what each cure wins here, in a minute";

const BOX_EXAMPLES: &str = "Examples:
  systoll box                              about a second; docs/reference/prices.md says how it is measured
  systoll box --json | jq .                for scripts; docs/reference/box.schema.json";

const DOCTOR_EXAMPLES: &str = "Examples:
  systoll doctor                           what works here for you
  sudo systoll doctor                      what would work as root

Exit code: 0 where a program can be watched, 1 where not";

const EXPLAIN_EXAMPLES: &str = "Examples:
  systoll causes                           the ids there are
  systoll explain tz-unset                 one of them
  systoll explain tz-unset -l perl         its cures for Perl, with an example
  systoll explain --why-not app.py:12 REC  why no more was reported of the calls of that line";

const CAUSES_EXAMPLES: &str = "Examples:
  systoll causes                           what systoll knows by name
  systoll causes --causes ./mine           with your own; docs/reference/causes.md tells how one is written";

const MCP_EXAMPLES: &str = "Examples:
  claude mcp add systoll -- systoll mcp    in an agent that has a command for it
  {\"mcpServers\": {\"systoll\": {\"command\": \"systoll\", \"args\": [\"mcp\"]}}}    in another's settings

Tools: run, explain, prove, diff, import, report. Those that run a command run what the agent names, as you:
let the agent ask you first. docs/use/agents.md; from a finding to a patch: skills/systoll/SKILL.md";

const COMPLETIONS_EXAMPLES: &str = "Examples:
  systoll completions bash > ~/.local/share/bash-completion/completions/systoll
  systoll completions zsh > ~/.zfunc/_systoll        with ~/.zfunc in fpath
  systoll completions fish > ~/.config/fish/completions/systoll.fish";

/// Finds the system calls a program never meant to make: who makes them, what they cost on
/// this box, why, and how to stop.
#[derive(Debug, Parser)]
#[command(name = "systoll", version, max_term_width = 100)]
#[command(after_help = format!("{FIRST_EXAMPLES}\n\n{EXIT_CODES}"))]
#[command(arg_required_else_help = true)]
pub struct Cli {
    /// The command to execute.
    #[command(subcommand)]
    pub command: Command,
}

/// A parser for `systoll run` alone. A program waits for it, and clap prepares every command it
/// knows.
#[derive(Debug, Parser)]
struct RunAlone {
    #[command(subcommand)]
    command: OnlyRun,
}

#[derive(Debug, Subcommand)]
enum OnlyRun {
    Run(RunArgs),
}

/// A parser for `systoll --version` alone, which other programs call often.
#[derive(Debug, Parser)]
#[command(name = "systoll", version)]
struct VersionAlone {}

impl Cli {
    /// Parses the command line without preparing commands that were not typed.
    ///
    /// # Errors
    /// Those of [`Parser::try_parse_from`].
    pub fn read(words: &[OsString]) -> Result<Self, clap::Error> {
        if words.get(1).is_some_and(|word| word == "run")
            && let Ok(RunAlone { command: OnlyRun::Run(args) }) = RunAlone::try_parse_from(words)
        {
            return Ok(Self { command: Command::Run(args) });
        }
        if let [_, word] = words
            && (word == "--version" || word == "-V")
            && let Err(version) = VersionAlone::try_parse_from(words)
        {
            return Err(version);
        }
        // The full parser explains mistakes and answers other questions.
        Self::try_parse_from(words)
    }
}

/// clap's form of the command line's definition.
pub type Definition = clap::Command;

/// Returns the definition in clap's form, for man pages and completions.
pub fn command() -> Definition {
    <Cli as clap::CommandFactory>::command()
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program and show which of its system calls are needless
    #[command(override_usage = "systoll run [OPTIONS] [--] CMD [ARGS]...")]
    #[command(after_help = run::EXAMPLES, after_long_help = format!("{}\n\n{EXIT_CODES}", run::EXAMPLES))]
    Run(RunArgs),
    /// Watch processes that run already, for a while, and leave them as they were
    #[command(override_usage = "systoll attach [OPTIONS] PID|NAME|:PORT...")]
    #[command(after_help = attach::EXAMPLES)]
    #[command(mut_arg("processes", |arg| arg.required_unless_present_any(attach::SelectArgs::OPTIONS)))]
    Attach(Box<AttachArgs>),
    /// Watch this whole box all the time, within a budget, and keep what services waste
    #[command(override_usage = "systoll agent [OPTIONS] --dir FOLDER\n       systoll agent look [OPTIONS] UNIT")]
    #[command(after_help = agent::EXAMPLES)]
    Agent(Box<AgentArgs>),
    /// Show what system calls cost a second, live: by caller, with findings and their cures
    #[command(
        override_usage = "systoll top [OPTIONS] PID|NAME|:PORT...\n       systoll top [OPTIONS] -- CMD [ARGS]..."
    )]
    #[command(after_help = top::EXAMPLES)]
    Top(Box<TopArgs>),
    /// Print the report of a kept recording again, anywhere
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Write a recording in the format of another tool: flame graph, speedscope, Perfetto, CSV, ...
    #[command(after_help = export::EXAMPLES)]
    Export(ExportArgs),
    /// Ask about many runs at once: the most expensive needless calls of all services, what came with a release
    #[command(
        override_usage = "systoll fleet [OPTIONS] FOLDER... [QUESTION]\n       systoll fleet [OPTIONS] --sql FILE|TEXT FOLDER..."
    )]
    #[command(after_help = fleet::EXAMPLES)]
    Fleet(Box<FleetArgs>),
    /// Report on a trace of strace, perf, ltrace, systing or Perfetto
    #[command(override_usage = "systoll import [OPTIONS] FILE...\n       strace -f CMD 2>&1 | systoll import")]
    #[command(after_help = import::IMPORT_EXAMPLES)]
    Import(ImportArgs),
    /// Run a program with and without a change, and measure what it wins
    #[command(
        override_usage = "systoll prove [OPTIONS] --cure CAUSE -- CMD [ARGS]...\n       systoll prove --vs 'NEW CMD' -- CMD [ARGS]...\n       systoll prove -E VAR=VALUE -- CMD [ARGS]...\n       systoll prove --elide CALLS -- CMD [ARGS]...\n       systoll prove --shorten WHAT -- CMD [ARGS]...\n       systoll prove --preload LIB -- CMD [ARGS]...\n       systoll prove --live PROCESS CAUSE\n       systoll prove --live PROCESS --elide CALLS"
    )]
    #[command(after_help = prove::PROVE_EXAMPLES)]
    Prove(Box<ProveArgs>),
    /// Show what changed between two recordings, or two commands
    #[command(
        override_usage = "systoll diff [OPTIONS] OLD NEW\n       systoll diff [OPTIONS] OLD... : NEW...\n       systoll diff --vs 'NEW CMD' -- OLD [ARGS]...\n       systoll diff -E VAR=VALUE -- OLD [ARGS]...\n       systoll diff [OPTIONS] OLD... -- NEW [ARGS]..."
    )]
    #[command(after_help = diff::EXAMPLES)]
    Diff(DiffArgs),
    /// Find the commit from which on a program makes more system calls
    #[command(override_usage = "systoll bisect [OPTIONS] GOOD BAD -- CMD [ARGS]...")]
    #[command(after_help = bisect::EXAMPLES)]
    Bisect(BisectArgs),
    /// Hold a program's system calls against a budget, for CI
    #[command(
        override_usage = "systoll check [OPTIONS] -- CMD [ARGS]...\n       systoll check --update [OPTIONS] -- CMD [ARGS]...\n       systoll check [OPTIONS] REC..."
    )]
    #[command(after_help = check::EXAMPLES)]
    Check(CheckArgs),
    /// Run a program cured, nothing watched; or print what to keep
    #[command(
        override_usage = "systoll cure CAUSE... -- CMD [ARGS]...\n       systoll cure --print CAUSE... [--for WHAT]"
    )]
    #[command(after_help = prove::CURE_EXAMPLES)]
    Cure(CureArgs),
    /// Show the five stories systoll exists for, on this box
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoArgs),
    /// Measure what system calls cost on this box
    #[command(after_help = BOX_EXAMPLES)]
    Box(PlainArgs),
    /// Check what systoll can watch on this machine and how to enable more
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(PlainArgs),
    /// Explain a cause: mechanism, how to recognise it, every cure
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArgs),
    /// List the causes known by name
    #[command(after_help = CAUSES_EXAMPLES)]
    Causes(CausesArgs),
    /// Serve tools to agents over standard input and output (Model Context Protocol)
    #[command(after_help = MCP_EXAMPLES)]
    Mcp,
    /// Print what completes systoll's words in a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
}

/// Options of `run` and `report` that say how results are shown.
#[derive(Clone, Debug, Default, Args)]
pub struct ShowArgs {
    /// Write the report to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write JSON (docs/reference/json.md, docs/reference/report.schema.json)
    #[arg(long, conflicts_with = "counts")]
    pub json: bool,
    /// Write one page for a browser, everything in it, nothing fetched (docs/use/page.md)
    #[arg(long, conflicts_with_all = ["counts", "json", "trace"])]
    pub html: bool,
    /// Write that page, to -o or a new file, and open it in the browser
    #[arg(long, conflicts_with_all = ["counts", "json", "trace"])]
    pub open: bool,
    /// Write strace's table (`strace -c`) instead: time, calls and errors of each system call
    #[arg(short, long = "summary-only", id = "counts")]
    pub counts: bool,
    /// Sort that table by a column of -U, or by nothing
    #[arg(short = 'S', long, value_name = "COLUMN", default_value = "time", requires = "counts", value_parser = sort_by)]
    pub summary_sort_by: TableSort,
    /// Columns of that table
    #[arg(short = 'U', long, help = columns_help(), value_name = "COLUMNS", requires = "counts", value_parser = columns)]
    pub summary_columns: Option<Columns>,
    /// Elapsed time in that table, waiting included, rather than time paid
    #[arg(short = 'w', long, requires = "counts")]
    pub summary_wall_clock: bool,
    /// Subtract this from each call's elapsed time in that table, in s, ms, us (the default) or ns
    #[arg(short = 'O', long, value_name = "TIME", default_value = "0", hide_default_value = true, requires = "counts", value_parser = overhead)]
    pub summary_syscall_overhead: Duration,
    /// Calls regrouped, one line a group
    #[arg(long, help = by_help(), value_name = "WHAT", conflicts_with = "counts", hide_possible_values = true, value_parser = by())]
    pub by: Option<Regroup>,
    /// At most N groups (default: 20; --all shows all)
    #[arg(short = 'n', long, value_name = "N", requires = "by", allow_negative_numbers = true, value_parser = number)]
    pub limit: Option<usize>,
    /// Only these system calls: names or classes, e.g. `openat,%network`, `!futex`
    #[arg(short = 'e', long = "trace", value_name = "SET")]
    pub trace: Option<CallSet>,
    /// All findings, remarks and groups, not just the first few
    #[arg(long)]
    pub all: bool,
    /// What threads do repeatedly: every repeated pattern of calls, with its count, price and line
    #[arg(long = "patterns", alias = "rounds", conflicts_with_all = ["counts", "by"])]
    pub patterns: bool,
    /// Where the elapsed time went: every line that waited, for what, and how long
    #[arg(long, conflicts_with_all = ["counts", "by"])]
    pub waits: bool,
    /// List every single call that took at least this long, e.g. 10ms; waiting for work only with --all
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub longer: Option<Duration>,
    /// Whole stacks instead of the chain of callers
    #[arg(short = 'k', long, alias = "stack-trace")]
    pub stack_traces: bool,
    /// Show what each descriptor refers to: paths, sockets with their ends, pipes, as `strace -yy`
    #[arg(short = 'y', long, action = ArgAction::Count)]
    pub decode_fds: u8,
    #[command(flatten)]
    pub(crate) color: ColorArgs,
    #[command(flatten)]
    pub(crate) causes: ExtraCauses,
}

fn columns_help() -> String {
    format!("Columns of that table: {}", column_names())
}

fn by_help() -> String {
    format!("Calls regrouped, one line a group: by {}", any_of(&Regroup::names()))
}

/// Where to keep what was recorded.
#[derive(Debug, Args)]
pub struct KeepArgs {
    /// Keep the recording: a pprof profile that `systoll report` and `go tool pprof` open
    #[arg(long, value_name = "REC")]
    pub save: Option<PathBuf>,
    /// Have --save replace a file that is no recording
    #[arg(long, requires = "save")]
    pub force: bool,
    /// Add the run to FOLDER, where `systoll fleet` finds it (docs/use/fleet.md)
    #[arg(long, value_name = "FOLDER")]
    pub save_to: Option<PathBuf>,
}

/// The arguments of `systoll report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    /// Add the run to FOLDER instead, where `systoll fleet` finds it (docs/use/fleet.md)
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["json", "counts", "html", "open", "output"])]
    pub parquet: Option<PathBuf>,
    /// A recording that `run --save` kept; - for standard input, as where one comes there and none is named
    #[arg(value_name = "REC")]
    pub recording: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) labels: LabelArgs,
}

/// The arguments of `systoll demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// One story only: localtime, ucontext, setjmp, getpid or membarrier
    #[arg(value_name = "STORY")]
    pub story: Option<String>,
    /// Prove each story three ways: with the code fixed, with a preloaded library, and with its
    /// calls answered without the kernel
    #[arg(long)]
    pub prove: bool,
    #[command(flatten)]
    pub(crate) color: ColorArgs,
}

/// Options of commands that only print.
#[derive(Debug, Args)]
pub struct PlainArgs {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub(crate) color: ColorArgs,
}

/// The arguments of `systoll explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The cause's id, as findings name it; or a system call, whose causes are listed. With --why-not a recording; - for
    /// standard input
    #[arg(value_name = "CAUSE", required_unless_present = "why_not")]
    pub cause: Option<String>,
    /// Say of a recording why nothing, or no more, was reported of the calls that WHAT makes: a line (app.py:12), a
    /// function, or a system call
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["language", "causes"])]
    pub why_not: Option<String>,
    /// With --why-not: write JSON
    #[arg(long, requires = "why_not")]
    pub json: bool,
    /// Only the cures for code in this language: python, c++, bash, ...
    #[arg(short, long, value_name = "LANGUAGE", hide_possible_values = true, value_parser = language())]
    pub language: Option<CodeLanguage>,
    #[command(flatten)]
    pub(crate) causes: ExtraCauses,
    #[command(flatten)]
    pub(crate) color: ColorArgs,
}

/// The arguments of `systoll causes`.
#[derive(Debug, Args)]
pub struct CausesArgs {
    #[command(flatten)]
    pub(crate) causes: ExtraCauses,
    #[command(flatten)]
    pub(crate) color: ColorArgs,
}

/// The arguments of `systoll completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell: bash, zsh, fish, elvish or powershell
    #[arg(value_name = "SHELL", hide_possible_values = true)]
    pub shell: Shell,
}

/// The option that names more causes.
#[derive(Clone, Debug, Default, Args)]
pub struct ExtraCauses {
    /// Add the causes (*.toml) in DIR to those built in
    #[arg(id = "causes", long = "causes", value_name = "DIR")]
    pub folder: Option<PathBuf>,
}

/// The backend to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum BackendChoice {
    /// The cheapest that can serve.
    #[default]
    Auto,
    /// From inside: counting code in the target, which is let go (on aarch64 a preview, for run).
    Inproc,
    /// In the kernel, which counts: as root; counts and times only.
    Bpf,
    /// System call stops: any user, everywhere; slow.
    Ptrace,
}

/// The calls that are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Timed {
    /// All of them.
    All,
    /// A random sample.
    Sampled,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use systoll_present::TableColumn;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_names_the_values_it_does_not_list() {
        for command in Cli::command().get_subcommands() {
            for arg in command.get_arguments().filter(|arg| arg.is_hide_possible_values_set()) {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let lacks = |name: &str| {
                    !help.contains("...") && !help.split(|c: char| !c.is_alphanumeric()).any(|w| w == name)
                };
                let values = arg.get_possible_values();
                let missing: Vec<&str> = values.iter().map(|v| v.get_name()).filter(|name| lacks(name)).collect();
                assert_eq!(missing, [""; 0], "{} --{}: {help}", command.get_name(), arg.get_id());
            }
        }
    }

    #[test]
    fn everything_after_the_command_is_the_commands() {
        let cli = Cli::try_parse_from(["systoll", "run", "ls", "-o", "--json"]).unwrap();
        let Command::Run(run) = cli.command else { panic!("not run") };
        assert_eq!(run.command, ["ls", "-o", "--json"]);
        assert!(!run.show.json);
    }

    #[test]
    fn options_parsed_early_agree_with_the_parser() {
        let lines: [&[&str]; 11] = [
            &["--version"],
            &["-V"],
            &["--version", "run"],
            &["run", "--version"],
            &["run", "ls", "-o", "--json"],
            &["run", "-q", "--save", "x", "--", "ls"],
            &["run", "-c", "-S", "calls", "--every", "2s", "ls"],
            &["run", "--help"],
            &["run"],
            &["run", "--no-such-flag", "ls"],
            &["report", "x"],
        ];
        for line in lines {
            let words: Vec<OsString> = ["systoll"].iter().chain(line).map(OsString::from).collect();
            let text = |read: Result<Cli, clap::Error>| read.map(|c| format!("{c:?}")).map_err(|e| e.to_string());
            assert_eq!(text(Cli::read(&words)), text(Cli::try_parse_from(&words)), "{line:?}");
        }
    }

    #[test]
    fn straces_flags_are_understood() {
        let run = |args: &[&str]| {
            let all = ["systoll", "run"].iter().chain(args).chain(&["--", "ls"]);
            match Cli::try_parse_from(all).map_err(|e| e.to_string())?.command {
                Command::Run(run) => Ok::<_, String>(run),
                other => panic!("{other:?}"),
            }
        };
        let all = run(&["-ff", "-qq", "-yy", "-k", "-e", "trace=%file,!open"]);
        assert!(all.is_err(), "a negation stands first");
        let all = run(&["-ff", "-qq", "-yy", "-k", "-e", "trace=!%file"]).unwrap();
        assert_eq!((all.follow_forks, all.quiet, all.show.decode_fds, all.show.stack_traces), (2, 2, 2, true));
        let table = run(&["-c", "-w", "-S", "count", "-U", "calls,name,max_time"]).unwrap().show;
        assert!(table.summary_wall_clock && table.summary_sort_by == TableSort::By(TableColumn::Calls));
        assert_eq!(table.summary_columns.unwrap().0, [TableColumn::Calls, TableColumn::Name, TableColumn::Longest]);
        let table = run(&["-c", "-S", "wall_min", "-U", "total-time,wall-total,shortest", "-O", "1.5"]).unwrap().show;
        assert_eq!(table.summary_sort_by, TableSort::By(TableColumn::WallShortest));
        assert_eq!(table.summary_syscall_overhead, Duration::from_nanos(1500));
        for wrong in [
            &["-c", "-U", "slowest"][..],
            &["-c", "-U", "calls,calls"],
            &["-c", "-U", "calls,none"],
            &["-c", "-O", "3 parsecs"],
            &["-w"],
            &["-O", "1"],
            &["-S", "time"],
            &["-n", "3"],
        ] {
            assert!(run(wrong).is_err(), "{wrong:?}");
        }
        assert!(run(&["-c", "--by", "line"]).is_err() && run(&["--by", "moon"]).is_err());
        assert_eq!(run(&["--by", "fd", "-n", "3"]).unwrap().show.by, Some(Regroup::By(systoll_judge::By::Fd)));
    }

    #[test]
    fn a_mistyped_flag_is_not_a_program() {
        assert!(Cli::try_parse_from(["systoll", "run", "--jsno", "--", "ls"]).is_err());
        assert!(Cli::try_parse_from(["systoll", "run", "--", "-odd-name"]).is_ok());
    }
}
