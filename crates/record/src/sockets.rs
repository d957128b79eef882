//! Names sockets by their ends, from the tables of the target's network namespace, and finds which paths are those of named
//! pipes: a descriptor's link tells them from files as little as it tells sockets apart.
//!
//! A table takes milliseconds to read, however few sockets there are. Therefore a separate thread reads it, within a
//! budget, and never the thread for which targets wait. A socket is identified by its inode, whose number is not
//! reused, and gets its name when the recording is made. Nothing is opened, duplicated or requested in the target.

use crate::limits;
use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::FileTypeExt;
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
/// Number of paths that are asked whether they are named pipes, at most: few programs have one, and those open it early.
const MOST_PATHS: usize = 1_000;
/// Questions that the queue holds, at most. Further ones are dropped, and asked again at the next call.
const QUEUE: usize = 256;
/// Time that a recording waits for the last answers about sockets.
const PATIENCE: Duration = Duration::from_millis(30);

/// A socket or a file, and a process that has it open.
#[derive(Clone, Debug)]
struct Question {
    pid: i32,
    of: Opened,
}

/// What a process has open.
#[derive(Clone, Debug)]
enum Opened {
    /// A socket, by its inode.
    Socket(u64),
    /// A file or a named pipe, by its path.
    File(Arc<str>),
}

impl Opened {
    /// Returns true if a recording waits for the answer. Most programs read files, and hardly one has named pipes: those
    /// are known by the time when it ends.
    fn is_waited_for(&self) -> bool {
        matches!(self, Opened::Socket(_))
    }
}

/// Names of sockets by inode, with true if the name is final.
type SocketNames = Arc<Mutex<HashMap<u64, (Arc<str>, bool)>>>;

/// The paths that are those of named pipes.
type PipePaths = Arc<Mutex<HashSet<Arc<str>>>>;

/// The names of the sockets and named pipes that windows have seen.
#[derive(Default)]
pub(crate) struct Sockets {
    ask: Option<SyncSender<Question>>,
    found: SocketNames,
    asked_paths: HashSet<Arc<str>>,
    pipes: PipePaths,
    waiting: Arc<AtomicUsize>,
}

impl Sockets {
    /// Asks what is behind `target`, the text of a descriptor's link, if that is a socket or may be a named pipe.
    pub(crate) fn seen(&mut self, pid: i32, target: &Arc<str>) {
        let of = match inode(target) {
            Some(inode) => {
                let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
                if found.get(&inode).is_some_and(|f| f.1) {
                    return;
                }
                Opened::Socket(inode)
            }
            None if may_be_pipe(target) && self.asked_paths.len() < MOST_PATHS => {
                if !self.asked_paths.insert(target.clone()) {
                    return;
                }
                Opened::File(target.clone())
            }
            None => return,
        };
        let start = || start(self.found.clone(), self.pipes.clone(), self.waiting.clone());
        let ask = self.ask.get_or_insert_with(start);
        let waited_for = usize::from(of.is_waited_for());
        self.waiting.fetch_add(waited_for, Ordering::Relaxed);
        if ask.try_send(Question { pid, of }).is_err() {
            self.waiting.fetch_sub(waited_for, Ordering::Relaxed);
            self.asked_paths.remove(target);
        }
    }

    /// Returns all names known by now, by the text of the links of their descriptors.
    pub(crate) fn names(&self) -> HashMap<String, Arc<str>> {
        let begun = Instant::now();
        while self.waiting.load(Ordering::Relaxed) > 0 && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let sockets = found.iter().map(|(inode, (name, _))| (format!("socket:[{inode}]"), name.clone()));
        let pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.chain(pipes.iter().map(|path| (path.to_string(), format!("pipe:[{path}]").into()))).collect()
    }
}

