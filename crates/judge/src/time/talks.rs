//! Talks with peers: requests, and the waits for their answers.

use super::ends::{Ends, WaitClass};
use super::least::MOSTLY;
use crate::collections::sums::Sums;
use crate::semantics::{ObservedCall, Semantics, Way, connection};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use systoll_model::{FrameId, LONG_WAIT_NS, Moment, ProcessId, Recording, Row, RowId, Sysno, WaitSpan, WindowCall};

/// Calls between a request and the wait for its answer, at most: a library that sets a timer or asks for its socket's
/// state makes a few.
const BETWEEN: usize = 4;
/// Requests in turn, at least, for a remark.
const LEAST_REQUESTS: u64 = 20;
/// Least share of the elapsed time, 0 to 1, of waits for answers in turn: a report mentions waiting from the same share on.
const LEAST_SHARE: f64 = 0.2;

/// Peers that are asked in turn, at most, for a remark: who asks more of them has a list to work off.
const MOST_PEERS: usize = 8;

/// Bytes of a piece of an answer that is not in the next request by chance.
const PIECE: usize = 6;
/// Bytes of a whole word of an answer that is not one of most of the next requests by chance: the number of the page that follows.
const WORD: usize = 3;
/// Least share of a peer's requests, 0 to 1, that repeat a piece of the answer before them if each needs it.
const CHAINED: f64 = 0.5;

/// Calls by which a server takes up clients.
pub(super) const ACCEPTS: [&str; 2] = ["accept", "accept4"];
/// The call that names the address to which it sends.
const SENDS_TO: Sysno = Sysno::named("sendto");
/// Its argument that points to the address.
const TO: u8 = 4;
/// Waits in windows, at least, that ran out after requests to a peer of which no answer is seen.
const LEAST_SILENT: u64 = 2;

/// Waits for peers' answers one after another.
pub(super) struct InTurn {
    pub(super) row: RowId,
    /// Number of the waits.
    pub(super) calls: u64,
    /// Time that all but one of them took, ns.
    pub(super) ns: u64,
    /// Number of the peers.
    pub(super) peers: usize,
    /// Lines that sent the requests, with their samples, where the waits are an event loop's, for whatever comes.
    pub(super) asked_at: BTreeMap<FrameId, u64>,
}

/// What windows show of requests and answers.
pub(super) struct Talks {
    rows: BTreeMap<RowId, Waits>,
    /// Peers that were asked, waited for until the time was over, and never answered.
    silent: BTreeSet<Peer>,
    /// Processes that accept connections. Some ask as well: other servers, or themselves.
    accepts: BTreeSet<ProcessId>,
    /// Peers to which connections were made.
    called: BTreeSet<Peer>,
    /// Requests after an answer of the same peer, by process and peer: all, and those that repeat a piece of that answer.
    chained: BTreeMap<(ProcessId, Peer), (u64, u64)>,
}

/// A peer's address: that of a connected socket by its name, or the bytes that a request was sent to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Peer {
    Named(String),
    Bytes(Vec<u8>),
}

/// Waits that found something.
#[derive(Clone, Copy, Default)]
struct Found {
    all: u64,
    /// Their time, ns.
    all_ns: u64,
    /// Those that waited for the answer of a request which the same thread sent right before.
    answers: u64,
    /// Their time, ns.
    answers_ns: u64,
}

/// Numbers of a row's waits in windows.
#[derive(Default)]
struct Waits {
    /// True if they wait for several descriptors.
    for_several: bool,
    /// Calls, whether they waited or not.
    seen: u64,
    /// Calls that waited and found something: brief waits, then waits of [`LONG_WAIT_NS`] or more.
    found: [Found; 2],
    /// The peers that answered.
    peers: BTreeSet<Peer>,
    /// The rows that sent these requests, with the number of them.
    requests: BTreeMap<RowId, u64>,
    threads: BTreeSet<u32>,
    /// Time of waits for a server's clients, ns.
    for_clients_ns: u64,
    /// Long waits that ran out.
    ran_out: u64,
    /// The peers that were asked right before, with the number of these waits.
    asked: BTreeMap<Peer, u64>,
}

