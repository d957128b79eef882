//! Rows that no window shows, of programs whose other processes have windows: in the hundredth short process of
//! a program windows show nothing new, and none is opened there.
//!
//! The same call of the same program in the same context is taken to be as needless in a process without
//! windows as in those with windows, the ones that showed no waste included. That needs several such
//! processes, or one in which the call was made about as often.

use crate::hash::Map;
use crate::survey::{Alike, RowView};
use std::collections::hash_map::Entry;
use systoll_model::{Recording, Row, RowId, StackId, Sysno};

/// Processes to have looked at before others are taken to be alike whatever they count.
const SEVERAL: u64 = 3;
/// How far counts may be apart.
const ABOUT: f64 = 2.0;

/// A program, by the first process that ran it, and what is alike.
type Key = (u32, Sysno, StackId);

/// Each process's program.
fn programs(recording: &Recording) -> Vec<u32> {
    let mut first: Map<&str, u32> = Map::default();
    (0..).zip(&recording.processes).map(|(at, process)| *first.entry(process.name()).or_insert(at)).collect()
}

/// What was seen of rows alike.
#[derive(Default)]
struct Pooled {
    lead: Option<RowId>,
    rows: u64,
    instances: u64,
    calls: f64,
    strong: f64,
    any: f64,
}

/// Gives rows that were not looked at what was found of those that are alike.
pub(crate) fn extrapolate(recording: &Recording, views: &mut [RowView<'_>]) {
    let unseen = |view: &RowView<'_>| view.seen() == 0;
    if recording.processes.len() < 2 || !views.iter().any(unseen) {
        return;
    }
    let programs = programs(recording);
    let key = |at: usize| -> Option<Key> {
        let row = recording.rows.get(at)?;
        Some((*programs.get(row.process.0 as usize)?, row.syscall, row.context))
    };
    let mut wanted: Map<Key, Pooled> = Map::default();
    for (at, _) in views.iter().enumerate().filter(|(_, v)| !v.claimed.is_empty()) {
        if let Some(key) = key(at) {
            wanted.entry(key).or_default().lead.get_or_insert(RowId(at as u32));
        }
    }
    for (at, view) in views.iter().enumerate().filter(|(_, v)| !unseen(v)) {
        let (Some(key), Some(row)) = (key(at), recording.rows.get(at)) else { continue };
        let Entry::Occupied(mut seen) = wanted.entry(key) else { continue };
        let (seen, needless) = (seen.get_mut(), view.needless(row.counts.calls));
        seen.rows += 1;
        seen.instances += instances(recording, row);
        seen.calls += row.counts.calls as f64;
        seen.strong += needless.strong;
        seen.any += needless.any;
    }
    for (at, view) in views.iter_mut().enumerate().filter(|(_, v)| unseen(v)) {
        let Some(mine) = recording.rows.get(at) else { continue };
        let each = mine.counts.calls as f64 / instances(recording, mine) as f64;
        let alike = |s: &&Pooled| s.calls > 0.0 && (s.rows >= SEVERAL || is_about(each, s.calls / s.instances as f64));
        let seen = key(at).and_then(|key| wanted.get(&key)).filter(alike);
        let Some((seen, row)) = seen.and_then(|s| Some((s, s.lead?))) else { continue };
        view.like = Some(Alike { row, strong: seen.strong / seen.calls, any: seen.any / seen.calls });
    }
}

/// Processes a row is of.
fn instances(recording: &Recording, row: &Row) -> u64 {
    recording.process(row.process).instances.max(1)
}

fn is_about(a: f64, b: f64) -> bool {
    a <= b * ABOUT && b <= a * ABOUT
}
