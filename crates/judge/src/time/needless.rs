//! Waits that served no one, by exact times: sleeping while the thing waited for is there already, asking for a lock and
//! sleeping, locks held while their holder waits, and data that the kernel holds back.
//!
//! Waits that serve are not claimed: a sleep that nothing shows to be for something (a pause, a ticker, a rate), waiting
//! for work, for a peer, for a person, and for what takes its time.

use super::ends::{Ends, WaitClass};
use super::path::WallTime;
use super::threads::{Threads, name_of};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use systoll_model::{Errno, FrameId, Recording, RowId, Sysno, WaitSpan, WindowCall};

/// The kind of a needless wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NeedlessKind {
    /// A child has ended, and the thread sleeps before it looks.
    ChildSeenLate,
    /// A lock, a file or a process is asked about after each sleep.
    AskedAgain,
    /// An answer has come, and the thread sleeps before it reads.
    AnswerSeenLate,
    /// The holder of a lock waits for something else.
    LockHeld,
    /// The other end sent the data earlier: the kernel held them back.
    HeldBack,
}

impl NeedlessKind {
    /// Returns what the calls do, for a sentence.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::ChildSeenLate => "sleeps before it looks for a child's end again, and the child had ended",
            Self::AskedAgain => "sleeps before it asks again, and what it asks for may come meanwhile",
            Self::AnswerSeenLate => "sleeps before it reads an answer, and the answer was there",
            Self::LockHeld => "waits for a lock, and its holder sleeps or waits for something else meanwhile",
            Self::HeldBack => "waits for data that the other end had sent: the kernel held them back",
        }
    }

    /// Returns the way to avoid the waits.
    pub(crate) fn instead(self) -> &'static str {
        match self {
            Self::ChildSeenLate => {
                "wait for the child's end: waitpid without WNOHANG; with a timeout pidfd_open and poll"
            }
            Self::AskedAgain => {
                "wait for it: a call that waits for the lock, inotify for a file, a pipe on which its maker tells it"
            }
            Self::AnswerSeenLate => "read at once: the read waits until the answer is there",
            Self::LockHeld => "give the lock back before waiting for anything else",
            Self::HeldBack => "send a message in one call, or set TCP_NODELAY",
        }
    }
}

/// Needless waits of one place in the program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NeedlessWaits {
    pub(crate) kind: NeedlessKind,
    pub(crate) rows: Vec<RowId>,
    /// Number of waits that were longer than they had to be.
    pub(crate) calls: u64,
    /// Time for which they waited in vain, ns.
    pub(crate) ns: u64,
    /// The part of the run's elapsed time that they held up, 0 to 1.
    pub(crate) share_of_wall: f64,
}

/// Waits of a row, at least, for a claim: fewer may be chance.
const LEAST_WAITS: u64 = 5;
/// Calls between a look that found nothing and the sleep before the next look, at most: Ruby makes 11 if the child's signal
/// ends the sleep at first.
const BETWEEN: usize = 12;
/// Least share of a row's sleeps in windows, 0 to 1, that follow a look which found nothing.
const MOSTLY: f64 = 0.7;
/// Time of a read that did not wait for its data, ns, at most.
const AT_ONCE_NS: u64 = 100_000;
/// Range of waits for a delayed acknowledgement, ns: TCP_DELACK_MIN is 40 ms, and busy boxes run threads late.
const DELAYED: RangeInclusive<u64> = 38_000_000..=60_000_000;
/// Part of a lock's wait, 0 to 1, for which its holder waits for something else, at least.
const HOLDER_WAITS: f64 = 0.5;

