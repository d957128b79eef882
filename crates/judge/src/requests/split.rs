//! Splits a window into requests.

use crate::collections::hash::Map;
use systoll_model::{Errno, Recording, RequestKindId, RowId, Signature, Sysno, Window, WindowCall};

/// Calls from which on a window that ends within a request has cut it.
const LONG: usize = 256;
/// Calls that answer on a connection.
const ANSWERS: [&str; 7] = ["write", "writev", "sendto", "sendmsg", "sendmmsg", "sendfile", "splice"];
/// Calls that wait for the next request as well as for other things.
const WAITS: [&str; 8] =
    ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2", "io_getevents"];
/// Calls that return a descriptor of a new connection.
const ACCEPTS: [&str; 2] = ["accept", "accept4"];

/// The end of a request in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    /// The thread has taken up another request, or has closed the connection.
    Yes,
    /// The request is longer than windows are.
    Cut,
    /// The run has ended, or watching.
    No,
}

/// A call of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PieceCall {
    pub(super) row: RowId,
    pub(super) syscall: Sysno,
    /// True if the call receives from a socket.
    pub(super) receives: bool,
    /// The needless part of the call, 0 to 1.
    pub(super) needless: f64,
    /// Time waited in the call while the request was under way, ns; `None` if it is unknown.
    pub(super) waited_ns: Option<u64>,
    /// Number of calls that this one stands for, 0 to 1: less if windows show more calls of its row than were made.
    pub(super) weight: f64,
}

/// A request in a window.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) kind: RequestKindId,
    pub(super) calls: Vec<PieceCall>,
    pub(super) end: Whole,
    /// True if the thread took up another request before this one was answered.
    pub(super) overlapped: bool,
    /// True if the window shows the request's answer.
    pub(super) answered: bool,
}

/// A request that was begun.
struct Begun {
    piece: Piece,
    fd: i32,
    /// True if the request's connection was closed.
    closed: bool,
    /// Number of the request's calls up to its last answer, while it was under way.
    under_way: usize,
}

/// Returns the requests of a window that tells requests; none of other windows.
pub(super) fn pieces(recording: &Recording, window: &Window, needless: &dyn Fn(usize) -> f64) -> Vec<Piece> {
    if window.calls.iter().all(|call| call.request.is_none()) {
        return Vec::new();
    }
    let mut split = Split::default();
    for (at, call) in window.calls.iter().enumerate() {
        let Some(row) = recording.rows.get(call.row.0 as usize) else { continue };
        let kind = call.request.filter(|kind| recording.begins_request(*kind));
        split.add(call, row.syscall, (kind, needless(at)));
    }
    let cut = window.calls.len() >= LONG;
    let last = split.begun.len().saturating_sub(1);
    let piece = |(at, mut begun): (usize, Begun)| {
        if at == last && !begun.closed {
            begun.piece.end = if cut { Whole::Cut } else { Whole::No };
        }
        // Calls behind the last answer wait for other requests, so their waits don't count.
        if begun.piece.answered {
            let idle = begun.piece.calls.get_mut(begun.under_way..).unwrap_or_default();
            idle.iter_mut().for_each(|call| call.waited_ns = call.waited_ns.map(|_| 0));
        }
        begun.piece
    };
    split.begun.into_iter().enumerate().map(piece).collect()
}

/// The requests of a window so far.
#[derive(Default)]
struct Split {
    begun: Vec<Begun>,
    /// The newest request on each connection.
    by_fd: Map<i32, usize>,
    /// The request that the thread works on.
    current: Option<usize>,
}

impl Split {
    fn add(&mut self, call: &WindowCall, syscall: Sysno, (kind, needless): (Option<RequestKindId>, f64)) {
        let signature = syscall.signature();
        let name = signature.map_or("", |s| s.name);
        let fd = signature.and_then(Signature::fd_arg).and_then(|at| call.args.get(at)).map(|fd| *fd as i32);
        if let (Some(kind), Some(fd)) = (kind, fd) {
            self.begin(kind, fd);
        } else if let Some(own) = fd.and_then(|fd| self.by_fd.get(&fd)).copied() {
            let is_open = self.begun.get(own).is_some_and(|begun| !begun.piece.answered);
            if is_open || self.current.is_none() {
                self.current = Some(own);
            }
        }
        let own = fd.and_then(|fd| self.by_fd.get(&fd)).copied();
        if ACCEPTS.contains(&name)
            && let Some(new) = call.result.and_then(|fd| i32::try_from(fd).ok()).filter(|fd| *fd >= 0)
        {
            self.by_fd.remove(&new);
        }
        let Some(begun) = own.or(self.current).and_then(|at| self.begun.get_mut(at)) else { return };
        // The receive that begins a request has waited for the client, and calls that wait for many things may have,
        // too. Such waits don't count.
        let idle = kind.is_some() || WAITS.contains(&name) || ACCEPTS.contains(&name);
        let waited_ns = if idle { call.waited_ns.map(|_| 0) } else { call.waited_ns };
        begun.piece.calls.push(PieceCall {
            row: call.row,
            syscall,
            receives: call.request.is_some(),
            needless,
            waited_ns,
            weight: 1.0,
        });
        let has_failed = call.result.is_none_or(|result| Errno::from_result(result).is_some());
        if own.is_some() && ANSWERS.contains(&name) && !has_failed {
            begun.piece.answered = true;
            begun.under_way = begun.piece.calls.len();
        }
        if name == "close"
            && let Some(fd) = fd
        {
            begun.closed |= begun.fd == fd;
            self.by_fd.remove(&fd);
        }
    }

