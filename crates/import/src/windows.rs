//! Keeps windows of a trace: all of its first calls, and later ones by octaves of their row's
//! count.
//!
//! The rules are those for a program that is watched, with two differences: looking costs nothing
//! here, so that no budget refuses a window, and the first calls are all kept.

use crate::table::RowCall;
use systoll_model::{ProcessId, Random, RowId, Window, WindowCall};

/// Number of a trace's first calls that are kept, whatever their row.
const COVERED: usize = 32_768;
/// Number of calls in a window of the first calls. It is large, since some answers hold only within
/// one window.
const COVERED_CALLS: usize = 256;
/// Number of calls in any other window.
const CALLS: usize = 32;
/// Largest number of windows kept of each row, beside the first calls': the first, the newest, and
/// two of the newest octave.
const KEPT_PER_ROW: usize = 8;
/// Largest number of windows kept of all rows, beside the first calls'.
const KEPT: usize = 2_048;
/// First octave that gets two windows: the newest octave is half of the row.
const TWO_FROM: u32 = 5;

/// A window that is being filled.
struct Open {
    process: ProcessId,
    row: RowId,
    octave: u8,
    covers: bool,
    calls: Vec<WindowCall>,
    /// Number of the window in the order of opening.
    order: u64,
}

struct Kept {
    window: Window,
    order: u64,
    covers: bool,
}

#[derive(Clone, Debug, Default)]
struct OfRow {
    /// Numbers of the calls in this octave at which windows are to open, ascending.
    picks: Vec<u64>,
    /// Indices of the windows kept, oldest first.
    kept: Vec<usize>,
}

/// All windows of a trace.
pub(crate) struct Windows {
    random: Random,
    /// The open windows, by their threads' ordinals.
    open: Vec<Option<Box<Open>>>,
    kept: Vec<Option<Kept>>,
    free: Vec<usize>,
    rows: Vec<OfRow>,
    covered: usize,
    /// Number of windows kept beside those of the first calls.
    beside: usize,
    pub(crate) opened: u64,
}

