//! Windows: a few consecutive calls of one thread, recorded whole.

use crate::ledger::Before;
use crate::names::StackId;
use crate::process::ProcessId;
use crate::row::RowId;
use crate::syscalls::{ArgKind, Moment};
use crate::sysno::Sysno;
use std::sync::Arc;

/// Memory that an argument points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgData {
    /// Which argument, from 0.
    pub arg: u8,
    /// When it was read.
    pub at: Moment,
    /// What was there: a string without its NUL, or the bytes of a struct or buffer,
    /// cut to a bound.
    pub bytes: Vec<u8>,
    /// Whether `bytes` is shorter than what was there.
    pub cut: bool,
}

/// One call of a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowCall {
    /// The row it was counted on.
    pub row: RowId,
    /// Which call of its row it was, from 1.
    pub nth: u64,
    /// The six argument registers.
    pub args: [u64; 6],
    /// What the arguments pointed to.
    pub data: Vec<ArgData>,
    /// What the descriptor that [`crate::Signature::fd_arg`] tells of was behind: a path,
    /// `pipe:[…]`, `anon_inode:…`, or a socket as strace has it: `TCP:[127.0.0.1:80->127.0.0.1:4711]`,
    /// `UNIX:[…->…]`, `socket:[…]` where nothing more could be told.
    pub fd: Option<Arc<str>>,
    /// What the call returned, as in rax: `-4095..=-1` is an errno. `None` if it never returned.
    pub result: Option<i64>,
    /// Entry, ns since the run's start.
    pub entry_ns: u64,
    /// Elapsed ns, the observer's share included.
    pub elapsed_ns: u64,
    /// Of these, scheduled out; `None` where it can't be told.
    pub waited_ns: Option<u64>,
    /// Signals delivered to the thread between the window's previous call and this one.
    pub signals_before: u32,
    /// Minor page faults its thread had taken before it; known only for calls that map memory
    /// or give it back.
    pub faults: Option<u64>,
    /// The whole stack, where it was taken.
    pub stack: Option<StackId>,
    /// How the ledger of the run knows its question from before.
    pub before: Before,
}

impl WindowCall {
    /// The errno, where the call failed.
    pub fn errno(&self) -> Option<crate::errno::Errno> {
        crate::errno::Errno::from_result(self.result?)
    }

    /// The file the call, one of `syscall`, is about: the path it names, after the directory it
    /// starts from where that is a descriptor, else what its descriptor is behind.
    pub fn object(&self, syscall: Sysno) -> Option<String> {
        let named = syscall.signature()?.memory(Moment::Entry, &self.args).find(|(_, kind)| *kind == ArgKind::Path);
        let path =
            named.and_then(|(arg, _)| self.arg_data(arg, Moment::Entry)).map(|d| String::from_utf8_lossy(&d.bytes));
        match (path, &self.fd) {
            (Some(path), Some(folder)) if !path.starts_with('/') && folder.starts_with('/') => Some(match &*path {
                "" => folder.to_string(),
                path => format!("{}/{path}", folder.trim_end_matches('/')),
            }),
            (Some(path), _) if !path.is_empty() => Some(path.into_owned()),
            (_, fd) => fd.as_deref().map(str::to_owned),
        }
    }

    /// What was read of argument `arg` at `at`.
    pub fn arg_data(&self, arg: u8, at: Moment) -> Option<&ArgData> {
        self.data.iter().find(|d| d.arg == arg && d.at == at)
    }
}

/// Up to some 32 consecutive calls of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The process image.
    pub process: ProcessId,
    /// The thread's ordinal within the recording, not its tid.
    pub thread: u32,
    /// The row whose count opened the window.
    pub row: RowId,
    /// The octave of that row's count: 0 for its first call, `k` for calls `2^k ..= 2^(k+1)-1`.
    pub octave: u8,
    /// The calls, in order. Never empty.
    pub calls: Vec<WindowCall>,
}
