//! Handles SIGINT, SIGTERM and SIGHUP while programs are run.
//!
//! The default action would leave folders and started programs behind. Therefore a signal handler
//! wakes a thread. It kills the running programs repeatedly, until the code that waits for them
//! returns, asks [`interrupted`], reports what it has, and ends. If that takes longer than
//! [`PATIENCE`], or a second signal comes, the thread ends the process by the signal. If no program
//! is waited for ([`end_at_once`]), it prints what is known and ends the process at once.

use crate::tree::{children, kill_tree};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use systoll_model::Exit;
use tempfile::NamedTempFile;

const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// Time to report what is known: a busy box turns a tenth of a second into more than a second.
const PATIENCE: Duration = Duration::from_secs(4);
/// Interval between searches for running programs.
const LOOK: Duration = Duration::from_millis(20);
/// Time by which a program that Ctrl-C ended may be seen to have ended before we receive our own
/// signal.
const TOGETHER: Duration = Duration::from_millis(100);

/// The signal that told us to end; 0 if none did.
static CAUGHT: AtomicI32 = AtomicI32::new(0);
/// The descriptor by which the handler wakes the thread.
static WAKE: AtomicI32 = AtomicI32::new(-1);
/// True if programs started from now on run to their end. Held while running programs are killed,
/// which protects those started afterwards.
static SETTLED: Mutex<bool> = Mutex::new(false);

/// The text printed before the process ends at once; `None` if its code asks [`interrupted`]
/// itself.
static AT_ONCE: Mutex<Option<String>> = Mutex::new(None);

fn at_once() -> MutexGuard<'static, Option<String>> {
    AT_ONCE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes signals end this process at once, with the exit code that shells give for them, after
/// printing `systoll: interrupted` and `known`. For work that waits for no program. The last
/// `known` counts.
pub fn end_at_once(known: impl Into<String>) {
    *at_once() = Some(known.into());
}

/// Announces that results are being written: a process that ends at once ([`end_at_once`]) then
/// prints nothing more.
pub fn telling() {
    if let Some(known) = &mut *at_once() {
        known.clear();
    }
}

fn settled() -> MutexGuard<'static, bool> {
    SETTLED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes signals that tell this process to end show in [`interrupted`]. A signal that has a handler
/// already, or is ignored (`nohup`), is left alone.
///
/// # Errors
/// The thread can't be started.
pub fn catch_interrupts() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), io::ErrorKind>> = OnceLock::new();
    (*INSTALLED.get_or_init(|| install().map_err(|e| e.kind()))).map_err(io::Error::from)
}

/// Returns the signal that told us to end, if there was one.
pub fn interrupted() -> Option<i32> {
    Some(CAUGHT.load(Ordering::Acquire)).filter(|signal| *signal != 0)
}

/// Returns [`interrupted`] after a program ended with `exit`. If it ended by such a signal, waits a
/// little: the program may have received it before us.
pub fn interrupted_after(exit: Exit) -> Option<i32> {
    let alike = match exit {
        Exit::Signal(signal) => SIGNALS.contains(&signal),
        Exit::Code(code) => SIGNALS.contains(&(code - 128)),
    };
    let end = Instant::now() + TOGETHER;
    while alike && is_watching() && interrupted().is_none() && Instant::now() < end {
        std::thread::sleep(LOOK);
    }
    interrupted()
}

/// Processes of ours that interrupts don't kill.
static SPARED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Excludes a child of this process from those that interrupts kill: it ends by itself when this process has ended or
/// tells it to.
pub fn spare(pid: u32) {
    SPARED.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
}

/// Kills the programs that this process has started, except spared ones.
fn kill_started() {
    let spared = SPARED.lock().unwrap_or_else(PoisonError::into_inner);
    children(std::process::id()).into_iter().filter(|pid| !spared.contains(pid)).for_each(kill_tree);
}

/// Lets programs started from now on, and the work of this process, run to their end, e.g. the user's own command that
/// cleans up. A second signal ends them.
pub fn settle() {
    *settled() = true;
}

pub(crate) fn is_settled() -> bool {
    *settled()
}

fn is_watching() -> bool {
    WAKE.load(Ordering::Relaxed) >= 0
}

