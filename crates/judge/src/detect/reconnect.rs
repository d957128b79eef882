//! Detects connections that are made to one peer again and again, each given up by the program itself while the peer
//! would have gone on, or left open and not used again (loop-invariant creation).

use crate::causes::fact::{Fact, Facts};
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, put};
use crate::results::finding::Kind;
use crate::semantics::{DATAGRAMS, Effect, INTEREST, Lines, ObservedCall, Semantics, Way};
use crate::world::replay::Step;
use systoll_model::{Moment, Recording, Window};

/// Least number of connections to one peer that windows show.
const SEEN: usize = 8;
/// Least number of them to one peer in all. Without it, and with four that windows show, connections of four of 378
/// recordings were added to the calls that may be unnecessary.
const MANY: u64 = 64;
/// Least number of ends that windows show.
const ENDS: usize = 4;
/// Least number of connections given up for each that the peer had ended.
const OWN: usize = 4;
/// Least number of connections for each descriptor that the process closes, from which on most of them stay open.
const OPEN: u64 = 2;
/// Largest number of messages each way for each connection that carries one request: a long one comes in two parts.
const ONE_REQUEST: usize = 2;

/// Claims making and giving up a connection that could have been kept: another was made to the same peer before, what
/// was sent was answered, and the peer had not ended it.
pub(super) struct Reconnect<'a> {
    /// Processes, and the peers to which they connect so.
    habits: Map<Peer<'a>, Habit>,
    /// The peers of sockets, by process and name.
    names: Map<(u32, &'a str), &'a [u8]>,
    /// Peers to which a connection was seen.
    met: Set<Peer<'a>>,
}

/// A process, and the address to which it connects.
type Peer<'a> = (u32, &'a [u8]);

/// The use that a process makes of its connections to one peer, to which it connects again and again.
#[derive(Clone, Copy)]
struct Habit {
    /// True if they stay open and are not used again, rather than given up.
    left: bool,
    /// True if the peer may send more than the answers to requests, so that a connection may stay open for that.
    unsure: bool,
}

/// The connections to a peer, as windows show them.
#[derive(Default)]
struct Seen {
    connections: usize,
    /// Number of answers that are whole answers of HTTP, as far as their beginning says.
    whole: usize,
    /// Number of all calls of the rows that connect.
    calls: u64,
    given_up: usize,
    /// Those that the peer ended before, or said that it would, though the program had not asked for the end.
    ended: usize,
    /// Those ended so of which the window does not show the request.
    ended_unasked: usize,
    /// Number of requests that asked the peer to end the connection.
    asked: usize,
    sent: usize,
    answered: usize,
}

impl Seen {
    /// Returns what becomes of the connections if they could have been kept. `stays_open` is true if the process closes too
    /// few descriptors for most of them to be closed.
    fn habit(&self, stays_open: bool) -> Option<Habit> {
        if self.sent < ENDS || self.answered < ENDS {
            return None;
        }
        if stays_open {
            let left = self.sent.max(self.answered) <= ONE_REQUEST * self.connections;
            return left.then_some(Habit { left, unsure: self.whole < self.answered });
        }
        let ended = if self.asked == 0 { self.ended + self.ended_unasked } else { self.ended };
        let could_stay = self.given_up >= ENDS && OWN * ended <= self.given_up;
        could_stay.then_some(Habit { left: false, unsure: false })
    }
}

/// Returns the number of calls of each process that close a descriptor.
fn closed(recording: &Recording, semantics: &Semantics) -> Map<u32, u64> {
    let mut closed: Map<u32, u64> = Map::default();
    let closes = |lines: &Lines| lines.always_does(|effect| matches!(effect, Effect::Closes(0)));
    for row in recording.rows.iter().filter(|row| closes(semantics.lines_of(row.syscall))) {
        let sum = closed.entry(row.process.0).or_default();
        *sum = sum.saturating_add(row.counts.calls);
    }
    closed
}

/// An open connection, as far as the window shows it.
struct Life<'a> {
    peer: Peer<'a>,
    ended: bool,
    /// True once the program has ended its own direction.
    is_half_closed: bool,
    /// True if the peer's answer says that it ends the connection after each answer.
    is_single: bool,
    /// True if the program asked the peer to end the connection after its answer; `None` until it sends something.
    asks_to_end: Option<bool>,
}

