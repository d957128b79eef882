//! The price of a context switch: one thread yields the processor and another thread of its process
//! continues.

use crate::child::{Outcome, Refused};
use crate::second_thread::{give_way, start};
use crate::sys;
use systoll_model::Spread;

/// Number of yields in a batch.
const TIMES: u32 = 8;
const BATCHES: usize = 24;
/// Least number of switches in a batch that counts. Without another thread to run there are none.
const MOST: i64 = 7;

/// Measures a switch from one thread of a process to another on one processor, with the call that
/// yields, in ns. Its later costs to the program (cold caches, waking an idle processor) are not
/// included, nor is the time of other processes that run meanwhile. Only for a pinned child that measures nothing afterwards: the other thread stays.
pub(crate) fn switch() -> Outcome {
    batches()
}

fn batches() -> Outcome {
    // SAFETY: `yields` only makes system calls, never returns and ignores its argument.
    unsafe { start(yields, std::ptr::null_mut())? };
    let reading = sys::cpu_reading_ns();
    let (mut times, mut len) = ([0.0; BATCHES], 0);
    for _ in 0..BATCHES {
        let (before, start) = (sys::switches(), sys::cpu_ns());
        (0..TIMES).for_each(|_| give_way());
        let spent = sys::cpu_ns().saturating_sub(start).saturating_sub(reading);
        let switched = sys::switches().wrapping_sub(before);
        // Each of our switches is followed by one of the other thread.
        if let Some(slot) = times.get_mut(len).filter(|_| switched >= MOST) {
            *slot = spent as f64 / (2 * switched) as f64;
            len += 1;
        }
    }
    let times = times.get_mut(..len).unwrap_or_default();
    times.sort_unstable_by(f64::total_cmp);
    let at = |i: usize| times.get(i).copied();
    let spread = || Some(Spread { min: at(0)?, median: at(len / 2)?, high: at(len.checked_sub(1 + len / 20)?)? });
    spread().filter(|_| 2 * len > BATCHES).ok_or(Refused::Because("giving way did not switch threads"))
}

extern "C" fn yields(_: *mut libc::c_void) -> libc::c_int {
    loop {
        give_way();
    }
}
