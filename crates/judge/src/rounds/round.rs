//! What the judge tells of a round: public, plain data.

use crate::finding::Estimate;
use systoll_model::{Errno, FrameId, RowId, Sysno};

/// What threads of a program do again and again: the same calls in the same order.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// How often. `low` is `high` where exact counts tell.
    pub count: Estimate,
    /// The calls, in their order.
    pub steps: Vec<RoundStep>,
    /// The innermost function that all its calls come from.
    pub place: Option<RoundPlace>,
    /// Rows its calls are counted on, dearest first.
    pub rows: Vec<RoundRow>,
    /// Calls of all rounds; an estimate where rows have other calls too.
    pub calls: u64,
    /// What these cost, ns.
    pub toll_ns: u64,
    /// How long the threads were scheduled out inside them, ns; `None` where it can't be told.
    pub waited_ns: Option<u64>,
    /// `toll_ns` as a share of the run's processor time; `None` where that is not known.
    pub share_of_cpu: Option<f64>,
    /// `waited_ns` as a share of the run's time; `None` where several threads or processes ran beside each other.
    pub share_of_wall: Option<f64>,
    /// Of its calls, what findings claim to be needless.
    pub claimed: RoundClaimed,
    /// Whole rounds that windows show.
    pub looked_at: u64,
    /// Of these, with all calls that nearly each of them has.
    pub agree: u64,
    /// Threads in which windows show it, each process's apart.
    pub threads: u64,
    /// Process images that make its calls.
    pub processes: u64,
    /// Whether most of its calls are made before `main`.
    pub startup: bool,
    /// Whether the report shows it: much of the run goes to it, and findings claim little of that.
    pub is_of_rest: bool,
}

impl Round {
    /// Returns whether it has a call that is wanted.
    pub fn has_call(&self, is_wanted: impl Fn(Sysno) -> bool) -> bool {
        self.steps.iter().flat_map(RoundStep::calls).any(|call| is_wanted(call.syscall))
    }
}

/// What findings claim of a round's calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundClaimed {
    /// Needless calls.
    pub calls: u64,
    /// Their toll, ns.
    pub toll_ns: u64,
    /// Time waited for nothing, ns.
    pub waited_ns: u64,
}

/// A function on a stack: a frame, and which of its inlined functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundPlace {
    /// The frame.
    pub frame: FrameId,
    /// Which of its locations, from 0.
    pub location: usize,
}

/// What one row has of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundRow {
    /// The row.
    pub row: RowId,
    /// Its calls in rounds; all of them, or an estimate.
    pub calls: u64,
    /// Their toll, ns.
    pub toll_ns: u64,
}

/// A step of a round.
#[derive(Clone, Debug, PartialEq)]
pub enum RoundStep {
    /// A call, or several alike in a row.
    Call(RoundCall),
    /// Calls that come several times in their order.
    Inner {
        /// The calls.
        calls: Vec<RoundCall>,
        /// How often in one round, as seen.
        times: Times,
    },
}

impl RoundStep {
    /// Its calls.
    pub fn calls(&self) -> &[RoundCall] {
        match self {
            Self::Call(call) => std::slice::from_ref(call),
            Self::Inner { calls, .. } => calls,
        }
    }
}

/// How often something comes in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// At least, as seen.
    pub least: u64,
    /// At most, as seen.
    pub most: u64,
    /// On average.
    pub mean: f64,
}

/// A call of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundCall {
    /// The system call.
    pub syscall: Sysno,
    /// Calls of it in all rounds.
    pub calls: u64,
    /// The part of the rounds that have it, 0 to 1.
    pub share: f64,
    /// How often in a row, where it comes.
    pub times: Times,
    /// What it is about: paths, descriptors' files.
    pub object: Option<Objects>,
    /// Bytes: moved, or asked for where it moves none.
    pub size: Option<Numbers>,
    /// The offset it names.
    pub offset: Option<Numbers>,
    /// What else it asks for, where that is always the same: `FUTEX_WAIT_PRIVATE`.
    pub option: Option<String>,
    /// The errno of most of its calls, by exact counts; `None` where most succeed.
    pub errno: Option<Errno>,
    /// What it moved.
    pub data: Option<Variety>,
}

/// What several calls are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objects {
    /// The name, or what all have in common with `?` for what varies.
    pub pattern: String,
    /// How they vary.
    pub variety: Variety,
}

/// How many of the looks at a call differ from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variety {
    /// Looks.
    pub looks: u64,
    /// Different ones among them.
    pub different: u64,
}

impl Variety {
    /// Whether no two looks are alike.
    pub fn all_differ(self) -> bool {
        self.looks > 1 && self.different == self.looks
    }
}

/// Numbers that calls name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Always the same.
    Same(u64),
    /// Each larger than the one before by so much.
    Steps(u64),
    /// Between these.
    Between(u64, u64),
}
