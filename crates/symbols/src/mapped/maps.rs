//! Executable mappings of a process, from the lines of its `maps` file.

use systoll_binfile::maps::{Line, lines};

/// A line of `/proc/PID/maps` for an executable mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MapsEntry {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) offset: u64,
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
    /// The path as the target sees it, or `[vdso]`; empty for memory without a file.
    pub(crate) path: String,
    pub(crate) deleted: bool,
}

impl MapsEntry {
    fn of(line: &Line<'_>) -> Self {
        let path = String::from_utf8_lossy(line.path);
        let (path, deleted) = match path.strip_suffix(" (deleted)") {
            Some(path) => (path, true),
            None => (&*path, false),
        };
        // In paths, the kernel escapes nothing but newlines. It names shared memory without a file after a device.
        let path = if deleted && path == "/dev/zero" { String::new() } else { path.replace("\\012", "\n") };
        let (offset, device, inode) = (line.offset, line.device, line.inode);
        Self { start: line.range.start, end: line.range.end, offset, device, inode, path, deleted }
    }

    /// Returns true if both are the same mapping of the same file. The file's name may have
    /// changed.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.start, self.end, self.offset) == (other.start, other.end, other.offset)
            && (self.device, self.inode) == (other.device, other.inode)
            && (self.inode != 0 || self.path == other.path)
    }
}

/// Returns the executable mappings of `pid`; `None` if the process is gone.
pub(crate) fn executable(pid: i32) -> Option<Vec<MapsEntry>> {
    executable_in(&systoll_files::read_kernel(format!("/proc/{pid}/maps"), 1 << 14).ok()?)
}

/// Returns the executable mappings in the text of a `maps` file; `None` if it has none.
pub(crate) fn executable_in(text: &[u8]) -> Option<Vec<MapsEntry>> {
    let mapped: Vec<_> = lines(text).filter(|line| line.executable).map(|line| MapsEntry::of(&line)).collect();
    // A process that is being killed has an empty map; the caller then keeps the previous one.
    (!mapped.is_empty()).then_some(mapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_line_of_maps() {
        let line = |line: &[u8]| executable_in(line)?.pop();
        let m = line(b"7f00aa000-7f00ab000 r-xp 00026000 fe:01 77      /lib/a b.so (deleted)").unwrap();
        assert_eq!((m.start, m.end, m.offset), (0x7f00aa000, 0x7f00ab000, 0x26000));
        assert_eq!((m.device, m.inode, m.path.as_str(), m.deleted), ((0xfe, 1), 77, "/lib/a b.so", true));
        assert_eq!(line(b"7f00aa000-7f00ab000 rw-p 00026000 fe:01 77 /lib/a.so"), None);
        let shared = line(b"7f00aa000-7f00ab000 rwxs 00000000 00:01 77 /dev/zero (deleted)").unwrap();
        assert_eq!((shared.path.as_str(), shared.inode), ("", 77));
        assert_eq!(line(b"7ffe000-7fff000 r-xp 00000000 00:00 0    [vdso]").unwrap().path, "[vdso]");
    }
}
