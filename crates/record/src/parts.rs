//! A recording put together: what every backend does alike, from its table, windows and names.

use crate::backend::{Launch, Running};
use crate::launch::time_zone;
use crate::named::{Names, note_bounds, rows, threads, vdso_rows, windows};
use crate::packages::packages;
use crate::procfs::{argv, running_times, time_zone_of};
use crate::raw_window::RawWindow;
use crate::sys::children_times;
use crate::table::Table;
use crate::windows::Windows;
use nix::sys::utsname::uname;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};
use systoll_model::{
    BackendKind, Exit, Header, InPlace, LongCall, Prices, Problem, Process, Recording, Row, RowTrunk, Spread, TimeZone,
    VdsoRow,
};
use systoll_price::{BesideCalls, Measuring};
use systoll_symbols::Symbols;

/// What is known of a run before it begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunFacts {
    pub(crate) command: Vec<String>,
    pub(crate) crossing_before: Spread,
    /// User and system time of children that are none of the command's, ns.
    pub(crate) children_before: (u64, u64),
    pub(crate) started_unix: u64,
    pub(crate) seed: u64,
    pub(crate) time_zone: TimeZone,
}

impl RunFacts {
    /// Of a run that begins now.
    pub(crate) fn of(launch: &Launch, crossing_before: Spread) -> Self {
        Self {
            command: launch.command.iter().map(|w| w.to_string_lossy().into_owned()).collect(),
            crossing_before,
            children_before: children_times(),
            started_unix: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
            seed: launch.seed,
            time_zone: time_zone(launch),
        }
    }

    /// Of processes that run already and are watched from now on.
    pub(crate) fn of_running(running: &Running, crossing_before: Spread) -> Self {
        let first = running.pids.first().copied().unwrap_or(0);
        let (ours, theirs) = (children_times(), running_times(running.pids.iter().copied()));
        Self {
            command: argv(first).iter().map(|word| word.to_string()).collect(),
            // What they have used before is no part of what is watched.
            children_before: (ours.0.saturating_add(theirs.0), ours.1.saturating_add(theirs.1)),
            time_zone: time_zone_of(first),
            ..Self::of(&running.how, crossing_before)
        }
    }

    /// Leaves out what children of ours have used between two readings.
    pub(crate) fn leave_out(&mut self, from: (u64, u64), to: (u64, u64)) {
        self.children_before.0 += to.0.saturating_sub(from.0);
        self.children_before.1 += to.1.saturating_sub(from.1);
    }

    /// Prices of a run, but for those of calls.
    pub(crate) fn prices(&self, crossing_after: Spread, beside: Measuring) -> Prices {
        let BesideCalls { fault, switch } = beside.wait();
        Prices { crossing_before: self.crossing_before, crossing_after, fault, switch, calls: BTreeMap::new() }
    }
}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) wall_ns: u64,
    /// How the command has ended.
    pub(crate) exit: Option<Exit>,
    /// User and system time that it and its descendants have used, ns.
    used: (u64, u64),
}

impl Progress {
    /// Of a run whose ended processes have used `children`; where the command has not ended, those that run are
    /// asked too.
    pub(crate) fn of(table: &Table, wall_ns: u64, exit: Option<Exit>, children: (u64, u64)) -> Self {
        let mut used = children;
        if exit.is_none() {
            let running = running_times(table.images.iter().map(|i| i.pid));
            used = (used.0.saturating_add(running.0), used.1.saturating_add(running.1));
        }
        Self { wall_ns, exit, used }
    }

    /// The same of processes that were left running when they had `used` so much.
    pub(crate) fn of_left(wall_ns: u64, children: (u64, u64), used: (u64, u64)) -> Self {
        let used = (children.0.saturating_add(used.0), children.1.saturating_add(used.1));
        Self { wall_ns, exit: None, used }
    }

    /// User and system time, before what is left out of it.
    pub(crate) fn used(&self) -> (u64, u64) {
        self.used
    }
}

/// A header, but for what the backend itself measures: of the observer's share it says nothing yet.
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

/// This box's own name, as far as it is text.
fn node() -> String {
    uname().map_or_else(|_| String::new(), |names| names.nodename().to_string_lossy().into_owned())
}

/// A table with its names.
pub(crate) struct Named {
    names: Names,
    pub(crate) rows: Vec<Row>,
    vdso: Vec<VdsoRow>,
    trunks: Vec<RowTrunk>,
    pub(crate) problems: Vec<Problem>,
}

/// What a backend adds to a table with its names.
pub(crate) struct Parts {
    pub(crate) header: Header,
    pub(crate) processes: Vec<Process>,
    pub(crate) prices: Prices,
    pub(crate) longest: Vec<LongCall>,
    pub(crate) in_place: Vec<InPlace>,
    /// Those to be told, in the order they were opened.
    pub(crate) windows: Vec<RawWindow>,
}

impl Named {
    /// Names all that is in a table; `problems` are those of the run.
    pub(crate) fn of(table: &Table, symbols: &mut Symbols, mut problems: Vec<Problem>) -> Self {
        note_bounds(table, &mut problems);
        let names = Names::resolve(table, symbols);
        // Our own memory may be mapped there too.
        problems.extend(names.problems.iter().filter(|p| !p.text.starts_with("/memfd:systoll:")).cloned());
        let (rows, vdso) = (rows(table, &names, symbols), vdso_rows(table, &names, symbols));
        let trunks = names.trunks(table);
        Self { names, rows, vdso, trunks, problems }
    }

    /// The recording.
    pub(crate) fn recording(self, table: &Table, kept: &Windows, parts: Parts) -> Recording {
        let Parts { header, processes, prices, longest, in_place, windows: all } = parts;
        Recording {
            packages: packages(&self.names.frames, &self.rows),
            header,
            processes,
            modules: self.names.modules,
            frames: self.names.frames,
            stacks: self.names.stacks,
            rows: self.rows,
            vdso: self.vdso,
            threads: threads(table),
            windows: windows(kept, all),
            ledgers: kept.ledger.ledgers(),
            trunks: self.trunks,
            longest,
            prices,
            problems: self.problems,
            in_place,
        }
    }
}
