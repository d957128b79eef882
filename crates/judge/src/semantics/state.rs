//! The kinds of state that calls ask for and set.

/// The owner of a piece of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The thread.
    Thread,
    /// The process image, with its descriptors.
    Process,
}

/// Validity of an answer over the calls between two windows, which are not recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Across {
    /// An answer may be kept: an equal answer later proves that it held (the state has a change
    /// time, or nothing changes it).
    Keep,
    /// An answer may be kept while the process makes none of these calls.
    Unless(&'static [&'static str]),
    /// An answer about a path may be kept unless the process may often have changed that name, or one on the way to it,
    /// without a window that shows it.
    Names,
    /// An answer may be kept while no window shows that the process set the state to something
    /// else, or removed the file.
    Settled,
    /// An answer may be kept while no window shows that the process set the state of an open file or socket to
    /// something else. They are told apart by the name behind the descriptor; see [`names_one`].
    SettledOpen,
    /// An answer may not be kept.
    Drop,
}

/// A kind of state that calls ask for and set. States are compared by address.
#[derive(Debug)]
pub(crate) struct State {
    /// The owner of the state: a thread or a process.
    pub scope: Scope,
    /// Validity of answers between windows.
    pub across: Across,
    /// Words for a sentence: "asks for …", "sets …".
    pub thing: &'static str,
    /// The drawback of keeping the answer; empty if there is none.
    pub gives_up: &'static str,
    /// True if the delivery of a signal, or the return from its handler, may change the state.
    pub signals: bool,
    /// True if keys are address ranges, so that a set of an overlapping range voids known values.
    pub ranges: bool,
    /// True if other processes may change the state unseen, so that claims about it are remarks.
    pub unsure: bool,
    /// The other keys that may denote the same piece of state.
    pub shared: Shared,
    /// The sets that undo an earlier set.
    pub undone: Undone,
}

/// The settings of a kind of state that undo an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undone {
    /// Settings whose values recur with a short period.
    Returns,
    /// Settings that alternate between two values.
    Alternates,
    /// Settings whose values recur; also settings of which every second one goes back to the same value.
    Back,
    /// Settings whose values recur; also settings that reverse the direction of the change before.
    Turns,
    /// Settings to the value that was set before: in between, the program's use of its memory undid that setting
    /// without a call.
    Unseen,
}

/// The keys of one kind that may denote the same piece of state, so that a set by one voids the values known by the
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    /// None: each piece has one key, or the table of effects holds the other pieces that a call changes.
    No,
    /// The keys of one file: duplicated descriptors, and calls that set the same bits.
    ByFile,
    /// All keys of the process: one device may have several names, as a thread has 0 and its id.
    All,
}

/// The identity of a kind of state: the address of its static, which is quicker to hash than a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StateId(pub(super) usize);

impl State {
    /// Returns the kind's identity.
    pub(crate) fn id(&'static self) -> StateId {
        StateId(std::ptr::from_ref(self).addr())
    }

    /// Returns true if the call ends the validity of its answers between windows.
    pub(super) fn ends_with(&self, call: &str) -> bool {
        matches!(self.across, Across::Unless(calls) if calls.contains(&call))
    }

    /// Returns true if both are the same kind.
    pub(crate) fn is(&self, other: &'static State) -> bool {
        std::ptr::eq(self, other)
    }
}

/// The default of most kinds: state of the process, unknown again between windows.
const PLAIN: State = State {
    scope: Scope::Process,
    across: Across::Drop,
    thing: "",
    gives_up: "",
    signals: false,
    ranges: false,
    unsure: false,
    shared: Shared::No,
    undone: Undone::Returns,
};

/// Ids of the process, its user and its groups.
pub(crate) static IDENTITY: State = State {
    across: Across::Unless(&[
        "setuid",
        "setgid",
        "setreuid",
        "setregid",
        "setresuid",
        "setresgid",
        "setgroups",
        "setpgid",
        "setsid",
        "setfsuid",
        "setfsgid",
    ]),
    thing: "the process's own ids",
    gives_up: "the kept id has to be asked for again after fork",
    ..PLAIN
};

/// The parent's id: the kernel changes it when the parent dies.
pub(crate) static PARENT: State = State {
    across: Across::Keep,
    thing: "the parent's id",
    gives_up: "the parent's death is no longer noticed by asking (prctl PR_SET_PDEATHSIG or a pipe tells it)",
    ..PLAIN
};

/// The thread's id.
pub(crate) static THREAD_ID: State = State {
    scope: Scope::Thread,
    across: Across::Keep,
    thing: "the thread's id",
    gives_up: "the kept id has to be asked for again after fork",
    ..PLAIN
};

/// The kernel's name and version.
pub(crate) static KERNEL: State = State { across: Across::Keep, thing: "the kernel's name and version", ..PLAIN };

/// The working directory.
pub(crate) static CWD: State = State {
    across: Across::Unless(&["chdir", "fchdir"]),
    thing: "the working directory",
    gives_up: "a directory renamed from outside is no longer noticed",
    ..PLAIN
};

/// The working directory as set, by a path or by a descriptor's name.
pub(crate) static FOLDER: State = State { thing: "the working directory", undone: Undone::Back, ..PLAIN };

