//! Findings, tables and explanations, written for a terminal or as JSON: one writer each.
//!
//! Invariants: it decides nothing (whether calls are needless is the judge's), it reads nothing
//! but what it is given, and nothing a watched program chose reaches a terminal unescaped.
#![forbid(unsafe_code)]

mod style;
mod text;
mod units;

pub use style::{Role, Style};
pub use text::clean;
