//! Groups that only windows and looks tell apart: descriptors' targets and lines of scripts.

use super::group::{Common, Group, add};
use super::place::caller;
use crate::code::author::ApiShare;
use crate::groups::strands::lines as lines_of;
use crate::pool::Pools;
use crate::words::language_api::api_shares;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;
use systoll_model::{FrameId, ObjectSample, Recording, Row, RowId, RowLine, RowTrunk, StackId, Sysno, octaves};

/// A row's calls in windows.
#[derive(Default)]
struct LookTally<'a> {
    /// Number of calls by octave and descriptor's target.
    octaves: BTreeMap<u32, BTreeMap<Option<&'a Arc<str>>, u64>>,
    /// The windows that hold calls of the row.
    windows: HashSet<usize>,
    calls: u64,
}

/// The estimated number of calls in a part of a row.
struct Part {
    calls: f64,
    low: f64,
    high: f64,
    /// Number of the calls that were sampled; `None` if the number does not rest on samples.
    looked_at: Option<u64>,
}

/// Returns the calls grouped by the targets of their descriptors. Calls of rows without windows are `Unknown`.
pub(super) fn by_fd(recording: &Recording, rows: &[(RowId, &Row)]) -> Vec<Group> {
    let seen = seen(recording);
    let mut sums = Sums::default();
    for (id, row) in rows {
        if row.syscall.signature().is_none_or(|s| s.fd_arg().is_none()) {
            sums.put(Common::None, || Common::None, (*id, row), &whole(row));
            continue;
        }
        match seen.get(id) {
            Some(seen) if seen.calls > 0 => {
                for (target, part) in parts(seen, row.counts.calls) {
                    let common = target.map_or_else(|| unknown(row.syscall), |t| Common::File(t.clone()));
                    sums.put(common.clone(), || common, (*id, row), &part);
                }
            }
            _ => {
                let part = Part { low: 0.0, looked_at: Some(0), ..whole(row) };
                sums.put(Common::Unknown, || Common::Unknown, (*id, row), &part);
            }
        }
    }
    sums.groups
}

/// Returns the calls grouped by the user's own position in code, as `key` tells positions apart. If an interpreter
/// made a row's calls for several lines of a script, each line has the share of the looks that met it; so has each
/// line that asked a pool of threads for a row's calls.
pub(super) fn by_place<K: Eq + Hash>(
    recording: &Recording,
    rows: &[(RowId, &Row)],
    key: impl Fn(FrameId) -> Option<K>,
    common: impl Fn(FrameId) -> Common,
) -> Vec<Group> {
    let mut sums = Sums::default();
    let pools = Pools::of(recording);
    for (id, row) in rows {
        let mut put = |frame: Option<FrameId>, part: &Part| {
            let frame = frame.filter(|f| key(*f).is_some());
            sums.put(frame.and_then(&key), || frame.map_or(Common::Unknown, &common), (*id, row), part);
        };
        let asked = pools.asked(row.process, *id);
        let seen = asked.iter().fold(0u64, |sum, line| sum.saturating_add(line.looks)) as f64;
        let put_asked = |share: f64, put: &mut dyn FnMut(Option<FrameId>, &Part)| {
            for line in &asked {
                put(Some(line.frame), &part(row, share * line.share, line.looks, seen));
            }
        };
        if row.lines.is_empty() {
            let share = if asked.is_empty() { 0.0 } else { pools.share_of_threads(*id).min(1.0) };
            put_asked(share, &mut put);
            if share <= 0.0 {
                put(caller(recording, row), &whole(row));
            } else if share < 1.0 {
                put(caller(recording, row), &part(row, 1.0 - share, pools.looks(*id), pools.looks(*id) as f64));
            }
            continue;
        }
        let (lines, effective) = sampled_lines(recording, *id, row);
        let (looks, all) = lines.iter().fold((0u64, 0u64), |(looks, all), line| {
            (looks.saturating_add(line.looks), all.saturating_add(line.weight))
        });
        let effective = if looks >= row.counts.calls { looks as f64 } else { effective };
        for line in lines.iter() {
            let share = line.weight as f64 / all.max(1) as f64;
            if !asked.is_empty() && pools.is_threads(*id, line.frame) {
                put_asked(share, &mut put);
                continue;
            }
            // Lines that other processes lend tell where the calls come from, and not how many.
            let part = match looks {
                0 => Part { calls: row.counts.calls as f64 * share, low: 0.0, ..whole(row) },
                _ => part(row, share, line.looks, effective),
            };
            // The sampled calls are a sure lower bound.
            let low = part.low.max(line.looks as f64).min(part.calls);
            put(Some(line.frame), &Part { low, looked_at: Some(line.looks), ..part });
        }
    }
    sums.groups
}

