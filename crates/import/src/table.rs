//! Counts the calls of a trace exactly, by image, row and thread.

use crate::hash::Map;
use std::sync::Arc;
use systoll_model::{Counts, Errno, Process, ProcessId, Row, RowId, StackId, Sysno, Thread as ThreadRow, ThreadCalls};

/// Largest number of different images kept apart; more are folded by program.
const MAX_IMAGES: usize = 96;
/// Largest number of different rows with a context; further calls go to one row for each system
/// call, without a context.
const MAX_ROWS: usize = 20_000;
/// Largest number of threads kept apart; beyond, an image's threads share one entry.
const MAX_THREADS: usize = 512;

/// The row that counted a call, and the call's number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowCall {
    pub(crate) row: RowId,
    /// Number of the call in its row, from 1.
    pub(crate) nth: u64,
}

/// The result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The call never returned.
    None,
    /// The call returned, and the trace does not tell its result.
    Untold,
    /// The result as in rax.
    Is(i64),
}

/// The end of a call, as its row counts it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) answer: Answer,
    /// True if a positive result counts bytes.
    pub(crate) transfers: bool,
    pub(crate) elapsed_ns: Option<u64>,
    /// Elapsed time that was surely waiting.
    pub(crate) waited_ns: u64,
}

/// The exact counts of a trace.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) images: Vec<Process>,
    folded: Map<Arc<str>, ProcessId>,
    pub(crate) rows: Vec<Row>,
    /// Number of calls of each row, those that never returned included.
    entered: Vec<u64>,
    index: Map<(ProcessId, Sysno, StackId), RowId>,
    threads: Map<(ProcessId, u32), Map<Sysno, ThreadCalls>>,
    pub(crate) rows_folded: bool,
}

impl Table {
    /// Returns an image for a new process or a new program: one of its own, or the one into which
    /// the program's images are folded.
    pub(crate) fn image(&mut self, mut image: Process) -> ProcessId {
        (image.instances, image.threads) = (1, 1);
        let of = |at: usize| ProcessId(at as u32);
        if self.images.len() < MAX_IMAGES {
            self.images.push(image);
            return of(self.images.len() - 1);
        }
        if !self.folded.contains_key(&image.exe) && self.folded.len() >= MAX_IMAGES {
            image.exe = Arc::from("(others)");
        }
        if let Some(id) = self.folded.get(&image.exe) {
            if let Some(shared) = self.images.get_mut(id.0 as usize) {
                shared.instances = shared.instances.saturating_add(1);
                shared.threads = shared.threads.saturating_add(1);
            }
            return *id;
        }
        let id = of(self.images.len());
        self.folded.insert(image.exe.clone(), id);
        self.images.push(image);
        id
    }

    /// Returns true if images were folded.
    pub(crate) fn images_folded(&self) -> bool {
        !self.folded.is_empty()
    }

    /// Returns the image for changing it; `None` if there is none.
    pub(crate) fn image_mut(&mut self, id: ProcessId) -> Option<&mut Process> {
        self.images.get_mut(id.0 as usize)
    }

    /// Returns the row of an image's calls from a context, and makes it if there is none.
    pub(crate) fn row(&mut self, process: ProcessId, syscall: Sysno, context: StackId) -> RowId {
        if let Some(id) = self.index.get(&(process, syscall, context)) {
            return *id;
        }
        if self.rows.len() >= MAX_ROWS && context != StackId(0) {
            self.rows_folded = true;
            return self.row(process, syscall, StackId(0));
        }
        let id = RowId(self.rows.len() as u32);
        self.rows.push(Row { context, ..Row::new(process, syscall, Counts::default()) });
        self.entered.push(0);
        self.index.insert((process, syscall, context), id);
        id
    }

    /// Counts a call.
    pub(crate) fn count(&mut self, id: RowId, tid: u32, ended: Ended) -> RowCall {
        let at = id.0 as usize;
        let nth = self.entered.get_mut(at).map_or(1, |n| {
            *n = n.saturating_add(1);
            *n
        });
        let Some(row) = self.rows.get_mut(at) else { return RowCall { row: id, nth } };
        let failed = add(&mut row.counts, ended);
        if ended.answer != Answer::None {
            let key = if self.threads.len() < MAX_THREADS || self.threads.contains_key(&(row.process, tid)) {
                (row.process, tid)
            } else {
                (row.process, 0)
            };
            let calls = self.threads.entry(key).or_default().entry(row.syscall).or_insert(ThreadCalls {
                syscall: row.syscall,
                calls: 0,
                failed: 0,
                toll_ns: None,
                waited_ns: None,
            });
            calls.calls = calls.calls.saturating_add(1);
            calls.failed = calls.failed.saturating_add(u64::from(failed));
        }
        RowCall { row: id, nth }
    }

