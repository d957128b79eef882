//! Finds state that windows show to be set to one value only. A further set of that value changes
//! nothing, however far apart the windows lie.

use crate::collections::hash::{Map, Set};
use crate::semantics::{
    Across, Act, Effect, INTEREST, ObservedCall, SETTLED, SETTLED_OPEN, Semantics, Shared, Source, State, StateId,
    StateLine, names_one, value,
};
use crate::world::bounds::REMEMBERED;
use systoll_model::constants::{EPOLL_CTL_ADD, EPOLL_CTL_DEL};
use systoll_model::{Recording, Sysno};

/// Key of a piece of a process's state: the process, the kind of state, and the name with the part
/// of it that is set.
type Piece = (u32, StateId, Vec<u8>);

/// Returns true if no other object has the name by which the call names the object whose state it sets; see
/// [`Across::SettledOpen`]. Of an epoll interest it is enough that no window shows the descriptor added twice.
pub(crate) fn is_one_object(state: &State, observed: &ObservedCall<'_>) -> bool {
    !matches!(state.across, Across::SettledOpen)
        || state.is(&INTEREST)
        || observed.call.fd.as_deref().is_some_and(names_one)
}

/// Returns the processes and kinds of state for which windows show that each piece is always set to
/// the same value, that none is taken away, and that all are set in one way: by a path or by a
/// descriptor.
pub(crate) fn settled(recording: &Recording, semantics: &Semantics) -> Set<(u32, StateId)> {
    let both = |(by_path, by_file): &(&'static State, &'static State)| [*by_path, *by_file];
    let is_set = |state: &&'static State| recording.rows.iter().any(|row| semantics.lines_of(row.syscall).sets(state));
    let states: Vec<&'static State> =
        SETTLED.iter().flat_map(both).chain(SETTLED_OPEN.iter().copied()).filter(is_set).collect();
    if states.is_empty() {
        return Set::default();
    }
    let mut seen = Seen::default();
    for observed in semantics.calls_in_windows(recording, |_| true).filter(|observed| observed.call.errno().is_none()) {
        seen.note(&observed, semantics, &states);
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
    /// By process and kind of state, the call that set it first.
    calls: Map<(u32, StateId), Sysno>,
    other: Set<(u32, StateId)>,
    /// Names of objects, by process, that were taken away after their pieces had been set. A program that only clears
    /// up at its end sets them no more.
    gone: Set<(u32, String)>,
}

impl Seen {
    fn note(&mut self, observed: &ObservedCall<'_>, semantics: &Semantics, states: &[&'static State]) {
        let lines = semantics.lines_of(observed.syscall);
        let process = observed.window.process.0;
        let may_set = states.iter().any(|state| lines.sets(state));
        let line = lines.state(observed).filter(|line| states.iter().any(|state| line.about.is(state)));
        if let Some(line) = line {
            self.set(line, observed);
            // One option may have two numbers, or follow from another.
            let changes = |effect| match effect {
                Effect::ChangesOf(_, state) if states.iter().any(|of| of.is(state)) => Some((process, state.id())),
                _ => None,
            };
            self.other.extend(lines.effects(observed).iter().filter_map(changes));
            return;
        }
        if may_set {
            // The call sets such state to a value that no line tells, such as the present time.
            self.lose(process, states.iter().filter(|state| lines.sets(state)));
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

    fn lose<'s>(&mut self, process: u32, states: impl Iterator<Item = &'s &'static State>) {
        self.other.extend(states.map(|state| (process, state.id())));
    }

    fn set(&mut self, line: &'static StateLine, observed: &ObservedCall<'_>) {
        let (process, state) = (observed.window.process.0, line.about.id());
        self.set.insert((process, state));
        let Act::Set { value: source, .. } = line.act else { return };
        if matches!(line.about.across, Across::SettledOpen) && !is_one_object(line.about, observed) {
            // Detectors judge such a setting within its own window.
            return;
        }
        let known = piece(line, observed).zip(value(source, observed)).filter(|_| self.pieces.len() < REMEMBERED);
        let Some(((name, key), value)) = known else {
            self.other.insert((process, state));
            return;
        };
        let object = (process, name);
        if line.about.is(&INTEREST) && observed.arg(1) == EPOLL_CTL_DEL as u64 {
            self.gone.insert(object);
            return;
        }
        // A descriptor that is added again leads to another object than before.
        let added = line.about.is(&INTEREST) && observed.arg(1) == EPOLL_CTL_ADD as u64;
        // Two calls may set the same piece, each in its own way: FIONBIO and F_SETFL.
        let by_another_call = line.about.shared == Shared::ByFile
            && *self.calls.entry((process, state)).or_insert(observed.syscall) != observed.syscall;
        if self.gone.contains(&object) || added && self.names.contains(&object) || by_another_call {
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
            Source::Fd(0) if !line.about.is(&INTEREST) => {
                name.insert(observed.call.fd.as_deref()?.to_owned()).clone().into_bytes()
            }
            Source::Fd(arg) => {
                let number = observed.descriptor(arg).to_string();
                name.get_or_insert_default().push_str(&format!(" {number}"));
                number.into_bytes()
            }
            source => value(source, observed)?.to_vec(),
        };
        key.extend_from_slice(&(part.len() as u32).to_le_bytes());
        key.extend_from_slice(&part);
    }
    Some((name?, key))
}
