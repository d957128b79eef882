//! Defines the command line of `systoll run`.

use super::values::{duration, env_change, period};
use super::{BackendChoice, KeepArgs, LabelArgs, ShowArgs, Sign, Timed, prove};
use clap::{ArgAction, Args, ValueHint};
use std::ffi::OsString;
use std::time::Duration;
use systoll_model::{Elision, EnvChange};

/// Examples of `run`, for `--help` and the man page.
pub(super) const EXAMPLES: &str = "Examples:
  systoll run -- ./app --its --flags       the report comes on stderr when it ends
  systoll run -o report.txt -- make        the report goes to a file
  systoll run --prove -- ./app             and what the best finding wins, with and without
  systoll run -c -- git status             strace's table, exact counts
  systoll run --by line -- python3 app.py  which lines call most; or caller, api, library, ...
  systoll run --by fd -e %desc -- ./app    what the calls on descriptors are about
  systoll run --by request -- ./app        what each kind of request costs: GET /orders/N, ...
  systoll run -k -y -- ./app               findings with whole stacks and descriptors
  systoll run --json -o r.json -- ./app    for scripts; docs/reference/json.md has the contract
  systoll run --until port:8080 -- ./serve the start alone: until it listens, then it is ended
  systoll run --open -- ./app              the report as a page in the browser
  systoll run --save a.systoll -- ./app    keep the recording: systoll report a.systoll,
                                           go tool pprof -top a.systoll
  kill -USR1 $(pidof systoll)              the report so far";

/// The arguments of `systoll run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    /// No report, no progress: only what -o or --save ask for
    #[arg(short, long, action = ArgAction::Count)]
    pub quiet: u8,
    /// How to watch: auto picks the cheapest that can serve here
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub backend: BackendChoice,
    /// Watch the start alone, until CMD is ready: port:8080 (a socket listens on that TCP port), line:TEXT (a line with
    /// TEXT is written to standard output or error, whatever these are), file:PATH (the file appears), answer:8080/PATH
    /// (an HTTP request of systoll's is answered, by a status below 500), main (main begins, or the interpreter opens the
    /// script). Then CMD is ended as by timeout: SIGTERM, and SIGKILL five seconds later; the exit code is 0
    #[arg(long, value_name = "SIGN", value_parser = Sign::parse, conflicts_with = "prove")]
    pub until: Option<Sign>,
    /// With --until: CMD goes on, unwatched
    #[arg(long = "keep", requires = "until")]
    pub goes_on: bool,
    /// Set (VAR=VALUE) or remove (VAR) a variable in CMD's environment
    #[arg(short = 'E', long = "env", value_name = "VAR[=VALUE]", value_parser = env_change)]
    pub env: Vec<EnvChange>,
    /// Print the report so far every so often, e.g. 10s (a file has the last one); SIGUSR1 asks for one at any time
    #[arg(long, value_name = "TIME", value_parser = period)]
    pub every: Option<Duration>,
    /// Go straight on to the proof of the best finding: runs CMD again, with and without, a few
    /// dozen times and for a minute at most, its output discarded
    #[arg(long, conflicts_with_all = ["json", "counts"])]
    pub prove: bool,
    /// Answer these calls in place of the kernel: what `prove --serve --elide` starts
    #[arg(long, hide = true, value_name = "CALLS", value_parser = prove::elision, value_delimiter = ',')]
    pub elide: Vec<Elision>,
    /// How long CMD may take to end after SIGTERM; then it runs on unwatched. For `prove --serve`
    #[arg(long, hide = true, value_name = "TIME", value_parser = duration)]
    pub grace: Option<Duration>,
    /// Count calls, nothing else; likewise
    #[arg(long, hide = true)]
    pub counts_only: bool,
    /// Which calls to read the clock around: all, or one in 16 at random once 256 alike were timed, and all that wait.
    /// Counts are exact either way; sampled is for processors whose clock is slow to read
    #[arg(long, value_name = "WHICH", default_value = "all")]
    pub time: Timed,
    /// Seed of the windows' random places, to repeat a run's choices
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Follow children (always on, as with `strace -f`)
    #[arg(short = 'f', long, hide = true, action = ArgAction::Count)]
    pub follow_forks: u8,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
    // Last: the heading of its options holds for all that follow.
    #[command(flatten)]
    pub(crate) labels: LabelArgs,
}
