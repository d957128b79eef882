//! Assembles a recording from table, windows and names, alike for every backend.

use crate::backend::{Launch, Running};
use crate::launch::time_zone;
use crate::naming::{Names, note_bounds, rows, threads, vdso_rows, windows};
use crate::packages::packages;
use crate::procfs::{argv, own_times, running_times, time_zone_of};
use crate::raw_window::RawWindow;
use crate::request_windows::RequestWindows;
use crate::sys::{children_times, launcher_times};
use crate::table::Table;
use crate::windows::Windows;
use nix::sys::utsname::uname;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};
use systoll_model::{
    BackendKind, Exit, Header, InPlace, LongCall, Machine, ObjectSample, Prices, Problem, Process, Recording, Row,
    RowTrunk, Spread, TimeZone, VdsoRow, WaitSpans, WholeStack, name_objects,
};
use systoll_price::{FaultAndSwitchPrices, Measurement};
use systoll_symbols::Symbols;

/// Facts about a run that are known before it begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunFacts {
    pub(crate) command: Vec<String>,
    pub(crate) crossing_before: Spread,
    /// User and system time of children that do not belong to the command, ns.
    pub(crate) children_before: (u64, u64),
    /// User and system time that the launcher used before the run, ns.
    pub(crate) ours_before: (u64, u64),
    pub(crate) started_unix: u64,
    pub(crate) seed: u64,
    pub(crate) time_zone: TimeZone,
}

fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

impl RunFacts {
    /// Collects the facts of a run that begins now and starts a command.
    pub(crate) fn of(launch: &Launch, crossing_before: Spread) -> Self {
        Self {
            command: launch.command.iter().map(|w| w.to_string_lossy().into_owned()).collect(),
            crossing_before,
            children_before: children_times(),
            ours_before: launcher_times(),
            started_unix: unix_time(),
            seed: launch.how.seed,
            time_zone: time_zone(launch),
        }
    }

    /// Collects the facts of a run that watches running processes from now on.
    pub(crate) fn of_running(running: &Running, crossing_before: Spread) -> Self {
        let first = running.pids.first().copied().unwrap_or(0);
        let (ours, theirs) = (
            children_times(),
            match running.no_children {
                true => own_times(running.pids.iter().copied()),
                false => running_times(running.pids.iter().copied()),
            },
        );
        Self {
            command: argv(first).iter().map(|word| word.to_string()).collect(),
            // Time that the processes used before is not part of the run.
            children_before: (ours.0.saturating_add(theirs.0), ours.1.saturating_add(theirs.1)),
            crossing_before,
            ours_before: launcher_times(),
            started_unix: unix_time(),
            seed: running.how.seed,
            time_zone: time_zone_of(first),
        }
    }

    /// Excludes the time that our own children have used between two readings.
    pub(crate) fn leave_out(&mut self, from: (u64, u64), to: (u64, u64)) {
        self.children_before.0 += to.0.saturating_sub(from.0);
        self.children_before.1 += to.1.saturating_sub(from.1);
    }

    /// Returns a run's prices except those of calls.
    pub(crate) fn prices(&self, crossing_after: Spread, beside: Measurement) -> Prices {
        let FaultAndSwitchPrices { fault, switch } = beside.wait();
        Prices { crossing_before: self.crossing_before, crossing_after, fault, switch, calls: BTreeMap::new() }
    }
}

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) wall_ns: u64,
    /// Exit of the command, if it has ended.
    pub(crate) exit: Option<Exit>,
    /// User and system time of the command and its descendants, ns.
    used: (u64, u64),
}

impl Progress {
    /// Reads the progress of a run whose ended processes have used `children`. While the command runs, adds the time of
    /// running processes.
    pub(crate) fn of(table: &Table, wall_ns: u64, exit: Option<Exit>, children: (u64, u64)) -> Self {
        let mut used = children;
        if exit.is_none() {
            let running = running_times(table.images.iter().map(|i| i.pid));
            used = (used.0.saturating_add(running.0), used.1.saturating_add(running.1));
        }
        Self { wall_ns, exit, used }
    }

    /// Returns the progress of a run that leaves its processes running; `used` is their processor time so far.
    pub(crate) fn of_left(wall_ns: u64, children: (u64, u64), used: (u64, u64)) -> Self {
        let used = (children.0.saturating_add(used.0), children.1.saturating_add(used.1));
        Self { wall_ns, exit: None, used }
    }

