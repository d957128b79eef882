//! Names frames for the report: functions, source lines, and the public API behind a system call.

mod api;
mod resolve;

pub use resolve::{Lines, Resolved};
