//! Defines the command line of `systoll prove` and `systoll cure`.

use super::values::{duration, env_change};
use super::{ColorArgs, ExtraCauses};
use clap::{ArgGroup, Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use systoll_model::{Elision, EnvChange, Sysno};
use systoll_prove::Ready;

/// Examples of `prove`, for `--help` and the man page.
pub(super) const PROVE_EXAMPLES: &str = "Examples:
  systoll prove --cure tz-unset -- ./app          a cause's own cure, as a finding of `run` offers it
  systoll prove --vs './new --fast' -- ./old      two commands
  systoll prove -E MALLOC_ARENA_MAX=1 -- ./app    any change of the environment
  systoll prove --shorten poll.py:12 -- ./poll.py what half of a line's sleeping would win
  systoll prove --elide rt_sigprocmask -- ./app   what a program without these calls would win
  systoll prove --serve './server 8080' --ready 8080 --load 'wrk -d2 http://127.0.0.1:8080/' --cure tz-unset
  systoll prove --live 4711 --elide getpid --for 30s    in a program that runs, which then runs on as it was
  systoll prove --live :8080 sigmask-context --load 'wrk -d2 http://127.0.0.1:8080/'
  systoll prove --pairs 50 --json -o p.json --cure tz-unset -- ./app
  systoll prove --same 'sha256sum out.bin' --vs './new' -- ./old    what must be the same

Exit codes:
  0  both do the same, and were compared        1  they do not do the same, nothing is claimed
  125  systoll itself failed                    126, 127  a command can't be executed, was not found";

/// Examples of `cure`, for `--help` and the man page.
pub(super) const CURE_EXAMPLES: &str = "Examples:
  systoll cure tz-unset -- ./app                  run it cured; nothing is watched
  systoll cure --print tz-unset                   what to keep, for a shell
  systoll cure --print tz-unset --for systemd     or a unit, an image, a deployment
  systoll cure sigmask-context -- ./app           cures by a library of ours need no other build
  systoll cure --export /usr/local/lib sigmask-context    keep that library, and print the line";

/// The arguments of `systoll prove`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").args(["cure", "vs", "env", "preload", "elide", "shorten", "live"]).required(true).multiple(true))]
#[command(group = ArgGroup::new("driven").args(["serve", "live"]))]
pub struct ProveArgs {
    /// Apply this cause's cure to the second side; CAUSE:N for another of its cures, see `systoll explain CAUSE`
    #[arg(long, value_name = "CAUSE")]
    pub cure: Vec<String>,
    /// The second side is this command, in a shell's words; no shell runs it
    #[arg(long, value_name = "COMMAND", value_parser = words)]
    pub vs: Option<Words>,
    /// Set (VAR=VALUE) or remove (VAR) a variable on the second side
    #[arg(short = 'E', long = "env", id = "env", value_name = "VAR[=VALUE]", value_parser = env_change)]
    pub env: Vec<EnvChange>,
    /// Load this library first (LD_PRELOAD) on the second side
    #[arg(long, value_name = "LIB")]
    pub preload: Option<PathBuf>,
    /// Answer these calls in place of the kernel on the second side, between commas: getpid, gettid,
    /// getuid, geteuid, and rt_sigprocmask where it changes nothing. An experiment in any program, static ones
    /// and Go's too: about what a fix would win before you write it. systoll watches both sides alike
    #[arg(long, value_name = "CALLS", value_parser = elision, value_delimiter = ',')]
    pub elide: Vec<Elision>,
    /// Have the sleeps of WHAT take half of their time on the second side: a line (app.py:12), a function, or a call. An
    /// experiment, by a library that is loaded first, about waiting that serves no one: sleeps, and polls that run out.
    /// A run that is watched first finds them
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["vs", "serve", "live", "elide"])]
    pub shorten: Option<String>,
    /// With --shorten: the part of its time that a sleep takes, above 0 and below 1 [default: 0.5]
    #[arg(long, value_name = "PART", value_parser = part, requires = "shorten")]
    pub to: Option<f64>,
    /// Compare servers: this one, in a shell's words, is the first side in place of CMD. systoll starts,
    /// drives and stops both sides alike, in turns (--pairs; default: 8)
    #[arg(long, value_name = "COMMAND", value_parser = words, requires_all = ["ready", "load"])]
    #[arg(conflicts_with_all = ["command", "prepare", "input", "timeout", "export_json", "export_markdown", "warmup"])]
    pub serve: Option<Words>,
    /// Answer calls in place in a program that runs (a process id, a name, or :PORT for who listens there), in turns
    /// with and without: those of --elide, or of the CAUSE that stands where CMD does. Then it runs on as it was
    #[arg(long, value_name = "PROCESS")]
    #[arg(conflicts_with_all = ["vs", "env", "preload", "prepare", "input", "timeout", "export_json", "export_markdown", "warmup", "limit", "watched", "same", "ignore_failure"])]
    pub live: Option<String>,
    /// Measure work by the count of this system call, if no --load is given [default: the program's most frequent one that
    /// is made in any case]
    #[arg(long, value_name = "CALL", value_parser = call, requires = "live", conflicts_with = "load")]
    pub per: Option<Sysno>,
    /// Wait until this URL responds, this PORT or HOST:PORT accepts, or this text appears in the
    /// server's output
    #[arg(long, value_name = "URL|PORT|TEXT", value_parser = Ready::parse, requires = "serve")]
    pub ready: Option<Ready>,
    /// What drives the servers, or the program that runs, in a shell's words: systoll reads what wrk, ab and redis-benchmark print, and
    /// counts the runs of others
    #[arg(long, value_name = "COMMAND", value_parser = words, requires = "driven")]
    pub load: Option<Words>,
    /// With --serve: start the load again until it has run so long, in each turn [default: 2s]. With --live: all turns
    /// take so long, or as long as their loads do [default: 30s]
    #[arg(long = "for", value_name = "TIME", value_parser = duration, requires = "driven")]
    pub drive_for: Option<Duration>,
    /// Run so many pairs [default: until decisive]
    #[arg(long, value_name = "N")]
    pub pairs: Option<u32>,
    /// Start no pair after this time, and none at all where the fewest take longer [default: 60s, or what
    /// the fewest take]
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "pairs")]
    pub limit: Option<Duration>,
    /// Runs of either side before the first that counts
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    pub warmup: u32,
    /// A shell command before each run
    #[arg(short, long, value_name = "CMD")]
    pub prepare: Option<OsString>,
    /// A shell command once before all
    #[arg(short, long, value_name = "CMD")]
    pub setup: Option<OsString>,
    /// A shell command once after all
    #[arg(short, long, value_name = "CMD")]
    pub cleanup: Option<OsString>,
    /// Both sides may end as they like (--same without exit)
    #[arg(short, long)]
    pub ignore_failure: bool,
    /// What both sides read from standard input; nothing by default
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// End a run that takes longer, and the comparison with it
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// What must be the same: stdout, stderr, exit, none, or a shell command whose output must be
    /// (it finds what the run wrote in $SYSTOLL_STDOUT and $SYSTOLL_STDERR, its exit code in
    /// $SYSTOLL_EXIT)
    #[arg(long, value_name = "WHAT", default_value = "stdout,stderr,exit")]
    pub same: OsString,
    /// Watched runs of either side, for exact counts; 0 for none
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub watched: u32,
    /// Write the report to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write JSON (docs/reference/json.md, docs/reference/prove.schema.json)
    #[arg(long)]
    pub json: bool,
    /// Write all times as `hyperfine --export-json` does
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
    /// Write a table in Markdown as `hyperfine --export-markdown` does
    #[arg(long, value_name = "FILE")]
    pub export_markdown: Option<PathBuf>,
    /// No progress
    #[arg(short, long)]
    pub quiet: bool,
    /// Seed of the runs' order
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub(crate) color: ColorArgs,
    #[command(flatten)]
    pub(crate) causes: ExtraCauses,
    /// The program and its arguments: the first side, as it is
    #[arg(required_unless_present_any = ["serve", "live"], trailing_var_arg = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// The arguments of `systoll cure`.
