//! Good reasons and the cases that need them: without the reason, the case fails.

use crate::corpus::Corpus;
use crate::render::read;
use crate::text::{check_without, needing};
use anyhow::Result;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use systoll_judge::{Catalogue, Judgement, Options, ReasonId, UseOfReasons, Why, judge};
use systoll_model::Recording;

/// Returns true if the case that a reason names fails without the reason. `texts` is the folder of the text cases.
///
/// # Errors
/// If the case can't be read.
pub fn is_needed(corpus: &Corpus, texts: &Path, reason: ReasonId) -> Result<bool> {
    let case = reason.reason().case;
    if case.is_empty() {
        return Ok(false);
    }
    let path = corpus.recording(case);
    match path.exists() {
        true => Ok(matters(&read(&path)?, reason)),
        false => Ok(!check_without(texts, case, reason)?.wrong.is_empty()),
    }
}

/// Returns for each good reason the text cases that fail without it, and the recordings whose findings or remarks change.
///
/// # Errors
/// If a case can't be read.
pub fn cases_by_reason(corpus: &Corpus, texts: &Path) -> Result<BTreeMap<&'static str, BTreeSet<String>>> {
    let catalogue = Catalogue::builtin();
    let needs = |name: &String| {
        let recording = read(&corpus.recording(name))?;
        let with = judge(&recording, &catalogue, &Options { reasons: UseOfReasons::Explain, ..Options::default() });
        let needed = noted(&with).into_iter().filter(|reason| matters(&recording, *reason));
        Ok(needed.map(|reason| (reason, name.clone())).collect())
    };
    let names = corpus.names()?;
    let recordings: Vec<Vec<(ReasonId, String)>> = names.par_iter().map(needs).collect::<Result<_>>()?;
    let mut all: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
    for (reason, case) in needing(texts, noted)?.into_iter().chain(recordings.into_iter().flatten()) {
        all.entry(reason.reason().id).or_default().insert(case);
    }
    Ok(all)
}

/// Returns the good reasons that hold for calls.
fn noted(judgement: &Judgement) -> Vec<ReasonId> {
    let of = |why: &Why| if let Why::Good(reason) = why { Some(*reason) } else { None };
    let silent = judgement.silences.iter().flat_map(|row| &row.silent).filter_map(|(why, _)| of(why));
    let unsure = judgement.silences.iter().flat_map(|row| &row.unsure).filter_map(|(why, _)| of(why.as_ref()?));
    let all: Vec<ReasonId> = silent.chain(unsure).collect();
    ReasonId::ALL.iter().copied().filter(|reason| all.contains(reason)).collect()
}

/// Returns true if a recording's findings or remarks are others without a reason.
fn matters(recording: &Recording, reason: ReasonId) -> bool {
    let judged = |reasons| judge(recording, &Catalogue::builtin(), &Options { reasons, ..Options::default() });
    let (with, without) = (judged(UseOfReasons::Hold), judged(UseOfReasons::Without(reason)));
    (with.findings, with.also) != (without.findings, without.also)
}
