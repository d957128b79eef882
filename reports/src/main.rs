//! `cargo run -p systoll-reports -- WHAT`: the same as `cargo xtask reports WHAT`, built without the recorder.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;
use systoll_reports::command::run;

fn main() -> anyhow::Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(if run(here.parent().unwrap_or(here), &words)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
