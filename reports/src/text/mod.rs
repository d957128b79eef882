//! Text cases: excerpts of strace's text in Markdown, each with what the judge must find in it and what it must not.
//!
//! `cases/text` has them, and `docs/develop/text-cases.md` says how to write one. A trace is read as `systoll import` reads
//! it, and priced as on a box where each call costs the same.

mod case;
mod clock;
mod expect;
mod expression;
mod lines;

use anyhow::{Context, Result, ensure};
use case::{Case, File};
use expect::Found;
use rayon::prelude::*;
use std::path::Path;
use systoll_import::{Import, calls_to_price, price};
use systoll_judge::{Catalogue, Judgement, Options, ReasonId, UseOfReasons, judge};
use systoll_model::{Price, PriceSource, Prices, Recording, Spread};

/// Price of each call, ns.
const CALL_NS: f64 = 1_000.0;
/// Price of entering the kernel and coming back, ns.
const CROSSING_NS: f64 = 100.0;

/// The result of running text cases.
#[derive(Debug, Default)]
pub struct Checked {
    /// Number of traces that were judged.
    pub cases: usize,
    /// The cases that are not as they expect, each with file and line, the expectation, and the findings.
    pub wrong: Vec<String>,
}

/// Runs the cases of all files of a folder whose names or headings contain `word`.
///
/// # Errors
/// If a file can't be read, or no case is called so.
pub fn check(folder: &Path, word: &str) -> Result<Checked> {
    let files = files(folder)?;
    let checked = check_texts(&pairs(&files), word);
    ensure!(
        checked.cases > 0 || !checked.wrong.is_empty(),
        "no file and no heading of {} has {word:?}",
        folder.display()
    );
    Ok(checked)
}

/// Returns the traces of these cases, as they are read, one behind the other.
///
/// # Errors
/// If a file can't be read, or a trace can't be made.
pub fn traces(folder: &Path, word: &str) -> Result<String> {
    let files = files(folder)?;
    let (cases, _) = cases(&pairs(&files), word, &Catalogue::builtin());
    cases.iter().map(|(_, case)| Ok(format!("# {}\n{}", case.heading, case.trace()?))).collect()
}

/// Runs the cases of texts, each with its file's name.
pub fn check_texts(files: &[(&str, &str)], word: &str) -> Checked {
    checked(files, word, &Options::default())
}

/// Runs the cases of all files of a folder whose names or headings contain `word`, without a good reason.
///
/// # Errors
/// If a file can't be read.
pub fn check_without(folder: &Path, word: &str, reason: ReasonId) -> Result<Checked> {
    let options = Options { reasons: UseOfReasons::Without(reason), ..Options::default() };
    Ok(checked(&pairs(&files(folder)?), word, &options))
}

/// Returns the headings of the cases in a folder that fail without a good reason, each with the reason. `noted` returns the
/// reasons of a judgement.
///
/// # Errors
/// If a file can't be read.
pub fn needing(folder: &Path, noted: fn(&Judgement) -> Vec<ReasonId>) -> Result<Vec<(ReasonId, String)>> {
    let (files, catalogue) = (files(folder)?, Catalogue::builtin());
    let (cases, _) = cases(&pairs(&files), "", &catalogue);
    let needs = |(name, case): &(&str, Case)| {
        let recording = case.trace().and_then(|trace| imported(&trace)).unwrap_or_default();
        let explained =
            judge(&recording, &catalogue, &Options { reasons: UseOfReasons::Explain, ..Options::default() });
        let fails = |reason: &ReasonId| {
            wrong(name, case, &catalogue, &Options { reasons: UseOfReasons::Without(*reason), ..Options::default() })
                .is_some()
        };
        let needed = noted(&explained).into_iter().filter(fails);
        needed.map(|reason| (reason, case.heading.clone())).collect::<Vec<_>>()
    };
    Ok(cases.par_iter().flat_map_iter(needs).collect())
}

fn checked(files: &[(&str, &str)], word: &str, options: &Options) -> Checked {
    let catalogue = Catalogue::builtin();
    let (cases, mut wrong) = cases(files, word, &catalogue);
    wrong.par_extend(cases.par_iter().filter_map(|(name, case)| self::wrong(name, case, &catalogue, options)));
    wrong.sort();
    Checked { cases: cases.len(), wrong }
}

/// Returns the names and texts of the files in a folder, in order.
fn files(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("can't read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "md") {
            let text = std::fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
            files.push((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), text));
        }
    }
    files.sort();
    Ok(files)
}

fn pairs(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
}

/// Returns the cases with `word`, each with its file's name, and the errors of all files.
fn cases<'a>(files: &[(&'a str, &str)], word: &str, catalogue: &Catalogue) -> (Vec<(&'a str, Case)>, Vec<String>) {
    let (mut cases, mut errors) = (Vec::new(), Vec::new());
    for (name, text) in files {
        let file = File::parse(text, catalogue);
        errors.extend(file.errors.iter().map(|(line, error)| format!("{name}:{line}: {error}")));
        let wanted = |case: &Case| name.contains(word) || case.heading.contains(word);
        cases.extend(file.cases.into_iter().filter(wanted).map(|case| (*name, case)));
    }
    (cases, errors)
}

/// Returns what is wrong with a case; `None` if all is as it expects.
fn wrong(file: &str, case: &Case, catalogue: &Catalogue, options: &Options) -> Option<String> {
    let line = case.expectations.first().map_or(0, |expectation| expectation.line);
    let with: Vec<String> = case.variant.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let with = if with.is_empty() { String::new() } else { format!(" (with {})", with.join(" ")) };
    let head = format!("{file}:{line}: {}{with}", case.heading);
    let recording = match case.trace().and_then(|trace| imported(&trace)) {
        Ok(recording) => recording,
        Err(error) => return Some(format!("{head}: {error:#}")),
    };
    let judgement = judge(&recording, catalogue, options);
    let found = Found { recording: &recording, judgement: &judgement };
    let wrong = found.wrong(&case.expectations);
    (!wrong.is_empty()).then(|| {
        let (expected, found) = (wrong.join("\n    "), found.lines().join("\n    "));
        format!("{head}\n  expected:\n    {expected}\n  found:\n    {found}")
    })
}

/// Returns the recording of a trace.
///
/// # Errors
/// If some of its lines are none of strace's.
fn imported(trace: &str) -> Result<Recording> {
    let mut import = Import::new(1);
    import.read("case", trace.as_bytes())?;
    let mut recording = import.finish()?;
    let unread = recording.problems.iter().find(|problem| UNREAD.iter().any(|words| problem.text.contains(words)));
    ensure!(unread.is_none(), "{}", unread.map_or("", |problem| &problem.text));
    let of_call = Price { ns: CALL_NS, low: CALL_NS, high: CALL_NS, source: PriceSource::Measured };
    let crossing = Spread { min: CROSSING_NS, median: CROSSING_NS, high: CROSSING_NS };
    let calls = calls_to_price(&recording).into_iter().map(|call| (call, of_call)).collect();
    let prices = Prices { crossing_before: crossing, crossing_after: crossing, calls, ..Prices::default() };
    price(&mut recording, prices, |_, _| None);
    Ok(recording)
}

/// Words of problems that say that lines were not read, or not as calls of x86-64.
const UNREAD: [&str; 2] = ["none of a trace's", "x86-64 does not have"];
