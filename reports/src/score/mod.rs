//! Scores the cases by their recordings: which diseases are found, named and counted as they truly are.

mod case;
mod marks;

use crate::corpus::Corpus;
use crate::render::{Judged, read};
use anyhow::{Context, Result};
use case::Case;
use marks::{Healthy, MARKS, Marks, NOT_ASKED, Truth};
use rayon::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use systoll_judge::Catalogue;

/// The scores of all cases that were recorded.
#[derive(Debug, Default)]
pub struct Scores {
    cases: Vec<(Case, Scored)>,
}

/// A case's score.
#[derive(Debug)]
enum Scored {
    Sick(Marks),
    Healthy(Healthy),
}

/// Scores all cases in `cases` of which the corpus has a recording.
///
/// # Errors
/// If a case or a recording can't be read.
pub fn score(corpus: &Corpus, cases: &Path) -> Result<Scores> {
    let mut all = Case::all(cases)?;
    all.retain(|case| corpus.recording(&case.recording()).exists());
    let catalogue = Catalogue::builtin();
    let json = |name: &str| -> Result<Option<Value>> {
        let path = corpus.recording(name);
        Ok(if path.exists() { Some(Judged::of(read(&path)?, &catalogue).json) } else { None })
    };
    let scored = all.par_iter().map(|case| {
        let report = json(&case.recording())?.context("no recording")?;
        if case.is_healthy() {
            return Ok(Scored::Healthy(Healthy::of(case, &report)));
        }
        let cured = json(&case.cured_recording())?;
        let cured = cured.as_ref();
        let truth = Truth { needless: case.needless(&report, cured), longer_ns: case.longer_ns(&report, cured) };
        Ok(Scored::Sick(Marks::of(case, &report, cured, truth)))
    });
    let scored: Vec<Scored> = scored.collect::<Result<_>>()?;
    Ok(Scores { cases: all.into_iter().zip(scored).collect() })
}

/// Numbers of cases by set and mark: those that have the mark, and those of which it is asked.
type Totals = BTreeMap<(String, &'static str), (usize, usize)>;

impl Scores {
    /// Returns the scores as text: a line for each set and for all, then a line for each case.
    pub fn text(&self) -> String {
        let totals = self.totals();
        let sets: Vec<&str> = SETS.into_iter().filter(|set| totals.keys().any(|(of, _)| of == set)).collect();
        let mut out = String::new();
        for set in sets {
            let of_set = totals.iter().filter(|((of, _), _)| of == set);
            let mut told: Vec<_> = of_set.map(|((_, mark), counts)| (place(mark), mark, counts)).collect();
            told.sort();
            let told: Vec<String> =
                told.iter().map(|(_, mark, (has, asked))| format!("{mark} {has}/{asked}")).collect();
            let _ = writeln!(out, "{set}: {}", told.join(", "));
        }
        for (case, scored) in &self.cases {
            let _ = writeln!(out, "{} {} {}", case.set, case.name, scored.text());
        }
        out
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals::new();
        for (case, scored) in &self.cases {
            for (mark, has) in scored.marks() {
                for set in [case.set.as_str(), ALL] {
                    let (yes, asked) = totals.entry((set.into(), mark)).or_default();
                    (*yes, *asked) = (*yes + usize::from(has), *asked + 1);
                }
            }
        }
        totals
    }

    /// Returns the numbers that are smaller than in `accepted`, which [`Self::text`] returned.
    pub fn fallen(&self, accepted: &str) -> Vec<String> {
        let (old, new) = (numbers(accepted), numbers(&self.text()));
        let fell = old.into_iter().filter_map(|(what, was)| {
            let is = new.get(&what).copied().unwrap_or_default();
            (is < was).then(|| format!("{what}: {was} were, {is} are"))
        });
        fell.collect()
    }
}

/// The name of all sets together.
const ALL: &str = "all";
/// The sets, in order.
const SETS: [&str; 10] = ["open", "both", "own", "third", "fourth", "waiting", "fifth", "sixth", "seventh", ALL];

/// Returns a mark's place among all.
fn place(mark: &str) -> usize {
    MARKS.iter().position(|known| *known == mark).unwrap_or(MARKS.len())
}

/// Returns the numbers of the sets' lines of a text of scores.
fn numbers(text: &str) -> BTreeMap<String, usize> {
    let mut numbers = BTreeMap::new();
    for (set, rest) in text.lines().filter_map(|line| line.split_once(": ")).filter(|(set, _)| SETS.contains(set)) {
        for (mark, counts) in rest.split(", ").filter_map(|told| told.rsplit_once(' ')) {
            if let Some(has) = counts.split('/').next().and_then(|has| has.parse().ok()) {
                numbers.insert(format!("{set}: {mark}"), has);
            }
        }
    }
    numbers
}

impl Scored {
    fn marks(&self) -> Vec<(&'static str, bool)> {
        match self {
            Self::Sick(marks) => marks.all(),
            Self::Healthy(healthy) => vec![("healthy silent", healthy.findings.is_empty())],
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Sick(marks) => {
                let known = marks.all();
                let word = |mark: &&'static str| match known.iter().find(|(name, _)| name == mark) {
                    Some((_, true)) => (*mark).to_owned(),
                    Some((_, false)) => format!("NOT-{mark}"),
                    None => format!("{NOT_ASKED}{mark}"),
                };
                let words: Vec<String> = MARKS.iter().map(word).collect();
                format!("{} {}", words.join(" "), marks.says)
            }
            Self::Healthy(healthy) if healthy.findings.is_empty() => "silent".into(),
            Self::Healthy(healthy) => format!("NOT-silent {}", healthy.findings.join(" ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_falls_is_seen() {
        let scores = Scores::default();
        assert_eq!(scores.fallen("own: found 3/4, api 0/4\nown x found\n"), ["own: found: 3 were, 0 are"]);
        assert_eq!(numbers("all: healthy silent 5/6, found 1/2\n").get("all: healthy silent"), Some(&5));
    }
}
