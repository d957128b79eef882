//! The report of a run, which `systoll run` and `systoll report` print.

mod by;
mod chain;
mod closing;
mod finding;
mod flags;
mod header;
mod long_calls;
mod pieces;
mod requests;
mod rounds;
mod screen;
mod stacks;
mod trace;
mod wall;

pub use by::write_grouping;
pub use pieces::{Parts, Pieces};
pub use requests::write_requests;
pub use screen::{ReportOptions, write_finding, write_report};
