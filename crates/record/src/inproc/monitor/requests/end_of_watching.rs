//! Recognises calls after which a process can't be watched any more, and tells the reason.

use crate::inproc::monitor::exec::rseq_areas;
use crate::inproc::monitor::handles::NodeAddr;
use crate::inproc::monitor::program::Patched;
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::session::Targets;
use crate::inproc::monitor::shared::maps::Maps;
use crate::inproc::monitor::shared::memory::Memory;
use crate::inproc::monitor::sys;
use crate::sys::read_memory;
use std::ops::Range;
use systoll_hooks::layout::{BLOBS_AT, BLOBS_SIZE, GLOBAL, IMAGE, areas, image, slot};
use systoll_hooks::numbers::{
    ARCH_PRCTL, MADVISE, MLOCKALL, MMAP, MREMAP, PRCTL, PRLIMIT64, SECCOMP, SETRLIMIT, SHMAT,
};

const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;

/// Reason why a process can't be watched after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndOfWatching {
    /// The call sets the gs base, by which threads find their slots.
    Gs,
    /// The call takes the time stamp counter away.
    Clock,
    /// The call makes the kernel dispatch system calls, including ours, to the program.
    Dispatch,
    /// The call locks all memory, so that all of ours would be allocated.
    Locks,
    /// The call maps over our memory, unmaps it or protects it.
    Touches,
    /// The call maps memory where ours lies, and would fail.
    Wants,
    /// The call limits the program's memory, and ours would count too.
    Bounds,
}

impl EndOfWatching {
    /// Returns the call's effect as words that follow the program's name.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Gs => "sets its gs base",
            Self::Clock => "gives its time stamp counter up",
            Self::Dispatch => "has its system calls sent to itself (PR_SET_SYSCALL_USER_DISPATCH)",
            Self::Locks => "locks all its memory",
            Self::Touches => "maps over, unmaps or protects memory that watching takes",
            Self::Wants => "maps memory where that of watching lies",
            Self::Bounds => "bounds its own memory (RLIMIT_AS or RLIMIT_DATA)",
        }
    }
}

/// Returns the reason why the process can't be watched after the call that a thread waits to make; `None` if it can.
pub(crate) fn reason(targets: &Targets, waiter: &Waiter) -> Option<EndOfWatching> {
    let args = waiter.args();
    let [first, second, third, fourth, fifth, _] = args;
    let touches =
        |at: u64, len: u64| hits(targets, waiter, at..at.saturating_add(len)).then_some(EndOfWatching::Touches);
    match number(targets, waiter)? {
        ARCH_PRCTL => Some(EndOfWatching::Gs),
        MLOCKALL => Some(EndOfWatching::Locks),
        PRCTL if first & 0xffff_ffff == PR_SET_SYSCALL_USER_DISPATCH => Some(EndOfWatching::Dispatch),
        PRCTL | SECCOMP => Some(EndOfWatching::Clock),
        MMAP if fourth & libc::MAP_FIXED as u64 != 0 => touches(first, second),
        MMAP => touches(first, second).map(|_| EndOfWatching::Wants),
        MREMAP => {
            let to = (fourth & libc::MREMAP_FIXED as u64 != 0).then(|| touches(fifth, third)).flatten();
            touches(first, second).or(to)
        }
        MADVISE if does_nothing_to_files(third) => None,
        SHMAT => touches(second, sys::segment_size(first as i32).unwrap_or(1)),
        SETRLIMIT => bounds(&targets.memory, waiter, (first, second)),
        PRLIMIT64 if is_own(&targets.memory, waiter, first as i32) => bounds(&targets.memory, waiter, (second, third)),
        PRLIMIT64 => None,
        // The arguments of these calls begin with an address and a length.
        _ => touches(first, second),
    }
}

/// Returns the number of the call that a thread waits to make. At sites that tell the number, eax may not hold it yet.
fn number(targets: &Targets, waiter: &Waiter) -> Option<u32> {
    let area = targets.memory.image(waiter.slot.program)?;
    let root = NodeAddr(area.get(waiter.slot.offset() + slot::ANSWER));
    let program = targets.programs.get(&waiter.slot.program)?;
    Some(program.number_of(root).unwrap_or(waiter.registers.ax as u32))
}

/// Returns true if a range of whole pages contains memory of ours in the thread's process.
fn hits(targets: &Targets, waiter: &Waiter, range: Range<u64>) -> bool {
    let id = waiter.slot.program;
    let areas = rseq_areas::are_given(&targets.memory, id).then_some(areas::AT..areas::AT + areas::SIZE);
    let fixed = [GLOBAL..IMAGE + image::SIZE, BLOBS_AT..BLOBS_AT + BLOBS_SIZE];
    let hit = |ours: &Range<u64>| ours.start < range.end && range.start < ours.end;
    if areas.into_iter().chain(fixed).any(|ours| hit(&ours)) {
        return true;
    }
    let near = targets.programs.get(&id).into_iter().flat_map(|p| p.hooks.files.iter().map(Patched::code_range));
    let near: Vec<Range<u64>> = near.filter(hit).collect();
    // The list has the code of all processes of the program. Those that were forked load files at places of their own,
    // where this process may have anything.
    let maps = if near.is_empty() { Maps::default() } else { Maps::of(waiter.tid) };
    near.iter().any(|near| maps.all.is_empty() || maps.are_ours(near))
}

/// Returns true if this advice leaves memory that is shared with a file unchanged.
fn does_nothing_to_files(advice: u64) -> bool {
    const HARMLESS: [libc::c_int; 12] = [
        libc::MADV_NORMAL,
        libc::MADV_RANDOM,
        libc::MADV_SEQUENTIAL,
        libc::MADV_WILLNEED,
        libc::MADV_DONTNEED,
        libc::MADV_DOFORK,
        libc::MADV_HUGEPAGE,
        libc::MADV_NOHUGEPAGE,
        libc::MADV_DONTDUMP,
        libc::MADV_DODUMP,
        libc::MADV_COLD,
        libc::MADV_PAGEOUT,
    ];
    HARMLESS.contains(&(advice as libc::c_int))
}

/// Returns true if a process id given by a thread means its own process.
fn is_own(memory: &Memory, waiter: &Waiter, pid: i32) -> bool {
    pid == 0 || pid == memory.head(waiter.slot).pid as i32
}

/// Returns [`EndOfWatching::Bounds`] if a new limit, which lies at an address of the process, is one that our memory counts
/// against.
fn bounds(memory: &Memory, waiter: &Waiter, (resource, at): (u64, u64)) -> Option<EndOfWatching> {
    // Only rseq areas are private writable memory of ours.
    let counts = resource as u32 == libc::RLIMIT_AS || rseq_areas::are_given(memory, waiter.slot.program);
    let mut soft = [0; 8];
    let told = read_memory(waiter.tid, at, &mut soft) == soft.len();
    (counts && told && u64::from_ne_bytes(soft) != libc::RLIM_INFINITY).then_some(EndOfWatching::Bounds)
}
