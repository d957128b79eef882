//! Calls per unit of work: "3 needless per request". A unit is a request, a connection, an item, a file: what the
//! program handles one after another. A call that begins a unit marks a round.
//!
//! The number is reported only if two observations agree: in windows, each round holds the same number of the
//! finding's calls; and in the exact counts, the finding's calls are a whole multiple of the marking calls.

use crate::collections::hash::{Map, Set};
use crate::evidence::survey::{self, RowView};
use crate::groups::judged_view::JudgedView;
use crate::results::finding::{Estimate, PerUnit, WorkUnit};
use crate::semantics::{COUNTERS, Effect, Lines, ObservedCall, TERMINALS, Unit, Way};
use systoll_model::{Class, Recording, Row, RowId, StackId, Sysno, Window};

/// Largest number of windows searched: a regular number shows in a few.
const WINDOWS: usize = 64;
/// Largest number of calls searched in a window.
const CALLS: usize = 256;
/// Least number of whole rounds in windows.
const ROUNDS: u64 = 8;
/// Least number of windows that show a mark.
const SEVERAL: u64 = 3;
/// Least number of rounds in a run: a few rounds show nothing regular.
const HABIT: u64 = 32;
/// Share of the rounds in windows, 0 to 1, that must have the same number of calls.
const SAME: f64 = 0.9;
/// Share of the rounds in windows, 0 to 1, that must have the same number of needless calls. It is lower than
/// [`SAME`]: near a window's ends fewer calls are known to be needless.
const SAME_CLAIMS: f64 = 0.6;
/// Least ratio of needless calls by windows to needless calls by rounds. It is below one, since
/// near a window's ends fewer calls are known to be needless.
const IN_ALL: f64 = 0.8;
/// Share of a row's calls in windows, 0 to 1, that must mark a round: only then is the row's count the number of
/// rounds.
const PURE: f64 = 0.98;
/// Largest relative distance of the counts from a whole multiple: first and last rounds and ends of connections may
/// differ.
const ABOUT: f64 = 0.02;

/// The system call and context of rows, in any process.
type CallPlace = (Sysno, StackId);

/// Calls in windows that may mark rounds, all of one system call and context.
#[derive(Default)]
struct Marks {
    /// Number of calls that did not fail.
    calls: u64,
    /// Number of the calls that did not fail, by the unit that they mark.
    marks: [u64; WorkUnit::ALL.len()],
    /// Number of whole rounds, by the number of their calls of the finding and the number of
    /// needless calls among these.
    rounds: Map<(u64, u64), u64>,
    windows: u64,
    /// Names of the files that were opened, read or written, at most [`FILES`] of them.
    files: Set<String>,
}

/// Largest number of files of a place that are told apart.
const FILES: usize = 1 << 10;

/// A finding's rows, and the number of their needless calls.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// The finding's rows.
    pub rows: &'a [RowId],
    /// True if weak claims count.
    pub weak: bool,
    /// Number of needless calls.
    pub needless: Estimate,
}

/// Returns the unit of work that a finding's calls accompany; of several, the nearest to the program's purpose.
pub(crate) fn per_unit(wanted: Wanted<'_>, shown: JudgedView<'_>) -> Option<PerUnit> {
    let mut marks: Map<CallPlace, Marks> = Map::default();
    let mut answers = Answers::default();
    let objects = objects(wanted.rows, shown.views);
    for at in windows(wanted.rows, shown.views) {
        if let Some(window) = shown.recording.windows.get(at) {
            count_rounds(window, at, wanted, shown, &mut marks, &mut answers);
        }
    }
    let calls = steady(wanted.rows.iter().map(|id| shown.recording.row(*id)), false);
    let of_place = |(place, marks): (&CallPlace, &Marks)| {
        let (per, found) = marks.agreed(&answers)?;
        // Calls on files are a unit that readers recognise only if the file is one of the finding's
        // objects.
        let of_file = matches!(per, WorkUnit::Opening | WorkUnit::Read | WorkUnit::Write);
        let of_other = !objects.is_empty() && marks.files.iter().all(|file| !objects.contains(file.as_str()));
        if of_file && of_other || per == WorkUnit::Opening && objects.is_empty() {
            return None;
        }
        let rounds = rounds_of(*place, wanted.rows, shown.recording);
        let fits = |n: u64, each: u64| is_about(n, each.saturating_mul(rounds), each);
        let needless = found.needless.saturating_mul(rounds) as f64;
        let (low, high) = (wanted.needless.low as f64, wanted.needless.high as f64);
        let claimed = needless >= low * (1.0 - ABOUT) && needless * IN_ALL <= high;
        // A round that is only the end of a connection has none of these calls, so the number of rounds with them is
        // computed from the number of calls. Each opening or write of a file counts as a round.
        let counted = matches!(per, WorkUnit::File | WorkUnit::Opening | WorkUnit::Write);
        let rounds_with = if counted { rounds } else { (calls + found.calls / 2) / found.calls.max(1) };
        (rounds >= HABIT && fits(calls, found.calls) && claimed).then_some(PerUnit {
            per,
            rounds: rounds_with,
            ..found
        })
    };
    // Among equal units the same one is chosen each time.
    marks
        .iter()
        .filter_map(|m| Some((of_place(m)?, *m.0)))
        .min_by_key(|(r, place)| (r.per, r.rounds, *place))
        .map(|r| r.0)
}

