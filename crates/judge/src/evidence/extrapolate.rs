//! Extrapolation to rows that no window shows, from other processes of the same program: in the hundredth short
//! process windows would show nothing new, so none is opened there. Likewise, ledgers from few looks are replaced by
//! whole ledgers of like rows.
//!
//! The same call of the same program in the same context is taken to be as needless in a process without windows as
//! in all those with windows, also the ones without waste. This needs several such processes, or one in which the
//! call was made about as often.

use crate::collections::hash::Map;
use crate::evidence::survey::{Alike, RowView};
use std::collections::hash_map::Entry;
use systoll_model::{Ledger, Recording, Row, RowId, StackId, Sysno};

/// Number of sampled processes from which on others count as alike, whatever their counts.
const SEVERAL: u64 = 3;
/// Largest ratio of two counts that are about the same.
const ABOUT: f64 = 2.0;
/// Largest ratio of the counts of two rows for one to use the other's ledger.
const SAME: f64 = 1.1;

/// The key of like rows: the first process that ran the program, the system call and the context.
type Key = (u32, Sysno, StackId);

/// Returns the key of a row.
fn key(recording: &Recording, programs: &[u32], at: usize) -> Option<Key> {
    let row = recording.rows.get(at)?;
    Some((*programs.get(row.process.0 as usize)?, row.syscall, row.context))
}

/// Returns for each process the first process that ran the same program.
fn programs(recording: &Recording) -> Vec<u32> {
    let mut first: Map<&str, u32> = Map::default();
    (0..).zip(&recording.processes).map(|(at, process)| *first.entry(process.name()).or_insert(at)).collect()
}

