//! Side effects of calls: state that they change beside the state that they set.

use super::state::{
    ADVICE, CREDENTIALS, IO_PRIORITY, PRIORITY, RIGHTS, RIGHTS_OF_FILE, SCHEDULING, SCHEDULING_ATTRIBUTES,
    SOCKET_OPTION, State, TIMES, TIMES_OF_FILE, WATCH,
};
use super::vocabulary::When::{self, AnyBits, Is, MayHaveBits, NoneOf, NotNull, Null, OneOf};
use systoll_model::constants::*;

/// The place of the flags with which a call opens a path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OpenFlags {
    /// An argument.
    Arg(u8),
    /// The `struct open_how` that an argument points to; the flags are unknown if that was not read.
    How(u8),
    /// These flags, whatever the arguments are.
    Always(u32),
}

/// A side effect of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// The events that the argument points to were delivered by the descriptor in the first one.
    Delivers(u8),
    /// The descriptor in the argument is closed; its number may be used again for another file.
    Closes(u8),
    /// The socket in the first argument is connected to the address in the second one.
    Connects,
    /// One way of the socket in the first argument is ended.
    EndsStream,
    /// The result is a new descriptor, at position 0.
    Opens,
    /// The result is a new descriptor for the file at a path.
    OpensPath {
        /// The argument that holds the directory's descriptor.
        at: Option<u8>,
        /// The argument that points to the path.
        path: u8,
        /// The place of the flags.
        flags: OpenFlags,
    },
    /// The result is a second descriptor for an open file: they share its position.
    Shares,
    /// The descriptor in the argument now refers to another file.
    Redirects(u8),
    /// Descriptors that the call's registers do not name were made or closed.
    Descriptors,
    /// The file at the path, or its directory, may have changed.
    Path {
        /// The argument that holds the directory's descriptor.
        at: Option<u8>,
        /// The argument that points to the path.
        path: u8,
    },
    /// The file behind the descriptor was written or truncated.
    Writes(u8),
    /// The status or permissions of the file behind the descriptor may have changed.
    Restates(u8),
    /// The file behind the descriptor was read.
    Reads(u8),
    /// The position advanced by the result.
    Advances(u8),
    /// The position is unknown now.
    Moves(u8),
    /// The working directory changed, so relative paths name other files.
    WorkingDirectory,
    /// Any path may lead elsewhere.
    Root,
    /// Ids and capabilities may have changed.
    Identity,
    /// Memory was unmapped or mapped over.
    Memory,
    /// The signal mask and the signal stack may have changed.
    Signals,
    /// The process's state of this kind may have changed, under any key.
    Changes(&'static State),
    /// The state of this kind of the descriptor in the argument may have changed.
    ChangesOf(u8, &'static State),
    /// A child was made: an undone setting around it was not needless.
    Forks,
}

/// The effects of one call: its lines that apply.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Effects<'a> {
    lines: &'a [&'static EffectLine],
    /// Bit set of the lines that apply, by index in `lines`.
    apply: u8,
}

impl<'a> Effects<'a> {
    /// Largest number of lines of one call.
    pub(crate) const MOST: usize = 8;

    /// Returns the effects of a call whose lines are `lines`: those for which `applies` returns true.
    pub(super) fn of(lines: &'a [&'static EffectLine], applies: impl Fn(&EffectLine) -> bool) -> Self {
        let lines = lines.get(..Self::MOST).unwrap_or(lines);
        let apply = lines.iter().rev().fold(0, |all, line| all << 1 | u8::from(applies(line)));
        Self { lines, apply }
    }

    /// Returns the effects in the table's order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Effect> + use<'a> {
        let apply = self.apply;
        let applying = self.lines.iter().enumerate().filter(move |(at, _)| apply >> at & 1 == 1);
        applying.map(|(_, line)| line.effect)
    }

    /// Returns the place of the flags of the opening; `None` if the call opens no path.
    pub(crate) fn opening_flags(&self) -> Option<OpenFlags> {
        self.iter().find_map(|effect| match effect {
            Effect::OpensPath { flags, .. } => Some(flags),
            _ => None,
        })
    }
}

/// A line of the table. Several lines may apply to one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EffectLine {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// The effect of a successful call.
    pub effect: Effect,
}

const fn does(call: &'static str, effect: Effect) -> EffectLine {
    EffectLine { call, when: &[], effect }
}

