//! Defines the command line of `systoll agent`.

use super::ExtraCauses;
use super::values::{bytes, duration, period, share};
use clap::{Args, ValueHint};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const EXAMPLES: &str = "Examples:
  sudo systoll agent --dir /var/lib/systoll            this box, all the time, for half a percent of it
  sudo systoll agent --dir /var/lib/systoll --listen 127.0.0.1:9811    with counters for Prometheus
  sudo systoll agent --dir x --for 10m --interval 1m --budget 2%       a first look, in ten minutes
  systoll fleet /var/lib/systoll                       what it has found, by service and cause

It takes root, or CAP_BPF and CAP_PERFMON, and ends on SIGTERM. From an empty host to answers about a fleet:
docs/use/box.md; files for systemd, Kubernetes, Prometheus and Grafana: dist/box";

/// The arguments of `systoll agent`.
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// Folder for what is found, which `systoll fleet` reads, and for the counters (systoll.prom)
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// Share of the box's processors that watching may take, in the kernel as well
    #[arg(long, value_name = "SHARE", default_value = "0.5%", value_parser = share)]
    pub budget: f64,
    /// Time after which what was found is written to the folder; a kill loses no more than that
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = period)]
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
    /// Watch for this long; without it until a signal ends it
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub window: Option<Duration>,
    /// The box's name in the folder [default: its own]
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
