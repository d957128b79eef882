//! Windows that are open in threads, and the stack that was unwound last.

use crate::inproc::monitor::handles::{NodeAddr, ProgramId, SlotRef};
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::raw_window::RawWindow;
use crate::table::Table;
use crate::windows::Windows;
use std::collections::HashMap;
use std::time::Duration;
use systoll_model::Sysno;
use systoll_symbols::PlacedFrame;

/// An open window of a thread.
pub(crate) struct Open {
    pub(crate) window: RawWindow,
    /// Offset of the pending call's record, and the record's cycles and waited cycles when the call began.
    pub(crate) under_way: Option<(u64, u64, u64)>,
}

/// A waiting thread's stack, as it was unwound for the previous question: a context that is seen for the first time is
/// usually sampled right away.
pub(crate) struct LastUnwound {
    pub(crate) tid: i32,
    /// Stack pointer of the thread at the hook.
    pub(crate) sp: u64,
    /// The node with which the previous question was answered.
    pub(crate) node: NodeAddr,
    pub(crate) frames: Vec<PlacedFrame>,
    pub(crate) complete: bool,
}

impl LastUnwound {
    /// Returns true if this is the stack of a thread that asks about a call counted at `node`.
    pub(crate) fn is_of(&self, waiter: &Waiter, node: NodeAddr) -> bool {
        (self.tid, self.sp, self.node) == (waiter.tid, waiter.sp, node)
    }
}

/// The launcher's view of the first call of a window that its thread writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looked {
    pub(crate) row: u32,
    pub(crate) nth: u64,
    pub(crate) stack: Option<u32>,
    /// True if the window has been accounted for.
    pub(crate) opened: bool,
}

/// A receive under way whose sample the launcher takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampledReceive {
    pub(crate) row: u32,
    pub(crate) syscall: Sysno,
    pub(crate) args: [u64; 6],
    /// Number of receives for which this one stands.
    pub(crate) stands_for: u64,
}

/// Time spent on samples of single calls, by the threads and by us.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Looks {
    spent: Duration,
}

impl Looks {
    /// Accounts for samples that took these times of their thread and of us. Our time counts half: the program does not
    /// wait for it, and usually runs on another processor.
    pub(crate) fn spend(&mut self, thread: Duration, ours: Duration) {
        self.spent += thread + ours / 2;
    }

    /// Returns the power of two by which samples become rarer, in a run with this budget for them.
    pub(crate) fn shift(&self, budget: Duration) -> u32 {
        // Samples become rarer before the budget is spent, so that some are left for later calls.
        let eighths = self.spent.as_nanos().saturating_mul(8) / budget.as_nanos().max(1);
        match eighths {
            0..7 => 0,
            7 => 2,
            8..10 => 4,
            _ => 7,
        }
    }
}

/// Windows of a run.
pub(crate) struct OpenWindows {
    /// Policy that decides when windows open, and the windows kept.
    pub(crate) budget: Windows,
    pub(crate) open: HashMap<SlotRef, Open>,
    /// First calls of windows that threads write.
    pub(crate) looked: HashMap<SlotRef, Looked>,
    /// Nodes at which threads receive, and ask at their first call, if requests are to be reported.
    pub(crate) receive_nodes: Vec<(ProgramId, NodeAddr)>,
    /// Threads that were seen to receive from a socket, if requests are to be reported.
    pub(crate) receivers: Vec<SlotRef>,
    /// Index in `receivers` of the thread to be armed next.
    pub(crate) next_receiver: usize,
    /// Threads that ask at each call until they receive, each with the number of calls that are left for that.
    pub(crate) armed: HashMap<SlotRef, u32>,
    /// Receives under way whose samples the launcher takes, with the number for which each stands.
    pub(crate) sampled: HashMap<SlotRef, SampledReceive>,
    /// Numbers of threads within the recording.
    pub(crate) ordinals: HashMap<SlotRef, u32>,
    next_ordinal: u32,
    /// Time spent on single samples.
    pub(crate) looks: Looks,
    /// Buffer into which windows written by threads are copied: allocating one each time costs as much as reading into
    /// it.
    pub(crate) room: Vec<u8>,
    /// The stack that was unwound for the last question, if that was about a context.
    pub(crate) unwound: Option<LastUnwound>,
}

impl OpenWindows {
    /// Creates a state without open windows.
    pub(crate) fn new(budget: Windows) -> Self {
        Self {
            budget,
            open: HashMap::new(),
            looked: HashMap::new(),
            receive_nodes: Vec::new(),
            receivers: Vec::new(),
            next_receiver: 0,
            armed: HashMap::new(),
            sampled: HashMap::new(),
            ordinals: HashMap::new(),
            next_ordinal: 0,
            looks: Looks::default(),
            room: Vec::new(),
            unwound: None,
        }
    }

    /// Keeps the calls of a thread's open window.
    pub(crate) fn close(&mut self, table: &mut Table, thread: SlotRef) {
        if let Some(open) = self.open.remove(&thread) {
            self.budget.keep(table, open.window);
        }
    }

    /// Keeps the calls of all open windows of a program.
    pub(crate) fn close_all(&mut self, table: &mut Table, program: ProgramId) {
        for thread in self.open.keys().copied().filter(|thread| thread.program == program).collect::<Vec<_>>() {
            self.close(table, thread);
        }
    }

    /// Returns a thread's number within the recording.
    pub(crate) fn ordinal(&mut self, thread: SlotRef) -> u32 {
        let next = &mut self.next_ordinal;
        *self.ordinals.entry(thread).or_insert_with(|| {
            *next += 1;
            *next - 1
        })
    }

    /// Notes that a thread's slot is in another program now.
    pub(crate) fn move_thread(&mut self, from: SlotRef, to: SlotRef) {
        if let Some(open) = self.open.remove(&from) {
            self.open.insert(to, open);
        }
        if let Some(ordinal) = self.ordinals.remove(&from) {
            self.ordinals.insert(to, ordinal);
        }
        if let Some(looked) = self.looked.remove(&from) {
            self.looked.insert(to, looked);
        }
    }
}
