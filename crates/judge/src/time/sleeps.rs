//! The rows of sleeps, and what they come after: a question that found nothing, or a request that was sent.

use super::children::CHILDS_END;
use super::ends::{Ends, WaitClass};
use super::least::{LEAST_WAITS, MOSTLY};
use super::threads::{Threads, name_of, pid_of};
use crate::semantics::{Look, ObservedCall, OwnWait, Semantics, Sleep, Way};
use crate::world::step::found_nothing;
use std::collections::{BTreeMap, BTreeSet};
use systoll_model::{Errno, LONG_WAIT_NS, Recording, RowId, Sysno, Window, WindowCall};

/// Calls between a look that found nothing and the sleep before the next look, at most: Ruby makes 11 if the child's signal
/// ends the sleep at first.
const BETWEEN: usize = 12;
/// Sleeps after looks for a child, at least, in windows: of 15 such sleeps in Ruby, at a line that shared its row with another
/// one's five, windows showed four to six.
const LEAST_LOOKS: u64 = 2;
/// Time of a read that did not wait for its data, ns, at most.
const AT_ONCE_NS: u64 = 100_000;
/// The call that asks for a child's end.
const ASKS_FOR_CHILD: Sysno = Sysno::named("wait4");
/// The call that asks whether a process runs.
const ASKS_FOR_PROCESS: Sysno = Sysno::named("kill");

/// What a row's sleeps come after, mostly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum After {
    /// After looks for a child that has not ended.
    Child,
    /// After another question that found nothing; `found` is the share of the sleeps after which it finds something.
    Asked { found: f64 },
    /// Between a question to somebody and the reading of the answer, which never waits.
    Question,
}

/// The rows of sleeps that come after looks, by windows.
pub(super) struct Sleeps {
    pub(super) after: BTreeMap<RowId, After>,
    /// Processes that asked whether a child of theirs runs, which did. Between such a question and the sleep a shell finds and
    /// starts the program that sleeps, so that both may lie in different windows, or in none.
    asked: BTreeSet<u32>,
}

/// Numbers of a row's sleeps in windows.
#[derive(Default)]
struct Seen {
    all: u64,
    child: u64,
    asked: u64,
    /// Sleeps after which the question found something, among those after which it was asked again.
    found: u64,
    again: u64,
    question: u64,
}

/// A window's calls, with what they mean.
#[derive(Clone, Copy)]
struct Reader<'a> {
    recording: &'a Recording,
    semantics: &'a Semantics,
    threads: &'a Threads<'a>,
    /// Waits for children that do nothing but sleep, as `sleep 1` in a shell's loop: their rows and results.
    by_children: &'a BTreeSet<(RowId, i64)>,
}

/// Returns true if a row's calls do nothing but let time pass, as far as its long waits show: of calls that something may
/// end, all ran out.
#[must_use]
pub fn only_sleeps(recording: &Recording, id: RowId) -> bool {
    let Some(row) = recording.rows.get(id.0 as usize) else { return false };
    let mut spans = recording.wait_spans.spans.iter().filter(|span| span.row == id).peekable();
    match Sleep::of(row.syscall) {
        Some(Sleep::Always) => true,
        Some(Sleep::UnlessReady) => spans.peek().is_some() && spans.all(|span| span.result == Some(0)),
        None => false,
    }
}

impl Sleeps {
    pub(super) fn of(recording: &Recording, semantics: &Semantics, threads: &Threads<'_>, ends: &Ends) -> Self {
        let by_children = by_children(recording, ends);
        let reader = Reader { recording, semantics, threads, by_children: &by_children };
        let mut seen: BTreeMap<RowId, Seen> = BTreeMap::new();
        let mut asked = BTreeSet::new();
        for window in &recording.windows {
            for (at, call) in window.calls.iter().enumerate() {
                asked.extend(reader.asks_for_child(window, call));
                if !reader.is_sleep(window, call) {
                    continue;
                }
                let seen = seen.entry(call.row).or_default();
                let (before, after) = (window.calls.get(..at).unwrap_or_default(), window.calls.get(at + 1..));
                let after = after.unwrap_or_default();
                // Nothing is known of a sleep at a window's edge.
                if before.is_empty() || after.is_empty() {
                    continue;
                }
                seen.all += 1;
                // A signal may have ended a sleep that went on afterwards.
                let before: Vec<&WindowCall> = before.iter().filter(|other| other.row != call.row).collect();
                reader.note(seen, window, call, &before, after);
            }
        }
        let after = seen.into_iter().filter_map(|(row, seen)| Some((row, seen.after()?))).collect();
        Self { after, asked }
    }

    /// Returns the processes that sleep before they ask again for a child's end.
    pub(super) fn pids(&self, recording: &Recording) -> BTreeSet<u32> {
        let of_child =
            recording.wait_spans.spans.iter().filter(|span| self.after.get(&span.row) == Some(&After::Child));
        of_child.map(|span| span.pid).chain(self.asked.iter().copied()).collect()
    }

    /// Returns true if a process asks whether children of it run.
    pub(super) fn asks(&self, parent: u32) -> bool {
        self.asked.contains(&parent)
    }
}

/// Returns the rows and results of waits for children that did nothing but sleep.
fn by_children(recording: &Recording, ends: &Ends) -> BTreeSet<(RowId, i64)> {
    let spans = recording.wait_spans.spans.iter().enumerate();
    let slept = spans.filter(|(at, span)| {
        ends.get(*at).class == WaitClass::Clock && CHILDS_END.contains(&name_of(recording, span.row))
    });
    slept.filter_map(|(_, span)| Some((span.row, span.result?))).collect()
}

