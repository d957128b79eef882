//! Raises the resource limits that systoll was started with while it watches, and gives them back to the programs it
//! starts.
//!
//! Watching from inside needs a descriptor for every program and a file in memory larger than any disk; names need
//! memory. The command is not charged for that: it gets the limits it would have had.

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, ScopedJoinHandle};

/// Exit code if systoll itself failed.
pub(crate) const EXIT_OF_SYSTOLL: c_int = 125;

/// The limits that are raised.
const RAISED: [Resource; 5] =
    [Resource::RLIMIT_NOFILE, Resource::RLIMIT_FSIZE, Resource::RLIMIT_AS, Resource::RLIMIT_DATA, Resource::RLIMIT_CPU];

/// Bytes of the smallest stack that systoll works with.
const LEAST_STACK: u64 = 1 << 20;

/// Bytes that must be available for a thread to start: for its stack, its signal stack, and allocations of other
/// threads meanwhile.
const BYTES_FOR_THREAD: usize = 4 << 20;

/// Starts a thread if there is memory for one: a Rust thread that can't allocate its signal stack panics as it starts.
///
/// # Errors
/// If the thread can't be started.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    if !has_memory_for_a_thread() {
        return Err(std::io::ErrorKind::OutOfMemory.into());
    }
    std::thread::Builder::new().name(name.into()).spawn(work)
}

/// Does the same as [`spawn`] for a thread that ends before `scope` does.
///
/// # Errors
/// The errors of [`spawn`].
pub(crate) fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> std::io::Result<ScopedJoinHandle<'scope, T>> {
    if !has_memory_for_a_thread() {
        return Err(std::io::ErrorKind::OutOfMemory.into());
    }
    std::thread::Builder::new().name(name.into()).spawn_scoped(scope, work)
}

fn has_memory_for_a_thread() -> bool {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice, which nobody else knows and which is unmapped at
    // once.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), BYTES_FOR_THREAD, protection, flags, -1, 0);
        at != libc::MAP_FAILED && libc::munmap(at, BYTES_FOR_THREAD) == 0
    }
}

/// The original soft and hard value of a limit; meaningless unless [`IS_RAISED`] is true.
struct OriginalLimit([AtomicU64; 2]);

/// True if [`WAS`] holds the original limits.
static IS_RAISED: AtomicBool = AtomicBool::new(false);
/// The original limits, in the order of [`RAISED`].
static WAS: [OriginalLimit; RAISED.len()] = [const { OriginalLimit([const { AtomicU64::new(0) }; 2]) }; RAISED.len()];

/// While this lives, this process's limits are as high as it is allowed to set them.
#[derive(Debug)]
pub struct Raised {
    /// True if this instance raised the limits.
    own: bool,
}

impl Raised {
    /// Raises the limits, unless they are raised already.
    #[must_use]
    pub fn new() -> Self {
        let own = !IS_RAISED.load(Ordering::Acquire);
        if own {
            for (resource, was) in RAISED.into_iter().zip(&WAS) {
                let (soft, hard) = limit(resource).unwrap_or_default();
                was.0[0].store(soft, Ordering::Relaxed);
                was.0[1].store(hard, Ordering::Relaxed);
            }
            IS_RAISED.store(true, Ordering::Release);
            for resource in RAISED {
                if let Some((soft, hard)) = limit(resource) {
                    raise(resource, soft, hard);
                }
            }
        }
        Self { own }
    }
}

impl Default for Raised {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        if self.own {
            restore();
            IS_RAISED.store(false, Ordering::Release);
        }
    }
}

fn raise(resource: Resource, soft: u64, hard: u64) {
    if soft == RLIM_INFINITY {
        return;
    }
    let highest = match resource {
        // The kernel kills a process that has used up the hard limit without a word; one second earlier systoll can
        // still print why.
        Resource::RLIMIT_CPU if hard != RLIM_INFINITY => hard.saturating_sub(1).max(1),
        _ => hard,
    };
    // Root may exceed the hard limit. Descriptors have another bound (fs.nr_open), so their hard limit stays.
    let beyond = resource != Resource::RLIMIT_NOFILE && setrlimit(resource, RLIM_INFINITY, RLIM_INFINITY).is_ok();
    if !beyond {
        // If the kernel refuses this too, the limit stays as it is.
        let _ = setrlimit(resource, highest, hard);
    }
}

