//! Implements `systoll prove` and `systoll cure`: a program with and without a change.

mod again;
mod code;
mod counts;
mod cure_choice;
mod live;
mod pair;
mod prediction;
mod serve;
mod shorten;
mod watching;

use crate::cli::{Command, CureArgs, KeepFor, ProveArgs};
use crate::explain::catalogue;
use crate::failure::{Failure, ended_by};
use crate::output::{Output, ResultPath, keep, to_stderr};
use counts::PairCounts;
use cure_choice::{check_reach, chosen};
use pair::{Pair, SideWords, spec, strings};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use systoll_cure::{interrupted, settle};
use systoll_model::{EnvChange, InertJson};
use systoll_present::{
    hyperfine_json, hyperfine_markdown, prove_json, shell_words, write_comparison, write_idle, write_to_decide,
};
use systoll_prove::{Comparison, Outcome, shell};

/// Compares the two sides, prints the result, and exits with 0 if both do the same.
pub(crate) fn prove(args: &ProveArgs) -> Result<ExitCode, Failure> {
    prove_for(args, &[], Output::Stdout)
}

/// Works as [`prove`], with changes to the environment of both sides. The result goes to `stream`
/// unless a file is requested.
pub(crate) fn prove_for(args: &ProveArgs, both: &[EnvChange], stream: Output) -> Result<ExitCode, Failure> {
    if let Some(process) = &args.live {
        if let Some(Command::Prove(anew)) = live::with_options_behind(args) {
            return prove_for(&anew, both, stream);
        }
        return live::live(args, process);
    }
    if args.serve.is_some() {
        return serve::serve(args, &Pair::of(args, both)?);
    }
    let mut places = Places::open(args, stream)?;
    let sides = Pair::of(args, both)?;
    if let Some(setup) = &args.setup {
        shell(setup, Vec::new())?;
    }
    let told = sides.compare(args);
    if let Some(cleanup) = &args.cleanup {
        settle();
        shell(cleanup, Vec::new())?;
    }
    let (comparison, counts) = told?;
    places.write(args, both, &comparison, counts.as_ref(), &sides)?;
    if let Some(signal) = interrupted() {
        to_stderr("systoll: interrupted: this is what is known so far\n");
        return Ok(ExitCode::from(ended_by(signal)));
    }
    let same = matches!(comparison.outcome, Outcome::Same(_));
    Ok(ExitCode::from(u8::from(!same)))
}

/// The outputs, which are opened before anything is started.
struct Places {
    report: Output,
    export_json: Option<ResultPath>,
    export_markdown: Option<ResultPath>,
}

impl Places {
    fn open(args: &ProveArgs, stream: Output) -> Result<Self, Failure> {
        let file = |path: &Option<PathBuf>| {
            let place = |path: &Path| ResultPath::open(path).map_err(|e| Failure::file("write", path, e));
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
        both: &[EnvChange],
        comparison: &Comparison,
        counted: Option<&PairCounts>,
        sides: &Pair,
    ) -> Result<(), Failure> {
        let counts = counted.map(|both| (&both.a, &both.b));
        let idle = counted.is_some_and(|both| !both.made);
        let expected = counted.and_then(|both| both.expected);
        let names = [&sides.a, &sides.b].map(|s| strings(&s.argv()));
        let style = self.report.style(args.color.when);
        let report = self.report.write("report", |w| {
            if args.json {
                let [a, b] = [&sides.a, &sides.b].map(SideWords::of);
                let proof =
                    prove_json(comparison, counts, expected, (a.command(), b.command()), env!("CARGO_PKG_VERSION"));
                serde_json::to_writer_pretty(InertJson(&mut *w), &proof)?;
                return writeln!(w);
            }
            if idle && comparison.measured.as_ref().is_some_and(|m| m.shows_nothing()) {
                write_idle(w, &names[0], &sides.ids(), &style)?;
                return Ok(());
            }
            write_comparison(w, comparison, counts, expected, ("as it is", &sides.head(args)), style)?;
            sides.write_shortened(w)?;
            if let Some(enough) = comparison.undecided(counts, expected).and_then(|undecided| undecided.shown_by) {
                write_to_decide(w, &again::with_pairs(args, both, enough.pairs), enough, &style)?;
            }
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

    /// Writes hyperfine's formats.
    fn export(
        &mut self,
        args: &ProveArgs,
        comparison: &Comparison,
        names: [&[String]; 2],
        sides: &Pair,
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

/// Executes the command with the cure applied, or prints how to keep the cure.
pub(crate) fn cure(args: &CureArgs) -> Result<ExitCode, Failure> {
    let catalogue = catalogue(args.causes.folder.as_deref())?;
    let cures = args.cause.iter().map(|id| chosen(&catalogue, id)).collect::<Result<Vec<_>, _>>();
    let only_code = args.keep_for.is_none() && matches!(cures, Err(Failure::NotApplied { .. }));
    if args.print && args.export.is_none() && (args.keep_for == Some(KeepFor::Code) || only_code) {
        let mut output = Output::open(None, Output::Stdout)?;
        let text = code::of_causes(&catalogue, &args.cause)?;
        output.write("report", |w| w.write_all(text.as_bytes()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let cures = cures?;
    if let Some(dir) = &args.export {
        cures.iter().try_for_each(|cure| cure.export(dir))?;
    }
    if args.print || args.export.is_some() {
        let mut output = Output::open(None, Output::Stdout)?;
        // A relative folder would be another one for a program started elsewhere.
        let dir = args.export.as_ref().map(|dir| dir.canonicalize().unwrap_or_else(|_| dir.clone()));
        let text = cure_choice::keep(&cures, args.keep_for.unwrap_or_default(), dir.as_deref());
        output.write("report", |w| w.write_all(text.as_bytes()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut spec = spec(&args.command);
    check_reach(&cures, spec.program.as_os_str())?;
    spec.env.extend(cure_choice::changes(&cures, &[])?);
    let error = spec.to_command().exec();
    Err(Failure::Exec(spec.program, error))
}
