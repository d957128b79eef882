//! Detects thundering herds: several threads wait for one thing, all are woken for it, and one gets it.

use super::between::Between;
use super::families::roots;
use crate::causes::fact::Fact;
use crate::collections::hash::{Map, Set};
use crate::collections::sums::Sums;
use crate::evidence::claim::{Claim, Claims, Detector, Saving, put};
use crate::reasons::ReasonId;
use crate::results::finding::Kind;
use crate::semantics::{Effect, Semantics};
use crate::world::bounds::NO_WORK;
use crate::world::replay::Step;
use systoll_model::{Class, ProcessId, Recording, Sysno};

/// Least number of wakes at an address.
const SEEN: u64 = 4;
/// Least mean number of waiters that a wake at a herd's address wakes.
const TOGETHER: f64 = 2.0;

/// Share of the threads woken together, 0 to 1, that find work in a herd, at most: one does, and a busy box makes some of the others
/// seem to. Six writers that wait for one sync were accused in two of five runs without this, in none of 15 with it: one signal
/// for all of them leaves the others waiting for ever.
const MOST_SERVED: f64 = 0.4;
/// Number of the threads woken together that find work in a herd: up to the first whatever their share is, and at most the second.
/// A herd of 4.5 on average seemed to serve 1.7, eight writers that wait for one sync 2.8 to 4.
const SERVED: (f64, f64) = (1.5, 2.25);

/// Longest time between two waits of a thread, ns, in which it found no work worth a wake-up. Of a queue with six
/// threads, those that found it empty waited again after 3.6 to 7 microseconds, those that found work after 15 or more.
const NO_WORK_NS: u64 = 10_000;

/// The address at which a thread waits, with its process.
type Address = (u32, u64);

fn address(step: &Step<'_>) -> Address {
    (step.observed.window.process.0, step.observed.arg(0))
}

/// Claims wake-ups after which the thread found nothing to do.
pub(super) struct Herd<'a> {
    /// Wakes and waits, by address.
    woken: Map<Address, Woken>,
    /// By address: number of wake-ups since the last one that may have found work.
    since: Map<Address, f64>,
    /// Processes whose wake-ups leave no time for work, each with a system call that waits or wakes.
    idle: Vec<(u32, Sysno)>,
    /// Processes in which most syncs are followed by a call that wakes several threads: all of them waited for that sync.
    synced: &'a Set<u32>,
    /// Processes in which, or beside which, others may take what a descriptor has.
    shared: Set<u32>,
    between: Between,
}

impl<'a> Herd<'a> {
    pub(super) fn new(recording: &Recording, semantics: &Semantics, synced: &'a Set<u32>) -> Self {
        let waking = recording.rows.iter().filter(|row| semantics.lines_of(row.syscall).may_wake());
        let calls: Map<_, u64> = Sums::of(waking.map(|row| ((row.process.0, row.syscall), row.counts.calls)));
        let switch = recording.prices.switch.map_or(0.0, |s| s.min);
        // Each wake-up takes at least two of these calls, the wake and the wait.
        let idle = |((process, _), n): (&(u32, Sysno), &u64)| {
            let cpu = recording.processes.get(*process as usize).and_then(|p| p.cpu_ns).unwrap_or(u64::MAX);
            (cpu as f64) < NO_WORK * switch * (*n / 2) as f64
        };
        let idle = calls.iter().filter(|c| idle(*c)).map(|(key, _)| *key).collect();
        let (woken, since) = Default::default();
        Self { woken, since, idle, synced, shared: with_others(recording), between: Between::new(recording) }
    }

