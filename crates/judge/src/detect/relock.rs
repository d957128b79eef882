//! Detects locks on files that are released and taken again right away.

use crate::causes::fact::Fact;
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, put};
use crate::reasons::ReasonId;
use crate::results::finding::Kind;
use crate::semantics::{FileLock, Lines, Semantics, Way, word_at};
use crate::world::barrier::Barrier;
use crate::world::replay::Step;
use std::sync::Arc;
use systoll_model::{Errno, Moment, Process, Recording, WindowCall};

/// Least number of times in a window that a lock is released and taken again.
const AGAIN: usize = 2;
/// Largest number of other calls between releasing and taking: with more, the program does something else in between.
const BETWEEN: usize = 2;
/// Largest number of other calls under the lock: with more, the lock guards a piece of work, after which it is fair
/// to let others in.
const UNDER: usize = 8;

/// Largest number of locked ranges of a file that are told apart.
const RANGES: usize = 8;

/// Number of calls among which one that waited is chance: the thread lost its processor during the call. With 64, and
/// without a look at the calls that leave the lock, one of 20 runs of a lock that no other process wanted counted as
/// waited for on a box with a load of 6.
const CHANCE: u64 = 32;

/// Claims releasing a lock and taking it again, with nothing in between that could wait for others, if no other
/// process was seen to want it.
pub(super) struct Relock {
    /// Files that more than one process locks, or for whose lock a thread had to wait; `None` for files without a
    /// name.
    wanted: Set<Option<Arc<str>>>,
}

impl Relock {
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        let mut files: Map<Option<&str>, Lockers> = Map::default();
        for observed in semantics.calls_in_windows(recording, Lines::has::<FileLock>) {
            let Some(lock) = semantics.lines_of(observed.syscall).line::<FileLock>(&observed) else { continue };
            let (process, call) = (observed.window.process.0, observed.call);
            let several = recording.processes.get(process as usize).is_none_or(Process::is_many);
            let of_file = files.entry(call.fd.as_deref()).or_default();
            let first = *of_file.first.get_or_insert(process);
            of_file.looks += 1;
            let waited = u64::from(call.waited_ns.is_some_and(|ns| ns > 0));
            *(if lock.leaves { &mut of_file.lost } else { &mut of_file.waited }) += waited;
            of_file.contend |= several || first != process || was_refused(call);
        }
        let wanted = files.into_iter().filter(|(_, file)| file.contend || file.is_waited_for());
        Self { wanted: wanted.map(|(file, _)| file.map(Arc::from)).collect() }
    }
}

/// The calls on a file's lock.
#[derive(Default)]
struct Lockers {
    /// The process of the first call on the lock.
    first: Option<u32>,
    /// True if more than one process made calls on the lock, or another process held it.
    contend: bool,
    looks: u64,
    /// Number of calls that take the lock and waited.
    waited: u64,
    /// Number of calls that leave the lock and waited: the thread lost its processor.
    lost: u64,
}

impl Lockers {
    /// Returns true if threads had to wait for the lock, and not for a processor alone.
    fn is_waited_for(&self) -> bool {
        self.waited.saturating_sub(self.lost.saturating_mul(2)) * CHANCE > self.looks
    }
}

/// Returns true if the call was refused since another process held the lock.
fn was_refused(call: &WindowCall) -> bool {
    [Some(Errno::EAGAIN), Some(Errno::EACCES)].contains(&call.errno())
}

/// A time under the lock that began right after another.
struct Again {
    /// Index of the call that released the lock before.
    left: usize,
    /// Indices of the calls that took the lock, and of those that changed a part of it meanwhile.
    locks: Vec<usize>,
    /// Indices of the calls under the lock.
    under: Vec<usize>,
}

/// First and last byte of a locked range.
type Range = (u64, u64);

/// The range of a whole file.
const WHOLE: Range = (0, u64::MAX);

/// The lock that calls are about: by the file's name, since the file may be opened anew for each time under its lock; by
/// the descriptor if the file has no name.
#[derive(PartialEq, Eq, Hash)]
enum Locked<'s> {
    File(&'s str),
    Descriptor(i32),
}

