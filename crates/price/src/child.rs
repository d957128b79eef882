//! Runs measurements in a child process: their side effects harm no other process.
//!
//! Invariant: between clone and exit the child neither allocates nor takes a lock, since the
//! caller's other threads do not exist in it. It raises no SIGCHLD, dies with the caller, and ends
//! within a time limit.

use crate::sys;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use systoll_model::{Errno, Spread};

/// The reason why a figure could not be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("{0}: {1}")]
    Call(&'static str, Errno),
    #[error("{0}")]
    Because(&'static str),
}

pub(crate) type Outcome = Result<Spread, Refused>;

/// Largest number of figures of a child.
pub(crate) const MAX_FIGURES: usize = 256;

/// Memory that child and caller share.
struct Shared {
    finished: AtomicU32,
    done: [AtomicU32; MAX_FIGURES],
    outcomes: [MaybeUninit<Outcome>; MAX_FIGURES],
}

/// The shared memory that takes the child's figures.
pub(crate) struct Figures(*mut Shared);

impl Figures {
    /// Sets the figure at `index`; ignores an index beyond [`MAX_FIGURES`].
    pub(crate) fn set(&mut self, index: usize, outcome: Outcome) {
        if index >= MAX_FIGURES {
            return;
        }
        // SAFETY: the mapping is live, the index is within it, and the caller reads an outcome only
        // after `done` says that it is complete.
        unsafe {
            (&raw mut (*self.0).outcomes[index]).write(MaybeUninit::new(outcome));
            (*self.0).done[index].store(1, Ordering::Release);
        }
    }
}

/// Runs `work` in a child and returns the first `count` figures it set. If no child could be
/// started, all are `Err`; so is a figure that the child had not set when it ended.
pub(crate) fn measure(count: usize, deadline: Duration, work: impl FnOnce(&mut Figures)) -> Vec<Outcome> {
    Running::begin(count, deadline, work).outcomes()
}

/// A child that measures while the caller continues. If it is dropped before its outcomes are
/// requested, it is killed.
pub(crate) struct Running {
    /// The memory shared with the child; `None` if it could not be mapped.
    shared: Option<*mut Shared>,
    /// The child, until it is reaped.
    child: Result<Child, Errno>,
    count: usize,
}

/// A child that has not been reaped.
#[derive(Clone, Copy)]
struct Child {
    pid: usize,
    started: Instant,
    deadline: Duration,
}

impl Running {
    /// Starts the child that does `work`, as [`measure`] does; [`Running::outcomes`] waits for the
    /// figures.
    pub(crate) fn begin(count: usize, deadline: Duration, work: impl FnOnce(&mut Figures)) -> Self {
        let shared = map_shared();
        let pid = shared.map_or(Ok(0), |shared| spawn(shared, work));
        let child = pid.map(|pid| Child { pid, started: Instant::now(), deadline });
        Self { shared, child, count: count.min(MAX_FIGURES) }
    }

    /// Waits for the child and returns the figures it set.
    pub(crate) fn outcomes(mut self) -> Vec<Outcome> {
        let Some(shared) = self.shared else {
            return vec![Err(Refused::Because("no memory to share with a child")); self.count];
        };
        let missing = match self.child.map(|child| await_child(child, shared)) {
            Ok(true) => Refused::Because("its measuring did not get that far"),
            Ok(false) => Refused::Because("measuring took too long"),
            Err(errno) => Refused::Call("clone", errno),
        };
        let outcomes = (0..self.count)
            .map(|i| {
                // SAFETY: `done` is set after the outcome is complete; zero pages are valid
                // atomics.
                unsafe {
                    if (*shared).done[i].load(Ordering::Acquire) == 1 {
                        (*shared).outcomes[i].assume_init()
                    } else {
                        Err(missing)
                    }
                }
            })
            .collect();
        self.give_back();
        outcomes
    }

    /// Unmaps the shared memory, when nobody waits for the child any more.
    fn give_back(&mut self) {
        if let Some(shared) = self.shared.take() {
            // SAFETY: mapped with this size, and taken: nothing uses it any more. A child that
            // could not be killed has its own reference to the pages.
            unsafe { sys::call(libc::SYS_munmap, [shared as usize, size_of::<Shared>(), 0, 0, 0, 0]) };
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let (Some(shared), Ok(child)) = (self.shared, self.child) {
            await_child(Child { deadline: Duration::ZERO, ..child }, shared);
            self.give_back();
        }
    }
}

fn map_shared() -> Option<*mut Shared> {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_SHARED | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: a new mapping at an address the kernel chooses.
    let at = unsafe { sys::call(libc::SYS_mmap, [0, size_of::<Shared>(), prot, flags, usize::MAX, 0]) };
    sys::errno(at).is_none().then_some(at as *mut Shared)
}

/// Ends the child if its code panics: unwinding would run the caller's frames a second time.
struct ExitOnUnwind;

impl Drop for ExitOnUnwind {
    fn drop(&mut self) {
        sys::exit(125);
    }
}

fn spawn(shared: *mut Shared, work: impl FnOnce(&mut Figures)) -> Result<usize, Errno> {
    let mask = sys::block_signals();
    // SAFETY: without CLONE_VM the child has its own copy of everything. Exit signal 0: no SIGCHLD.
    let pid = unsafe { sys::call(libc::SYS_clone, [0; 6]) };
    if pid == 0 {
        let _guard = ExitOnUnwind;
        let die = [libc::PR_SET_PDEATHSIG as usize, libc::SIGKILL as usize, 0, 0, 0, 0];
        // SAFETY: takes no pointers.
        unsafe { sys::call(libc::SYS_prctl, die) };
        work(&mut Figures(shared));
        // SAFETY: the mapping is live; FUTEX_WAKE only uses the address as a key.
        unsafe {
            (*shared).finished.store(1, Ordering::Release);
            let word = (&raw const (*shared).finished) as usize;
            sys::call(libc::SYS_futex, [word, libc::FUTEX_WAKE as usize, 1, 0, 0, 0]);
        }
        sys::exit(0);
    }
    sys::restore_signals(mask);
    sys::errno(pid).map_or(Ok(pid as usize), |e| Err(Errno(e)))
}

/// Largest number of waits for a killed child, 5 ms each.
const REAPS: usize = 100;

/// Waits for the child's end and reaps it. Returns false if it had to be killed.
fn await_child(Child { pid, started, deadline }: Child, shared: *mut Shared) -> bool {
    let reap = |options: i32| {
        let options = (libc::__WALL | options) as usize;
        // SAFETY: neither status nor usage is requested.
        unsafe { sys::call(libc::SYS_wait4, [pid, 0, options, 0, 0, 0]) }
    };
    loop {
        // SAFETY: the mapping is live.
        let finished = unsafe { (*shared).finished.load(Ordering::Acquire) } == 1;
        let got = reap(if finished { 0 } else { libc::WNOHANG });
        // ECHILD: another thread that waits for any child has reaped it.
        if got == pid as isize || sys::errno(got) == Some(libc::ECHILD as u16) {
            return true;
        }
        if started.elapsed() >= deadline {
            // SAFETY: takes no pointers; the child has not been reaped, so its id is not reused.
            unsafe { sys::call(libc::SYS_kill, [pid, libc::SIGKILL as usize, 0, 0, 0, 0]) };
            // On a busy box the child takes a while to end. A child that sleeps in the kernel, e.g.
            // on a dead network file system, ends later: it is not waited for.
            for _ in 0..REAPS {
                std::thread::sleep(Duration::from_millis(5));
                if reap(libc::WNOHANG) != 0 {
                    break;
                }
            }
            return false;
        }
        let slice = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        // SAFETY: the word and the timeout are live.
        unsafe {
            let word = (&raw const (*shared).finished) as usize;
            sys::call(libc::SYS_futex, [word, libc::FUTEX_WAIT as usize, 0, &raw const slice as usize, 0, 0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_come_back_and_missing_ones_are_refused() {
        let two = Spread { min: 1.0, median: 2.0, high: 3.0 };
        let got = measure(3, Duration::from_secs(5), |f| {
            f.set(0, Ok(two));
            f.set(2, Err(Refused::Call("bpf", Errno(1))));
            f.set(MAX_FIGURES, Ok(two));
        });
        assert_eq!(got[0], Ok(two));
        assert!(got[1].is_err());
        assert_eq!(got[2].unwrap_err().to_string(), "bpf: EPERM");
    }

    #[test]
    fn a_child_that_hangs_is_killed() {
        let start = Instant::now();
        let got = measure(2, Duration::from_millis(100), |f| {
            f.set(0, Ok(Spread::default()));
            loop {
                // SAFETY: pause takes no arguments.
                unsafe { sys::call(libc::SYS_ppoll, [0; 6]) };
            }
        });
        assert!(start.elapsed() < Duration::from_secs(60));
        assert!(got[0].is_ok());
        assert_eq!(got[1], Err(Refused::Because("measuring took too long")));
    }

    #[test]
    fn a_child_whose_outcomes_nobody_wants_is_ended() {
        let running = Running::begin(1, Duration::from_secs(60), |_| crate::second_thread::sleep_for_good());
        let pid = running.child.unwrap().pid as i32;
        drop(running);
        // SAFETY: takes no pointers.
        assert_eq!(unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL | libc::WNOHANG) }, -1);
    }

    #[test]
    fn a_child_that_crashes_is_noticed() {
        let start = Instant::now();
        let got = measure(1, Duration::from_secs(60), |_| sys::exit(3));
        assert!(got[0].is_err());
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
