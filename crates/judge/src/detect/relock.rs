//! Detects locks on files that are released and taken again right away.

use super::claim::{Claim, Claims, Detector, put};
use crate::fact::Fact;
use crate::finding::Kind;
use crate::hash::{Map, Set};
use crate::replay::Step;
use crate::semantics::Semantics;
use crate::signs::Signs;
use std::sync::Arc;
use systoll_model::{Errno, Process, Recording, WindowCall};

/// Least number of times in a window that a lock is released and taken again.
const AGAIN: usize = 3;
/// Largest number of other calls between releasing and taking: with more, the program does something else in between.
const BETWEEN: usize = 2;
/// Largest number of other calls under the lock: with more, the lock guards a piece of work, after which it is fair
/// to let others in.
const UNDER: usize = 8;

/// Number of calls among which one that waited is chance: the thread lost its processor during the call.
const CHANCE: u64 = 64;

/// Claims releasing a lock and taking it again, with nothing in between that could wait for others, if no other
/// process was seen to want it.
pub(super) struct Relock {
    /// Files that more than one process locks, or for whose lock a thread had to wait; `None` for files without a
    /// name.
    wanted: Set<Option<Arc<str>>>,
}

impl Relock {
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        if !recording.rows.iter().any(|row| semantics.lines_of(row.syscall).may_lock()) {
            return Self { wanted: Set::default() };
        }
        let mut files: Map<Option<&str>, Lockers> = Map::default();
        for window in &recording.windows {
            let process = recording.processes.get(window.process.0 as usize);
            let several = process.is_none_or(Process::is_many);
            for call in window.calls.iter().filter(|c| semantics.lines_of(recording.row(c.row).syscall).may_lock()) {
                let of_file = files.entry(call.fd.as_deref()).or_default();
                let first = *of_file.first.get_or_insert(window.process.0);
                of_file.looks += 1;
                of_file.waited += u64::from(call.waited_ns.is_some_and(|ns| ns > 0));
                of_file.contend |= several || first != window.process.0 || was_refused(call);
            }
        }
        let wanted = files.into_iter().filter(|(_, file)| file.contend || file.waited * CHANCE > file.looks);
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
    waited: u64,
}

/// Returns true if the call was refused since another process held the lock.
fn was_refused(call: &WindowCall) -> bool {
    [Some(Errno::EAGAIN), Some(Errno::EACCES)].contains(&call.errno())
}

/// The lock of a descriptor.
#[derive(Default)]
struct Held {
    /// Number of calls since the lock was taken, if it is held.
    under: Option<usize>,
    /// The index of the call that released the lock, and the number of calls since.
    left: Option<(usize, usize)>,
    /// Indices of the calls that released the lock and took it again.
    again: Vec<(usize, usize)>,
}

impl Held {
    fn others(&mut self) {
        self.under = self.under.map(|calls| calls + 1);
        self.left = self.left.map(|(at, calls)| (at, calls + 1));
    }

    fn takes(&mut self, at: usize) {
        let left = self.left.take().filter(|(_, calls)| *calls <= BETWEEN);
        self.again.extend(left.map(|(left, _)| (left, at)));
        self.under.get_or_insert(0);
    }

    fn leaves(&mut self, at: usize) {
        let short = self.under.take().is_some_and(|calls| calls <= UNDER);
        self.left = short.then_some((at, 0));
    }
}

impl Detector for Relock {
    fn looks_for(&self) -> Signs {
        Signs::LOCKS
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut locks: Map<i32, Held> = Map::default();
        for (at, step) in steps.iter().enumerate() {
            if step.forks {
                return;
            }
            if let Some(lock) = step.lines.file_lock(&step.observed) {
                if step.observed.call.errno().is_some() || self.wanted.contains(&step.observed.call.fd) {
                    continue;
                }
                let held = locks.entry(step.observed.descriptor(0)).or_default();
                if lock.leaves {
                    held.leaves(at);
                } else {
                    held.takes(at);
                }
                continue;
            }
            for (fd, held) in &mut locks {
                held.others();
                if lets_in(step) || step.lets_go(*fd) {
                    (held.under, held.left) = (None, None);
                }
            }
        }
        for held in locks.into_values().filter(|held| held.again.len() >= AGAIN) {
            for step in held.again.iter().flat_map(|(left, taken)| [left, taken]).filter_map(|at| steps.get(*at)) {
                let object = step.observed.call.fd.as_deref().map(|file| claims.object(file));
                put(claims, step.index, Claim { object, ..claim() });
            }
        }
    }
}

/// Returns true if the program waited, or received data from outside: the next call may come much later.
fn lets_in(step: &Step<'_>) -> bool {
    let from_outside = |m: crate::replay::Moved| {
        m.line.way == crate::semantics::Way::In
            && !step.observed.call.fd.as_deref().is_some_and(|file| file.starts_with('/'))
    };
    step.pauses && step.moved.is_none() || step.look.is_some_and(|l| l.sleeps) || step.moved.is_some_and(from_outside)
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