impl EffectLine {
    /// Returns the line with these conditions.
    const fn when(self, when: &'static [When]) -> Self {
        Self { when, ..self }
    }
}

/// Returns a line for a call that may change the file at a path, or its directory.
const fn path(call: &'static str, path: u8) -> EffectLine {
    does(call, Effect::Path { at: None, path })
}

/// Returns a line for a call that may change the file at a path below a directory's descriptor, or
/// its directory; `at` and `path` are argument positions.
const fn path_at(call: &'static str, at: u8, path: u8) -> EffectLine {
    does(call, Effect::Path { at: Some(at), path })
}

/// Options of SOL_SOCKET that change the value of another option: old and new timestamps, forced buffer sizes, the
/// interface by its number, new timeouts.
pub(super) const OTHER_OPTIONS: &[u32] = &[
    SO_TIMESTAMP_OLD,
    SO_SNDBUFFORCE,
    SO_RCVBUFFORCE,
    SO_TIMESTAMPNS_OLD,
    SO_TIMESTAMPING_OLD,
    SO_BINDTOIFINDEX,
    SO_TIMESTAMP_NEW,
    SO_TIMESTAMPNS_NEW,
    SO_TIMESTAMPING_NEW,
    SO_RCVTIMEO_NEW,
    SO_SNDTIMEO_NEW,
];

const fn changes(call: &'static str, state: &'static State) -> EffectLine {
    does(call, Effect::Changes(state))
}

const fn sets_other_option(level: &'static [When]) -> EffectLine {
    does("setsockopt", Effect::ChangesOf(0, &SOCKET_OPTION)).when(level)
}

/// Flags with which the path's file may be created or truncated.
const CREATES: u32 = O_CREAT | O_TRUNC;

