//! Compares calls that are answered in place with calls that the kernel answers.

use crate::Bench;
use crate::stats::{Summary, summary};
use crate::watched::{RUN, says};
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;
use systoll_model::{BackendKind, Elision, Exit};
use systoll_record::{HowToWatch, Launch, Quiet, backend};

/// Times calls that can be answered in place, in the unwatched program and under systoll.
pub(crate) fn calls(bench: &Bench) -> Result<()> {
    println!("\nanswered in place");
    println!("  {:<44} {:>9} {:>9}", "", "plain, ns", "now, ns");
    for (kind, title) in [
        ("getpid", "getpid()"),
        ("sigsetjmp", "sigsetjmp(buf, 1)"),
        ("getcontext", "getcontext(), which saves the FPU's state too"),
    ] {
        let (mut plain, mut answered) = (Vec::new(), Vec::new());
        for _ in 0..bench.rounds {
            let out = Command::new(&bench.work).args([kind, RUN]).output().context("can't run the program")?;
            ensure!(out.status.success(), "{kind} failed: {}", out.status);
            plain.push(fastest(says(&out.stdout), kind)?);
            answered.push(one(bench, kind)?);
        }
        let least = |of| summary(of).map(|s: Summary| s.fastest).context("no rounds");
        println!("  {title:<44} {:>9.1} {:>9.1}", least(plain)?, least(answered)?);
    }
    Ok(())
}

/// Returns the ns of one call answered in place.
fn one(bench: &Bench, kind: &str) -> Result<f64> {
    let out = bench.dir.path().join("said");
    let command = ["/bin/sh", "-c", "exec \"$0\" \"$1\" \"$2\" > \"$3\""].map(Into::into).into_iter();
    let rest = [bench.work.as_path(), Path::new(kind), Path::new(RUN), &out].map(Into::into);
    let how = HowToWatch { elisions: Elision::ALL.to_vec(), ..HowToWatch::default() };
    let launch = Launch { command: command.chain(rest).collect(), how, ..Launch::default() };
    let mut inproc = backend(BackendKind::Inproc);
    let recording = inproc.run(&launch, &mut Quiet)?;
    ensure!(recording.header.exit == Some(Exit::Code(0)), "{kind} failed: {:?}", recording.header.exit);
    ensure!(recording.total().elided > 1000, "{kind}: nothing was answered in place: {:?}", recording.problems);
    fastest(says(&std::fs::read(&out)?), kind)
}

fn fastest(said: Option<Summary>, kind: &str) -> Result<f64> {
    Ok(said.with_context(|| format!("{kind} said nothing"))?.fastest)
}
