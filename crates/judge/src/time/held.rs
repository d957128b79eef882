//! Locks whose holders wait for something else.

use super::ends::{Ends, WaitClass};
use super::least::MOSTLY;
use super::threads::name_of;
use std::collections::{BTreeMap, BTreeSet};
use systoll_model::{Recording, Row, WaitSpan};

/// Part of a lock's wait, 0 to 1, for which its holder waits for something else.
const HOLDER_WAITS: f64 = 0.5;
/// Time from the end of a holder's wait to the end of the wait for its lock, ns, at most: the holder gives the lock back at
/// once.
const HANDED_ON_NS: u64 = 2_000_000;
/// Waits before a lock's that may be its holders', at most.
const MOST_OTHERS: usize = 64;
/// Waits at one word that end within this time, ns, were ended together, as those at a barrier are.
const TOGETHER_NS: u64 = 500_000;
/// Value of a lock's word with which a thread waits: locked, with waiters (glibc's, Rust's and Go's mutexes).
const CONTENDED: u64 = 2;

/// A word of a process at which threads wait.
type Word = (u32, u64);
/// Stands for the word of every lock of a process's Java code: each thread waits for these at a word of its own, and the last
/// holder wakes it.
const OF_JAVA: u64 = u64::MAX;
/// The function of Java's machine in which a thread waits for `synchronized`, and for what [`NO_LOCK`] names.
const PARKS: &str = "os::PlatformEvent::park";
/// Java's method in which a thread waits for a lock of `java.util.concurrent.locks`, and for what [`NO_LOCK`] names.
const ACQUIRES: &str = "java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire";
/// Beginnings of the names of Java's methods that wait for a condition, for time to pass, and for what many may have at once.
const NO_LOCK: [&str; 3] = [
    "java.lang.Object.wait",
    "java.lang.Thread.sleep",
    "java.util.concurrent.locks.AbstractQueuedSynchronizer.acquireShared",
];

/// The locks among the words at which threads wait.
pub(super) struct Locks {
    /// Threads that wait at each word that may be a lock's.
    waiters: BTreeMap<Word, BTreeSet<u32>>,
    /// For each row, whether its waits are for locks of Java code.
    of_java: Vec<bool>,
}

impl Locks {
    pub(super) fn of(recording: &Recording, ends: &Ends) -> Self {
        let of_java = recording.rows.iter().map(|row| waits_for_java(recording, row)).collect();
        let mut locks = Self { waiters: BTreeMap::new(), of_java };
        let mut waiters: BTreeMap<Word, BTreeSet<u32>> = BTreeMap::new();
        let mut last: BTreeMap<Word, Vec<(u64, u32)>> = BTreeMap::new();
        let spans = recording.wait_spans.spans.iter().enumerate();
        for (_, span) in
            spans.filter(|(at, span)| is_futex(recording, span) && ends.get(*at).class == WaitClass::Thread)
        {
            waiters.entry(locks.word(span)).or_default().insert(span.tid);
            last.entry(locks.word(span)).or_default().push((span.end_ns(), span.tid));
        }
        // A lock is handed from one thread to the next: waits for it rarely end together, as waits at a barrier do.
        let is_lock = |word: &Word| {
            let mut ended = last.get(word).cloned().unwrap_or_default();
            ended.sort_unstable();
            let together =
                ended.windows(2).filter(|two| matches!(two, [a, b] if b.0 - a.0 < TOGETHER_NS && a.1 != b.1));
            together.count() as f64 <= (1.0 - MOSTLY) * ended.len() as f64
        };
        waiters.retain(|word, threads| threads.len() > 1 && is_lock(word));
        locks.waiters = waiters;
        let mut held: BTreeMap<Word, (u64, u64)> = BTreeMap::new();
        for (at, span) in recording.wait_spans.spans.iter().enumerate() {
            if is_futex(recording, span) && locks.waiters.contains_key(&locks.word(span)) {
                let (all, by_holder) = held.entry(locks.word(span)).or_default();
                *all += 1;
                *by_holder += u64::from(locks.held_ns(recording, ends, at).is_some());
            }
        }
        let mostly = |word: &Word| held.get(word).is_some_and(|(all, by)| *by as f64 >= MOSTLY * *all as f64);
        locks.waiters.retain(|word, _| mostly(word));
        locks
    }

