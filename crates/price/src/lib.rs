//! The price of system calls on this box.
//!
//! Invariant: everything except [`crossing`] and reading a few files under /proc and /sys happens
//! in a short-lived child: the caller's descriptors, masks, affinity, memory and seccomp state are
//! never touched. docs/reference/prices.md explains the method.
//!
//! # Example
//!
//! ```
//! use systoll_model::Sysno;
//! use systoll_price::{CROSSING_BUDGET, crossing, price_of};
//!
//! println!("into the kernel and back: {:.0} ns", crossing(CROSSING_BUDGET).min);
//! let fstat = Sysno::from_name("fstat").expect("the table has it");
//! // None if the call can't be tried here, e.g. because a seccomp filter forbids it.
//! if let Some(price) = price_of(fstat) {
//!     println!("fstat: {:.0} ns ({:.0} to {:.0})", price.ns, price.low, price.high);
//!     assert!(price.low <= price.ns && price.ns <= price.high);
//! }
//! ```

mod arch;
mod child;
mod fault;
mod fault_and_switch;
mod fixture;
mod host;
mod measure;
mod mitigations;
mod price;
mod second_thread;
mod survey;
mod switch;
mod sys;
mod table;

pub use fault_and_switch::{FaultAndSwitch, FaultAndSwitchPrices, Measurement};
pub use host::host;
pub use price::{crossing, price_of, price_of_failing, price_path_stat, prices_of};
pub use survey::survey;

/// Time that [`crossing`] is measured before and after every recorded run.
pub const CROSSING_BUDGET: std::time::Duration = std::time::Duration::from_millis(2);
