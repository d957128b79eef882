//! All files of a run, [`Symbols`], with the facts found about their addresses.

mod calls;
pub(crate) mod facts;
mod fixed;
mod modules;
mod problems;
mod registry;

pub(crate) use calls::CallSite;
pub use registry::Symbols;
