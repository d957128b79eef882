//! Detects questions that are asked again and get the same answer (common subexpressions).

use super::by_process::FilesByProcess;
use super::led_elsewhere::{Follows, LedElsewhere};
use super::walk::{leads_to, walks};
use crate::causes::fact::Fact;
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, about_state, leave_out_later, put};
use crate::evidence::ledger::of_rows;
use crate::names::paths::PathId;
use crate::reasons::ReasonId;
use crate::results::finding::Kind;
use crate::semantics::{
    Act, Effect, FILE_STATUS, Lines, MISSING, NAME, ObservedCall, OwnWait, PATH, Semantics, TIMES, Way, removes_name,
};
use crate::world::bounds::{OFTEN, REMEMBERED};
use crate::world::changers::Changers;
use crate::world::replay::Step;
use std::cell::LazyCell;
use std::rc::Rc;
use systoll_model::{Before, Errno, Ledger, Recording, RowId};

/// Largest distance from a question about a path to the path's opening, calls, at which the
/// question belongs to the opening: it may have good reason to come again.
const NEAR: usize = 4;

/// Least number of directories asked about in a row for a search.
const SEARCH: usize = 6;

/// Share of a row's calls that ask a known question over the whole run, 0 to 1, from which on it is a habit.
const HABIT: f64 = 0.45;
/// Least number of a row's calls that ask a known question for a habit: an interpreter asks about
/// its folders a hundred times when it starts.
const HABIT_CALLS: f64 = 500.0;

/// Largest number of calls before and after a question among which a read and the closing of its file are sought: a
/// stranger's recording may be one window of a million calls, and a usual one has 32.
const AROUND: usize = 128;

/// The answers to the questions about a path.
#[derive(Default)]
struct Answers {
    last: Option<Box<[u8]>>,
    /// Number of answers equal to the one before.
    same: u32,
    /// Number of answers that differ from the one before.
    other: u32,
}

/// Claims questions whose answer was known.
pub(super) struct Repeat<'a> {
    recording: &'a Recording,
    /// Rows whose ledgers show that they ask known questions by habit.
    habits: Set<RowId>,
    /// Files whose names, rights or times processes change.
    changed: FilesByProcess,
    /// Files to which processes write, whose size is another then.
    written: FilesByProcess,
    /// Paths that lead elsewhere each time.
    led: LedElsewhere,
    /// The answers about each path so far.
    answers: Map<(u32, PathId), Answers>,
}

impl<'a> Repeat<'a> {
    pub(super) fn new(recording: &'a Recording, semantics: &Semantics, changers: Rc<Changers>) -> Self {
        let habit = |(row, l): &(RowId, &Ledger)| {
            let calls = recording.rows.get(row.0 as usize).map_or(0, |row| row.counts.calls);
            let low = l.known_share(calls).low;
            low >= HABIT && low * calls as f64 >= HABIT_CALLS
        };
        let habits = of_rows(recording).filter(habit).map(|(row, _)| row).collect();
        Self {
            recording,
            habits,
            changed: FilesByProcess::of(recording, semantics, changes),
            written: FilesByProcess::of(recording, semantics, writes),
            led: LedElsewhere { names: changers },
            answers: Map::default(),
        }
    }

    /// Returns true if the step asks about a file that another process changes: it may wait for that. A removal does
    /// not count if no question of the row found the file missing, since it came after the last of them. What another
    /// process writes counts where a file that stays open is asked about: its size is what such a question is for, while a
    /// path is mostly asked about to see whether it still leads to the same file.
    fn may_wait_for_change(&self, step: &Step<'_>) -> bool {
        let row = |id| self.recording.row(id);
        let found_missing = row(step.observed.call.row).counts.errors.contains_key(&Errno::ENOENT);
        self.changed.is_of_another_by(step, |id| found_missing || !removes_name(row(id).syscall))
            || step.is_about(&FILE_STATUS) && self.written.is_of_another_by(step, |_| true)
    }

    /// Notes the answer to a question for a file's status by its path. Returns true if most of the answers about the
    /// path so far differ from the ones before them.
    fn is_news(&mut self, step: &Step<'_>) -> bool {
        let Some((path, now)) =
            step.object_id.filter(|_| step.is_about(&PATH)).zip(step.meaning.as_ref().and_then(|m| m.now.as_deref()))
        else {
            return false;
        };
        if self.answers.len() >= REMEMBERED && !self.answers.contains_key(&(step.who, path)) {
            return false;
        }
        let answers = self.answers.entry((step.who, path)).or_default();
        let is_same = answers.last.as_deref().map(|last| last == now);
        answers.same += u32::from(is_same == Some(true));
        answers.other += u32::from(is_same == Some(false));
        if is_same != Some(true) {
            answers.last = Some(now.into());
        }
        answers.other > answers.same
    }

