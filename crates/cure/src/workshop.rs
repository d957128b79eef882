//! A private folder for what is built, removed whatever ends us.
//!
//! Dropping is not enough: Ctrl-C ends a process without dropping anything (see [`crate::ending`]).

use crate::CureError;
use crate::ending::{end_with_children, folders};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// A private temporary folder (mode 700, in `TMPDIR` or `/tmp`), removed on drop and when SIGINT,
/// SIGTERM or SIGHUP ends the process.
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
        let io = |e| CureError::Write { path: std::env::temp_dir(), source: e };
        let private = Permissions::from_mode(0o700);
        end_with_children().map_err(io)?;
        // Held, so that no signal finds the folder made and not known of.
        let mut all = folders();
        let dir = tempfile::Builder::new().prefix("systoll-").permissions(private).tempdir().map_err(io)?;
        all.push(dir.path().to_owned());
        Ok(Self { dir })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        folders().retain(|f| f != self.dir.path());
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
