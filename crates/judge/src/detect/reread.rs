//! What all windows together show of files that are opened again and again: whether they stayed as they were.

use crate::hash::Map;
use crate::octave::octaves;
use crate::semantics::{Act, Effect, FILE_STATUS, ObservedCall, POSITION, Semantics, Value, Way, answer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use systoll_model::constants::{O_CREAT, O_RDWR, O_TRUNC, O_WRONLY};
use systoll_model::{Moment, Process, Recording, RowId, Window, WindowCall};

/// Openings that were seen, before they are a habit.
const SEEN: u64 = 3;
/// Openings of a small file in all, by the exact count of their rows: what is looked at so often is not looked at for news.
const MANY: u64 = 256;
/// Openings, and ns from one to the next, by which a file is opened faster than anybody wants to know of a change.
const CEASELESS: u64 = 1_000;
const SOONER: u64 = 1_000_000;
/// Calls after the opening within which its status is asked.
const SOON: usize = 4;
/// Calls after the opening within which it is closed.
const CYCLE: usize = 24;

/// A path of a process.
type File<'a> = (u32, &'a str);

/// One file over all windows.
#[derive(Default)]
struct Seen<'a> {
    /// Openings of it that windows show.
    openings: Openings,
    status: Option<Value<'a>>,
    /// What was read of it the last time, as far as windows hold it.
    content: Option<Vec<u8>>,
    /// How often its status, or what was read of it, was the same as before.
    alike: u64,
    changed: bool,
    /// When it was first and last opened to be read, and last to be written, ns since the run's start.
    first_read: Option<u64>,
    last_read: Option<u64>,
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
        let alike = self.content.as_ref().map(|before| *before == content);
        self.alike += u64::from(alike == Some(true));
        self.changed |= alike == Some(false);
        self.content = Some(content);
    }

    fn is_opened(&mut self, writes: bool, at_ns: u64) {
        if writes {
            self.last_write = self.last_write.max(Some(at_ns));
        } else {
            self.first_read = Some(self.first_read.map_or(at_ns, |first| first.min(at_ns)));
            self.last_read = self.last_read.max(Some(at_ns));
        }
    }

    /// Whether so many openings lie so close together that a change can't be what they are for.
    fn is_ceaseless(&self, openings: u64) -> bool {
        let span = self.last_read.zip(self.first_read).map(|(last, first)| last.saturating_sub(first));
        openings >= CEASELESS && span.is_some_and(|ns| ns / openings < SOONER)
    }

    /// Whether it was opened to be written to once reading had begun: what was made before is as any other file, and
    /// whether a window shows that is chance.
    fn is_written(&self) -> bool {
        self.last_write.is_some_and(|last| self.first_read.is_none_or(|first| last >= first))
    }
}

/// Openings that windows show, by row and octave of its count: windows crowd where a row begins, so that each octave
/// counts by its size.
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

    /// How many there are in all, of rows of whose openings windows show `any`: in each octave as many of its calls as
    /// of those that were seen there, or in the nearest octave that was seen.
    fn estimate(&self, any: &Self, recording: &Recording) -> f64 {
        let mut rows: Vec<RowId> = self.seen.keys().map(|(row, _)| *row).collect();
        rows.dedup();
        let of_row = |row: RowId| {
            let shown = any.seen.range((row, 0)..=(row, u32::MAX)).map(|((_, octave), _)| *octave);
            let of_octave = |(size, nearest): (u64, u32)| {
                let of = |openings: &Self| openings.seen.get(&(row, nearest)).copied().unwrap_or(0);
                size as f64 * of(self) as f64 / of(any).max(1) as f64
            };
            octaves(recording.row(row).counts.calls, shown).map(of_octave).sum::<f64>()
        };
        rows.into_iter().map(of_row).sum()
    }
}

/// What windows show: files, and openings of any file.
#[derive(Default)]
struct Looks<'a> {
    /// By process, by path.
    files: Map<u32, Map<Cow<'a, str>, Seen<'a>>>,
    any: Openings,
}

/// Files that were opened again and again.
pub(super) struct Rereads<'a> {
    /// By process, by path.
    files: Map<u32, Map<Cow<'a, str>, Reread>>,
}

/// A file that was opened again and again, and not written to by the process since it was first read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reread {
    /// Its openings, an estimate: of each octave of a row's calls as many as of those that windows show.
    pub openings: u64,
    /// Whether its status was asked more than once, or it was read to its end more than once, and each time it was the
    /// same: the time of its last change, or the bytes.
    pub unchanged: bool,
    /// Whether it is opened so often that a small one counts too.
    pub many: bool,
    /// Whether it is opened a thousand times and more, more than once a millisecond.
    pub ceaseless: bool,
}

