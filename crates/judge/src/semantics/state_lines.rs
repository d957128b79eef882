//! The calls that ask about state, and the calls that set it.
//!
//! Argument positions are those of the kernel's calls (man 2). The first line of a call that applies counts.

use super::effects::OTHER_OPTIONS;
use super::state::*;
use super::vocabulary::Source::{
    Arg, ArgAndIn, ArgAndResult, ArgMask, Args, Call, Const, Fd, File, In, InAbsolute, Nothing, Out, OutBut, OutStart,
    OutStr, Path, Result, ResultMask, Unread, Words,
};
use super::vocabulary::When::{
    self, EmptyPath, InAnyBits, InNoBits, InTimes, InZeros, Is, NoBits, NoneOf, NotNull, Null, OneOf,
};
use super::vocabulary::{Act, How, Source};
use systoll_model::constants::*;

/// A call that asks about state, sets it, or tries something that may be refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateLine {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// The kind of state.
    pub about: &'static State,
    /// Values that identify the piece of state.
    pub key: &'static [Source],
    /// The question, set or attempt.
    pub act: Act,
    /// True if consecutive questions may walk down one path, each extending the last.
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

/// Returns a line for an operation that may be refused: the program knows the second time that it will be.
const fn attempt(call: &'static str) -> StateLine {
    StateLine { act: Act::Try, ..ask(call, &ATTEMPT) }
}

/// Returns a line for the making of a folder, which may stand there.
const fn making(call: &'static str) -> StateLine {
    StateLine { about: &MAKING, ..attempt(call) }
}

/// Returns a line for a set of the thread's signal mask.
const fn mask(how: How) -> StateLine {
    let act = Act::Set { value: In(1), old: Some(Out(2)), how, never: UNBLOCKABLE };
    StateLine { act, ..ask("rt_sigprocmask", &SIGNAL_MASK) }
}

impl StateLine {
    /// Returns the line with these conditions.
    const fn when(self, when: &'static [When]) -> Self {
        Self { when, ..self }
    }

    /// Returns the line with the values that identify the piece of state.
    const fn key(self, key: &'static [Source]) -> Self {
        Self { key, ..self }
    }

    /// Returns the line with the values that make up the answer.
    const fn answer(self, answer: &'static [Source]) -> Self {
        Self { act: Act::Ask(answer), ..self }
    }

    /// Returns the line with the source of the new value.
    const fn value(mut self, new: Source) -> Self {
        if let Act::Set { value, .. } = &mut self.act {
            *value = new;
        }
        self
    }

    /// Returns the line with the place where the call itself tells the old value.
    const fn old(mut self, source: Source) -> Self {
        if let Act::Set { old, .. } = &mut self.act {
            *old = Some(source);
        }
        self
    }
}

/// Signals that the kernel removes from every mask.
const UNBLOCKABLE: u64 = 1 << (SIGKILL - 1) | 1 << (SIGSTOP - 1);
/// The flags that F_SETFL can change.
const SETTABLE: u64 = (O_APPEND | O_NONBLOCK | O_ASYNC | O_DIRECT | O_NOATIME) as u64;
/// Levels whose options are values, not commands.
const VALUE_LEVELS: &[u32] = &[SOL_SOCKET, SOL_IP, SOL_TCP, SOL_IPV6];
/// The answer of stat: `struct stat` without the access time (bytes 72..88), which changes by itself.
const STAT: &[Source] = &[OutBut(1, 72, 88)];
/// The answer of newfstatat: `struct stat` without the access time.
const STAT_AT: &[Source] = &[OutBut(2, 72, 88)];
/// The answer of statx: `struct statx` without the access time (bytes 64..80).
const STATX: &[Source] = &[OutBut(4, 64, 80)];
/// The first argument as an int: the kernel ignores its upper half.
const INT_0: Source = ArgMask(0, 0xffff_ffff);
/// The second argument as an int.
const INT_1: Source = ArgMask(1, 0xffff_ffff);
/// Commands that set a terminal in another form, or after its data is written or dropped.
const OTHER_SETTINGS: &[u32] = &[TCSETSW, TCSETSF, TCSETA, TCSETAW, TCSETAF, TCSETS2, TCSETSW2, TCSETSF2];
/// Advice that stays in force until it is changed.
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
/// Attributes of the thread that prctl gets.
const GOTTEN: &[u32] = &[PR_GET_DUMPABLE, PR_GET_KEEPCAPS, PR_GET_TIMERSLACK, PR_GET_NO_NEW_PRIVS];
/// Attributes of the thread that prctl sets.
const SETTABLE_ATTRIBUTES: &[u32] =
    &[PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_TIMERSLACK, PR_SET_NO_NEW_PRIVS];