impl<'s> Locked<'s> {
    fn of(step: &Step<'s>) -> Self {
        match step.observed.call.fd.as_deref().filter(|name| name.starts_with('/')) {
            Some(name) => Self::File(name),
            None => Self::Descriptor(step.observed.descriptor(0)),
        }
    }

    /// Returns true if the step opens or asks about the locked file, which a program does that opens it anew.
    fn is_reopened_by(&self, step: &Step<'_>) -> bool {
        let Self::File(name) = self else { return false };
        let opens = step.opened.as_ref().is_some_and(|opened| *opened.path == **name);
        opens || step.moved.is_none() && step.observed.call.fd.as_deref() == Some(*name)
    }
}

/// The lock of a file.
#[derive(Default)]
struct Held {
    /// The descriptor of the newest call on the lock.
    fd: i32,
    /// The ranges that are locked.
    ranges: Vec<Range>,
    /// Indices of the calls since the lock was taken, if it is held.
    under: Option<Vec<usize>>,
    /// The index of the call that released the lock, and the number of calls since.
    left: Option<(usize, usize)>,
    /// True if others got in since the lock was released.
    let_in: bool,
    /// The times under the lock; without the first.
    again: Vec<Again>,
    /// Indices of the calls under the lock the first time.
    first: Vec<usize>,
}

impl Held {
    fn others(&mut self, at: usize) {
        self.under.iter_mut().for_each(|calls| calls.push(at));
        self.left = self.left.map(|(at, calls)| (at, calls + 1));
    }

    fn takes(&mut self, at: usize, range: Range, claims: &mut Claims) {
        let let_in = std::mem::take(&mut self.let_in);
        claims.excuse(at, ReasonId::LetsOthersIn, let_in);
        if self.ranges.is_empty() {
            let left = self.left.take().filter(|(_, calls)| *calls <= BETWEEN);
            self.again.extend(left.map(|(left, _)| Again { left, locks: Vec::new(), under: Vec::new() }));
            self.under = Some(Vec::new());
        }
        // Most programs lock one range; those that lock more than this are taken to hold the newest only.
        if self.ranges.len() == RANGES {
            self.ranges.clear();
        }
        self.ranges.push(range);
        self.locks(at);
    }

    /// Notes a call on the lock of which the thread holds a part before and after.
    fn locks(&mut self, at: usize) {
        if let Some(again) = self.again.last_mut() {
            again.locks.push(at);
        }
    }

    fn leaves(&mut self, at: usize, (from, to): Range) {
        self.ranges.retain(|(begins, ends)| *begins < from || to < *ends);
        if !self.ranges.is_empty() {
            self.locks(at);
            return;
        }
        let under = self.under.take();
        self.left = under.as_ref().is_some_and(|calls| calls.len() <= UNDER).then_some((at, 0));
        match (self.again.last_mut(), under) {
            (Some(again), Some(calls)) => again.under = calls,
            (None, Some(calls)) => self.first = calls,
            (_, None) => {}
        }
    }

    /// Ends the window: what is done under the lock until then counts.
    fn ends(&mut self) {
        if let Some((again, calls)) = self.again.last_mut().zip(self.under.take()) {
            again.under = calls.into_iter().take(UNDER).collect();
        }
    }

    fn breaks(&mut self) {
        self.ranges.clear();
        (self.under, self.left) = (None, None);
    }

