//! A folder of this user's that no other user can touch.
//!
//! Invariant: everything in the folder is reached from its descriptor by name, never by a path or
//! through a symbolic link, and is either this user's alone (0700, 0600) or ignored. Files appear
//! complete.

use crate::walk::{Untrusted, is, walk};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, futimens, mkdirat};
use nix::sys::statvfs::{FsFlags, fstatvfs};
use nix::sys::time::TimeSpec;
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Prefix of the name of an unfinished file, before a random number.
const UNFINISHED: &str = "new-";
/// Age after which the writer of an unfinished file has surely died.
const ABANDONED: Duration = Duration::from_secs(3600);
/// Time for which a read file counts as just used, so that not every read has to write its time.
const USED: Duration = Duration::from_secs(3600);
/// Fraction of the limit to which a folder is shrunk that has become too large, so that not every
/// new entry has to search it for files to drop.
const SHRINK: (u64, u64) = (3, 4);

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens the folder `names` below `base`. Creates those that do not exist, and `base` itself,
    /// but not the folders above it: as root with another user's HOME, that would leave folders of
    /// root's.
    ///
    /// # Errors
    /// If another user can change the way to the folder, or may read it.
    pub fn below(base: &Path, names: &[&str]) -> Result<Self, Untrusted> {
        let (mut fd, _) = walk(base, 1)?;
        let mut path = base.to_owned();
        for name in names {
            path.push(name);
            let io = |errno: Errno| Untrusted::Io { path: path.clone(), source: errno.into() };
            match mkdirat(&fd, *name, Mode::S_IRWXU) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(errno) => return Err(io(errno)),
            }
            // These names are ours, so none may be a link.
            let flags = OFlag::O_DIRECTORY | OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let opened = openat(&fd, *name, flags, Mode::empty()).map_err(io)?;
            let stat = fstat(&opened).map_err(io)?;
            if !is_own(&stat) {
                return Err(Untrusted::Owner { path, owner: stat.st_uid });
            }
            if !is_private(&stat) {
                return Err(Untrusted::Open { path });
            }
            fd = opened;
        }
        Ok(Self { fd, path })
    }

    /// Returns the folder's path. No other user can redirect it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if files in the folder can't be executed.
    #[must_use]
    pub fn forbids_code(&self) -> bool {
        fstatvfs(&self.fd).is_ok_and(|told| told.flags().contains(FsFlags::ST_NOEXEC))
    }

    /// Returns the content of a file, if it is private, ours, and at most `limit` bytes long. Marks
    /// it as used: its time of modification is when it was written or, to within an hour, last
    /// read.
    #[must_use]
    pub fn read(&self, name: &str, limit: u64) -> Option<Vec<u8>> {
        let (file, size) = self.open(name, limit)?;
        let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
        file.take(limit).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Does the same as [`Folder::read`] for reading in pieces. Returns the file and its length in
    /// bytes.
    #[must_use]
    pub fn open(&self, name: &str, limit: u64) -> Option<(File, u64)> {
        // Without O_NONBLOCK, opening a FIFO of that name would wait for ever.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let file = File::from(openat(&self.fd, name, flags, Mode::empty()).ok()?);
        let stat = fstat(&file).ok()?;
        let size = u64::try_from(stat.st_size).ok()?;
        if !is_private(&stat) || !is(&stat, SFlag::S_IFREG) || size > limit {
            return None;
        }
        if is_older(&stat, USED) {
            // If times can't be set, files that are read often are dropped as early as others.
            let _ = futimens(&file, &TimeSpec::UTIME_NOW, &TimeSpec::UTIME_NOW);
        }
        Some((file, size))
    }

    /// Writes a file of `parts` in one step: a reader sees all of it or the previous file.
    ///
    /// # Errors
    /// If the file can't be written. Nothing is left behind.
    pub fn write(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let new = format!("{UNFINISHED}{:016x}", RandomState::new().hash_one(name));
        let written = self.write_new(&new, parts);
        let moved = written.and_then(|()| Ok(renameat(&self.fd, new.as_str(), &self.fd, name)?));
        if moved.is_err() {
            self.remove(&new);
        }
        moved
    }

    fn write_new(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(&self.fd, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
        parts.iter().try_for_each(|part| file.write_all(part))
    }

    /// Removes a file, and ignores failures.
    pub fn remove(&self, name: &str) {
        let _ = unlinkat(&self.fd, name, UnlinkatFlags::NoRemoveDir);
    }

    /// Drops the least recently used files, except `keep`, if all files together are larger than
    /// `limit`.
    pub fn shrink(&self, limit: u64, keep: &str) {
        let Ok(names) = std::fs::read_dir(format!("/proc/self/fd/{}", self.fd.as_fd().as_raw_fd())) else { return };
        let (mut files, mut total) = (Vec::new(), 0u64);
        for name in names.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
            let Ok(stat) = fstatat(&self.fd, name.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW) else { continue };
            if !is(&stat, SFlag::S_IFREG) || name == keep {
                continue;
            }
            if name.starts_with(UNFINISHED) {
                if is_older(&stat, ABANDONED) {
                    self.remove(&name);
                }
                continue;
            }
            let size = u64::try_from(stat.st_size).unwrap_or(0);
            total = total.saturating_add(size);
            files.push(((stat.st_mtime, stat.st_mtime_nsec), size, name));
        }
        if total <= limit {
            return;
        }
        files.sort_unstable();
        // The newest file stays; otherwise an entry as large as the limit would never be kept.
        files.pop();
        for (_, size, name) in files {
            if total <= limit / SHRINK.1 * SHRINK.0 {
                return;
            }
            self.remove(&name);
            total = total.saturating_sub(size);
        }
    }
}

