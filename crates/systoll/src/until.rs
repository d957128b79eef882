//! Watches a command until it is ready, and ends it then.

use crate::cli::Sign;
use crate::failure::Failure;
use crate::output::to_stderr;
use crate::processes::{is_listened_on, with_descendants};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use systoll_model::{Problem, ProblemKind, Recording, Until};
use systoll_record::{Control, Moment, look_now};

/// Time between two checks whether the command is ready.
const LOOK: Duration = Duration::from_millis(1);
/// Time that the command may take to answer one request, and to take its connection.
const TALK: Duration = Duration::from_secs(10);
/// Time that the command and its processes may take to end after SIGTERM; then they get SIGKILL.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two checks whether processes have ended.
const PAUSE: Duration = Duration::from_millis(5);
/// Bytes of an answer that are read, at most.
const MOST_READ: u64 = 1 << 20;
/// First status of an HTTP answer by which a server says that it can't serve yet.
const FAILING: u16 = 500;
/// Bytes of the stack of the thread that checks.
const STACK: usize = 256 << 10;

/// The sign that a command is ready, before the command is started.
pub(crate) struct Awaited {
    sign: Sign,
    /// Identity of the file that is there already, which is not the sign.
    before: Option<FileState>,
    seen: Arc<AtomicBool>,
}

/// The state of a file: its device, number, and time of its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState(u64, u64, i64, i64);

impl FileState {
    fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|file| Self(file.dev(), file.ino(), file.ctime(), file.ctime_nsec()))
    }
}

impl Awaited {
    /// Prepares to wait for a sign.
    ///
    /// # Errors
    /// If the sign is there already, so that the command could not give it.
    pub(crate) fn new(sign: &Sign) -> Result<Self, Failure> {
        if let Sign::Port(port) | Sign::Answer(port, _) = sign
            && is_listened_on(*port)
        {
            return Err(Failure::PortTaken(*port));
        }
        let before = if let Sign::File(path) = sign { FileState::of(path) } else { None };
        Ok(Self { sign: sign.clone(), before, seen: Arc::default() })
    }

    /// Returns the moment in the command's calls that is the sign; `None` if it is seen from outside.
    pub(crate) fn moment(&self) -> Option<Moment> {
        match &self.sign {
            Sign::Main => Some(Moment::Main),
            Sign::Line(text) => Some(Moment::Line(text.clone().into_bytes())),
            Sign::Port(_) | Sign::File(_) | Sign::Answer(..) => None,
        }
    }

    /// Notes in the recording whether the sign was seen. If it was, ends the processes that were left, unless they are to
    /// be `kept`. Returns the failure of a command that ended without the sign. The sign may still come afterwards, from
    /// another program: what is noted here is what counts.
    pub(crate) fn finish(&self, recording: &mut Recording, kept: bool) -> Option<Failure> {
        let seen = self.seen.load(Ordering::Acquire);
        recording.header.until = Some(Until { sign: self.sign.to_string(), seen });
        if !seen {
            return Some(Failure::NotReady(self.sign.clone()));
        }
        if !kept {
            recording.problems.retain(|problem| problem.kind != ProblemKind::CutShort);
            recording.problems.extend(end(recording));
        }
        None
    }

    /// Returns true if the sign is there. A connection on which an answer comes is put into `answering`.
    fn is_there(&self, answering: &mut Option<TcpStream>) -> bool {
        match &self.sign {
            Sign::Port(port) => is_listened_on(*port),
            Sign::File(path) => FileState::of(path).is_some_and(|now| Some(now) != self.before),
            Sign::Answer(port, path) => {
                *answering = answered(*port, path).unwrap_or(None);
                answering.is_some()
            }
            Sign::Line(_) | Sign::Main => false,
        }
    }

    /// Checks from a thread of its own until the sign is there.
    fn look(&self) {
        if self.moment().is_some() {
            return;
        }
        let looking = Self { sign: self.sign.clone(), before: self.before, seen: Arc::clone(&self.seen) };
        let looks = move || {
            let mut answering = None;
            while !looking.is_there(&mut answering) {
                thread::sleep(LOOK);
            }
            looking.seen.store(true, Ordering::Release);
            look_now();
            // A server that still sends need not fail.
            let _ = answering.map(|stream| io::copy(&mut stream.take(MOST_READ), &mut io::sink()));
        };
        if let Err(e) = thread::Builder::new().name("until".into()).stack_size(STACK).spawn(looks) {
            to_stderr(&format!("systoll: can't start the thread that waits for {}: {e}\n", self.sign));
        }
    }
}

/// The user's side of a run that ends once the command is ready.
pub(crate) struct Awaiting<'a> {
    pub(crate) inner: &'a mut dyn Control,
    pub(crate) awaited: &'a Awaited,
}

impl Control for Awaiting<'_> {
    fn progress(&mut self, calls: u64, processes: usize, command_ended: bool) {
        self.inner.progress(calls, processes, command_ended);
    }

    fn every(&self) -> Option<Duration> {
        self.inner.every()
    }

    fn wants_snapshot(&mut self) -> bool {
        !self.leaves() && self.inner.wants_snapshot()
    }

    fn snapshot(&mut self, recording: Recording) {
        self.inner.snapshot(recording);
    }

    fn begins(&mut self) {
        self.awaited.look();
    }

    fn seen(&mut self) {
        self.awaited.seen.store(true, Ordering::Release);
    }

    fn leaves(&self) -> bool {
        self.awaited.seen.load(Ordering::Acquire)
    }
}

