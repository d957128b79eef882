//! The recording's calls regrouped: by caller, API, library, line, process, thread or descriptor.
//!
//! If each row belongs to one group, sums are exact. The target of a descriptor, and the line of a script for which
//! an interpreter made a call, are known for some calls only. Such figures are estimates with bounds, and are marked
//! so.

mod group;
mod place;
mod sampled;

pub use group::{Common, Group};
pub use sampled::{caller_bounds, line_bounds, unseen_share};

use crate::collections::named::named;
use group::add;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use systoll_model::{Counts, FrameId, Module, ModuleId, ProcessId, Recording, Row, RowId, Sysno, Thread};

named! {
    /// The property by which calls are grouped.
    By:
    /// The user's own function.
    Caller = "caller",
    /// The public function that the user's own function called, as the language of its code names it.
    Api = "api",
    /// The file of the user's own function.
    Library = "library",
    /// The line of the user's own function.
    Line = "line",
    /// The process image.
    Process = "process",
    /// The thread.
    Thread = "thread",
    /// The target of the descriptor.
    Fd = "fd",
}

/// All calls, regrouped.
#[derive(Clone, Debug, PartialEq)]
pub struct Grouping {
    /// The property by which the calls are grouped.
    pub by: By,
    /// True if the figures rest on windows.
    pub sampled: bool,
    /// The groups, costliest first; a group without a name has its rank among them.
    pub groups: Vec<Group>,
    /// Sums over all regrouped calls.
    pub total: Counts,
}

/// Regroups the calls of `recording`; if `only` is given, those of its system calls.
pub fn grouped(recording: &Recording, by: By, only: Option<&BTreeSet<Sysno>>) -> Grouping {
    let wanted = |syscall: Sysno| only.is_none_or(|o| o.contains(&syscall));
    let called = |row: &Row| row.counts.calls > 0 && wanted(row.syscall);
    let rows: Vec<(RowId, &Row)> = (0..).map(RowId).zip(&recording.rows).filter(|(_, r)| called(r)).collect();
    let mut total = Counts::default();
    rows.iter().for_each(|(_, r)| total.merge(&r.counts));
    let mut groups = match by {
        By::Caller => sampled::by_place(recording, &rows, |f| function(recording, f), Common::Function),
        By::Line => sampled::by_place(recording, &rows, |f| line(recording, f), Common::Line),
        By::Api => sampled::by_api(recording, &rows),
        By::Library => exact(&rows, |r| library(recording, r), Common::Library),
        By::Process => exact(&rows, |r| Some(r.process), Common::Process),
        By::Thread => threads(&recording.threads, &wanted, &rows),
        By::Fd => sampled::by_fd(recording, &rows),
    };
    sort(&mut groups);
    let sampled = by == By::Fd || groups.iter().any(|g| g.looked_at.is_some());
    for group in groups.iter_mut().filter(|_| sampled) {
        let cost = |id: &RowId| recording.rows.get(id.0 as usize).map_or(0, |r| r.counts.toll_ns.unwrap_or(0));
        group.rows.sort_by_key(|id| (std::cmp::Reverse(cost(id)), *id));
    }
    Grouping { by, sampled, groups, total }
}

fn sort(groups: &mut [Group]) {
    // The sort is stable: groups that compare equal keep a fixed order.
    let unknown = |g: &Group| matches!(g.common, Common::Unknown | Common::None);
    groups.sort_by_key(|g| (std::cmp::Reverse((g.toll_ns.unwrap_or(0), g.calls)), unknown(g)));
}

/// Position in code. Functions with the same name and position are one, whichever frame called from them.
#[derive(PartialEq, Eq, Hash)]
struct CodePlace<'a> {
    function: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    module: Option<&'a Module>,
}

/// Returns the file of the function that [`place::caller`] names; for a script the interpreter's file, the outermost in
/// the exact context.
fn library(recording: &Recording, row: &Row) -> Option<ModuleId> {
    let module = |frame: FrameId| recording.frame(frame).module;
    let user = place::caller(recording, row)?;
    module(user).or_else(|| recording.stack(row.context).frames.iter().rev().find_map(|frame| module(*frame)))
}

