//! What ended each long wait: its class, and the waker as far as it is known.
//!
//! Calls that wake others are short, and most are in no window. So the waker is derived: from the call that waited and
//! its result, from the processes that use the other end of its pipe or socket, and from which threads were awake.

use super::threads::{BUSY_SLACK_NS, RAN_OUT, ThreadId, Threads, name_of, pid_of};
use crate::collections::named::named;
use crate::semantics::{connection, is_stored};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use systoll_model::{FrameId, Recording, RowId, Signature, WaitSpan};

named! {
    /// What ended a wait.
    WaitClass:
    /// Another thread of the same process.
    Thread = "thread",
    /// Another watched process.
    Process = "process",
    /// Time that passed: a sleep or a timeout.
    Clock = "clock",
    /// Storage.
    Disk = "disk",
    /// A peer that is not watched, at the other end of a socket.
    Peer = "peer",
    /// A person at a terminal.
    Terminal = "terminal",
    /// A signal.
    Signal = "signal",
    /// A processor, for at least half of the wait, unless the kernel worked in it: the thread may have been ready.
    Processor = "processor",
    /// The kernel's own work.
    Kernel = "kernel",
    /// It is not known.
    Unknown = "unknown",
}

impl WaitClass {
    /// Returns what the wait was for, for a sentence: `waiting for the disk`.
    #[must_use]
    pub fn waits_for(self) -> &'static str {
        match self {
            Self::Thread => "for another thread",
            Self::Process => "for another process",
            Self::Clock => "for time to pass",
            Self::Disk => "for the disk",
            Self::Peer => "for a peer",
            Self::Terminal => "for somebody at a terminal",
            Self::Signal => "for a signal",
            Self::Processor => "for a processor or the kernel",
            Self::Kernel => "for the kernel",
            Self::Unknown => "for something unknown",
        }
    }
}

/// The end of one wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitEnd {
    pub(super) class: WaitClass,
    /// The thread that ended it, if it is known.
    pub(super) by: Option<ThreadId>,
}

impl WaitEnd {
    fn of(class: WaitClass) -> Self {
        Self { class, by: None }
    }
}

/// Calls that only let time pass.
const SLEEPS: [&str; 2] = ["nanosleep", "clock_nanosleep"];
/// Calls that wait until one of several descriptors is ready, or their time is over.
const ON_DESCRIPTORS: [&str; 7] = ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"];
/// Calls that wait for storage whatever they are about.
const STORES: [&str; 6] = ["fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync"];
/// Calls that wait for signals.
const SIGNALS: [&str; 5] = ["pause", "rt_sigsuspend", "rt_sigtimedwait", "sigtimedwait", "signalfd"];
/// Calls by which a thread wakes those that wait at a futex.
const FUTEX_WAKES: [&str; 1] = ["futex"];
/// Calls by which a thread sends a signal.
const SENDS_SIGNALS: [&str; 5] = ["kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"];
/// Calls by which a lock is given back, closing and ending included.
const UNLOCKS: [&str; 4] = ["flock", "fcntl", "close", "exit_group"];
/// Calls after which the other end of a pipe or socket has something to receive, the end of it included.
const FEEDS: [&str; 14] = [
    "write",
    "writev",
    "splice",
    "sendfile",
    "vmsplice",
    "tee",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "pwritev",
    "connect",
    "shutdown",
    "close",
    "exit_group",
];
/// Calls that write into a pipe.
const WRITES: [&str; 6] = ["write", "writev", "splice", "sendfile", "vmsplice", "tee"];
/// Calls that send, and wait only where there is no room.
const SENDS: [&str; 9] =
    ["write", "writev", "pwrite64", "pwritev", "sendto", "sendmsg", "sendmmsg", "sendfile", "splice"];