fn inode(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Returns true for a path that a program can have made.
fn may_be_pipe(target: &str) -> bool {
    target.starts_with('/') && !["/dev/", "/proc/", "/sys/", "/usr/"].iter().any(|other| target.starts_with(other))
}

/// Starts the thread that answers questions. It ends when the sender is dropped.
fn start(found: SocketNames, pipes: PipePaths, waiting: Arc<AtomicUsize>) -> SyncSender<Question> {
    let (ask, questions) = sync_channel(QUEUE);
    // If no thread can be started, nothing receives the questions: sockets keep their numbers.
    if crate::sys::forbids_futex().is_some() {
        return ask;
    }
    let _ = limits::spawn("sockets", move || answer(&questions, (&found, &pipes), &waiting));
    ask
}

fn answer(questions: &Receiver<Question>, (found, pipes): (&SocketNames, &PipePaths), waiting: &AtomicUsize) {
    let begun = Instant::now();
    let mut spent = Duration::ZERO;
    while let Ok(first) = questions.recv() {
        let asked: Vec<Question> = std::iter::once(first).chain(questions.try_iter()).collect();
        // They are few, and take some microseconds each.
        asked.iter().filter_map(named_pipe).for_each(|path| {
            pipes.lock().unwrap_or_else(PoisonError::into_inner).insert(path);
        });
        if spent < ALLOWANCE + begun.elapsed().mul_f64(SHARE) {
            let from = Instant::now();
            look_up(&asked, found);
            spent += from.elapsed();
        }
        waiting.fetch_sub(asked.iter().filter(|question| question.of.is_waited_for()).count(), Ordering::Relaxed);
    }
}

/// Returns the path that a question is about, if it is that of a named pipe. The program may have removed it: then nobody
/// knows. Only this thread waits where a file system does not answer.
fn named_pipe(question: &Question) -> Option<Arc<str>> {
    let Opened::File(path) = &question.of else { return None };
    let status = std::fs::symlink_metadata(format!("/proc/{}/root{path}", question.pid)).ok()?;
    status.file_type().is_fifo().then(|| path.clone())
}

fn look_up(asked: &[Question], found: &SocketNames) {
    let inodes: Vec<(i32, u64)> = asked
        .iter()
        .filter_map(|question| match question.of {
            Opened::Socket(inode) => Some((question.pid, inode)),
            Opened::File(_) => None,
        })
        .collect();
    let mut namespaces = HashSet::new();
    for (pid, _) in &inodes {
        let namespace = std::fs::read_link(format!("/proc/{pid}/ns/net"));
        if !namespace.is_ok_and(|n| namespaces.insert(n)) {
            continue;
        }
        // Read cheap tables first: they name most programs' sockets.
        for (table, parse) in TABLES {
            let wanted = |found: &SocketNames| {
                let found = found.lock().unwrap_or_else(PoisonError::into_inner);
                inodes.iter().any(|(_, inode)| !found.get(inode).is_some_and(|f| f.1))
            };
            if !wanted(found) {
                return;
            }
            let text = read(&format!("/proc/{pid}/net/{table}"));
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
        let asked: Vec<_> = expected
            .iter()
            .filter_map(|(link, _)| Some(Question { pid: me, of: Opened::Socket(inode(link)?) }))
            .collect();
        look_up(&asked, &found);
        let sockets = Sockets { found, ..Sockets::default() };
        let names = sockets.names();
        for (link, name) in expected {
            assert_eq!(names.get(&link).map(|n| &**n), Some(&*name));
        }
    }

    #[test]
    fn named_pipes_are_told_from_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| -> Arc<str> { dir.path().join(name).display().to_string().into() };
        nix::unistd::mkfifo(&*path("a pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::write(&*path("file"), "x").unwrap();
        let me = std::process::id() as i32;
        let mut sockets = Sockets::default();
        for name in ["a pipe", "file", "gone", "a pipe"] {
            sockets.seen(me, &path(name));
        }
        let end = Instant::now() + Duration::from_secs(60);
        while sockets.names().is_empty() && Instant::now() < end {}
        let names = sockets.names();
        assert_eq!(names.keys().collect::<Vec<_>>(), [&path("a pipe").to_string()]);
        assert_eq!(*names[&*path("a pipe")], format!("pipe:[{}]", path("a pipe")));
    }

    #[test]
    fn nothing_else_is_looked_up() {
        let mut sockets = Sockets::default();
        for target in ["/dev/null", "pipe:[12]", "socket:[x]", "socket:[1", "anon_inode:[eventpoll]"] {
            sockets.seen(1, &target.into());
        }
        assert!(sockets.ask.is_none() && sockets.names().is_empty());
    }
}