fn is_own(stat: &FileStat) -> bool {
    stat.st_uid == geteuid().as_raw()
}

fn is_private(stat: &FileStat) -> bool {
    is_own(stat) && stat.st_mode & 0o077 == 0
}

/// Returns true if a file was modified longer than `age` ago.
fn is_older(stat: &FileStat, age: Duration) -> bool {
    let since = |now: Duration| now.as_secs().checked_sub(u64::try_from(stat.st_mtime).ok()?);
    SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(since).is_some_and(|since| since > age.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    #[test]
    fn a_file_is_written_whole_under_its_name_alone() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::below(&home.path().join("cache"), &["systoll", "x"]).unwrap();
        assert_eq!(folder.path(), home.path().join("cache/systoll/x"));
        folder.write("a", &[b"one, ", b"two"]).unwrap();
        assert_eq!(folder.read("a", 8).as_deref(), Some(&b"one, two"[..]));
        assert_eq!(folder.read("a", 7), None);
        let meta = fs::metadata(folder.path().join("a")).unwrap();
        assert_eq!(meta.mode() & 0o777, 0o600);
        // A link in the place of the file is not followed.
        let other = home.path().join("other");
        fs::write(&other, "untouched").unwrap();
        fs::remove_file(folder.path().join("a")).unwrap();
        symlink(&other, folder.path().join("a")).unwrap();
        assert_eq!(folder.read("a", 100), None);
        folder.write("a", &[b"new"]).unwrap();
        assert_eq!((fs::read(&other).unwrap(), folder.read("a", 3)), (b"untouched".to_vec(), Some(b"new".to_vec())));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "leftovers");
    }

    #[test]
    fn read_files_outlive_unread_ones() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::below(home.path(), &["systoll"]).unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(100_000);
        for (name, age) in [("first", 0), ("second", 10), ("third", 20), ("keep", 0)] {
            folder.write(name, &[&[0; 100]]).unwrap();
            let file = File::options().write(true).open(folder.path().join(name)).unwrap();
            file.set_modified(long_ago + Duration::from_secs(age)).unwrap();
        }
        assert!(folder.read("first", 100).is_some());
        folder.shrink(250, "keep");
        let left = |name: &str| folder.path().join(name).exists();
        assert_eq!(["first", "second", "third", "keep"].map(left), [true, false, false, true]);
        // A time of the last hour is not updated.
        let modified = || fs::metadata(folder.path().join("first")).unwrap().modified().unwrap();
        let before = modified();
        std::thread::sleep(Duration::from_millis(20));
        assert!(folder.read("first", 100).is_some());
        assert_eq!(modified(), before);
    }

    #[test]
    fn it_is_ours_alone_or_not_used() {
        let home = tempfile::tempdir().unwrap();
        let open = |base: &Path| Folder::below(base, &["systoll"]);
        let path = open(home.path()).unwrap().path().to_owned();
        for mode in [0o770, 0o707, 0o750] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert!(matches!(open(home.path()), Err(Untrusted::Open { .. })), "{mode:o}");
        }
        fs::remove_dir(&path).unwrap();
        fs::create_dir(home.path().join("elsewhere")).unwrap();
        symlink("elsewhere", &path).unwrap();
        assert!(matches!(open(home.path()), Err(Untrusted::Io { .. })), "a link is none of ours");
        fs::remove_file(&path).unwrap();
        if chown(home.path(), Some(65534), None).is_ok() {
            assert!(matches!(open(home.path()), Err(Untrusted::Owner { .. })));
            assert!(open(&home.path().join("cache")).is_err());
            assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "something was left in another's home");
        }
    }
}
