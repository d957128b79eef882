//! Turns what was counted into a recording: adds names, prices and costs.

use super::session::{Session, Sums};
use crate::assemble::{self, NamedTable, Parts, Progress};
use crate::cpu::{IMPOSSIBLE, not_below};
use crate::table::Table;
use crate::{sys, windows};
use std::collections::BTreeMap;
use systoll_model::{
    Attached, BackendKind, Header, Price, Prices, Problem, ProblemKind, Process, Recording, Row, Sysno,
};
use systoll_price::CROSSING_BUDGET;
use systoll_symbols::Symbols;

/// System calls that are priced by trying them, at most; those with the most calls come first.
const MAX_PRICED: usize = 40;
/// Calls of a row that are priced by trying one, at least. A price takes 2 ms; fewer calls cost less than that.
const LEAST_PRICED: u64 = 500;

/// Share of calls, as a divisor, that came before their callers were known and are worth a note.
const UNSURE: u64 = 100;

impl Session {
    /// Returns the recording of a run that has ended, or that is no longer watched, and what was read of files.
    pub(super) fn finish(mut self) -> (Recording, Symbols) {
        let wall_ns = self.at(sys::now());
        let mut table = self.table.clone();
        let sums = self.add_rows(&mut table);
        self.note_losses(&sums);
        let used = self.add_processor_times(&mut table);
        let recording = self.recording(&table, wall_ns, true, used);
        (recording, self.sampling.symbols)
    }

    /// Returns the recording of a run that goes on.
    pub(super) fn recording_so_far(&mut self) -> Recording {
        let wall_ns = self.at(sys::now());
        let mut table = self.table.clone();
        self.add_rows(&mut table);
        let used = self.add_processor_times(&mut table);
        self.recording(&table, wall_ns, false, used)
    }

    /// Notes everything that was not counted, or not in full. Each call that was entered must have been counted as
    /// returned or as not returned.
    fn note_losses(&mut self, sums: &Sums) {
        let (totals, left_out) = (self.counter.totals(), self.counter.left_out());
        let living = self.counter.living().iter().fold(0u64, |sum, slot| sum.saturating_add(slot.entered));
        let entered = totals.entered.saturating_add(living);
        let counted = sums.returned.saturating_add(sums.unreturned);
        let problems = &mut self.problems;
        let balance = format!(
            "{entered} calls entered, as many as returned ({}) and never returned ({}); {} have no process",
            sums.returned, sums.unreturned, sums.without_image
        );
        match entered == counted {
            true => problems.note(ProblemKind::Note, balance),
            false => problems.note(ProblemKind::Lost, balance.replace("as many as", "not as many as")),
        }
        if left_out > 0 {
            problems.note(ProblemKind::Lost, format!("the kernel left the counting out {left_out} times"));
        }
        if totals.no_slot > 0 {
            let text = format!("{} threads are not counted: more ran at a time than can be watched", totals.no_slot);
            problems.note(ProblemKind::Lost, text);
        }
        if sums.unknown_errors > 0 {
            let text = format!("{} failed calls are counted without their error", sums.unknown_errors);
            problems.note(ProblemKind::Lost, text);
        }
        if totals.no_sample > 0 {
            let text = format!(
                "{} of the calls that were to be sampled were lost: more came at a time than could be read",
                totals.no_sample
            );
            problems.note(ProblemKind::Bounded, text);
        }
        if sums.unsure.saturating_mul(UNSURE) > entered {
            let text = format!(
                "{} calls came before their callers could be found, and are divided among these as their samples are",
                sums.unsure
            );
            problems.note(ProblemKind::Note, text);
        }
        if totals.no_notice > 0 {
            let text = format!(
                "{} events of processes were lost: some calls are counted without their process",
                totals.no_notice
            );
            problems.note(ProblemKind::Bounded, text);
        }
    }

