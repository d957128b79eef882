//! Looks at a process that is to be entered, and returns the obstacle, if there is one.

use crate::inproc::monitor::attach::errands::{left_pages, our_mappings};
use crate::inproc::monitor::exec::confinement::{Filters, filters_in, status};
use crate::inproc::monitor::exec::own_filters;
use crate::inproc::monitor::exec::seccomp;
use crate::inproc::monitor::shared::maps::{Layout, Maps};
use crate::inproc::monitor::shared::peer;
use crate::inproc::monitor::shared::remote::Mem;
use crate::procfs;
use nix::errno::Errno;
use systoll_binfile::maps::{Line, lines};
use systoll_hooks::layout::{BLOBS_AT, BLOBS_SIZE, areas};

/// The reason why a process is not entered. Nothing has been done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The reason, in words that follow "can't enter process 7 (x): ".
    pub(crate) reason: String,
    /// A sentence or a command that helps.
    pub(crate) advice: Option<String>,
}

impl Refusal {
    /// Creates a refusal without advice.
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), advice: None }
    }

    fn with(reason: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { reason: reason.into(), advice: Some(advice.into()) }
    }
}

/// Returns the obstacle to entering process `pid`, if /proc shows one. It does not stop the process.
pub(crate) fn obstacle(pid: i32) -> Option<Refusal> {
    let status = status(&pid.to_string());
    let field = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    if status.is_empty() {
        return Some(Refusal::with("there is no such process", "all processes: ps -e"));
    }
    if pid == std::process::id() as i32 {
        return Some(Refusal::new("it is systoll itself"));
    }
    if field("Tgid:").is_some_and(|tgid| tgid != pid.to_string()) {
        let tgid = field("Tgid:").unwrap_or_default();
        return Some(Refusal::with(format!("it is a thread of process {tgid}"), format!("systoll attach {tgid}")));
    }
    match field("State:").and_then(|state| state.chars().next()) {
        Some('Z' | 'X') => return Some(Refusal::new("it has ended, or its first thread has")),
        Some('T') => {
            return Some(Refusal::with("it is stopped by a signal", format!("kill -CONT {pid} lets it go on")));
        }
        _ => {}
    }
    if field("Kthread:") == Some("1") || field("VmSize:").is_none() {
        return Some(Refusal::new("it is a thread of the kernel's, or is about to end"));
    }
    if let Some(tracer) = field("TracerPid:").and_then(|tracer| tracer.parse().ok()).filter(|tracer| *tracer != 0) {
        return Some(traced_by(tracer));
    }
    if let Some(confined) = confinement(pid, &status) {
        return Some(confined);
    }
    if field("VmLck:").is_some_and(|locked| locked != "0 kB") {
        return Some(Refusal::new("it locks its memory (mlock), and might have to lock what watching takes as well"));
    }
    if bounds_memory(pid) {
        return Some(Refusal::new("its address space is bounded (ulimit -v), and what watching takes would not fit"));
    }
    None
}

/// Returns the refusal of a process that another one traces.
fn traced_by(tracer: i32) -> Refusal {
    let name = procfs::comm(tracer);
    let reason = format!("process {tracer} ({name}) traces it already");
    match name == "systoll" {
        true => Refusal::with(reason, "it is entering the process or leaving it: try again"),
        false => Refusal::with(reason, "a process has one tracer at a time: end that one first, gdb by detach"),
    }
}

/// Returns the refusal of a process to whose threads the kernel did not let us attach, although its memory can be read.
pub(crate) fn not_attached(pid: i32, errno: Errno) -> Refusal {
    let own = std::process::id() as i32;
    let tracer = |tid: i32| procfs::status_field(tid, "TracerPid:")?.parse().ok().filter(|by| *by != 0 && *by != own);
    let tracer = peer::threads(pid).unwrap_or_default().into_iter().find_map(tracer);
    tracer.map_or_else(|| denied(pid, errno), traced_by)
}

/// Returns true if a process has ended, or is about to.
pub(crate) fn has_ended(pid: i32) -> bool {
    procfs::status_field(pid, "State:").is_none_or(|state| state.starts_with(['Z', 'X']))
}

fn confinement(pid: i32, status: &str) -> Option<Refusal> {
    let why = seccomp::obstacle(pid)?;
    if let Some(inner) = inner_id(status) {
        return Some(Refusal::with(
            "it lives in another PID namespace than systoll, as programs of containers do",
            format!("sudo nsenter -t {pid} -p unshare --mount-proc systoll attach {inner}"),
        ));
    }
    match filters_in(status) {
        Filters::None | Filters::Strict => Some(Refusal::with(why, RUN_INSTEAD)),
        // The filters are read later, when the process's threads are stopped.
        Filters::Some(_) | Filters::Uncounted if seccomp::may_read_filters() => None,
        Filters::Some(_) | Filters::Uncounted => Some(Refusal::with(
            "it has a seccomp filter, which may end it for what watching does, and which only root can read",
            format!("sudo systoll attach {pid}, or start it by systoll: systoll run -- CMD"),
        )),
    }
}

