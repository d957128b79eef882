//! Measures what calls and events cost a watched program, compared with the same program unwatched.

use crate::Bench;
use crate::observer::Observer;
use crate::stats::{Summary, summary, time};
use anyhow::{Context, Result, ensure};

/// Time that the program runs for one figure, in ms, as its argument.
pub(crate) const RUN: &str = "250";

/// Measures loops of system calls, by one thread and by several.
pub(crate) fn calls(bench: &Bench) -> Result<()> {
    for threads in ["1", "2", "8"] {
        let title = format!("getppid(), {threads} thread{}", if threads == "1" { "" } else { "s, each" });
        table(bench, &title, &["call", RUN, threads], &Observer::ALL)?;
    }
    table(bench, "syscall(SYS_getppid), 1 thread", &["any", RUN], &[Observer::Nobody, Observer::Inproc])
}

/// Measures calls that systoll examines more closely than others.
pub(crate) fn looked_at(bench: &Bench) -> Result<()> {
    let observers = [Observer::Nobody, Observer::Inproc, Observer::Ptrace];
    table(bench, "getppid() from a place never seen", &["sight", RUN], &observers)?;
    table(bench, "getppid() above a microsecond, if any: calls of windows", &["window", RUN], &observers)
}

/// Measures events other than calls.
pub(crate) fn events(bench: &Bench) -> Result<()> {
    let all = [
        ("signal", "signal (tgkill, handler, sigreturn)"),
        ("thread", "thread, create and join"),
        ("fork", "fork and wait"),
        ("exec", "posix_spawn /bin/true and wait"),
    ];
    for (kind, title) in all {
        let makes_children = matches!(kind, "fork" | "exec");
        let observers: Vec<_> = Observer::ALL.into_iter().filter(|o| !makes_children || o.follows_children()).collect();
        table(bench, title, &[kind, RUN], &observers)?;
    }
    Ok(())
}

/// Prints one line for each observer: its fastest and its median batch, and their ratios to those
/// of the unwatched program.
fn table(bench: &Bench, title: &str, args: &[&str], observers: &[Observer]) -> Result<()> {
    let mut taken: Vec<Vec<Summary>> = vec![Vec::new(); observers.len()];
    for _ in 0..bench.rounds {
        for (of, observer) in taken.iter_mut().zip(observers) {
            // An observer that can't work on this machine is left out.
            of.extend(one(bench, *observer, args)?);
        }
    }
    println!("\n{title}");
    println!("  {:<16} {:>11} {:>11} {:>13} {:>13}", "", "fastest", "median", "x fastest", "x median");
    let plain = taken.first().context("nobody to compare with")?.clone();
    for (of, observer) in taken.iter().zip(observers) {
        if of.len() < bench.rounds {
            println!("  {:<16} not available here", observer.name());
            continue;
        }
        let (fastest, median) = (figure(of, |s| s.fastest)?, figure(of, |s| s.median)?);
        // Compare within one round: when the machine is slow, both programs are.
        let times: Vec<f64> = of.iter().zip(&plain).map(|(a, b)| a.median / b.median).collect();
        let times = summary(times).context("no rounds")?;
        println!(
            "  {:<16} {:>11} {:>11} {:>13.2} {:>13.2}",
            observer.name(),
            time(fastest.fastest),
            time(median.median),
            fastest.fastest / figure(&plain, |s| s.fastest)?.fastest,
            times.median
        );
    }
    Ok(())
}

fn figure(of: &[Summary], which: impl Fn(&Summary) -> f64) -> Result<Summary> {
    summary(of.iter().map(which).collect()).context("no rounds")
}

/// Returns the figures that the program prints under `observer`.
fn one(bench: &Bench, observer: Observer, args: &[&str]) -> Result<Option<Summary>> {
    let Some(mut command) = observer.command(bench, &bench.work, args) else { return Ok(None) };
    let out = command.output().with_context(|| format!("can't run {}", observer.name()))?;
    if !out.status.success() && observer != Observer::Nobody && !observer.is_ours() {
        return Ok(None);
    }
    ensure!(out.status.success(), "{args:?} failed under {}: {}", observer.name(), out.status);
    // A tool that gave up silently never ran the program.
    Ok(says(&out.stdout))
}

/// Parses the program's output; `None` if it printed no figures.
pub(crate) fn says(out: &[u8]) -> Option<Summary> {
    let text = String::from_utf8_lossy(out);
    let mut numbers = text.split_whitespace().filter_map(|n| n.parse::<f64>().ok());
    Some(Summary { fastest: numbers.next()?, median: numbers.next()? })
}
