//! What was observed, by any backend: rows, windows, mappings, prices, problems.
//!
//! Plain data. Invariant: nothing here does I/O beyond the readers and writers it is given,
//! nothing here knows which backend filled a [`Recording`], and no unsafe code.
#![forbid(unsafe_code)]

mod boxreport;
mod change;
mod counts;
mod errno;
mod file;
mod in_place;
mod names;
mod prices;
mod problem;
mod process;
mod random;
mod recording;
mod syscalls;
mod sysno;
mod thread;
mod window;

pub use boxreport::{BoxFigure, BoxReport, Figure, Mitigation, Probe, Seccomp};
pub use change::{Elision, EnvChange};
pub use counts::{Counts, Histogram};
pub use errno::Errno;
pub use file::FileError;
pub use in_place::{InPlace, Missed};
pub use names::{Frame, FrameClass, FrameId, Language, Location, Module, ModuleId, Stack, StackId};
pub use prices::{Price, PriceSource, Prices, Spread};
pub use problem::{Problem, ProblemKind};
pub use process::{Exit, Process, ProcessId};
pub use random::Random;
pub use recording::{
    BackendKind, Header, Host, LongCall, Phase, Recording, Row, RowId, RowLine, Sites, SyscallTotal, VdsoRow,
};
pub use syscalls::constants;
#[doc(hidden)]
pub use syscalls::worded_calls;
pub use syscalls::{Arg, ArgKind, Audit, Class, Classes, Counted, Signature, Size, signal_name, signatures};
pub use sysno::Sysno;
pub use thread::{Thread, ThreadCalls};
pub use window::{ArgData, Moment, Window, WindowCall};
