//! Detects calls that fail the same way each time, and wakes that wake no thread.

use super::awake::Rung;
use crate::causes::fact::Fact;
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, about_state, leave_out_later, put};
use crate::reasons::ReasonId;
use crate::results::finding::Kind;
use crate::semantics::{Act, HOPELESS, Hopeless, MAKING, PATH, Unit, Way};
use crate::world::barrier::Barrier;
use crate::world::bounds::BESIDE;
use crate::world::replay::Step;
use std::cell::LazyCell;
use systoll_model::constants::O_EXCL;
use systoll_model::{Errno, Recording, RowId, Sysno};

/// Number of equal errors from which on another one is claimed.
const SEEN: u64 = 4;
/// Least share of wakes without a waiter, 0 to 1, for a claim: locks that count their waiters make hardly any.
const EMPTY: f64 = 0.9;

/// Beginnings of the names of the C library's lock functions (pthreads(7), sem_overview(7), threads.h of C11).
const LOCKS: [&str; 4] = ["pthread_", "sem_", "mtx_", "cnd_"];

/// Counts of the calls that had an outcome, and of those that did not.
#[derive(Default)]
struct Tally {
    yes: u64,
    no: u64,
}

/// Claims calls whose failure was known beforehand.
pub(super) struct Failing<'r> {
    rung: &'r Rung<'r>,
    /// By process, call and command: for each futile error how often it came, and how often the call succeeded.
    hopeless: Map<(u32, Sysno, u64), Vec<(Errno, Tally)>>,
    wakes: Map<(u32, u64), Tally>,
    /// Rows of the C library's own locks. The library decides when these wake, and the thread to be woken may have
    /// found the lock free.
    locks: Set<RowId>,
}

impl Detector for Failing<'_> {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut drained: Map<i32, bool> = Map::default();
        let mut stood_there: Option<Claim> = None;
        let in_order = LazyCell::new(|| in_order(steps));
        for (at, step) in steps.iter().enumerate() {
            if refused_before(step)
                && !claims.excuse(step.index, ReasonId::LockHeld, is_held(step))
                && let Some(claim) = about_state(Kind::Failing, step, claims)
            {
                let facts = claim.facts.with(Fact::NobodyThere, step.lines.connects());
                let claim = Claim { facts, instead: Some("remember that it was refused"), ..claim };
                stood_there = is_there(step).then(|| claim.clone());
                made_for(at, step, steps).for_each(|of_socket| put(claims, of_socket.index, claim.clone()));
                put(claims, step.index, claim);
            } else if let Some(claim) = stood_there.take().filter(|claim| asks_about(step, claim)) {
                // The refused call tells that something stands there, the question whether it is a folder.
                claims.set(step.index, claim);
            }
            if let Some(claim) = self.hopeless(step, || in_order.get(at).copied().unwrap_or_default()) {
                put(claims, step.index, claim);
            } else if futile(step).is_some_and(|line| line.in_series) && in_order.get(at) == Some(&Order::Cut) {
                leave_out_later(step, claims);
            }
            if let Some(claim) = self.wake(step) {
                put(claims, step.index, claim);
            }
            if let Some(claim) = self.drain(step, &mut drained) {
                put(claims, step.index, claim);
            }
        }
    }
}

/// Returns true if the step could not make a file that nobody else may have made: whoever did so holds a lock, and removes it.
fn is_held(step: &Step<'_>) -> bool {
    // A call that failed has no effects, but for these its flags stand.
    let flags = || step.observed.opening_flags(step.lines.effects(&step.observed));
    step.observed.call.errno() == Some(Errno::EEXIST) && flags().is_some_and(|flags| flags & O_EXCL != 0)
}

fn refused_before(step: &Step<'_>) -> bool {
    step.meaning.as_ref().is_some_and(|m| matches!(m.line.act, Act::Try) && m.known_already())
}