/// Calls that receive from a pipe or a socket.
const RECEIVES: [&str; 6] = ["read", "readv", "recvfrom", "recvmsg", "recvmmsg", "accept4"];
/// Operations of `futex` that wait for a wake-up: FUTEX_WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2.
const FUTEX_WAITS: [u64; 5] = [0, 6, 9, 11, 13];
/// Mask of a futex operation's command.
const FUTEX_CMD: u64 = 0x7f;
/// Commands of `fcntl` that wait for a lock: F_SETLKW, F_OFD_SETLKW.
const LOCKS: [u64; 2] = [7, 38];
/// Errnos of calls that a signal ended: EINTR, and the kernel's own up to ERESTART_RESTARTBLOCK.
const INTERRUPTED: [u16; 6] = [4, 512, 513, 514, 515, 516];

/// Part of a call's time, 0 to 1, for which its thread may have waited for a processor, at least, for that class.
const MOSTLY_QUEUED: f64 = 0.5;

/// The ends of all waits of a recording.
pub(super) struct Ends {
    pub(super) all: Vec<WaitEnd>,
    pub(super) users: Users,
}

impl Ends {
    pub(super) fn of(recording: &Recording, threads: &Threads<'_>) -> Self {
        let users = Users::of(recording);
        let end = |span: &WaitSpan| end_of(span, recording, threads, &users);
        Self { all: recording.wait_spans.spans.iter().map(end).collect(), users }
    }

    /// Returns the end of the wait with this index.
    pub(super) fn get(&self, at: usize) -> WaitEnd {
        self.all.get(at).copied().unwrap_or(WaitEnd::of(WaitClass::Unknown))
    }
}

/// The watched processes that use a pipe, a socket or locks.
#[derive(Default)]
pub(super) struct Users {
    /// Process ids that write into a pipe, by its name.
    writers: BTreeMap<String, BTreeSet<u32>>,
    /// Process ids that read from a pipe, by its name.
    readers: BTreeMap<String, BTreeSet<u32>>,
    /// By row the name that stands for all that it is about, as far as windows show; empty if there is none.
    only: BTreeMap<RowId, String>,
    /// By row and script's line the name that stands for all that samples of the line are about; empty if there is none.
    of_line: BTreeMap<(RowId, FrameId), String>,
    /// Process ids that use a socket, by its name.
    sockets: BTreeMap<String, BTreeSet<u32>>,
    /// Process ids that use sockets with an address, by the kind of the socket and its address here.
    addresses: BTreeMap<(String, String), BTreeSet<u32>>,
    /// Process ids that lock files.
    pub(super) lockers: BTreeSet<u32>,
    /// Process ids that send signals.
    signallers: BTreeSet<u32>,
    /// The pipes and sockets from which a process receives, by its id.
    received: BTreeMap<u32, Received>,
    /// True if a process made a pair of sockets, whose names do not tell their other ends.
    pairs: bool,
    /// Part of the time for which a process's first thread may have waited for a processor in its long waits, 0 to 1, for which it
    /// did in all its life, by process id.
    queued: BTreeMap<u32, f64>,
}

/// The pipes and sockets from which a process receives.
#[derive(Default)]
struct Received {
    /// The processes at the other ends, as far as these are known.
    by: BTreeSet<BTreeSet<u32>>,
    /// True if one of them is a socket.
    any_socket: bool,
    /// True if one has another end that no watched process uses.
    any_unwatched: bool,
    /// True if no process is seen that writes into one of the pipes: a child may do so.
    any_unwritten: bool,
}

