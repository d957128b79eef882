//! The ptrace backend: PTRACE_SEIZE and system call stops. It works for any user and everywhere, but is slow.
//!
//! Invariants: we never set a seccomp filter in a target and never set PTRACE_O_EXITKILL; when systoll dies the kernel
//! detaches every target, and it runs on.

mod arch;
mod attach;
mod calibrate;
mod calls;
mod contexts;
mod engine;
mod family;
mod finish;
mod guard;
mod patience;
mod sampler;
mod state;
mod toll;

use crate::assemble::RunFacts;
use crate::backend::{Backend, Control, Launch, Probe, Running};
use crate::error::Error;
use crate::launch::{self, Held, Prepared};
use crate::moment::Awaited;
use crate::signals::Signals;
use crate::sys;
use crate::tracee::{self, Stop, Waited};
use calibrate::CROSSING;
use engine::Engine;
use std::time::Duration;
use systoll_model::{BackendKind, Recording, Spread};

/// The backend that watches by ptrace.
#[derive(Debug)]
pub struct PtraceBackend {
    kind: BackendKind,
}

impl Default for PtraceBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl PtraceBackend {
    /// Creates a backend that has probed nothing yet.
    pub fn new() -> Self {
        Self { kind: BackendKind::Ptrace }
    }

    /// Creates the in-process backend: programs that it starts count most of their calls themselves, and ask their tracer
    /// about the others. A preview.
    #[cfg(target_arch = "aarch64")]
    pub fn counting_inside() -> Self {
        Self { kind: BackendKind::Inproc }
    }
}

impl Backend for PtraceBackend {
    fn kind(&self) -> BackendKind {
        self.kind
    }

    fn probe(&self) -> Probe {
        let mut probe = Probe { kind: self.kind, can_run: false, found: Vec::new(), missing: Vec::new() };
        match calibrate::calibrate() {
            Ok(cost) => {
                probe.can_run = true;
                probe.found.push(format!("watched a child of its own, +{:.1} µs a call", cost.wall_ns / 1e3));
            }
            Err(e) => probe.missing.push((e.to_string(), None)),
        }
        if !crate::setid::can_trace_privileged() {
            probe.missing.push((
                "set-id programs run unwatched: watching them takes CAP_SYS_PTRACE".into(),
                Some("sudo systoll run -- CMD".into()),
            ));
        }
        probe
    }

    fn cost(&self) -> Result<Spread, Error> {
        let mut added = Vec::new();
        for _ in 0..5 {
            let crossing = systoll_price::crossing(CROSSING);
            added.push((calibrate::calibrate()?.wall_ns - crossing.min).max(0.0));
        }
        added.sort_by(f64::total_cmp);
        Ok(Spread { min: added[0], median: added[2], high: added[4] })
    }

    fn run(&mut self, launch: &Launch, control: &mut dyn Control) -> Result<Recording, Error> {
        if !launch.how.elisions.is_empty() {
            return Err(Error::NoElision(self.kind));
        }
        if let Some(why) = crate::sandbox::kills(BackendKind::Ptrace) {
            return Err(Error::refused(BackendKind::Ptrace, why));
        }
        let prepared = launch::prepare(launch)?;
        let _limits = crate::limits::Raised::new();
        let cost = calibrate::calibrate()?;
        let signals = Signals::of(&launch.how, launch.grace)?;
        let facts = RunFacts::of(launch, systoll_price::crossing(CROSSING));

        let mut engine = Engine::new(&launch.how, true);
        engine.count_as(self.kind);
        let held = prepared.start(&signals.original_mask())?;
        (engine.measured.cost, engine.measured.facts) = (cost, facts);
        engine.awaited = Awaited::of(launch);
        control.begins();
        seize_and_release(&mut engine, held, &prepared, &signals, control.every())?;
        engine.watch(Some(&signals), control, launch.linger);
        signals.release();
        Ok(engine.finish())
    }

    fn attach(&mut self, running: &Running, control: &mut dyn Control) -> Result<Recording, Error> {
        if self.kind == BackendKind::Inproc {
            let why = "it watches what it starts, not what runs already: --backend ptrace does that here";
            return Err(Error::refused(self.kind, why.into()));
        }
        if !running.how.elisions.is_empty() || running.in_turns {
            return Err(Error::NoElision(BackendKind::Ptrace));
        }
        if let Some(why) = crate::sandbox::kills(BackendKind::Ptrace) {
            return Err(Error::refused(BackendKind::Ptrace, why));
        }
        let _limits = crate::limits::Raised::new();
        let cost = calibrate::calibrate()?;
        let signals = Signals::of(&running.how, None)?;
        let facts = RunFacts::of_running(running, systoll_price::crossing(CROSSING));
        let mut engine = Engine::new(&running.how, true);
        (engine.measured.cost, engine.measured.facts) = (cost, facts);
        engine.enter_all(running)?;
        // No process is ours: a signal ends the watching.
        signals.watch(0, control.every());
        control.begins();
        std::thread::scope(|scope| {
            // Threads that wait in calls report nothing at which the end could be noticed.
            let (ended, ends) = std::sync::mpsc::channel::<()>();
            if let Some(limit) = running.limit {
                let wait = move || {
                    if ends.recv_timeout(limit).is_err_and(|e| e == std::sync::mpsc::RecvTimeoutError::Timeout) {
                        crate::signals::look_now();
                    }
                };
                crate::limits::spawn_scoped(scope, "limit", wait)
                    .map_err(|e| Error::own("can't start a thread (ulimit -u, or -v or -d for its stack)", e))?;
            }
            engine.watch(Some(&signals), control, Duration::ZERO);
            drop(ended);
            Ok::<(), Error>(())
        })?;
        signals.release();
        Ok(engine.finish())
    }
}

/// Seizes the held child while it waits, lets it exec, and makes sure that the exec succeeds.
fn seize_and_release(
    engine: &mut Engine,
    mut held: Held,
    prepared: &Prepared,
    signals: &Signals,
    every: Option<Duration>,
) -> Result<(), Error> {
    let pid = held.pid;
    let refused = |reason: String| Error::Refused { backend: BackendKind::Ptrace, reason };
    if let Err(errno) = tracee::seize(pid, tracee::ALL).and_then(|()| tracee::interrupt(pid)) {
        // When the pipe is dropped, the child exits without executing the program.
        drop(held);
        while let Waited::Interrupted = tracee::wait_for(pid, true) {}
        return Err(refused(format!("PTRACE_SEIZE of a child of our own: {}", errno.desc())));
    }
    engine.adopt_root(pid);
    signals.watch(pid, every);
    let stopped = loop {
        match tracee::wait_for(pid, true) {
            Waited::Interrupted | Waited::NothingYet => {}
            Waited::Stop(stop) => break stop,
            Waited::NoChildren => return Err(refused("the child is gone".into())),
        }
    };
    let signal = match stopped {
        Stop::Event { .. } => 0,
        Stop::Signal { signal, .. } => signal,
        Stop::Killed { signal, .. } => return Err(Error::Ended { program: prepared.program(), signal }),
        _ => return Err(refused("the child ended before it began".into())),
    };
    engine.start_ns = sys::now();
    held.release().map_err(|e| Error::own("can't let the child go", e))?;
    engine.resume(pid, signal);
    // Until the exec has succeeded or failed, this thread must drive the child, which stops at every call.
    engine.watch_until_exec();
    if engine.root.exec_done { Ok(()) } else { Err(held.not_begun(prepared.program(), engine.root.exit)) }
}
