//! Finds state that windows show to be set to one value only. A further set of that value changes
//! nothing, however far apart the windows lie.

use crate::hash::{Map, Set};
use crate::semantics::{Act, Effect, ObservedCall, SETTLED, Semantics, Source, State, StateId, StateLine, value};
use systoll_model::Recording;

/// Largest number of pieces of state that are compared; with more, none is settled.
const MOST: usize = 1 << 16;

/// Key of a piece of a process's state: the process, the kind of state, and the name with the part
/// of it that is set.
type Piece = (u32, StateId, Vec<u8>);

/// Returns the processes and kinds of state for which windows show that each piece is always set to
/// the same value, that none is taken away, and that all are set in one way: by a path or by a
/// descriptor.
pub(crate) fn settled(recording: &Recording, semantics: &Semantics) -> Set<(u32, StateId)> {
    let both = |(by_path, by_file): &(&'static State, &'static State)| [*by_path, *by_file];
    let is_set = |state: &&'static State| recording.rows.iter().any(|row| semantics.of(row.syscall).sets(state));
    let states: Vec<&'static State> = SETTLED.iter().flat_map(both).filter(is_set).collect();
    if states.is_empty() {
        return Set::default();
    }
    let mut seen = Seen::default();
    for window in &recording.windows {
        for call in window.calls.iter().filter(|call| call.errno().is_none()) {
            let observed = ObservedCall { window, call, syscall: recording.row(call.row).syscall };
            seen.look(&observed, semantics, &states);
        }
    }
    seen.settled()
}

/// The state that windows show.
#[derive(Default)]
struct Seen {
    pieces: Map<Piece, Vec<u8>>,
    /// Names of the pieces' objects, by process.
    names: Set<(u32, String)>,
    /// Processes and kinds of state that were set; `other` has those of which something else was
    /// seen.
    set: Set<(u32, StateId)>,
    other: Set<(u32, StateId)>,
    /// Names of objects, by process, that were taken away after their pieces had been set. A program that only clears
    /// up at its end sets them no more.
    gone: Set<(u32, String)>,
}

impl Seen {
    fn look(&mut self, observed: &ObservedCall<'_>, semantics: &Semantics, states: &[&'static State]) {
        let lines = semantics.of(observed.syscall);
        let process = observed.window.process.0;
        let may_set = states.iter().any(|state| lines.sets(state));
        let line = lines.state(observed).filter(|line| states.iter().any(|state| line.about.is(state)));
        if let Some(line) = line {
            self.set(line, observed);
            return;
        }
        if may_set {
            // The call sets such state to a value that no line tells, such as the present time.
            self.lose(process, states);
            return;
        }
        let gone = |effect| match effect {
            Effect::Path { at, path } if !lines.may_open => observed.path(at, path),
            _ => None,
        };
        let gone = lines.effects(observed).iter().filter_map(gone).map(|name| (process, name.into_owned()));
        let names = &self.names;
        self.gone.extend(gone.filter(|object| names.contains(object)));
    }

    fn lose(&mut self, process: u32, states: &[&'static State]) {
        self.other.extend(states.iter().map(|state| (process, state.id())));
    }

    fn set(&mut self, line: &'static StateLine, observed: &ObservedCall<'_>) {
        let (process, state) = (observed.window.process.0, line.about.id());
        self.set.insert((process, state));
        let Act::Set { value: source, .. } = line.act else { return };
        let known = piece(line, observed).zip(value(source, observed)).filter(|_| self.pieces.len() < MOST);
        let Some(((name, key), value)) = known else {
            self.other.insert((process, state));
            return;
        };
        let object = (process, name);
        if self.gone.contains(&object) {
            self.other.insert((process, state));
        }
        self.names.insert(object);
        let before = self.pieces.insert((process, state, key), value.to_vec());
        if before.is_some_and(|before| *before != *value) {
            self.other.insert((process, state));
        }
    }

    fn settled(self) -> Set<(u32, StateId)> {
        let other_way = |process: u32, state: StateId| {
            SETTLED.iter().any(|(by_path, by_file)| {
                let (by_path, by_file) = (by_path.id(), by_file.id());
                state == by_path && self.set.contains(&(process, by_file))
                    || state == by_file && self.set.contains(&(process, by_path))
            })
        };
        let is_settled = |of: &&(u32, StateId)| !self.other.contains(of) && !other_way(of.0, of.1);
        self.set.iter().filter(is_settled).copied().collect()
    }
}

/// Returns the name of the object that a call sets, and the key that tells the piece from others.
fn piece(line: &'static StateLine, observed: &ObservedCall<'_>) -> Option<(String, Vec<u8>)> {
    let (mut name, mut key) = (None, Vec::new());
    for source in line.key {
        let part = match *source {
            Source::Path { at, path } => name.insert(observed.path(at, path)?.into_owned()).clone().into_bytes(),
            Source::File(0) => name.insert(observed.call.fd.as_deref()?.to_owned()).clone().into_bytes(),
            source => value(source, observed)?.to_vec(),
        };
        key.extend_from_slice(&(part.len() as u32).to_le_bytes());
        key.extend_from_slice(&part);
    }
    Some((name?, key))
}
