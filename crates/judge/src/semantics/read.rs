//! Values of calls in windows. They come from strangers: any part may be missing.

use super::effects::{Effect, Effects, OpenFlags};
use super::io::{PIPES, is_stored};
use super::state::{ATTEMPT, Across, MAKING, NAME, RIGHTS, RIGHTS_OF_FILE, Scope, State, StateId, names_one};
use super::state_lines::StateLine;
use super::vocabulary::{Source, When};
use crate::collections::hash::{Map, Spellings};
use crate::names::changed_names::ChangedNames;
use crate::names::paths::{Argument, PathId, Paths};
use std::borrow::Cow;
use std::ops::Deref;
use std::rc::Rc;
use systoll_model::constants::AT_FDCWD;
use systoll_model::{Errno, Moment, Sysno, Window, WindowCall};

/// Errors that are no answer to the call's question.
const NO_ANSWER: &[Errno] = &[Errno::EINTR, Errno::EBADF, Errno::EAGAIN, Errno::ENOMEM, Errno::EFAULT];

/// A call of a window.
#[derive(Clone, Copy)]
pub(crate) struct ObservedCall<'a> {
    /// The call's window.
    pub window: &'a Window,
    /// The call.
    pub call: &'a WindowCall,
    /// The system call.
    pub syscall: Sysno,
}

impl<'a> ObservedCall<'a> {
    fn low(&self, arg: u8) -> u32 {
        self.arg(arg) as u32
    }

    pub(crate) fn arg(&self, arg: u8) -> u64 {
        self.call.args.get(usize::from(arg)).copied().unwrap_or(0)
    }

    /// Returns the first 32 bits that the argument pointed to before the call.
    fn first_word(&self, arg: u8) -> Option<u32> {
        self.data(arg, Moment::Entry)?.first_chunk().map(|word| u32::from_le_bytes(*word))
    }

    /// Returns true if all `tests` hold.
    pub(crate) fn holds(&self, tests: &[When]) -> bool {
        tests.iter().all(|test| match *test {
            When::Is(arg, value) => self.low(arg) == value,
            When::OneOf(arg, values) => values.contains(&self.low(arg)),
            When::NoneOf(arg, values) => !values.contains(&self.low(arg)),
            When::Null(arg) => self.arg(arg) == 0,
            When::NotNull(arg) => self.arg(arg) != 0,
            When::AnyBits(arg, bits) => self.arg(arg) & u64::from(bits) != 0,
            When::AllBits(arg, bits) => self.arg(arg) & u64::from(bits) == u64::from(bits),
            When::NoBits(arg, bits) => self.arg(arg) & u64::from(bits) == 0,
            When::Above(arg, least) => self.low(arg) > least,
            When::InZero(arg) => self.time(arg).is_some_and(|t| t == (0, 0)),
            When::InShort(arg) => self.time(arg).is_some_and(|(s, ns)| s == 0 && ns <= 1_000_000),
            When::InTimes(arg) => self.data(arg, Moment::Entry).is_some_and(names_times),
            When::Negative(arg) => (self.low(arg) as i32) < 0,
            When::InNoBits(arg, bits) => self.first_word(arg).is_some_and(|word| word & bits == 0),
            When::InAnyBits(arg, bits) => self.first_word(arg).is_some_and(|word| word & bits != 0),
            When::MayHaveBits(arg, bits) => self.first_word(arg).is_none_or(|word| word & bits != 0),
            When::InZeros(arg) => self.data(arg, Moment::Entry).is_some_and(zeros),
            When::InControl(arg) => self.data(arg, Moment::Entry).is_some_and(has_control),
            When::OutZero(arg) => self.data(arg, Moment::Exit).is_some_and(zeros),
            When::Zero => self.call.result == Some(0),
            When::AtOnce => self.call.waited_ns == Some(0),
            When::OfBytes => self.call.fd.as_deref().is_some_and(holds_bytes),
            When::EmptyPath(arg) => self.data(arg, Moment::Entry).is_some_and(<[u8]>::is_empty),
        })
    }

    /// Returns the seconds and nanoseconds that an argument points to.
    pub(crate) fn time(&self, arg: u8) -> Option<(u64, u64)> {
        let bytes = self.data(arg, Moment::Entry)?;
        Some((word_at(bytes, 0)?, word_at(bytes, 8)?))
    }

