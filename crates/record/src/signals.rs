//! Signals sent to systoll while it watches: forwarded, or asking for a report so far.
//!
//! A thread of its own waits for them, so that forwarding never hangs on the tracer. The tracer
//! sleeps in waitpid; it is nudged by a signal that is repeated until it has looked, which closes
//! the race between its look at the flags and its going to sleep.

use crate::Error;
use std::os::unix::thread::JoinHandleExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

/// Nudges the tracer out of waitpid. Its default action is to be ignored, as a stray one must be.
const NUDGE: i32 = libc::SIGURG;
const WATCHED: [i32; 5] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1];

/// The signals systoll was started with.
#[derive(Clone, Copy)]
pub(crate) struct OriginalMask {
    mask: libc::sigset_t,
    nudge: libc::sighandler_t,
}

impl OriginalMask {
    /// Sets this thread's mask and what is done on a nudge back to it. Async-signal-safe.
    pub(crate) fn restore(&self) {
        // SAFETY: a disposition that was in force before and a valid set are installed; the old
        // ones are not asked for.
        unsafe {
            libc::signal(NUDGE, self.nudge);
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.mask, std::ptr::null_mut());
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    target: AtomicI32,
    told_to_end: AtomicI32,
    snapshot: AtomicBool,
    every_ms: AtomicU64,
    stop: AtomicBool,
    looked: AtomicBool,
}

/// Signals are held back from the process while this lives.
pub(crate) struct Signals {
    shared: Arc<Shared>,
    original: OriginalMask,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// What signals ask of the tracer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) snapshot: bool,
    /// The last signal that told the target to end, e.g. SIGTERM.
    pub(crate) ending: Option<i32>,
}

extern "C" fn nudged(_: i32) {}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the set before anything else reads it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, *signal);
        }
        set
    }
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: a zeroed sigaction is valid to be written to; with no new action this only reads.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

impl Signals {
    /// Holds signals back; they are acted upon once [`Signals::watch`] names a target.
    ///
    /// # Errors
    /// When no thread can be had.
    pub(crate) fn hold() -> Result<Self, Error> {
        let watched = set_of(&WATCHED);
        let mut original = set_of(&[]);
        // SAFETY: all sets are valid; the handler does nothing, so it is async-signal-safe.
        let nudge = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &watched, &mut original);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nudged as *const () as usize;
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(NUDGE, &action, &mut before);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &set_of(&[NUDGE]), std::ptr::null_mut());
            before.sa_sigaction
        };
        let shared = Arc::new(Shared::default());
        // SAFETY: always succeeds; names the thread that will sleep in waitpid.
        let tracer = unsafe { libc::pthread_self() };
        let of_thread = Arc::clone(&shared);
        let ignored = WATCHED.into_iter().filter(|signal| is_ignored(*signal)).collect::<Vec<_>>();
        let thread = std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || wait_for_signals(&of_thread, tracer, &ignored))
            .map_err(|e| Error::own("can't start a thread", e))?;
        Ok(Self { shared, original: OriginalMask { mask: original, nudge }, thread: Some(thread) })
    }

    pub(crate) fn original_mask(&self) -> OriginalMask {
        self.original
    }

    /// From now on signals go to `pid`, and a snapshot is asked for `every` so often.
    pub(crate) fn watch(&self, pid: i32, every: Option<Duration>) {
        self.shared.every_ms.store(every.map_or(0, |d| d.as_millis() as u64), Ordering::Relaxed);
        self.shared.target.store(pid, Ordering::Release);
    }

    /// The target has been reaped: its number may soon be somebody else's.
    pub(crate) fn target_gone(&self) {
        self.shared.target.store(0, Ordering::Release);
    }

    /// What has been asked for since the last look.
    pub(crate) fn look(&self) -> Wanted {
        if self.shared.looked.swap(true, Ordering::AcqRel) {
            return Wanted::default();
        }
        let ending = self.shared.told_to_end.swap(0, Ordering::AcqRel);
        Wanted { snapshot: self.shared.snapshot.swap(false, Ordering::AcqRel), ending: (ending != 0).then_some(ending) }
    }
}

