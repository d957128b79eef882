//! Detects a file that is opened, used and closed again and again.

use super::open_file::{Use, names_below, uses};
use super::renamed::{is_path, names};
use super::reread::{Reread, Rereads, is_made_up as made_up, read_at, rewound};
use super::walk::walks;
use crate::causes::fact::{Fact, Facts};
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, put};
use crate::reasons::ReasonId;
use crate::results::finding::Kind;
use crate::semantics::{
    Act, Effect, FD_FLAGS, FILE_STATUS, FileLock, Lines, ObservedCall, POSITION, RANDOM_FILES, SIZE, STATUS_FLAGS,
    Semantics, Way, is_device, removes_name,
};
use crate::world::barrier::Barrier;
use crate::world::replay::{Meaning, Opened, Step};
use std::borrow::Cow;
use std::cell::LazyCell;
use std::sync::Arc;
use systoll_model::Recording;
use systoll_model::constants::O_RDWR;

/// Largest number of calls between an opening and the calls that belong to it.
const CYCLE: usize = 24;
/// Largest size of all files' content remembered, bytes.
const REMEMBERED: usize = 1 << 20;
/// Least size of an ordinary file that is worth keeping, bytes. A program that opens a small file anew each time may
/// want to see its newest version: it is not claimed unless it is opened very often.
const LARGE: u64 = 64 << 10;
/// Least number of a file's openings for its reads to be claimed in windows that don't show the opening.
const OFTEN: u64 = 16;
/// Largest number of names of moved files that are remembered.
const MOVED: usize = 1 << 10;

/// Object of claims on a file that is read again and again, for a sentence.
pub(crate) const READ_ANEW: &str = "a file that is read anew each time";

/// Claims openings of files that were open before, and the calls that go with them.
pub(super) struct Reopen<'a> {
    /// Files that all windows together show to be opened again and again.
    rereads: Rereads<'a>,
    /// Names of files that any process moved elsewhere: the next opening for writing there is to
    /// make a new file.
    moved: Vec<Cow<'a, str>>,
    /// Names of files that any process removed.
    removed: Vec<Cow<'a, str>>,
    /// Files whose size a process sets after it has opened them, by its number.
    resized: Set<(u32, &'a str)>,
    /// Bytes last read from each path, by process. Reading the same bytes again is needless.
    contents: Map<(u32, String), Vec<u8>>,
    size: usize,
    /// Processes that keep several files open and close one to open another.
    rotating: Set<u32>,
}

impl<'a> Reopen<'a> {
    pub(super) fn new(recording: &'a Recording, semantics: &Semantics) -> Self {
        let changes = |lines: &Lines| lines.does(|effect| matches!(effect, Effect::Path { .. }));
        let removes = semantics.calls_in_windows(recording, changes).filter(|o| removes_name(o.syscall));
        Self {
            rereads: Rereads::new(recording, semantics),
            moved: first_paths(semantics.calls_in_windows(recording, Lines::names), semantics),
            removed: first_paths(removes, semantics),
            resized: resized(recording, semantics),
            contents: Map::default(),
            size: 0,
            rotating: Set::default(),
        }
    }
}

impl Detector for Reopen<'_> {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let reread = steps.first().is_some_and(|step| self.rereads.any(step.observed.window.process.0));
        if !reread && steps.iter().all(|step| step.opened.is_none()) {
            return;
        }
        let walked = LazyCell::new(|| walks(steps));
        let mut first: Vec<i64> = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let Some(opened) = &step.opened else {
                if let Some(path) = rewound(&step.observed, step.lines).filter(|_| reread) {
                    self.read_again(step, path, steps.get(at + 1..).unwrap_or_default(), claims);
                } else if let Some((path, place)) = read_at(&step.observed, step.lines).filter(|_| reread) {
                    self.part_again(step, path, place, claims);
                } else if reread {
                    self.further(step, &first, claims);
                }
                continue;
            };
            if !opened.again {
                first.extend(step.observed.call.result);
            }
            let walks = || walked.get(at).is_some_and(|walks| *walks);
            let rest = steps.get(at + 1..(at + 1 + CYCLE).min(steps.len())).unwrap_or_default();
            if opened.writes && !only_reads(step, rest) {
                let moved = self.moved.iter().any(|name| is_path(name, &opened.path));
                self.writing(step, opened, moved, rest, claims);
            } else {
                self.reading(step, opened, walks, rest, claims);
            }
        }
        self.leave_out_cut(reread, steps, claims);
    }
}

