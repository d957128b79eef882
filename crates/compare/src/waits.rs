//! Finds what changed in the elapsed time: how long the runs took, and what they waited for.

use crate::change::{Side, SourcePlace};
use crate::range::Range;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use systoll_judge::{WaitClass, WallPart, WallTime};
use systoll_model::{Recording, Sysno};

/// Smallest difference of elapsed times, ns, that counts as a change: users do not notice a smaller one.
const NOTICED_NS: u64 = 10_000_000;
/// Divisor of the longer elapsed time: a smaller difference is no change. Runs of one build on a busy box differ by some 10 %.
const PART: u64 = 5;
/// Waits that are listed, at most.
const MOST_WAITS: usize = 3;

/// Waits that take more or less of the elapsed time than before.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitChange {
    /// The class of what ended the waits, such as time that passed.
    pub class: WaitClass,
    /// The system call that waits.
    pub syscall: Sysno,
    /// The place in the source, if one is known.
    pub place: Option<SourcePlace>,
    /// Elapsed time of the old runs, ns.
    pub old_ns: Range,
    /// Elapsed time of the new runs, ns.
    pub new_ns: Range,
}

/// A change of the elapsed time.
#[derive(Clone, Debug, PartialEq)]
pub struct WallChange {
    /// Elapsed time of the old runs, ns.
    pub old_ns: Range,
    /// Elapsed time of the new runs, ns.
    pub new_ns: Range,
    /// The waits that changed most.
    pub waits: Vec<WaitChange>,
}

/// Waits of one kind: their class, system call, and the function and file that wait. Lines move between versions.
type Key = (WaitClass, Sysno, Option<(Arc<str>, Option<Arc<str>>)>);

/// Returns the change of the elapsed time; `None` if it did not change, or is not known of each run.
pub(crate) fn change(old: Side<'_>, new: Side<'_>) -> Option<WallChange> {
    let [old, new] = [walls(old)?, walls(new)?];
    let of_all = |walls: &[Wall<'_>]| Range::of(&walls.iter().map(|(_, wall)| wall.wall_ns).collect::<Vec<_>>());
    let (old_ns, new_ns) = (of_all(&old), of_all(&new));
    let slack = NOTICED_NS.max(old_ns.median.max(new_ns.median) / PART);
    if !old_ns.differs(new_ns, slack) {
        return None;
    }
    let mut places = BTreeMap::new();
    let [of_old, of_new] = [&old, &new].map(|walls| walls.iter().map(|w| by_key(w, &mut places)).collect::<Vec<_>>());
    let range = |of: &[BTreeMap<Key, u64>], key: &Key| {
        Range::of(&of.iter().map(|sums| sums.get(key).copied().unwrap_or(0)).collect::<Vec<_>>())
    };
    let waits = places.into_iter().map(|(key, place)| {
        let (old_ns, new_ns) = (range(&of_old, &key), range(&of_new, &key));
        WaitChange { class: key.0, syscall: key.1, place, old_ns, new_ns }
    });
    let mut waits: Vec<WaitChange> = waits.filter(|wait| wait.old_ns.differs(wait.new_ns, slack)).collect();
    waits.sort_by_key(|wait| (Reverse(wait.old_ns.median.abs_diff(wait.new_ns.median)), wait.syscall));
    waits.truncate(MOST_WAITS);
    Some(WallChange { old_ns, new_ns, waits })
}

type Wall<'a> = (&'a Recording, &'a WallTime);

/// Returns where the elapsed time of each run went. Who attaches decides how long a recording lasts.
fn walls(side: Side<'_>) -> Option<Vec<Wall<'_>>> {
    let one = |(recording, judgement): (&'_ Recording, &'_ systoll_judge::Judgement)| {
        recording.header.attached.is_none() && judgement.wall_time.is_some()
    };
    let all = || side.recordings.iter().zip(side.judgements);
    let known = side.recordings.len() == side.judgements.len() && !side.recordings.is_empty() && all().all(one);
    known.then(|| all().filter_map(|(recording, judgement)| Some((recording, judgement.wall_time.as_ref()?))).collect())
}

/// Returns the time of each kind of waits, ns, and adds the places of new kinds.
fn by_key((recording, wall): &Wall<'_>, places: &mut BTreeMap<Key, Option<SourcePlace>>) -> BTreeMap<Key, u64> {
    let mut sums: BTreeMap<Key, u64> = BTreeMap::new();
    for part in &wall.parts {
        let Some(row) = recording.rows.get(part.row.0 as usize) else { continue };
        let place = place_of(recording, part);
        let named = place.as_ref().map(|place| (place.function.clone(), place.file.clone()));
        let key = (part.class, row.syscall, named);
        let sum = sums.entry(key.clone()).or_default();
        *sum = sum.saturating_add(part.ns);
        places.entry(key).or_insert(place);
    }
    sums
}

fn place_of(recording: &Recording, part: &WallPart) -> Option<SourcePlace> {
    let row = recording.rows.get(part.row.0 as usize)?;
    recording.frames.get(part.line.or(row.user)?.0 as usize)?.location().map(SourcePlace::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_judge::Judgement;
    use systoll_model::{Counts, Header, ProcessId, Row, RowId};

    const MS: u64 = 1_000_000;

    /// Returns a run of these elapsed times: of the whole, and of the sleeps in it.
    fn run(wall_ns: u64, slept_ns: u64) -> (Recording, Judgement) {
        let rows = vec![Row::new(ProcessId(0), Sysno::from_name("nanosleep").unwrap(), Counts::default())];
        let recording = Recording { header: Header { wall_ns, ..Header::default() }, rows, ..Recording::default() };
        let (class, row, line) = (WaitClass::Clock, RowId(0), None);
        let (unsampled, shared, corrected) = (false, false, false);
        let (ns, longest_ns) = (slept_ns, slept_ns);
        let part = WallPart { class, row, calls: 9, ns, longest_ns, line, unsampled, shared, corrected };
        let wall = WallTime {
            wall_ns,
            other_ns: wall_ns - slept_ns,
            parts: vec![part],
            is_complete: true,
            ..WallTime::default()
        };
        (recording, Judgement { wall_time: Some(wall), ..Judgement::default() })
    }

    fn changed(old: &[(u64, u64)], new: &[(u64, u64)]) -> Option<WallChange> {
        let of = |runs: &[(u64, u64)]| runs.iter().map(|(wall, slept)| run(wall * MS, slept * MS)).unzip();
        let (old, new): ((Vec<_>, Vec<_>), (Vec<_>, Vec<_>)) = (of(old), of(new));
        let side = |of: &'static (Vec<Recording>, Vec<Judgement>)| Side { recordings: &of.0, judgements: &of.1 };
        change(side(Box::leak(Box::new(old))), side(Box::leak(Box::new(new))))
    }

    #[test]
    fn sleeps_that_went_are_named() {
        let change = changed(&[(2300, 2040)], &[(200, 0)]).unwrap();
        let [wait] = &change.waits[..] else { panic!("{change:?}") };
        assert_eq!((wait.class, wait.old_ns.median, wait.new_ns.median), (WaitClass::Clock, 2040 * MS, 0));
        // The program runs for longer: no wait did.
        assert_eq!(changed(&[(200, 100)], &[(400, 100)]).unwrap().waits, []);
    }

    #[test]
    fn variation_is_no_change() {
        assert_eq!(changed(&[(200, 100)], &[(230, 130)]), None);
        assert_eq!(changed(&[(200, 100), (400, 300), (300, 200)], &[(500, 300), (300, 100), (450, 200)]), None);
        assert_eq!(changed(&[], &[(230, 130)]), None);
    }
}
