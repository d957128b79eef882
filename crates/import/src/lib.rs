//! Reads traces of other tools as recordings whose windows cover everything.
//!
//! Traces are text of strangers: whatever it is, reading it ends, takes bounded memory and gives a
//! recording for which [`systoll_model::Recording::check`] holds. Facts that a trace lacks are
//! among the recording's problems.
//!
//! ```
//! use systoll_import::Import;
//!
//! let trace = "\
//! 4882  execve(\"/bin/date\", [\"date\"], 0x7ffd /* 35 vars */) = 0 <0.000536>
//! 4882  openat(AT_FDCWD, \"/etc/localtime\", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file or directory) <0.000012>
//! 4882  +++ exited with 0 +++
//! ";
//! let mut import = Import::new(1);
//! import.read("date.trace", trace.as_bytes())?;
//! let recording = import.finish()?;
//! assert_eq!(recording.header.command, ["date"]);
//! let open = &recording.windows[0].calls[1];
//! assert_eq!(open.errno(), Some(systoll_model::Errno::ENOENT));
//! assert_eq!(open.object(recording.row(open.row).syscall).as_deref(), Some("/etc/localtime"));
//! # Ok::<(), systoll_import::ImportError>(())
//! ```
#![forbid(unsafe_code)]

mod call;
mod container;
mod decode;
mod descriptors;
mod edges;
mod error;
mod family;
mod follow;
mod foreign;
mod format;
mod frames;
mod gaps;
mod hash;
mod import;
mod input;
mod lex;
mod literal;
mod notes;
mod pending;
mod perf_script;
mod perf_trace;
mod perfetto;
mod price;
mod recording;
mod strace;
mod table;
mod trace;
mod undress;
mod waits;
mod windows;

pub use error::ImportError;
pub use format::Format;
pub use import::Import;
pub use price::{calls_to_price, price};
