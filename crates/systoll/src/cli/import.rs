//! Defines the command line of `systoll import`.

use super::ShowArgs;
use clap::Args;
use std::path::PathBuf;

pub(super) const IMPORT_EXAMPLES: &str = "Examples:
  strace -f -ttt -T -v -o app.trace ./app  a trace that tells nearly all: add -k for callers
  systoll import app.trace                 its report: causes, cures, prices (of this box)
  strace -f ./app 2>&1 | systoll import    live; the report comes when ./app ends
  systoll import app.trace.*               files of strace -ff, one a thread
  systoll import before.txt after.txt      a report each
  xclip -o | systoll import                what a bug report shows, as it was pasted
  perf trace -o app.trace ./app            perf trace's text
  perf record -e 'raw_syscalls:*' ./app && perf script | systoll import
  systing --syscalls --duration 5 && systoll import trace.pb
                                           names and times of all calls of the box
  ltrace -S -o app.trace ./app             ltrace's, of which only system calls count
  systoll import -c app.trace              strace's table of it
  systoll import --save a.systoll app.trace
                                           keep it as a recording: systoll report a.systoll
docs/use/importing.md tells what each kind of trace lacks and what that means for the report";

/// The arguments of `systoll import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    /// Keep the trace as a recording that `systoll report` and `go tool pprof` open
    #[arg(long, value_name = "REC")]
    pub save: Option<PathBuf>,
    /// Have --save replace a file that is no recording
    #[arg(long, requires = "save")]
    pub force: bool,
    /// Take all files for parts of one run; else only those that strace -ff wrote, which end with a thread's id
    #[arg(long)]
    pub together: bool,
    /// Seed of the windows' random places in long traces
    #[arg(long, value_name = "N", default_value = "1", hide_default_value = true)]
    pub seed: u64,
    /// Text of strace, ltrace -S, perf trace or perf script, or a Perfetto trace; several files get a report each; - for standard input, as where a trace comes there and none is named
    #[arg(value_name = "FILE")]
    pub traces: Vec<PathBuf>,
}