/// Makes an HTTP request. Returns the connection once it is answered, by a status that does not say that the server can't
/// serve.
fn answered(port: u16, path: &str) -> io::Result<Option<TcpStream>> {
    let addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), SocketAddr::from((Ipv6Addr::LOCALHOST, port))];
    let connected = addresses.iter().find_map(|address| TcpStream::connect_timeout(address, TALK).ok());
    let Some(mut stream) = connected else { return Ok(None) };
    stream.set_read_timeout(Some(TALK))?;
    stream.set_write_timeout(Some(TALK))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    Ok(is_served(&head).then_some(stream))
}

/// Returns true if the first bytes of an answer (`HTTP/1.1 200`) tell of a server that serves.
fn is_served(head: &[u8; 12]) -> bool {
    let status = || std::str::from_utf8(head.get(9..)?).ok()?.parse().ok();
    head.starts_with(b"HTTP/") && status().is_some_and(|status: u16| status < FAILING)
}

/// Ends the processes that a run left: sends them SIGTERM, and SIGKILL to those that still run later. Returns a problem if
/// some run on.
///
/// Only our own child and its descendants get signals, as the kernel names them: a program can write into the memory that
/// it shares with us, and the pids of a recording may be those of strangers.
fn end(recording: &Recording) -> Option<Problem> {
    let root = recording.processes.first().map_or(0, |process| process.pid as i32);
    let child = Pid::from_raw(root);
    let is_ours = root > 1 && matches!(waitpid(child, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive));
    let all = if is_ours { with_descendants(&[root]) } else { Vec::new() };
    // A process that has ended meanwhile needs no signal.
    let tell = |signal: Signal| all.iter().for_each(|pid| _ = kill(Pid::from_raw(*pid), signal));
    tell(Signal::SIGTERM);
    let began = Instant::now();
    while is_ours && !have_ended(&all, child) {
        if began.elapsed() >= PATIENCE {
            tell(Signal::SIGKILL);
            // Our own child is a zombie until it is waited for.
            let _ = waitpid(child, None);
            break;
        }
        thread::sleep(PAUSE);
    }
    let left = recording.processes.iter().filter(|process| process.end_ns == 0).map(|process| process.pid as i32);
    let left: BTreeSet<i32> = left.filter(|pid| *pid > 1 && !all.contains(pid) && runs(*pid)).collect();
    let n = left.len();
    let are = if n == 1 { "process is" } else { "processes are" };
    (n > 0).then(|| Problem::new(ProblemKind::CutShort, format!("{n} {are} no longer below CMD, and left running")))
}

/// Returns true if none of these processes runs any more. `child` is our own, which is waited for.
fn have_ended(all: &[i32], child: Pid) -> bool {
    let child_ended = !matches!(waitpid(child, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive));
    child_ended && all.iter().filter(|pid| **pid != child.as_raw()).all(|pid| !runs(*pid))
}

/// Returns true if a process runs and is no zombie.
fn runs(pid: i32) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::process::Command;
    use systoll_model::Process;

    fn awaited(sign: &str) -> Awaited {
        Awaited::new(&Sign::parse(sign).unwrap()).unwrap()
    }

    #[test]
    fn a_port_is_ready_when_somebody_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(is_listened_on(port));
        assert!(matches!(Awaited::new(&Sign::Port(port)), Err(Failure::PortTaken(taken)) if taken == port));
        drop(listener);
        let free = awaited(&format!("port:{port}"));
        assert!(!free.is_there(&mut None) && free.finish(&mut Recording::default(), false).is_some());
    }

    #[test]
    fn a_file_that_was_there_before_is_no_sign() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        let sign = format!("file:{}", path.display());
        let absent = awaited(&sign);
        assert!(!absent.is_there(&mut None));
        fs::write(&path, "1").unwrap();
        let stale = awaited(&sign);
        assert!(absent.is_there(&mut None) && !stale.is_there(&mut None));
        fs::remove_file(&path).unwrap();
        assert!(!stale.is_there(&mut None));
        fs::write(dir.path().join("other"), "2").unwrap();
        fs::write(&path, "2").unwrap();
        assert!(stale.is_there(&mut None));
    }

    #[test]
    fn a_process_that_is_not_below_the_command_gets_no_signal() {
        let sleeps = || Command::new("/bin/sleep").arg("60").spawn().unwrap();
        let (command, mut other) = (sleeps(), sleeps());
        let process = |pid| Process { pid, ..Process::default() };
        let processes = vec![process(command.id()), process(other.id())];
        let problem = end(&Recording { processes, ..Recording::default() });
        assert!(problem.is_some_and(|problem| problem.text.starts_with("1 process is no longer below CMD")));
        assert!(!runs(command.id() as i32) && runs(other.id() as i32));
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn an_answer_is_any_but_that_of_a_server_that_fails() {
        for (head, served) in
            [("HTTP/1.1 200", true), ("HTTP/1.0 404", true), ("HTTP/1.1 503", false), ("SSH-2.0-Open", false)]
        {
            assert_eq!(is_served(head.as_bytes().first_chunk().unwrap()), served, "{head}");
        }
        assert!(answered(1, "/").unwrap().is_none());
    }
}
