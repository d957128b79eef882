//! Watches a whole box all the time: in spans, with rests between them by which it keeps to a budget.
//!
//! Invariants: what watching costs is measured, in the kernel as well, and never forgotten by a rest; memory and the number
//! of a scraper's series are bounded; a file appears whole or not at all; a full disk, a slow reader or receiver or a clock
//! that is set ends nothing.
#![forbid(unsafe_code)]

mod clock;
mod cost;
mod pace;
mod push;
mod serve;
mod sinks;
mod store;
mod tables;
mod watch;

pub use push::Receiver;
pub use sinks::Receivers;
pub use watch::{AgentError, Options, watch_box};
