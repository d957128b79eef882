//! Names sockets by their ends, from the tables of the target's network namespace.
//!
//! A table takes milliseconds to read, however few sockets there are. Therefore a separate thread reads it, within a
//! budget, and never the thread for which targets wait. A socket is identified by its inode, whose number is not
//! reused, and gets its name when the recording is made. Nothing is opened, duplicated or requested in the target.

use crate::limits;
use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time for reading socket tables that is granted to every run.
const ALLOWANCE: Duration = Duration::from_millis(15);
/// Additional time for reading socket tables, as a share of the run's time.
const SHARE: f64 = 0.005;
/// Bytes read of a table, at most.
const MOST: u64 = 4 << 20;
/// Number of sockets that get names, at most.
const MOST_NAMES: usize = 20_000;
/// Questions that the queue holds, at most. Further ones are dropped, and asked again at the next call.
const QUEUE: usize = 256;
/// Time that a recording waits for the last answers.
const PATIENCE: Duration = Duration::from_millis(30);

/// A socket, and a process that has it open.
#[derive(Clone, Copy, Debug)]
struct Question {
    pid: i32,
    inode: u64,
}

/// Names of sockets by inode, with true if the name is final.
type SocketNames = Arc<Mutex<HashMap<u64, (Arc<str>, bool)>>>;

/// The names of the sockets that windows have seen.
#[derive(Default)]
pub(crate) struct Sockets {
    ask: Option<SyncSender<Question>>,
    found: SocketNames,
    waiting: Arc<AtomicUsize>,
}

