//! Detects timers that are set again before they fire, to a later time, and timers that are armed and disarmed around
//! a short action.

use super::timer_habits::{TimerHabits, is_often};
use super::timers::{Timer, time, timer_of};
use crate::collections::hash::Map;
use crate::evidence::claim::{Claim, Claims, Detector, leave_out_later, put};
use crate::results::finding::Kind;
use crate::semantics::{Semantics, Way};
use crate::world::barrier::Barrier;
use crate::world::bounds::{OFTEN, REMEMBERED};
use crate::world::replay::Step;
use systoll_model::Recording;

/// Claims settings of a timer to a time that is no earlier, if it did not fire in between (dead stores), where the
/// timer hardly ever fires.
pub(super) struct Rearm {
    habits: TimerHabits,
    /// The time to which each timer was last set in an earlier window.
    earlier: Map<(u32, Timer), u128>,
}

impl Rearm {
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        Self { habits: TimerHabits::new(recording, semantics), earlier: Map::default() }
    }

    /// Claims a setting, or leaves it out, that is the timer's first in its window.
    fn first(&self, step: &Step<'_>, timer: Timer, time: u128, claims: &mut Claims) {
        if !self.habits.stays_set(step.who, timer, &step.observed, step.lines) {
            return;
        }
        match self.earlier.get(&(step.who, timer)) {
            Some(before) if time >= *before => put(claims, step.index, claim()),
            Some(_) => {}
            None => leave_out_later(step, claims),
        }
    }
}

/// Returns the timer that the call sets.
pub(super) fn timer(step: &Step<'_>) -> Option<Timer> {
    timer_of(step.lines, &step.observed)
}

/// Returns true if the calls `before` a timer's first setting in a window show no firing of it and not how it was
/// made: the setting can't be judged.
pub(super) fn is_hidden(timer: Timer, step: &Step<'_>, before: &[Step<'_>]) -> bool {
    let Some(arm) = step.lines.arm() else { return false };
    let signalled = |s: &Step<'_>| s.lets(Barrier::SIGNALLED);
    let reads = |s: &Step<'_>| s.moved.is_some_and(|m| m.line.way == Way::In && m.fd == Some(timer.number as i32));
    let makes = |s: &Step<'_>| s.observed.call.result == Some(timer.number as i64);
    let told = if arm.signals {
        before.iter().chain([step]).any(signalled)
    } else {
        before.iter().any(|s| reads(s) || makes(s))
    };
    !told
}

impl Detector for Rearm {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        // The time to which each timer was last set: seconds and the fraction.
        let mut armed: Map<Timer, Armed> = Map::default();
        let mut moments: Map<Timer, Vec<usize>> = Map::default();
        // The place of each timer's first setting.
        let mut firsts: Map<Timer, usize> = Map::default();
        let mut last = None;
        for (at, step) in steps.iter().enumerate() {
            if step.lets(Barrier::SIGNALLED) {
                armed.retain(|timer, _| !timer.signals);
                self.earlier.retain(|(who, timer), _| *who != step.who || !timer.signals);
            }
            self.fired(step, &mut armed);
            let (Some(arm), Some(timer)) = (step.lines.arm(), timer(step)) else { continue };
            let is_first = *firsts.entry(timer).or_insert(at) == at;
            let time = time(arm, &step.observed);
            match time {
                Some(time) if time > 0 => {
                    let at_ns = step.observed.call.entry_ns;
                    let before = armed.insert(timer, Armed { time, at_ns });
                    let again = |before: &Armed| {
                        time >= before.time && is_often(arm, &step.observed, at_ns.saturating_sub(before.at_ns))
                    };
                    if before.filter(again).is_some_and(|_| self.habits.is_put_off(step.who, timer)) {
                        put(claims, step.index, claim());
                    } else if is_first {
                        self.first(step, timer, time, claims);
                    }
                }
                Some(_) => {
                    // Other calls in between could block, and the timer would limit them.
                    if armed.remove(&timer).is_some() && last == Some((timer, step.index.wrapping_sub(1))) {
                        moments.entry(timer).or_default().extend([step.index - 1, step.index]);
                    }
                }
                None => drop(armed.remove(&timer)),
            }
            self.set_to(step.who, timer, time);
            last = Some((timer, step.index));
        }
        moments.retain(|_, indices| indices.len() >= 2 * OFTEN);
        leave_out(&firsts, &moments, last, steps, claims);
        for indices in moments.into_values() {
            indices.into_iter().skip(2).for_each(|index| put(claims, index, guard()));
        }
    }
}

/// Leaves out calls at the window's edges that may belong to claimed settings.
fn leave_out(
    firsts: &Map<Timer, usize>,
    moments: &Map<Timer, Vec<usize>>,
    last: Option<(Timer, usize)>,
    steps: &[Step<'_>],
    claims: &mut Claims,
) {
    for (timer, at) in firsts {
        let (before, rest) = steps.split_at(*at);
        let Some(first) = rest.first().filter(|first| is_hidden(*timer, first, before)) else { continue };
        let pair = moments.get(timer).map_or(&[][..], |indices| indices.get(..2).unwrap_or_default());
        let disarms = first.lines.arm().and_then(|arm| time(arm, &first.observed)) == Some(0);
        let within = disarms || pair.first() == Some(&first.index);
        pair.iter().filter(|_| within).filter_map(|at| steps.get(*at)).for_each(|s| leave_out_later(s, claims));
    }
    // If the window's last call armed the timer, it may have been disarmed right afterwards.
    let open = last.filter(|(timer, at)| at + 1 == steps.len() && moments.contains_key(timer));
    if let Some(step) = open.and_then(|(_, at)| steps.get(at)) {
        leave_out_later(step, claims);
    }
}

/// The newest setting of a timer.
struct Armed {
    /// The time to which the timer was set: seconds and the fraction.
    time: u128,
    /// Time of the call, ns.
    at_ns: u64,
}

impl Rearm {
    /// Remembers the time to which a timer is set; a timer that is taken back or goes on by itself has none.
    fn set_to(&mut self, who: u32, timer: Timer, time: Option<u128>) {
        match time.filter(|time| *time > 0) {
            Some(time) if self.earlier.len() < REMEMBERED => drop(self.earlier.insert((who, timer), time)),
            _ => drop(self.earlier.remove(&(who, timer))),
        }
    }

    /// Forgets a timer whose descriptor the program reads, since it knows then that the timer fired, or gives up.
    fn fired(&mut self, step: &Step<'_>, armed: &mut Map<Timer, Armed>) {
        let read = step.moved.as_ref().filter(|m| m.line.way == Way::In).and_then(|m| m.fd);
        let closed = step.descriptor().filter(|fd| step.lets_go(*fd));
        for timer in read.into_iter().chain(closed).flat_map(Timer::of_descriptor) {
            armed.remove(&timer);
            self.earlier.remove(&(step.who, timer));
        }
    }
}

fn claim() -> Claim {
    Claim {
        gives_up: "the timer fires once for nothing now and then",
        ..Claim::of(
            Kind::Toggle,
            "a timer that has not fired",
            "keep the new deadline in memory and set the timer again only when it fires too early",
        )
    }
}

fn guard() -> Claim {
    Claim {
        about: "a timer that is armed and disarmed around a moment",
        instead: Some("leave it armed and let its handler look whether the deadline that holds now has passed"),
        ..claim()
    }
}
