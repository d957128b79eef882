//! Counts calls by the kernel's Syscall User Dispatch: a block begins, its calls reach a handler,
//! it ends.

mod contexts;
mod handler;
mod masks;
mod signals;
mod stubs;
mod threads;
mod translated;
mod unwind;

pub use contexts::ScriptFrame;
pub use unwind::PythonFrames;

use crate::problem::{Incomplete, Unavailable};
use contexts::Tables;
use core::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, PoisonError};
use threads::{ALLOW, BLOCK, Counting, DEPTH, Thread};

const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;

/// Number of threads that count now, while our handler is installed.
static ACTIVE: Mutex<usize> = Mutex::new(0);

/// A calling context as counted: addresses without names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawContext {
    pub(crate) number: u32,
    pub(crate) calls: u64,
    /// The end of the `syscall` instruction, then return addresses.
    pub(crate) addresses: Vec<u64>,
    pub(crate) script: Vec<ScriptFrame>,
}

/// The counts of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawCounts {
    pub(crate) numbers: Vec<(u32, u64)>,
    pub(crate) beyond: u64,
    pub(crate) without_context: u64,
    pub(crate) contexts: Vec<RawContext>,
    pub(crate) incomplete: Option<Incomplete>,
}

/// The parameters of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin {
    /// Stack address beyond which frames are not the block's; `u64::MAX` if it is not known.
    pub(crate) stack_end: u64,
    pub(crate) python: Option<PythonFrames>,
}

/// Counts the calling thread's calls until `end`. Blocks may be nested.
pub(crate) fn begin(how: Begin) -> Result<(), Unavailable> {
    let id = handler::thread_id();
    if let Some(thread) = Thread::of(id) {
        if let Some(entered) = enter_inner(thread) {
            return entered;
        }
        // An earlier thread with this id ended in a block.
        thread.give_back();
    }
    let thread = Thread::take(id).ok_or(Unavailable::TooManyThreads)?;
    // SAFETY: the entry was taken for this thread.
    let counting = unsafe { thread.counting() };
    let kept = std::mem::take(&mut counting.tables);
    *counting = Counting { tables: kept, stack_end: how.stack_end, python: how.python, ..Counting::default() };
    let begun = enter(counting).and_then(|()| switch_on(thread, counting));
    match begun {
        Ok(()) => thread.selector.store(BLOCK, SeqCst),
        Err(_) => thread.give_back(),
    }
    begun
}

/// Begins a nested block. Returns `None` if the entry belongs to an earlier thread that has ended.
fn enter_inner(thread: &'static Thread) -> Option<Result<(), Unavailable>> {
    thread.selector.store(ALLOW, SeqCst);
    // SAFETY: the state is this thread's, and nothing is dispatched now.
    if unsafe { thread.counting() }.incomplete.is_none() {
        // SAFETY: as above; the handler, if it runs, resets the flag.
        unsafe { thread.counting() }.probing = true;
        thread.selector.store(BLOCK, SeqCst);
        // SAFETY: getppid takes no arguments and can't fail.
        unsafe { libc::syscall(libc::SYS_getppid) };
        thread.selector.store(ALLOW, SeqCst);
        // SAFETY: nothing is dispatched now.
        if std::mem::take(&mut unsafe { thread.counting() }.probing) {
            return None;
        }
    }
    // SAFETY: nothing is dispatched now.
    let counting = unsafe { thread.counting() };
    let entered = enter(counting);
    let selector = if counting.incomplete.is_none() { BLOCK } else { ALLOW };
    thread.selector.store(selector, SeqCst);
    Some(entered)
}

fn enter(counting: &mut Counting) -> Result<(), Unavailable> {
    if counting.depth == DEPTH {
        return Err(Unavailable::TooDeep);
    }
    match counting.tables.get_mut(counting.depth) {
        Some(tables) => tables.clear(),
        None => counting.tables.push(Tables::boxed()),
    }
    counting.depth += 1;
    Ok(())
}

/// Makes the kernel dispatch calls from outside the stubs.
fn switch_on(thread: &'static Thread, counting: &mut Counting) -> Result<(), Unavailable> {
    if translated::by_valgrind() {
        return Err(Unavailable::Translated);
    }
    unwind::warm_up();
    {
        let mut active = ACTIVE.lock().unwrap_or_else(PoisonError::into_inner);
        signals::install(handler::address()).map_err(|e| Unavailable::Refused(-e as i32))?;
        *active += 1;
    }
    signals::unblock_in_handlers();
    let bit = signals::SIGSYS_BIT;
    let mut before = 0u64;
    let selector = (&raw const thread.selector) as u64;
    // SAFETY: masks of ours; the selector and the stubs are statics.
    let done = unsafe {
        let how = libc::SIG_UNBLOCK as u64;
        stubs::call(libc::SYS_rt_sigprocmask, [how, &raw const bit as u64, &raw mut before as u64, 8, 0, 0]);
        stubs::call(libc::SYS_prctl, [PR_SET_SYSCALL_USER_DISPATCH, 1, stubs::start(), stubs::length(), selector, 0])
    };
    counting.sigsys_was_blocked = before & bit != 0;
    if done == 0 {
        return Ok(());
    }
    restore_signals(counting);
    Err(match -done as i32 {
        libc::EINVAL => Unavailable::NoDispatch,
        errno => Unavailable::Refused(errno),
    })
}

fn restore_signals(counting: &Counting) {
    if counting.sigsys_was_blocked {
        let bit = signals::SIGSYS_BIT;
        // SAFETY: a mask of ours.
        unsafe { stubs::call(libc::SYS_rt_sigprocmask, [libc::SIG_BLOCK as u64, &raw const bit as u64, 0, 8, 0, 0]) };
    }
    let mut active = ACTIVE.lock().unwrap_or_else(PoisonError::into_inner);
    *active = active.saturating_sub(1);
    if *active == 0 {
        signals::remove(handler::address());
    }
}

/// Ends the calling thread's innermost block. Returns `None` if it is in none: in another thread
/// than the one that began the block, or in a child that was forked in it.
pub(crate) fn end() -> Option<RawCounts> {
    let thread = Thread::of(handler::thread_id())?;
    thread.selector.store(ALLOW, SeqCst);
    // SAFETY: the state is this thread's, and nothing is dispatched now.
    let counting = unsafe { thread.counting() };
    let inner = counting.depth.checked_sub(1)?;
    counting.depth = inner;
    let incomplete = counting.incomplete;
    let counts = counting.tables.get(inner).map(|t| raw(t, incomplete))?;
    if inner == 0 {
        // SAFETY: reverts `switch_on`.
        unsafe { stubs::call(libc::SYS_prctl, [PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0, 0]) };
        restore_signals(counting);
        thread.give_back();
    } else {
        let (outer, rest) = counting.tables.split_at_mut(inner);
        if let (Some(outer), Some(ended)) = (outer.last_mut(), rest.first()) {
            outer.add(ended);
        }
        thread.selector.store(if incomplete.is_none() { BLOCK } else { ALLOW }, SeqCst);
    }
    Some(counts)
}

fn raw(tables: &Tables, incomplete: Option<Incomplete>) -> RawCounts {
    let context = |c: &contexts::Context| RawContext {
        number: c.site.number,
        calls: c.calls,
        addresses: c.stack.addresses.iter().take(c.stack.length).copied().collect(),
        script: c.script.iter().take_while(|f| f.code != 0).copied().collect(),
    };
    RawCounts {
        numbers: tables.numbers().collect(),
        beyond: tables.beyond,
        without_context: tables.without_context,
        contexts: tables.contexts().map(context).collect(),
        incomplete,
    }
}
