//! The thread that holds a run up, followed from the run's end to its beginning: that which ended the first process, and
//! where that waits for another watched thread, that one.

use super::ends::{Ends, WaitClass, WaitEnd};
use super::least::LEAST_WAITS;
use super::threads::{ThreadId, Threads};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use systoll_model::{FrameId, Recording, RowId};

/// Depth to which waits for other threads are followed, at most.
const DEPTH: usize = 8;
/// Waits that are visited before no further thread is followed: waits of several threads for each other could be followed
/// without end, and waits that overlap, which only a hostile recording has, are visited again each time.
const MOST_VISITED: usize = 1 << 18;
/// Number of waits that are visited for one child, at most: a run may have many children.
const MOST_VISITED_FOR_ONE: usize = 1 << 14;

/// Time of the run that one row's waits of one class hold up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WallPart {
    /// What ended the waits.
    pub class: WaitClass,
    /// The row of the calls that waited.
    pub row: RowId,
    /// Number of waits.
    pub calls: u64,
    /// Elapsed time of the run, ns.
    pub ns: u64,
    /// The longest of the waits, ns.
    pub longest_ns: u64,
    /// The script's line that most of the time was waited at, as far as the waits' stacks were sampled.
    pub line: Option<FrameId>,
    /// True if what was sampled of the row's waits does not stand for these: the row's lines are those of other waits.
    pub unsampled: bool,
    /// True if several lines share the call: number and time are this line's by its part of the sampled waits.
    pub shared: bool,
    /// True if the time by which systoll prolonged what was waited for is taken off: times are estimates then.
    pub corrected: bool,
}

/// What ended one long wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedWait {
    /// The class of what ended it.
    pub class: WaitClass,
    /// Process id and thread id of the thread that ended it, if it is known.
    pub by: Option<(u32, u32)>,
}

/// Where the elapsed time of a run went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WallTime {
    /// Elapsed time of the run, ns: the sum of all parts and of `other_ns`.
    pub wall_ns: u64,
    /// Time in which the thread that held the run up ran, waited for a processor or for systoll, or waited for less than
    /// a millisecond at a time, ns.
    pub other_ns: u64,
    /// The part of `other_ns` in which it ran, ns: at most the processor time of its process.
    pub running_ns: u64,
    /// The part of `other_ns` in which it waited for systoll's own work, or for processes that systoll held up, ns.
    pub systoll_ns: u64,
    /// The part of `other_ns` in which it was ready to run and waited for a processor, ns, at least.
    pub queued_ns: u64,
    /// The long waits, longest first.
    pub parts: Vec<WallPart>,
    /// What ended each of the recording's long waits, in their order.
    pub ends: Vec<EndedWait>,
    /// False if some long waits are not known one by one: the parts are then too short, and `other_ns` is too long.
    pub is_complete: bool,
}

impl WallTime {
    /// Returns the time of all long waits, ns.
    #[must_use]
    pub fn waited_ns(&self) -> u64 {
        self.wall_ns.saturating_sub(self.other_ns)
    }

    /// Returns the part of `other_ns` that is none of its known parts, ns: waits of less than a millisecond, and for a
    /// processor.
    #[must_use]
    pub fn brief_ns(&self) -> u64 {
        self.other_ns.saturating_sub(self.running_ns).saturating_sub(self.systoll_ns).saturating_sub(self.queued_ns)
    }

    /// Returns the time waited for each class, longest first.
    #[must_use]
    pub fn by_class(&self) -> Vec<(WaitClass, u64)> {
        let mut sums: BTreeMap<WaitClass, u64> = BTreeMap::new();
        for part in &self.parts {
            *sums.entry(part.class).or_default() += part.ns;
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(class, ns)| (Reverse(*ns), *class));
        sums
    }
}

