//! Which calls ask about which state, and which set it.
//!
//! Argument positions are those of the kernel's own calls (man 2). Of a call's lines the first that
//! applies counts.

use super::effects::OTHER_OPTIONS;
use super::state::*;
use super::vocabulary::Source::{
    Arg, ArgAndIn, ArgAndResult, ArgMask, Args, Call, Const, Fd, In, InAbsolute, Nothing, Out, OutBut, OutStart,
    OutStr, Path, Result, ResultMask, Unread,
};
use super::vocabulary::When::{self, EmptyPath, InNoBits, InZeros, Is, NoneOf, NotNull, Null, OneOf};
use super::vocabulary::{Act, How, Source};
use systoll_model::constants::*;

/// A call that asks about state, sets it, or tries something that may be refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateLine {
    /// The system call's name.
    pub call: &'static str,
    /// All must hold.
    pub when: &'static [When],
    /// What it is about.
    pub about: &'static State,
    /// What tells one piece of such state from another.
    pub key: &'static [Source],
    /// What it does.
    pub act: Act,
    /// Whether consecutive questions may walk down one path, each extending the last.
    pub chain: bool,
}

const fn ask(call: &'static str, about: &'static State) -> StateLine {
    StateLine { call, when: &[], about, key: &[], act: Act::Ask(&[]), chain: false }
}

const fn walk(call: &'static str) -> StateLine {
    StateLine { chain: true, ..ask(call, &NAME) }
}

const fn set(call: &'static str, about: &'static State) -> StateLine {
    let act = Act::Set { value: Unread, old: None, how: How::Replace, never: 0 };
    StateLine { act, ..ask(call, about) }
}

/// What a call does that may be refused: the same refusal again was known.
const fn attempt(call: &'static str) -> StateLine {
    StateLine { act: Act::Try, ..ask(call, &ATTEMPT) }
}

/// A set of the thread's signal mask.
const fn mask(how: How) -> StateLine {
    let act = Act::Set { value: In(1), old: Some(Out(2)), how, never: UNBLOCKABLE };
    StateLine { act, ..ask("rt_sigprocmask", &SIGNAL_MASK) }
}

impl StateLine {
    /// Only where all of these hold.
    const fn when(self, when: &'static [When]) -> Self {
        Self { when, ..self }
    }

    /// Pieces of such state are told apart by these.
    const fn key(self, key: &'static [Source]) -> Self {
        Self { key, ..self }
    }

    /// These make up the answer.
    const fn answer(self, answer: &'static [Source]) -> Self {
        Self { act: Act::Ask(answer), ..self }
    }

    /// This is the new value.
    const fn value(mut self, new: Source) -> Self {
        if let Act::Set { value, .. } = &mut self.act {
            *value = new;
        }
        self
    }

    /// The call itself tells the old value here.
    const fn old(mut self, source: Source) -> Self {
        if let Act::Set { old, .. } = &mut self.act {
            *old = Some(source);
        }
        self
    }
}

