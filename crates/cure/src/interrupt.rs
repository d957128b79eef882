//! Being told to end (SIGINT, SIGTERM, SIGHUP) while programs are run.
//!
//! The default action would drop nothing: folders would stay, and programs that were started run on. A
//! signal handler therefore wakes a thread. It kills what is being run, again and again, so that the code that
//! waits for that comes back, asks [`interrupted`], tells what it has, and ends. What does not end within
//! [`PATIENCE`], or is told a second time, the thread ends itself, by the signal. Where nothing is waited for and
//! nothing would be known sooner ([`end_at_once`]), it says what is known and ends the process.

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
/// How long telling what is known may take: a busy box makes a tenth of a second a second and more.
const PATIENCE: Duration = Duration::from_secs(4);
/// How often it is looked for what is still being run.
const LOOK: Duration = Duration::from_millis(20);
/// A program that a terminal's Ctrl-C has ended may be seen to have ended before we have our own signal.
const TOGETHER: Duration = Duration::from_millis(100);

/// The signal that told us to end; 0 while none did.
static CAUGHT: AtomicI32 = AtomicI32::new(0);
/// Where the handler wakes the thread.
static WAKE: AtomicI32 = AtomicI32::new(-1);
/// Whether what is started now is to end by itself. Held while what is being run is killed, so that it
/// is never what was started after that.
static SETTLED: Mutex<bool> = Mutex::new(false);

/// What is said before the process ends at once; `None` where its code asks [`interrupted`] by itself.
static AT_ONCE: Mutex<Option<String>> = Mutex::new(None);

fn at_once() -> MutexGuard<'static, Option<String>> {
    AT_ONCE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on a signal that tells this process to end does so at once, with the exit code that shells give for it:
/// first `systoll: interrupted` and `known`, what is known by then, are written to standard error. For work that
/// waits for no program. The last `known` holds.
pub fn end_at_once(known: impl Into<String>) {
    *at_once() = Some(known.into());
}

/// What is known is being told: who ends at once ([`end_at_once`]) says nothing more.
pub fn telling() {
    if let Some(known) = &mut *at_once() {
        known.clear();
    }
}

fn settled() -> MutexGuard<'static, bool> {
    SETTLED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on a signal that tells this process to end is answered by [`interrupted`]. One that has a
/// handler already, or is ignored (`nohup`), is left alone.
///
/// # Errors
/// Where there can be no thread for it.
pub fn catch_interrupts() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), io::ErrorKind>> = OnceLock::new();
    (*INSTALLED.get_or_init(|| install().map_err(|e| e.kind()))).map_err(io::Error::from)
}

/// The signal that has told us to end, if one has.
pub fn interrupted() -> Option<i32> {
    Some(CAUGHT.load(Ordering::Acquire)).filter(|signal| *signal != 0)
}

/// [`interrupted`], where a program has ended like this: as one does that got the same signal, it may have
/// ended before we heard of it.
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

/// What is started from here on runs to its end: the user's own command that cleans up.
pub fn settle() {
    *settled() = true;
}

pub(crate) fn is_settled() -> bool {
    *settled()
}

fn is_watching() -> bool {
    WAKE.load(Ordering::Relaxed) >= 0
}

/// A folder that is removed also where we are ended, until this is dropped.
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

/// A temporary file with a name, removed when it is dropped and where we are ended.
#[derive(Debug)]
pub struct Temporary(NamedTempFile);

impl Temporary {
    /// Makes one.
    ///
    /// # Errors
    /// Where none can be made.
    pub fn new() -> io::Result<Self> {
        // Held, so that no signal finds the file made and not known of.
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

/// Folders and files to be removed.
fn folders() -> MutexGuard<'static, Vec<PathBuf>> {
    static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn install() -> io::Result<()> {
    let (wake, woken) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    std::thread::Builder::new().name("systoll-end".into()).spawn(move || end_on_signal(woken))?;
    WAKE.store(wake.as_raw_fd(), Ordering::Relaxed);
    // The handler may run until the process ends, so the socket stays open until then.
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

/// Removes a folder or file. More than once: what was killed may write to it until it is gone.
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
    // SAFETY: write(2) is async-signal-safe, the byte lives through it, and errno is put back
    // for the code interrupted.
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
    // What this process does ends here: `known` is not changed any more.
    let known = at_once();
    if let Some(known) = &*known {
        children(std::process::id()).into_iter().for_each(kill_tree);
        let all = folders();
        all.iter().for_each(|place| remove(place));
        if !known.is_empty() {
            // Where standard error takes nothing the process ends all the same.
            let _ = io::Write::write_all(&mut io::stderr(), format!("systoll: interrupted{known}\n").as_bytes());
        }
        // SAFETY: ends the process without running anything more of it: another thread is at work.
        unsafe { libc::_exit(128 + signal) };
    }
    drop(known);
    let began = Instant::now();
    // A second signal ends the waiting.
    let _ = woken.set_read_timeout(Some(LOOK));
    while is_settled() || began.elapsed() < PATIENCE {
        let settled = settled();
        if !*settled {
            children(std::process::id()).into_iter().for_each(kill_tree);
        }
        drop(settled);
        if woken.read_exact(&mut byte).is_ok() {
            break;
        }
    }
    // Held until the end: none is made any more.
    let all = folders();
    all.iter().for_each(|place| remove(place));
    // SAFETY: the default action of the three signals ends the process, which is what its sender
    // asked for; sent to this thread alone, it is taken by no other thread's wait.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
