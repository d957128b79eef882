//! Plain data that every backend fills and every reader uses: rows, windows, mappings, prices,
//! problems.
//!
//! Invariant: nothing here does I/O beyond the readers and writers it is given, nothing here knows
//! which backend filled a [`Recording`], and no unsafe code.
//!
//! ```
//! use systoll_model::{Errno, Recording, Sysno};
//!
//! // This is the file that `systoll run --save` writes. Any pprof reader opens it.
//! let mut recording = Recording::default();
//! recording.header.command = vec!["ls".into(), "-l".into()];
//! let mut file = Vec::new();
//! recording.write(&mut file)?;
//! assert_eq!(Recording::read(&file[..])?.header.command, ["ls", "-l"]);
//!
//! // The system call table knows what each call is called, takes, moves and waits for.
//! let read = Sysno::from_name("read").and_then(Sysno::signature).unwrap();
//! assert_eq!((read.args[0].name, read.fd_arg(), read.transfers), ("fd", Some(0), true));
//! assert_eq!(Errno::from_result(-2), Some(Errno::ENOENT));
//! # Ok::<(), systoll_model::FileError>(())
//! ```
#![forbid(unsafe_code)]

mod address;
mod boxreport;
mod change;
mod clean;
mod counts;
mod describe;
mod errno;
mod file;
mod in_place;
mod kept_waits;
mod ledger;
mod machine;
mod names;
mod octave;
mod prices;
mod problem;
mod process;
mod random;
mod recording;
mod request;
mod row;
mod service;
mod shape;
mod shown_frames;
mod syscalls;
mod sysno;
mod thread;
mod wait_span;
mod window;

pub use address::{address, peer_argument};
pub use boxreport::{BoxFigure, BoxReport, Figure, Mitigation, Probe, Seccomp};
pub use change::{Elision, EnvChange};
pub use clean::{InertJson, acts_on_terminals, clean, inert_json};
pub use counts::{Counts, Histogram};
#[doc(hidden)]
pub use describe::described_calls;
pub use describe::{signal_name, signal_number};
pub use errno::Errno;
pub use file::{FileError, PprofColumn};
pub use in_place::{InPlace, Missed};
pub use kept_waits::{KeptWaits, name_objects};
pub use ledger::{Before, Between, Ledger, LedgerObject, Looked, Notes, Question, QuestionAsked, Way};
pub use machine::{Layout, Machine};
pub use names::{Frame, FrameClass, FrameId, Language, Location, Module, ModuleId, Stack, StackId, short_file};
pub use octave::octaves;
pub use prices::{Price, PriceSource, Prices, Spread};
pub use problem::{Problem, ProblemKind};
pub use process::{Exit, Process, ProcessId};
pub use random::Random;
pub use recording::{
    Attached, BackendKind, Header, Host, LongCall, Package, Phase, Recording, Sites, SyscallTotal, TimeZone, Until,
    VdsoRow,
};
pub use request::{ReceivedCalls, RequestKind, RequestKindId, RequestProtocol};
pub use row::{ObjectSample, Row, RowId, RowLine, RowTrunk, WholeStack};
pub use shape::shape;
pub use shown_frames::{ShownStack, before_thread, shares};
pub use syscalls::constants;
pub use syscalls::{Arg, ArgKind, Audit, AuditDecision, Class, Classes, Moment, Signature, Size, signatures};
pub use sysno::Sysno;
pub use thread::{Thread, ThreadCalls};
pub use wait_span::{DroppedWaits, LONG_WAIT_NS, WaitSpan, WaitSpans};
pub use window::{ArgData, Window, WindowCall, object_name, object_of};
