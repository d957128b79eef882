//! Starts a program, watches it and fills a recording.
//!
//! Invariant: nothing outside a backend's folder knows which backend ran; what a backend
//! saw leaves it as a [`systoll_model::Recording`] with every name resolved.
//!
//! # Example
//!
//! ```
//! use systoll_record::{Launch, Quiet, automatic, run_with_first};
//!
//! let launch = Launch { command: vec!["true".into()], ..Launch::default() };
//! // The cheapest backend that can watch this program here: in-process, else ptrace.
//! let recording = run_with_first(&mut automatic(), &launch, &mut Quiet)?;
//! assert!(recording.calls() > 0);
//! for total in recording.by_syscall() {
//!     println!("{:>9} {:>7}  {}", total.counts.calls, total.counts.failed(), total.syscall);
//! }
//! # Ok::<(), systoll_record::Error>(())
//! ```

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what only the in-process backend uses"))]

mod allocator;
#[cfg(any(test, feature = "any-target"))]
pub mod any_target;
mod arguments;
mod assemble;
mod backend;
mod bpf;
mod choose;
mod cpu;
mod ending;
mod error;
pub mod inproc;
mod launch;
mod ledger;
mod limits;
mod long_calls;
mod moment;
mod naming;
mod packages;
mod problems;
mod procfs;
mod ptrace;
mod queued;
mod raw_window;
mod request_windows;
mod ring_windows;
mod row_lines;
mod sampled_calls;
mod samples;
mod sandbox;
mod served_pages;
mod service;
mod setid;
mod signals;
mod sockets;
mod spent;
mod stacks;
mod startup;
mod sys;
mod table;
mod tracee;
mod trunks;
mod whole_stacks;
mod windows;

pub use allocator::OrEnd;
pub use backend::{
    Backend, Closely, Control, HowToWatch, Launch, Moment, Probe, Quiet, Running, TurnOrder, TurnTotals, WindowPolicy,
};
pub use bpf::BpfBackend;
pub use choose::{AUTO_INPROC, ENTERING, automatic, backend, backends, run_with_first};
pub use error::Error;
pub use inproc::{can_answer, clean};
pub use limits::{Raised, prepare as prepare_limits};
pub use ptrace::PtraceBackend;
pub use service::services;
pub use signals::{let_signals_through, look_now};
pub use startup::{end_by_signal, keep_memory, was_closed};