    /// Returns the bytes that an argument pointed to; `None` if they were not read, or not all of them.
    pub(crate) fn data(&self, arg: u8, at: Moment) -> Option<&'a [u8]> {
        self.call.arg_data(arg, at).filter(|d| !d.cut).map(|d| d.bytes.as_slice())
    }

    /// Returns the descriptor in an argument.
    pub(crate) fn descriptor(&self, arg: u8) -> i32 {
        self.low(arg) as i32
    }

    /// Returns the errno if the call failed in a way that is an answer.
    pub(crate) fn refusal(&self) -> Option<Errno> {
        self.call.errno().filter(|e| !NO_ANSWER.contains(e))
    }

    /// Returns the flags with which the call opens a path; `None` if it opens none, or if they are not known.
    pub(crate) fn opening_flags(&self, effects: Effects<'_>) -> Option<u32> {
        match effects.opening_flags()? {
            OpenFlags::Arg(arg) => Some(self.low(arg)),
            OpenFlags::How(arg) => self.first_word(arg),
            OpenFlags::Always(flags) => Some(flags),
        }
    }

    /// Returns the paths that the call makes, moves, changes or takes away, by its effects, in their order.
    pub(crate) fn paths<'e>(self, effects: Effects<'e>) -> impl Iterator<Item = Cow<'a, str>> + use<'a, 'e> {
        effects.iter().filter_map(move |effect| match effect {
            Effect::Path { at, path } => self.path(at, path),
            _ => None,
        })
    }

    /// Returns the absolute path of an argument. A path relative to the working directory is returned as it is.
    pub(crate) fn path(&self, at: Option<u8>, path: u8) -> Option<Cow<'a, str>> {
        let text = text(self.data(path, Moment::Entry)?);
        match at {
            Some(at) if !text.starts_with('/') && self.descriptor(at) != AT_FDCWD => {
                let folder = self.call.fd.as_deref().filter(|f| at == 0 && f.starts_with('/'))?;
                Some([folder, "/", &text].concat().into())
            }
            _ => Some(text),
        }
    }
}

impl<'a> ObservedCall<'a> {
    /// Returns the number of an argument's path, as [`ObservedCall::path`] returns it.
    pub(crate) fn path_id(&self, paths: &mut Paths<'a>, at: Option<u8>, path: u8) -> Option<PathId> {
        paths.of_argument(Argument { call: self.call, at, path }, |paths| {
            let bytes = self.data(path, Moment::Entry)?;
            match at {
                Some(at) if !bytes.starts_with(b"/") && self.descriptor(at) != AT_FDCWD => {
                    paths.number(self.path(Some(at), path)?)
                }
                _ => paths.of_bytes(bytes),
            }
        })
    }
}

/// Returns true if a descriptor's name is one of a pipe or an ordinary file.
fn holds_bytes(name: &str) -> bool {
    name.starts_with(PIPES) || is_stored(name)
}

/// Returns the 64-bit word at an offset, in bytes; `None` if the bytes end before its end.
pub(crate) fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

/// Returns the first 64-bit word.
pub(crate) fn first_word(bytes: &[u8]) -> Option<u64> {
    word_at(bytes, 0)
}

/// Nanoseconds of a time that stands for "now" (UTIME_NOW of linux/stat.h).
const NOW: u64 = (1 << 30) - 1;

/// Returns true if the bytes are two times, neither of which is "now".
fn names_times(bytes: &[u8]) -> bool {
    [8, 24].into_iter().all(|at| word_at(bytes, at).is_some_and(|ns| ns != NOW))
}

/// Returns true if a `struct msghdr` has control data: its length, `msg_controllen`, lies at 40 (socket.h).
fn has_control(message: &[u8]) -> bool {
    word_at(message, 40).is_some_and(|length| length != 0)
}

/// Returns true if there are bytes, and all are zero.
fn zeros(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0)
}

/// Returns the bytes as text. Valid UTF-8 is tested for first: the search for invalid bytes is slow, and hardly any
/// path has them.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// A value or an answer: bytes of the recording, or bytes made from them.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    /// A number.
    Word([u8; 8]),
    /// An errno. It is longer than a number, so that the two are never equal. It has a variant of
    /// its own, since every other answer of many programs is one.
    Refusal([u8; 9]),
    /// Bytes of the recording.
    Seen(&'a [u8]),
    /// Bytes that the recording does not hold in this form.
    Made(Rc<[u8]>),
}

