//! Detects small reads at positions close together in a file: one larger read would have returned them all.

use crate::causes::fact::Fact;
use crate::collections::hash::Map;
use crate::evidence::claim::{Claim, Claims, put};
use crate::reasons::ReasonId;
use crate::results::finding::Kind;
use crate::semantics::{Unit, Way, is_stored};
use crate::world::barrier::Barrier;
use crate::world::bounds::OFTEN;
use crate::world::replay::Step;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Largest size of a small read, bytes.
const SMALL: u64 = 512;
/// Size of an aligned page, bytes, that one read could have returned instead.
const PAGE: u64 = 4096;
/// Number of newest pages that a program could well have kept of a file.
const KEPT: usize = 4;

/// The reads of a file through one descriptor.
struct File {
    name: Arc<str>,
    pages: VecDeque<u64>,
    places: BTreeSet<u64>,
    /// Number of small reads.
    reads: usize,
    /// Indices of the small reads that a kept page would have answered.
    needless: Vec<usize>,
    /// Number of steps before the newest read that may have changed files.
    changes: usize,
}

impl File {
    fn new(name: &str) -> Self {
        let (pages, places) = (VecDeque::new(), BTreeSet::new());
        Self { name: name.into(), pages, places, reads: 0, needless: Vec::new(), changes: 0 }
    }

    fn reads(&mut self, index: usize, small: &SmallRead<'_>, changes: usize, claims: &mut Claims) {
        let (at, bytes) = (small.place, small.bytes);
        let pages = at / PAGE..=at.saturating_add(bytes - 1) / PAGE;
        let is_kept = !self.pages.is_empty() && pages.clone().all(|page| self.pages.contains(&page));
        let changed = self.changes != changes && !claims.is_off(ReasonId::FileMayChange);
        claims.excuse(index, ReasonId::FileMayChange, changed && is_kept && !self.places.contains(&at));
        if changed {
            // Kept pages may be outdated.
            self.pages.clear();
            self.places.clear();
            self.changes = changes;
        }
        self.reads += 1;
        if pages.clone().all(|page| self.pages.contains(&page)) {
            if !self.places.contains(&at) {
                self.needless.push(index);
            }
        } else {
            self.pages.extend(pages);
            let more = self.pages.len().saturating_sub(KEPT);
            self.pages.drain(..more);
        }
        self.places.insert(at);
    }

    fn claim(&self, steps: &[Step<'_>], claims: &mut Claims) {
        if self.needless.len() < OFTEN || 2 * self.needless.len() < self.reads {
            return;
        }
        for step in self.needless.iter().filter_map(|at| steps.get(*at)) {
            let object = Some(claims.object(&self.name));
            put(claims, step.index, Claim { object, ..claim() });
        }
    }
}

/// Claims small reads with an offset in a page that an earlier one has read. A second read at the same offset is not
/// claimed: the program may wait for another process to change the data.
pub(super) fn window(steps: &[Step<'_>], claims: &mut Claims) {
    let mut files: Map<i32, File> = Map::default();
    let mut changes = 0;
    for (at, step) in steps.iter().enumerate() {
        if let Some(small) = SmallRead::of(step) {
            let fd = small.fd;
            let file = files.entry(fd).or_insert_with(|| File::new(small.name));
            file.reads(at, &small, changes, claims);
            continue;
        }
        changes += usize::from(step.lets(Barrier::FILES_CHANGE));
        files.retain(|fd, file| {
            let ends = step.lets_go(*fd);
            if ends {
                file.claim(steps, claims);
            }
            !ends
        });
    }
    let mut left: Vec<(i32, File)> = files.drain().collect();
    left.sort_by_key(|(fd, _)| *fd);
    left.iter().for_each(|(_, file)| file.claim(steps, claims));
}

/// A small read with an offset.
struct SmallRead<'a> {
    fd: i32,
    /// The file's name.
    name: &'a str,
    /// The offset in the file, bytes.
    place: u64,
    bytes: u64,
}

impl<'a> SmallRead<'a> {
    fn of(step: &'a Step<'_>) -> Option<Self> {
        let moved = step.moved.filter(|m| m.line.way == Way::In && m.line.unit == Unit::Stream)?;
        let (place, fd) = (step.observed.arg(moved.line.at?), moved.fd?);
        let bytes = moved.got.filter(|got| (1..=SMALL).contains(got))?;
        let name = step.observed.call.fd.as_deref().filter(|file| is_stored(file))?;
        // A short read: the file ends there, so that a larger read would not have returned more.
        moved.asked.is_none_or(|asked| bytes >= asked).then_some(Self { fd, name, place, bytes })
    }
}

fn claim() -> Claim {
    Claim {
        facts: Fact::Near.into(),
        gives_up: "what another process writes there meanwhile is seen later",
        ..Claim::of(
            Kind::SmallIo,
            "reads a few bytes at a time of places close together",
            "read 4 KiB at once, and take the pieces from there",
        )
    }
}
