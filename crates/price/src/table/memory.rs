//! Mappings. The prices are of the calls themselves, without the page faults they cause later.

use super::bench::{Bench, make, same, turns, undo};
use crate::fixture::Fixture;
use crate::sys::{self, Args};
use libc::*;

const PAGE: usize = 4096;

/// Returns the arguments for mapping a private page. Neighbours differ in protection, which keeps
/// each a mapping of its own.
fn map(_: &Fixture, i: usize) -> Args {
    let prot = if i.is_multiple_of(2) { PROT_READ } else { PROT_READ | PROT_WRITE };
    [0, PAGE, prot as usize, (MAP_PRIVATE | MAP_ANONYMOUS) as usize, usize::MAX, 0]
}

fn unmap(_: &Fixture, _: usize, at: isize) {
    if sys::errno(at).is_none() {
        // SAFETY: mapped by `map`, one page, used by nothing else.
        unsafe { sys::call(SYS_munmap, [at as usize, PAGE, 0, 0, 0, 0]) };
    }
}

pub(super) const CALLS: &[Bench] = &[
    make(SYS_mmap, map, unmap),
    undo(SYS_munmap, SYS_mmap, map, unmap),
    turns(
        SYS_mprotect,
        |f| [f.page(), PAGE, PROT_READ as usize, 0, 0, 0],
        |f| [f.page(), PAGE, (PROT_READ | PROT_WRITE) as usize, 0, 0, 0],
    ),
    turns(SYS_brk, |f| [f.heap_end() + 33 * PAGE, 0, 0, 0, 0, 0], |f| [f.heap_end(), 0, 0, 0, 0, 0]),
    same(SYS_madvise, |f| [f.page(), PAGE, MADV_DONTNEED as usize, 0, 0, 0]),
    same(SYS_mincore, |f| [f.page(), PAGE, f.out(), 0, 0, 0]),
    same(SYS_msync, |f| [f.page(), PAGE, MS_ASYNC as usize, 0, 0, 0]),
];
