//! Reports on a part of the calls: names the part, and counts the others.

use crate::text::{clean, shorten};
use crate::units::counted;
use systoll_model::Sysno;

/// Width of the requested calls' names, in columns, at most.
const ASKED: usize = 60;

/// The calls to which a report is narrowed down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowing {
    /// The requested calls, as the user wrote them.
    pub asked: String,
    /// Calls that were seen and that a requested name means as well: `openat` for `open`.
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