/// A folder that is also removed if a signal ends us, until this is dropped.
#[derive(Debug)]
pub(crate) struct Removed(PathBuf);

impl Removed {
    pub(crate) fn at_the_end(folder: &Path) -> Self {
        folders().push(folder.to_owned());
        Self(folder.to_owned())
    }
}

impl Drop for Removed {
    fn drop(&mut self) {
        folders().retain(|f| *f != self.0);
    }
}

/// A temporary file with a name, removed on drop and if a signal ends us.
#[derive(Debug)]
pub struct Temporary(NamedTempFile);

impl Temporary {
    /// Creates a temporary file.
    ///
    /// # Errors
    ///
    /// If no file can be created.
    pub fn new() -> io::Result<Self> {
        // The lock is held, so that a signal never finds a file that exists and is not listed.
        let mut all = folders();
        let file = NamedTempFile::new()?;
        all.push(file.path().to_owned());
        Ok(Self(file))
    }
}

impl std::ops::Deref for Temporary {
    type Target = NamedTempFile;

    fn deref(&self) -> &NamedTempFile {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        folders().retain(|place| place != self.0.path());
    }
}

/// Returns the folders and files to remove.
fn folders() -> MutexGuard<'static, Vec<PathBuf>> {
    static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn install() -> io::Result<()> {
    let (wake, woken) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    std::thread::Builder::new().name("systoll-end".into()).spawn(move || end_on_signal(woken))?;
    WAKE.store(wake.as_raw_fd(), Ordering::Relaxed);
    // The handler may run until the process ends: the socket stays open.
    let _ = wake.into_raw_fd();
    for signal in SIGNALS {
        // SAFETY: `sigaction` is plain data for which all zeroes are valid; both pointers live
        // through the calls; the handler only does what is allowed in one.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut old) == 0 && old.sa_sigaction == libc::SIG_DFL {
                let mut new: libc::sigaction = std::mem::zeroed();
                new.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
                new.sa_flags = libc::SA_RESTART;
                libc::sigaction(signal, &new, std::ptr::null_mut());
            }
        }
    }
    Ok(())
}

/// Removes a folder or file, in several tries: killed programs may write to it until they are gone.
fn remove(place: &Path) {
    const TRIES: u32 = 50;
    const PAUSE: Duration = Duration::from_millis(5);
    for _ in 0..TRIES {
        let _ = if place.is_dir() { std::fs::remove_dir_all(place) } else { std::fs::remove_file(place) };
        if place.symlink_metadata().is_err() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

extern "C" fn on_signal(signal: libc::c_int) {
    CAUGHT.store(signal, Ordering::Release);
    let byte = signal as u8;
    // SAFETY: write(2) is async-signal-safe, the byte lives through it, and errno is restored for
    // the interrupted code.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(WAKE.load(Ordering::Relaxed), (&raw const byte).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

fn end_on_signal(mut woken: UnixStream) {
    let mut byte = [0];
    if woken.read_exact(&mut byte).is_err() {
        return;
    }
    let signal = libc::c_int::from(byte[0]);
    // This process's work ends here: `known` does not change any more.
    let known = at_once();
    if let Some(known) = &*known {
        kill_started();
        let all = folders();
        all.iter().for_each(|place| remove(place));
        if !known.is_empty() {
            // If standard error fails, the process ends all the same.
            let _ = io::Write::write_all(&mut io::stderr(), format!("systoll: interrupted{known}\n").as_bytes());
        }
        // SAFETY: ends the process without running more of its code: another thread is working.
        unsafe { libc::_exit(128 + signal) };
    }
    drop(known);
    let began = Instant::now();
    // A second signal ends the wait.
    let _ = woken.set_read_timeout(Some(LOOK));
    while is_settled() || began.elapsed() < PATIENCE {
        let settled = settled();
        if !*settled {
            kill_started();
        }
        drop(settled);
        if woken.read_exact(&mut byte).is_ok() {
            break;
        }
    }
    // The lock is held until the end, so that no more folders or files are made.
    let all = folders();
    all.iter().for_each(|place| remove(place));
    // SAFETY: the default action of the three signals ends the process, as the sender asked; sent
    // to this thread alone, no other thread's wait receives it.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
