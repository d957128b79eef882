//! Threads that we are attached to, each from the question before its `execve` to the exec stop.

use crate::inproc::monitor::handles::SlotRef;
use crate::inproc::monitor::root_process::RootProcess;
use crate::inproc::monitor::sys;
use crate::tracee::{self, Stop, Waited};
use std::collections::HashMap;
use systoll_model::Exit;

/// Time that a thread may take to stop before it is let go, ns.
const STOPS_NS: u64 = 500_000_000;

/// A thread to which we are attached because it is about to exec.
#[derive(Debug)]
pub(crate) struct Seized {
    /// The slot from which the thread asked; `None` for the command's own first exec.
    pub(crate) from: Option<SlotRef>,
}

/// The threads to which we are attached.
#[derive(Debug)]
pub(crate) struct Tracees {
    pub(crate) seized: HashMap<i32, Seized>,
    /// Threads whose exec has failed: they are let go unless another exec follows at once.
    pub(crate) lingering: Vec<i32>,
    /// True if set-id programs keep their privilege while systoll traces.
    pub(crate) privileged: bool,
}

impl Tracees {
    /// Creates an empty set of tracees.
    pub(crate) fn new() -> Self {
        let privileged = crate::setid::can_trace_privileged();
        Self { seized: HashMap::new(), lingering: Vec::new(), privileged }
    }

    /// Removes a thread that has executed a program, has ended or is let go.
    pub(crate) fn forget(&mut self, tid: i32) -> Option<Seized> {
        self.lingering.retain(|t| *t != tid);
        self.seized.remove(&tid)
    }

    /// Detaches from a thread that may be running, once it has stopped.
    pub(crate) fn let_go(&mut self, root: &mut RootProcess, tid: i32) {
        self.let_go_by(root, tid, sys::now() + STOPS_NS);
    }

    /// Does the same as [`Tracees::let_go`], but waits at most until `deadline`.
    pub(crate) fn let_go_by(&mut self, root: &mut RootProcess, tid: i32, deadline: u64) {
        self.forget(tid);
        if tracee::interrupt(tid).is_err() {
            return;
        }
        match tracee::wait_for_stop_by(tid, deadline) {
            Waited::Stop(stop) => drop(tracee::detach(tid, stop.signal_to_leave_with().unwrap_or(0))),
            // Reap a thread that has ended right here, since the loop may not run any more.
            Waited::NoChildren => match tracee::wait_for(tid, false) {
                Waited::Stop(Stop::Exited { tid, code }) => {
                    root.note_end(tid, Exit::Code(code));
                }
                Waited::Stop(Stop::Killed { tid, signal }) => {
                    root.note_end(tid, Exit::Signal(signal));
                }
                _ => {}
            },
            Waited::NothingYet | Waited::Interrupted => {}
        }
    }
}
