//! The calls that remove a name, run it, or ask whether it may be run.

use super::read::ObservedCall;
use super::vocabulary::When::{self, AllBits, NoBits};
use systoll_model::Sysno;
use systoll_model::constants::{W_OK, X_OK};

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