/// Returns the needless waits of a recording.
pub(super) fn needless(
    recording: &Recording,
    threads: &Threads<'_>,
    ends: &Ends,
    wall: &WallTime,
) -> Vec<NeedlessWaits> {
    let mut found = Found { recording, sums: BTreeMap::new() };
    let sleeps = Sleeps::of(recording);
    for (at, span) in recording.wait_spans.spans.iter().enumerate() {
        match ends.get(at).class {
            WaitClass::Clock => match sleeps.after.get(&span.row) {
                // The thing comes at any time of the last sleep: half of it was in vain, as a mean.
                Some(After::Asked { found: share }) => {
                    found.add(NeedlessKind::AskedAgain, span.row, (span.ns as f64 * share / 2.0) as u64);
                }
                Some(After::Question) => found.add(NeedlessKind::AnswerSeenLate, span.row, span.ns),
                Some(After::Child) | None => {}
            },
            WaitClass::Process | WaitClass::Thread if is_lock(recording, span) => {
                let held = held_ns(recording, ends, span);
                if held as f64 >= HOLDER_WAITS * span.ns as f64 {
                    found.add(NeedlessKind::LockHeld, span.row, held);
                }
            }
            WaitClass::Process | WaitClass::Thread
                if DELAYED.contains(&span.ns) && is_stream(span) && nobody_sent(threads, ends, span) =>
            {
                found.add(NeedlessKind::HeldBack, span.row, span.ns);
            }
            _ => {}
        }
    }
    for pid in sleeps.pids(recording) {
        let of_process = |span: &&WaitSpan| span.pid == pid && sleeps.after.get(&span.row) == Some(&After::Child);
        let polls: Vec<&WaitSpan> = recording.wait_spans.spans.iter().filter(of_process).collect();
        // Several children may end in one sleep: it is late by the first of them.
        let mut late: BTreeMap<usize, u64> = BTreeMap::new();
        for (at, ns) in threads.ends_of_children(pid).into_iter().filter_map(|end_ns| seen_late(&polls, end_ns)) {
            let of_sleep = late.entry(at).or_default();
            *of_sleep = ns.max(*of_sleep);
        }
        for (span, ns) in late.into_iter().filter_map(|(at, ns)| Some((polls.get(at)?, ns))) {
            found.add(NeedlessKind::ChildSeenLate, span.row, ns);
        }
    }
    let claimed = found.sums.into_values().filter(|sum| sum.calls >= LEAST_WAITS);
    claimed.map(|sum| NeedlessWaits { share_of_wall: share_of_wall(recording, wall, &sum), ..sum }).collect()
}

/// The place of a row in the program, by which the waits of several processes go together: its system call, its API and
/// the program's own frame.
type Place<'a> = (NeedlessKind, Sysno, Option<&'a str>, Option<FrameId>);

/// Needless waits so far, by place.
struct Found<'a> {
    recording: &'a Recording,
    sums: BTreeMap<Place<'a>, NeedlessWaits>,
}

impl Found<'_> {
    fn add(&mut self, kind: NeedlessKind, id: RowId, ns: u64) {
        let Some(row) = self.recording.rows.get(id.0 as usize).filter(|_| ns > 0) else { return };
        let empty = NeedlessWaits { kind, rows: Vec::new(), calls: 0, ns: 0, share_of_wall: 0.0 };
        let sum = self.sums.entry((kind, row.syscall, row.api.as_deref(), row.user)).or_insert(empty);
        sum.calls += 1;
        sum.ns = sum.ns.saturating_add(ns);
        if !sum.rows.contains(&id) {
            sum.rows.push(id);
        }
    }
}

/// Returns the part of the elapsed time that needless waits held up. A lock's waits and data held back hold up their
/// threads rather than the run, which may wait for all of them: their share is that of these threads' time.
fn share_of_wall(recording: &Recording, wall: &WallTime, waits: &NeedlessWaits) -> f64 {
    let of_rows = recording.wait_spans.spans.iter().filter(|span| waits.rows.contains(&span.row));
    if matches!(waits.kind, NeedlessKind::LockHeld | NeedlessKind::HeldBack) {
        let threads: BTreeSet<(u32, u32)> = of_rows.map(|span| (span.pid, span.tid)).collect();
        let lives = wall.wall_ns as f64 * threads.len().max(1) as f64;
        return (waits.ns as f64 / lives.max(1.0)).min(1.0);
    }
    let all = of_rows.fold(0u64, |sum, span| sum.saturating_add(span.ns));
    let on_path: u64 = wall.parts.iter().filter(|part| waits.rows.contains(&part.row)).map(|part| part.ns).sum();
    let share = on_path as f64 / wall.wall_ns.max(1) as f64;
    if all == 0 { 0.0 } else { share * (waits.ns as f64 / all as f64).min(1.0) }
}

