//! Recognises programs that must not be watched: set-id, with file capabilities, or for other architectures.
//!
//! A set-id program that an ordinary user traces silently runs without its privilege (kernel: `LSM_UNSAFE_PTRACE`), and
//! at the exec event it is too late to let go. Therefore the file is examined before the kernel executes it.

use nix::sys::statvfs::{FsFlags, statvfs};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use systoll_model::Machine;

/// Nested `#!` lines that the kernel follows, at most.
const MAX_INTERPRETERS: usize = 5;

/// Nature of a file that is about to be executed, as far as it matters for watching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// The file is an ordinary program.
    Plain,
    /// The program gains a privilege when executed; the text names it.
    Privileged(String),
    /// The file is an ELF file of another class or machine.
    Foreign(String),
}

/// The view that a process which executes a file has of the system.
pub(crate) struct World {
    /// Prefix that reaches the process's root directory, e.g. `/proc/PID/root`; empty for ours.
    pub(crate) root: PathBuf,
    /// Effective user id of the process.
    pub(crate) euid: u32,
}

/// Examines the file at `path` (a path that we can open), following `#!` lines in the process's view.
pub(crate) fn nature(path: &Path, world: &World) -> Nature {
    let mut outside = path.to_owned();
    for _ in 0..=MAX_INTERPRETERS {
        // If the head is unreadable, the file's mode decides.
        let head = systoll_files::head(&outside, 256).unwrap_or_default();
        match interpreter(&head) {
            Some(next) if world.root.as_os_str().is_empty() => outside = next,
            Some(next) => outside = world.root.join(next.strip_prefix("/").unwrap_or(&next)),
            None => return binary_nature(&outside, &head, world),
        }
    }
    Nature::Plain
}

fn interpreter(head: &[u8]) -> Option<PathBuf> {
    let line = head.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let word = line.split(|b| *b == b' ' || *b == b'\t').find(|w| !w.is_empty())?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(word)))
}

fn binary_nature(outside: &Path, head: &[u8], world: &World) -> Nature {
    if let Some(what) = foreign(head) {
        return Nature::Foreign(what);
    }
    let Ok(meta) = std::fs::metadata(outside) else { return Nature::Plain };
    if on_nosuid_mount(outside) {
        return Nature::Plain;
    }
    let mode = meta.mode();
    if mode & libc::S_ISUID != 0 && meta.uid() != world.euid {
        return Nature::Privileged(format!("set-uid to user {}", meta.uid()));
    }
    if mode & libc::S_ISGID != 0 && mode & libc::S_IXGRP != 0 {
        return Nature::Privileged(format!("set-gid to group {}", meta.gid()));
    }
    if has_capabilities(outside) {
        return Nature::Privileged("it has file capabilities".into());
    }
    Nature::Plain
}

/// Returns a description of an ELF header that is not for 64-bit programs of this machine; `None` for any other head.
pub(crate) fn foreign(head: &[u8]) -> Option<String> {
    if head.get(..4)? != b"\x7fELF" {
        return None;
    }
    let machine = u16::from_le_bytes([*head.get(18)?, *head.get(19)?]);
    match (head.get(4)?, machine) {
        (2, machine) if machine == Machine::HERE.elf_machine() => None,
        (1, 62) => Some("an x32 program".into()),
        (1, 3 | 40) => Some("a 32-bit program".into()),
        (1, m) => Some(format!("a 32-bit program for machine {m}")),
        (_, m) => Some(format!("a program for machine {m}")),
    }
}

fn on_nosuid_mount(path: &Path) -> bool {
    statvfs(path).is_ok_and(|about| about.flags().contains(FsFlags::ST_NOSUID))
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: both strings are valid; size 0 asks for the attribute's length only.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

/// Returns true if this process may trace through set-id execs: it has CAP_SYS_PTRACE.
pub(crate) fn can_trace_privileged() -> bool {
    const CAP_SYS_PTRACE: u64 = 19;
    crate::procfs::status_field(std::process::id() as i32, "CapEff:")
        .and_then(|v| u64::from_str_radix(&v, 16).ok())
        .is_some_and(|caps| caps & (1 << CAP_SYS_PTRACE) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn scripts_lead_to_their_interpreter() {
        assert_eq!(interpreter(b"#! /usr/bin/env python3\nx"), Some("/usr/bin/env".into()));
        assert_eq!(interpreter(b"\x7fELF"), None);
        assert_eq!(interpreter(b"#!\n"), None);
    }

    #[test]
    fn modes_are_seen_through_a_script() {
        let dir = std::env::temp_dir().join(format!("systoll-setid-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (binary, script) = (dir.join("b"), dir.join("s"));
        std::fs::copy("/bin/true", &binary).unwrap();
        std::fs::write(&script, format!("#!{}\n", binary.display())).unwrap();
        let me = World { root: PathBuf::new(), euid: u32::MAX };
        assert_eq!(nature(&script, &me), Nature::Plain);
        std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o4755)).unwrap();
        let seen = nature(&script, &me);
        let nosuid = on_nosuid_mount(&binary);
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(nosuid || matches!(seen, Nature::Privileged(_)), "{seen:?}");
    }

    #[test]
    fn foreign_architectures_are_recognized() {
        let mut head = vec![0; 64];
        head[..5].copy_from_slice(b"\x7fELF\x01");
        head[18] = 3;
        assert_eq!(foreign(&head).as_deref(), Some("a 32-bit program"));
        head[4] = 2;
        head[18..20].copy_from_slice(&systoll_model::Machine::HERE.elf_machine().to_le_bytes());
        assert_eq!(foreign(&head), None);
        assert_eq!(foreign(b"\x7fEL"), None);
    }
}
