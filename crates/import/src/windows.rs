//! Windows of a trace: its first calls all of them, later ones by octaves of their row's count.
//!
//! The same rules as for a program that is watched, but for two things: looking costs it nothing, so no budget refuses
//! a window, and the first calls are kept whole, as one trace of them.

use crate::table::Counted;
use systoll_model::{ProcessId, Random, RowId, Window, WindowCall};

/// Calls of a trace that are kept whatever their row: the first so many.
const COVERED: usize = 32_768;
/// Calls in one of these windows. Some answers hold only within one.
const COVERED_CALLS: usize = 256;
/// Calls in another window.
const CALLS: usize = 32;
/// Windows kept of each row, beside those: the first, the newest, two of the newest octave.
const KEPT_PER_ROW: usize = 8;
/// Windows kept of all rows, beside those.
const KEPT: usize = 2_048;
/// Octaves from this one on get two windows: the newest octave is half the row.
const TWO_FROM: u32 = 5;

/// A window that is being filled.
struct Open {
    process: ProcessId,
    row: RowId,
    octave: u8,
    covers: bool,
    calls: Vec<WindowCall>,
    /// When it was opened, among all.
    order: u64,
}

struct Kept {
    window: Window,
    order: u64,
    covers: bool,
}

#[derive(Clone, Debug, Default)]
struct OfRow {
    /// Calls at which windows are to open in this octave, ascending.
    picks: Vec<u64>,
    /// Windows kept, oldest first, by their place.
    kept: Vec<usize>,
}

/// All windows.
pub(crate) struct Windows {
    random: Random,
    /// By a thread's ordinal.
    open: Vec<Option<Box<Open>>>,
    kept: Vec<Option<Kept>>,
    free: Vec<usize>,
    rows: Vec<OfRow>,
    covered: usize,
    /// Windows kept beside those that cover.
    beside: usize,
    pub(crate) opened: u64,
}

impl Windows {
    /// None yet.
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
    pub(crate) fn wants(&mut self, process: ProcessId, thread: u32, counted: Counted) -> bool {
        let due = self.due(counted);
        let at = thread as usize;
        if self.open.len() <= at {
            self.open.resize_with(at + 1, || None);
        }
        // A window is one image's.
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

    /// The thread's last call turns out to have waited so long, if it is the `nth` of `row`.
    pub(crate) fn waited(&mut self, thread: u32, counted: Counted, ns: u64) {
        let open = self.open.get_mut(thread as usize).and_then(Option::as_mut);
        let last = open.and_then(|open| open.calls.last_mut());
        if let Some(call) = last.filter(|call| (call.row, call.nth) == (counted.row, counted.nth)) {
            (call.elapsed_ns, call.waited_ns) = (ns, Some(ns));
        }
    }

    /// Ends what is open of a thread.
    pub(crate) fn close(&mut self, thread: u32) {
        let Some(open) = self.open.get_mut(thread as usize).and_then(Option::take) else { return };
        if open.calls.is_empty() {
            return;
        }
        let Open { process, row, octave, covers, calls, order } = *open;
        self.keep(Kept { window: Window { process, thread, row, octave, calls }, order, covers });
    }

    /// All windows in the order they were opened, and whether every call is in one of them.
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
    fn due(&mut self, counted: Counted) -> bool {
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
        // A place passed while another window was open is made up for at once.
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

    /// Returns the row's window that tells least: never the first; the older of two in an octave already past; else the
    /// oldest, whose octave is the smallest part of the row.
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
            // A row's list has only those beside.
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
            if windows.wants(ProcessId(0), 0, Counted { row: RowId(0), nth }) {
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
            assert!(windows.wants(ProcessId(image), 0, Counted { row: RowId(0), nth }));
            windows.add(0, call(0, nth));
        }
        let lengths: Vec<usize> = windows.finish().iter().map(|w| w.calls.len()).collect();
        assert_eq!(lengths, [2, 1]);
    }
}
