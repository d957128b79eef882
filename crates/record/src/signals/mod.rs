//! Handles signals sent to systoll while it watches: forwards them, or notes that a report was requested.
//!
//! A separate thread waits for them, so that forwarding goes on even if the tracer hangs. The tracer sleeps in waitpid.
//! A signal nudges it, and is repeated until the tracer has looked; this closes the race between its look at the flags
//! and its going to sleep.
//!
//! Until there is a process to forward them to, signals stay pending. [`Signals::watch`] then takes them all, while the
//! child still blocks every signal, and sends each to the child. A signal that also reached the child by itself (one
//! sent to the process group) is pending there already and does not arrive twice. Later signals of the terminal reach
//! the child without us.
//!
//! SIGTERM ends systoll in any phase: see [`term`].

mod set;
mod term;

use crate::backend::HowToWatch;
use crate::error::Error;
use crate::limits;
use set::{WATCHED, is_blocked, is_ignored, set_of, take};
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use term::Term;

/// Signal that nudges the tracer out of waitpid. Its default action is to be ignored, so a stray one does no harm.
const NUDGE: i32 = libc::SIGURG;
/// `si_code` of signals sent by the terminal.
const SI_KERNEL: i32 = 0x80;
/// Interval at which the signal thread checks for changes once a signal has come.
const PAUSE: Duration = Duration::from_millis(20);
/// Interval at which it checks before any signal has come: other threads wake it when they need it.
const CALM: Duration = Duration::from_secs(1);
/// Interval at which it checks while the tracer has not looked at a request.
const IMPATIENT: Duration = Duration::from_millis(2);

/// Sentence in the recording for a command that SIGTERM has not ended.
pub(crate) const STAYS: &str = "the command did not end on SIGTERM: it runs on unwatched";
/// Time that a target may take to stop so that it can be let go, ns.
pub(crate) const LETTING_GO_NS: u64 = 150_000_000;

/// Phases of the thread that handles signals.
mod phase {
    /// Phase in which signals stay pending: there is no process yet to forward them to.
    pub(super) const HELD: u8 = 0;
    /// Phase in which signals are forwarded.
    pub(super) const WATCHED: u8 = 1;
    /// Phase after the run: SIGTERM bounds the time that is left, the other signals act as if systoll caught none.
    pub(super) const AFTER: u8 = 2;
    /// Phase in which the thread ends.
    pub(super) const STOP: u8 = 3;
}

/// The signal mask with which systoll was started, and the disposition of [`NUDGE`].
#[derive(Clone, Copy)]
pub(crate) struct OriginalMask {
    mask: libc::sigset_t,
    nudge: Option<libc::sighandler_t>,
}

impl OriginalMask {
    /// Restores this thread's mask and the nudge's disposition. Async-signal-safe.
    pub(crate) fn restore(&self) {
        self.restore_but(&[]);
    }

