//! Waits that served no one, by exact times: sleeping while the thing waited for is there already, asking for a lock and
//! sleeping, locks held while their holder waits, and data that the kernel holds back.
//!
//! Waits that serve are not claimed: waiting for work, for a peer, for a person, and for what takes its time. Waits that
//! only the clock ends may serve (a pace, a rate) or not; nothing shows which, so they are remarks.

use super::children;
use super::ends::{Ends, WaitClass};
use super::held::Locks;
use super::kinds::NeedlessKind;
use super::least::{LEAST_WAITS, MOSTLY};
use super::path::{WallPart, WallTime};
use super::sleeps::{After, Sleeps};
use super::talks::{ACCEPTS, Senders, Talks, senders};
use super::threads::{ThreadId, Threads, name_of, pid_of};
use crate::collections::sums::Sums;
use crate::semantics::Semantics;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use systoll_model::{Errno, FrameId, Recording, Row, RowId, Sysno, WaitSpan};

/// Needless waits of one place in the program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NeedlessWaits {
    pub(crate) kind: NeedlessKind,
    pub(crate) rows: Vec<RowId>,
    /// Number of waits that were longer than they had to be.
    pub(crate) calls: u64,
    /// Time for which the run waited in vain, ns.
    pub(crate) ns: u64,
    /// The part of the run's elapsed time that they held up, 0 to 1.
    pub(crate) share_of_wall: f64,
    /// Lines of scripts that made them, with the number of waits of which it is known.
    pub(crate) lines: BTreeMap<FrameId, u64>,
    /// Rows that sent the data that were held back, with the names of the streams to which they sent them.
    pub(crate) senders: Senders,
}

/// Ranges of waits for data that the kernel holds back, ns: until a corked stream's timer runs out after 200 ms (man 7 tcp),
/// and until a delayed acknowledgement comes (TCP_DELACK_MIN is 40 ms); busy boxes run threads late.
const HELD_BACK: [(NeedlessKind, RangeInclusive<u64>); 2] =
    [(NeedlessKind::Corked, 196_000_000..=225_000_000), (NeedlessKind::HeldBack, 38_000_000..=60_000_000)];

/// Least share of the elapsed time, 0 to 1, of waits that only the clock ended: a report mentions waiting from the same share
/// on.
const LEAST_RAN_OUT: f64 = 0.2;

/// Least mean time, ns, of waits that only the clock ended, if they are fewer than [`LEAST_WAITS`]. A program that waited for
/// deadlines by hundreds of polls had a few of 2 ms among them.
const FEW_NS: u64 = 100_000_000;

/// Range of waits for a connection whose first message was dropped, ns: the kernel sends it again after a second
/// (TCP_TIMEOUT_INIT).
const DROPPED: RangeInclusive<u64> = 990_000_000..=1_200_000_000;
/// The call that waits for a connection.
const CONNECTS: &str = "connect";

