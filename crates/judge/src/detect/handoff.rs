//! Detects threads that wait for each other for each little step: items handed over one by one, and meetings of all.

use super::between::Between;
use super::claim::{Claim, Claims, Detector, leave_out_later, put};
use crate::fact::Fact;
use crate::finding::Kind;
use crate::hash::{Map, Set};
use crate::replay::Step;
use crate::semantics::Semantics;
use crate::signs::Signs;
use systoll_model::Recording;

/// Least number of hand-overs in strict turns, waits and wakes together, for a habit. Threads that pass items through
/// a queue with room fall into step now and then, but not for long.
const LONG: usize = 16;
/// Longest work of a thread between two calls, ns, at which the hand-over costs more than the work: it takes two
/// switches.
const WORK: u64 = 10_000;
/// Largest processor time of the whole process for each pair of a wait and a wake, in context
/// switches; with more, the woken thread may have had work. Such a pair takes some four switches
/// with its calls, and more while watched. The calls' own toll is subtracted, since it is no work:
/// waking a thread on another processor takes ten times as long as on the same one, and the
/// scheduler chooses which. At most half of the measured time is subtracted.
const SWITCHES: f64 = 16.0;
/// Assumed time of a switch if it was not measured, ns.
const SWITCH_NS: f64 = 2_000.0;

/// Claims waits and wakes in turns of a thread that hardly works between them.
pub(super) struct Handoff {
    between: Between,
    /// Processes whose waits and wakes leave no time for work.
    idle: Set<u32>,
}

/// The waits and wakes of a process.
#[derive(Default)]
struct Counted {
    calls: u64,
    /// Toll of the calls, ns.
    toll_ns: u64,
}

impl Handoff {
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        let mut counted: Map<u32, Counted> = Map::default();
        for row in recording.rows.iter().filter(|r| semantics.lines_of(r.syscall).may_wake()) {
            let sum = counted.entry(row.process.0).or_default();
            sum.calls = sum.calls.saturating_add(row.counts.calls);
            sum.toll_ns = sum.toll_ns.saturating_add(row.counts.toll_ns.unwrap_or(0));
        }
        let switch = recording.prices.switch.map_or(SWITCH_NS, |s| s.min);
        let idle = counted.into_iter().filter(|(process, sum)| {
            let cpu = recording.processes.get(*process as usize).and_then(|p| p.cpu_ns);
            let left = |cpu: u64| cpu as f64 - (sum.toll_ns as f64).min(0.5 * cpu as f64);
            cpu.is_some_and(|cpu| left(cpu) < SWITCHES * switch * (sum.calls / 2) as f64)
        });
        Self { between: Between::new(recording), idle: idle.map(|(process, _)| process).collect() }
    }

    /// Returns true if the thread worked for long between two calls, or their times are unknown.
    fn works(&self, before: &Step<'_>, step: &Step<'_>) -> bool {
        // Without times in the recording the thread is taken to have worked.
        step.observed.call.entry_ns == 0 || self.between.ns(before, step) > WORK
    }
}

/// Claims the turns of a stretch in which the thread did nothing else.
fn claim_turns(stretch: &[Step<'_>], claims: &mut Claims) {
    let of = |test: fn(&Step<'_>) -> bool| -> Set<u64> {
        stretch.iter().filter(|s| test(s)).map(|s| s.observed.arg(0)).collect()
    };
    let (waited, woken, all_woken) = (of(waits), of(wakes), of(wakes_all));
    if !all_woken.is_empty() && all_woken.is_subset(&waited) && woken == all_woken {
        return claim_meetings(stretch, claims);
    }
    // An address at which a thread both waits and wakes others is a lock.
    if !waited.is_disjoint(&woken) {
        return;
    }
    let mut run: Vec<&Step<'_>> = Vec::new();
    for step in stretch.iter().filter(|s| s.lines.may_wake()) {
        let turn = waits(step) || wakes(step);
        if !turn || run.last().is_some_and(|last| waits(last) == waits(step)) {
            finish(&mut run, stretch, claims);
        }
        if turn {
            run.push(step);
        }
    }
    finish(&mut run, stretch, claims);
}

fn finish(run: &mut Vec<&Step<'_>>, stretch: &[Step<'_>], claims: &mut Claims) {
    if let (Some(first), Some(last), true) = (run.first(), run.last(), run.len() >= LONG) {
        let within = stretch.iter().filter(|s| (first.index + 1..=last.index).contains(&s.index));
        within.for_each(|step| put(claims, step.index, claim()));
        leave_out_later(first, claims);
    }
    run.clear();
}

/// Claims the calls of a stretch in which threads do nothing but wait for each other at one place, all for all.
fn claim_meetings(stretch: &[Step<'_>], claims: &mut Claims) {
    if stretch.len() >= LONG {
        stretch.iter().skip(1).for_each(|step| put(claims, step.index, of_meeting()));
        stretch.first().into_iter().for_each(|first| leave_out_later(first, claims));
    }
}

impl Detector for Handoff {
    fn looks_for(&self) -> Signs {
        Signs::WAKES
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        if !steps.first().is_some_and(|s| self.idle.contains(&s.observed.window.process.0)) {
            return;
        }
        let mut start = 0;
        for (at, step) in steps.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|before| steps.get(before));
            let goes_on = hands_over(step) && before.is_none_or(|before| at == start || !self.works(before, step));
            if !goes_on {
                claim_turns(steps.get(start..at).unwrap_or_default(), claims);
                start = if hands_over(step) { at } else { at + 1 };
            }
        }
        claim_turns(steps.get(start..).unwrap_or_default(), claims);
    }
}

/// Returns true if threads wait for each other by the call, or if it gives the processor up.
fn hands_over(step: &Step<'_>) -> bool {
    step.lines.may_wake() || step.lines.hands_over()
}

/// Returns true if the thread slept until it was woken.
fn waits(step: &Step<'_>) -> bool {
    let call = step.observed.call;
    step.lines.may_wake() && !step.wakes && call.result == Some(0) && call.waited_ns.is_none_or(|ns| ns > 0)
}

/// Returns true if the call wakes all who wait, however many.
fn wakes_all(step: &Step<'_>) -> bool {
    step.wakes && step.observed.arg(2) as i32 == i32::MAX
}

/// Returns true if the call woke a thread.
fn wakes(step: &Step<'_>) -> bool {
    step.wakes && step.observed.call.result.is_some_and(|woken| woken > 0)
}

fn of_meeting() -> Claim {
    Claim {
        facts: Fact::Meets.into(),
        ..Claim::of(
            Kind::SmallIo,
            "has threads wait for each other after each little step",
            "let them meet after a larger part of the work",
        )
    }
}

fn claim() -> Claim {
    Claim {
        gives_up: "an item waits until a block of them is there",
        ..Claim::of(
            Kind::SmallIo,
            "hands items from thread to thread one by one, with a wait or a wake for each",
            "hand over blocks of items, or give the queue room for many",
        )
    }
}
