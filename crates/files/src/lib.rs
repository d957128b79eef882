//! Opens files that strangers name: a target's libraries, the debug file that a library names, the
//! interpreter that a script names, the map that a runtime puts under /tmp.
//!
//! Invariant: opening never waits for another process (a FIFO without a writer, a terminal, a tape, a leased file). A
//! file that is not regular is not opened at all; if it is replaced by such a file just before it is opened, opening
//! returns at once. A file that the user names on the command line ([`input`]) may be a pipe; opening one without a
//! writer times out. Outside of this crate, `record`, `symbols` and `cure` open no file by path (a tidy rule).
//!
//! # Example
//!
//! ```
//! use std::io::Read;
//! use systoll_files::{Links, open};
//!
//! let (mut file, metadata) = open("/etc/passwd", Links::Follow)?;
//! let mut text = String::new();
//! file.read_to_string(&mut text)?;
//! assert_eq!(text.len() as u64, metadata.len());
//!
//! // A device is no regular file: it is refused, and not opened.
//! assert!(open("/dev/tty", Links::Follow).is_err());
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Bytes that are read of a kernel's file, at most: a `maps` file has some 100 bytes a mapping.
const MAX_KERNEL: u64 = 64 << 20;

/// Rule for a path whose last component is a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The link is followed.
    Follow,
    /// The link is refused, since other users may have put it there.
    Refuse,
}

/// Opens a regular file for reading.
///
/// # Errors
/// If the file can't be opened, or is not regular.
pub fn open(path: impl AsRef<Path>, links: Links) -> io::Result<(File, Metadata)> {
    let path = path.as_ref();
    // Check before opening: opening a FIFO would wake a process that waits to write to it, and opening a device may
    // change its state.
    let seen = if links == Links::Follow { path.metadata()? } else { path.symlink_metadata()? };
    if !seen.is_file() {
        return Err(not_regular());
    }
    let no_link = if links == Links::Refuse { libc::O_NOFOLLOW } else { 0 };
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC | no_link;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(not_regular()) }
}

/// Time to wait for a FIFO's writer. A writer that is started with the reader needs milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Opens a file that the user names, to be read once from start to end: a regular file, the pipe of `<(command)`, a
/// device. Gives up on a FIFO that no process opens for writing within five seconds.
///
/// # Errors
/// If the file can't be opened, or is a folder.
pub fn input(path: impl AsRef<Path>) -> io::Result<File> {
    opened_within(path.as_ref(), PATIENCE)
}

fn opened_within(path: &Path, patience: Duration) -> io::Result<File> {
    let meta = path.metadata()?;
    if meta.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    let open = |path: &Path| File::options().read(true).custom_flags(libc::O_NOCTTY | libc::O_CLOEXEC).open(path);
    if !meta.file_type().is_fifo() {
        return open(path);
    }
    let (tell, told) = mpsc::channel();
    let path = path.to_owned();
    // Opening a FIFO waits for a writer. The thread lives until one comes, or as long as this
    // process.
    thread::Builder::new().name("systoll-fifo".into()).spawn(move || tell.send(open(&path)))?;
    let nobody = || io::Error::new(io::ErrorKind::TimedOut, "it is a pipe, and nobody writes to it");
    told.recv_timeout(patience).unwrap_or_else(|_| Err(nobody()))
}

fn not_regular() -> io::Error {
    io::Error::other("not a regular file")
}

/// Returns the first `most` bytes of a regular file, or all of it.
///
/// # Errors
/// The errors of [`open`], and those of reading.
pub fn head(path: impl AsRef<Path>, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, Links::Follow)?.0.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns names of a folder's entries, at most `most`.
///
/// # Errors
/// If the folder can't be read.
pub fn names(folder: impl AsRef<Path>, most: usize) -> io::Result<Vec<OsString>> {
    std::fs::read_dir(folder)?.take(most).map(|entry| entry.map(|e| e.file_name())).collect()
}

/// Opens a file of the kernel, below /proc, /sys or /dev. Opening such a file never waits, and no stranger names it.
///
/// # Errors
/// If the file can't be opened.
pub fn kernel(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    debug_assert!(["/proc", "/sys", "/dev"].iter().any(|folder| path.starts_with(folder)), "{}", path.display());
    File::options().read(true).custom_flags(libc::O_NOCTTY | libc::O_CLOEXEC).open(path)
}

/// Returns the content of a kernel's file. Begins with a buffer of `usual` bytes, because such a file does not tell its
/// length, and each further piece costs a call.
///
/// # Errors
/// The errors of [`kernel`], and those of reading.
pub fn read_kernel(path: impl AsRef<Path>, usual: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usual);
    kernel(path)?.take(MAX_KERNEL).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_fifo_is_not_waited_for_and_a_plain_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let (fifo, plain, link) = (dir.path().join("fifo"), dir.path().join("plain"), dir.path().join("link"));
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        std::fs::write(&plain, "0123456789").unwrap();
        std::os::unix::fs::symlink(&plain, &link).unwrap();
        for path in [fifo.as_path(), dir.path(), Path::new("/dev/null"), Path::new("/dev/tty")] {
            assert!(open(path, Links::Follow).is_err(), "{}", path.display());
            assert!(head(path, 8).is_err());
        }
        assert_eq!(head(&link, 4).unwrap(), b"0123");
        assert!(open(&link, Links::Refuse).is_err());
        assert_eq!(open(&plain, Links::Refuse).unwrap().1.len(), 10);
        assert!(open(dir.path().join("none"), Links::Follow).is_err());
    }

    #[test]
    fn a_pipe_is_read_where_somebody_writes_and_not_waited_for_else() {
        let dir = tempfile::tempdir().unwrap();
        let (alone, fifo) = (dir.path().join("alone"), dir.path().join("fifo"));
        assert!(std::process::Command::new("mkfifo").args([&alone, &fifo]).status().unwrap().success());
        let nobody = opened_within(&alone, Duration::from_millis(50)).unwrap_err();
        assert_eq!(nobody.kind(), io::ErrorKind::TimedOut);
        let writing = thread::spawn({
            let fifo = fifo.clone();
            move || std::fs::write(fifo, "0123")
        });
        let mut read = String::new();
        opened_within(&fifo, PATIENCE).unwrap().read_to_string(&mut read).unwrap();
        writing.join().unwrap().unwrap();
        assert_eq!(read, "0123");
        // The pipe is like that of a shell's `<(command)`.
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"abcd").unwrap();
        drop(writer);
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert_eq!(io::read_to_string(opened_within(Path::new(&path), PATIENCE).unwrap()).unwrap(), "abcd");
        assert_eq!(opened_within(dir.path(), PATIENCE).unwrap_err().raw_os_error(), Some(libc::EISDIR));
    }

    #[test]
    fn a_folder_tells_some_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(names(dir.path(), 2).unwrap().len(), 2);
        assert_eq!(names(dir.path(), 9).unwrap().len(), 3);
        assert!(names(dir.path().join("a"), 9).is_err());
    }

    #[test]
    fn files_of_the_kernel_are_read_whole() {
        let maps = read_kernel("/proc/self/maps", 16).unwrap();
        assert!(maps.ends_with(b"\n") && maps.len() > 200);
        assert!(kernel("/dev/urandom").is_ok());
    }
}