impl Users {
    fn of(recording: &Recording) -> Self {
        let pairs = recording.rows.iter().any(|row| row.syscall.name() == Some("socketpair"));
        let mut users = Self { pairs, queued: queued(recording), ..Self::default() };
        let mut names: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
        let pid = |process| pid_of(recording, process).unwrap_or(0);
        for row in &recording.rows {
            match row.syscall.name() {
                Some("flock" | "fcntl") => drop(users.lockers.insert(pid(row.process))),
                Some(name) if SENDS_SIGNALS.contains(&name) => drop(users.signallers.insert(pid(row.process))),
                _ => {}
            }
        }
        for (window, call) in recording.windows.iter().flat_map(|w| w.calls.iter().map(move |call| (w, call))) {
            let Some(name) = call.fd.as_deref() else { continue };
            note_name(users.only.entry(call.row), name);
            let syscall = name_of(recording, call.row);
            if RECEIVES.contains(&syscall) && (is_pipe(name) || is_socket(name)) {
                names.entry(pid(window.process)).or_default().insert(name);
                if name.starts_with("pipe:") {
                    users.readers.entry(name.to_owned()).or_default().insert(pid(window.process));
                }
            }
            let of = match name {
                _ if is_pipe(name) && WRITES.contains(&syscall) => &mut users.writers,
                _ if is_socket(name) => &mut users.sockets,
                _ => continue,
            };
            of.entry(name.to_owned()).or_default().insert(pid(window.process));
        }
        for sample in &recording.object_samples {
            if let (Some(line), Some(name)) = (sample.line, &sample.object) {
                note_name(users.of_line.entry((sample.row, line)), name);
            }
        }
        for (name, pids) in &users.sockets {
            if let Some((kind, here, _)) = connection(name) {
                users.addresses.entry((kind.to_owned(), here.to_owned())).or_default().extend(pids);
            }
        }
        users.received = names.into_iter().map(|(pid, names)| (pid, users.received_from(pid, &names))).collect();
        users
    }

    fn received_from(&self, pid: u32, names: &BTreeSet<&str>) -> Received {
        let any_socket = names.iter().any(|name| is_socket(name));
        let mut received = Received { any_socket, ..Received::default() };
        // An event loop has a counter or a pipe by which its own threads wake it; its sockets wake it more often.
        let is_own = |name: &str| {
            is_counter(name) || self.writers.get(name).is_some_and(|pids| pids.len() == 1 && pids.contains(&pid))
        };
        for name in names.iter().filter(|name| !any_socket || !is_own(name)) {
            let by = self.of_other_end(name);
            received.any_unwritten |= by.is_none() && name.starts_with("pipe:");
            received.any_unwatched |= by.is_none() && connection(name).is_some();
            received.by.extend(by);
        }
        received
    }

    /// Returns the processes at the other end of a socket: of this one, or, if only its shape is known, of all connections
    /// of the process `pid`, if every one of them has a watched end.
    pub(super) fn at_other_end(&self, pid: u32, name: &str) -> Option<BTreeSet<u32>> {
        if !name.starts_with("socket:[") {
            return self.of_other_end(name);
        }
        let own = self.sockets.iter().filter(|(of, pids)| pids.contains(&pid) && connection(of).is_some());
        let mut all = BTreeSet::new();
        for (of, _) in own {
            all.extend(self.of_other_end(of)?);
        }
        (!all.is_empty()).then_some(all)
    }

    /// Returns the processes that can make a pipe or a socket ready.
    pub(super) fn of_other_end(&self, name: &str) -> Option<BTreeSet<u32>> {
        if is_pipe(name) {
            return self.writers.get(name).cloned();
        }
        if let Some((kind, here, there)) = connection(name) {
            let exact = self.sockets.get(&format!("{kind}:[{there}->{here}]"));
            // Windows show few connections of a server, but any of them shows which process has the address.
            let known = exact.or_else(|| self.addresses.get(&(kind.to_owned(), there.to_owned())));
            if known.is_some() || !name.starts_with("UNIX") {
                return known.cloned();
            }
        }
        let of_pair = |other: &&String| self.pairs && *other != name && other.starts_with("UNIX");
        let others = self.sockets.keys().filter(of_pair).filter_map(|other| self.sockets.get(other));
        let all: BTreeSet<u32> = others.flatten().copied().collect();
        (name.starts_with("UNIX") && !all.is_empty()).then_some(all)
    }
}

/// Returns the part of the time, 0 to 1, for which processes' first threads may have waited for a processor in their long waits, for
/// which they did, by process id. Of one wait the kernel's figure is a bound, as it is read before and after many: a `tar` that slept
/// 1.6 s in writes into a full pipe, and 0.4 s without a processor, may have been ready in each of them.
fn queued(recording: &Recording) -> BTreeMap<u32, f64> {
    let mut most: BTreeMap<u32, u64> = BTreeMap::new();
    for span in recording.wait_spans.spans.iter().filter(|span| span.pid == span.tid) {
        let sum = most.entry(span.pid).or_default();
        *sum = sum.saturating_add(span.queued_most_ns.unwrap_or(0));
    }
    let was = recording.processes.iter().filter_map(|process| Some((process.pid, process.queued_ns?)));
    was.filter_map(|(pid, ns)| Some((pid, ns as f64 / *most.get(&pid)? as f64)))
        .filter(|(_, part)| *part < 1.0)
        .collect()
}

