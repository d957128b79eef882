//! Finds rounds that appeared, disappeared, grew or shrank, or are made more or less often.

use crate::change::{Side, SourcePlace};
use crate::key::Key;
use crate::names::Names;
use crate::range::Range;
use crate::table::Keys;
use std::collections::BTreeSet;
use std::sync::Arc;
use systoll_judge::{Round, RoundStep};
use systoll_model::{Recording, Sysno};

/// Least share of different calls that two rounds of one function have in common if they are the
/// same round.
const ALIKE: f64 = 0.5;
/// Largest number of a round's calls that are listed.
const MOST_CALLS: usize = 32;
/// Growth from which on a round counts as longer, as a share of its length.
const LONGER: f64 = 0.1;
/// Largest difference of the calls of all rounds, as a share of them, at which two sides have cut
/// the same calls into rounds of different lengths.
///
/// Six runs of one Perl script, whose start makes the same calls each time, had 576 to 820 calls in
/// such rounds: 10 of the 15 pairs lie within this share.
const RECUT: f64 = 0.2;
/// Divisor of a count that only windows show: a difference above this part of the count is a
/// change.
const UNSURE: u64 = 2;

/// A call of a round, and the number of such calls in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundPart {
    /// The system call.
    pub syscall: Sysno,
    /// Number of calls of this system call in one round, on average.
    pub each: f64,
}

/// A round on one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundFigures {
    /// Number of rounds; 0 if the side has none.
    pub count: Range,
    /// The round's calls in order, from the last run that has it.
    pub calls: Vec<RoundPart>,
    /// Price of the rounds in the median run, in ns.
    pub toll_ns: u64,
}

impl RoundFigures {
    /// Returns the number of calls in one round, on average.
    pub fn calls_each(&self) -> f64 {
        self.calls.iter().map(|part| part.each).sum()
    }
}

/// A round that differs between the sides.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundChange {
    /// The program.
    pub program: Option<Arc<str>>,
    /// The function that all the round's calls come from, on the new side if it is there.
    pub place: Option<SourcePlace>,
    /// The round on the old side.
    pub old: RoundFigures,
    /// The round on the new side.
    pub new: RoundFigures,
}

/// One round in all recordings of a side: of the same program, from the same function, with similar
/// calls.
struct Kept {
    program: Option<Arc<str>>,
    function: Option<Arc<str>>,
    place: Option<SourcePlace>,
    calls: Vec<RoundPart>,
    /// Number of rounds in each run.
    counts: Vec<u64>,
    tolls: Vec<u64>,
    /// True if one of the round's rows changed.
    changed: bool,
    /// True if only windows show the round's count.
    unsure: bool,
}

/// Returns the rounds that changed, costliest first; `changed` holds the rows that changed.
pub(crate) fn changes(old: Side<'_>, new: Side<'_>, names: &Names, changed: &BTreeSet<&Key>) -> Vec<RoundChange> {
    let (old, mut new) = (kept(old, names, changed), kept(new, names, changed));
    let mut changes = Vec::new();
    for before in &old {
        let now = new.iter().position(|now| is_same(before, now)).map(|at| new.swap_remove(at));
        changes.extend(change(Some(before), now.as_ref()));
    }
    changes.extend(new.iter().filter_map(|now| change(None, Some(now))));
    changes.sort_by_key(|c| (std::cmp::Reverse(c.old.toll_ns.max(c.new.toll_ns)), c.program.clone()));
    changes
}

