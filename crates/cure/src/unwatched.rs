//! An unwatched run of a program: its exit and the resources it used.

use crate::tree::{children, kill_tree};
use crate::{Spec, interrupt};
use std::io;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use systoll_model::Exit;

/// The exit of a run and the resources it used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The program's exit.
    pub exit: Exit,
    /// Time from before the program's start until it was seen to have ended, CLOCK_MONOTONIC, ns.
    pub wall_ns: u64,
    /// User time of the program and the children it waited for, in ns (the kernel keeps µs).
    pub user_ns: u64,
    /// System time of the program and the children it waited for, in ns.
    pub sys_ns: u64,
    /// Largest resident set of the program or one of those children, in bytes. Never below our own
    /// when it was started, whose memory it shared until its `execve`. 0 if the run was watched and
    /// the figure is not known.
    pub max_rss: u64,
    /// Number of context switches of the program and the children it waited for, voluntary and
    /// forced.
    pub switches: u64,
    /// Number of page faults of the program and the children it waited for, with and without
    /// reading from disk.
    pub faults: u64,
}

/// A run's three streams.
#[derive(Debug)]
pub struct Streams {
    /// Standard input.
    pub stdin: Stdio,
    /// Standard output.
    pub stdout: Stdio,
    /// Standard error.
    pub stderr: Stdio,
}

impl Streams {
    /// Returns streams with empty input that discard output.
    pub fn null() -> Self {
        Self { stdin: Stdio::null(), stdout: Stdio::null(), stderr: Stdio::null() }
    }
}

/// The reason why a run gave no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The program could not be started.
    #[error("can't run {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// A signal ended us meanwhile, and the program was killed.
    #[error("interrupted while {program} ran")]
    Interrupted {
        /// The program.
        program: String,
        /// The signal.
        signal: i32,
    },
    /// The program took longer than allowed and was killed.
    #[error("{program} was still running after {} s and was killed", limit.as_secs_f64())]
    Timeout {
        /// The program.
        program: String,
        /// The time that the run was allowed.
        limit: Duration,
    },
}

/// Runs `spec` to its end. Kills a run longer than `limit`.
///
/// # Errors
///
/// The program can't be started, or was killed for taking too long.
pub fn run_unwatched(spec: &Spec, streams: Streams, limit: Option<Duration>) -> Result<Usage, RunError> {
    let program = || spec.program.display().to_string();
    let interrupted = |signal| RunError::Interrupted { program: program(), signal };
    if let Some(signal) = interrupt::interrupted().filter(|_| !interrupt::is_settled()) {
        return Err(interrupted(signal));
    }
    let start_error = |source| RunError::Start { program: program(), source };
    let mut command = spec.to_command();
    command.stdin(streams.stdin).stdout(streams.stdout).stderr(streams.stderr);
    let start = Instant::now();
    let child = command.spawn().map_err(start_error)?;
    if let Some(limit) = limit {
        let in_time = ends_within(&child, limit).map_err(start_error)?;
        if !in_time {
            kill_tree(child.id());
            wait(&child).map_err(start_error)?;
            return Err(RunError::Timeout { program: program(), limit });
        }
    }
    let (status, usage) = wait(&child).map_err(start_error)?;
    let usage = usage_of(status, &usage, start);
    match interrupt::interrupted_after(usage.exit).filter(|_| !interrupt::is_settled()) {
        Some(signal) => Err(interrupted(signal)),
        None => Ok(usage),
    }
}

/// Returns the resources that a child which has ended used.
pub(crate) fn usage_of(status: libc::c_int, usage: &libc::rusage, start: Instant) -> Usage {
    Usage {
        exit: exit_of(status),
        wall_ns: u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
        user_ns: timeval_ns(usage.ru_utime),
        sys_ns: timeval_ns(usage.ru_stime),
        max_rss: count(usage.ru_maxrss).saturating_mul(1024),
        switches: count(usage.ru_nvcsw).saturating_add(count(usage.ru_nivcsw)),
        faults: count(usage.ru_minflt).saturating_add(count(usage.ru_majflt)),
    }
}

/// Returns true if the child ends in time. Its end makes its pidfd readable: no polling interval
/// adds to the measured time.
pub(crate) fn ends_within(child: &Child, limit: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + limit;
    // SAFETY: pidfd_open takes two integers; the child has not been waited for.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
    let Ok(fd @ 0..) = libc::c_int::try_from(fd) else { return Err(io::Error::last_os_error()) };
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let ended = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let ms = libc::c_int::try_from(left.as_millis().saturating_add(1)).unwrap_or(libc::c_int::MAX);
        // SAFETY: `poll` is one pollfd and lives through the call.
        match unsafe { libc::poll(&mut poll, 1, ms) } {
            0 if Instant::now() >= deadline => break Ok(false),
            0 => {}
            1.. => break Ok(true),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    break Err(error);
                }
            }
        }
    };
    // SAFETY: `fd` is ours and not used after this.
    unsafe { libc::close(fd) };
    ended
}

