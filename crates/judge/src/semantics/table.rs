//! Which calls ask about what, and which set what.
//!
//! Argument positions are those of the kernel's own calls (man 2); numbers of flags and commands
//! are those of the kernel's uapi headers for x86-64. The first line that applies counts.

use super::Source::{
    Arg, ArgMask, Args, Call, Const, Fd, In, InAbsolute, Nothing, Out, OutBut, OutStart, OutStr, Path, Result,
    ResultMask, Unread,
};
use super::When::{EmptyPath, InNoBits, Is, NoneOf, NotNull, Null, OneOf};
use super::effects::OTHER_OPTIONS;
use super::topics::*;
use super::{Act, Entry, How, Source, Topic, When};

/// SIGKILL and SIGSTOP can't be blocked: the kernel takes them out of every mask.
const UNBLOCKABLE: u64 = 1 << 8 | 1 << 18;
/// The flags F_SETFL can change: O_APPEND, O_NONBLOCK, O_ASYNC, O_DIRECT, O_NOATIME.
const SETTABLE: u64 = 0x4_6c00;
/// EPOLLONESHOT and EPOLLET: setting the same interest again re-arms, so it is of use.
const REARMING: u32 = 0xc000_0000;
/// SOL_SOCKET, IPPROTO_IP, IPPROTO_TCP, IPPROTO_IPV6: options there are values, not commands.
const VALUE_LEVELS: &[u32] = &[1, 0, 6, 41];
/// `struct stat`: the access time moves by itself (bytes 72..88).
const STAT: &[Source] = &[OutBut(1, 72, 88)];
/// As [`STAT`], for newfstatat.
const STAT_AT: &[Source] = &[OutBut(2, 72, 88)];
/// `struct statx`: the access time is at bytes 64..80.
const STATX: &[Source] = &[OutBut(4, 64, 80)];
/// Arguments that the kernel reads as an int: what is above is left over.
const INT_0: Source = ArgMask(0, 0xffff_ffff);
const INT_1: Source = ArgMask(1, 0xffff_ffff);
/// TCSETSW and TCSETSF, TCSETA to TCSETAF, TCSETS2 to TCSETSF2: settings in other words, or with what
/// is written and read meanwhile.
const OTHER_SETTINGS: &[u32] = &[0x5403, 0x5404, 0x5406, 0x5407, 0x5408, 0x402c_542b, 0x402c_542c, 0x402c_542d];
const AT: Source = Path { at: Some(0), path: 1 };
const PLAIN: Source = Path { at: None, path: 0 };

const fn ask(
    call: &'static str,
    about: &'static Topic,
    detail: &'static [Source],
    answer: &'static [Source],
    when: &'static [When],
) -> Entry {
    Entry { call, when, about, detail, act: Act::Ask(answer), chain: false }
}

const fn walk(call: &'static str, detail: &'static [Source], answer: &'static [Source]) -> Entry {
    Entry { call, when: &[], about: &NAME, detail, act: Act::Ask(answer), chain: true }
}

const fn set(
    call: &'static str,
    about: &'static Topic,
    detail: &'static [Source],
    value: Source,
    old: Option<Source>,
    when: &'static [When],
) -> Entry {
    Entry { call, when, about, detail, act: Act::Set { value, old, how: How::Replace, never: 0 }, chain: false }
}

/// What a call does that may be refused: the same refusal again was known.
const fn attempt(call: &'static str, detail: &'static [Source], when: &'static [When]) -> Entry {
    Entry { call, when, about: &ATTEMPT, detail, act: Act::Try, chain: false }
}

const fn mask(how: How, when: &'static [When]) -> Entry {
    let act = Act::Set { value: In(1), old: Some(Out(2)), how, never: UNBLOCKABLE };
    Entry { call: "rt_sigprocmask", when, about: &SIGNAL_MASK, detail: &[], act, chain: false }
}

