//! Detects polls that return at once with nothing, again and again.

use crate::causes::fact::{Fact, Facts};
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, leave_out_later, put};
use crate::reasons::ReasonId;
use crate::results::finding::Kind;
use crate::semantics::{Effect, Lines, Look, ObservedCall, Semantics};
use crate::world::barrier::Barrier;
use crate::world::bounds::OFTEN;
use crate::world::replay::Step;
use systoll_model::{Recording, Row, RowId, Sysno, WindowCall};

/// Least number of polls for a claim in a run.
const LONG: usize = 8;
/// Least number of polls for a claim in a run that an edge of the window cuts: the whole run may be longer.
const LONG_CUT: usize = 4;
/// Least ratio of a row's waited time to its longest wait at which a single timed-out wait in
/// windows stands for more of them.
const WAITS: u64 = 4;
/// Largest number of other calls between two polls of a run. More of them count as work, which ends
/// the run.
const WORK: usize = 5;

/// Claims polls that found nothing right after another that found nothing.
pub(super) struct BusyPoll {
    /// Rows whose calls gave up the processor and most times gave it to another thread.
    handed_over: Set<RowId>,
    /// Rows of calls that Go's run-time makes for itself.
    of_run_time: Set<RowId>,
    /// Rows in which a wait timed out right before a poll: the rest of the time was rounded down to zero.
    rounded: Set<RowId>,
}

impl BusyPoll {
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        let mut seen: Map<RowId, (u64, u64)> = Map::default();
        let may = |test: fn(&Lines) -> bool| recording.rows.iter().any(|row| test(semantics.lines_of(row.syscall)));
        let may_hand_over = may(Lines::hands_over);
        for call in recording.windows.iter().filter(|_| may_hand_over).flat_map(|w| &w.calls) {
            let hands_over = semantics.lines_of(recording.row(call.row).syscall).hands_over();
            if let Some(ns) = call.waited_ns.filter(|_| hands_over) {
                let (calls, switched) = seen.entry(call.row).or_default();
                *calls += 1;
                *switched += u64::from(ns > 0);
            }
        }
        let most = seen.into_iter().filter(|(_, (calls, switched))| 2 * switched > *calls);
        let rounded = if may(Lines::tells_ready) { rounded(recording, semantics) } else { Set::default() };
        let rows = (0..).map(RowId).zip(&recording.rows);
        let of_run_time = rows.filter(|(_, row)| is_of_go_run_time(recording, row)).map(|(id, _)| id).collect();
        Self { handed_over: most.map(|(row, _)| row).collect(), of_run_time, rounded }
    }
}

/// Returns true if only functions of Go's run-time are on the stack of a row's calls. Its monitor and its scheduler
/// sleep and look again whatever the program does; no line of the program asked for that.
fn is_of_go_run_time(recording: &Recording, row: &Row) -> bool {
    const OWN: [&str; 3] = ["runtime.", "internal/runtime/", "runtime/internal/"];
    if recording.stacks.is_empty() {
        return false;
    }
    let mut frames = recording.row_frames(row).map(|frame| frame.function()).peekable();
    frames.peek().is_some() && frames.all(|function| OWN.iter().any(|own| function.starts_with(own)))
}

/// Returns the rows in which windows show, at least [`OFTEN`] times, a wait that timed out and then a poll. Once is
/// enough if the time waited tells that there were more.
fn rounded(recording: &Recording, semantics: &Semantics) -> Set<RowId> {
    let mut seen: Map<RowId, usize> = Map::default();
    for window in &recording.windows {
        let empty = |call: &WindowCall| {
            let syscall = recording.row(call.row).syscall;
            let lines = semantics.lines_of(syscall);
            let timed = lines.tells_ready() && call.result == Some(0);
            timed.then(|| lines.line::<Look>(&ObservedCall { window, call, syscall }).is_some_and(|look| !look.sleeps))
        };
        for pair in window.calls.windows(2) {
            let [wait, look] = pair else { continue };
            if wait.row == look.row && empty(wait) == Some(false) && empty(look) == Some(true) {
                *seen.entry(look.row).or_default() += 1;
            }
        }
    }
    // Waits are few beside the polls, so that windows may show only the first: the time waited tells that there were
    // more.
    let waits = |row: RowId| {
        let counts = &recording.row(row).counts;
        counts.waited_ns.is_some_and(|waited| waited >= WAITS * counts.max_ns)
    };
    seen.into_iter().filter(|(row, times)| *times >= OFTEN || waits(*row)).map(|(row, _)| row).collect()
}

/// Key of a run: the system call, the argument that names the polled object, and true if its calls
/// wait and time out.
type Looked = (Sysno, u64, bool);

struct Run {
    steps: Vec<usize>,
    look: &'static Look,
    others: usize,
    cut: bool,
    /// True if the window may begin inside the run, so that its first poll may be needless too.
    older: bool,
}

