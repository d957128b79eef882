//! Detects questions for the room on a disk before each write, of which the program's own writes take little.

use crate::causes::fact::Fact;
use crate::collections::hash::Map;
use crate::evidence::claim::{Claim, Claims, leave_out_later, put};
use crate::names::paths::PathId;
use crate::results::finding::Kind;
use crate::semantics::{Act, ROOM, Source, Way, word_at};
use crate::world::replay::Step;
use systoll_model::Moment;

/// Least number of such questions about a disk in a window for a habit.
const LEAST: usize = 3;
/// Least room that an answer tells, as a multiple of what is written until the next question.
const PLENTY: u64 = 64;
/// Offset of the size of a block, and of the number of blocks that are free to all, in `struct statfs`; bytes.
const LAYOUT: (usize, usize) = (8, 32);

/// The kernel's last answer about a disk, and what the program did since.
#[derive(Default)]
struct Disk {
    /// Room at the last question, bytes.
    room: u64,
    /// Bytes that the program has written since.
    written: u64,
    first: usize,
    again: Vec<usize>,
}

/// Claims questions for the room on a disk where the one before told of much more than was written since. Others may
/// write there too, so the claims are weak.
pub(super) fn window(steps: &[Step<'_>], claims: &mut Claims) {
    let mut disks: Map<Option<PathId>, Disk> = Map::default();
    for (at, step) in steps.iter().enumerate() {
        let is_file = step.observed.call.fd.as_deref().is_some_and(|name| name.starts_with('/'));
        let out = step.moved.filter(|moved| moved.line.way == Way::Out && is_file).and_then(|moved| moved.got);
        for disk in disks.values_mut() {
            disk.written = disk.written.saturating_add(out.unwrap_or(0));
        }
        let Some(room) = room(step) else { continue };
        let disk = disks.entry(step.object_id).or_insert_with(|| Disk { first: at, ..Disk::default() });
        if disk.written > 0 && disk.room / PLENTY >= disk.written {
            disk.again.push(at);
        }
        (disk.room, disk.written) = (room, 0);
    }
    for disk in disks.values().filter(|disk| disk.again.len() >= LEAST) {
        for step in disk.again.iter().filter_map(|at| steps.get(*at)) {
            let object = step.object.as_deref().map(|name| claims.object(name));
            put(claims, step.index, Claim { object, ..claim() });
        }
        steps.get(disk.first).into_iter().for_each(|step| leave_out_later(step, claims));
    }
}

/// Returns the room that a step is told of, bytes.
fn room(step: &Step<'_>) -> Option<u64> {
    let meaning = step.meaning.as_ref().filter(|meaning| meaning.line.about.is(&ROOM))?;
    let Act::Ask(&[Source::Out(arg)]) = meaning.line.act else { return None };
    let answer = step.observed.data(arg, Moment::Exit).filter(|_| step.observed.call.errno().is_none())?;
    Some(word_at(answer, LAYOUT.0)?.saturating_mul(word_at(answer, LAYOUT.1)?))
}

fn claim() -> Claim {
    Claim {
        weak: true,
        facts: Fact::Room.into(),
        gives_up: "what others take of it meanwhile is noticed only when it is asked again",
        ..Claim::of(
            Kind::Repeat,
            "how much room a disk has, of which its own writes take little",
            "ask once for some megabytes and count what is written, or act on ENOSPC",
        )
    }
}
