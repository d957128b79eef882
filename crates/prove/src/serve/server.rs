//! Starts real servers, waits until they are ready, drives and stops them.

use super::load::{self, LoadFigures};
use super::{Turn, Turns};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use systoll_cure::{RunError, Running, Spec, Streams};
use systoll_model::{Exit, Recording};

/// Time between checks whether a server is ready.
const LOOK: Duration = Duration::from_millis(5);
/// Time that one connection attempt may take.
const TALK: Duration = Duration::from_millis(500);
/// Number of bytes that are read of a program's output.
const READ: u64 = 1 << 20;

/// The sign that a server is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// The server answers this HTTP request: host and port, path.
    Url(String, String),
    /// The server accepts connections at this host and port.
    Port(String),
    /// The server has written this text on standard output or error.
    Line(String),
}

impl Ready {
    /// Parses `http://HOST[:PORT]/PATH`, `PORT` or `HOST:PORT`; anything else is a text to wait
    /// for.
    ///
    /// # Errors
    /// A message for a person, if it is none of these.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a URL, a port, or a part of a line that the server writes".into());
        }
        if text.starts_with("https://") {
            return Err("https is not spoken here: give the port instead".into());
        }
        if let Some(rest) = text.strip_prefix("http://") {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
            return Ok(Self::Url(host, format!("/{path}")));
        }
        if text.parse::<u16>().is_ok_and(|port| port > 0) {
            return Ok(Self::Port(format!("127.0.0.1:{text}")));
        }
        match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(' ') && port.parse::<u16>().is_ok() => Ok(Self::Port(text.into())),
            _ => Ok(Self::Line(text.into())),
        }
    }

    fn is(&self, wrote: &File) -> bool {
        match self {
            Self::Url(host, path) => answers(host, path).unwrap_or(false),
            Self::Port(host) => connect(host).is_ok(),
            Self::Line(line) => said(wrote).contains(line),
        }
    }

    /// Returns the address if another process listens there already.
    fn is_taken(&self) -> Option<&str> {
        match self {
            Self::Url(host, _) | Self::Port(host) => connect(host).is_ok().then_some(host),
            Self::Line(_) => None,
        }
    }
}

