//! Executable mappings of a process, and the files behind them, opened while they are mapped.

use crate::source::{Identity, Source};
use std::fs::File;
use systoll_files::Links;

/// A line of `/proc/PID/maps` that can be executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) offset: u64,
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
    /// As the target saw it, or `[vdso]`; empty for memory without a file.
    pub(crate) path: String,
    pub(crate) deleted: bool,
}

impl Mapped {
    /// Whether it is the same mapping of the same file, whatever became of the file's name.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.start, self.end, self.offset) == (other.start, other.end, other.offset)
            && (self.device, self.inode) == (other.device, other.inode)
            && (self.inode != 0 || self.path == other.path)
    }
}

/// The executable mappings of `pid`; `None` if it is gone.
pub(crate) fn executable(pid: i32) -> Option<Vec<Mapped>> {
    executable_in(&systoll_files::read_kernel(format!("/proc/{pid}/maps"), 1 << 14).ok()?)
}

/// The executable mappings in the text of a `maps` file; `None` if it has none.
pub(crate) fn executable_in(text: &[u8]) -> Option<Vec<Mapped>> {
    let mapped: Vec<_> = text.split(|b| *b == b'\n').filter_map(|l| line(&String::from_utf8_lossy(l))).collect();
    // A process that is being killed has an empty map: keep what was known.
    (!mapped.is_empty()).then_some(mapped)
}

/// One line, e.g. `7f1c…000-7f1c…000 r-xp 00026000 fe:00 1234   /usr/lib/libc.so.6`.
fn line(line: &str) -> Option<Mapped> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let perms = fields.next()?;
    if perms.as_bytes().get(2) != Some(&b'x') {
        return None;
    }
    let hex = |s: &str| u64::from_str_radix(s, 16).ok();
    let offset = hex(fields.next()?)?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    let inode = fields.next()?.parse().ok()?;
    let path = fields.next().unwrap_or("").trim_start();
    let (path, deleted) = match path.strip_suffix(" (deleted)") {
        Some(path) => (path, true),
        None => (path, false),
    };
    // The kernel escapes newlines only.
    let path = path.replace("\\012", "\n");
    Some(Mapped { start: hex(start)?, end: hex(end)?, offset, device, inode, path, deleted })
}

/// What a mapped file is now, where a file of its name is the very one: device and inode say so,
/// whichever process's view of the file system the name was of.
pub(crate) fn identity(mapped: &Mapped) -> Option<Identity> {
    let identity = Identity::of_metadata(&std::fs::metadata(&mapped.path).ok()?);
    let device = identity.device();
    let is_it = (nix::libc::major(device), nix::libc::minor(device)) == mapped.device;
    (is_it && identity.inode() == mapped.inode && mapped.inode != 0).then_some(identity)
}

/// Opens the very file that is mapped, or says why not.
pub(crate) fn open(pid: i32, mapped: &Mapped) -> Result<Source, String> {
    if mapped.path == "[vdso]" {
        return vdso(pid, mapped).ok_or_else(|| "its memory can't be read".into());
    }
    // Always the mapped file, even when deleted or replaced, but for the privileged only.
    let by_range = format!("/proc/{pid}/map_files/{:x}-{:x}", mapped.start, mapped.end);
    let by_path = format!("/proc/{pid}/root{}", mapped.path);
    let by_exe = format!("/proc/{pid}/exe");
    let mut why = String::from("deleted");
    for (path, sure) in [(by_range, true), (by_path, false), (by_exe, false)] {
        match open_plain(&path) {
            Ok((file, identity)) if sure || is_mapped_file(&identity, mapped) => {
                return Source::from_file(file).map_err(|e| e.to_string());
            }
            Ok(_) => {}
            Err(e) if path.ends_with(&mapped.path) && e.kind() != std::io::ErrorKind::NotFound => why = e.to_string(),
            Err(_) => {}
        }
    }
    Err(why)
}

/// Opens a plain file.
pub(crate) fn open_file(path: &std::path::Path) -> std::io::Result<Source> {
    Source::from_file(open_plain(path)?.0)
}

/// A target could map a file and put a FIFO in its place.
fn open_plain(path: impl AsRef<std::path::Path>) -> std::io::Result<(File, Identity)> {
    let (file, metadata) = systoll_files::open(path, Links::Follow)?;
    Ok((file, Identity::of_metadata(&metadata)))
}

/// Device and inode must agree. btrfs and overlayfs show another device in maps than in stat:
/// there an anonymous device (major 0) and the inode have to do.
fn is_mapped_file(identity: &Identity, mapped: &Mapped) -> bool {
    let device = identity.device();
    let (major, minor) = (nix::libc::major(device), nix::libc::minor(device));
    identity.inode() == mapped.inode && ((major, minor) == mapped.device || (major == 0 && mapped.device.0 == 0))
}

/// The vDSO is an ELF file in memory, headers and all.
fn vdso(pid: i32, mapped: &Mapped) -> Option<Source> {
    use std::os::unix::fs::FileExt;
    const MAX_VDSO: u64 = 1 << 20;
    let len = mapped.end.checked_sub(mapped.start).filter(|len| *len <= MAX_VDSO)?;
    let mut bytes = vec![0; len as usize];
    let memory = systoll_files::kernel(format!("/proc/{pid}/mem")).ok()?;
    memory.read_exact_at(&mut bytes, mapped.start).ok()?;
    Some(Source::Memory(bytes.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_line_of_maps() {
        let m = line("7f00aa000-7f00ab000 r-xp 00026000 fe:01 77      /lib/a b.so (deleted)").unwrap();
        assert_eq!((m.start, m.end, m.offset), (0x7f00aa000, 0x7f00ab000, 0x26000));
        assert_eq!((m.device, m.inode, m.path.as_str(), m.deleted), ((0xfe, 1), 77, "/lib/a b.so", true));
        assert_eq!(line("7f00aa000-7f00ab000 rw-p 00026000 fe:01 77 /lib/a.so"), None);
        assert_eq!(line("7ffe000-7fff000 r-xp 00000000 00:00 0    [vdso]").unwrap().path, "[vdso]");
        for broken in ["", "x", "1-2", "1-2 r-xp", "1-2 r-xp 0 0:0", "1-2 r-xp zz 0:0 1"] {
            assert_eq!(line(broken), None, "{broken}");
        }
    }

    #[test]
    fn finds_and_opens_its_own_files() {
        let pid = std::process::id() as i32;
        let all = executable(pid).unwrap();
        let exe = std::env::current_exe().unwrap();
        let mine = all.iter().find(|m| m.path == exe.to_str().unwrap()).expect("our own program is mapped");
        assert!(open(pid, mine).is_ok());
        let vdso = all.iter().find(|m| m.path == "[vdso]").expect("a vDSO");
        assert_eq!(open(pid, vdso).unwrap().read(0, 4).unwrap(), b"\x7fELF");
    }
}
