//! The system call table: each call's name, arguments, memory and waiting.
//!
//! This is data and pure functions of arguments; the callers read a target's memory.

mod args;
mod audit;
mod by_command;
mod by_name;
mod class;
pub mod constants;
mod lines;
mod made_as;
mod signature;
mod table;

pub use args::{Arg, ArgKind, Moment, Size};
pub use audit::{Audit, AuditDecision};
pub use class::{Class, Classes};
pub use signature::Signature;
pub use table::signatures;
