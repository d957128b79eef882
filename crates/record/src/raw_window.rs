//! Sampled calls and their windows, with addresses that have no names yet.

use crate::ledger::SampledCall;
use crate::table::ImageId;
use std::sync::Arc;
use systoll_model::{ArgData, QuestionAsked, Signature};

/// A call of a window, with addresses that have no names yet.
#[derive(Clone, Debug)]
pub(crate) struct RawCall {
    pub(crate) row: u32,
    pub(crate) nth: u64,
    pub(crate) args: [u64; 6],
    pub(crate) data: Vec<ArgData>,
    pub(crate) fd: Option<Arc<str>>,
    pub(crate) result: Option<i64>,
    pub(crate) entry_ns: u64,
    pub(crate) elapsed_ns: u64,
    pub(crate) waited_ns: Option<u64>,
    pub(crate) signals_before: u32,
    pub(crate) faults: Option<u64>,
    pub(crate) stack: Option<u32>,
    /// Number of the row's calls that this one stands for in the ledger; 0 if the ledger does not count it.
    pub(crate) stands_for: u64,
    /// The question about an object that the call asked, once the ledger knows it.
    pub(crate) asked: Option<QuestionAsked>,
    /// Number of the kind of request that the call received, in a window that tells requests.
    pub(crate) request: Option<u32>,
    /// True if the call received the beginning of a request.
    pub(crate) begins_request: bool,
}

impl RawCall {
    /// Returns the call's fields that the ledger needs.
    pub(crate) fn looked_at(&self) -> SampledCall<'_> {
        let Self { row, args, data, fd, result, entry_ns, stands_for, .. } = self;
        let (row, result, entry_ns, stands_for) = (*row, *result, *entry_ns, *stands_for);
        SampledCall { row, args, data, fd: fd.as_deref(), result, entry_ns, stands_for }
    }
}

/// A call that a thread is about to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnteredCall {
    pub(crate) tid: i32,
    pub(crate) row: u32,
    pub(crate) nth: u64,
    pub(crate) signature: Option<&'static Signature>,
    pub(crate) args: [u64; 6],
    /// Time since the run's start, ns.
    pub(crate) run_ns: u64,
}

/// The thread in which a window opens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opener {
    /// The thread's number within the recording.
    pub(crate) thread: u32,
    pub(crate) tid: i32,
    /// Number that tells the process from other processes of its program.
    pub(crate) process: u32,
}

/// A window, with addresses that have no names yet.
#[derive(Clone, Debug)]
pub(crate) struct RawWindow {
    pub(crate) image: ImageId,
    /// The process that makes the window's calls, see [`Table::process`](crate::table::Table::process).
    pub(crate) process: u32,
    pub(crate) thread: u32,
    pub(crate) row: u32,
    pub(crate) octave: u8,
    /// True if the window was opened to tell requests.
    pub(crate) tells_requests: bool,
    pub(crate) calls: Vec<RawCall>,
}

impl RawWindow {
    pub(crate) fn opened_ns(&self) -> u64 {
        self.calls.first().map_or(0, |call| call.entry_ns)
    }
}