/// Returns the needless waits of a recording.
pub(super) fn needless(
    recording: &Recording,
    semantics: &Semantics,
    threads: &Threads<'_>,
    ends: &Ends,
    wall: &WallTime,
) -> Vec<NeedlessWaits> {
    let mut found = Found { recording, sums: BTreeMap::new(), threads: BTreeMap::new(), held_back: Vec::new() };
    let sleeps = Sleeps::of(recording, semantics, threads, ends);
    let talks = Talks::of(recording, semantics, ends);
    let locks = Locks::of(recording, ends);
    let may_run_out = may_run_out(recording);
    for (at, span) in recording.wait_spans.spans.iter().enumerate() {
        match ends.get(at).class {
            WaitClass::Clock if talks.is_unanswered(span) => found.add(NeedlessKind::Unanswered, span, span.ns),
            // Who waits for such a process lets its time pass.
            WaitClass::Clock if threads.is_sleeper(span.pid) => {}
            WaitClass::Clock => {
                match sleeps.after.get(&span.row) {
                    // The thing comes at any time of the last sleep: half of it was in vain, as a mean.
                    Some(After::Asked { found: share }) => {
                        found.add(NeedlessKind::AskedAgain, span, (span.ns as f64 * share / 2.0) as u64);
                    }
                    Some(After::Question) => found.add(NeedlessKind::AnswerSeenLate, span, span.ns),
                    Some(After::Child) | None if may_run_out(span) => found.add(NeedlessKind::RanOut, span, span.ns),
                    Some(After::Child) | None => {}
                }
            }
            WaitClass::Peer if DROPPED.contains(&span.ns) && name_of(recording, span.row) == CONNECTS => {
                found.add(NeedlessKind::ConnectedLate, span, span.ns);
            }
            WaitClass::Process | WaitClass::Thread if locks.is_lock(recording, at) => {
                if let Some(held) = locks.held_ns(recording, ends, at) {
                    found.add(NeedlessKind::LockHeld, span, held);
                }
            }
            WaitClass::Process | WaitClass::Thread if is_stream(span) => {
                let kind = HELD_BACK.iter().find(|(_, range)| range.contains(&span.ns)).map(|(kind, _)| *kind);
                if let Some(kind) = kind.filter(|_| nobody_sent(threads, ends, span)) {
                    found.add(kind, span, span.ns);
                    found.held_back.push(span);
                }
            }
            _ => {}
        }
    }
    for pid in sleeps.pids(recording) {
        let asks = sleeps.asks(pid);
        // A sleep may go on after a signal, and the thread does not ask in between.
        let is_child_poll =
            |span: &WaitSpan| sleeps.after.get(&span.row) == Some(&After::Child) && span.errno() != Some(Errno::EINTR);
        let is_poll = |(at, span): &(usize, &WaitSpan)| {
            span.pid == pid && (is_child_poll(span) || asks && ends.get(*at).class == WaitClass::Clock)
        };
        let polls: Vec<&WaitSpan> =
            recording.wait_spans.spans.iter().enumerate().filter(is_poll).map(|(_, span)| span).collect();
        // Several children may end in one sleep: it is late by the first of them.
        let mut late: BTreeMap<usize, u64> = BTreeMap::new();
        let seen = |(child, end_ns)| {
            // What lets time pass for a process that asks by id is not what it asks about.
            let is_of_child = |span: &&WaitSpan| is_child_poll(span) || !threads.is_sleeper(child);
            seen_late(&polls, end_ns).filter(|(at, _)| polls.get(*at).is_some_and(is_of_child))
        };
        for (at, ns) in threads.ends_of_children(pid).into_iter().filter_map(seen) {
            let of_sleep = late.entry(at).or_default();
            *of_sleep = ns.max(*of_sleep);
        }
        for (span, ns) in late.into_iter().filter_map(|(at, ns)| Some((polls.get(at)?, ns))) {
            found.add(NeedlessKind::ChildSeenLate, span, ns);
        }
    }
    let claimed: BTreeSet<RowId> = found.surely().flat_map(|sum| sum.rows.clone()).collect();
    for turns in talks.in_turn(recording, ends) {
        // Who sent what was held back waits for the answer as long.
        if claimed.contains(&turns.row) || found.are_held_back(turns.row) {
            continue;
        }
        let kind = if turns.peers > 1 { NeedlessKind::PeersInTurn } else { NeedlessKind::InTurn };
        found.add_all(kind, turns.row, turns.calls, turns.ns, turns.asked_at);
    }
    let claimed: BTreeSet<RowId> = found.surely().flat_map(|sum| sum.rows.clone()).collect();
    for turns in children::in_turn(recording, threads, ends).into_iter().filter(|turns| !claimed.contains(&turns.row)) {
        let kind = if turns.threads { NeedlessKind::ThreadsInTurn } else { NeedlessKind::ChildrenInTurn };
        found.add_all(kind, turns.row, turns.children, turns.ns, turns.lines);
    }
    // Waits in vain have other waits behind them, as those of a lock's holder: without them, little may be left of these.
    let any = found.surely().any(|sum| sum.calls >= LEAST_WAITS);
    let is_alone = |sum: &NeedlessWaits| sum.kind != NeedlessKind::RanOut || !any;
    // A few long waits that nothing but the clock ended take as much as many short ones.
    let are_long = |sum: &NeedlessWaits| sum.kind == NeedlessKind::RanOut && sum.ns >= FEW_NS.saturating_mul(sum.calls);
    let is_enough = |sum: &NeedlessWaits| sum.calls >= LEAST_WAITS || are_long(sum);
    let claimed = found.sums.into_iter().filter(|(_, sum)| is_enough(sum) && is_alone(sum));
    // Threads that wait at the same time hold the run up together.
    let held_up = |(place, sum): (Place<'_>, NeedlessWaits)| {
        let share_of_wall = share_of_wall(recording, wall, &sum, &found.held_back);
        let ns = sum.ns.min((share_of_wall * wall.wall_ns as f64).round() as u64);
        let of_threads = || only_line(recording, &sum.rows, found.threads.get(&place));
        let lines = if sum.lines.is_empty() { of_threads() } else { sum.lines.clone() };
        let of_these = |span: &&&WaitSpan| {
            matches!(sum.kind, NeedlessKind::HeldBack | NeedlessKind::Corked) && sum.rows.contains(&span.row)
        };
        let senders = senders(recording, semantics, found.held_back.iter().filter(of_these).copied());
        NeedlessWaits { share_of_wall, ns, lines, senders, ..sum }
    };
    let is_long = |late: &NeedlessWaits| late.kind != NeedlessKind::RanOut || late.share_of_wall >= LEAST_RAN_OUT;
    claimed.map(held_up).filter(is_long).collect()
}

