//! Runs two variants of a program in interleaved pairs, unwatched, and says what differs.
//!
//! Invariants: nothing is claimed if output or exit differ, or if the interval of a change includes
//! no change; programs are run only through [`Executor`]; no unsafe code.
//!
//! # Example
//!
//! ```
//! use systoll_cure::Spec;
//! use systoll_prove::{Options, Outcome, Pairs, Processes, compare};
//!
//! let options = Options { pairs: Pairs::Fixed(8), ..Options::default() };
//! let said = |text: &str| Spec::new("echo").arg(text);
//! let mut exec = Processes::default();
//!
//! // The same output: eight pairs are run and measured.
//! let same = compare(&mut exec, &said("a"), &said("a"), &options, &mut |_| ())?;
//! assert_eq!(same.measured.expect("both do the same").pairs, 8);
//!
//! // Another output: nothing is claimed, however fast it is.
//! let other = compare(&mut exec, &said("a"), &said("b"), &options, &mut |_| ())?;
//! assert!(matches!(other.outcome, Outcome::Differs(_)) && other.measured.is_none());
//! # Ok::<(), systoll_prove::ProveError>(())
//! ```
#![forbid(unsafe_code)]

mod answered;
mod calls;
mod compare;
mod digest;
mod executor;
mod expected_win;
mod gain_source;
mod inside;
mod live;
mod measure;
mod options;
mod outcome;
mod result;
mod serve;
mod stats;
mod turns;
mod undecided;

pub use answered::{Answered, missed, words_of};
pub use calls::{CallCounts, ChangedCount, CountChange, Range};
pub use compare::{Progress, compare};
pub use digest::{Digest, Sameness};
pub use executor::{Executor, Output, Processes, Run, shell};
pub use expected_win::{ExpectedBeside, ExpectedWin};
pub use gain_source::{GainReason, GainSource};
pub use inside::Inside;
pub use live::{
    Ended, LiveComparison, LiveError, LiveOptions, LiveResult, LiveSide, LiveTurn, LiveTurns, Work, compare_live,
};
pub use options::{LOOKS, Options, Pairs, Same};
pub use result::{
    Agreement, Change, Comparison, Conclusion, Difference, DiffersAt, Estimate, Measured, Outcome, Side, Stopped,
    Verdict,
};
pub use serve::{
    Drive, Load, LoadFigures, Ready, ServeComparison, ServeError, ServeOptions, Served, ServerSide, Servers, Turn,
    Turns, Watching, compare_servers,
};
pub use systoll_cure::Usage;
pub use undecided::{Enough, Undecided};

use std::io;
use std::path::PathBuf;
use std::time::Duration;
use systoll_cure::RunError;
use systoll_model::Exit;

impl From<RunError> for ProveError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Interrupted { signal, .. } => Self::Interrupted { signal },
            error => Self::Run(error),
        }
    }
}

/// The reason why nothing could be proved.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// A run failed to start or took too long.
    #[error(transparent)]
    Run(RunError),
    /// A program's output could not be kept for comparison.
    #[error("can't keep the output for comparison: {0}")]
    Output(#[source] io::Error),
    /// The program's input can't be opened.
    #[error("can't read {}: {source}", path.display())]
    Input {
        /// Path of the input file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The user's command before or after the runs failed.
    #[error("the command `{command}` failed: {exit}")]
    Hook {
        /// The user's command.
        command: String,
        /// The command's exit.
        exit: Exit,
    },
    /// A server could not be compared.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A run could not be watched.
    #[error(transparent)]
    Watch(#[from] systoll_record::Error),
    /// Calls were to be answered in place, and none was.
    #[error("no call of {calls} was answered in place: {why}")]
    NothingAnswered {
        /// Names of the calls that were to be answered.
        calls: String,
        /// The reason why none was answered.
        why: String,
    },
    /// The program whose turns were compared has ended too early, or is not watched any more. Holds the reason.
    #[error("{0}: too few turns were over to tell anything")]
    Gone(String),
    /// A signal ended the comparison before it had a result.
    #[error("interrupted before there was anything to say")]
    Interrupted {
        /// Number of the signal.
        signal: i32,
    },
    /// The fewest pairs that can show something take longer than the limit.
    #[error(
        "one pair takes {:.1} s, and {least} are the fewest that can show something: about {} s in all, where {} s are allowed",
        pair.as_secs_f64(), needed.as_secs_f64().ceil(), allowed.as_secs_f64()
    )]
    TooLong {
        /// Time of one pair.
        pair: Duration,
        /// Number of the fewest pairs that can show something.
        least: u32,
        /// Time that has passed, and that the fewest pairs need.
        needed: Duration,
        /// The time that the user allowed.
        allowed: Duration,
    },
    /// The options contradict themselves.
    #[error("{0}")]
    Options(String),
}
