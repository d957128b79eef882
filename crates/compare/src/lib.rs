//! Compares recordings, and checks whether a budget holds. Pure: no I/O beyond given text
//! (clippy.toml enforces it).
//!
//! Rows are matched by what they mean (system call, public function, caller's function and file), never by an
//! address. Variation from run to run is told apart from change: by several recordings of a side if there are
//! several, else by the sources of chance that the number of a call is known to depend on.
//!
//! ```
//! use systoll_compare::{By, Side, diff};
//! use systoll_judge::Judgement;
//! use systoll_model::*;
//!
//! let run = |calls| {
//!     let mut recording = Recording::default();
//!     recording.processes.push(Process { exe: "/bin/app".into(), instances: 1, ..Process::default() });
//!     recording.stacks.push(Stack::default());
//!     let counts = Counts { calls, ..Counts::default() };
//!     let (process, syscall, stack) = (ProcessId(0), Sysno::from_name("openat").unwrap(), StackId(0));
//!     let (context, outer, api) = (stack, stack, Some("fopen".into()));
//!     recording.rows.push(Row { context, outer, api, ..Row::new(process, syscall, counts) });
//!     recording
//! };
//! let judgements = [Judgement::default()];
//! let (old, new) = ([run(12)], [run(30_012)]);
//! let side = |recordings| Side { recordings, judgements: &judgements };
//! let changed = diff(side(&old), side(&new), By::Syscall).changed;
//! assert_eq!(changed[0].new.calls.median - changed[0].old.calls.median, 30_000);
//! assert!(diff(side(&old), side(&old), By::Row).is_empty());
//! ```
#![forbid(unsafe_code)]

mod attribution;
mod budget;
mod change;
mod diff;
mod findings;
mod key;
mod lines;
mod names;
mod objects;
mod range;
mod rounds;
mod select;
mod table;
mod tracked;
mod vary;
mod waits;

pub use budget::{
    Bound, Breach, Budget, BudgetError, Held, HeldFinding, Limit, MAX_TEXT, Measured, Run, Units, Who, hold, learn,
};
pub use change::{Change, Figures, Side, SourcePlace, Verdict};
pub use diff::{Diff, Note, Summary, diff};
pub use findings::FindingChange;
pub use key::{By, Key};
pub use range::Range;
pub use rounds::{RoundChange, RoundFigures, RoundPart};
pub use select::{SelectError, Selector};
pub use tracked::{Tracked, Wanted};
pub use vary::Chance;
pub use waits::{WaitChange, WallChange};
