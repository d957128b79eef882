//! State of the command's own process, or of the running processes that are watched instead.

use crate::ending::Ending;
use crate::procfs::IoCalls;
use crate::table::ImageId;
use systoll_model::Exit;

/// State of processes that ran already and are watched for a while.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attached {
    /// Time at which watching ends, ns.
    pub(crate) deadline: Option<u64>,
    /// Number of calls after which watching ends.
    pub(crate) calls: Option<u64>,
    /// True if calls are answered in place in turns.
    pub(crate) in_turns: bool,
    /// True if processes that these make are left out of the report.
    pub(crate) no_children: bool,
    /// Number of processes that were entered.
    pub(crate) processes: u64,
    /// User and system time of the processes when they were left, ns.
    pub(crate) used: Option<(u64, u64)>,
    /// Time for which the oldest of the processes had run before, ns.
    pub(crate) age_ns: u64,
    /// Longest time for which threads were stopped at once, ns.
    pub(crate) longest_stop_ns: u64,
}

/// The command's own process, and its end.
#[derive(Debug, Default)]
pub(crate) struct RootProcess {
    pub(crate) pid: i32,
    /// Index of the process's image in the table.
    pub(crate) image: Option<ImageId>,
    pub(crate) exit: Option<Exit>,
    /// Reason why the program can't be watched; none of it has run.
    pub(crate) refused: Option<String>,
    /// True if the process has ended since the loop last checked.
    pub(crate) just_ended: bool,
    /// True if the process's exec has succeeded.
    pub(crate) exec_done: bool,
    /// Time at which a signal told systoll to end, if one did.
    pub(crate) ending: Ending,
    /// True if watching ended before the command's processes did.
    pub(crate) cut_short: bool,
    /// The kernel's counts of reads and writes at the process's exec; the next field has those at its end.
    pub(crate) audit_base: Option<IoCalls>,
    pub(crate) audit_end: Option<IoCalls>,
    /// Processor time that the process had used before its exec, ns.
    pub(crate) before_exec_ns: u64,
    /// State of the running processes that are watched, if no command was started.
    pub(crate) attached: Option<Attached>,
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
