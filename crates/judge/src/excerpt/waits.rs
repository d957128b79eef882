//! Waits of an imported trace. They are reported without a judgement, since waiting may be the program's purpose.

use crate::collections::hash::Map;
use crate::results::finding::Wait;

use std::cmp::Reverse;
use systoll_model::{Moment, Recording, RowId, Sysno, WindowCall, address};

/// Shortest single wait that is reported, ns: far longer than a tracer's own stop.
const LEAST_NS: u64 = 1_000_000;
/// Least share of the time shown, 0 to 1, that the waits of one group take together.
const LEAST_SHARE: f64 = 0.01;
/// Largest number of waits reported.
const MOST: usize = 16;
/// Largest number of descriptors whose peers are remembered.
const MOST_PEERS: usize = 4_096;
/// The port of name servers.
const DNS: u16 = 53;

/// Returns the waits of a trace that are worth reporting, the longest sum first. A recording made by systoll has
/// findings for them.
pub(crate) fn waits(recording: &Recording) -> Vec<Wait> {
    if !recording.header.backend.is_trace() {
        return Vec::new();
    }
    let mut groups: Map<(RowId, String, bool), (u64, u64, u64)> = Map::default();
    let mut peers = Peers::default();
    for window in &recording.windows {
        for call in &window.calls {
            let syscall = recording.row(call.row).syscall;
            let name = syscall.name().unwrap_or_default();
            peers.follow(window.process.0, name, call);
            let Some(ns) = call.waited_ns.filter(|ns| *ns >= LEAST_NS) else { continue };
            let about = peers.about(window.process.0, syscall, call);
            let group = groups.entry((call.row, about, has_run_out(name, call))).or_default();
            *group = (group.0 + 1, group.1.saturating_add(ns), group.2.max(ns));
        }
    }
    let shown = recording.header.wall_ns;
    let mut waits: Vec<Wait> = groups
        .into_iter()
        .map(|((row, about, ran_out), (calls, ns, longest_ns))| Wait {
            row,
            syscall: recording.row(row).syscall,
            about,
            calls,
            ran_out,
            ns,
            longest_ns,
            share: (shown > 0).then(|| ns as f64 / shown as f64),
        })
        .filter(|wait| wait.share.is_none_or(|share| share >= LEAST_SHARE))
        .collect();
    waits.sort_by(|a, b| (Reverse(a.ns), a.row, &a.about, a.ran_out).cmp(&(Reverse(b.ns), b.row, &b.about, b.ran_out)));
    waits.truncate(MOST);
    waits
}

/// Returns true if a wait ended by its timeout.
fn has_run_out(name: &str, call: &WindowCall) -> bool {
    match name {
        "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2" => {
            call.result == Some(0)
        }
        "io_uring_enter" | "io_getevents" => call.errno().is_some_and(|errno| errno.name() == Some("ETIME")),
        "futex" | "rt_sigtimedwait" | "mq_timedreceive" | "semtimedop" => {
            call.errno().is_some_and(|errno| matches!(errno.name(), Some("ETIMEDOUT" | "EAGAIN")))
        }
        _ => false,
    }
}

/// The peers of connected descriptors, by process and number.
#[derive(Default)]
struct Peers(Map<(u32, i32), String>);

impl Peers {
    fn follow(&mut self, process: u32, name: &str, call: &WindowCall) {
        let fd = call.args.first().map_or(-1, |word| *word as i32);
        match name {
            "connect" => {
                let peer = call.arg_data(1, Moment::Entry).and_then(|data| peer(&data.bytes));
                if let Some(peer) = peer.filter(|_| self.0.len() < MOST_PEERS) {
                    self.0.insert((process, fd), peer);
                }
            }
            "close" => {
                self.0.remove(&(process, fd));
            }
            _ => {}
        }
    }

    /// Returns the thing that a call waits for, as text.
    fn about(&self, process: u32, syscall: Sysno, call: &WindowCall) -> String {
        let of =
            |fd: i32| self.0.get(&(process, fd)).map_or_else(|| format!("fd {fd}"), |peer| format!("fd {fd}, {peer}"));
        match syscall.name().unwrap_or_default() {
            "poll" | "ppoll" => {
                let polled = call.arg_data(0, Moment::Entry).map_or(&[][..], |data| &data.bytes);
                let fds: Vec<i32> = polled.chunks_exact(8).filter_map(|one| number(one.get(..4)?)).collect();
                match fds.as_slice() {
                    [] => String::new(),
                    [one] => of(*one),
                    [first, rest @ ..] => format!("{} and {} more", of(*first), rest.len()),
                }
            }
            "futex" | "nanosleep" | "clock_nanosleep" | "wait4" | "waitid" | "select" | "pselect6" | "membarrier" => {
                String::new()
            }
            _ => {
                let fd = syscall.signature().and_then(|s| s.fd_arg()).and_then(|at| call.args.get(at));
                let known = fd.and_then(|fd| self.0.get(&(process, *fd as i32)).map(|_| of(*fd as i32)));
                known.or_else(|| call.object(syscall)).or_else(|| fd.map(|fd| of(*fd as i32))).unwrap_or_default()
            }
        }
    }
}

fn number(bytes: &[u8]) -> Option<i32> {
    Some(i32::from_le_bytes(bytes.try_into().ok()?))
}

/// Returns the peer in the bytes of an address: `192.0.2.1:53, a name server`.
fn peer(bytes: &[u8]) -> Option<String> {
    let address = address(bytes)?;
    Some(if address.port() == DNS { format!("{address}, a name server") } else { address.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{ArgData, BackendKind, Before, Counts, Header, Process, ProcessId, Row, Stack, Window};

    fn call(row: u32, args: [u64; 6], data: Vec<ArgData>, result: i64, ns: u64) -> WindowCall {
        WindowCall {
            row: RowId(row),
            nth: 1,
            args,
            data,
            result: Some(result),
            elapsed_ns: ns,
            waited_ns: Some(ns),
            before: Before::Unknown,
            ..WindowCall::default()
        }
    }

    #[test]
    fn a_poll_of_a_name_server_that_ran_out_is_told_so() {
        let row = |name: &str| {
            Row::new(ProcessId(0), Sysno::from_name(name).unwrap(), Counts { calls: 1, ..Counts::default() })
        };
        let bytes = |bytes: &[u8]| ArgData { arg: 1, at: Moment::Entry, bytes: bytes.to_vec(), cut: false };
        let address = bytes(&[2, 0, 0, 53, 192, 0, 2, 53, 0, 0, 0, 0, 0, 0, 0, 0]);
        let polled = ArgData { arg: 0, ..bytes(&[5, 0, 0, 0, 1, 0, 0, 0]) };
        let calls = vec![
            call(0, [5, 1, 16, 0, 0, 0], vec![address], 0, 0),
            call(1, [1, 1, 5000, 0, 0, 0], vec![polled], 0, 5_005_000_000),
        ];
        let mut recording = Recording {
            header: Header { backend: BackendKind::Import, wall_ns: 6_000_000_000, ..Header::default() },
            processes: vec![Process::default()],
            stacks: vec![Stack::default()],
            rows: vec![row("connect"), row("poll")],
            windows: vec![Window { process: ProcessId(0), thread: 0, row: RowId(0), octave: 0, calls }],
            ..Recording::default()
        };
        let told = waits(&recording);
        assert_eq!(told.len(), 1);
        assert_eq!((&*told[0].about, told[0].ran_out), ("fd 5, 192.0.2.53:53, a name server", true));
        recording.header.backend = BackendKind::Inproc;
        assert!(waits(&recording).is_empty());
    }
}
