//! Reads values out of a window's calls, which come from strangers: anything may be missing.

use super::{Entry, Scope, Source, Topic, When};
use std::collections::HashMap;
use systoll_model::{Errno, Moment, Sysno, Window, WindowCall};

/// AT_FDCWD.
const AT_FDCWD: i32 = -100;
/// Errors that say nothing about what was asked: EINTR, EBADF, EAGAIN, ENOMEM, EFAULT.
const NO_ANSWER: &[u16] = &[4, 9, 11, 12, 14];

/// A call of a window.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// The window it lies in.
    pub window: &'a Window,
    /// The call.
    pub call: &'a WindowCall,
    /// Its number.
    pub syscall: Sysno,
}

impl Subject<'_> {
    fn low(&self, arg: u8) -> u32 {
        self.arg(arg) as u32
    }

    pub(crate) fn arg(&self, arg: u8) -> u64 {
        self.call.args.get(usize::from(arg)).copied().unwrap_or(0)
    }

    /// Whether all of `tests` hold.
    pub(crate) fn holds(&self, tests: &[When]) -> bool {
        tests.iter().all(|test| match *test {
            When::Is(arg, value) => self.low(arg) == value,
            When::OneOf(arg, values) => values.contains(&self.low(arg)),
            When::NoneOf(arg, values) => !values.contains(&self.low(arg)),
            When::Null(arg) => self.arg(arg) == 0,
            When::NotNull(arg) => self.arg(arg) != 0,
            When::AnyBits(arg, bits) => self.arg(arg) & bits != 0,
            When::AllBits(arg, bits) => self.arg(arg) & bits == bits,
            When::NoBits(arg, bits) => self.arg(arg) & bits == 0,
            When::Above(arg, least) => self.low(arg) > least,
            When::InZero(arg) => self.time(arg).is_some_and(|t| t == (0, 0)),
            When::InShort(arg) => self.time(arg).is_some_and(|(s, ns)| s == 0 && ns <= 1_000_000),
            When::Negative(arg) => (self.low(arg) as i32) < 0,
            When::InNoBits(arg, bits) => self
                .data(arg, Moment::Entry)
                .and_then(|d| d.first_chunk::<4>())
                .is_some_and(|word| u32::from_le_bytes(*word) & bits == 0),
            When::EmptyPath(arg) => self.data(arg, Moment::Entry).is_some_and(<[u8]>::is_empty),
        })
    }

    /// The seconds and the fraction that an argument points to.
    pub(crate) fn time(&self, arg: u8) -> Option<(u64, u64)> {
        let bytes = self.data(arg, Moment::Entry)?;
        let word = |at: usize| bytes.get(at..at + 8)?.first_chunk().map(|b| u64::from_le_bytes(*b));
        Some((word(0)?, word(8)?))
    }

    /// Bytes read whole; a cut copy proves nothing.
    pub(crate) fn data(&self, arg: u8, at: Moment) -> Option<&[u8]> {
        self.call.arg_data(arg, at).filter(|d| !d.cut).map(|d| d.bytes.as_slice())
    }

    /// The descriptor in an argument.
    pub(crate) fn descriptor(&self, arg: u8) -> i32 {
        self.low(arg) as i32
    }

    /// The errno, if it failed in a way that is an answer.
    pub(crate) fn refusal(&self) -> Option<Errno> {
        self.call.errno().filter(|e| !NO_ANSWER.contains(&e.0))
    }

    /// The absolute path an argument leads to; a relative one from the working directory stays
    /// as it is.
    pub(crate) fn path(&self, at: Option<u8>, path: u8) -> Option<String> {
        let text = String::from_utf8_lossy(self.data(path, Moment::Entry)?).into_owned();
        match at {
            Some(at) if !text.starts_with('/') && self.descriptor(at) != AT_FDCWD => {
                let folder = self.call.fd.as_deref().filter(|f| at == 0 && f.starts_with('/'))?;
                Some(format!("{folder}/{text}"))
            }
            _ => Some(text),
        }
    }
}

