//! Threads that are attached to, each from the question before its `execve` to the exec stop.

use crate::inproc::monitor::handles::SlotRef;
use crate::inproc::monitor::root_process::RootProcess;
use crate::inproc::monitor::sys::{self, Stop};
use std::collections::HashMap;
use systoll_model::Exit;

/// How long a thread may take to stop before it is let go, ns.
const STOPS_NS: u64 = 500_000_000;

/// A thread that was seized for its coming exec.
#[derive(Debug)]
pub(crate) struct Seized {
    /// The slot it asked from; none for the command's own first exec.
    pub(crate) from: Option<SlotRef>,
}

/// Threads that are attached to.
#[derive(Debug)]
pub(crate) struct Tracees {
    pub(crate) seized: HashMap<i32, Seized>,
    /// Of them, those whose exec has failed: they are let go unless another exec follows at once.
    pub(crate) lingering: Vec<i32>,
    /// Whether set-id programs keep their privilege while systoll traces.
    pub(crate) privileged: bool,
}

impl Tracees {
    /// Nothing is attached to.
    pub(crate) fn new() -> Self {
        let privileged = crate::setid::can_trace_privileged();
        Self { seized: HashMap::new(), lingering: Vec::new(), privileged }
    }

    /// Takes a thread off the list: it has become a program, has ended or is let go.
    pub(crate) fn forget(&mut self, tid: i32) -> Option<Seized> {
        self.lingering.retain(|t| *t != tid);
        self.seized.remove(&tid)
    }

    /// Detaches from a thread that was seized and may be running: it has to stop first.
    pub(crate) fn let_go(&mut self, root: &mut RootProcess, tid: i32) {
        self.let_go_by(root, tid, sys::now() + STOPS_NS);
    }

    /// [`Tracees::let_go`], given up at `deadline`.
    pub(crate) fn let_go_by(&mut self, root: &mut RootProcess, tid: i32, deadline: u64) {
        self.forget(tid);
        if sys::interrupt(tid).is_err() {
            return;
        }
        while sys::now() < deadline {
            let signal = match sys::wait(Some(tid), false) {
                Ok(None) | Err(nix::errno::Errno::EINTR) => {
                    std::thread::yield_now();
                    continue;
                }
                Ok(Some(Stop::Signal { signal, .. })) => signal,
                Ok(Some(Stop::Event { event: libc::PTRACE_EVENT_STOP, signal, .. })) if is_job_control(signal) => {
                    libc::SIGSTOP
                }
                Ok(Some(Stop::Event { .. })) => 0,
                Ok(Some(Stop::Exited { tid, code })) => {
                    root.note_end(tid, Exit::Code(code));
                    return;
                }
                Ok(Some(Stop::Killed { tid, signal })) => {
                    root.note_end(tid, Exit::Signal(signal));
                    return;
                }
                Err(_) => return,
            };
            let _ = sys::detach(tid, signal);
            return;
        }
    }
}

/// Whether a signal stops a process as a shell stops a job.
pub(crate) fn is_job_control(signal: i32) -> bool {
    matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
}
