//! Names of commands and flags, from the uapi headers of Linux; tests/words.rs compares them.

use super::Names;

/// Commands of fcntl.
#[rustfmt::skip]
pub(super) static FCNTL: &Names = &[
    (0, "F_DUPFD"), (1, "F_GETFD"), (2, "F_SETFD"), (3, "F_GETFL"), (4, "F_SETFL"), (5, "F_GETLK"),
    (6, "F_SETLK"), (7, "F_SETLKW"), (8, "F_SETOWN"), (9, "F_GETOWN"), (10, "F_SETSIG"), (11, "F_GETSIG"),
    (15, "F_SETOWN_EX"), (16, "F_GETOWN_EX"), (17, "F_GETOWNER_UIDS"), (36, "F_OFD_GETLK"), (37, "F_OFD_SETLK"),
    (38, "F_OFD_SETLKW"), (1024, "F_SETLEASE"), (1025, "F_GETLEASE"), (1026, "F_NOTIFY"), (1029, "F_CANCELLK"),
    (1030, "F_DUPFD_CLOEXEC"), (1031, "F_SETPIPE_SZ"), (1032, "F_GETPIPE_SZ"), (1033, "F_ADD_SEALS"),
    (1034, "F_GET_SEALS"), (1035, "F_GET_RW_HINT"), (1036, "F_SET_RW_HINT"), (1037, "F_GET_FILE_RW_HINT"),
    (1038, "F_SET_FILE_RW_HINT"),
];

/// Options of prctl.
#[rustfmt::skip]
pub(super) static PRCTL: &Names = &[
    (1, "PR_SET_PDEATHSIG"), (2, "PR_GET_PDEATHSIG"), (3, "PR_GET_DUMPABLE"), (4, "PR_SET_DUMPABLE"),
    (5, "PR_GET_UNALIGN"), (6, "PR_SET_UNALIGN"), (7, "PR_GET_KEEPCAPS"), (8, "PR_SET_KEEPCAPS"),
    (9, "PR_GET_FPEMU"), (10, "PR_SET_FPEMU"), (11, "PR_GET_FPEXC"), (12, "PR_SET_FPEXC"),
    (13, "PR_GET_TIMING"), (14, "PR_SET_TIMING"), (15, "PR_SET_NAME"), (16, "PR_GET_NAME"),
    (19, "PR_GET_ENDIAN"), (20, "PR_SET_ENDIAN"), (21, "PR_GET_SECCOMP"), (22, "PR_SET_SECCOMP"),
    (23, "PR_CAPBSET_READ"), (24, "PR_CAPBSET_DROP"), (25, "PR_GET_TSC"), (26, "PR_SET_TSC"),
    (27, "PR_GET_SECUREBITS"), (28, "PR_SET_SECUREBITS"), (29, "PR_SET_TIMERSLACK"), (30, "PR_GET_TIMERSLACK"),
    (31, "PR_TASK_PERF_EVENTS_DISABLE"), (32, "PR_TASK_PERF_EVENTS_ENABLE"), (33, "PR_MCE_KILL"),
    (34, "PR_MCE_KILL_GET"), (35, "PR_SET_MM"), (36, "PR_SET_CHILD_SUBREAPER"), (37, "PR_GET_CHILD_SUBREAPER"),
    (38, "PR_SET_NO_NEW_PRIVS"), (39, "PR_GET_NO_NEW_PRIVS"), (40, "PR_GET_TID_ADDRESS"),
    (41, "PR_SET_THP_DISABLE"), (42, "PR_GET_THP_DISABLE"), (43, "PR_MPX_ENABLE_MANAGEMENT"),
    (44, "PR_MPX_DISABLE_MANAGEMENT"), (45, "PR_SET_FP_MODE"), (46, "PR_GET_FP_MODE"), (47, "PR_CAP_AMBIENT"),
    (50, "PR_SVE_SET_VL"), (51, "PR_SVE_GET_VL"), (52, "PR_GET_SPECULATION_CTRL"),
    (53, "PR_SET_SPECULATION_CTRL"), (54, "PR_PAC_RESET_KEYS"), (55, "PR_SET_TAGGED_ADDR_CTRL"),
    (56, "PR_GET_TAGGED_ADDR_CTRL"), (57, "PR_SET_IO_FLUSHER"), (58, "PR_GET_IO_FLUSHER"),
    (59, "PR_SET_SYSCALL_USER_DISPATCH"), (60, "PR_PAC_SET_ENABLED_KEYS"), (61, "PR_PAC_GET_ENABLED_KEYS"),
    (62, "PR_SCHED_CORE"), (63, "PR_SME_SET_VL"), (64, "PR_SME_GET_VL"), (65, "PR_SET_MDWE"),
    (66, "PR_GET_MDWE"), (67, "PR_SET_MEMORY_MERGE"), (68, "PR_GET_MEMORY_MERGE"), (1096112214, "PR_GET_AUXV"),
    (1398164801, "PR_SET_VMA"), (1499557217, "PR_SET_PTRACER"),
];