fn change(old: Option<&Kept>, new: Option<&Kept>) -> Option<RoundChange> {
    let either = [new, old].into_iter().flatten();
    if !either.clone().any(|kept| kept.changed) {
        return None;
    }
    let unsure = either.clone().any(|kept| kept.unsure);
    let figures = |kept: Option<&Kept>| kept.map_or_else(RoundFigures::default, Kept::figures);
    let (before, now) = (figures(old), figures(new));
    let slack = if unsure { before.count.high.max(now.count.high) / UNSURE } else { 0 };
    let (a, b) = (before.calls_each(), now.calls_each());
    let is_longer = (a - b).abs() > LONGER * a.max(b) && old.is_some() && new.is_some();
    if !before.count.differs(now.count, slack) && !is_longer {
        return None;
    }
    // The same calls, cut into fewer or more rounds, are no change.
    let (of_old, of_new) = (before.count.median as f64 * a, now.count.median as f64 * b);
    if (of_old - of_new).abs() <= RECUT * of_old.max(of_new) {
        return None;
    }
    let first = either.into_iter().next()?;
    Some(RoundChange { program: first.program.clone(), place: first.place.clone(), old: before, new: now })
}

impl Kept {
    fn figures(&self) -> RoundFigures {
        let mut tolls = self.tolls.clone();
        tolls.sort_unstable();
        let toll_ns = tolls.get(tolls.len() / 2).copied().unwrap_or(0);
        RoundFigures { count: Range::of(&self.counts), calls: self.calls.clone(), toll_ns }
    }
}

fn is_same(a: &Kept, b: &Kept) -> bool {
    let calls = |kept: &Kept| kept.calls.iter().map(|part| part.syscall).collect::<BTreeSet<_>>();
    let (x, y) = (calls(a), calls(b));
    let common = x.intersection(&y).count() as f64;
    let shorter = x.len().min(y.len()).max(1) as f64;
    a.program == b.program && a.function == b.function && common >= ALIKE * shorter && common > 0.0
}

/// Returns the rounds of a side's recordings, each once.
fn kept(side: Side<'_>, names: &Names, changed: &BTreeSet<&Key>) -> Vec<Kept> {
    let runs = side.recordings.len();
    let mut all: Vec<Kept> = Vec::new();
    for (run, (recording, judgement)) in side.recordings.iter().zip(side.judgements).enumerate() {
        let keys = Keys::new(recording, names);
        let mut used = BTreeSet::new();
        for round in &judgement.rounds {
            let mut one = of_round(recording, round, names, runs);
            let rows = round.rows.iter().filter_map(|part| recording.rows.get(part.row.0 as usize));
            one.changed = rows.map(|row| keys.row(row)).any(|key| changed.contains(&key));
            let known = all.iter().enumerate().position(|(at, known)| !used.contains(&at) && is_same(known, &one));
            let at = known.unwrap_or(all.len());
            used.insert(at);
            if at == all.len() {
                all.push(one);
            } else if let Some(known) = all.get_mut(at) {
                (known.changed, known.unsure) = (known.changed | one.changed, known.unsure | one.unsure);
                (known.calls, known.place) = (one.calls, one.place);
            }
            if let Some(known) = all.get_mut(at) {
                known.counts.get_mut(run).into_iter().for_each(|count| *count = round.count.estimate);
                known.tolls.get_mut(run).into_iter().for_each(|toll| *toll = round.toll_ns);
            }
        }
    }
    all
}

fn of_round(recording: &Recording, round: &Round, names: &Names, runs: usize) -> Kept {
    let frame = round.place.and_then(|place| recording.frames.get(place.frame.0 as usize));
    let location = round.place.and_then(|place| frame?.locations.get(place.location));
    let row = round.rows.first().and_then(|part| recording.rows.get(part.row.0 as usize));
    let each = |calls: u64| calls as f64 / round.count.estimate.max(1) as f64;
    let calls = round.steps.iter().flat_map(RoundStep::calls).take(MOST_CALLS);
    Kept {
        program: row.and_then(|row| names.program(recording, row.process)),
        function: frame.zip(location).map(|(frame, l)| names.function(recording, frame, &l.function)),
        place: location.map(SourcePlace::from),
        calls: calls.map(|call| RoundPart { syscall: call.syscall, each: each(call.calls) }).collect(),
        counts: vec![0; runs],
        tolls: vec![0; runs],
        changed: false,
        unsure: round.count.low != round.count.high,
    }
}
