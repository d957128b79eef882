//! The counters syscr and syscw of /proc/PID/io: an audit of a program's calls that costs nothing.
//!
//! The condition on which the kernel counts a call, found by experiment on Linux 6.18: `read`,
//! `write`, `pread64`, `pwrite64` once descriptor, buffer and position were found good; `readv`,
//! `writev` always; `preadv`, `pwritev` unless the position is negative; `sendfile` and
//! `copy_file_range` on both sides, once there is something to do. Not counted: splice, tee,
//! vmsplice, send, recv, process_vm_readv, getdents, readlink. The kernel also counts its own reads
//! of a file being executed (2 for a static program, 5 for a dynamic one, one more for a script, 1
//! for an `execve` that fails with ENOEXEC): therefore only calls after the last exec stop are
//! compared.

use crate::counts::Counts;
use crate::errno::Errno;
use std::ops::RangeInclusive;

/// The way in which /proc/PID/io counts a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audit {
    /// `read` and `pread64` count in syscr.
    Read,
    /// `write` and `pwrite64` count in syscw.
    Write,
    /// `readv` counts in syscr, even if it fails.
    ReadV,
    /// `writev` counts in syscw, even if it fails.
    WriteV,
    /// `preadv` and `preadv2` count in syscr.
    PreadV,
    /// `pwritev` and `pwritev2` count in syscw.
    PwriteV,
    /// `sendfile` counts in syscr and syscw.
    Sendfile,
    /// `copy_file_range` counts in syscr and syscw.
    CopyFileRange,
}

/// The kernel's decision to count a call or not, once it returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditDecision {
    /// The call was counted.
    Yes,
    /// The call was not counted.
    No,
    /// The result alone does not tell if the call was counted.
    Perhaps,
}

const EBADF: Errno = Errno(9);
const EAGAIN: Errno = Errno(11);
const EFAULT: Errno = Errno(14);
const EINVAL: Errno = Errno(22);
const ESPIPE: Errno = Errno(29);
/// Errors that security modules and file locks return before the kernel counts the call, and file
/// systems afterwards.
const EACCES: Errno = Errno(13);
const EPERM: Errno = Errno(1);
const EOVERFLOW: Errno = Errno(75);

impl Audit {
    /// Returns true if the call counts in syscr.
    pub fn reads(self) -> bool {
        !matches!(self, Self::Write | Self::WriteV | Self::PwriteV)
    }

    /// Returns true if the call counts in syscw.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::ReadV | Self::PreadV)
    }

    /// Returns the kernel's decision for a successful call. A `copy_file_range` of no bytes is not
    /// counted.
    pub fn success(self) -> AuditDecision {
        if self == Self::CopyFileRange { AuditDecision::Perhaps } else { AuditDecision::Yes }
    }

    /// Returns the kernel's decision for a call that failed with `errno`.
    pub fn failure(self, errno: Errno) -> AuditDecision {
        match self {
            Self::ReadV | Self::WriteV => AuditDecision::Yes,
            Self::PreadV | Self::PwriteV if errno == EINVAL => AuditDecision::Perhaps,
            Self::PreadV | Self::PwriteV => AuditDecision::Yes,
            _ if errno == EBADF => AuditDecision::No,
            Self::Read | Self::Write if [EFAULT, EINVAL, ESPIPE, EACCES, EPERM, EOVERFLOW].contains(&errno) => {
                AuditDecision::Perhaps
            }
            Self::Read | Self::Write => AuditDecision::Yes,
            Self::Sendfile if errno == EAGAIN => AuditDecision::Yes,
            Self::Sendfile | Self::CopyFileRange => AuditDecision::Perhaps,
        }
    }

    /// Returns the least and the greatest number that these calls can have added to each counter
    /// that applies ([`Audit::reads`], [`Audit::writes`]). Reads and writes of kernel threads are
    /// not included.
    pub fn range(self, counts: &Counts) -> RangeInclusive<u64> {
        let mut low = 0u64;
        let mut high = 0u64;
        let mut add = |counted: AuditDecision, calls: u64| {
            if counted == AuditDecision::Yes {
                low = low.saturating_add(calls);
            }
            if counted != AuditDecision::No {
                high = high.saturating_add(calls);
            }
        };
        add(self.success(), counts.calls.saturating_sub(counts.failed()));
        for (errno, calls) in &counts.errors {
            add(self.failure(*errno), *calls);
        }
        add(AuditDecision::Perhaps, counts.unreturned);
        low..=high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(calls: u64, errors: &[(u16, u64)]) -> Counts {
        Counts { calls, errors: errors.iter().map(|(e, n)| (Errno(*e), *n)).collect(), ..Counts::default() }
    }

    #[test]
    fn ranges_are_as_narrow_as_the_errno_allows() {
        assert_eq!(Audit::Read.range(&counts(10, &[(9, 3), (11, 2)])), 7..=7);
        assert_eq!(Audit::Read.range(&counts(10, &[(22, 4)])), 6..=10);
        assert_eq!(Audit::ReadV.range(&counts(10, &[(9, 3)])), 10..=10);
        assert_eq!(Audit::CopyFileRange.range(&counts(10, &[(9, 3)])), 0..=7);
        assert_eq!(Audit::Sendfile.range(&counts(10, &[(11, 3)])), 10..=10);
    }
}