impl<'a> Rereads<'a> {
    pub(super) fn new(recording: &'a Recording, semantics: &Semantics) -> Self {
        // Most files are opened once or twice, of which nothing else need be known. Of many processes that are told of
        // together each may have opened one once.
        let of_many =
            |window: &Window| recording.processes.get(window.process.0 as usize).is_some_and(Process::is_many);
        let mut times: Map<(u32, Cow<'a, str>), u64> = Map::default();
        for window in recording.windows.iter().filter(|window| !of_many(window)) {
            each_opening(window, recording, semantics, |_, opening| {
                *times.entry((window.process.0, opening.path)).or_default() += 1;
            });
        }
        times.retain(|_, n| *n >= SEEN);
        let mut looks = Looks::default();
        for window in recording.windows.iter().filter(|_| !times.is_empty()) {
            look_through(window, recording, semantics, &times, &mut looks);
        }
        let any = looks.any;
        let habit = |seen: &Seen<'_>| {
            let openings = seen.openings.estimate(&any, recording) as u64;
            let (unchanged, ceaseless) = (seen.alike > 0 && !seen.changed, seen.is_ceaseless(openings));
            Reread { openings, unchanged, many: openings >= MANY, ceaseless }
        };
        let again = |seen: &Seen<'_>| seen.openings.all() >= SEEN && !seen.is_written();
        let of_process = |files: Map<Cow<'a, str>, Seen<'a>>| {
            let files = files.into_iter().filter(|(_, seen)| again(seen));
            files.map(|(path, seen)| (path, habit(&seen))).collect()
        };
        let files = looks.files.into_iter().map(|(process, files)| (process, of_process(files)));
        Self { files: files.filter(|(_, files): &(u32, Map<_, _>)| !files.is_empty()).collect() }
    }

    /// Whether a process opened any file again and again.
    pub(super) fn any(&self, process: u32) -> bool {
        self.files.contains_key(&process)
    }

    /// What is known of a path of a process.
    pub(super) fn of(&self, (process, path): File<'_>) -> Option<Reread> {
        self.files.get(&process)?.get(path).copied()
    }
}

/// An opening that succeeded.
struct Opening<'a> {
    path: Cow<'a, str>,
    writes: bool,
    call: &'a WindowCall,
}

/// Goes through a window's openings, by their places.
fn each_opening<'a>(
    window: &'a Window,
    recording: &Recording,
    semantics: &Semantics,
    mut each: impl FnMut(usize, Opening<'a>),
) {
    for (at, call) in window.calls.iter().enumerate() {
        let observed = ObservedCall { window, call, syscall: recording.row(call.row).syscall };
        let lines = semantics.of(observed.syscall);
        if !lines.may_open || call.errno().is_some() {
            continue;
        }
        let opens = lines.effects(&observed).iter().find_map(|effect| match effect {
            Effect::OpensPath { at, path, flags } => observed.path(at, path).zip(Some(flags)),
            _ => None,
        });
        let Some((path, flags)) = opens else { continue };
        let flags = flags.map_or(O_RDWR | O_CREAT | O_TRUNC, |arg| observed.arg(arg) as u32);
        each(at, Opening { path, writes: flags & (O_RDWR | O_WRONLY | O_TRUNC) != 0, call });
    }
}

/// Takes in a window: of files that are among `often` all that it shows, of others that they were opened.
fn look_through<'a>(
    window: &'a Window,
    recording: &Recording,
    semantics: &Semantics,
    often: &Map<(u32, Cow<'a, str>), u64>,
    looks: &mut Looks<'a>,
) {
    let process = window.process.0;
    each_opening(window, recording, semantics, |at, Opening { path, writes, call }| {
        looks.any.add(call.row, call.nth);
        let file = (process, path);
        if !often.contains_key(&file) {
            return;
        }
        let seen = looks.files.entry(process).or_default().entry(file.1).or_default();
        seen.is_opened(writes, call.entry_ns);
        seen.openings.add(call.row, call.nth);
        if writes {
            // What it is while it is written tells nothing of how it is found.
            return;
        }
        let soon = window.calls.get(at + 1..(at + 1 + SOON).min(window.calls.len())).unwrap_or_default();
        let mut statuses = soon.iter().filter_map(|next| {
            let asked = ObservedCall { window, call: next, syscall: recording.row(next.row).syscall };
            let line = semantics.of(asked.syscall).state(&asked)?;
            let Act::Ask(sources) = line.act else { return None };
            let of_file = line.about.is(&FILE_STATUS) && Some(i64::from(asked.descriptor(0))) == call.result;
            of_file.then(|| answer(sources, &asked))?
        });
        if let Some(status) = statuses.next() {
            seen.has(status);
        }
        if let Some(content) = content(window, at, recording, semantics) {
            seen.holds(content);
        }
    });
}

/// What is read from the file that a call opens until it is closed: of each read how much, and the bytes that the window
/// holds. `None` where nothing is, where it is read from another place than its start, or the window does not show the closing, or too much lies between.
fn content(window: &Window, opening: usize, recording: &Recording, semantics: &Semantics) -> Option<Vec<u8>> {
    let fd = window.calls.get(opening)?.result?;
    let mut content = Vec::new();
    for call in window.calls.iter().skip(opening + 1).take(CYCLE) {
        let observed = ObservedCall { window, call, syscall: recording.row(call.row).syscall };
        let lines = semantics.of(observed.syscall);
        if lines.fd != Some(0) || i64::from(observed.descriptor(0)) != fd {
            continue;
        }
        if lines.effects(&observed).iter().any(|effect| matches!(effect, Effect::Closes(0))) {
            return (!content.is_empty()).then_some(content);
        }
        let moved = lines.transfer(&observed);
        if lines.sets(&POSITION) || moved.is_some_and(|moved| moved.at.is_some()) {
            // Another part of it is something else.
            return None;
        }
        if moved.is_some_and(|moved| moved.way == Way::In) {
            let got = call.result.filter(|got| *got > 0);
            content.extend(got.unwrap_or(0).to_le_bytes());
            content.extend_from_slice(got.and(observed.data(1, Moment::Exit)).unwrap_or_default());
        }
    }
    None
}