/// A deadline that kills all children of this process, with their descendants, unless it is dropped
/// before. It is for runs that other code starts and waits for.
#[derive(Debug)]
pub struct Deadline {
    cancel: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<bool>>,
}

impl Deadline {
    /// Starts a deadline after `limit`; without a limit it never comes.
    pub fn after(limit: Option<Duration>) -> Self {
        let Some(limit) = limit else { return Self { cancel: None, thread: None } };
        let (cancel, cancelled) = mpsc::channel();
        let watch = move || {
            let late = cancelled.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
            if late {
                children(std::process::id()).into_iter().for_each(kill_tree);
            }
            late
        };
        // Without a thread there is no limit, which does not harm a run that ends by itself.
        let thread = std::thread::Builder::new().name("systoll-limit".into()).spawn(watch).ok();
        Self { cancel: Some(cancel), thread }
    }

    /// Cancels the deadline. Returns true if it has come.
    pub fn has_come(mut self) -> bool {
        self.cancel.take();
        self.thread.take().is_some_and(|thread| thread.join().unwrap_or(false))
    }
}

/// Returns context switches and page faults of all children waited for so far, counted as in
/// [`Usage`].
pub fn children_so_far() -> (u64, u64) {
    // SAFETY: `rusage` is plain data for which all zeroes are valid, and lives through the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    (
        count(usage.ru_nvcsw).saturating_add(count(usage.ru_nivcsw)),
        count(usage.ru_minflt).saturating_add(count(usage.ru_majflt)),
    )
}

/// Waits for the child and returns its rusage, which the standard library's wait does not.
pub(crate) fn wait(child: &Child) -> io::Result<(libc::c_int, libc::rusage)> {
    let mut status = 0;
    // SAFETY: `rusage` is plain data for which all zeroes are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers live through the call; no other thread waits for this child.
        if unsafe { libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage) } >= 0 {
            return Ok((status, usage));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn exit_of(status: libc::c_int) -> Exit {
    if libc::WIFSIGNALED(status) { Exit::Signal(libc::WTERMSIG(status)) } else { Exit::Code(libc::WEXITSTATUS(status)) }
}

fn count(n: libc::c_long) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

fn timeval_ns(time: libc::timeval) -> u64 {
    let part = |n: i64, ns: u64| u64::try_from(n).unwrap_or(0).saturating_mul(ns);
    part(time.tv_sec, 1_000_000_000).saturating_add(part(time.tv_usec, 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limit: Option<Duration>) -> Result<Usage, RunError> {
        run_unwatched(&Spec::new("/bin/sh").arg("-c").arg(script), Streams::null(), limit)
    }

    #[test]
    fn exit_codes_and_signals_differ() {
        assert_eq!(sh("exit 3", None).unwrap().exit, Exit::Code(3));
        assert_eq!(sh("kill -9 $$", None).unwrap().exit, Exit::Signal(9));
        assert_eq!(sh("exit 0", Some(Duration::from_secs(60))).unwrap().exit, Exit::Code(0));
        let missing = run_unwatched(&Spec::new("/nonexistent"), Streams::null(), None);
        assert!(matches!(missing, Err(RunError::Start { .. })));
    }

    #[test]
    fn time_spent_is_seen_and_waiting_is_not_processor_time() {
        let busy = sh("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done", None).unwrap();
        assert!(busy.user_ns + busy.sys_ns > 5_000_000, "{busy:?}");
        let idle = sh("sleep 0.2", None).unwrap();
        assert!(idle.wall_ns >= 200_000_000 && idle.user_ns + idle.sys_ns < 100_000_000, "{idle:?}");
        assert!(idle.max_rss > 100_000 && idle.faults > 10 && idle.switches > 0, "{idle:?}");
    }

    #[test]
    fn a_program_that_takes_too_long_is_killed() {
        let start = Instant::now();
        let limit = Duration::from_millis(100);
        assert!(matches!(sh("exec sleep 30", Some(limit)), Err(RunError::Timeout { .. })));
        assert!(start.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_deadline_that_is_called_off_has_not_come() {
        assert!(!Deadline::after(None).has_come());
        assert!(!Deadline::after(Some(Duration::from_secs(60))).has_come());
    }

    #[test]
    fn children_are_killed_with_the_program() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let script = format!("sh -c 'sleep 300 & echo $! > {}; wait' & wait", file.path().display());
        // Long enough for the innermost to be started, even on a busy box.
        assert!(matches!(sh(&script, Some(Duration::from_secs(3))), Err(RunError::Timeout { .. })));
        let pid = std::fs::read_to_string(file.path()).unwrap();
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        let alive = || !stat().is_empty() && !stat().contains(") Z ");
        let deadline = Instant::now() + Duration::from_secs(20);
        while alive() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!alive(), "{}", stat());
    }
}
