//! Runs this command with other words in a process of its own.

use super::clip::{self, Clip};
use super::orphans::{Orphans, Own};
use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use systoll_cure::{interrupted, kill_tree};
use systoll_mcp::Call;

/// Time between checks of the child.
const LOOK: Duration = Duration::from_millis(20);
/// Time between progress messages to the client.
const TELL: Duration = Duration::from_secs(1);
/// Time that a child gets to report after it was told to end; then it is killed.
const GRACE: Duration = Duration::from_secs(8);
/// Time to read the last output after the child has ended: another process that it left behind may
/// hold the pipe.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// A command line of systoll to run.
pub(super) struct Words {
    /// The words after `systoll`.
    pub(super) words: Vec<OsString>,
    /// The folder to run in; `None` for the server's folder.
    pub(super) folder: Option<PathBuf>,
    /// Time after which the command is told to end.
    pub(super) timeout: Duration,
    /// Number of bytes that are kept from the start of the command's standard output.
    pub(super) keep: usize,
    /// Text that tells the client what the call waits for.
    pub(super) doing: String,
}

/// The result of a command.
pub(super) struct Done {
    pub(super) status: ExitStatus,
    pub(super) stdout: Clip,
    pub(super) stderr: Clip,
    pub(super) timed_out: bool,
}

/// The child's exit, and whether it came too late.
struct Ended {
    status: ExitStatus,
    timed_out: bool,
}

impl Words {
    /// Runs the command to its end. Returns `None` if the client cancelled the call: then no
    /// process of it is left.
    ///
    /// # Errors
    /// The command can't be started.
    pub(super) fn run(&self, call: &Call<'_>) -> io::Result<Option<Done>> {
        let orphans = Orphans::before();
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("systoll")
            .args(&self.words)
            .current_dir(self.folder.clone().unwrap_or_else(|| ".".into()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A signal to the server's group is for the server, which ends its children itself.
            .process_group(0);
        let mut own = Own::spawn(&mut command)?;
        let child = &mut own.child;
        let stdout = Heard::of(child.stdout.take(), self.keep)?;
        let stderr = Heard::of(child.stderr.take(), clip::HEAD)?;
        let Some(Ended { status, timed_out }) = self.wait(child, &orphans, call)? else { return Ok(None) };
        let end = Instant::now() + LAST_WORDS;
        Ok(Some(Done { status, stdout: stdout.until(end), stderr: stderr.until(end), timed_out }))
    }

    fn wait(&self, child: &mut Child, orphans: &Orphans, call: &Call<'_>) -> io::Result<Option<Ended>> {
        let began = Instant::now();
        let (mut told, mut asked_to_end) = (began, None);
        loop {
            Orphans::reap();
            if call.is_cancelled() || interrupted().is_some() {
                kill_all(child, orphans);
                child.wait()?;
                return Ok(None);
            }
            if has_ended(child)? {
                if asked_to_end.is_some() {
                    kill_all(child, orphans);
                }
                return Ok(Some(Ended { status: child.wait()?, timed_out: asked_to_end.is_some() }));
            }
            match asked_to_end {
                None if began.elapsed() >= self.timeout => {
                    asked_to_end = Some(Instant::now());
                    tell(child, Signal::SIGTERM);
                }
                Some(at) if at.elapsed() >= GRACE => {
                    kill_all(child, orphans);
                    return Ok(Some(Ended { status: child.wait()?, timed_out: true }));
                }
                _ => {}
            }
            if told.elapsed() >= TELL {
                told = Instant::now();
                let seconds = began.elapsed().as_secs();
                call.progress(began.elapsed().as_secs_f64(), None, &format!("{}: {seconds} s", self.doing));
            }
            thread::sleep(LOOK);
        }
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

/// Returns true if the child has ended. It is not reaped: its pid and its group's id stay reserved.
fn has_ended(child: &Child) -> io::Result<bool> {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    match waitid(Id::Pid(pid(child)), flags) {
        Err(Errno::EINTR) => Ok(false),
        status => Ok(status? != WaitStatus::StillAlive),
    }
}

/// Sends a signal to the group of the child and of the programs that it watches.
fn tell(child: &Child, signal: Signal) {
    // The call fails if no process is left in the group: then nobody needs the signal.
    let _ = killpg(pid(child), signal);
}

/// Kills the child and everything it started, including processes that left the group or lost their
/// parent.
fn kill_all(child: &Child, orphans: &Orphans) {
    kill_tree(child.id());
    tell(child, Signal::SIGKILL);
    orphans.kill_new();
}

/// A stream that a thread reads.
struct Heard {
    clip: Arc<Mutex<Clip>>,
    reader: Option<JoinHandle<()>>,
}

impl Heard {
    fn of(stream: Option<impl Read + Send + 'static>, keep: usize) -> io::Result<Self> {
        let clip = Arc::new(Mutex::new(Clip::keeping(keep)));
        let heard = Arc::clone(&clip);
        let Some(mut stream) = stream else { return Ok(Self { clip, reader: None }) };
        let reader = thread::Builder::new().name("systoll-child".into()).spawn(move || {
            let mut bytes = [0; 16 << 10];
            while let Ok(n @ 1..) = stream.read(&mut bytes) {
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(&bytes[..n]);
            }
        })?;
        Ok(Self { clip, reader: Some(reader) })
    }

    /// Returns what was read until the stream ended, or until the time `end`.
    fn until(self, end: Instant) -> Clip {
        while self.reader.as_ref().is_some_and(|reader| !reader.is_finished()) && Instant::now() < end {
            thread::sleep(LOOK / 4);
        }
        self.clip.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
