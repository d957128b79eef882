//! A signal that ends this process ends what it has started for itself, and removes its folders.
//!
//! A signal handler wakes a thread that does both and then lets the signal do its work: the thread that
//! waits for a program need not come back for that.

use crate::unwatched::{children, kill_tree};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tempfile::NamedTempFile;

/// Where the handler writes the signal's number.
static WAKE: AtomicI32 = AtomicI32::new(-1);
/// Whether the process is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Folders and files to be removed.
pub(crate) fn folders() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A temporary file with a name, removed when it is dropped and when a signal ends this process.
#[derive(Debug)]
pub struct Temporary(NamedTempFile);

impl Temporary {
    /// Makes one.
    ///
    /// # Errors
    /// Where none can be made.
    pub fn new() -> io::Result<Self> {
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

/// From now on SIGINT, SIGTERM and SIGHUP kill every child of this process, with all those have started,
/// before they end it. A signal that has a handler already, or is ignored (`nohup`), is left alone.
///
/// # Errors
/// Where no thread or no pair of sockets can be had.
pub fn end_with_children() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), io::ErrorKind>> = OnceLock::new();
    (*INSTALLED.get_or_init(|| install().map_err(|e| e.kind()))).map_err(io::Error::from)
}

/// Does not come back where the process is about to end: nothing is to be started any more.
pub fn wait_if_ending() {
    while ENDING.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn install() -> io::Result<()> {
    let (wake, woken) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    std::thread::Builder::new().name("systoll-clean".into()).spawn(move || clean_up_on_signal(woken))?;
    WAKE.store(wake.as_raw_fd(), Ordering::Relaxed);
    // The handler may run until the process ends, so the socket stays open until then.
    let _ = wake.into_raw_fd();
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
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

extern "C" fn on_signal(signal: libc::c_int) {
    let byte = signal as u8;
    // SAFETY: write(2) is async-signal-safe, the byte lives through it, and errno is put back
    // for the code interrupted.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(WAKE.load(Ordering::Relaxed), (&raw const byte).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

fn clean_up_on_signal(mut woken: UnixStream) {
    let mut byte = [0];
    if woken.read_exact(&mut byte).is_err() {
        return;
    }
    ENDING.store(true, Ordering::Release);
    kill_children();
    // Held until the end: none is made any more.
    let all = folders();
    all.iter().for_each(|place| remove(place));
    let signal = libc::c_int::from(byte[0]);
    // SAFETY: the default action of the three signals ends the process, which is what its sender
    // asked for; kill(2) of our own pid has no other effect.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::kill(libc::getpid(), signal);
    }
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

/// Kills what this process has started. More than once: another thread may have been starting a child.
fn kill_children() {
    const ROUNDS: u32 = 3;
    const PAUSE: Duration = Duration::from_millis(5);
    for round in 0..ROUNDS {
        if round > 0 {
            std::thread::sleep(PAUSE);
        }
        children(std::process::id()).into_iter().for_each(kill_tree);
    }
}