    /// Makes the recording. `used` is the user and system time of a whole box.
    fn recording(&mut self, table: &Table, wall_ns: u64, ended: bool, used: Option<(u64, u64)>) -> Recording {
        let beside = windows::beside(table, &self.sampling.windows.all()).begin();
        let mut named = NamedTable::of(table, &mut self.sampling.symbols, self.problems.list.clone());
        // Pricing runs children of our own; their time must not count as the command's, so the times are read before.
        let children = sys::children_times();
        let before = self.facts.crossing_before;
        let crossing_after = if ended { systoll_price::crossing(CROSSING_BUDGET) } else { before };
        let mut prices = self.facts.prices(crossing_after, beside);
        // Of a whole box all calls are timed, and trying some of them again would cost more than watching it.
        if used.is_none() {
            prices.calls = prices_of(&named.rows);
        }
        for row in &mut named.rows {
            row.counts.toll_ns = Some(self.toll(row, &prices));
        }
        let toll = named.rows.iter().filter_map(|r| r.counts.toll_ns).fold(0u64, u64::saturating_add);
        let calls = named.rows.iter().fold(0u64, |sum, r| sum.saturating_add(r.counts.calls));
        let progress = match self.attached.filter(|_| self.left_running) {
            Some(_) if let Some(used) = used => Progress::of_left(wall_ns, self.facts.children_before, used),
            Some(_) => Progress::of_left(wall_ns, children, self.processor_time()),
            None => Progress::of(table, wall_ns, self.root.exit, children),
        };
        let mut header = assemble::header(BackendKind::Bpf, &self.facts, &progress, table, &self.sampling.windows);
        let used = header.user_ns.saturating_add(header.sys_ns) as f64;
        let own = (used - self.watching.added_ns * calls as f64).max(0.0) as u64;
        let own_cpu_ns = not_below(own, toll).filter(|own| *own > 0);
        if own_cpu_ns.is_none() {
            let text = format!("the command's own CPU time is unknown: {IMPOSSIBLE}");
            named.problems.push(Problem::new(ProblemKind::Price, text));
        }
        header = Header {
            own_cpu_ns,
            observer_ns_per_call: self.watching.added_ns,
            observer_wall_ns_per_call: self.watching.added_ns,
            toll_estimated: true,
            attached: self.attached.map(|a| Attached { left_running: self.left_running, ..a }),
            ..header
        };
        self.facts.leave_out(children, sys::children_times());
        let mut processes: Vec<Process> = table.images.iter().map(|image| image.process(wall_ns)).collect();
        for row in &named.rows {
            if let Some(ns) = processes.get_mut(row.process.0 as usize).and_then(|process| process.cpu_ns.as_mut()) {
                *ns = ns.saturating_sub((self.watching.added_ns * row.counts.calls as f64) as u64);
            }
        }
        let kept = &mut self.sampling.windows;
        let windows = if ended { kept.take_all() } else { kept.all().into_iter().cloned().collect() };
        let parts = Parts { header, processes, prices, longest: table.slowest.listed(), in_place: Vec::new(), windows };
        named.recording(table, &self.sampling.windows, parts)
    }

    /// Returns what a row's calls have cost, ns: their time as the kernel's clock measured it inside, less that for which
    /// their threads had no processor, and the way there and back. Calls that were not timed are priced by trying them,
    /// or else as the crossing alone.
    fn toll(&self, row: &Row, prices: &Prices) -> u64 {
        let crossing = prices.crossing_ns();
        let calls = row.counts.calls as f64;
        let way = (crossing - self.watching.inside_ns).max(0.0);
        let toll = match prices.calls.get(&row.syscall) {
            _ if row.counts.elapsed_ns > 0 => {
                let waited = row.counts.waited_ns.unwrap_or(0);
                row.counts.elapsed_ns.saturating_sub(waited) as f64 + calls * way
            }
            Some(price) => calls * price.ns,
            None => calls * crossing,
        };
        toll as u64
    }
}

/// Returns a price for each call that may wait: found by trying it now, or else that of the crossing alone.
fn prices_of(rows: &[Row]) -> BTreeMap<Sysno, Price> {
    let mut calls: BTreeMap<Sysno, u64> = BTreeMap::new();
    for row in rows.iter().filter(|r| r.counts.calls > 0) {
        *calls.entry(row.syscall).or_default() += row.counts.calls;
    }
    let mut most: Vec<(u64, Sysno)> = calls.into_iter().map(|(syscall, n)| (n, syscall)).collect();
    most.sort_unstable_by(|a, b| b.cmp(a));
    let often = most.iter().filter(|(calls, _)| *calls >= LEAST_PRICED).map(|(_, syscall)| *syscall);
    let waiting = often.filter(|syscall| syscall.signature().is_none_or(|s| s.waits));
    systoll_price::prices_of(waiting.take(MAX_PRICED))
}