/// The table.
#[rustfmt::skip]
pub(crate) static ENTRIES: &[Entry] = &[
    ask("getpid", &IDENTITY, &[Call], &[Result], &[]),
    ask("getuid", &IDENTITY, &[Call], &[Result], &[]),
    ask("geteuid", &IDENTITY, &[Call], &[Result], &[]),
    ask("getgid", &IDENTITY, &[Call], &[Result], &[]),
    ask("getegid", &IDENTITY, &[Call], &[Result], &[]),
    ask("getpgrp", &IDENTITY, &[Call], &[Result], &[]),
    ask("getpgid", &IDENTITY, &[Call, Arg(0)], &[Result], &[]),
    ask("getsid", &IDENTITY, &[Call, Arg(0)], &[Result], &[]),
    ask("getgroups", &IDENTITY, &[Call, Arg(0)], &[Result, Out(1)], &[]),
    ask("getresuid", &IDENTITY, &[Call], &[Out(0), Out(1), Out(2)], &[]),
    ask("getresgid", &IDENTITY, &[Call], &[Out(0), Out(1), Out(2)], &[]),
    ask("getppid", &PARENT, &[Call], &[Result], &[]),
    ask("gettid", &THREAD_ID, &[Call], &[Result], &[]),
    // The structure may be longer than what is read of it; the host's name lies within this.
    ask("uname", &KERNEL, &[Call], &[OutStart(0, 130)], &[]),

    ask("getcwd", &CWD, &[], &[OutStr(0)], &[]),
    set("chdir", &FOLDER, &[], InAbsolute(0), None, &[]),

    // One's own, by either call. By a number it may be one's own as well, or another's.
    ask("getrlimit", &LIMITS, &[INT_0], &[Out(1)], &[]),
    set("setrlimit", &LIMITS, &[INT_0], In(1), None, &[]),
    ask("prlimit64", &LIMITS, &[INT_1], &[Out(3)], &[Is(0, 0), Null(2)]),
    set("prlimit64", &LIMITS, &[INT_1], In(2), Some(Out(3)), &[Is(0, 0)]),
    ask("prlimit64", &LIMITS, &[INT_0, INT_1], &[Out(3)], &[Null(2)]),
    set("prlimit64", &LIMITS, &[INT_1], Unread, None, &[]),

    ask("sched_getaffinity", &SCHEDULING, &[Call, Arg(0), Arg(1)], &[Result, Out(2)], &[]),
    ask("sched_getscheduler", &SCHEDULING, &[Call, Arg(0)], &[Result], &[]),
    ask("sched_getparam", &SCHEDULING, &[Call, Arg(0)], &[Out(1)], &[]),
    ask("sched_get_priority_max", &KERNEL, &[Call, Arg(0)], &[Result], &[]),
    ask("sched_get_priority_min", &KERNEL, &[Call, Arg(0)], &[Result], &[]),
    ask("getpriority", &SCHEDULING, &[Call, Arg(0), Arg(1)], &[Result], &[]),
    ask("ioprio_get", &SCHEDULING, &[Call, Arg(0), Arg(1)], &[Result], &[]),
    ask("sched_rr_get_interval", &SCHEDULING, &[Call, Arg(0)], &[Out(1)], &[]),
    ask("sched_getattr", &SCHEDULING, &[Call, Arg(0), Arg(2)], &[Out(1)], &[]),
    ask("clock_getres", &KERNEL, &[Call, Arg(0)], &[Out(1)], &[NotNull(1)]),
    // One's own; by a number, or of a group or a user, it may be one's own as well.
    set("ioprio_set", &SCHEDULING, &[Call], Arg(2), None, &[Is(0, 1), Is(1, 0)]),
    set("ioprio_set", &SCHEDULING, &[Call], Unread, None, &[]),
    set("setpriority", &SCHEDULING, &[Call], Arg(2), None, &[Is(0, 0), Is(1, 0)]),
    set("setpriority", &SCHEDULING, &[Call], Unread, None, &[]),
    set("sched_setaffinity", &SCHEDULING, &[Call], In(2), None, &[Is(0, 0)]),
    set("sched_setaffinity", &SCHEDULING, &[Call], Unread, None, &[]),
    ask("capget", &CAPABILITIES, &[Call], &[Out(1)], &[NotNull(1)]),

    // PR_GET_NAME; PR_SET_NAME.
    ask("prctl", &ATTRIBUTES, &[Call], &[OutStr(1)], &[Is(0, 16)]),
    set("prctl", &ATTRIBUTES, &[Call], In(1), None, &[Is(0, 15)]),
    // PR_GET_DUMPABLE, PR_GET_KEEPCAPS, PR_GET_TIMERSLACK, PR_GET_NO_NEW_PRIVS.
    ask("prctl", &ATTRIBUTES, &[Call, Arg(0)], &[Result], &[OneOf(0, &[3, 7, 30, 39])]),
    // PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_TIMERSLACK, PR_SET_NO_NEW_PRIVS.
    set("prctl", &ATTRIBUTES, &[Call, Arg(0)], Arg(1), None, &[OneOf(0, &[1, 4, 8, 29, 38])]),
    set("setresuid", &CREDENTIALS, &[Call], Args(3), None, &[]),
    set("setresgid", &CREDENTIALS, &[Call], Args(3), None, &[]),

    ask("rt_sigprocmask", &SIGNAL_MASK, &[], &[Out(2)], &[Null(1), NotNull(2)]),
    // Neither a set nor a place for the old one: nothing happens at all.
    Entry { call: "rt_sigprocmask", when: &[Null(1), Null(2)], about: &SIGNAL_MASK, detail: &[], chain: false,
        act: Act::Set { value: Arg(1), old: None, how: How::Add, never: UNBLOCKABLE } },
    mask(How::Add, &[Is(0, 0), NotNull(1)]),
    mask(How::Remove, &[Is(0, 1), NotNull(1)]),
    mask(How::Replace, &[Is(0, 2), NotNull(1)]),
    ask("rt_sigaction", &HANDLER, &[Arg(0)], &[Out(2)], &[Null(1), NotNull(2)]),
    set("rt_sigaction", &HANDLER, &[Arg(0)], In(1), Some(Out(2)), &[NotNull(1)]),
    ask("sigaltstack", &ALT_STACK, &[], &[Out(1)], &[Null(0), NotNull(1)]),
    set("sigaltstack", &ALT_STACK, &[], In(0), Some(Out(1)), &[NotNull(0)]),

    ask("newfstatat", &FILE_STATUS, &[Call, Fd(0)], STAT_AT, &[EmptyPath(1)]),
    ask("statx", &FILE_STATUS, &[Call, Fd(0), Arg(3)], STATX, &[EmptyPath(1)]),
    ask("fstat", &FILE_STATUS, &[Call, Fd(0)], STAT, &[]),
    ask("fstatfs", &FILE_STATUS, &[Call, Fd(0)], &[Out(1)], &[]),
    ask("fgetxattr", &FILE_STATUS, &[Call, Fd(0), In(1), Arg(3)], &[Result, Out(2)], &[]),
    ask("stat", &PATH, &[Call, PLAIN], STAT, &[]),
    ask("lstat", &PATH, &[Call, PLAIN], STAT, &[]),
    ask("newfstatat", &PATH, &[Call, AT, Arg(3)], STAT_AT, &[]),
    ask("statx", &PATH, &[Call, AT, Arg(2), Arg(3)], STATX, &[]),
    ask("access", &NAME, &[Call, PLAIN, Arg(1)], &[Result], &[]),
    ask("faccessat", &NAME, &[Call, AT, Arg(2)], &[Result], &[]),
    ask("faccessat2", &NAME, &[Call, AT, Arg(2), Arg(3)], &[Result], &[]),
    walk("readlink", &[Call, PLAIN], &[Out(1)]),
    walk("readlinkat", &[Call, AT], &[Out(2)]),
    ask("getxattr", &NAME, &[Call, PLAIN, In(1), Arg(3)], &[Result, Out(2)], &[]),
    ask("lgetxattr", &NAME, &[Call, PLAIN, In(1), Arg(3)], &[Result, Out(2)], &[]),
    ask("listxattr", &NAME, &[Call, PLAIN, Arg(2)], &[Result, Out(1)], &[]),
    ask("llistxattr", &NAME, &[Call, PLAIN, Arg(2)], &[Result, Out(1)], &[]),
    ask("flistxattr", &FILE_STATUS, &[Call, Fd(0), Arg(2)], &[Result, Out(1)], &[]),
    ask("listxattrat", &NAME, &[Call, AT, Arg(2), Arg(4)], &[Result, Out(3)], &[]),
    ask("statfs", &NAME, &[Call, PLAIN], &[Out(1)], &[]),

    // F_GETFD, F_SETFD, F_GETFL, F_SETFL.
    ask("fcntl", &FD_FLAGS, &[Fd(0)], &[Result], &[Is(1, 1)]),
    set("fcntl", &FD_FLAGS, &[Fd(0)], ArgMask(2, 1), None, &[Is(1, 2)]),
    ask("fcntl", &STATUS_FLAGS, &[Fd(0)], &[ResultMask(SETTABLE)], &[Is(1, 3)]),
    set("fcntl", &STATUS_FLAGS, &[Fd(0)], ArgMask(2, SETTABLE), None, &[Is(1, 4)]),
    // FIOCLEX, FIONCLEX; FIONBIO, FIOASYNC; TCGETS, TCSETS; TIOCGWINSZ.
    set("ioctl", &FD_FLAGS, &[Fd(0)], Const(1), None, &[Is(1, 0x5451)]),
    set("ioctl", &FD_FLAGS, &[Fd(0)], Const(0), None, &[Is(1, 0x5450)]),
    set("ioctl", &STATUS_FLAGS, &[Fd(0), INT_1], In(2), None, &[OneOf(1, &[0x5421, 0x5452])]),
    ask("ioctl", &TERMINAL, &[Fd(0)], &[Out(2)], &[Is(1, 0x5401)]),
    set("ioctl", &TERMINAL, &[Fd(0)], In(2), None, &[Is(1, 0x5402)]),
    set("ioctl", &TERMINAL, &[Fd(0)], Unread, None, &[OneOf(1, OTHER_SETTINGS)]),
    ask("ioctl", &TERMINAL_SIZE, &[Fd(0)], &[Out(2)], &[Is(1, 0x5413)]),

    ask("getsockname", &SOCKET_NAME, &[Call, Fd(0)], &[Out(1)], &[]),
    ask("getpeername", &SOCKET_NAME, &[Call, Fd(0)], &[Out(1)], &[]),
    // Not SO_ERROR, which reading clears; not TCP_INFO, which is a measurement.
    ask("getsockopt", &SOCKET_OPTION, &[Fd(0), Arg(1), Arg(2)], &[Out(3)],
        &[OneOf(1, VALUE_LEVELS), NoneOf(2, &[4, 11])]),
    // Not attaching and detaching filters (SOL_SOCKET 26, 27, 50 to 52), not what sets another option's state.
    set("setsockopt", &SOCKET_OPTION, &[Fd(0), Arg(1), Arg(2)], In(3), None,
        &[Is(1, 1), NoneOf(2, &[26, 27, 50, 51, 52]), NoneOf(2, OTHER_OPTIONS)]),
    // Not TCP_QUICKACK, which wears off. Not joining and leaving groups (IP 35 to 40, IPv6 20 and 21).
    set("setsockopt", &SOCKET_OPTION, &[Fd(0), Arg(1), Arg(2)], In(3), None,
        &[OneOf(1, &[0, 6, 41]), NoneOf(2, &[12, 20, 21, 35, 36, 37, 38, 39, 40])]),

    // SEEK_CUR by nothing asks; SEEK_SET sets.
    ask("lseek", &POSITION, &[Fd(0)], &[Result], &[Is(2, 1), Null(1)]),
    set("lseek", &POSITION, &[Fd(0)], Arg(1), None, &[Is(2, 0)]),
    set("ftruncate", &SIZE, &[Fd(0)], Arg(1), None, &[]),
    set("fsync", &SYNCED, &[Fd(0)], Nothing, None, &[]),
    set("fdatasync", &SYNCED, &[Fd(0)], Nothing, None, &[]),

    // EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD.
    set("epoll_ctl", &INTEREST, &[Fd(0), Fd(2)], In(3), None, &[Is(1, 1)]),
    set("epoll_ctl", &INTEREST, &[Fd(0), Fd(2)], Nothing, None, &[Is(1, 2)]),
    set("epoll_ctl", &INTEREST, &[Fd(0), Fd(2)], In(3), None, &[Is(1, 3), InNoBits(3, REARMING)]),
    set("epoll_ctl", &INTEREST, &[Fd(0), Fd(2)], Unread, None, &[Is(1, 3)]),

    set("mprotect", &PROTECTION, &[Arg(0), Arg(1)], Arg(2), None, &[]),
    // MADV_NORMAL, RANDOM, SEQUENTIAL; DONTFORK, DOFORK; MERGEABLE to DODUMP: they stay until changed.
    set("madvise", &ADVICE, &[Arg(0), Arg(1)], Arg(2), None,
        &[OneOf(2, &[0, 1, 2, 10, 11, 12, 13, 14, 15, 16, 17])]),
    set("brk", &BREAK, &[], Result, None, &[NotNull(0)]),
    attempt("open", &[PLAIN, Arg(1)], &[]),
    attempt("openat", &[AT, Arg(2)], &[]),
    attempt("openat2", &[AT, In(2)], &[]),
    attempt("creat", &[PLAIN], &[]),
    attempt("execve", &[PLAIN], &[]),
    attempt("mkdir", &[PLAIN], &[]),
    attempt("mkdirat", &[AT], &[]),
    attempt("unlink", &[PLAIN], &[]),
    attempt("unlinkat", &[AT, Arg(2)], &[]),
    attempt("rmdir", &[PLAIN], &[]),
    attempt("symlink", &[In(0), Path { at: None, path: 1 }], &[]),
    attempt("inotify_add_watch", &[Path { at: None, path: 1 }], &[]),
    attempt("chmod", &[PLAIN, Arg(1)], &[]),
    attempt("chown", &[PLAIN, Args(3)], &[]),
    attempt("truncate", &[PLAIN, Arg(1)], &[]),
    attempt("kill", &[Arg(0), Arg(1)], &[]),
    attempt("tgkill", &[Args(3)], &[]),
    attempt("setpriority", &[Args(3)], &[]),
    attempt("mlock", &[Args(2)], &[]),
    attempt("mlockall", &[Arg(0)], &[]),
    attempt("mlock2", &[Args(3)], &[]),
    attempt("execveat", &[AT, Arg(4)], &[]),
    attempt("name_to_handle_at", &[AT, Arg(4)], &[]),
    attempt("getxattrat", &[AT, Arg(2), In(3)], &[]),
    attempt("tkill", &[Args(2)], &[]),
    attempt("rt_sigqueueinfo", &[Args(2)], &[]),
    attempt("rt_tgsigqueueinfo", &[Args(3)], &[]),
    attempt("pidfd_send_signal", &[Fd(0), Arg(1)], &[]),
    attempt("ptrace", &[Args(4)], &[]),
    attempt("sched_setscheduler", &[Args(2), In(2)], &[]),
    attempt("sched_setparam", &[Arg(0), In(1)], &[]),
    attempt("sched_setattr", &[Arg(0), Arg(2)], &[]),
    attempt("add_key", &[In(0), In(1)], &[]),
    attempt("mq_open", &[In(0), Arg(1)], &[]),
    attempt("move_mount", &[AT, Path { at: Some(2), path: 3 }], &[]),
    attempt("pivot_root", &[PLAIN, Path { at: None, path: 1 }], &[]),
    attempt("swapon", &[PLAIN], &[]),
    attempt("swapoff", &[PLAIN], &[]),
    attempt("acct", &[PLAIN], &[]),
    attempt("personality", &[Arg(0)], &[]),
    attempt("socket", &[Args(3)], &[]),
    attempt("perf_event_open", &[In(0), Args(3)], &[]),
    attempt("bpf", &[Arg(0)], &[]),
    attempt("keyctl", &[Args(3)], &[]),
    attempt("request_key", &[In(0), In(1)], &[]),

    set("umask", &UMASK, &[], ArgMask(0, 0o777), Some(Result), &[]),
];