impl Windows {
    /// Returns a set without windows.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            open: Vec::new(),
            kept: Vec::new(),
            free: Vec::new(),
            rows: Vec::new(),
            covered: 0,
            beside: 0,
            opened: 0,
        }
    }

    /// Returns true if the call is to be recorded; a window is then open for it.
    pub(crate) fn wants(&mut self, process: ProcessId, thread: u32, counted: RowCall) -> bool {
        let due = self.due(counted);
        let at = thread as usize;
        if self.open.len() <= at {
            self.open.resize_with(at + 1, || None);
        }
        // A window holds calls of one image only.
        if self.open.get(at).and_then(Option::as_ref).is_some_and(|w| w.process != process) {
            self.close(thread);
        }
        if self.open.get(at).is_some_and(Option::is_some) {
            return true;
        }
        let covers = self.covered < COVERED;
        if !covers && !due {
            return false;
        }
        let octave = counted.nth.max(1).ilog2() as u8;
        let order = self.opened;
        self.opened += 1;
        if let Some(place) = self.open.get_mut(at) {
            *place = Some(Box::new(Open { process, row: counted.row, octave, covers, calls: Vec::new(), order }));
        }
        true
    }

    /// Adds a call that was wanted.
    pub(crate) fn add(&mut self, thread: u32, call: WindowCall) {
        let Some(open) = self.open.get_mut(thread as usize).and_then(Option::as_mut) else { return };
        self.covered += usize::from(open.covers);
        open.calls.push(call);
        if open.calls.len() >= if open.covers { COVERED_CALLS } else { CALLS } {
            self.close(thread);
        }
    }

    /// Notes that the thread's last call waited for `ns`, if it is the call `counted`.
    pub(crate) fn waited(&mut self, thread: u32, counted: RowCall, ns: u64) {
        let open = self.open.get_mut(thread as usize).and_then(Option::as_mut);
        let last = open.and_then(|open| open.calls.last_mut());
        if let Some(call) = last.filter(|call| (call.row, call.nth) == (counted.row, counted.nth)) {
            (call.elapsed_ns, call.waited_ns) = (ns, Some(ns));
        }
    }

    /// Closes the thread's open window.
    pub(crate) fn close(&mut self, thread: u32) {
        let Some(open) = self.open.get_mut(thread as usize).and_then(Option::take) else { return };
        if open.calls.is_empty() {
            return;
        }
        let Open { process, row, octave, covers, calls, order } = *open;
        self.keep(Kept { window: Window { process, thread, row, octave, calls }, order, covers });
    }

    /// Returns all windows in the order of their opening.
    pub(crate) fn finish(mut self) -> Vec<Window> {
        for thread in 0..self.open.len() {
            self.close(thread as u32);
        }
        let mut all: Vec<Kept> = self.kept.into_iter().flatten().collect();
        all.sort_by_key(|k| k.order);
        all.into_iter().map(|k| k.window).collect()
    }

    fn of_row(&mut self, row: RowId) -> Option<&mut OfRow> {
        let at = row.0 as usize;
        if self.rows.len() <= at {
            self.rows.resize_with(at + 1, OfRow::default);
        }
        self.rows.get_mut(at)
    }

    /// Returns true if a place picked for the row has come; picks the next octave's when it begins.
    fn due(&mut self, counted: RowCall) -> bool {
        let octave = counted.nth.max(1).ilog2();
        let start = 1u64 << octave;
        let mut new = Vec::new();
        if counted.nth == start {
            let windows = if octave >= TWO_FROM { 2 } else { 1 };
            new = (0..windows).map(|_| start.saturating_add(self.random.below(start))).collect();
            new.sort_unstable();
            new.dedup();
        }
        let Some(row) = self.of_row(counted.row) else { return false };
        if counted.nth == start {
            row.picks = new;
        }
        // A pick that was passed while another window was open is made up for at once.
        let due = row.picks.first().is_some_and(|at| *at <= counted.nth);
        if due {
            row.picks.remove(0);
        }
        due
    }

    fn keep(&mut self, kept: Kept) {
        let (row, octave, covers) = (kept.window.row, kept.window.octave, kept.covers);
        if !covers {
            let ids = self.of_row(row).map(|r| r.kept.clone()).unwrap_or_default();
            if ids.len() >= KEPT_PER_ROW {
                self.release(row, self.least_telling(&ids, octave));
            } else if self.beside >= KEPT {
                self.drop_any();
            }
            self.beside += 1;
        }
        let at = self.free.pop().unwrap_or(self.kept.len());
        match self.kept.get_mut(at) {
            Some(place) => *place = Some(kept),
            None => self.kept.push(Some(kept)),
        }
        if let Some(row) = self.of_row(row).filter(|_| !covers) {
            row.kept.push(at);
        }
    }

    /// Returns the index of the row's window that tells least. It is never the first. It is the
    /// older of two in an octave already past, or else the oldest, whose octave is the smallest
    /// part of the row.
    fn least_telling(&self, ids: &[usize], newest: u8) -> usize {
        let octave = |at: usize| {
            let kept = ids.get(at).and_then(|id| self.kept.get(*id)).and_then(Option::as_ref);
            kept.map_or(0, |k| k.window.octave)
        };
        (2..ids.len()).find(|&i| octave(i) == octave(i - 1) && octave(i) < newest).unwrap_or(1.min(ids.len() - 1))
    }

    fn drop_any(&mut self) {
        for _ in 0..64 {
            let at = self.random.below(self.kept.len() as u64) as usize;
            let Some(row) = self.kept.get(at).and_then(Option::as_ref).filter(|k| !k.covers).map(|k| k.window.row)
            else {
                continue;
            };
            let place = self.of_row(row).and_then(|r| r.kept.iter().position(|id| *id == at));
            if let Some(place) = place.filter(|place| *place > 0) {
                self.release(row, place);
                return;
            }
        }
    }

    fn release(&mut self, row: RowId, place: usize) {
        let Some(ids) = self.of_row(row).map(|r| &mut r.kept).filter(|ids| place < ids.len()) else { return };
        let at = ids.remove(place);
        if let Some(kept) = self.kept.get_mut(at) {
            *kept = None;
            self.free.push(at);
            // A row's list has no windows of the first calls.
            self.beside -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(row: u32, nth: u64) -> WindowCall {
        WindowCall { row: RowId(row), nth, result: Some(0), ..WindowCall::default() }
    }

    fn go_through(calls: u64) -> Vec<Window> {
        let mut windows = Windows::new(1);
        for nth in 1..=calls {
            if windows.wants(ProcessId(0), 0, RowCall { row: RowId(0), nth }) {
                windows.add(0, call(0, nth));
            }
        }
        windows.finish()
    }

    #[test]
    fn a_short_trace_is_covered_whole() {
        let windows = go_through(10_000);
        let seen: Vec<u64> = windows.iter().flat_map(|w| &w.calls).map(|c| c.nth).collect();
        assert_eq!(seen, (1..=10_000).collect::<Vec<u64>>());
    }

    #[test]
    fn a_long_one_keeps_its_newest_octaves() {
        let windows = go_through(1_000_000);
        let later: Vec<&Window> = windows.iter().filter(|w| w.calls[0].nth > COVERED as u64).collect();
        assert!((4..=KEPT_PER_ROW).contains(&later.len()), "{}", later.len());
        assert!(later.iter().all(|w| w.calls.len() <= CALLS));
        assert_eq!(later.last().map(|w| w.octave), Some(19));
    }

    #[test]
    fn an_image_ends_its_threads_window() {
        let mut windows = Windows::new(1);
        for (image, nth) in [(0, 1), (0, 2), (1, 3)] {
            assert!(windows.wants(ProcessId(image), 0, RowCall { row: RowId(0), nth }));
            windows.add(0, call(0, nth));
        }
        let lengths: Vec<usize> = windows.finish().iter().map(|w| w.calls.len()).collect();
        assert_eq!(lengths, [2, 1]);
    }
}