/// Socket options that attach and detach filters: commands, not values.
pub(super) const FILTERS: &[u32] =
    &[SO_ATTACH_FILTER, SO_DETACH_FILTER, SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_CBPF, SO_ATTACH_REUSEPORT_EBPF];
/// Socket options without a lasting value: those that join and leave groups are commands, and
/// TCP_QUICKACK wears off.
pub(super) const NO_VALUES: &[u32] = &[
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
/// Process or thread id that means the caller.
const CALLER: u32 = 0;
/// First part of a key: it tells a file's mode, owner and attributes apart.
const MODE: Source = Const(0);
const OWNER: Source = Const(1);
const ATTRIBUTE: Source = Const(2);
/// The part of a key that tells user ids and group ids apart.
const USER: Source = Const(0);
const GROUP: Source = Const(1);
const AT: Source = Path { at: Some(0), path: 1 };
const PLAIN: Source = Path { at: None, path: 0 };

/// The questions, sets and attempts.
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
    ask("getgroups", &IDENTITY).key(&[Call, Arg(0)]).answer(&[Result]).when(&[Is(0, 0)]),
    ask("getgroups", &IDENTITY).key(&[Call, Arg(0)]).answer(&[Result, Out(1)]),
    ask("getresuid", &IDENTITY).key(&[Call]).answer(&[Out(0), Out(1), Out(2)]),
    ask("getresgid", &IDENTITY).key(&[Call]).answer(&[Out(0), Out(1), Out(2)]),
    ask("getppid", &PARENT).key(&[Call]).answer(&[Result]),
    ask("gettid", &THREAD_ID).key(&[Call]).answer(&[Result]),
    // Less of the structure is read than it has; the host's name lies within this part.
    ask("uname", &KERNEL).key(&[Call]).answer(&[OutStart(0, 130)]),

    ask("getcwd", &CWD).answer(&[OutStr(0)]),
    set("chdir", &FOLDER).value(InAbsolute(0)),
    set("fchdir", &FOLDER).value(File(0)),

    // The caller's own limits, by either call. A number may be that of the caller or of another process.
    ask("getrlimit", &LIMITS).key(&[INT_0]).answer(&[Out(1)]),
    set("setrlimit", &LIMITS).key(&[INT_0]).value(In(1)),
    ask("prlimit64", &LIMITS).key(&[INT_1]).answer(&[Out(3)]).when(&[Is(0, CALLER), Null(2)]),
    set("prlimit64", &LIMITS).key(&[INT_1]).value(In(2)).old(Out(3)).when(&[Is(0, CALLER)]),
    ask("prlimit64", &LIMITS).key(&[INT_0, INT_1]).answer(&[Out(3)]).when(&[Null(2)]),
    set("prlimit64", &LIMITS).key(&[INT_0, INT_1]).value(In(2)).old(Out(3)),

    ask("sched_getaffinity", &AFFINITY).key(&[Call, Arg(0), Arg(1)]).answer(&[Result, Out(2)]),
    ask("sched_getscheduler", &SCHEDULING).key(&[Call, Arg(0)]).answer(&[Result]),
    ask("sched_getparam", &SCHEDULING).key(&[Call, Arg(0)]).answer(&[Out(1)]),
    ask("sched_get_priority_max", &KERNEL).key(&[Call, Arg(0)]).answer(&[Result]),
    ask("sched_get_priority_min", &KERNEL).key(&[Call, Arg(0)]).answer(&[Result]),
    ask("getpriority", &PRIORITY).key(&[Call, Arg(0), Arg(1)]).answer(&[Result]),
    ask("ioprio_get", &IO_PRIORITY).key(&[Call, Arg(0), Arg(1)]).answer(&[Result]),
    ask("sched_rr_get_interval", &SCHEDULING).key(&[Call, Arg(0)]).answer(&[Out(1)]),
    ask("sched_getattr", &SCHEDULING_ATTRIBUTES).key(&[Call, Arg(0), Arg(2)]).answer(&[Out(1)]),
    ask("clock_getres", &KERNEL).key(&[Call, Arg(0)]).answer(&[Out(1)]).when(&[NotNull(1)]),
    // The arguments name the caller by 0 or by number, another process, a group or a user.
    set("ioprio_set", &IO_PRIORITY).key(&[Call, Arg(0), Arg(1)]).value(Arg(2)),
    set("setpriority", &PRIORITY).key(&[Call, Arg(0), Arg(1)]).value(Arg(2)),
    set("sched_setaffinity", &AFFINITY).key(&[Call, Arg(0)]).value(In(2)),
    set("sched_setscheduler", &SCHEDULING).key(&[Call, Arg(0)]).value(ArgAndIn(1, 2)),
    set("sched_setparam", &SCHEDULING).key(&[Call, Arg(0)]).value(In(1)),
    set("sched_setattr", &SCHEDULING_ATTRIBUTES).key(&[Call, Arg(0), Arg(2)]).value(In(1)),
    ask("capget", &CAPABILITIES).key(&[Call]).answer(&[Out(1)]).when(&[NotNull(1)]),

    ask("prctl", &ATTRIBUTES).key(&[Call]).answer(&[OutStr(1)]).when(&[Is(0, PR_GET_NAME)]),
    set("prctl", &ATTRIBUTES).key(&[Call]).value(In(1)).when(&[Is(0, PR_SET_NAME)]),
    ask("prctl", &ATTRIBUTES).key(&[Call, Arg(0)]).answer(&[Result]).when(&[OneOf(0, GOTTEN)]),
    set("prctl", &ATTRIBUTES).key(&[Call, Arg(0)]).value(Arg(1)).when(&[OneOf(0, SETTABLE_ATTRIBUTES)]),
    set("setresuid", &CREDENTIALS).key(&[USER]).value(Args(3)),
    set("setresgid", &CREDENTIALS).key(&[GROUP]).value(Args(3)),

    ask("rt_sigprocmask", &SIGNAL_MASK).answer(&[Out(2)]).when(&[Null(1), NotNull(2)]),
    // Without a new mask and without a place for the old one, the call does nothing.
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
    ask("fstatfs", &ROOM).key(&[Call, Fd(0)]).answer(&[Out(1)]),
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
    ask("statfs", &ROOM).key(&[Call, PLAIN]).answer(&[Out(1)]),

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
    // SO_ERROR is absent, since reading clears it, and TCP_INFO, which is a measurement.
    ask("getsockopt", &SOCKET_OPTION).key(&[Fd(0), Arg(1), Arg(2)]).answer(&[Out(3)])
        .when(&[OneOf(1, VALUE_LEVELS), NoneOf(2, &[SO_ERROR, TCP_INFO])]),
    // The table of effects has the options that also set another option.
    set("setsockopt", &SOCKET_OPTION).key(&[Fd(0), Arg(1), Arg(2)]).value(In(3))
        .when(&[Is(1, SOL_SOCKET), NoneOf(2, FILTERS), NoneOf(2, OTHER_OPTIONS)]),
    set("setsockopt", &SOCKET_OPTION).key(&[Fd(0), Arg(1), Arg(2)]).value(In(3))
        .when(&[OneOf(1, &[SOL_IP, SOL_TCP, SOL_IPV6]), NoneOf(2, NO_VALUES)]),

    // SEEK_CUR with an offset of 0 asks for the position; SEEK_SET sets it.
    ask("lseek", &POSITION).key(&[Fd(0)]).answer(&[Result]).when(&[Is(2, SEEK_CUR), Null(1)]),
    set("lseek", &POSITION).key(&[Fd(0)]).value(Arg(1)).when(&[Is(2, SEEK_SET)]),
    // The end is where it stands already if only this descriptor was written to since.
    set("lseek", &POSITION).key(&[Fd(0)]).value(Result).when(&[Is(2, SEEK_END), Null(1)]),
    set("ftruncate", &SIZE).key(&[Fd(0)]).value(Arg(1)),
    set("fsync", &SYNCED).key(&[Fd(0)]).value(Nothing),
    set("fdatasync", &SYNCED).key(&[Fd(0)]).value(Nothing),

    // Adding succeeds only if there was no interest, and removing only if there was one, whichever thread set it.
    set("epoll_ctl", &INTEREST).key(&[Fd(0), Fd(2)]).value(In(3)).old(Nothing).when(&[Is(1, EPOLL_CTL_ADD)]),
    set("epoll_ctl", &INTEREST).key(&[Fd(0), Fd(2)]).value(Nothing).old(Unread).when(&[Is(1, EPOLL_CTL_DEL)]),
    // An event that was delivered takes an interest of EPOLLONESHOT away.
    set("epoll_ctl", &INTEREST).key(&[Fd(0), Fd(2)]).value(In(3)).when(&[Is(1, EPOLL_CTL_MOD), InNoBits(3, EPOLLET)]),
    set("epoll_ctl", &INTEREST).key(&[Fd(0), Fd(2)]).value(Unread).when(&[Is(1, EPOLL_CTL_MOD)]),

    // A timer that is not set gets the value Nothing. The time left of a set timer is unknown.
    set("timerfd_settime", &TIMER_DESCRIPTOR).key(&[Fd(0)]).value(Nothing).when(&[InZeros(2)]),
    set("timerfd_settime", &TIMER_DESCRIPTOR).key(&[Fd(0)]).value(Unread),
    set("timer_settime", &TIMER).key(&[Arg(0)]).value(Nothing).when(&[InZeros(2)]),
    set("timer_settime", &TIMER).key(&[Arg(0)]).value(Unread),
    set("setitimer", &ALARM).key(&[Arg(0)]).value(Nothing).when(&[InZeros(1)]),
    set("setitimer", &ALARM).key(&[Arg(0)]).value(Unread),
    // The call sets the timer ITIMER_REAL, whose number is 0.
    set("alarm", &ALARM).key(&[Const(0)]).value(Nothing).when(&[Is(0, 0)]),
    set("alarm", &ALARM).key(&[Const(0)]).value(Unread),

    set("mprotect", &PROTECTION).key(&[Arg(0), Arg(1)]).value(Arg(2)),
    set("madvise", &GIVEN_BACK).key(&[Arg(0), Arg(1)]).value(Nothing)
        .when(&[OneOf(2, &[MADV_DONTNEED, MADV_FREE, MADV_REMOVE])]),
    set("madvise", &ADVICE).key(&[Arg(0), Arg(1)]).value(Arg(2)).when(&[OneOf(2, LASTING_ADVICE)]),
    set("brk", &BREAK).value(Result).when(&[NotNull(0)]),
    // These calls set a file's mode, owner, named attributes and times.
    set("chmod", &RIGHTS).key(&[MODE, PLAIN]).value(Arg(1)),
    set("fchmodat", &RIGHTS).key(&[MODE, AT]).value(Arg(2)),
    set("fchmodat2", &RIGHTS).key(&[MODE, AT]).value(Arg(2)),
    set("fchmod", &RIGHTS_OF_FILE).key(&[MODE, File(0)]).value(Arg(1)),
    set("chown", &RIGHTS).key(&[OWNER, PLAIN]).value(Words(1, 2)),
    set("fchownat", &RIGHTS).key(&[OWNER, AT]).value(Words(2, 2)).when(&[NoBits(4, AT_SYMLINK_NOFOLLOW)]),
    set("fchown", &RIGHTS_OF_FILE).key(&[OWNER, File(0)]).value(Words(1, 2)),
    set("setxattr", &RIGHTS).key(&[ATTRIBUTE, PLAIN, In(1)]).value(In(2)),
    set("fsetxattr", &RIGHTS_OF_FILE).key(&[ATTRIBUTE, File(0), In(1)]).value(In(2)),
    set("utimensat", &TIMES_OF_FILE).key(&[File(0)]).value(In(2)).when(&[Null(1), InTimes(2)]),
    set("utimensat", &TIMES).key(&[AT]).value(In(2)).when(&[NotNull(1), NoBits(3, AT_SYMLINK_NOFOLLOW), InTimes(2)]),
    // These calls take microseconds, so that their values are never compared with those of
    // utimensat.
    set("utimes", &TIMES).key(&[PLAIN]).value(In(1)).when(&[NotNull(1)]),
    set("futimesat", &TIMES).key(&[AT]).value(In(2)).when(&[NotNull(1), NotNull(2)]),
    attempt("open").key(&[PLAIN, Arg(1)]),
    attempt("openat").key(&[AT, Arg(2)]),
    attempt("openat2").key(&[AT, In(2)]),
    attempt("creat").key(&[PLAIN]),
    attempt("execve").key(&[PLAIN]),
    making("mkdir").key(&[PLAIN]),
    making("mkdirat").key(&[AT]),
    attempt("unlink").key(&[PLAIN]),
    attempt("unlinkat").key(&[AT, Arg(2)]),
    attempt("rmdir").key(&[PLAIN]),
    attempt("symlink").key(&[In(0), Path { at: None, path: 1 }]),
    // The result is the watch's number. The same number again means that the file is the same and
    // that nothing removed the watch, whatever was made or removed in a folder meanwhile.
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
    // A local address: its family is 1, AF_UNIX.
    attempt("connect").key(&[In(1)]).when(&[InAnyBits(1, 1), InNoBits(1, 0xfffe)]),
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
