//! Classifies calls that need special treatment, by number.

use super::{faults_served, own_memory, stack_bounds};
use crate::numbers::{
    ARCH_PRCTL, CAPSET, CHROOT, CLONE, CLONE3, EXECVE, EXECVEAT, EXIT, EXIT_GROUP, FORK, LANDLOCK_RESTRICT_SELF,
    MLOCKALL, MMAP, MPROTECT, PIVOT_ROOT, PKEY_MPROTECT, PRCTL, RSEQ, SECCOMP, SETFSGID, SETFSUID, SETGID, SETGROUPS,
    SETNS, SETREGID, SETRESGID, SETRESUID, SETREUID, SETUID, UNSHARE, VFORK,
};

/// Returns true if the call returns twice.
pub(super) fn clones(number: u32) -> bool {
    matches!(number, CLONE | FORK | VFORK | CLONE3)
}

/// Returns true if the call may make memory executable.
pub(super) fn brings_code(number: u32) -> bool {
    matches!(number, MMAP | MPROTECT | PKEY_MPROTECT)
}

/// Returns true if the call, on success, continues in another program.
pub(super) fn execs(number: u32) -> bool {
    matches!(number, EXECVE | EXECVEAT)
}

/// Returns true if the call may change its process's rights: its user, groups, capabilities, namespaces, root, or
/// confinement. Calls that only affect a later `execve` are not included.
pub(super) fn changes_identity(number: u32) -> bool {
    matches!(number, SETUID | SETREUID | SETRESUID | SETFSUID | CAPSET | UNSHARE | SETNS | CHROOT | PIVOT_ROOT)
        || matches!(number, SETGID | SETREGID | SETRESGID | SETFSGID | SETGROUPS | LANDLOCK_RESTRICT_SELF)
}

/// Returns true if a call of this number needs more than counting at a site that makes calls of any number: the bytes
/// of [`image::HEEDED`].
pub fn is_heeded(number: u32) -> bool {
    clones(number)
        || brings_code(number)
        || execs(number)
        || may_end_watching(number)
        || changes_identity(number)
        || own_memory::may_touch(number)
        || stack_bounds::takes_away(number)
        || faults_served::opens(number)
        || matches!(number, EXIT | EXIT_GROUP | RSEQ)
}

/// Returns true if a call of this number is examined before it is made, because it may take from the thread what
/// hooks need, or allocate all of their memory.
pub(super) fn may_end_watching(number: u32) -> bool {
    matches!(number, ARCH_PRCTL | PRCTL | SECCOMP | MLOCKALL)
}