/// Operations of arch_prctl.
#[rustfmt::skip]
pub(super) static ARCH_PRCTL: &Names = &[
    (0x1001, "ARCH_SET_GS"), (0x1002, "ARCH_SET_FS"), (0x1003, "ARCH_GET_FS"), (0x1004, "ARCH_GET_GS"),
    (0x1011, "ARCH_GET_CPUID"), (0x1012, "ARCH_SET_CPUID"), (0x1021, "ARCH_GET_XCOMP_SUPP"),
    (0x1022, "ARCH_GET_XCOMP_PERM"), (0x1023, "ARCH_REQ_XCOMP_PERM"), (0x1024, "ARCH_GET_XCOMP_GUEST_PERM"),
    (0x1025, "ARCH_REQ_XCOMP_GUEST_PERM"), (0x2001, "ARCH_MAP_VDSO_X32"), (0x2002, "ARCH_MAP_VDSO_32"),
    (0x2003, "ARCH_MAP_VDSO_64"), (0x3001, "ARCH_CET_STATUS"), (0x5001, "ARCH_SHSTK_ENABLE"),
    (0x5002, "ARCH_SHSTK_DISABLE"), (0x5003, "ARCH_SHSTK_LOCK"), (0x5004, "ARCH_SHSTK_UNLOCK"),
    (0x5005, "ARCH_SHSTK_STATUS"),
];

/// Operations of futex, without their flags.
#[rustfmt::skip]
pub(super) static FUTEX: &Names = &[
    (0, "FUTEX_WAIT"), (1, "FUTEX_WAKE"), (3, "FUTEX_REQUEUE"), (4, "FUTEX_CMP_REQUEUE"),
    (5, "FUTEX_WAKE_OP"), (6, "FUTEX_LOCK_PI"), (7, "FUTEX_UNLOCK_PI"), (8, "FUTEX_TRYLOCK_PI"),
    (9, "FUTEX_WAIT_BITSET"), (10, "FUTEX_WAKE_BITSET"), (11, "FUTEX_WAIT_REQUEUE_PI"),
    (12, "FUTEX_CMP_REQUEUE_PI"), (13, "FUTEX_LOCK_PI2"),
];

/// Clocks.
#[rustfmt::skip]
pub(super) static CLOCKS: &Names = &[
    (0, "CLOCK_REALTIME"), (1, "CLOCK_MONOTONIC"), (2, "CLOCK_PROCESS_CPUTIME_ID"),
    (3, "CLOCK_THREAD_CPUTIME_ID"), (4, "CLOCK_MONOTONIC_RAW"), (5, "CLOCK_REALTIME_COARSE"),
    (6, "CLOCK_MONOTONIC_COARSE"), (7, "CLOCK_BOOTTIME"), (8, "CLOCK_REALTIME_ALARM"),
    (9, "CLOCK_BOOTTIME_ALARM"), (11, "CLOCK_TAI"),
];