/// The talk that one window shows.
#[derive(Default)]
struct Talk {
    /// The last request, and the number of calls since then.
    asked: Option<(Request, usize)>,
    /// The peers to which requests were sent by descriptors.
    of_descriptor: BTreeMap<u64, Peer>,
    /// The peers to which descriptors were connected: a socket that is closed soon has no name.
    connected: BTreeMap<u64, Peer>,
    /// The newest answer of each peer, and the request before it.
    said: BTreeMap<Peer, Said>,
    /// True if a client was served since the last request, which may be made for it.
    serves: bool,
}

/// A request that was sent.
struct Request {
    peer: Peer,
    row: RowId,
}

/// The beginnings of a peer's newest answer, of the one before it, and of the newest request.
#[derive(Default)]
struct Said {
    answer: Vec<u8>,
    before: Vec<u8>,
    request: Vec<u8>,
}

impl Said {
    /// Returns true if `request` repeats a piece of the newest answer that is neither in the request nor in the answer before:
    /// a token or an address that the peer gave.
    fn leads_to(&self, request: &[u8]) -> bool {
        let is_in = |piece: &[u8], text: &[u8]| text.windows(piece.len()).any(|part| part == piece);
        let is_new = |piece: &&[u8]| !is_in(piece, &self.request) && !is_in(piece, &self.before);
        let is_word = |piece: &[u8]| words(request).any(|word| word == piece);
        self.answer.windows(PIECE).filter(is_new).any(|piece| is_in(piece, request))
            || words(&self.answer).filter(is_new).any(is_word)
    }
}

/// Returns the words of a text that are long enough to say something: runs of letters and digits.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| !byte.is_ascii_alphanumeric()).filter(|word| word.len() >= WORD)
}

