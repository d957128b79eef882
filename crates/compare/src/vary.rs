//! Finds calls whose number depends on chance. With one recording a side, variation can't be
//! measured; this module estimates it.
//!
//! Several recordings that agree are not overruled: their ranges decide.

use systoll_model::{FrameClass, FrameId, Recording, Row, Sysno};

/// The source of chance that the number of calls depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Chance {
    /// The order in which threads run: waits, wake-ups, and everything a language's runtime does in
    /// its own threads.
    Scheduling,
    /// The addresses of memory, and the progress of garbage collection.
    Memory,
    /// The attribution of calls: both sides make them, but one of them lacks their caller.
    Attribution,
}

impl Chance {
    /// Returns the name of the source of chance in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scheduling => "scheduling",
            Self::Memory => "memory",
            Self::Attribution => "attribution",
        }
    }
}

/// Calls that wait for others, wake them, or are interrupted by them.
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

/// Calls that grow and shrink a heap.
const MEMORY: [&str; 6] = ["brk", "mmap", "munmap", "mremap", "madvise", "mprotect"];
/// Functions that allocate and free memory.
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

/// Functions that a runtime calls only for some addresses of its memory. V8 maps its built-in
/// functions again, next to the code that it generates, unless short jumps reach them; both
/// addresses are random (`Isolate::MaybeRemapEmbeddedBuiltinsIntoCodeRange` in V8's
/// src/execution/isolate.cc).
const BY_PLACE: [&str; 2] = ["v8::base::OS::RemapPages", "v8::base::(anonymous namespace)::ParseProcSelfMaps"];

/// Returns the source of chance that the number of a row's calls depends on. Returns `None` if, as
/// far as the row tells, only the program and its input decide.
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
    // The actions of a runtime's own threads depend on when these run: starting threads, signals,
    // wake-up pipes.
    (threads && in_runtime(recording, row)).then_some(Chance::Scheduling)
}

/// Returns the name of the row's caller.
fn user<'a>(recording: &'a Recording, row: &Row) -> Option<&'a str> {
    recording.frames.get(row.user?.0 as usize)?.locations.last().map(|location| &*location.function)
}

/// Returns true for waits that end early or late depending on other processes.
fn of_other_processes(call: Sysno) -> bool {
    call.name().is_some_and(|n| matches!(n, "restart_syscall" | "rt_sigreturn" | "sched_yield" | "wait4" | "poll"))
}

fn allocates(recording: &Recording, row: &Row, threads: bool) -> bool {
    match row.api.as_deref() {
        // A garbage collector's heap grows depending on when its threads run.
        Some(api) => threads || ALLOCATORS.contains(&api),
        None => threads && in_runtime(recording, row),
    }
}

/// Returns true if the caller is the language's runtime itself and no function of the program. It
/// is not enough that functions of the runtime are on the stack: they are on the stack of every
/// call.
pub(crate) fn in_runtime(recording: &Recording, row: &Row) -> bool {
    let frame = |id: FrameId| recording.frames.get(id.0 as usize);
    let last = || recording.stacks.get(row.context.0 as usize).and_then(|s| s.frames.last().copied());
    let caller = row.user.or_else(last).and_then(frame);
    caller.map_or(row.api.is_none(), |f| f.class == FrameClass::Runtime || row.user.is_none() && row.api.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{Counts, Frame, Location, Process, ProcessId};

    #[test]
    fn v8_calls_that_depend_on_addresses_are_chance() {
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
        Row { user: Some(FrameId(0)), ..Row::new(ProcessId(0), syscall, Counts::default()) }
    }

    #[test]
    fn calls_of_the_program_itself_are_not_chance() {
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