impl Seen {
    fn after(&self) -> Option<After> {
        let mostly = |n: u64| n > 0 && n as f64 >= MOSTLY * self.all as f64;
        // A pace at another line may share the row: only sleeps in which a child ends will count.
        if mostly(self.child) || self.child >= LEAST_LOOKS {
            return Some(After::Child);
        }
        if mostly(self.asked) && self.found > 0 {
            return Some(After::Asked { found: self.found as f64 / self.again.max(1) as f64 });
        }
        (mostly(self.question) && self.question >= LEAST_WAITS).then_some(After::Question)
    }
}

/// The thing that a look did not find.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nothing {
    Child,
    Other,
}

impl Reader<'_> {
    fn observed<'c>(&self, window: &'c Window, call: &'c WindowCall) -> Option<ObservedCall<'c>> {
        let syscall = self.recording.rows.get(call.row.0 as usize)?.syscall;
        Some(ObservedCall { window, call, syscall })
    }

    /// Counts a sleep by the calls around it. One that ends as soon as there is what was looked for, as an `epoll_wait` with
    /// a timeout after one without, is no sleep before the next look.
    fn note(&self, seen: &mut Seen, window: &Window, slept: &WindowCall, before: &[&WindowCall], after: &[WindowCall]) {
        let mut near = before.iter().rev().take(BETWEEN + 1);
        let looked = near.find_map(|call| Some((call, self.finds_nothing(window, call)?)));
        let looked =
            looked.filter(|(look, _)| !self.is_same_look(look, slept) && !self.ends_when_ready(window, look, slept));
        if let Some((look, nothing)) = looked {
            let next = after.iter().take(BETWEEN + 1).find(|call| self.is_same_look(look, call));
            match nothing {
                Nothing::Child => seen.child += 1,
                Nothing::Other if next.is_some() => seen.asked += 1,
                Nothing::Other => {}
            }
            if let Some(next) = next {
                seen.again += 1;
                seen.found += u64::from(self.finds_nothing(window, next).is_none());
            }
            return;
        }
        let (Some(sent), Some(got)) = (before.last(), after.first()) else { return };
        let moves = |call: &WindowCall, way: Way| {
            let observed = self.observed(window, call);
            let line = observed.and_then(|observed| self.semantics.lines_of(observed.syscall).transfer(&observed));
            line.is_some_and(|line| line.way == way) && call.fd.as_deref().is_some_and(|name| !name.starts_with('/'))
        };
        let came = got.result.is_some_and(|n| n > 0) && got.elapsed_ns <= AT_ONCE_NS;
        seen.question += u64::from(moves(sent, Way::Out) && moves(got, Way::In) && came);
    }

    /// Returns true if a call of a millisecond or more only let time pass: all of the time, or up to a signal.
    fn is_sleep(&self, window: &Window, call: &WindowCall) -> bool {
        let Some(observed) = self.observed(window, call).filter(|_| call.elapsed_ns >= LONG_WAIT_NS) else {
            return false;
        };
        let lines = self.semantics.lines_of(observed.syscall);
        let passes = lines.tells_ready() || lines.line::<OwnWait>(&observed).is_some_and(|line| line.sleeps);
        let by_child = call.result.is_some_and(|child| child > 0 && self.by_children.contains(&(call.row, child)));
        let is_over = call.result == Some(0) || call.errno() == Some(Errno::EINTR);
        passes && is_over || by_child
    }

    /// Returns true if a descriptor had nothing to read yet, or no room, before a wait that its readiness ends, as in every event
    /// loop: such a loop waits for what it asks for.
    fn ends_when_ready(&self, window: &Window, look: &WindowCall, slept: &WindowCall) -> bool {
        let (Some(look), Some(slept)) = (self.observed(window, look), self.observed(window, slept)) else {
            return false;
        };
        let moves = self.semantics.lines_of(look.syscall).transfer(&look).is_some();
        moves && self.semantics.lines_of(slept.syscall).tells_ready()
    }

    /// Returns the thing that a call looked for, without waiting, and did not find.
    fn finds_nothing(&self, window: &Window, call: &WindowCall) -> Option<Nothing> {
        let observed = self.observed(window, call)?;
        let lines = self.semantics.lines_of(observed.syscall);
        let look = lines.line::<Look>(&observed).filter(|look| !look.sleeps && !look.hands_over);
        let nothing = look.is_some_and(|look| found_nothing(look, &observed)) || lines.is_not_yet(&observed);
        let is_of_child = observed.syscall == ASKS_FOR_CHILD || self.asks_for_child(window, call).is_some();
        nothing.then_some(if is_of_child { Nothing::Child } else { Nothing::Other })
    }

    /// Returns the process of a call that asked whether its own child runs, if it does.
    fn asks_for_child(&self, window: &Window, call: &WindowCall) -> Option<u32> {
        let observed = self.observed(window, call).filter(|observed| observed.syscall == ASKS_FOR_PROCESS)?;
        let runs = self.semantics.lines_of(observed.syscall).is_not_yet(&observed);
        let (pid, child) = (pid_of(self.recording, window.process)?, u32::try_from(*call.args.first()?).ok()?);
        (runs && self.threads.is_child(child, pid)).then_some(pid)
    }

    /// Returns true if a call asks what `look` asked.
    fn is_same_look(&self, look: &WindowCall, call: &WindowCall) -> bool {
        let syscall = |call: &WindowCall| self.recording.rows.get(call.row.0 as usize).map(|row| row.syscall);
        let (Some(of), Some(other)) = (syscall(look), syscall(call)) else { return false };
        let object = look.object(of);
        of == other && object == call.object(other) && (object.is_some() || look.args.first() == call.args.first())
    }
}
