//! Files brought to the disk again and again, though the program told no other of it in between.

use super::claim::{Claim, Claims, Detector, put};
use crate::finding::Kind;
use crate::hash::{Map, Set};
use crate::replay::Step;
use crate::semantics::{Act, SYNCED, Semantics};
use std::sync::Arc;
use systoll_model::Recording;

/// A process that shows something once for so many syncs answers for what it has stored.
const ANSWERS: u64 = 4;

/// Claims syncs of a file that was synced before, in processes that hardly tell others anything.
pub(super) struct Sync {
    silent: Set<u32>,
    synced: Set<(u32, Arc<str>)>,
}

impl Sync {
    /// Counts, exactly, what each process synced and what it showed to others.
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        if !recording.rows.iter().any(|row| semantics.of(row.syscall).sets(&SYNCED)) {
            return Self { silent: Set::default(), synced: Set::default() };
        }
        let mut shown: Vec<bool> = vec![false; recording.rows.len()];
        for call in recording.windows.iter().flat_map(|w| &w.calls) {
            let file = call.fd.as_deref().is_some_and(|f| f.starts_with('/') && !f.starts_with("/dev/"));
            if let Some(shown) = shown.get_mut(call.row.0 as usize) {
                *shown |= !file;
            }
        }
        let mut tally: Map<u32, (u64, u64)> = Map::default();
        for (row, shown) in recording.rows.iter().zip(shown) {
            let lines = semantics.of(row.syscall);
            let (syncs, shows) = tally.entry(row.process.0).or_default();
            if lines.sets(&SYNCED) {
                *syncs = syncs.saturating_add(row.counts.calls);
            } else if lines.waits || (shown && lines.transfers_out()) {
                *shows = shows.saturating_add(row.counts.calls);
            }
        }
        let silent = tally.into_iter().filter(|(_, (syncs, shows))| shows.saturating_mul(ANSWERS) <= *syncs);
        Self { silent: silent.map(|(process, _)| process).collect(), synced: Set::default() }
    }
}

impl Detector for Sync {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        for step in steps {
            let Some(meaning) = &step.meaning else { continue };
            let process = step.observed.window.process.0;
            if meaning.line.about.name != SYNCED.name || !matches!(meaning.line.act, Act::Set { .. }) {
                continue;
            }
            let Some(file) = step.observed.call.fd.as_ref().filter(|f| f.starts_with('/')) else { continue };
            let before = !self.synced.insert((process, file.clone()));
            if before && self.silent.contains(&process) {
                put(claims, step.index, claim());
            }
        }
    }
}

fn claim() -> Claim {
    let about = "waits for the disk again and again, though nobody was told anything in between";
    Claim {
        by_wait: true,
        gives_up: "what was stored since the last sync is lost if the box goes down",
        ..Claim::of(Kind::Blocking, about, "store many together and bring them to the disk once")
    }
}