    /// Returns true if the ledger knows the question, and the row has the habit.
    fn is_habit(&self, step: &Step<'_>) -> bool {
        let call = step.observed.call;
        call.before != Before::Unknown && self.habits.contains(&call.row)
    }
}

/// Returns true if a call changes the name, the rights or the times of a file, or makes it. Only some openings do.
fn changes(lines: &Lines, call: &ObservedCall<'_>) -> bool {
    let is_change = |effect| matches!(effect, Effect::Path { .. });
    let makes = || lines.does(is_change) && lines.effects(call).iter().any(is_change);
    let sets_times = || lines.sets(&TIMES) && lines.state(call).is_some_and(|line| line.about.is(&TIMES));
    call.call.errno().is_none() && (makes() || sets_times())
}

/// Returns true if a call wrote to a file.
fn writes(lines: &Lines, call: &ObservedCall<'_>) -> bool {
    call.call.result > Some(0) && lines.transfer(call).is_some_and(|moved| moved.way == Way::Out)
}

impl Detector for Repeat<'_> {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let looks = Looks::of(steps);
        let walked = LazyCell::new(|| walks(steps));
        let followed = LazyCell::new(|| followed(steps));
        let after_reads = LazyCell::new(|| after_reads(steps));
        let comes_and_goes = LazyCell::new(|| come_and_go(steps));
        let recording = self.recording;
        let calls = |step: &Step<'_>| recording.row(step.observed.call.row).counts.calls;
        let follows = self.led.follows(steps, calls);
        let follows = |at: usize| follows.as_ref().and_then(|all| all.get(at)).copied().unwrap_or(Follows::Stays);
        let mut walk: Vec<usize> = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            if !extends(&walk, steps, step) {
                self.finish(&mut walk, steps, claims);
            }
            let elsewhere = follows(at) != Follows::Stays && is_about_path(step);
            if claims.excuse(at, ReasonId::LeadsElsewhere, elsewhere) {
                // The name at the path's end may be another file's by now, and only a walk there tells.
                if follows(at) == Follows::Cut && asked_before(step) {
                    leave_out_later(step, claims);
                }
            } else if chained(step) {
                walk.push(at);
            } else if let is_news = self.is_news(step)
                && claims.excuse(at, ReasonId::AnswerDiffers, is_news)
            {
            } else if asked_before(step)
                && !claims.excuse(at, ReasonId::ListingChecked, !looks.enough(at, step) && !self.is_habit(step))
                && !claims.excuse(at, ReasonId::FollowedFile, is_followed(step, &followed))
                && !claims.excuse(at, ReasonId::CheckedAfterReading, after_reads.contains_key(&at))
                && !claims.excuse(at, ReasonId::AnotherChangesIt, self.may_wait_for_change(step))
                && !claims.excuse(at, ReasonId::NameMayAppear, may_have_appeared(steps, at))
                && let Some(claim) = about_state(Kind::Repeat, step, claims)
            {
                let walks = walked.get(at).is_some_and(|walks| *walks);
                let held_open = step.is_about(&FILE_STATUS) && !comes_and_goes.contains(&step.observed.descriptor(0));
                let facts = claim.facts.with(Fact::Search, looks.search(at)).with(Fact::Walk, walks);
                let facts = facts.with(Fact::HeldOpen, held_open);
                put(claims, step.index, Claim { facts, ..claim });
            }
            if asked_before(step) && after_reads.get(&at) == Some(&Check::Cut) {
                leave_out_later(step, claims);
            }
            if let Some(opened) = &step.opened {
                weaken(steps, at, &opened.path, claims);
            }
        }
        // A walk that the window's end cuts off may not be complete.
        let cut = walk.iter().filter_map(|at| steps.get(*at)).filter(|step| asked_before(step));
        cut.for_each(|step| leave_out_later(step, claims));
    }
}

