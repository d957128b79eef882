//! Detects sets that cancel each other, again and again (inverse pairs).

use super::awake::events;
use super::signalled::handling;
use crate::causes::fact::{Fact, Facts};
use crate::collections::hash::{Map, Set};
use crate::collections::sums::Sums;
use crate::evidence::claim::{Claim, Claims, Detector, about_state, leave_out_later, put, put_state};
use crate::reasons::ReasonId;
use crate::results::finding::Kind;
use crate::semantics::signs::Signs;
use crate::semantics::{
    Act, CREDENTIALS, Effect, FILE_STATUS, INTEREST, Key, Lines, ObservedCall, POSITION, PROTECTION, SIGNAL_MASK,
    Semantics, State, StateId, Undone,
};
use crate::world::barrier::Barrier;
use crate::world::bounds::REMEMBERED;
use crate::world::replay::Step;
use std::cell::LazyCell;
use std::ops::Range;
use systoll_model::constants::EPOLLOUT;
use systoll_model::{Errno, Recording};

/// Largest number of sets within which a value must return.
const LONGEST_PERIOD: usize = 8;
/// Least number of whole periods for a toggle: fewer can be chance.
const PERIODS: usize = 3;

/// Least number of sets that return to the value before the last, of all objects of a kind together, for a toggle in
/// rotation: as many as [`PERIODS`] whole periods of one object have.
const RETURNS: usize = 2 * (PERIODS - 1);

/// Least number of settings of the signal mask for each fork that are not those around the forks.
const PER_FORK: u64 = 20;
/// The bit of SIGCHLD in a signal mask (asm/signal.h).
const SIGCHLD: u64 = 1 << 16;

/// Largest number of sets that reverse the direction of the set before and are still chance.
const TURNS: usize = 6;

/// Claims sets that return to an earlier value, or go back towards it. If a run begins at the
/// window's start, its first set is left out, since it may be the one that was needed.
pub(super) struct Toggle<'a> {
    /// Processes to which others send signals all the time.
    signalled: &'a Set<u32>,
    /// Processes whose signal handlers run all the time.
    handling: Set<u32>,
    /// Processes whose toggles of SIGCHLD are not those around a fork.
    parents: Set<u32>,
    /// Sets of descriptors of which several threads wait: what is taken out of one is kept from the other threads.
    shared: Set<(u32, i32)>,
    /// Objects that were changed and changed back in earlier windows.
    turned: Set<Turn>,
    /// Heights of numbers that go up and down, by process and kind of state.
    heights: Map<(u32, StateId), Height>,
}

/// Largest value of a number that goes up and down, in the windows so far, and how often it came back up.
#[derive(Clone, Copy, Default)]
struct Height {
    /// Largest value.
    peak: u64,
    /// Number of steps up to a value that the number had reached before.
    again: usize,
}

/// Key of an object that was set to one value and then to another: the process, the two numbers that name the object, as a
/// range's address and length, and the two values.
type Turn = (u32, [u64; 2], [u64; 2]);

