//! Reads a process's mappings: from the text of its `maps` file, or by a query for one mapping, which takes a fifth of
//! the time on kernels that support it.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::fd::AsRawFd;
use systoll_binfile::maps::{Line, lines};

const PAGE: u64 = 4096;
/// Beginning of the name that our files have in `maps`.
pub(crate) const FILE_NAME: &[u8] = b"/memfd:systoll";

/// A mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub(crate) range: Range<u64>,
    pub(crate) writable: bool,
    pub(crate) executable: bool,
    /// True if writes to the mapping go to the file.
    pub(crate) shared: bool,
    /// True if the memory belongs to no file, nor is shared.
    pub(crate) anonymous: bool,
}

impl Mapped {
    fn of(line: &Line<'_>) -> Self {
        let range = line.range.clone();
        let anonymous = line.inode == 0 && !line.shared;
        Self { range, writable: line.writable, executable: line.executable, shared: line.shared, anonymous }
    }
}

/// All mappings of a process at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Maps {
    /// The mappings by address; empty if the process is gone.
    pub(crate) all: Vec<Mapped>,
    /// Text of the `maps` file.
    pub(crate) text: Vec<u8>,
}

impl Maps {
    /// Reads the current mappings of process `pid`.
    pub(crate) fn of(pid: i32) -> Self {
        open(pid).map_or_else(Self::default, |file| Self::read(&file))
    }

    /// Returns true if a mapping of one of our files holds all of `range`.
    pub(crate) fn are_ours(&self, range: &Range<u64>) -> bool {
        let holds = |line: &Line<'_>| line.range.start <= range.start && range.end <= line.range.end;
        lines(&self.text).any(|line| holds(&line) && line.path.starts_with(FILE_NAME))
    }

    /// Returns true if one of our files, which has this inode, is mapped.
    pub(crate) fn have_ours(&self, inode: u64) -> bool {
        lines(&self.text).any(|line| line.inode == inode && line.path.starts_with(FILE_NAME))
    }

    fn read(mut file: &File) -> Self {
        let mut text = Vec::with_capacity(8192);
        // A text that an error cut short is useless.
        let _ = file.read_to_end(&mut text).inspect_err(|_| text.clear());
        Self { all: mapped(&text), text }
    }
}

/// Returns the line of the `maps` file for a mapping of exactly `range`. Returns `None` if there is none, or if only
/// the whole file would show it.
pub(crate) fn line_at(maps: &File, range: &Range<u64>) -> Option<Vec<u8>> {
    let end = range.end.checked_next_multiple_of(PAGE)?;
    let mut name = [0; Vma::NAME];
    let vma = Vma::ask(maps, range.start, 0, Some(&mut name)).ok()??;
    (vma.start == range.start && vma.end == end).then(|| vma.line(&name)).flatten()
}

/// Returns the line of the `maps` file for the mapping around `address`. Returns `None` if there is none, or if only
/// the whole file would show it.
pub(crate) fn line_around(maps: &File, address: u64) -> Option<Vec<u8>> {
    let mut name = [0; Vma::NAME];
    Vma::ask(maps, address, 0, Some(&mut name)).ok()??.line(&name)
}

/// A process's mappings, read as far as they are needed.
#[derive(Clone, Copy)]
pub(crate) enum Layout<'a> {
    /// All mappings have been read.
    Known(&'a [Mapped]),
    /// The process's `maps` file, of a kernel that answers [`line_at`].
    Asked(&'a File),
}

impl Layout<'_> {
    /// Returns the mapping around `address`.
    pub(crate) fn at(&self, address: u64) -> Option<Mapped> {
        match self {
            Self::Known(all) => around(all, address).cloned(),
            Self::Asked(maps) => Vma::ask(maps, address, 0, None).ok()?.map(|vma| vma.mapped()),
        }
    }

    /// Returns true if `range` is known to be free of mappings.
    pub(crate) fn is_free(&self, range: &Range<u64>) -> bool {
        match self {
            Self::Known(all) => !all.iter().any(|m| m.range.start < range.end && range.start < m.range.end),
            Self::Asked(maps) => match Vma::ask(maps, range.start, Vma::THIS_OR_NEXT, None) {
                Ok(next) => next.is_none_or(|vma| vma.start >= range.end),
                Err(()) => false,
            },
        }
    }
}

/// Returns the mapping around `address`; `all` are mappings by address.
pub(crate) fn around(all: &[Mapped], address: u64) -> Option<&Mapped> {
    let next = all.partition_point(|m| m.range.start <= address);
    all.get(next.checked_sub(1)?).filter(|m| m.range.contains(&address))
}

/// Opens a process's `maps` file.
pub(crate) fn open(pid: i32) -> Option<File> {
    systoll_files::kernel(format!("/proc/{pid}/maps")).ok()
}

/// The kernel's answer about one mapping (include/uapi/linux/fs.h, struct procmap_query; Linux 6.11).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Vma {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    start: u64,
    end: u64,
    flags: u64,
    page_size: u64,
    offset: u64,
    inode: u64,
    device: [u32; 2],
    name_size: u32,
    build_id_size: u32,
    name_addr: u64,
    build_id_addr: u64,
}

impl Vma {
    /// PROCMAP_QUERY, the ioctl's number.
    const REQUEST: libc::c_ulong = 0xc068_6611;
    /// Bytes that hold the longest name.
    const NAME: usize = libc::PATH_MAX as usize;
    /// PROCMAP_QUERY_COVERING_OR_NEXT_VMA, a flag of the query.
    const THIS_OR_NEXT: u64 = 0x10;
    const WRITABLE: u64 = 2;
    const EXECUTABLE: u64 = 4;
    const SHARED: u64 = 8;
    /// Flag bits of a mapping, with their letters in `maps` if set and if not.
    const LETTERS: [(u64, char, char); 4] =
        [(1, 'r', '-'), (Self::WRITABLE, 'w', '-'), (Self::EXECUTABLE, 'x', '-'), (Self::SHARED, 's', 'p')];

