//! Detects reads of what was read just before, after a seek that threw it away.

use super::claim::{Claim, Claims, Detector, put};
use crate::finding::Kind;
use crate::hash::Map;
use crate::replay::Step;
use crate::semantics::{DEVICES, MADE_UP, Way};
use crate::signs::Signs;
use std::sync::Arc;

/// Least number of such reads of a file in a window.
const LEAST: usize = 3;

/// Claims reads that begin within what the read before returned and bring mostly the same bytes. A read from the same
/// place is not claimed: the program may wait for another process to change what stands there.
pub(super) struct Refill;

/// What was read last of a file.
#[derive(Default)]
struct Place {
    at: Option<u64>,
    /// Beginning and end of the last read, bytes.
    had: Option<(u64, u64)>,
    /// Indices of the reads that brought mostly what was there.
    again: Vec<usize>,
    name: Option<Arc<str>>,
}

impl Place {
    fn reads(&mut self, step: &Step<'_>, got: u64) {
        let Some(from) = self.at else { return };
        let to = from.saturating_add(got);
        let had = self.had.filter(|(begins, ends)| *begins < from && from < *ends);
        if had.is_some_and(|(_, ends)| 2 * (ends.min(to) - from) > got) {
            self.again.push(step.index);
        }
        (self.at, self.had) = (Some(to), Some((from, to)));
    }

    fn claim(&self, claims: &mut Claims) {
        if self.again.len() >= LEAST {
            self.again.iter().for_each(|at| put(claims, *at, Claim { object: self.name.clone(), ..claim() }));
        }
    }
}

impl Detector for Refill {
    fn looks_for(&self) -> Signs {
        Signs::SEEKS
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut places: Map<i32, Place> = Map::default();
        for step in steps {
            let writes = step.moved.is_some_and(|moved| moved.line.way == Way::Out);
            if writes || step.lets_others_write() {
                // What stands there may be another now.
                places.values_mut().for_each(|place| place.had = None);
            }
            let Some(fd) = step.descriptor() else { continue };
            let name = step.observed.call.fd.as_deref().filter(|name| name.starts_with('/'));
            let is_made_up = |name: &str| MADE_UP.iter().chain(DEVICES).any(|folder| name.starts_with(folder));
            if step.lets_go(fd) || name.is_some_and(is_made_up) {
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
                    places.entry(fd).or_default().at = at;
                }
                None => {}
            }
        }
        places.into_values().for_each(|place| place.claim(claims));
    }
}

fn claim() -> Claim {
    Claim::of(
        Kind::SlowPath,
        "reads again most of what the read before it brought, after a seek that threw it away",
        "seek within what was read (BufReader::seek_relative in Rust), read on without seeking, or read no more than is needed (pread)",
    )
}