impl Detector for Toggle<'_> {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        // The shortest toggle needs this many sets.
        if steps.iter().filter(|step| step.signs.any(Signs::SETS)).count() < 2 * PERIODS {
            return;
        }
        let mut histories: Map<&Key, History<'_>> = Map::default();
        let mut done: Vec<History<'_>> = Vec::new();
        // The newest set of each descriptor's position.
        let mut places: Map<i32, &Key> = Map::default();
        let mut forked = steps.len();
        for (at, step) in steps.iter().enumerate() {
            if step.lets(Barrier::FORKED) && !claims.is_off(ReasonId::AroundFork) {
                // A program that changes state around a fork has a reason to undo it.
                for (_, history) in histories.drain() {
                    excuse(ReasonId::AroundFork, &history, true, claims);
                    done.push(history);
                }
                forked = forked.min(at);
            }
            if may_need_identity(step) && !claims.is_off(ReasonId::ActsAsAnother) {
                let about = |at: usize| steps.get(at)?.meaning.as_ref().map(|meaning| meaning.line.about);
                let of_identity = |history: &History<'_>| {
                    history.first().and_then(|(at, _)| about(*at)).is_some_and(|about| about.is(&CREDENTIALS))
                };
                for (_, history) in histories.extract_if(|_, history| of_identity(history)) {
                    excuse(ReasonId::ActsAsAnother, &history, true, claims);
                    done.push(history);
                }
            }
            // A position at which the program then reads or writes was needed.
            if let Some(fd) = step.moved.filter(|m| m.line.at.is_none()).and_then(|m| m.fd)
                && let Some(history) = places.remove(&fd).and_then(|place| histories.get_mut(place))
            {
                history.pop();
            }
            let Some(meaning) = &step.meaning else { continue };
            let Act::Set { .. } = meaning.line.act else { continue };
            if meaning.changes_nothing || meaning.known_already() {
                continue;
            }
            // If the resulting value is unknown, the operand stands for it. If both are unknown,
            // the set counts as one to another value, provided that such state goes back to a known
            // one.
            let unread = (meaning.line.about.undone == Undone::Back).then_some(&[][..]);
            if let Some(value) = meaning.now.as_deref().or(meaning.operand.as_deref()).or(unread) {
                histories.entry(&meaning.key).or_default().push((at, value));
                if meaning.line.about.is(&POSITION) {
                    places.insert(step.observed.descriptor(0), &meaning.key);
                }
            }
        }
        done.extend(histories.into_values());
        done.retain(|history| !excuse(ReasonId::KeepsSignalsAway, history, self.keeps_away(history, steps), claims));
        done.retain(|history| {
            !excuse(ReasonId::KeptFromOthers, history, self.keeps_from_others(history, steps), claims)
        });
        done.retain(|history| {
            !excuse(ReasonId::HandlerOpensMemory, history, is_opened_by_handler(history, steps), claims)
        });
        self.in_turns(&done, steps, claims);
        self.up_again(&done, steps, claims);
        in_rotation(&done, steps, claims);
        for history in &done {
            if excuse(ReasonId::WaitsForRoom, history, waits_to_write(history, steps), claims) {
                continue;
            }
            let undone = undone(history, steps);
            let run = Some(periodic(history, undone)).filter(|run| !run.is_empty());
            let run = run.unwrap_or_else(|| if undone == Undone::Back { backs(history) } else { 0..0 });
            let cut = |step: &&Step<'_>| step.index < forked && step.meaning.as_ref().is_some_and(|m| m.from_before);
            let begins = history.first().and_then(|(at, _)| steps.get(*at));
            if let Some(step) = begins.filter(cut).filter(|_| !run.is_empty() && run.start == 0) {
                leave_out_later(step, claims);
            }
            // The way back from a last set that leaves may lie beyond the window.
            let leaves =
                history.get(run.end..).filter(|rest| rest.len() == 1 && undone == Undone::Back && !run.is_empty());
            if let Some(step) = leaves.and_then(<[_]>::first).and_then(|(at, _)| steps.get(*at)) {
                leave_out_later(step, claims);
            }
            let back = history.get(run.clone()).unwrap_or_default().iter().skip(1).map(|(at, _)| *at).collect();
            let turned = undone == Undone::Turns && run.is_empty();
            let back: Vec<usize> = if turned { turns(history) } else { back };
            let is_parent = |step: &&Step<'_>| self.parents.contains(&step.observed.window.process.0);
            let of_children = begins.filter(is_parent).is_some_and(|step| is_child_signal(step, history));
            for step in back.iter().filter_map(|at| steps.get(*at)) {
                if let Some(claim) = about_state(Kind::Toggle, step, claims) {
                    let is_position = step.is_about(&POSITION);
                    let of_both = Facts::default().with(Fact::ChildSignal, of_children);
                    let facts = claim.facts.and(of_both.with(Fact::Position, is_position));
                    put(claims, step.index, Claim { facts, ..claim });
                }
            }
        }
    }
}

