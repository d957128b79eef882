//! What is known of a system call before it is made.

use super::args::{Arg, ArgKind, Moment};
use super::audit::Audit;
use super::by_command;
use super::class::Classes;
use crate::sysno::Sysno;

/// What is known of a system call before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Its number.
    pub sysno: Sysno,
    /// Its name in the kernel's table.
    pub name: &'static str,
    /// strace's classes it belongs to.
    pub classes: Classes,
    /// Its arguments, at most six, in the order of the registers.
    pub args: &'static [Arg],
    /// Whether a positive result counts bytes moved.
    pub transfers: bool,
    /// Whether waiting for another thread, a peer, a timer, a lock or a device's flush is among
    /// the ordinary things it does. Not set: what rarely waits (`open` of a FIFO, `fcntl`'s
    /// F_SETLKW, `ioctl`), nor for the disk reads any look-up may need.
    pub may_block: bool,
    /// Whether waiting is what it is for (`poll`, `nanosleep`, `wait4`, `pause`).
    pub waits: bool,
    /// Whether it never comes back (`exit`, `exit_group`).
    pub never_returns: bool,
    /// How /proc/PID/io counts it.
    pub audit: Option<Audit>,
}

impl Signature {
    /// The first argument that is a descriptor: of the file the call works on, else of the
    /// directory its path starts from.
    pub fn fd_arg(&self) -> Option<usize> {
        self.args.iter().position(|a| matches!(a.kind, ArgKind::Fd | ArgKind::DirFd))
    }

    /// What argument `index` is in a call made with `args`: its kind, where that depends on a
    /// command argument (`fcntl`, `ioctl`, `prctl` …) the one it has under that command, and
    /// [`ArgKind::Int`] beyond the last argument.
    pub fn arg_kind(&self, index: usize, args: &[u64; 6]) -> ArgKind {
        match self.args.get(index) {
            Some(Arg { kind: ArgKind::ByCommand, .. }) => by_command::kind(self.name, index, args),
            Some(arg) => arg.kind,
            None => ArgKind::Int,
        }
    }

    /// The arguments whose memory is worth reading at `at`, with their kinds; those that are NULL
    /// are left out. Input is read at entry, output and what is updated at exit.
    pub fn memory(&self, at: Moment, args: &[u64; 6]) -> impl Iterator<Item = (u8, ArgKind)> {
        (0..6u8).zip(args).filter_map(move |(index, value)| {
            let kind = self.arg_kind(index.into(), args);
            (kind.read_at(at) && *value != 0).then_some((index, kind))
        })
    }
}
