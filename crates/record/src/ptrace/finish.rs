//! From what the tracer gathered to a recording: names, prices, tolls.

use super::calibrate::Cost;
use super::engine::Engine;
use super::toll::{Observer, tolls};
use crate::cpu::{IMPOSSIBLE, not_below};
use crate::named::{Names, note_bounds, rows, threads, windows};
use crate::sys;
use crate::windows::{fault_price, switch_price};
use std::collections::BTreeMap;
use systoll_model::{
    BackendKind, Header, LongCall, Prices, Problem, ProblemKind, Process, Recording, Row, RowId, Spread,
};

/// What was measured around the run.
#[derive(Clone, Debug, Default)]
pub(super) struct Around {
    pub(super) command: Vec<String>,
    pub(super) cost: Cost,
    pub(super) crossing_before: Spread,
    pub(super) children_before: (u64, u64),
    pub(super) started_unix: u64,
}

impl Engine {
    /// The recording of a run that has ended.
    pub(super) fn finish(mut self) -> Recording {
        let wall_ns = self.at(sys::now());
        self.recording(wall_ns, true)
    }

    /// The recording of a run that goes on.
    pub(super) fn recording_so_far(&mut self) -> Recording {
        for tid in self.threads.keys().copied().collect::<Vec<_>>() {
            if let Some(ran) = self.threads.get_mut(&tid).and_then(|t| t.ran(tid)) {
                self.account_cpu(tid, ran.cpu_ns);
            }
        }
        let wall_ns = self.at(sys::now());
        self.recording(wall_ns, false)
    }

    fn recording(&mut self, wall_ns: u64, ended: bool) -> Recording {
        let mut problems = self.problems.clone();
        note_bounds(&self.table, &mut problems);
        let names = Names::resolve(&self.table, &mut self.symbols);
        problems.extend(names.problems.iter().cloned());
        // Prices take children of our own, which are none of the command's.
        let children = sys::children_times();
        let crossing_after = if ended { systoll_price::crossing(super::CROSSING) } else { self.around.crossing_before };
        let (fault, switch) = (fault_price(&self.table), switch_price(&self.table));
        let mut prices = Prices {
            crossing_before: self.around.crossing_before,
            crossing_after,
            fault,
            switch,
            calls: BTreeMap::new(),
        };
        let observer = Observer::calibrated(self.around.cost, prices.crossing_ns());
        let tolls = tolls(&self.table, &self.windows.all(), &observer, &mut prices);
        let observer = observer.seen(&self.sampler, &prices);
        let mut rows = rows(&self.table, &names, &mut self.symbols);
        for (row, toll) in rows.iter_mut().zip(tolls) {
            row.counts.toll_ns = Some(toll);
        }
        let toll: u64 = rows.iter().filter_map(|r| r.counts.toll_ns).sum();
        let processes = self.processes(&rows, &observer, wall_ns);
        let own_cpu = not_below(self.own_cpu(&rows, &observer), toll).filter(|own| *own > 0);
        if own_cpu.is_none() {
            let text = format!("the command's own processor time is not known: {IMPOSSIBLE}");
            problems.push(Problem::new(ProblemKind::Price, text));
        }
        let used = match self.root_exit {
            Some(_) => children,
            None => {
                let running = crate::procfs::running_times(self.table.images.iter().map(|i| i.pid));
                (children.0.saturating_add(running.0), children.1.saturating_add(running.1))
            }
        };
        let header = self.header((wall_ns, used), own_cpu, &observer);
        let now = sys::children_times();
        let before = &mut self.around.children_before;
        *before = (before.0 + (now.0 - children.0), before.1 + (now.1 - children.1));
        let (windows, longest) = (windows(&self.windows), self.longest());
        Recording {
            header,
            processes,
            modules: names.modules,
            frames: names.frames,
            stacks: names.stacks,
            rows,
            vdso: Vec::new(),
            threads: threads(&self.table),
            windows,
            longest,
            prices,
            problems,
            in_place: Vec::new(),
        }
    }

    /// What all threads ran, less what stops cost.
    fn own_cpu(&self, rows: &[Row], observer: &Observer) -> u64 {
        let calls = rows.iter().fold(0u64, |sum, r| sum.saturating_add(r.counts.calls));
        observer.taken_off(self.table.images.iter().fold(0u64, |sum, i| sum.saturating_add(i.cpu_ns)), calls)
    }

    fn header(
        &self,
        (wall_ns, (user, sys)): (u64, (u64, u64)),
        own_cpu_ns: Option<u64>,
        observer: &Observer,
    ) -> Header {
        let before = self.around.children_before;
        let handling = 2.0 * self.handling.0 as f64 / self.handling.1.max(1) as f64;
        let calls = self.table.rows.iter().fold(0, |sum: u64, r| sum.saturating_add(r.counts.calls));
        // The idle child it was measured on may have had to wait where the run did not.
        let room = wall_ns as f64 * self.most_threads.max(1) as f64 / calls.max(1) as f64;
        Header {
            version: env!("CARGO_PKG_VERSION").into(),
            command: self.around.command.clone(),
            backend: BackendKind::Ptrace,
            host: systoll_price::host(),
            started_unix: self.around.started_unix,
            exit: self.root_exit,
            wall_ns,
            user_ns: user.saturating_sub(before.0),
            sys_ns: sys.saturating_sub(before.1),
            own_cpu_ns,
            own_cpu_most_ns: None,
            observer_ns_per_call: observer.cpu_ns_per_call(),
            observer_wall_ns_per_call: (self.around.cost.wall_ns + handling).min(room),
            toll_estimated: true,
            lost: 0,
            vdso_calls: None,
            threads: self.table.threads_in_all(),
            seed: self.seed,
            windows_opened: self.windows.opened,
            windows_refused: self.windows.refused,
            sites: None,
        }
    }

    fn processes(&self, rows: &[Row], observer: &Observer, wall_ns: u64) -> Vec<Process> {
        let mut calls = vec![0u64; self.table.images.len()];
        let mut tolls = vec![0u64; self.table.images.len()];
        for row in rows {
            calls[row.process.0 as usize] += row.counts.calls;
            tolls[row.process.0 as usize] += row.counts.toll_ns.unwrap_or(0);
        }
        let images = self.table.images.iter().zip(calls.into_iter().zip(tolls));
        images
            .map(|(i, (calls, toll))| Process {
                cpu_ns: not_below(observer.taken_off(i.cpu_ns, calls), toll).filter(|ns| *ns > 0),
                startup_cpu_ns: observer.taken_off(i.startup_cpu_ns, i.startup_calls),
                ..i.process(wall_ns)
            })
            .collect()
    }

    fn longest(&self) -> Vec<LongCall> {
        let mut longest: Vec<_> = self.table.longest.iter().map(|l| &l.0).collect();
        longest.sort_by(|a, b| b.ns.cmp(&a.ns).then(a.at_ns.cmp(&b.at_ns)));
        longest
            .into_iter()
            .map(|l| LongCall {
                row: RowId(l.row),
                ns: l.ns,
                at_ns: l.at_ns,
                thread: l.thread.clone(),
                startup: l.startup,
            })
            .collect()
    }
}
