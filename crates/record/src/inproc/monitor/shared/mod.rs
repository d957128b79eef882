//! Memory and files that the launcher shares with watched processes, and access to those processes.

pub(crate) mod code;
pub(crate) mod maps;
pub(crate) mod memory;
pub(crate) mod peer;
pub(crate) mod piecewise;
pub(crate) mod remote;
pub(crate) mod slot_pages;
pub(crate) mod snapshot;