/// Asks for a good reason on all settings of a history. Returns true if it holds.
fn excuse(reason: ReasonId, history: &History<'_>, holds: bool, claims: &mut Claims) -> bool {
    history.iter().fold(false, |_, (at, _)| claims.excuse(*at, reason, holds))
}

impl<'a> Toggle<'a> {
    pub(super) fn new(recording: &Recording, semantics: &Semantics, signalled: &'a Set<u32>) -> Self {
        let parents = parents(recording, semantics);
        let handling = handling(recording);
        let shared = shared_sets(recording, semantics);
        Self { signalled, handling, parents, shared, turned: Set::default(), heights: Map::default() }
    }

    /// Returns true if a history sets for which events a descriptor is watched in a set for which several threads wait.
    fn keeps_from_others(&self, history: &History<'_>, steps: &[Step<'_>]) -> bool {
        let first = history.first().and_then(|(at, _)| steps.get(*at)).filter(|step| step.is_about(&INTEREST));
        first.is_some_and(|step| self.shared.contains(&(step.observed.window.process.0, step.observed.descriptor(0))))
    }

    /// Returns true if a history of signal masks keeps signals away that come all the time.
    fn keeps_away(&self, history: &History<'_>, steps: &[Step<'_>]) -> bool {
        let Some(first) = history.first().and_then(|(at, _)| steps.get(*at)) else { return false };
        let is_mask = first.is_about(&SIGNAL_MASK);
        let process = first.observed.window.process.0;
        let has_signals = self.signalled.contains(&process) || self.handling.contains(&process);
        is_mask && has_signals && !is_child_signal(first, history)
    }

    /// Claims changes that are undone at once, of one object after the other, if most of these objects were changed so in an
    /// earlier window. A change that each needs once, as of loaded or generated code, is not claimed.
    fn in_turns(&mut self, done: &[History<'_>], steps: &[Step<'_>], claims: &mut Claims) {
        // After a mapping, other memory may lie at the address.
        let stays = LazyCell::new(|| !steps.iter().any(maps_anew));
        let turn = |history| turn(history, steps, || *stays);
        let turns: Vec<(Turn, &History<'_>)> =
            done.iter().filter_map(|history| Some((turn(history)?, history))).collect();
        let Some((first, _)) = turns.first() else { return };
        let alike: Vec<_> = turns.iter().filter(|(turn, _)| (turn.0, turn.2) == (first.0, first.2)).collect();
        let known = alike.iter().filter(|(turn, _)| self.turned.contains(turn)).count();
        if alike.len() >= PERIODS && 2 * known >= alike.len() {
            for step in alike.iter().flat_map(|(_, history)| history.iter()).filter_map(|(at, _)| steps.get(*at)) {
                put_state(Kind::Toggle, step, claims);
            }
        }
        let room = REMEMBERED.saturating_sub(self.turned.len());
        self.turned.extend(turns.iter().take(room).map(|(turn, _)| *turn));
    }
}

impl Toggle<'_> {
    /// Claims steps up to where a number has been before, and steps down where it has come back up several times: the
    /// whole way up or down may take more calls than a window shows.
    fn up_again(&mut self, done: &[History<'_>], steps: &[Step<'_>], claims: &mut Claims) {
        for history in done.iter().filter(|history| undone(history, steps) == Undone::Turns) {
            let Some(first) = history.first().and_then(|(at, _)| steps.get(*at)) else { continue };
            let Some(about) = first.meaning.as_ref().map(|meaning| meaning.line.about) else { continue };
            let height = self.heights.entry((first.observed.window.process.0, about.id())).or_default();
            let mut before = None;
            for (at, value) in numbers(history) {
                let Some(step) = steps.get(at) else { continue };
                let (up, known) = (before.is_some_and(|before| value > before), value <= height.peak);
                height.again = height.again.saturating_add(usize::from(up && known));
                height.peak = height.peak.max(value);
                if before.is_none() && known && height.again >= TURNS {
                    leave_out_later(step, claims);
                } else if before.is_some() && known && (up || height.again >= TURNS) {
                    put_state(Kind::Toggle, step, claims);
                }
                before = Some(value);
            }
        }
    }
}

