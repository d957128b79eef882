//! Enters processes that run already: seizes their threads, and lets them go at the end.

use super::arch::OfProcess;
use super::contexts::Contexts;
use super::engine::Engine;
use super::family::foreign_program;
use super::state::{Attachment, IoAudit, Process};
use crate::backend::Running;
use crate::error::Error;
use crate::procfs;
use crate::table::Image;
use crate::tracee::{self, Waits};
use nix::errno::Errno;
use std::collections::BTreeMap;
use systoll_model::{Attached, ProblemKind};
use systoll_symbols::AddressSpace;

/// Events of new processes, at which a tracer that watches only the processes it was given does not stop.
const NEW_PROCESSES: i32 = libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK;

/// The reason why a process is not entered, and a sentence or command that helps.
struct Refusal {
    reason: String,
    advice: Option<String>,
}

impl Refusal {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), advice: None }
    }
}

impl Engine {
    /// Seizes the threads of running processes, and stops each once so that it stops at its calls from then on. A
    /// process that can't be entered is noted, unless none can.
    ///
    /// # Errors
    /// The obstacle to entering the first process, if none could be entered.
    pub(super) fn enter_all(&mut self, running: &Running) -> Result<(), Error> {
        let age_ns = running.pids.iter().filter_map(|pid| procfs::age_ns(*pid)).max().unwrap_or(0);
        self.attachment = Some(Attachment {
            facts: Attached { age_ns, longest_stop_ns: 0, left_running: false },
            deadline: running.limit.map(|limit| self.start_ns.saturating_add(limit.as_nanos() as u64)),
            calls: running.calls,
            no_children: running.no_children,
            used_by_left: None,
        });
        // Calls count from now on: no execve of ours comes before.
        (self.root.counting, self.root.exec_done) = (true, true);
        let mut first = None;
        for pid in &running.pids {
            let name = procfs::comm(*pid);
            let Err(Refusal { reason, advice }) = self.enter_process(*pid) else { continue };
            let text = format!("process {pid} ({name}) ran unwatched: {reason}");
            self.problems.note(ProblemKind::Unwatched, text);
            first.get_or_insert(Error::NotEntered { pid: *pid, name, reason, advice });
        }
        match first {
            Some(refusal) if self.threads.is_empty() => Err(refusal),
            _ => Ok(()),
        }
    }

    fn enter_process(&mut self, pid: i32) -> Result<(), Refusal> {
        obstacle(pid)?;
        let options = match self.attachment.is_some_and(|attachment| attachment.no_children) {
            true => tracee::ALL & !NEW_PROCESSES,
            false => tracee::ALL,
        };
        let mut seized = BTreeMap::new();
        // A thread that is seized has those that it makes seized by the kernel, so at some point no new ones appear.
        loop {
            let before = seized.len();
            for tid in procfs::threads(pid) {
                if self.threads.contains_key(&tid) || seized.contains_key(&tid) {
                    continue;
                }
                match enter(tid, options) {
                    Ok(waits) => drop(seized.insert(tid, waits)),
                    // It has ended, or the kernel has seized it for a thread that made it.
                    Err(Errno::ESRCH) => {}
                    Err(Errno::EPERM) if tracer(tid) == std::process::id() as i32 => {}
                    // The first thread is the first that is tried, so no other one has been seized.
                    Err(errno) if seized.is_empty() => return Err(denied(pid, errno)),
                    Err(_) => {
                        let text = format!("thread {tid} of process {pid} can't be traced and ran unwatched");
                        self.problems.note(ProblemKind::Unwatched, text);
                    }
                }
            }
            if seized.len() == before {
                break;
            }
        }
        if seized.is_empty() {
            return Err(Refusal::new("it has ended"));
        }
        self.add_running(pid);
        for (tid, waits) in seized {
            self.add_thread(tid, pid);
            if let Some(thread) = self.threads.get_mut(&tid) {
                thread.entered = Some(waits);
                // What it has used before is not part of the run.
                thread.cpu_base_ns = thread.ran(tid).map_or(0, |ran| ran.cpu_ns);
            }
        }
        Ok(())
    }