/// Returns where the elapsed time of a run went.
pub(super) fn wall_time(recording: &Recording, threads: &Threads<'_>, ends: &Ends) -> WallTime {
    let wall_ns = recording.header.wall_ns;
    let mut walk = Walk::of(recording, threads, ends);
    let main = recording.processes.first().map_or(0, |process| process.pid);
    // A scheduler of the program's own may end it on another thread than the first: what that did before is followed as far as
    // it is known.
    let (last, since) = threads.last_of(main);
    let since = since.min(wall_ns);
    walk.follow(last, (since, wall_ns), &mut Vec::new());
    walk.follow(ThreadId { pid: main, tid: main }, (0, since), &mut Vec::new());
    let other = Other::of(recording, &walk.others);
    let waiters = walk.waiters;
    let sampled = sampled(recording);
    let mut places: BTreeMap<(WaitClass, RowId), Vec<WallPart>> = BTreeMap::new();
    for part in walk.parts.into_values() {
        places.entry((part.class, part.row)).or_default().push(part);
    }
    let is_of_others =
        |key: &(WaitClass, RowId)| sampled.get(&key.1).zip(waiters.get(key)).is_some_and(|(s, w)| s.is_disjoint(w));
    let lines_of = |key: &(WaitClass, RowId)| match is_of_others(key) {
        true => LinesOf::Others,
        false if has_several_places(recording, key.1) => LinesOf::Several,
        false => LinesOf::All,
    };
    let mut parts: Vec<WallPart> =
        places.into_iter().flat_map(|(key, parts)| of_place(parts, lines_of(&key))).collect();
    let held_up_ns = correct(&mut parts, recording.header.watching_ns.saturating_sub(other.systoll));
    parts.sort_by_key(|part| (Reverse(part.ns), part.row, part.class));
    let ended = |end: &WaitEnd| EndedWait { class: end.class, by: end.by.map(|by| (by.pid, by.tid)) };
    let ends = ends.all.iter().map(ended).collect();
    let (other_ns, systoll_ns) = (other.all + held_up_ns, other.systoll + held_up_ns);
    let Other { running: running_ns, queued: queued_ns, .. } = other;
    let is_complete = recording.wait_spans.is_complete();
    WallTime { wall_ns, other_ns, running_ns, systoll_ns, queued_ns, parts, ends, is_complete }
}

/// Returns the time, ns, between two moments for which a thread, or whom it waited for, waited for each class, longest first.
pub(super) fn waited_for(
    recording: &Recording,
    threads: &Threads<'_>,
    ends: &Ends,
    thread: ThreadId,
    times: (u64, u64),
) -> Vec<WallPart> {
    let mut walk = Walk { visited: MOST_VISITED - MOST_VISITED_FOR_ONE, ..Walk::of(recording, threads, ends) };
    walk.follow(thread, times, &mut Vec::new());
    walk.parts.into_values().collect()
}

/// Takes `watching_ns` of systoll's work off the waits for other processes, which it held up, in proportion to their time.
/// Returns how much of it they had.
fn correct(parts: &mut [WallPart], watching_ns: u64) -> u64 {
    let mut held_up: Vec<&mut WallPart> = parts.iter_mut().filter(|part| part.class == WaitClass::Process).collect();
    let all = held_up.iter().fold(0u64, |sum, part| sum.saturating_add(part.ns));
    let left = 1.0 - watching_ns.min(all) as f64 / all.max(1) as f64;
    if left == 1.0 {
        return 0;
    }
    for part in &mut held_up {
        part.ns = (part.ns as f64 * left) as u64;
        part.longest_ns = (part.longest_ns as f64 * left) as u64;
        part.corrected = true;
    }
    all - held_up.iter().fold(0u64, |sum, part| sum.saturating_add(part.ns))
}

/// Returns the threads of which long waits of a row were sampled, by row.
fn sampled(recording: &Recording) -> BTreeMap<RowId, BTreeSet<ThreadId>> {
    let mut sampled: BTreeMap<RowId, BTreeSet<ThreadId>> = BTreeMap::new();
    for span in recording.wait_spans.spans.iter().filter(|span| span.line.is_some()) {
        sampled.entry(span.row).or_default().insert(ThreadId::of(span));
    }
    sampled
}

/// Time in no long wait, ns, and its parts.
struct Other {
    all: u64,
    running: u64,
    systoll: u64,
    queued: u64,
}

impl Other {
    /// Divides the time in no long wait, by process id, by the processes' processor time. What a process has not run of it,
    /// it waited: for systoll, for a processor, or briefly.
    fn of(recording: &Recording, others: &BTreeMap<u32, u64>) -> Self {
        let (mut cpu, mut queued): (BTreeMap<u32, Option<u64>>, BTreeMap<u32, u64>) = Default::default();
        for process in &recording.processes {
            let ran = process.cpu_ns.filter(|_| !process.is_many());
            let sum = cpu.entry(process.pid).or_insert(Some(0));
            *sum = sum.zip(ran).map(|(sum, ran)| sum.saturating_add(ran));
            let most = queued.entry(process.pid).or_default();
            *most = process.queued_ns.unwrap_or(0).max(*most);
        }
        let all = others.values().fold(0u64, |sum, ns| sum.saturating_add(*ns));
        let ran = |(pid, ns): (&u32, &u64)| cpu.get(pid).copied().flatten().map_or(*ns, |cpu| cpu.min(*ns));
        let running = others.iter().map(ran).fold(0, u64::saturating_add);
        let running = running.min(recording.header.own_cpu_most_ns.unwrap_or(u64::MAX));
        let systoll = recording.header.watching_ns.min(all - running);
        let left = all - running - systoll;
        // Calls are timed whole: what they waited beyond the long waits they waited briefly.
        let waited = recording.rows.iter().map(|row| row.counts.waited_ns.unwrap_or(row.counts.elapsed_ns));
        let long = recording.wait_spans.spans.iter().map(|span| span.ns);
        let long =
            long.chain(recording.wait_spans.dropped.iter().map(|dropped| dropped.ns)).fold(0, u64::saturating_add);
        let brief = waited.fold(0, u64::saturating_add).saturating_sub(long);
        let most = others.keys().filter_map(|pid| queued.get(pid)).fold(0, |sum: u64, ns| sum.saturating_add(*ns));
        Self { all, running, systoll, queued: left.saturating_sub(brief).min(most) }
    }
}

