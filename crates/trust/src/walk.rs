//! Checks every component of a path, each by its descriptor.

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, mkdirat};
use nix::unistd::geteuid;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

/// Links that are followed in one path, at most, as in the kernel (`path_resolution(7)`).
const MAX_LINKS: u32 = 40;
const ROOT: u32 = 0;

/// Reason why a path is not safe.
#[derive(Debug, thiserror::Error)]
pub enum Untrusted {
    /// Another user owns a component.
    #[error("{} belongs to user {owner}, who could put something else there", path.display())]
    Owner {
        /// The path up to the component.
        path: PathBuf,
        /// The user who owns the component.
        owner: u32,
    },
    /// Other users may write to a component.
    #[error("others may write to {}, and so put something else there", path.display())]
    Writable {
        /// The path up to the component.
        path: PathBuf,
    },
    /// Others may read a folder of this user's that must be private.
    #[error("others may look into {}", path.display())]
    Open {
        /// Path of the folder that others may read.
        path: PathBuf,
    },
    /// The path does not start at the root.
    #[error("{} is no absolute path", path.display())]
    Relative {
        /// The path as it was given.
        path: PathBuf,
    },
    /// A component can't be opened or created.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path up to the component.
        path: PathBuf,
        /// The error that the system returned.
        source: io::Error,
    },
}

impl From<Untrusted> for io::Error {
    fn from(why: Untrusted) -> Self {
        match why {
            Untrusted::Io { source, .. } => source,
            why => Self::other(why.to_string()),
        }
    }
}

/// Checks that no other user can redirect this path. It may lead to a folder that others write to,
/// if that is sticky.
///
/// # Errors
/// The reason, with the first component that others can change or that does not exist.
pub fn check(path: &Path) -> Result<(), Untrusted> {
    walk(path, 0).map(drop)
}

/// Opens the end of a path with O_PATH, and returns it with its state. Creates the last `make`
/// folders if they do not exist, for this user alone.
pub(crate) fn walk(path: &Path, make: usize) -> Result<(OwnedFd, FileStat), Untrusted> {
    if !path.is_absolute() {
        return Err(Untrusted::Relative { path: path.to_owned() });
    }
    let mut walk = Walk::from_root()?;
    let mut ahead: VecDeque<OsString> = components(path).collect();
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        let Some(target) = walk.enter(&name, ahead.len() < make)? else { continue };
        links += 1;
        if links > MAX_LINKS {
            return Err(walk.failed(&name, Errno::ELOOP));
        }
        let target = PathBuf::from(target);
        if target.is_absolute() {
            walk = Walk::from_root()?;
        }
        for name in components(&target).collect::<Vec<_>>().into_iter().rev() {
            ahead.push_front(name);
        }
    }
    Ok((walk.here, walk.stat))
}

