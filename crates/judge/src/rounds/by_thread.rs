//! Exact counts of the calls that the threads of a process make. Windows show some threads more than others, so these
//! counts bound what windows say of a few threads.

use super::instance::LITTLE;
use crate::collections::hash::Map;
use std::cmp::Reverse;
use systoll_model::{Recording, Sysno};

/// A process's calls of one system call.
#[derive(Default)]
struct Calls {
    /// By thread, most first.
    threads: Vec<u64>,
    /// Those of threads that are not told apart.
    folded: u64,
}

/// The calls of all threads of a recording.
#[derive(Default)]
pub(super) struct ByThread {
    of: Map<(u32, Sysno), Calls>,
}

impl ByThread {
    pub(super) fn of(recording: &Recording) -> Self {
        let mut made = Self::default();
        for thread in &recording.threads {
            for calls in &thread.calls {
                let all = made.of.entry((thread.process.0, calls.syscall)).or_default();
                match thread.tid {
                    0 => all.folded = all.folded.saturating_add(calls.calls),
                    _ => all.threads.push(calls.calls),
                }
            }
        }
        made.of.values_mut().for_each(|calls| calls.threads.sort_unstable_by_key(|calls| Reverse(*calls)));
        made
    }

    /// Returns the largest number of calls that `crew` threads of a process make, if windows show as many and `others`
    /// threads besides; `None` if the calls were not counted by thread. Threads of which windows show nothing, and
    /// which make many of the calls, may be of the crew.
    pub(super) fn most(&self, process: u32, syscall: Sysno, crew: usize, others: usize) -> Option<u64> {
        let calls = self.of.get(&(process, syscall))?;
        let all = calls.threads.iter().fold(0, |sum: u64, calls| sum.saturating_add(*calls));
        let many = calls.threads.iter().take_while(|calls| **calls as f64 >= LITTLE * all as f64).count();
        let crew = crew.max(many.saturating_sub(others));
        let (of_crew, rest) = calls.threads.split_at(crew.min(calls.threads.len()));
        let few = rest.iter().skip(many.saturating_sub(crew));
        Some(of_crew.iter().chain(few).fold(calls.folded, |sum, calls| sum.saturating_add(*calls)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{ProcessId, Thread, ThreadCalls};

    #[test]
    fn threads_bound_what_a_few_of_them_make() {
        let read = Sysno::named("read");
        let thread = |tid: u32, calls: u64| {
            let calls = ThreadCalls { syscall: read, calls, failed: 0, toll_ns: None, waited_ns: None };
            Thread { process: ProcessId(0), tid, name: "".into(), calls: vec![calls] }
        };
        let of = |threads: Vec<Thread>| ByThread::of(&Recording { threads, ..Recording::default() });
        let four = || vec![thread(1, 500), thread(2, 900), thread(3, 700), thread(4, 3)];
        let counts = of(four());
        assert_eq!(counts.most(0, read, 1, 2), Some(903));
        assert_eq!(counts.most(0, read, 2, 1), Some(1_603));
        // A thread that no window shows may be of the crew.
        assert_eq!(counts.most(0, read, 1, 1), Some(1_603));
        assert_eq!(counts.most(1, read, 1, 1), None);
        let folded = of(four().into_iter().chain([thread(0, 40)]).collect());
        assert_eq!(folded.most(0, read, 1, 2), Some(943));
    }
}
