//! Children, and threads that end, that are waited for one after another.

use super::ends::{Ends, WaitClass};
use super::least::MOSTLY;
use super::path::{WallPart, waited_for};
use super::threads::{SLACK_NS, ThreadId, Threads, name_of, pid_of};
use crate::collections::sums::Sums;
use std::collections::BTreeMap;
use systoll_model::{FrameId, Recording, RowId};

/// The calls that wait for a child's end.
pub(super) const CHILDS_END: [&str; 2] = ["wait4", "waitid"];

/// A child, or a thread that ended, that was waited for: its end, or something that it did.
struct Awaited {
    child: ThreadId,
    /// Its start; of a thread the begin of its first long wait.
    start_ns: u64,
    /// End of the last wait for it.
    until_ns: u64,
    waited_ns: u64,
    /// The script's line that waited, if it is known.
    line: Option<FrameId>,
}

/// Waits for children, or for threads, of which each begins when the one before it was waited for.
pub(super) struct InTurn {
    pub(super) row: RowId,
    /// True if they are threads of the process.
    pub(super) threads: bool,
    /// Number of the children.
    pub(super) children: u64,
    /// Time that all but the longest of the waits took, ns.
    pub(super) ns: u64,
    /// Scripts' lines that waited, with the number of children of which it is known.
    pub(super) lines: BTreeMap<FrameId, u64>,
}

/// Returns the rows whose waits are for children, or for threads, if each begins when the one before it was waited for and
/// mostly waits itself meanwhile. Whether a child needs what the one before it did is not known.
pub(super) fn in_turn(recording: &Recording, threads: &Threads<'_>, ends: &Ends) -> Vec<InTurn> {
    let mut of_rows: BTreeMap<RowId, Vec<Awaited>> = BTreeMap::new();
    for (at, span) in recording.wait_spans.spans.iter().enumerate() {
        let Some(child) = ends.get(at).by else { continue };
        let start_ns = match child.pid == span.pid {
            true => threads.first_wait_ns(child).filter(|_| threads.has_ended(child)),
            false => {
                threads.life(child.pid).filter(|_| threads.is_child(child.pid, span.pid)).map(|life| life.start_ns)
            }
        };
        let Some(start_ns) = start_ns else { continue };
        let of_row = of_rows.entry(span.row).or_default();
        match of_row.last_mut().filter(|last| last.child == child) {
            Some(last) => {
                last.until_ns = span.end_ns();
                last.waited_ns = last.waited_ns.saturating_add(span.ns);
            }
            None => {
                let (until_ns, waited_ns) = (span.end_ns(), span.ns);
                of_row.push(Awaited { child, start_ns, until_ns, waited_ns, line: span.line });
            }
        }
    }
    let in_turn = |(row, children): (RowId, Vec<Awaited>)| {
        let of_process = recording.rows.get(row.0 as usize).and_then(|row| pid_of(recording, row.process));
        let threads_of_it = children.iter().all(|child| Some(child.child.pid) == of_process);
        let is_later = |two: &&[Awaited]| matches!(two, [a, b] if b.start_ns.saturating_add(SLACK_NS) >= a.until_ns);
        let (all, later) = (children.len(), children.windows(2).filter(is_later).count() + 1);
        let mostly = |n: usize| n as f64 >= MOSTLY * all as f64;
        // One that is waited for again and again, by turns with others, would have its own waits read each time.
        if !mostly(later) {
            return None;
        }
        let idles = |child: &&Awaited| {
            let idle = idle_ns(recording, threads, ends, child.child, (child.start_ns, child.until_ns));
            idle as f64 >= MOSTLY * child.until_ns.saturating_sub(child.start_ns) as f64
        };
        let idle = children.iter().filter(idles).count();
        let sum = children.iter().fold(0u64, |sum, child| sum.saturating_add(child.waited_ns));
        let longest = children.iter().map(|child| child.waited_ns).max().unwrap_or(0);
        let lines = Sums::of(children.iter().filter_map(|child| Some((child.line?, 1))));
        mostly(idle).then_some(InTurn { row, threads: threads_of_it, children: all as u64, ns: sum - longest, lines })
    };
    of_rows.into_iter().filter_map(in_turn).collect()
}

/// Returns the script's line that first waited for each child, by process id, where it is known.
pub(super) fn awaited_at(recording: &Recording, threads: &Threads<'_>, ends: &Ends) -> BTreeMap<u32, FrameId> {
    let mut lines = BTreeMap::new();
    for (at, span) in recording.wait_spans.spans.iter().enumerate() {
        // A child that only lets time pass is waited for as the clock is.
        let is_of_clock = ends.get(at).class == WaitClass::Clock && CHILDS_END.contains(&name_of(recording, span.row));
        let Some(line) = span.line.filter(|_| is_of_clock || ends.get(at).class == WaitClass::Process) else {
            continue;
        };
        // Who reads the output of its only child waits for it, whatever it was that ended the wait.
        let only = || Some(threads.descendants(span)).filter(|pids| pids.len() == 1)?.pop_first();
        let of_call = || span.result.filter(|_| is_of_clock).and_then(|child| u32::try_from(child).ok());
        let by = ends.get(at).by.map(|by| by.pid).or_else(of_call).or_else(only);
        if let Some(child) = by.filter(|pid| threads.is_child(*pid, span.pid)) {
            lines.entry(child).or_insert(line);
        }
    }
    lines
}

/// Returns the time between two moments in which a thread waited, and whom it waited for as far as that is known, ns: but for the
/// disk, a processor and the kernel, which they may keep busy, for another process of the run, which may hold a lock that they
/// share, and for a program that only lets time pass, which is started for the pace.
fn idle_ns(recording: &Recording, threads: &Threads<'_>, ends: &Ends, thread: ThreadId, times: (u64, u64)) -> u64 {
    let busy = [WaitClass::Disk, WaitClass::Processor, WaitClass::Kernel, WaitClass::Process];
    let is_paced =
        |part: &WallPart| part.class == WaitClass::Clock && CHILDS_END.contains(&name_of(recording, part.row));
    let waited = waited_for(recording, threads, ends, thread, times).into_iter();
    let idle = waited.filter(|part| !busy.contains(&part.class) && !is_paced(part));
    idle.fold(0, |sum, part| sum.saturating_add(part.ns))
}
