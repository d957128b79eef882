//! Parses `/proc/PID/maps`.

use std::ops::Range;

/// Names of the kernel's mappings that hold code in every process. That code makes no call for the program.
pub const KERNELS: [&[u8]; 2] = [b"[vdso]", b"[vsyscall]"];

/// A mapping of a process, as a line of its `maps` file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Addresses that the mapping covers.
    pub range: Range<u64>,
    /// True if the mapping is writable.
    pub writable: bool,
    /// True if the mapping is executable.
    pub executable: bool,
    /// True if writes to the mapping go to the file.
    pub shared: bool,
    /// Offset in the file at which the mapping starts.
    pub offset: u64,
    /// Device of the file: major and minor number.
    pub device: (u32, u32),
    /// Inode of the file; 0 for memory without a file.
    pub inode: u64,
    /// Path of the file as the process sees it, or the kernel's name for the memory; newlines are
    /// escaped.
    pub path: &'a [u8],
}

impl<'a> Line<'a> {
    /// Parses one line, e.g. `7f1c…000-7f1c…000 r-xp 00026000 fe:00 1234   /usr/lib/libc.so.6`.
    #[must_use]
    pub fn read(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.splitn(6, |b| *b == b' ');
        let mut field = || std::str::from_utf8(fields.next()?).ok();
        let (start, end) = field()?.split_once('-')?;
        let rights = field()?.as_bytes();
        let has = |n: usize, letter: u8| rights.get(n) == Some(&letter);
        let offset = u64::from_str_radix(field()?, 16).ok()?;
        let (major, minor) = field()?.split_once(':')?;
        let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
        let inode = field()?.parse().ok()?;
        Some(Self {
            range: u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?,
            writable: has(1, b'w'),
            executable: has(2, b'x'),
            shared: has(3, b's'),
            offset,
            device,
            inode,
            path: fields.next().unwrap_or_default().trim_ascii_start(),
        })
    }
}

/// Returns all valid lines of a `maps` file, in their order: by address.
pub fn lines(text: &[u8]) -> impl Iterator<Item = Line<'_>> {
    text.split(|b| *b == b'\n').filter_map(Line::read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_read() {
        let line = Line::read(b"7f00aa000-7f00ab000 r-xp 00026000 fe:01 77      /lib/a b.so (deleted)").unwrap();
        assert_eq!((line.range, line.offset), (0x7f00aa000..0x7f00ab000, 0x26000));
        assert_eq!((line.device, line.inode, line.path), ((0xfe, 1), 77, &b"/lib/a b.so (deleted)"[..]));
        assert_eq!((line.writable, line.executable, line.shared), (false, true, false));
        let line = Line::read(b"1000-2000 -w-s 00000000 00:00 0 ").unwrap();
        assert_eq!((line.writable, line.executable, line.shared, line.path), (true, false, true, &b""[..]));
        for broken in ["", "x", "1-2", "1-2 r-xp", "1-2 r-xp 0 0:0", "1-2 r-xp zz 0:0 1"] {
            assert_eq!(Line::read(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn every_mapping_of_this_process_is_read() {
        let text = std::fs::read("/proc/self/maps").unwrap();
        let all: Vec<_> = lines(&text).collect();
        assert_eq!(all.len(), text.iter().filter(|b| **b == b'\n').count());
        assert!(all.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in proptest::collection::vec(any::<u8>(), 0..200), line in "[0-9a-f]{1,17}-[0-9a-f]{1,17} .{4} .{0,30}") {
            lines(&text).for_each(drop);
            let _ = Line::read(line.as_bytes());
        }
    }
}
