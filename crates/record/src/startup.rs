//! Notes the state with which systoll was started, before Rust's own start-up changes it.
//!
//! Before `main`, Rust ignores SIGPIPE and opens /dev/null on closed standard descriptors; a watched program must see
//! neither.

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

/// Bytes of data (`ulimit -d`) that the C library's start-up needs beside the program's: it survived with 650 KiB and
/// died of a failed allocation with 600.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
const LEAST_DATA: u64 = 1 << 20;

// Entry point of the statically linked command (`systoll/build.rs` names it to the linker). It prints a reason in the
// two cases in which the C library's start-up would die silently: too little memory (with less than the program's own
// data, half a megabyte, the kernel ends it before its first instruction), and a seccomp filter that kills callers of
// readlink, which a child tries if there is a filter. `_start` reads rsp and rdx, which is zero in a statically linked
// program.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
core::arch::global_asm!(
    ".pushsection .text.systoll_start, \"ax\", @progbits",
    ".globl systoll_start",
    ".type systoll_start, @function",
    "systoll_start:",
    // Call prlimit64(0, RLIMIT_DATA, NULL, rsp - 16).
    "mov eax, {prlimit}; xor edi, edi; mov esi, {data}; xor edx, edx; lea r10, [rsp - 16]; syscall",
    "test eax, eax; jne 2f; cmp qword ptr [rsp - 16], {least}; jae 2f",
    "lea rsi, [rip + 7f]; lea rdx, [rip + 8f]; jmp 6f",
    // Call prctl(PR_GET_SECCOMP).
    "2: mov eax, {prctl}; mov edi, {get_seccomp}; syscall; test eax, eax; je 5f",
    // Call clone(SIGCHLD, NULL, NULL, NULL, 0).
    "mov eax, {clone}; mov edi, {child}; xor esi, esi; xor edx, edx; xor r10d, r10d; xor r8d, r8d; syscall",
    "test eax, eax; js 5f; jne 3f",
    // The child calls readlink(NULL, NULL, 0) and exit_group(0).
    "mov eax, {readlink}; xor edi, edi; xor esi, esi; xor edx, edx; syscall",
    "xor edi, edi; mov eax, {exit}; syscall",
    // Call wait4(pid, rsp - 16, 0, NULL), again whenever a signal cuts it short.
    "3: mov r9d, eax",
    "4: mov edi, r9d; mov eax, {wait4}; lea rsi, [rsp - 16]; xor edx, edx; xor r10d, r10d; syscall; cmp eax, -{eintr}; je 4b",
    "test eax, eax; js 5f; mov eax, dword ptr [rsp - 16]; and eax, 0x7f; cmp eax, {sigsys}; jne 5f",
    "lea rsi, [rip + 8f]; lea rdx, [rip + 9f]; jmp 6f",
    "5: xor edx, edx; jmp _start",
    // Call write(2, text, length) and exit_group(125).
    "6: sub edx, esi; mov eax, {write}; mov edi, 2; syscall",
    "mov edi, {own}; mov eax, {exit}; syscall",
    "7: .ascii \"systoll: too little memory for data (ulimit -d): systoll takes 1 MiB to begin, and some to watch\\n\"",
    "8: .ascii \"systoll: a seccomp filter that systoll was started under kills who calls readlink, without which it\"",
    ".ascii \" can't begin: run it outside of that sandbox\\n\"",
    "9: .size systoll_start, . - systoll_start",
    ".popsection",
    prlimit = const libc::SYS_prlimit64,
    data = const libc::RLIMIT_DATA,
    least = const LEAST_DATA,
    prctl = const libc::SYS_prctl,
    get_seccomp = const libc::PR_GET_SECCOMP,
    clone = const libc::SYS_clone,
    child = const libc::SIGCHLD,
    readlink = const libc::SYS_readlink,
    wait4 = const libc::SYS_wait4,
    eintr = const libc::EINTR,
    sigsys = const libc::SIGSYS,
    write = const libc::SYS_write,
    exit = const libc::SYS_exit_group,
    own = const crate::limits::EXIT_OF_SYSTOLL,
);

/// Makes the allocator keep freed memory. We read and drop files by the megabyte; by default each is mapped, faulted in
/// page by page and unmapped again (mallopt(3)).
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

/// Returns true if systoll was started with SIGPIPE ignored.
pub(crate) fn sigpipe_was_ignored() -> bool {
    SIGPIPE_IGNORED.load(Ordering::Relaxed) != 0
}

/// Returns true if standard descriptor `fd` (0 to 2) was closed when systoll started.
pub fn was_closed(fd: i32) -> bool {
    (0..3).contains(&fd) && CLOSED_FDS.load(Ordering::Relaxed) & (1 << fd) != 0
}

/// Ends this process by `signal`, as if it had died of it, without another core dump. Returns if the signal's default
/// action does not end a process.
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