/// Returns whether a wait that only the clock ended may be worth a remark. A server's pause between requests and the time that
/// somebody else's program lets pass while it is watched for a moment are none.
fn may_run_out(recording: &Recording) -> impl Fn(&WaitSpan) -> bool {
    let serves = |row: &&Row| row.syscall.name().is_some_and(|name| ACCEPTS.contains(&name));
    let servers: BTreeSet<u32> =
        recording.rows.iter().filter(serves).filter_map(|row| pid_of(recording, row.process)).collect();
    let is_attached = recording.header.attached.is_some();
    move |span| !is_attached && !servers.contains(&span.pid)
}

/// Returns the line of these rows' long waits whose line is known, with their number; nothing if there are several lines. If
/// `threads` are given, only their waits count: other threads may wait at other lines.
fn only_line(recording: &Recording, rows: &[RowId], threads: Option<&BTreeSet<ThreadId>>) -> BTreeMap<FrameId, u64> {
    let mut lines: BTreeMap<FrameId, u64> = BTreeMap::new();
    let is_of = |span: &&WaitSpan| threads.is_none_or(|threads| threads.contains(&ThreadId::of(span)));
    let of_rows = recording.wait_spans.spans.iter().filter(|span| rows.contains(&span.row)).filter(is_of);
    of_rows.filter_map(|span| span.line).for_each(|line| *lines.entry(line).or_default() += 1);
    // Samples of short calls may show further lines that share the call.
    let shared = |id: &RowId| recording.rows.get(id.0 as usize).is_none_or(|row| row.lines.len() > 1);
    if lines.len() > 1 || rows.iter().any(shared) { BTreeMap::new() } else { lines }
}

/// The place of a row in the program, by which the waits of several processes go together: its system call, its API and
/// the program's own frame.
type Place<'a> = (NeedlessKind, Sysno, Option<&'a str>, Option<FrameId>);

/// Needless waits so far, by place.
struct Found<'a> {
    recording: &'a Recording,
    sums: BTreeMap<Place<'a>, NeedlessWaits>,
    /// The threads that made the waits of each place, as far as single waits are known.
    threads: BTreeMap<Place<'a>, BTreeSet<ThreadId>>,
    /// Waits for data held back, by rising time.
    held_back: Vec<&'a WaitSpan>,
}

impl<'a> Found<'a> {
    /// Returns the waits for which something shows that they are in vain, or could be.
    fn surely(&self) -> impl Iterator<Item = &NeedlessWaits> {
        self.sums.values().filter(|sum| sum.kind != NeedlessKind::RanOut)
    }

    fn add(&mut self, kind: NeedlessKind, span: &WaitSpan, ns: u64) {
        let Some(place) = self.add_all(kind, span.row, 1, ns, span.line.map(|line| (line, 1))) else { return };
        self.threads.entry(place).or_default().insert(ThreadId::of(span));
    }

    /// Returns true if data were held back for most of the time of a row's long waits.
    fn are_held_back(&self, row: RowId) -> bool {
        let of_row = self.recording.wait_spans.spans.iter().filter(|span| span.row == row);
        let (all, held) = of_row.fold((0u64, 0u64), |(all, held), span| {
            let begun = self.held_back.partition_point(|other| other.begin_ns < span.end_ns());
            // At both ends one wait goes with one other.
            let last = begun.checked_sub(1).and_then(|at| self.held_back.get(at));
            let common = last
                .map_or(0, |other| other.end_ns().min(span.end_ns()).saturating_sub(other.begin_ns.max(span.begin_ns)));
            (all.saturating_add(span.ns), held.saturating_add(common))
        });
        all > 0 && held as f64 >= MOSTLY * all as f64
    }