fn claim(kind: Kind, opened: &Opened<'_>, weak: bool) -> Claim {
    let made_up = made_up(&opened.path);
    let (about, instead, gives_up) = match kind {
        Kind::Toggle => (
            "a file to write to",
            "open it once around the whole loop",
            "a file moved away meanwhile (log rotation) is no longer noticed",
        ),
        _ if made_up => {
            ("a file of the kernel's, opened anew each time", "keep it open and pread it at 0, or keep the answer", "")
        }
        _ => return Claim { weak, object: Some(Arc::from(&*opened.path)), ..anew() },
    };
    Claim { weak, gives_up, object: Some(Arc::from(&*opened.path)), ..Claim::of(kind, about, instead) }
}

fn anew() -> Claim {
    Claim {
        gives_up: "a change of the file is noticed only when it is asked again",
        ..Claim::of(Kind::Repeat, READ_ANEW, "keep what was read, and look whether the file has changed")
    }
}

/// Returns true if the step begins something else.
fn turns(step: &Step<'_>) -> bool {
    step.lets(Barrier::TURNS)
}

/// Returns the first path of each call that succeeded: the name that the call took from a file.
fn first_paths<'a>(calls: impl Iterator<Item = ObservedCall<'a>>, semantics: &Semantics) -> Vec<Cow<'a, str>> {
    let taken = calls.filter(|o| o.call.errno().is_none());
    let mut names: Vec<Cow<'a, str>> =
        taken.filter_map(|o| o.paths(semantics.lines_of(o.syscall).effects(&o)).next()).collect();
    names.sort();
    names.dedup();
    names.truncate(MOVED);
    names
}

/// Returns the files whose size processes set by their descriptors, as far as windows show.
fn resized<'a>(recording: &'a Recording, semantics: &Semantics) -> Set<(u32, &'a str)> {
    let sets = semantics.calls_in_windows(recording, |lines| lines.sets(&SIZE)).filter(|o| o.call.errno().is_none());
    sets.filter_map(|o| Some((o.window.process.0, o.call.fd.as_deref()?))).take(MOVED).collect()
}