impl Value<'_> {
    /// Returns a number as a value.
    pub(crate) fn word(word: u64) -> Self {
        Self::Word(word.to_le_bytes())
    }

    /// Returns an errno as a value.
    fn refusal(errno: Errno) -> Self {
        let [low, high] = errno.0.to_le_bytes();
        Self::Refusal([b'r', b'e', b'f', b'u', b's', b'e', b'd', low, high])
    }
}

impl From<Vec<u8>> for Value<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Made(bytes.into())
    }
}

impl Deref for Value<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Word(bytes) => bytes,
            Self::Refusal(bytes) => bytes,
            Self::Seen(bytes) => bytes,
            Self::Made(bytes) => bytes,
        }
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

/// The key of a piece of state. Generations are part of it: a change that voids an answer makes another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(u32);

/// Usual length of keys, bytes.
const USUAL_KEY: usize = 60;

/// The keys of all state asked for and set, and its known values.
#[derive(Default)]
pub(crate) struct Known<'a> {
    keys: Spellings,
    values: Vec<Option<Value<'a>>>,
    /// Buffer in which the next key is built.
    scratch: Vec<u8>,
}

impl<'a> Known<'a> {
    /// Returns an empty table with room for `keys` keys.
    pub(crate) fn with_room(keys: usize) -> Self {
        Self { keys: Spellings::with_room(keys, USUAL_KEY), values: Vec::with_capacity(keys), scratch: Vec::new() }
    }

    /// Returns the key of the state that the call asks for or sets, and the key's newest generation. Returns `None`
    /// if a needed value was not read.
    pub(crate) fn key(
        &mut self,
        generations: &Generations,
        paths: &mut Paths<'a>,
        line: &'static StateLine,
        call: &ObservedCall<'a>,
        gap: Option<u64>,
    ) -> Option<(Key, u32)> {
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        let spelled = generations.spell(paths, line, call, gap, &mut bytes);
        let key = spelled.and_then(|newest| Some((self.keys.number(&bytes)?, newest)));
        self.scratch = bytes;
        let (key, newest) = key?;
        if self.values.len() <= key as usize {
            self.values.resize_with(key as usize + 1, || None);
        }
        Some((Key(key), newest))
    }

    /// Returns the known value of a key.
    pub(crate) fn get(&self, key: Key) -> Option<&Value<'a>> {
        self.values.get(key.0 as usize)?.as_ref()
    }

    /// Sets the known value of a key; `None` forgets it.
    pub(crate) fn put(&mut self, key: Key, value: Option<Value<'a>>) {
        if let Some(place) = self.values.get_mut(key.0 as usize) {
            *place = value;
        }
    }
}

/// Generations of state that can be voided: the version at which it was last voided.
#[derive(Default)]
pub(crate) struct Generations {
    /// Generations of the files that paths lead to.
    names: ChangedNames,
    /// Generations of the lists of folders' entries, by path number.
    entries: Vec<u32>,
    /// Generations of the files' content, by path number.
    contents: Vec<u32>,
    /// Generations of which file stands at a path, whatever its rights.
    files_at: ChangedNames,
    descriptors: Map<(u32, i32), u32>,
    tables: Map<u32, u32>,
    states: Map<(u32, Option<u32>, StateId), u32>,
    files: Map<(u32, i32, StateId), u32>,
    folders: Map<u32, u32>,
    /// Number of changes so far: while it is the same, all keys are the same.
    pub version: u32,
}

impl Generations {
    fn next(&mut self) -> u32 {
        self.version = self.version.wrapping_add(1);
        self.version
    }

    /// Voids what is known of a path, of all paths below it, and of the list of its folder's entries.
    pub(crate) fn void_path(&mut self, path: PathId, paths: &mut Paths<'_>) {
        let version = self.next();
        self.names.change(&paths.text(path), version);
        if let Some(folder) = paths.folder(path) {
            put(&mut self.entries, folder, version);
        }
    }

    /// Notes that another file may stand at the path from now on, and below it.
    pub(crate) fn void_file_at(&mut self, path: PathId, paths: &Paths<'_>) {
        let version = self.next();
        self.files_at.change(&paths.text(path), version);
    }

    /// Notes that the file at the path is still the same, but may hold something else from now on.
    pub(crate) fn void_content(&mut self, path: PathId) {
        let version = self.next();
        put(&mut self.contents, path, version);
    }

    /// Returns the newest of the generations of the path, of its content and, if it is a folder's, of its entries.
    pub(crate) fn path(&self, path: PathId, paths: &Paths<'_>) -> u32 {
        self.names.newest_of(path, paths).max(of(&self.contents, path)).max(of(&self.entries, path))
    }

