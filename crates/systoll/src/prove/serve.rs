//! Implements `systoll prove --serve`: two variants of a server under the same load.

use super::pair::{Pair, SideWords, strings};
use crate::cli::ProveArgs;
use crate::failure::Failure;
use crate::output::{Left, Output, progress_line};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use systoll_cure::{Spec, interrupted, settle};
use systoll_model::{EnvChange, InertJson};
use systoll_present::{serve_json, write_servers};
use systoll_prove::{Drive, Load, ServeOptions, Served, Servers, Watching, compare_servers, shell};

/// Number of turns of either side by default: the fewest that can show something at 99 %.
const TURNS: u32 = 8;
/// Time after which the load is not started again in a turn, by default.
const DRIVEN: Duration = Duration::from_secs(2);
/// Time that a server may take to be ready.
const START: Duration = Duration::from_secs(30);
/// Time that a server may take to end after it was told to.
const STOP: Duration = Duration::from_secs(10);

/// Compares the two servers, prints the result, and exits with 0 if both serve.
pub(super) fn serve(args: &ProveArgs, sides: &Pair) -> Result<ExitCode, Failure> {
    let mut report = Output::open(args.output.as_deref(), Output::Stdout)?;
    let served = compare(args, sides)?;
    let style = report.style(args.color.when);
    let load = args.load.as_ref().map_or(&[][..], |w| &w.0);
    report.write("report", |w| {
        if args.json {
            let [a, b] = [&sides.a, &sides.b].map(SideWords::of);
            let load = strings(load);
            let json = serve_json(&served, (a.command(), b.command()), &load, env!("CARGO_PKG_VERSION"));
            serde_json::to_writer_pretty(InertJson(&mut *w), &json)?;
            return writeln!(w);
        }
        write_servers(w, &served, ("as it is", &sides.head(args)), style)?;
        if matches!(&served, Served::Both(both) if both.is_won()) {
            sides.write_keep(w, &style)?;
        }
        Ok::<(), io::Error>(())
    })?;
    Ok(ExitCode::from(u8::from(matches!(served, Served::Fails(_)))))
}

fn compare(args: &ProveArgs, sides: &Pair) -> Result<Served, Failure> {
    if let Some(setup) = &args.setup {
        shell(setup, Vec::new())?;
    }
    let options = ServeOptions {
        turns: args.pairs.unwrap_or(TURNS),
        confidence: 0.99,
        negligible_percent: 0.5,
        counted: args.watched > 0,
        seed: args.seed.unwrap_or_else(crate::seed::fresh),
    };
    let drive = Drive {
        ready: args.ready.clone().ok_or(Failure::Usage("--serve needs --ready"))?,
        load: Load(args.load.clone().ok_or(Failure::Usage("--serve needs --load"))?.0),
        time: args.drive_for.unwrap_or(DRIVEN),
        start: START,
        stop: STOP,
    };
    let line = progress_line(args.quiet);
    let (left, mut far) = (Left::new(), None);
    let mut progress = |done: u32, of: u32| {
        far = Some((done, of));
        line.set_message(format!("{done} of {of} turns{}", left.words(done.into(), of.into())));
        line.tick();
    };
    let mut servers = Servers { drive, watcher: &watcher };
    let served = compare_servers(&mut servers, &sides.a, &sides.b, &options, &mut progress);
    line.finish_and_clear();
    if let Some(cleanup) = &args.cleanup {
        settle();
        shell(cleanup, Vec::new())?;
    }
    // A server killed by the interrupt has not failed.
    if let Some(signal) = interrupted() {
        return Err(Failure::Interrupted(signal).knowing(|| match far {
            Some((done, of)) => format!(" after {done} of {of} turns: too few to tell anything"),
            None => " before the first turn was over".into(),
        }));
    }
    Ok(served?)
}

/// Returns the command of another systoll that watches the server: this one waits for the load.
fn watcher(spec: &Spec, watching: Watching, keep: &Path) -> Spec {
    let own = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    let mut command = Spec::new(own).arg("run").arg("-q").arg("--save").arg(keep);
    // This systoll ends the wait, not the watching one.
    command = command.arg("--grace").arg(format!("{}s", 2 * STOP.as_secs()));
    if watching == Watching::Alike {
        command = command.arg("--backend").arg("inproc").arg("--counts-only");
    }
    for elision in &spec.elisions {
        command = command.arg("--elide").arg(elision.name());
    }
    for change in &spec.env {
        let text = match change {
            EnvChange::Set(name, value) => {
                let mut text = OsString::from(name);
                text.push("=");
                text.push(value);
                text
            }
            EnvChange::Remove(name) => name.clone(),
        };
        command = command.arg("-E").arg(text);
    }
    command.args.push("--".into());
    command.args.extend(spec.argv());
    command.cwd.clone_from(&spec.cwd);
    command
}
