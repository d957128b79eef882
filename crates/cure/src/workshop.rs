//! A private folder for what is built, removed whatever ends us.

use crate::CureError;
use crate::interrupt::{Removed, catch_interrupts};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use systoll_trust::{Folder, Untrusted};
use tempfile::TempDir;

/// A private temporary folder (mode 700), removed on drop and when SIGINT, SIGTERM or SIGHUP ends the
/// process. It lies in `TMPDIR` or `/tmp`, or where other users could put something else in its
/// place there, in the user's cache.
#[derive(Debug)]
pub struct Workshop {
    dir: TempDir,
    _removed: Removed,
}

impl Workshop {
    /// Makes the folder, and has interrupts caught ([`catch_interrupts`]).
    ///
    /// # Errors
    /// Where no folder can be made.
    pub fn new() -> Result<Self, CureError> {
        let place = place().map_err(|why| CureError::NoFolder(Box::new(why)))?;
        let io = |e| CureError::Write { path: place.clone(), source: e };
        let private = Permissions::from_mode(0o700);
        let dir = tempfile::Builder::new().prefix("systoll-").permissions(private).tempdir_in(&place).map_err(io)?;
        catch_interrupts().map_err(io)?;
        let _removed = Removed::at_the_end(dir.path());
        Ok(Self { dir, _removed })
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
            // The tests' own parent may ignore the signal, as a shell does for what it starts in
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
