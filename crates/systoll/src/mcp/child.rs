//! This very command, run with other words in a process of its own.

use super::clip::{self, Clip};
use super::strays::{Own, Strays};
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

/// How often it is looked how the child is.
const LOOK: Duration = Duration::from_millis(20);
/// How often the client is told.
const TELL: Duration = Duration::from_secs(1);
/// How long a child that was told to end may take to tell what it knows; then it is killed.
const GRACE: Duration = Duration::from_secs(8);
/// How long what was written last may take to be read once the child has ended: another that it left
/// behind may hold the pipe.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// What to run.
pub(super) struct Words {
    /// After `systoll`.
    pub(super) words: Vec<OsString>,
    /// Where; where the server runs, unless told.
    pub(super) folder: Option<PathBuf>,
    /// When it is told to end.
    pub(super) timeout: Duration,
    /// Bytes of the beginning of its standard output that are kept.
    pub(super) keep: usize,
    /// What the client is told it waits for.
    pub(super) doing: String,
}

/// How it went.
pub(super) struct Done {
    pub(super) status: ExitStatus,
    pub(super) stdout: Clip,
    pub(super) stderr: Clip,
    pub(super) timed_out: bool,
}

/// How the child ended.
struct Ended {
    status: ExitStatus,
    timed_out: bool,
}

impl Words {
    /// Runs it to its end; `None` where the call was taken back: nothing of it runs any more then.
    ///
    /// # Errors
    /// Where it can't be started.
    pub(super) fn run(&self, call: &Call<'_>) -> io::Result<Option<Done>> {
        let strays = Strays::before();
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("systoll")
            .args(&self.words)
            .current_dir(self.folder.clone().unwrap_or_else(|| ".".into()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A signal to the server's group is for the server, which ends its children in order.
            .process_group(0);
        let mut own = Own::spawn(&mut command)?;
        let child = &mut own.child;
        let stdout = Heard::of(child.stdout.take(), self.keep)?;
        let stderr = Heard::of(child.stderr.take(), clip::HEAD)?;
        let Some(Ended { status, timed_out }) = self.wait(child, &strays, call)? else { return Ok(None) };
        let end = Instant::now() + LAST_WORDS;
        Ok(Some(Done { status, stdout: stdout.until(end), stderr: stderr.until(end), timed_out }))
    }

    fn wait(&self, child: &mut Child, strays: &Strays, call: &Call<'_>) -> io::Result<Option<Ended>> {
        let began = Instant::now();
        let (mut told, mut asked_to_end) = (began, None);
        loop {
            Strays::reap();
            if call.is_cancelled() || interrupted().is_some() {
                kill_all(child, strays);
                child.wait()?;
                return Ok(None);
            }
            if has_ended(child)? {
                if asked_to_end.is_some() {
                    kill_all(child, strays);
                }
                return Ok(Some(Ended { status: child.wait()?, timed_out: asked_to_end.is_some() }));
            }
            match asked_to_end {
                None if began.elapsed() >= self.timeout => {
                    asked_to_end = Some(Instant::now());
                    tell(child, Signal::SIGTERM);
                }
                Some(at) if at.elapsed() >= GRACE => {
                    kill_all(child, strays);
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

/// Whether it has ended. It is not waited for: its number, and its group's, are its own until then.
fn has_ended(child: &Child) -> io::Result<bool> {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    match waitid(Id::Pid(pid(child)), flags) {
        Err(Errno::EINTR) => Ok(false),
        status => Ok(status? != WaitStatus::StillAlive),
    }
}

/// Sends a signal to the child and what it watches, which share a group.
fn tell(child: &Child, signal: Signal) {
    // Where no process is left in the group there is nothing to tell.
    let _ = killpg(pid(child), signal);
}

/// Kills it with all it has started: what left the group, and what lost its parent.
fn kill_all(child: &Child, strays: &Strays) {
    kill_tree(child.id());
    tell(child, Signal::SIGKILL);
    strays.kill_new();
}

/// A stream that is being read.
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

    /// What was heard once the stream has ended, or at that time.
    fn until(self, end: Instant) -> Clip {
        while self.reader.as_ref().is_some_and(|reader| !reader.is_finished()) && Instant::now() < end {
            thread::sleep(LOOK / 4);
        }
        self.clip.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
