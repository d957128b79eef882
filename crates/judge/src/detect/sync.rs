//! Detects files that are synced again and again, although the program told no other process in between.

use super::claim::{Claim, Claims, Detector, put};
use crate::finding::Kind;
use crate::hash::{Map, Set};
use crate::replay::Step;
use crate::semantics::{Act, ObservedCall, SYNCED, Semantics};
use crate::signs::Signs;
use std::sync::Arc;
use systoll_model::{Recording, Window};

/// Number of syncs for each output to others up to which the program may owe them durable data.
const ANSWERS: u64 = 4;

/// Claims syncs of a file that was synced before, in processes that hardly tell others anything.
pub(super) struct Sync {
    silent: Set<u32>,
    synced: Set<(u32, Arc<str>)>,
}

impl Sync {
    /// Counts the syncs of each process and its outputs to others, exactly.
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        if !recording.rows.iter().any(|row| semantics.of(row.syscall).sets(&SYNCED)) {
            return Self { silent: Set::default(), synced: Set::default() };
        }
        let rows = looked_at(recording, semantics);
        let mut tally: Map<u32, (u64, u64)> = Map::default();
        for (row, seen) in recording.rows.iter().zip(rows) {
            let lines = semantics.of(row.syscall);
            let (syncs, shows) = tally.entry(row.process.0).or_default();
            if lines.sets(&SYNCED) {
                *syncs = syncs.saturating_add(row.counts.calls);
            } else if lines.waits && !(seen.any && seen.own) || seen.shown && lines.transfers_out() {
                *shows = shows.saturating_add(row.counts.calls);
            }
        }
        let silent = tally.into_iter().filter(|(_, (syncs, shows))| shows.saturating_mul(ANSWERS) <= *syncs);
        Self { silent: silent.map(|(process, _)| process).collect(), synced: Set::default() }
    }
}

/// The calls of a row in windows.
#[derive(Clone, Copy)]
struct Seen {
    any: bool,
    /// True if one of them used something other than a file.
    shown: bool,
    /// True if all of them waited for nothing outside the process: for its own threads, or for time to pass in a
    /// thread that does not sync.
    own: bool,
}

fn looked_at(recording: &Recording, semantics: &Semantics) -> Vec<Seen> {
    let syncs = |w: &&Window| w.calls.iter().any(|c| semantics.of(recording.row(c.row).syscall).sets(&SYNCED));
    let of = |w: &Window| (w.process.0, w.thread);
    let syncing: Set<(u32, u32)> = recording.windows.iter().filter(syncs).map(of).collect();
    let mut rows = vec![Seen { any: false, shown: false, own: true }; recording.rows.len()];
    for window in &recording.windows {
        let keeps = syncing.contains(&of(window));
        for call in &window.calls {
            let Some(seen) = rows.get_mut(call.row.0 as usize) else { continue };
            let syscall = recording.row(call.row).syscall;
            let own = semantics.of(syscall).own_wait(&ObservedCall { window, call, syscall });
            let file = call.fd.as_deref().is_some_and(|f| f.starts_with('/') && !f.starts_with("/dev/"));
            seen.any = true;
            seen.shown |= !file;
            seen.own &= own.is_some_and(|own| !(own.sleeps && keeps));
        }
    }
    rows
}

impl Detector for Sync {
    fn looks_for(&self) -> Signs {
        Signs::SETS
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        for step in steps {
            let Some(meaning) = &step.meaning else { continue };
            let process = step.observed.window.process.0;
            if !meaning.line.about.is(&SYNCED) || !matches!(meaning.line.act, Act::Set { .. }) {
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
    let about =
        "waits for the disk again and again, though the program writes to no terminal, pipe or socket in between";
    Claim {
        by_wait: true,
        gives_up: "what was stored since the last sync is lost if the box goes down",
        ..Claim::of(Kind::Blocking, about, "store many together and bring them to the disk once")
    }
}