/// Least share of the known time, 0 to 1, of a line that is named for all of a part's waits. With 0.6, of two lines of Python or
/// Ruby that slept 1.0 and 0.5 s by one call, the first was named for 1.5 s in six of six runs.
const NEARLY_ALL: f64 = 0.95;
/// Least share of a part's time, 0 to 1, that was sampled, for several lines to share the rest. Of 536 sleeps of a Go program 37
/// were sampled, and the line with most of their time had slept 0.2 of 1.5 s.
const ENOUGH: f64 = 0.25;
/// Least share of a part's time, 0 to 1, of a few waits for whose line to stand for the others.
const MOST_OF: f64 = 0.6;

/// Waits whose line is known, at least, for that line to stand for all of a part.
const LEAST_KNOWN: u64 = 2;

/// The waits to which the lines of a row belong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinesOf {
    /// To all waits of the row.
    All,
    /// To waits of several lines or threads: any of them may have made a few waits.
    Several,
    /// To other waits.
    Others,
}

/// Returns true if a row's calls come from several lines or callers, as far as samples show, and its context does not tell which.
fn has_several_places(recording: &Recording, id: RowId) -> bool {
    let Some(row) = recording.rows.get(id.0 as usize) else { return false };
    let is_exact = row.user.is_some_and(|user| recording.stack(row.context).frames.contains(&user));
    !is_exact && (row.lines.len() > 1 || recording.trunks_of(id).len() > 1)
}

/// Returns the parts of one row's waits of a class, given by line. If the line of each wait is known, they are as given; if several
/// lines share the waits, each line has its part of the others; else one part has all.
fn of_place(parts: Vec<WallPart>, lines_of: LinesOf) -> Vec<WallPart> {
    if parts.iter().all(|part| part.line.is_some()) {
        return parts;
    }
    if let Some(shared) = by_line(&parts) {
        return shared;
    }
    let is_known = parts.iter().any(|part| part.line.is_some());
    let (line, several) = (most_of(&parts), parts.iter().filter(|part| part.line.is_some()).count() > 1);
    let sum = parts.into_iter().reduce(|sum, part| WallPart {
        calls: sum.calls + part.calls,
        ns: sum.ns.saturating_add(part.ns),
        longest_ns: sum.longest_ns.max(part.longest_ns),
        ..sum
    });
    // The only line that is known of a row stands for many waits, not for a few; where there are several, none does.
    let is_of_few =
        |sum: &WallPart| is_known && several || (is_known || lines_of == LinesOf::Several) && sum.calls < LEAST_WAITS;
    let with_line = |sum: WallPart| {
        let unsampled = line.is_none() && (is_of_few(&sum) || lines_of == LinesOf::Others);
        WallPart { line, unsampled, ..sum }
    };
    sum.map(with_line).into_iter().collect()
}

/// Returns the parts of the lines that share a row's waits, each with its part of those whose line is not known; `None` if one line
/// has nearly all of the known ones, or too few are known.
fn by_line(parts: &[WallPart]) -> Option<Vec<WallPart>> {
    let known = || parts.iter().filter(|part| part.line.is_some());
    let sums = |(calls, ns): (u64, u64), part: &WallPart| (calls + part.calls, ns.saturating_add(part.ns));
    let (all_calls, all) = parts.iter().fold((0, 0), sums);
    let (calls, ns) = known().fold((0, 0), sums);
    let most = known().map(|part| part.ns).max()?;
    if most as f64 >= NEARLY_ALL * ns as f64 || (ns as f64) < ENOUGH * all as f64 {
        return None;
    }
    let scaled = |n: u64, of: u64, all: u64| (n as f64 * all as f64 / of.max(1) as f64).round() as u64;
    let of_line = |part: &WallPart| WallPart {
        calls: scaled(part.calls, calls, all_calls),
        ns: scaled(part.ns, ns, all),
        shared: true,
        ..part.clone()
    };
    Some(known().map(of_line).collect())
}

