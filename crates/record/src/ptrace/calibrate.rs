//! Measures the time that watching by ptrace adds to a call, on a child of our own.

use super::patience::Patience;
use crate::error::Error;
use crate::procfs::Schedstat;
use crate::sys;
use crate::tracee::{self, Call, Stop, Waited};
use std::time::Duration;
use systoll_model::BackendKind;

/// Time for measuring the crossing before a run, and again after it.
pub(super) const CROSSING: Duration = Duration::from_millis(2);

/// Number of calls made before measuring begins; the next constant is the number of calls whose wall time is measured.
const WARM: u64 = 60;
const TIMED: u64 = 200;
/// Number of further calls, whose processor time is measured. The same calls give the time between their stops and
/// around them: if the scheduler has tracer and child on two processors, a stop costs ten times as much, and the
/// scheduler may change its mind at any time.
const MEASURED: u64 = 400;

/// The cost of being watched, by call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    /// Processor time that the target takes for a watched call, including the crossing itself, ns.
    pub(super) cpu_ns: f64,
    /// Wall time of a watched call, including the crossing itself, ns. The tracer's work beyond the barest handling of
    /// a stop (names, counting) comes on top.
    pub(super) wall_ns: f64,
    /// The part of `cpu_ns` that falls between a call's two stops.
    pub(super) inside_ns: f64,
}

/// Watches a child that makes getppid calls, with the barest handling of each stop. Returns the cost.
///
/// # Errors
/// If no child can be made or watched.
pub(super) fn calibrate() -> Result<Cost, Error> {
    let watcher = std::process::id() as i32;
    // SAFETY: the child makes only plain system calls until it exits.
    let pid = match unsafe { libc::fork() } {
        -1 => return Err(Error::own("can't start a process", std::io::Error::last_os_error())),
        // SAFETY: this is the forked child, see above.
        0 => unsafe { child(watcher) },
        pid => pid,
    };
    let cost = measure(pid);
    // SAFETY: our own child, not yet reaped; it may have ended by itself.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    loop {
        match tracee::wait_for(pid, true) {
            Waited::NoChildren | Waited::Stop(Stop::Exited { .. } | Stop::Killed { .. }) => break,
            // The child stops once more on its way out.
            Waited::Stop(_) => drop(tracee::resume_to_call(pid, 0)),
            Waited::Interrupted | Waited::NothingYet => {}
        }
    }
    cost
}

/// # Safety
/// Must run in a forked child, which it never leaves.
unsafe fn child(watcher: i32) -> ! {
    // SAFETY: system calls without memory arguments.
    unsafe {
        // If the watcher is killed, nothing else would wake the child.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != watcher {
            libc::_exit(0);
        }
        // Stop until the tracer has attached. The loop makes more calls than are measured.
        libc::raise(libc::SIGSTOP);
        for _ in 0..WARM + TIMED + MEASURED + 100 {
            libc::syscall(libc::SYS_getppid);
        }
        libc::_exit(0)
    }
}

fn measure(pid: i32) -> Result<Cost, Error> {
    let refused = |reason: String| Error::Refused { backend: BackendKind::Ptrace, reason };
    tracee::seize(pid, tracee::ALL)
        .map_err(|e| refused(format!("PTRACE_SEIZE of a child of our own: {}", e.desc())))?;
    let mut progress = Progress { schedstat: Schedstat::open(pid, pid), ..Progress::default() };
    let mut patience = Patience::new();
    loop {
        let stop = match patience.wait(sys::now(), true, |block| tracee::wait_for(pid, block)) {
            Waited::Stop(stop) => stop,
            Waited::NoChildren => return Err(refused("the child is gone".into())),
            _ => continue,
        };
        match stop {
            Stop::Syscall { .. } => {
                let _ = tracee::registers(pid);
                if let Some(cost) = progress.at(tracee::call(pid).ok()) {
                    return Ok(cost);
                }
                let _ = tracee::resume_to_call(pid, 0);
            }
            Stop::Event { signal: libc::SIGSTOP, .. } => {
                // SAFETY: our own child, not yet reaped: wakes it from its group stop.
                unsafe { libc::kill(pid, libc::SIGCONT) };
                let _ = tracee::listen(pid);
            }
            // This is the SIGSTOP that is being delivered, or the SIGCONT that ends the stop.
            Stop::Signal { signal, .. } => {
                let _ = tracee::resume_to_call(pid, signal);
            }
            Stop::Event { .. } => {
                let _ = tracee::resume_to_call(pid, 0);
            }
            Stop::Exited { .. } | Stop::Killed { .. } => return Err(refused("the child ended early".into())),
        }
    }
}

/// Progress of the measurement: calls so far, and their times.
#[derive(Default)]
struct Progress {
    schedstat: Option<Schedstat>,
    exits: u64,
    began: u64,
    wall: u64,
    /// Processor time of the child at its previous stop, ns.
    before: u64,
    inside: u64,
    around: u64,
}

impl Progress {
    /// Returns the child's processor time since its previous stop, ns.
    fn ran(&mut self) -> u64 {
        let now = self.schedstat.as_ref().and_then(Schedstat::read).map_or(0, |r| r.cpu_ns);
        now.saturating_sub(std::mem::replace(&mut self.before, now))
    }

    /// Handles a stop. Returns the cost once everything is measured.
    fn at(&mut self, call: Option<Call>) -> Option<Cost> {
        let timed = WARM + TIMED;
        match call {
            Some(Call::Entry { .. }) if self.exits >= timed => self.around += self.ran(),
            Some(Call::Exit { .. }) => {
                self.exits += 1;
                if self.exits == WARM {
                    self.began = sys::now();
                }
                if self.exits == timed {
                    self.wall = sys::now().saturating_sub(self.began);
                    self.ran();
                }
                if self.exits > timed {
                    self.inside += self.ran();
                }
            }
            _ => {}
        }
        (self.exits == timed + MEASURED).then(|| Cost {
            cpu_ns: (self.around + self.inside) as f64 / MEASURED as f64,
            wall_ns: self.wall as f64 / TIMED as f64,
            inside_ns: self.inside as f64 / MEASURED as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_watched_call_costs_microseconds() {
        let cost = super::calibrate().unwrap();
        // The ratio of the parts depends on the other load of the machine; they exist in any case.
        assert!(cost.cpu_ns > 100.0 && cost.wall_ns > 100.0 && cost.inside_ns > 0.0, "{cost:?}");
    }
}
