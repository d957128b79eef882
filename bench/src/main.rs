//! `cargo run --release -p systoll-bench [ROUNDS]` measures what systoll costs on this machine.
//!
//! Figures are ratios to the unwatched program in the same round, taken from many short batches
//! that the program times itself. No figure is ever tested against a bound.
//! docs/evidence/performance.md explains them; bench/results keeps them by date and host.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "figures are what a person runs it for")]

mod command;
mod elided;
mod inside;
mod library;
mod observer;
mod stats;
mod watched;

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Number of rounds unless the command line gives one; each round runs every observer once.
const ROUNDS: usize = 7;

/// Paths and settings that the measurements share.
struct Bench {
    systoll: PathBuf,
    /// Program that makes the calls, built from `programs/work.c`.
    work: PathBuf,
    dir: tempfile::TempDir,
    rounds: usize,
}

const USAGE: &str = "usage: systoll-bench [ROUNDS]";

fn main() -> Result<()> {
    let argument = std::env::args().nth(1);
    if argument.as_deref().is_some_and(|word| matches!(word, "-h" | "--help")) {
        println!(
            "{USAGE}\n\nMeasures what watching costs on this box, beside strace, perf and bpftrace, in {ROUNDS} rounds unless said."
        );
        return Ok(());
    }
    let rounds = argument.map_or(Ok(ROUNDS), |n| n.parse()).context(USAGE)?;
    ensure!(rounds > 0, "no rounds, no figures");
    let bench = prepare(rounds)?;
    header(rounds);
    watched::calls(&bench)?;
    inside::share()?;
    elided::calls(&bench)?;
    watched::events(&bench)?;
    watched::looked_at(&bench)?;
    command::start_up(&bench)?;
    command::many(&bench)?;
    let recording = command::million(&bench)?;
    library::recording(&recording)?;
    library::symbols(&bench)?;
    command::size(&bench)
}

/// Builds systoll and the program to watch.
fn prepare(rounds: usize) -> Result<Bench> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("bench/ stands nowhere")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    done(Command::new(cargo).args(["build", "--release", "--quiet", "-p", "systoll"]).current_dir(root))?;
    let dir = tempfile::tempdir().context("no folder for temporary files")?;
    let work = dir.path().join("work");
    let source = root.join("bench/programs/work.c");
    done(Command::new("cc").args(["-O2", "-g", "-pthread", "-o"]).arg(&work).arg(source))?;
    // Cargo puts systoll beside this binary, wherever it builds to.
    let systoll = std::env::current_exe().context("no name of this program")?.with_file_name("systoll");
    ensure!(systoll.is_file(), "{} is missing: run this by cargo run --release", systoll.display());
    Ok(Bench { systoll, work, dir, rounds })
}

fn done(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("can't run {:?}", command.get_program()))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(())
}

fn header(rounds: usize) {
    let host = systoll_price::host();
    let date = Command::new("date").args(["-u", "+%F %H:%M"]).output().ok();
    let date = date.map(|d| String::from_utf8_lossy(&d.stdout).trim().to_owned()).unwrap_or_default();
    let machine = host.virtualization.as_deref().unwrap_or("no virtual machine");
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    println!("systoll {}, {date} UTC, {rounds} rounds, load {load} at the start", env!("CARGO_PKG_VERSION"));
    println!("{}, {} CPUs, {machine}, Linux {}", host.cpu, host.cpus, host.kernel);
}
