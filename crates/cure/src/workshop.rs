//! A private folder for what is built, removed whatever ends us.
//!
//! Dropping is not enough: Ctrl-C ends a process without dropping anything. A signal handler
//! therefore wakes a thread that removes the folders and then lets the signal do its work.

use crate::CureError;
use std::fs::Permissions;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use systoll_trust::{Folder, Untrusted};
use tempfile::TempDir;

/// A private temporary folder (mode 700), removed on drop and when SIGINT, SIGTERM or SIGHUP ends the
/// process. It lies in `TMPDIR` or `/tmp`, or where other users could put something else in its
/// place there, in the user's cache.
#[derive(Debug)]
pub struct Workshop {
    dir: TempDir,
}

impl Workshop {
    /// Makes the folder. The first one installs handlers for the three signals; a signal that has
    /// a handler already, or is ignored (`nohup`), is left alone.
    ///
    /// # Errors
    /// Where no folder can be made.
    pub fn new() -> Result<Self, CureError> {
        let place = place().map_err(|why| CureError::NoFolder(Box::new(why)))?;
        let io = |e| CureError::Write { path: place.clone(), source: e };
        let private = Permissions::from_mode(0o700);
        let dir = tempfile::Builder::new().prefix("systoll-").permissions(private).tempdir_in(&place).map_err(io)?;
        install_once().map_err(io)?;
        folders().push(dir.path().to_owned());
        Ok(Self { dir })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// A folder whose path no other user can make lead elsewhere: programs are run from what is made there.
fn place() -> Result<PathBuf, Untrusted> {
    systoll_trust::temporary().or_else(|why| match systoll_trust::cache() {
        Some(base) => Folder::below(&base, &["systoll"]).map(|folder| folder.path().to_owned()).map_err(|_| why),
        None => Err(why),
    })
}

impl Drop for Workshop {
    fn drop(&mut self) {
        folders().retain(|f| f != self.dir.path());
    }
}

static WAKE: AtomicI32 = AtomicI32::new(-1);

fn folders() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn install_once() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), io::ErrorKind>> = OnceLock::new();
    (*INSTALLED.get_or_init(|| install().map_err(|e| e.kind()))).map_err(io::Error::from)
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
    for folder in folders().iter() {
        let _ = std::fs::remove_dir_all(folder);
    }
    let signal = libc::c_int::from(byte[0]);
    // SAFETY: the default action of the three signals ends the process, which is what its sender
    // asked for; kill(2) of our own pid has no other effect.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::kill(libc::getpid(), signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Command, Stdio};

    #[test]
    fn the_folder_is_private_and_goes_with_its_owner() {
        let shop = Workshop::new().unwrap();
        let path = shop.path().to_owned();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(path.join("a"), "b").unwrap();
        drop(shop);
        assert!(!path.exists());
    }

    /// Not a test of its own: the process that the next one ends by a signal.
    #[test]
    #[ignore = "run by a_signal_leaves_nothing_behind"]
    fn child_that_waits_for_a_signal() {
        let shop = Workshop::new().unwrap();
        std::fs::write(shop.path().join("file"), "content").unwrap();
        std::fs::write(std::env::var_os("SYSTOLL_TEST_NOTE").unwrap(), shop.path().to_str().unwrap()).unwrap();
        std::thread::sleep(std::time::Duration::from_secs(60));
    }

    #[test]
    fn a_signal_leaves_nothing_behind() {
        let notes = tempfile::tempdir().unwrap();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            let note = notes.path().join(signal.to_string());
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["--exact", "workshop::tests::child_that_waits_for_a_signal", "--ignored"])
                .env("SYSTOLL_TEST_NOTE", &note)
                .stdout(Stdio::null());
            // Whoever runs the tests may ignore the signal, as a shell does for what it starts in
            // the background; the child would then be right to ignore it too.
            // SAFETY: signal(2) may be called between fork and exec.
            unsafe {
                command.pre_exec(move || {
                    libc::signal(signal, libc::SIG_DFL);
                    Ok(())
                })
            };
            let mut child = command.spawn().unwrap();
            let folder = loop {
                match std::fs::read_to_string(&note) {
                    Ok(text) if !text.is_empty() => break text,
                    _ => std::thread::sleep(std::time::Duration::from_millis(5)),
                }
                assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
            };
            assert!(Path::new(&folder).join("file").exists());
            // SAFETY: the child is ours and not yet waited for.
            assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
            assert_eq!(child.wait().unwrap().signal(), Some(signal));
            assert!(!Path::new(&folder).exists(), "{folder} is still there after signal {signal}");
        }
    }
}