/// The kernel takes them out of every mask.
const UNBLOCKABLE: u64 = 1 << (SIGKILL - 1) | 1 << (SIGSTOP - 1);
/// The flags F_SETFL can change.
const SETTABLE: u64 = (O_APPEND | O_NONBLOCK | O_ASYNC | O_DIRECT | O_NOATIME) as u64;
/// Setting the same interest again re-arms, so it is of use.
const REARMING: u32 = EPOLLONESHOT | EPOLLET;
/// Levels whose options are values, not commands.
const VALUE_LEVELS: &[u32] = &[SOL_SOCKET, SOL_IP, SOL_TCP, SOL_IPV6];
/// `struct stat`: the access time moves by itself (bytes 72..88).
const STAT: &[Source] = &[OutBut(1, 72, 88)];
/// As [`STAT`], for newfstatat.
const STAT_AT: &[Source] = &[OutBut(2, 72, 88)];
/// `struct statx`: the access time is at bytes 64..80.
const STATX: &[Source] = &[OutBut(4, 64, 80)];
/// Arguments that the kernel reads as an int: what is above is left over.
const INT_0: Source = ArgMask(0, 0xffff_ffff);
const INT_1: Source = ArgMask(1, 0xffff_ffff);
/// Settings in other words, or with what is written and read meanwhile.
const OTHER_SETTINGS: &[u32] = &[TCSETSW, TCSETSF, TCSETA, TCSETAW, TCSETAF, TCSETS2, TCSETSW2, TCSETSF2];
/// Advice that stays until it is changed.
const LASTING_ADVICE: &[u32] = &[
    MADV_NORMAL,
    MADV_RANDOM,
    MADV_SEQUENTIAL,
    MADV_DONTFORK,
    MADV_DOFORK,
    MADV_MERGEABLE,
    MADV_UNMERGEABLE,
    MADV_HUGEPAGE,
    MADV_NOHUGEPAGE,
    MADV_DONTDUMP,
    MADV_DODUMP,
];
/// Attributes of the thread that prctl gets, and those that it sets.
const GOTTEN: &[u32] = &[PR_GET_DUMPABLE, PR_GET_KEEPCAPS, PR_GET_TIMERSLACK, PR_GET_NO_NEW_PRIVS];
const SETTABLE_ATTRIBUTES: &[u32] =
    &[PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_TIMERSLACK, PR_SET_NO_NEW_PRIVS];
/// Filters are attached and detached: commands, not values.
const FILTERS: &[u32] =
    &[SO_ATTACH_FILTER, SO_DETACH_FILTER, SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_CBPF, SO_ATTACH_REUSEPORT_EBPF];
/// Groups are joined and left: commands, not values. TCP_QUICKACK wears off.
const NO_VALUES: &[u32] = &[
    TCP_QUICKACK,
    IPV6_ADD_MEMBERSHIP,
    IPV6_DROP_MEMBERSHIP,
    IP_ADD_MEMBERSHIP,
    IP_DROP_MEMBERSHIP,
    IP_UNBLOCK_SOURCE,
    IP_BLOCK_SOURCE,
    IP_ADD_SOURCE_MEMBERSHIP,
    IP_DROP_SOURCE_MEMBERSHIP,
];
/// As a process or thread id: the caller's own.
const CALLER: u32 = 0;
const AT: Source = Path { at: Some(0), path: 1 };
const PLAIN: Source = Path { at: None, path: 0 };

