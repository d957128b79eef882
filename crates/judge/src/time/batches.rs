//! Children that are started some at a time, where each batch waits for its slowest.

use super::threads::{Life, Threads, name_of, pid_of};
use std::collections::{BTreeMap, BTreeSet};
use systoll_model::{Recording, RowId};

/// Batches, at least, for a claim.
const LEAST_BATCHES: usize = 3;
/// Least part of the batches' time, 0 to 1, that is won if the next child starts when any has ended.
const LEAST_WON: f64 = 0.15;
/// Time, ns, for which a child that has ended may be thought to live on.
const SLACK_NS: u64 = 2_000_000;
/// The calls that wait for a child's end.
const AWAITS: [&str; 2] = ["wait4", "waitid"];

/// Returns the rows that wait for the ends of batches of children, with the number of children that had ended before the
/// last of their batch, and the time won if the next child had begun when one had ended, ns.
pub(super) fn batches(recording: &Recording, threads: &Threads<'_>) -> Vec<(RowId, u64, u64)> {
    let mut children: BTreeMap<u32, BTreeMap<u32, (&str, Life)>> = BTreeMap::new();
    // What a process ran last is what it was started for.
    for process in recording.processes.iter().filter(|process| !process.is_many()) {
        let parent = process.parent.and_then(|id| pid_of(recording, id)).filter(|parent| *parent != process.pid);
        let Some(life) = threads.life(process.pid) else { continue };
        let of = children.entry(parent.unwrap_or(0)).or_default();
        let known = of.entry(process.pid).or_insert((&process.exe, life));
        known.0 = &process.exe;
    }
    let made_by = |pid: &u32| *pid != 0;
    let mut found = Vec::new();
    for (parent, children) in children.iter().filter(|(pid, _)| made_by(pid)) {
        let programs: BTreeSet<&str> = children.values().map(|(exe, _)| *exe).collect();
        let lives: Vec<Life> = children.values().map(|(_, life)| *life).collect();
        let Some((idle, won_ns)) = won(lives).filter(|_| programs.len() == 1) else { continue };
        let waits = |id: &RowId| {
            let row = recording.rows.get(id.0 as usize);
            let of_parent = row.and_then(|row| pid_of(recording, row.process)) == Some(*parent);
            of_parent && AWAITS.contains(&name_of(recording, *id))
        };
        let rows = (0..recording.rows.len() as u32).map(RowId).filter(waits);
        let waited = |id: &RowId| recording.rows.get(id.0 as usize).and_then(|row| row.counts.waited_ns).unwrap_or(0);
        if let Some(row) = rows.max_by_key(waited) {
            let calls = recording.rows.get(row.0 as usize).map_or(0, |row| row.counts.calls);
            found.push((row, idle.min(calls), won_ns));
        }
    }
    found
}

/// Returns the number of children that ended before the last of their batch, and the time won without the batches, ns;
/// `None` unless all of these lives are in batches.
fn won(mut lives: Vec<Life>) -> Option<(u64, u64)> {
    lives.sort_unstable_by_key(|life| (life.start_ns, life.end_ns));
    let mut batches: Vec<Vec<Life>> = Vec::new();
    for life in lives {
        let first_end = batches.last().and_then(|batch| batch.iter().map(|life| life.end_ns).min());
        let last_end = batches.last().and_then(|batch| batch.iter().map(|life| life.end_ns).max());
        match batches.last_mut() {
            Some(batch) if first_end.is_some_and(|end| life.start_ns < end) => batch.push(life),
            // A child that begins while another one of them runs on is no part of a batch.
            Some(_) if last_end.is_some_and(|end| life.start_ns.saturating_add(SLACK_NS) < end) => return None,
            _ => batches.push(vec![life]),
        }
    }
    let most = batches.iter().map(Vec::len).max()?;
    // The last batch may be smaller.
    let alike = batches.iter().rev().skip(1).all(|batch| batch.len() == most);
    if most < 2 || !alike || batches.len() < LEAST_BATCHES {
        return None;
    }
    let (mut took, mut worked, mut longest) = (0u64, 0u64, 0u64);
    for batch in &batches {
        let start = batch.iter().map(|life| life.start_ns).min().unwrap_or(0);
        let each = |life: &Life| life.end_ns.saturating_sub(life.start_ns);
        took = took.saturating_add(batch.iter().map(|life| life.end_ns).max().unwrap_or(0).saturating_sub(start));
        worked = worked.saturating_add(batch.iter().map(each).fold(0, u64::saturating_add));
        longest = longest.max(batch.iter().map(each).max().unwrap_or(0));
    }
    // However they are started, the last of them may run alone.
    let pooled = worked / most as u64 + longest / 2;
    let won_ns = took.saturating_sub(pooled);
    let idle = batches.iter().map(|batch| batch.len() as u64 - 1).sum();
    (won_ns as f64 >= LEAST_WON * took as f64).then_some((idle, won_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn lives(of: &[(u64, u64)]) -> Option<(u64, u64)> {
        won(of.iter().map(|(from, to)| Life { start_ns: from * MS, end_ns: to * MS }).collect())
            .map(|(n, ns)| (n, ns / MS))
    }

    #[test]
    fn children_wait_for_the_slowest_of_their_batch() {
        let batches: Vec<(u64, u64)> =
            (0..6).flat_map(|n| [(100 * n, 100 * n + 98), (100 * n + 1, 100 * n + 20)]).collect();
        let (idle, won) = lives(&batches).unwrap();
        assert!(idle == 6 && (170..=200).contains(&won), "{idle} {won}");
        // Children that take equally long, too few batches, one at a time.
        let even: Vec<(u64, u64)> =
            (0..6).flat_map(|n| [(100 * n, 100 * n + 98), (100 * n + 1, 100 * n + 95)]).collect();
        assert_eq!(lives(&even), None);
        assert_eq!(lives(&batches[..4]), None);
        assert_eq!(lives(&[(0, 10), (11, 20), (21, 90), (91, 95)]), None);
    }

    #[test]
    fn a_pool_starts_the_next_one_when_any_has_ended() {
        let pool = [(0, 90), (1, 20), (21, 50), (51, 80), (81, 150), (91, 110), (111, 190)];
        assert_eq!(lives(&pool), None);
    }
}
