//! Compares runs with a budget.

use super::{Bound, Budget, Limit};
use crate::change::SourcePlace;
use crate::findings;
use crate::range::Range;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use systoll_judge::{By, Common, Judgement, grouped};
use systoll_model::{FrameId, Location, Recording, Row, Sysno};

/// One run of the program.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The recording. [`Recording::check`] holds for it.
    pub recording: &'a Recording,
    /// The judgement of the recording.
    pub judgement: &'a Judgement,
    /// Number of units of work that the run did, if it is known.
    pub units: Option<f64>,
}

/// A figure of the runs and its bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The name of the figure's limit: `openat < read_config`.
    pub name: String,
    /// The figure: `calls`, `failed` or `rate`.
    pub figure: &'static str,
    /// The limit on the figure.
    pub bound: Bound,
    /// The figure in the run that comes nearest to the bound.
    pub value: f64,
    /// The lowest figure of all runs.
    pub low: f64,
    /// The highest figure of all runs.
    pub high: f64,
    /// True if no run keeps the bound.
    pub broken: bool,
    /// The caller with most of the calls.
    pub who: Option<Who>,
    /// The line of the limit in the budget, from 1; 0 if no line is about these calls.
    pub at_line: usize,
}

/// A caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// The system call.
    pub syscall: Sysno,
    /// The public function that the caller calls.
    pub api: Option<Arc<str>>,
    /// The caller's place in the source, or only its function.
    pub place: Option<SourcePlace>,
    /// The program.
    pub program: Arc<str>,
    /// The number of calls that the caller makes.
    pub calls: u64,
}

/// A finding of the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldFinding {
    /// The finding's cause, or its kind if the cause is not known.
    pub id: Arc<str>,
    /// The finding's explanation.
    pub why: String,
    /// The finding's cures, the best first.
    pub stop: Vec<String>,
    /// Number of needless calls.
    pub needless: u64,
    /// The place that makes the calls.
    pub place: Option<SourcePlace>,
    /// True if the budget accepts the finding, or does not limit findings.
    pub known: bool,
}

/// A breach that concerns no limit.
#[derive(Clone, Debug, PartialEq)]
pub enum Breach {
    /// The budget requires exact counts, and no run is exact. Holds the reason.
    NotExact(String),
    /// A limit needs the units of work, which the command did not print.
    NoUnits,
}

/// The result of comparing runs with a budget.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    /// The figures of each limit in the budget's order, then those of system calls that no limit
    /// names.
    pub measured: Vec<Measured>,
    /// Findings of all runs, costliest first.
    pub findings: Vec<HeldFinding>,
    /// Breaches that concern no limit.
    pub breaches: Vec<Breach>,
    /// Number of runs.
    pub runs: usize,
}

impl Held {
    /// Returns true if nothing breaks the budget.
    pub fn holds(&self) -> bool {
        self.breaches.is_empty() && self.broken() == 0 && self.findings.iter().all(|f| f.known)
    }

    /// Returns the number of broken limits.
    pub fn broken(&self) -> usize {
        self.measured.iter().filter(|m| m.broken).count()
    }
}

