//! Turns the tracer's counts and measurements into a recording: adds names, prices and tolls.

use super::calibrate::CROSSING;
use super::engine::Engine;
use super::toll::{Observer, tolls};
use crate::assemble::{self, NamedTable, Parts, Progress};
use crate::cpu::{IMPOSSIBLE, not_below};
use crate::{sys, windows};
use systoll_model::{Header, Problem, ProblemKind, Process, Recording, Row};

impl Engine {
    /// Returns the recording of a run that has ended.
    pub(super) fn finish(mut self) -> Recording {
        let wall_ns = self.at(sys::now());
        self.recording(wall_ns, true)
    }

    /// Returns the recording of a run that goes on.
    pub(super) fn recording_so_far(&mut self) -> Recording {
        self.account_running();
        let wall_ns = self.at(sys::now());
        self.recording(wall_ns, false)
    }

    /// Accounts for the processor time that threads have used so far.
    pub(super) fn account_running(&mut self) {
        for tid in self.threads.keys().copied().collect::<Vec<_>>() {
            if let Some(ran) = self.threads.get_mut(&tid).and_then(|t| t.ran(tid)) {
                self.account_cpu(tid, ran.cpu_ns);
            }
        }
    }

    fn recording(&mut self, wall_ns: u64, ended: bool) -> Recording {
        let beside = windows::beside(&self.table, &self.windows.all()).begin();
        let mut named = NamedTable::of(&self.table, &mut self.symbols, self.problems.list.clone());
        // Pricing runs children of our own; their time must not count as the command's, so the times are read before.
        let children = sys::children_times();
        let crossing_after =
            if ended { systoll_price::crossing(CROSSING) } else { self.measured.facts.crossing_before };
        let mut prices = self.measured.facts.prices(crossing_after, beside);
        let observer = Observer::calibrated(self.measured.cost, prices.crossing_ns());
        let tolls = tolls(&self.table, &self.windows.all(), &observer, &mut prices);
        let observer = observer.seen(&self.measured.sampler, &prices);
        for (row, toll) in named.rows.iter_mut().zip(tolls) {
            row.counts.toll_ns = Some(toll);
        }
        let toll: u64 = named.rows.iter().filter_map(|r| r.counts.toll_ns).sum();
        let processes = self.processes(&named.rows, &observer, wall_ns);
        let own_cpu = not_below(self.own_cpu(&observer), toll).filter(|own| *own > 0);
        if own_cpu.is_none() {
            let text = format!("the command's own CPU time is unknown: {IMPOSSIBLE}");
            named.problems.push(Problem::new(ProblemKind::Price, text));
        }
        let progress = match self.attachment.and_then(|attachment| attachment.used_by_left) {
            Some(used) => Progress::of_left(wall_ns, children, used),
            None => Progress::of(&self.table, wall_ns, self.root.exit, children),
        };
        let header = self.header(&progress, own_cpu, &observer);
        self.measured.facts.leave_out(children, sys::children_times());
        let windows = if ended { self.windows.take_all() } else { self.windows.all().into_iter().cloned().collect() };
        let parts =
            Parts { header, processes, prices, longest: self.table.slowest.listed(), in_place: Vec::new(), windows };
        named.recording(&self.table, &self.windows, parts)
    }

    /// Returns the processor time of all threads minus the cost of their stops, ns.
    fn own_cpu(&self, observer: &Observer) -> u64 {
        observer.taken_off(self.table.images.iter().fold(0u64, |sum, i| sum.saturating_add(i.cpu_ns)), self.stopped())
    }

    /// Returns the number of calls at which threads stopped.
    fn stopped(&self) -> u64 {
        self.table
            .rows
            .iter()
            .fold(0, |sum: u64, r| sum.saturating_add(r.counts.calls - r.inside.0.min(r.counts.calls)))
    }

    fn header(&self, progress: &Progress, own_cpu_ns: Option<u64>, observer: &Observer) -> Header {
        let handling = 2.0 * self.stops.handling.0 as f64 / self.stops.handling.1.max(1) as f64;
        let calls = self.table.rows.iter().fold(0, |sum: u64, r| sum.saturating_add(r.counts.calls));
        let stopped = self.stopped() as f64 / calls.max(1) as f64;
        // The idle child used for calibration may have waited where this run did not, so the figure is bounded by the
        // run's own time a call.
        let room = progress.wall_ns as f64 * self.seen.most_threads.max(1) as f64 / calls.max(1) as f64;
        Header {
            own_cpu_ns,
            observer_ns_per_call: observer.cpu_ns_per_call() * stopped,
            observer_wall_ns_per_call: ((self.measured.cost.wall_ns + handling) * stopped).min(room),
            toll_estimated: true,
            attached: self.attachment.map(|attachment| attachment.facts),
            ..assemble::header(self.inside.kind(), &self.measured.facts, progress, &self.table, &self.windows)
        }
    }

    fn processes(&self, rows: &[Row], observer: &Observer, wall_ns: u64) -> Vec<Process> {
        let mut calls = vec![0u64; self.table.images.len()];
        let mut tolls = vec![0u64; self.table.images.len()];
        for (row, raw) in rows.iter().zip(&self.table.rows) {
            calls[row.process.0 as usize] += row.counts.calls.saturating_sub(raw.inside.0);
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
}