impl Detector for BusyPoll {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut runs: Map<Looked, Run> = Map::default();
        let (mut fresh, mut work) = (false, 0);
        for (at, step) in steps.iter().enumerate() {
            if found(step) {
                fresh = true;
                runs.drain().for_each(|(_, run)| run.claim(false, steps, &self.rounded, claims));
                continue;
            }
            let row = &step.observed.call.row;
            let may_spin = step.nothing
                && !claims.excuse(at, ReasonId::GaveProcessorAway, self.handed_over.contains(row))
                && !self.of_run_time.contains(row);
            let empty = step.look.filter(|_| may_spin);
            let key =
                empty.map(|look| (step.observed.syscall, look.at.map_or(0, |a| step.observed.arg(a)), look.runs_out));
            work += usize::from(key.is_none());
            // A poll of something else that finds nothing is no work either.
            runs.values_mut().for_each(|run| run.others += usize::from(key.is_none()));
            let ended = |run: &Run| run.others > WORK;
            let gone: Vec<_> = runs.iter().filter(|(_, r)| ended(r)).map(|(k, _)| *k).collect();
            for key in gone {
                runs.remove(&key).into_iter().for_each(|run| run.claim(false, steps, &self.rounded, claims));
            }
            if empty.is_some_and(|look| look.sleeps) {
                // A program that sleeps between two polls does not spin: the polls belong to the
                // sleep.
                let spins = |(of, run): (&Looked, &Run)| (!run.look.sleeps && Some(*of) != key).then_some(*of);
                let slept: Vec<_> = runs.iter().filter_map(spins).collect();
                for key in slept {
                    runs.remove(&key).into_iter().for_each(|run| run.claim(false, steps, &self.rounded, claims));
                }
            }
            if let (Some(look), Some(key)) = (empty, key) {
                let older = work <= WORK && !fresh;
                let new = Run { steps: Vec::new(), look, others: 0, cut: older || at <= WORK, older };
                let run = runs.entry(key).or_insert(new);
                run.steps.push(at);
                run.others = 0;
                fresh |= look.runs_out;
            }
        }
        runs.drain().for_each(|(_, run)| run.claim(true, steps, &self.rounded, claims));
    }
}

/// Returns true if the step waits for a descriptor, and is no mere sleep.
fn watches(step: &Step<'_>) -> bool {
    const NONE: [(Sysno, u8); 4] = [
        (Sysno::named("poll"), 1),
        (Sysno::named("ppoll"), 1),
        (Sysno::named("select"), 0),
        (Sysno::named("pselect6"), 0),
    ];
    let number = NONE.iter().find(|(call, _)| *call == step.observed.syscall).map(|(_, arg)| step.observed.arg(*arg));
    step.lines.tells_ready() && number != Some(0)
}

/// Returns true if the step made progress: moved bytes, made a connection or a child, or waited for something.
fn found(step: &Step<'_>) -> bool {
    step.lets(Barrier::FORKED)
        || step.pauses && step.look.is_none()
        || step.moved.is_some_and(|m| m.got.is_some_and(|got| got > 0))
        || step.look.is_some_and(|l| !l.sleeps) && !step.nothing && step.moved.is_none()
        || step.effects.iter().any(|e| matches!(e, Effect::Opens))
}

impl Run {
    /// Returns true if the program looked for something else, in vain, between two of the waits.
    fn looks_between(&self, steps: &[Step<'_>]) -> bool {
        let between = |two: &[usize]| match two {
            [before, at] => steps.get(before + 1..*at).unwrap_or_default().iter().any(|step| step.nothing),
            _ => false,
        };
        self.steps.windows(2).any(between)
    }

    fn claim(self, cut: bool, steps: &[Step<'_>], rounded: &Set<RowId>, claims: &mut Claims) {
        let least = if self.cut || cut { LONG_CUT } else { LONG };
        if self.steps.len() < least {
            return;
        }
        if let Some(first) = self.steps.first().and_then(|at| steps.get(*at)).filter(|_| self.older) {
            leave_out_later(first, claims);
        }
        let row = self.steps.first().and_then(|at| steps.get(*at)).map(|step| step.observed.call.row);
        let is_rounded = row.is_some_and(|row| rounded.contains(&row));
        // In a wait whose timeout is rounded down, the polls at its end are needless, not the wait.
        let sleeps = self.look.sleeps && !is_rounded;
        let watches = || self.steps.iter().filter_map(|at| steps.get(*at)).all(watches);
        let runs_out = sleeps && (self.look.runs_out || watches() && !self.looks_between(steps));
        if is_rounded && self.look.runs_out {
            // The polls with timeout 0 that follow these waits are claimed in their place.
            return;
        }
        let facts = Facts::default().with(Fact::Sleeps, sleeps && !runs_out).with(Fact::RunsOut, runs_out);
        let facts = facts.with(Fact::Rounded, is_rounded);
        let claim = || Claim { weak: sleeps, facts, ..Claim::of(Kind::BusyPoll, self.look.does, self.look.instead) };
        let waits = |step: &Step<'_>| is_rounded && step.look.is_some_and(|look| look.sleeps);
        for around in self.steps.windows(2) {
            let [before, at] = around else { continue };
            if steps.get(*at).is_none_or(waits) {
                continue;
            }
            put(claims, *at, claim());
            // Without the needless sleep the empty polls between two sleeps would not be made
            // either.
            let looks = steps.get(before + 1..*at).unwrap_or_default().iter().filter(|s| self.look.sleeps && s.nothing);
            looks.for_each(|s| put(claims, s.index, claim()));
        }
    }
}
