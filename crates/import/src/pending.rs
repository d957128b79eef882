//! Keeps calls that have been entered and have not returned, one for each thread.

use crate::call::{Call, Syscall, Times, Written};
use crate::frames::TracedFrame;
use crate::hash::Map;

/// Largest number of threads whose calls are kept.
const MOST: usize = 65_536;
/// Largest number of bytes of all kept arguments together; further calls are kept without.
const MOST_BYTES: usize = 32 << 20;

/// A call that has not returned.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entered {
    pub(crate) syscall: Syscall,
    pub(crate) text: Vec<u8>,
    pub(crate) written: Written,
    pub(crate) entry_ns: Option<u64>,
    pub(crate) stack: Vec<TracedFrame>,
    /// True if the line ended in the middle: the program wrote in between, or the trace is cut.
    pub(crate) broken: bool,
}

/// All unreturned calls, by thread.
#[derive(Default)]
pub(crate) struct Pending {
    calls: Map<u32, Entered>,
    bytes: usize,
}

impl Pending {
    /// Notes that a thread enters a call. Returns an earlier call of the thread, which was lost in
    /// the trace.
    pub(crate) fn enter(&mut self, tid: u32, mut entered: Entered) -> Option<Entered> {
        let before = self.take(tid);
        if self.calls.len() >= MOST {
            return before;
        }
        if self.bytes.saturating_add(entered.text.len()) > MOST_BYTES {
            entered.text = Vec::new();
        }
        self.bytes += entered.text.len();
        self.calls.insert(tid, entered);
        before
    }

    /// Removes and returns the call that a thread is in.
    pub(crate) fn take(&mut self, tid: u32) -> Option<Entered> {
        let entered = self.calls.remove(&tid)?;
        self.bytes -= entered.text.len();
        Some(entered)
    }

    /// Returns the call that a thread is in.
    pub(crate) fn call_of(&self, tid: u32) -> Option<&Entered> {
        self.calls.get(&tid)
    }

    /// Returns the stack of the call that a thread is in, for adding frames.
    pub(crate) fn stack_mut(&mut self, tid: u32) -> Option<&mut Vec<TracedFrame>> {
        self.calls.get_mut(&tid).map(|entered| &mut entered.stack)
    }

    /// Gives the pending call of one thread to another thread id.
    pub(crate) fn rename(&mut self, from: u32, to: u32) {
        if let Some(entered) = self.calls.remove(&from) {
            self.calls.insert(to, entered);
        }
    }

    /// Returns the calls left when the trace ends, by thread.
    pub(crate) fn drain(&mut self) -> Vec<(u32, Entered)> {
        self.bytes = 0;
        let mut all: Vec<(u32, Entered)> = self.calls.drain().collect();
        all.sort_by_key(|(tid, _)| *tid);
        all
    }
}

impl Entered {
    /// Returns the call and its stack as they were when the call returned; the result is `None` if
    /// it never did.
    pub(crate) fn returned(self, tid: u32, result: Option<i64>, elapsed_ns: Option<u64>) -> (Call, Vec<TracedFrame>) {
        let times = Times { entry_ns: self.entry_ns, elapsed_ns };
        let Self { syscall, text, written, stack, .. } = self;
        (Call { tid, syscall, text, written, result, told: Vec::new(), times }, stack)
    }
}