/// Gives a row with a sparse ledger the whole ledger of like rows: those of the same call of the same program in the
/// same context, made as often by each process. The row keeps its own ledger if its looks contradict the other.
pub(crate) fn lend_ledgers(recording: &Recording, views: &mut [RowView<'_>]) {
    let calls = |at: usize| recording.rows.get(at).map_or(0, |row| row.counts.calls);
    // A row may represent many processes of a program.
    let each =
        |at: usize| recording.rows.get(at).map_or(0.0, |row| calls(at) as f64 / instances(recording, row) as f64);
    let is_whole = |at: usize, view: &RowView<'_>| view.ledger.nearly_whole(calls(at));
    if recording.processes.len() < 2 || !views.iter().enumerate().any(|(at, view)| is_whole(at, view)) {
        return;
    }
    let programs = programs(recording);
    let mut whole: Map<Key, (u64, usize)> = Map::default();
    for (at, _) in views.iter().enumerate().filter(|(at, view)| is_whole(*at, view)) {
        if let Some(key) = key(recording, &programs, at) {
            let (rows, last) = whole.entry(key).or_default();
            (*rows, *last) = (*rows + 1, at);
        }
    }
    for at in 0..views.len() {
        let lender = key(recording, &programs, at).and_then(|key| whole.get(&key));
        let Some((_, from)) = lender.filter(|(rows, _)| *rows >= SEVERAL).copied() else { continue };
        let lent = views.get(from).and_then(|view| view.ledger.told);
        let Some((view, lent)) = views.get_mut(at).zip(lent).filter(|(view, _)| !is_whole(at, view)) else { continue };
        let Some(told) = view.ledger.told else { continue };
        let (own, theirs) = (told.known_share(calls(at)), lent.known_share(calls(from)).estimate);
        let as_often = is_within(SAME, each(at), each(from));
        if as_often && own.low <= theirs && seen_at_least(theirs, told) <= own.high {
            view.ledger.told = Some(lent);
        }
    }
}

/// Returns the least share of repeats that sparse looks would see if `share` of the calls are
/// repeats.
fn seen_at_least(share: f64, looks: &Ledger) -> f64 {
    let picked = (looks.looks as f64 / looks.calls.max(1) as f64).clamp(f64::MIN_POSITIVE, 1.0);
    let objects = (1.0 - share).max(f64::EPSILON);
    let first_times = objects * (1.0 - (1.0 - picked).powf(1.0 / objects));
    1.0 - first_times / picked
}

/// Sums over the rows of one key that have windows.
#[derive(Default)]
struct Pooled {
    lead: Option<RowId>,
    rows: u64,
    instances: u64,
    calls: f64,
    strong: f64,
    any: f64,
}

/// Gives rows without windows the claims of like rows.
pub(crate) fn extrapolate(recording: &Recording, views: &mut [RowView<'_>]) {
    let unseen = |view: &RowView<'_>| view.seen() == 0;
    if recording.processes.len() < 2 || !views.iter().any(unseen) {
        return;
    }
    let programs = programs(recording);
    let key = |at: usize| key(recording, &programs, at);
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
        let alike =
            |s: &&Pooled| s.calls > 0.0 && (s.rows >= SEVERAL || is_within(ABOUT, each, s.calls / s.instances as f64));
        let seen = key(at).and_then(|key| wanted.get(&key)).filter(alike);
        let Some((seen, row)) = seen.and_then(|s| Some((s, s.lead?))) else { continue };
        view.like = Some(Alike { row, strong: seen.strong / seen.calls, any: seen.any / seen.calls });
    }
}

/// Returns the number of processes that a row represents.
fn instances(recording: &Recording, row: &Row) -> u64 {
    recording.process(row.process).instances.max(1)
}

fn is_within(times: f64, a: f64, b: f64) -> bool {
    a <= b * times && b <= a * times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::survey::survey;
    use systoll_model::{Counts, Process, ProcessId};

    const CALLS: u64 = 960;

    /// Returns a recording of processes of one program, each with a row of [`CALLS`] questions. `told` has for each
    /// ledger the number of its looks and the number of looks that repeat a known answer.
    fn processes(told: &[(u64, u64)]) -> Recording {
        let mut recording = Recording::default();
        for (n, (looks, known)) in (0..).zip(told) {
            recording.processes.push(Process { exe: "/bin/cc1".into(), instances: 1, ..Process::default() });
            recording.rows.push(Row::new(
                ProcessId(n),
                Sysno::named("readlink"),
                Counts { calls: CALLS, ..Counts::default() },
            ));
            let each = CALLS / looks;
            let (squares, repeats) = (CALLS * each, known * each);
            let ledger = Ledger { row: RowId(n), looks: *looks, calls: CALLS, squares, repeats, ..Ledger::default() };
            recording.ledgers.push(ledger);
        }
        recording
    }

    /// Returns the number of looks in each row's ledger after lending.
    fn looks(recording: &Recording) -> Vec<u64> {
        let claims = crate::detect::claims(recording, &crate::semantics::Semantics::new(), &crate::Options::default());
        let mut views = survey(recording, &claims);
        lend_ledgers(recording, &mut views);
        views.iter().filter_map(|view| view.ledger.told).map(|told| told.looks).collect()
    }

    #[test]
    fn a_whole_ledger_tells_of_rows_alike_that_were_looked_at_here_and_there() {
        let whole = (CALLS, 850);
        assert_eq!(looks(&processes(&[whole, whole, whole, (60, 50)])), [CALLS; 4]);
        // Two whole ledgers are too few to lend one to the third process.
        assert_eq!(looks(&processes(&[whole, whole, (60, 50)])), [CALLS, CALLS, 60]);
        // The last row's own looks show that it asks other questions.
        assert_eq!(looks(&processes(&[whole, whole, whole, (60, 3)])), [CALLS, CALLS, CALLS, 60]);
    }

    #[test]
    fn rare_looks_see_fewer_repeats() {
        let picking = |looks: u64| Ledger { row: RowId(0), looks, calls: CALLS, ..Ledger::default() };
        let at_least = |share: f64, looks: u64| (100.0 * seen_at_least(share, &picking(looks))).round();
        assert_eq!([0.0, 0.5, 0.9, 1.0].map(|share| at_least(share, CALLS)), [0.0, 50.0, 90.0, 100.0]);
        // Half of the calls are looked at, and each object is asked for twice: of four pairs, three
        // show at least one call, and one shows both.
        assert_eq!(at_least(0.5, CALLS / 2), 25.0);
        assert_eq!([0.0, 0.9, 1.0].map(|share| at_least(share, CALLS / 16)), [0.0, 24.0, 100.0]);
    }

    #[test]
    fn many_processes_told_of_together_are_taken_for_one() {
        let folded = |instances: u64, calls_of_each: u64, known: u64| {
            let whole = (CALLS, 850);
            let mut recording = processes(&[whole, whole, whole, (60, known)]);
            recording.processes[3].instances = instances;
            recording.rows[3].counts.calls = instances * calls_of_each;
            let ledger = &mut recording.ledgers[3];
            ledger.looks *= instances;
            for all in [&mut ledger.calls, &mut ledger.squares, &mut ledger.repeats] {
                *all *= instances;
            }
            looks(&recording)[3]
        };
        assert_eq!(folded(168, CALLS, 50), CALLS);
        assert_eq!(folded(168, CALLS, 3), 168 * 60);
        assert_eq!(folded(168, 2 * CALLS, 50), 168 * 60);
    }

    #[test]
    fn who_asks_more_or_is_another_program_speaks_for_itself() {
        let whole = (CALLS, 850);
        let mut more = processes(&[whole, whole, whole, (60, 50)]);
        more.rows[3].counts.calls = 2 * CALLS;
        assert_eq!(looks(&more)[3], 60);
        let mut other = processes(&[whole, whole, whole, (60, 50)]);
        other.processes[3].exe = "/bin/ls".into();
        assert_eq!(looks(&other)[3], 60);
    }
}