#[derive(Debug, Args)]
pub struct CureArgs {
    /// Print what to keep instead of running anything
    #[arg(long)]
    pub print: bool,
    /// For what it is printed [default: shell, or code where nothing can be set from outside]
    #[arg(long = "for", value_name = "WHAT", conflicts_with = "command")]
    pub keep_for: Option<KeepFor>,
    /// Write the libraries of cures that have one into DIR, to be kept, and print what to keep
    #[arg(long, value_name = "DIR")]
    pub export: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) causes: ExtraCauses,
    /// The causes to be cured, as findings name them; CAUSE:N for another of its cures, see `systoll explain CAUSE`
    #[arg(required = true, value_name = "CAUSE")]
    pub cause: Vec<String>,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present_any = ["print", "export"], conflicts_with_all = ["print", "export"])]
    pub command: Vec<OsString>,
}

/// The place where a cure is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum KeepFor {
    /// `export` lines.
    #[default]
    Shell,
    /// A drop-in's `Environment=` lines.
    Systemd,
    /// `ENV` lines of a Dockerfile.
    Docker,
    /// `env` of a container in a manifest.
    Kubernetes,
    /// What to change in the program, in each language.
    Code,
}

/// A command, split as a shell would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(pub Vec<OsString>);

pub(super) fn elision(text: &str) -> Result<Elision, String> {
    let known = || Elision::ALL.map(Elision::name).join(", ");
    Elision::from_name(text).ok_or_else(|| format!("{text} can't be answered in place; what can: {}", known()))
}

