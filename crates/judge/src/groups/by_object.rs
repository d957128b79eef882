//! Splits rows whose calls are about several objects that are not all alike, so that each object is judged by itself.
//!
//! A row holds the calls of one context, and one context may serve many objects: all of an interpreter's files are
//! opened from the same line of C, and in a trace without stacks there is one row a system call. A claim that is true
//! of one file's calls must not be made of another's, nor be lost among the others. A row is split into parts before
//! groups are made if some objects' calls are claimed for one reason, and others' for another reason or for none. In
//! the end the findings are restored to the original rows.

use crate::causes::catalogue::{Catalogue, Cause};
use crate::causes::target::Target;
use crate::collections::hash::Map;
use crate::evidence::claim::{Claims, Judged};
use crate::evidence::phases::toll;
use crate::evidence::survey::{Claimed, RowView, survey};
use crate::groups::group::{Patterns, cause_of};
use crate::groups::judged_view::JudgedView;
use crate::groups::strands;
use crate::options::Options;
use crate::results::finding::{Estimate, ExpectedGain, Finding, Kind, RowNeedless};
use std::collections::BTreeMap;
use systoll_model::{Counts, Ledger, ObjectSample, Recording, RowId, WindowCall, octaves};

/// Least number of windows' calls about an object for it to be judged by itself. Fewer say too little, and an object
/// picked for its one claim would always seem to be needless altogether.
const SEEN: usize = 16;
/// Least number of windows' calls about an object for it to be judged by itself if it has a considerable share of its row's.
/// No other value was tried.
const SEEN_OF_FEW: usize = 4;
/// Divisor of a row's calls in windows that gives a considerable share. Chosen on five runs of one Java program on a busy box
/// and the kept reports, of which 33 change at 3 and 45 at 5; not on programs of strangers.
const CONSIDERABLE: usize = 3;
/// Largest share of a row's calls, 0 to 1, that is ignored because its objects have too few calls to be judged (first
/// calls, the odd file), or because no sampled call represents it.
const CRUMBS: f64 = 0.05;
/// Largest number of parts that a row is split into, the rest among them.
const PARTS: usize = 8;

/// A recording in which each part of a split row is a row of its own.
pub(crate) struct SplitRecording {
    /// The split recording. Rows that were not split keep their ids; the first part of a split row keeps the row's.
    pub recording: Recording,
    /// The origin of each row of `recording`, by row id.
    origins: Vec<RowOrigin>,
}

/// The origin of a row of the split recording.
#[derive(Clone, Copy)]
struct RowOrigin {
    row: RowId,
    /// Number of the original row's calls in this row; `None` if it is the whole row.
    calls: Option<Estimate>,
}

/// A call that a window shows.
struct SeenCall<'a> {
    /// The index of the call's window, and the call's index in that window.
    at: (usize, usize),
    call: &'a WindowCall,
    /// The number of the call's object.
    object: Option<usize>,
    claimed: Option<Claimed<'a>>,
}

/// The reason for which the calls of an object are claimed: a cause, or the kind alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason<'a> {
    /// Too few of the calls are claimed.
    None,
    /// The cause's id, and the type of object that the descriptors lead to if the cause's cures
    /// depend on it.
    Cause(&'a str, Option<Target>),
    Kind(Kind),
}

/// One row's calls in windows, in the order in which they were made.
struct RowSeen<'a> {
    id: RowId,
    calls: Vec<SeenCall<'a>>,
    objects: Vec<String>,
}

/// A part of a row while it is built.
#[derive(Default)]
struct RowPart {
    /// Numbers of the objects that the part is about; empty for the rest, which has the objects of no other part.
    objects: Vec<usize>,
    calls: Estimate,
    /// Share of the row's calls, 0 to 1.
    fraction: f64,
    /// Mean time of one call, ns, for comparison with the other parts.
    weight: f64,
    ledger: Option<Ledger>,
}