fn connect(host: &str) -> io::Result<TcpStream> {
    let mut last = io::ErrorKind::NotFound.into();
    for address in addresses(host)? {
        match TcpStream::connect_timeout(&address, TALK) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// Returns the addresses of `HOST:PORT`. getent(1) looks names up: the command is linked statically
/// with the C library, which would load this box's name services into itself, whatever library they
/// are made for.
fn addresses(host: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    let unknown = || io::Error::new(io::ErrorKind::InvalidInput, format!("{host} is no host and port"));
    let (name, port) = host.rsplit_once(':').ok_or_else(unknown)?;
    let port = port.parse().map_err(|_| unknown())?;
    let of = |ip: IpAddr| SocketAddr::new(ip, port);
    if name == "localhost" {
        return Ok(vec![of(Ipv4Addr::LOCALHOST.into()), of(Ipv6Addr::LOCALHOST.into())]);
    }
    let missing = || io::Error::new(io::ErrorKind::NotFound, "no getent to ask for a host's address");
    let getent = systoll_trust::helper("getent").ok_or_else(missing)?;
    let told = Command::new(getent).args(["ahosts", name]).stdin(Stdio::null()).output()?.stdout;
    let ips = String::from_utf8_lossy(&told);
    let ips = ips.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok());
    let mut all: Vec<SocketAddr> = ips.map(of).collect();
    all.dedup();
    Ok(all)
}

fn answers(host: &str, path: &str) -> io::Result<bool> {
    let mut stream = connect(host)?;
    stream.set_read_timeout(Some(TALK))?;
    stream.set_write_timeout(Some(TALK))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n")?;
    let mut head = [0; 5];
    stream.read_exact(&mut head)?;
    Ok(&head == b"HTTP/")
}

/// The reason why a server could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The server or its load could not be started or waited for.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Another process listens at the server's address.
    #[error("another process listens at {0} already: the load would drive that")]
    Taken(String),
    /// The server did not become ready.
    #[error("the server was not ready after {} s{said}", limit.as_secs())]
    NotReady {
        /// The time that the server had to become ready.
        limit: Duration,
        /// The last lines that the server wrote.
        said: String,
    },
    /// The server ended while it should have served.
    #[error("the server ended with {exit} {when}{said}")]
    Died {
        /// The server's exit.
        exit: Exit,
        /// The phase in which it ended.
        when: &'static str,
        /// The last lines that the server wrote.
        said: String,
    },
    /// The load failed.
    #[error("the load `{load}` ended with {exit}{said}")]
    Load {
        /// The load's command.
        load: String,
        /// The load's exit.
        exit: Exit,
        /// The last lines that the load wrote.
        said: String,
    },
    /// The load did not end.
    #[error("the load `{load}` was still running after {} s", limit.as_secs())]
    LoadHangs {
        /// The load's command.
        load: String,
        /// The time that the load had.
        limit: Duration,
    },
    /// A file for output can't be created.
    #[error("can't keep what is written: {0}")]
    Keep(#[source] io::Error),
    /// The process that is driven has ended, or is not watched any more.
    #[error("{0}")]
    Gone(String),
    /// The watched server left no recording.
    #[error("the server was watched in vain: {0}")]
    Watch(String),
}

/// The way in which a server is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watching {
    /// The server is not watched.
    No,
    /// The server is watched like the other side's, by hooks that can answer calls in place.
    Alike,
    /// The server is watched for exact counts, in turns that are not timed.
    Closely,
}

/// The way in which servers are driven.
#[derive(Clone, Debug)]
pub struct Drive {
    /// The sign that a server is ready.
    pub ready: Ready,
    /// The load.
    pub load: Load,
    /// Time after which the load is not started again.
    pub time: Duration,
    /// Time that a server may take to be ready.
    pub start: Duration,
    /// Time that a server may take to end after it was told to.
    pub stop: Duration,
}

/// Runs servers as processes of this box.
pub struct Servers<'a> {
    /// The way in which the servers are driven.
    pub drive: Drive,
    /// Returns the command that watches a server and keeps the recording in a file.
    pub watcher: &'a dyn Fn(&Spec, Watching, &Path) -> Spec,
}

impl Turns for Servers<'_> {
    fn turn(&mut self, spec: &Spec, watching: Watching) -> Result<Turn, ServeError> {
        if let Some(host) = self.drive.ready.is_taken() {
            return Err(ServeError::Taken(host.to_owned()));
        }
        // An unnamed file can't be replaced by another.
        let mut kept = tempfile::tempfile().map_err(ServeError::Keep)?;
        let by_descriptor = format!("/proc/{}/fd/{}", std::process::id(), kept.as_raw_fd());
        let started = match watching {
            Watching::No => spec.clone(),
            closely => (self.watcher)(spec, closely, Path::new(&by_descriptor)),
        };
        let wrote = tempfile::tempfile().map_err(ServeError::Keep)?;
        let mut server = Running::start(&started, streams(&wrote)?)?;
        self.drive.until_ready(&mut server, &wrote)?;
        let mut turn = self.drive.load.drive(self.drive.time, &mut || is_alive(&mut server, &wrote))?;
        let (usage, ended) = server.stop(self.drive.stop)?;
        (turn.cpu_ns, turn.ended) = (usage.user_ns.saturating_add(usage.sys_ns), ended);
        if watching != Watching::No {
            kept.rewind().map_err(ServeError::Keep)?;
            let recording =
                Recording::read(kept).map_err(|e| ServeError::Watch(format!("{e}{}", last_lines(&wrote))))?;
            turn.cpu_ns = recording.header.user_ns.saturating_add(recording.header.sys_ns);
            turn.recording = Some(recording);
        }
        Ok(turn)
    }
}

