//! Compares the reports of all recordings with the accepted ones.

use crate::corpus::Corpus;
use crate::difference::{Change, changes};
use crate::document::Document;
use crate::render::{Judged, read};
use anyhow::{Result, ensure};
use rayon::prelude::*;
use similar::TextDiff;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use systoll_judge::Catalogue;

/// The differences of all reports of a corpus.
#[derive(Debug, Default)]
pub struct Differences {
    /// Number of recordings that were judged.
    pub recordings: usize,
    /// Reports that differ, with their recordings' names.
    pub changed: Vec<Changed>,
    /// Names of recordings without an accepted report.
    pub new: Vec<String>,
    /// Names of accepted reports without a recording.
    pub left_over: Vec<String>,
}

/// A report that differs from the accepted one.
#[derive(Debug)]
pub struct Changed {
    /// Name of the recording.
    pub name: String,
    /// What changed.
    pub changes: Vec<Change>,
    /// The lines that changed, with some around them.
    pub lines: String,
}

/// Number of equal lines shown around those that changed.
const AROUND: usize = 2;
/// Number of examples of a kind of change.
const EXAMPLES: usize = 3;

impl Differences {
    /// Returns true if all reports are as accepted.
    pub fn is_none(&self) -> bool {
        self.changed.is_empty() && self.new.is_empty() && self.left_over.is_empty()
    }

    /// Returns the differences as text, by kind of change, most frequent kinds first; with `lines`, also the lines of
    /// each report.
    pub fn text(&self, lines: bool) -> String {
        let mut kinds: BTreeMap<&str, Vec<(&str, &Change)>> = BTreeMap::new();
        for changed in &self.changed {
            changed.changes.iter().for_each(|c| kinds.entry(&c.kind).or_default().push((&changed.name, c)));
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by_key(|(kind, all)| (kind.starts_with("screens"), std::cmp::Reverse(all.len())));
        let mut out = String::new();
        for (kind, all) in kinds {
            let reports: BTreeSet<&str> = all.iter().map(|(name, _)| *name).collect();
            let _ = writeln!(out, "{:5} {kind} (in {} reports)", all.len(), reports.len());
            for (name, change) in all.iter().take(EXAMPLES) {
                let _ = writeln!(out, "          {name}: {}", change.example);
            }
        }
        for changed in self.changed.iter().filter(|_| lines) {
            let _ = write!(out, "==== {}\n{}", changed.name, changed.lines);
        }
        let mut list = |what: &str, names: &[String]| {
            if !names.is_empty() {
                let _ = writeln!(out, "{what}: {}", names.join(" "));
            }
        };
        list("no accepted report of", &self.new);
        list("no recording of the accepted report", &self.left_over);
        let _ = writeln!(out, "{} of {} reports differ from the accepted ones", self.changed.len(), self.recordings);
        out
    }
}

/// Judges all recordings whose names contain one of `words`, and compares their reports with the accepted ones.
///
/// # Errors
/// If a recording or an accepted report can't be read.
pub fn check(corpus: &Corpus, words: &[&str]) -> Result<Differences> {
    let names = chosen(corpus, words)?;
    let catalogue = Catalogue::builtin();
    let compared: Vec<Compared> =
        names.par_iter().map(|name| compared(corpus, name, &catalogue)).collect::<Result<_>>()?;
    let left_over = if words.is_empty() { corpus.left_over()? } else { Vec::new() };
    let mut all = Differences { recordings: names.len(), left_over, ..Differences::default() };
    for (name, result) in names.into_iter().zip(compared) {
        match result {
            Compared::Equal => {}
            Compared::New => all.new.push(name),
            Compared::Changed(changed) => all.changed.push(changed),
        }
    }
    Ok(all)
}

/// Accepts the reports of all recordings whose names contain one of `words`. Returns how many files changed.
///
/// # Errors
/// If a recording can't be read, or a report can't be written.
pub fn accept(corpus: &Corpus, words: &[&str]) -> Result<usize> {
    let names = chosen(corpus, words)?;
    let catalogue = Catalogue::builtin();
    let changed = names.par_iter().map(|name| {
        let report = report(corpus, name, &catalogue)?;
        let is_new = corpus.accepted(name)?.as_ref() != Some(&report);
        if is_new {
            corpus.accept(name, &report)?;
        }
        Ok(is_new)
    });
    let mut count = changed.collect::<Result<Vec<_>>>()?.into_iter().filter(|changed| *changed).count();
    for name in corpus.left_over()?.iter().filter(|_| words.is_empty()) {
        std::fs::remove_file(corpus.report(name))?;
        count += 1;
    }
    Ok(count)
}

fn chosen(corpus: &Corpus, words: &[&str]) -> Result<Vec<String>> {
    let mut names = corpus.names()?;
    for word in words {
        ensure!(names.iter().any(|name| name.contains(word)), "no recording's name contains {word:?}");
    }
    names.retain(|name| words.is_empty() || words.iter().any(|word| name.contains(word)));
    Ok(names)
}

enum Compared {
    Equal,
    New,
    Changed(Changed),
}

fn report(corpus: &Corpus, name: &str, catalogue: &Catalogue) -> Result<Document> {
    Judged::of(read(&corpus.recording(name))?, catalogue).document()
}

fn compared(corpus: &Corpus, name: &str, catalogue: &Catalogue) -> Result<Compared> {
    let new = report(corpus, name, catalogue)?;
    let Some(old) = corpus.accepted(name)? else { return Ok(Compared::New) };
    if old == new {
        return Ok(Compared::Equal);
    }
    let lines = TextDiff::from_lines(&old.text(), &new.text()).unified_diff().context_radius(AROUND).to_string();
    Ok(Compared::Changed(Changed { name: name.into(), changes: changes(&old, &new), lines }))
}
