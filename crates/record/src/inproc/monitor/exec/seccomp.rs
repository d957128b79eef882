//! Finds out which calls are allowed by the seccomp filter under which systoll itself runs, as all processes of a
//! container do.
//!
//! The programs that it starts inherit the filter, so they may do whatever a child of ours may do: the calls that our
//! code makes in a program are tried once, before anything is watched.

use crate::inproc::monitor::exec::confinement::{Filters, filters_in, levels, own, status};
use crate::inproc::monitor::shared::memory::NOT_MAPPED;
use crate::inproc::monitor::sys;
use std::ffi::CString;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::OnceLock;

/// The seccomp filters of this process, by their effect on our code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Inherited {
    /// There is no filter.
    Nothing,
    /// This number of filters, which allow our code.
    Harmless(u32),
    /// This number of filters, which forbid calls of our code, and a text about their effect.
    Hostile(u32, &'static str),
    /// There is a filter, but we can't tell if another process has exactly the same: kernels before 5.9 do not tell the
    /// number of filters.
    Unknown,
}

/// Returns the filters that this process has inherited. The first call tries them out.
pub(crate) fn inherited() -> &'static Inherited {
    static INHERITED: OnceLock<Inherited> = OnceLock::new();
    INHERITED.get_or_init(|| match own().filters {
        Filters::None => Inherited::Nothing,
        Filters::Strict | Filters::Uncounted => Inherited::Unknown,
        Filters::Some(n) => trial().map_or(Inherited::Harmless(n), |why| Inherited::Hostile(n, why)),
    })
}

/// Returns true if this process may probably read other processes' filters: it is root's, under no filter itself.
pub(crate) fn may_read_filters() -> bool {
    *inherited() == Inherited::Nothing && nix::unistd::geteuid().is_root()
}

/// Returns true if the filters of this process allow code to be overwritten, which many forbid.
pub(crate) fn may_write_code() -> bool {
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(|| match inherited() {
        Inherited::Nothing => true,
        Inherited::Harmless(_) => matches!(sys::in_child(makes_writable), sys::Ended::Code(0)),
        Inherited::Hostile(..) | Inherited::Unknown => false,
    })
}

/// Returns true if the filters of this process allow threads to register an rseq area: filters older than rseq may kill
/// the thread.
pub(crate) fn may_register() -> bool {
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(|| match inherited() {
        Inherited::Nothing => true,
        Inherited::Harmless(_) => matches!(sys::in_child(asks_for_no_area), sys::Ended::Code(0)),
        Inherited::Hostile(..) | Inherited::Unknown => false,
    })
}

/// Returns true if the filters of this process allow the calls by which threads copy the memory of a call's arguments
/// and read the names of descriptors.
pub(crate) fn may_copy() -> bool {
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(|| match inherited() {
        Inherited::Nothing => true,
        Inherited::Harmless(_) => matches!(sys::in_child(copies), sys::Ended::Code(0)),
        Inherited::Hostile(..) | Inherited::Unknown => false,
    })
}

/// Makes the calls of a thread that writes a window, by raw system calls. Returns true if all succeeded.
fn copies() -> bool {
    // A value that `rt_sigprocmask` refuses as a way to change the mask.
    const NONE: u64 = 99;
    let (bytes, mut copy, mut usage) = ([7u64; 2], [0u64; 2], [0u64; 18]);
    let there = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: 16 };
    let here = libc::iovec { iov_base: copy.as_mut_ptr().cast(), iov_len: 16 };
    let (from, to) = ((&raw const there) as u64, (&raw const here) as u64);
    let me = sys::raw(libc::SYS_getpid, [0; 6]) as u64;
    let folder = c"/proc/thread-self/fd/0".as_ptr() as u64;
    sys::raw(libc::SYS_rt_sigprocmask, [NONE, bytes.as_ptr() as u64, 0, 8, 0, 0]) == i64::from(-libc::EINVAL)
        && sys::raw(libc::SYS_process_vm_readv, [me, to, 1, from, 1, 0]) == 16
        && sys::raw(libc::SYS_getrusage, [libc::RUSAGE_THREAD as u64, usage.as_mut_ptr() as u64, 0, 0, 0, 0]) == 0
        // The link may name any file, or be missing; only a refusal counts.
        && sys::raw(libc::SYS_readlink, [folder, copy.as_mut_ptr() as u64, 16, 0, 0, 0]) != i64::from(-libc::EPERM)
}

/// Unregisters an area that does not exist, by a raw system call. Returns true if the kernel says so.
fn asks_for_no_area() -> bool {
    sys::raw(libc::SYS_rseq, [0, 32, 1, 0, 0, 0]) == i64::from(-libc::EINVAL)
}

/// Maps a page as code, makes it writable and takes that back, by raw system calls. Returns true if all succeeded.
fn makes_writable() -> bool {
    let (code, open) = ((libc::PROT_READ | libc::PROT_EXEC) as u64, libc::PROT_WRITE as u64);
    sys::raw(libc::SYS_mmap, [CODE, SIZE, code, ALONE, u64::MAX, 0]) == CODE as i64
        && sys::raw(libc::SYS_mprotect, [CODE, SIZE, code | open, 0, 0, 0]) == 0
        // The result doesn't matter: without permission, our code does without this call.
        && sys::raw(libc::SYS_madvise, [CODE, SIZE, libc::MADV_POPULATE_WRITE as u64, 0, 0, 0]) <= 0
        && sys::raw(libc::SYS_mprotect, [CODE, SIZE, code, 0, 0, 0]) == 0
}

