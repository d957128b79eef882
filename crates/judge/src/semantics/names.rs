//! Questions about a name that do not follow symbolic links, and the calls that remove a name.

use super::vocabulary::When::{self, AnyBits};
use systoll_model::constants::AT_SYMLINK_NOFOLLOW;

/// A call that asks about a symbolic link itself, not about its target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoFollow {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
}

const fn no_follow(call: &'static str, when: &'static [When]) -> NoFollow {
    NoFollow { call, when }
}

/// The calls that do not follow links.
pub(crate) static NO_FOLLOWS: &[NoFollow] = &[
    no_follow("lstat", &[]),
    no_follow("readlink", &[]),
    no_follow("readlinkat", &[]),
    no_follow("lgetxattr", &[]),
    no_follow("llistxattr", &[]),
    no_follow("newfstatat", &[AnyBits(3, AT_SYMLINK_NOFOLLOW)]),
    no_follow("statx", &[AnyBits(2, AT_SYMLINK_NOFOLLOW)]),
    no_follow("faccessat2", &[AnyBits(3, AT_SYMLINK_NOFOLLOW)]),
];

/// The calls that remove a name.
pub(crate) const REMOVALS: [&str; 3] = ["unlink", "unlinkat", "rmdir"];
