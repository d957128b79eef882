//! `systoll prove` and `systoll cure`: with and without.

mod chosen;
mod counted;
mod serve;

use crate::cli::{CureArgs, ProveArgs};
use crate::explain::catalogue;
use crate::failure::{Failure, ended_by};
use crate::output::{Output, Place, keep, to_stderr};
use chosen::{Chosen, check_change, check_reach, chosen};
use counted::{Counted, counted};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use systoll_cure::{Spec, catch_interrupts, interrupted, settle};
use systoll_model::EnvChange;
use systoll_present::{
    SideCommand, Style, hyperfine_json, hyperfine_markdown, prove_json, shell_words, write_comparison, write_idle,
    write_keep,
};
use systoll_prove::{Comparison, Executor, Inside, Options, Outcome, Pairs, Processes, Same, compare, shell};

/// Compares the two sides, tells, and ends with 0 where both do the same.
pub(crate) fn prove(args: &ProveArgs) -> Result<ExitCode, Failure> {
    prove_for(args, &[], Output::Stdout)
}

/// [`prove`] with changes to the environment of both sides; it tells on `stream` where no file is
/// asked for.
pub(crate) fn prove_for(args: &ProveArgs, both: &[EnvChange], stream: Output) -> Result<ExitCode, Failure> {
    if args.serve.is_some() {
        return serve::serve(args, &Sides::of(args, both)?);
    }
    let mut places = Places::open(args, stream)?;
    let sides = Sides::of(args, both)?;
    // Without a thread for it, a signal ends us as it does others.
    let _ = catch_interrupts();
    if let Some(setup) = &args.setup {
        shell(setup, Vec::new())?;
    }
    let told = sides.compare(args);
    if let Some(cleanup) = &args.cleanup {
        settle();
        shell(cleanup, Vec::new())?;
    }
    let (comparison, counts) = told?;
    places.write(args, &comparison, counts.as_ref(), &sides)?;
    if let Some(signal) = interrupted() {
        to_stderr("systoll: interrupted: this is what is known so far\n");
        return Ok(ExitCode::from(ended_by(signal)));
    }
    let same = matches!(comparison.outcome, Outcome::Same { .. });
    Ok(ExitCode::from(u8::from(!same)))
}

/// What is compared.
struct Sides {
    a: Spec,
    b: Spec,
    cures: Vec<Chosen>,
}

impl Sides {
    fn of(args: &ProveArgs, both: &[EnvChange]) -> Result<Self, Failure> {
        let command = args.serve.as_ref().map_or(&args.command, |words| &words.0);
        let [a, mut b] = [command, args.vs.as_ref().map_or(command, |words| &words.0)]
            .map(|words| Spec { env: both.to_vec(), ..spec(words) });
        let catalogue = catalogue(args.causes.as_deref())?;
        let cures = args.cure.iter().map(|id| chosen(&catalogue, id)).collect::<Result<Vec<_>, _>>()?;
        check_reach(&cures, b.program.as_os_str())?;
        check_change(&cures)?;
        b.env.extend(chosen::changes(&cures, args.preload.as_deref())?);
        b.env.extend(args.env.iter().map(|text| crate::run::env_change(text)));
        b.elisions.clone_from(&args.elide);
        Ok(Self { a, b, cures })
    }

    fn compare(&self, args: &ProveArgs) -> Result<(Comparison, Option<(Counted, Counted)>), Failure> {
        let options = options(args);
        let around = Processes { limit: args.timeout, prepare: args.prepare.clone(), input: args.input.clone() };
        // What is answered in place is so by code that watching puts there: on both sides, then.
        let mut exec: Box<dyn Executor> = if self.b.elisions.is_empty() {
            Box::new(around)
        } else {
            Box::new(Inside { around, ..Inside::default() })
        };
        let line = progress_line(args.quiet);
        let mut progress = |done: u32, of: u32| {
            line.set_message(format!("{done} of {of} pairs"));
            line.tick();
        };
        let comparison = compare(exec.as_mut(), &self.a, &self.b, &options, &mut progress)?;
        let to_count = args.watched > 0 && matches!(comparison.outcome, Outcome::Same { .. });
        let counts = (to_count && interrupted().is_none()).then(|| {
            line.set_message("counting");
            line.tick();
            Ok((counted(&self.a, &self.cures, args)?, counted(&self.b, &self.cures, args)?))
        });
        line.finish_and_clear();
        match counts.transpose() {
            // The times stand.
            Err(Failure::Interrupted(_)) => Ok((comparison, None)),
            counts => Ok((comparison, counts?)),
        }
    }