/// Advice of madvise.
#[rustfmt::skip]
pub(super) static MADVISE: &Names = &[
    (0, "MADV_NORMAL"), (1, "MADV_RANDOM"), (2, "MADV_SEQUENTIAL"), (3, "MADV_WILLNEED"), (4, "MADV_DONTNEED"),
    (8, "MADV_FREE"), (9, "MADV_REMOVE"), (10, "MADV_DONTFORK"), (11, "MADV_DOFORK"), (12, "MADV_MERGEABLE"),
    (13, "MADV_UNMERGEABLE"), (14, "MADV_HUGEPAGE"), (15, "MADV_NOHUGEPAGE"), (16, "MADV_DONTDUMP"),
    (17, "MADV_DODUMP"), (18, "MADV_WIPEONFORK"), (19, "MADV_KEEPONFORK"), (20, "MADV_COLD"),
    (21, "MADV_PAGEOUT"), (22, "MADV_POPULATE_READ"), (23, "MADV_POPULATE_WRITE"), (24, "MADV_DONTNEED_LOCKED"),
    (25, "MADV_COLLAPSE"), (100, "MADV_HWPOISON"), (101, "MADV_SOFT_OFFLINE"),
];

/// Advice of fadvise64.
#[rustfmt::skip]
pub(super) static FADVISE: &Names = &[
    (0, "POSIX_FADV_NORMAL"), (1, "POSIX_FADV_RANDOM"), (2, "POSIX_FADV_SEQUENTIAL"),
    (3, "POSIX_FADV_WILLNEED"), (4, "POSIX_FADV_DONTNEED"), (5, "POSIX_FADV_NOREUSE"),
];

/// Operations of epoll_ctl.
#[rustfmt::skip]
pub(super) static EPOLL: &Names = &[
    (1, "EPOLL_CTL_ADD"), (2, "EPOLL_CTL_DEL"), (3, "EPOLL_CTL_MOD"),
];

/// Resources with limits.
#[rustfmt::skip]
pub(super) static RLIMITS: &Names = &[
    (0, "RLIMIT_CPU"), (1, "RLIMIT_FSIZE"), (2, "RLIMIT_DATA"), (3, "RLIMIT_STACK"), (4, "RLIMIT_CORE"),
    (5, "RLIMIT_RSS"), (6, "RLIMIT_NPROC"), (8, "RLIMIT_MEMLOCK"), (9, "RLIMIT_AS"), (10, "RLIMIT_LOCKS"),
    (11, "RLIMIT_SIGPENDING"), (12, "RLIMIT_MSGQUEUE"), (13, "RLIMIT_NICE"), (14, "RLIMIT_RTPRIO"),
    (15, "RLIMIT_RTTIME"),
];

/// Interval timers.
#[rustfmt::skip]
pub(super) static ITIMERS: &Names = &[
    (0, "ITIMER_REAL"), (1, "ITIMER_VIRTUAL"), (2, "ITIMER_PROF"),
];

/// Whose priority.
#[rustfmt::skip]
pub(super) static PRIORITIES: &Names = &[
    (0, "PRIO_PROCESS"), (1, "PRIO_PGRP"), (2, "PRIO_USER"),
];

/// Whose resource usage.
#[rustfmt::skip]
pub(super) static USAGES: &Names = &[
    (0, "RUSAGE_SELF"), (1, "RUSAGE_THREAD"), (4294967295, "RUSAGE_CHILDREN"),
];

/// Scheduling policies.
#[rustfmt::skip]
pub(super) static POLICIES: &Names = &[
    (0, "SCHED_OTHER"), (1, "SCHED_FIFO"), (2, "SCHED_RR"), (3, "SCHED_BATCH"), (5, "SCHED_IDLE"),
    (6, "SCHED_DEADLINE"),
];

/// Operations of flock.
#[rustfmt::skip]
pub(super) static FLOCK: &Names = &[
    (1, "LOCK_SH"), (2, "LOCK_EX"), (5, "LOCK_SH|LOCK_NB"), (6, "LOCK_EX|LOCK_NB"), (8, "LOCK_UN"),
    (12, "LOCK_NB|LOCK_UN"),
];