/// Returns the processes that made children, or were forked by one that did, and that set their signal mask at least
/// [`PER_FORK`] times as often.
fn parents(recording: &Recording, semantics: &Semantics) -> Set<u32> {
    let calls = |is: fn(&Lines) -> bool| -> Map<u32, u64> {
        let rows = recording.rows.iter().filter(|row| is(semantics.lines_of(row.syscall)));
        Sums::of(rows.map(|row| (row.process.0, row.counts.calls)))
    };
    let forks = calls(|lines| lines.does(|effect| matches!(effect, Effect::Forks)));
    let masks = calls(|lines| lines.sets(&SIGNAL_MASK));
    let made = |process: u32| forks.get(&process).copied().unwrap_or(0);
    let above = |process: u32| recording.processes.get(process as usize).and_then(|image| image.parent);
    let has = |process: &u32| made(*process) > 0 || above(*process).is_some_and(|parent| made(parent.0) > 0);
    let often = |(process, calls): (u32, u64)| (calls >= PER_FORK.saturating_mul(made(process))).then_some(process);
    masks.into_iter().filter_map(often).filter(has).collect()
}

/// Returns true if a history of signal masks adds and takes away SIGCHLD, and no other signal.
fn is_child_signal(step: &Step<'_>, history: &History<'_>) -> bool {
    let is_mask = step.is_about(&SIGNAL_MASK);
    let masks = || history.iter().map(|(_, value)| Some(u64::from_le_bytes(*value.first_chunk()?)));
    let Some(first) = masks().next().flatten().filter(|_| is_mask) else { return false };
    let others = first & !SIGCHLD;
    let has_child = |mask: Option<u64>| mask.is_some_and(|mask| mask & SIGCHLD != 0);
    // Where a mask itself is unknown, the signals that the call adds or takes away stand for it.
    masks().all(|mask| mask.is_some_and(|mask| mask & !SIGCHLD == others))
        && masks().any(has_child)
        && (others == 0 || !masks().all(has_child))
}

/// Claims sets of state that goes to and fro for each of several objects, of which the window shows too little for a
/// run of any one: if there are enough returns among them, each set but the object's first is claimed.
fn in_rotation(done: &[History<'_>], steps: &[Step<'_>], claims: &mut Claims) {
    let mut kinds: Map<StateId, Vec<&History<'_>>> = Map::default();
    for history in done {
        let first = history.first().and_then(|(at, _)| steps.get(*at)?.meaning.as_ref());
        if let Some(about) = first.map(|meaning| meaning.line.about).filter(|about| may_rotate(about)) {
            kinds.entry(about.id()).or_default().push(history);
        }
    }
    let returns = |history: &&History<'_>| returns(history).unwrap_or(0);
    let several = |of: &Vec<&History<'_>>| {
        of.iter().filter(|history| returns(history) > 0).count() > 1
            && of.iter().map(returns).sum::<usize>() >= RETURNS
            && !of.iter().any(|history| waits_to_write(history, steps))
    };
    for history in kinds.into_values().filter(several).flatten() {
        let of = |(at, _): &(usize, &[u8])| steps.get(*at);
        let cut = |step: &&Step<'_>| step.meaning.as_ref().is_some_and(|m| m.from_before);
        // Without a return, neither of the two sets can be judged if there may be one before the window.
        let unknown = if returns(&history) == 0 { history.len() } else { 1 };
        if history.first().and_then(of).filter(cut).is_some() {
            history.iter().take(unknown).filter_map(of).for_each(|step| leave_out_later(step, claims));
        }
        if returns(&history) == 0 {
            continue;
        }
        for step in history.iter().skip(1).filter_map(of) {
            put_state(Kind::Toggle, step, claims);
        }
    }
}