    /// What the second side is called: what differs, in few words.
    fn head(&self, args: &ProveArgs) -> String {
        if let Some(words) = &args.vs {
            return shell_words(&words.0.iter().map(|w| w.to_string_lossy()).collect::<Vec<_>>());
        }
        let own = args.env.iter().map(|text| change_text(&crate::run::env_change(text)));
        let library = args.preload.iter().map(|path| format!("LD_PRELOAD={}", path.display()));
        let mut changes: Vec<String> = self.cures.iter().map(Chosen::label).chain(own).chain(library).collect();
        if !self.b.elisions.is_empty() {
            let names: Vec<&str> = self.b.elisions.iter().map(|e| e.name()).collect();
            changes.push(format!("{} answered in place", names.join(", ")));
        }
        let label = if self.cures.is_empty() { "with" } else { "cured" };
        format!("{label}: {}", changes.join(" "))
    }

    /// What the cures are for.
    fn ids(&self) -> Vec<&str> {
        self.cures.iter().map(Chosen::id).collect()
    }

    /// Tells how each cure is kept, and what it gives up.
    fn write_keep(&self, w: &mut dyn Write, style: &Style) -> io::Result<()> {
        self.cures.iter().try_for_each(|cure| write_keep(w, &cure.shell(), &cure.gives_up, style))
    }
}

/// What a [`SideCommand`] is made of.
struct SideWords {
    command: Vec<String>,
    env: BTreeMap<String, Option<String>>,
    elided: Vec<&'static str>,
}

impl SideWords {
    fn of(spec: &Spec) -> Self {
        Self {
            command: strings(&spec.argv()),
            env: chosen::environment(&spec.env),
            elided: spec.elisions.iter().map(|e| e.name()).collect(),
        }
    }

    fn command(&self) -> SideCommand<'_> {
        SideCommand { command: &self.command, env: &self.env, elided: &self.elided }
    }
}

fn spec(command: &[OsString]) -> Spec {
    let (program, args) = command.split_first().map_or((OsString::new(), Vec::new()), |(p, a)| (p.clone(), a.to_vec()));
    Spec { args, ..Spec::new(program) }
}

fn change_text(change: &EnvChange) -> String {
    match change {
        EnvChange::Set(name, value) => format!("{}={}", name.to_string_lossy(), value.to_string_lossy()),
        EnvChange::Remove(name) => format!("no {}", name.to_string_lossy()),
    }
}

fn options(args: &ProveArgs) -> Options {
    let mut same = same(&args.same);
    same.exit &= !args.ignore_failure;
    Options {
        pairs: args.pairs.map_or(Pairs::Decisive(args.limit), Pairs::Fixed),
        warmup: args.warmup,
        same,
        seed: args.seed.unwrap_or_else(crate::run::seed),
        ..Options::default()
    }
}

/// Words that are none of ours are a command.
fn same(text: &OsStr) -> Same {
    let mut same = Same::NONE;
    for word in text.to_str().unwrap_or_default().split(',') {
        match word {
            "stdout" => same.stdout = true,
            "stderr" => same.stderr = true,
            "exit" => same.exit = true,
            "none" => {}
            _ => return Same { exit: true, by: Some(text.to_owned()), ..Same::NONE },
        }
    }
    same
}

fn progress_line(quiet: bool) -> ProgressBar {
    if quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
    if let Ok(style) = ProgressStyle::with_template("systoll  {elapsed}  {msg}") {
        line.set_style(style);
    }
    line
}

/// Where results go, opened before anything is started.
struct Places {
    report: Output,
    export_json: Option<Place>,
    export_markdown: Option<Place>,
}