/// Compares `runs` with `budget`. A limit holds if one run keeps it.
pub fn hold(budget: &Budget, runs: &[Run<'_>]) -> Held {
    let mut held = Held { runs: runs.len(), ..Held::default() };
    if budget.exact && !runs.iter().any(|r| r.recording.exact()) {
        let problem = runs.iter().flat_map(|r| &r.recording.problems).find(|p| p.kind.spoils_exactness());
        held.breaches.push(Breach::NotExact(problem.map_or_else(|| "calls were lost".into(), |p| p.text.clone())));
    }
    if budget.limits.iter().any(|l| l.rate.is_some()) && runs.iter().any(|r| r.units.is_none()) {
        held.breaches.push(Breach::NoUnits);
    }
    for limit in &budget.limits {
        held.measured.extend(measure(limit, runs));
    }
    if let Some(bound) = budget.others {
        held.measured.extend(others(budget, bound, runs));
    }
    held.findings = found(budget, runs);
    held
}

/// Returns the figures of one limit.
pub(super) fn measure(limit: &Limit, runs: &[Run<'_>]) -> Vec<Measured> {
    let counts: Vec<Interval> = runs.iter().map(|run| count(limit, run)).collect();
    let most = runs.iter().zip(&counts).max_by(|(_, a), (_, b)| a.high.total_cmp(&b.high));
    let who = most.and_then(|(run, _)| who(limit, run.recording));
    let mut measured = Vec::new();
    if let Some(bound) = limit.calls {
        measured.push(figure(limit, "calls", bound, &counts, &who));
    }
    if let Some(bound) = limit.failed {
        let failed = |run: &Run<'_>| {
            let rows = run.recording.rows.iter().filter(|row| limit.selector.selects(run.recording, row));
            Interval::exactly(rows.fold(0u64, |sum, row| sum.saturating_add(row.counts.failed())) as f64)
        };
        measured.push(figure(limit, "failed", bound, &runs.iter().map(failed).collect::<Vec<_>>(), &who));
    }
    if let Some(bound) = limit.rate {
        let per = |(run, count): (&Run<'_>, &Interval)| Some(count.divided(run.units?));
        let rates: Vec<Interval> = runs.iter().zip(&counts).filter_map(per).collect();
        if !rates.is_empty() {
            measured.push(figure(limit, "rate", bound, &rates, &who));
        }
    }
    measured
}

/// A figure with its bounds.
#[derive(Clone, Copy)]
struct Interval {
    low: f64,
    middle: f64,
    high: f64,
}

impl Interval {
    fn exactly(figure: f64) -> Self {
        Self { low: figure, middle: figure, high: figure }
    }

    fn divided(self, by: f64) -> Self {
        Self { low: self.low / by, middle: self.middle / by, high: self.high / by }
    }

    /// Returns the distance from the interval to the bound; 0 if they overlap.
    fn excess(self, bound: Bound) -> f64 {
        if self.low <= bound.high && self.high >= bound.low { 0.0 } else { bound.excess(self.middle) }
    }
}

fn figure(limit: &Limit, figure: &'static str, bound: Bound, runs: &[Interval], who: &Option<Who>) -> Measured {
    let nearest = runs.iter().min_by(|a, b| a.excess(bound).total_cmp(&b.excess(bound)));
    Measured {
        name: limit.name.clone(),
        figure,
        bound,
        value: nearest.map_or(0.0, |i| i.middle),
        low: runs.iter().map(|i| i.low).fold(f64::INFINITY, f64::min).min(f64::MAX),
        high: runs.iter().map(|i| i.high).fold(0.0, f64::max),
        broken: nearest.is_some_and(|i| i.excess(bound) > 0.0),
        who: who.clone(),
        at_line: limit.at_line,
    }
}

fn count(limit: &Limit, run: &Run<'_>) -> Interval {
    let Some(line) = &limit.line else {
        return Interval::exactly(limit.selector.count(run.recording) as f64);
    };
    let groups = grouped(run.recording, By::Line, limit.selector.calls.as_ref()).groups;
    let mut sum = Interval::exactly(0.0);
    for group in groups.iter().filter(|g| matches!(g.common, Common::Line(id) if is_line(run.recording, id, line))) {
        sum.low += group.low as f64;
        sum.middle += group.calls as f64;
        sum.high += group.high as f64;
    }
    sum
}

/// Returns true if a frame stands at `FILE:NUMBER`. `FILE` may be the end of the path.
fn is_line(recording: &Recording, id: FrameId, wanted: &str) -> bool {
    let Some((file, number)) = wanted.rsplit_once(':') else { return false };
    let Some(place) = recording.frames.get(id.0 as usize).and_then(|f| f.location()) else { return false };
    let ends = |path: &str| path.strip_suffix(file).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
    place.line.map(|n| n.to_string()).as_deref() == Some(number) && place.file.as_deref().is_some_and(ends)
}

/// Returns the caller of most of a limit's calls.
fn who(limit: &Limit, recording: &Recording) -> Option<Who> {
    let rows = recording.rows.iter().filter(|row| limit.selector.selects(recording, row));
    let place =
        |row: &Row| limit.line.as_ref().is_none_or(|line| row.user.is_some_and(|id| is_line(recording, id, line)));
    caller_of_most(recording, rows.filter(|row| place(row)), &|row| limit.selector.calls_of(&row.counts))
}

fn caller_of_most<'a>(
    recording: &'a Recording,
    rows: impl Iterator<Item = &'a Row>,
    calls: &dyn Fn(&Row) -> u64,
) -> Option<Who> {
    let location = |row: &Row| row.user.and_then(|id| recording.frames.get(id.0 as usize)?.location());
    // Contexts with the same place are one caller.
    let mut at: HashMap<Caller<'_>, usize> = HashMap::new();
    let mut callers: Vec<(u64, &Row)> = Vec::new();
    for row in rows.filter(|row| calls(row) > 0) {
        let caller = Caller { syscall: row.syscall, api: row.api.as_deref(), place: location(row) };
        let index = *at.entry(caller).or_insert(callers.len());
        match callers.get_mut(index) {
            Some((sum, _)) => *sum = sum.saturating_add(calls(row)),
            None => callers.push((calls(row), row)),
        }
    }
    // The first of several callers with equally many calls counts.
    let (most, row) = callers.into_iter().rev().max_by_key(|(calls, _)| *calls)?;
    let location = location(row);
    Some(Who {
        syscall: row.syscall,
        api: row.api.clone(),
        place: location.map(SourcePlace::from),
        program: recording.processes.get(row.process.0 as usize).map_or("?", |p| p.name()).into(),
        calls: most,
    })
}

#[derive(PartialEq, Eq, Hash)]
struct Caller<'a> {
    syscall: Sysno,
    api: Option<&'a str>,
    place: Option<&'a Location>,
}