    /// Returns true if a wait is one for a lock.
    pub(super) fn is_lock(&self, recording: &Recording, at: usize) -> bool {
        let Some(span) = recording.wait_spans.spans.get(at) else { return false };
        is_file_lock(recording, span) || is_futex(recording, span) && self.waiters.contains_key(&self.word(span))
    }

    /// Returns true if a futex wait is one for a lock, or if another thread ended it: it may be one then.
    fn may_be_for_lock(&self, ends: &Ends, at: usize, span: &WaitSpan) -> bool {
        ends.get(at).class != WaitClass::Clock || self.has_locks_word(span)
    }

    /// Returns true if a futex wait's word is a lock's, by its value or by who waits there.
    fn has_locks_word(&self, span: &WaitSpan) -> bool {
        span.args[2] as u32 as u64 == CONTENDED || self.word(span).1 == OF_JAVA
    }

    fn word(&self, span: &WaitSpan) -> Word {
        let is_of_java = self.of_java.get(span.row.0 as usize) == Some(&true);
        (span.pid, if is_of_java { OF_JAVA } else { span.args[0] })
    }

    /// Returns the time of a lock's wait for which its holders waited for something other than a lock, ns, if that was most
    /// of the wait. Holders are threads that take the lock too, and whose own wait ended right before they handed it on.
    pub(super) fn held_ns(&self, recording: &Recording, ends: &Ends, at: usize) -> Option<u64> {
        let spans = &recording.wait_spans.spans;
        let span = spans.get(at)?;
        let of_file = is_file_lock(recording, span);
        let (by, waiters) = (ends.get(at).by, self.waiters.get(&self.word(span)));
        let later = spans.partition_point(|other| other.begin_ns < span.end_ns());
        let (mut handed_on, mut held) = (span.end_ns(), 0);
        for (at, other) in spans.iter().enumerate().take(later).rev().take(MOST_OTHERS) {
            // A wait for another lock is no reason: its holder is.
            let is_of_lock =
                is_file_lock(recording, other) || is_futex(recording, other) && self.may_be_for_lock(ends, at, other);
            let waits = !matches!(ends.get(at).class, WaitClass::Processor | WaitClass::Kernel) && !is_of_lock;
            let is_holder = if of_file {
                other.pid != span.pid && ends.users.lockers.contains(&other.pid)
            } else {
                let is_waker = by.is_some_and(|by| (by.pid, by.tid) == (other.pid, other.tid));
                let takes_it = waiters.is_some_and(|threads| threads.contains(&other.tid));
                let may_be = other.pid == span.pid && other.tid != span.tid;
                // Who handed it to the last holder had it before.
                let is_known = self.has_locks_word(span) || handed_on < span.end_ns();
                may_be && takes_it && (is_known || is_waker)
            };
            let at_end = other.end_ns() <= handed_on && other.end_ns().saturating_add(HANDED_ON_NS) >= handed_on;
            if waits && is_holder && at_end {
                held += other.end_ns().saturating_sub(other.begin_ns.max(span.begin_ns));
                handed_on = other.begin_ns;
            }
            if handed_on <= span.begin_ns {
                break;
            }
        }
        let held = held.min(span.ns);
        (held as f64 >= HOLDER_WAITS * span.ns as f64).then_some(held)
    }
}

/// Returns true if a row's waits are for locks of Java code.
fn waits_for_java(recording: &Recording, row: &Row) -> bool {
    let has = |name: &str| recording.row_frames(row).any(|frame| frame.function().starts_with(name));
    row.syscall.name() == Some("futex") && (has(ACQUIRES) || has(PARKS)) && !NO_LOCK.into_iter().any(has)
}

fn is_futex(recording: &Recording, span: &WaitSpan) -> bool {
    name_of(recording, span.row) == "futex"
}

fn is_file_lock(recording: &Recording, span: &WaitSpan) -> bool {
    matches!(name_of(recording, span.row), "flock" | "fcntl")
}