impl Places {
    fn open(args: &ProveArgs, stream: Output) -> Result<Self, Failure> {
        let file = |path: &Option<PathBuf>| {
            let place = |path: &Path| Place::open(path).map_err(|e| Failure::file("write", path, e));
            path.as_deref().map(place).transpose()
        };
        Ok(Self {
            report: Output::open(args.output.as_deref(), stream)?,
            export_json: file(&args.export_json)?,
            export_markdown: file(&args.export_markdown)?,
        })
    }

    fn write(
        &mut self,
        args: &ProveArgs,
        comparison: &Comparison,
        counted: Option<&(Counted, Counted)>,
        sides: &Sides,
    ) -> Result<(), Failure> {
        let counts = counted.map(|(a, b)| (&a.calls, &b.calls));
        let idle = counted.is_some_and(|(a, _)| !a.made);
        let names = [&sides.a, &sides.b].map(|s| strings(&s.argv()));
        let style = self.report.style(args.color);
        let report = self.report.write("report", |w| {
            if args.json {
                let [a, b] = [&sides.a, &sides.b].map(SideWords::of);
                let proof = prove_json(comparison, counts, (a.command(), b.command()), env!("CARGO_PKG_VERSION"));
                serde_json::to_writer_pretty(&mut *w, &proof)?;
                return writeln!(w);
            }
            if idle && comparison.measured.as_ref().is_some_and(|m| m.shows_nothing()) {
                write_idle(w, &names[0], &sides.ids(), &style)?;
                return Ok(());
            }
            write_comparison(w, comparison, counts, ("as it is", &sides.head(args)), style)?;
            if comparison.measured.as_ref().is_some_and(|m| m.is_won()) {
                sides.write_keep(w, &style)?;
            }
            Ok(())
        });
        let exported = self.export(args, comparison, [&names[0], &names[1]], sides);
        match (report, exported) {
            (Err(report), Err(exported)) => {
                report.tell();
                Err(exported)
            }
            (report, exported) => report.and(exported),
        }
    }

    /// For hyperfine's readers.
    fn export(
        &mut self,
        args: &ProveArgs,
        comparison: &Comparison,
        names: [&[String]; 2],
        sides: &Sides,
    ) -> Result<(), Failure> {
        let Some(measured) = &comparison.measured else { return Ok(()) };
        let labels = [shell_words(names[0]), if args.vs.is_some() { shell_words(names[1]) } else { sides.head(args) }];
        if let Some(place) = &mut self.export_json {
            let json = hyperfine_json(measured, (&labels[0], &labels[1]));
            let bytes = serde_json::to_vec_pretty(&json).map_err(|e| Failure::file("write", &place.path, e.into()))?;
            keep("export", place, &bytes)?;
        }
        if let Some(place) = &mut self.export_markdown {
            keep("export", place, hyperfine_markdown(measured, (&labels[0], &labels[1])).as_bytes())?;
        }
        Ok(())
    }
}

fn strings(words: &[OsString]) -> Vec<String> {
    words.iter().map(|w| w.to_string_lossy().into_owned()).collect()
}

/// Becomes the command, cured; or prints how the cure is kept.
pub(crate) fn cure(args: &CureArgs) -> Result<ExitCode, Failure> {
    let catalogue = catalogue(args.causes.as_deref())?;
    let cures = args.cause.iter().map(|id| chosen(&catalogue, id)).collect::<Result<Vec<_>, _>>()?;
    if let Some(dir) = &args.export {
        cures.iter().try_for_each(|cure| cure.export(dir))?;
    }
    if args.print || args.export.is_some() {
        let mut output = Output::open(None, Output::Stdout)?;
        // A relative place would be another one for whoever is started elsewhere.
        let dir = args.export.as_ref().map(|dir| dir.canonicalize().unwrap_or_else(|_| dir.clone()));
        let text = chosen::keep(&cures, args.keep_for, dir.as_deref());
        output.write("report", |w| w.write_all(text.as_bytes()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut spec = spec(&args.command);
    check_reach(&cures, spec.program.as_os_str())?;
    spec.env.extend(chosen::changes(&cures, None)?);
    let error = spec.to_command().exec();
    Err(Failure::Exec(spec.program, error))
}