impl Talks {
    pub(super) fn of(recording: &Recording, semantics: &Semantics, ends: &Ends) -> Self {
        let mut rows: BTreeMap<RowId, Waits> = BTreeMap::new();
        let is_accept = |syscall: Sysno| syscall.name().is_some_and(|name| ACCEPTS.contains(&name));
        let accepts = recording.rows.iter().filter(|row| is_accept(row.syscall)).map(|row| row.process).collect();
        let (called, mut answered) = (called(recording), BTreeSet::new());
        let mut chained: BTreeMap<(ProcessId, Peer), (u64, u64)> = BTreeMap::new();
        for window in &recording.windows {
            let mut talk = Talk::default();
            let is_server = BTreeSet::contains(&accepts, &window.process);
            let is_client = |peer: &Peer| is_server && !called.contains(peer);
            for (at, call) in window.calls.iter().enumerate() {
                talk.asked = talk.asked.map(|(of, since)| (of, since + 1)).filter(|(_, since)| *since <= BETWEEN);
                let Some(row) = recording.rows.get(call.row.0 as usize) else { continue };
                let observed = ObservedCall { window, call, syscall: row.syscall };
                let lines = semantics.lines_of(row.syscall);
                let way = lines.transfer(&observed).map(|line| line.way);
                let came = call.result.is_some_and(|n| n > 0);
                let for_several = lines.tells_ready();
                let waits = (way == Some(Way::In) || for_several).then(|| rows.entry(call.row).or_default());
                let descriptor = call.args.first().copied().unwrap_or_default();
                let named = call.fd.as_deref().and_then(peer_of).map(|peer| Peer::Named(peer.to_owned()));
                let for_client = is_server && named.as_ref().is_none_or(is_client);
                talk.serves |= is_server && is_accept(row.syscall) || for_client && way == Some(Way::In);
                if let Some(waits) = waits {
                    // A wait for several descriptors does not say which of them it is about.
                    let is_other = |peer: &Peer| {
                        named.as_ref().is_some_and(|named| named != peer && matches!(peer, Peer::Named(_)))
                    };
                    let asked = talk.asked.as_ref().map(|(of, _)| of).filter(|of| !is_other(&of.peer));
                    waits.for_several = for_several;
                    // A request that was sent right before the window is not seen.
                    if talk.asked.is_some() || at >= BETWEEN {
                        waits.note(call, asked, window.thread, for_client);
                    }
                }
                if let Some(peer) = call.peer(row.syscall) {
                    talk.connected.insert(descriptor, Peer::Named(peer.to_string()));
                }
                match way.filter(|_| came) {
                    Some(Way::Out) => {
                        let given = || call.arg_data(TO, Moment::Entry).map(|data| Peer::Bytes(data.bytes.clone()));
                        let to = named.or_else(|| given().filter(|_| row.syscall == SENDS_TO));
                        let to = to.or_else(|| talk.connected.get(&descriptor).cloned());
                        if let Some(to) = to.filter(|to| !is_client(to)) {
                            let request = call.arg_data(1, Moment::Entry).map_or(&[][..], |data| &data.bytes);
                            let said = talk.said.entry(to.clone()).or_default();
                            if !said.answer.is_empty() && !said.request.is_empty() {
                                let of_peer = chained.entry((window.process, to.clone())).or_default();
                                *of_peer = (of_peer.0 + 1, of_peer.1 + u64::from(said.leads_to(request)));
                            }
                            said.request = request.to_vec();
                            talk.of_descriptor.insert(descriptor, to.clone());
                            let serves = std::mem::take(&mut talk.serves);
                            talk.asked = (!serves).then_some((Request { peer: to, row: call.row }, 0));
                        }
                    }
                    Some(Way::In) => {
                        let asked = talk.of_descriptor.remove(&descriptor);
                        let from = asked.clone().or_else(|| named.clone());
                        if let (Some(from), Some(answer)) = (&from, call.arg_data(1, Moment::Exit)) {
                            let said = talk.said.entry(from.clone()).or_default();
                            said.before = std::mem::replace(&mut said.answer, answer.bytes.clone());
                        }
                        answered.extend(asked.into_iter().chain(named));
                        talk.asked = None;
                    }
                    None => {}
                }
            }
        }
        for (at, span) in recording.wait_spans.spans.iter().enumerate() {
            let came = ends.get(at).class != WaitClass::Clock;
            let named = span.object.as_deref().and_then(peer_of).filter(|_| came);
            answered.extend(named.map(|peer| Peer::Named(peer.to_owned())));
        }
        let mut asked: BTreeMap<&Peer, u64> = BTreeMap::new();
        rows.values().flat_map(|waits| &waits.asked).for_each(|(peer, n)| *asked.entry(peer).or_default() += n);
        let is_silent = |(peer, n): &(&Peer, u64)| *n >= LEAST_SILENT && !answered.contains(*peer);
        let silent = asked.into_iter().filter(is_silent).map(|(peer, _)| peer.clone()).collect();
        Self { rows, silent, accepts, called, chained }
    }

    /// Returns true if a row's long waits that run out are mostly for peers that were asked and never answered.
    pub(super) fn is_unanswered(&self, span: &WaitSpan) -> bool {
        let of_silent = |waits: &Waits| {
            let silent: u64 = waits.asked.iter().filter(|(peer, _)| self.silent.contains(peer)).map(|(_, n)| n).sum();
            silent > 0 && silent as f64 >= MOSTLY * waits.ran_out as f64
        };
        self.rows.get(&span.row).is_some_and(of_silent)
    }

    /// Returns true if most requests of a process to these peers repeat what the answer before them said.
    fn needs_answers(&self, process: ProcessId, peers: &BTreeSet<Peer>) -> bool {
        let of_peers = peers.iter().filter_map(|peer| self.chained.get(&(process, peer.clone())));
        let (all, chained) = of_peers.fold((0, 0), |(all, of), (a, c)| (all + a, of + c));
        chained > 0 && chained as f64 >= CHAINED * all as f64
    }