/// Returns the reason why a process with these filters can't be watched from inside; `None` if it can.
fn obstacle_of(filters: Filters, inherited: &Inherited) -> Option<String> {
    match (filters, inherited) {
        (Filters::None, _) => None,
        // Filters are only ever added: a process with as many as we have has the same ones.
        (Filters::Some(n), Inherited::Harmless(ours)) if n == *ours => None,
        (Filters::Some(n), Inherited::Hostile(ours, why)) if n == *ours => {
            Some(format!("the seccomp filter we all live under {why}"))
        }
        _ => Some("a seccomp filter of its maker's watches over it".into()),
    }
}

/// Returns the reason why a process can't be watched from inside, according to /proc; `None` if it can.
pub(crate) fn obstacle(pid: i32) -> Option<String> {
    let status = status(&pid.to_string());
    if let Some(why) = obstacle_of(filters_in(&status), inherited()) {
        return Some(why);
    }
    if levels(&status) > own().levels {
        return Some("it lives in another PID namespace".into());
    }
    None
}

/// Returns true if a process lives in our PID namespace.
pub(crate) fn is_in_our_namespace(pid: i32) -> bool {
    levels(&status(&pid.to_string())) <= own().levels
}

/// Makes, in a child, every call that our code makes in a program, but without its effect. Returns a text about the
/// call that failed; `None` if none did.
fn trial() -> Option<&'static str> {
    let Ok(file) = sys::memory_file(SIZE) else { return Some("lets us share no memory") };
    if !sys::reads_memory() {
        return Some("lets us read no memory of others");
    }
    let path = CString::new(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())).ok()?;
    match sys::in_child(|| calls(&path, file.as_raw_fd())) {
        sys::Ended::Code(0) => None,
        sys::Ended::Code(_) => Some("denies what watching from inside needs"),
        sys::Ended::Killed => Some("kills who does what watching from inside needs"),
        sys::Ended::Unknown => Some("lets us try nothing out"),
    }
}

/// Size of the file that the trial maps, bytes.
const SIZE: u64 = 1 << 20;
/// Addresses that are free in this process: for data, for code, and for the code mapped a second time.
const DATA: u64 = 0x2f00_0000_0000;
const CODE: u64 = DATA + SIZE;
const NEAR: u64 = CODE + SIZE;
/// Flags for mapping memory that belongs to the child only.
const ALONE: u64 = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE) as u64;

/// Makes the calls of our code, one after the other. Makes no others, since it runs in a forked child. Returns true if
/// all succeeded.
fn calls(path: &CString, known: RawFd) -> bool {
    let made = |number: libc::c_long, args: [u64; 6]| sys::raw(number, args);
    let fd = made(libc::SYS_open, [path.as_ptr() as u64, (libc::O_RDWR | libc::O_CLOEXEC) as u64, 0, 0, 0, 0]);
    let shared = (libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE) as u64;
    let (data, code) = ((libc::PROT_READ | libc::PROT_WRITE) as u64, (libc::PROT_READ | libc::PROT_EXEC) as u64);
    let again = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64;
    let limit = libc::timespec { tv_sec: 0, tv_nsec: 1 };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // A filter may check flags and protections, so they are the same as in a program.
    fd >= 0
        && fd != i64::from(known)
        && made(libc::SYS_mmap, [DATA, SIZE, data, shared, fd as u64, 0]) == DATA as i64
        && made(libc::SYS_mmap, [CODE, SIZE, code, shared, fd as u64, 0]) == CODE as i64
        && made(libc::SYS_madvise, [DATA, SIZE, libc::MADV_DONTDUMP as u64, 0, 0, 0]) == 0
        && made(libc::SYS_pwrite64, [fd as u64, (&raw const limit) as u64, 8, 0, 0, 0]) == 8
        && made(libc::SYS_close, [fd as u64, 0, 0, 0, 0, 0]) == 0
        && made(libc::SYS_chmod, [path.as_ptr() as u64, NOT_MAPPED.into(), 0, 0, 0, 0]) == 0
        && made(libc::SYS_mmap, [NEAR, SIZE, 0, ALONE, u64::MAX, 0]) == NEAR as i64
        && made(libc::SYS_mremap, [CODE, 0, SIZE, again, NEAR, 0]) == NEAR as i64
        && made(libc::SYS_gettid, [0; 6]) > 0
        && made(libc::SYS_getpid, [0; 6]) > 0
        && made(libc::SYS_sched_yield, [0; 6]) == 0
        && made(libc::SYS_futex, [DATA, libc::FUTEX_WAKE as u64, 1, 0, 0, 0]) == 0
        && made(libc::SYS_futex, [DATA, libc::FUTEX_WAIT as u64, 0, (&raw const limit) as u64, 0, 0])
            == i64::from(-libc::ETIMEDOUT)
        && made(libc::SYS_clock_gettime, [libc::CLOCK_PROCESS_CPUTIME_ID as u64, (&raw mut time) as u64, 0, 0, 0, 0])
            == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_filters_we_have_tried_are_trusted() {
        let passes = |filters, inherited| obstacle_of(filters, &inherited).is_none();
        assert!(passes(Filters::None, Inherited::Nothing) && passes(Filters::None, Inherited::Harmless(1)));
        assert!(passes(Filters::Some(2), Inherited::Harmless(2)));
        assert!(!passes(Filters::Some(3), Inherited::Harmless(2)) && !passes(Filters::Some(1), Inherited::Nothing));
        assert!(
            !passes(Filters::Some(2), Inherited::Hostile(2, "says no")) && !passes(Filters::Strict, Inherited::Unknown)
        );
        assert!(!passes(Filters::Uncounted, Inherited::Unknown));
    }

    #[test]
    fn what_our_code_does_can_be_done() {
        assert_eq!(trial(), None);
        assert!(may_register());
    }
}
