//! What is known of each thread that counts, found by its id: the handler may use no thread-local
//! storage, whose first use allocates.

use super::contexts::Tables;
use super::unwind::PythonFrames;
use crate::problem::Incomplete;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicI32, AtomicU8, Ordering::SeqCst};

/// Threads that may count at the same time.
const THREADS: usize = 256;
/// Blocks within blocks.
pub(super) const DEPTH: usize = 8;

/// Lets the thread's calls through.
pub(super) const ALLOW: u8 = 0;
/// Has them dispatched.
pub(super) const BLOCK: u8 = 1;

/// A thread that counts.
pub(super) struct Thread {
    /// The kernel's id of it; 0 where the entry is free.
    id: AtomicI32,
    /// Read by the kernel at each call.
    pub(super) selector: AtomicU8,
    counting: UnsafeCell<Counting>,
}

/// What only the thread itself touches: its handler while it counts, its own code otherwise.
#[derive(Default)]
pub(super) struct Counting {
    /// Tables of the blocks it is in, the outermost first; those beyond `depth` are for later.
    pub(super) tables: Vec<Box<Tables>>,
    pub(super) depth: usize,
    /// Frames further out on the stack are not the outermost block's; `u64::MAX` where not known.
    pub(super) stack_end: u64,
    /// Why counting has stopped before its end.
    pub(super) incomplete: Option<Incomplete>,
    pub(super) python: Option<PythonFrames>,
    /// The next call is made to see whether it is dispatched, and is not counted.
    pub(super) probing: bool,
    /// The thread had SIGSYS blocked.
    pub(super) sigsys_was_blocked: bool,
}

impl Counting {
    /// The tables of the innermost block.
    pub(super) fn innermost(&mut self) -> Option<&mut Tables> {
        self.tables.get_mut(self.depth.checked_sub(1)?).map(|t| &mut **t)
    }
}

// SAFETY: `counting` is touched by the thread whose id the entry has and by no other.
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
    /// The entry of the thread with this id.
    pub(super) fn of(id: i32) -> Option<&'static Self> {
        neighbours(id).find(|t| t.id.load(SeqCst) == id)
    }

    /// A free entry, taken for the thread with this id.
    pub(super) fn take(id: i32) -> Option<&'static Self> {
        neighbours(id).find(|t| t.id.compare_exchange(0, id, SeqCst, SeqCst).is_ok())
    }

    /// Gives the entry back, its tables for the next thread.
    pub(super) fn give_back(&self) {
        self.id.store(0, SeqCst);
    }

    /// # Safety
    /// Only for the thread that has this entry, and once at a time: its handler runs only while the
    /// selector is `BLOCK`, its other code only while it is `ALLOW`.
    #[expect(clippy::mut_from_ref, reason = "one thread has it, as the invariant says")]
    pub(super) unsafe fn counting(&self) -> &mut Counting {
        // SAFETY: the caller's.
        unsafe { &mut *self.counting.get() }
    }
}

fn neighbours(id: i32) -> impl Iterator<Item = &'static Thread> {
    (0..THREADS).filter_map(move |step| POOL.get((id as usize).wrapping_add(step) % THREADS))
}