/// Returns the lines of scripts that make a row's calls, and the number of independent samples that their samples are worth. The
/// lines are taken from samples by object, if there are any: these are many more, as most of them cost no stack, and show better how
/// often each line makes the calls.
fn sampled_lines<'a>(recording: &Recording, id: RowId, row: &'a Row) -> (Cow<'a, [RowLine]>, f64) {
    let samples: Vec<&ObjectSample> =
        recording.object_samples_of(id).iter().filter(|sample| sample.line.is_some()).collect();
    let all = samples.iter().map(|sample| sample.weight as f64).sum::<f64>();
    let squares = samples.iter().map(|sample| sample.squares as f64).sum::<f64>();
    if samples.is_empty() || squares <= 0.0 {
        return (Cow::Borrowed(&row.lines), effective_looks(of_lines(&row.lines)));
    }
    let mut lines = lines_of(&samples);
    // The samples of objects leave out the first calls.
    let is_new = |line: &&RowLine| samples.iter().all(|sample| sample.line != Some(line.frame));
    let first = row.lines.iter().filter(is_new).map(|line| RowLine { weight: line.looks, ..*line });
    lines.extend(first);
    (Cow::Owned(lines), all * all / squares)
}

/// Returns the calls grouped by the public function that the user's code called, by the name that its language gives it. If
/// one function of the C library serves several functions of the language, each has the share of the looks that met it.
pub(super) fn by_api(recording: &Recording, rows: &[(RowId, &Row)]) -> Vec<Group> {
    let mut sums = Sums::default();
    for (id, row) in rows {
        let shares = api_shares(recording, *id);
        let is_one = shares.len() == 1;
        let looks = row.lines.iter().fold(0u64, |sum, line| sum.saturating_add(line.looks));
        for ApiShare { name, share } in shares {
            let api = name.map(|name| (Arc::from(name), None)).or_else(|| Some((row.api.clone()?, row.api_module)));
            let seen = (looks as f64 * share).round() as u64;
            let part = if is_one { whole(row) } else { part(row, share, seen, effective_looks(of_lines(&row.lines))) };
            let common = || api.clone().map_or(Common::Unknown, |(api, module)| Common::Api(api, module));
            sums.put(api.clone(), common, (*id, row), &part);
        }
    }
    sums.groups
}

/// Returns the part of a row's calls that a line makes: its `share`, by `n` of the looks at the row, which together are
/// worth `looks` independent ones.
fn part(row: &Row, share: f64, n: u64, looks: f64) -> Part {
    let all = row.counts.calls as f64;
    let (low, high) = if looks >= all { (share, share) } else { bounds(share, looks) };
    Part { calls: all * share, low: all * low, high: all * high, looked_at: Some(n) }
}

/// Returns the 95 % bounds of a line's share of its row's calls, 0 to 1; `None` if the looks at the row do not tell any.
pub fn line_bounds(row: &Row, line: &RowLine) -> Option<(f64, f64)> {
    let looks = row.lines.iter().fold(0u64, |sum, l| sum.saturating_add(l.looks));
    let share = row.share(line);
    match looks {
        0 => None,
        _ if looks >= row.counts.calls => Some((share, share)),
        _ => Some(bounds(share, effective_looks(of_lines(&row.lines)))),
    }
}

/// Returns the 95 % bounds of the share of a row's calls, 0 to 1, that came by the stack `above` its context; `None` if the
/// number of samples of its stacks is not known.
pub fn caller_bounds(recording: &Recording, row: RowId, above: StackId) -> Option<(f64, f64)> {
    let trunks = recording.trunks_of(row);
    let sum = |of: &dyn Fn(&RowTrunk) -> u64| trunks.iter().map(of).fold(0u64, u64::saturating_add);
    let (looks, all) = (sum(&|trunk| trunk.looks), sum(&|trunk| trunk.weight));
    let of = sum(&|trunk| if trunk.stack == above { trunk.weight } else { 0 });
    if looks == 0 || all == 0 {
        return None;
    }
    let share = of as f64 / all as f64;
    let is_exact = looks >= recording.row(row).counts.calls;
    Some(if is_exact {
        (share, share)
    } else {
        bounds(share, effective_looks(trunks.iter().map(|t| (t.looks, t.weight))))
    })
}

/// Returns the samples of lines, each as its number and the calls that they stand for.
fn of_lines(lines: &[RowLine]) -> impl Iterator<Item = (u64, u64)> + '_ {
    lines.iter().map(|line| (line.looks, line.weight))
}

