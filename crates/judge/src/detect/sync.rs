//! Detects files that are synced again and again, although the program told no other process in between.

use super::claim::{Claim, Claims, Detector, put};
use super::renamed::{is_path, names};
use crate::finding::Kind;
use crate::hash::{Map, Set};
use crate::replay::Step;
use crate::semantics::{Act, ObservedCall, SYNCED, Semantics, is_device};
use crate::signs::Signs;
use std::sync::Arc;
use systoll_model::{Recording, Row, Window};

/// Number of syncs for each output to others up to which the program may owe them durable data.
const ANSWERS: u64 = 4;
/// Largest distance, in calls, from a file's sync to its renaming, and from there to the sync of the folder or of the
/// renamed file. Go's way of opening that file takes six calls.
const NEAR: usize = 8;

/// Claims syncs of a file that was synced before, in processes that hardly tell others anything.
pub(super) struct Sync {
    silent: Set<u32>,
    /// Processes that give a file another name.
    renaming: Set<u32>,
    synced: Set<(u32, Arc<str>)>,
}

impl Sync {
    /// Counts the syncs of each process and its outputs to others, exactly.
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        if !recording.rows.iter().any(|row| semantics.lines_of(row.syscall).sets(&SYNCED)) {
            return Self { silent: Set::default(), renaming: Set::default(), synced: Set::default() };
        }
        let rows = looked_at(recording, semantics);
        let renames = |row: &&Row| semantics.lines_of(row.syscall).names() && row.counts.calls > 0;
        let renaming = recording.rows.iter().filter(renames).map(|row| row.process.0).collect();
        let mut tally: Map<u32, (u64, u64)> = Map::default();
        for (row, seen) in recording.rows.iter().zip(rows) {
            let lines = semantics.lines_of(row.syscall);
            let (syncs, shows) = tally.entry(row.process.0).or_default();
            if lines.sets(&SYNCED) {
                *syncs = syncs.saturating_add(row.counts.calls);
            } else if lines.waits && !(seen.any && seen.own) || seen.shown && lines.transfers_out() {
                *shows = shows.saturating_add(row.counts.calls);
            }
        }
        let silent = tally.into_iter().filter(|(_, (syncs, shows))| shows.saturating_mul(ANSWERS) <= *syncs);
        Self { silent: silent.map(|(process, _)| process).collect(), renaming, synced: Set::default() }
    }

    /// Returns true if the sync is part of replacing a whole file: it syncs the file's bytes before
    /// the file gets its name, so that the name never stands for half a file, or the folder
    /// or the file afterwards. Returns `None` if the window's edge hides that.
    fn is_of_replacing(&self, step: &Step<'_>, file: &str, steps: &[Step<'_>]) -> Option<bool> {
        if !self.renaming.contains(&step.observed.window.process.0) {
            return Some(false);
        }
        let (before, after) = steps.split_at(step.index);
        let near = after.iter().skip(1).take(NEAR).any(|s| names(s).is_some_and(|[from, _]| is_path(&from, file)));
        let gave = |[_, to]: [String; 2]| {
            is_path(&to, file) || to.rsplit_once('/').is_none_or(|(folder, _)| is_path(folder, file))
        };
        let behind = before.iter().rev().take(NEAR).any(|s| names(s).is_some_and(gave));
        if near || behind {
            return Some(true);
        }
        (before.len() >= NEAR && after.len() > NEAR).then_some(false)
    }
}

/// The calls of a row in windows.
#[derive(Clone, Copy)]
struct Seen {
    any: bool,
    /// True if one of the calls used something other than a file.
    shown: bool,
    /// True if all the calls waited for nothing outside the process: for its own threads, or for
    /// time to pass in a thread that does not sync.
    own: bool,
}

fn looked_at(recording: &Recording, semantics: &Semantics) -> Vec<Seen> {
    let syncs = |w: &&Window| w.calls.iter().any(|c| semantics.lines_of(recording.row(c.row).syscall).sets(&SYNCED));
    let of = |w: &Window| (w.process.0, w.thread);
    let syncing: Set<(u32, u32)> = recording.windows.iter().filter(syncs).map(of).collect();
    let mut rows = vec![Seen { any: false, shown: false, own: true }; recording.rows.len()];
    for window in &recording.windows {
        let keeps = syncing.contains(&of(window));
        for call in &window.calls {
            let Some(seen) = rows.get_mut(call.row.0 as usize) else { continue };
            let syscall = recording.row(call.row).syscall;
            let own = semantics.lines_of(syscall).own_wait(&ObservedCall { window, call, syscall });
            let file = call.fd.as_deref().is_some_and(|f| f.starts_with('/') && !is_device(f));
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
                match self.is_of_replacing(step, file, steps) {
                    Some(true) => {}
                    Some(false) => put(claims, step.index, claim()),
                    None => claims.leave_out(step.index),
                }
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
