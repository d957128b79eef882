//! Looks for one thing after another in directories that never hold any.

use super::claim::{Claim, Claims, Detector, put};
use crate::fact::Fact;
use crate::finding::Kind;
use crate::hash::{Map, Seeded, Set};
use crate::replay::Step;
use std::hash::BuildHasher;
use systoll_model::Errno;

/// Nothing of the name is there.
const MISSING: [Errno; 2] = [Errno::ENOENT, Errno::ENOTDIR];
/// Directories looked into in a row for one thing that make a long search.
const LONG: usize = 6;
/// Different things a directory did not hold before it is known to hold none.
const KNOWN: usize = 2;
/// Directories that are remembered.
const REMEMBERED: usize = 1 << 16;
/// Searches that were seen to end, for each directory they ended in, before anything is claimed. Where things lie
/// in many directories, the program looks into each for good reason, and windows show too little to tell
/// which hold something.
const ENDED: usize = 2;
/// Misses for each end seen, and one more, that serve instead of ends: of searches so long that windows rarely hold
/// a whole one. No program means to look into so many directories for each thing.
const ENDLESS: usize = 64;

/// What looking into a directory came to.
#[derive(Default)]
struct Yield {
    held: bool,
    missed: Vec<u64>,
}

/// Where a process's searches ended.
#[derive(Default)]
struct Ends {
    searches: usize,
    directories: Set<u64>,
    /// Misses of long searches.
    misses: usize,
}

/// Claims misses of long searches in directories in which nothing was ever found. Directories
/// and names are kept as hashes: of two that fell together one claim more or less would come.
#[derive(Default)]
pub(super) struct Search {
    hash: Seeded,
    yields: Map<(u32, u64), Yield>,
    ends: Map<u32, Ends>,
}

/// A miss: where, and of what.
struct Miss {
    index: usize,
    directory: u64,
    stem: u64,
}

impl Detector for Search {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let Some(process) = steps.first().map(|s| s.observed.window.process.0) else { return };
        let mut run: Vec<Miss> = Vec::new();
        for step in steps {
            let Some((directory, name)) = step.object.as_deref().and_then(|path| path.rsplit_once('/')) else {
                continue;
            };
            let (directory, stem) = (self.hash.hash_one(directory), self.hash.hash_one(stem(name)));
            let errno = step.observed.call.errno();
            let missing = errno.is_some_and(|e| MISSING.contains(&e));
            let sought = run.last().is_some_and(|last| last.stem == stem);
            if !sought || !missing {
                self.finish(process, &mut run, claims);
            }
            if missing {
                run.push(Miss { index: step.index, directory, stem });
            } else if errno.is_none() {
                self.found(process, directory, sought);
            }
        }
        self.finish(process, &mut run, claims);
    }
}

impl Search {
    fn of(&mut self, process: u32, directory: u64) -> Option<&mut Yield> {
        let key = (process, directory);
        let room = self.yields.len() < REMEMBERED || self.yields.contains_key(&key);
        room.then(|| self.yields.entry(key).or_default())
    }

    /// Something was found, at the end of a search or without one.
    fn found(&mut self, process: u32, directory: u64, sought: bool) {
        if sought {
            let ends = self.ends.entry(process).or_default();
            ends.searches += 1;
            ends.directories.insert(directory);
        }
        if let Some(known) = self.of(process, directory) {
            known.held = true;
        }
    }

    fn ends_alike(&self, process: u32) -> bool {
        let alike =
            |e: &Ends| e.searches >= ENDED * e.directories.len().max(1) || e.misses >= ENDLESS * (e.searches + 1);
        self.ends.get(&process).is_some_and(alike)
    }

    /// A search has come to its end, or the window to its.
    fn finish(&mut self, process: u32, run: &mut Vec<Miss>, claims: &mut Claims) {
        let directories = || run.iter().map(|miss| miss.directory).collect::<Set<u64>>().len();
        let mut long = run.len() >= LONG && directories() >= LONG;
        if long {
            self.ends.entry(process).or_default().misses += run.len();
            long = self.ends_alike(process);
        }
        for miss in run.drain(..) {
            let Some(known) = self.of(process, miss.directory) else { continue };
            if long && !known.held && known.missed.len() >= KNOWN {
                put(claims, miss.index, claim());
            }
            if known.missed.len() < KNOWN && !known.missed.contains(&miss.stem) {
                known.missed.push(miss.stem);
            }
        }
    }
}

/// The name without what stands for its sort: a search tries those in turn.
fn stem(name: &str) -> &str {
    let dot = name.char_indices().skip(1).find(|(_, c)| *c == '.');
    dot.and_then(|(at, _)| name.get(..at)).unwrap_or(name)
}

fn claim() -> Claim {
    Claim {
        facts: Fact::Search.into(),
        gives_up: "what lay only in the directories left out is no longer found",
        ..Claim::of(
            Kind::Failing,
            "directories that hold nothing of what is looked for",
            "put the directories that hold most first, and leave out those that hold nothing",
        )
    }
}
