//! Chooses recordings for the repository, such that every feature of any report stands in some of them.

use crate::corpus::Corpus;
use crate::features::features;
use crate::render::{Judged, read};
use anyhow::Result;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use systoll_judge::Catalogue;

/// Number of recordings in which each feature stands, if there are as many.
const TIMES: usize = 2;

/// A recording that may be chosen.
#[derive(Debug, Default)]
struct Candidate {
    name: String,
    bytes: u64,
    features: BTreeSet<String>,
}

/// The recordings chosen from a corpus.
#[derive(Debug, Default)]
pub struct Choice {
    /// Names of the chosen recordings.
    pub names: Vec<String>,
    /// Their size, bytes.
    pub bytes: u64,
    /// Number of different features of all recordings.
    pub features: usize,
    /// Number of the features that stand in none of the chosen recordings.
    pub left_out: usize,
}

/// Chooses recordings from a corpus, of at most `most` bytes in all: first those that have the most features that others
/// lack, by their size; then the smallest.
///
/// # Errors
/// If a recording can't be read.
pub fn choose(corpus: &Corpus, most: u64) -> Result<Choice> {
    let catalogue = Catalogue::builtin();
    let names = corpus.names()?;
    let candidates = names.par_iter().map(|name| {
        let path = corpus.recording(name);
        let judged = Judged::of(read(&path)?, &catalogue);
        let mut features = features(&judged);
        // What must be silent shows no feature.
        features.extend(name.ends_with(".healthy").then(|| name.clone()));
        Ok(Candidate { name: name.clone(), bytes: path.metadata()?.len(), features })
    });
    Ok(cover(candidates.collect::<Result<_>>()?, most))
}

fn cover(mut rest: Vec<Candidate>, most: u64) -> Choice {
    let mut missing: BTreeMap<String, usize> = BTreeMap::new();
    for feature in rest.iter().flat_map(|c| &c.features) {
        let times = missing.entry(feature.clone()).or_default();
        *times = (*times + 1).min(TIMES);
    }
    let mut choice = Choice { features: missing.len(), ..Choice::default() };
    rest.sort_by(|a, b| (b.bytes, &b.name).cmp(&(a.bytes, &a.name)));
    let mut seen = BTreeSet::new();
    loop {
        rest.retain(|c| choice.bytes + c.bytes <= most);
        let worth = |c: &Candidate| c.features.iter().filter(|f| missing.get(*f).is_some_and(|n| *n > 0)).count();
        // The last of equals is the smallest.
        let best = (0..rest.len()).max_by_key(|at| worth(&rest[*at]) as u64 * (1 << 32) / rest[*at].bytes.max(1));
        let Some(best) = best else { break };
        let chosen = rest.remove(best);
        for feature in &chosen.features {
            missing.entry(feature.clone()).and_modify(|n| *n = n.saturating_sub(1));
        }
        choice.bytes += chosen.bytes;
        choice.names.push(chosen.name);
        seen.extend(chosen.features);
    }
    choice.left_out = choice.features - seen.len();
    choice.names.sort();
    choice
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(name: &str, bytes: u64, features: &[&str]) -> Candidate {
        Candidate { name: name.into(), bytes, features: features.iter().map(|&f| f.into()).collect() }
    }

    #[test]
    fn rare_features_come_first_and_then_small_recordings() {
        let all = || {
            vec![
                candidate("large", 900, &["a", "b"]),
                candidate("rare", 500, &["c"]),
                candidate("small", 10, &["a", "b"]),
                candidate("second", 20, &["a", "b"]),
                candidate("third", 30, &["a", "b"]),
                candidate("empty", 40, &[]),
            ]
        };
        let names = |most| cover(all(), most).names.join(" ");
        assert_eq!(names(5), "");
        assert_eq!(names(30), "second small");
        assert_eq!(names(530), "rare second small");
        assert_eq!(names(600), "empty rare second small third");
        assert_eq!((cover(all(), 30).features, cover(all(), 30).left_out), (3, 1));
    }
}