impl<'a> Life<'a> {
    fn of(peer: Peer<'a>) -> Self {
        Self { peer, ended: false, is_half_closed: false, is_single: false, asks_to_end: None }
    }
}

impl<'a> Reconnect<'a> {
    pub(super) fn new(recording: &'a Recording, semantics: &Semantics) -> Self {
        let mut found = Self { habits: Map::default(), names: Map::default(), met: Set::default() };
        let mut seen: Map<Peer<'a>, Seen> = Map::default();
        let mut rows = Set::default();
        for observed in semantics.calls_in_windows(recording, Lines::connects) {
            let (window, call) = (observed.window, observed.call);
            let Some(address) = peer(&observed) else { continue };
            let of_peer = seen.entry((window.process.0, address)).or_default();
            of_peer.connections += 1;
            if rows.insert(call.row) {
                of_peer.calls = of_peer.calls.saturating_add(recording.row(call.row).counts.calls);
            }
            if let Some(name) = call.fd.as_deref() {
                found.names.insert((window.process.0, name), address);
            }
        }
        seen.retain(|_, of_peer| of_peer.connections >= SEEN && of_peer.calls >= MANY);
        if seen.is_empty() {
            return found;
        }
        for window in &recording.windows {
            found.note_window(window, recording, semantics, &mut seen);
        }
        let closed = closed(recording, semantics);
        let habit = |process: u32, of_peer: &Seen| {
            let stays_open = closed.get(&process).is_none_or(|closed| OPEN.saturating_mul(*closed) <= of_peer.calls);
            of_peer.habit(stays_open)
        };
        let habits = seen.into_iter().filter_map(|(peer, of_peer)| Some((peer, habit(peer.0, &of_peer)?)));
        found.habits = habits.collect();
        found
    }

    /// Adds to `seen` what a window shows of the connections to its peers.
    fn note_window(
        &self,
        window: &'a Window,
        recording: &Recording,
        semantics: &Semantics,
        seen: &mut Map<Peer<'a>, Seen>,
    ) {
        let mut open: Map<i32, Life<'a>> = Map::default();
        for call in window.calls.iter().filter(|call| call.fd.is_some()) {
            let observed = ObservedCall { window, call, syscall: recording.row(call.row).syscall };
            let lines = semantics.lines_of(observed.syscall);
            if lines.fd != Some(0) {
                continue;
            }
            let fd = observed.descriptor(0);
            let named = call.fd.as_deref().and_then(|name| self.names.get(&(window.process.0, name)));
            if let Some(address) = named {
                open.entry(fd).or_insert_with(|| Life::of((window.process.0, *address)));
            }
            let Some(life) = open.get_mut(&fd) else { continue };
            let Some(of_peer) = seen.get_mut(&life.peer) else { continue };
            match lines.transfer(&observed).map(|line| line.way).zip(call.result) {
                // After the program's own end, that of the peer is its answer to it.
                Some((Way::In, 0)) => life.ended |= !life.is_half_closed,
                Some((Way::In, got)) => {
                    of_peer.answered += usize::from(got > 0);
                    let answer = observed.call.arg_data(1, Moment::Exit).map_or(&[][..], |data| &data.bytes);
                    of_peer.whole += usize::from(got > 0 && is_whole(answer));
                    // The end told the peer that the request was complete: such a connection takes one only.
                    life.is_single |= got > 0 && life.is_half_closed || is_single(answer);
                }
                Some((Way::Out, got)) => {
                    of_peer.sent += usize::from(got > 0);
                    let asks = observed.call.arg_data(1, Moment::Entry).is_some_and(|data| asks_to_end(&data.bytes));
                    of_peer.asked += usize::from(asks);
                    life.asks_to_end = Some(asks || life.asks_to_end == Some(true));
                }
                None if lines.ends_streams() => life.is_half_closed = true,
                None if lines.always_does(|effect| matches!(effect, Effect::Closes(0))) => {
                    of_peer.given_up += 1;
                    of_peer.ended += usize::from(life.is_single || life.ended && life.asks_to_end == Some(false));
                    of_peer.ended_unasked += usize::from(life.ended && life.asks_to_end.is_none());
                    open.remove(&fd);
                }
                None => {}
            }
        }
    }

