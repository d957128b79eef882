//! Numbers of the system calls that need special treatment (the kernel's arch/x86/entry/syscalls/syscall_64.tbl), 32
//! bits wide as the kernel reads them.

use systoll_model::Sysno;

macro_rules! numbers {
    ($($name:ident = $call:literal,)*) => {
        $(#[doc = concat!("Number of `", $call, "`.")] pub const $name: u32 = Sysno::named($call).0;)*
    };
}

numbers! {
    ACCESS = "access",
    ARCH_PRCTL = "arch_prctl",
    BRK = "brk",
    CAPSET = "capset",
    CHROOT = "chroot",
    CLOCK_GETRES = "clock_getres",
    CLOCK_GETTIME = "clock_gettime",
    CLOCK_NANOSLEEP = "clock_nanosleep",
    CLONE = "clone",
    CLONE3 = "clone3",
    CLOSE = "close",
    EPOLL_PWAIT = "epoll_pwait",
    EPOLL_PWAIT2 = "epoll_pwait2",
    EPOLL_WAIT = "epoll_wait",
    EXECVE = "execve",
    EXECVEAT = "execveat",
    EXIT = "exit",
    EXIT_GROUP = "exit_group",
    FCNTL = "fcntl",
    FORK = "fork",
    FSTAT = "fstat",
    FUTEX = "futex",
    GETCPU = "getcpu",
    GETEGID = "getegid",
    GETEUID = "geteuid",
    GETGID = "getgid",
    GETITIMER = "getitimer",
    GETPGID = "getpgid",
    GETPGRP = "getpgrp",
    GETPID = "getpid",
    GETPPID = "getppid",
    GETPRIORITY = "getpriority",
    GETRESGID = "getresgid",
    GETRESUID = "getresuid",
    GETRLIMIT = "getrlimit",
    GETRUSAGE = "getrusage",
    GETSID = "getsid",
    GETTID = "gettid",
    GETTIMEOFDAY = "gettimeofday",
    GETUID = "getuid",
    IOCTL = "ioctl",
    LANDLOCK_RESTRICT_SELF = "landlock_restrict_self",
    MADVISE = "madvise",
    MEMFD_CREATE = "memfd_create",
    MLOCKALL = "mlockall",
    MMAP = "mmap",
    MPROTECT = "mprotect",
    MREMAP = "mremap",
    MUNMAP = "munmap",
    NANOSLEEP = "nanosleep",
    OPEN = "open",
    PAUSE = "pause",
    PIVOT_ROOT = "pivot_root",
    PKEY_MPROTECT = "pkey_mprotect",
    POLL = "poll",
    PPOLL = "ppoll",
    PRCTL = "prctl",
    PRLIMIT64 = "prlimit64",
    PROCESS_MADVISE = "process_madvise",
    PROCESS_VM_READV = "process_vm_readv",
    PSELECT6 = "pselect6",
    READLINK = "readlink",
    REMAP_FILE_PAGES = "remap_file_pages",
    RSEQ = "rseq",
    RT_SIGACTION = "rt_sigaction",
    RT_SIGPENDING = "rt_sigpending",
    RT_SIGPROCMASK = "rt_sigprocmask",
    RT_SIGRETURN = "rt_sigreturn",
    RT_SIGSUSPEND = "rt_sigsuspend",
    RT_SIGTIMEDWAIT = "rt_sigtimedwait",
    SCHED_GETAFFINITY = "sched_getaffinity",
    SCHED_GETPARAM = "sched_getparam",
    SCHED_GETSCHEDULER = "sched_getscheduler",
    SCHED_YIELD = "sched_yield",
    SECCOMP = "seccomp",
    SELECT = "select",
    SETFSGID = "setfsgid",
    SETFSUID = "setfsuid",
    SETGID = "setgid",
    SETGROUPS = "setgroups",
    SETNS = "setns",
    SETREGID = "setregid",
    SETRESGID = "setresgid",
    SETRESUID = "setresuid",
    SETREUID = "setreuid",
    SETRLIMIT = "setrlimit",
    SETUID = "setuid",
    SET_ROBUST_LIST = "set_robust_list",
    SET_TID_ADDRESS = "set_tid_address",
    SHMAT = "shmat",
    SHMDT = "shmdt",
    SIGALTSTACK = "sigaltstack",
    TIME = "time",
    TIMES = "times",
    UMASK = "umask",
    UNAME = "uname",
    UNSHARE = "unshare",
    USERFAULTFD = "userfaultfd",
    VFORK = "vfork",
}

/// Returns true if the call only reads or writes words of the kernel's own, and waits for no thread, no device and no
/// file system. All other calls may wait.
#[cfg(target_arch = "x86_64")]
pub(crate) fn never_waits(number: u32) -> bool {
    matches!(number, GETPID | GETPPID | GETTID | GETPGID | GETPGRP | GETSID | GETPRIORITY | UMASK | UNAME)
        || matches!(number, GETUID | GETEUID | GETRESUID | GETGID | GETEGID | GETRESGID)
        || matches!(number, CLOCK_GETTIME | CLOCK_GETRES | GETTIMEOFDAY | TIME | TIMES | GETITIMER | GETCPU)
        || matches!(number, RT_SIGPROCMASK | RT_SIGACTION | RT_SIGPENDING | SIGALTSTACK)
        || matches!(number, GETRLIMIT | GETRUSAGE | SCHED_GETAFFINITY | SCHED_GETPARAM | SCHED_GETSCHEDULER)
}
