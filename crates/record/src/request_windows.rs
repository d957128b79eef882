//! Windows that tell requests: each opens where a thread receives from a socket, and goes on until that request is
//! whole. Single receives are looked at as well, to count requests. The received bytes are examined at once, and only
//! the kind of the request is kept.

use crate::procfs;
use crate::raw_window::{RawCall, RawWindow};
use std::collections::{BTreeMap, HashMap};
use systoll_hooks::layout::capture;
use systoll_model::{Moment, ReceivedCalls, RequestKind, RequestKindId, RequestProtocol, RowId, Signature};
use systoll_protocols::{HEAD, Kinds, Received, recognise};

/// Calls from which on a window may end where a thread takes up another request.
const ENOUGH: usize = 32;
/// Calls of a window, at most: a longer request is cut.
const LONGEST: usize = 256;
/// Least time between two windows, ns.
const PAUSE_NS: u64 = 5_000_000;
/// Windows that may follow one another at [`PAUSE_NS`]; later ones may take [`SHARE`] of the run.
const AT_ONCE: u64 = 20;
/// Time that a call of a window takes its thread and us, ns: at least, and at most. On a busy machine, threads wait long for
/// an answer; what they compute between two calls takes time too, and can't be told from that.
const EACH_NS: (u64, u64) = (40_000, 1_000_000);
/// Share of the run's time that windows may take, as a divisor.
const SHARE: u64 = 20;
/// Index of the argument that is the buffer of a receive or send.
const BUFFER: u8 = 1;
/// Beginning of a socket's name in /proc/PID/fd.
const SOCKET: &str = "socket:";
/// Flag of recvmsg and recvfrom: the bytes stay and are received again.
const PEEK: u64 = libc::MSG_PEEK as u64;

/// Sums of single receives that are kept, at most: one for each row, kind and number for which a receive stands.
const MOST_SUMS: usize = 1 << 14;

/// A call that has returned and may have received from a socket.
pub(crate) struct Receive<'a> {
    pub(crate) signature: &'a Signature,
    pub(crate) args: &'a [u64; 6],
    pub(crate) result: i64,
    /// The first bytes of the call's buffer, if they were copied; they may be more than the call has received.
    pub(crate) bytes: Option<&'a [u8]>,
    /// Returns true if the call's descriptor is a socket; `None` if that is unknown.
    pub(crate) is_socket: &'a dyn Fn() -> Option<bool>,
}

impl Receive<'_> {
    /// Returns the meaning of what the call has received; `None` if it is unknown. `read` reads the memory of its process.
    fn meaning(&self, read: &dyn Fn(u64, &mut [u8]) -> usize) -> Option<Received> {
        let received = usize::try_from(self.result).unwrap_or(0);
        if received == 0 || self.peeks() {
            return Some(Received::Other);
        }
        let copied = self.bytes.map(|bytes| bytes.get(..received.min(HEAD)).unwrap_or(bytes).to_vec());
        let bytes = copied.unwrap_or_else(|| self.head(received, read));
        if bytes.is_empty() {
            return None;
        }
        match recognise(&bytes) {
            Received::Other => Some(Received::Other),
            // The bytes may be those of a file.
            known => (self.is_socket)().map(|is_socket| if is_socket { known } else { Received::Other }),
        }
    }

    /// Returns true if the bytes stay in the socket and are received again.
    fn peeks(&self) -> bool {
        let flags = match self.signature.name {
            "recvfrom" => self.args.get(3),
            "recvmsg" => self.args.get(2),
            _ => None,
        };
        flags.is_some_and(|flags| flags & PEEK != 0)
    }

    /// Reads the first bytes that the call has received.
    fn head(&self, received: usize, read: &dyn Fn(u64, &mut [u8]) -> usize) -> Vec<u8> {
        let word = |address: u64| {
            let mut bytes = [0; 8];
            (read(address, &mut bytes) == bytes.len()).then(|| u64::from_ne_bytes(bytes))
        };
        let [_, buffer, ..] = *self.args;
        // The first piece: struct iovec, which struct msghdr names at offset 16.
        let vector = match self.signature.name {
            "recvmsg" => word(buffer.wrapping_add(16)),
            "readv" => Some(buffer),
            _ => None,
        };
        let first = match (self.signature.name, vector) {
            ("read" | "recvfrom", _) => Some((buffer, received)),
            (_, Some(at)) => word(at).zip(word(at.wrapping_add(8)).and_then(|room| usize::try_from(room).ok())),
            _ => None,
        };
        let Some((address, room)) = first else { return Vec::new() };
        let mut bytes = vec![0; received.min(room).min(HEAD)];
        let got = read(address, &mut bytes);
        bytes.truncate(got);
        bytes
    }
}

