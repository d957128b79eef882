//! Calls after which a process can't be watched any more: which they are, and why.

use crate::inproc::monitor::exec::rseq_areas;
use crate::inproc::monitor::handles::NodeAddr;
use crate::inproc::monitor::program::Patched;
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::session::Session;
use crate::inproc::monitor::sys;
use crate::sys::read_memory;
use std::ops::Range;
use systoll_hooks::layout::{BLOBS_AT, BLOBS_SIZE, GLOBAL, IMAGE, areas, image, slot};
use systoll_hooks::numbers::{
    ARCH_PRCTL, MADVISE, MLOCKALL, MMAP, MREMAP, PRCTL, PRLIMIT64, SECCOMP, SETRLIMIT, SHMAT,
};

const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;

/// What a call does after which its process can't be watched any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// It sets the gs base, by which threads find their slots.
    Gs,
    /// It takes the time stamp counter away.
    Clock,
    /// Our own calls would be dispatched to the program.
    Dispatch,
    /// All that is mapped would be filled with memory.
    Locks,
    /// It maps over our memory, takes it away or protects it.
    Touches,
    /// It maps memory where ours lies, or fails.
    Wants,
    /// Our memory would count against the program's.
    Bounds,
}

impl Last {
    /// What it does, behind the program's name.
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

/// What the call that a thread waits to make comes to; `None` if its process can be watched on.
pub(crate) fn of(session: &Session, waiter: &Waiter) -> Option<Last> {
    let args = waiter.args();
    let [first, second, third, fourth, fifth, _] = args;
    let touches = |at: u64, len: u64| hits(session, waiter, at..at.saturating_add(len)).then_some(Last::Touches);
    match number(session, waiter)? {
        ARCH_PRCTL => Some(Last::Gs),
        MLOCKALL => Some(Last::Locks),
        PRCTL if first & 0xffff_ffff == PR_SET_SYSCALL_USER_DISPATCH => Some(Last::Dispatch),
        PRCTL | SECCOMP => Some(Last::Clock),
        MMAP if fourth & libc::MAP_FIXED as u64 != 0 => touches(first, second),
        MMAP => touches(first, second).map(|_| Last::Wants),
        MREMAP => {
            let to = (fourth & libc::MREMAP_FIXED as u64 != 0).then(|| touches(fifth, third)).flatten();
            touches(first, second).or(to)
        }
        MADVISE if does_nothing_to_files(third) => None,
        SHMAT => touches(second, sys::segment_size(first as i32).unwrap_or(1)),
        SETRLIMIT => bounds(session, waiter, (first, second)),
        PRLIMIT64 if is_own(session, waiter, first as i32) => bounds(session, waiter, (second, third)),
        PRLIMIT64 => None,
        // Calls that name a range first, and its length.
        _ => touches(first, second),
    }
}

/// Number of the call that a thread waits to make: at a site that says it, it need not be in eax yet.
fn number(session: &Session, waiter: &Waiter) -> Option<u32> {
    let area = session.memory.image(waiter.slot.program)?;
    let root = NodeAddr(area.get(waiter.slot.offset() + slot::ANSWER));
    let program = session.programs.get(&waiter.slot.program)?;
    Some(program.number_of(root).unwrap_or(waiter.registers.ax as u32))
}

/// Whether memory of ours in the thread's process lies in a range, in whole pages.
fn hits(session: &Session, waiter: &Waiter, range: Range<u64>) -> bool {
    let id = waiter.slot.program;
    let areas = rseq_areas::are_given(session, id).then_some(areas::AT..areas::AT + areas::SIZE);
    let fixed = [GLOBAL..IMAGE + image::SIZE, BLOBS_AT..BLOBS_AT + BLOBS_SIZE];
    let near = session.programs.get(&id).into_iter().flat_map(|p| p.hooks.files.iter().map(Patched::code_range));
    areas.into_iter().chain(fixed).chain(near).any(|ours| ours.start < range.end && range.start < ours.end)
}

/// Whether memory that is shared with a file is as before after such an advice.
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

/// Whether a process id that a thread gives is its own process's.
fn is_own(session: &Session, waiter: &Waiter, pid: i32) -> bool {
    pid == 0 || pid == session.memory.head(waiter.slot).pid as i32
}

/// Whether a new limit, at an address, is one that our memory counts against.
fn bounds(session: &Session, waiter: &Waiter, (resource, at): (u64, u64)) -> Option<Last> {
    // Of private memory that can be written we have none but areas.
    let counts = resource as u32 == libc::RLIMIT_AS || rseq_areas::are_given(session, waiter.slot.program);
    let mut soft = [0; 8];
    let told = read_memory(waiter.tid, at, &mut soft) == soft.len();
    (counts && told && u64::from_ne_bytes(soft) != libc::RLIM_INFINITY).then_some(Last::Bounds)
}