    /// Returns true if the program both reads and writes files under the lock: what it writes is made of what it read, and
    /// another process, which is not watched, may have changed that in between.
    fn changes_what_it_read(&self, steps: &[Step<'_>]) -> bool {
        let moves = |way: Way| {
            let mut under = self.again.iter().flat_map(|again| &again.under).filter_map(|at| steps.get(*at));
            under.any(|step| {
                step.moved.is_some_and(|moved| moved.line.way == way && moved.got.is_some_and(|got| got > 0))
            })
        };
        moves(Way::In) && moves(Way::Out)
    }

    /// Claims the releases and takings, and the questions and reads under the lock that the program had done before: no
    /// other process could have changed their answers if the program had kept the lock. The claims are weak if the
    /// program changes what it reads under the lock.
    fn claim(&self, steps: &[Step<'_>], claims: &mut Claims) {
        let changes = self.changes_what_it_read(steps);
        let mut before = &self.first;
        for again in &self.again {
            let calls = std::iter::once(&again.left).chain(&again.locks).filter_map(|at| steps.get(*at));
            // Closing a file that is opened for each time has a cause of its own.
            for step in calls.filter(|step| step.line::<FileLock>().is_some()) {
                let object = step.observed.call.fd.as_deref().map(|file| claims.object(file));
                let weak = claims.excuse(step.index, ReasonId::ChangesWhatItRead, changes);
                put(claims, step.index, Claim { object, weak, ..claim() });
            }
            for step in again.under.iter().filter_map(|at| steps.get(*at)) {
                let asked = claims.get(step.index).is_some_and(|old| old.kind == Kind::Repeat);
                let read = before.iter().filter_map(|at| steps.get(*at)).any(|other| reads_alike(step, other));
                if asked || read {
                    let object = claims.get(step.index).and_then(|old| old.object.clone());
                    let weak = claims.excuse(step.index, ReasonId::ChangesWhatItRead, changes);
                    claims.set(step.index, Claim { object, weak, ..claim() });
                }
            }
            before = &again.under;
        }
    }
}

/// Returns true if both steps read the same bytes at the same place of a file.
fn reads_alike(one: &Step<'_>, other: &Step<'_>) -> bool {
    let read = |step: &Step<'_>| {
        let moved = step.moved.filter(|moved| moved.line.way == Way::In)?;
        Some((moved.fd?, step.observed.arg(moved.line.at?), moved.got.filter(|got| *got > 0)?))
    };
    let (bytes, of_other) =
        (one.observed.call.arg_data(1, Moment::Exit), other.observed.call.arg_data(1, Moment::Exit));
    let are_equal = bytes.zip(of_other).is_some_and(|(bytes, of_other)| bytes.bytes == of_other.bytes);
    are_equal && read(one).is_some() && read(one) == read(other)
}

/// Returns the range that a call locks or unlocks: the whole file if the call does not say, or does not count from its
/// start.
fn range(step: &Step<'_>) -> Range {
    // `struct flock`: two 16-bit words, then the start and the length; a length of 0 reaches to the end.
    let Some(flock) = step.observed.data(2, Moment::Entry).filter(|data| data.get(2..4) == Some(&[0, 0])) else {
        return WHOLE;
    };
    match word_at(flock, 8).zip(word_at(flock, 16)) {
        Some((from, 0)) => (from, u64::MAX),
        Some((from, length)) => (from, from.saturating_add(length - 1)),
        None => WHOLE,
    }
}

impl Detector for Relock {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut locks: Map<Locked<'_>, Held> = Map::default();
        for (at, step) in steps.iter().enumerate() {
            if step.lets(Barrier::FORKED) {
                return;
            }
            if let Some(lock) = step.line::<FileLock>() {
                let is_wanted = self.wanted.contains(&step.observed.call.fd);
                if step.observed.call.errno().is_some() || claims.excuse(at, ReasonId::LockIsWanted, is_wanted) {
                    continue;
                }
                let held = locks.entry(Locked::of(step)).or_default();
                held.fd = step.observed.descriptor(0);
                if lock.leaves {
                    held.leaves(at, range(step));
                } else {
                    held.takes(at, range(step), claims);
                }
                continue;
            }
            for (locked, held) in &mut locks {
                let closes = step.lets_go(held.fd);
                let lets_in = step.lets(Barrier::TAKES_LONG) && !claims.is_off(ReasonId::LetsOthersIn);
                if lets_in || closes && matches!(locked, Locked::Descriptor(_)) {
                    held.let_in |= lets_in && held.left.is_some();
                    held.breaks();
                } else if closes && held.under.is_some() {
                    held.leaves(at, WHOLE);
                } else if !closes && !locked.is_reopened_by(step) {
                    held.others(at);
                }
            }
        }
        for mut held in locks.into_values().filter(|held| held.again.len() >= AGAIN) {
            held.ends();
            held.claim(steps, claims);
        }
    }
}

fn claim() -> Claim {
    Claim {
        facts: Fact::Relock.into(),
        gives_up: "others wait longer for the file",
        ..Claim::of(
            Kind::Toggle,
            "a lock of a file, which nobody else was seen to want",
            "take the lock once for many of them",
        )
    }
}
