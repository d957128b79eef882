//! The command's own process.

use crate::ending::Ending;
use crate::procfs::IoCalls;
use crate::table::ImageId;
use systoll_model::Exit;

/// The process that was started, and its end.
#[derive(Debug, Default)]
pub(crate) struct RootProcess {
    pub(crate) pid: i32,
    /// Its image in the table.
    pub(crate) image: Option<ImageId>,
    pub(crate) exit: Option<Exit>,
    /// Why its program can't be watched, if so; none of it has run.
    pub(crate) refused: Option<String>,
    /// True if it ended since the loop last checked.
    pub(crate) just_ended: bool,
    /// True if its exec has succeeded.
    pub(crate) exec_done: bool,
    /// When systoll was told to end.
    pub(crate) ending: Ending,
    /// True if watching ended before the command's processes did.
    pub(crate) cut_short: bool,
    /// The kernel's counts of reads and writes at its exec and at its end.
    pub(crate) audit_base: Option<IoCalls>,
    pub(crate) audit_end: Option<IoCalls>,
    /// Processor time that it had used before its exec, ns.
    pub(crate) before_exec_ns: u64,
}

impl RootProcess {
    /// Notes that thread `tid` has ended. Returns true if it was the command's own process.
    pub(crate) fn note_end(&mut self, tid: i32, exit: Exit) -> bool {
        if tid == self.pid {
            self.exit = Some(exit);
            self.just_ended = true;
        }
        tid == self.pid
    }
}
