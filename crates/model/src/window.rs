//! Windows: a few consecutive calls of one thread, recorded whole.

use crate::address::{address, peer_argument};
use crate::ledger::Before;
use crate::names::StackId;
use crate::process::ProcessId;
use crate::request::RequestKindId;
use crate::row::RowId;
use crate::syscalls::{ArgKind, Moment, Signature};
use crate::sysno::Sysno;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

/// Memory to which an argument pointed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgData {
    /// Index of the argument, from 0.
    pub arg: u8,
    /// The time at which the memory was read.
    pub at: Moment,
    /// Bytes of the memory: a string without its NUL, or a struct or buffer, cut to a bound.
    pub bytes: Vec<u8>,
    /// True if `bytes` is shorter than the memory was.
    pub cut: bool,
}

/// A call of a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowCall {
    /// The row in which the call was counted.
    pub row: RowId,
    /// Number of the call within its row, from 1.
    pub nth: u64,
    /// The six argument registers at the call's entry.
    pub args: [u64; 6],
    /// Memory to which the arguments pointed.
    pub data: Vec<ArgData>,
    /// The file behind the descriptor that [`crate::Signature::fd_arg`] names: a path, `pipe:[…]`,
    /// `anon_inode:…`, or a socket as strace writes it: `TCP:[127.0.0.1:80->127.0.0.1:4711]`,
    /// `UNIX:[…->…]`, `socket:[…]` if no more is known.
    pub fd: Option<Arc<str>>,
    /// The call's result, as in rax: `-4095..=-1` is an errno. `None` if it never returned.
    pub result: Option<i64>,
    /// Time of the call's entry, ns since the run's start.
    pub entry_ns: u64,
    /// Elapsed time of the call, ns, with the observer's share.
    pub elapsed_ns: u64,
    /// The part of `elapsed_ns` for which the thread was scheduled out, ns; `None` if it can't be
    /// told.
    pub waited_ns: Option<u64>,
    /// Number of signals delivered to the thread between the window's previous call and this one.
    pub signals_before: u32,
    /// Number of minor page faults of the thread before the call; known only for calls that map
    /// memory or give it back.
    pub faults: Option<u64>,
    /// The whole stack of the call, if it was sampled.
    pub stack: Option<StackId>,
    /// The relation of the call's question to earlier ones, from the ledger.
    pub before: Before,
    /// For a call that receives from a socket, in a window that was opened to tell requests: what it received.
    pub request: Option<RequestKindId>,
}

impl WindowCall {
    /// Returns the errno, if the call failed.
    pub fn errno(&self) -> Option<crate::errno::Errno> {
        crate::errno::Errno::from_result(self.result?)
    }

    /// Returns the object that the call, one of `syscall`, is about: the path that it names, joined to the directory
    /// behind a descriptor if it starts there; or the peer's address to which it connects; otherwise the file behind the
    /// call's descriptor.
    pub fn object(&self, syscall: Sysno) -> Option<String> {
        let bytes = |arg, _| Some(self.arg_data(arg, Moment::Entry)?.bytes.as_slice().into());
        object_of(syscall.signature()?, &self.args, bytes, || self.fd.clone())
    }

    /// Returns the address of the internet to which the call, one of `syscall`, connects its socket.
    pub fn peer(&self, syscall: Sysno) -> Option<SocketAddr> {
        address(&self.arg_data(peer_argument(syscall)?, Moment::Entry)?.bytes)
    }

    /// Returns the memory that argument `arg` pointed to at `at`, if it was read.
    pub fn arg_data(&self, arg: u8, at: Moment) -> Option<&ArgData> {
        self.data.iter().find(|d| d.arg == arg && d.at == at)
    }
}

/// Returns the object that a call is about, as [`WindowCall::object`] names it. `bytes` gives what an argument points to at
/// entry, a path without its NUL; `fd` gives the file behind the call's descriptor.
pub fn object_of<'b>(
    signature: &Signature,
    args: &[u64; 6],
    bytes: impl Fn(u8, ArgKind) -> Option<Cow<'b, [u8]>>,
    fd: impl FnOnce() -> Option<Arc<str>>,
) -> Option<String> {
    let mut memory = signature.memory(Moment::Entry, args);
    if let Some(of_peer) = peer_argument(signature.sysno) {
        let (arg, kind) = memory.find(|(arg, _)| *arg == of_peer)?;
        return match bytes(arg, kind).and_then(|bytes| address(&bytes)) {
            Some(peer) => Some(peer.to_string()),
            None => fd().as_deref().map(str::to_owned),
        };
    }
    let path = memory.find(|(_, kind)| *kind == ArgKind::Path).and_then(|(arg, kind)| bytes(arg, kind));
    object_name(path.as_deref().map(String::from_utf8_lossy).as_deref(), fd().as_deref())
}

/// Returns the name of the file that a call is about: the `path` that it names, joined to the folder behind its
/// descriptor `fd` if it starts there; otherwise the file behind the descriptor.
#[must_use]
pub fn object_name(path: Option<&str>, fd: Option<&str>) -> Option<String> {
    match (path, fd) {
        (Some(path), Some(folder)) if !path.starts_with('/') && folder.starts_with('/') => Some(match path {
            "" => folder.to_owned(),
            path => format!("{}/{path}", folder.trim_end_matches('/')),
        }),
        (Some(path), _) if !path.is_empty() => Some(path.to_owned()),
        (_, fd) => fd.map(str::to_owned),
    }
}

/// A window: at most some 32 consecutive calls of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The process image that made the calls.
    pub process: ProcessId,
    /// Number of the thread within the recording, which is not its tid.
    pub thread: u32,
    /// The row whose count opened the window.
    pub row: RowId,
    /// The octave of that row's count: 0 for its first call, `k` for calls `2^k ..= 2^(k+1)-1`.
    pub octave: u8,
    /// The calls of the window, in order; never empty.
    pub calls: Vec<WindowCall>,
}