/// Time, ns, from a child's end to the beginning of the sleep before the next look, at most: the look before the sleep
/// came before the end.
const LOOKED_BEFORE_NS: u64 = 2_000_000;

/// Returns the index of the sleep after which the end of a child at `end_ns` is seen, and the time by which it is late, ns.
fn seen_late(polls: &[&WaitSpan], end_ns: u64) -> Option<(usize, u64)> {
    let (at, seen) = polls.iter().enumerate().find(|(_, span)| span.end_ns() > end_ns)?;
    let slept_on = seen.begin_ns <= end_ns.saturating_add(LOOKED_BEFORE_NS);
    slept_on.then(|| (at, seen.end_ns() - seen.begin_ns.max(end_ns)))
}

fn is_lock(recording: &Recording, span: &WaitSpan) -> bool {
    matches!(name_of(recording, span.row), "flock" | "fcntl")
}

fn is_stream(span: &WaitSpan) -> bool {
    span.object.as_deref().is_some_and(|object| object.starts_with("TCP"))
}

/// Time from the end of a holder's wait to the end of the wait for its lock, ns, at most: the holder gives the lock back at
/// once.
const HANDED_ON_NS: u64 = 2_000_000;
/// Waits before a lock's that may be its holders', at most.
const MOST_OTHERS: usize = 64;

/// Returns the time of a lock's wait for which its holders slept, or waited for storage or a peer, ns: waits of other
/// processes that lock files too, each of which ended right before the lock was handed on.
fn held_ns(recording: &Recording, ends: &Ends, span: &WaitSpan) -> u64 {
    let spans = &recording.wait_spans.spans;
    let later = spans.partition_point(|other| other.begin_ns < span.end_ns());
    let (mut handed_on, mut held) = (span.end_ns(), 0);
    for (at, other) in spans.iter().enumerate().take(later).rev().take(MOST_OTHERS) {
        let waits = matches!(ends.get(at).class, WaitClass::Clock | WaitClass::Disk | WaitClass::Peer);
        let is_holder = other.pid != span.pid && ends.users.lockers.contains(&other.pid);
        let at_end = other.end_ns() <= handed_on && other.end_ns().saturating_add(HANDED_ON_NS) >= handed_on;
        if waits && is_holder && at_end {
            held += other.end_ns().saturating_sub(other.begin_ns.max(span.begin_ns));
            handed_on = other.begin_ns;
        }
        if handed_on <= span.begin_ns {
            break;
        }
    }
    held.min(span.ns)
}

/// Returns true if every thread of the processes at the other end of a stream slept when its data came.
fn nobody_sent(threads: &Threads<'_>, ends: &Ends, span: &WaitSpan) -> bool {
    let pids = span.object.as_deref().and_then(|stream| ends.users.of_other_end(stream));
    pids.is_some_and(|pids| pids.iter().all(|pid| threads.is_all_asleep(*pid, span.end_ns())))
}

/// What a row's sleeps come after, mostly.
#[derive(Clone, Copy, Debug, PartialEq)]
enum After {
    /// After looks for a child that has not ended.
    Child,
    /// After another question that found nothing; `found` is the share of the sleeps after which it finds something.
    Asked { found: f64 },
    /// Between a question to somebody and the reading of the answer, which never waits.
    Question,
}