    /// Voids what is known of a descriptor, which refers to another file now.
    pub(crate) fn void_descriptor(&mut self, process: u32, fd: i32) {
        let version = self.next();
        self.descriptors.insert((process, fd), version);
    }

    /// Voids what is known of all descriptors of a process.
    pub(crate) fn void_descriptors(&mut self, process: u32) {
        let version = self.next();
        self.tables.insert(process, version);
    }

    /// Voids one kind of state of a process, or of one of its threads only.
    pub(crate) fn void_state(&mut self, process: u32, thread: Option<u32>, state: &'static State) {
        let version = self.next();
        self.states.insert((process, thread, state.id()), version);
    }

    /// Voids one kind of state of an open file.
    pub(crate) fn void_file(&mut self, process: u32, fd: i32, state: &'static State) {
        let version = self.next();
        self.files.insert((process, fd, state.id()), version);
    }

    /// Voids what is known of the process's relative paths.
    pub(crate) fn void_folder(&mut self, process: u32) {
        let version = self.next();
        self.folders.insert(process, version);
    }

    /// Builds the key of the state that the call asks for or sets. Returns the newest generation in it; `None` if a
    /// needed value was not read.
    fn spell<'a>(
        &self,
        paths: &mut Paths<'a>,
        line: &'static StateLine,
        call: &ObservedCall<'a>,
        gap: Option<u64>,
        bytes: &mut Vec<u8>,
    ) -> Option<u32> {
        let state = line.about;
        let (process, thread) = (call.window.process.0, call.window.thread);
        // The head has a fixed length, so that the details can't run into it.
        let (thread, own) = match state.scope {
            Scope::Thread => (u64::from(thread), self.state(process, Some(thread), state)),
            Scope::Process => (u64::MAX, 0),
        };
        let all = self.state(process, None, state);
        let generations = u64::from(all) << 32 | u64::from(own);
        let head = [state.id().0 as u64, process.into(), thread, generations, gap.unwrap_or(u64::MAX)];
        bytes.extend_from_slice(head.map(u64::to_le_bytes).as_flattened());
        let mut details = line.key.iter();
        details
            .try_fold(all.max(own), |newest, source| Some(newest.max(self.detail(paths, *source, state, call, bytes)?)))
    }

    fn state(&self, process: u32, thread: Option<u32>, state: &'static State) -> u32 {
        self.states.get(&(process, thread, state.id())).copied().unwrap_or(0)
    }

    /// Returns the generation of a path on which state of this kind depends. Modes, owners and
    /// attributes depend on which file stands there; existence and permission also on its rights;
    /// times and status also on its content. What can be made there depends on which file stands there, too; whether a
    /// folder can be removed depends on its entries.
    fn generation(&self, path: PathId, paths: &Paths<'_>, state: &'static State) -> u32 {
        match () {
            () if state.is(&RIGHTS) || state.is(&RIGHTS_OF_FILE) || state.is(&MAKING) => {
                self.files_at.newest_of(path, paths)
            }
            () if state.is(&NAME) => self.names.newest_of(path, paths),
            () if state.is(&ATTEMPT) => self.names.newest_of(path, paths).max(of(&self.entries, path)),
            () => self.path(path, paths),
        }
    }

    fn detail<'a>(
        &self,
        paths: &mut Paths<'a>,
        source: Source,
        state: &'static State,
        call: &ObservedCall<'a>,
        bytes: &mut Vec<u8>,
    ) -> Option<u32> {
        let process = call.window.process.0;
        match source {
            Source::Fd(arg) => {
                let fd = call.descriptor(arg);
                let generation = self.descriptors.get(&(process, fd)).copied().unwrap_or(0);
                let table = self.tables.get(&process).copied().unwrap_or(0);
                let file = self.files.get(&(process, fd, state.id())).copied().unwrap_or(0);
                let parts = [fd as u32, generation, table, file].map(u32::to_le_bytes);
                push(bytes, parts.as_flattened());
                if arg == 0 && matches!(state.across, Across::SettledOpen) {
                    push(bytes, call.call.fd.as_deref().filter(|name| names_one(name)).unwrap_or_default().as_bytes());
                }
                Some(generation.max(table).max(file))
            }
            Source::Path { at, path } => {
                let path = call.path_id(paths, at, path)?;
                let mut newest = self.generation(path, paths, state);
                let part = [path.to_bytes(), newest.to_le_bytes()];
                if paths.is_absolute(path) {
                    push(bytes, part.as_flattened());
                } else {
                    let folder = self.folders.get(&process).copied().unwrap_or(0);
                    push(bytes, [part, [process, folder].map(u32::to_le_bytes)].as_flattened().as_flattened());
                    newest = newest.max(folder);
                }
                Some(newest)
            }
            Source::File(arg) => {
                let name = call.call.fd.as_deref().filter(|file| arg == 0 && file.starts_with('/'))?;
                let path = paths.number(name.into())?;
                let newest = self.generation(path, paths, state);
                push(bytes, [path.to_bytes(), newest.to_le_bytes()].as_flattened());
                Some(newest)
            }
            other => {
                push(bytes, &value(other, call)?);
                Some(0)
            }
        }
    }
}