/// Returns the objects of the rows' claimed calls.
fn objects<'a>(rows: &[RowId], views: &'a [RowView<'_>]) -> Set<&'a str> {
    let of_rows = rows.iter().filter_map(|id| views.get(id.0 as usize));
    of_rows.flat_map(|view| &view.claimed).filter_map(|claimed| claimed.claim.object.as_deref()).collect()
}

/// Returns windows that show the rows' calls: all, or at most [`WINDOWS`] that are spread over the
/// run.
fn windows(rows: &[RowId], views: &[RowView<'_>]) -> Vec<usize> {
    let at: Vec<usize> = survey::windows(rows, views).collect();
    let step = at.len().div_ceil(WINDOWS).max(1);
    at.into_iter().step_by(step).collect()
}

/// Numbers of reads and writes that moved data, by the type of their object: they tell if input is answered.
#[derive(Default)]
struct Answers {
    given: [u64; 3],
    taken: [u64; 3],
}

/// The type of the object behind a descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// A socket.
    Socket,
    /// A pipe or a terminal.
    Pipe,
    /// A file.
    File,
}

impl Answers {
    /// Returns true if there were at least half as many writes to objects of this type as reads from them.
    fn to(&self, end: End) -> bool {
        let of = |n: &[u64; 3]| n.get(end as usize).copied().unwrap_or(0);
        2 * of(&self.given) >= of(&self.taken)
    }

    fn note(&mut self, way: Way, end: End) {
        let side = if way == Way::In { &mut self.taken } else { &mut self.given };
        if let Some(n) = side.get_mut(end as usize) {
            *n += 1;
        }
    }
}

/// Returns the type of the object behind the call's descriptor; `None` if its name was not read, or it is a counter.
fn end(observed: &ObservedCall<'_>) -> Option<End> {
    let target = observed.call.fd.as_deref()?;
    let is_terminal = TERMINALS.iter().any(|t| target.starts_with(t));
    match target {
        _ if target.starts_with(COUNTERS) => None,
        _ if is_terminal || target.starts_with("pipe:") => Some(End::Pipe),
        _ if target.starts_with('/') => Some(End::File),
        _ => Some(End::Socket),
    }
}

/// Returns the unit of work that a successful call marks.
fn mark(lines: &Lines, observed: &ObservedCall<'_>, answers: &mut Answers) -> Option<WorkUnit> {
    let got = observed.call.result?;
    if let Some(line) = lines.transfer(observed) {
        let end = match line.unit {
            Unit::Item => return Some(WorkUnit::Connection),
            Unit::Random => return None,
            Unit::Stream | Unit::Message | Unit::Batch => end(observed).filter(|_| got > 0)?,
        };
        answers.note(line.way, end);
        return match (line.way, end) {
            (Way::In, End::Socket) => Some(WorkUnit::Request),
            (Way::In, End::Pipe) => Some(WorkUnit::Item),
            (Way::In, End::File) => Some(WorkUnit::Read),
            (Way::Out, _) => Some(WorkUnit::Write),
        };
    }
    let descriptors = observed.syscall.signature().is_some_and(|s| s.classes.contains(Class::Desc));
    if lines.waits && descriptors && got > 0 {
        return Some(WorkUnit::WakeUp);
    }
    lines.does(|e| matches!(e, Effect::OpensPath { .. })).then_some(WorkUnit::Opening)
}

/// Counts the marks and rounds of a window.
fn count_rounds(
    window: &Window,
    at: usize,
    wanted: Wanted<'_>,
    shown: JudgedView<'_>,
    marks: &mut Map<CallPlace, Marks>,
    answers: &mut Answers,
) {
    // By place of mark: the values of `calls` and `needless` when it was last seen.
    let mut since: Map<CallPlace, (u64, u64)> = Map::default();
    let (mut calls, mut needless) = (0u64, 0u64);
    for (index, call) in window.calls.iter().enumerate().take(CALLS) {
        if wanted.rows.contains(&call.row) {
            let claim = shown.claims.at(at, index).filter(|c| wanted.weak || !c.weak);
            (calls, needless) = (calls + 1, needless + u64::from(claim.is_some()));
            continue;
        }
        if call.errno().is_some() {
            continue;
        }
        let row = shown.recording.row(call.row);
        let observed = ObservedCall { window, call, syscall: row.syscall };
        let place = (row.syscall, row.context);
        let Some(per) = mark(shown.semantics.lines_of(row.syscall), &observed, answers) else {
            // No rounds are kept for calls that never mark a unit.
            if let Some(marks) = marks.get_mut(&place) {
                marks.calls += 1;
            }
            continue;
        };
        let marks = marks.entry(place).or_default();
        marks.calls += 1;
        if let Some(n) = marks.marks.get_mut(per as usize) {
            *n += 1;
        }
        let is_of_file = matches!(per, WorkUnit::Opening | WorkUnit::Read | WorkUnit::Write);
        if is_of_file && marks.files.len() < FILES {
            marks.files.extend(call.object(row.syscall));
        }
        if let Some((c, n)) = since.insert(place, (calls, needless)) {
            *marks.rounds.entry((calls - c, needless - n)).or_default() += 1;
        } else {
            marks.windows += 1;
        }
    }
}

impl Marks {
    /// Returns the unit that marks the rounds in windows, and the number of calls on which they agree.
    fn agreed(&self, answers: &Answers) -> Option<(WorkUnit, PerUnit)> {
        let seen: u64 = self.rounds.values().sum();
        let share = |n: u64, of: u64| n as f64 / of.max(1) as f64;
        let (per, marked) = WorkUnit::ALL.into_iter().zip(self.marks).max_by_key(|(_, n)| *n)?;
        // The unit is a file if most openings are of different files.
        let files = per == WorkUnit::Opening && share(self.files.len() as u64, marked) >= SAME;
        let per = if files { WorkUnit::File } else { per };
        let answered = match per {
            WorkUnit::Request => answers.to(End::Socket),
            WorkUnit::Item => answers.to(End::Pipe) || answers.to(End::Socket),
            _ => true,
        };
        if seen < ROUNDS || self.windows < SEVERAL || share(marked, self.calls) < PURE || !answered {
            return None;
        }
        let mut by_calls: Map<u64, u64> = Map::default();
        self.rounds.iter().for_each(|((calls, _), n)| *by_calls.entry(*calls).or_default() += n);
        let (calls, agree) = by_calls.into_iter().max_by_key(|(calls, n)| (*n, *calls))?;
        let of_these = self.rounds.iter().filter(|((c, _), _)| *c == calls);
        let ((_, needless), claimed) = of_these.max_by_key(|((_, needless), n)| (**n, *needless))?;
        let same = share(agree, seen) >= SAME && share(*claimed, agree) >= SAME_CLAIMS;
        let found = PerUnit { per, rounds: 0, calls, needless: *needless, looked_at: seen, agree };
        (same && *needless > 0).then_some((per, found))
    }
}

/// Returns the number of calls after `main` began; if `succeeded` is true, of those that did not fail.
fn steady<'a>(rows: impl Iterator<Item = &'a Row>, succeeded: bool) -> u64 {
    rows.map(|row| {
        let failed = if succeeded { row.counts.failed() } else { 0 };
        row.counts.calls.saturating_sub(row.counts.startup_calls).saturating_sub(failed)
    })
    .fold(0, u64::saturating_add)
}

/// Returns the number of rounds that the rows of a place marked in the processes of `rows`.
fn rounds_of((syscall, context): CallPlace, rows: &[RowId], recording: &Recording) -> u64 {
    let mut processes: Vec<u32> = rows.iter().map(|id| recording.row(*id).process.0).collect();
    processes.sort_unstable();
    let of_place = |row: &&Row| {
        row.syscall == syscall && row.context == context && processes.binary_search(&row.process.0).is_ok()
    };
    steady(recording.rows.iter().filter(of_place), true)
}

/// Returns true if `n` is about `of`, where up to two rounds of `each` calls may be missing.
fn is_about(n: u64, of: u64, each: u64) -> bool {
    n.abs_diff(of) as f64 <= of as f64 * ABOUT + 2.0 * each as f64
}
