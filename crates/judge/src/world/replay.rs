//! Goes through the windows in order and keeps the answers and settings that a program could have kept.
//!
//! Answers are kept from window to window if that is sound; see [`crate::semantics::Across`].

use crate::collections::hash::{Map, Set};
use crate::names::paths::{PathId, Paths};
use crate::semantics::signs::Signs;
use crate::semantics::{
    ADVICE, ATTEMPT, ATTRIBUTES, Across, Act, CWD, Cheaper, Effect, Effects, FILE_STATUS, FOLDER, FileLock,
    Generations, How, INTEREST, Key, Known, Look, MADE_UP, MAKING, NAME, OF_IDENTITY, ObservedCall, PATH, POSITION,
    PROTECTION, ROOM, SCHEDULES, SETTLED, SIZE, SYNCED, Semantics, Shared, Source, State, StateId, StateLine, Thing,
    Trait, Value, answer, first_word, value,
};
use crate::world::barrier::Barrier;
use crate::world::changers::Changers;
use crate::world::contested::Contested;
use crate::world::file_ends::FileEnds;
use crate::world::one_shots::{OneShots, awaited_by_several, is_one_shot};
use crate::world::settled::{is_one_object, settled};
pub(crate) use crate::world::step::{Meaning, Moved, Opened, Step};
use crate::world::step::{found_nothing, is_look, moved};
use crate::world::wanderers::Wanderers;
use crate::world::whole_rows::whole_rows;
use std::cell::RefCell;
use std::rc::Rc;
use systoll_model::constants::{O_APPEND, O_EXCL, O_RDWR, O_TRUNC, O_WRONLY};
use systoll_model::{Before, Process, Recording, Row, RowId, Sysno};

/// Largest number of keys kept for state that descriptors share. The list is searched linearly, and an imported trace
/// is one long window.
const MOST_SHARED: usize = 64;