/// Resource limits.
pub(crate) static LIMITS: State = State {
    across: Across::Unless(&["setrlimit", "prlimit64"]),
    thing: "a resource limit",
    gives_up: "a limit changed from outside is no longer noticed",
    shared: Shared::All,
    ..PLAIN
};

/// The processors on which a thread may run.
pub(crate) static AFFINITY: State = State { across: Across::Unless(&["sched_setaffinity"]), ..SCHEDULING };

/// The nice value.
pub(crate) static PRIORITY: State = State { across: Across::Unless(&["setpriority", "sched_setattr"]), ..SCHEDULING };

/// The priority of a thread's input and output; where none is set, it follows the nice value.
pub(crate) static IO_PRIORITY: State =
    State { across: Across::Unless(&["ioprio_set", "setpriority", "sched_setattr"]), ..SCHEDULING };

/// All attributes that sched_setattr sets, the nice value among them.
pub(crate) static SCHEDULING_ATTRIBUTES: State = State {
    across: Across::Unless(&["sched_setscheduler", "sched_setparam", "sched_setattr", "setpriority"]),
    ..SCHEDULING
};

/// Scheduling policy and its parameters.
pub(crate) static SCHEDULING: State = State {
    scope: Scope::Thread,
    across: Across::Unless(&["sched_setscheduler", "sched_setparam", "sched_setattr"]),
    thing: "the thread's scheduling",
    gives_up: "an affinity or priority changed from outside is no longer noticed",
    // A thread may name itself by 0 or by its id.
    shared: Shared::All,
    ..PLAIN
};

/// The kinds of state that change with the process's user, groups and capabilities, beside [`CREDENTIALS`].
pub(crate) static OF_IDENTITY: &[&State] = &[&IDENTITY, &CAPABILITIES, &ATTRIBUTES, &NAME, &ATTEMPT, &MAKING];

/// The kinds of state that tell how a thread is scheduled.
pub(crate) static SCHEDULES: &[&State] = &[&SCHEDULING, &AFFINITY, &PRIORITY, &IO_PRIORITY, &SCHEDULING_ATTRIBUTES];

/// Attributes of the thread that prctl sets.
pub(crate) static ATTRIBUTES: State = State { scope: Scope::Thread, thing: "an attribute of the thread", ..PLAIN };

/// Capabilities.
pub(crate) static CAPABILITIES: State = State {
    scope: Scope::Thread,
    across: Across::Unless(&["capset", "setuid", "setresuid", "setreuid"]),
    thing: "the thread's capabilities",
    ..PLAIN
};

/// User and group ids, as they were set.
pub(crate) static CREDENTIALS: State = State { scope: Scope::Thread, thing: "user and group ids", ..PLAIN };

/// The thread's blocked signals.
pub(crate) static SIGNAL_MASK: State = State { scope: Scope::Thread, thing: "the signal mask", signals: true, ..PLAIN };

/// A signal's handler. SA_RESETHAND makes delivery change it.
pub(crate) static HANDLER: State = State { thing: "a signal's handler", signals: true, ..PLAIN };

/// The alternate signal stack.
pub(crate) static ALT_STACK: State = State { scope: Scope::Thread, thing: "the signal stack", signals: true, ..PLAIN };

/// The status of the file at a path. Answers of stat hold the change time; other answers are compared as they are.
pub(crate) static PATH: State = State {
    across: Across::Keep,
    thing: "the status of the same files",
    gives_up: "a change of the file from outside is noticed only when it is asked again",
    ..PLAIN
};

/// The target and the permissions of a path, in answers without a change time.
pub(crate) static NAME: State = State {
    across: Across::Names,
    thing: "what the same paths lead to",
    gives_up: "a change of the file from outside is noticed only when it is asked again",
    ..PLAIN
};

/// Possibility of an operation on a path or a process.
pub(crate) static ATTEMPT: State = State {
    // Another user may be let in.
    across: Across::Unless(&[
        "setuid",
        "setgid",
        "setreuid",
        "setregid",
        "setresuid",
        "setresgid",
        "setgroups",
        "setfsuid",
        "setfsgid",
        "capset",
    ]),
    thing: "what was refused before",
    gives_up: "a change that makes it possible is noticed only when it is tried again",
    ..PLAIN
};

/// Possibility of making a folder, which depends on what stands at the folder's path, and not on its contents.
pub(crate) static MAKING: State = State { ..ATTEMPT };

/// The room of a file system, which writes of any process change.
pub(crate) static ROOM: State = State {
    across: Across::Keep,
    thing: "how much room a disk has",
    gives_up: "what others take of it meanwhile is noticed only when it is asked again",
    ..PLAIN
};

/// The status of an open file; reads and writes change it.
pub(crate) static FILE_STATUS: State = State {
    thing: "the status of the same open files",
    gives_up: "a change of the file from outside is noticed only when it is asked again",
    ..PLAIN
};

/// Mode, owner and named attributes of the file at a path. A set makes them known from then on.
pub(crate) static RIGHTS: State = State {
    across: Across::Settled,
    thing: "a file's mode, owner or attributes",
    gives_up: "a change by another process is no longer set right",
    ..PLAIN
};

