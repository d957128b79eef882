//! Calls whose number depends on chance: where one recording a side can't tell what varies, this can.
//!
//! It decides nothing about several recordings that agree: there the ranges speak.

use systoll_model::{FrameClass, Recording, Row, Sysno};

/// What the number of calls depends on beside the program and its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Chance {
    /// Which thread runs when: waits, wake-ups, and whatever a language's runtime does in threads of its own.
    Scheduling,
    /// Where the kernel puts memory, and how much of it has been collected.
    Memory,
    /// Whether the caller was seen: the calls are there on both sides, on one of them without it.
    Attribution,
}

impl Chance {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scheduling => "scheduling",
            Self::Memory => "memory",
            Self::Attribution => "attribution",
        }
    }
}

/// Calls that wait for others, wake them up, or are interrupted by them.
const SCHEDULING: [&str; 24] = [
    "futex",
    "futex_wait",
    "futex_wake",
    "sched_yield",
    "nanosleep",
    "clock_nanosleep",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "restart_syscall",
    "tgkill",
    "rt_sigreturn",
    "io_uring_enter",
    "io_getevents",
    "wait4",
    "waitid",
    "pause",
    "rt_sigtimedwait",
    "rt_sigsuspend",
    "membarrier",
];

/// Calls by which a heap grows and shrinks.
const MEMORY: [&str; 6] = ["brk", "mmap", "munmap", "mremap", "madvise", "mprotect"];
/// Functions that ask for memory and give it back.
const ALLOCATORS: [&str; 12] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "malloc_trim",
    "sbrk",
    "brk",
    "pthread_create",
];

/// What the number of a row's calls depends on; `None` where on the program and its input alone, as far as the
/// row tells.
pub(crate) fn chance(recording: &Recording, row: &Row) -> Option<Chance> {
    let name = row.syscall.name()?;
    let threads = recording.processes.get(row.process.0 as usize).is_some_and(|p| p.threads > p.instances.max(1));
    if SCHEDULING.contains(&name) && (threads || of_other_processes(row.syscall)) {
        return Some(Chance::Scheduling);
    }
    if MEMORY.contains(&name) && (name == "brk" || allocates(recording, row, threads)) {
        return Some(Chance::Memory);
    }
    // What a runtime does in threads of its own goes by when these run: starting them, signals, wake-up pipes.
    (threads && in_runtime(recording, row)).then_some(Chance::Scheduling)
}

/// Waits that end early or late by what others do.
fn of_other_processes(call: Sysno) -> bool {
    call.name().is_some_and(|n| matches!(n, "restart_syscall" | "rt_sigreturn" | "sched_yield" | "wait4" | "poll"))
}

fn allocates(recording: &Recording, row: &Row, threads: bool) -> bool {
    match row.api.as_deref() {
        Some(api) => ALLOCATORS.contains(&api),
        None => threads && in_runtime(recording, row),
    }
}

/// Whether no frame of the row's context is the program's own: only the language's runtime, libc or nothing known.
fn in_runtime(recording: &Recording, row: &Row) -> bool {
    let frames = recording.stacks.get(row.context.0 as usize).map_or(&[][..], |s| &s.frames);
    let class = |id: &systoll_model::FrameId| recording.frames.get(id.0 as usize).map(|f| f.class);
    frames.iter().filter_map(class).any(|c| c == FrameClass::Runtime) || row.user.is_none() && row.api.is_none()
}
