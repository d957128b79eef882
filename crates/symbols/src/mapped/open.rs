//! Opens the files behind mappings, while they are mapped.

use super::bytes::FileBytes;
use super::maps::MapsEntry;
use super::state::Identity;
use std::fs::File;
use systoll_files::Links;

/// Returns the identity of the file at the mapping's path, if it is the mapped file. Device and inode tell that, even
/// if the path is valid only in another process's view of the file system.
pub(crate) fn identity(mapped: &MapsEntry) -> Option<Identity> {
    let identity = Identity::of_metadata(&std::fs::metadata(&mapped.path).ok()?);
    let device = identity.device();
    let is_it = (nix::libc::major(device), nix::libc::minor(device)) == mapped.device;
    (is_it && identity.inode() == mapped.inode && mapped.inode != 0).then_some(identity)
}

/// Opens the mapped file, or returns the reason why it could not.
pub(crate) fn open(pid: i32, mapped: &MapsEntry) -> Result<FileBytes, String> {
    if mapped.path == "[vdso]" {
        return vdso(pid, mapped).ok_or_else(|| "its memory can't be read".into());
    }
    // This opens the mapped file even if it was deleted or replaced, but takes privileges.
    let by_range = format!("/proc/{pid}/map_files/{:x}-{:x}", mapped.start, mapped.end);
    let by_path = format!("/proc/{pid}/root{}", mapped.path);
    let by_exe = format!("/proc/{pid}/exe");
    let mut why = String::from("deleted");
    for (path, sure) in [(by_range, true), (by_path, false), (by_exe, false)] {
        match open_plain(&path) {
            Ok((file, identity)) if sure || is_mapped_file(&identity, mapped) => {
                return FileBytes::from_file(file).map_err(|e| e.to_string());
            }
            Ok(_) => {}
            Err(e) if path.ends_with(&mapped.path) && e.kind() != std::io::ErrorKind::NotFound => why = e.to_string(),
            Err(_) => {}
        }
    }
    Err(why)
}

/// Opens a regular file.
pub(crate) fn open_file(path: &std::path::Path) -> std::io::Result<FileBytes> {
    FileBytes::from_file(open_plain(path)?.0)
}

/// Opens `path` if it is a regular file: a target could map a file and put a FIFO in its place.
fn open_plain(path: impl AsRef<std::path::Path>) -> std::io::Result<(File, Identity)> {
    let (file, metadata) = systoll_files::open(path, Links::Follow)?;
    Ok((file, Identity::of_metadata(&metadata)))
}

/// Returns true if device and inode agree. btrfs and overlayfs show another device in maps than in stat: for those, an
/// anonymous device (major 0) and the inode suffice.
fn is_mapped_file(identity: &Identity, mapped: &MapsEntry) -> bool {
    let device = identity.device();
    let (major, minor) = (nix::libc::major(device), nix::libc::minor(device));
    identity.inode() == mapped.inode && ((major, minor) == mapped.device || (major == 0 && mapped.device.0 == 0))
}

/// Reads the vDSO, which is a whole ELF file in memory.
fn vdso(pid: i32, mapped: &MapsEntry) -> Option<FileBytes> {
    use std::os::unix::fs::FileExt;
    const MAX_VDSO: u64 = 1 << 20;
    let len = mapped.end.checked_sub(mapped.start).filter(|len| *len <= MAX_VDSO)?;
    let mut bytes = vec![0; len as usize];
    let memory = systoll_files::kernel(format!("/proc/{pid}/mem")).ok()?;
    memory.read_exact_at(&mut bytes, mapped.start).ok()?;
    Some(FileBytes::Memory(bytes.into()))
}

#[cfg(test)]
mod tests {
    use super::super::maps::executable;
    use super::*;

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