/// Returns the soft and hard limit of `resource` that are in force.
fn limit(resource: Resource) -> Option<(u64, u64)> {
    getrlimit(resource).ok()
}

/// Restores the limits with which systoll was started, in this process or a forked child. Async-signal-safe.
pub(crate) fn restore() {
    if !IS_RAISED.load(Ordering::Acquire) {
        return;
    }
    for (resource, was) in RAISED.into_iter().zip(&WAS) {
        let [soft, hard] = [&was.0[0], &was.0[1]].map(|n| n.load(Ordering::Relaxed));
        if (soft, hard) != (0, 0) && limit(resource) != Some((soft, hard)) {
            // The command keeps the raised limit if the kernel refuses.
            let _ = setrlimit(resource, soft, hard);
        }
    }
}

/// Returns the number of descriptors that this process may have open now.
pub(crate) fn allowed_descriptors() -> u64 {
    limit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft)
}

/// Returns the command's limit of `resource` in bytes; `None` if it has no limit.
fn of_the_command(resource: Resource) -> Option<u64> {
    let at = RAISED.iter().position(|r| *r == resource).filter(|_| IS_RAISED.load(Ordering::Acquire));
    let soft = match at.and_then(|at| WAS.get(at)) {
        Some(was) => was.0[0].load(Ordering::Relaxed),
        None => limit(resource)?.0,
    };
    (soft != RLIM_INFINITY).then_some(soft)
}

/// Returns the reason why no memory can be shared with a command under its limits; `None` if it can.
pub(crate) fn forbid_sharing() -> Option<String> {
    let bytes = of_the_command(Resource::RLIMIT_AS)?;
    Some(format!("the command may have {bytes} bytes of addresses (ulimit -v), and shared memory takes more"))
}

/// Checks for limits under which systoll can't work at all. Also installs handlers for the signals that report an
/// exceeded limit, which would otherwise end this process in silence.
///
/// # Errors
/// A text that names the limit, its value and the least value that systoll takes.
pub fn prepare() -> Result<(), String> {
    on_limit(libc::SIGXFSZ, file_too_large);
    on_limit(libc::SIGXCPU, time_used_up);
    match limit(Resource::RLIMIT_STACK) {
        Some((soft, _)) if soft < LEAST_STACK => Err(format!(
            "a stack of {} KiB (ulimit -s) is too small for systoll: it takes {} KiB",
            soft >> 10,
            LEAST_STACK >> 10
        )),
        _ => Ok(()),
    }
}

/// Installs a handler instead of ignoring the signal: an exec resets a handler to the default by itself.
fn on_limit(signal: c_int, handler: extern "C" fn(c_int)) {
    // SAFETY: zeroed structs are valid to be filled; the handlers are async-signal-safe.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, std::ptr::null(), &mut before) != 0 || before.sa_sigaction != libc::SIG_DFL {
            return;
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

/// Does nothing: the write that exceeded the limit fails with EFBIG, which its caller reports.
extern "C" fn file_too_large(_: c_int) {}

extern "C" fn time_used_up(_: c_int) {
    last_words(
        b"systoll: its own processor time is used up (ulimit -t); what it watched runs on unwatched\n",
        EXIT_OF_SYSTOLL,
    )
}

/// Writes `line` to standard error and ends this process. Async-signal-safe.
pub(crate) fn last_words(line: &[u8], code: c_int) -> ! {
    // SAFETY: writes bytes that live through the call, and leaves.
    unsafe {
        libc::write(2, line.as_ptr().cast(), line.len());
        libc::_exit(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raised_limits_are_restored() {
        let before = RAISED.map(limit);
        {
            let _raised = Raised::new();
            let within = Raised::new();
            drop(within);
            let now = limit(Resource::RLIMIT_NOFILE).unwrap();
            assert_eq!(now.0, now.1);
        }
        assert_eq!(RAISED.map(limit), before);
    }

    #[test]
    fn without_a_limit_of_addresses_memory_can_be_shared() {
        assert_eq!(forbid_sharing().is_some(), limit(Resource::RLIMIT_AS).unwrap().0 != RLIM_INFINITY);
    }
}
