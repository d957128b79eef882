//! What a report was narrowed down to, and what it leaves out.

use crate::text::{clean, shorten};
use crate::units::counted;
use systoll_model::Sysno;

/// Columns that what was asked for may take within a line.
const ASKED: usize = 60;

/// The calls a report is narrowed down to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Only {
    /// As they were asked for.
    pub asked: String,
    /// Calls that were seen and that a name which was asked for means too: `openat` for `open`.
    pub made_as: Vec<Sysno>,
    /// How many calls were seen and not asked for.
    pub others: u64,
}

impl Only {
    /// `open, made as openat`.
    pub(crate) fn text(&self) -> String {
        let asked = shorten(&clean(&self.asked), ASKED);
        let names: Vec<String> = self.made_as.iter().map(ToString::to_string).collect();
        if names.is_empty() { asked } else { format!("{asked}, made as {}", names.join(", ")) }
    }

    /// `none of open; 148 other calls`.
    pub(crate) fn none_seen(&self) -> String {
        let asked = shorten(&clean(&self.asked), ASKED);
        format!("none of {asked}; {}", counted(self.others, "other system call", "other system calls"))
    }
}
