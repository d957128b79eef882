//! Times the whole command, from its start to its end, and prints its size.

use crate::observer::Observer;
use crate::stats::{summary, time};
use crate::{Bench, done};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Times /bin/true from its start until its end is reported, unwatched and watched.
pub(crate) fn start_up(bench: &Bench) -> Result<()> {
    println!("\n/bin/true, start to end");
    println!("  {:<16} {:>11} {:>11}", "", "fastest", "median");
    for observer in Observer::ALL {
        let mut taken = Vec::new();
        for _ in 0..bench.rounds * 5 {
            let Some(mut command) = observer.command(bench, Path::new("/bin/true"), &[]) else { break };
            let start = Instant::now();
            let status = command.stdout(Stdio::null()).status()?;
            taken.push(start.elapsed().as_nanos() as f64);
            ensure!(status.success() || observer == Observer::Bpftrace, "{} failed: {status}", observer.name());
        }
        match summary(taken) {
            Some(s) => println!("  {:<16} {:>11} {:>11}", observer.name(), time(s.fastest), time(s.median)),
            None => println!("  {:<16} not available here", observer.name()),
        }
    }
    Ok(())
}

/// Times a shell that runs /bin/true many times; prints ns per run, the shell's fork included.
pub(crate) fn many(bench: &Bench) -> Result<()> {
    const TIMES: u32 = 200;
    let script = format!("i=0; while [ $i -lt {TIMES} ]; do /bin/true; i=$((i+1)); done");
    println!("\n{TIMES} x /bin/true by a shell, each");
    println!("  {:<16} {:>11} {:>11}", "", "fastest", "median");
    for observer in Observer::ALL.into_iter().filter(|o| o.follows_children()) {
        let mut taken = Vec::new();
        for _ in 0..bench.rounds.min(3) {
            let Some(mut command) = observer.command(bench, Path::new("/bin/sh"), &["-c", &script]) else { break };
            let start = Instant::now();
            let status = command.stdout(Stdio::null()).status()?;
            ensure!(status.success(), "{} failed: {status}", observer.name());
            taken.push(start.elapsed().as_nanos() as f64 / f64::from(TIMES));
        }
        match summary(taken) {
            Some(s) => println!("  {:<16} {:>11} {:>11}", observer.name(), time(s.fastest), time(s.median)),
            None => println!("  {:<16} not available here", observer.name()),
        }
    }
    Ok(())
}

/// Times systoll from the last act of a program of 1,000,000 calls until the report is printed and
/// systoll has ended; prints the recording's size. Returns the recording's path.
pub(crate) fn million(bench: &Bench) -> Result<PathBuf> {
    let (mut taken, kept) = (Vec::new(), bench.dir.path().join("kept"));
    for _ in 0..3 {
        let mut command = Command::new(&bench.systoll);
        command.args(["run", "-o", "/dev/null", "--save"]).arg(&kept).arg("--").arg(&bench.work).arg("million");
        let mut child = command.stdout(Stdio::piped()).spawn().context("can't run systoll")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no pipe")?).read_line(&mut line)?;
        let end = Instant::now();
        let status = child.wait()?;
        ensure!(line == "end\n" && status.success(), "the program did not end well: {status}");
        taken.push(end.elapsed().as_nanos() as f64);
    }
    let taken = summary(taken).context("no runs")?;
    println!("\n1,000,000 getppid, 3 runs");
    println!("  end of the program to end of systoll   {} fastest, {} median", time(taken.fastest), time(taken.median));
    println!("  recording                              {} bytes", std::fs::metadata(&kept)?.len());
    Ok(kept)
}

/// Prints the size of the binary, as built and stripped.
pub(crate) fn size(bench: &Bench) -> Result<()> {
    let stripped = bench.dir.path().join("stripped");
    done(Command::new("strip").arg("-o").arg(&stripped).arg(&bench.systoll))?;
    let bytes = |path: &Path| std::fs::metadata(path).map(|m| m.len()).context("no size");
    println!("\nbinary, stripped   {} bytes ({} with line tables)", bytes(&stripped)?, bytes(&bench.systoll)?);
    Ok(())
}
