//! Small reads at places of a file that lie close together: one larger read would have brought them all.

use super::claim::{Claim, Claims, Detector, put};
use crate::fact::Fact;
use crate::finding::Kind;
use crate::hash::Map;
use crate::replay::Step;
use crate::semantics::{Act, DEVICES, MADE_UP, SIZE, Unit, Way};
use crate::signs::Signs;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Bytes of a small read, at most.
const SMALL: u64 = 512;
/// What one read could well have brought instead: a page, from its beginning.
const PAGE: u64 = 4096;
/// Pages that a program could well have kept of a file, the newest ones.
const KEPT: usize = 4;
/// Needless reads of a file in a window, before they are claimed.
const LEAST: usize = 8;
/// The same of a file whose other reads the window's edge may hide.
const LEAST_CUT: usize = 4;

/// Claims small reads that say where in the file, of a page that an earlier one lies in. Reads of one place again
/// are not among them: they may wait for another process to change it.
pub(super) struct NearReads;

/// What was read of a file through one descriptor.
struct File {
    name: Arc<str>,
    pages: VecDeque<u64>,
    places: BTreeSet<u64>,
    /// Small reads, and which of them a kept page would have answered.
    reads: usize,
    needless: Vec<usize>,
    /// Whether it was opened before the window.
    cut: bool,
    /// How many steps that may have changed files came before the newest read.
    changes: usize,
}

impl File {
    fn new(name: &str, cut: bool) -> Self {
        let (pages, places) = (VecDeque::new(), BTreeSet::new());
        Self { name: name.into(), pages, places, reads: 0, needless: Vec::new(), cut, changes: 0 }
    }

    fn reads(&mut self, index: usize, small: &SmallRead<'_>, changes: usize) {
        let (at, bytes) = (small.place, small.bytes);
        if self.changes != changes {
            // What was kept may be old.
            self.pages.clear();
            self.places.clear();
            self.changes = changes;
        }
        self.reads += 1;
        let pages = at / PAGE..=at.saturating_add(bytes - 1) / PAGE;
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

    fn claim(&self, ends: bool, steps: &[Step<'_>], claims: &mut Claims) {
        let least = if self.cut || !ends { LEAST_CUT } else { LEAST };
        if self.needless.len() < least || 2 * self.needless.len() < self.reads {
            return;
        }
        for step in self.needless.iter().filter_map(|at| steps.get(*at)) {
            let object = Some(claims.object(&self.name));
            put(claims, step.index, Claim { object, ..claim() });
        }
    }
}

impl Detector for NearReads {
    fn looks_for(&self) -> Signs {
        Signs::MOVES_AT
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut files: Map<i32, File> = Map::default();
        let mut opened = BTreeSet::new();
        let mut changes = 0;
        for (at, step) in steps.iter().enumerate() {
            if let Some(small) = SmallRead::of(step) {
                let fd = small.fd;
                let file = files.entry(fd).or_insert_with(|| File::new(small.name, !opened.contains(&fd)));
                file.reads(at, &small, changes);
                continue;
            }
            if let (Some(_), Some(fd)) = (&step.opened, step.observed.call.result) {
                opened.extend(i32::try_from(fd).ok());
            }
            changes += usize::from(may_change(step));
            files.retain(|fd, file| {
                let ends = step.lets_go(*fd);
                if ends {
                    file.claim(true, steps, claims);
                }
                !ends
            });
        }
        let mut left: Vec<(i32, File)> = files.drain().collect();
        left.sort_by_key(|(fd, _)| *fd);
        left.iter().for_each(|(_, file)| file.claim(false, steps, claims));
    }
}

/// A small read at a place of its own.
struct SmallRead<'a> {
    fd: i32,
    /// The file's name.
    name: &'a str,
    /// Where in the file.
    place: u64,
    bytes: u64,
}

impl<'a> SmallRead<'a> {
    fn of(step: &'a Step<'_>) -> Option<Self> {
        let moved = step.moved.filter(|m| m.line.way == Way::In && m.line.unit == Unit::Stream)?;
        let (place, fd) = (step.observed.arg(moved.line.at?), moved.fd?);
        let bytes = moved.got.filter(|got| (1..=SMALL).contains(got))?;
        let name = step.observed.call.fd.as_deref().filter(|file| file.starts_with('/'))?;
        let ordinary = !MADE_UP.iter().chain(DEVICES).any(|folder| name.starts_with(folder));
        // More was wanted than the file has: there is nothing behind it yet.
        (ordinary && moved.asked.is_none_or(|asked| bytes >= asked)).then_some(Self { fd, name, place, bytes })
    }
}

/// Whether what was read of files may be old after the step: the program may have written to one, or waits, or takes
/// a lock or makes a process, so that another may have.
fn may_change(step: &Step<'_>) -> bool {
    let writes = step.moved.is_some_and(|m| m.line.way == Way::Out);
    let resizes =
        step.meaning.as_ref().is_some_and(|m| m.line.about.is(&SIZE) && matches!(m.line.act, Act::Set { .. }));
    let waits = step.pauses && step.moved.is_none();
    writes || resizes || waits || step.forks || step.lines.file_lock(&step.observed).is_some()
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