/// Returns true if what is written to the file that has just been opened as `fd` takes the place of all that was there,
/// as after an opening that empties it: its size is set to what had been written by then, or to nothing.
fn replaces_all(fd: i64, rest: &[Step<'_>]) -> bool {
    let mut written = 0_u64;
    uses(fd, rest).any(|(step, _)| {
        let put = step.moved.filter(|moved| moved.line.way == Way::Out).and_then(|moved| moved.got);
        written = written.saturating_add(put.unwrap_or(0));
        step.lines.sets(&SIZE) && step.observed.call.args[1] <= written
    })
}

/// Returns what the program does with a file that it has just opened to write to as `fd`, as far as the window goes: it
/// may only read it, or only lock it, and it may close another file in its place.
fn use_of(fd: i64, rest: &[Step<'_>]) -> Facts {
    let (mut reads, mut locks, mut others) = (false, false, false);
    for (step, _) in uses(fd, rest) {
        let way = step.moved.map(|moved| moved.line.way);
        reads |= way == Some(Way::In);
        locks |= step.line::<FileLock>().is_some();
        others |= way == Some(Way::Out)
            || step.lines.maps()
            || step
                .effects
                .iter()
                .any(|effect| matches!(effect, Effect::Shares | Effect::Redirects(_) | Effect::Writes(_)));
    }
    let turn = rest.iter().position(turns).and_then(|next| rest.get(..next)).unwrap_or_default();
    let closes = turn.iter().filter(|step| step.effects.iter().any(|effect| matches!(effect, Effect::Closes(_))));
    let another = closes.filter_map(Step::descriptor).any(|closed| i64::from(closed) != fd);
    let stays = !uses(fd, turn).any(|(_, used)| used == Use::Last);
    Facts::default()
        .with(Fact::Parts, reads && !others)
        .with(Fact::Locked, locks && !reads && !others)
        .with(Fact::Rotates, another && stays)
}

/// Returns true if the program locks the file that it has just opened as `fd`, reads it and writes it: a counter or a
/// table that it shares with other processes.
fn updates_locked(fd: i64, rest: &[Step<'_>]) -> bool {
    let used = |is: &dyn Fn(&Step<'_>) -> bool| uses(fd, rest).any(|(step, _)| is(step));
    let moves = |way: Way| used(&|step: &Step<'_>| step.moved.is_some_and(|moved| moved.line.way == way));
    used(&|step: &Step<'_>| step.line::<FileLock>().is_some()) && moves(Way::In) && moves(Way::Out)
}

/// Returns true if a file is opened for reading as well and read in turn, and the window does not show that it is written.
/// If the window ends before it shows what the file is used for, that counts as reading.
fn only_reads(step: &Step<'_>, rest: &[Step<'_>]) -> bool {
    if step.observed.opening_flags(step.effects).is_none_or(|flags| flags & O_RDWR == 0) {
        return false;
    }
    let (mut reads, mut parts, mut closes) = (false, false, false);
    for (step, used) in uses(step.observed.call.result.unwrap_or(-1), rest) {
        if step.moved.is_some_and(|m| m.line.way == Way::Out) || step.lines.maps() || step.lines.sets(&SIZE) {
            return false;
        }
        reads |= step.moved.is_some();
        parts |= step.moved.is_some_and(|m| m.line.at.is_some());
        closes |= used == Use::Last;
    }
    !parts && (reads || !closes)
}

/// Returns true if one of the steps gives the file at `path` another name: the next opening there makes another file.
fn is_moved_next(path: &str, rest: &[Step<'_>]) -> bool {
    let until_again = rest.iter().take_while(|step| step.opened.as_ref().is_none_or(|opened| *opened.path != *path));
    until_again.filter_map(names).any(|[from, _]| from == path)
}

/// Claims draws of random bytes from a file that is opened for each.
fn drawing(step: &Step<'_>, opened: &Opened<'_>, fd: i64, rest: &[Step<'_>], claims: &mut Claims) {
    let object: Arc<str> = Arc::from(&*opened.path);
    let claim = || Claim {
        object: Some(object.clone()),
        gives_up: "random bytes wait in the program's memory, which a fork copies",
        ..Claim::of(
            Kind::SmallIo,
            "opens the file of random bytes anew for a few of them",
            "getrandom, which takes no descriptor; draw a block and hand it out",
        )
    };
    put(claims, step.index, claim());
    uses(fd, rest).for_each(|(step, _)| put(claims, step.index, claim()));
}

/// Returns the descriptors that copies join with `fd`, before or after it: a shell keeps a copy of standard output, puts
/// the file in its place, and puts the copy back.
fn copies(fd: i64, turn: &[Step<'_>]) -> Vec<i64> {
    let pair = |step: &Step<'_>| {
        let to = step.effects.iter().find_map(|effect| match effect {
            Effect::Shares => step.observed.call.result,
            Effect::Redirects(arg) => Some(step.observed.descriptor(arg).into()),
            _ => None,
        })?;
        Some([step.observed.descriptor(0).into(), to])
    };
    let mut joined = vec![fd];
    let mut pairs: Vec<[i64; 2]> = turn.iter().filter_map(pair).collect();
    while let Some(at) = pairs.iter().position(|[from, to]| joined.contains(from) || joined.contains(to)) {
        joined.extend(pairs.swap_remove(at));
    }
    joined
}

/// Returns the descriptor that an effect of a step closes for good.
fn closed_by(step: &Step<'_>, effect: Effect) -> Option<i64> {
    match effect {
        Effect::Closes(arg) => Some(step.observed.descriptor(arg).into()),
        _ => None,
    }
}

/// Returns true if the step goes with the opening of the file that `copies` lead to: it handles these descriptors, or asks
/// something of the file.
fn plumbing(step: &Step<'_>, copies: &[i64]) -> bool {
    let of_file = || copies.contains(&step.observed.descriptor(0).into());
    let about = |m: &Meaning<'_>| {
        matches!(m.line.act, Act::Ask(_) | Act::Try)
            || [&FD_FLAGS, &STATUS_FLAGS, &FILE_STATUS, &POSITION].iter().any(|s| m.line.about.is(s))
    };
    step.effects.iter().any(|effect| match effect {
        Effect::Shares | Effect::Redirects(_) => of_file(),
        effect => closed_by(step, effect).is_some_and(|fd| copies.contains(&fd)),
    }) || step.lines.fd == Some(0) && of_file() && step.meaning.as_ref().is_some_and(about)
}

impl Reopen<'_> {
    /// Claims an append and the calls that a shell makes around it, but not the writing itself. The
    /// claim is weak if the file was `moved` elsewhere meanwhile, since the new file is found only by
    /// opening the path again.
    fn writing(&mut self, step: &Step<'_>, opened: &Opened<'_>, moved: bool, rest: &[Step<'_>], claims: &mut Claims) {
        // A file made anew is another file each time, unless it is a device: /dev/null is what it was.
        // The ledger does not know whether a file was removed since.
        let is_removed = !opened.shown && self.removed.iter().any(|name| is_path(name, &opened.path));
        let is_other = opened.anew && !is_device(&opened.path) || is_removed;
        if !opened.again || is_other || is_moved_next(&opened.path, rest) {
            return;
        }
        let own = claims.get(step.index).is_none_or(|old| old.weak);
        let (process, fd) = (step.observed.window.process.0, step.observed.call.result.unwrap_or(-1));
        if claims.excuse(step.index, ReasonId::SharedCounter, updates_locked(fd, rest)) {
            return;
        }
        if replaces_all(fd, rest) {
            return;
        }
        if self.resized.contains(&(process, &*opened.path)) && !uses(fd, rest).any(|(_, used)| used == Use::Last) {
            // The window may end before its size is set.
            claims.leave_out(step.index);
            return;
        }
        let facts = use_of(fd, rest);
        if facts.contains(Fact::Rotates) {
            self.rotating.insert(process);
        }
        // The window may not show the next opening.
        let is_last = !rest.iter().any(turns);
        let facts = facts.with(Fact::Rotates, is_last && self.rotating.contains(&process));
        let is_kept = !is_last && !uses(fd, rest).any(|(_, used)| used == Use::Last);
        if is_kept && !facts.contains(Fact::Rotates) {
            // The file stays open while others are opened, and none is closed for it.
            claims.leave_out(step.index);
            return;
        }
        let moved = claims.excuse(step.index, ReasonId::MovedLog, moved);
        let of = || Claim { facts, ..claim(Kind::Toggle, opened, moved) };
        put(claims, step.index, of());
        let next = rest.iter().position(turns).unwrap_or(rest.len());
        let turn = rest.get(..next).unwrap_or_default();
        let mut copies = copies(fd, turn);
        for step in turn {
            if plumbing(step, &copies) {
                put_with(claims, step.index, of(), own);
                let closed = step.effects.iter().filter_map(|effect| closed_by(step, effect));
                closed.for_each(|fd| copies.retain(|copy| *copy != fd));
            }
        }
    }

    fn reading(
        &mut self,
        step: &Step<'_>,
        opened: &Opened<'_>,
        walks: impl Fn() -> bool,
        rest: &[Step<'_>],
        claims: &mut Claims,
    ) {
        if opened.anew {
            return;
        }
        let fd = step.observed.call.result.unwrap_or(-1);
        if RANDOM_FILES.contains(&&*opened.path) {
            if opened.again {
                drawing(step, opened, fd, rest, claims);
            }
            return;
        }
        let process = step.observed.window.process.0;
        let habit = self.rereads.reread_of((process, &opened.path));
        let is = |test: fn(&Reread) -> bool| habit.is_some_and(|file| test(&file));
        let often = is(|file| file.many && file.unchanged) && takes(fd, rest);
        if is(|file| file.parts && file.many && file.quick && !file.changed) && !made_up(&opened.path) {
            in_parts(step, opened, is(|file| file.asked_for), rest, claims);
            return;
        }
        let is_small = !made_up(&opened.path) && bytes_of(fd, rest) < LARGE && !often;
        if claims.excuse(step.index, ReasonId::SmallFile, is_small) {
            return;
        }
        // The content of a file that the kernel makes up may differ each time, but the descriptor
        // could have stayed open.
        let news = |file: &Reread| !file.unchanged || !file.quick || file.asked_for;
        let listed = lists(fd, rest) && is(|file| file.unchanged && file.quick);
        let weak = !(made_up(&opened.path) || listed) && habit.is_none_or(|file| news(&file));
        let weak = claims.excuse(step.index, ReasonId::NewsOfFile, weak);
        let facts = Facts::from(Fact::Reopened).with(Fact::Walk, walks()).with(Fact::Listing, lists(fd, rest));
        let of = |weak| Claim { facts, ..claim(Kind::Repeat, opened, weak) };
        // Where the opening is part of something else, as of loading a library, what comes with it is too.
        let own = claims.get(step.index).is_none_or(|old| old.weak);
        let known = opened.again || habit.is_some_and(|file| often && step.observed.call.nth > file.turn);
        if opened.again {
            put(claims, step.index, of(weak));
        } else if known {
            // No window before this one shows an opening of the file, though there were some.
            claims.leave_out(step.index);
        }
        let mut read = Vec::new();
        let mut reads = Vec::new();
        for (step, used) in uses(fd, rest) {
            let reading = step.moved.as_ref().is_some_and(|m| m.line.way == Way::In);
            if reading {
                read.extend_from_slice(&step.observed.call.result.unwrap_or(0).to_le_bytes());
                let bytes = step.observed.call.arg_data(1, systoll_model::Moment::Exit);
                read.extend_from_slice(bytes.map_or(&[], |data| &data.bytes));
                reads.push(step.index);
            } else if made_up(&opened.path) && step.lines.lists() {
                // The kernel makes the list up anew each time: with the folder kept open, it is taken as often.
            } else if opened.again && !step.lines.goes(&step.observed) {
                // The opening drags along what comes before the first read, and the closing.
                let dragged = reads.is_empty() || used == Use::Last;
                put_with(claims, step.index, of(weak), own && dragged);
            } else if known && !step.lines.goes(&step.observed) {
                claims.leave_out(step.index);
            }
            if used == Use::Last {
                if self.same_bytes(step.who, opened, read) || opened.again && often {
                    reads.iter().for_each(|at| put(claims, *at, of(weak)));
                } else if known && !opened.again {
                    reads.iter().for_each(|at| claims.leave_out(*at));
                }
                return;
            }
        }
        // The content is known when the file is closed, which the window does not show.
        if known {
            reads.iter().for_each(|at| claims.leave_out(*at));
        }
    }

    /// Leaves out calls on a file that was opened before the window, if it is one that is opened again and again.
    /// `reread` is true if the process has any such file.
    fn leave_out_cut(&self, reread: bool, steps: &[Step<'_>], claims: &mut Claims) {
        let again = |s: &Step<'_>| s.opened.as_ref().is_some_and(|o| o.again && !o.writes && made_up(&o.path));
        let made_up_again = steps.iter().any(again);
        if !reread && !made_up_again {
            return;
        }
        let mut shown: Vec<i64> = Vec::new();
        for step in steps {
            if step.opened.is_some() {
                shown.extend(step.observed.call.result);
                continue;
            }
            let Some(path) = step.observed.call.fd.as_deref().filter(|_| step.lines.fd == Some(0)) else { continue };
            let of_many = self.rereads.reread_of((step.observed.window.process.0, path)).is_some_and(|file| file.many);
            let is_cut = !shown.contains(&i64::from(step.observed.descriptor(0)));
            if is_cut && !names_below(&step.observed) && (of_many || made_up_again && made_up(path)) {
                claims.leave_out(step.index);
            }
        }
    }

    /// Claims a return to the start of an unchanged file, and the reads that follow.
    fn read_again(&self, step: &Step<'_>, path: &str, rest: &[Step<'_>], claims: &mut Claims) {
        let Some(file) = self.rereads.reread_of((step.observed.window.process.0, path)) else { return };
        if step.observed.call.nth == 1 || !file.unchanged || !file.many || file.parts {
            return;
        }
        let fd = i64::from(step.observed.descriptor(0));
        let own = rest.iter().filter(|step| step.descriptor().map(i64::from) == Some(fd));
        let taken = own.take_while(|step| step.lines.lists() || step.moved.is_some_and(|m| m.line.way == Way::In));
        let reads: Vec<usize> = taken.map(|step| step.index).collect();
        let weak = !file.quick || file.asked_for;
        for at in std::iter::once(step.index).filter(|_| !reads.is_empty()).chain(reads.iter().copied()) {
            let object = Some(claims.object(path));
            put(claims, at, Claim { weak, object, facts: Fact::Reopened.into(), ..anew() });
        }
    }

    /// Claims a read of what was read at the same place before, and has not changed.
    fn part_again(&self, step: &Step<'_>, path: &str, place: u64, claims: &mut Claims) {
        let Some(file) = self.rereads.reread_at((step.observed.window.process.0, path), place) else { return };
        if step.observed.call.nth > file.turn && file.unchanged && file.many && !file.changed {
            let object = Some(claims.object(path));
            put(claims, step.index, Claim { weak: !file.quick || file.asked_for, object, ..anew() });
        }
    }

    /// Claims reads of a file that is opened again and again and does not change. Reads through the descriptors in
    /// `first`, which opened a file for the first time, are not claimed.
    fn further(&self, step: &Step<'_>, first: &[i64], claims: &mut Claims) {
        let Some(moved) = step.moved.filter(|m| m.line.way == Way::In && m.line.at.is_none()) else { return };
        let Some(path) = step.observed.call.fd.as_deref().filter(|file| file.starts_with('/')) else { return };
        let Some(file) = self.rereads.reread_of((step.observed.window.process.0, path)) else { return };
        let is_first = moved.fd.is_some_and(|fd| first.contains(&i64::from(fd)));
        if is_first || !file.unchanged || file.parts || file.openings < OFTEN || moved.got.is_none() {
            return;
        }
        // The first `file.openings` reads of the row may have been the needed ones.
        if step.observed.call.nth > file.openings {
            let object = Some(claims.object(path));
            let weak = !file.quick || file.asked_for;
            put(claims, step.index, Claim { weak, object, ..anew() });
        }
    }

    /// Remembers the bytes read from a path. Returns true if they equal those read the last time.
    fn same_bytes(&mut self, who: u32, opened: &Opened<'_>, read: Vec<u8>) -> bool {
        if read.is_empty() || self.size + read.len() > REMEMBERED {
            return false;
        }
        self.size += read.len();
        let old = self.contents.insert((who, opened.path.to_string()), read.clone());
        self.size -= old.as_ref().map_or(0, Vec::len);
        old.is_some_and(|old| old == read)
    }
}

/// Returns the number of bytes, of a file or of a folder's entries, read through a descriptor until it is closed or
/// the window ends.
fn bytes_of(fd: i64, rest: &[Step<'_>]) -> u64 {
    let listed =
        |s: &Step<'_>| s.observed.call.result.filter(|_| s.lines.lists()).and_then(|got| u64::try_from(got).ok());
    uses(fd, rest).filter_map(|(s, _)| s.moved.and_then(|m| m.got).or_else(|| listed(s))).fold(0, u64::saturating_add)
}

/// Returns true if bytes or a folder's entries are read through a descriptor until it is closed or the window ends.
fn takes(fd: i64, rest: &[Step<'_>]) -> bool {
    uses(fd, rest).any(|(s, _)| s.meaning.is_none() && s.observed.call.result.is_some_and(|got| got > 0))
}

/// Returns true if a folder's entries are taken from a descriptor, as far as the window goes.
fn lists(fd: i64, rest: &[Step<'_>]) -> bool {
    uses(fd, rest).any(|(step, _)| step.lines.lists())
}

/// Claims the opening of a file of which another part is read each time, and the calls that go with it but the reads.
fn in_parts(step: &Step<'_>, opened: &Opened<'_>, weak: bool, rest: &[Step<'_>], claims: &mut Claims) {
    if !opened.again {
        return;
    }
    let fd = step.observed.call.result.unwrap_or(-1);
    let object: Arc<str> = Arc::from(&*opened.path);
    let claim = || Claim {
        weak,
        facts: Fact::Parts.into(),
        object: Some(object.clone()),
        gives_up: "a file that is put in its place meanwhile is noticed only when it is opened again",
        ..Claim::of(Kind::Toggle, "a file that is opened for each part of it", "open it once, and pread what is needed")
    };
    let own = claims.get(step.index).is_none_or(|old| old.weak);
    put(claims, step.index, claim());
    for (step, _) in uses(fd, rest) {
        let reading = step.moved.is_some_and(|m| m.line.way == Way::In);
        if !reading && !step.lines.goes(&step.observed) {
            put_with(claims, step.index, claim(), own);
        }
    }
}

/// Puts a claim on a call that the opening of a file brings with it: whatever else is needless about that call, it goes
/// with the opening. Another claim stays where this one only makes a remark, or where the opening has another claim.
fn put_with(claims: &mut Claims, index: usize, claim: Claim, own: bool) {
    if own && !claim.weak {
        claims.set(index, claim);
    } else {
        put(claims, index, claim);
    }
}