    /// Returns the peer of the socket that a step is about, if the program connects to it again and again.
    fn peer_of(&self, step: &Step<'_>, open: &Map<i32, Peer<'a>>) -> Option<Peer<'a>> {
        let process = step.observed.window.process.0;
        let named = || {
            let name = step.observed.call.fd.as_deref().filter(|_| step.lines.fd == Some(0))?;
            Some((process, *self.names.get(&(process, name))?))
        };
        let offered = || open.get(&step.observed.descriptor(2)).copied().filter(|_| step.lines.sets(&INTEREST));
        let of_fd = || open.get(&step.observed.descriptor(0)).copied().filter(|_| step.lines.fd == Some(0));
        named().or_else(of_fd).or_else(offered).filter(|peer| self.habits.contains_key(peer))
    }
}

/// Returns true if the bytes are a request of HTTP after whose answer the connection is to end (RFC 9112, 9.6).
fn asks_to_end(sent: &[u8]) -> bool {
    has_header(sent, b"\r\nconnection: close")
}

/// Returns true if the bytes are an answer of HTTP/1.0, which ends the connection unless both sides say that they keep it
/// (RFC 9112, 9.3 and C.2.2).
fn is_single(answer: &[u8]) -> bool {
    answer.starts_with(b"HTTP/1.0 ") && !has_header(answer, b"\r\nconnection: keep-alive")
}

/// Returns true if the bytes are an answer of HTTP that says how long it is, so that nothing follows it unasked.
fn is_whole(answer: &[u8]) -> bool {
    answer.starts_with(b"HTTP/1.") && has_header(answer, b"\r\ncontent-length: ")
}

/// Returns true if a message of HTTP has the header, written with the end of the line before it.
fn has_header(message: &[u8], header: &[u8]) -> bool {
    message.windows(header.len()).any(|part| part.eq_ignore_ascii_case(header))
}

/// Returns the address to which a call connects a stream.
fn peer<'a>(call: &ObservedCall<'a>) -> Option<&'a [u8]> {
    let stream = call.call.fd.as_deref().is_none_or(|name| !DATAGRAMS.iter().any(|kind| name.starts_with(kind)));
    call.data(1, Moment::Entry).filter(|address| stream && address.len() > 2)
}

impl Detector for Reconnect<'_> {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        if self.habits.is_empty() {
            return;
        }
        let mut open = Map::default();
        for (at, step) in steps.iter().enumerate() {
            let Some(peer) = self.peer_of(step, &open) else { continue };
            let Some(habit) = self.habits.get(&peer).copied() else { continue };
            let claim = || claim(habit);
            let fd = step.observed.descriptor(0);
            if step.lines.connects() {
                let object = step.observed.call.object(step.observed.syscall).map(|peer| claims.object(&peer));
                let claim = || Claim { object: object.clone(), ..claim() };
                open.insert(fd, peer);
                let first = self.met.insert(peer);
                let made = steps.get(..at).unwrap_or_default().iter().rev().find(|before| before.makes_descriptor(fd));
                if !first {
                    made.into_iter().for_each(|before| put(claims, before.index, claim()));
                }
                put(claims, step.index, claim());
                continue;
            }
            if step.moved.is_none() && self.met.contains(&peer) {
                put(claims, step.index, claim());
            }
            if step.effects.iter().any(|effect| matches!(effect, Effect::Closes(0))) {
                open.remove(&fd);
            }
        }
    }
}

fn claim(habit: Habit) -> Claim {
    Claim {
        facts: Facts::from(Fact::Connects).with(Fact::Left, habit.left),
        weak: habit.unsure,
        gives_up: "the peer keeps a connection open that waits for the next request",
        ..Claim::of(
            Kind::Toggle,
            "a connection to the same peer",
            "keep the connection for the next request: one client or session for all; in HTTP, answers read to their end",
        )
    }
}
