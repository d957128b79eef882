//! Shims: libraries of ours that a program loads before its C library (`LD_PRELOAD`).
//!
//! Each changes only the functions it defines. A library must outlive its run, and our descriptors
//! must not reach the program, so it is a file in the user's cache. The loader finds it by a path
//! that no other user can redirect (`systoll-trust`).

use crate::CureError;
use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use systoll_trust::{Folder, Untrusted};

/// A library to preload.
#[derive(Debug, PartialEq, Eq)]
pub struct Shim {
    name: &'static str,
    bytes: &'static [u8],
}

/// Name of the shims' folder below systoll's own.
const SHIMS_FOLDER: &str = "shims";

/// The shims that the build script built.
const SHIMS: &[Shim] = include!(concat!(env!("OUT_DIR"), "/shims.rs"));

impl Shim {
    /// Returns the shim with this name in causes' files.
    pub fn named(name: &str) -> Option<&'static Self> {
        SHIMS.iter().find(|s| s.name == name)
    }

    /// Returns all shims, by name.
    pub fn all() -> &'static [Self] {
        SHIMS
    }

    /// Returns the shim's name in causes' files.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the name of the shim's file if a user keeps it.
    pub fn file_name(&self) -> String {
        format!("libsystoll-{}.so", self.name)
    }

    /// Writes the shim into `dir`, readable for every user. Returns its path.
    ///
    /// # Errors
    ///
    /// If it can't be written there, or other users could replace it.
    pub fn export(&self, dir: &Path) -> Result<PathBuf, CureError> {
        let path = dir.join(self.file_name());
        let refused = |why: Untrusted| CureError::Write { path: path.clone(), source: io::Error::other(why) };
        let whole = dir.canonicalize().map_err(|source| CureError::Write { path: path.clone(), source })?;
        // Anyone who can replace it would get their code loaded.
        systoll_trust::check(&whole).map_err(refused)?;
        place(self.bytes, dir, &path).map_err(|source| CureError::Write { path: path.clone(), source })?;
        Ok(path)
    }

    /// Returns the path of a file that holds the shim, and writes the file if there is none: in the
    /// user's cache, else in a folder of the user's own among the temporary files. No other user
    /// can have written or can replace it.
    ///
    /// # Errors
    ///
    /// The last folder's reason, if none will do.
    pub fn at_hand(&self) -> Result<PathBuf, CureError> {
        let cached = || systoll_trust::cache().map(|base| Folder::below(&base, &["systoll", SHIMS_FOLDER]));
        let temporary = || Some(systoll_trust::own_temporary(&[SHIMS_FOLDER]));
        let folders: [&dyn Fn() -> Option<Result<Folder, Untrusted>>; 2] = [&cached, &temporary];
        let tried = folders.iter().filter_map(|folder| folder()).map(|folder| match folder {
            Ok(folder) => self.in_folder(&folder).map_err(|source| (folder.path().join(self.file_name()), source)),
            Err(why) => Err((self.file_name().into(), io::Error::other(why))),
        });
        let mut last = None;
        for tried in tried {
            match tried {
                Ok(path) => return Ok(path),
                Err((path, source)) => last = Some(CureError::Write { path, source }),
            }
        }
        let nowhere = || io::Error::new(io::ErrorKind::NotFound, "no folder to write to");
        Err(last.unwrap_or_else(|| CureError::Write { path: self.file_name().into(), source: nowhere() }))
    }

    fn in_folder(&self, folder: &Folder) -> io::Result<PathBuf> {
        let name = format!("libsystoll-{}-{:016x}.so", self.name, hash(self.bytes));
        let path = folder.path().join(&name);
        if path.as_os_str().as_bytes().iter().any(|b| b" :".contains(b) || b.is_ascii_whitespace()) {
            return Err(io::Error::other("LD_PRELOAD can't hold a path with a blank or a colon"));
        }
        if folder.forbids_code() {
            return Err(io::Error::other("programs may not be run from there (noexec)"));
        }
        // One byte more reveals a longer file.
        if folder.read(&name, self.bytes.len() as u64 + 1).is_none_or(|found| found != self.bytes) {
            folder.write(&name, &[self.bytes])?;
        }
        Ok(path)
    }
}

/// Returns the value of `LD_PRELOAD` that loads `libraries` first, then the others.
pub fn preload<'a>(libraries: impl IntoIterator<Item = &'a OsStr>, others: Option<&'a OsStr>) -> OsString {
    let all: Vec<&OsStr> = libraries.into_iter().chain(others.filter(|o| !o.is_empty())).collect();
    all.join(OsStr::new(":"))
}