/// Returns the line with most of the known time of a row's parts. A few known waits stand for the others only if they took
/// most of the time: of two sleeps at two lines one may be sampled.
fn most_of(parts: &[WallPart]) -> Option<FrameId> {
    let all = parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.ns));
    let known = || parts.iter().filter(|part| part.line.is_some());
    let (waits, ns) = known().fold((0, 0u64), |(waits, ns), part| (waits + part.calls, ns.saturating_add(part.ns)));
    let most = known().max_by_key(|part| part.ns)?;
    let stand_for_all = waits >= LEAST_KNOWN || ns as f64 >= MOST_OF * all as f64;
    most.line.filter(|_| stand_for_all && most.ns as f64 >= NEARLY_ALL * ns as f64)
}

struct Walk<'a> {
    recording: &'a Recording,
    threads: &'a Threads<'a>,
    ends: &'a Ends,
    /// Time in no long wait, ns, by process id.
    others: BTreeMap<u32, u64>,
    /// Waits by their line, if it is known.
    parts: BTreeMap<(WaitClass, RowId, Option<FrameId>), WallPart>,
    /// The threads that waited.
    waiters: BTreeMap<(WaitClass, RowId), BTreeSet<ThreadId>>,
    visited: usize,
}

impl<'a> Walk<'a> {
    fn of(recording: &'a Recording, threads: &'a Threads<'a>, ends: &'a Ends) -> Self {
        let (others, parts, waiters) = Default::default();
        Self { recording, threads, ends, others, parts, waiters, visited: 0 }
    }

    /// Adds a thread's time between two moments.
    fn follow(&mut self, thread: ThreadId, (from, to): (u64, u64), held: &mut Vec<ThreadId>) {
        let threads = self.threads;
        let waits = threads.waits(thread);
        let spans = &self.recording.wait_spans.spans;
        let later = waits.partition_point(|at| spans.get(*at).is_some_and(|span| span.begin_ns < to));
        let mut now = to;
        for at in waits.iter().take(later).rev() {
            self.visited += 1;
            let Some(span) = spans.get(*at) else { continue };
            // A signal handler's wait may lie inside another one.
            let (begin, end) = (span.begin_ns.max(from), span.end_ns().min(now));
            if end <= begin {
                if span.end_ns() <= from {
                    break;
                }
                continue;
            }
            *self.others.entry(thread.pid).or_default() += now - end;
            now = begin;
            self.wait(*at, thread, (begin, end), held);
        }
        *self.others.entry(thread.pid).or_default() += now.saturating_sub(from);
    }

    /// Adds a wait between two moments: the time of the thread that ended it, if that is known.
    fn wait(&mut self, at: usize, thread: ThreadId, (begin, end): (u64, u64), held: &mut Vec<ThreadId>) {
        let ended = self.ends.get(at);
        let may_follow = held.len() < DEPTH && self.visited < MOST_VISITED;
        let by = ended.by.filter(|by| may_follow && *by != thread && !held.contains(by));
        let life = by.and_then(|by| Some((by, self.threads.life(by.pid)?)));
        let Some(span) = self.recording.wait_spans.spans.get(at) else { return };
        let unused = if may_follow { self.threads.unused(span, (begin, end)) } else { vec![(begin, end)] };
        let mut waited = unused.iter().fold(0, |sum, (from, to)| sum + (to - from));
        *self.others.entry(thread.pid).or_default() += (end - begin) - waited;
        for (begin, end) in unused {
            let Some((by, life)) = life else {
                // Any of its threads may have begun to run what the scheduler waited for.
                let polls = if may_follow { self.threads.polls(span, (begin, end)) } else { Vec::new() };
                for (poll, (from, to)) in polls {
                    let Some(tid) = self.recording.wait_spans.spans.get(poll).map(|span| span.tid) else { continue };
                    self.visited += 1;
                    held.push(thread);
                    self.wait(poll, ThreadId { pid: thread.pid, tid }, (from, to), held);
                    held.pop();
                    waited -= to - from;
                }
                continue;
            };
            let lived = (life.start_ns.clamp(begin, end), life.end_ns.clamp(begin, end));
            if lived.0 < lived.1 {
                held.push(thread);
                self.follow(by, lived, held);
                held.pop();
                waited -= lived.1 - lived.0;
            }
        }
        if waited == 0 {
            return;
        }
        let (class, row, line) = (ended.class, span.row, span.line);
        let empty = WallPart {
            class,
            row,
            calls: 0,
            ns: 0,
            longest_ns: 0,
            line,
            unsampled: false,
            shared: false,
            corrected: false,
        };
        let part = self.parts.entry((class, row, line)).or_insert(empty);
        self.waiters.entry((class, row)).or_default().insert(thread);
        part.calls += 1;
        part.ns += waited;
        part.longest_ns = part.longest_ns.max(waited);
    }
}
