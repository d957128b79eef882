//! Defines the command line of `systoll agent`.

use super::ExtraCauses;
use super::attach::WatchArgs;
use super::values::{bytes, duration, interval, share};
use clap::{Args, Subcommand, ValueHint};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use systoll_agent::Receiver;

pub(super) const EXAMPLES: &str = "Examples:
  sudo systoll agent --dir /var/lib/systoll            this box, all the time, for half a percent of it
  sudo systoll agent --dir /var/lib/systoll --listen 127.0.0.1:9811    with counters for Prometheus
  sudo systoll agent --dir x --for 10m --interval 1m --budget 2%       a first look, in ten minutes
  sudo systoll agent --dir /var/lib/systoll --otlp http://localhost:4318    to an OpenTelemetry collector
  systoll fleet /var/lib/systoll                       what it has found, by service and cause
  sudo systoll agent look nginx --for 30s              one service closely, now, from inside

It takes root, or CAP_BPF and CAP_PERFMON, and ends on SIGTERM. From an empty host to answers about a fleet:
docs/use/box.md; files for systemd, Kubernetes, Prometheus and Grafana: dist/box";

const LOOK_EXAMPLES: &str = "Examples:
  sudo systoll agent look nginx --for 30s              all processes of a systemd unit, from inside
  sudo systoll agent look container-3f2a9c0d17be --for 10s      of a container
  sudo systoll agent look web --for 10s                of the container that docker or podman names so, or of a pod
  systoll agent look redis-server --for 10s -c         of a program that runs in no unit, as strace's table
  sudo systoll agent look 4711 --for 10s               a process and its descendants

UNIT is the service's name in what the agent keeps: systoll fleet FOLDER services; or the name of a container of docker
or root's podman, or of a pod (POD, NAMESPACE/POD), by the files that these keep on this host. No agent needs to run, and
one that runs is not disturbed. It enters the processes as systoll attach does, which docs/use/attach.md describes; the
agent's budget does not hold for it";

/// The commands below `systoll agent`.
#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Watch one service closely, for a while: all its processes, from inside, as attach does
    #[command(after_help = LOOK_EXAMPLES)]
    Look(Box<LookArgs>),
}

/// The arguments of `systoll agent look`.
#[derive(Debug, Args)]
pub struct LookArgs {
    /// The service: a systemd unit, container, pod or program, by the agent's name for it or its own; or a process id
    #[arg(value_name = "UNIT")]
    pub unit: String,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

/// The arguments of `systoll agent`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, disable_help_subcommand = true)]
pub struct AgentArgs {
    /// The command below, in place of watching the box.
    #[command(subcommand)]
    pub command: Option<AgentCommand>,
    /// Folder for what is found, which `systoll fleet` reads, and for the counters (systoll.prom)
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath, required = true)]
    pub dir: Option<PathBuf>,
    /// Share of the box's processors that watching may take, in the kernel as well
    #[arg(long, value_name = "SHARE", default_value = "0.5%", value_parser = share)]
    pub budget: f64,
    /// Time after which what was found is added to the day's tables in the folder; a kill loses no more than that
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = interval)]
    pub interval: Duration,
    /// Remove what is older than so many days
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    pub keep_days: u64,
    /// Remove the oldest once there is more than this, e.g. 500M
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = bytes)]
    pub keep_size: u64,
    /// Answer scrapers at this address, at /metrics; without it, only the file has the counters
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Send the counters to an OpenTelemetry collector (OTLP over HTTP, to URL/v1/metrics), each minute and interval
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub otlp: Option<Receiver>,
    /// Send it profiles as well, after each span: what calls cost by caller. OTLP's profiles are in development
    /// (URL/v1development/profiles): the collector needs --feature-gates=service.profilesSupport
    #[arg(long, requires = "otlp")]
    pub otlp_profiles: bool,
    /// Send profiles in pprof's format, after each span and for each service, as Pyroscope takes them (to URL/ingest)
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub pprof_push: Option<Receiver>,
    /// Watch for this long; without it until a signal ends it
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub window: Option<Duration>,
    /// The box's name in the folder and for receivers [default: its own]
    #[arg(
        long,
        value_name = "NAME",
        env = "SYSTOLL_HOST",
        default_value = "",
        hide_default_value = true,
        hide_env = true
    )]
    pub host: String,
    #[command(flatten)]
    pub(crate) causes: ExtraCauses,
    /// Seed of the samples' random places, to repeat a run's choices
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}
