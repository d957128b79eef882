//! Detects reads of what was read just before, after a seek that threw it away.

use crate::causes::fact::Fact;
use crate::collections::hash::Map;
use crate::evidence::claim::{Claim, Claims, put};
use crate::results::finding::Kind;
use crate::semantics::signs::Signs;
use crate::semantics::{Way, is_stored};
use crate::world::barrier::Barrier;
use crate::world::replay::Step;
use std::collections::VecDeque;
use std::sync::Arc;
use systoll_model::Moment;

/// Least number of such reads of a file in a window.
const LEAST: usize = 3;

/// Number of newest ranges of a file that are remembered: a stream that seeks to where it stands reads from the page's
/// start to there first, then a buffer on from there.
const KEPT: usize = 2;

/// A range of a file that was read.
struct Had<'a> {
    begins: u64,
    ends: u64,
    /// The first bytes, as far as the window holds them.
    bytes: &'a [u8],
    /// True if nothing was written since that could have changed the range.
    is_sure: bool,
}

impl Had<'_> {
    /// Returns true if a read from `from` on brought the same bytes, as far as the window holds both.
    fn holds(&self, from: u64, bytes: &[u8]) -> bool {
        let skipped = usize::try_from(from.saturating_sub(self.begins)).ok();
        let rest = skipped.and_then(|n| self.bytes.get(n..)).unwrap_or_default();
        !rest.is_empty() && !bytes.is_empty() && rest.iter().zip(bytes).all(|(a, b)| a == b)
    }
}

/// What was read last of a file.
#[derive(Default)]
struct Place<'a> {
    at: Option<u64>,
    /// The ranges read last, the newest at the end.
    had: VecDeque<Had<'a>>,
    /// Indices of the seeks since the last read.
    sought: Vec<usize>,
    /// Indices of the reads that brought mostly what was there, and of the seeks that led to them.
    again: Vec<usize>,
    /// Number of these reads.
    reads: usize,
    name: Option<Arc<str>>,
}

impl<'a> Place<'a> {
    fn reads(&mut self, step: &Step<'a>, got: u64) {
        let sought = std::mem::take(&mut self.sought);
        let Some(from) = self.at else { return };
        let to = from.saturating_add(got);
        let bytes = step.observed.call.arg_data(1, Moment::Exit).map_or(&[][..], |data| &data.bytes);
        let elsewhere = self.had.back().is_some_and(|newest| newest.begins != from);
        let brought = |had: &Had<'_>| {
            let is_same = had.begins == from && elsewhere && had.is_sure && had.holds(from, bytes);
            let is_within = had.begins < from && (had.is_sure || had.holds(from, bytes));
            (is_same || is_within) && from < had.ends && 2 * (had.ends.min(to) - from) > got
        };
        if self.had.iter().any(brought) {
            self.again.extend(sought);
            self.again.push(step.index);
            self.reads += 1;
        }
        self.had.push_back(Had { begins: from, ends: to, bytes, is_sure: true });
        let old = self.had.len().saturating_sub(KEPT);
        self.had.drain(..old);
        self.at = Some(to);
    }

    fn claim(&self, claims: &mut Claims) {
        if self.reads >= LEAST {
            self.again.iter().for_each(|at| put(claims, *at, Claim { object: self.name.clone(), ..claim() }));
        }
    }
}

/// Claims reads that begin within what one of the reads before returned and bring mostly the same bytes, and the seeks
/// that led to them. Where something was written in between, the bytes that the window holds must be the same. A read from the same place is not claimed unless another place was read in between and the bytes
/// are the same: the program may wait for another process to change what stands there.
pub(super) fn window(steps: &[Step<'_>], claims: &mut Claims) {
    let mut places: Map<i32, Place<'_>> = Map::default();
    for step in steps {
        if step.lets(Barrier::OTHERS_WRITE.and(Barrier::WROTE)) {
            // What stands there may be another now: only the bytes tell.
            places.values_mut().flat_map(|place| &mut place.had).for_each(|had| had.is_sure = false);
        }
        let Some(fd) = step.descriptor() else { continue };
        let name = step.observed.call.fd.as_deref().filter(|name| name.starts_with('/'));
        if step.lets_go(fd) || name.is_some_and(|name| !is_stored(name)) {
            places.remove(&fd).into_iter().for_each(|place| place.claim(claims));
            continue;
        }
        match step.moved_in_turn() {
            Some((Way::In, got)) => {
                let new = || Place { name: name.map(|name| claims.object(name)), ..Place::default() };
                places.entry(fd).or_insert_with(new).reads(step, got);
            }
            Some((Way::Out, _)) => places.entry(fd).or_default().at = None,
            None if step.seeks(fd) || step.signs.any(Signs::SEEKS) => {
                let at = step.observed.call.result.and_then(|at| u64::try_from(at).ok());
                let place = places.entry(fd).or_default();
                place.at = at;
                place.sought.push(step.index);
            }
            None => {}
        }
    }
    places.into_values().for_each(|place| place.claim(claims));
}

fn claim() -> Claim {
    let claim = Claim::of(
        Kind::SlowPath,
        "reads again most of what the read before it brought, after a seek that threw it away",
        "seek within what was read (BufReader::seek_relative in Rust), read on without seeking, or read no more than is needed (pread)",
    );
    Claim { facts: Fact::ThrownAway.into(), ..claim }
}
