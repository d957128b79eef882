//! Writes a file for a result: in the end it holds all of the result, or its old content.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, fchown};
use std::path::{Path, PathBuf};
use systoll_files::Links;

/// Largest number of links that are followed in one path, as in the kernel (`path_resolution(7)`).
const MAX_LINKS: usize = 40;

/// A path for a result, checked before anything is started.
#[derive(Debug)]
pub(crate) struct ResultPath {
    /// The path as the user gave it.
    pub(crate) path: PathBuf,
    /// The file to replace, with links followed; `None` if the result is written in place.
    whole: Option<PathBuf>,
    /// The file at the path, if it exists already.
    there: Option<File>,
    /// True for our own streams, where earlier output of others stays.
    pub(super) goes_on: bool,
}

impl ResultPath {
    /// Checks that a result can be written to `path`. Does not create the file yet.
    ///
    /// Files that can't be replaced, or would not be the same file afterwards, are written in
    /// place: devices, pipes, descriptors (`/dev/stdout`), files with several names.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let in_place = |file| Self { path: path.to_owned(), whole: None, there: Some(file), goes_on: false };
        if let Some(stream) = own_stream(path) {
            return stream.map(|file| Self { goes_on: true, ..in_place(file) });
        }
        let open = |path: &Path| OpenOptions::new().write(true).open(path);
        let Some(target) = target(path) else { return open(path).map(in_place) };
        let there = match std::fs::symlink_metadata(&target) {
            Ok(meta) if !meta.is_file() || meta.nlink() > 1 => return open(&target).map(in_place),
            Ok(_) => Some(open(&target)?),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        match (Beside::new(&target), there) {
            (Ok(_), there) => Ok(Self { path: path.to_owned(), whole: Some(target), there, goes_on: false }),
            // The folder is read-only, but the file is writable.
            (Err(_), Some(file)) => Ok(in_place(file)),
            (Err(e), None) => Err(e),
        }
    }

    /// Returns true if a non-empty file would be replaced that `ours` does not recognise. A file
    /// that can't be read counts as another's.
    pub(crate) fn holds_other(&self, ours: impl FnOnce(File) -> bool) -> bool {
        let Some(meta) = self.there.as_ref().and_then(|file| file.metadata().ok()) else { return false };
        let is_file = meta.is_file() && meta.len() > 0 && !self.goes_on;
        is_file && !systoll_files::open(&self.path, Links::Follow).is_ok_and(|(file, _)| ours(file))
    }

    /// Replaces the file's content by `bytes`.
    ///
    /// # Errors
    /// The write failed. The file then has its old content, or is empty if it is written in place.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(target) = &self.whole else { return self.put_in_place(bytes) };
        let mut new = Beside::new(target)?;
        new.file.write_all(bytes)?;
        let alike = self.there.as_ref().map_or(Ok(()), |there| become_like(&new.file, there));
        match alike.and_then(|()| std::fs::rename(&new.path, target)) {
            // A mount point, or another user's file in a sticky folder, can't be replaced.
            Err(_) if self.there.is_some() => self.put_in_place(bytes),
            moved => moved,
        }
    }

    fn put_in_place(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.there else { return Err(io::ErrorKind::NotFound.into()) };
        if self.goes_on {
            return file.write_all(bytes);
        }
        // Devices and pipes can't be truncated and need not be.
        let _ = file.set_len(0);
        let _ = file.rewind();
        let written = file.write_all(bytes);
        if written.is_err() {
            let _ = file.set_len(0);
        }
        written
    }
}

/// Returns our own stream if the path names it. Opening the path anew would start at the file's
/// beginning and overwrite what the command wrote there.
fn own_stream(path: &Path) -> Option<io::Result<File>> {
    let (fd, stream) = match path.to_str()? {
        "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" => (1, io::stdout().as_fd().try_clone_to_owned()),
        "/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2" => (2, io::stderr().as_fd().try_clone_to_owned()),
        _ => return None,
    };
    if systoll_record::was_closed(fd) {
        return Some(Err(io::Error::from_raw_os_error(nix::libc::EBADF)));
    }
    Some(stream.map(File::from))
}

/// Returns the file that `path` leads to through links. Returns `None` if a descriptor in /proc or
/// a folder is on the way.
fn target(path: &Path) -> Option<PathBuf> {
    // The path names a folder: opening it gives the system's error message.
    if path.as_os_str().as_bytes().ends_with(b"/") {
        return None;
    }
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let folder = folder_of(&path);
        // A link in /proc stands for an open file.
        let descriptors = nix::sys::statfs::statfs(&folder);
        if descriptors.is_ok_and(|fs| fs.filesystem_type() == nix::sys::statfs::PROC_SUPER_MAGIC) {
            return None;
        }
        match std::fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_symlink() => path = folder.join(std::fs::read_link(&path).ok()?),
            Ok(meta) if meta.file_type().is_socket() => return None,
            _ => return path.file_name().is_some().then_some(path),
        }
    }
    None
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => ".".into(),
    }
}

/// A new file in the target's folder. It is removed on drop, unless it was moved away.
struct Beside {
    path: PathBuf,
    file: File,
}

impl Beside {
    fn new(target: &Path) -> io::Result<Self> {
        let name = format!(".systoll-{:016x}", RandomState::new().hash_one(target));
        let path = folder_of(target).join(name);
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        Ok(Self { path, file })
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Copies owner and mode of the replaced file.
fn become_like(new: &File, old: &File) -> io::Result<()> {
    let (meta, now) = (old.metadata()?, new.metadata()?);
    if (meta.uid(), meta.gid()) != (now.uid(), now.gid()) {
        fchown(new, Some(meta.uid()), Some(meta.gid()))?;
    }
    new.set_permissions(meta.permissions())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::fs::symlink;

    fn put(path: &Path, text: &str) {
        ResultPath::open(path).unwrap().put(text.as_bytes()).unwrap();
    }

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_owner_and_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut place = ResultPath::open(&path).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "made before there is something to put there");
        place.put(b"one").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let reader = File::open(&path).unwrap();
        put(&path, "two");
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(io::read_to_string(reader).unwrap(), "one", "a reader sees one or the other");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "leftovers");
    }

    #[test]
    fn links_are_followed_to_the_replaced_file() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link, far) = (dir.path().join("file"), dir.path().join("link"), dir.path().join("far"));
        symlink("file", &link).unwrap();
        symlink(&link, &far).unwrap();
        put(&far, "new");
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && fs::symlink_metadata(&far).unwrap().is_symlink());
        // A file with two names stays one file.
        let other = dir.path().join("other");
        fs::hard_link(&file, &other).unwrap();
        put(&file, "both");
        assert_eq!(fs::read_to_string(&other).unwrap(), "both");
    }

    #[test]
    fn pipes_and_devices_are_written_in_place() {
        put(Path::new("/dev/null"), "gone");
        let error = ResultPath::open(Path::new("/dev/full")).unwrap().put(b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        // A descriptor's file has no name.
        let file = tempfile::tempfile().unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        put(Path::new(&path), "by its descriptor");
        let mut file = file;
        file.rewind().unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "by its descriptor");
    }

    #[test]
    fn impossible_places_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let missing = [dir.path().join("no/file"), dir.path().join("file/")];
        for path in missing.iter().map(PathBuf::as_path).chain([dir.path(), Path::new("/proc/nothing"), Path::new("")])
        {
            assert!(ResultPath::open(path).is_err(), "{path:?}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
