//! Windows that are open in threads, and the stack that was unwound last.

use crate::inproc::monitor::handles::{NodeAddr, ProgramId, SlotRef};
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::raw_window::RawWindow;
use crate::table::Table;
use crate::windows::Windows;
use std::collections::HashMap;
use std::time::Duration;
use systoll_symbols::PlacedFrame;

/// A window that is open in a thread.
pub(crate) struct Open {
    pub(crate) window: RawWindow,
    /// The record of the call under way, and its cycles and waited cycles when the call began.
    pub(crate) under_way: Option<(u64, u64, u64)>,
}

/// A waiting thread's stack, as it was unwound for the question before: a context that is seen for
/// the first time is most often looked at right away.
pub(crate) struct LastUnwound {
    pub(crate) tid: i32,
    /// Stack pointer at the hook.
    pub(crate) sp: u64,
    /// The answer.
    pub(crate) node: NodeAddr,
    pub(crate) frames: Vec<PlacedFrame>,
    pub(crate) complete: bool,
}

impl LastUnwound {
    /// Whether it is that of a thread that asks about a call counted at `node`.
    pub(crate) fn is_of(&self, waiter: &Waiter, node: NodeAddr) -> bool {
        (self.tid, self.sp, self.node) == (waiter.tid, waiter.sp, node)
    }
}

/// What was seen of the first call of a window that its thread writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looked {
    pub(crate) row: u32,
    pub(crate) nth: u64,
    pub(crate) stack: Option<u32>,
    /// Whether the window is accounted for.
    pub(crate) opened: bool,
}

/// What looks at single calls have cost, the thread's share and ours.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Looks {
    spent: Duration,
}

impl Looks {
    /// Accounts for looks that have taken their thread and us so long. Ours counts for half: the program does not
    /// wait for it, and has mostly another processor.
    pub(crate) fn spend(&mut self, thread: Duration, ours: Duration) {
        self.spent += thread + ours / 2;
    }

    /// By which power of two looks are to be rarer, in a run that may spend so much on them.
    pub(crate) fn shift(&self, budget: Duration) -> u32 {
        // Looks become rarer before all is spent, so that some are left for what comes later.
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
    /// When windows open, and what is kept of them.
    pub(crate) budget: Windows,
    pub(crate) open: HashMap<SlotRef, Open>,
    /// Of windows that threads write, what the launcher saw.
    pub(crate) looked: HashMap<SlotRef, Looked>,
    /// Threads' numbers within the recording.
    pub(crate) ordinals: HashMap<SlotRef, u32>,
    next_ordinal: u32,
    /// What single looks have cost.
    pub(crate) looks: Looks,
    /// Room to copy what threads have written to: a new one each time costs as much as reading it.
    pub(crate) room: Vec<u8>,
    /// The stack that was unwound for the last question, if that was about a context.
    pub(crate) unwound: Option<LastUnwound>,
}

impl OpenWindows {
    /// None is open.
    pub(crate) fn new(budget: Windows) -> Self {
        Self {
            budget,
            open: HashMap::new(),
            looked: HashMap::new(),
            ordinals: HashMap::new(),
            next_ordinal: 0,
            looks: Looks::default(),
            room: Vec::new(),
            unwound: None,
        }
    }

    /// Keeps what a thread's open window has.
    pub(crate) fn close(&mut self, table: &mut Table, thread: SlotRef) {
        if let Some(open) = self.open.remove(&thread) {
            self.budget.keep(table, open.window);
        }
    }

    /// Keeps what all open windows of a program have.
    pub(crate) fn close_all(&mut self, table: &mut Table, program: ProgramId) {
        for thread in self.open.keys().copied().filter(|thread| thread.program == program).collect::<Vec<_>>() {
            self.close(table, thread);
        }
    }

    /// A thread's number within the recording.
    pub(crate) fn ordinal(&mut self, thread: SlotRef) -> u32 {
        let next = &mut self.next_ordinal;
        *self.ordinals.entry(thread).or_insert_with(|| {
            *next += 1;
            *next - 1
        })
    }

    /// A thread's slot is in another program now.
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
