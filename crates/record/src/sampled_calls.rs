//! The sampled calls of which a script's line is known, until it is known how long they took.

use std::collections::{HashMap, VecDeque};
use systoll_model::FrameId;
use systoll_symbols::RawFrame;

/// Calls of a row, at most; the newest are kept.
const MOST_OF_ROW: usize = 64;
/// Mean time of a row's calls, ns, from which on its calls are sampled one after another: a sample takes some 60 microseconds.
const WAITING_NS: f64 = 200_000.0;
/// Calls of a waiting row that are sampled one after another until it is known whether lines share it.
const OF_OTHERS: u64 = 8;
/// Calls of a waiting row that lines share which are sampled one after another.
const OF_SHARED: u64 = 32;
/// Calls of all rows, at most.
const MOST: usize = 16_384;

/// A sampled call: its thread's id, its number among the thread's calls at the row, and the line that made it.
#[derive(Clone, Copy, Debug)]
struct SampledCall {
    tid: u32,
    nth: u64,
    line: RawFrame,
}

/// The sampled calls of a row.
#[derive(Clone, Debug, Default)]
struct OfRow {
    calls: VecDeque<SampledCall>,
    /// Number of calls that were asked for one after another, whether or not their stacks had a line.
    asked: u64,
    /// True if the program's own parts wait in turns at the row, each at another line, wherever the thread's stack leads.
    has_lines: bool,
}

/// The sampled calls so far, and the lines of those that waited for long.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampledCalls {
    of_row: HashMap<u32, OfRow>,
    kept: usize,
    lines: Vec<RawFrame>,
}

impl SampledCalls {
    /// Notes that a row's calls wait for whatever the program lets wait: each call may be for another line.
    pub(crate) fn expect_lines(&mut self, row: u32) {
        self.of_row.entry(row).or_default().has_lines = true;
    }

    /// Adds a sampled call of a row.
    pub(crate) fn note(&mut self, row: u32, tid: u32, nth: u64, line: RawFrame) {
        let calls = &mut self.of_row.entry(row).or_default().calls;
        if calls.len() == MOST_OF_ROW {
            calls.pop_front();
        } else if self.kept == MOST {
            return;
        } else {
            self.kept += 1;
        }
        calls.push_back(SampledCall { tid, nth, line });
    }

    /// Asks for a row's next call, and returns true, if it is to be sampled as well: the calls so far took `mean_ns` as a
    /// mean. Which of them waited is not known beforehand; where lines share the row, only samples of those tell which line
    /// waits.
    pub(crate) fn ask_for_next(&mut self, row: u32, is_shared: bool, mean_ns: impl FnOnce() -> f64) -> bool {
        let Some(of_row) = self.of_row.get_mut(&row) else { return false };
        let most = if is_shared || of_row.has_lines { OF_SHARED } else { OF_OTHERS };
        if of_row.asked >= most {
            return false;
        }
        let asks = mean_ns() >= WAITING_NS;
        of_row.asked += u64::from(asks);
        asks
    }

    /// Returns the number of a row's calls that were asked for one after another.
    pub(crate) fn asked_of(&self, row: u32) -> u64 {
        self.of_row.get(&row).map_or(0, |of| of.asked)
    }

    /// Returns the line of a call, if it was sampled, as its place in [`Self::lines`].
    pub(crate) fn line_of(&mut self, row: u32, tid: u32, nth: u64) -> Option<FrameId> {
        let mut calls = self.of_row.get(&row)?.calls.iter().rev();
        let line = calls.find(|call| (call.tid, call.nth) == (tid, nth))?.line;
        let known = self.lines.iter().position(|other| *other == line);
        let at = known.unwrap_or_else(|| {
            self.lines.push(line);
            self.lines.len() - 1
        });
        u32::try_from(at).ok().map(FrameId)
    }

    /// Returns the lines of calls that waited for long: some are on no thread's stack.
    pub(crate) fn lines(&self) -> &[RawFrame] {
        &self.lines
    }

    /// Returns the line at a place that [`Self::line_of`] returned.
    pub(crate) fn line(&self, at: FrameId) -> Option<RawFrame> {
        self.lines.get(at.0 as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_by_its_thread_and_number_while_it_is_among_the_newest() {
        let mut calls = SampledCalls::default();
        let line = |nth: u64| RawFrame { module: None, address: nth, is_return: false };
        for nth in 1..=MOST_OF_ROW as u64 + 1 {
            calls.note(3, 7, nth, line(nth));
        }
        let last = calls.line_of(3, 7, MOST_OF_ROW as u64 + 1).unwrap();
        assert_eq!(calls.line(last), Some(line(MOST_OF_ROW as u64 + 1)));
        assert_eq!([calls.line_of(3, 7, 1), calls.line_of(3, 8, 9), calls.line_of(4, 7, 9)], [None; 3]);
        for row in 10..MOST as u32 + 20 {
            calls.note(row, 1, 1, line(1));
        }
        assert!(calls.kept <= MOST && calls.of_row.values().map(|of| of.calls.len()).sum::<usize>() == calls.kept);
    }

    #[test]
    fn calls_are_asked_for_a_limited_number_of_times_whatever_their_stacks_show() {
        let mut calls = SampledCalls::default();
        let asked = |calls: &mut SampledCalls, is_shared, ns: f64| {
            (0..100).filter(|_| calls.ask_for_next(3, is_shared, || ns)).count() as u64
        };
        // Nothing is known of a row before one of its calls was sampled.
        assert_eq!(asked(&mut calls, false, 1e6), 0);
        calls.note(3, 7, 1, RawFrame { module: None, address: 1, is_return: false });
        assert_eq!(asked(&mut calls, false, 1e3), 0);
        assert_eq!([asked(&mut calls, false, 1e6), asked(&mut calls, true, 1e6)], [OF_OTHERS, OF_SHARED - OF_OTHERS]);
        assert_eq!((asked(&mut calls, true, 1e6), calls.asked_of(3)), (0, OF_SHARED));
    }
}