/// Writes a file beside its place and moves it there: a program that starts meanwhile loads all of
/// the new or all of the old file.
fn place(bytes: &[u8], dir: &Path, path: &Path) -> io::Result<()> {
    let readable = Permissions::from_mode(0o755);
    let mut file = tempfile::Builder::new().prefix(".systoll-").permissions(readable.clone()).tempfile_in(dir)?;
    file.write_all(bytes)?;
    // The umask has changed the mode given at creation.
    file.as_file().set_permissions(readable)?;
    file.persist(path).map(drop).map_err(|e| e.error)
}

/// Returns the FNV-1a hash, which distinguishes versions; contents are compared in full.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::mem::offset_of;
    use std::os::unix::fs::MetadataExt;

    /// The numbers in context.S are offsets in glibc's struct.
    #[test]
    fn the_places_in_a_context_are_glibcs() {
        let source = include_str!("../shim/context.S");
        let place = |name: &str| -> usize {
            let line = source.lines().find(|l| l.split_whitespace().nth(1) == Some(name));
            line.and_then(|l| l.split_whitespace().nth(2)).unwrap().parse().unwrap()
        };
        let registers = offset_of!(libc::ucontext_t, uc_mcontext) + offset_of!(libc::mcontext_t, gregs);
        let register = |index: libc::c_int| registers + 8 * usize::try_from(index).unwrap();
        for (name, at) in [
            ("uc_link", offset_of!(libc::ucontext_t, uc_link)),
            ("uc_r8", register(libc::REG_R8)),
            ("uc_r9", register(libc::REG_R9)),
            ("uc_r12", register(libc::REG_R12)),
            ("uc_r13", register(libc::REG_R13)),
            ("uc_r14", register(libc::REG_R14)),
            ("uc_r15", register(libc::REG_R15)),
            ("uc_rdi", register(libc::REG_RDI)),
            ("uc_rsi", register(libc::REG_RSI)),
            ("uc_rbp", register(libc::REG_RBP)),
            ("uc_rbx", register(libc::REG_RBX)),
            ("uc_rdx", register(libc::REG_RDX)),
            ("uc_rcx", register(libc::REG_RCX)),
            ("uc_rsp", register(libc::REG_RSP)),
            ("uc_rip", register(libc::REG_RIP)),
            ("uc_oldmask", register(libc::REG_OLDMASK)),
            ("uc_cr2", register(libc::REG_CR2)),
            ("uc_fpregs", offset_of!(libc::ucontext_t, uc_mcontext) + offset_of!(libc::mcontext_t, fpregs)),
            ("uc_sigmask", offset_of!(libc::ucontext_t, uc_sigmask)),
        ] {
            assert_eq!(place(name), at, "{name}");
        }
        assert_eq!(place("uc_fpregs_mem"), place("uc_sigmask") + size_of::<libc::sigset_t>());
        assert_eq!(place("uc_mxcsr"), place("uc_fpregs_mem") + offset_of!(libc::_libc_fpstate, mxcsr));
    }

    #[test]
    fn a_library_is_written_once_and_again_where_it_was_changed() {
        let home = tempfile::tempdir().unwrap();
        let shim = Shim { name: "x", bytes: b"a library" };
        let folder = Folder::below(home.path(), &["shims"]).unwrap();
        let written = || shim.in_folder(&folder).unwrap();
        let path = written();
        let first = fs::metadata(&path).unwrap();
        assert_eq!(first.mode() & 0o777, 0o600);
        assert_eq!((written(), fs::metadata(&path).unwrap().ino()), (path.clone(), first.ino()), "written twice");
        for other in ["another library", "a library, longer", "a", ""] {
            fs::write(&path, other).unwrap();
            assert_eq!(fs::read(written()).unwrap(), b"a library");
        }
        // Another user's link there is not followed.
        let elsewhere = home.path().join("elsewhere");
        fs::write(&elsewhere, "a library").unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert!(fs::symlink_metadata(written()).unwrap().is_file());
        assert_eq!(fs::read(&elsewhere).unwrap(), b"a library");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "leftovers");
    }

    #[test]
    fn a_path_that_ld_preload_cant_hold_is_not_used() {
        let home = tempfile::tempdir().unwrap();
        let shim = Shim { name: "x", bytes: b"a library" };
        for name in ["a b", "a:b"] {
            assert!(shim.in_folder(&Folder::below(home.path(), &[name]).unwrap()).is_err());
        }
    }

    #[test]
    fn existing_preloads_are_kept() {
        let value = |others: Option<&str>| preload(["/a.so", "/b.so"].map(OsStr::new), others.map(OsStr::new));
        assert_eq!(value(None), "/a.so:/b.so");
        assert_eq!(value(Some("")), "/a.so:/b.so");
        assert_eq!(value(Some("c.so d.so")), "/a.so:/b.so:c.so d.so");
    }
}
