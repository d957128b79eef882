//! Defines the command line of `systoll export`.

use super::ExtraCauses;
use super::values::any_of;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use systoll_export::{Format, Value};

/// Examples of `export`, for `--help` and the man page.
pub(super) const EXAMPLES: &str = "Examples:
  systoll export --format flamegraph -o cost.svg a.systoll      a picture for any browser
  systoll export --format flamegraph --against old.systoll new.systoll > diff.svg
                                                                red: more than before, blue: less
  systoll export --format collapsed --value calls a.systoll     stacks for flame graph tools
  systoll export --format speedscope -o a.json a.systoll        speedscope a.json
  systoll export --format firefox -o a.json a.systoll           for profiler.firefox.com, windows as markers
  systoll export --format perfetto -o a.json a.systoll          for ui.perfetto.dev, windows as slices
  systoll export --format pprof -o a.pb.gz a.systoll            go tool pprof -sample_index=needless a.pb.gz
  systoll export --format csv a.systoll | duckdb -c \"from read_csv('/dev/stdin')\"
  systoll export --format openmetrics -o a.prom a.systoll       promtool tsdb create-blocks-from openmetrics a.prom";

/// The arguments of `systoll export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The format to write
    #[arg(long, value_name = "FORMAT", help = format_names(), hide_possible_values = true, value_parser = format())]
    pub format: Format,
    /// The value to draw, or to show first
    #[arg(long, value_name = "VALUE", help = value_help(), default_value = "toll", hide_possible_values = true, value_parser = value())]
    pub value: Value,
    /// An older recording to compare with: a flame graph in red and blue
    #[arg(long, value_name = "OLD")]
    pub against: Option<PathBuf>,
    /// Write to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) causes: ExtraCauses,
    /// A recording that `run --save` kept; - for standard input
    #[arg(value_name = "REC")]
    pub recording: PathBuf,
}

fn format_names() -> String {
    let mut names = Format::ALL.map(Format::name);
    names.sort_unstable();
    any_of(&names)
}

fn value_help() -> String {
    format!("What to draw, or to show first: {}", any_of(&Value::ALL.map(Value::name)))
}

fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name))
        .try_map(|name| Format::from_name(&name).ok_or("nothing recordings are written as"))
}

fn value() -> impl TypedValueParser<Value = Value> {
    PossibleValuesParser::new(Value::ALL.map(Value::name))
        .try_map(|name| Value::from_name(&name).ok_or("nothing that can be drawn"))
}