impl Signals {
    /// Lets signals through to this process again. The thread is told to end, and waited for where what is
    /// returned is dropped: the one who calls this need not sleep until then.
    pub(crate) fn release(mut self) -> Ending {
        self.end()
    }

    fn end(&mut self) -> Ending {
        let thread = self.thread.take();
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = &thread {
            // It waits for these and so does not have to be waited for; sent to it alone, this one
            // is nobody else's.
            // SAFETY: the thread has not been joined.
            unsafe { libc::pthread_kill(thread.as_pthread_t(), libc::SIGUSR1) };
            self.original.restore();
        }
        Ending(thread)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        drop(self.end());
    }
}

/// A thread that has been told to end, joined when this is dropped.
pub(crate) struct Ending(Option<std::thread::JoinHandle<()>>);

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // Joining can only fail if the thread panicked, which leaves nothing to undo.
            let _ = thread.join();
        }
    }
}

fn wait_for_signals(shared: &Shared, tracer: libc::pthread_t, ignored: &[i32]) {
    let set = set_of(&WATCHED);
    shared.looked.store(true, Ordering::Release);
    let mut since_snapshot = std::time::Instant::now();
    let mut told = false;
    while !shared.stop.load(Ordering::Acquire) {
        let pending = !shared.looked.load(Ordering::Acquire);
        if pending {
            // SAFETY: the tracer's thread outlives this one, which it joins.
            unsafe { libc::pthread_kill(tracer, NUDGE) };
        }
        let wait = if pending { 2_000_000 } else { 20_000_000 };
        let timeout = libc::timespec { tv_sec: 0, tv_nsec: wait };
        // SAFETY: set and timeout are valid; info is written before it is read.
        let (signal, code) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            (libc::sigtimedwait(&set, &mut info, &timeout), info.si_code)
        };
        if signal == libc::SIGUSR1 {
            shared.snapshot.store(true, Ordering::Release);
            shared.looked.store(false, Ordering::Release);
        } else if signal > 0 {
            forward(shared, signal, code);
            tell_handler(signal);
            // What we were started to ignore (nohup) tells nobody to end.
            if !ignored.contains(&signal) {
                shared.told_to_end.store(signal, Ordering::Release);
                shared.looked.store(false, Ordering::Release);
                told = true;
            }
        } else if told {
            // How long it lingers is for the tracer to see, even where nothing stops any more.
            shared.looked.store(false, Ordering::Release);
        }
        let every = Duration::from_millis(shared.every_ms.load(Ordering::Relaxed));
        if !every.is_zero() && since_snapshot.elapsed() >= every {
            since_snapshot = std::time::Instant::now();
            shared.snapshot.store(true, Ordering::Release);
            shared.looked.store(false, Ordering::Release);
        }
    }
}

/// Who handles it in this process hears of it too: a wait for a signal takes it away from its handler.
fn tell_handler(signal: i32) {
    // SAFETY: a zeroed sigaction is valid to be written to; with no new action this only reads. What
    // is neither of the two words is a handler, which without SA_SIGINFO takes the signal alone, and
    // may be called on any thread at any time.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let known = libc::sigaction(signal, std::ptr::null(), &mut action) == 0;
        let plain = action.sa_flags & libc::SA_SIGINFO == 0;
        if known && plain && ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction) {
            let handler: extern "C" fn(i32) = std::mem::transmute(action.sa_sigaction);
            handler(signal);
        }
    }
}

/// Passes a signal on. What the terminal sends (`SI_KERNEL`) reached the target by itself.
fn forward(shared: &Shared, signal: i32, code: i32) {
    const SI_KERNEL: i32 = 0x80;
    let target = shared.target.load(Ordering::Acquire);
    if code != SI_KERNEL && target > 0 {
        // SAFETY: a plain signal to a process that has not been reaped (see target_gone).
        unsafe { libc::kill(target, signal) };
    }
}