/// What a piece of state is known by. Generations are part of it, so that whatever voids an
/// answer makes another key.
pub(crate) type Key = (&'static str, Vec<u8>);

/// Generations of what can be voided.
#[derive(Default)]
pub(crate) struct Generations {
    paths: HashMap<String, u32>,
    descriptors: HashMap<(u32, i32), u32>,
    tables: HashMap<u32, u32>,
    topics: HashMap<(u32, Option<u32>, &'static str), u32>,
    files: HashMap<(u32, i32, &'static str), u32>,
    folders: HashMap<u32, u32>,
}

fn next(generation: &mut u32) {
    *generation = generation.wrapping_add(1);
}

impl Generations {
    /// The path, and entries of its directory, may be others from now on.
    pub(crate) fn void_path(&mut self, path: &str) {
        next(self.paths.entry(path.to_owned()).or_default());
        if let Some((folder, _)) = path.trim_end_matches('/').rsplit_once('/') {
            next(self.paths.entry(folder.to_owned()).or_default());
        }
    }

    /// The path's generation.
    pub(crate) fn path(&self, path: &str) -> u32 {
        self.paths.get(path).copied().unwrap_or(0)
    }

    /// The number stands for another file from now on.
    pub(crate) fn void_descriptor(&mut self, process: u32, fd: i32) {
        next(self.descriptors.entry((process, fd)).or_default());
    }

    /// Any number may stand for another file from now on.
    pub(crate) fn void_descriptors(&mut self, process: u32) {
        next(self.tables.entry(process).or_default());
    }

    /// A topic of a process, or of one of its threads only.
    pub(crate) fn void_topic(&mut self, process: u32, thread: Option<u32>, topic: &'static str) {
        next(self.topics.entry((process, thread, topic)).or_default());
    }

    /// A topic of one open file.
    pub(crate) fn void_file(&mut self, process: u32, fd: i32, topic: &'static str) {
        next(self.files.entry((process, fd, topic)).or_default());
    }

    /// Relative paths of the process.
    pub(crate) fn void_folder(&mut self, process: u32) {
        next(self.folders.entry(process).or_default());
    }

    /// The key of what the call asks or sets. `None` where something needed was not read.
    pub(crate) fn key(&self, entry: &Entry, call: &Subject<'_>, gap: Option<u64>) -> Option<Key> {
        let mut bytes = Vec::with_capacity(64);
        let topic = entry.about;
        let (process, thread) = (call.window.process.0, call.window.thread);
        match topic.scope {
            Scope::Thread => {
                push(&mut bytes, &process.to_le_bytes());
                push(&mut bytes, &thread.to_le_bytes());
                push(&mut bytes, &self.topic(process, Some(thread), topic).to_le_bytes());
            }
            Scope::Process => push(&mut bytes, &process.to_le_bytes()),
        }
        push(&mut bytes, &self.topic(process, None, topic).to_le_bytes());
        if let Some(gap) = gap {
            push(&mut bytes, &gap.to_le_bytes());
        }
        for source in entry.detail {
            self.detail(*source, topic, call, &mut bytes)?;
        }
        Some((topic.name, bytes))
    }

    fn topic(&self, process: u32, thread: Option<u32>, topic: &Topic) -> u32 {
        self.topics.get(&(process, thread, topic.name)).copied().unwrap_or(0)
    }

    fn detail(&self, source: Source, topic: &Topic, call: &Subject<'_>, bytes: &mut Vec<u8>) -> Option<()> {
        let process = call.window.process.0;
        match source {
            Source::Fd(arg) => {
                let fd = call.descriptor(arg);
                let generation = self.descriptors.get(&(process, fd)).copied().unwrap_or(0);
                let table = self.tables.get(&process).copied().unwrap_or(0);
                let file = self.files.get(&(process, fd, topic.name)).copied().unwrap_or(0);
                for part in [fd as u32, generation, table, file] {
                    push(bytes, &part.to_le_bytes());
                }
            }
            Source::Path { at, path } => {
                let path = call.path(at, path)?;
                push(bytes, &self.paths.get(&path).copied().unwrap_or(0).to_le_bytes());
                if !path.starts_with('/') {
                    push(bytes, &process.to_le_bytes());
                    push(bytes, &self.folders.get(&process).copied().unwrap_or(0).to_le_bytes());
                }
                push(bytes, path.as_bytes());
            }
            other => push(bytes, &value(other, call)?),
        }
        Some(())
    }
}

/// Length first, so that two parts never run into each other.
fn push(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend((part.len() as u64).to_le_bytes());
    bytes.extend_from_slice(part);
}

/// What a source holds. `None` where it was not read, or not whole.
pub(crate) fn value(source: Source, call: &Subject<'_>) -> Option<Vec<u8>> {
    let number = |n: u64| Some(n.to_le_bytes().to_vec());
    match source {
        Source::Arg(arg) => number(call.arg(arg)),
        Source::ArgMask(arg, mask) => number(call.arg(arg) & mask),
        Source::Args(n) => Some((0..n).flat_map(|a| call.arg(a).to_le_bytes()).collect()),
        Source::In(arg) => call.data(arg, Moment::Entry).map(<[u8]>::to_vec),
        Source::InAbsolute(arg) => call.data(arg, Moment::Entry).filter(|d| d.starts_with(b"/")).map(<[u8]>::to_vec),
        Source::Out(arg) => call.data(arg, Moment::Exit).map(<[u8]>::to_vec),
        Source::OutBut(arg, from, to) => {
            let mut bytes = call.data(arg, Moment::Exit)?.to_vec();
            bytes.get_mut(from..to)?.fill(0);
            Some(bytes)
        }
        Source::OutStart(arg, bytes) => call.call.arg_data(arg, Moment::Exit)?.bytes.get(..bytes).map(<[u8]>::to_vec),
        Source::OutStr(arg) => {
            let bytes = call.data(arg, Moment::Exit)?;
            Some(bytes.split(|b| *b == 0).next().unwrap_or_default().to_vec())
        }
        Source::Result => number(call.call.result? as u64),
        Source::ResultMask(mask) => number(call.call.result? as u64 & mask),
        Source::Call => number(call.syscall.0.into()),
        Source::Nothing => Some(Vec::new()),
        Source::Fd(_) | Source::Path { .. } => None,
    }
}

/// The answer to a question. A refusal is one; what was not read is none.
pub(crate) fn answer(sources: &[Source], call: &Subject<'_>) -> Option<Vec<u8>> {
    if call.call.errno().is_some() {
        return call.refusal().map(|e| format!("errno {}", e.0).into_bytes());
    }
    if let [one] = sources {
        return value(*one, call);
    }
    let mut bytes = Vec::new();
    for source in sources {
        push(&mut bytes, &value(*source, call)?);
    }
    Some(bytes)
}
