//! Windows that tell requests: each opens where a thread receives from a socket, and goes on until that request is whole.
//! What was received is looked at once, and only the kind of the request is kept.

use crate::procfs;
use crate::raw_window::{RawCall, RawWindow};
use systoll_model::{Moment, RequestKind, RequestProtocol, Signature};
use systoll_protocols::{HEAD, Kinds, Received, recognise};

/// Calls from which on a window may end where a thread takes up another request.
const ENOUGH: usize = 32;
/// Calls of a window, at most: a longer request is cut.
const LONGEST: usize = 256;
/// Time between two windows, ns, at least.
const PAUSE_NS: u64 = 5_000_000;
/// Windows that may follow one another at [`PAUSE_NS`]; later ones may take [`SHARE`] of the run.
const AT_ONCE: u64 = 20;
/// Time that a call of a window takes its thread and us, ns.
const EACH_NS: u64 = 40_000;
/// Share of the run's time that windows may take, as a divisor.
const SHARE: u64 = 20;
/// Buffers that are received into or sent from: the number of the argument.
const BUFFER: u8 = 1;
/// Beginning of a socket's name in /proc/PID/fd.
const SOCKET: &str = "socket:";
/// Flag of recvmsg and recvfrom: the bytes stay and are received again.
const PEEK: u64 = libc::MSG_PEEK as u64;

/// Windows that tell requests.
pub(crate) struct RequestWindows {
    kinds: Kinds,
    opened: u64,
    /// When the next window may open, ns since the run's start.
    next_ns: u64,
}

impl Default for RequestWindows {
    fn default() -> Self {
        let mut kinds = Kinds::default();
        // A recording with a kind tells that requests were looked for.
        kinds.number(RequestProtocol::None, "");
        Self { kinds, opened: 0, next_ns: 0 }
    }
}

impl RequestWindows {
    /// Returns true if a window may open in a run that has lasted `run_ns`.
    pub(crate) fn is_due(&self, run_ns: u64) -> bool {
        run_ns >= self.next_ns
    }

    /// Notes that a window opens.
    pub(crate) fn note_opened(&mut self, run_ns: u64) {
        self.opened += 1;
        self.next_ns = run_ns.saturating_add(PAUSE_NS);
    }

    /// Notes a window of so many calls that has ended, `run_ns` after the run's start.
    pub(crate) fn note_ended(&mut self, calls: usize) {
        if self.opened > AT_ONCE {
            self.next_ns = self.next_ns.saturating_add(calls as u64 * EACH_NS * SHARE).saturating_sub(PAUSE_NS);
        }
    }

    /// Marks a call that has returned with what it received, if it receives from a socket. `read` reads the memory of
    /// its process.
    pub(crate) fn note(&mut self, call: &mut RawCall, signature: &Signature, read: &dyn Fn(u64, &mut [u8]) -> usize) {
        if !is_receive(signature) || !call.fd.as_deref().is_some_and(|fd| fd.starts_with(SOCKET)) {
            return;
        }
        let kind = match recognise(&head(call, signature, read)) {
            _ if is_peek(call, signature) => (RequestProtocol::None, String::new()),
            Received::Request(protocol, name) => (protocol, name),
            Received::Unreadable(protocol) => (protocol, String::new()),
            Received::Other => (RequestProtocol::None, String::new()),
        };
        call.request = Some(self.kinds.number(kind.0, &kind.1));
        call.begins_request = kind.0.has_requests();
    }

    /// Returns true if a window has no more calls to record.
    pub(crate) fn is_over(window: &RawWindow) -> bool {
        let calls = window.calls.len();
        // Windows of one length would meet the same requests of a client that repeats itself.
        let more = window.opened_ns() / 1_000 % ENOUGH as u64;
        let enough = ENOUGH + more as usize;
        let another = window.calls.last().is_some_and(|call| call.begins_request);
        let none = || window.calls.iter().all(|call| !call.begins_request);
        calls >= LONGEST || calls > enough && (another || none())
    }

    /// Returns the kinds to keep, and the number there of each kind so far.
    pub(crate) fn kinds(&self) -> (Vec<RequestKind>, Vec<u32>) {
        self.kinds.kept()
    }
}

/// Returns true if a call receives from a socket, should its descriptor be one.
pub(crate) fn is_receive(signature: &Signature) -> bool {
    matches!(signature.name, "read" | "readv" | "recvfrom" | "recvmsg")
}

/// Returns true if a descriptor of a process is a socket.
pub(crate) fn is_socket(pid: i32, fd: u64) -> bool {
    procfs::fd_target(pid, fd as i32).is_some_and(|target| target.starts_with(SOCKET))
}

/// Removes what a call has read or written, also of files: servers write requests to their logs.
pub(crate) fn forget_contents(call: &mut RawCall, signature: &Signature) {
    if signature.transfers {
        call.data.retain(|data| data.arg != BUFFER);
    }
}

fn is_peek(call: &RawCall, signature: &Signature) -> bool {
    let flags = match signature.name {
        "recvfrom" => call.args.get(3),
        "recvmsg" => call.args.get(2),
        _ => None,
    };
    flags.is_some_and(|flags| flags & PEEK != 0)
}

/// Returns the first bytes that a call has received.
fn head(call: &RawCall, signature: &Signature, read: &dyn Fn(u64, &mut [u8]) -> usize) -> Vec<u8> {
    let Some(received) = call.result.and_then(|result| usize::try_from(result).ok()).filter(|n| *n > 0) else {
        return Vec::new();
    };
    if let Some(data) = call.data.iter().find(|data| data.arg == BUFFER && data.at == Moment::Exit)
        && matches!(signature.name, "read" | "recvfrom")
    {
        return data.bytes.clone();
    }
    let word = |address: u64| {
        let mut bytes = [0; 8];
        (read(address, &mut bytes) == bytes.len()).then(|| u64::from_ne_bytes(bytes))
    };
    let [_, buffer, ..] = call.args;
    // The first piece: struct iovec, which struct msghdr names at offset 16.
    let vector = match signature.name {
        "recvmsg" => word(buffer.wrapping_add(16)),
        "readv" => Some(buffer),
        _ => None,
    };
    let first = vector.and_then(|at| Some((word(at)?, usize::try_from(word(at.wrapping_add(8))?).ok()?)));
    let Some((address, room)) = first else { return Vec::new() };
    let mut bytes = vec![0; received.min(room).min(HEAD)];
    let got = read(address, &mut bytes);
    bytes.truncate(got);
    bytes
}