/// Returns the calls that make the socket of a refused connection right before it and close it right after it; none if
/// the window does not show both. They were made for the connection alone.
fn made_for<'s, 'a>(
    at: usize,
    step: &Step<'a>,
    steps: &'s [Step<'a>],
) -> impl Iterator<Item = &'s Step<'a>> + use<'s, 'a> {
    let of = |fd: i32| {
        let mut before = steps.get(at.saturating_sub(BESIDE)..at)?.iter().rev();
        let mut after = steps.get(at + 1..)?.iter().take(BESIDE);
        Some([before.find(|step| step.makes_descriptor(fd))?, after.find(|step| step.lets_go(fd))?])
    };
    step.descriptor().filter(|_| step.lines.connects()).and_then(of).into_iter().flatten()
}

/// Returns true if the step was refused because something stands where it was to make something.
fn is_there(step: &Step<'_>) -> bool {
    step.is_about(&MAKING) && step.observed.call.errno() == Some(Errno::EEXIST)
}

/// Returns true if the step asks for the status of the object of a claim.
fn asks_about(step: &Step<'_>, claim: &Claim) -> bool {
    step.asks(&PATH) && claim.object.is_some() && step.object.as_deref() == claim.object.as_deref()
}

fn claim(about: &'static str, instead: &'static str, weak: bool) -> Claim {
    Claim { weak, ..Claim::of(Kind::Failing, about, instead) }
}

impl<'r> Failing<'r> {
    pub(super) fn new(rung: &'r Rung<'r>, recording: &Recording) -> Self {
        let is_lock = |api: &str| LOCKS.iter().any(|prefix| api.starts_with(prefix));
        let rows = (0..).map(RowId).zip(&recording.rows);
        let locks = rows.filter(|(_, row)| row.api.as_deref().is_some_and(is_lock)).map(|(id, _)| id).collect();
        Self { rung, hopeless: Map::default(), wakes: Map::default(), locks }
    }

    /// Returns a claim if the call failed with an error that comes again, and never succeeded; for descriptors that are
    /// not open, if the call is one of a series through their numbers (`order` tells).
    fn hopeless(&mut self, step: &Step<'_>, order: impl Fn() -> Order) -> Option<Claim> {
        let observed = &step.observed;
        let (who, syscall) = (step.who, observed.syscall);
        let key = (who, syscall, command(step));
        if let Some(line) = futile(step) {
            let tallies = self.hopeless.entry(key).or_default();
            let at = tallies.iter().position(|(errno, _)| *errno == line.errno).unwrap_or(tallies.len());
            if at == tallies.len() {
                tallies.push((line.errno, Tally::default()));
            }
            let (_, tally) = tallies.get_mut(at)?;
            tally.yes += 1;
            let sure = match line.in_series {
                true => order() == Order::Series,
                false => tally.yes > SEEN && tally.no == 0,
            };
            return sure.then(|| hopeless(line));
        }
        if observed.call.errno().is_none()
            && let Some(tallies) = self.hopeless.get_mut(&key)
        {
            tallies.iter_mut().for_each(|(_, tally)| tally.no += 1);
        }
        None
    }

    /// Returns a claim if the wake found no waiter, and hardly any wake at its address ever found one.
    fn wake(&mut self, step: &Step<'_>) -> Option<Claim> {
        let call = step.observed.call;
        if !step.wakes || call.errno().is_some() || self.locks.contains(&call.row) {
            return None;
        }
        let tally = self.wakes.entry((step.who, step.observed.arg(0))).or_default();
        match call.result {
            Some(0) => tally.yes += 1,
            _ => tally.no += 1,
        }
        let all = tally.yes + tally.no;
        let in_vain = call.result == Some(0) && all > SEEN && tally.yes as f64 >= EMPTY * all as f64;
        in_vain.then(|| {
            claim(
                "wakes waiters of which there are none",
                "count the waiters and wake only where there are some",
                false,
            )
        })
    }