/// Returns true if windows show what undoes such state, and each object has its own.
fn may_rotate(about: &State) -> bool {
    matches!(about.undone, Undone::Returns | Undone::Alternates) && !about.is(&POSITION) && !about.is(&PROTECTION)
}

/// Returns how many settings restore the value that the setting before them had replaced; `None` if one of them, from
/// the third on, does not.
fn returns(history: &History<'_>) -> Option<usize> {
    let back = |three: &[(usize, &[u8])]| matches!(three, [a, b, c] if a.1 == c.1 && a.1 != b.1);
    history.windows(3).all(back).then(|| history.len().saturating_sub(2))
}

/// Returns true if the call's outcome may depend on whose the process is. What goes through a file that is open does not,
/// nor do memory and what threads of a process tell each other.
fn may_need_identity(step: &Step<'_>) -> bool {
    let of_file = step.moved.is_some() && step.observed.call.fd.as_deref().is_some_and(|file| file.starts_with('/'));
    let about = step.meaning.as_ref().map(|meaning| meaning.line.about);
    let state = about.is_some_and(|about| [&CREDENTIALS, &FILE_STATUS, &POSITION].iter().any(|of| about.is(of)));
    let only = |effect: Effect| matches!(effect, Effect::Memory | Effect::Closes(_));
    let own = step.effects.iter().next().is_some() && step.effects.iter().all(only);
    !(of_file || state || own || step.lines.may_wake())
}

/// Returns the sets of descriptors for which several threads wait, by process and descriptor, as windows show.
fn shared_sets(recording: &Recording, semantics: &Semantics) -> Set<(u32, i32)> {
    let waits = semantics.calls_in_windows(recording, |lines| lines.tells_ready() && lines.fd == Some(0));
    let mut waiters: Map<(u32, i32), u32> = Map::default();
    let by_another = |o: ObservedCall<'_>| {
        let set = (o.window.process.0, o.descriptor(0));
        (*waiters.entry(set).or_insert(o.window.thread) != o.window.thread).then_some(set)
    };
    waits.filter_map(by_another).collect()
}

/// Returns true if a history sets for which events a descriptor is watched, room to write is one of them, and the window
/// shows that there was none: it is wanted while there is something left to write.
fn waits_to_write(history: &History<'_>, steps: &[Step<'_>]) -> bool {
    history.iter().filter(|(_, value)| events(value) & EPOLLOUT != 0).any(|(at, _)| {
        let Some(step) = steps.get(*at) else { return false };
        let watched = step.observed.descriptor(2);
        let is_full = |s: &Step<'_>| {
            s.observed.call.errno() == Some(Errno::EAGAIN) && s.lines.transfers_out() && s.descriptor() == Some(watched)
        };
        step.is_about(&INTEREST) && steps.iter().any(is_full)
    })
}

/// Returns true if a history sets the protection of memory, and a signal came before one of the sets: a handler may have
/// made it.
fn is_opened_by_handler(history: &History<'_>, steps: &[Step<'_>]) -> bool {
    history
        .iter()
        .filter_map(|(at, _)| steps.get(*at))
        .any(|step| step.lets(Barrier::SIGNALLED) && step.is_about(&PROTECTION))
}

/// Returns true if the step unmaps memory, or maps memory that may lie where other memory was.
fn maps_anew(step: &Step<'_>) -> bool {
    step.effects.iter().any(|effect| matches!(effect, Effect::Memory)) && !step.signs.any(Signs::SETS)
}