/// The rows of sleeps that come after looks, by windows.
struct Sleeps {
    after: BTreeMap<RowId, After>,
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

impl Sleeps {
    fn of(recording: &Recording) -> Self {
        let mut seen: BTreeMap<RowId, Seen> = BTreeMap::new();
        for window in &recording.windows {
            for (at, call) in window.calls.iter().enumerate() {
                if !is_sleep(recording, call) {
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
                seen.note(recording, &before, after);
            }
        }
        let after = seen.into_iter().filter_map(|(row, seen)| Some((row, seen.after()?))).collect();
        Self { after }
    }

    fn pids(&self, recording: &Recording) -> BTreeSet<u32> {
        recording
            .wait_spans
            .spans
            .iter()
            .filter(|span| self.after.contains_key(&span.row))
            .map(|span| span.pid)
            .collect()
    }
}

impl Seen {
    fn note(&mut self, recording: &Recording, before: &[&WindowCall], after: &[WindowCall]) {
        let mut near = before.iter().rev().take(BETWEEN + 1);
        let looked = near.find(|call| finds_nothing(recording, call).is_some());
        if let Some(look) = looked {
            let next = after.iter().take(BETWEEN + 1).find(|call| is_same_look(recording, look, call));
            match finds_nothing(recording, look) {
                Some(Nothing::Child) => self.child += 1,
                Some(Nothing::Other) if next.is_some() => self.asked += 1,
                _ => {}
            }
            if let Some(next) = next {
                self.again += 1;
                self.found += u64::from(finds_nothing(recording, next).is_none());
            }
            return;
        }
        let (Some(sent), Some(got)) = (before.last(), after.first()) else { return };
        let is = |call: &WindowCall, names: &[&str]| names.contains(&name_of(recording, call.row));
        let answers = is(sent, &["write", "sendto", "sendmsg", "writev"]) && is(got, &["read", "recvfrom", "recvmsg"]);
        let talks = |call: &WindowCall| call.fd.as_deref().is_some_and(|name| !name.starts_with('/'));
        let came = got.result.is_some_and(|n| n > 0) && got.elapsed_ns <= AT_ONCE_NS;
        self.question += u64::from(answers && talks(sent) && talks(got) && came);
    }

    fn after(&self) -> Option<After> {
        let mostly = |n: u64| n > 0 && n as f64 >= MOSTLY * self.all as f64;
        if mostly(self.child) {
            return Some(After::Child);
        }
        if mostly(self.asked) && self.found > 0 {
            return Some(After::Asked { found: self.found as f64 / self.again.max(1) as f64 });
        }
        (mostly(self.question) && self.question >= LEAST_WAITS).then_some(After::Question)
    }
}

fn is_sleep(recording: &Recording, call: &WindowCall) -> bool {
    let name = name_of(recording, call.row);
    let waits = matches!(name, "nanosleep" | "clock_nanosleep" | "select" | "pselect6" | "poll" | "ppoll");
    waits && call.result == Some(0) && call.elapsed_ns >= systoll_model::LONG_WAIT_NS
}

/// The thing that a look did not find.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nothing {
    Child,
    Other,
}

/// Returns the thing that a call looked for and did not find.
fn finds_nothing(recording: &Recording, call: &WindowCall) -> Option<Nothing> {
    let failed = |errno: Errno| call.errno() == Some(errno);
    match name_of(recording, call.row) {
        "wait4" if call.result == Some(0) => Some(Nothing::Child),
        "flock" | "fcntl" if failed(Errno(11)) => Some(Nothing::Other),
        "access" | "faccessat" | "faccessat2" | "stat" | "lstat" | "newfstatat" | "statx" | "open" | "openat"
            if failed(Errno::ENOENT) =>
        {
            Some(Nothing::Other)
        }
        _ => None,
    }
}

/// Returns true if a call asks what `look` asked.
fn is_same_look(recording: &Recording, look: &WindowCall, call: &WindowCall) -> bool {
    let syscall = |call: &WindowCall| recording.rows.get(call.row.0 as usize).map(|row| row.syscall);
    let (Some(of), Some(other)) = (syscall(look), syscall(call)) else { return false };
    of == other && look.object(of) == call.object(other)
}