    fn restore_but(&self, blocked: &[i32]) {
        let mut mask = self.mask;
        // SAFETY: installs a disposition that was in force before and a valid set, and asks for no old ones.
        unsafe {
            for signal in blocked {
                libc::sigaddset(&mut mask, *signal);
            }
            if let Some(nudge) = self.nudge {
                libc::signal(NUDGE, nudge);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    phase: AtomicU8,
    target: AtomicI32,
    told_to_end: AtomicI32,
    snapshot: AtomicBool,
    every_ms: AtomicU64,
    looked: AtomicBool,
    /// Bits of the signals that were taken and would have ended a process.
    taken: AtomicU32,
    /// True if one of the signals told the target to end.
    told: AtomicBool,
    term: Term,
}

/// Signals held back from the process until this value is dropped.
pub(crate) struct Signals {
    shared: Arc<Shared>,
    original: OriginalMask,
    ignored: Vec<i32>,
    /// True if signals are held back at all; false for callers that keep their own handling.
    holds: bool,
    give_back: bool,
    released: bool,
}

/// Requests to the tracer that signals have made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SignalRequests {
    pub(crate) snapshot: bool,
    /// The last signal that told the target to end, such as SIGTERM.
    pub(crate) ending: Option<i32>,
    /// True if SIGTERM came so long ago that we stop waiting for the target.
    pub(crate) give_up: bool,
}

extern "C" fn nudged(_: i32) {}

/// The thread that waits for signals, and the state that it shares.
struct Thread {
    shared: Arc<Shared>,
    handle: std::thread::JoinHandle<()>,
    original: OriginalMask,
}

/// The one signal thread of this process. It outlives the run for which it was started.
static THREAD: Mutex<Option<Thread>> = Mutex::new(None);

fn thread() -> std::sync::MutexGuard<'static, Option<Thread>> {
    THREAD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets every signal, SIGTERM included, through to this process again: after a run it handles them itself.
pub fn let_signals_through() {
    let Some(Thread { shared, handle, original }) = thread().take() else { return };
    shared.phase.store(phase::STOP, Ordering::Release);
    wake(&handle);
    // Joining can only fail if the thread panicked, which leaves nothing to undo.
    let _ = handle.join();
    original.restore();
}

/// Has a run that is being watched ask its [`crate::Control`] at once, as SIGUSR1 does. Has no effect if signals are not
/// forwarded.
pub fn look_now() {
    if let Some(Thread { shared, handle, .. }) = &*thread() {
        shared.looked.store(false, Ordering::Release);
        wake(handle);
    }
}

/// Wakes the thread, so that it looks at its phase.
fn wake(handle: &std::thread::JoinHandle<()>) {
    handle.thread().unpark();
    // The thread waits for this signal, so it returns at once; sent to the thread alone, the signal reaches no other
    // thread.
    // SAFETY: the thread has not been joined.
    unsafe { libc::pthread_kill(handle.as_pthread_t(), libc::SIGUSR1) };
}

impl Signals {
    /// Holds signals back or leaves them alone, as `how` demands. `grace`: see [`crate::Launch::grace`].
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn of(how: &HowToWatch, grace: Option<Duration>) -> Result<Self, Error> {
        // If futex(2) is refused, no thread can be started that could be joined.
        let can = crate::sys::forbids_futex().is_none();
        if how.forward_signals && can { Self::hold(grace) } else { Ok(Self::leave()) }
    }

    /// Holds signals back until [`Signals::watch`] names a target for them.
    ///
    /// # Errors
    /// If no thread can be started.
    fn hold(grace: Option<Duration>) -> Result<Self, Error> {
        let_signals_through();
        let watched = set_of(&WATCHED);
        let mut mask = set_of(&[]);
        // SAFETY: all sets are valid; the handler does nothing, so it is async-signal-safe.
        let nudge = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &watched, &mut mask);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nudged as *const () as usize;
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(NUDGE, &action, &mut before);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &set_of(&[NUDGE]), std::ptr::null_mut());
            before.sa_sigaction
        };
        let original = OriginalMask { mask, nudge: Some(nudge) };
        let shared = Arc::new(Shared { term: Term::new(grace), ..Shared::default() });
        shared.looked.store(true, Ordering::Release);
        // SAFETY: always succeeds; identifies the thread that will sleep in waitpid.
        let tracer = unsafe { libc::pthread_self() };
        // A signal that the target and its descendants would not see tells no process to end.
        let deaf = |signal: &i32| is_ignored(*signal) || is_blocked(&mask, *signal);
        let ignored: Vec<i32> = WATCHED.into_iter().filter(deaf).collect();
        let (of_thread, not_heard) = (Arc::clone(&shared), ignored.clone());
        let spawned = limits::spawn("signals", move || wait_for_signals(&of_thread, tracer, &not_heard));
        match spawned {
            Ok(handle) => *thread() = Some(Thread { shared: Arc::clone(&shared), handle, original }),
            Err(e) => {
                original.restore();
                return Err(Error::own("can't start a thread (ulimit -u, or -v or -d for its stack)", e));
            }
        }
        Ok(Self { shared, original, ignored, holds: true, give_back: false, released: false })
    }

    /// Leaves signals to a caller that starts programs for itself: a signal ends the caller and those programs.
    fn leave() -> Self {
        let mut mask = set_of(&[]);
        // SAFETY: reads this thread's mask into a valid set.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask) };
        let original = OriginalMask { mask, nudge: None };
        let shared = Arc::new(Shared::default());
        shared.looked.store(true, Ordering::Release);
        Self { shared, original, ignored: Vec::new(), holds: false, give_back: false, released: true }
    }

    pub(crate) fn original_mask(&self) -> OriginalMask {
        self.original
    }

    /// Forwards signals to `pid` from now on, a child that still blocks every signal; those that came since
    /// [`Signals::hold`] go first. Requests a snapshot every `every`.
    pub(crate) fn watch(&self, pid: i32, every: Option<Duration>) {
        if !self.holds {
            return;
        }
        let shared = &self.shared;
        shared.every_ms.store(every.map_or(0, |d| d.as_millis() as u64), Ordering::Relaxed);
        shared.target.store(pid, Ordering::Release);
        while let Some((signal, _)) = take(&WATCHED, Duration::ZERO) {
            // Forward signals of the terminal too: they came before the child existed.
            act_on(shared, (signal, 0), &self.ignored);
        }
        shared.phase.store(phase::WATCHED, Ordering::Release);
        if let Some(thread) = &*thread() {
            thread.handle.thread().unpark();
        }
    }

    /// Notes that the target has been reaped: its number may soon be another process's.
    pub(crate) fn target_gone(&self) {
        self.shared.target.store(0, Ordering::Release);
    }

    /// Returns true if there is a request that the tracer has not looked at.
    pub(crate) fn is_asking(&self) -> bool {
        !self.shared.looked.load(Ordering::Acquire)
    }

    /// Takes the requests made since the last call.
    pub(crate) fn take_requests(&self) -> SignalRequests {
        if self.shared.looked.swap(true, Ordering::AcqRel) {
            return SignalRequests::default();
        }
        let ending = self.shared.told_to_end.swap(0, Ordering::AcqRel);
        SignalRequests {
            snapshot: self.shared.snapshot.swap(false, Ordering::AcqRel),
            ending: (ending != 0).then_some(ending),
            give_up: self.shared.term.is_too_long(),
        }
    }

    /// Notes that the target will be started once more, so that signals sent to it are lost on it: this process gets
    /// them when this is dropped.
    pub(crate) fn give_back(&mut self) {
        self.give_back = true;
    }

    /// Ends the run: signals reach this process again, except two. SIGTERM leaves a moment for the remaining work;
    /// SIGUSR1 asks for the report, which comes anyway.
    pub(crate) fn release(mut self) {
        self.released = true;
        if self.holds {
            // Signals that came while the command ran and that the thread has not taken yet belong to the command.
            while let Some(signal) = take(&WATCHED, Duration::ZERO) {
                act_on(&self.shared, signal, &self.ignored);
            }
            self.shared.term.run_is_over();
            self.shared.phase.store(phase::AFTER, Ordering::Release);
            if let Some(thread) = &*thread() {
                wake(&thread.handle);
            }
            self.original.restore_but(&[libc::SIGTERM, libc::SIGUSR1]);
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        if self.released {
            return;
        }
        let_signals_through();
        let taken = self.shared.taken.load(Ordering::Acquire);
        for signal in WATCHED.into_iter().filter(|s| self.give_back && taken & 1 << s != 0) {
            // SAFETY: a plain signal to this process, which it was meant for.
            unsafe { libc::kill(libc::getpid(), signal) };
        }
    }
}

