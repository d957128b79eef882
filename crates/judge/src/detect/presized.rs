//! A size that is set where the bytes written set it: before them, or after.

use super::claim::{Claim, Claims, Detector, put};
use crate::fact::Fact;
use crate::finding::Kind;
use crate::hash::Map;
use crate::replay::Step;
use crate::semantics::{Act, POSITION, SIZE, Way};
use crate::signs::Signs;

/// Claims sizes of files that were new and written from the start: where the writes went at least as far, and where
/// they had come that far already.
pub(super) struct Presized;

/// A file that is open for writing, from its start.
#[derive(Default)]
struct Grown {
    written: u64,
    /// The call that set the size, and that size.
    sized: Option<(usize, u64)>,
    /// Whether it was made longer than what is written, so that it is not known to end there.
    longer: bool,
}

impl Detector for Presized {
    fn looks_for(&self) -> Signs {
        Signs::OPENS_ANEW
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut files: Map<i32, Grown> = Map::default();
        for step in steps {
            if step.forks || step.lines.maps() {
                // Another process writes, or a mapping needs the size.
                files.clear();
            }
            forget(step, &mut files);
            if let (Some(opened), Some(Ok(fd))) = (&step.opened, step.observed.call.result.map(i32::try_from))
                && opened.writes
                && opened.anew
            {
                files.insert(fd, Grown::default());
            }
            if let Some(size) = sets_size(step)
                && let Some(file) = files.get_mut(&step.observed.descriptor(0))
            {
                file.sized = (size > file.written && file.written == 0).then_some((step.index, size));
                if size == file.written && !file.longer {
                    put(claims, step.index, claim());
                }
                file.longer = size != file.written;
            }
            let moved = step.moved.as_ref().and_then(|m| Some((m, m.fd?, m.got?)));
            if let Some((moved, fd, got)) = moved.filter(|(m, ..)| m.line.way == Way::Out)
                && let Some(file) = files.get_mut(&fd)
            {
                if moved.line.at.is_some_and(|at| step.observed.arg(at) != file.written) {
                    // Written elsewhere: where it ends is not known any more.
                    files.remove(&fd);
                } else if let Some(at) = file.grow(got) {
                    put(claims, at, claim());
                }
            }
        }
    }
}

impl Grown {
    /// Adds what was written at its end, and returns the call that set the size to where it ends now, or before.
    fn grow(&mut self, got: u64) -> Option<usize> {
        self.written = self.written.saturating_add(got);
        let (at, _) = self.sized.take_if(|(_, size)| *size <= self.written)?;
        self.longer = false;
        Some(at)
    }
}

/// The size that a step gives a file.
fn sets_size(step: &Step<'_>) -> Option<u64> {
    let meaning = step.meaning.as_ref().filter(|m| m.line.about.is(&SIZE))?;
    let size = meaning.now.as_deref().and_then(|now| now.first_chunk()).map(|b| u64::from_le_bytes(*b))?;
    matches!(meaning.line.act, Act::Set { .. }).then_some(size)
}

/// Takes out what is closed, and what is gone elsewhere in the file.
fn forget(step: &Step<'_>, files: &mut Map<i32, Grown>) {
    files.retain(|fd, _| !step.lets_go(*fd) && !step.seeks(*fd));
    if step.meaning.as_ref().is_some_and(|m| m.line.about.is(&POSITION) && matches!(m.line.act, Act::Set { .. })) {
        files.remove(&step.observed.descriptor(0));
    }
}

fn claim() -> Claim {
    Claim {
        facts: Fact::Presized.into(),
        ..Claim::of(
            Kind::Toggle,
            "the size of a new file, which what is written sets",
            "write: the file grows by what is written",
        )
    }
}
