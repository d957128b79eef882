//! A private folder for builds, removed however the process ends.

use crate::CureError;
use crate::interrupt::{Removed, catch_interrupts};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use systoll_trust::{Folder, Untrusted};
use tempfile::TempDir;

/// A private temporary folder (mode 700), removed on drop and when SIGINT, SIGTERM or SIGHUP ends
/// the process. It is in `TMPDIR` or `/tmp`; if other users could replace it there, it is in the
/// user's cache.
#[derive(Debug)]
pub struct PrivateFolder {
    dir: TempDir,
    _removed: Removed,
}

impl PrivateFolder {
    /// Creates the folder, and catches interrupts ([`catch_interrupts`]).
    ///
    /// # Errors
    /// No folder can be created.
    pub fn new() -> Result<Self, CureError> {
        let place = place().map_err(|why| CureError::NoFolder(Box::new(why)))?;
        let io = |e| CureError::Write { path: place.clone(), source: e };
        let private = Permissions::from_mode(0o700);
        let dir = tempfile::Builder::new().prefix("systoll-").permissions(private).tempdir_in(&place).map_err(io)?;
        catch_interrupts().map_err(io)?;
        let _removed = Removed::at_the_end(dir.path());
        Ok(Self { dir, _removed })
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Returns a folder whose path no other user can redirect: programs run from it.
fn place() -> Result<PathBuf, Untrusted> {
    systoll_trust::temporary().or_else(|why| match systoll_trust::cache() {
        Some(base) => Folder::below(&base, &["systoll"]).map(|folder| folder.path().to_owned()).map_err(|_| why),
        None => Err(why),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Command, Stdio};

    #[test]
    fn the_folder_is_private_and_goes_with_its_owner() {
        let shop = PrivateFolder::new().unwrap();
        let path = shop.path().to_owned();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(path.join("a"), "b").unwrap();
        drop(shop);
        assert!(!path.exists());
    }

    /// The process that the next test ends by a signal; no test of its own.
    #[test]
    #[ignore = "run by a_signal_leaves_nothing_behind"]
    fn child_that_waits_for_a_signal() {
        let shop = PrivateFolder::new().unwrap();
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
                .args(["--exact", "private_folder::tests::child_that_waits_for_a_signal", "--ignored"])
                .env("SYSTOLL_TEST_NOTE", &note)
                .stdout(Stdio::null());
            // The parent of the tests may ignore the signal, as a shell does for background
            // commands; the child would rightly ignore it too.
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
            // SAFETY: the child is ours and has not been waited for.
            assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
            assert_eq!(child.wait().unwrap().signal(), Some(signal));
            assert!(!Path::new(&folder).exists(), "{folder} is still there after signal {signal}");
        }
    }
}