/// Returns true if a question found that a name is missing, and the thread slept since it asked last, or since the window's
/// beginning: somebody may have made it.
fn may_have_appeared(steps: &[Step<'_>], at: usize) -> bool {
    let (before, Some(step)) = (steps.get(..at).unwrap_or_default(), steps.get(at)) else { return false };
    let is_missing = step.observed.call.errno().is_some_and(|errno| MISSING.contains(&errno));
    let is_same = |other: &&Step<'_>| other.object_id == step.object_id && other.object_id.is_some();
    let slept = |other: &Step<'_>| {
        let ran_out = other.observed.call.errno() == Some(Errno::ETIMEDOUT);
        ran_out || other.line::<OwnWait>().is_some_and(|line| line.sleeps)
    };
    is_missing && before.iter().rev().take_while(|other| !is_same(other)).any(slept)
}

/// Returns the descriptors that a window shows to be made or given up.
fn come_and_go(steps: &[Step<'_>]) -> Set<i32> {
    let made = |step: &Step<'_>| step.observed.call.result.map(|fd| fd as i32).filter(|fd| step.makes_descriptor(*fd));
    let gone = |step: &Step<'_>| step.descriptor().filter(|fd| step.lets_go(*fd));
    steps.iter().flat_map(|step| made(step).into_iter().chain(gone(step))).collect()
}

fn is_about_path(step: &Step<'_>) -> bool {
    step.is_about(&PATH) || step.is_about(&NAME)
}

/// Returns the files that stay open and that the program follows: it reads at their end, or asks
/// for their status by the descriptor. A question about the path of such a file is not needless,
/// since it tells whether the path still leads to that file (tail -F).
fn followed<'s>(steps: &'s [Step<'_>]) -> Set<&'s str> {
    let name = |step: &'s Step<'_>| step.observed.call.fd.as_deref().filter(|file| file.starts_with('/'));
    let at_end = |step: &Step<'_>| step.moved.is_some_and(|m| m.line.way == Way::In && m.got == Some(0));
    let asks = |step: &Step<'_>| step.is_about(&FILE_STATUS);
    let mut files: Set<&str> = steps.iter().filter(|step| at_end(step) || asks(step)).filter_map(name).collect();
    for step in steps {
        if let Some(opened) = &step.opened {
            files.remove(&*opened.path);
        }
        if let Some(file) = name(step).filter(|_| step.lets_go(step.observed.descriptor(0))) {
            files.remove(file);
        }
    }
    files
}

/// Returns true if the step asks for the status of one of the files by its path.
fn is_followed(step: &Step<'_>, files: &Set<&str>) -> bool {
    step.is_about(&PATH) && step.object.as_deref().is_some_and(|path| files.iter().any(|file| leads_to(path, file)))
}

/// A question by which a program looks whether a file changed while it was read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    /// The window shows the reads before it and the closing after it.
    Shown,
    /// The window may be cut off before one of them.
    Cut,
}

/// Returns the questions about the status of an open file that come after the last read of it and right before it is
/// closed. They tell whether the file changed while it was read: no answer from before the reads can tell that. A
/// program that asks once for each piece asks before reads, or the first time after opening.
fn after_reads(steps: &[Step<'_>]) -> Map<usize, Check> {
    let mut found = Map::default();
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| step.is_about(&PATH) || step.is_about(&FILE_STATUS)) {
        let rest = steps.get(at + 1..).unwrap_or_default();
        let asked = step.object.as_deref();
        let file = |step: &Step<'_>| {
            let file = step.observed.call.fd.as_deref().filter(|file| file.starts_with('/') && is_of_file(asked));
            file.zip(asked).is_some_and(|(file, asked)| leads_to(asked, file))
        };
        let is_of = |other: &&Step<'_>| other.descriptor().is_some() && file(other);
        let next = rest.iter().take(AROUND).find(is_of);
        let closes = |next: &Step<'_>| next.descriptor().is_some_and(|fd| next.lets_go(fd));
        // Another question about the name, or another opening of it, is a habit and no check at the end.
        let anew = |other: &Step<'_>| other.opened.as_ref().is_some_and(|opened| Some(&*opened.path) == asked);
        let before = steps.get(..at).unwrap_or_default();
        let last = before.iter().rev().take(AROUND).find(|other| is_of(other) || anew(other));
        let reads = |last: &Step<'_>| last.moved.is_some_and(|m| m.line.way == Way::In && m.got.is_some());
        match (last, next) {
            (Some(last), Some(next)) if reads(last) && closes(next) => found.insert(at, Check::Shown),
            (Some(last), None) if reads(last) && is_of_file(asked) => found.insert(at, Check::Cut),
            (None, Some(next)) if closes(next) => found.insert(at, Check::Cut),
            _ => None,
        };
    }
    found
}

