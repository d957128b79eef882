//! The command's own process.

use crate::ending::Ending;
use crate::procfs::IoCalls;
use crate::table::ImageId;
use systoll_model::Exit;

/// Processes that ran already are watched for a while.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attached {
    /// When watching ends, ns.
    pub(crate) deadline: Option<u64>,
    /// With how many calls it ends.
    pub(crate) calls: Option<u64>,
    /// True if calls are answered in place in turns.
    pub(crate) in_turns: bool,
    /// True if nothing is told of processes that they make.
    pub(crate) no_children: bool,
    /// Number of these processes.
    pub(crate) processes: u64,
    /// User and system time of the processes when they were left, ns.
    pub(crate) used: Option<(u64, u64)>,
    /// For how long the first of them had run before.
    pub(crate) age_ns: u64,
    /// For how long threads were stopped at a time, at most, ns.
    pub(crate) longest_stop_ns: u64,
}

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
    /// If running processes are watched and no command was started: the duration, and the processor time they have used
    /// by then.
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