/// Where lseek counts from.
#[rustfmt::skip]
pub(super) static WHENCE: &Names = &[
    (0, "SEEK_SET"), (1, "SEEK_CUR"), (2, "SEEK_END"), (3, "SEEK_DATA"), (4, "SEEK_HOLE"),
];

/// What shutdown ends.
#[rustfmt::skip]
pub(super) static SHUTDOWN: &Names = &[
    (0, "SHUT_RD"), (1, "SHUT_WR"), (2, "SHUT_RDWR"),
];

/// Types of sockets.
#[rustfmt::skip]
pub(super) static SOCKET_TYPES: &Names = &[
    (1, "SOCK_STREAM"), (2, "SOCK_DGRAM"), (3, "SOCK_RAW"), (4, "SOCK_RDM"), (5, "SOCK_SEQPACKET"),
    (6, "SOCK_DCCP"), (10, "SOCK_PACKET"),
];

/// What rt_sigprocmask does.
#[rustfmt::skip]
pub(super) static MASK: &Names = &[
    (0, "SIG_BLOCK"), (1, "SIG_UNBLOCK"), (2, "SIG_SETMASK"),
];

/// Commands of membarrier.
#[rustfmt::skip]
pub(super) static MEMBARRIER: &Names = &[
    (0, "MEMBARRIER_CMD_QUERY"), (1, "MEMBARRIER_CMD_GLOBAL"), (2, "MEMBARRIER_CMD_GLOBAL_EXPEDITED"),
    (4, "MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED"), (8, "MEMBARRIER_CMD_PRIVATE_EXPEDITED"),
    (16, "MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED"), (32, "MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE"),
    (64, "MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE"), (128, "MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ"),
    (256, "MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ"),
];

/// Operations of seccomp.
#[rustfmt::skip]
pub(super) static SECCOMP: &Names = &[
    (0, "SECCOMP_SET_MODE_STRICT"), (1, "SECCOMP_SET_MODE_FILTER"), (2, "SECCOMP_GET_ACTION_AVAIL"),
    (3, "SECCOMP_GET_NOTIF_SIZES"),
];

/// Commands of bpf.
#[rustfmt::skip]
pub(super) static BPF: &Names = &[
    (0, "BPF_MAP_CREATE"), (1, "BPF_MAP_LOOKUP_ELEM"), (2, "BPF_MAP_UPDATE_ELEM"), (3, "BPF_MAP_DELETE_ELEM"),
    (4, "BPF_MAP_GET_NEXT_KEY"), (5, "BPF_PROG_LOAD"), (6, "BPF_OBJ_PIN"), (7, "BPF_OBJ_GET"),
    (8, "BPF_PROG_ATTACH"), (9, "BPF_PROG_DETACH"), (10, "BPF_PROG_TEST_RUN"), (11, "BPF_PROG_GET_NEXT_ID"),
    (12, "BPF_MAP_GET_NEXT_ID"), (13, "BPF_PROG_GET_FD_BY_ID"), (14, "BPF_MAP_GET_FD_BY_ID"),
    (15, "BPF_OBJ_GET_INFO_BY_FD"), (16, "BPF_PROG_QUERY"), (17, "BPF_RAW_TRACEPOINT_OPEN"),
    (18, "BPF_BTF_LOAD"), (19, "BPF_BTF_GET_FD_BY_ID"), (20, "BPF_TASK_FD_QUERY"),
    (21, "BPF_MAP_LOOKUP_AND_DELETE_ELEM"), (22, "BPF_MAP_FREEZE"), (23, "BPF_BTF_GET_NEXT_ID"),
    (24, "BPF_MAP_LOOKUP_BATCH"), (25, "BPF_MAP_LOOKUP_AND_DELETE_BATCH"), (26, "BPF_MAP_UPDATE_BATCH"),
    (27, "BPF_MAP_DELETE_BATCH"), (28, "BPF_LINK_CREATE"), (29, "BPF_LINK_UPDATE"),
];

