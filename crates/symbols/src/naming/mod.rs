//! Frames to what a report prints: functions, source lines, and the public API behind a system call.

mod api;
mod resolve;

pub use resolve::{Lines, Resolved};