/// Splits the rows that need it. Returns `None` if none does. Rows in `whole` are not split: findings of exact counts
/// refer to them.
pub(crate) fn split(
    shown: JudgedView<'_>,
    catalogue: &Catalogue,
    whole: &[RowId],
    options: &Options,
) -> Option<SplitRecording> {
    let JudgedView { recording, views, claims, .. } = shown;
    let asked = |id: RowId| {
        let view = views.get(id.0 as usize)?;
        (view.like.is_none() && view.claimed.len() >= SEEN_OF_FEW && !whole.contains(&id)).then_some(())
    };
    let mut patterns = Patterns::of(catalogue, views);
    let has_samples = !recording.object_samples.is_empty();
    let mut parts = has_samples.then(|| SplitRecording::whole(recording));
    for row in seen(recording, claims, |id| asked(id).is_some()) {
        let shares = shares(&row, recording, views, &mut patterns, options);
        if shares.len() > 1 {
            parts.get_or_insert_with(|| SplitRecording::whole(recording)).put(&row, shares, recording);
        }
    }
    if let Some(parts) = &mut parts {
        let origins: Vec<RowId> = parts.origins.iter().map(|origin| origin.row).collect();
        let narrows = |row: &RowId| !whole.contains(row);
        strands::narrow(&mut parts.recording, &origins, &narrows, (recording, claims));
    }
    parts
}

/// Returns the rows that `asked` selects and whose windows show calls about a named object and about others.
fn seen<'a>(recording: &'a Recording, claims: &'a Claims, asked: impl Fn(RowId) -> bool) -> Vec<RowSeen<'a>> {
    let wanted: Vec<bool> = (0..recording.rows.len() as u32).map(|id| asked(RowId(id))).collect();
    if !wanted.contains(&true) {
        return Vec::new();
    }
    let mut rows: BTreeMap<RowId, RowSeen<'a>> = BTreeMap::new();
    let mut numbers: Map<RowId, Map<String, usize>> = Map::default();
    let mut judged = claims.iter();
    for (window_at, window) in recording.windows.iter().enumerate() {
        for (at, (call, judged)) in window.calls.iter().zip(judged.by_ref()).enumerate() {
            if call.nth == 0 || !wanted.get(call.row.0 as usize).is_some_and(|wanted| *wanted) {
                continue;
            }
            let row = rows.entry(call.row).or_insert_with(|| RowSeen {
                id: call.row,
                calls: Vec::new(),
                objects: Vec::new(),
            });
            let object = call.object(recording.row(call.row).syscall).filter(|name| is_name(name)).map(|name| {
                let known = numbers.entry(call.row).or_default();
                *known.entry(name).or_insert_with_key(|name| {
                    row.objects.push(name.clone());
                    row.objects.len() - 1
                })
            });
            let claimed = match judged {
                Judged::Claimed(claim) => Some(Claimed { claim, call }),
                Judged::LeftOut | Judged::Unclaimed => None,
            };
            row.calls.push(SeenCall { at: (window_at, at), call, object, claimed });
        }
    }
    let has_several = |row: &RowSeen<'_>| {
        // What has no lasting name, as a connection, is not the named one either.
        row.objects.len() > 1 || row.objects.len() == 1 && row.calls.iter().any(|call| call.object.is_none())
    };
    let mut rows: Vec<RowSeen<'a>> = rows.into_values().filter(has_several).collect();
    rows.iter_mut().for_each(|row| row.calls.sort_by_key(|seen| seen.call.nth));
    rows
}

/// Returns true if the name denotes the same object whenever it occurs, unlike that of a pipe, a socket or an
/// anonymous inode.
fn is_name(object: &str) -> bool {
    !object.contains(":[") && !object.starts_with("anon_inode:")
}