    /// Adds waits of a row, with the numbers of those whose scripts' line is known. Returns their place, if they took time.
    fn add_all(
        &mut self,
        kind: NeedlessKind,
        id: RowId,
        calls: u64,
        ns: u64,
        lines: impl IntoIterator<Item = (FrameId, u64)>,
    ) -> Option<Place<'a>> {
        let row = self.recording.rows.get(id.0 as usize).filter(|_| ns > 0)?;
        let empty = NeedlessWaits {
            kind,
            rows: Vec::new(),
            calls: 0,
            ns: 0,
            share_of_wall: 0.0,
            lines: BTreeMap::new(),
            senders: Senders::new(),
        };
        let place = (kind, row.syscall, row.api.as_deref(), row.user);
        let sum = self.sums.entry(place).or_insert(empty);
        sum.calls = sum.calls.saturating_add(calls);
        sum.ns = sum.ns.saturating_add(ns);
        if !sum.rows.contains(&id) {
            sum.rows.push(id);
        }
        lines.into_iter().for_each(|(line, waits)| sum.lines.add(line, waits));
        Some(place)
    }
}

/// Returns the part of the elapsed time that needless waits held up: their part of the time in which their rows held the
/// run up. A lock's waits, data held back and answers hold up their threads, for all of which the run may wait: they have
/// at least the share of these threads' time. While data are held back nobody at either end goes on: `held_back` are all such waits, by
/// rising time.
fn share_of_wall(recording: &Recording, wall: &WallTime, waits: &NeedlessWaits, held_back: &[&WaitSpan]) -> f64 {
    let of_rows = || recording.wait_spans.spans.iter().filter(|span| waits.rows.contains(&span.row));
    let all = of_rows().fold(0u64, |sum, span| sum.saturating_add(span.ns));
    let on_path: u64 = wall.parts.iter().filter(|part| waits.rows.contains(&part.row)).map(|part| part.ns).sum();
    let (wall_ns, ns) = (wall.wall_ns.max(1) as f64, waits.ns as f64);
    let of_path = if all == 0 { 0.0 } else { on_path as f64 / wall_ns * (ns / all as f64).min(1.0) };
    match waits.kind {
        NeedlessKind::LockHeld
        | NeedlessKind::InTurn
        | NeedlessKind::PeersInTurn
        | NeedlessKind::ChildrenInTurn
        | NeedlessKind::ThreadsInTurn => {}
        NeedlessKind::HeldBack | NeedlessKind::Corked => {
            let mut until = 0;
            let of_kind = held_back.iter().filter(|span| waits.rows.contains(&span.row));
            let joint: u64 = of_kind
                .map(|span| {
                    let alone = span.end_ns().saturating_sub(span.begin_ns.max(until));
                    until = until.max(span.end_ns());
                    alone
                })
                .fold(0, u64::saturating_add);
            return of_path.max(joint as f64 / wall_ns).min(1.0);
        }
        _ => return of_path,
    }
    // While the process itself let time pass or worked, nobody waited for these; but for a lock whose holder does.
    let process = |id: &RowId| recording.rows.get(id.0 as usize).map(|row| row.process);
    let own = |part: &&WallPart| waits.rows.iter().any(|id| process(id) == process(&part.row));
    let is_of_others = |class: WaitClass| {
        matches!(
            class,
            WaitClass::Thread | WaitClass::Process | WaitClass::Peer | WaitClass::Signal | WaitClass::Unknown
        )
    };
    let parts = wall.parts.iter().filter(|part| waits.kind != NeedlessKind::LockHeld && !is_of_others(part.class));
    let other = parts.filter(own).fold(0u64, |sum, part| sum.saturating_add(part.ns));
    let threads: BTreeSet<(u32, u32)> = of_rows().map(|span| (span.pid, span.tid)).collect();
    let of_threads = ns / (wall_ns * threads.len().max(1) as f64);
    of_path.max(of_threads.min(1.0 - other as f64 / wall_ns)).min(1.0)
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

fn is_stream(span: &WaitSpan) -> bool {
    span.object.as_deref().is_some_and(|object| object.starts_with("TCP"))
}

/// Returns true if every thread of the processes at the other end of a stream slept when its data came.
fn nobody_sent(threads: &Threads<'_>, ends: &Ends, span: &WaitSpan) -> bool {
    let pids = span.object.as_deref().and_then(|stream| ends.users.of_other_end(stream));
    pids.is_some_and(|pids| pids.iter().all(|pid| threads.is_all_asleep(*pid, ThreadId::of(span), span.end_ns())))
}