    /// Returns the mapping around `address`, or the next one if `flags` allow it; `None` if there is none. Writes the
    /// mapping's name to `name`.
    fn ask(maps: &File, address: u64, flags: u64, name: Option<&mut [u8]>) -> Result<Option<Self>, ()> {
        const _: () = assert!(size_of::<Vma>() == 0x68);
        let (name_addr, name_size) = name.map_or((0, 0), |n| (n.as_mut_ptr() as u64, n.len() as u32));
        let size = size_of::<Self>() as u64;
        let mut vma = Self { size, query_flags: flags, query_addr: address, name_addr, name_size, ..Self::default() };
        // SAFETY: the structure has the request's layout, and it and the name, whose length the kernel is told, live
        // through the call.
        match unsafe { libc::ioctl(maps.as_raw_fd(), Self::REQUEST, &raw mut vma) } {
            0 => Ok(Some(vma)),
            _ if nix::errno::Errno::last() == nix::errno::Errno::ENOENT => Ok(None),
            _ => Err(()),
        }
    }

    fn has(&self, bit: u64) -> bool {
        self.flags & bit != 0
    }

    fn mapped(&self) -> Mapped {
        Mapped {
            range: self.start..self.end,
            writable: self.has(Self::WRITABLE),
            executable: self.has(Self::EXECUTABLE),
            shared: self.has(Self::SHARED),
            anonymous: self.inode == 0 && !self.has(Self::SHARED),
        }
    }

    /// Returns the mapping's line without a newline, with the name `name`. Returns `None` if the file would show the
    /// name escaped.
    fn line(&self, name: &[u8]) -> Option<Vec<u8>> {
        let v = self;
        let name = name.get(..(v.name_size as usize).saturating_sub(1)).filter(|n| !n.contains(&b'\n'))?;
        let letters: String = Self::LETTERS.iter().map(|(bit, yes, no)| if v.has(*bit) { yes } else { no }).collect();
        let ([major, minor], inode) = (v.device, v.inode);
        let head = format!("{:x}-{:x} {letters} {:08x} {major:02x}:{minor:02x} {inode} ", v.start, v.end, v.offset);
        Some([head.as_bytes(), name].concat())
    }
}

/// Parses a text: for fuzzing.
#[cfg(any(test, feature = "any-target"))]
pub(crate) fn use_text(text: &[u8]) {
    let all = mapped(text);
    let layout = Layout::Known(&all);
    layout.at(1);
    layout.is_free(&(0..1));
}

/// Returns all mappings in the text of a `maps` file, by address.
fn mapped(text: &[u8]) -> Vec<Mapped> {
    lines(text).map(|line| Mapped::of(&line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `test` on a sleeping process and on the mappings in its `maps` file.
    fn still(test: impl Fn(i32, &Maps)) {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id() as i32;
        let read = || Maps::read(&open(pid).unwrap());
        // Wait until the child is past its exec and has mapped its libraries.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/syscall")).unwrap_or_default())
            .starts_with("230 ")
            && std::time::Instant::now() < deadline
        {
            std::thread::yield_now();
        }
        test(pid, &read());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_ioctl_and_the_maps_file_agree() {
        still(|pid, read| {
            let executable = |m: &&Mapped| m.executable;
            assert!(read.all.iter().filter(executable).count() > 1);
            assert!(read.all.windows(2).all(|w| w[0].range.end <= w[1].range.start));
            let maps = open(pid).unwrap();
            // Only the file shows the vsyscall page, which no process can change.
            let own: Vec<&Mapped> = read.all.iter().filter(|m| m.range.start < 1 << 63).collect();
            if line_at(&maps, &own[0].range).is_some() {
                let (asked, known) = (Layout::Asked(&maps), Layout::Known(&read.all));
                for m in &own {
                    for at in [m.range.start - 4096, m.range.start, m.range.end - 1, m.range.end] {
                        assert_eq!(asked.at(at), known.at(at), "{at:x}");
                        for pages in [1, 16, 1 << 18] {
                            let range = at..at + pages * 4096;
                            assert_eq!(asked.is_free(&range), known.is_free(&range), "{range:x?}");
                        }
                    }
                }
            }
            let words =
                |line: &[u8]| String::from_utf8_lossy(line).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let lines = read.text.split(|b| *b == b'\n').filter(|l| !l.is_empty());
            for (line, m) in lines.zip(&read.all).filter(|(_, m)| m.range.start < 1 << 63) {
                if let Some(asked) = line_at(&maps, &m.range) {
                    assert_eq!(words(&asked), words(line));
                }
            }
        });
    }

    #[test]
    fn a_line_is_of_one_mapping_alone() {
        still(|pid, read| {
            let code = read.all.iter().find(|m| m.executable).unwrap().range.clone();
            let maps = open(pid).unwrap();
            if let Some(line) = line_at(&maps, &code) {
                assert_eq!(mapped(&line).first().map(|m| m.range.clone()), Some(code.clone()));
            }
            assert_eq!(line_at(&maps, &(code.start..code.end + PAGE)), None);
            assert_eq!(line_at(&maps, &(code.start + PAGE..code.end)), None);
            assert_eq!(line_at(&maps, &(0..PAGE)), None);
        });
    }
}
