//! Defines the command line of `systoll fleet`, and the options that label a run.

use super::ColorArgs;
use super::values::{day, money};
use clap::Args;
use std::path::PathBuf;
use systoll_export::Labels;

/// Examples of `fleet`, for `--help` and the man page.
pub(super) const EXAMPLES: &str = "Examples:
  systoll run --save-to runs --release 2.4.0 -- ./app     what adds a run to a folder
  systoll fleet runs                                      most expensive needless calls of all services
  systoll fleet runs new --release 2.4.0                  what came with a release
  systoll fleet runs odd-hosts                            another TZ, kernel, libc or clock than the peers'
  systoll fleet runs history --service shop --cause tz-unset
  systoll fleet runs savings --core-hour 0.04             cores and money a month
  systoll fleet runs --sql 'select service, count(distinct host) from fleet group by 1'
  systoll fleet --engine spark --master spark://box:7077 runs services

Exit code: 0 where there is an answer, 125 where not";

/// Labels of a run in a folder of many.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "In a fleet (docs/use/fleet.md)")]
pub struct LabelArgs {
    /// The service's name; default: the command's file name
    #[arg(long, value_name = "NAME", env = "SYSTOLL_SERVICE", hide_env = true)]
    pub service: Option<String>,
    #[command(flatten)]
    pub(crate) build: BuildLabelArgs,
}

/// Labels of a run except for the service's name.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "In a fleet (docs/use/fleet.md)")]
pub struct BuildLabelArgs {
    /// Which build of it this is: a version, a commit
    #[arg(long, value_name = "NAME", env = "SYSTOLL_RELEASE", hide_env = true)]
    pub release: Option<String>,
    /// The box's name; default: its own
    #[arg(long, value_name = "NAME", env = "SYSTOLL_HOST", hide_env = true)]
    pub host: Option<String>,
}

impl LabelArgs {
    /// Returns the labels in the writer's form.
    pub(crate) fn labels(&self) -> Labels {
        self.build.labels(self.service.as_deref())
    }
}

impl BuildLabelArgs {
    /// Returns the labels of a service's run in the writer's form.
    pub(crate) fn labels(&self, service: Option<&str>) -> Labels {
        let own = |label: &Option<String>| label.clone().unwrap_or_default();
        Labels { service: service.unwrap_or_default().to_owned(), release: own(&self.release), host: own(&self.host) }
    }
}

/// The arguments of `systoll fleet`.
#[derive(Debug, Args)]
pub struct FleetArgs {
    /// Folders that `run --save-to` and `report --parquet` wrote to, then a question: expensive (the default), new,
    /// odd-hosts, history, savings, services, releases or totals
    #[arg(required = true, value_name = "FOLDER... [QUESTION]")]
    pub words: Vec<PathBuf>,
    /// A question of your own instead: a file, or the text; its tables are `fleet`, `runs` and `asked` (docs/use/fleet.md)
    #[arg(long, value_name = "FILE|TEXT")]
    pub sql: Option<String>,
    /// Print the question's SQL and do nothing else
    #[arg(long)]
    pub show_sql: bool,
    /// Only this service
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// Only this host
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// From this day on, YYYY-MM-DD
    #[arg(long, value_name = "DAY", value_parser = day)]
    pub since: Option<String>,
    /// The release that `new` looks at; default: each service's newest
    #[arg(long, value_name = "NAME")]
    pub release: Option<String>,
    /// Only this cause or kind of waste
    #[arg(long, value_name = "ID")]
    pub cause: Option<String>,
    /// Only calls by this API
    #[arg(long, value_name = "NAME")]
    pub api: Option<String>,
    /// Only calls from this function
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
    /// Only this system call
    #[arg(long, value_name = "NAME")]
    pub syscall: Option<String>,
    /// What an hour of a core costs, in any currency
    #[arg(long, value_name = "PRICE", default_value_t = 0.04, value_parser = money)]
    pub core_hour: f64,
    /// The engine that answers: duckdb or spark
    #[arg(long, value_name = "NAME", default_value = "duckdb", hide_possible_values = true)]
    pub engine: EngineName,
    /// Spark's master, or sc://HOST:PORT for Spark Connect; default: all processors of this box
    #[arg(long, value_name = "URL")]
    pub master: Option<String>,
    /// Memory the engine may take, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 640)]
    pub memory: u32,
    /// At most N lines (default: 20; all with --json and --csv)
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,
    /// Write JSON: exact figures, names of columns (docs/use/fleet.md)
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Write CSV
    #[arg(long)]
    pub csv: bool,
    /// Write to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) color: ColorArgs,
}

/// An engine's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum EngineName {
    /// In a process of its own, on this box.
    Duckdb,
    /// On this box or a cluster.
    Spark,
}