/// Keeps a name, or what stands for it and for that which is kept.
fn note_name<K: Ord>(kept: Entry<'_, K, String>, name: &str) {
    let kept = kept.or_insert_with(|| name.to_owned());
    if kept != name {
        *kept = in_common(kept, name).to_owned();
    }
}

/// Returns the name that stands for both of two pipes or both of two sockets; an empty one for anything else.
fn in_common(one: &str, other: &str) -> &'static str {
    match (one, other) {
        _ if one.starts_with("pipe:") && other.starts_with("pipe:") => "pipe:",
        _ if is_socket(one) && is_socket(other) => "socket:[",
        _ => "",
    }
}

/// Returns true for a pipe, and for an event counter, which is written and read likewise.
fn is_pipe(name: &str) -> bool {
    name.starts_with("pipe:") || is_counter(name)
}

fn is_counter(name: &str) -> bool {
    name.starts_with("anon_inode:[eventfd")
}

fn is_socket(name: &str) -> bool {
    ["TCP", "UDP", "UNIX", "socket:"].iter().any(|kind| name.starts_with(kind))
}

fn end_of(span: &WaitSpan, recording: &Recording, threads: &Threads<'_>, users: &Users) -> WaitEnd {
    let name = name_of(recording, span.row);
    let result = span.result.unwrap_or(0);
    if span.errno().is_some_and(|errno| INTERRUPTED.contains(&errno.0)) {
        return WaitEnd::of(WaitClass::Signal);
    }
    let signature = recording.rows.get(span.row.0 as usize).and_then(|row| row.syscall.signature());
    let own_thread = || WaitEnd { class: WaitClass::Thread, by: threads.waker(&[span.pid], span, &FUTEX_WAKES) };
    let by_one_of = |pids: &BTreeSet<u32>| by_one_of(pids, span, threads, &FEEDS);
    match name {
        _ if SLEEPS.contains(&name) => WaitEnd::of(WaitClass::Clock),
        _ if ON_DESCRIPTORS.contains(&name) && span.result == Some(0) => WaitEnd::of(WaitClass::Clock),
        "futex" if FUTEX_WAITS.contains(&(span.args[1] & FUTEX_CMD)) => match result {
            -110 => WaitEnd::of(WaitClass::Clock),
            // A thread's end wakes those who wait at the word that holds its id: pthread_join (man 2 set_tid_address).
            _ => threads
                .of_id(span.pid, span.args[2])
                .map_or_else(own_thread, |by| WaitEnd { class: WaitClass::Thread, by: Some(by) }),
        },
        // Other operations wait for nobody: another thread took the processor, perhaps the one that this call woke.
        "futex" => WaitEnd::of(WaitClass::Processor),
        "wait4" | "waitid" => {
            let child = if name == "wait4" { result } else { span.args[1] as i64 };
            let child = u32::try_from(child).ok().filter(|pid| *pid > 0 && threads.life(*pid).is_some());
            if child.is_some_and(|pid| threads.is_sleeper(pid)) {
                return WaitEnd::of(WaitClass::Clock);
            }
            WaitEnd { class: WaitClass::Process, by: child.map(|pid| ThreadId { pid, tid: pid }) }
        }
        "flock" | "fcntl" if name == "flock" || LOCKS.contains(&span.args[1]) => {
            let others: BTreeSet<u32> = users.lockers.iter().copied().filter(|pid| *pid != span.pid).collect();
            self::by_one_of(&others, span, threads, &UNLOCKS)
        }
        _ if STORES.contains(&name) => WaitEnd::of(WaitClass::Disk),
        _ if SIGNALS.contains(&name) => {
            let senders: Vec<u32> = users.signallers.iter().copied().collect();
            WaitEnd { class: WaitClass::Signal, by: threads.waker(&senders, span, &SENDS_SIGNALS) }
        }
        _ if RAN_OUT.contains(&result) => WaitEnd::of(WaitClass::Clock),
        _ if may_be_queued(span, signature, users) => WaitEnd::of(WaitClass::Processor),
        _ => {
            let end = of_object(span, signature, users, &|pids| by_one_of(pids), threads);
            let of_child = || Some(by_one_of(&threads.descendants(span))).filter(|end| end.by.is_some());
            let any_socket = || users.received.get(&span.pid).is_some_and(|received| received.any_socket);
            let may_be_child = end.class == WaitClass::Unknown && receives(name) && !any_socket();
            // A process that starts programs, and is seen to receive from nobody else, waits for their output.
            if may_be_child { of_child().unwrap_or(end) } else { end }
        }
    }
}

