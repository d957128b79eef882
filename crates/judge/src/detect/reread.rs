//! Finds the files that are opened, or read from their start, again and again, from all windows together, and tells
//! whether they changed.

use super::open_file::{OpenFile, Use};
use super::others_look::OTHERS_LOOK_NS;
use crate::collections::hash::{Map, Set};
use crate::collections::sums::Sums;
use crate::semantics::{
    Act, Effect, FILE_STATUS, FileLock, Lines, MADE_UP, ObservedCall, Semantics, Transfer, Value, Way, answer,
    is_device,
};
use crate::world::dirents::append_entries;
use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::BTreeMap;
use systoll_model::constants::{O_RDWR, O_TRUNC, O_WRONLY};
use systoll_model::{Moment, Process, Recording, RowId, Window, WindowCall, octaves};

/// Least number of a file's openings in windows for a habit.
const SEEN: u64 = 3;
/// Least number of a small file's readings in all, from exact counts: a file that is read so often is not read for
/// news. A round that was seen a hundred times counts.
const MANY: u64 = 100;
/// Least number of a file's readings where it is one of several that one caller reads in turn, [`MANY`] times in all.
const MANY_EACH: u64 = 8;
/// Least part of a file's openings that requests come with, as its inverse.
const ASKED: u64 = 10;
/// Largest distance from an opening to the question for the file's status, calls.
const SOON: usize = 4;
/// Largest distance from an opening to its closing, calls.
const CYCLE: usize = 24;

/// A process and a path.
type File<'a> = (u32, &'a str);

/// The part of a file that is read: all of it from its start on, or the bytes at a place that the call names.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Part<'a> {
    path: Cow<'a, str>,
    /// `None` if it is read from its start on.
    place: Option<u64>,
}

/// One file as all windows show it.
#[derive(Default)]
struct Seen<'a> {
    /// The file's openings in windows.
    openings: Openings,
    status: Option<Value<'a>>,
    /// The content read the last time, as far as windows hold it.
    content: Option<Vec<u8>>,
    /// Number of times that the file's status, or its content, was the same as before.
    alike: u64,
    changed: bool,
    /// True if it was read from another place than its start on.
    parts: bool,
    /// Number of openings near which something came from outside the program: a request, whose answer is to be new.
    asked_for: u64,
    /// Number of openings for reading that came soon after the one before, in the same window.
    soon: u64,
    /// Window and time of the last opening for reading, ns since the run's start.
    last_read: Option<(usize, u64)>,
    /// Time of the file's first opening for reading, ns since the run's start.
    first_read: Option<u64>,
    /// Time of the file's last opening for writing, ns since the run's start.
    last_write: Option<u64>,
}

impl<'a> Seen<'a> {
    fn has(&mut self, status: Value<'a>) {
        let alike = self.status.as_ref().map(|before| *before == status);
        self.alike += u64::from(alike == Some(true));
        self.changed |= alike == Some(false);
        self.status = Some(status);
    }

    fn holds(&mut self, content: Vec<u8>) {
        // A reading that stopped earlier saw the beginning of the same content.
        let alike = self.content.as_ref().map(|before| before.starts_with(&content) || content.starts_with(before));
        self.alike += u64::from(alike == Some(true));
        self.changed |= alike == Some(false);
        self.content = Some(content);
    }

    /// Returns true if the file was the same each time, as far as windows show.
    fn is_unchanged(&self) -> bool {
        self.alike > 0 && !self.changed
    }

    fn is_opened(&mut self, writes: bool, window: usize, at_ns: u64) {
        if writes {
            self.last_write = self.last_write.max(Some(at_ns));
        } else {
            let before = self.last_read.replace((window, at_ns)).filter(|(of, _)| *of == window);
            self.soon += u64::from(before.is_some_and(|(_, ns)| at_ns.saturating_sub(ns) < OTHERS_LOOK_NS));
            self.first_read = Some(self.first_read.map_or(at_ns, |first| first.min(at_ns)));
        }
    }

