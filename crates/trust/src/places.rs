//! Finds the user's folders by the environment.

use crate::{Folder, Untrusted, check};
use nix::unistd::geteuid;
use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

/// Returns the user's folder of caches: `$XDG_CACHE_HOME`, or `~/.cache` (XDG Base Directory
/// Specification 0.8). Returns `None` if neither variable is set. Does not check the folder.
#[must_use]
pub fn cache() -> Option<PathBuf> {
    place(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"), ".cache")
}

/// Returns the user's folder of permanent data: `$XDG_DATA_HOME`, or `~/.local/share`. Does not
/// check the folder.
#[must_use]
pub fn data() -> Option<PathBuf> {
    place(std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME"), ".local/share")
}

fn place(xdg: Option<OsString>, home: Option<OsString>, below: &str) -> Option<PathBuf> {
    absolute(xdg).or_else(|| absolute(home).map(|home| home.join(below)))
}

/// Returns an absolute path, and ignores a relative one, as the specification demands.
fn absolute(path: Option<OsString>) -> Option<PathBuf> {
    path.map(PathBuf::from).filter(|p| p.is_absolute())
}

/// Returns the folder of temporary files, `$TMPDIR` or `/tmp`, in which no other user can replace
/// this user's files.
///
/// # Errors
/// If neither is safe, the reason for `/tmp`.
pub fn temporary() -> Result<PathBuf, Untrusted> {
    of_temporaries(|path| check(path).map(|()| path.to_owned()))
}

/// Tries the folders of temporary files one after the other. Returns the first result.
fn of_temporaries<T>(try_one: impl Fn(&Path) -> Result<T, Untrusted>) -> Result<T, Untrusted> {
    match absolute(std::env::var_os("TMPDIR")).map(|path| try_one(&path)) {
        Some(Ok(first)) => Ok(first),
        _ => try_one(Path::new("/tmp")),
    }
}

/// Returns the folder `names` below one of this user's own among the temporary files. The folder
/// stays, and the next run finds it again. If another user has taken its name, it gets a random
/// one.
///
/// # Errors
/// If no folder of temporary files is usable.
pub fn own_temporary(names: &[&str]) -> Result<Folder, Untrusted> {
    of_temporaries(|base| own_below(base, names))
}

fn own_below(base: &Path, names: &[&str]) -> Result<Folder, Untrusted> {
    check(base)?;
    let user = geteuid().to_string();
    let known = format!("systoll-{user}");
    let random = format!("systoll-{user}-{:016x}", RandomState::new().hash_one(&known));
    let below = |name: &str| Folder::below(base, &[&[name], names].concat());
    below(&known).or_else(|why| match why {
        Untrusted::Owner { .. } | Untrusted::Open { .. } => below(&random),
        // The name belongs to a file or link of another user.
        Untrusted::Io { ref source, .. } if !is_full(source) => below(&random),
        why => Err(why),
    })
}

fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn the_environment_says_where() {
        let at = |xdg: Option<&str>, home: Option<&str>| place(xdg.map(Into::into), home.map(Into::into), ".cache");
        assert_eq!(at(Some("/x"), Some("/h")).as_deref(), Some(Path::new("/x")));
        assert_eq!(at(None, Some("/h")).as_deref(), Some(Path::new("/h/.cache")));
        assert_eq!(at(Some(""), Some("/h")).as_deref(), Some(Path::new("/h/.cache")));
        assert_eq!(at(Some("x"), None), None);
        assert_eq!(at(None, Some("h")), None);
    }

    #[test]
    fn a_taken_name_is_left_to_its_owner() {
        let tmp = tempfile::tempdir().unwrap();
        fs::set_permissions(tmp.path(), Permissions::from_mode(0o1777)).unwrap();
        let taken = tmp.path().join(format!("systoll-{}", geteuid()));
        assert_eq!(own_below(tmp.path(), &["x"]).unwrap().path(), taken.join("x"));
        assert_eq!(own_below(tmp.path(), &["x"]).unwrap().path(), taken.join("x"), "found again");
        let elsewhere = || {
            let folder = own_below(tmp.path(), &["x"]).unwrap();
            assert!(!folder.path().starts_with(&taken) && folder.path().starts_with(tmp.path()), "{folder:?}");
            check(folder.path()).unwrap();
        };
        fs::set_permissions(&taken, Permissions::from_mode(0o770)).unwrap();
        elsewhere();
        fs::remove_dir_all(&taken).unwrap();
        symlink("/etc", &taken).unwrap();
        elsewhere();
        fs::remove_file(&taken).unwrap();
        fs::write(&taken, "").unwrap();
        elsewhere();
        // The attack: another user creates the folder first.
        fs::remove_file(&taken).unwrap();
        fs::create_dir_all(taken.join("x")).unwrap();
        if chown(&taken, Some(65534), Some(65534)).is_ok() {
            elsewhere();
        }
        fs::set_permissions(tmp.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(own_below(tmp.path(), &["x"]).is_err(), "no sticky bit: others rename what is ours");
    }
}
