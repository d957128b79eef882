//! Detects file sizes that are set needlessly, since the bytes written before or afterwards give
//! the file this size.

use super::mapped::File;
use crate::causes::fact::Fact;
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, leave_out_later, put};
use crate::reasons::ReasonId;
use crate::results::finding::Kind;
use crate::semantics::{Act, FILE_STATUS, PATH, POSITION, SIZE, Way};
use crate::world::barrier::Barrier;
use crate::world::bounds::OFTEN;
use crate::world::replay::Step;

/// Claims a set of a file's size if the file ends there already, or if the following writes reach
/// as far before anything looks at the size. Not of files that the program maps: a mapping needs the size.
pub(super) struct Presized<'a> {
    /// Files that the program maps.
    pub(super) mapped: &'a Set<File>,
}

impl Presized<'_> {
    /// Returns true if the step is about a file that its process maps.
    fn is_mapped(&self, step: &Step<'_>) -> bool {
        let file = step.observed.call.fd.as_ref().filter(|_| !self.mapped.is_empty());
        file.is_some_and(|file| self.mapped.contains(&(step.observed.window.process.0, file.clone())))
    }
}

/// A file that is open for writing.
#[derive(Clone, Copy, Default)]
struct Grown {
    /// The file's size, bytes.
    size: u64,
    /// The position of the next write, if it is known.
    position: Option<u64>,
    /// The call that made the file longer and the new size, as long as nothing has looked at the
    /// file since.
    longer: Option<(usize, u64)>,
}

/// The files of a window.
#[derive(Default)]
struct Files {
    open: Map<i32, Grown>,
    /// For each file of unknown size: the first call that sets it, and the number of sizes claimed.
    firsts: Map<i32, (usize, usize)>,
}

impl Detector for Presized<'_> {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut files = Files::default();
        for step in steps {
            if step.lets(Barrier::SIZES_COUNT) {
                // Another process may write, or a mapping may need the size: nothing is known of
                // the open files any more.
                files.open.clear();
            }
            forget(step, &mut files.open);
            if let (Some(opened), Some(Ok(fd))) = (&step.opened, step.observed.call.result.map(i32::try_from))
                && opened.writes
                && opened.anew
            {
                files.open.insert(fd, Grown { position: Some(0), ..Grown::default() });
            }
            if let Some(size) = sets_size(step)
                && !claims.excuse(step.index, ReasonId::SizeIsMapped, self.is_mapped(step))
            {
                files.sized(step, size, claims);
            }
            let moved = step.moved.as_ref().and_then(|m| Some((m, m.fd?, m.got?)));
            if let Some((moved, fd, got)) = moved.filter(|(m, ..)| m.line.way == Way::Out) {
                files.written(fd, moved.line.at.map(|at| step.observed.arg(at)), got, claims);
            }
        }
        let cut = files.firsts.values().filter(|(_, claimed)| *claimed >= OFTEN);
        cut.filter_map(|(at, _)| steps.get(*at)).for_each(|step| leave_out_later(step, claims));
    }
}

impl Files {
    /// Notes that a size was set.
    fn sized(&mut self, step: &Step<'_>, size: u64, claims: &mut Claims) {
        let fd = step.observed.descriptor(0);
        let Some(file) = self.open.get_mut(&fd) else {
            self.open.insert(fd, Grown { size, ..Grown::default() });
            self.firsts.insert(fd, (step.index, 0));
            return;
        };
        let before = file.longer.take_if(|(_, longer)| *longer <= size);
        if size == file.size {
            self.claim(fd, step.index, claims);
        } else {
            file.longer = (size > file.size).then_some((step.index, size));
            file.size = size;
            if let Some((at, _)) = before {
                self.claim(fd, at, claims);
            }
        }
    }

    /// Notes that bytes were written, at `at` if the call tells the position.
    fn written(&mut self, fd: i32, at: Option<u64>, got: u64, claims: &mut Claims) {
        let Some(file) = self.open.get_mut(&fd) else { return };
        let Some(from) = at.or(file.position) else {
            // The position was unknown, so the end of the file is now unknown too.
            self.open.remove(&fd);
            return;
        };
        let end = from.saturating_add(got);
        if at.is_none() {
            file.position = Some(end);
        }
        file.size = file.size.max(end);
        if let Some((at, _)) = file.longer.take_if(|(_, longer)| *longer <= end) {
            self.claim(fd, at, claims);
        }
    }

    fn claim(&mut self, fd: i32, at: usize, claims: &mut Claims) {
        put(claims, at, claim());
        self.firsts.entry(fd).and_modify(|(_, claimed)| *claimed += 1);
    }
}

/// Returns the size that a step gives a file.
fn sets_size(step: &Step<'_>) -> Option<u64> {
    let meaning = step.meaning.as_ref().filter(|m| m.line.about.is(&SIZE))?;
    let size = meaning.now.as_deref().and_then(|now| now.first_chunk()).map(|b| u64::from_le_bytes(*b))?;
    matches!(meaning.line.act, Act::Set { .. }).then_some(size)
}

/// Forgets files that were closed, or whose position was set. A size that was looked at is not
/// claimed any more.
fn forget(step: &Step<'_>, files: &mut Map<i32, Grown>) {
    files.retain(|fd, _| !step.lets_go(*fd) && !step.seeks(*fd));
    let own = step.observed.descriptor(0);
    let meaning = step.meaning.as_ref();
    if meaning.is_some_and(|m| m.line.about.is(&POSITION) && matches!(m.line.act, Act::Set { .. })) {
        files.remove(&own);
    }
    let reads = step.moved.as_ref().filter(|m| m.line.way == Way::In).and_then(|m| m.fd);
    for fd in reads.into_iter().chain(step.asks(&FILE_STATUS).then_some(own)) {
        files.entry(fd).and_modify(|file| file.longer = None);
    }
    if step.asks(&PATH) {
        files.values_mut().for_each(|file| file.longer = None);
    }
}

fn claim() -> Claim {
    Claim {
        facts: Fact::Presized.into(),
        ..Claim::of(
            Kind::Toggle,
            "the size of a file, which what is written sets",
            "write: the file grows by what is written",
        )
    }
}