    /// Claims the futex calls of threads that are woken as a herd: all wait and wake calls from one wait to the next,
    /// for all but one thread a round.
    fn waiters(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let idle = |step: &Step<'_>| self.idle.contains(&(step.observed.window.process.0, step.observed.syscall));
        let stretches: Vec<&[Step<'_>]> = steps.split(|s| !idle(s)).filter(|s| !s.is_empty()).collect();
        for stretch in stretches {
            stretch.iter().for_each(|step| self.note(step));
            // The waits in a herd: each begins a round.
            let herd =
                |step: &&Step<'_>| !step.wakes && self.woken.get(&address(step)).and_then(Woken::together).is_some();
            let waits: Vec<(usize, Address)> = stretch.iter().filter(herd).map(|s| (s.index, address(s))).collect();
            let (Some((_, mut of)), mut waits) = (waits.first().copied(), waits.into_iter().peekable()) else {
                continue;
            };
            let mut spare = self.is_spare(of);
            for step in stretch {
                if let Some((_, next)) = waits.next_if(|(at, _)| *at == step.index) {
                    (spare, of) = (self.is_spare(next), next);
                }
                if spare && !self.is_excused(of, step.index, claims) {
                    put(claims, step.index, claim(WAITERS, ONE));
                }
            }
        }
    }

    /// Claims the futex calls of a thread from one wait in a herd to the next, if it found no work in between: other
    /// threads of the process may have had much.
    fn without_work(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        for step in steps.iter().filter(|step| step.lines.may_wake()) {
            self.note(step);
        }
        let herd = |step: &Step<'_>| {
            step.lines.may_wake() && !step.wakes && self.woken.get(&address(step)).and_then(Woken::together).is_some()
        };
        let waits: Vec<usize> = (0..).zip(steps).filter(|(_, step)| herd(step)).map(|(at, _)| at).collect();
        for pair in waits.windows(2) {
            let [from, to] = *pair else { continue };
            let round = steps.get(from..=to).unwrap_or_default();
            let Some(first) = round.first() else { continue };
            if first.observed.call.result == Some(0) && self.found_nothing(round) {
                for step in round.iter().rev().skip(1) {
                    if !self.is_excused(address(first), step.index, claims) {
                        put(claims, step.index, claim(WAITERS, ONE));
                    }
                }
            }
        }
    }

