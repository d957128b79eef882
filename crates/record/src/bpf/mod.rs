//! The bpf backend: small programs in the kernel count calls where every program enters and leaves it, and send some of
//! them whole. It takes rights, and changes nothing in a target: no stop, no code, no memory.
//!
//! Invariants: what the programs count is in maps that only this process has; when it ends, however it ends, the kernel
//! removes programs and maps. Each call that was entered is counted as returned or not, or said to be lost.

mod arch;
mod call;
mod counter;
mod descriptors;
mod finish;
mod images;
mod layout;
mod mappings;
mod object;
mod places;
mod refusal;
mod ring;
mod sample;
mod sampling;
mod session;
mod whole_box;

use crate::assemble::RunFacts;
use crate::backend::{Backend, Closely, Control, HowToWatch, Launch, Probe, Running};
use crate::error::Error;
use crate::launch::{self, Held};
use crate::procfs;
use crate::signals::Signals;
use crate::table::Table;
use counter::{Counter, ROWS, ROWS_OF_BOX, Wanted};
use images::Images;
use layout::Allowance;
use session::{Limits, Session, Watching};
use std::collections::BTreeSet;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Instant;
use systoll_model::{Attached, BackendKind, Recording, Spread, TimeZone};
use systoll_price::CROSSING_BUDGET;
use systoll_symbols::Symbols;

/// Calls of one measurement of what watching adds, and measurements, of which the fastest counts. Ones of 1,000 calls gave 211 to
/// 419 ns in 20 runs on a busy box, those of 250 gave 210 to 235 (2026-11-30).
const MEASURED: u32 = 250;
const MEASUREMENTS: u32 = 5;

/// The backend that watches from the kernel.
#[derive(Debug, Default)]
pub struct BpfBackend {
    /// What was read of files while a whole box was watched: the next time, most of them are the same.
    of_box: Symbols,
}

impl BpfBackend {
    /// Creates a backend that has probed nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
}

fn refused(reason: String) -> Error {
    Error::refused(BackendKind::Bpf, reason)
}

fn no_thread(e: std::io::Error) -> Error {
    Error::own("can't start a thread (ulimit -u, or -v or -d for its stack)", e)
}

/// Refuses what this backend can't do.
fn examine(how: &HowToWatch) -> Result<(), Error> {
    if !how.elisions.is_empty() {
        return Err(Error::NoElision(BackendKind::Bpf));
    }
    if how.longer.is_some() {
        return Err(refused(
            "of single calls it keeps those that wait for 1 ms and more, and --longer asks for others, too".into(),
        ));
    }
    if how.until.is_some() {
        return Err(refused("it sees neither what is written nor where main begins".into()));
    }
    crate::sandbox::kills(BackendKind::Bpf).map_or(Ok(()), |why| Err(refused(why)))
}

/// Loads the programs, with room for so many rows.
fn load(how: &HowToWatch, follows: bool, rows: u32) -> Result<Counter, Error> {
    let (timed, samples) = (how.closely != Closely::CountsOnly, how.closely == Closely::All);
    let wanted = Wanted { timed, follows, samples, rows, rings: (ring::EVENTS, ring::SAMPLES) };
    Counter::load(wanted).map_err(refused)
}

