//! The command's own process.

use crate::ending::Ending;
use crate::procfs::IoCalls;
use crate::table::ImageId;
use systoll_model::Exit;

/// The process that was started, and what has become of it.
#[derive(Debug, Default)]
pub(crate) struct RootProcess {
    pub(crate) pid: i32,
    /// Its image in the table.
    pub(crate) image: Option<ImageId>,
    pub(crate) exit: Option<Exit>,
    /// Why its program can't be watched: nothing of it has run.
    pub(crate) refused: Option<String>,
    /// Whether it has ended since the loop last looked whether all is over.
    pub(crate) just_ended: bool,
    /// Whether it has become its program.
    pub(crate) exec_done: bool,
    /// What systoll was told of its end.
    pub(crate) ending: Ending,
    /// Whether watching has ended before the command's processes have.
    pub(crate) cut_short: bool,
    /// The kernel's counts of reads and writes at its exec and at its end.
    pub(crate) audit_base: Option<IoCalls>,
    pub(crate) audit_end: Option<IoCalls>,
    /// Processor time that it had used before its exec, ns.
    pub(crate) before_exec_ns: u64,
}

impl RootProcess {
    /// Thread `tid` has ended; whether it was the command's own process.
    pub(crate) fn note_end(&mut self, tid: i32, exit: Exit) -> bool {
        if tid == self.pid {
            self.exit = Some(exit);
            self.just_ended = true;
        }
        tid == self.pid
    }
}