/// Mode, owner and named attributes of the file behind a descriptor.
pub(crate) static RIGHTS_OF_FILE: State = State { ..RIGHTS };

/// Times of the file at a path, as far as calls name them.
pub(crate) static TIMES: State = State { thing: "a file's times", ..RIGHTS };

/// Times of the file behind a descriptor.
pub(crate) static TIMES_OF_FILE: State = State { ..TIMES };

/// O_NONBLOCK, O_APPEND and the like of an open file.
pub(crate) static STATUS_FLAGS: State = State {
    thing: "a descriptor's flags",
    gives_up: "flags changed by a process that shares the descriptor are no longer noticed",
    across: Across::SettledOpen,
    shared: Shared::ByFile,
    ..PLAIN
};

/// The close-on-exec flag.
pub(crate) static FD_FLAGS: State = State { thing: "close-on-exec", ..PLAIN };

/// The addresses of a socket's two ends.
pub(crate) static SOCKET_NAME: State = State { thing: "a socket's address", ..PLAIN };

/// A socket's option.
pub(crate) static SOCKET_OPTION: State = State { thing: "a socket option", across: Across::SettledOpen, ..PLAIN };

/// A terminal's settings and size.
pub(crate) static TERMINAL: State = State {
    thing: "the terminal's settings",
    gives_up: "settings changed by another process are no longer noticed",
    signals: true,
    shared: Shared::All,
    ..PLAIN
};

/// The size of a terminal's window: SIGWINCH tells that it changed.
pub(crate) static TERMINAL_SIZE: State =
    State { thing: "the terminal's size", gives_up: "nothing, if SIGWINCH is handled", signals: true, ..PLAIN };

/// The position in an open file.
pub(crate) static POSITION: State = State {
    thing: "the position in a file",
    gives_up: "nothing, unless the descriptor is shared with another process",
    ..PLAIN
};

/// The size of a file, as ftruncate set it.
pub(crate) static SIZE: State = State { thing: "a file's size", shared: Shared::ByFile, ..PLAIN };

/// Written data of an open file, once all of it is on the disk. Stores through a shared mapping are
/// not seen.
pub(crate) static SYNCED: State = State { thing: "a file on the disk", unsure: true, ..PLAIN };

/// The events for which an epoll descriptor watches a descriptor.
pub(crate) static INTEREST: State =
    State { thing: "an epoll interest", undone: Undone::Alternates, across: Across::SettledOpen, ..PLAIN };

/// The events for which an inotify descriptor watches a path.
pub(crate) static WATCH: State = State {
    // The kernel gives each watch of a descriptor another number.
    across: Across::Unless(&["inotify_init", "inotify_init1", "inotify_rm_watch"]),
    thing: "a watch on a file",
    ..PLAIN
};

/// A process's timer (ITIMER_REAL and others). Only a timer that is not set has a known value: the
/// time left of another would take a clock.
pub(crate) static ALARM: State = State { thing: "a timer", shared: Shared::All, ..PLAIN };
/// A timer made by timer_create, known like [`ALARM`].
pub(crate) static TIMER: State = State { thing: "a timer", ..PLAIN };
/// A timer descriptor, known like [`ALARM`].
pub(crate) static TIMER_DESCRIPTOR: State = State { thing: "a timer", ..PLAIN };

/// Advice about a range of memory.
pub(crate) static ADVICE: State = State { thing: "what is advised of a range", ranges: true, ..PLAIN };

/// Protection of a range of memory.
pub(crate) static PROTECTION: State = State { thing: "the protection of a range", ranges: true, ..PLAIN };

/// The end of the heap.
pub(crate) static BREAK: State = State {
    thing: "the end of the heap",
    gives_up: "the program holds more memory between its peaks",
    undone: Undone::Turns,
    ..PLAIN
};

/// A range of memory that was given back to the kernel, while its addresses stay the program's.
pub(crate) static GIVEN_BACK: State = State {
    across: Across::Keep,
    thing: "memory that is given back and needed again",
    gives_up: "the program holds more memory between its peaks",
    undone: Undone::Unseen,
    ..PLAIN
};

/// The file creation mask.
pub(crate) static UMASK: State = State { thing: "the file creation mask", ..PLAIN };

/// Kinds of state whose sets hold from window to window if windows show nothing else, each with the
/// kind of the same state behind a descriptor.
pub(crate) static SETTLED: &[(&State, &State)] = &[(&RIGHTS, &RIGHTS_OF_FILE), (&TIMES, &TIMES_OF_FILE)];

/// Kinds of state of open files and sockets whose sets hold from window to window if windows show nothing else.
pub(crate) static SETTLED_OPEN: &[&State] = &[&STATUS_FLAGS, &SOCKET_OPTION, &INTEREST];

/// Returns true if the name behind a descriptor is that of one object only, however often its number is given to
/// others: a pipe's or socket's, which has the inode's number or both addresses. A file may be open several times.
pub(crate) fn names_one(name: &str) -> bool {
    name.contains(":[") && !name.starts_with("anon_inode:")
}