    /// Returns user and system time, ns; the caller subtracts the observer's part.
    pub(crate) fn used(&self) -> (u64, u64) {
        self.used
    }
}

/// Returns a header without the backend's own measurements; the observer's share is not yet in it.
pub(crate) fn header(
    backend: BackendKind,
    facts: &RunFacts,
    progress: &Progress,
    table: &Table,
    windows: &Windows,
) -> Header {
    let (before, (user, sys)) = (facts.children_before, progress.used);
    Header {
        version: env!("CARGO_PKG_VERSION").into(),
        command: facts.command.clone(),
        backend,
        machine: Some(Machine::HERE),
        host: systoll_price::host(),
        node: node(),
        time_zone: facts.time_zone.clone(),
        started_unix: facts.started_unix,
        exit: progress.exit,
        wall_ns: progress.wall_ns,
        user_ns: user.saturating_sub(before.0),
        sys_ns: sys.saturating_sub(before.1),
        threads: table.threads_in_all(),
        seed: facts.seed,
        windows_opened: windows.opened,
        windows_refused: windows.refused,
        ..Header::default()
    }
}

/// Returns this machine's name, as far as it is valid text.
fn node() -> String {
    uname().map_or_else(|_| String::new(), |names| names.nodename().to_string_lossy().into_owned())
}

/// The rows of a table, with every address named.
pub(crate) struct NamedTable {
    names: Names,
    pub(crate) rows: Vec<Row>,
    vdso: Vec<VdsoRow>,
    trunks: Vec<RowTrunk>,
    whole_stacks: Vec<WholeStack>,
    object_samples: Vec<ObjectSample>,
    wait_spans: WaitSpans,
    pub(crate) problems: Vec<Problem>,
}

/// Results of a backend that complete a named table to a recording.
pub(crate) struct Parts {
    pub(crate) header: Header,
    pub(crate) processes: Vec<Process>,
    pub(crate) prices: Prices,
    pub(crate) longest: Vec<LongCall>,
    pub(crate) in_place: Vec<InPlace>,
    /// The windows of the recording, in the order they were opened.
    pub(crate) windows: Vec<RawWindow>,
}

impl NamedTable {
    /// Names everything in a table. `problems` are the run's problems so far.
    pub(crate) fn of(table: &Table, symbols: &mut Symbols, mut problems: Vec<Problem>) -> Self {
        note_bounds(table, &mut problems);
        let names = Names::resolve(table, symbols);
        // Our own memory file may be mapped there too; its names are no problem of the program.
        problems.extend(names.problems.iter().filter(|p| !p.text.starts_with("/memfd:systoll:")).cloned());
        let (rows, vdso) = (rows(table, &names, symbols), vdso_rows(table, &names, symbols));
        let (trunks, whole_stacks) = (names.trunks(table), crate::naming::whole_stacks(table));
        let object_samples = names.object_samples(table);
        let mut wait_spans = table.waits.waits();
        for span in &mut wait_spans.spans {
            span.line = span.line.and_then(|at| names.frame_id(&table.sampled_calls.line(at)?));
        }
        Self { names, rows, vdso, trunks, whole_stacks, object_samples, wait_spans, problems }
    }

    /// Joins the named table and the backend's results to a recording.
    pub(crate) fn recording(self, table: &Table, kept: &Windows, parts: Parts) -> Recording {
        let Parts { header, processes, prices, longest, in_place, windows: all } = parts;
        let requests = kept.requests.as_ref().map(RequestWindows::kept);
        let (request_kinds, numbers, received) = requests.unwrap_or_default();
        let sockets = kept.socket_names();
        let mut object_samples = self.object_samples;
        for object in object_samples.iter_mut().filter_map(|sample| sample.object.as_mut()) {
            if let Some(name) = sockets.get(&**object) {
                *object = name.clone();
            }
        }
        let mut recording = Recording {
            packages: packages(&self.names.frames, &self.rows),
            header,
            processes,
            modules: self.names.modules,
            frames: self.names.frames,
            stacks: self.names.stacks,
            rows: self.rows,
            vdso: self.vdso,
            threads: threads(table),
            windows: windows(kept, all, &numbers),
            received,
            request_kinds,
            ledgers: kept.ledger.ledgers(),
            trunks: self.trunks,
            whole_stacks: self.whole_stacks,
            object_samples,
            longest,
            wait_spans: self.wait_spans,
            prices,
            problems: self.problems,
            in_place,
        };
        name_objects(&mut recording);
        recording
    }
}
