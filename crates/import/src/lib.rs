//! Reads traces of other tools as recordings whose windows cover everything.
//!
//! Traces are text of strangers: whatever it is, reading it ends, takes bounded memory and gives a
//! recording for which [`systoll_model::Recording::check`] holds. Facts that a trace lacks are
//! among the recording's problems.
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
