//! Calls whose number depends on chance: where one recording a side can't tell what varies, this can.
//!
//! It decides nothing about several recordings that agree: there the ranges speak.

use systoll_model::{FrameClass, FrameId, Recording, Row, Sysno};

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

/// Functions that a runtime calls or not by where the kernel has put its memory. V8 maps its built-in functions again,
/// next to the code that it makes, unless short jumps reach from there to where they are: both places are random
/// (`Isolate::MaybeRemapEmbeddedBuiltinsIntoCodeRange` in V8's src/execution/isolate.cc).
const BY_PLACE: [&str; 2] = ["v8::base::OS::RemapPages", "v8::base::(anonymous namespace)::ParseProcSelfMaps"];

/// What the number of a row's calls depends on; `None` where on the program and its input alone, as far as the
/// row tells.
pub(crate) fn chance(recording: &Recording, row: &Row) -> Option<Chance> {
    let name = row.syscall.name()?;
    let threads = recording.processes.get(row.process.0 as usize).is_some_and(|p| p.threads > p.instances.max(1));
    if SCHEDULING.contains(&name) && (threads || of_other_processes(row.syscall)) {
        return Some(Chance::Scheduling);
    }
    if user(recording, row).is_some_and(|frame| BY_PLACE.contains(&frame)) {
        return Some(Chance::Memory);
    }
    if MEMORY.contains(&name) && (name == "brk" || allocates(recording, row, threads)) {
        return Some(Chance::Memory);
    }
    // What a runtime does in threads of its own goes by when these run: starting them, signals, wake-up pipes.
    (threads && in_runtime(recording, row)).then_some(Chance::Scheduling)
}

/// The name of the row's caller.
fn user<'a>(recording: &'a Recording, row: &Row) -> Option<&'a str> {
    recording.frames.get(row.user?.0 as usize)?.locations.last().map(|location| &*location.function)
}

/// Waits that end early or late by what others do.
fn of_other_processes(call: Sysno) -> bool {
    call.name().is_some_and(|n| matches!(n, "restart_syscall" | "rt_sigreturn" | "sched_yield" | "wait4" | "poll"))
}

fn allocates(recording: &Recording, row: &Row, threads: bool) -> bool {
    match row.api.as_deref() {
        // A collector's own heap grows by when its threads run.
        Some(api) => threads || ALLOCATORS.contains(&api),
        None => threads && in_runtime(recording, row),
    }
}

/// Whether the caller is the language's runtime itself, for no function of the program's own: its library's functions
/// are on the way of all calls that a program makes.
pub(crate) fn in_runtime(recording: &Recording, row: &Row) -> bool {
    let frame = |id: FrameId| recording.frames.get(id.0 as usize);
    let last = || recording.stacks.get(row.context.0 as usize).and_then(|s| s.frames.last().copied());
    let caller = row.user.or_else(last).and_then(frame);
    caller.map_or(row.api.is_none(), |f| f.class == FrameClass::Runtime || row.user.is_none() && row.api.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{Counts, Frame, Location, Process, ProcessId, StackId};

    #[test]
    fn what_v8_does_by_where_memory_lies_is_chance() {
        let of = |function: &str| {
            let mut recording = Recording::default();
            recording.processes.push(Process { instances: 1, threads: 11, ..Process::default() });
            let location = Location { function: function.into(), file: None, line: None };
            recording.frames.push(Frame { locations: vec![location], class: FrameClass::User, ..Frame::default() });
            chance(&recording, &row(Sysno::from_name("openat")?))
        };
        assert_eq!((of("v8::base::OS::RemapPages"), of("v8::base::OS::Open")), (Some(Chance::Memory), None));
    }

    fn row(syscall: Sysno) -> Row {
        Row {
            process: ProcessId(0),
            syscall,
            context: StackId(0),
            outer: StackId(0),
            api: None,
            api_module: None,
            user: Some(FrameId(0)),
            lines: vec![],
            counts: Counts::default(),
        }
    }

    #[test]
    fn what_a_program_asks_for_itself_is_no_chance() {
        let of = |name: &str, class: FrameClass, threads: u64| {
            let mut recording = Recording::default();
            recording.processes.push(Process { instances: 1, threads, ..Process::default() });
            recording.frames.push(Frame { class, ..Frame::default() });
            chance(&recording, &row(Sysno::from_name(name)?))
        };
        use FrameClass::{Runtime, User};
        assert_eq!((of("openat", User, 5), of("openat", Runtime, 5)), (None, Some(Chance::Scheduling)));
        assert_eq!((of("futex", User, 5), of("futex", User, 1)), (Some(Chance::Scheduling), None));
        assert_eq!((of("brk", User, 1), of("mmap", User, 1)), (Some(Chance::Memory), None));
        assert_eq!((of("mmap", Runtime, 5), of("read", Runtime, 1)), (Some(Chance::Memory), None));
    }
}
