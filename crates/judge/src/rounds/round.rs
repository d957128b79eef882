//! The judge's result on a round, as public plain data.

use crate::results::finding::Estimate;
use systoll_model::{Errno, FrameId, Recording, RowId, Sysno};

/// A sequence of calls that threads of a program make again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Number of rounds. `low` equals `high` if exact counts tell it.
    pub count: Estimate,
    /// The calls, in their order.
    pub steps: Vec<RoundStep>,
    /// The innermost function that all the round's calls come from.
    pub place: Option<RoundPlace>,
    /// Rows that count the round's calls, costliest first.
    pub rows: Vec<RoundRow>,
    /// Number of calls in all rounds; an estimate if the rows have other calls too.
    pub calls: u64,
    /// Toll of the calls in all rounds, ns.
    pub toll_ns: u64,
    /// Time for which threads were scheduled out inside the calls, ns; `None` if it is unknown.
    pub waited_ns: Option<u64>,
    /// `toll_ns` as a share of the run's processor time, 0 to 1; `None` if that is unknown.
    pub share_of_cpu: Option<f64>,
    /// `waited_ns` as a share of the run's wall time, 0 to 1; `None` if several threads or processes ran at the same
    /// time.
    pub share_of_wall: Option<f64>,
    /// The part of the round's calls that findings claim to be needless.
    pub claimed: RoundClaimed,
    /// Number of whole rounds in windows.
    pub looked_at: u64,
    /// Number of whole rounds in windows that have every call which nearly all rounds have.
    pub agree: u64,
    /// Number of threads in which windows show the round, counted per process.
    pub threads: u64,
    /// Process images that make the round's calls, by their numbers in the recording, in order.
    pub images: Vec<u32>,
    /// False if windows show `images`, so that more of them may make the round.
    pub are_all_processes: bool,
    /// True if most of the round's calls are made before `main`.
    pub startup: bool,
    /// True if the report shows the round: it takes much of the run, and findings claim little of
    /// that.
    pub is_of_rest: bool,
}

impl Round {
    /// Returns the number of processes that make its calls.
    #[must_use]
    pub fn processes(&self, recording: &Recording) -> u64 {
        let of = |id: &u32| recording.processes.get(*id as usize).map_or(1, |p| p.instances.max(1));
        self.images.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Returns true if the round has a call for which `is_wanted` is true.
    pub fn has_call(&self, is_wanted: impl Fn(Sysno) -> bool) -> bool {
        self.steps.iter().flat_map(RoundStep::calls).any(|call| is_wanted(call.syscall))
    }
}

/// The part of a round's calls that findings claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundClaimed {
    /// Number of needless calls.
    pub calls: u64,
    /// Toll of the needless calls, ns.
    pub toll_ns: u64,
    /// Time waited needlessly, ns.
    pub waited_ns: u64,
}

/// A function on a stack: a frame and the index of one of its inlined functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundPlace {
    /// The frame.
    pub frame: FrameId,
    /// Index of the function among the frame's locations.
    pub location: usize,
}

/// The part of a round in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundRow {
    /// The row.
    pub row: RowId,
    /// Number of the row's calls in rounds: all of them, or an estimate.
    pub calls: u64,
    /// Toll of the row's calls in rounds, ns.
    pub toll_ns: u64,
}

/// A step of a round.
#[derive(Clone, Debug, PartialEq)]
pub enum RoundStep {
    /// A call, or several equal calls in a row.
    Call(RoundCall),
    /// A sequence of calls that is repeated within the round.
    Inner {
        /// The calls of the sequence.
        calls: Vec<RoundCall>,
        /// Number of repetitions in one round, as windows show them.
        times: Times,
    },
}

impl RoundStep {
    /// Returns the calls of the step.
    pub fn calls(&self) -> &[RoundCall] {
        match self {
            Self::Call(call) => std::slice::from_ref(call),
            Self::Inner { calls, .. } => calls,
        }
    }

    /// Returns the calls of the step, to be changed.
    pub(super) fn calls_mut(&mut self) -> &mut [RoundCall] {
        match self {
            Self::Call(call) => std::slice::from_mut(call),
            Self::Inner { calls, .. } => calls,
        }
    }
}

/// Number of repetitions in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// The least number of repetitions in windows.
    pub least: u64,
    /// The largest number of repetitions in windows.
    pub most: u64,
    /// The mean number of repetitions.
    pub mean: f64,
}

/// A call of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundCall {
    /// The system call.
    pub syscall: Sysno,
    /// Number of calls of this kind in all rounds.
    pub calls: u64,
    /// Share of the rounds that have the call, 0 to 1.
    pub share: f64,
    /// Number of times in a row that it is made in a round that has it.
    pub times: Times,
    /// The objects of the calls: paths, or the files of descriptors.
    pub object: Option<Objects>,
    /// Number of bytes that the call moves, or asks for if it moves none.
    pub size: Option<Numbers>,
    /// The offset in the call's arguments.
    pub offset: Option<Numbers>,
    /// The call's option, if it is always the same: `FUTEX_WAIT_PRIVATE`.
    pub option: Option<String>,
    /// The errno of most of the calls, by exact counts; `None` if most succeed.
    pub errno: Option<Errno>,
    /// Variety of the bytes that the call moved.
    pub data: Option<Variety>,
}

/// The objects of several calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objects {
    /// The name, or the common parts of all names with `?` for the part that varies.
    pub pattern: String,
    /// The variety of the names.
    pub variety: Variety,
}

/// Number of sampled calls, and of different values among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variety {
    /// Number of sampled calls.
    pub looks: u64,
    /// Number of different values among them.
    pub different: u64,
}

impl Variety {
    /// Returns true if no two sampled calls have the same value.
    pub fn all_differ(self) -> bool {
        self.looks > 1 && self.different == self.looks
    }
}

/// Numbers in the arguments or results of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// All numbers are equal to this.
    Same(u64),
    /// Each number is larger than the one before by this.
    Steps(u64),
    /// All numbers lie between these two.
    Between(u64, u64),
}
