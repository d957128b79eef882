//! Reports on a part of the calls: the part, and what is left out.

use crate::text::{clean, shorten};
use crate::units::counted;
use systoll_model::Sysno;

/// Width of the requested calls' names at most, in columns.
const ASKED: usize = 60;

/// The calls that a report is narrowed down to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowing {
    /// The calls as they were requested.
    pub asked: String,
    /// Calls that were seen and that a requested name means too: `openat` for `open`.
    pub made_as: Vec<Sysno>,
    /// Number of calls that were seen and not requested.
    pub others: u64,
}

impl Narrowing {
    /// Writes `open, made as openat`.
    pub(crate) fn text(&self) -> String {
        let asked = shorten(&clean(&self.asked), ASKED);
        let names: Vec<String> = self.made_as.iter().map(ToString::to_string).collect();
        if names.is_empty() { asked } else { format!("{asked}, made as {}", names.join(", ")) }
    }

    /// Writes `none of open; 148 other calls`.
    pub(crate) fn none_seen(&self) -> String {
        let asked = shorten(&clean(&self.asked), ASKED);
        format!("none of {asked}; {}", counted(self.others, "other system call", "other system calls"))
    }
}