impl Backend for BpfBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Bpf
    }

    fn probe(&self) -> Probe {
        let mut probe = Probe { kind: BackendKind::Bpf, can_run: false, found: Vec::new(), missing: Vec::new() };
        match self.cost() {
            Ok(cost) => {
                probe.can_run = true;
                probe.found.push(format!("counted calls of its own in the kernel, +{:.0} ns a call", cost.min));
            }
            Err(Error::Refused { reason, .. }) => {
                let help = reason.contains("CAP_").then(|| RUN_AS_ROOT.to_owned());
                probe.missing.push((reason, help));
            }
            Err(e) => probe.missing.push((e.to_string(), None)),
        }
        probe
    }

    fn cost(&self) -> Result<Spread, Error> {
        let mut counter = load(&HowToWatch { closely: Closely::Totals, ..HowToWatch::default() }, true, ROWS)?;
        let crossing = systoll_price::crossing(CROSSING_BUDGET);
        counter.attach().map_err(refused)?;
        let mut added = Vec::new();
        for _ in 0..MEASUREMENTS {
            added.push((measure(&mut counter, 1).map_err(refused)?.0 - crossing.min).max(0.0));
        }
        added.sort_by(f64::total_cmp);
        Ok(Spread { min: added[0], median: added[added.len() / 2], high: added[added.len() - 1] })
    }

    fn run(&mut self, launch: &Launch, control: &mut dyn Control) -> Result<Recording, Error> {
        examine(&launch.how)?;
        let prepared = launch::prepare(launch)?;
        let _limits = crate::limits::Raised::new();
        let mut counter = load(&launch.how, true, ROWS)?;
        let signals = Signals::of(&launch.how, launch.grace)?;
        let facts = RunFacts::of(launch, systoll_price::crossing(CROSSING_BUDGET));
        let mut held = prepared.start(&signals.original_mask())?;
        let begun = watch_held(&mut counter, held.pid, &facts);
        let (image, watching) = match begun {
            Ok(begun) => begun,
            Err(reason) => {
                end_held(held);
                return Err(refused(reason));
            }
        };
        signals.watch(held.pid, control.every());
        control.begins();
        let mut table = Table::default();
        let images = Images::started(held.pid, image, &mut table);
        let mut session = Session::new(counter, table, images, &launch.how);
        (session.facts, session.watching) = (facts, watching);
        session.sampling.begin(&session.counter).map_err(no_thread)?;
        (session.root.pid, session.root.ends) = (held.pid, process_descriptor(held.pid));
        held.release().map_err(|e| Error::own("can't let the child go", e))?;
        session.wait_for_exec();
        if !session.images.has_begun {
            return Err(held.not_begun(prepared.program(), session.root.exit));
        }
        let limits = Limits { linger: launch.linger, deadline: None, calls: None, uncounted: 0 };
        session.watch(&signals, control, &limits);
        signals.release();
        Ok(session.finish().0)
    }

    fn attach(&mut self, running: &Running, control: &mut dyn Control) -> Result<Recording, Error> {
        examine(&running.how)?;
        if running.in_turns {
            return Err(Error::NoElision(BackendKind::Bpf));
        }
        let not_entered = |pid: i32, reason: &str| Error::NotEntered {
            pid,
            name: procfs::comm(pid),
            reason: reason.into(),
            advice: None,
        };
        if let Some(gone) = running.pids.iter().find(|pid| procfs::tgid(**pid).is_none()) {
            return Err(not_entered(*gone, "there is no such process"));
        }
        let _limits = crate::limits::Raised::new();
        let rows = if running.whole_box { ROWS_OF_BOX } else { ROWS };
        let mut counter = load(&running.how, !running.no_children, rows)?;
        let signals = Signals::of(&running.how, None)?;
        let mut facts = RunFacts::of_running(running, systoll_price::crossing(CROSSING_BUDGET));
        if running.whole_box {
            (facts.command, facts.time_zone) = (WHOLE_BOX.map(String::from).to_vec(), TimeZone::Unknown);
        }
        counter.attach().map_err(refused)?;
        let watching = calibrate(&mut counter, facts.crossing_before.min).map_err(refused)?;
        let mut session = Session::new(counter, Table::default(), Images::default(), &running.how);
        (session.facts, session.watching) = (facts, watching);
        session.sampling.begin(&session.counter).map_err(no_thread)?;
        let oldest = running.whole_box.then_some(1);
        let age_ns = running.pids.iter().chain(&oldest).filter_map(|pid| procfs::age_ns(*pid)).max().unwrap_or(0);
        session.attached = Some(Attached { age_ns, longest_stop_ns: 0, left_running: false });
        session.images.is_whole_box = running.whole_box;
        if running.whole_box {
            session.sampling.symbols = std::mem::take(&mut self.of_box);
        }
        let mut uncounted = if running.whole_box { session.enter_all() } else { 0 };
        for pid in &running.pids {
            uncounted += session.enter(*pid).map_err(|reason| not_entered(*pid, &reason))?;
        }
        // No process is ours: a signal ends the watching.
        signals.watch(0, control.every());
        let deadline = running.limit.map(|limit| session.start_ns.saturating_add(limit.as_nanos() as u64));
        let limits = Limits { linger: std::time::Duration::ZERO, deadline, calls: running.calls, uncounted };
        session.watch(&signals, control, &limits);
        signals.release();
        let (recording, symbols) = session.finish();
        if running.whole_box {
            self.of_box = symbols;
        }
        Ok(recording)
    }
}