fn wait_for_signals(shared: &Shared, tracer: libc::pthread_t, ignored: &[i32]) {
    let mut since_snapshot = std::time::Instant::now();
    loop {
        match shared.phase.load(Ordering::Acquire) {
            phase::STOP => return,
            phase::HELD => {
                shared.term.note_pending(ignored);
                std::thread::park_timeout(PAUSE);
            }
            phase::AFTER => {
                match take(&WATCHED, PAUSE) {
                    Some((libc::SIGTERM, _)) if !ignored.contains(&libc::SIGTERM) => shared.term.note(),
                    None | Some((libc::SIGTERM | libc::SIGUSR1, _)) => {}
                    // The signal was taken as the run ended; only this thread still blocks it. SAFETY: a plain signal
                    // to this process, which it was meant for.
                    Some((signal, _)) => drop(unsafe { libc::kill(libc::getpid(), signal) }),
                }
            }
            _ => {
                let pending = !shared.looked.load(Ordering::Acquire);
                if pending {
                    // SAFETY: the tracer's thread outlives this one, which it joins.
                    unsafe { libc::pthread_kill(tracer, NUDGE) };
                }
                let every = Duration::from_millis(shared.every_ms.load(Ordering::Relaxed));
                let pause = match shared.told.load(Ordering::Acquire) {
                    _ if pending => IMPATIENT,
                    true => PAUSE,
                    false if every.is_zero() => CALM,
                    false => CALM.min(every.saturating_sub(since_snapshot.elapsed())),
                };
                match take(&WATCHED, pause) {
                    // Act on the signal even if the run is over by now. It came while the command ran, since the end of
                    // the run would have ended this wait.
                    Some(signal) => act_on(shared, signal, ignored),
                    // The tracer must check the time granted to processes that were left behind, even if no thread
                    // stops any more.
                    None if shared.told.load(Ordering::Acquire) => shared.looked.store(false, Ordering::Release),
                    None => {}
                }
                if !every.is_zero() && since_snapshot.elapsed() >= every {
                    since_snapshot = std::time::Instant::now();
                    shared.snapshot.store(true, Ordering::Release);
                    shared.looked.store(false, Ordering::Release);
                }
            }
        }
        let (grace_is_over, line): (bool, &[u8]) = match shared.phase.load(Ordering::Acquire) {
            phase::HELD => (false, b"systoll: ended by SIGTERM before anything was started\n"),
            phase::AFTER => (true, b"systoll: ended by SIGTERM before the report was made\n"),
            _ => {
                (false, b"systoll: ended by SIGTERM, without a report: watching hangs; the command runs on unwatched\n")
            }
        };
        shared.term.end_if_over(grace_is_over, line);
    }
}

/// Forwards a signal, or notes its request.
fn act_on(shared: &Shared, (signal, code): (i32, i32), ignored: &[i32]) {
    if signal == libc::SIGUSR1 {
        shared.snapshot.store(true, Ordering::Release);
        shared.looked.store(false, Ordering::Release);
        return;
    }
    shared.taken.fetch_or(1 << signal, Ordering::AcqRel);
    let target = shared.target.load(Ordering::Acquire);
    // A signal of the terminal has already reached the target by itself.
    if code != SI_KERNEL && target > 0 {
        // SAFETY: a plain signal to a process that has not been reaped (see target_gone).
        unsafe { libc::kill(target, signal) };
    }
    // A signal that systoll was started to ignore (nohup) tells no process to end.
    if ignored.contains(&signal) {
        return;
    }
    if signal == libc::SIGTERM {
        shared.term.note();
    }
    shared.told_to_end.store(signal, Ordering::Release);
    shared.told.store(true, Ordering::Release);
    shared.looked.store(false, Ordering::Release);
}