/// Advice for a process that can't be entered because of its filters.
const RUN_INSTEAD: &str = "started by systoll it can be watched: systoll run -- CMD";

/// Returns true if a process has seccomp filters that systoll has not inherited too, so that they must be examined.
pub(crate) fn has_own_filters(pid: i32) -> bool {
    seccomp::obstacle(pid).is_some()
}

/// Returns the refusal for a process whose filters are in the way.
pub(crate) fn filtered(obstacle: &own_filters::Obstacle) -> Refusal {
    let reason = match obstacle {
        own_filters::Obstacle::Forbids(call) => {
            format!("its seccomp filter does not allow {call}, which watching makes in it")
        }
        own_filters::Obstacle::Unreadable(errno) => {
            format!(
                "it has a seccomp filter that can't be read ({}), and may end it for what watching does",
                errno.desc()
            )
        }
    };
    Refusal::with(reason, RUN_INSTEAD)
}

/// Returns the id of a process in its own PID namespace, by its `status`, if that is another than the namespace of /proc.
fn inner_id(status: &str) -> Option<i32> {
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_ascii_whitespace().skip(1).last()?.parse().ok()
}

/// Returns true if a process runs a 32-bit program, by its memory and the text of its `maps`.
pub(crate) fn is_32_bit(pid: i32, mem: &Mem, maps: &[u8]) -> bool {
    const MAGIC_32: [u8; 5] = *b"\x7fELF\x01";
    let exe = procfs::exe(pid);
    let is_start = |line: &Line<'_>| line.offset == 0 && exe.as_ref().is_some_and(|exe| line.path == exe.as_bytes());
    let mut magic = [0; MAGIC_32.len()];
    lines(maps).find(is_start).is_some_and(|line| mem.read(line.range.start, &mut magic).is_ok()) && magic == MAGIC_32
}

/// Returns true if the process has a limit on its address space (RLIMIT_AS), or if that can't be read.
fn bounds_memory(pid: i32) -> bool {
    let text = procfs::read(format!("/proc/{pid}/limits")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("Max address space"));
    line.is_none_or(|line| line.split_ascii_whitespace().next() != Some("unlimited"))
}

/// Returns true if a process has memory of systoll: of one that watches it, or of one that was killed.
pub(crate) fn is_entered(maps: &Maps) -> bool {
    left_pages(maps).next().is_some() || our_mappings(maps).next().is_some()
}

/// Returns true if a process has memory of its own where ours would have to lie.
pub(crate) fn is_in_the_way(maps: &Maps) -> bool {
    !Layout::Known(&maps.all).is_free(&(areas::AT..BLOBS_AT + BLOBS_SIZE))
}

/// Returns the refusal for a process that already has memory of systoll.
pub(crate) fn entered_already(pid: i32) -> Refusal {
    Refusal::with(
        "a systoll watches it, or one that was killed has left its hooks there",
        format!("systoll attach --clean {pid} takes out what was left"),
    )
}

/// Returns the refusal for a process that the kernel does not let us attach to.
pub(crate) fn denied(pid: i32, errno: Errno) -> Refusal {
    if matches!(errno, Errno::ENOENT | Errno::ESRCH) {
        return Refusal::new("it has ended");
    }
    let scope = procfs::read("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let user = nix::unistd::geteuid();
    // /proc/PID belongs to root if the process may not be dumped, so its owner is read from the process's ids.
    let users = procfs::ids(pid).map(|ids| ids.users.map(|id| id == user.as_raw()));
    let owner = match users {
        Some([true, true, true, true]) => Owner::We,
        Some([true, ..]) => Owner::WeWithRights,
        _ => Owner::Another,
    };
    let rights = Rights { scope: String::from_utf8_lossy(&scope).trim().to_owned(), root: user.is_root(), owner };
    rights.refusal(pid, errno)
}

/// The facts that decide if we may trace a process.
struct Rights {
    /// Yama's `ptrace_scope`; empty where there is no Yama.
    scope: String,
    /// True if we are root.
    root: bool,
    owner: Owner,
}

/// The user whom a process belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// Our own user.
    We,
    /// Our own user; the process has another user's rights, because it runs a set-id program.
    WeWithRights,
    /// Another user.
    Another,
}

