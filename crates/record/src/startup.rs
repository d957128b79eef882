//! What systoll itself was started with, noted before Rust's own start-up changes it.
//!
//! Rust ignores SIGPIPE and opens /dev/null on closed standard descriptors before `main`;
//! a watched program must see neither.

use std::sync::atomic::{AtomicU8, Ordering};

static SIGPIPE_IGNORED: AtomicU8 = AtomicU8::new(0);
static CLOSED_FDS: AtomicU8 = AtomicU8::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    // SAFETY: a zeroed sigaction is valid to be written to; sigaction with no new action and
    // fcntl(F_GETFD) only read state of this process. Nothing here needs Rust's run-time.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut old) == 0 && old.sa_sigaction == libc::SIG_IGN {
            SIGPIPE_IGNORED.store(1, Ordering::Relaxed);
        }
        for fd in 0..3 {
            if libc::fcntl(fd, libc::F_GETFD) == -1 {
                CLOSED_FDS.fetch_or(1 << fd, Ordering::Relaxed);
            }
        }
    }
}

/// Has this process keep what memory it has: files are read, looked at and dropped by the megabyte, and
/// by default each is mapped, faulted in page by page, and unmapped again (mallopt(3)).
pub fn keep_memory() {
    const MAPPED: libc::c_int = 32 << 20;
    const AT_A_TIME: libc::c_int = 4 << 20;
    for (what, bytes) in
        [(libc::M_MMAP_THRESHOLD, MAPPED), (libc::M_TRIM_THRESHOLD, 4 * MAPPED), (libc::M_TOP_PAD, AT_A_TIME)]
    {
        // SAFETY: sets a parameter of the C library's allocator; called before there is a second thread.
        unsafe { libc::mallopt(what, bytes) };
    }
}

/// Whether systoll was started with SIGPIPE ignored.
pub(crate) fn sigpipe_was_ignored() -> bool {
    SIGPIPE_IGNORED.load(Ordering::Relaxed) != 0
}

/// Whether standard descriptor `fd` (0 to 2) was closed when systoll started.
pub fn was_closed(fd: i32) -> bool {
    (0..3).contains(&fd) && CLOSED_FDS.load(Ordering::Relaxed) & (1 << fd) != 0
}

/// Ends this process by `signal`, as a program that died of it has, without a second core dump.
/// Returns where the signal's default action does not end a process.
pub fn end_by_signal(signal: i32) {
    // SAFETY: plain calls on this process; the set is initialised before it is used.
    unsafe {
        let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &no_core);
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::raise(signal);
    }
}