/// Returns true if a call that does not wait for others may have waited for a processor for most of its time.
fn may_be_queued(span: &WaitSpan, signature: Option<&Signature>, users: &Users) -> bool {
    let waits = signature.is_some_and(|of| may_wait(of) && !SENDS.contains(&of.name));
    !waits && was_queued(span, users)
}

/// Returns true if the thread may have been ready to run, and without a processor, for most of the call's time.
fn was_queued(span: &WaitSpan, users: &Users) -> bool {
    let part = users.queued.get(&span.pid).filter(|_| span.pid == span.tid).copied().unwrap_or(1.0);
    span.queued_most_ns.is_some_and(|queued| part * queued as f64 >= MOSTLY_QUEUED * span.ns as f64)
}

/// Returns true if a call receives, or waits until it can.
fn receives(name: &str) -> bool {
    RECEIVES.contains(&name) || ON_DESCRIPTORS.contains(&name)
}

/// Returns true if a call may wait for others. A close does so with SO_LINGER only (man 7 socket), which is rare.
fn may_wait(signature: &Signature) -> bool {
    signature.may_block && signature.name != "close"
}

/// Returns the end of a wait by the file that it was about.
fn of_object(
    span: &WaitSpan,
    signature: Option<&Signature>,
    users: &Users,
    by_one_of: &dyn Fn(&BTreeSet<u32>) -> WaitEnd,
    threads: &Threads<'_>,
) -> WaitEnd {
    let name = signature.map_or("", |signature| signature.name);
    let names_path = signature.is_some_and(|of| of.path_arg().is_some());
    let waits = signature.is_none_or(may_wait);
    // A short wait of a call that sends may be one for room, or for a processor.
    let sends_briefly = SENDS.contains(&name) && span.queued_most_ns.is_none() && span.ns <= BUSY_SLACK_NS;
    // What was closed soon after the wait has no name.
    let of_line = span.line.and_then(|line| users.of_line.get(&(span.row, line)));
    let only = of_line.or_else(|| users.only.get(&span.row)).map(String::as_str);
    let only = only.filter(|only| is_pipe(only) || is_socket(only));
    let object = span.object.as_deref().or(only);
    // A set of descriptors is no file: what is ready is one of them.
    let Some(object) = object.filter(|object| !object.starts_with("anon_inode:[eventpoll")) else {
        let class = match name {
            _ if sends_briefly => WaitClass::Unknown,
            "connect" | "accept" | "accept4" | "recvfrom" | "recvmsg" | "sendto" | "sendmsg" => WaitClass::Peer,
            _ if ON_DESCRIPTORS.contains(&name) => return of_received(span, users, by_one_of, threads),
            "membarrier" | "mmap" | "munmap" | "madvise" | "mprotect" | "clone" | "clone3" | "fork" | "vfork"
            | "execve" | "execveat" | "exit" | "exit_group" => WaitClass::Kernel,
            _ if names_path || name == "getdents64" => WaitClass::Disk,
            _ if !waits => WaitClass::Kernel,
            _ => WaitClass::Unknown,
        };
        return WaitEnd::of(class);
    };
    let receives = receives(name);
    if is_pipe(object) || is_socket(object) {
        let unknown = match is_socket(object) {
            // Only calls that move data wait for the other end.
            _ if !waits => WaitClass::Kernel,
            true if !sends_briefly => WaitClass::Peer,
            _ => WaitClass::Unknown,
        };
        // Who writes into a full pipe waits for those who read from it.
        let is_full = SENDS.contains(&name) && !sends_briefly && !was_queued(span, users);
        if let Some(readers) = users.readers.get(object).filter(|pids| is_full && !pids.contains(&span.pid)) {
            return self::by_one_of(readers, span, threads, &RECEIVES);
        }
        let others = users.at_other_end(span.pid, object).filter(|_| receives);
        // Who reads the output of its own children waits for them, or for their ends.
        let is_pipe = object.starts_with("pipe:") && receives;
        let others = others.or_else(|| Some(threads.descendants(span)).filter(|pids| is_pipe && !pids.is_empty()));
        if others.is_none() && is_pipe && threads.has_folded_children(span.pid) {
            return WaitEnd::of(WaitClass::Process);
        }
        return others.map_or(WaitEnd::of(unknown), |pids| by_one_of(&pids));
    }
    let class = match object {
        _ if object.starts_with("/dev/pts/") || object == "/dev/tty" => WaitClass::Terminal,
        _ if object.starts_with("anon_inode:[timerfd") => WaitClass::Clock,
        _ if object.starts_with("anon_inode:[signalfd") => WaitClass::Signal,
        _ if object.starts_with("/proc/") || object.starts_with("/sys/") => WaitClass::Kernel,
        // A file's bytes come from the disk or from memory, never from others: what was ready to run waited for neither.
        _ if is_stored(object) && was_queued(span, users) => WaitClass::Processor,
        _ if is_stored(object) && !object.starts_with("/dev/") => WaitClass::Disk,
        _ => WaitClass::Unknown,
    };
    WaitEnd::of(class)
}

