//! A folder of this user's that nobody else can touch.
//!
//! Invariant: everything is reached from the open folder by name, never by a path or through a
//! symbolic link, and is this user's alone (0700, 0600) or left alone. Files appear whole.

use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NAME: &str = "systoll";
/// What a file is called until it is whole.
const UNFINISHED: &str = "new-";
/// After which its writer has surely died.
const ABANDONED: Duration = Duration::from_secs(3600);
/// When the folder is too large, it is shrunk to this part of its limit, so that not every
/// entry makes it look through the folder for something to drop.
const SHRINK: (u64, u64) = (3, 4);

/// An open folder.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

impl Folder {
    /// Opens, or makes, the folder below `base`. `None` where either is not this user's.
    pub(super) fn open(base: &Path) -> Option<Self> {
        if !base.exists() {
            // As root with another's HOME this would leave that user a folder of root's.
            let parent = std::fs::metadata(base.parent()?).ok()?;
            let ours = std::os::unix::fs::MetadataExt::uid(&parent) == geteuid().as_raw();
            ours.then(|| std::fs::DirBuilder::new().mode(0o700).create(base).ok())?;
        }
        let folder = OFlag::O_DIRECTORY | OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        // Where the user's own base leads is the user's business; from there on, no links.
        let base = nix::fcntl::open(base, folder, Mode::empty()).ok()?;
        is_own(&fstat(&base).ok()?).then_some(())?;
        let made = mkdirat(&base, NAME, Mode::S_IRWXU);
        let opened = openat(&base, NAME, folder | OFlag::O_NOFOLLOW, Mode::empty()).ok()?;
        let usable = matches!(made, Ok(()) | Err(nix::Error::EEXIST));
        (usable && is_private(&fstat(&opened).ok()?)).then_some(Self(opened))
    }

    /// All of a file, if it is private, ours, and no longer than `limit`.
    pub(super) fn read(&self, name: &str, limit: u64) -> Option<Vec<u8>> {
        // Without O_NONBLOCK a fifo under that name would have us wait for ever.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let file = File::from(openat(&self.0, name, flags, Mode::empty()).ok()?);
        let stat = fstat(&file).ok()?;
        let size = u64::try_from(stat.st_size).ok()?;
        if !is_private(&stat) || !is_file(&stat) || size > limit {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
        file.take(limit).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Writes a file of `parts` in one step, and returns whether it did.
    pub(super) fn write(&self, name: &str, parts: &[&[u8]]) -> bool {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let new = format!("{UNFINISHED}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let written = self.write_new(&new, parts).is_some();
        let moved = written && renameat(&self.0, new.as_str(), &self.0, name).is_ok();
        if !moved {
            self.remove(&new);
        }
        moved
    }

    fn write_new(&self, name: &str, parts: &[&[u8]]) -> Option<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(&self.0, name, flags, Mode::S_IRUSR | Mode::S_IWUSR).ok()?);
        parts.iter().try_for_each(|part| file.write_all(part)).ok()
    }

    /// Removes a file; no matter if that fails.
    pub(super) fn remove(&self, name: &str) {
        let _ = unlinkat(&self.0, name, UnlinkatFlags::NoRemoveDir);
    }

    /// Drops the oldest files, but for `keep`, where all are longer than `limit` together.
    pub(super) fn shrink(&self, limit: u64, keep: &str) {
        let Ok(names) = std::fs::read_dir(format!("/proc/self/fd/{}", self.0.as_fd().as_raw_fd())) else { return };
        let (mut files, mut total) = (Vec::new(), 0u64);
        for name in names.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
            let Ok(stat) = fstatat(&self.0, name.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW) else { continue };
            if !is_file(&stat) || name == keep {
                continue;
            }
            if name.starts_with(UNFINISHED) {
                if is_abandoned(&stat) {
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
        // The newest stays, or an entry as large as the limit would never be kept.
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

fn is_file(stat: &FileStat) -> bool {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG
}

fn is_abandoned(stat: &FileStat) -> bool {
    let age = |now: Duration| now.as_secs().checked_sub(u64::try_from(stat.st_mtime).ok()?);
    SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(age).is_some_and(|age| age > ABANDONED.as_secs())
}