fn call(text: &str) -> Result<Sysno, String> {
    Sysno::from_name(text).ok_or_else(|| format!("{text} is no system call"))
}

fn part(text: &str) -> Result<f64, String> {
    let part: Option<f64> = text.parse().ok();
    part.filter(|part| (0.001..0.9995).contains(part)).ok_or_else(|| "a part of the time, 0.001 to 0.999".to_owned())
}

pub(super) fn words(text: &str) -> Result<Words, String> {
    match shell_words::split(text) {
        Ok(words) if words.is_empty() => Err("a command needs a program".into()),
        Ok(words) => Ok(Words(words.into_iter().map(OsString::from).collect())),
        Err(_) => Err("a quote is not closed".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use clap::Parser;

    #[test]
    fn something_must_differ() {
        assert!(Cli::try_parse_from(["systoll", "prove", "--", "ls"]).is_err());
        let both = ["systoll", "prove", "--cure", "tz-unset", "-E", "A=1", "--", "ls", "--cure"];
        let Command::Prove(args) = Cli::try_parse_from(both).unwrap().command else { panic!("not prove") };
        assert_eq!((args.cure.len(), args.env.len(), args.command.len()), (1, 1, 2));
    }

    #[test]
    fn the_other_command_is_in_a_shells_words() {
        let line = ["systoll", "prove", "--vs", "./new 'two words' \\$x", "--", "./old"];
        let Command::Prove(args) = Cli::try_parse_from(line).unwrap().command else { panic!("not prove") };
        assert_eq!(args.vs.unwrap().0, ["./new", "two words", "$x"]);
        assert!(Cli::try_parse_from(["systoll", "prove", "--vs", "'open", "--", "ls"]).is_err());
        assert!(Cli::try_parse_from(["systoll", "prove", "--vs", "", "--", "ls"]).is_err());
    }

    #[test]
    fn a_cure_is_run_or_printed() {
        assert!(Cli::try_parse_from(["systoll", "cure", "tz-unset"]).is_err());
        assert!(Cli::try_parse_from(["systoll", "cure", "tz-unset", "--", "ls", "-l"]).is_ok());
        assert!(Cli::try_parse_from(["systoll", "cure", "--print", "tz-unset", "--for", "systemd"]).is_ok());
        assert!(Cli::try_parse_from(["systoll", "cure", "--export", "/lib", "tz-unset"]).is_ok());
        for wrong in [&["--print"][..], &["--export", "/lib"], &["--for", "docker"]] {
            let line = ["systoll", "cure"].iter().chain(wrong).chain(&["tz-unset", "--", "ls"]);
            assert!(Cli::try_parse_from(line).is_err(), "{wrong:?}");
        }
    }
}