impl Sockets {
    /// Asks for the name of the socket behind `target`, the text of a descriptor's link.
    pub(crate) fn seen(&mut self, pid: i32, target: &str) {
        let Some(inode) = inode(target) else { return };
        let known =
            |found: &SocketNames| found.lock().unwrap_or_else(PoisonError::into_inner).get(&inode).is_some_and(|f| f.1);
        if known(&self.found) {
            return;
        }
        let ask = self.ask.get_or_insert_with(|| start(self.found.clone(), self.waiting.clone()));
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if ask.try_send(Question { pid, inode }).is_err() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Returns all names known by now, by the text of the links of their descriptors.
    pub(crate) fn names(&self) -> HashMap<String, Arc<str>> {
        let begun = Instant::now();
        while self.waiting.load(Ordering::Relaxed) > 0 && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.iter().map(|(inode, (name, _))| (format!("socket:[{inode}]"), name.clone())).collect()
    }
}

fn inode(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Starts the thread that answers questions. It ends when the sender is dropped.
fn start(found: SocketNames, waiting: Arc<AtomicUsize>) -> SyncSender<Question> {
    let (ask, questions) = sync_channel(QUEUE);
    // If no thread can be started, nothing receives the questions: sockets keep their numbers.
    if crate::sys::forbids_futex().is_some() {
        return ask;
    }
    let _ = limits::spawn("sockets", move || answer(&questions, &found, &waiting));
    ask
}

fn answer(questions: &Receiver<Question>, found: &SocketNames, waiting: &AtomicUsize) {
    let begun = Instant::now();
    let mut spent = Duration::ZERO;
    while let Ok(first) = questions.recv() {
        let asked: Vec<Question> = std::iter::once(first).chain(questions.try_iter()).collect();
        if spent < ALLOWANCE + begun.elapsed().mul_f64(SHARE) {
            let from = Instant::now();
            look_up(&asked, found);
            spent += from.elapsed();
        }
        waiting.fetch_sub(asked.len(), Ordering::Relaxed);
    }
}

fn look_up(asked: &[Question], found: &SocketNames) {
    let mut namespaces = HashSet::new();
    for question in asked {
        let namespace = std::fs::read_link(format!("/proc/{}/ns/net", question.pid));
        if !namespace.is_ok_and(|n| namespaces.insert(n)) {
            continue;
        }
        // Read cheap tables first: they name most programs' sockets.
        for (table, parse) in TABLES {
            let wanted = |found: &SocketNames| {
                let found = found.lock().unwrap_or_else(PoisonError::into_inner);
                asked.iter().any(|q| !found.get(&q.inode).is_some_and(|f| f.1))
            };
            if !wanted(found) {
                return;
            }
            let text = read(&format!("/proc/{}/net/{table}", question.pid));
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            for (inode, name, whole) in text.lines().skip(1).filter_map(parse) {
                if found.len() < MOST_NAMES || found.contains_key(&inode) {
                    found.insert(inode, (name.into(), whole));
                }
            }
        }
    }
}

fn read(path: &str) -> String {
    let mut bytes = Vec::new();
    // An unreadable table names no sockets.
    let _ = systoll_files::kernel(path).and_then(|file| file.take(MOST).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

type Parse = fn(&str) -> Option<(u64, String, bool)>;

const TABLES: [(&str, Parse); 6] = [
    ("unix", unix),
    ("netlink", netlink),
    ("udp", |line| internet(line, "UDP")),
    ("udp6", |line| internet(line, "UDPv6")),
    ("tcp", |line| internet(line, "TCP")),
    ("tcp6", |line| internet(line, "TCPv6")),
];

/// Parses a line of tcp, udp, tcp6 or udp6: slot, local and remote end, state, five other fields, inode.
fn internet(line: &str, protocol: &str) -> Option<(u64, String, bool)> {
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
    let [_, local, remote, state, .., inode] = fields.as_slice() else { return None };
    let inode = inode.parse().ok().filter(|i| *i != 0 && fields.len() == 10)?;
    let (local, remote) = (end(local)?, end(remote)?);
    if remote.port() == 0 && remote.ip().is_unspecified() {
        return Some((inode, format!("{protocol}:[{local}]"), *state == LISTEN));
    }
    Some((inode, format!("{protocol}:[{local}->{remote}]"), true))
}

/// Parses an address of the tables: 32-bit words in native byte order, in hexadecimal.
fn end(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| Some(u32::from_str_radix(address.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match address.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(at)?);
            }
            IpAddr::from(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// Parses a line of unix: address, references, protocol, flags, type, state, inode, path.
fn unix(line: &str) -> Option<(u64, String, bool)> {
    const STREAM: &str = "0001";
    let mut rest = line;
    let mut next = || {
        let (field, after) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
        rest = after;
        field
    };
    let fields = [(); 7].map(|()| next());
    let path = rest.trim_start();
    let protocol = if fields[4] == STREAM { "UNIX-STREAM" } else { "UNIX" };
    let inode: u64 = fields[6].parse().ok().filter(|i| *i != 0)?;
    let path = if path.is_empty() { String::new() } else { format!(",\"{path}\"") };
    Some((inode, format!("{protocol}:[{inode}{path}]"), true))
}

/// Parses a line of netlink: address, family, port id, seven fields, the last of them the inode.
fn netlink(line: &str) -> Option<(u64, String, bool)> {
    const FAMILIES: [(&str, &str); 8] = [
        ("0", "ROUTE"),
        ("2", "USERSOCK"),
        ("4", "SOCK_DIAG"),
        ("9", "AUDIT"),
        ("11", "CONNECTOR"),
        ("12", "NETFILTER"),
        ("15", "KOBJECT_UEVENT"),
        ("16", "GENERIC"),
    ];
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, family, port, .., inode] = fields.as_slice() else { return None };
    let inode = inode.parse().ok().filter(|i| *i != 0)?;
    let family = FAMILIES.iter().find(|(number, _)| number == family).map_or(*family, |(_, name)| *name);
    Some((inode, format!("NETLINK:[{family}:{port}]"), *port != "0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixListener;

    #[test]
    fn lines_of_the_tables() {
        let tcp = "   1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 00000000a47934d8 20 4 30 10 -1";
        assert_eq!(internet(tcp, "TCP"), Some((4711, "TCP:[127.0.0.1:8080->127.0.0.1:54321]".into(), true)));
        let listening = "   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 83 1 0 100 0 0 10 0";
        assert_eq!(internet(listening, "TCPv6"), Some((83, "TCPv6:[[::1]:80]".into(), true)));
        let line = "0000000082716554: 00000002 00000000 00010000 0001 01 5846283 /run/a socket\x1b";
        assert_eq!(unix(line), Some((5_846_283, "UNIX-STREAM:[5846283,\"/run/a socket\x1b\"]".into(), true)));
        let line = "000000005345dd6f 0   4711       00000001 0        0        0     2        0        1527    ";
        assert_eq!(netlink(line), Some((1527, "NETLINK:[ROUTE:4711]".into(), true)));
        for junk in ["", "x", "1: 0100007F 01", "a b c d e f 0"] {
            assert_eq!((internet(junk, "TCP"), unix(junk), netlink(junk)), (None, None, None), "{junk}");
        }
        assert_eq!(internet("1: zz:1 zz:1 1 1 1 1 1 1 1", "TCP"), None);
    }

    #[test]
    fn sockets_of_ones_own_are_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let udp = UdpSocket::bind("[::1]:0").ok();
        let dir = tempfile::tempdir().unwrap();
        let unix = UnixListener::bind(dir.path().join("s")).unwrap();
        let me = std::process::id() as i32;
        let link = |fd: i32| std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap().display().to_string();
        let (local, peer) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
        let mut expected = vec![
            (link(listener.as_raw_fd()), format!("TCP:[{peer}]")),
            (link(client.as_raw_fd()), format!("TCP:[{local}->{peer}]")),
        ];
        if let Some(udp) = &udp {
            expected.push((link(udp.as_raw_fd()), format!("UDPv6:[{}]", udp.local_addr().unwrap())));
        }
        let number = inode(&link(unix.as_raw_fd())).unwrap();
        let path = dir.path().join("s").display().to_string();
        expected.push((format!("socket:[{number}]"), format!("UNIX-STREAM:[{number},\"{path}\"]")));
        // This does the thread's work without its budget.
        let found = SocketNames::default();
        let asked: Vec<_> =
            expected.iter().filter_map(|(link, _)| Some(Question { pid: me, inode: inode(link)? })).collect();
        look_up(&asked, &found);
        let sockets = Sockets { found, ..Sockets::default() };
        let names = sockets.names();
        for (link, name) in expected {
            assert_eq!(names.get(&link).map(|n| &**n), Some(&*name));
        }
    }

    #[test]
    fn only_sockets_are_looked_up() {
        let mut sockets = Sockets::default();
        for target in ["/etc/passwd", "pipe:[12]", "socket:[x]", "socket:[1", "anon_inode:[eventpoll]"] {
            sockets.seen(1, target);
        }
        assert!(sockets.ask.is_none() && sockets.names().is_empty());
    }
}
