//! All files of a run, [`Symbols`], and what has been found out about their addresses.

mod calls;
mod facts;
mod fixed;
mod modules;
mod problems;
mod registry;

pub(crate) use calls::CallSite;
pub use registry::Symbols;
