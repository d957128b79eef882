//! Defines the command line of `systoll attach`.

use super::values::duration;
use super::{BackendChoice, BuildLabelArgs, KeepArgs, ShowArgs, Timed};
use clap::{ArgAction, Args};
use std::time::Duration;
use systoll_model::Elision;

pub(super) const EXAMPLES: &str = "Examples:
  systoll attach 4711 --for 30s            what a running process does, for half a minute
  systoll attach :8080 --for 10s           whoever serves that port, with its worker processes
  systoll attach redis-server -c --for 5s  all processes of that name, as strace's table
  systoll attach --tree 4711               with all its descendants
  systoll attach --service nginx --for 1m --save a.systoll
  sudo systoll attach --box --for 10s      everything that runs on this box
  systoll attach --clean 4711              take out what a killed systoll has left

They run on as they were: docs/use/attach.md tells what it does to a process, and what it costs";

/// Which running processes to watch.
#[derive(Debug, Default, Args)]
pub struct SelectArgs {
    /// A process, as for strace
    #[arg(short = 'p', long = "pid", value_name = "PID", value_delimiter = ',')]
    pub pids: Vec<i32>,
    /// Also watch all descendants
    #[arg(long)]
    pub tree: bool,
    /// All processes of the box, and those that start meanwhile, from the kernel (as root): docs/use/box.md
    #[arg(long = "box", conflicts_with_all = ["pids", "tree", "units", "cgroup", "containers", "no_children", "processes"])]
    pub whole_box: bool,
    /// All processes of a systemd unit, whose name is the service's in a fleet
    #[arg(long = "service", value_name = "UNIT")]
    pub units: Vec<String>,
    /// All processes of a control group, and of those below it
    #[arg(long, value_name = "PATH")]
    pub cgroup: Vec<String>,
    /// All processes of a container, by its name or id as they stand in its control group's path; no daemon is asked
    #[arg(long = "container", value_name = "NAME")]
    pub containers: Vec<String>,
    /// Only these processes: those that they start from now on are not in the report, and programs that those execute
    /// are not watched
    #[arg(long)]
    pub no_children: bool,
    /// The processes: a process id, a name, or :PORT for those that listen there and their children of the same program
    #[arg(value_name = "PROCESS")]
    pub processes: Vec<String>,
}

impl SelectArgs {
    /// The options that name processes, besides the arguments.
    pub const OPTIONS: [&str; 5] = ["pids", "units", "cgroup", "containers", "whole_box"];

    /// Returns true if neither an argument nor one of [`Self::OPTIONS`] names a process.
    pub fn is_empty(&self) -> bool {
        self.pids.is_empty()
            && self.units.is_empty()
            && self.cgroup.is_empty()
            && self.containers.is_empty()
            && self.processes.is_empty()
            && !self.whole_box
    }
}

/// The arguments of `systoll attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Take out what a systoll that was killed has left in these processes
    #[arg(long, conflicts_with_all = ["window", "calls", "save", "save_to", "every"])]
    pub clean: bool,
    /// Answer these calls in place of the kernel, and make them, in turns that standard input orders: what
    /// `prove --live` starts
    #[arg(long, hide = true, value_name = "CALLS", value_parser = super::prove::elision, value_delimiter = ',')]
    pub elide: Vec<Elision>,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

/// The options for watching running processes, and for what is reported and kept.
#[derive(Debug, Args)]
pub struct WatchArgs {
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    /// Watch for this long, e.g. 30s; without it until Ctrl-C, or until all have ended
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub window: Option<Duration>,
    /// Watch until about so many calls have been made
    #[arg(long, value_name = "N")]
    pub calls: Option<u64>,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    /// No report, no progress: only what -o or --save ask for
    #[arg(short, long, action = ArgAction::Count)]
    pub quiet: u8,
    /// How to watch: auto enters the process (on aarch64 ptrace stops it at each call), bpf watches from the kernel (as root)
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub backend: BackendChoice,
    /// Print the report so far every so often, e.g. 10s (a file has the last one); SIGUSR1 asks for one at any time
    #[arg(long, value_name = "TIME", value_parser = super::values::period)]
    pub every: Option<Duration>,
    /// Which calls to read the clock around, as for `run`
    #[arg(long, value_name = "WHICH", default_value = "all")]
    pub time: Timed,
    /// Seed of the windows' random places, to repeat a run's choices
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub(crate) labels: BuildLabelArgs,
}

#[cfg(test)]
mod tests {
    use crate::cli::{Cli, Command};
    use clap::Parser;

    #[test]
    fn each_way_to_name_processes_is_enough() {
        for words in
            [&["-p", "7"][..], &["--service", "a"], &["--cgroup", "/a"], &["--container", "a"], &["--box"], &["7"]]
        {
            let all = |command| ["systoll", command].into_iter().chain(words.iter().copied());
            let Ok(Cli { command: Command::Attach(args), .. }) = Cli::try_parse_from(all("attach")) else {
                panic!("{words:?}")
            };
            assert!(!args.select.is_empty(), "{words:?}");
        }
        assert!(Cli::try_parse_from(["systoll", "attach", "--tree"]).is_err());
    }
}