/// Windows that tell requests, and sums of single receives.
pub(crate) struct RequestWindows {
    kinds: Kinds,
    /// Numbers of receives that were looked at, by row, kind, and the number for which each stands.
    receives: HashMap<(u32, u32, u64), u64>,
    opened: u64,
    /// Time from which on the next window may open, ns since the run's start.
    next_ns: u64,
}

impl Default for RequestWindows {
    fn default() -> Self {
        let mut kinds = Kinds::default();
        // A recording with a kind tells that requests were looked for.
        kinds.number(RequestProtocol::None, "");
        Self { kinds, receives: HashMap::new(), opened: 0, next_ns: 0 }
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

    /// Notes a window of these calls that has ended.
    pub(crate) fn note_ended(&mut self, calls: &[RawCall]) {
        if self.opened > AT_ONCE {
            self.next_ns = self.next_ns.saturating_add(taken_ns(calls) * SHARE).saturating_sub(PAUSE_NS);
        }
    }

    /// Marks a call that has returned with what it received, if it receives from a socket. `read` reads the memory of
    /// its process.
    pub(crate) fn note(&mut self, call: &mut RawCall, signature: &Signature, read: &dyn Fn(u64, &mut [u8]) -> usize) {
        if !is_receive(signature) || !call.fd.as_deref().is_some_and(is_socket_name) {
            return;
        }
        let data = call.data.iter().find(|data| data.arg == BUFFER && data.at == Moment::Exit);
        let bytes = data.filter(|_| matches!(signature.name, "read" | "recvfrom")).map(|data| &data.bytes[..]);
        // A call that was cut short has received nothing.
        let result = call.result.unwrap_or(0);
        let receive = Receive { signature, args: &call.args, result, bytes, is_socket: &|| Some(true) };
        let meaning = receive.meaning(read).unwrap_or(Received::Other);
        call.begins_request = matches!(meaning, Received::Request(..));
        call.request = Some(self.number(meaning));
    }

    /// Counts a sampled receive, with its row and the number of receives for which it stands, if it is known what it
    /// received. `read` reads the memory of its process.
    pub(crate) fn count(
        &mut self,
        (row, stands_for): (u32, u64),
        receive: &Receive<'_>,
        read: &dyn Fn(u64, &mut [u8]) -> usize,
    ) {
        let Some(meaning) = receive.meaning(read) else { return };
        let kind = self.number(meaning);
        let key = (row, kind, stands_for);
        if self.receives.len() < MOST_SUMS || self.receives.contains_key(&key) {
            *self.receives.entry(key).or_default() += 1;
        }
    }

    /// Returns the number of a kind.
    fn number(&mut self, meaning: Received) -> u32 {
        let (protocol, name) = match meaning {
            Received::Request(protocol, name) => (protocol, name),
            Received::Unreadable(protocol) => (protocol, String::new()),
            Received::Other => (RequestProtocol::None, String::new()),
        };
        self.kinds.number(protocol, &name)
    }

    /// Returns the kinds to keep; by the number that each kind had so far, its number among these; and the sampled
    /// receives.
    pub(crate) fn kept(&self) -> (Vec<RequestKind>, Vec<u32>, Vec<ReceivedCalls>) {
        let (kinds, numbers) = self.kinds.kept();
        let mut sums: BTreeMap<(u32, u32, u64), u64> = BTreeMap::new();
        for ((row, kind, stands_for), receives) in &self.receives {
            let Some(kind) = numbers.get(*kind as usize) else { continue };
            *sums.entry((*row, *kind, *stands_for)).or_default() += receives;
        }
        let of = |((row, kind, stands_for), receives)| ReceivedCalls {
            row: RowId(row),
            kind: RequestKindId(kind),
            stands_for,
            receives,
        };
        (kinds, numbers, sums.into_iter().map(of).collect())
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
}

/// Returns the time that recording a window of these calls has taken, ns: the time between them.
fn taken_ns(calls: &[RawCall]) -> u64 {
    let next = calls.iter().skip(1).map(|call| call.entry_ns);
    let between =
        calls.iter().zip(next).map(|(call, next)| next.saturating_sub(call.entry_ns.saturating_add(call.elapsed_ns)));
    let (least, most) = EACH_NS;
    between.chain([0]).map(|ns| ns.clamp(least, most)).sum()
}

/// Returns true if a call receives from a socket, should its descriptor be one.
pub(crate) fn is_receive(signature: &Signature) -> bool {
    capture::is_receive(signature)
}

/// Returns true if a descriptor of this name is a socket.
pub(crate) fn is_socket_name(name: &str) -> bool {
    name.starts_with(SOCKET)
}

/// Returns true if a descriptor of a process is a socket; `None` if it is closed.
pub(crate) fn is_open_socket(pid: i32, fd: u64) -> Option<bool> {
    procfs::fd_target(pid, fd as i32).map(|target| is_socket_name(&target))
}

/// Returns true if a descriptor of a process is a socket.
pub(crate) fn is_socket(pid: i32, fd: u64) -> bool {
    is_open_socket(pid, fd) == Some(true)
}

/// Removes what a call has read or written, also of files: servers write requests to their logs.
pub(crate) fn forget_contents(call: &mut RawCall, signature: &Signature) {
    if signature.transfers {
        call.data.retain(|data| data.arg != BUFFER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::Sysno;

    const NO_MEMORY: &dyn Fn(u64, &mut [u8]) -> usize = &|_, _| 0;

    /// Returns the names of the kinds counted by receives of `GET /` by this call, each with its number.
    fn counted(
        name: &str,
        flags: u64,
        result: i64,
        bytes: Option<&[u8]>,
        is_socket: Option<bool>,
    ) -> Vec<(String, u64)> {
        let signature = Sysno::from_name(name).and_then(|syscall| syscall.signature()).unwrap();
        let mut requests = RequestWindows::default();
        let args = [3, 0x1000, flags, flags, 0, 0];
        let receive = Receive { signature, args: &args, result, bytes, is_socket: &|| is_socket };
        requests.count((7, 4), &receive, NO_MEMORY);
        let (kinds, _, received) = requests.kept();
        let name = |of: &ReceivedCalls| kinds[of.kind.0 as usize].name.to_string();
        received.iter().map(|of| (name(of), of.stands_for * of.receives)).collect()
    }

    #[test]
    fn a_receive_counts_for_those_for_which_it_stands() {
        const LINE: &[u8] = b"GET /a HTTP/1.1\r\n";
        let told = |name, flags, result, bytes, is_socket| counted(name, flags, result, bytes, is_socket);
        let (request, none) = (vec![("GET /a".to_owned(), 4)], vec![(String::new(), 4)]);
        assert_eq!(told("read", 0, 17, Some(LINE), Some(true)), request);
        // None of these is a request: the same bytes of a file, bytes that stay in the socket, a buffer's older
        // content.
        assert_eq!(told("read", 0, 17, Some(LINE), Some(false)), none);
        assert_eq!(told("recvfrom", PEEK, 17, Some(LINE), Some(true)), none);
        assert_eq!(told("recvfrom", 0, -11, Some(LINE), Some(true)), none);
        assert_eq!(told("recvfrom", 0, 3, Some(LINE), Some(true)), none);
        // Receives whose bytes or descriptor are unknown are not counted.
        assert_eq!(told("read", 0, 17, Some(LINE), None), []);
        assert_eq!(told("recvmsg", 0, 17, None, Some(true)), []);
    }
}