fn line(recording: &Recording, frame: FrameId) -> Option<CodePlace<'_>> {
    let frame = recording.frame(frame);
    let place = frame.location()?;
    let module = frame.module.map(|m| recording.module(m));
    Some(CodePlace { function: &place.function, file: place.file.as_deref(), line: place.line, module })
}

fn function(recording: &Recording, frame: FrameId) -> Option<CodePlace<'_>> {
    line(recording, frame).map(|place| CodePlace { line: None, ..place })
}

/// Returns groups of rows, each row having one key.
fn exact<K: Eq + Hash>(rows: &[(RowId, &Row)], key: impl Fn(&Row) -> Option<K>, common: fn(K) -> Common) -> Vec<Group> {
    let mut at: HashMap<Option<K>, usize> = HashMap::new();
    let mut parts: Vec<(Vec<(RowId, &Row)>, Counts)> = Vec::new();
    for (id, row) in rows.iter().copied() {
        let index = *at.entry(key(row)).or_insert(parts.len());
        if index == parts.len() {
            parts.push(Default::default());
        }
        if let Some((members, counts)) = parts.get_mut(index) {
            members.push((id, row));
            counts.merge(&row.counts);
        }
    }
    let mut keys: Vec<(Option<K>, usize)> = at.into_iter().collect();
    keys.sort_by_key(|(_, index)| *index);
    let common = |key: Option<K>| key.map_or(Common::Unknown, common);
    keys.into_iter().zip(parts).map(|((key, _), (members, counts))| group(common(key), members, &counts)).collect()
}

fn group(common: Common, mut members: Vec<(RowId, &Row)>, counts: &Counts) -> Group {
    members.sort_by_key(|(id, r)| (std::cmp::Reverse((r.counts.toll_ns.unwrap_or(0), r.counts.calls)), *id));
    Group {
        common,
        calls: counts.calls,
        low: counts.calls,
        high: counts.calls,
        failed: Some(counts.failed()),
        toll_ns: counts.toll_ns,
        waited_ns: counts.waited_ns,
        rows: members.into_iter().map(|(id, _)| id).collect(),
        ..Group::default()
    }
}

/// Returns a group for each thread that the backend counted. If a toll is known for a row only, its threads share it
/// in proportion to their calls.
fn threads(threads: &[Thread], wanted: &dyn Fn(Sysno) -> bool, rows: &[(RowId, &Row)]) -> Vec<Group> {
    let mut each: HashMap<(ProcessId, Sysno), (u64, u64)> = HashMap::new();
    for (_, row) in rows {
        let sum = each.entry((row.process, row.syscall)).or_default();
        sum.0 = sum.0.saturating_add(row.counts.calls);
        sum.1 = sum.1.saturating_add(row.counts.toll_ns.unwrap_or(0));
    }
    let group = |thread: &Thread| {
        let common = Common::Thread { process: thread.process, tid: thread.tid, name: thread.name.clone() };
        let mut sum = Group { common, failed: Some(0), ..Group::default() };
        for c in thread.calls.iter().filter(|c| wanted(c.syscall)) {
            let shared = || {
                let (calls, toll) = each.get(&(thread.process, c.syscall)).copied().filter(|(calls, _)| *calls > 0)?;
                Some((toll as f64 * (c.calls as f64 / calls as f64)) as u64)
            };
            sum.calls = sum.calls.saturating_add(c.calls);
            sum.failed = sum.failed.map(|n| n.saturating_add(c.failed));
            sum.toll_ns = add(sum.toll_ns, c.toll_ns.or_else(shared));
            sum.waited_ns = add(sum.waited_ns, c.waited_ns);
        }
        (sum.low, sum.high) = (sum.calls, sum.calls);
        sum
    };
    threads.iter().map(group).filter(|g| g.calls > 0).collect()
}