impl Drive {
    fn until_ready(&self, server: &mut Running, wrote: &File) -> Result<(), ServeError> {
        let began = Instant::now();
        while !self.ready.is(wrote) {
            if let Some(usage) = server.ended_within(LOOK)? {
                return Err(ServeError::Died {
                    exit: usage.exit,
                    when: "before it was ready",
                    said: last_lines(wrote),
                });
            }
            if began.elapsed() > self.start {
                return Err(ServeError::NotReady { limit: self.start, said: last_lines(wrote) });
            }
        }
        Ok(())
    }
}

/// Returns the error of a server that has ended.
fn is_alive(server: &mut Running, wrote: &File) -> Result<(), ServeError> {
    match server.ended_within(Duration::ZERO)? {
        Some(usage) => Err(ServeError::Died { exit: usage.exit, when: "under its load", said: last_lines(wrote) }),
        None => Ok(()),
    }
}

/// A command that drives a server: program and arguments.
#[derive(Clone, Debug)]
pub struct Load(pub Vec<OsString>);

impl Load {
    /// Runs the load, again and again until `time` is up. Returns what its runs printed together. `alive` is asked all
    /// the while if the server is there.
    ///
    /// # Errors
    /// The load fails or hangs, or `alive` says so.
    pub fn drive(&self, time: Duration, alive: &mut dyn FnMut() -> Result<(), ServeError>) -> Result<Turn, ServeError> {
        let (mut told, mut seconds) = (Vec::new(), 0.0);
        let began = Instant::now();
        while told.is_empty() || began.elapsed() < time {
            let one = Instant::now();
            told.push(self.once(time, alive)?);
            seconds += one.elapsed().as_secs_f64();
        }
        Ok(turn_of(&told, seconds))
    }

    fn once(
        &self,
        time: Duration,
        alive: &mut dyn FnMut() -> Result<(), ServeError>,
    ) -> Result<LoadFigures, ServeError> {
        let (program, args) =
            self.0.split_first().map_or((OsString::new(), Vec::new()), |(p, a)| (p.clone(), a.to_vec()));
        let output = tempfile::tempfile().map_err(ServeError::Keep)?;
        let name = program.to_string_lossy().into_owned();
        let mut load = Running::start(&Spec { args, ..Spec::new(program) }, streams(&output)?)?;
        let limit = time.saturating_mul(3).saturating_add(Duration::from_secs(60));
        let began = Instant::now();
        loop {
            if let Some(usage) = load.ended_within(Duration::from_millis(50))? {
                return match usage.exit {
                    Exit::Code(0) => Ok(load::read(&said(&output))),
                    exit => {
                        alive()?;
                        Err(ServeError::Load { load: name, exit, said: last_lines(&output) })
                    }
                };
            }
            alive()?;
            if began.elapsed() > limit {
                return Err(ServeError::LoadHangs { load: name, limit });
            }
        }
    }
}

/// Combines the figures that runs of a load printed.
fn turn_of(told: &[LoadFigures], seconds: f64) -> Turn {
    let runs = told.len() as f64;
    let rates: Option<Vec<f64>> = told.iter().map(|t| t.per_second).collect();
    let requests = told.iter().map(|t| t.requests).try_fold(0u64, |sum, n| Some(sum.saturating_add(n?)));
    let latency: Option<Vec<f64>> = told.iter().map(|t| t.latency_ns).collect();
    let failed = told.iter().fold(0u64, |sum, t| sum.saturating_add(t.failed));
    let latency_ns = latency.map(|all| all.iter().sum::<f64>() / runs);
    match rates {
        // Runs with equally many requests: their total time follows from the harmonic mean of the
        // rates.
        Some(rates) => Turn {
            per_second: runs / rates.iter().map(|r| 1.0 / r.max(1e-9)).sum::<f64>(),
            told: true,
            work: requests,
            latency_ns,
            failed,
            ..Turn::default()
        },
        None => Turn { per_second: runs / seconds.max(1e-9), work: Some(told.len() as u64), failed, ..Turn::default() },
    }
}

