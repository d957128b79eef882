//! Detects threads that wait for each other for each little step: items handed over one by one, and meetings of all.

use super::awake::{Bells, Rung};
use super::between::Between;
use crate::causes::fact::Fact;
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, leave_out_later, put};
use crate::results::finding::Kind;
use crate::semantics::{Lines, ObservedCall, Semantics, Trait, Way};
use crate::world::bounds::NO_WORK;
use crate::world::replay::Step;
use systoll_model::{Recording, Window};

/// Least number of hand-overs in strict turns, waits and wakes together, for a habit. Threads that pass items through
/// a queue with room fall into step now and then, but not for long.
const LONG: usize = 16;
/// Longest work of a thread between two calls, ns, at which the hand-over costs more than the work: it takes two
/// switches.
const WORK: u64 = 10_000;
/// Assumed time of a switch if it was not measured, ns.
const SWITCH_NS: f64 = 2_000.0;

/// Least number of turns, from one wait of a thread to its next, that windows show of a process for a habit.
const TURNS: usize = 32;
/// Least number of turns of a thread that takes part in the habit.
const TURNS_OF_THREAD: usize = 4;
/// Share of the turns in which threads only hand over, 0 to 1, from which on it is a habit. Where one thread has work, as a
/// pool that reads files for an event loop, its turns are half of all. On a busy box a thread may lose its processor in some.
const HANDED: f64 = 0.75;
/// Least number of wakes by a descriptor for each call in the turns that does something else: a pool that opens, reads and
/// writes files for an event loop makes one for each wake. A worker that reads lines makes one for a hundred of them.
const OTHERS: usize = 4;
/// Most wakes by a descriptor in a turn, as a mean: an item that is handed over wakes once, and is waited for. A producer that
/// rings for each of forty items before it waits hands over forty at once, with 13 wakes a turn (py-selfpipe-each-item).
const RUNG: usize = 2;
/// Number of a row's calls that may belong to the start of a thread: a worker of Node loads its modules after its first wait.
const AT_START: u64 = 64;
/// Longest work of a thread between two calls in such a turn, ns. It is not small beside the hand-over, as [`WORK`] is: an
/// interpreter that takes a message from its event loop to its caller took 12 to 28 microseconds (asyncio, Node).
const WORK_OF_LOOP: u64 = 40_000;
/// Claims waits and wakes in turns of a thread that hardly works between them.
pub(super) struct Handoff<'a> {
    between: Between,
    /// Processes whose waits and wakes leave no time for work.
    idle: Set<u32>,
    /// Pipes, event descriptors and local sockets by which threads wake each other.
    bells: Bells<'a>,
    /// Processes whose threads do nothing from one wait to the next but hand over, some of it by `bells`.
    loops: Set<u32>,
}

/// The waits and wakes of a process.
#[derive(Default)]
struct Counted {
    calls: u64,
    /// Toll of the calls, ns.
    toll_ns: u64,
}

/// The turns of the threads of a process, from one wait to the next, that windows show.
#[derive(Default)]
struct Turns {
    all: usize,
    /// Turns of each thread in which it only handed over.
    handed: Map<u32, usize>,
    /// Number of wakes by a descriptor.
    rung: usize,
    /// Number of calls that do something else than hand over.
    others: usize,
}

impl Turns {
    fn are_handed(&self) -> bool {
        let handed: usize = self.handed.values().sum();
        let threads = self.handed.values().filter(|turns| **turns >= TURNS_OF_THREAD).count();
        self.rung >= OTHERS * self.others.max(1)
            && self.rung <= RUNG * self.all
            && self.all >= TURNS
            && handed as f64 >= HANDED * self.all as f64
            && threads >= 2
    }
}

impl<'a> Handoff<'a> {
    pub(super) fn new(rung: &Rung<'a>, recording: &'a Recording, semantics: &Semantics) -> Self {
        let mut counted: Map<u32, Counted> = Map::default();
        for row in recording.rows.iter().filter(|r| semantics.lines_of(r.syscall).may_wake()) {
            let sum = counted.entry(row.process.0).or_default();
            sum.calls = sum.calls.saturating_add(row.counts.calls);
            sum.toll_ns = sum.toll_ns.saturating_add(row.counts.toll_ns.unwrap_or(0));
        }
        let switch = recording.prices.switch.map_or(SWITCH_NS, |s| s.min);
        // The calls' own toll is subtracted, since it is no work: waking a thread on another processor takes ten times as
        // long as on the same one, and the scheduler chooses which. At most half of the measured time is subtracted.
        let idle = counted.into_iter().filter(|(process, sum)| {
            let cpu = recording.processes.get(*process as usize).and_then(|p| p.cpu_ns);
            let left = |cpu: u64| cpu as f64 - (sum.toll_ns as f64).min(0.5 * cpu as f64);
            cpu.is_some_and(|cpu| left(cpu) < NO_WORK * switch * (sum.calls / 2) as f64)
        });
        let idle = idle.map(|(process, _)| process).collect();
        let (bells, between) = (Bells::new(rung), Between::new(recording));
        let mut turns: Map<u32, Turns> = Map::default();
        for window in recording.windows.iter().filter(|_| bells.any()) {
            turns.entry(window.process.0).or_default().add(window, between, &bells, recording, semantics);
        }
        let loops = turns.into_iter().filter(|(_, turns)| turns.are_handed());
        Self { between, idle, bells, loops: loops.map(|(process, _)| process).collect() }
    }