fn components(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|c| match c {
        Component::Normal(name) => Some(name.to_owned()),
        // The kernel finds a folder's parent, since a link may have led here.
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

struct Walk {
    here: OwnedFd,
    stat: FileStat,
    /// Path so far, for messages only: nothing is opened by it.
    at: PathBuf,
}

impl Walk {
    fn from_root() -> Result<Self, Untrusted> {
        let at = PathBuf::from("/");
        let io = |errno: Errno| Untrusted::Io { path: at.clone(), source: errno.into() };
        let here = open("/", OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty()).map_err(io)?;
        let stat = fstat(&here).map_err(io)?;
        // The owner of `/` is not checked: in a user namespace the number may mean any user, and
        // that user owns the loader and libc of everything we run anyway. Its mode counts like that
        // of other folders.
        if is_changed_by_others(&stat) {
            return Err(Untrusted::Writable { path: at });
        }
        Ok(Self { here, stat, at })
    }

    /// Enters the next component of the path. If the component is a link, returns the link's target
    /// instead.
    fn enter(&mut self, name: &OsStr, may_make: bool) -> Result<Option<OsString>, Untrusted> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let look = || openat(&self.here, name, flags, Mode::empty());
        let found = match look() {
            Err(Errno::ENOENT) if may_make && name != ".." => match mkdirat(&self.here, name, Mode::S_IRWXU) {
                // Another systoll may have created the folder first.
                Ok(()) | Err(Errno::EEXIST) => look(),
                Err(errno) => Err(errno),
            },
            found => found,
        };
        let found = found.map_err(|errno| self.failed(name, errno))?;
        let stat = fstat(&found).map_err(|errno| self.failed(name, errno))?;
        if stat.st_uid != ROOT && stat.st_uid != geteuid().as_raw() {
            return Err(Untrusted::Owner { path: self.at.join(name), owner: stat.st_uid });
        }
        // A link has no mode of its own; only its owner, or the owner of its folder, can replace
        // it.
        if is(&stat, SFlag::S_IFLNK) {
            return readlinkat(&found, "").map(Some).map_err(|errno| self.failed(name, errno));
        }
        if is_changed_by_others(&stat) {
            return Err(Untrusted::Writable { path: self.at.join(name) });
        }
        self.at.push(name);
        (self.here, self.stat) = (found, stat);
        Ok(None)
    }

    fn failed(&self, name: &OsStr, errno: Errno) -> Untrusted {
        Untrusted::Io { path: self.at.join(name), source: errno.into() }
    }
}

/// Returns true if others can change the file, or rename entries of the folder. Rights that an
/// access list grants to single users appear in the group's rights (`acl(5)`).
fn is_changed_by_others(stat: &FileStat) -> bool {
    let sticky = is(stat, SFlag::S_IFDIR) && stat.st_mode & Mode::S_ISVTX.bits() != 0;
    stat.st_mode & 0o022 != 0 && !sticky
}

pub(crate) fn is(stat: &FileStat, kind: SFlag) -> bool {
    SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) == kind
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    const NOBODY: Option<u32> = Some(65534);

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn files_of_root_and_this_user_are_trusted() {
        let dir = tempfile::tempdir().unwrap();
        for path in [Path::new("/"), Path::new("/etc/passwd"), Path::new("/tmp"), dir.path()] {
            check(path).unwrap();
        }
        // These are links of ours, up and down through folders.
        let (deep, link) = (dir.path().join("a/b"), dir.path().join("link"));
        fs::create_dir_all(&deep).unwrap();
        symlink("a/./b/../b", &link).unwrap();
        check(&link).unwrap();
        symlink(&link, deep.join("back")).unwrap();
        check(&deep.join("back/../../link")).unwrap();
    }

    #[test]
    fn missing_files_and_circular_links_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let ring = dir.path().join("ring");
        symlink("ring", &ring).unwrap();
        for (path, errno) in [(ring, Errno::ELOOP), (dir.path().join("no"), Errno::ENOENT)] {
            match check(&path) {
                Err(Untrusted::Io { source, .. }) => assert_eq!(source.raw_os_error(), Some(errno as i32), "{path:?}"),
                other => panic!("{path:?}: {other:?}"),
            }
        }
        assert!(matches!(check(Path::new("etc/passwd")), Err(Untrusted::Relative { .. })));
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(check(&dir.path().join("file/below")).is_err());
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (above, below) = (dir.path().join("above"), dir.path().join("above/below"));
        fs::create_dir_all(&below).unwrap();
        for bits in [0o770, 0o707, 0o777, 0o2775] {
            mode(&above, bits);
            match check(&below) {
                Err(Untrusted::Writable { path }) => assert_eq!(path, above, "{bits:o}"),
                other => panic!("{bits:o}: {other:?}"),
            }
        }
        // In a sticky folder, our files stay ours.
        for bits in [0o1777, 0o755, 0o750, 0o700] {
            mode(&above, bits);
            check(&below).unwrap_or_else(|why| panic!("{bits:o}: {why}"));
        }
        let file = below.join("file");
        fs::write(&file, "").unwrap();
        mode(&file, 0o664);
        assert!(matches!(check(&file), Err(Untrusted::Writable { .. })), "sticky means nothing on a file");
    }

    #[test]
    fn a_component_of_another_user_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (theirs, ours) = (dir.path().join("theirs"), dir.path().join("theirs/ours"));
        fs::create_dir_all(&ours).unwrap();
        if chown(&theirs, NOBODY, NOBODY).is_err() {
            return; // Only root can give folders away.
        }
        let refused = |path: &Path| match check(path) {
            Err(Untrusted::Owner { path, owner }) => {
                assert_eq!(owner, 65534);
                path
            }
            other => panic!("{path:?}: {other:?}"),
        };
        assert_eq!(refused(&ours), theirs);
        // Another user's link may lead elsewhere later; a link of ours may lead through theirs.
        let (their_link, our_link) = (dir.path().join("their-link"), dir.path().join("our-link"));
        symlink("/etc", &their_link).unwrap();
        std::os::unix::fs::lchown(&their_link, NOBODY, NOBODY).unwrap();
        symlink("theirs/ours", &our_link).unwrap();
        assert_eq!(refused(&their_link.join("passwd")), their_link);
        assert_eq!(refused(&our_link), theirs);
    }

    #[test]
    fn only_the_last_components_are_made() {
        let dir = tempfile::tempdir().unwrap();
        walk(&dir.path().join("a/b"), 2).unwrap();
        assert_eq!(fs::metadata(dir.path().join("a")).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(walk(&dir.path().join("x/y"), 1).is_err());
        assert!(!dir.path().join("x").exists());
    }
}
