//! Makes the two sides that `prove` compares: their commands and their names.

use super::counts::PairCounts;
use super::cure_choice::{self, ChosenCure, check_change, check_reach, chosen};
use super::shorten::Shortened;
use crate::cli::ProveArgs;
use crate::explain::catalogue;
use crate::failure::Failure;
use crate::output::{progress_line, shown_time, to_stderr};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;
use systoll_cure::{Spec, interrupted};
use systoll_model::EnvChange;
use systoll_present::{SideCommand, Style, shell_words, write_keep};
use systoll_prove::{Comparison, Executor, Inside, Options, Outcome, Pairs, Processes, Progress, Same, compare};

/// Columns of the note about shortened sleeps.
const NOTE_WIDTH: usize = 100;

/// Part of its time that a sleep takes, 0 to 1, by default.
const HALF: f64 = 0.5;

/// Time after which no further look begins, by default.
const USUAL_LIMIT: Duration = Duration::from_secs(60);

/// Time from which on a comparison is announced.
const LONG: Duration = Duration::from_secs(20);

/// The two sides of a comparison.
pub(super) struct Pair {
    pub(super) a: Spec,
    pub(super) b: Spec,
    cures: Vec<ChosenCure>,
    shortened: Option<Shortened>,
}

impl Pair {
    pub(super) fn of(args: &ProveArgs, both: &[EnvChange]) -> Result<Self, Failure> {
        let command = args.serve.as_ref().map_or(&args.command, |words| &words.0);
        let [a, mut b] = [command, args.vs.as_ref().map_or(command, |words| &words.0)]
            .map(|words| Spec { env: both.to_vec(), ..spec(words) });
        let catalogue = catalogue(args.causes.folder.as_deref())?;
        let cures = args.cure.iter().map(|id| chosen(&catalogue, id)).collect::<Result<Vec<_>, _>>()?;
        check_reach(&cures, b.program.as_os_str())?;
        check_change(&cures)?;
        let part = args.to.unwrap_or(HALF);
        let shorten = |what: &String| Shortened::of(what, part, command, both);
        let shortened = args.shorten.as_ref().map(shorten).transpose()?;
        let library = shortened.as_ref().map(Shortened::library).transpose()?;
        let libraries: Vec<PathBuf> = library.into_iter().chain(args.preload.clone()).collect();
        b.env.extend(cure_choice::changes(&cures, &libraries)?);
        b.env.extend(shortened.as_ref().map(Shortened::variable));
        b.env.extend(args.env.iter().cloned());
        b.elisions.clone_from(&args.elide);
        Ok(Self { a, b, cures, shortened })
    }

    pub(super) fn compare(&self, args: &ProveArgs) -> Result<(Comparison, Option<PairCounts>), Failure> {
        if !self.b.elisions.is_empty() {
            systoll_record::can_answer()?;
        }
        let options = options(args);
        let around = Processes { limit: args.timeout, prepare: args.prepare.clone(), input: args.input.clone() };
        // The hooks of watching answer calls in place: both sides are then watched.
        let mut exec: Box<dyn Executor> = if self.b.elisions.is_empty() {
            Box::new(around)
        } else {
            Box::new(Inside { around, ..Inside::default() })
        };
        let line = progress_line(args.quiet);
        let mut progress = |at: Progress| {
            // The counted runs come after the timed ones.
            let left = at.left().saturating_add(at.pair.saturating_mul(args.watched));
            let takes = shown_time(left);
            if at.pairs == 0 && left >= LONG && !args.quiet {
                let pair = shown_time(at.pair);
                to_stderr(&format!(
                    "systoll: one pair takes {pair}; {} pairs at least, and runs to count the calls: {takes}. \
                     Ctrl-C tells what is known by then.\n",
                    at.wanted
                ));
            }
            line.set_message(format!("{} of {} pairs, {takes} left", at.pairs, at.wanted));
            line.tick();
        };
        let comparison = compare(exec.as_mut(), &self.a, &self.b, &options, &mut progress)?;
        let to_count = args.watched > 0 && matches!(comparison.outcome, Outcome::Same(_));
        let counts = (to_count && interrupted().is_none()).then(|| {
            line.set_message("counting the calls of both");
            line.tick();
            PairCounts::of(&self.a, &self.b, &self.cures, args)
        });
        line.finish_and_clear();
        match counts.transpose() {
            // The comparison was interrupted while counting: the times are valid.
            Err(Failure::Interrupted(_)) => Ok((comparison, None)),
            counts => Ok((comparison, counts?)),
        }
    }

    /// Returns the name of the second side: its difference, in few words.
    pub(super) fn head(&self, args: &ProveArgs) -> String {
        if let Some(words) = &args.vs {
            return shell_words(&words.0.iter().map(|w| w.to_string_lossy()).collect::<Vec<_>>());
        }
        let own = args.env.iter().map(change_text);
        let library = args.preload.iter().map(|path| format!("LD_PRELOAD={}", path.display()));
        let mut changes: Vec<String> = self.cures.iter().map(ChosenCure::label).chain(own).chain(library).collect();
        changes.extend(self.shortened.as_ref().map(Shortened::label));
        if !self.b.elisions.is_empty() {
            let names: Vec<&str> = self.b.elisions.iter().map(|e| e.name()).collect();
            changes.push(format!("{} answered in place", names.join(", ")));
        }
        let label = if self.cures.is_empty() { "with" } else { "cured" };
        format!("{label}: {}", changes.join(" "))
    }

    /// Writes which sleeps were shortened.
    pub(super) fn write_shortened(&self, w: &mut dyn Write) -> io::Result<()> {
        self.shortened.iter().try_for_each(|shortened| {
            let text = format!("  {}", shortened.note());
            systoll_present::wrapped(&text, NOTE_WIDTH).iter().try_for_each(|line| writeln!(w, "{line}"))
        })
    }

    /// Returns the ids of the cures' causes.
    pub(super) fn ids(&self) -> Vec<&str> {
        self.cures.iter().map(ChosenCure::id).collect()
    }

    /// Writes how to keep each cure, and what it gives up.
    pub(super) fn write_keep(&self, w: &mut dyn Write, style: &Style) -> io::Result<()> {
        self.cures.iter().try_for_each(|cure| write_keep(w, &cure.shell(), &cure.gives_up, style))
    }
}

/// The words of a [`SideCommand`], owned.
pub(super) struct SideWords {
    command: Vec<String>,
    env: BTreeMap<String, Option<String>>,
    elided: Vec<&'static str>,
}

impl SideWords {
    pub(super) fn of(spec: &Spec) -> Self {
        Self {
            command: strings(&spec.argv()),
            env: cure_choice::environment(&spec.env),
            elided: spec.elisions.iter().map(|e| e.name()).collect(),
        }
    }

    pub(super) fn command(&self) -> SideCommand<'_> {
        SideCommand { command: &self.command, env: &self.env, elided: &self.elided }
    }
}

pub(super) fn spec(command: &[OsString]) -> Spec {
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
        pairs: match (args.pairs, args.limit) {
            (Some(pairs), _) => Pairs::Fixed(pairs),
            (None, Some(limit)) => Pairs::Within(limit),
            (None, None) => Pairs::Decisive(USUAL_LIMIT),
        },
        warmup: args.warmup,
        same,
        seed: args.seed.unwrap_or_else(crate::seed::fresh),
        ..Options::default()
    }
}

/// Parses `--same`. Words that name no part are a command.
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

pub(super) fn strings(words: &[OsString]) -> Vec<String> {
    words.iter().map(|w| w.to_string_lossy().into_owned()).collect()
}
