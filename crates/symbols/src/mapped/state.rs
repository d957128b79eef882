//! Identity and state of a file.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;

/// Identity of a file and its contents: two are equal only for the same file in the same state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    pub(super) size: u64,
    modified: (i64, i64),
}

impl Identity {
    pub(crate) fn of(file: &File) -> std::io::Result<Self> {
        Ok(Self::of_metadata(&file.metadata()?))
    }

    pub(crate) fn of_metadata(m: &Metadata) -> Self {
        Self { device: m.dev(), inode: m.ino(), size: m.size(), modified: (m.mtime(), m.mtime_nsec()) }
    }

    pub(crate) fn inode(&self) -> u64 {
        self.inode
    }

    pub(crate) fn device(&self) -> u64 {
        self.device
    }
}

/// State of a file, as far as the file system tells it. If two states are equal, the bytes are the same: no call sets
/// the time of the last change of status, so every change shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileState {
    /// Device number of the file system.
    pub device: u64,
    /// Inode number on that device.
    pub inode: u64,
    /// Size of the file, bytes.
    pub size: u64,
    /// Time of the last change of contents: seconds since 1970, and nanoseconds.
    pub modified: (i64, i64),
    /// Time of the last change of contents or status, in the same form.
    pub changed: (i64, i64),
    /// Magic number of the file system (statfs(2)).
    pub file_system: i64,
}

impl FileState {
    pub(crate) fn of(file: &File) -> std::io::Result<Self> {
        let m = file.metadata()?;
        Ok(Self {
            device: m.dev(),
            inode: m.ino(),
            size: m.size(),
            modified: (m.mtime(), m.mtime_nsec()),
            changed: (m.ctime(), m.ctime_nsec()),
            file_system: nix::sys::statfs::fstatfs(file)?.filesystem_type().0,
        })
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity { device: self.device, inode: self.inode, size: self.size, modified: self.modified }
    }
}