/// Returns the number of independent samples that samples of several lines or callers are worth, each given as its number
/// and the calls that they stand for together. A sample stands for as many calls as its octave has, so a few late ones
/// decide the shares (Kish's effective sample size).
fn effective_looks(sampled: impl Iterator<Item = (u64, u64)>) -> f64 {
    let add = |(all, squares): (f64, f64), (looks, weight): (u64, u64)| {
        let weight = weight as f64;
        (all + weight, squares + weight * weight / looks.max(1) as f64)
    };
    let (all, squares) = sampled.fold((0.0, 0.0), add);
    if squares > 0.0 { all * all / squares } else { 1.0 }
}

/// Returns the 95 % bounds of a share that was found in `n` independent samples: Wilson's interval, or where all samples
/// were alike, the bound of the share of those that differ.
fn bounds(share: f64, n: f64) -> (f64, f64) {
    /// Quantile of the normal distribution for a two-sided interval of 95 %.
    const Z: f64 = 1.96;
    let n = n.max(1.0);
    if share >= 1.0 {
        return (1.0 - unseen(n), 1.0);
    }
    let scale = 1.0 + Z * Z / n;
    let middle = (share + Z * Z / (2.0 * n)) / scale;
    let half = Z / scale * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    ((middle - half).clamp(0.0, share), (middle + half).clamp(share, 1.0))
}

/// Returns the upper 95 % bound of the share of a row's calls that a line may have without one of the `looks` at the
/// row meeting it.
pub fn unseen_share(looks: u64, calls: u64) -> f64 {
    match looks {
        0 => 1.0,
        _ if looks >= calls => 0.0,
        _ => unseen(looks as f64),
    }
}

/// Returns the upper 95 % bound of the share of calls that differ, if `n` sampled calls were all alike (1 -
/// 0.05^(1/n)).
fn unseen(n: f64) -> f64 {
    1.0 - 0.05_f64.powf(1.0 / n.max(1.0))
}

/// Returns the group of a call without a known descriptor: `None` if the call may have none (an anonymous mapping, a
/// path that no descriptor starts), else `Unknown`.
fn unknown(syscall: Sysno) -> Common {
    let optional = syscall.name().is_some_and(|n| n == "mmap")
        || syscall.signature().is_some_and(|s| s.args.iter().any(|a| a.kind == systoll_model::ArgKind::DirFd));
    if optional { Common::None } else { Common::Unknown }
}

fn seen(recording: &Recording) -> HashMap<RowId, LookTally<'_>> {
    let mut seen: HashMap<RowId, LookTally<'_>> = HashMap::new();
    let mut counted = HashSet::new();
    for (at, window) in recording.windows.iter().enumerate() {
        for call in window.calls.iter().filter(|c| c.nth > 0) {
            // The number repeats where each thread counts the row by itself, and a merged recording may hold a call
            // twice.
            if !counted.insert((call.row, call.nth, window.process, window.thread)) {
                continue;
            }
            let row = seen.entry(call.row).or_default();
            *row.octaves.entry(call.nth.ilog2()).or_default().entry(call.fd.as_ref()).or_default() += 1;
            row.windows.insert(at);
            row.calls += 1;
        }
    }
    seen
}

fn whole(row: &Row) -> Part {
    let calls = row.counts.calls as f64;
    Part { calls, low: calls, high: calls, looked_at: None }
}

/// Returns the parts of a row's `calls` calls. Each octave has the weight of its size, not of its windows.
fn parts<'a>(seen: &LookTally<'a>, calls: u64) -> Vec<(Option<&'a Arc<str>>, Part)> {
    let mut parts: BTreeMap<Option<&Arc<str>>, (f64, u64)> = BTreeMap::new();
    for targets in seen.octaves.values() {
        for (target, n) in targets {
            parts.entry(*target).or_default().1 += n;
        }
    }
    let all = calls as f64;
    if seen.calls >= calls {
        let exact = |looked_at: u64| {
            let n = all * looked_at as f64 / seen.calls as f64;
            Part { calls: n, low: n, high: n, looked_at: Some(looked_at) }
        };
        return parts.into_iter().map(|(target, (_, n))| (target, exact(n))).collect();
    }
    let mut weight = 0.0;
    for (size, nearest) in octaves(calls, seen.octaves.keys().copied()) {
        let (Some(targets), size) = (seen.octaves.get(&nearest), size as f64) else { continue };
        let looked_at: u64 = targets.values().sum();
        weight += size;
        for (target, n) in targets {
            parts.entry(*target).or_default().0 += size * *n as f64 / looked_at as f64;
        }
    }
    let part = |(estimate, looked_at): (f64, u64)| {
        let share = estimate / weight.max(1.0);
        let (low, high) = bounds(share, seen.windows.len() as f64);
        // The sampled calls are a sure lower bound.
        Part {
            calls: all * share,
            low: (all * low).max(looked_at as f64),
            high: all * high,
            looked_at: Some(looked_at),
        }
    };
    parts.into_iter().map(|(target, p)| (target, part(p))).collect()
}