    /// Returns a claim if the call failed with EAGAIN right after a short read or a connection: the short read told
    /// that there is no more, and waiting would tell when there is more.
    fn drain(&self, step: &Step<'_>, drained: &mut Map<i32, bool>) -> Option<Claim> {
        let call = step.observed.call;
        let moved = step.moved.as_ref().filter(|m| m.line.way == Way::In);
        if let Some((moved, fd)) = moved.and_then(|m| Some((m, m.fd?))) {
            let before = drained.remove(&fd).unwrap_or(false);
            if call.errno().is_some_and(|e| e == Errno::EAGAIN) && before {
                let process = step.observed.window.process.0;
                let weak = match moved.line.unit {
                    Unit::Item => self.rung.edges.contains(&process),
                    _ => self.rung.ends_untold.contains(&process) || moved.line.asked.is_none(),
                };
                return Some(claim(
                    "reads or accepts once more although there was no more",
                    "go back to waiting after a short read or a connection: it tells when there is more",
                    weak,
                ));
            }
            let short = match moved.line.unit {
                Unit::Item => moved.got.is_some(),
                Unit::Stream => moved.got.zip(moved.asked).is_some_and(|(got, asked)| got > 0 && got < asked),
                Unit::Message | Unit::Batch | Unit::Random => false,
            };
            if short {
                drained.insert(fd, true);
            }
            return None;
        }
        if step.lets(Barrier::WAITS) {
            drained.clear();
        }
        if !drained.is_empty() {
            drained.retain(|fd, _| !step.lets_go(*fd));
            if let Some(fd) = step.moved.as_ref().and_then(|m| m.fd) {
                drained.remove(&fd);
            }
        }
        None
    }
}

/// Place of a call in a series of calls that go through the numbers of descriptors in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    /// The call is in no series.
    #[default]
    None,
    /// The window's beginning or end cuts the calls off, so that they may be part of a series.
    Cut,
    /// The call is part of a series.
    Series,
}

/// Returns the line of the error with which a step failed; `None` if it did not, or by chance.
fn futile(step: &Step<'_>) -> Option<&'static Hopeless> {
    let errno = step.observed.call.errno()?;
    HOPELESS.iter().find(|line| line.errno == errno)
}

/// Returns the command that a call such as fcntl gives, 0 if it gives none.
fn command(step: &Step<'_>) -> u64 {
    step.lines.command.and_then(|at| step.observed.call.args.get(at)).map_or(0, |command| *command & 0xffff_ffff)
}

/// Returns the place of each step in a series. A program that closes whatever it may have inherited goes through all
/// numbers, open or not; one that closes two descriptors twice, as a shell in each child, does not.
fn in_order(steps: &[Step<'_>]) -> Vec<Order> {
    let mut order = vec![Order::None; steps.len()];
    let mut set = |at: usize, place| order.get_mut(at).into_iter().for_each(|of| *of = place);
    let mut calls: Map<(Sysno, u64), Vec<(usize, i32)>> = Map::default();
    for (at, step) in steps.iter().enumerate() {
        if let Some(fd) = step.descriptor() {
            calls.entry((step.observed.syscall, command(step))).or_default().push((at, fd));
        }
    }
    for calls in calls.values() {
        let mut from = 0;
        while from < calls.len() {
            let way = |n: usize| calls.get(n)?.1.partial_cmp(&calls.get(n + 1)?.1).filter(|way| way.is_ne());
            let direction = way(from);
            let mut to = from + 1;
            while direction.is_some() && way(to - 1) == direction {
                to += 1;
            }
            let is_cut = from == 0 || to == calls.len();
            let place = match to - from {
                n if n as u64 > SEEN => Order::Series,
                _ if is_cut => Order::Cut,
                _ => Order::None,
            };
            calls.get(from..to).unwrap_or_default().iter().for_each(|(at, _)| set(*at, place));
            from = to;
        }
    }
    order
}

fn hopeless(line: &'static Hopeless) -> Claim {
    claim(line.does, line.instead, false)
}
