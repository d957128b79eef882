//! The price of system calls on this box.
//!
//! Invariant: everything except [`crossing`] and reading a few files under /proc and /sys happens
//! in a short-lived child: the caller's descriptors, masks, affinity, memory and seccomp state are
//! never touched. docs/prices.md explains the method.

mod beside;
mod child;
mod fault;
mod fixture;
mod host;
mod measure;
mod mitigations;
mod price;
mod sibling;
mod survey;
mod switch;
mod sys;
mod table;

pub use beside::{Beside, BesideCalls, Measuring};
pub use host::host;
pub use price::{crossing, price_of, price_of_failing, price_path_stat, prices_of};
pub use survey::survey;

/// Time that [`crossing`] is measured before and after every recorded run.
pub const CROSSING_BUDGET: std::time::Duration = std::time::Duration::from_millis(2);