/// Returns the end of a wait for any of several descriptors: of those from which the process receives, if what ends waits
/// for them is of one class.
fn of_received(
    span: &WaitSpan,
    users: &Users,
    by_one_of: &dyn Fn(&BTreeSet<u32>) -> WaitEnd,
    threads: &Threads<'_>,
) -> WaitEnd {
    let Some(received) = users.received.get(&span.pid) else { return WaitEnd::of(WaitClass::Unknown) };
    // A socket that listens has no other end: who connects to it is most likely who sends afterwards.
    let of_children = received.any_unwritten.then(|| threads.descendants(span)).filter(|pids| !pids.is_empty());
    let mut ends = received.by.iter().chain(&of_children).map(by_one_of);
    let Some(first) = ends.next() else {
        return WaitEnd::of(if received.any_socket { WaitClass::Peer } else { WaitClass::Unknown });
    };
    if received.any_unwatched {
        return WaitEnd::of(WaitClass::Unknown);
    }
    let (mut class, mut by) = (first.class, first.by);
    for end in ends {
        class = if end.class == class { class } else { WaitClass::Unknown };
        by = by.filter(|by| end.by == Some(*by));
    }
    WaitEnd { class, by: by.filter(|_| class != WaitClass::Unknown) }
}

/// Returns the end of a wait that one of these processes ended, by one of the calls `wakes`.
fn by_one_of(pids: &BTreeSet<u32>, span: &WaitSpan, threads: &Threads<'_>, wakes: &[&str]) -> WaitEnd {
    let own = pids.contains(&span.pid);
    let others = || pids.iter().filter(|pid| **pid != span.pid);
    let class = match (own, others().next()) {
        (_, Some(_)) => WaitClass::Process,
        (true, None) => WaitClass::Thread,
        (false, None) => WaitClass::Unknown,
    };
    let pids: Vec<u32> = if class == WaitClass::Process { others().copied().collect() } else { vec![span.pid] };
    let alive = |pid: &u32| threads.life(*pid).is_some_and(|life| life.start_ns <= span.end_ns());
    let pids: Vec<u32> = pids.into_iter().filter(alive).collect();
    WaitEnd { class, by: threads.waker(&pids, span, wakes) }
}