    /// Returns true if requests are what the file is opened for. What a program reads as it begins, in one or two windows,
    /// asks for nothing.
    fn is_asked_for(&self) -> bool {
        self.asked_for > 0 && self.asked_for.saturating_mul(ASKED) >= self.openings.all()
    }

    /// Returns true if the file is opened for several parts of it, one soon after the other.
    fn is_taken_in_parts(&self) -> bool {
        self.parts && !self.changed && 2 * self.soon >= self.openings.all()
    }

    /// Returns true if the file was opened for writing after it was first read. An earlier writing
    /// does not count: it is chance whether a window shows it.
    fn is_written(&self, written: Option<u64>) -> bool {
        self.last_write.max(written).is_some_and(|last| self.first_read.is_none_or(|first| last >= first))
    }
}

/// Openings in windows by row and octave of the row's count. Most windows open where a row begins, so each octave has
/// the weight of its size.
#[derive(Default)]
struct Openings {
    seen: BTreeMap<(RowId, u32), u64>,
}

impl Openings {
    fn add(&mut self, row: RowId, nth: u64) {
        *self.seen.entry((row, nth.max(1).ilog2())).or_default() += 1;
    }

    fn all(&self) -> u64 {
        self.seen.values().sum()
    }

    /// Returns the rows of the openings, each once.
    fn rows(&self) -> impl Iterator<Item = RowId> + use<> {
        let mut rows: Vec<RowId> = self.seen.keys().map(|(row, _)| *row).collect();
        rows.dedup();
        rows.into_iter()
    }

    /// Returns an estimate of all openings of the rows. In each octave they have the same share of the row's calls as
    /// among `any`, the openings of all files there or in the nearest octave with some.
    fn estimate(&self, any: &Self, recording: &Recording) -> f64 {
        let of_row = |row: RowId| {
            let shown = any.seen.range((row, 0)..=(row, u32::MAX)).map(|((_, octave), _)| *octave);
            let of_octave = |(size, nearest): (u64, u32)| {
                let of = |openings: &Self| openings.seen.get(&(row, nearest)).copied().unwrap_or(0);
                size as f64 * of(self) as f64 / of(any).max(1) as f64
            };
            octaves(recording.row(row).counts.calls, shown).map(of_octave).sum::<f64>()
        };
        self.rows().map(of_row).sum()
    }
}

/// The name that the descriptors of a file have most often right after it was opened, by process and the path that opened it,
/// which may lead there by a link.
type Names<'a> = Map<(u32, Cow<'a, str>), Name<'a>>;

/// The most frequent of names, and by how much it leads (Boyer and Moore's majority vote).
#[derive(Default)]
struct Name<'a>(Option<&'a str>, u64);

impl<'a> Name<'a> {
    fn note(&mut self, name: &'a str) {
        match self {
            Self(Some(known), lead) if *known == name => *lead = lead.saturating_add(1),
            Self(_, 0) => *self = Self(Some(name), 1),
            Self(_, lead) => *lead -= 1,
        }
    }
}

/// The openings of files in windows, and of any file.
#[derive(Default)]
struct Looks<'a> {
    /// Files, and parts of them, by process.
    files: Map<u32, Map<Part<'a>, Seen<'a>>>,
    any: Openings,
    /// Time of the last write to each file, ns since the run's start.
    written: Map<File<'a>, u64>,
    /// Files that are locked: other processes write them.
    locked: Set<File<'a>>,
}

/// Files that were opened again and again.
pub(super) struct Rereads<'a> {
    /// The files, and parts of them, by process.
    files: Map<u32, Map<Part<'a>, Reread>>,
}

