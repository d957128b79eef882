//! Checks before a program runs whether it would load a preloaded library.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use systoll_files::Links;

/// The reason why a program would not load a shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreached {
    /// The program has no dynamic loader.
    #[error("is linked statically: it loads no library")]
    Static,
    /// The program gains privileges when it starts, and the loader then ignores `LD_PRELOAD`
    /// (ld.so(8)).
    #[error("runs with other rights than yours: the loader then ignores LD_PRELOAD")]
    SetId,
    /// The file is not an x86-64 program.
    #[error("is not an x86-64 program")]
    Architecture,
}

/// Largest number of interpreters that are scripts themselves, as in the kernel (`execve(2)`).
const MAX_INTERPRETERS: usize = 5;
/// Number of bytes of a script's first line that the kernel reads (`BINPRM_BUF_SIZE`).
const FIRST_LINE: usize = 256;
/// Largest number of program headers; more than any linker writes.
const MAX_HEADERS: u16 = 1024;

/// Checks the program that `command` would start. One that can't be found or read passes: running
/// it gives a better error.
///
/// # Errors
///
/// If the program would not load a preloaded library.
pub fn reached(command: &OsStr) -> Result<(), Unreached> {
    let Some(mut path) = found(command) else { return Ok(()) };
    for _ in 0..MAX_INTERPRETERS {
        let Ok((file, _)) = systoll_files::open(&path, Links::Follow) else { return Ok(()) };
        let mut start = Vec::with_capacity(FIRST_LINE);
        if (&file).take(FIRST_LINE as u64).read_to_end(&mut start).is_err() {
            return Ok(());
        }
        match interpreter(&start) {
            Some(next) => path = next,
            None => return program(&path, &file, &start),
        }
    }
    Ok(())
}

/// Finds a command as a shell does.
fn found(command: &OsStr) -> Option<PathBuf> {
    if command.as_bytes().contains(&b'/') {
        return Some(command.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let runs = |p: &PathBuf| fs::metadata(p).is_ok_and(|m| m.is_file() && m.mode() & 0o111 != 0);
    std::env::split_paths(&path).map(|dir| dir.join(command)).find(runs)
}

/// Returns the interpreter that a script's first line names.
fn interpreter(start: &[u8]) -> Option<PathBuf> {
    let line = start.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let mut words = line.split(|b| b" \t".contains(b)).filter(|w| !w.is_empty());
    words.next().map(|word| Path::new(OsStr::from_bytes(word)).to_owned())
}

/// Checks an ELF program. Offsets are from elf(5).
fn program(path: &Path, file: &File, start: &[u8]) -> Result<(), Unreached> {
    const PT_INTERP: u32 = 3;
    let Some(header) = start.first_chunk::<64>().filter(|h| h.starts_with(b"\x7fELF")) else { return Ok(()) };
    // A program that runs here has 64 bits, is little-endian, and has this machine's number (EM_X86_64, EM_AARCH64).
    let here = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    if header[4..6] != [2, 1] || header[18..20] != [here, 0] {
        return Err(Unreached::Architecture);
    }
    if gains_rights(path, file) {
        return Err(Unreached::SetId);
    }
    let word = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let (size, count) = (word(54), word(56).min(MAX_HEADERS));
    let table = header[32..40].try_into().map_or(0, u64::from_le_bytes);
    for n in 0..u64::from(count) {
        let mut kind = [0; 4];
        let at = table.checked_add(n * u64::from(size));
        if at.is_none_or(|at| file.read_exact_at(&mut kind, at).is_err()) {
            return Ok(());
        }
        if u32::from_le_bytes(kind) == PT_INTERP {
            return Ok(());
        }
    }
    Err(Unreached::Static)
}

/// Returns true if the program would start in secure mode (AT_SECURE, getauxval(3)).
fn gains_rights(path: &Path, file: &File) -> bool {
    let Ok(meta) = file.metadata() else { return false };
    // SAFETY: both take no arguments and can't fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let set_user = meta.mode() & libc::S_ISUID != 0 && meta.uid() != user;
    // Set-group-id without the group's right to execute means mandatory locking.
    let both = libc::S_ISGID | libc::S_IXGRP;
    let set_group = meta.mode() & both == both && meta.gid() != group;
    set_user || set_group || user != 0 && has_capabilities(path)
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: both strings end with a zero; with size 0 nothing is written.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn ordinary_programs_and_scripts_are_reached() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        fs::write(&script, "#! /bin/sh -e\n").unwrap();
        for command in [OsStr::new("sh"), OsStr::new("/bin/sh"), OsStr::new("no-such-program"), script.as_os_str()] {
            assert_eq!(reached(command), Ok(()), "{command:?}");
        }
    }

    #[test]
    fn unreached_programs_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        let mut elf = vec![0; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[18] = 62;
        let tell = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            reached(path.as_os_str())
        };
        assert_eq!(tell(&elf), Err(Unreached::Static));
        // A program whose headers lie beyond the file's end passes.
        elf[56] = 9;
        elf[32] = 200;
        assert_eq!(tell(&elf), Ok(()));
        elf[18] = 3;
        assert_eq!(tell(&elf), Err(Unreached::Architecture));
        assert_eq!(tell(&elf[..40]), Ok(()));
        assert_eq!(tell(b"#!"), Ok(()));
        assert_eq!(tell(format!("#!{}\n", path.display()).as_bytes()), Ok(()), "a script of itself");
    }

    #[test]
    fn a_program_with_another_owners_rights_is_not_reached() {
        let path = Path::new("/bin/su");
        let Ok(meta) = fs::metadata(path) else { return };
        // SAFETY: geteuid takes nothing and can't fail.
        let other = meta.permissions().mode() & 0o4000 != 0 && meta.uid() != unsafe { libc::geteuid() };
        assert_eq!(reached(path.as_os_str()), if other { Err(Unreached::SetId) } else { Ok(()) });
    }
}