/// The state of all processes, as far as windows show it.
pub(crate) struct Replay<'a> {
    recording: &'a Recording,
    semantics: &'a Semantics,
    /// Calls that end the validity of answers and that windows do not show all of, by the process that made them. Names
    /// are changed by `changers`.
    made: Set<(u32, &'static str)>,
    changers: Rc<Changers>,
    contested: Contested,
    generations: Generations,
    known: Known<'a>,
    positions: Map<(u32, i32), u64>,
    ends: FileEnds,
    one_shots: OneShots<'a>,
    /// Processes in which several threads wait for events.
    awaited_by_several: Set<u32>,
    ranges: Map<(u32, StateId), Vec<(u64, u64)>>,
    /// Names of the files behind the window's descriptors, as far as calls tell them.
    names: Map<(u32, i32), Option<&'a str>>,
    /// Keys of state that descriptors share, as met in the window, each with the file's name.
    shared: Vec<(u32, StateId, Key, Option<&'a str>)>,
    paths: Paths<'a>,
    /// True if a detector asks for the parts of objects.
    takes_apart: bool,
    /// Generations of opened files by process, true if opened for writing, and path.
    opened: Map<(u32, bool, PathId), u32>,
    /// Processes that change their working directory.
    wanders: Wanderers,
    /// Processes, each with a kind of state that windows show it to set to one value only.
    settled: Set<(u32, StateId)>,
    /// By process and kind of state, once looked up: true if answers hold from window to window.
    kept: RefCell<Map<(u32, StateId), bool>>,
    window: u64,
    /// The generations' version at the beginning of the window.
    began: u32,
}

impl<'a> Replay<'a> {
    /// Returns a replay that knows nothing yet. Steps have their [`Step::parts`] if `takes_apart` is true.
    pub(crate) fn new(
        recording: &'a Recording,
        semantics: &'a Semantics,
        changers: Rc<Changers>,
        takes_apart: bool,
    ) -> Self {
        let ends = |row: &Row| semantics.lines_of(row.syscall).ends_answers;
        // Where windows show every call of a row, the replay comes to each change at its place.
        let whole = whole_rows(recording, ends);
        let hidden = (0u32..).map(RowId).zip(&recording.rows).filter(|(id, row)| ends(row) && !whole.contains(id));
        // In windows, hardly more than one call in three is about something new.
        let room = recording.windows.iter().map(|window| window.calls.len()).sum::<usize>() / 3;
        Self {
            recording,
            semantics,
            made: hidden.filter_map(|(_, row)| Some((row.process.0, row.syscall.name()?))).collect(),
            changers,
            contested: Contested::of(recording, semantics),
            generations: Generations::default(),
            known: Known::with_room(room),
            positions: Map::default(),
            ends: FileEnds::default(),
            one_shots: OneShots::default(),
            awaited_by_several: awaited_by_several(recording, semantics),
            ranges: Map::default(),
            names: Map::default(),
            shared: Vec::new(),
            paths: Paths::with_room(room),
            takes_apart,
            opened: Map::default(),
            wanders: Wanderers::of(recording),
            settled: settled(recording, semantics),
            kept: RefCell::default(),
            window: 0,
            began: 0,
        }
    }

    /// Returns the value of [`Step::who`] for a window.
    fn who(&self, window: &systoll_model::Window) -> u32 {
        const OF_MANY: u32 = 1 << 31;
        let process = window.process.0;
        if self.is_many(process) { OF_MANY | window.thread } else { process }
    }

    /// Returns true if an entry represents many processes, which do not share what they know.
    fn is_many(&self, process: u32) -> bool {
        self.recording.processes.get(process as usize).is_some_and(Process::is_many)
    }

    /// Replaces `steps` by the steps of the next window. Returns the signs that the window shows.
    pub(crate) fn window(&mut self, window: &'a systoll_model::Window, steps: &mut Vec<Step<'a>>) -> Signs {
        self.window += 1;
        self.positions.clear();
        self.ends.clear();
        self.one_shots.clear();
        self.ranges.clear();
        self.names.clear();
        self.shared.clear();
        let process = window.process.0;
        if self.wanders.may_have_moved(window) {
            self.generations.void_folder(process);
        }
        self.began = self.generations.version;
        steps.clear();
        steps.extend(window.calls.iter().enumerate().map(|(index, call)| {
            let row = self.recording.row(call.row);
            self.step(index, ObservedCall { window, call, syscall: row.syscall })
        }));
        steps.iter_mut().fold(Signs::default(), |all, step| {
            step.signs = step.shows();
            step.barrier = step.let_happen();
            all.and(step.signs)
        })
    }

    /// Returns all that is known of a call except its signs.
    fn step(&mut self, index: usize, observed: ObservedCall<'a>) -> Step<'a> {
        if observed.call.signals_before > 0 {
            self.shake(&observed);
        }
        let failed = observed.call.errno().is_some();
        let lines = self.semantics.lines_of(observed.syscall);
        if let Some(fd) = lines.fd.and_then(|arg| u8::try_from(arg).ok()) {
            self.names.insert((observed.window.process.0, observed.descriptor(fd)), observed.call.fd.as_deref());
        }
        let line = lines.state(&observed);
        let object = line.and_then(|line| self.object(line, &observed));
        let meaning = line.and_then(|line| self.meaning(line, &observed));
        let effects = if failed { Effects::default() } else { lines.effects(&observed) };
        if lines.has::<FileLock>() || lines.waits && lines.transfer(&observed).is_none() {
            // Others may have written meanwhile.
            self.ends.clear();
        }
        let look = lines.line::<Look>(&observed).filter(|look| is_look(look, &observed));
        let nothing = look.is_some_and(|look| found_nothing(look, &observed));
        let parts = object.filter(|_| self.takes_apart).and_then(|object| self.paths.parts(object));
        let mut opened = None;
        for effect in effects.iter() {
            if let Effect::OpensPath { at, path, .. } = effect {
                let flags = observed.opening_flags(effects);
                opened = flags.and_then(|flags| self.open(&observed, at, path, flags));
            }
            self.apply(effect, &observed);
        }
        if let Some(meaning) = &meaning {
            self.learn(meaning, &observed);
        }
        // The step is built last and is not changed afterwards: it is large and must not be copied.
        Step {
            index,
            who: self.who(observed.window),
            cheaper: lines.line::<Cheaper>(&observed).filter(|_| !failed),
            makes: lines.line::<Thing>(&observed).filter(|_| !failed),
            moves: lines.moves() && !failed,
            ends: lines.ends(&observed).is_some() && !failed,
            opened,
            object: object.map(|object| self.paths.text(object)),
            object_id: object,
            parts,
            moved: lines.transfer(&observed).map(|line| moved(line, &observed)),
            pauses: lines.waits && look.is_none_or(|look| look.runs_out),
            wakes: lines.is(Trait::Wakes, &observed),
            look,
            nothing,
            effects,
            lines,
            meaning,
            observed,
            signs: Signs::default(),
            barrier: Barrier::default(),
        }
    }

    /// Returns the path, or the file behind the descriptor, that a call is about.
    fn object(&mut self, line: &'static StateLine, observed: &ObservedCall<'a>) -> Option<PathId> {
        let name = |observed: &ObservedCall<'a>| observed.call.fd.as_deref().filter(|file| file.starts_with('/'));
        line.key.iter().find_map(|source| match *source {
            Source::Path { at, path } => Some(observed.path_id(&mut self.paths, at, path)),
            Source::Fd(0) => Some(name(observed).and_then(|file| self.paths.number(file.into()))),
            _ => None,
        })?
    }

    /// Returns the file that a call opened. It counts as opened again if the process opened it before and it has not
    /// changed since.
    fn open(&mut self, observed: &ObservedCall<'a>, at: Option<u8>, path: u8, flags: u32) -> Option<Opened<'a>> {
        let path = observed.path_id(&mut self.paths, at, path)?;
        let writes = flags & O_RDWR != 0 || flags & O_WRONLY != 0;
        let anew = flags & (O_TRUNC | O_EXCL) != 0;
        // A program that opens a file for writing does so for its writes: they do not count as changes.
        let generation = if writes { 0 } else { self.generations.path(path, &self.paths) };
        let wanders = self.wanders.is_away(observed.window);
        let told = observed.call.before == Before::Same
            && generation <= self.began
            && (self.paths.is_absolute(path) || !wanders);
        let before = self.opened.insert((self.who(observed.window), writes, path), generation);
        let shown = before == Some(generation);
        Some(Opened { path: self.paths.text(path), writes, anew, again: shown || told, shown })
    }

    /// Voids the state that a signal handler, or the return from one, may have changed.
    fn shake(&mut self, observed: &ObservedCall<'_>) {
        for state in Semantics::shaken_by_signals() {
            self.generations.void_state(observed.window.process.0, None, state);
        }
    }

    /// Returns a part of a key that differs in each window if the answer can't be kept; `None` if it can.
    fn gap(&mut self, line: &'static StateLine, observed: &ObservedCall<'a>) -> Option<u64> {
        let is_kept = !self.is_many(observed.window.process.0)
            && self.is_kept(line, observed)
            && is_one_object(line.about, observed);
        (!is_kept).then_some(self.window)
    }

    /// Returns true if a process's answers about a state, of the kind that the call gets, hold from window to window.
    fn is_kept(&mut self, line: &'static StateLine, observed: &ObservedCall<'a>) -> bool {
        let (state, process) = (line.about, observed.window.process.0);
        match state.across {
            Across::Keep => true,
            Across::Names => {
                let (path, row) = (self.object(line, observed), observed.call.row);
                let asked = (row, self.recording.row(row).counts.calls);
                path.is_some_and(|path| !self.changers.may_hide(process, path, &self.paths, asked))
            }
            Across::Drop => false,
            Across::Settled | Across::SettledOpen => self.settled.contains(&(process, state.id())),
            Across::Unless(calls) => {
                let made = |call: &&'static str| self.made.contains(&(process, *call));
                *self.kept.borrow_mut().entry((process, state.id())).or_insert_with(|| !calls.iter().any(made))
            }
        }
    }

    fn meaning(&mut self, line: &'static StateLine, observed: &ObservedCall<'a>) -> Option<Meaning<'a>> {
        let process = observed.window.process.0;
        let gap = self.gap(line, observed);
        let (key, newest) = self.known.key(&self.generations, &mut self.paths, line, observed, gap)?;
        let from_before = gap.is_some() && newest <= self.began;
        let version = self.generations.version;
        let mut known = self.known.get(key).cloned();
        if line.about.is(&POSITION) {
            let of = (process, observed.descriptor(0));
            let stays = |at: &&u64| !to_end(line) || self.ends.lies_at(of, **at);
            known = self.positions.get(&of).filter(stays).map(|p| Value::word(*p));
        }
        let Act::Set { value: source, old, how, never } = line.act else {
            // For a call that does something, only a failure counts as an answer.
            let now = match line.act {
                Act::Ask(sources) => answer(sources, observed),
                _ => answer(&[], observed).filter(|_| observed.call.errno().is_some()),
            };
            if known != now && newest <= self.began && self.asked_before(line, observed) {
                known = now.clone();
            }
            let (operand, changes_nothing) = (None, false);
            return Some(Meaning { line, key, version, from_before, known, now, operand, changes_nothing });
        };
        known = match old {
            Some(Source::Unread) => None,
            _ if self.contested.contains(line, observed) => None,
            _ => known,
        };
        known = old.and_then(|old| value(old, observed)).or(known);
        if never != 0 {
            known = known.as_deref().and_then(first_word).map(Value::word);
        }
        let operand = value(source, observed);
        let bits = operand.as_deref().and_then(first_word);
        let before = known.as_deref().and_then(first_word);
        let now = match how {
            How::Replace if never == 0 => operand.clone(),
            How::Replace => bits.map(|b| Value::word(b & !never)),
            How::Add => bits.zip(before).map(|(b, was)| Value::word(was | (b & !never))),
            How::Remove => bits.zip(before).map(|(b, was)| Value::word(was & !b)),
        };
        let changes_nothing = how != How::Replace && bits == Some(0);
        let operand = operand.filter(|_| how != How::Replace).map(|o| [&*o, &[how as u8]].concat().into());
        Some(Meaning { line, key, version, from_before, known, now, operand, changes_nothing })
    }

    /// Returns true if the ledger knows that the same answer was given before, which proves as much as in another window.
    /// The caller checks that the window itself shows no change since.
    fn asked_before(&mut self, line: &'static StateLine, observed: &ObservedCall<'a>) -> bool {
        let about = [&PATH, &NAME, &ATTEMPT, &MAKING, &ROOM].iter().any(|state| line.about.is(state));
        let known = match observed.call.before {
            Before::Unknown => false,
            Before::Same => true,
            // Who did not follow links was told that there is none, but not the reverse.
            Before::OtherWay => {
                line.about.is(&PATH) && !self.semantics.lines_of(observed.syscall).is(Trait::NotFollows, observed)
            }
        };
        about && known && self.is_kept(line, observed) && !self.is_relative(line.key, observed)
    }

    /// Returns true if the path is relative and the process may have been in another folder before.
    fn is_relative(&self, key: &[Source], observed: &ObservedCall<'a>) -> bool {
        let path = |source: &Source| match *source {
            Source::Path { at, path } => observed.path(at, path),
            _ => None,
        };
        let absolute = || key.iter().find_map(path).is_some_and(|path| path.starts_with('/'));
        self.wanders.is_away(observed.window) && !absolute()
    }

    /// Stores the answer, or the value set, under the key that holds after the call's own effects.
    fn learn(&mut self, meaning: &Meaning<'a>, observed: &ObservedCall<'a>) {
        let process = observed.window.process.0;
        let line = meaning.line;
        if line.about.is(&POSITION) {
            if let Some(at) = observed.call.result.and_then(|r| u64::try_from(r).ok()) {
                if !meaning.known_already() {
                    self.moved_beside(process, observed.descriptor(0));
                }
                self.positions.insert((process, observed.descriptor(0)), at);
                if to_end(line) {
                    self.ends.found((process, observed.descriptor(0)), at);
                }
            }
            return;
        }
        if line.about.ranges {
            self.void_overlaps(line.about, observed);
        }
        let mut key = meaning.key;
        if meaning.version != self.generations.version {
            let gap = self.gap(line, observed);
            let Some((renewed, _)) = self.known.key(&self.generations, &mut self.paths, line, observed, gap) else {
                return;
            };
            key = renewed;
        }
        self.doubt_shared(meaning, key, observed);
        if let Some(now) = meaning.now.as_ref().filter(|now| line.about.is(&INTEREST) && is_one_shot(now)) {
            // Only the next wait tells if the interest's event came, so its value is unknown until then.
            self.known.put(key, None);
            if !self.awaited_by_several.contains(&process) {
                self.one_shots.set(observed, key, now.clone());
            }
            return;
        }
        match (&meaning.now, line.act) {
            (Some(now), _) => self.known.put(key, Some(now.clone())),
            (None, Act::Try) => self.known.put(key, None),
            (None, Act::Set { .. }) if !meaning.changes_nothing => self.known.put(key, None),
            _ => {}
        }
    }

    /// Notes a key of state that descriptors share. If a set may have changed the state, values known by other keys
    /// of it are voided.
    fn doubt_shared(&mut self, meaning: &Meaning<'a>, key: Key, observed: &ObservedCall<'a>) {
        let about = meaning.line.about;
        if about.shared == Shared::No {
            return;
        }
        let (process, name) = (observed.window.process.0, observed.call.fd.as_deref());
        let sets = matches!(meaning.line.act, Act::Set { .. }) && !meaning.known_already();
        let mut noted = false;
        for (of, state, other, file) in &self.shared {
            let same = (*of, *state) == (process, about.id());
            noted |= same && *other == key;
            if same && sets && *other != key && (about.shared == Shared::All || maybe_same(*file, name)) {
                self.known.put(*other, None);
            }
        }
        if noted {
            return;
        }
        if self.shared.len() == MOST_SHARED {
            let (.., oldest, _) = self.shared.remove(0);
            self.known.put(oldest, None);
        }
        self.shared.push((process, about.id(), key, name));
    }

    /// Voids the size of a file, by whichever descriptor it is known.
    fn doubt_size(&mut self, process: u32, name: Option<&str>) {
        for (of, state, key, file) in &self.shared {
            if (*of, *state) == (process, SIZE.id()) && maybe_same(*file, name) {
                self.known.put(*key, None);
            }
        }
    }

    /// Voids the positions of other descriptors of the same file, which may share the position that moved.
    fn moved_beside(&mut self, process: u32, fd: i32) {
        let Some(name) = self.names.get(&(process, fd)).copied().filter(|_| !self.positions.is_empty()) else { return };
        let names = &self.names;
        self.positions.retain(|(of, other), _| {
            let file = names.get(&(*of, *other));
            *of != process || *other == fd || !file.is_some_and(|file| file.is_some() && *file == name)
        });
    }

    fn void_overlaps(&mut self, state: &'static State, observed: &ObservedCall<'_>) {
        let process = observed.window.process.0;
        let [start, length, ..] = observed.call.args;
        let range = (start, start.saturating_add(length));
        let ranges = self.ranges.entry((process, state.id())).or_default();
        if ranges.iter().any(|r| *r != range && r.0 < range.1 && range.0 < r.1) {
            ranges.clear();
            self.generations.void_state(process, None, state);
        }
        if !ranges.contains(&range) {
            ranges.push(range);
        }
    }

    fn apply(&mut self, effect: Effect, observed: &ObservedCall<'a>) {
        let process = observed.window.process.0;
        let result = observed.call.result.unwrap_or(-1);
        match effect {
            Effect::Closes(arg) | Effect::Redirects(arg) => self.replace(process, observed.descriptor(arg)),
            Effect::Opens => self.replace(process, result as i32),
            Effect::Connects | Effect::EndsStream => {}
            Effect::Delivers(events) => {
                for (key, value) in self.one_shots.delivered(observed, events) {
                    self.known.put(key, Some(value));
                }
            }
            Effect::Shares | Effect::Forks => {
                self.positions.retain(|(p, _), _| *p != process);
                self.ends.forget(|(p, _)| p == process);
                if matches!(effect, Effect::Shares) {
                    self.replace(process, result as i32);
                }
            }
            Effect::OpensPath { .. } => {
                self.replace(process, result as i32);
                // With O_APPEND a write moves the position to the end of the file, which is unknown.
                let effects = self.semantics.lines_of(observed.syscall).effects(observed);
                if observed.opening_flags(effects).is_some_and(|flags| flags & O_APPEND == 0) {
                    self.positions.insert((process, result as i32), 0);
                }
            }
            Effect::Descriptors => {
                self.generations.void_descriptors(process);
                self.positions.retain(|(p, _), _| *p != process);
            }
            Effect::Path { at, path } => match observed.path_id(&mut self.paths, at, path) {
                Some(path) => self.change_path(observed, path),
                None => {
                    self.doubt_size(process, None);
                    self.void_states(process, &[&PATH, &NAME]);
                }
            },
            Effect::Writes(arg) => self.written(process, observed, arg),
            Effect::Restates(arg) => {
                let name = observed.call.fd.as_deref().filter(|file| arg == 0 && file.starts_with('/'));
                if let Some(path) = name.and_then(|file| self.paths.number(file.into())) {
                    self.generations.void_path(path, &mut self.paths);
                }
                self.written(process, observed, arg);
            }
            Effect::Reads(arg) => self.generations.void_file(process, observed.descriptor(arg), &FILE_STATUS),
            Effect::Advances(arg) => self.advance((process, observed.descriptor(arg)), result, observed.syscall),
            Effect::Moves(arg) => {
                self.moved_beside(process, observed.descriptor(arg));
                self.positions.remove(&(process, observed.descriptor(arg)));
            }
            Effect::WorkingDirectory => {
                self.generations.void_folder(process);
                self.generations.void_state(process, None, &CWD);
                if !self.semantics.lines_of(observed.syscall).sets(&FOLDER) {
                    self.generations.void_state(process, None, &FOLDER);
                }
            }
            Effect::Root => self.void_states(process, &[&PATH, &NAME]),
            Effect::Identity => self.void_states(process, OF_IDENTITY),
            Effect::Memory => self.void_states(process, &[&PROTECTION, &ADVICE]),
            Effect::Changes(state) => self.generations.void_state(process, None, state),
            Effect::ChangesOf(arg, state) => self.generations.void_file(process, observed.descriptor(arg), state),
            Effect::Signals => self.shake(observed),
        }
    }

    /// Forgets all values of these states in a process.
    fn void_states(&mut self, process: u32, states: &[&'static State]) {
        states.iter().for_each(|state| self.generations.void_state(process, None, state));
    }

    /// Forgets what a call that changes something about a path makes uncertain.
    fn change_path(&mut self, observed: &ObservedCall<'_>, path: PathId) {
        let process = observed.window.process.0;
        // The path was moved or removed: the next opening of it opens another file.
        if !self.semantics.lines_of(observed.syscall).does(|e| matches!(e, Effect::OpensPath { .. })) {
            self.opened.remove(&(process, true, path));
        }
        self.generations.void_path(path, &mut self.paths);
        if !self.stays_the_file(observed) {
            self.generations.void_file_at(path, &self.paths);
        }
        let text = self.paths.text(path);
        self.doubt_size(process, Some(&*text).filter(|path| path.starts_with('/')));
    }

    /// Moves the position of a process's descriptor by the `bytes` that a call has transferred.
    fn advance(&mut self, of: (u32, i32), bytes: i64, syscall: Sysno) {
        self.moved_beside(of.0, of.1);
        if let Some(at) = self.positions.get_mut(&of) {
            *at = at.saturating_add_signed(bytes);
        }
        if self.semantics.lines_of(syscall).transfers_out() {
            self.ends.written(of, self.positions.get(&of).copied());
        }
    }

    /// Returns true if a call that changes something about a path leaves the same file there: it
    /// sets the file's mode, owner or times, or opens the file. A file that is made only if none is
    /// there is another one.
    fn stays_the_file(&self, observed: &ObservedCall<'_>) -> bool {
        let lines = self.semantics.lines_of(observed.syscall);
        let beside = SETTLED.iter().any(|(by_path, by_file)| lines.sets(by_path) || lines.sets(by_file));
        // If the flags are unknown, the call is taken to make the file.
        let makes = || observed.opening_flags(lines.effects(observed)).is_none_or(|flags| flags & O_EXCL != 0);
        beside || lines.may_open && !makes()
    }

    fn replace(&mut self, process: u32, fd: i32) {
        self.generations.void_descriptor(process, fd);
        self.positions.remove(&(process, fd));
        self.ends.forget(|of| of == (process, fd));
    }

    fn written(&mut self, process: u32, observed: &ObservedCall<'a>, arg: u8) {
        let fd = observed.descriptor(arg);
        self.generations.void_file(process, fd, &FILE_STATUS);
        self.generations.void_file(process, fd, &SIZE);
        self.doubt_size(process, self.names.get(&(process, fd)).copied().flatten());
        let goes_on = self.semantics.lines_of(observed.syscall).does(|effect| matches!(effect, Effect::Advances(_)));
        let name = self.names.get(&(process, fd)).copied().flatten();
        self.ends.forget(|of| match of == (process, fd) {
            true => !goes_on,
            false => maybe_same(self.names.get(&of).copied().flatten(), name),
        });
        // Another descriptor may lead to the same file, so a write anywhere leaves all files unsynced.
        self.generations.void_state(process, None, &SYNCED);
        if let Some(path) = observed.call.fd.as_deref().filter(|f| arg == 0 && f.starts_with('/')) {
            if let Some(path) = self.paths.number(path.into()) {
                self.generations.void_content(path);
            }
            // A file in /proc or /sys may set a thread's name, its timer slack, or a cgroup's
            // processors.
            if MADE_UP.iter().any(|folder| path.starts_with(folder)) {
                self.generations.void_state(process, None, &ATTRIBUTES);
                self.void_states(process, SCHEDULES);
            }
        }
    }
}

/// Returns true if the line's call sets the position to the file's end.
fn to_end(line: &StateLine) -> bool {
    matches!(line.act, Act::Set { value: Source::Result, .. })
}

/// Returns true if two descriptors may lead to one file: they have the same name, or one has none.
fn maybe_same(one: Option<&str>, other: Option<&str>) -> bool {
    one.zip(other).is_none_or(|(one, other)| one == other)
}