/// The effects of calls.
#[rustfmt::skip]
pub(crate) static EFFECT_LINES: &[EffectLine] = &[
    does("close", Effect::Closes(0)),
    does("close_range", Effect::Descriptors),
    does("open", Effect::OpensPath { at: None, path: 0, flags: OpenFlags::Arg(1) }),
    does("openat", Effect::OpensPath { at: Some(0), path: 1, flags: OpenFlags::Arg(2) }),
    does("openat2", Effect::OpensPath { at: Some(0), path: 1, flags: OpenFlags::How(2) }),
    does("creat", Effect::OpensPath { at: None, path: 0, flags: OpenFlags::Always(O_WRONLY | O_CREAT | O_TRUNC) }),
    does("socket", Effect::Opens),
    does("connect", Effect::Connects),
    does("shutdown", Effect::EndsStream),
    does("accept", Effect::Opens),
    does("accept4", Effect::Opens),
    does("dup", Effect::Shares),
    does("dup2", Effect::Redirects(1)),
    does("dup3", Effect::Redirects(1)),
    does("fcntl", Effect::Shares).when(&[OneOf(1, &[F_DUPFD, F_DUPFD_CLOEXEC])]),
    does("epoll_create", Effect::Opens),
    does("epoll_create1", Effect::Opens),
    does("eventfd", Effect::Opens),
    does("eventfd2", Effect::Opens),
    does("timerfd_create", Effect::Opens),
    does("signalfd", Effect::Opens),
    does("signalfd4", Effect::Opens),
    does("inotify_init", Effect::Opens),
    does("inotify_init1", Effect::Opens),
    does("memfd_create", Effect::Opens),
    does("pidfd_open", Effect::Opens),
    does("pidfd_getfd", Effect::Opens),
    does("perf_event_open", Effect::Opens),
    does("mq_open", Effect::Opens),
    does("open_by_handle_at", Effect::Opens),
    does("fanotify_init", Effect::Opens),
    does("userfaultfd", Effect::Opens),
    does("io_uring_setup", Effect::Opens),
    does("landlock_create_ruleset", Effect::Opens),
    does("open_tree", Effect::Opens),
    does("open_tree_attr", Effect::Opens),
    does("fsopen", Effect::Opens),
    does("fsmount", Effect::Opens),
    does("fspick", Effect::Opens),
    does("memfd_secret", Effect::Opens),
    does("pipe", Effect::Descriptors),
    does("pipe2", Effect::Descriptors),
    does("socketpair", Effect::Descriptors),
    // A message may pass descriptors (SCM_RIGHTS).
    does("recvmsg", Effect::Reads(0)),

    path("open", 0).when(&[AnyBits(1, CREATES)]),
    path_at("openat", 0, 1).when(&[AnyBits(2, CREATES)]),
    path_at("openat2", 0, 1).when(&[MayHaveBits(2, CREATES)]),
    path("creat", 0),
    path("truncate", 0),
    path("rename", 0), path("rename", 1),
    path_at("renameat", 0, 1), path_at("renameat", 2, 3),
    path_at("renameat2", 0, 1), path_at("renameat2", 2, 3),
    path("link", 0), path("link", 1),
    path_at("linkat", 0, 1), path_at("linkat", 2, 3),
    path("symlink", 1), path_at("symlinkat", 1, 2),
    path("unlink", 0), path_at("unlinkat", 0, 1),
    path("mkdir", 0), path_at("mkdirat", 0, 1),
    path("rmdir", 0),
    path("mknod", 0), path_at("mknodat", 0, 1),
    path("chmod", 0), path_at("fchmodat", 0, 1), path_at("fchmodat2", 0, 1),
    path("chown", 0), path("lchown", 0), path_at("fchownat", 0, 1),
    path("utime", 0), path("utimes", 0), path_at("futimesat", 0, 1), path_at("utimensat", 0, 1),
    path("setxattr", 0), path("lsetxattr", 0), path("removexattr", 0), path("lremovexattr", 0),
    path("mount", 1), path("umount2", 0),
    path_at("move_mount", 2, 3), path_at("mount_setattr", 0, 1), path("pivot_root", 0), path("pivot_root", 1),
    path_at("setxattrat", 0, 1), path_at("removexattrat", 0, 1), path_at("file_setattr", 0, 1),

    does("write", Effect::Writes(0)), does("write", Effect::Advances(0)),
    does("writev", Effect::Writes(0)), does("writev", Effect::Advances(0)),
    does("pwrite64", Effect::Writes(0)),
    does("pwritev", Effect::Writes(0)),
    does("pwritev2", Effect::Writes(0)), does("pwritev2", Effect::Moves(0)),
    does("sendfile", Effect::Writes(0)), does("sendfile", Effect::Moves(0)), does("sendfile", Effect::Moves(1)),
    does("splice", Effect::Writes(2)), does("splice", Effect::Moves(0)), does("splice", Effect::Moves(2)),
    does("copy_file_range", Effect::Writes(2)),
    does("copy_file_range", Effect::Moves(0)), does("copy_file_range", Effect::Moves(2)),
    does("ftruncate", Effect::Writes(0)),
    does("fallocate", Effect::Writes(0)),
    does("fchmod", Effect::Restates(0)),
    does("fchown", Effect::Restates(0)),
    does("fsetxattr", Effect::Restates(0)),
    does("fremovexattr", Effect::Restates(0)),
    does("read", Effect::Reads(0)), does("read", Effect::Advances(0)),
    does("readv", Effect::Reads(0)), does("readv", Effect::Advances(0)),
    does("pread64", Effect::Reads(0)),
    does("preadv", Effect::Reads(0)),
    does("preadv2", Effect::Reads(0)), does("preadv2", Effect::Moves(0)),
    does("getdents64", Effect::Reads(0)), does("getdents64", Effect::Moves(0)),
    does("getdents", Effect::Reads(0)), does("getdents", Effect::Moves(0)),
    does("lseek", Effect::Moves(0)).when(&[NoneOf(2, &[SEEK_SET, SEEK_CUR])]),
    does("lseek", Effect::Moves(0)).when(&[Is(2, SEEK_CUR), NotNull(1)]),

    does("chdir", Effect::WorkingDirectory),
    does("fchdir", Effect::WorkingDirectory),
    does("chroot", Effect::WorkingDirectory), does("chroot", Effect::Root),
    does("setuid", Effect::Identity), does("setgid", Effect::Identity),
    does("setreuid", Effect::Identity), does("setregid", Effect::Identity),
    does("setresuid", Effect::Identity), does("setresgid", Effect::Identity),
    does("setfsuid", Effect::Identity), does("setfsgid", Effect::Identity),
    does("setgroups", Effect::Identity), does("setpgid", Effect::Identity), does("setsid", Effect::Identity),
    does("capset", Effect::Identity), does("unshare", Effect::Identity), does("setns", Effect::Identity),

    // setresuid and setresgid say what the ids are from then on.
    changes("setuid", &CREDENTIALS), changes("setgid", &CREDENTIALS), changes("setreuid", &CREDENTIALS),
    changes("setregid", &CREDENTIALS), changes("setfsuid", &CREDENTIALS), changes("setfsgid", &CREDENTIALS),
    changes("setns", &CREDENTIALS), changes("unshare", &CREDENTIALS),

    does("prctl", Effect::Identity).when(&[Is(0, PR_SET_SECUREBITS)]),
    changes("process_madvise", &ADVICE),
    // A path and a descriptor may lead to the same file, so each call voids what is known by the
    // other.
    changes("chmod", &RIGHTS_OF_FILE), changes("fchmodat", &RIGHTS_OF_FILE), changes("fchmodat2", &RIGHTS_OF_FILE),
    changes("chown", &RIGHTS_OF_FILE), changes("lchown", &RIGHTS_OF_FILE), changes("fchownat", &RIGHTS_OF_FILE),
    changes("setpriority", &IO_PRIORITY), changes("setpriority", &SCHEDULING_ATTRIBUTES),
    changes("sched_setscheduler", &SCHEDULING_ATTRIBUTES), changes("sched_setparam", &SCHEDULING_ATTRIBUTES),
    changes("sched_setattr", &SCHEDULING), changes("sched_setattr", &PRIORITY), changes("sched_setattr", &IO_PRIORITY),
    changes("setxattr", &RIGHTS_OF_FILE), changes("lsetxattr", &RIGHTS_OF_FILE),
    changes("fchmod", &RIGHTS), changes("fchown", &RIGHTS), changes("fsetxattr", &RIGHTS),
    changes("removexattr", &RIGHTS), changes("removexattr", &RIGHTS_OF_FILE), changes("lremovexattr", &RIGHTS),
    changes("lremovexattr", &RIGHTS_OF_FILE), changes("fremovexattr", &RIGHTS), changes("fremovexattr", &RIGHTS_OF_FILE),
    changes("setxattrat", &RIGHTS), changes("setxattrat", &RIGHTS_OF_FILE), changes("removexattrat", &RIGHTS),
    changes("removexattrat", &RIGHTS_OF_FILE), changes("file_setattr", &RIGHTS), changes("lchown", &RIGHTS),
    changes("utimensat", &TIMES).when(&[Null(1)]), changes("utimensat", &TIMES_OF_FILE).when(&[NotNull(1)]),
    changes("utimes", &TIMES_OF_FILE), changes("futimesat", &TIMES_OF_FILE), changes("utime", &TIMES),
    changes("utime", &TIMES_OF_FILE),
    does("inotify_rm_watch", Effect::ChangesOf(0, &WATCH)),
    sets_other_option(&[Is(1, SOL_SOCKET), OneOf(2, OTHER_OPTIONS)]),
    // The type of service sets the socket's priority.
    sets_other_option(&[Is(1, SOL_SOCKET), Is(2, SO_PRIORITY)]),
    sets_other_option(&[Is(1, SOL_IP), Is(2, IP_TOS)]),

    does("epoll_wait", Effect::Delivers(1)), does("epoll_pwait", Effect::Delivers(1)),
    does("epoll_pwait2", Effect::Delivers(1)),
    does("setns", Effect::WorkingDirectory), does("setns", Effect::Root),
    does("pivot_root", Effect::WorkingDirectory), does("pivot_root", Effect::Root),
    // Pages that the heap gets again are new.
    does("brk", Effect::Memory).when(&[NotNull(0)]),
    does("shmat", Effect::Memory).when(&[AnyBits(2, SHM_REMAP)]),
    does("munmap", Effect::Memory),
    does("mremap", Effect::Memory),
    does("shmdt", Effect::Memory),
    does("remap_file_pages", Effect::Memory),
    does("mmap", Effect::Memory).when(&[AnyBits(3, MAP_FIXED)]),
    does("pkey_mprotect", Effect::Memory),
    does("rt_sigreturn", Effect::Signals),
    does("rt_sigsuspend", Effect::Signals),
    does("fork", Effect::Forks), does("vfork", Effect::Forks),
    does("clone", Effect::Forks), does("clone3", Effect::Forks),
];