/// The table.
#[rustfmt::skip]
pub(crate) static STATE_LINES: &[StateLine] = &[
    ask("getpid", &IDENTITY).key(&[Call]).answer(&[Result]),
    ask("getuid", &IDENTITY).key(&[Call]).answer(&[Result]),
    ask("geteuid", &IDENTITY).key(&[Call]).answer(&[Result]),
    ask("getgid", &IDENTITY).key(&[Call]).answer(&[Result]),
    ask("getegid", &IDENTITY).key(&[Call]).answer(&[Result]),
    ask("getpgrp", &IDENTITY).key(&[Call]).answer(&[Result]),
    ask("getpgid", &IDENTITY).key(&[Call, Arg(0)]).answer(&[Result]),
    ask("getsid", &IDENTITY).key(&[Call, Arg(0)]).answer(&[Result]),
    ask("getgroups", &IDENTITY).key(&[Call, Arg(0)]).answer(&[Result, Out(1)]),
    ask("getresuid", &IDENTITY).key(&[Call]).answer(&[Out(0), Out(1), Out(2)]),
    ask("getresgid", &IDENTITY).key(&[Call]).answer(&[Out(0), Out(1), Out(2)]),
    ask("getppid", &PARENT).key(&[Call]).answer(&[Result]),
    ask("gettid", &THREAD_ID).key(&[Call]).answer(&[Result]),
    // The structure may be longer than what is read of it; the host's name lies within this.
    ask("uname", &KERNEL).key(&[Call]).answer(&[OutStart(0, 130)]),

    ask("getcwd", &CWD).answer(&[OutStr(0)]),
    set("chdir", &FOLDER).value(InAbsolute(0)),

    // One's own, by either call; by a number it may be one's own as well, or another's.
    ask("getrlimit", &LIMITS).key(&[INT_0]).answer(&[Out(1)]),
    set("setrlimit", &LIMITS).key(&[INT_0]).value(In(1)),
    ask("prlimit64", &LIMITS).key(&[INT_1]).answer(&[Out(3)]).when(&[Is(0, CALLER), Null(2)]),
    set("prlimit64", &LIMITS).key(&[INT_1]).value(In(2)).old(Out(3)).when(&[Is(0, CALLER)]),
    ask("prlimit64", &LIMITS).key(&[INT_0, INT_1]).answer(&[Out(3)]).when(&[Null(2)]),
    set("prlimit64", &LIMITS).key(&[INT_0, INT_1]).value(In(2)).old(Out(3)),

    ask("sched_getaffinity", &SCHEDULING).key(&[Call, Arg(0), Arg(1)]).answer(&[Result, Out(2)]),
    ask("sched_getscheduler", &SCHEDULING).key(&[Call, Arg(0)]).answer(&[Result]),
    ask("sched_getparam", &SCHEDULING).key(&[Call, Arg(0)]).answer(&[Out(1)]),
    ask("sched_get_priority_max", &KERNEL).key(&[Call, Arg(0)]).answer(&[Result]),
    ask("sched_get_priority_min", &KERNEL).key(&[Call, Arg(0)]).answer(&[Result]),
    ask("getpriority", &SCHEDULING).key(&[Call, Arg(0), Arg(1)]).answer(&[Result]),
    ask("ioprio_get", &SCHEDULING).key(&[Call, Arg(0), Arg(1)]).answer(&[Result]),
    ask("sched_rr_get_interval", &SCHEDULING).key(&[Call, Arg(0)]).answer(&[Out(1)]),
    ask("sched_getattr", &SCHEDULING).key(&[Call, Arg(0), Arg(2)]).answer(&[Out(1)]),
    ask("clock_getres", &KERNEL).key(&[Call, Arg(0)]).answer(&[Out(1)]).when(&[NotNull(1)]),
    // Of whom the arguments tell: of oneself by 0 or by number, of another, of a group, of a user.
    set("ioprio_set", &SCHEDULING).key(&[Call, Arg(0), Arg(1)]).value(Arg(2)),
    set("setpriority", &SCHEDULING).key(&[Call, Arg(0), Arg(1)]).value(Arg(2)),
    set("sched_setaffinity", &SCHEDULING).key(&[Call, Arg(0)]).value(In(2)),
    set("sched_setscheduler", &SCHEDULING).key(&[Call, Arg(0)]).value(ArgAndIn(1, 2)),
    set("sched_setparam", &SCHEDULING).key(&[Call, Arg(0)]).value(In(1)),
    set("sched_setattr", &SCHEDULING).key(&[Call, Arg(0), Arg(2)]).value(In(1)),
    ask("capget", &CAPABILITIES).key(&[Call]).answer(&[Out(1)]).when(&[NotNull(1)]),

    ask("prctl", &ATTRIBUTES).key(&[Call]).answer(&[OutStr(1)]).when(&[Is(0, PR_GET_NAME)]),
    set("prctl", &ATTRIBUTES).key(&[Call]).value(In(1)).when(&[Is(0, PR_SET_NAME)]),
    ask("prctl", &ATTRIBUTES).key(&[Call, Arg(0)]).answer(&[Result]).when(&[OneOf(0, GOTTEN)]),
    set("prctl", &ATTRIBUTES).key(&[Call, Arg(0)]).value(Arg(1)).when(&[OneOf(0, SETTABLE_ATTRIBUTES)]),
    set("setresuid", &CREDENTIALS).key(&[Call]).value(Args(3)),
    set("setresgid", &CREDENTIALS).key(&[Call]).value(Args(3)),

    ask("rt_sigprocmask", &SIGNAL_MASK).answer(&[Out(2)]).when(&[Null(1), NotNull(2)]),
    // Neither a set nor a place for the old one: nothing happens at all.
    StateLine {
        act: Act::Set { value: Arg(1), old: None, how: How::Add, never: UNBLOCKABLE },
        ..mask(How::Add).when(&[Null(1), Null(2)])
    },
    mask(How::Add).when(&[Is(0, SIG_BLOCK), NotNull(1)]),
    mask(How::Remove).when(&[Is(0, SIG_UNBLOCK), NotNull(1)]),
    mask(How::Replace).when(&[Is(0, SIG_SETMASK), NotNull(1)]),
    ask("rt_sigaction", &HANDLER).key(&[Arg(0)]).answer(&[Out(2)]).when(&[Null(1), NotNull(2)]),
    set("rt_sigaction", &HANDLER).key(&[Arg(0)]).value(In(1)).old(Out(2)).when(&[NotNull(1)]),
    ask("sigaltstack", &ALT_STACK).answer(&[Out(1)]).when(&[Null(0), NotNull(1)]),
    set("sigaltstack", &ALT_STACK).value(In(0)).old(Out(1)).when(&[NotNull(0)]),

    ask("newfstatat", &FILE_STATUS).key(&[Call, Fd(0)]).answer(STAT_AT).when(&[EmptyPath(1)]),
    ask("statx", &FILE_STATUS).key(&[Call, Fd(0), Arg(3)]).answer(STATX).when(&[EmptyPath(1)]),
    ask("fstat", &FILE_STATUS).key(&[Call, Fd(0)]).answer(STAT),
    ask("fstatfs", &FILE_STATUS).key(&[Call, Fd(0)]).answer(&[Out(1)]),
    ask("fgetxattr", &FILE_STATUS).key(&[Call, Fd(0), In(1), Arg(3)]).answer(&[Result, Out(2)]),
    ask("stat", &PATH).key(&[Call, PLAIN]).answer(STAT),
    ask("lstat", &PATH).key(&[Call, PLAIN]).answer(STAT),
    ask("newfstatat", &PATH).key(&[Call, AT, Arg(3)]).answer(STAT_AT),
    ask("statx", &PATH).key(&[Call, AT, Arg(2), Arg(3)]).answer(STATX),
    ask("access", &NAME).key(&[Call, PLAIN, Arg(1)]).answer(&[Result]),
    ask("faccessat", &NAME).key(&[Call, AT, Arg(2)]).answer(&[Result]),
    ask("faccessat2", &NAME).key(&[Call, AT, Arg(2), Arg(3)]).answer(&[Result]),
    walk("readlink").key(&[Call, PLAIN]).answer(&[Out(1)]),
    walk("readlinkat").key(&[Call, AT]).answer(&[Out(2)]),
    ask("getxattr", &NAME).key(&[Call, PLAIN, In(1), Arg(3)]).answer(&[Result, Out(2)]),
    ask("lgetxattr", &NAME).key(&[Call, PLAIN, In(1), Arg(3)]).answer(&[Result, Out(2)]),
    ask("listxattr", &NAME).key(&[Call, PLAIN, Arg(2)]).answer(&[Result, Out(1)]),
    ask("llistxattr", &NAME).key(&[Call, PLAIN, Arg(2)]).answer(&[Result, Out(1)]),
    ask("flistxattr", &FILE_STATUS).key(&[Call, Fd(0), Arg(2)]).answer(&[Result, Out(1)]),
    ask("listxattrat", &NAME).key(&[Call, AT, Arg(2), Arg(4)]).answer(&[Result, Out(3)]),
    ask("statfs", &NAME).key(&[Call, PLAIN]).answer(&[Out(1)]),

    ask("fcntl", &FD_FLAGS).key(&[Fd(0)]).answer(&[Result]).when(&[Is(1, F_GETFD)]),
    set("fcntl", &FD_FLAGS).key(&[Fd(0)]).value(ArgMask(2, FD_CLOEXEC as u64)).when(&[Is(1, F_SETFD)]),
    ask("fcntl", &STATUS_FLAGS).key(&[Fd(0)]).answer(&[ResultMask(SETTABLE)]).when(&[Is(1, F_GETFL)]),
    set("fcntl", &STATUS_FLAGS).key(&[Fd(0)]).value(ArgMask(2, SETTABLE)).when(&[Is(1, F_SETFL)]),
    set("ioctl", &FD_FLAGS).key(&[Fd(0)]).value(Const(FD_CLOEXEC as u64)).when(&[Is(1, FIOCLEX)]),
    set("ioctl", &FD_FLAGS).key(&[Fd(0)]).value(Const(0)).when(&[Is(1, FIONCLEX)]),
    set("ioctl", &STATUS_FLAGS).key(&[Fd(0), INT_1]).value(In(2)).when(&[OneOf(1, &[FIONBIO, FIOASYNC])]),
    ask("ioctl", &TERMINAL).key(&[Fd(0)]).answer(&[Out(2)]).when(&[Is(1, TCGETS)]),
    set("ioctl", &TERMINAL).key(&[Fd(0)]).value(In(2)).when(&[Is(1, TCSETS)]),
    set("ioctl", &TERMINAL).key(&[Fd(0)]).value(Unread).when(&[OneOf(1, OTHER_SETTINGS)]),
    ask("ioctl", &TERMINAL_SIZE).key(&[Fd(0)]).answer(&[Out(2)]).when(&[Is(1, TIOCGWINSZ)]),

    ask("getsockname", &SOCKET_NAME).key(&[Call, Fd(0)]).answer(&[Out(1)]),
    ask("getpeername", &SOCKET_NAME).key(&[Call, Fd(0)]).answer(&[Out(1)]),
    // Not SO_ERROR, which reading clears; not TCP_INFO, which is a measurement.
    ask("getsockopt", &SOCKET_OPTION).key(&[Fd(0), Arg(1), Arg(2)]).answer(&[Out(3)])
        .when(&[OneOf(1, VALUE_LEVELS), NoneOf(2, &[SO_ERROR, TCP_INFO])]),
    // What also sets another option's state stands among the effects.
    set("setsockopt", &SOCKET_OPTION).key(&[Fd(0), Arg(1), Arg(2)]).value(In(3))
        .when(&[Is(1, SOL_SOCKET), NoneOf(2, FILTERS), NoneOf(2, OTHER_OPTIONS)]),
    set("setsockopt", &SOCKET_OPTION).key(&[Fd(0), Arg(1), Arg(2)]).value(In(3))
        .when(&[OneOf(1, &[SOL_IP, SOL_TCP, SOL_IPV6]), NoneOf(2, NO_VALUES)]),

    // SEEK_CUR by nothing asks; SEEK_SET sets.
    ask("lseek", &POSITION).key(&[Fd(0)]).answer(&[Result]).when(&[Is(2, SEEK_CUR), Null(1)]),
    set("lseek", &POSITION).key(&[Fd(0)]).value(Arg(1)).when(&[Is(2, SEEK_SET)]),
    set("ftruncate", &SIZE).key(&[Fd(0)]).value(Arg(1)),
    set("fsync", &SYNCED).key(&[Fd(0)]).value(Nothing),
    set("fdatasync", &SYNCED).key(&[Fd(0)]).value(Nothing),

    set("epoll_ctl", &INTEREST).key(&[Fd(0), Fd(2)]).value(In(3)).when(&[Is(1, EPOLL_CTL_ADD)]),
    set("epoll_ctl", &INTEREST).key(&[Fd(0), Fd(2)]).value(Nothing).when(&[Is(1, EPOLL_CTL_DEL)]),
    set("epoll_ctl", &INTEREST).key(&[Fd(0), Fd(2)]).value(In(3)).when(&[Is(1, EPOLL_CTL_MOD), InNoBits(3, REARMING)]),
    set("epoll_ctl", &INTEREST).key(&[Fd(0), Fd(2)]).value(Unread).when(&[Is(1, EPOLL_CTL_MOD)]),

    // Set to nothing where it is not set. Nothing here tells what is left of a time.
    set("timerfd_settime", &TIMER_DESCRIPTOR).key(&[Fd(0)]).value(Nothing).when(&[InZeros(2)]),
    set("timerfd_settime", &TIMER_DESCRIPTOR).key(&[Fd(0)]).value(Unread),
    set("timer_settime", &TIMER).key(&[Arg(0)]).value(Nothing).when(&[InZeros(2)]),
    set("timer_settime", &TIMER).key(&[Arg(0)]).value(Unread),
    set("setitimer", &ALARM).key(&[Arg(0)]).value(Nothing).when(&[InZeros(1)]),
    set("setitimer", &ALARM).key(&[Arg(0)]).value(Unread),
    // It is the timer ITIMER_REAL, whose number is 0.
    set("alarm", &ALARM).key(&[Const(0)]).value(Nothing).when(&[Is(0, 0)]),
    set("alarm", &ALARM).key(&[Const(0)]).value(Unread),

    set("mprotect", &PROTECTION).key(&[Arg(0), Arg(1)]).value(Arg(2)),
    set("madvise", &ADVICE).key(&[Arg(0), Arg(1)]).value(Arg(2)).when(&[OneOf(2, LASTING_ADVICE)]),
    set("brk", &BREAK).value(Result).when(&[NotNull(0)]),
    attempt("open").key(&[PLAIN, Arg(1)]),
    attempt("openat").key(&[AT, Arg(2)]),
    attempt("openat2").key(&[AT, In(2)]),
    attempt("creat").key(&[PLAIN]),
    attempt("execve").key(&[PLAIN]),
    attempt("mkdir").key(&[PLAIN]),
    attempt("mkdirat").key(&[AT]),
    attempt("unlink").key(&[PLAIN]),
    attempt("unlinkat").key(&[AT, Arg(2)]),
    attempt("rmdir").key(&[PLAIN]),
    attempt("symlink").key(&[In(0), Path { at: None, path: 1 }]),
    // The same number again says that it is the same file, and that nothing took the watch off in between: whatever
    // came to be or went in a folder meanwhile.
    set("inotify_add_watch", &WATCH).key(&[Fd(0), In(1)]).value(ArgAndResult(2)),
    attempt("inotify_add_watch").key(&[Path { at: None, path: 1 }]),
    attempt("chmod").key(&[PLAIN, Arg(1)]),
    attempt("chown").key(&[PLAIN, Args(3)]),
    attempt("truncate").key(&[PLAIN, Arg(1)]),
    attempt("kill").key(&[Arg(0), Arg(1)]),
    attempt("tgkill").key(&[Args(3)]),
    attempt("setpriority").key(&[Args(3)]),
    attempt("mlock").key(&[Args(2)]),
    attempt("mlockall").key(&[Arg(0)]),
    attempt("mlock2").key(&[Args(3)]),
    attempt("execveat").key(&[AT, Arg(4)]),
    attempt("name_to_handle_at").key(&[AT, Arg(4)]),
    attempt("getxattrat").key(&[AT, Arg(2), In(3)]),
    attempt("tkill").key(&[Args(2)]),
    attempt("rt_sigqueueinfo").key(&[Args(2)]),
    attempt("rt_tgsigqueueinfo").key(&[Args(3)]),
    attempt("pidfd_send_signal").key(&[Fd(0), Arg(1)]),
    attempt("ptrace").key(&[Args(4)]),
    attempt("sched_setscheduler").key(&[Args(2), In(2)]),
    attempt("sched_setparam").key(&[Arg(0), In(1)]),
    attempt("sched_setattr").key(&[Arg(0), Arg(2)]),
    attempt("add_key").key(&[In(0), In(1)]),
    attempt("mq_open").key(&[In(0), Arg(1)]),
    attempt("move_mount").key(&[AT, Path { at: Some(2), path: 3 }]),
    attempt("pivot_root").key(&[PLAIN, Path { at: None, path: 1 }]),
    attempt("swapon").key(&[PLAIN]),
    attempt("swapoff").key(&[PLAIN]),
    attempt("acct").key(&[PLAIN]),
    attempt("personality").key(&[Arg(0)]),
    attempt("socket").key(&[Args(3)]),
    attempt("perf_event_open").key(&[In(0), Args(3)]),
    attempt("bpf").key(&[Arg(0)]),
    attempt("keyctl").key(&[Args(3)]),
    attempt("request_key").key(&[In(0), In(1)]),

    set("umask", &UMASK).value(ArgMask(0, 0o777)).old(Result),
];