/// Returns true if the name may be that of a file, not of a directory or an object without a name.
fn is_of_file(name: Option<&str>) -> bool {
    name.is_some_and(|name| !name.is_empty() && !name.ends_with('/') && !name.contains(":["))
}

/// Questions of a window about directories. A program that keeps a listing has reason to ask
/// whether it is still good; asking about many directories in a row, or about one all the time, is
/// a habit.
struct Looks<'s> {
    /// For each step: the number of different directories in the run of questions that it belongs to.
    runs: Vec<usize>,
    times: Map<&'s str, usize>,
}

impl<'s> Looks<'s> {
    fn of(steps: &'s [Step<'_>]) -> Self {
        let mut looks = Self { runs: Vec::with_capacity(steps.len()), times: Map::default() };
        for run in steps.chunk_by(|before, step| before.asks_directory() == step.asks_directory()) {
            let asks = run.first().is_some_and(Step::asks_directory);
            looks.runs.resize(looks.runs.len() + run.len(), if asks { places(run) } else { 0 });
            for step in run.iter().filter(|_| asks) {
                *looks.times.entry(step.object.as_deref().unwrap_or_default()).or_default() += 1;
            }
        }
        looks
    }

    fn search(&self, at: usize) -> bool {
        self.runs.get(at).is_some_and(|places| *places >= SEARCH)
    }

    fn enough(&self, at: usize, step: &Step<'_>) -> bool {
        !step.asks_directory()
            || self.search(at)
            || self.times.get(step.object.as_deref().unwrap_or_default()).is_some_and(|n| *n >= OFTEN)
    }
}

/// Returns the number of different directories asked about, without those that only lead to the next: a program that
/// resolves a path asks about each of its parents.
fn places(run: &[Step<'_>]) -> usize {
    let leads = |from: &str, to: &str| to.strip_prefix(from).is_some_and(|rest| rest.starts_with('/'));
    let paths: Vec<&str> = run.iter().map(|step| step.object.as_deref().unwrap_or_default()).collect();
    let ends = paths.iter().enumerate().filter(|(n, p)| paths.get(n + 1).is_none_or(|next| !leads(p, next)));
    ends.map(|(_, p)| *p).collect::<Set<&str>>().len()
}

fn asked_before(step: &Step<'_>) -> bool {
    step.meaning.as_ref().is_some_and(|m| matches!(m.line.act, Act::Ask(_)) && m.known_already())
}

fn chained(step: &Step<'_>) -> bool {
    step.meaning.as_ref().is_some_and(|m| m.line.chain)
}

/// Returns true if the step extends the path of the walk.
fn extends(walk: &[usize], steps: &[Step<'_>], step: &Step<'_>) -> bool {
    let Some(last) = walk.last().and_then(|at| steps.get(*at)) else { return false };
    let (Some(from), Some(to)) = (&last.object, &step.object) else { return false };
    chained(step) && to.strip_prefix(&**from).is_some_and(|rest| rest.starts_with('/'))
}

impl Repeat<'_> {
    /// Claims a walk if its end was asked about before: two walks to different ends share their beginnings for good
    /// reason. If most calls of the row repeat over the whole run, the beginnings are claimed too: there are many
    /// walks through few folders, and what a folder's path leads to was told by the first.
    fn finish(&self, walk: &mut Vec<usize>, steps: &[Step<'_>], claims: &mut Claims) {
        let walked = || walk.iter().filter_map(|at| steps.get(*at));
        let again = walked().next_back().is_some_and(asked_before);
        for step in walked().filter(|s| asked_before(s) && (again || self.is_habit(s))) {
            if let Some(claim) = about_state(Kind::Repeat, step, claims) {
                let facts = claim.facts.with(Fact::Walk, walk.len() > 1);
                put(claims, step.index, Claim { facts, ..claim });
            }
        }
        walk.clear();
    }
}

fn weaken(steps: &[Step<'_>], at: usize, opened: &str, claims: &mut Claims) {
    for step in steps.get(at.saturating_sub(NEAR)..at).unwrap_or_default() {
        if is_about_path(step)
            && step.object.as_deref() == Some(opened)
            && let Some(claim) = claims.get(step.index).filter(|claim| !claim.weak).cloned()
        {
            let weak = claims.excuse(step.index, ReasonId::BeforeOpening, true);
            claims.set(step.index, Claim { weak, ..claim });
        }
    }
}
