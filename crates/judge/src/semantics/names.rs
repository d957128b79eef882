//! Questions about a name that do not follow symbolic links, and the calls that remove a name, run it, or ask whether it
//! may be run.

use super::read::ObservedCall;
use super::vocabulary::When::{self, AllBits, AnyBits, NoBits};
use systoll_model::Sysno;
use systoll_model::constants::{AT_SYMLINK_NOFOLLOW, W_OK, X_OK};

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
const REMOVALS: [&str; 3] = ["unlink", "unlinkat", "rmdir"];

/// Returns true if the call removes a name.
pub(crate) fn removes_name(syscall: Sysno) -> bool {
    syscall.name().is_some_and(|name| REMOVALS.contains(&name))
}

/// The calls that run a program, or ask for the right to run it, with their conditions. Who asks for the right to write as
/// well means a folder.
const RUNS: [(&str, &[When]); 5] = [
    ("access", &[AllBits(1, X_OK), NoBits(1, W_OK)]),
    ("faccessat", &[AllBits(2, X_OK), NoBits(2, W_OK)]),
    ("faccessat2", &[AllBits(2, X_OK), NoBits(2, W_OK)]),
    ("execve", &[]),
    ("execveat", &[]),
];

/// Returns true if the call runs a program.
pub(crate) fn runs_program(syscall: Sysno) -> bool {
    RUNS.iter().any(|(runs, when)| when.is_empty() && syscall.name() == Some(*runs))
}

/// Returns true if the call runs a program, or asks for the right to run it.
pub(crate) fn asks_to_run(call: &ObservedCall<'_>) -> bool {
    let name = call.syscall.name();
    RUNS.iter().any(|(runs, when)| name == Some(*runs) && call.holds(when))
}