/// A file that was opened again and again, and that the process did not write after it first read it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reread {
    /// Number of the file's openings, estimated from windows by octave.
    pub openings: u64,
    /// True if the file's status was asked for, or the file was read to its end, more than once,
    /// and each time with the same result: the time of its last change, or the bytes.
    pub unchanged: bool,
    /// True if its status, or what was read of it, was another than before.
    pub changed: bool,
    /// True if the file is read so often, alone or in turn with others, that it counts even if it is small.
    pub many: bool,
    /// Number of readings by one caller from one of this file to the next of it.
    pub turn: u64,
    /// True if it was read from another place than its start on.
    pub parts: bool,
    /// True if something came from outside the program near an opening: a request, whose answer is to be new.
    pub asked_for: bool,
    /// True if the file is opened again so soon that the program can't be looking for news.
    pub quick: bool,
}

impl<'a> Rereads<'a> {
    pub(super) fn new(recording: &'a Recording, semantics: &Semantics) -> Self {
        // Most files are opened once or twice and need no further look. An entry for many processes is left out: each
        // process may have opened the file once.
        let of_many =
            |window: &Window| recording.processes.get(window.process.0 as usize).is_some_and(Process::is_many);
        let mut times: Map<(u32, Part<'a>), u64> = Map::default();
        let mut names = Names::default();
        for window in recording.windows.iter().filter(|window| !of_many(window)) {
            each_opening(window, recording, semantics, |at, opening| {
                // A relative path is another file's in another folder.
                if opening.part.place.is_none() && opening.part.path.starts_with('/') {
                    let later = window.calls.get(at + 1..).unwrap_or_default().iter().take(SOON);
                    let mut of_fd = later.filter(|call| call.args.first() == Some(&(opening.fd as u64)));
                    let name = of_fd.find_map(|call| call.fd.as_deref()).filter(|name| name.starts_with('/'));
                    let file = || (window.process.0, opening.part.path.clone());
                    name.into_iter().for_each(|name| names.entry(file()).or_default().note(name));
                }
                *times.entry((window.process.0, opening.part)).or_default() += 1;
            });
        }
        times.retain(|_, n| *n >= SEEN);
        let mut looks = Looks::default();
        for (number, window) in recording.windows.iter().enumerate().filter(|_| !times.is_empty()) {
            look_through((number, window), recording, semantics, (&times, &names), &mut looks);
        }
        let Looks { files, any, written, locked } = looks;
        let mut in_turn: Map<RowId, u64> = Map::default();
        for seen in files.values().flat_map(Map::values).filter(|seen| seen.is_unchanged() || seen.is_taken_in_parts())
        {
            let openings = seen.openings.estimate(&any, recording) as u64;
            for row in seen.openings.rows() {
                in_turn.add(row, openings);
            }
        }
        let habit = |seen: &Seen<'_>| {
            let openings = seen.openings.estimate(&any, recording) as u64;
            let quick =
                openings > 0 && recording.header.wall_ns / openings < OTHERS_LOOK_NS || seen.is_taken_in_parts();
            let unchanged = seen.is_unchanged();
            let of_rows = seen.openings.rows().map(|row| in_turn.get(&row).copied().unwrap_or(0));
            let all = of_rows.max().unwrap_or(0).max(openings);
            let many = openings >= MANY || (openings >= MANY_EACH || seen.is_taken_in_parts()) && all >= MANY;
            let turn = all.div_ceil(openings.max(1));
            let (changed, parts) = (seen.changed, seen.parts);
            Reread { openings, unchanged, changed, parts, asked_for: seen.is_asked_for(), many, turn, quick }
        };
        let mut writers: Map<&str, Set<u32>> = Map::default();
        for (process, path) in written.keys() {
            writers.entry(path).or_default().insert(*process);
        }
        // Another process may change what lies at a place between two reads of it.
        let is_others = |process: u32, part: &Part<'_>| {
            writers.get(&*part.path).is_some_and(|of| of.iter().any(|other| *other != process))
        };
        let again = |process: u32, part: &Part<'_>, seen: &Seen<'_>, opened: &Set<Cow<'a, str>>| {
            let file = (process, &*part.path);
            // Of a file that is opened anew, the opening decides.
            let is_part = part.place.is_some()
                && (locked.contains(&file) || opened.contains(&part.path) || is_others(process, part));
            seen.openings.all() >= SEEN && !is_part && !seen.is_written(written.get(&file).copied())
        };
        let of_process = |process: u32, files: Map<Part<'a>, Seen<'a>>| {
            let opened = files.keys().filter(|part| part.place.is_none()).map(|part| part.path.clone()).collect();
            let files = files.into_iter().filter(|(part, seen)| again(process, part, seen, &opened));
            files.map(|(part, seen)| (part, habit(&seen))).collect()
        };
        let files = files.into_iter().map(|(process, files)| (process, of_process(process, files)));
        Self { files: files.filter(|(_, files): &(u32, Map<_, _>)| !files.is_empty()).collect() }
    }

    /// Returns true if the process opened any file again and again.
    pub(super) fn any(&self, process: u32) -> bool {
        self.files.contains_key(&process)
    }

    /// Returns the properties of a path of a process.
    pub(super) fn reread_of(&self, file: File<'_>) -> Option<Reread> {
        self.part(file, None)
    }

    /// Returns the properties of what lies at a place in a file.
    pub(super) fn reread_at(&self, file: File<'_>, place: u64) -> Option<Reread> {
        self.part(file, Some(place))
    }

    fn part(&self, (process, path): File<'_>, place: Option<u64>) -> Option<Reread> {
        self.files.get(&process)?.get(&Part { path: Cow::Borrowed(path), place }).copied()
    }
}

