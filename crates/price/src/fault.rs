//! What a minor page fault costs: the first touch of a page that the kernel has to find and clear.

use crate::child::{Outcome, Refused};
use crate::sys;
use std::time::Instant;
use systoll_model::Spread;

const PAGE: usize = 4096;
/// Pages touched in a batch: less than half of a huge page, so that it fits one. Of fewer each costs a tenth more.
const PAGES: usize = 64;
/// As many as tell the least and the usual: whoever has watched a program of a few milliseconds waits for them.
const BATCHES: usize = 12;

/// A minor fault on a page of anonymous memory, small pages, ns: the trap, finding a page, clearing
/// it and mapping it. What the program pays beside that (a cold cache) is not in it. For a child that is pinned.
pub(crate) fn fault() -> Outcome {
    batches().ok_or(Refused::Because("no memory to touch"))
}

fn batches() -> Option<Spread> {
    let size = PAGES * PAGE;
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address the kernel chooses.
    let at = unsafe { sys::call(libc::SYS_mmap, [0, size, prot as usize, flags as usize, usize::MAX, 0]) };
    if sys::errno(at).is_some() {
        return None;
    }
    // SAFETY: the mapping is ours; these change nothing but how its pages come and go.
    let advise = |advice: i32| unsafe { sys::call(libc::SYS_madvise, [at as usize, size, advice as usize, 0, 0, 0]) };
    advise(libc::MADV_NOHUGEPAGE);
    let mut times = [0.0; BATCHES];
    for time in &mut times {
        advise(libc::MADV_DONTNEED);
        let start = Instant::now();
        for page in 0..PAGES {
            // SAFETY: within the mapping, which is writable and ours alone.
            unsafe { ((at as usize + page * PAGE) as *mut u8).write_volatile(1) };
        }
        *time = start.elapsed().as_nanos() as f64 / PAGES as f64;
    }
    times.sort_unstable_by(f64::total_cmp);
    let [min, .., _] = times;
    Some(Spread { min, median: times[BATCHES / 2], high: times[BATCHES - 1 - BATCHES / 20] })
}
