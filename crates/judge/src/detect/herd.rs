//! Woken for nothing: several wait for one thing, all are woken for it, and one gets it.

use super::claim::{Claim, Claims, Detector, put};
use crate::fact::Fact;
use crate::finding::Kind;
use crate::hash::{Map, Set};
use crate::replay::Step;
use crate::semantics::Semantics;
use crate::signs::Signs;
use systoll_model::{Class, Recording, Sysno};

/// Wakes that must have been seen on an address, and how many waiters they must have woken on average.
const SEEN: u64 = 4;
const TOGETHER: f64 = 2.0;
/// Processor time for each wake-up at most, in context switches. The wake-up itself takes some four with its
/// calls, and longer while watched. With more time than this, the woken threads may have found work.
const WORK: f64 = 16.0;

/// Where a thread waits: process and address.
type Address = (u32, u64);

fn address(step: &Step<'_>) -> Address {
    (step.observed.window.process.0, step.observed.arg(0))
}

/// Claims wake-ups that got their thread nothing.
#[derive(Default)]
pub(super) struct Herd {
    /// What was seen at an address, by process.
    woken: Map<Address, Woken>,
    /// Rounds of a herd since the last wake-up that may have got what all waited for.
    since: Map<Address, f64>,
    /// Processes in which a wake-up leaves no time for work, and their calls that wait and wake.
    idle: Vec<(u32, Sysno)>,
}

impl Herd {
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        let mut calls: Map<(u32, Sysno), u64> = Map::default();
        for row in recording.rows.iter().filter(|r| semantics.of(r.syscall).may_wake()) {
            let sum = calls.entry((row.process.0, row.syscall)).or_default();
            *sum = sum.saturating_add(row.counts.calls);
        }
        let switch = recording.prices.switch.map_or(0.0, |s| s.min);
        // Each wake-up takes two of these calls, the wake and the wait, if not more.
        let idle = |((process, _), n): (&(u32, Sysno), &u64)| {
            let cpu = recording.processes.get(*process as usize).and_then(|p| p.cpu_ns).unwrap_or(u64::MAX);
            (cpu as f64) < WORK * switch * (*n / 2) as f64
        };
        let idle = calls.iter().filter(|c| idle(*c)).map(|(key, _)| *key).collect();
        Self { idle, ..Self::default() }
    }

    /// Of waiters for a value in memory: whatever a thread calls that does nothing but wait and wake,
    /// from one waiting in a herd to the next.
    fn waiters(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let idle = |step: &Step<'_>| self.idle.contains(&(step.observed.window.process.0, step.observed.syscall));
        let stretches: Vec<&[Step<'_>]> = steps.split(|s| !idle(s)).filter(|s| !s.is_empty()).collect();
        for stretch in stretches {
            stretch.iter().for_each(|step| self.note(step));
            // Where it goes from one round to the next, and for what it waits there.
            let herd =
                |step: &&Step<'_>| !step.wakes && self.woken.get(&address(step)).and_then(Woken::together).is_some();
            let waits: Vec<(usize, Address)> = stretch.iter().filter(herd).map(|s| (s.index, address(s))).collect();
            let (Some((_, of)), mut waits) = (waits.first().copied(), waits.into_iter().peekable()) else { continue };
            let mut spare = self.is_spare(of);
            for step in stretch {
                if let Some((_, of)) = waits.next_if(|(at, _)| *at == step.index) {
                    spare = self.is_spare(of);
                }
                if spare {
                    put(claims, step.index, claim(WAITERS, ONE));
                }
            }
        }
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

    /// Whether a wake-up at this address is one of those that get nothing: all but one of a herd.
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

/// What was seen at an address.
#[derive(Default)]
struct Woken {
    wakes: u64,
    waiters: u64,
    /// Threads that woke several here, and those that waited.
    by: Set<u32>,
    of: Set<u32>,
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

    /// How many are woken together, where that is a herd's way: not at a barrier, at which the
    /// last to come wakes the others.
    fn together(&self) -> Option<f64> {
        let each = self.waiters as f64 / self.wakes.max(1) as f64;
        (self.wakes >= SEEN && each >= TOGETHER && self.by.is_disjoint(&self.of)).then_some(each)
    }
}

const WAITERS: &str = "is woken together with others and waits again after hardly any work";
const ONE: &str = "wake one for one thing (signal, not broadcast), or give each more to do before it waits again";
const READY: &str = "is woken for what another has taken already, and waits again";

fn claim(about: &'static str, instead: &'static str) -> Claim {
    Claim { facts: Fact::Herd.into(), ..Claim::of(Kind::BusyPoll, about, instead) }
}

/// Waits for descriptors that ended with one, of which there was nothing to take.
fn ready(steps: &[Step<'_>], claims: &mut Claims) {
    let mut round: Vec<usize> = Vec::new();
    let mut looks = 0;
    for step in steps {
        let waits_for_any = step.pauses
            && step.moved.is_none()
            && step.observed.syscall.signature().is_some_and(|s| s.classes.contains(Class::Desc));
        if waits_for_any {
            // The wait now under way is the proof that there was nothing to do.
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
        } else if step.nothing && step.look.is_some_and(|l| !l.sleeps) {
            looks += 1;
            round.push(step.index);
        } else {
            round.clear();
            looks = 0;
        }
    }
}

impl Detector for Herd {
    fn looks_for(&self) -> Signs {
        Signs::NOTHING.and(Signs::WAKES)
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        if !self.idle.is_empty() {
            self.waiters(steps, claims);
        }
        ready(steps, claims);
    }
}