    /// Returns the rows whose calls wait for peers' answers one after another. Requests that repeat a piece of the answer before
    /// them need it; of others it is not known.
    pub(super) fn in_turn(&self, recording: &Recording, ends: &Ends) -> Vec<InTurn> {
        let spans = || recording.wait_spans.spans.iter().enumerate();
        let by_clock = spans().filter(|(at, _)| ends.get(*at).class == WaitClass::Clock);
        let ran_out: BTreeMap<RowId, u64> = Sums::of(by_clock.map(|(_, span)| (span.row, span.ns)));
        // Number and time, ns, of long waits that brought something.
        let no_peers = [WaitClass::Clock, WaitClass::Processor, WaitClass::Kernel];
        let mut came: BTreeMap<RowId, (u64, u64)> = BTreeMap::new();
        let is_answer = |(at, span): &(usize, &WaitSpan)| {
            let serves =
                || recording.rows.get(span.row.0 as usize).is_none_or(|row| self.accepts.contains(&row.process));
            let peer = || span.object.as_deref().and_then(peer_of).map(|peer| Peer::Named(peer.to_owned()));
            !no_peers.contains(&ends.get(*at).class)
                && (!serves() || peer().is_some_and(|peer| self.called.contains(&peer)))
        };
        for (_, span) in spans().filter(is_answer) {
            let (calls, ns) = came.entry(span.row).or_default();
            (*calls, *ns) = (*calls + 1, ns.saturating_add(span.ns));
        }
        let mut found = Vec::new();
        for (id, waits) in &self.rows {
            let Some(row) = recording.rows.get(id.0 as usize) else { continue };
            // What comes after a server's answer is the next request. Of connections that were there before a process was
            // entered it is not known which side made them.
            let may_serve = recording.header.attached.is_some() && !waits.peers.is_subset(&self.called);
            if may_serve || self.needs_answers(row.process, &waits.peers) {
                continue;
            }
            // An event loop that waits long for answers waits briefly as well: until it may send, and for a connection's end.
            let [brief, long] = waits.found;
            let of = if long.answers_ns > brief.answers_ns { long } else { brief };
            let mostly = of.answers as f64 >= MOSTLY * of.all as f64;
            let alone = (1..=MOST_PEERS).contains(&waits.peers.len()) && waits.threads.len() == 1;
            // Waits that ran out brought no answer.
            let vain_ns = ran_out.get(id).copied().unwrap_or_default();
            let calls = (row.counts.calls as f64 * of.answers as f64 / waits.seen.max(1) as f64).round() as u64;
            let waited = row.counts.waited_ns.unwrap_or(0).saturating_sub(vain_ns);
            let all_ns =
                [brief.all_ns, long.all_ns, waits.for_clients_ns].into_iter().fold(0, u64::saturating_add).max(1);
            let (mut calls, mut waited) = (calls, (waited as f64 * of.answers_ns as f64 / all_ns as f64) as u64);
            // Of long waits each is known, while windows show some: where they are the answers, they are counted.
            let is_known = long.answers_ns > brief.answers_ns && recording.wait_spans.is_complete();
            if let Some((n, ns)) = came.get(id).filter(|_| is_known) {
                let share = of.answers as f64 / of.all.max(1) as f64;
                (calls, waited) = ((*n as f64 * share).round() as u64, (*ns as f64 * share) as u64);
            }
            let is_long = waited as f64 >= LEAST_SHARE * recording.header.wall_ns as f64;
            if mostly && alone && is_long && calls >= LEAST_REQUESTS {
                // The requests to different peers can be on their way together, those to one peer too.
                let ns = waited - waited / calls.max(1);
                found.push(InTurn {
                    row: *id,
                    calls,
                    ns,
                    peers: waits.peers.len(),
                    asked_at: waits.asked_at(*id, recording),
                });
            }
        }
        found
    }
}

impl Waits {
    /// Returns the lines that sent the requests, with their samples, if the waits are for several descriptors and in none of
    /// these lines' functions: a library that waits for one answer does both in one.
    fn asked_at(&self, id: RowId, recording: &Recording) -> BTreeMap<FrameId, u64> {
        let of_row = |id: &RowId| recording.rows.get(id.0 as usize).filter(|_| self.for_several);
        let lines = |row: &Row| match row.lines.is_empty() {
            true => row.user.map(|line| (line, 1)).into_iter().collect::<Vec<_>>(),
            false => row.lines.iter().map(|line| (line.frame, line.looks)).collect(),
        };
        let function = |line: &FrameId| recording.frames.get(line.0 as usize).map(|frame| frame.function());
        let waits: BTreeSet<Option<&str>> =
            of_row(&id).into_iter().flat_map(lines).map(|(line, _)| function(&line)).collect();
        let requests: BTreeMap<FrameId, u64> = Sums::of(self.requests.keys().filter_map(of_row).flat_map(lines));
        let apart = requests.keys().all(|line| !waits.contains(&function(line)));
        if apart { requests } else { BTreeMap::new() }
    }