/// Returns true if the kernel makes the file up at each reading.
pub(super) fn is_made_up(path: &str) -> bool {
    MADE_UP.iter().any(|folder| path.starts_with(folder))
}

/// An opening that succeeded, a return to the start of an open file, or a read at a place in it.
struct Opening<'a> {
    part: Part<'a>,
    writes: bool,
    fd: i64,
    call: &'a WindowCall,
}

/// Returns the path of a file whose position the call set to its start; `None` for a file that the kernel makes up,
/// which is to be read in this way.
pub(super) fn rewound<'a>(call: &ObservedCall<'a>, lines: &Lines) -> Option<&'a str> {
    let returns = call.call.result == Some(0) && lines.goes(call);
    call.call.fd.as_deref().filter(|path| returns && path.starts_with('/') && !is_made_up(path))
}

/// Returns the path of a file, and the place in it that the call has read; `None` for a file that the kernel makes up.
pub(super) fn read_at<'a>(call: &ObservedCall<'a>, lines: &Lines) -> Option<(&'a str, u64)> {
    let moved =
        lines.transfer(call).filter(|moved| moved.way == Way::In && call.call.result.is_some_and(|got| got > 0))?;
    let path = call.call.fd.as_deref().filter(|path| path.starts_with('/') && !is_made_up(path) && !is_device(path))?;
    Some((path, call.arg(moved.at?)))
}

/// Returns true if the call takes bytes of a file, or entries of a folder.
fn takes(call: &ObservedCall<'_>, lines: &Lines) -> bool {
    lines.lists() || lines.transfer(call).is_some_and(|moved| moved.way == Way::In)
}

/// Calls `each` for every opening of a window, every return to the start of a file, and every read at a place in one, with
/// the call's index.
fn each_opening<'a>(
    window: &'a Window,
    recording: &Recording,
    semantics: &Semantics,
    mut each: impl FnMut(usize, Opening<'a>),
) {
    for (at, call) in window.calls.iter().enumerate() {
        let observed = ObservedCall { window, call, syscall: recording.row(call.row).syscall };
        let lines = semantics.lines_of(observed.syscall);
        if let Some(path) = rewound(&observed, lines) {
            let fd = observed.descriptor(0);
            let later = window.calls.get(at + 1..).unwrap_or_default().iter();
            let mut later = later.map(|call| ObservedCall { window, call, syscall: recording.row(call.row).syscall });
            let next = later.find(|next| semantics.lines_of(next.syscall).fd == Some(0) && next.descriptor(0) == fd);
            if next.is_some_and(|next| takes(&next, semantics.lines_of(next.syscall))) {
                let part = Part { path: Cow::Borrowed(path), place: None };
                each(at, Opening { part, writes: false, fd: i64::from(fd), call });
            }
        } else if let Some((path, place)) = read_at(&observed, lines) {
            let part = Part { path: Cow::Borrowed(path), place: Some(place) };
            each(at, Opening { part, writes: false, fd: i64::from(observed.descriptor(0)), call });
        }
        if !lines.may_open || call.errno().is_some() {
            continue;
        }
        let effects = lines.effects(&observed);
        let opens = effects.iter().find_map(|effect| match effect {
            Effect::OpensPath { at, path, .. } => observed.path(at, path).zip(observed.opening_flags(effects)),
            _ => None,
        });
        let Some(((path, flags), fd)) = opens.zip(call.result) else { continue };
        let part = Part { path, place: None };
        each(at, Opening { part, fd, writes: flags & (O_RDWR | O_WRONLY | O_TRUNC) != 0, call });
    }
}