    /// Adds a process that runs already and is past its start.
    fn add_running(&mut self, pid: i32) {
        let image = Image {
            pid,
            exe: procfs::exe(pid).unwrap_or_default(),
            argv: procfs::argv(pid),
            main_at_ns: Some(0),
            ..Image::default()
        };
        let image = self.table.image(image);
        let process = Process {
            image,
            space: AddressSpace::new(),
            contexts: Contexts::default(),
            main_seen: true,
            sought_main: 0,
            threads: 0,
            start_ns: 0,
            // The kernel counts a call that was interrupted so that its thread could be entered, and we don't.
            audit: IoAudit::default(),
            maps_stale: true,
            inside: OfProcess::default(),
        };
        self.processes.insert(pid, process);
    }

    /// Returns true if running processes have been watched for as long, or for as many calls, as was asked for.
    pub(super) fn has_seen_enough(&self, now: u64) -> bool {
        let Some(Attachment { deadline, calls, .. }) = self.attachment else { return false };
        deadline.is_some_and(|deadline| now >= deadline) || calls.is_some_and(|most| self.table.calls >= most)
    }

    /// Leaves running processes: they run on as if they had never been watched.
    pub(super) fn leave_all(&mut self) {
        self.account_running();
        if let Some(attachment) = self.attachment.as_mut().filter(|_| !self.threads.is_empty()) {
            attachment.facts.left_running = true;
            attachment.used_by_left = Some(procfs::running_times(self.processes.keys().copied()));
        }
        self.let_everything_go();
    }
}

/// Attaches to a thread and asks it to stop. Returns the call in which it waits.
fn enter(tid: i32, options: i32) -> Result<Waits, Errno> {
    tracee::seize(tid, options)?;
    let waits = Waits::of(tid);
    tracee::interrupt(tid)?;
    Ok(waits)
}

/// Returns the obstacle to entering process `pid` that /proc shows.
fn obstacle(pid: i32) -> Result<(), Refusal> {
    let Some(tgid) = procfs::tgid(pid) else { return Err(Refusal::new("there is no such process")) };
    if pid == std::process::id() as i32 {
        return Err(Refusal::new("it is systoll itself"));
    }
    if tgid != pid {
        let reason = format!("it is a thread of process {tgid}");
        return Err(Refusal { reason, advice: Some(format!("systoll attach {tgid}")) });
    }
    if procfs::status_field(pid, "State:").is_some_and(|state| state.starts_with(['Z', 'X'])) {
        return Err(Refusal::new("it has ended, or its first thread has"));
    }
    let tracer = tracer(pid);
    if tracer != 0 {
        let reason = format!("process {tracer} ({}) traces it already", procfs::comm(tracer));
        let advice = "a process has one tracer at a time: end that one first, gdb by detach";
        return Err(Refusal { reason, advice: Some(advice.into()) });
    }
    match foreign_program(pid) {
        Some(what) => Err(Refusal::new(format!("it is {what}"))),
        None => Ok(()),
    }
}

/// Returns the process that traces a thread; 0 if none does.
fn tracer(tid: i32) -> i32 {
    procfs::status_field(tid, "TracerPid:").and_then(|tracer| tracer.trim().parse().ok()).unwrap_or(0)
}

/// Returns why the kernel did not let us attach to a process.
fn denied(pid: i32, errno: Errno) -> Refusal {
    let scope = procfs::read("/proc/sys/kernel/yama/ptrace_scope");
    let bounded = scope.is_some_and(|scope| !scope.starts_with(b"0"));
    let (reason, advice) = match errno {
        Errno::EPERM if !procfs::has_our_credentials(pid) => {
            ("it belongs to another user".to_owned(), format!("sudo systoll attach {pid}"))
        }
        Errno::EPERM if bounded => (
            "the kernel lets a process trace its own children only (kernel.yama.ptrace_scope)".to_owned(),
            format!("sudo systoll attach {pid}, or sudo sysctl kernel.yama.ptrace_scope=0"),
        ),
        _ => (format!("PTRACE_SEIZE: {}", errno.desc()), format!("sudo systoll attach {pid}")),
    };
    Refusal { reason, advice: Some(advice) }
}