    /// Claims the calls by which a thread only hands over, from one wait to the next.
    fn claim_loop(&self, steps: &[Step<'_>], claims: &mut Claims) {
        let waits = |step: &Step<'_>| sleeps(&step.observed, step.lines);
        for (at, step) in steps.iter().enumerate() {
            let works = at
                .checked_sub(1)
                .and_then(|before| steps.get(before))
                .is_some_and(|before| !waits(step) && self.between.ns(before, step) > WORK_OF_LOOP);
            let of_loop = Claim { facts: Fact::Handed.into(), ..claim() };
            match self.bells.hand_over(&step.observed, step.lines) {
                // Whatever else is needless about a wake, it goes with the item.
                By::Bell if !works => claims.set(step.index, of_loop),
                By::Waiting if !works => put(claims, step.index, of_loop),
                _ => {}
            }
        }
    }

    /// Returns true if the thread worked for long between two calls, or their times are unknown.
    fn works(&self, before: &Step<'_>, step: &Step<'_>) -> bool {
        // Without times in the recording the thread is taken to have worked.
        step.observed.call.entry_ns == 0 || self.between.ns(before, step) > WORK
    }
}

/// The means by which a call hands over to another thread of its process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// None: the call is about something else.
    Nothing,
    /// A lock or a condition, or waiting for a descriptor.
    Waiting,
    /// A descriptor that wakes a thread that waits for it.
    Bell,
}

impl Bells<'_> {
    /// Returns by what a call hands over, or takes what was handed over.
    fn hand_over(&self, call: &ObservedCall<'_>, lines: &Lines) -> By {
        if lines.may_wake() || lines.hands_over() || lines.tells_ready() {
            return By::Waiting;
        }
        if lines.transfer(call).is_some() && self.carries_wakes(call) { By::Bell } else { By::Nothing }
    }
}

impl Turns {
    /// Adds the turns that a window shows.
    fn add(
        &mut self,
        window: &Window,
        between: Between,
        bells: &Bells<'_>,
        recording: &Recording,
        semantics: &Semantics,
    ) {
        // `None` until the window shows a wait: what came before the first one is not known.
        let mut handed: Option<bool> = None;
        let mut before = None;
        for call in &window.calls {
            let observed = ObservedCall { window, call, syscall: recording.row(call.row).syscall };
            let lines = semantics.lines_of(observed.syscall);
            let by = bells.hand_over(&observed, lines);
            let rings = || lines.transfer(&observed).is_some_and(|moved| moved.way == Way::Out);
            self.rung += usize::from(by == By::Bell && rings());
            self.others += usize::from(by == By::Nothing && handed.is_some() && call.nth > AT_START);
            let works = before.replace(call).is_some_and(|before| between.calls_ns(before, call) > WORK_OF_LOOP);
            handed = handed.map(|handed| handed && by != By::Nothing && !works);
            if sleeps(&observed, lines) {
                if let Some(handed) = handed {
                    self.all += 1;
                    *self.handed.entry(window.thread).or_default() += usize::from(handed);
                }
                // No thread hands over what a timer ends.
                handed = Some(!lines.tells_ready() || call.result != Some(0));
            }
        }
    }
}

/// Returns true if the thread slept in the call until it was woken, or a descriptor was ready.
fn sleeps(call: &ObservedCall<'_>, lines: &Lines) -> bool {
    let waits = lines.tells_ready() || lines.may_wake() && !lines.is(Trait::Wakes, call);
    waits && call.call.result.is_some_and(|result| result >= 0) && call.call.waited_ns.is_none_or(|ns| ns > 0)
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

impl Detector for Handoff<'_> {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let Some(process) = steps.first().map(|step| step.observed.window.process.0) else { return };
        if self.loops.contains(&process) {
            self.claim_loop(steps, claims);
        }
        if !self.idle.contains(&process) {
            return;
        }
        let goes_on =
            |before: &Step<'_>, step: &Step<'_>| hands_over(before) && hands_over(step) && !self.works(before, step);
        let stretches = steps.chunk_by(goes_on).filter(|stretch| stretch.first().is_some_and(hands_over));
        stretches.for_each(|stretch| claim_turns(stretch, claims));
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
