//! Static descriptions of system calls.

use super::args::{Arg, ArgKind, Moment};
use super::audit::Audit;
use super::by_command;
use super::class::Classes;
use crate::sysno::Sysno;

/// The static description of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Number of the call.
    pub sysno: Sysno,
    /// Name of the call in the kernel's table.
    pub name: &'static str,
    /// Classes, in strace's sense, to which the call belongs.
    pub classes: Classes,
    /// Arguments of the call, at most six, in the order of the registers.
    pub args: &'static [Arg],
    /// True if a positive result of the call counts bytes moved.
    pub transfers: bool,
    /// True if the call ordinarily waits for another thread, a peer, a timer, a lock or a device's
    /// flush. It is false for calls that rarely wait (`open` of a FIFO, `fcntl`'s F_SETLKW,
    /// `ioctl`), nor for the disk reads that any path look-up may need.
    pub may_block: bool,
    /// True if waiting is the call's purpose (`poll`, `nanosleep`, `wait4`, `pause`).
    pub waits: bool,
    /// True if the call never returns (`exit`, `exit_group`).
    pub never_returns: bool,
    /// The way in which /proc/PID/io counts the call; `None` if it does not.
    pub audit: Option<Audit>,
}

impl Signature {
    /// Returns the index of the first argument that is a descriptor: of the file that the call
    /// works on, or of the directory at which its path starts.
    pub fn fd_arg(&self) -> Option<usize> {
        self.args.iter().position(|a| matches!(a.kind, ArgKind::Fd | ArgKind::DirFd))
    }

    /// Returns the index of the first argument that is a path.
    pub fn path_arg(&self) -> Option<usize> {
        self.args.iter().position(|a| a.kind == ArgKind::Path)
    }

    /// Returns the kind of argument `index` in a call with `args`. If a command argument decides
    /// (`fcntl`, `ioctl`, `prctl` …), it is the kind under that command. Returns [`ArgKind::Int`]
    /// beyond the last argument.
    pub fn arg_kind(&self, index: usize, args: &[u64; 6]) -> ArgKind {
        match self.args.get(index) {
            Some(Arg { kind: ArgKind::ByCommand, .. }) => by_command::kind(self.name, index, args),
            Some(arg) => arg.kind,
            None => ArgKind::Int,
        }
    }

    /// Returns the arguments whose memory is worth reading at `at`, with their kinds, without those
    /// that are NULL. Input is read at entry, output and updated memory at exit.
    pub fn memory(&self, at: Moment, args: &[u64; 6]) -> impl Iterator<Item = (u8, ArgKind)> {
        (0..6u8).zip(args).filter_map(move |(index, value)| {
            let kind = self.arg_kind(index.into(), args);
            (kind.read_at(at) && *value != 0).then_some((index, kind))
        })
    }
}