/// Operations of keyctl.
#[rustfmt::skip]
pub(super) static KEYCTL: &Names = &[
    (0, "KEYCTL_GET_KEYRING_ID"), (1, "KEYCTL_JOIN_SESSION_KEYRING"), (2, "KEYCTL_UPDATE"),
    (3, "KEYCTL_REVOKE"), (4, "KEYCTL_CHOWN"), (5, "KEYCTL_SETPERM"), (6, "KEYCTL_DESCRIBE"),
    (7, "KEYCTL_CLEAR"), (8, "KEYCTL_LINK"), (9, "KEYCTL_UNLINK"), (10, "KEYCTL_SEARCH"), (11, "KEYCTL_READ"),
    (12, "KEYCTL_INSTANTIATE"), (13, "KEYCTL_NEGATE"), (14, "KEYCTL_SET_REQKEY_KEYRING"),
    (15, "KEYCTL_SET_TIMEOUT"), (16, "KEYCTL_ASSUME_AUTHORITY"), (17, "KEYCTL_GET_SECURITY"),
    (18, "KEYCTL_SESSION_TO_PARENT"), (19, "KEYCTL_REJECT"), (20, "KEYCTL_INSTANTIATE_IOV"),
    (21, "KEYCTL_INVALIDATE"), (22, "KEYCTL_GET_PERSISTENT"), (23, "KEYCTL_DH_COMPUTE"),
    (24, "KEYCTL_PKEY_QUERY"), (25, "KEYCTL_PKEY_ENCRYPT"), (26, "KEYCTL_PKEY_DECRYPT"),
    (27, "KEYCTL_PKEY_SIGN"), (28, "KEYCTL_PKEY_VERIFY"), (29, "KEYCTL_RESTRICT_KEYRING"), (30, "KEYCTL_MOVE"),
    (31, "KEYCTL_CAPABILITIES"), (32, "KEYCTL_WATCH_KEY"),
];

/// Requests of ptrace.
#[rustfmt::skip]
pub(super) static PTRACE: &Names = &[
    (0, "PTRACE_TRACEME"), (1, "PTRACE_PEEKTEXT"), (2, "PTRACE_PEEKDATA"), (3, "PTRACE_PEEKUSER"),
    (4, "PTRACE_POKETEXT"), (5, "PTRACE_POKEDATA"), (6, "PTRACE_POKEUSER"), (7, "PTRACE_CONT"),
    (8, "PTRACE_KILL"), (9, "PTRACE_SINGLESTEP"), (12, "PTRACE_GETREGS"), (13, "PTRACE_SETREGS"),
    (14, "PTRACE_GETFPREGS"), (15, "PTRACE_SETFPREGS"), (16, "PTRACE_ATTACH"), (17, "PTRACE_DETACH"),
    (24, "PTRACE_SYSCALL"), (16896, "PTRACE_SETOPTIONS"), (16897, "PTRACE_GETEVENTMSG"),
    (16898, "PTRACE_GETSIGINFO"), (16899, "PTRACE_SETSIGINFO"), (16900, "PTRACE_GETREGSET"),
    (16901, "PTRACE_SETREGSET"), (16902, "PTRACE_SEIZE"), (16903, "PTRACE_INTERRUPT"), (16904, "PTRACE_LISTEN"),
    (16905, "PTRACE_PEEKSIGINFO"), (16906, "PTRACE_GETSIGMASK"), (16907, "PTRACE_SETSIGMASK"),
    (16910, "PTRACE_GET_SYSCALL_INFO"),
];

/// Commands of System V IPC, as far as all three kinds share them.
#[rustfmt::skip]
pub(super) static IPC: &Names = &[
    (0, "IPC_RMID"), (1, "IPC_SET"), (2, "IPC_STAT"), (3, "IPC_INFO"),
];

/// Operations of io_uring_register.
#[rustfmt::skip]
pub(super) static IO_URING: &Names = &[
    (0, "IORING_REGISTER_BUFFERS"), (1, "IORING_UNREGISTER_BUFFERS"), (2, "IORING_REGISTER_FILES"),
    (3, "IORING_UNREGISTER_FILES"), (4, "IORING_REGISTER_EVENTFD"), (5, "IORING_UNREGISTER_EVENTFD"),
    (6, "IORING_REGISTER_FILES_UPDATE"), (7, "IORING_REGISTER_EVENTFD_ASYNC"), (8, "IORING_REGISTER_PROBE"),
    (9, "IORING_REGISTER_PERSONALITY"), (10, "IORING_UNREGISTER_PERSONALITY"),
    (11, "IORING_REGISTER_RESTRICTIONS"), (12, "IORING_REGISTER_ENABLE_RINGS"),
];