/// Returns the parts of a row; none if all its calls are alike.
fn shares<'c>(
    row: &RowSeen<'_>,
    recording: &Recording,
    views: &[RowView<'_>],
    patterns: &mut Patterns<'c>,
    options: &Options,
) -> Vec<RowPart> {
    let mut seen: Vec<usize> = vec![0; row.objects.len()];
    row.calls.iter().filter_map(|c| c.object).for_each(|object| seen[object] += 1);
    let least = row.calls.len().div_ceil(CONSIDERABLE).clamp(SEEN_OF_FEW, SEEN);
    let mut heavy: Vec<usize> = (0..seen.len()).filter(|object| seen[*object] >= least).collect();
    heavy.sort_by_key(|object| std::cmp::Reverse(seen[*object]));
    let mut reason = |of: &dyn Fn(Option<usize>) -> bool| {
        let of_these: Vec<&SeenCall<'_>> = row.calls.iter().filter(|c| of(c.object)).collect();
        let claimed = || of_these.iter().filter_map(|c| c.claimed.as_ref());
        let n = claimed().count();
        if (n as f64) < options.min_row_share * of_these.len() as f64 || n == 0 {
            return Reason::None;
        }
        match cause_of(recording, recording.row(row.id), claimed(), patterns) {
            Some(cause) if cause.cause().is_some_and(Cause::is_told_by_target) => {
                let syscall = recording.row(row.id).syscall;
                Reason::Cause(cause.id, claimed().find_map(|c| Target::of(syscall, c.call)))
            }
            Some(cause) => Reason::Cause(cause.id, None),
            None => claimed().next().map_or(Reason::None, |c| Reason::Kind(c.claim.kind)),
        }
    };
    let mut reasons: BTreeMap<Reason<'c>, Vec<usize>> = BTreeMap::new();
    for object in heavy.iter().take(PARTS * SEEN) {
        reasons.entry(reason(&|of| of == Some(*object))).or_default().push(*object);
    }
    let is_heavy = |object: Option<usize>| object.is_some_and(|object| heavy.contains(&object));
    let rest = row.calls.iter().filter(|c| !is_heavy(c.object)).count();
    let rest_matters = rest as f64 > CRUMBS * row.calls.len() as f64;
    let of_rest = if rest_matters { Some(reason(&|of| !is_heavy(of))) } else { None };
    // Objects claimed for the same reason as the rest are merged into it. If the rest is negligible, the largest part
    // takes its place.
    let mut all: Vec<(Reason<'c>, Vec<usize>)> = reasons.into_iter().collect();
    all.sort_by_key(|(reason, objects)| {
        (Some(*reason) != of_rest, std::cmp::Reverse(objects.iter().map(|o| seen[*o]).sum::<usize>()))
    });
    if of_rest.is_some_and(|rest| all.first().is_none_or(|(first, _)| *first != rest)) {
        all.insert(0, (Reason::None, Vec::new()));
    }
    all.truncate(PARTS);
    if all.len() < 2 {
        return Vec::new();
    }
    let part = |(_, objects): (Reason<'c>, Vec<usize>)| RowPart { objects, ..RowPart::default() };
    let mut shares: Vec<RowPart> = all.into_iter().map(part).collect();
    measure(&mut shares, row, recording, views);
    if shares.iter().skip(1).any(|share| share.calls.estimate > 0) { shares } else { Vec::new() }
}

/// Returns the index of the part that has an object; that of the rest if none has.
fn part_with(object: Option<usize>, shares: &[RowPart]) -> usize {
    object.and_then(|object| shares.iter().position(|share| share.objects.contains(&object))).unwrap_or(0)
}

/// Sets each part's calls, share, weight and ledger. The first part gets what the others leave.
fn measure(shares: &mut [RowPart], row: &RowSeen<'_>, recording: &Recording, views: &[RowView<'_>]) {
    let calls = recording.row(row.id).counts.calls;
    let told = views.get(row.id.0 as usize).and_then(|view| view.ledger.told).filter(|told| told.calls > 0);
    let parts: Vec<usize> = row.calls.iter().map(|c| part_with(c.object, shares)).collect();
    let mut left = Estimate { estimate: calls, low: calls, high: calls };
    for (at, share) in shares.iter_mut().enumerate().skip(1) {
        let is: Vec<bool> = parts.iter().map(|part| *part == at).collect();
        let names: Vec<&str> = share.objects.iter().filter_map(|o| row.objects.get(*o)).map(String::as_str).collect();
        let ledger = told.and_then(|told| ledger_of(told, &names));
        let of_calls = match (&ledger, told) {
            (Some(ledger), Some(told)) => by_ledger(ledger, told, calls, by_windows(row, &is, calls)),
            _ => by_windows(row, &is, calls),
        };
        let of_calls = match by_samples(row.id, &names, 0, recording, calls) {
            Some(sampled) if sampled.high - sampled.low < of_calls.high - of_calls.low => sampled,
            _ => of_calls,
        };
        let estimate = of_calls.estimate.min(left.estimate);
        let of_calls =
            Estimate { estimate, low: of_calls.low.min(estimate), high: of_calls.high.clamp(estimate, calls) };
        left = Estimate {
            estimate: left.estimate - estimate,
            low: left.low.saturating_sub(of_calls.high),
            high: left.high.saturating_sub(of_calls.low),
        };
        (share.calls, share.ledger) = (of_calls, ledger);
    }
    // The first part's ledger is the row's without the others'. If one of those has no ledger, no part has.
    let others: Option<Vec<Ledger>> = shares.iter().skip(1).map(|share| share.ledger.clone()).collect();
    let rest = told.zip(others).map(|(told, others)| others.iter().fold(told.clone(), rest_of));
    if rest.is_none() {
        shares.iter_mut().for_each(|share| share.ledger = None);
    }
    if let Some(first) = shares.first_mut() {
        (first.calls, first.ledger) = (left, rest);
    }
    for (at, share) in shares.iter_mut().enumerate() {
        share.fraction = share.calls.estimate as f64 / calls.max(1) as f64;
        share.weight = mean_ns(row, &parts, at);
    }
}

/// Returns the part of a row's ledger that is about the objects `names`; `None` if the ledger does not list all of
/// them.
fn ledger_of(told: &Ledger, names: &[&str]) -> Option<Ledger> {
    let top: Vec<_> = told.top.iter().filter(|object| names.contains(&&*object.name)).cloned().collect();
    if told.level > 0 || top.len() < names.len() {
        return None;
    }
    let sum = |of: &dyn Fn(&systoll_model::LedgerObject) -> u64| top.iter().map(of).fold(0u64, u64::saturating_add);
    let (looks, calls) = (sum(&|o| o.looks), sum(&|o| o.calls));
    let repeats = sum(&|o| (o.calls as f64 * o.same as f64 / o.looks.max(1) as f64).round() as u64);
    let squares = (told.squares as f64 * calls as f64 / told.calls.max(1) as f64).round() as u64;
    let objects = top.len() as u64;
    // The ledger gives `other_way` for the whole row only.
    Some(Ledger {
        row: told.row,
        looks,
        calls,
        squares,
        repeats,
        objects,
        relative: told.relative,
        top,
        ..Ledger::default()
    })
}

/// Returns a ledger without one part.
fn rest_of(told: Ledger, part: &Ledger) -> Ledger {
    let of_part = |name: &str| part.top.iter().any(|object| *object.name == *name);
    let known = told.repeats.saturating_add(told.other_way).saturating_sub(part.repeats);
    let repeats = known.min(told.repeats);
    Ledger {
        looks: told.looks.saturating_sub(part.looks),
        calls: told.calls.saturating_sub(part.calls),
        squares: told.squares.saturating_sub(part.squares),
        repeats,
        other_way: known - repeats,
        objects: told.objects.saturating_sub(part.objects),
        top: told.top.iter().filter(|object| !of_part(&object.name)).cloned().collect(),
        ..told
    }
}

/// Returns the number of a part's calls, estimated from the ledger's looks. The number is exact where each look
/// represents one call. Calls that no look represents may be the part's as well; `by_windows` estimates how many of
/// them are.
fn by_ledger(part: &Ledger, told: &Ledger, calls: u64, by_windows: Estimate) -> Estimate {
    let share = (part.calls as f64 / told.calls as f64).min(1.0);
    let counted = told.squares == told.calls;
    let scatter = if counted { 0.0 } else { 2.0 * (share * (1.0 - share) / told.observations().max(1.0)).sqrt() };
    let of_looks = estimate(share, scatter, told.calls);
    let missing = calls.saturating_sub(told.calls);
    let high = of_looks.high.saturating_add(missing);
    if missing as f64 <= CRUMBS * calls as f64 {
        return Estimate { high, ..of_looks };
    }
    let within = |n: u64| n.clamp(of_looks.low, high);
    Estimate { estimate: within(by_windows.estimate), low: within(by_windows.low), high: within(by_windows.high) }
}

/// Sets the number of calls about a finding's one object, where one of its rows may serve others: a script's row holds the calls
/// of all lines that use a function of the interpreter, and samples show whether one of compiled code has several callers. That
/// calls are about the object is not known where no window shows them.
pub(crate) fn note_shared(finding: &mut Finding, recording: &Recording) {
    let Some(name) = finding.what.as_deref().filter(|_| finding.calls_about.is_none()) else { return };
    let windows = finding.evidence.windows;
    let about = |id: &RowId| {
        let row = recording.row(*id);
        let calls = row.counts.calls;
        let is_shared = !row.lines.is_empty() || !recording.trunks_of(*id).is_empty();
        by_samples(*id, &[name], windows, recording, calls)
            .or_else(|| (is_shared && windows > 0).then(|| of_equal_samples(1.0, windows as f64, calls)))
            .unwrap_or(Estimate { estimate: calls, low: calls, high: calls })
    };
    let all = finding.rows.iter().map(about).fold(Estimate::default(), Estimate::and);
    finding.calls_about = (all.low < finding.calls).then_some(all);
}

/// Returns the number of the calls about the objects `names`, estimated from samples by object, and from `more` windows that
/// show such calls only; `None` if the row has no samples, or more objects than these distinguish.
fn by_samples(row: RowId, names: &[&str], more: u64, recording: &Recording, calls: u64) -> Option<Estimate> {
    let samples = recording.object_samples_of(row);
    let sum = |of: &dyn Fn(&ObjectSample) -> u64| samples.iter().map(of).fold(0u64, u64::saturating_add) as f64;
    let is_part = |sample: &ObjectSample| sample.object.as_deref().is_some_and(|name| names.contains(&name));
    let (all, squares) = (sum(&|sample| sample.weight), sum(&|sample| sample.squares));
    let known = |name: &&str| samples.iter().any(|sample| sample.object.as_deref() == Some(*name));
    if all < 1.0 || squares < 1.0 || !names.iter().all(known) {
        return None;
    }
    let share = sum(&|sample| if is_part(sample) { sample.weight } else { 0 }) / all;
    // So many samples of equal weight say as much as these.
    let sampled = all * all / squares;
    let n = sampled + more as f64;
    Some(of_equal_samples((share * sampled + more as f64) / n, n, calls))
}

/// Returns the number of calls with a share that `n` samples show. The share is kept from 0 and 1, where it would seem exact.
fn of_equal_samples(share: f64, n: f64, calls: u64) -> Estimate {
    let safe = (share * n + 1.0) / (n + 2.0);
    estimate(share, 2.0 * (safe * (1.0 - safe) / n).sqrt(), calls)
}

/// Returns the number of a part's calls, estimated from windows. Each octave of the row's count has the weight of its
/// size; the interval comes from the scatter between windows.
fn by_windows(row: &RowSeen<'_>, is: &[bool], calls: u64) -> Estimate {
    let mut by_octave: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let mut by_window: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for (seen, is) in row.calls.iter().zip(is) {
        let add = |of: &mut (u64, u64)| *of = (of.0 + 1, of.1 + u64::from(*is));
        add(by_octave.entry(seen.call.nth.max(1).ilog2()).or_default());
        add(by_window.entry(seen.at.0).or_default());
    }
    let octaves = octaves(calls, by_octave.keys().copied());
    let of = |(size, nearest): (u64, u32)| {
        let (all, some) = by_octave.get(&nearest).copied().unwrap_or_default();
        size as f64 * some as f64 / all.max(1) as f64
    };
    let share = octaves.map(of).sum::<f64>() / calls.max(1) as f64;
    if row.calls.len() as u64 >= calls {
        return estimate(is.iter().filter(|is| **is).count() as f64 / calls.max(1) as f64, 0.0, calls);
    }
    let (all, some) = by_window.values().fold((0, 0), |(a, s), w| (a + w.0, s + w.1));
    let mean = some as f64 / all.max(1) as f64;
    let square = |w: &(u64, u64)| (w.1 as f64 - mean * w.0 as f64).powi(2);
    let scatter = 2.0 * by_window.values().map(square).sum::<f64>().sqrt() / all.max(1) as f64;
    // The two ends of a window may cut off one call more of one part than of the other.
    let edges = 0.5 * by_window.len() as f64 / all.max(1) as f64;
    estimate(share, scatter + edges, calls)
}

fn estimate(share: f64, scatter: f64, calls: u64) -> Estimate {
    let of = |share: f64| share.clamp(0.0, 1.0) * calls as f64;
    let estimate = (of(share).round() as u64).min(calls);
    let low = (of(share - scatter).floor() as u64).min(estimate);
    Estimate { estimate, low, high: (of(share + scatter).ceil() as u64).clamp(estimate, calls) }
}

/// Returns the mean time of a part's calls in windows, ns, without waits and without the dearest call, which an interrupt
/// may have made dear. Not the median: of the files that pip opens it makes a quarter, and these take 99 % of the time.
fn mean_ns(row: &RowSeen<'_>, parts: &[usize], at: usize) -> f64 {
    let of_part = row.calls.iter().zip(parts).filter(|(_, part)| **part == at);
    mean_but_dearest(of_part.map(|(c, _)| c.call.elapsed_ns.saturating_sub(c.call.waited_ns.unwrap_or(0))))
}

/// Returns the mean of all times but the greatest, at least 1; the only one if there is one.
fn mean_but_dearest(times: impl Iterator<Item = u64>) -> f64 {
    let (mut n, mut sum, mut most) = (0u64, 0u64, 0);
    for ns in times {
        (n, sum, most) = (n + 1, sum.saturating_add(ns), most.max(ns));
    }
    let mean = if n > 1 { (sum - most) as f64 / (n - 1) as f64 } else { sum as f64 };
    mean.max(1.0)
}

impl SplitRecording {
    fn whole(recording: &Recording) -> Self {
        let origins = (0..recording.rows.len() as u32).map(|id| RowOrigin { row: RowId(id), calls: None }).collect();
        Self { recording: recording.clone(), origins }
    }

    /// Returns the views of the split recording's rows. A row that was not split keeps the likeness and the ledger of
    /// its original view.
    pub(crate) fn views<'a>(&'a self, shown: JudgedView<'a>) -> Vec<RowView<'a>> {
        let mut views = survey(&self.recording, shown.claims);
        for ((view, part), of_row) in views.iter_mut().zip(&self.origins).zip(shown.views) {
            if part.calls.is_none() {
                (view.like, view.ledger.told) = (of_row.like, of_row.ledger.told);
            }
        }
        views
    }

    /// Replaces a row by its parts.
    fn put(&mut self, row: &RowSeen<'_>, shares: Vec<RowPart>, recording: &Recording) {
        let whole = recording.row(row.id);
        let all: f64 = shares.iter().map(|share| share.fraction * share.weight).sum();
        let mut ids = Vec::new();
        self.recording.ledgers.retain(|ledger| ledger.row != row.id);
        for (at, share) in shares.iter().enumerate() {
            let id = if at == 0 { row.id } else { RowId(self.recording.rows.len() as u32) };
            let of_time = if all > 0.0 { share.fraction * share.weight / all } else { share.fraction };
            let failing = failing(row, &shares, at, &whole.counts);
            let counts = Counts { errors: failing, ..part_of(&whole.counts, share, of_time) };
            let part = RowOrigin { row: row.id, calls: Some(share.calls) };
            let new = systoll_model::Row { counts, ..whole.clone() };
            if at == 0 {
                if let Some(place) = self.recording.rows.get_mut(id.0 as usize) {
                    *place = new;
                }
                if let Some(place) = self.origins.get_mut(id.0 as usize) {
                    *place = part;
                }
            } else {
                self.recording.rows.push(new);
                self.origins.push(part);
            }
            self.recording.ledgers.extend(share.ledger.clone().map(|ledger| Ledger { row: id, ..ledger }));
            ids.push(id);
        }
        // Each window of the row is assigned to the largest part, whose calls occur most nearly as often as the whole
        // row's.
        let largest = ids.iter().zip(&shares).max_by_key(|(_, share)| share.calls.estimate).map(|(id, _)| *id);
        for window in self.recording.windows.iter_mut().filter(|window| window.row == row.id) {
            window.row = largest.unwrap_or(row.id);
        }
        self.renumber(row, &shares, &ids, whole.counts.calls);
    }

    /// Renumbers the calls that windows show, so that each is a call of its part. Its new number is that of the
    /// part's calls made by then, where calls that no window shows are shared out in proportion.
    fn renumber(&mut self, row: &RowSeen<'_>, shares: &[RowPart], ids: &[RowId], calls: u64) {
        let part_of = |object: Option<usize>| part_with(object, shares);
        let mut seen: Vec<u64> = vec![0; shares.len()];
        row.calls.chunk_by(|a, b| a.call.nth == b.call.nth).for_each(|same| seen[part_of(same[0].object)] += 1);
        let all: u64 = seen.iter().sum();
        let unseen = calls.saturating_sub(all).max(1) as f64;
        let mut so_far: Vec<u64> = vec![0; shares.len()];
        for same in row.calls.chunk_by(|a, b| a.call.nth == b.call.nth) {
            let part = part_of(same[0].object);
            let before = same[0].call.nth.saturating_sub(1).saturating_sub(so_far.iter().sum::<u64>());
            so_far[part] += 1;
            let rate = shares[part].calls.estimate.saturating_sub(seen[part]) as f64 / unseen;
            let nth = so_far[part].saturating_add((before as f64 * rate).round() as u64);
            for twin in same {
                let window = self.recording.windows.get_mut(twin.at.0);
                if let Some(call) = window.and_then(|window| window.calls.get_mut(twin.at.1)) {
                    (call.row, call.nth) = (ids[part], nth);
                }
            }
        }
    }

    /// Rewrites a finding about parts as one about the original rows.
    pub(crate) fn restore(&self, finding: &mut Finding, recording: &Recording) {
        let of = |id: &RowId| self.origins.get(id.0 as usize).copied().unwrap_or(RowOrigin { row: *id, calls: None });
        let parts: Vec<RowOrigin> = finding.rows.iter().map(of).collect();
        if parts.iter().all(|part| part.calls.is_none()) {
            return;
        }
        let calls = |part: &RowOrigin| {
            let n = recording.row(part.row).counts.calls;
            part.calls.unwrap_or(Estimate { estimate: n, low: n, high: n })
        };
        let about = parts.iter().map(calls).fold(Estimate::default(), Estimate::and);
        let (mut rows, mut by_row): (Vec<RowId>, Vec<RowNeedless>) = (Vec::new(), Vec::new());
        let mut strands = Vec::new();
        for ((part, needless), strand) in parts.iter().zip(&finding.by_row).zip(&finding.rows) {
            match rows.iter().position(|row| *row == part.row).and_then(|at| by_row.get_mut(at)) {
                Some(sum) => {
                    sum.calls = sum.calls.saturating_add(needless.calls);
                    sum.toll_ns = sum.toll_ns.saturating_add(needless.toll_ns);
                }
                None => {
                    rows.push(part.row);
                    strands.push(*strand);
                    by_row.push(*needless);
                }
            }
        }
        finding.calls = rows.iter().fold(0u64, |sum, id| sum.saturating_add(recording.row(*id).counts.calls));
        finding.toll_ns = rows.iter().map(|id| toll(recording, recording.row(*id))).sum::<f64>().round() as u64;
        // The bounds can't be narrower than those of the number of calls about the object.
        let needless = finding.needless;
        let scaled = |n: u64, bound: u64| (n as f64 * bound as f64 / about.estimate.max(1) as f64).round() as u64;
        finding.needless.low = scaled(needless.low, about.low).min(needless.estimate);
        finding.needless.high =
            scaled(needless.high, about.high).clamp(needless.estimate, finding.calls.max(needless.estimate));
        if let Some(gain) = &mut finding.expected_gain {
            gain.low = scaled(gain.low, about.low).min(gain.low);
            gain.high = scaled(gain.high, about.high).max(gain.high);
        }
        finding.expected_gain = finding.expected_gain.filter(ExpectedGain::helps);
        finding.share_of_calls *= finding.calls as f64 / about.estimate.max(1) as f64;
        finding.calls_about = (about.low < finding.calls).then_some(about);
        (finding.rows, finding.strands, finding.by_row) = (rows, strands, by_row);
    }
}

/// Returns a part's share of the row's errors, in proportion to the errors in windows.
fn failing(row: &RowSeen<'_>, shares: &[RowPart], at: usize, counts: &Counts) -> BTreeMap<systoll_model::Errno, u64> {
    let of = |(errno, calls): (&systoll_model::Errno, &u64)| {
        let failed = |c: &&SeenCall<'_>| c.call.errno() == Some(*errno);
        let all = row.calls.iter().filter(failed).count();
        let here = row.calls.iter().filter(failed).filter(|c| part_with(c.object, shares) == at).count();
        let share = if all > 0 { here as f64 / all as f64 } else { shares.get(at).map_or(0.0, |share| share.fraction) };
        (*errno, (share * *calls as f64).round() as u64)
    };
    counts.errors.iter().map(of).filter(|(_, calls)| *calls > 0).collect()
}

/// Returns the figures of a part of a row; `of_time` is its share of the row's time, 0 to 1.
fn part_of(whole: &Counts, share: &RowPart, of_time: f64) -> Counts {
    let time = |ns: u64| (ns as f64 * of_time).round() as u64;
    let calls = |n: u64| ((n as f64 * share.fraction).round() as u64).min(share.calls.estimate);
    Counts {
        calls: share.calls.estimate,
        unreturned: 0,
        bytes: (whole.bytes as f64 * share.fraction).round() as u64,
        toll_ns: whole.toll_ns.map(time),
        waited_ns: whole.waited_ns.map(time),
        elapsed_ns: time(whole.elapsed_ns),
        startup_calls: calls(whole.startup_calls),
        startup_waited_ns: time(whole.startup_waited_ns),
        ..whole.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::mean_but_dearest;

    #[test]
    fn a_part_costs_what_its_own_calls_take() {
        // Opening a file that is there takes 2 µs, making one 100 µs in a quarter of the cases. One interrupt is nothing.
        let opened = mean_but_dearest((0..40).map(|n| if n == 7 { 900_000 } else { 2_000 }));
        let made = mean_but_dearest((0..41).map(|n| if n % 4 == 0 { 100_000 } else { 4_000 }));
        assert!(opened == 2_000.0 && (25_000.0..32_000.0).contains(&made), "{opened} {made}");
        assert_eq!((mean_but_dearest([5].into_iter()), mean_but_dearest([].into_iter())), (5.0, 1.0));
    }
}