    fn begin(&mut self, kind: RequestKindId, fd: i32) {
        for at in self.by_fd.values() {
            if let Some(begun) = self.begun.get_mut(*at).filter(|begun| begun.fd != fd && !begun.piece.answered) {
                begun.piece.overlapped = true;
            }
        }
        let piece = Piece { kind, calls: Vec::new(), end: Whole::Yes, overlapped: false, answered: false };
        self.by_fd.insert(fd, self.begun.len());
        self.current = Some(self.begun.len());
        self.begun.push(Begun { piece, fd, closed: false, under_way: 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{Counts, ProcessId, RequestKind, RequestProtocol, Row, StackId};

    /// Returns the kinds and the calls of each request in a window of these calls: system call, descriptor, result, and
    /// the kind that the call received, if it tells one.
    fn split(calls: &[(&str, i32, i64, Option<u32>)]) -> Vec<(u32, Vec<&'static str>, Whole, bool)> {
        let mut recording = Recording::default();
        for name in ["GET /a", "GET /b"] {
            recording.request_kinds.push(RequestKind { protocol: RequestProtocol::Http, name: name.into() });
        }
        recording.request_kinds.push(RequestKind { protocol: RequestProtocol::None, name: "".into() });
        let stack = StackId(0);
        for (name, ..) in calls {
            recording.rows.push(Row {
                context: stack,
                outer: stack,
                ..Row::new(ProcessId(0), Sysno::from_name(name).unwrap(), Counts { calls: 1, ..Counts::default() })
            });
        }
        let call = |(row, (_, fd, result, kind)): (u32, &(&str, i32, i64, Option<u32>))| WindowCall {
            row: RowId(row),
            nth: 1,
            args: [*fd as u64, 0, 0, 0, 0, 0],
            result: Some(*result),
            request: kind.map(RequestKindId),
            ..WindowCall::default()
        };
        let calls = (0..).zip(calls).map(call).collect();
        let window = Window { process: ProcessId(0), thread: 0, row: RowId(0), octave: 0, calls };
        let names = |piece: Piece| {
            let calls = piece.calls.iter().map(|call| call.syscall.name().unwrap()).collect();
            (piece.kind.0, calls, piece.end, piece.overlapped)
        };
        pieces(&recording, &window, &|_| 0.0).into_iter().map(names).collect()
    }

    #[test]
    fn a_request_ends_where_the_next_begins() {
        let calls = [
            ("recvfrom", 4, 80, Some(0)),
            ("stat", 0, 0, None),
            ("sendto", 4, 10, None),
            ("epoll_wait", 3, 1, None),
            ("recvfrom", 4, -11, Some(2)),
            ("recvfrom", 4, 80, Some(1)),
        ];
        let first = vec!["recvfrom", "stat", "sendto", "epoll_wait", "recvfrom"];
        assert_eq!(split(&calls), [(0, first, Whole::Yes, false), (1, vec!["recvfrom"], Whole::No, false)]);
    }

    #[test]
    fn calls_on_a_connection_belong_to_its_request() {
        let calls = [
            ("recvfrom", 4, 80, Some(0)),
            ("recvfrom", 5, 80, Some(1)),
            ("sendto", 4, 10, None),
            ("getpid", 0, 7, None),
            ("sendto", 5, 10, None),
            ("recvfrom", 4, 80, Some(0)),
        ];
        assert_eq!(
            split(&calls),
            [
                (0, vec!["recvfrom", "sendto", "getpid"], Whole::Yes, true),
                (1, vec!["recvfrom", "sendto"], Whole::Yes, false),
                (0, vec!["recvfrom"], Whole::No, false),
            ]
        );
    }

    #[test]
    fn a_descriptor_s_next_connection_is_another() {
        let calls = [
            ("recvfrom", 4, 80, Some(0)),
            ("sendto", 4, 10, None),
            ("close", 4, 0, None),
            ("accept4", 3, 4, None),
            ("setsockopt", 4, 0, None),
            ("recvfrom", 4, 80, Some(0)),
        ];
        assert_eq!(split(&calls)[0].1, ["recvfrom", "sendto", "close", "accept4", "setsockopt"]);
        assert!(split(&[("recvfrom", 4, 80, None)]).is_empty());
        // A thread that serves one connection takes up no other.
        let whole = split(calls.get(..3).unwrap());
        assert_eq!(whole, [(0, vec!["recvfrom", "sendto", "close"], Whole::Yes, false)]);
    }
}
