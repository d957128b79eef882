//! State of each counting thread, found by the thread's id: the handler must not use thread-local
//! storage, whose first use allocates.

use super::contexts::Tables;
use super::unwind::PythonFrames;
use crate::problem::Incomplete;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicI32, AtomicU8, Ordering::SeqCst};

/// Largest number of threads that can count at the same time.
const THREADS: usize = 256;
/// Largest depth of nested blocks.
pub(super) const DEPTH: usize = 8;

/// Selector value: the thread's calls are made.
pub(super) const ALLOW: u8 = 0;
/// Selector value: the thread's calls are dispatched.
pub(super) const BLOCK: u8 = 1;

/// A counting thread.
pub(super) struct Thread {
    /// The thread's id in the kernel; 0 if the entry is free.
    id: AtomicI32,
    /// The selector, which the kernel reads at each call.
    pub(super) selector: AtomicU8,
    counting: UnsafeCell<Counting>,
}

/// State that only the thread itself uses: its handler while it counts, its own code otherwise.
#[derive(Default)]
pub(super) struct Counting {
    /// Tables of the thread's blocks, the outermost first; the tables beyond `depth` are spare.
    pub(super) tables: Vec<Box<Tables>>,
    pub(super) depth: usize,
    /// Stack address beyond which frames are not the outermost block's; `u64::MAX` if it is not
    /// known.
    pub(super) stack_end: u64,
    /// The reason why counting stopped early.
    pub(super) incomplete: Option<Incomplete>,
    pub(super) python: Option<PythonFrames>,
    /// True if the next call only tests whether it is dispatched, and is not counted.
    pub(super) probing: bool,
    /// True if the thread had SIGSYS blocked.
    pub(super) sigsys_was_blocked: bool,
}

impl Counting {
    /// Returns the tables of the innermost block.
    pub(super) fn innermost(&mut self) -> Option<&mut Tables> {
        self.tables.get_mut(self.depth.checked_sub(1)?).map(|t| &mut **t)
    }
}

// SAFETY: only the thread with the entry's id uses `counting`.
unsafe impl Sync for Thread {}

static POOL: [Thread; THREADS] = [const {
    Thread {
        id: AtomicI32::new(0),
        selector: AtomicU8::new(ALLOW),
        counting: UnsafeCell::new(Counting {
            tables: Vec::new(),
            depth: 0,
            stack_end: u64::MAX,
            incomplete: None,
            python: None,
            probing: false,
            sigsys_was_blocked: false,
        }),
    }
}; THREADS];

impl Thread {
    /// Returns the entry of the thread with this id.
    pub(super) fn of(id: i32) -> Option<&'static Self> {
        neighbours(id).find(|t| t.id.load(SeqCst) == id)
    }

    /// Takes a free entry for the thread with this id.
    pub(super) fn take(id: i32) -> Option<&'static Self> {
        neighbours(id).find(|t| t.id.compare_exchange(0, id, SeqCst, SeqCst).is_ok())
    }

    /// Frees the entry; the next thread gets its tables.
    pub(super) fn give_back(&self) {
        self.id.store(0, SeqCst);
    }

    /// Returns the thread's state.
    ///
    /// # Safety
    /// Only for the thread that has this entry, and only one reference at a time: its handler runs
    /// only while the selector is `BLOCK`, its other code only while it is `ALLOW`.
    #[expect(clippy::mut_from_ref, reason = "one thread has it, as the invariant says")]
    pub(super) unsafe fn counting(&self) -> &mut Counting {
        // SAFETY: the caller guarantees it.
        unsafe { &mut *self.counting.get() }
    }
}

fn neighbours(id: i32) -> impl Iterator<Item = &'static Thread> {
    (0..THREADS).filter_map(move |step| POOL.get((id as usize).wrapping_add(step) % THREADS))
}
