//! Detects questions about a file whose answer follows from the program's own writes.

use super::others_look::OTHERS_LOOK_NS;
use super::walk::leads_to;
use crate::causes::fact::Fact;
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, put};
use crate::names::paths::PathId;
use crate::reasons::ReasonId;
use crate::results::finding::Kind;
use crate::semantics::{Act, Effect, Effects, PATH, Semantics, Source, Way};
use crate::world::barrier::Barrier;
use crate::world::bounds::REMEMBERED;
use crate::world::replay::Step;
use std::borrow::Cow;
use std::ops::Range;
use systoll_model::constants::{O_RDWR, O_WRONLY};
use systoll_model::{Moment, Recording, RowId};

/// Estimated number of a file's openings for writing from which on the program opens it anew now and then.
const ANEW: f64 = 2.0;

/// Claims questions about the status of a path that leads to the same file as before, which has grown by exactly the
/// bytes that the program wrote.
pub(super) struct OwnWrites<'a> {
    /// Names of files that were opened for writing more than once, or moved elsewhere, or stood for another file than
    /// before, as far as windows show.
    replaced: Set<Cow<'a, str>>,
    /// The file that last stood at a path.
    last: Map<(u32, PathId), Vec<u8>>,
}

/// Ranges of an answer that hold the file's identity, mode and owner, and the offset of its size; bytes.
struct Layout {
    file: &'static [Range<usize>],
    size: usize,
}

/// `struct stat` up to its size: device and inode; links, mode, owner, group, device number.
const STAT: Layout = Layout { file: &[0..16, 16..48], size: 48 };
/// `struct statx`: links, owner, group, mode, inode; device.
const STATX: Layout = Layout { file: &[16..40, 136..144], size: 40 };

/// Status of a path when it was last asked for.
struct Found<'a> {
    name: &'a str,
    file: Vec<u8>,
    size: u64,
    /// Number of bytes written to the file since then.
    written: u64,
    /// Time of the question, ns; 0 if it is not known.
    asked_ns: u64,
}

impl<'a> OwnWrites<'a> {
    pub(super) fn new(recording: &'a Recording, semantics: &Semantics) -> Self {
        let mut replaced = Set::default();
        // For each path, and row that opens it for writing: the numbers of the calls seen. For each row: all seen.
        let mut opened: Map<(Cow<'a, str>, RowId), Set<u64>> = Map::default();
        let mut seen: Map<RowId, Set<u64>> = Map::default();
        for observed in semantics.calls_in_windows(recording, |lines| lines.may_open || lines.names()) {
            let (call, lines) = (observed.call, semantics.lines_of(observed.syscall));
            seen.entry(call.row).or_default().insert(call.nth);
            let effects = if call.errno().is_some() { Effects::default() } else { lines.effects(&observed) };
            for effect in effects.iter() {
                match effect {
                    Effect::Path { at, path } if lines.names() => {
                        replaced.extend(observed.path(at, path));
                    }
                    // An opening with unknown flags may be one for writing.
                    Effect::OpensPath { at, path, .. }
                        if observed.opening_flags(effects).is_none_or(|flags| flags & (O_WRONLY | O_RDWR) != 0) =>
                    {
                        if let Some(path) = observed.path(at, path) {
                            opened.entry((path, call.row)).or_default().insert(call.nth);
                        }
                    }
                    _ => {}
                }
            }
        }
        // Of a row's openings as many are of the path as of those seen.
        let times = |row: RowId, of: usize| {
            let looked_at = seen.get(&row).map_or(1, Set::len).max(1) as f64;
            of as f64 * (recording.row(row).counts.calls as f64 / looked_at).max(1.0)
        };
        let mut openings: Map<Cow<'a, str>, f64> = Map::default();
        for ((path, row), of) in opened {
            *openings.entry(path).or_default() += times(row, of.len());
        }
        let anew = openings.into_iter().filter(|(_, times)| *times >= ANEW);
        replaced.extend(anew.map(|(path, _)| path));
        Self { replaced, last: Map::default() }
    }

    /// Returns true if another file stood at the path before. Remembers which one does now.
    fn is_another(&mut self, who: u32, path: PathId, file: &[u8]) -> bool {
        let room = self.last.len() < REMEMBERED;
        match self.last.get_mut(&(who, path)) {
            Some(last) if last == file => false,
            Some(last) => {
                *last = file.to_vec();
                true
            }
            None => {
                if room {
                    self.last.insert((who, path), file.to_vec());
                }
                false
            }
        }
    }
}

impl Detector for OwnWrites<'_> {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut found: Map<PathId, Found<'_>> = Map::default();
        for step in steps {
            if step.lets(Barrier::PATHS_MOVE) {
                found.clear();
            }
            let out = step.moved.filter(|moved| moved.line.way == Way::Out).and_then(|moved| moved.got);
            if let (Some(bytes), Some(file)) = (out, step.observed.call.fd.as_deref()) {
                for of in found.values_mut().filter(|of| leads_to(of.name, file)) {
                    of.written = of.written.saturating_add(bytes);
                }
            }
            let Some((path, name, (file, size))) =
                step.object_id.zip(step.object.as_deref()).and_then(|(id, name)| Some((id, name, status(step)?)))
            else {
                continue;
            };
            if self.is_another(step.who, path, &file) {
                self.replaced.insert(name.to_owned().into());
            }
            let asked_ns = step.observed.call.entry_ns;
            let before = found.insert(path, Found { name, file: file.clone(), size, written: 0, asked_ns });
            let follows = |was: &&Found<'_>| {
                was.written > 0 && was.file == file && was.size.checked_add(was.written) == Some(size)
            };
            if let Some(was) = before.as_ref().filter(follows) {
                // The program may notice by this question that another process has moved a log away; but it need not
                // look so often for what has not come once.
                let quick = was.asked_ns < asked_ns && asked_ns - was.asked_ns < OTHERS_LOOK_NS;
                let weak = claims.excuse(step.index, ReasonId::AskedInTime, !quick)
                    | claims.excuse(step.index, ReasonId::NameMovesAway, self.replaced.contains(name));
                let object = Some(claims.object(name));
                put(claims, step.index, Claim { object, weak, ..claim() });
            }
        }
    }
}

/// Returns the identity and the size of the file that a step found at a path.
fn status(step: &Step<'_>) -> Option<(Vec<u8>, u64)> {
    let meaning = step.meaning.as_ref().filter(|meaning| meaning.line.about.is(&PATH))?;
    let Act::Ask(&[Source::OutBut(arg, from, _)]) = meaning.line.act else { return None };
    let answer = step.observed.data(arg, Moment::Exit).filter(|_| step.observed.call.errno().is_none())?;
    let layout = if from == 64 { STATX } else { STAT };
    let mut file = Vec::new();
    for part in layout.file {
        file.extend_from_slice(answer.get(part.clone())?);
    }
    let size = answer.get(layout.size..layout.size + 8)?.first_chunk()?;
    Some((file, u64::from_le_bytes(*size)))
}

fn claim() -> Claim {
    Claim {
        facts: Fact::OwnWrites.into(),
        gives_up: "a file that another process moves or cuts is written to as before until its path is asked for again",
        ..Claim::of(
            Kind::Repeat,
            "the status of a file that is as the program itself has left it",
            "keep count of what is written; look at the path now and then, not before each write",
        )
    }
}