    /// Notes at each address how often a thread that was woken found work before it waited there again.
    fn note_work(&mut self, steps: &[Step<'_>]) {
        let mut before: Map<Address, usize> = Map::default();
        for (at, step) in steps.iter().enumerate().filter(|(_, step)| step.lines.may_wake() && !step.wakes) {
            let Some(from) = before.insert(address(step), at) else { continue };
            let round = steps.get(from..=at).unwrap_or_default();
            let has_times = round.iter().all(|step| step.observed.call.entry_ns > 0);
            if has_times && round.first().is_some_and(|wait| wait.observed.call.result == Some(0)) {
                let works = !self.found_nothing(round);
                let woken = self.woken.entry(address(step)).or_default();
                (woken.waits, woken.works) = (woken.waits + 1, woken.works + u64::from(works));
            }
        }
    }

    /// Returns true, and notes the reason, if most threads that are woken at the address find work, or waited for one sync.
    fn is_excused(&self, at: Address, index: usize, claims: &mut Claims) -> bool {
        let serves = self.synced.contains(&at.0) || self.woken.get(&at).is_some_and(Woken::serves_several);
        claims.excuse(index, ReasonId::ServesSeveral, serves)
    }

    /// Claims the calls that wake a herd.
    fn wakers(&self, steps: &[Step<'_>], claims: &mut Claims) {
        let several = |step: &&Step<'_>| step.wakes && step.observed.call.result.is_some_and(|n| n as f64 >= TOGETHER);
        let wakes_herd = |step: &&Step<'_>| self.woken.get(&address(step)).and_then(Woken::together).is_some();
        for step in steps.iter().filter(several).filter(wakes_herd) {
            if !self.is_excused(address(step), step.index, claims) {
                claims.set(step.index, wakes_all());
            }
        }
    }

    /// Returns true if all calls wait or wake, and the thread spent no more time between them than it takes to look at an empty
    /// queue. Without times in the recording it is taken to have worked.
    fn found_nothing(&self, round: &[Step<'_>]) -> bool {
        let gaps = round.windows(2).map(|two| match two {
            [before, next] => self.between.ns(before, next),
            _ => u64::MAX,
        });
        let has_times = round.iter().all(|step| step.observed.call.entry_ns > 0);
        let only_meets = round.iter().all(|step| step.lines.may_wake());
        only_meets && has_times && gaps.fold(0, u64::saturating_add) <= NO_WORK_NS
    }

    fn note(&mut self, step: &Step<'_>) {
        let thread = step.observed.window.thread;
        let result = step.observed.call.result.and_then(|r| u64::try_from(r).ok());
        match (step.wakes, result) {
            (true, Some(n)) if n > 0 => self.woken.entry(address(step)).or_default().wake(n, thread),
            (true, _) => {}
            (false, _) => self.woken.entry(address(step)).or_default().wait(thread),
        }
    }

    /// Counts a wake-up at this address. Returns true if it found nothing, as all but one of a herd
    /// do.
    fn is_spare(&mut self, at: Address) -> bool {
        let Some(together) = self.woken.get(&at).and_then(Woken::together) else { return false };
        let since = self.since.entry(at).or_default();
        *since += 1.0;
        if *since >= together {
            *since -= together;
            return false;
        }
        true
    }
}

/// The wakes and waits at one address.
#[derive(Default)]
struct Woken {
    wakes: u64,
    waiters: u64,
    /// Threads that woke several waiters at the address.
    by: Set<u32>,
    /// Threads that waited at the address.
    of: Set<u32>,
    /// Number of times that a thread waited again after it was woken, as far as windows show both waits and times.
    waits: u64,
    /// Number of these times at which it found work in between.
    works: u64,
}

impl Woken {
    fn wake(&mut self, waiters: u64, thread: u32) {
        (self.wakes, self.waiters) = (self.wakes + 1, self.waiters.saturating_add(waiters));
        if waiters as f64 >= TOGETHER {
            self.by.insert(thread);
        }
    }

    fn wait(&mut self, thread: u32) {
        self.of.insert(thread);
    }

    /// Returns true if more of the threads woken together find work than in a herd.
    fn serves_several(&self) -> bool {
        let (least, number) = SERVED;
        let most = self.together().map_or(1.0, |together| MOST_SERVED.min(number / together).max(least / together));
        self.waits >= SEEN && self.works as f64 > most * self.waits as f64
    }

    /// Returns the mean number of waiters woken together if this is a herd; `None` at a barrier, where the last
    /// thread to come wakes the others.
    fn together(&self) -> Option<f64> {
        let each = self.waiters as f64 / self.wakes.max(1) as f64;
        (self.wakes >= SEEN && each >= TOGETHER && self.by.is_disjoint(&self.of)).then_some(each)
    }
}

const WAITERS: &str = "is woken together with others and waits again after hardly any work";
const WAKER: &str = "wakes all for what one of them gets";
const ONE: &str = "wake one for one thing (signal, not broadcast), or give each more to do before it waits again";
const READY: &str = "is woken for what another has taken already, and waits again";

fn claim(about: &'static str, instead: &'static str) -> Claim {
    Claim { facts: Fact::Herd.into(), ..Claim::of(Kind::BusyPoll, about, instead) }
}

/// Returns the claim on a call that wakes a herd: its caller is where to wake one alone.
fn wakes_all() -> Claim {
    Claim { saves: Saving::OfOthers, ..claim(WAKER, ONE) }
}

/// Returns the processes of several threads, and those of which one forked another.
fn with_others(recording: &Recording) -> Set<u32> {
    let roots = roots(recording);
    let processes = roots.iter().zip(&recording.processes);
    let of_root: Map<ProcessId, u64> = Sums::of(processes.map(|(root, process)| (*root, process.instances.max(1))));
    let is_alone = |root: &ProcessId| of_root.get(root).is_none_or(|processes| *processes <= 1);
    let all = (0u32..).zip(recording.processes.iter().zip(&roots));
    all.filter(|(_, (process, root))| process.threads > process.instances || !is_alone(root))
        .map(|(at, _)| at)
        .collect()
}

/// Returns true if another thread or process may have taken what the step looked for: any may accept a connection, since
/// processes that are not watched may have the listening socket too.
fn another_may_take(step: &Step<'_>, shared: &Set<u32>) -> bool {
    step.lines.does(|effect| matches!(effect, Effect::Opens)) || shared.contains(&step.observed.window.process.0)
}

/// Claims waits for descriptors that ended with one from which there was nothing to take.
fn ready(steps: &[Step<'_>], shared: &Set<u32>, claims: &mut Claims) {
    let mut round: Vec<usize> = Vec::new();
    let mut looks = 0;
    for step in steps {
        let waits_for_any = step.pauses
            && step.moved.is_none()
            && step.observed.syscall.signature().is_some_and(|s| s.classes.contains(Class::Desc));
        if waits_for_any {
            // The wait that begins proves that there was nothing to do.
            if looks > 0 {
                let instead =
                    "let one be woken for one thing: EPOLLEXCLUSIVE, SO_REUSEPORT, or one that accepts for all";
                round.drain(..).for_each(|at| put(claims, at, claim(READY, instead)));
            }
            round.clear();
            looks = 0;
            if step.observed.call.result.is_some_and(|r| r > 0) {
                round.push(step.index);
            }
        } else if round.is_empty() {
        } else if step.nothing && step.look.is_some_and(|l| !l.sleeps) && another_may_take(step, shared) {
            looks += 1;
            round.push(step.index);
        } else {
            round.clear();
            looks = 0;
        }
    }
}

impl Detector for Herd<'_> {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        self.note_work(steps);
        let process = steps.first().map(|step| step.observed.window.process.0);
        if self.idle.iter().any(|(idle, _)| Some(*idle) == process) {
            self.waiters(steps, claims);
        } else {
            self.without_work(steps, claims);
        }
        self.wakers(steps, claims);
        ready(steps, &self.shared, claims);
    }
}