fn streams(output: &File) -> Result<Streams, ServeError> {
    let stream = || output.try_clone().map(Stdio::from).map_err(ServeError::Keep);
    Ok(Streams { stdin: Stdio::null(), stdout: stream()?, stderr: stream()? })
}

/// Returns the output from its start.
fn said(file: &File) -> String {
    let mut bytes = Vec::new();
    // The file is read by position: a process that writes to it keeps its own position.
    let at = |n: u64, buffer: &mut [u8]| std::os::unix::fs::FileExt::read_at(file, buffer, n).unwrap_or(0);
    let mut buffer = vec![0; 64 << 10];
    while (bytes.len() as u64) < READ {
        match at(bytes.len() as u64, &mut buffer) {
            0 => break,
            n => bytes.extend_from_slice(buffer.get(..n).unwrap_or_default()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the last few lines of the output, for a failure's message.
fn last_lines(file: &File) -> String {
    let mut file = file;
    let end = file.seek(io::SeekFrom::End(0)).unwrap_or(0);
    let text = said(file);
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(3)..).unwrap_or_default();
    if last.is_empty() || end == 0 { String::new() } else { format!("; it wrote: {}", last.join(" | ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_addresses() {
        let of = |host: &str| addresses(host).map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(of("127.0.0.1:80").unwrap(), ["127.0.0.1:80"]);
        assert_eq!(of("[::1]:80").unwrap(), ["[::1]:80"]);
        assert_eq!(of("localhost:80").unwrap(), ["127.0.0.1:80", "[::1]:80"]);
        let own = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
        let named = own.lines().filter(|l| l.starts_with("127.")).find_map(|l| l.split_whitespace().nth(1));
        if let Some(name) = named.filter(|name| *name != "localhost") {
            assert!(of(&format!("{name}:80")).unwrap().iter().any(|a| a.starts_with("127.")), "{name}");
        }
        assert_eq!(of("no.such.host.invalid:80").unwrap(), [""; 0]);
        assert!(of("nothing").is_err() && of("localhost:70000").is_err());
    }

    #[test]
    fn ready_is_a_url_a_port_or_a_line() {
        let port = |text: &str| Ok(Ready::Port(text.into()));
        assert_eq!(Ready::parse("http://[::1]:80/a/b?c"), Ok(Ready::Url("[::1]:80".into(), "/a/b?c".into())));
        assert_eq!(Ready::parse("http://localhost"), Ok(Ready::Url("localhost:80".into(), "/".into())));
        assert_eq!(Ready::parse("6379"), port("127.0.0.1:6379"));
        assert_eq!(Ready::parse("localhost:8080"), port("localhost:8080"));
        assert_eq!(Ready::parse("Ready to accept: 1"), Ok(Ready::Line("Ready to accept: 1".into())));
        assert_eq!(Ready::parse("70000"), Ok(Ready::Line("70000".into())));
        assert!(Ready::parse("https://localhost/").is_err() && Ready::parse("").is_err());
    }

    #[test]
    fn loads_that_tell_nothing_are_counted_by_their_runs() {
        let turn = turn_of(&[LoadFigures::default(), LoadFigures::default()], 4.0);
        assert_eq!((turn.per_second, turn.told, turn.work), (0.5, false, Some(2)));
        let told = LoadFigures { requests: Some(10), per_second: Some(100.0), latency_ns: Some(5.0), failed: 1 };
        let turn = turn_of(&[told, told], 4.0);
        assert_eq!((turn.per_second, turn.told, turn.work, turn.failed), (100.0, true, Some(20), 2));
    }
}
