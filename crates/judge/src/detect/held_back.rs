//! Detects answers delayed by Nagle's algorithm and delayed acknowledgements: a small message is sent in two parts,
//! and the kernel holds the second back until the other end acknowledges the first, which it delays.

use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, put};
use crate::results::finding::Kind;
use crate::semantics::{NETWORK_STREAMS, ON_THIS_BOX, Semantics, Trait, Way};
use crate::world::replay::Step;
use std::ops::RangeInclusive;
use systoll_model::{Recording, RowId};

/// Range of Linux's delay of acknowledgements, ns: TCP_DELACK_MIN is 40 ms, and timers are late.
const DELAYED: RangeInclusive<u64> = 38_000_000..=48_000_000;
/// Range of waits for a delayed acknowledgement on a busy box, ns, where the thread runs again
/// later.
const LATE: RangeInclusive<u64> = 48_000_001..=80_000_000;
/// Number of waits within [`DELAYED`] that allow one late wait in the same row.
const IN_TIME: u64 = 3;
/// Least number of parts of a message: the second one is held back.
const PARTS: usize = 2;
/// Size of a part that fills a segment and is sent at once, bytes.
const SEGMENT: u64 = 1_400;

/// Claims waits as long as a delayed acknowledgement after a message in several parts, in processes that never made a
/// stream send at once.
pub(super) struct HeldBack {
    /// Processes that made a stream send at once (`TCP_NODELAY`, …).
    at_once: Set<u32>,
    /// Rows whose waits are as long as the delay, with few late ones.
    in_time: Set<RowId>,
}

/// Numbers of a row's waits that are as long as the delay, and of longer ones.
#[derive(Default)]
struct Waits {
    delayed: u64,
    late: u64,
}

impl HeldBack {
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        let may_send = semantics.calls_in_windows(recording, |lines| lines.may(Trait::SendsAtOnce));
        let sends = may_send.filter(|observed| semantics.lines_of(observed.syscall).is(Trait::SendsAtOnce, observed));
        let at_once = sends.map(|observed| observed.window.process.0).collect();
        let mut waits: Map<RowId, Waits> = Map::default();
        for call in recording.windows.iter().flat_map(|window| &window.calls) {
            let Some(ns) = call.waited_ns else { continue };
            if !DELAYED.contains(&ns) && !LATE.contains(&ns) {
                continue;
            }
            let of_row = waits.entry(call.row).or_default();
            of_row.delayed += u64::from(DELAYED.contains(&ns));
            of_row.late += u64::from(LATE.contains(&ns));
        }
        let in_time = waits.into_iter().filter(|(_, w)| w.delayed >= IN_TIME * w.late.max(1)).map(|(row, _)| row);
        Self { at_once, in_time: in_time.collect() }
    }

    /// Returns true if a call of the row that waited this long may have waited for a delayed acknowledgement.
    fn is_delay(&self, row: RowId, ns: u64) -> bool {
        DELAYED.contains(&ns) || LATE.contains(&ns) && self.in_time.contains(&row)
    }
}

/// The parts of a message sent on a stream since it last received something: their number, and the
/// size and the peer of the last one.
#[derive(Default)]
struct Sent {
    parts: usize,
    small: bool,
    near: bool,
}

impl Detector for HeldBack {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        if steps.first().is_none_or(|s| self.at_once.contains(&s.observed.window.process.0)) {
            return;
        }
        let mut sent: Map<i32, Sent> = Map::default();
        let mut rows: Set<RowId> = Set::default();
        for step in steps {
            let call = step.observed.call;
            let stream = step.moved.filter(|_| {
                call.fd.as_deref().is_some_and(|name| NETWORK_STREAMS.iter().any(|prefix| name.starts_with(prefix)))
            });
            let waited = call.waited_ns.is_some_and(|ns| self.is_delay(call.row, ns));
            let received = stream.filter(|m| m.line.way == Way::In).and_then(|m| m.fd);
            let held = |s: &&Sent| s.parts >= PARTS && s.small;
            let by = match received {
                Some(fd) => sent.get(&fd).filter(held),
                None if step.lines.tells_ready() => sent.values().find(held),
                None => None,
            };
            if let Some(by) = by.filter(|_| waited) {
                // A remote peer's round trip may take as long.
                put(claims, step.index, Claim { weak: !by.near, ..claim() });
                rows.insert(call.row);
            }
            if let (Some(fd), Some(_)) = (received, call.result.filter(|got| *got >= 0)) {
                sent.remove(&fd);
            }
            if let Some((fd, got)) = stream.filter(|m| m.line.way == Way::Out).and_then(|m| Some((m.fd?, m.got?))) {
                let to = sent.entry(fd).or_default();
                to.parts += 1;
                to.small = got < SEGMENT;
                to.near = call.fd.as_deref().is_some_and(|f| ON_THIS_BOX.iter().any(|prefix| f.starts_with(prefix)));
            }
        }
    }
}

fn claim() -> Claim {
    Claim {
        by_wait: true,
        gives_up: "with TCP_NODELAY each part is a packet of its own",
        ..Claim::of(
            Kind::Blocking,
            "waits for an answer to a message sent in parts, of which the last was held back for an acknowledgement",
            "send the whole message by one call (writev, a buffer), or set TCP_NODELAY",
        )
    }
}
