//! A second thread in a measuring child.

use crate::child::Refused;
use crate::sys;
use systoll_model::Errno;

const STACK: usize = 64 * 1024;

/// Starts a thread that runs `run` with `argument`, on the processors of the caller. For a child
/// only: its stack is never freed.
///
/// # Safety
/// `run` only makes calls that need no thread-local storage, since it shares the caller's, and
/// never returns; `argument` lives as long as `run` uses it.
pub(crate) unsafe fn start(
    run: extern "C" fn(*mut libc::c_void) -> libc::c_int,
    argument: *mut libc::c_void,
) -> Result<(), Refused> {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: a new mapping at an address the kernel chooses.
    let stack = unsafe { sys::call(libc::SYS_mmap, [0, STACK, prot, flags, usize::MAX, 0]) };
    if let Some(errno) = sys::errno(stack) {
        return Err(Refused::Call("mmap", Errno(errno)));
    }
    let flags = libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND | libc::CLONE_THREAD;
    // SAFETY: the stack is the thread's own; the caller guarantees the rest.
    let pid = unsafe { libc::clone(run, (stack as usize + STACK) as *mut libc::c_void, flags, argument) };
    if pid < 0 { Err(Refused::Because("no second thread could be started")) } else { Ok(()) }
}

/// Yields the processor to any other thread.
pub(crate) fn give_way() {
    // SAFETY: takes no arguments.
    unsafe { sys::call(libc::SYS_sched_yield, [0; 6]) };
}

/// Sleeps until the process ends: the child blocks every signal.
pub(crate) fn sleep_for_good() -> ! {
    loop {
        // SAFETY: takes no arguments.
        unsafe { sys::call(libc::SYS_ppoll, [0; 6]) };
    }
}