/// Returns a path's generation.
fn of(generations: &[u32], path: PathId) -> u32 {
    generations.get(path.place()).copied().unwrap_or(0)
}

/// Sets a path's generation.
fn put(generations: &mut Vec<u32>, path: PathId, version: u32) {
    if generations.len() <= path.place() {
        generations.resize(path.place() + 1, 0);
    }
    if let Some(generation) = generations.get_mut(path.place()) {
        *generation = version;
    }
}

/// Appends a part, its length first, so that two parts never run into each other.
fn push(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
    bytes.extend_from_slice(part);
}

/// Returns the value of a source; `None` if it was not read, or not all of it.
pub(crate) fn value<'a>(source: Source, call: &ObservedCall<'a>) -> Option<Value<'a>> {
    let number = |n: u64| Some(Value::word(n));
    match source {
        Source::Arg(arg) => number(call.arg(arg)),
        Source::ArgMask(arg, mask) => number(call.arg(arg) & mask),
        Source::Words(from, n) => {
            Some((from..from + n).flat_map(|a| call.low(a).to_le_bytes()).collect::<Vec<u8>>().into())
        }
        Source::Args(n) => Some((0..n).flat_map(|a| call.arg(a).to_le_bytes()).collect::<Vec<u8>>().into()),
        Source::ArgAndResult(arg) => {
            let words = [call.arg(arg), call.call.result? as u64].map(u64::to_le_bytes);
            Some(words.as_flattened().to_vec().into())
        }
        Source::ArgAndIn(arg, pointer) => {
            Some([&call.arg(arg).to_le_bytes(), call.data(pointer, Moment::Entry)?].concat().into())
        }
        Source::In(arg) => call.data(arg, Moment::Entry).map(Value::Seen),
        Source::InAbsolute(arg) => call.data(arg, Moment::Entry).filter(|d| d.starts_with(b"/")).map(Value::Seen),
        Source::Out(arg) => call.data(arg, Moment::Exit).map(Value::Seen),
        Source::OutBut(arg, from, to) => {
            let mut bytes: Rc<[u8]> = call.data(arg, Moment::Exit)?.into();
            Rc::get_mut(&mut bytes)?.get_mut(from..to)?.fill(0);
            Some(Value::Made(bytes))
        }
        Source::OutStart(arg, bytes) => call.call.arg_data(arg, Moment::Exit)?.bytes.get(..bytes).map(Value::Seen),
        Source::OutStr(arg) => {
            let bytes = call.data(arg, Moment::Exit)?;
            Some(Value::Seen(bytes.split(|b| *b == 0).next().unwrap_or_default()))
        }
        Source::Result => number(call.call.result? as u64),
        Source::ResultMask(mask) => number(call.call.result? as u64 & mask),
        Source::Call => number(call.syscall.0.into()),
        Source::Nothing => Some(Value::Seen(&[])),
        Source::Const(n) => number(n),
        Source::File(0) => {
            let file = call.call.fd.as_deref().filter(|file| file.starts_with('/'))?;
            Some(Value::Seen(file.as_bytes()))
        }
        Source::Unread | Source::Fd(_) | Source::File(_) | Source::Path { .. } => None,
    }
}

/// Returns the answer to a question. An error may be an answer; a value that was not read is none.
pub(crate) fn answer<'a>(sources: &[Source], call: &ObservedCall<'a>) -> Option<Value<'a>> {
    if call.call.errno().is_some() {
        return call.refusal().map(Value::refusal);
    }
    if let [one] = sources {
        return value(*one, call);
    }
    let mut bytes = Vec::new();
    for source in sources {
        push(&mut bytes, &value(*source, call)?);
    }
    Some(bytes.into())
}