/// Returns the range of memory whose protection a history sets exactly twice, to two different values, or the descriptor
/// that it takes out of a set and puts back. `memory_stays` is false if the window maps memory anew.
fn turn(history: &History<'_>, steps: &[Step<'_>], memory_stays: impl Fn() -> bool) -> Option<Turn> {
    let [(first, one), (_, other)] = history.as_slice() else { return None };
    let step = steps.get(*first)?;
    let about = step.meaning.as_ref().filter(|m| matches!(m.line.act, Act::Set { .. }))?.line.about;
    let (object, from, to) = if about.is(&PROTECTION) {
        let word = |value: &[u8]| value.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        ([0, 1], word(one).filter(|_| memory_stays())?, word(other)?)
    } else {
        let is_put_back = about.is(&INTEREST) && one.is_empty() && !other.is_empty();
        ([0, 2], 0, is_put_back.then(|| events(other))?.into())
    };
    Some((step.who, object.map(|arg| step.observed.arg(arg)), [from, to])).filter(|_| from != to)
}

/// Values that a piece of state was set to, each with the index of its step.
type History<'s> = Vec<(usize, &'s [u8])>;

/// Returns the kind of set, or of use, that undoes the state of a history.
fn undone(history: &History<'_>, steps: &[Step<'_>]) -> Undone {
    let first = history.first().and_then(|(at, _)| steps.get(*at)?.meaning.as_ref());
    first.map_or(Undone::Returns, |meaning| meaning.line.about.undone)
}

/// Returns the longest run in which every second set returns to the same known value.
fn backs(history: &History<'_>) -> Range<usize> {
    let value = |at: usize| history.get(at).map(|(_, value)| *value).filter(|value| !value.is_empty());
    let mut best = 0..0;
    for start in 0..history.len() {
        let Some(back) = value(start + 1) else { continue };
        let is_pair = |at: &usize| value(*at) != Some(back) && value(at + 1) == Some(back);
        let pairs = (start..history.len()).step_by(2).take_while(is_pair).count();
        if pairs >= PERIODS && 2 * pairs > best.len() {
            best = start..start + 2 * pairs;
        }
    }
    best
}

/// Returns the values of a history of numbers, each with the index of its step.
fn numbers(history: &History<'_>) -> impl Iterator<Item = (usize, u64)> {
    history.iter().filter_map(|(at, value)| Some((*at, value.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))?)))
}

/// Returns the sets of a number that reverse the direction of the set before, if there are more
/// than [`TURNS`].
fn turns(history: &History<'_>) -> Vec<usize> {
    let numbers: Vec<(usize, u64)> = numbers(history).collect();
    let turns = numbers.windows(3).filter_map(|three| match three {
        [(_, a), (_, b), (at, c)] if (b > a) != (c > b) => Some(*at),
        _ => None,
    });
    let turns: Vec<usize> = turns.collect();
    if turns.len() > TURNS { turns } else { Vec::new() }
}

/// Returns the longest run with a period, by its place in the history.
fn periodic(history: &History<'_>, undone: Undone) -> Range<usize> {
    let longest = if undone == Undone::Alternates { 2 } else { LONGEST_PERIOD };
    let mut best = 0..0;
    for period in 2..=longest {
        let mut start = 0;
        for at in 0..history.len() {
            let same = at < start + period || history.get(at).map(|h| h.1) == history.get(at - period).map(|h| h.1);
            if !same {
                start = at + 1 - period.min(at);
            }
            let run = start..at + 1;
            if run.len() >= PERIODS * period && run.len() > best.len() && alternates(history, &run) {
                best = run;
            }
        }
    }
    best
}

fn alternates(history: &History<'_>, run: &Range<usize>) -> bool {
    let run = history.get(run.clone()).unwrap_or_default();
    run.windows(2).any(|pair| matches!(pair, [a, b] if a.1 != b.1))
}
