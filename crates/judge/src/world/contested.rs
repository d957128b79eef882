//! Finds state that several threads of a process set to different values. A window shows one thread only: what its thread
//! set may have been changed by another before its next call.

use crate::collections::hash::{Map, Set};
use crate::semantics::{Act, ObservedCall, Scope, Semantics, Source, StateId, StateLine, value};
use crate::world::bounds::REMEMBERED;
use systoll_model::Recording;

/// A piece of a process's state: the process, the kind of state, and the values that identify the piece.
type Piece = (u32, StateId, Vec<u8>);

/// The pieces of state that windows show several threads to set to different values.
#[derive(Default)]
pub(crate) struct Contested {
    pieces: Set<Piece>,
    /// True if there are more pieces than were compared.
    more: bool,
}

/// The values to which a piece of state was set, as windows show it.
struct Setters {
    thread: u32,
    value: Option<Vec<u8>>,
    several_threads: bool,
    several_values: bool,
}

impl Contested {
    pub(crate) fn of(recording: &Recording, semantics: &Semantics) -> Self {
        let mut seen: Map<Piece, Setters> = Map::default();
        let mut more = false;
        let sets = semantics.calls_in_windows(recording, |lines| lines.sets_any());
        let has_threads = |process: u32| recording.processes.get(process as usize).is_some_and(|p| p.threads > 1);
        for observed in sets.filter(|o| has_threads(o.window.process.0) && o.call.errno().is_none()) {
            let Some(line) = semantics.lines_of(observed.syscall).state(&observed) else { continue };
            let Some((piece, value)) = piece(line, &observed) else { continue };
            // What is met later counts as contested.
            if seen.len() >= REMEMBERED && !seen.contains_key(&piece) {
                more = true;
                continue;
            }
            let thread = observed.window.thread;
            let first = || Setters { thread, value: value.clone(), several_threads: false, several_values: false };
            let setters = seen.entry(piece).or_insert_with(first);
            setters.several_threads |= setters.thread != thread;
            setters.several_values |= setters.value.is_none() || setters.value != value;
        }
        seen.retain(|_, setters| setters.several_threads && setters.several_values);
        Self { pieces: seen.into_keys().collect(), more }
    }

    /// Returns true if the call sets a piece of state that several threads set to different values.
    pub(crate) fn contains(&self, line: &'static StateLine, observed: &ObservedCall<'_>) -> bool {
        (self.more || !self.pieces.is_empty())
            && piece(line, observed).is_some_and(|(piece, _)| self.more || self.pieces.contains(&piece))
    }
}

/// Returns the piece of a process's state that a call sets, and the value; `None` in place of a value that was not read.
/// Returns `None` if the call sets no state that threads share, or if it is not known which.
fn piece(line: &'static StateLine, observed: &ObservedCall<'_>) -> Option<(Piece, Option<Vec<u8>>)> {
    let Act::Set { value: source, how, .. } = line.act else { return None };
    if matches!(line.about.scope, Scope::Thread) {
        return None;
    }
    let mut key = Vec::new();
    for source in line.key {
        let part = match *source {
            Source::Path { at, path } => observed.path(at, path)?.into_owned().into_bytes(),
            Source::Fd(arg) => {
                let name = observed.call.fd.as_deref().filter(|_| arg == 0).unwrap_or_default();
                [&observed.descriptor(arg).to_le_bytes(), name.as_bytes()].concat()
            }
            source => value(source, observed)?.to_vec(),
        };
        key.extend_from_slice(&(part.len() as u32).to_le_bytes());
        key.extend_from_slice(&part);
    }
    let set = value(source, observed).map(|value| [&*value, &[how as u8]].concat());
    Some(((observed.window.process.0, line.about.id(), key), set))
}
