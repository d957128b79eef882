//! The system call table: what each call is called, takes, moves and waits for.
//!
//! Data and pure functions of arguments; reading a target's memory is its users' business.

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
pub use audit::{Audit, Counted};
pub use class::{Class, Classes};
pub use signature::Signature;
pub use table::signatures;
