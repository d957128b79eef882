//! Counts in all windows how often each timer is set, fires and is taken back, and tells how soon it is set again.

use super::timers::{Timer, length_ns, time, timer_of};
use crate::collections::hash::{Map, Set};
use crate::semantics::{Lines, ObservedCall, Semantics, TIMERS, Way};
use systoll_model::Recording;

/// Least number of settings for each firing for a timer to be one that is put off: below that, it is set to fire.
const SETTINGS: u64 = 16;
/// Least number of settings in the length of time that the timer is set to. A timer that is set only when it fires too
/// early is set and fires once in each such length: that must be much less often.
const IN_LENGTH: u64 = 4;
/// Least number of settings for each timer that is made, by exact counts: with fewer, most are the first of their timer.
const OF_EACH: u64 = 8;

/// The settings of a timer, and what became of them.
#[derive(Clone, Copy, Default)]
struct Habit {
    settings: u64,
    firings: u64,
    /// Number of settings that took the timer back.
    taken_back: u64,
}

/// The habits of all timers.
#[derive(Default)]
pub(super) struct TimerHabits {
    timers: Map<(u32, Timer), Habit>,
    /// Signals that windows show, by process: each may be a timer's.
    signals: Map<u32, u64>,
    /// Processes, each with a sort of timer that it makes hardly more often than it sets them.
    brief: Set<(u32, &'static str)>,
    /// Mean time between two settings of one timer, ns, by process and sort.
    gaps: Map<(u32, &'static str), u64>,
}

impl TimerHabits {
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        let mut habits = Self::default();
        for observed in semantics.calls_in_windows(recording, |lines| lines.arm().is_some()) {
            habits.note_setting(&observed, semantics);
        }
        if habits.timers.is_empty() {
            return habits;
        }
        for observed in semantics.calls_in_windows(recording, |_| true) {
            habits.note_firing(&observed, semantics.lines_of(observed.syscall));
        }
        habits.count(recording, semantics);
        habits
    }

    fn note_setting(&mut self, observed: &ObservedCall<'_>, semantics: &Semantics) {
        let lines = semantics.lines_of(observed.syscall);
        let Some((arm, timer)) = lines.arm().zip(timer_of(lines, observed)) else { return };
        let habit = self.timers.entry((observed.window.process.0, timer)).or_default();
        habit.settings += 1;
        habit.taken_back += u64::from(time(arm, observed) == Some(0));
    }

    fn note_firing(&mut self, observed: &ObservedCall<'_>, lines: &Lines) {
        let (process, call) = (observed.window.process.0, observed.call);
        if call.signals_before > 0 {
            *self.signals.entry(process).or_default() += 1;
        }
        let taken = lines.transfer(observed).filter(|moved| moved.way == Way::In);
        let is_timer = call.fd.as_deref().is_none_or(|name| name == TIMERS);
        let Some(fd) = taken.and_then(|moved| moved.fd).filter(|_| is_timer && call.result.is_some_and(|n| n > 0))
        else {
            return;
        };
        let number = observed.descriptor(fd);
        for timer in Timer::of_descriptor(number) {
            if let Some(habit) = self.timers.get_mut(&(process, timer)) {
                habit.firings += 1;
            }
        }
    }

    /// Notes what exact counts tell of each sort of timer.
    fn count(&mut self, recording: &Recording, semantics: &Semantics) {
        let mut calls: Map<(u32, &'static str), u64> = Map::default();
        let mut settings: Map<(u32, &'static str), (u64, Option<&'static str>)> = Map::default();
        for row in &recording.rows {
            let (process, number) = (row.process.0, row.counts.calls);
            let sum = |all: &mut u64| *all = all.saturating_add(number);
            row.syscall.name().into_iter().for_each(|name| sum(calls.entry((process, name)).or_default()));
            if let Some(arm) = semantics.lines_of(row.syscall).arm() {
                let (all, made_by) = settings.entry((process, arm.of)).or_default();
                sum(all);
                *made_by = arm.made_by;
            }
        }
        let mut timers: Map<(u32, &'static str), u64> = Map::default();
        for (process, timer) in self.timers.keys() {
            *timers.entry((*process, timer.of)).or_default() += 1;
        }
        for ((process, of), (all, made_by)) in settings {
            let made = made_by.and_then(|name| calls.get(&(process, name))).copied().unwrap_or(0);
            if made.saturating_mul(OF_EACH) > all {
                self.brief.insert((process, of));
            }
            let timers = timers.get(&(process, of)).copied().unwrap_or(0);
            let gap = recording.header.wall_ns.saturating_mul(timers.max(made)) / all.max(1);
            self.gaps.insert((process, of), gap);
        }
    }

    fn habit(&self, process: u32, timer: Timer) -> Habit {
        let habit = self.timers.get(&(process, timer)).copied().unwrap_or_default();
        let signals = self.signals.get(&process).copied().filter(|_| timer.signals);
        Habit { firings: habit.firings + signals.unwrap_or(0), ..habit }
    }

    /// Returns true if the timer hardly ever fires.
    pub(super) fn is_put_off(&self, process: u32, timer: Timer) -> bool {
        let habit = self.habit(process, timer);
        habit.firings.saturating_mul(SETTINGS) <= habit.settings
    }

    /// Returns true if the timer was still set when it is set again, in whatever window: no window shows that it fires,
    /// is taken back, or is one of many that are set once each.
    pub(super) fn stays_set(&self, process: u32, timer: Timer, observed: &ObservedCall<'_>, lines: &Lines) -> bool {
        let habit = self.habit(process, timer);
        let brief = || self.brief.contains(&(process, timer.of));
        let gap = self.gaps.get(&(process, timer.of)).copied();
        let often = lines.arm().zip(gap).is_some_and(|(arm, gap)| is_often(arm, observed, gap));
        habit.firings == 0 && habit.taken_back == 0 && !brief() && often
    }
}

/// Returns true if a call `gap_ns` after the one before it sets a timer that often falls due much later: if that is
/// unknown, it may.
pub(super) fn is_often(arm: &crate::semantics::Arm, observed: &ObservedCall<'_>, gap_ns: u64) -> bool {
    length_ns(arm, observed).is_none_or(|length| gap_ns.saturating_mul(IN_LENGTH) <= length)
}