/// Returns the figures of the system calls that no limit names, each by itself. A limit on all
/// calls names none.
fn others(budget: &Budget, bound: Bound, runs: &[Run<'_>]) -> Vec<Measured> {
    let made = unnamed(budget, runs);
    let limit = |call: Sysno| Limit {
        selector: crate::select::Selector { calls: Some(BTreeSet::from([call])), ..Default::default() },
        line: None,
        calls: Some(bound),
        failed: None,
        rate: None,
        name: format!("{call} (no limit names it)"),
        at_line: 0,
    };
    let each = made.into_iter().flat_map(|call| measure(&limit(call), runs));
    each.filter(|m| m.broken).collect()
}

/// Returns the system calls of the runs that no limit names.
pub(super) fn unnamed(budget: &Budget, runs: &[Run<'_>]) -> BTreeSet<Sysno> {
    let named: BTreeSet<Sysno> =
        budget.limits.iter().filter_map(|l| l.selector.calls.as_ref()).flatten().copied().collect();
    let rows = runs.iter().flat_map(|r| &r.recording.rows).filter(|row| row.counts.calls > 0);
    rows.map(|row| row.syscall).filter(|call| !named.contains(call)).collect()
}

/// Returns the findings that all runs have.
fn found(budget: &Budget, runs: &[Run<'_>]) -> Vec<HeldFinding> {
    let mut in_runs: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for run in runs {
        let ids: BTreeSet<Arc<str>> = run.judgement.findings.iter().map(findings::id).collect();
        ids.into_iter().for_each(|id| *in_runs.entry(id).or_default() += 1);
    }
    let Some(first) = runs.first() else { return Vec::new() };
    let always = first.judgement.findings.iter().filter(|f| in_runs.get(&findings::id(f)) == Some(&runs.len()));
    let held = always.map(|f| {
        let id = findings::id(f);
        let place = f.user.and_then(|user| first.recording.frames.get(user.0 as usize)?.location());
        HeldFinding {
            known: budget.findings.as_ref().is_none_or(|known| known.iter().any(|k| **k == *id)),
            id,
            why: f.why.clone(),
            stop: f.stop().into_iter().map(str::to_owned).collect(),
            needless: f.needless.estimate,
            place: place.map(SourcePlace::from),
        }
    });
    held.collect()
}

/// Returns the range of a limit's counts over the runs.
pub(super) fn range(limit: &Limit, runs: &[Run<'_>], failed: bool) -> Range {
    let of = |run: &Run<'_>| {
        if failed {
            let rows = run.recording.rows.iter().filter(|row| limit.selector.selects(run.recording, row));
            return rows.fold(0u64, |sum, row| sum.saturating_add(row.counts.failed()));
        }
        count(limit, run).middle.round() as u64
    };
    Range::of(&runs.iter().map(of).collect::<Vec<_>>())
}
