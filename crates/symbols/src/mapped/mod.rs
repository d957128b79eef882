//! Files that processes have mapped: the lines of `/proc/PID/maps`, the file behind each, opened while it is mapped,
//! and its bytes.
//!
//! This is the lowest module of the crate: those above it see a file as [`FileBytes`], never as a path.

mod bytes;
pub(crate) mod maps;
mod open;
mod state;

pub(crate) use bytes::FileBytes;
pub(crate) use maps::MapsEntry;
pub(crate) use open::{identity, open, open_file};
pub use state::FileState;
pub(crate) use state::Identity;
