//! The phases of a run: their times, and the tolls and waits of rows.

use systoll_model::{Phase, ProcessId, Recording, Row, RowId};

/// Processor time and wall time of the run's phases, ns, without the observer's share.
pub(crate) struct Phases {
    /// Processor time of start-up, ns. It and `steady_cpu` are upper bounds if the run's processor
    /// time is unknown.
    startup_cpu: f64,
    steady_cpu: f64,
    observer_wall: f64,
    /// Part of the observer's processor time that may have been the program's, ns.
    pub doubt: f64,
    /// Number of calls of the run.
    pub calls: u64,
}

/// Relative uncertainty of the observer's share of processor time. In one measurement, a program of 12 ms of its own
/// that stopped at 15,000 calls, which took 64 ms, seemed to have 4 ms.
const DOUBT: f64 = 0.1;

/// Ratio of processor time to the calls' toll that is assumed if nothing tells the processor time (a trace without
/// times).
const UNTOLD: f64 = 10.0;

impl Phases {
    /// Returns the times of the phases of a run.
    pub(crate) fn of(recording: &Recording) -> Self {
        // Where no `main` was seen to begin, no time is known to lie before it.
        let known = recording.processes.iter().filter(|process| process.main_at_ns.is_some());
        let startup: u64 = known.fold(0, |sum, p| sum.saturating_add(p.startup_cpu_ns));
        // Crossings are processor time too, so the program used at least its calls' toll.
        let toll: f64 = recording.rows.iter().map(|r| toll(recording, r)).sum();
        let header = &recording.header;
        let observer = sound(header.observer_ns_per_call) * recording.calls() as f64;
        // The measured time less the least possible share of the observer is an upper bound.
        let measured = || header.user_ns.saturating_add(header.sys_ns) as f64 - (1.0 - DOUBT) * observer;
        let most = || header.own_cpu_most_ns.map_or_else(measured, |most| most as f64);
        let all = header.own_cpu_ns.map_or_else(most, |own| own as f64).max(toll);
        let untold = recording.own_cpu_at_most_ns().is_none() && header.user_ns == 0 && header.sys_ns == 0;
        let all = if untold { UNTOLD * toll } else { all };
        Self {
            startup_cpu: (startup as f64).min(all),
            doubt: DOUBT * observer,
            steady_cpu: (all - startup as f64).max(0.0),
            observer_wall: sound(recording.header.observer_wall_ns_per_call),
            calls: recording.calls(),
        }
    }

    /// Returns the processor time of the run, ns.
    pub(crate) fn all_cpu(&self) -> f64 {
        self.startup_cpu + self.steady_cpu
    }

    /// Returns the processor time of a phase, ns.
    pub(crate) fn cpu(&self, phase: Phase) -> f64 {
        let all = self.all_cpu();
        match phase {
            // Processor time is read at stops, so a phase may look shorter than the calls in it.
            Phase::StartUp if self.startup_cpu > 0.0 => self.startup_cpu,
            Phase::Steady | Phase::Exit if self.steady_cpu > 0.1 * all => self.steady_cpu,
            _ => all,
        }
    }

    /// Returns the wall time of a phase of the rows' process, ns; that of the run if the rows have several processes.
    pub(crate) fn wall(&self, recording: &Recording, phase: Phase, rows: &[RowId]) -> f64 {
        let whole = (recording.header.wall_ns as f64 - self.observer_wall * self.calls as f64).max(0.0);
        let mut processes: Vec<ProcessId> = rows.iter().map(|r| recording.row(*r).process).collect();
        processes.sort();
        processes.dedup();
        let &[process] = processes.as_slice() else { return whole };
        let Some(main) = recording.process(process).main_at_ns else { return whole };
        let of_process = recording.rows.iter().filter(|r| r.process == process);
        let startup_calls = of_process.fold(0u64, |sum, r| sum.saturating_add(r.counts.startup_calls));
        let startup = main.saturating_sub(recording.process(process).start_ns) as f64;
        let startup = (startup - self.observer_wall * startup_calls as f64).clamp(0.0, whole);
        if phase == Phase::StartUp { startup } else { whole - startup }
    }
}

/// Returns the number of a row's calls that were made before `main`: 0 if no `main` was seen to begin, as in a static
/// program without symbols, whose calls were all counted as made before it.
pub(crate) fn startup_calls(recording: &Recording, row: &Row) -> u64 {
    recording.process(row.process).main_at_ns.map_or(0, |_| row.counts.startup_calls)
}

/// Returns a figure of a recording with negative and non-finite values replaced by 0, since a file may hold any.
fn sound(ns: f64) -> f64 {
    if ns.is_finite() { ns.max(0.0) } else { 0.0 }
}

/// Returns the toll of a row's calls, ns, at most their elapsed time less their waits.
pub(crate) fn toll(recording: &Recording, row: &Row) -> f64 {
    let counts = &row.counts;
    let price = || {
        let priced = recording.prices.calls.get(&row.syscall).map_or(recording.prices.crossing_ns(), |p| p.ns);
        sound(priced) * counts.calls as f64
    };
    let toll = counts.toll_ns.map_or_else(price, |t| t as f64);
    match counts.waited_ns {
        // The moments at which waiting began and ended are known only to some hundred ns.
        Some(waited) if waited > 0 => {
            let least = sound(recording.prices.crossing_ns()) * counts.calls as f64;
            toll.min((counts.elapsed_ns.saturating_sub(waited) as f64).max(least))
        }
        Some(_) => toll.min(counts.elapsed_ns as f64),
        None => toll,
    }
}

/// Returns the time that a row's calls waited, ns; derived from elapsed time if waits were not measured.
pub(crate) fn waited(phases: &Phases, recording: &Recording, row: &Row) -> f64 {
    let counts = &row.counts;
    match counts.waited_ns {
        Some(waited) => waited as f64,
        None => {
            let observer = phases.observer_wall * counts.calls as f64;
            (counts.elapsed_ns as f64 - observer - toll(recording, row)).max(0.0)
        }
    }
}