/// The command of a recording in which all of a box was watched; a word that had blanks would be quoted in reports.
const WHOLE_BOX: [&str; 5] = ["all", "processes", "of", "this", "box"];
/// The command that has the rights.
const RUN_AS_ROOT: &str = "sudo systoll run --backend bpf -- CMD";

impl Session {
    /// Watches all threads of a process that runs. Returns their number.
    fn enter(&mut self, pid: i32) -> Result<i64, String> {
        let mut threads = BTreeSet::new();
        let mut image = None;
        let mut entered = 0u32;
        // A thread that is watched has its children watched by the kernel, so at some point no new ones appear.
        loop {
            let before = threads.len();
            for tid in procfs::threads(pid) {
                if !threads.insert(tid) || self.counter.watches(tid) {
                    continue;
                }
                let own = self.counter.watch(tid, image, false)?;
                if procfs::is_ending(tid) && self.counter.watches(tid) {
                    // It ended before it was watched, so the kernel will not report its end.
                    self.counter.forget(tid);
                    continue;
                }
                image.get_or_insert(own);
                entered += 1;
            }
            if threads.len() == before {
                break;
            }
        }
        let image = image.ok_or("it has ended")?;
        self.images.add_running(pid, image, entered, &mut self.table);
        self.sampling.add_running(image);
        Ok(i64::from(entered))
    }
}

/// Watches the child that is to become the command, and begins to count. Returns its image and the cost of watching.
fn watch_held(counter: &mut Counter, pid: i32, facts: &RunFacts) -> Result<(u64, Watching), String> {
    let image = counter.watch(pid, None, true)?;
    counter.add_living(1)?;
    counter.attach()?;
    Ok((image, calibrate(counter, facts.crossing_before.min)?))
}

/// Ends a child that was not released.
fn end_held(held: Held) {
    let pid = held.pid;
    // When the pipe is dropped, the child exits without executing the program.
    drop(held);
    // SAFETY: our own child, which nobody else reaps; no status is wanted.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } < 0
        && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
    {}
}

/// Returns a descriptor that can be read once a child has ended; `None` if the kernel has none to give.
fn process_descriptor(pid: i32) -> Option<OwnedFd> {
    // SAFETY: takes two numbers; the descriptor is new and ours alone.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as i32))
    }
}

/// Measures what watching adds to a call of ours.
fn calibrate(counter: &mut Counter, crossing_ns: f64) -> Result<Watching, String> {
    let (watched_ns, inside_ns) = measure(counter, MEASUREMENTS)?;
    Ok(Watching { added_ns: (watched_ns - crossing_ns).max(0.0), inside_ns })
}

/// Watches this thread for some calls. Returns the time of a call, and the part of it that the programs measure, ns.
fn measure(counter: &mut Counter, times: u32) -> Result<(f64, f64), String> {
    // SAFETY: returns a number.
    let tid = unsafe { libc::gettid() };
    let mut fastest = f64::INFINITY;
    counter.allow(Allowance { rows: u64::MAX, stacks: 2, ..Allowance::default() });
    let image = counter.watch(tid, None, false)?;
    // The place of these calls is learned as those of a program are.
    for _ in 0..2 {
        // SAFETY: returns a number.
        unsafe { libc::getppid() };
        counter.learn_own(tid);
    }
    for _ in 0..times.max(1) {
        let begun = Instant::now();
        for _ in 0..MEASURED {
            // SAFETY: returns a number.
            unsafe { libc::getppid() };
        }
        fastest = fastest.min(begun.elapsed().as_nanos() as f64 / f64::from(MEASURED));
    }
    let row = counter.forget_own(tid, image, libc::SYS_getppid as u32);
    counter.drop_samples();
    Ok((fastest, row.elapsed as f64 / row.timed.max(1) as f64))
}
