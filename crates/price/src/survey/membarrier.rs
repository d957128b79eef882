//! The kinds of membarrier. For a child only: registering can't be undone.

use crate::child::{Outcome, Refused};
use crate::measure::Meter;
use crate::second_thread::{give_way, sleep_for_good, start};
use crate::sys::{self, Affinity};
use std::sync::atomic::{AtomicU32, Ordering};
use systoll_model::Errno;

/// Number of measured calls of GLOBAL, each of which waits milliseconds until every processor has
/// passed through the scheduler.
const GLOBAL_CALLS: u32 = 4;

fn membarrier(command: i32) -> isize {
    // SAFETY: takes no pointers.
    unsafe { sys::call(libc::SYS_membarrier, [command as usize, 0, 0, 0, 0, 0]) }
}

fn try_once(command: i32) -> Result<(), Refused> {
    sys::errno(membarrier(command)).map_or(Ok(()), |errno| Err(Refused::Call("membarrier", Errno(errno))))
}

/// Measures single calls of the command GLOBAL.
pub(super) fn global(meter: &Meter) -> Outcome {
    try_once(libc::MEMBARRIER_CMD_GLOBAL)?;
    Ok(meter.spread_single(GLOBAL_CALLS, || {
        membarrier(libc::MEMBARRIER_CMD_GLOBAL);
    }))
}

const SPIN: u32 = 1;
const SLEEP: u32 = 2;
const NOWHERE_TO_RUN: u32 = 3;

/// The state that both threads share.
struct Sibling<'a> {
    affinity: Option<&'a Affinity>,
    state: AtomicU32,
    /// Number of the second thread's turns while it spins, which shows that it really ran.
    turns: AtomicU32,
}

/// Measures PRIVATE_EXPEDITED while a second thread runs on another processor, then while it
/// sleeps. In a process of one thread the kernel does nothing, which is not the price that programs
/// pay.
pub(super) fn private(meter: &Meter, affinity: Option<&Affinity>) -> (Outcome, Outcome) {
    if let Err(refused) = try_once(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) {
        return (Err(refused), Err(refused));
    }
    let sibling = Sibling { affinity, state: AtomicU32::new(0), turns: AtomicU32::new(0) };
    let argument = std::ptr::from_ref(&sibling).cast_mut().cast();
    // SAFETY: `run` only makes system calls and never returns. It does not touch `sibling` after it
    // has set the state back to 0, and this function waits for that.
    if let Err(refused) = unsafe { start(run, argument) } {
        return (Err(refused), Err(refused));
    }
    wait_while(&sibling.state, 0);
    let barrier = || {
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    };
    let tried = try_once(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    let mut seen = 0;
    let ran = || {
        let turns = sibling.turns.load(Ordering::Relaxed);
        std::mem::replace(&mut seen, turns) != turns
    };
    let running = match sibling.state.load(Ordering::Acquire) {
        SPIN => tried.map(|()| meter.spread_where(barrier, ran)),
        _ => Err(Refused::Because("only one processor may be used")),
    };
    sibling.state.store(SLEEP, Ordering::Release);
    wait_while(&sibling.state, SLEEP);
    // The caller is the child: the sibling ends with it, and sleeps until then without touching
    // this frame.
    (running, tried.map(|()| meter.spread(barrier)))
}

/// Yields until the word changes: sibling and caller may share a processor.
fn wait_while(word: &AtomicU32, value: u32) {
    while word.load(Ordering::Acquire) == value {
        give_way();
    }
}

extern "C" fn run(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `start` passes a Sibling that lives until the state is 0 again.
    let sibling = unsafe { &*argument.cast_const().cast::<Sibling>() };
    let elsewhere = sibling.affinity.is_some_and(Affinity::elsewhere);
    sibling.state.store(if elsewhere { SPIN } else { NOWHERE_TO_RUN }, Ordering::Release);
    while sibling.state.load(Ordering::Acquire) != SLEEP {
        if elsewhere {
            sibling.turns.fetch_add(1, Ordering::Relaxed);
            std::hint::spin_loop();
        } else {
            give_way();
        }
    }
    sibling.state.store(0, Ordering::Release);
    sleep_for_good()
}