impl Rights {
    fn refusal(&self, pid: i32, errno: Errno) -> Refusal {
        let sudo = format!("sudo systoll attach {pid}");
        match &*self.scope {
            "3" => Refusal::new("Yama lets nobody trace any process until the next start (ptrace_scope is 3)"),
            _ if self.root => {
                let reason = format!("the kernel does not let this process trace it ({})", errno.desc());
                Refusal::with(reason, "in a container: --cap-add SYS_PTRACE, or from its host")
            }
            "1" | "2" if self.owner == Owner::We => {
                let scope = &self.scope;
                Refusal::with(
                    format!("Yama lets nobody but root trace processes that run (ptrace_scope is {scope})"),
                    sudo,
                )
            }
            _ if self.owner == Owner::We => {
                Refusal::with("the kernel lets nobody but root trace it (it may not be dumped)", sudo)
            }
            _ if self.owner == Owner::WeWithRights => {
                Refusal::with("it has another user's rights (a set-id program), so that only root may trace it", sudo)
            }
            _ => Refusal::with("it is another user's", sudo),
        }
    }
}

/// Evidence, gathered before a process is stopped, that no other process shares all of its memory, as a child of
/// `vfork` does before its exec, or one made by `clone` with CLONE_VM.
pub(crate) struct Alone {
    pid: i32,
    /// Id of the process or thread that was made last, read before the others were looked at.
    last: Option<i32>,
}

/// Number of new processes and threads that are looked at by their ids, at most; if there are more, all processes are
/// listed.
const MOST_NEW: i32 = 200;

impl Alone {
    /// Compares the process's memory with that of all others.
    ///
    /// # Errors
    /// The other process, if one shares its memory.
    pub(crate) fn of(pid: i32) -> Result<Self, i32> {
        let last = last_made();
        shares_memory(pid, listed()).map_or(Ok(Self { pid, last }), Err)
    }

    /// Looks again once the process is stopped, only at processes that were made since. Returns the one that shares its
    /// memory, if any.
    pub(crate) fn disturbed(&self) -> Option<i32> {
        match self.last.zip(last_made()) {
            // Ids ascend until they wrap around.
            Some((before, last)) if (0..=MOST_NEW).contains(&(last - before)) => {
                shares_memory(self.pid, before + 1..=last)
            }
            _ => shares_memory(self.pid, listed()),
        }
    }
}

/// Returns the id of the process or thread that was made last (proc(5), `loadavg`).
fn last_made() -> Option<i32> {
    let text = procfs::read("/proc/loadavg")?;
    String::from_utf8(text).ok()?.split_ascii_whitespace().nth(4)?.parse().ok()
}

fn listed() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse::<i32>().ok())
}

/// Returns the first process, of `others`, that shares all memory with `pid`; threads of `pid` do not count.
fn shares_memory(pid: i32, others: impl Iterator<Item = i32>) -> Option<i32> {
    // A process that is about to end has no memory, as the kernel's threads have none.
    procfs::status_field(pid, "VmSize:")?;
    let mut sharing = others.filter(|other| peer::same_memory(pid, *other) == Some(true)).filter_map(procfs::tgid);
    sharing.find(|process| *process != pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_reason_and_what_helps() {
        let told = |scope: &str, root, owner| {
            let refusal = Rights { scope: scope.into(), root, owner }.refusal(7, Errno::EPERM);
            (refusal.reason, refusal.advice.unwrap_or_default())
        };
        let sudo = "sudo systoll attach 7";
        use Owner::{Another, We, WeWithRights};
        for (scope, root, owner, reason, advice) in [
            ("1", false, We, "Yama", sudo),
            ("2", false, We, "ptrace_scope is 2", sudo),
            ("1", false, Another, "another user's", sudo),
            ("0", false, We, "may not be dumped", sudo),
            ("", false, We, "may not be dumped", sudo),
            ("", false, Another, "another user's", sudo),
            ("2", true, We, "the kernel does not let", "SYS_PTRACE"),
            ("3", true, We, "until the next start", ""),
            ("3", false, We, "until the next start", ""),
            ("", false, WeWithRights, "set-id", sudo),
            ("1", false, WeWithRights, "set-id", sudo),
        ] {
            let (why, what) = told(scope, root, owner);
            assert!(why.contains(reason) && what.contains(advice), "{scope} {root} {owner:?}: {why}; {what}");
            assert_eq!(what.is_empty(), advice.is_empty());
        }
    }

    #[test]
    fn a_process_of_a_container_has_an_id_there() {
        assert_eq!(inner_id("Name:\tx\nNSpid:\t700\t41\t1\n"), Some(1));
        for none in ["NSpid:\t700\n", "NSpid:\n", "Name:\tx\n", "NSpid:\t700\tx\n"] {
            assert_eq!(inner_id(none), None, "{none}");
        }
    }

    #[test]
    fn a_new_process_has_a_number_behind_the_last_one() {
        let before = last_made().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let after = last_made().unwrap();
        assert!(after != before);
        // Ids may have wrapped around.
        assert!(after < before || (before + 1..=after).contains(&(child.id() as i32)));
    }

    #[test]
    fn a_child_shares_no_memory() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let alone = Alone::of(child.id() as i32).unwrap();
        assert_eq!(alone.disturbed(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