    /// Counts a wait; `asked` is the request that was sent right before.
    fn note(&mut self, call: &WindowCall, asked: Option<&Request>, thread: u32, for_client: bool) {
        self.seen += 1;
        let Some(waited) = call.waited_ns.filter(|ns| *ns > 0) else { return };
        if for_client {
            self.for_clients_ns = self.for_clients_ns.saturating_add(waited);
        } else if call.result.is_some_and(|n| n > 0) {
            let [brief, long] = &mut self.found;
            let found = if waited >= LONG_WAIT_NS { long } else { brief };
            (found.all, found.all_ns) = (found.all + 1, found.all_ns.saturating_add(waited));
            if let Some(of) = asked {
                (found.answers, found.answers_ns) = (found.answers + 1, found.answers_ns.saturating_add(waited));
                self.peers.insert(of.peer.clone());
                *self.requests.entry(of.row).or_default() += 1;
                self.threads.insert(thread);
            }
        } else if waited >= LONG_WAIT_NS {
            self.ran_out += 1;
            if let Some(of) = asked {
                *self.asked.entry(of.peer.clone()).or_default() += 1;
            }
        }
    }
}

/// Returns the peers to which connections were made, as far as windows show it.
fn called(recording: &Recording) -> BTreeSet<Peer> {
    let calls = recording.windows.iter().flat_map(|window| &window.calls);
    let peer = |call: &WindowCall| call.peer(recording.rows.get(call.row.0 as usize)?.syscall);
    calls.filter_map(peer).map(|peer| Peer::Named(peer.to_string())).collect()
}

/// Returns the peer's end of a connected socket's name: `127.0.0.1:80` of `TCP:[127.0.0.1:4711->127.0.0.1:80]`.
fn peer_of(name: &str) -> Option<&str> {
    connection(name).map(|(.., peer)| peer)
}

/// Rows that send, with the names of the streams to which they do.
pub(crate) type Senders = BTreeMap<RowId, BTreeSet<Arc<str>>>;

/// Returns the rows that sent what these waits are for, as far as windows show them: the writes to the streams' other ends.
pub(super) fn senders<'a>(
    recording: &Recording,
    semantics: &Semantics,
    waits: impl Iterator<Item = &'a WaitSpan>,
) -> Senders {
    let streams = waits.filter_map(|span| connection(span.object.as_deref()?));
    let other_ends: BTreeSet<String> = streams.map(|(kind, here, there)| format!("{kind}:[{there}->{here}]")).collect();
    let mut senders = Senders::new();
    if other_ends.is_empty() {
        return senders;
    }
    for window in &recording.windows {
        for call in &window.calls {
            let Some(name) = call.fd.as_ref().filter(|name| other_ends.contains(&***name)) else { continue };
            let Some(row) = recording.rows.get(call.row.0 as usize) else { continue };
            let sent = ObservedCall { window, call, syscall: row.syscall };
            if semantics.lines_of(row.syscall).transfer(&sent).is_some_and(|line| line.way == Way::Out) {
                senders.entry(call.row).or_default().insert(Arc::clone(name));
            }
        }
    }
    senders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_needs_the_answer_repeats_a_new_piece_of_it() {
        let said = |answer: &str, before: &str, request: &str| Said {
            answer: answer.into(),
            before: before.into(),
            request: request.into(),
        };
        let next = said("200 OK\r\n\r\n7932\n", "200 OK\r\n\r\n17\n", "GET /page/17 x");
        assert!(next.leads_to(b"GET /page/7932 x"));
        assert!(!next.leads_to(b"GET /page/79321 x"), "it is no whole word");
        assert!(!next.leads_to(b"GET /page/200 x"), "the answer before had it as well");
        let token = said("{\"t\":\"ab-cd-ef-gh\"}", "{}", "GET /login");
        assert!(token.leads_to(b"GET /?t=ab-cd-ef-gh"));
    }
}