/// Protection of memory.
#[rustfmt::skip]
pub(super) static PROT: &Names = &[
    (0x1, "PROT_READ"), (0x2, "PROT_WRITE"), (0x4, "PROT_EXEC"), (0x1000000, "PROT_GROWSDOWN"),
    (0x2000000, "PROT_GROWSUP"),
];

/// Flags of mmap, beside its type.
#[rustfmt::skip]
pub(super) static MAP: &Names = &[
    (0x10, "MAP_FIXED"), (0x20, "MAP_ANONYMOUS"), (0x100, "MAP_GROWSDOWN"), (0x800, "MAP_DENYWRITE"),
    (0x1000, "MAP_EXECUTABLE"), (0x2000, "MAP_LOCKED"), (0x4000, "MAP_NORESERVE"), (0x8000, "MAP_POPULATE"),
    (0x10000, "MAP_NONBLOCK"), (0x20000, "MAP_STACK"), (0x40000, "MAP_HUGETLB"), (0x80000, "MAP_SYNC"),
    (0x100000, "MAP_FIXED_NOREPLACE"),
];

/// Flags of sending and receiving.
#[rustfmt::skip]
pub(super) static MSG: &Names = &[
    (0x1, "MSG_OOB"), (0x2, "MSG_PEEK"), (0x4, "MSG_DONTROUTE"), (0x8, "MSG_CTRUNC"), (0x20, "MSG_TRUNC"),
    (0x40, "MSG_DONTWAIT"), (0x80, "MSG_EOR"), (0x100, "MSG_WAITALL"), (0x800, "MSG_CONFIRM"),
    (0x2000, "MSG_ERRQUEUE"), (0x4000, "MSG_NOSIGNAL"), (0x8000, "MSG_MORE"), (0x10000, "MSG_WAITFORONE"),
    (0x4000000, "MSG_ZEROCOPY"), (0x20000000, "MSG_FASTOPEN"), (0x40000000, "MSG_CMSG_CLOEXEC"),
];

/// Flags of getrandom.
#[rustfmt::skip]
pub(super) static RANDOM: &Names = &[
    (0x1, "GRND_NONBLOCK"), (0x2, "GRND_RANDOM"), (0x4, "GRND_INSECURE"),
];

/// Flags of msync.
#[rustfmt::skip]
pub(super) static SYNC: &Names = &[
    (0x1, "MS_ASYNC"), (0x2, "MS_INVALIDATE"), (0x4, "MS_SYNC"),
];

/// Modes of fallocate.
#[rustfmt::skip]
pub(super) static FALLOCATE: &Names = &[
    (0x1, "FALLOC_FL_KEEP_SIZE"), (0x2, "FALLOC_FL_PUNCH_HOLE"), (0x8, "FALLOC_FL_COLLAPSE_RANGE"),
    (0x10, "FALLOC_FL_ZERO_RANGE"), (0x20, "FALLOC_FL_INSERT_RANGE"), (0x40, "FALLOC_FL_UNSHARE_RANGE"),
];

/// Namespaces of unshare and setns, and what else they part with.
#[rustfmt::skip]
pub(super) static NAMESPACES: &Names = &[
    (0x80, "CLONE_NEWTIME"), (0x200, "CLONE_FS"), (0x400, "CLONE_FILES"), (0x20000, "CLONE_NEWNS"),
    (0x40000, "CLONE_SYSVSEM"), (0x2000000, "CLONE_NEWCGROUP"), (0x4000000, "CLONE_NEWUTS"),
    (0x8000000, "CLONE_NEWIPC"), (0x10000000, "CLONE_NEWUSER"), (0x20000000, "CLONE_NEWPID"),
    (0x40000000, "CLONE_NEWNET"),
];
