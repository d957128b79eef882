//! The price of a minor page fault: the first touch of a page that the kernel has to find and
//! clear.

use crate::child::{Outcome, Refused};
use crate::sys;
use systoll_model::Spread;

const PAGE: usize = 4096;
/// Number of pages touched in a batch. They are less than half of a huge page, so that they fit
/// into one. With fewer, each costs a tenth more.
const PAGES: usize = 64;
/// Number of batches: enough for the minimum and the median. A user who watched a program for a few
/// milliseconds waits for them.
const BATCHES: usize = 12;

/// Measures a minor fault on a page of anonymous memory, small pages, in ns: the trap, finding a
/// page, clearing and mapping it. Its later costs to the program (a cold cache) are not included,
/// nor is the time of other processes that run meanwhile. Only for a pinned child.
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
    // SAFETY: the mapping is ours; the advice only changes how its pages come and go.
    let advise = |advice: i32| unsafe { sys::call(libc::SYS_madvise, [at as usize, size, advice as usize, 0, 0, 0]) };
    advise(libc::MADV_NOHUGEPAGE);
    let reading = sys::cpu_reading_ns();
    let mut times = [0.0; BATCHES];
    for time in &mut times {
        advise(libc::MADV_DONTNEED);
        let start = sys::cpu_ns();
        for page in 0..PAGES {
            // SAFETY: within the mapping, which is writable and used by nothing else.
            unsafe { ((at as usize + page * PAGE) as *mut u8).write_volatile(1) };
        }
        *time = sys::cpu_ns().saturating_sub(start).saturating_sub(reading) as f64 / PAGES as f64;
    }
    times.sort_unstable_by(f64::total_cmp);
    let [min, .., _] = times;
    Some(Spread { min, median: times[BATCHES / 2], high: times[BATCHES - 1 - BATCHES / 20] })
}