    /// Adds the time of a call that was counted before, all of it waiting.
    pub(crate) fn waited(&mut self, id: RowId, ns: u64) {
        if let Some(row) = self.rows.get_mut(id.0 as usize) {
            row.counts.time(ns);
            row.counts.waited_ns = Some(row.counts.waited_ns.unwrap_or(0).saturating_add(ns));
        }
    }

    /// Raises the counts of a call's largest row so that all its rows count as many calls as a
    /// table of the whole run, if that counts more.
    pub(crate) fn count_beyond(&mut self, syscall: Sysno, counts: &Counts) {
        let of_call = || self.rows.iter().enumerate().filter(|(_, row)| row.syscall == syscall);
        let shown = of_call().fold(Counts::default(), |mut sum, (_, row)| {
            sum.merge(&row.counts);
            sum
        });
        let largest = of_call().max_by_key(|(_, row)| row.counts.calls).map(|(at, _)| at);
        let failed = counts.failed().saturating_sub(shown.failed());
        let Some(row) = largest.and_then(|at| self.rows.get_mut(at)) else {
            let row = self.row(ProcessId(0), syscall, StackId(0));
            return self.count_many(row, counts);
        };
        let mine = &mut row.counts;
        mine.calls = mine.calls.saturating_add(counts.calls.saturating_sub(shown.calls));
        let failed = failed.min(mine.calls.saturating_sub(mine.failed()));
        if failed > 0 {
            let unknown = mine.errors.entry(Errno::UNKNOWN).or_default();
            *unknown = unknown.saturating_add(failed);
        }
        mine.elapsed_ns = mine.elapsed_ns.max(counts.elapsed_ns);
    }

    /// Counts calls that only a summary tells.
    pub(crate) fn count_many(&mut self, id: RowId, counts: &Counts) {
        if let Some(row) = self.rows.get_mut(id.0 as usize) {
            row.counts.merge(counts);
        }
    }

    /// Returns the calls of each thread, in order.
    pub(crate) fn threads(&self) -> Vec<ThreadRow> {
        let mut all: Vec<ThreadRow> = self
            .threads
            .iter()
            .map(|((process, tid), calls)| {
                let mut calls: Vec<ThreadCalls> = calls.values().copied().collect();
                calls.sort_by_key(|c| c.syscall);
                ThreadRow { process: *process, tid: *tid, name: Arc::from(""), calls }
            })
            .collect();
        all.sort_by_key(|t| (t.process, t.tid));
        all
    }
}

/// Adds a call to counts. Returns true if it failed.
fn add(counts: &mut Counts, ended: Ended) -> bool {
    let result = match ended.answer {
        Answer::None => {
            counts.unreturned = counts.unreturned.saturating_add(1);
            return false;
        }
        Answer::Untold => None,
        Answer::Is(result) => Some(result),
    };
    counts.calls = counts.calls.saturating_add(1);
    let errno = result.and_then(Errno::from_result);
    if let Some(errno) = errno {
        *counts.errors.entry(errno).or_default() += 1;
    } else if ended.transfers {
        let bytes = result.and_then(|result| u64::try_from(result).ok());
        counts.bytes = counts.bytes.saturating_add(bytes.unwrap_or(0));
    }
    if let Some(ns) = ended.elapsed_ns {
        counts.time(ns);
        counts.waited_ns = Some(counts.waited_ns.unwrap_or(0).saturating_add(ended.waited_ns));
    }
    errno.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(exe: &str) -> Process {
        Process { exe: Arc::from(exe), ..Process::default() }
    }

    #[test]
    fn images_and_rows_stay_few() {
        let mut table = Table::default();
        for n in 0..1_000 {
            table.image(image(&format!("/bin/{n}")));
        }
        assert!(table.images.len() <= 2 * MAX_IMAGES + 1 && table.images_folded());
        assert_eq!(table.images.iter().map(|i| i.instances).sum::<u64>(), 1_000);
        for n in 0..30_000u32 {
            table.row(ProcessId(0), Sysno(1), StackId(n));
        }
        assert!(table.rows.len() <= MAX_ROWS + 1 && table.rows_folded);
    }

    #[test]
    fn calls_are_counted_when_they_return() {
        let mut table = Table::default();
        let process = table.image(image("/bin/a"));
        let row = table.row(process, Sysno(0), StackId(0));
        let ended = |answer| Ended { answer, transfers: true, elapsed_ns: Some(5), waited_ns: 0 };
        let answers = [Answer::Is(7), Answer::Is(-11), Answer::None, Answer::Untold];
        let nths: Vec<u64> = answers.map(|answer| table.count(row, 9, ended(answer)).nth).into();
        assert_eq!(nths, [1, 2, 3, 4]);
        let counts = &table.rows[0].counts;
        assert_eq!((counts.calls, counts.unreturned, counts.failed(), counts.bytes), (3, 1, 1, 7));
        let threads = table.threads();
        assert_eq!((threads.len(), threads[0].tid, threads[0].calls[0].calls), (1, 9, 3));
    }
}