/// Notes what a window shows of the files in `often`, and of other files only that they were opened.
fn look_through<'a>(
    (number, window): (usize, &'a Window),
    recording: &Recording,
    semantics: &Semantics,
    (often, names): (&Map<(u32, Part<'a>), u64>, &Names<'a>),
    looks: &mut Looks<'a>,
) {
    let process = window.process.0;
    let asked = LazyCell::new(|| {
        let observed = |call| ObservedCall { window, call, syscall: recording.row(call.row).syscall };
        window.calls.iter().any(|call| comes_from_outside(&observed(call), semantics))
    });
    for call in &window.calls {
        let observed = ObservedCall { window, call, syscall: recording.row(call.row).syscall };
        let Some(path) = call.fd.as_deref().filter(|path| path.starts_with('/')) else { continue };
        let lines = semantics.lines_of(observed.syscall);
        if lines.transfer(&observed).is_some_and(|moved| moved.way == Way::Out) {
            let last = looks.written.entry((process, path)).or_default();
            *last = call.entry_ns.max(*last);
        }
        if lines.line::<FileLock>(&observed).is_some() {
            looks.locked.insert((process, path));
        }
    }
    each_opening(window, recording, semantics, |at, Opening { part, writes, fd, call }| {
        looks.any.add(call.row, call.nth);
        let file = (process, part);
        if !often.contains_key(&file) {
            return;
        }
        let (name, place) = (file.1.path.clone(), file.1.place);
        let seen = looks.files.entry(process).or_default().entry(file.1).or_default();
        seen.is_opened(writes, number, call.entry_ns);
        seen.asked_for += u64::from(*asked);
        seen.openings.add(call.row, call.nth);
        if writes {
            // A file's status while it is written does not tell how it is found.
            return;
        }
        if place.is_some() {
            bytes_of(call).into_iter().for_each(|content| seen.holds(content));
            return;
        }
        let of_file = names.get(&(process, name.clone())).and_then(|name| name.0);
        // Another thread, which a window does not show, may have closed the file and opened another one by the same number.
        let is_other = |call: &WindowCall| {
            let leads_to = call.fd.as_deref().filter(|path| path.starts_with('/'));
            leads_to.zip(of_file).is_some_and(|(one, other)| one != other)
        };
        let soon = window.calls.get(at + 1..(at + 1 + SOON).min(window.calls.len())).unwrap_or_default();
        let mut statuses = soon.iter().filter_map(|next| {
            let asked = ObservedCall { window, call: next, syscall: recording.row(next.row).syscall };
            let line = semantics.lines_of(asked.syscall).state(&asked)?;
            let Act::Ask(sources) = line.act else { return None };
            let is_asked = line.about.is(&FILE_STATUS) && i64::from(asked.descriptor(0)) == fd && !is_other(next);
            is_asked.then(|| answer(sources, &asked))?
        });
        // The kernel makes such a file's times up too.
        if let Some(status) = statuses.next().filter(|_| !is_made_up(&name)) {
            seen.has(status);
        }
        match content(window, at, (fd, &is_other), recording, semantics) {
            Content::Whole(content) => seen.holds(content),
            Content::Part => seen.parts = true,
            Content::Unknown => {}
        }
    });
}

/// Returns true if the call goes to another place in a file than its start.
fn seeks(call: &ObservedCall<'_>, lines: &Lines) -> bool {
    lines.goes(call) && call.call.result.is_some_and(|at| at > 0)
}

/// Returns true if a transfer is from or to another place in the file than its start.
fn is_elsewhere(call: &ObservedCall<'_>, moved: &Transfer) -> bool {
    moved.at.is_some_and(|at| call.arg(at) > 0)
}

/// Returns true if the call brings bytes, or a connection, from outside the program's files.
fn comes_from_outside(call: &ObservedCall<'_>, semantics: &Semantics) -> bool {
    let file = || call.call.fd.as_deref().is_some_and(|name| name.starts_with('/'));
    let taken =
        semantics.lines_of(call.syscall).transfer(call).filter(|moved| moved.way == Way::In && moved.fd.is_some());
    taken.is_some() && !file() && call.call.result.is_some_and(|got| got > 0)
}

/// Returns the number of bytes that a call has read, and their beginning; `None` if the window does not hold any of them.
fn bytes_of(call: &WindowCall) -> Option<Vec<u8>> {
    let got = call.result.filter(|got| *got > 0).unwrap_or(0);
    let bytes = call.arg_data(1, Moment::Exit).map_or(&[][..], |data| &data.bytes);
    (got == 0 || !bytes.is_empty()).then(|| [&got.to_le_bytes(), bytes].concat())
}

/// Bytes that are read of a file after it was opened, or read from its start again, until it is closed or read anew.
enum Content {
    /// From its start: the size of each read, and the bytes in the window.
    Whole(Vec<u8>),
    /// From another place on.
    Part,
    /// Nothing is read, or the window does not show the closing within [`CYCLE`] calls.
    Unknown,
}

/// Returns what is read of the file that the call at `opening` opens, or returns to the start of, as `fd`. Calls by the same
/// number that are about another file have `is_other`.
fn content(
    window: &Window,
    opening: usize,
    (fd, is_other): (i64, &dyn Fn(&WindowCall) -> bool),
    recording: &Recording,
    semantics: &Semantics,
) -> Content {
    let (mut content, mut file) = (Vec::new(), OpenFile::new(fd));
    let has_threads = recording.processes.get(window.process.0 as usize).is_some_and(|process| process.threads > 1);
    for call in window.calls.iter().skip(opening + 1).take(CYCLE) {
        let observed = ObservedCall { window, call, syscall: recording.row(call.row).syscall };
        let lines = semantics.lines_of(observed.syscall);
        let used = file.next_use(&observed, lines);
        if used == Use::None {
            continue;
        }
        if is_other(call) {
            return Content::Unknown;
        }
        if used == Use::Last || rewound(&observed, lines).is_some() {
            // Of the end alone it is not known whether another thread has read what lies before it.
            let is_end = content == 0i64.to_le_bytes() && has_threads;
            return if content.is_empty() || is_end { Content::Unknown } else { Content::Whole(content) };
        }
        let moved = lines.transfer(&observed);
        if seeks(&observed, lines) || moved.is_some_and(|moved| is_elsewhere(&observed, moved)) {
            // Another part of the file has other content.
            return Content::Part;
        }
        // A folder's entries count as what it holds.
        let lists = lines.lists();
        if lists || moved.is_some_and(|moved| moved.way == Way::In) {
            match call.arg_data(1, Moment::Exit).map(|data| data.bytes.as_slice()) {
                Some(bytes) if lists && call.result.is_some_and(|got| got > 0) => {
                    content.extend(call.result.unwrap_or(0).to_le_bytes());
                    append_entries(bytes, observed.syscall, &mut content);
                }
                _ => match bytes_of(call) {
                    Some(bytes) => content.extend(bytes),
                    None => return Content::Unknown,
                },
            }
        }
    }
    Content::Unknown
}