/// Sums of groups, in the order in which the groups were first met.
struct Sums<K> {
    at: HashMap<K, usize>,
    groups: Vec<Group>,
}

impl<K> Default for Sums<K> {
    fn default() -> Self {
        Self { at: HashMap::new(), groups: Vec::new() }
    }
}

impl<K: Eq + Hash> Sums<K> {
    fn put(&mut self, key: K, common: impl FnOnce() -> Common, (id, row): (RowId, &Row), part: &Part) {
        let index = *self.at.entry(key).or_insert(self.groups.len());
        if index == self.groups.len() {
            self.groups.push(Group { common: common(), failed: Some(0), ..Group::default() });
        }
        let Some(group) = self.groups.get_mut(index) else { return };
        let share = part.calls / (row.counts.calls as f64).max(1.0);
        let of = |ns: u64| (ns as f64 * share).round() as u64;
        group.calls = group.calls.saturating_add(part.calls.round() as u64);
        group.low = group.low.saturating_add(part.low.floor() as u64);
        group.high = group.high.saturating_add(part.high.ceil() as u64);
        // A row's count of failed calls doesn't tell in which part they failed.
        let failed = Some(row.counts.failed()).filter(|n| *n == 0 || share >= 1.0);
        group.failed = group.failed.zip(failed).map(|(a, b)| a.saturating_add(b));
        group.toll_ns = add(group.toll_ns, row.counts.toll_ns.map(of));
        group.waited_ns = add(group.waited_ns, row.counts.waited_ns.map(of));
        group.looked_at = add(group.looked_at, part.looked_at);
        group.rows.push(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{Counts, ProcessId};

    fn line(frame: u32, looks: u64, weight: u64) -> RowLine {
        RowLine { frame: FrameId(frame), looks, weight }
    }

    #[test]
    fn one_look_that_stands_for_half_of_the_calls_proves_little() {
        // Looks at calls 1, 2, 4 … of 1,024: each stands for its octave.
        let lines: Vec<RowLine> = (0..10).map(|n| line(n, 1, 1 << n)).collect();
        let effective = effective_looks(of_lines(&lines));
        assert!((2.9..3.1).contains(&effective), "{effective}");
        let (low, high) = bounds(0.5, effective);
        assert!((0.12..0.13).contains(&low) && (0.87..0.88).contains(&high), "{low} {high}");
        assert!((effective_looks(of_lines(&[line(0, 40, 400), line(1, 60, 600)])) - 100.0).abs() < 0.1);
        assert!((effective_looks(of_lines(&[])) - 1.0).abs() < 0.1);
    }

    #[test]
    fn samples_by_object_tell_the_lines_better_than_stacks_alone() {
        let sample = |frame: u32, looks: u64, weight: u64| ObjectSample {
            row: RowId(0),
            object: None,
            line: Some(FrameId(frame)),
            above: StackId(0),
            whole: StackId(0),
            looks,
            weight,
            squares: weight * weight / 40,
        };
        let mut row = Row::new(ProcessId(0), Sysno::named("stat"), Counts { calls: 1_000, ..Counts::default() });
        row.lines = vec![line(0, 3, 500), line(1, 3, 499), line(2, 1, 1)];
        let recording = Recording {
            rows: vec![row.clone()],
            object_samples: vec![sample(0, 20, 800), sample(1, 10, 200)],
            ..Recording::default()
        };
        let groups = by_place(&recording, &[(RowId(0), &row)], Some, |_| Common::Unknown);
        let calls: Vec<(u64, bool)> = groups.iter().map(|g| (g.calls, (g.low..=g.high).contains(&800))).collect();
        assert_eq!(calls, [(799, true), (200, false), (1, false)]);
    }

    #[test]
    fn bounds_hold_the_share_nineteen_times_in_twenty() {
        let mut random = systoll_model::Random::new(7);
        for (n, truth) in [(10u32, 0.5), (30, 0.2), (100, 0.5), (1000, 0.05)] {
            let held = (0..400).filter(|_| {
                let seen = (0..n).filter(|_| (random.below(1_000_000) as f64) < truth * 1e6).count();
                let (low, high) = bounds(seen as f64 / f64::from(n), f64::from(n));
                (low..=high).contains(&truth)
            });
            let held = held.count();
            assert!(held >= 365, "{n} samples of {truth}: {held} of 400");
        }
    }
}
