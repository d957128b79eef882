//! The few lines of /proc that the recorder reads.

use nix::sys::resource::{Resource, getrlimit};
use nix::time::ClockId;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use systoll_model::TimeZone;

/// Reads a file of /proc, up to a page of it; the files read here are shorter.
pub(crate) fn read(path: impl AsRef<Path>) -> Option<Vec<u8>> {
    systoll_files::read_kernel(path, 4096).ok()
}

fn text(path: String) -> Option<String> {
    String::from_utf8(read(path)?).ok()
}

/// Returns the thread group of a thread.
pub(crate) fn tgid(tid: i32) -> Option<i32> {
    status_field(tid, "Tgid:")?.parse().ok()
}

/// Returns the parent of a process.
pub(crate) fn ppid(pid: i32) -> Option<i32> {
    status_field(pid, "PPid:")?.parse().ok()
}

/// Returns the effective user id of a process.
pub(crate) fn euid(pid: i32) -> Option<u32> {
    let [_, effective, ..] = ids(pid)?.users;
    Some(effective)
}

/// A thread's user and group ids: real, effective, saved and file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ids {
    pub(crate) users: [u32; 4],
    pub(crate) groups: [u32; 4],
}

/// Returns the user and group ids of a thread.
pub(crate) fn ids(tid: i32) -> Option<Ids> {
    let text = text(format!("/proc/{tid}/status"))?;
    let four = |key: &str| {
        let mut ids =
            text.lines().find_map(|l| l.strip_prefix(key))?.split_ascii_whitespace().map(|id| id.parse().ok());
        Some([ids.next()??, ids.next()??, ids.next()??, ids.next()??])
    };
    Some(Ids { users: four("Uid:")?, groups: four("Gid:")? })
}

/// Returns true if a process that has just executed a program has this process's user, groups and capabilities, and may
/// thus open the files that we have open. The auxiliary vector tells (getauxval(3)); reading the status file takes ten
/// times as long.
pub(crate) fn has_our_credentials(pid: i32) -> bool {
    const AT_SECURE: u64 = 23;
    const AT_UID: u64 = 11;
    let Some(bytes) = read(format!("/proc/{pid}/auxv")) else { return false };
    let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
    let value = |key: u64| words.as_chunks::<2>().0.iter().find(|[k, _]| *k == key).map(|[_, v]| *v);
    let (user, group) = (nix::unistd::getuid(), nix::unistd::getgid());
    let (euser, egroup) = (nix::unistd::geteuid(), nix::unistd::getegid());
    // AT_UID, AT_EUID, AT_GID and AT_EGID have consecutive numbers.
    let ids = [user.as_raw(), euser.as_raw(), group.as_raw(), egroup.as_raw()].map(u64::from);
    value(AT_SECURE) == Some(0)
        && (AT_UID..).zip(ids).all(|(key, id)| value(key) == Some(id))
        && crate::sys::has_our_capabilities(pid)
        && has_our_namespaces(pid)
}

/// Returns true if a process lives in our user and mount namespaces: user numbers and paths mean the same to it.
pub(crate) fn has_our_namespaces(pid: i32) -> bool {
    static OURS: OnceLock<Option<[PathBuf; 2]>> = OnceLock::new();
    let of = |process: &str| {
        let [users, mounts] = ["user", "mnt"].map(|kind| std::fs::read_link(format!("/proc/{process}/ns/{kind}")).ok());
        Some([users?, mounts?])
    };
    let theirs = of(&pid.to_string());
    theirs.is_some() && theirs == *OURS.get_or_init(|| of("self"))
}

/// Returns true if the users of a process's namespace have been given their names there.
pub(crate) fn has_user_names(pid: i32) -> bool {
    text(format!("/proc/{pid}/uid_map")).is_some_and(|names| !names.trim().is_empty())
}

/// Returns true if a process can gain no privilege by exec any more.
pub(crate) fn no_new_privs(pid: i32) -> bool {
    status_field(pid, "NoNewPrivs:").as_deref() == Some("1")
}

/// Returns a field of /proc/PID/status, trimmed.
pub(crate) fn status_field(pid: i32, key: &str) -> Option<String> {
    let text = text(format!("/proc/{pid}/status"))?;
    text.lines().find_map(|l| l.strip_prefix(key)).map(|v| v.trim().to_owned())
}

/// Returns the processor that a process's first thread last ran on.
pub(crate) fn processor(pid: i32) -> Option<usize> {
    let text = text(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold any byte. Counted from behind it, the processor is the 37th field (39 in
    // proc(5)).
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(36)?.parse().ok()
}

/// Returns the number of threads on the whole machine that run or want to run, the calling one included.
pub(crate) fn running() -> Option<usize> {
    let text = text("/proc/loadavg".into())?;
    text.split_ascii_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

/// Returns true if a thread is gone, or is on its way out in the kernel.
pub(crate) fn is_ending(tid: i32) -> bool {
    const PF_EXITING: u64 = 0x4;
    flags(tid).is_none_or(|flags| flags & PF_EXITING != 0)
}

/// Returns true if a process is gone, or is a thread of the kernel's own.
pub(crate) fn is_of_kernel(pid: i32) -> bool {
    const PF_KTHREAD: u64 = 0x0020_0000;
    flags(pid).is_none_or(|flags| flags & PF_KTHREAD != 0)
}

/// Returns a thread's flags (PF_* of the kernel's sched.h).
fn flags(tid: i32) -> Option<u64> {
    let stat = text(format!("/proc/{tid}/stat"))?;
    // Counted from behind the name, which may hold any byte, the flags are the 7th field (9 in proc(5)).
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(6)?.parse().ok()
}

/// Returns the processes of the box, except this one and the kernel's own threads.
pub(crate) fn processes() -> Vec<i32> {
    let own = std::process::id() as i32;
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    all.filter(|pid| *pid != own && !is_of_kernel(*pid)).collect()
}

/// Returns true if a thread has been killed but has not begun to end yet.
pub(crate) fn is_killed(tid: i32) -> bool {
    const KILL: u64 = 1 << (libc::SIGKILL - 1);
    let pending = |key| status_field(tid, key).and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    ["SigPnd:", "ShdPnd:"].into_iter().any(|key| pending(key).is_some_and(|mask| mask & KILL != 0))
}

/// Returns the path of the program that a process runs.
pub(crate) fn exe(pid: i32) -> Option<Arc<str>> {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some(path.to_string_lossy().trim_end_matches(" (deleted)").into())
}

/// Returns the command line of a process, cut to 16 words and 1,024 bytes.
pub(crate) fn argv(pid: i32) -> Vec<Arc<str>> {
    words(&read(format!("/proc/{pid}/cmdline")).unwrap_or_default())
}

/// Returns the words of a command line as `/proc/PID/cmdline` holds it. A program that has written a shorter title over
/// its words leaves NULs behind it. Therefore empty words at the end are left out, except a single one behind words
/// without blanks, which may be a real argument.
fn words(bytes: &[u8]) -> Vec<Arc<str>> {
    let bytes = &bytes[..bytes.len().min(1024)];
    let mut words: Vec<Arc<str>> =
        bytes.split(|b| *b == 0).take(16).map(|w| String::from_utf8_lossy(w).as_ref().into()).collect();
    if words.last().is_some_and(|w| w.is_empty()) {
        words.pop();
    }
    let full = words.iter().rposition(|word| !word.is_empty()).map_or(0, |last| last + 1);
    let is_title = words.first().is_some_and(|word| word.contains(' '));
    if words.len() > full + 1 || is_title {
        words.truncate(full);
    }
    words
}

/// Returns the words of a process's command line and its variables whose names end in `OPTIONS`, each with a NUL at its
/// end. Call it at the process's exec only: later the process may have replaced them. Returns `None` if they can't be
/// read.
pub(crate) fn options_at_exec(pid: i32) -> Option<Vec<u8>> {
    let mut words = read(format!("/proc/{pid}/cmdline"))?;
    let environment = read(format!("/proc/{pid}/environ"))?;
    for variable in environment.split_inclusive(|b| *b == 0) {
        let name = variable.split(|b| *b == b'=').next();
        if name.is_some_and(|name| name.ends_with(b"OPTIONS")) {
            words.extend(variable);
        }
    }
    Some(words)
}

/// Returns the numbers of a process's threads.
pub(crate) fn threads(pid: i32) -> Vec<i32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the name of a thread.
pub(crate) fn comm(tid: i32) -> String {
    text(format!("/proc/{tid}/comm")).map(|s| s.trim_end().to_owned()).unwrap_or_default()
}

/// Returns the file, socket or pipe that a descriptor refers to.
pub(crate) fn fd_target(pid: i32, fd: i32) -> Option<Arc<str>> {
    // A negative number is AT_FDCWD, or no descriptor at all.
    if fd < 0 {
        return None;
    }
    let path = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
    Some(path.to_string_lossy().as_ref().into())
}

/// Returns the number of minor page faults of a thread: the tenth field of its stat file. The second field may hold any
/// byte.
pub(crate) fn minor_faults(tid: i32) -> Option<u64> {
    let text = text(format!("/proc/{tid}/task/{tid}/stat"))?;
    let (_, after_name) = text.rsplit_once(')')?;
    after_name.split_whitespace().nth(7)?.parse().ok()
}

/// Returns the time for which a process has run, ns.
pub(crate) fn age_ns(pid: i32) -> Option<u64> {
    const TICK_NS: u64 = 10_000_000;
    let text = text(format!("/proc/{pid}/stat"))?;
    // This is field 22 of proc(5), ticks from the system's start to the process's. The process's name may hold any
    // byte.
    let started: u64 = text.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let now = crate::sys::clock(ClockId::CLOCK_BOOTTIME)?;
    Some(now.saturating_sub(started.saturating_mul(TICK_NS)))
}

/// Returns the `TZ` with which a process was started.
pub(crate) fn time_zone_of(pid: i32) -> TimeZone {
    const MOST: usize = 1 << 20;
    let Ok(environment) = systoll_files::read_kernel(format!("/proc/{pid}/environ"), MOST) else {
        return TimeZone::Unknown;
    };
    let set = environment.split(|b| *b == 0).find_map(|entry| entry.strip_prefix(b"TZ="));
    set.map_or(TimeZone::Unset, |name| TimeZone::Set(String::from_utf8_lossy(name).into_owned()))
}

/// Returns the user and system time, ns, of running processes and of the children for which they have waited. The
/// kernel reports the same times to their parents when they end. It counts them in ticks.
pub(crate) fn running_times(pids: impl IntoIterator<Item = i32>) -> (u64, u64) {
    times(pids, |own, of_children| own.saturating_add(of_children))
}

/// Returns the same without those children.
pub(crate) fn own_times(pids: impl IntoIterator<Item = i32>) -> (u64, u64) {
    times(pids, |own, _| own)
}

fn times(pids: impl IntoIterator<Item = i32>, sum: fn(u64, u64) -> u64) -> (u64, u64) {
    const TICK_NS: u64 = 10_000_000;
    let ticks = |pid: i32| {
        let text = text(format!("/proc/{pid}/stat"))?;
        // These are fields 14 to 17 of proc(5); the name before them may hold any byte.
        let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace().skip(11).map(|f| f.parse::<u64>().ok());
        let (user, sys, of_children) = (fields.next()??, fields.next()??, (fields.next()??, fields.next()??));
        Some((sum(user, of_children.0), sum(sys, of_children.1)))
    };
    let all: std::collections::BTreeSet<i32> = pids.into_iter().filter(|pid| *pid > 0).collect();
    let total =
        all.into_iter().filter_map(ticks).fold((0u64, 0u64), |a, b| (a.0.saturating_add(b.0), a.1.saturating_add(b.1)));
    (total.0.saturating_mul(TICK_NS), total.1.saturating_mul(TICK_NS))
}

/// Number of read and write calls of a process, as counted by the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IoCalls {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
}

/// Reads syscr and syscw of /proc/PID/io, which cover all threads, including those that have ended.
pub(crate) fn io_calls(pid: i32) -> Option<IoCalls> {
    let text = text(format!("/proc/{pid}/io"))?;
    let field = |key: &str| text.lines().find_map(|l| l.strip_prefix(key))?.trim().parse().ok();
    Some(IoCalls { reads: field("syscr:")?, writes: field("syscw:")? })
}

/// A thread's running time and its waiting time for a processor, from /proc/TID/schedstat.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SchedTimes {
    /// Time on a processor, ns.
    pub(crate) cpu_ns: u64,
    /// Time for which the thread was ready but waited for a processor, ns.
    pub(crate) queued_ns: u64,
}

/// Descriptors that stay free for reading other files: files kept open never use them.
const SPARE: usize = 40;
/// Number of files kept open.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// An open schedstat file of a thread.
#[derive(Debug)]
pub(crate) struct Schedstat {
    file: File,
    kept: bool,
}

impl Drop for Schedstat {
    fn drop(&mut self) {
        if self.kept {
            KEPT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Returns true if one more file may be kept open without using the reserved descriptors.
fn may_keep() -> bool {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| usize::try_from(soft).unwrap_or(usize::MAX));
    KEPT.load(Ordering::Relaxed).saturating_add(SPARE) < limit
}

/// The memory of a process until its next exec, as an open file. Reading it is faster than process_vm_readv(2).
#[derive(Debug)]
pub(crate) struct Memory(File);

impl Memory {
    /// Opens a process's memory to keep it open, if enough descriptors are left.
    pub(crate) fn keep(pid: i32) -> Option<Self> {
        if !may_keep() {
            return None;
        }
        let file = systoll_files::kernel(format!("/proc/{pid}/mem")).ok()?;
        KEPT.fetch_add(1, Ordering::Relaxed);
        Some(Self(file))
    }

    /// Fills `buffer` from `address` on. Returns the number of bytes read: 0 once the process has executed another
    /// program.
    pub(crate) fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        self.0.read_at(buffer, address).unwrap_or(0)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        KEPT.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Schedstat {
    pub(crate) fn open(pid: i32, tid: i32) -> Option<Self> {
        let file = systoll_files::kernel(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
        Some(Self { file, kept: false })
    }

    /// Opens a thread's schedstat to keep it open, if enough descriptors are left.
    pub(crate) fn keep(pid: i32, tid: i32) -> Option<Self> {
        if !may_keep() {
            return None;
        }
        let mut stat = Self::open(pid, tid)?;
        KEPT.fetch_add(1, Ordering::Relaxed);
        stat.kept = true;
        Some(stat)
    }

    pub(crate) fn read(&self) -> Option<SchedTimes> {
        let mut buffer = [0; 96];
        let n = self.file.read_at(&mut buffer, 0).ok()?;
        let text = std::str::from_utf8(buffer.get(..n)?).ok()?;
        let mut fields = text.split_ascii_whitespace().map(|f| f.parse().ok());
        Some(SchedTimes { cpu_ns: fields.next()??, queued_ns: fields.next()?? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nuls_behind_a_title_are_no_words() {
        let of = |bytes: &[u8]| words(bytes).iter().map(|word| word.to_string()).collect::<Vec<_>>();
        assert_eq!(of(b"nginx: worker process\0\0\0\0"), ["nginx: worker process"]);
        assert_eq!(of(b"redis-server *:6379\0\0"), ["redis-server *:6379"]);
        assert_eq!(of(b"postgres\0\0\0\0\0"), ["postgres"]);
        assert_eq!(of(b"grep\0x\0\0"), ["grep", "x", ""], "a word that was given may be empty");
        assert_eq!(of(b"sh\0-c\0\0true\0"), ["sh", "-c", "", "true"]);
        assert_eq!(of(b""), [""; 0]);
    }

    #[test]
    fn reads_itself() {
        let me = std::process::id() as i32;
        assert_eq!(tgid(me), Some(me));
        assert!(exe(me).is_some());
        let ids = ids(me).unwrap();
        assert_eq!((ids.users[1], ids.groups[0]), (nix::unistd::geteuid().as_raw(), nix::unistd::getgid().as_raw()));
        assert!(!argv(me).is_empty());
        let before = io_calls(me).unwrap();
        std::fs::read("/proc/self/stat").unwrap();
        assert!(io_calls(me).unwrap().reads > before.reads);
        assert_eq!(running_times([0, -1]), (0, 0));
        let end = std::time::Instant::now() + std::time::Duration::from_millis(60);
        while std::time::Instant::now() < end || running_times([me, me]) == (0, 0) {}
        let ran = Schedstat::open(me, me).unwrap().read().unwrap();
        assert!(ran.cpu_ns > 0);
    }
}
