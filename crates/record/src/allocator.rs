//! Memory from the C library; where there is none left, a word and an end instead of an abort.

use crate::limits::{OWN, last_words};
use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator. Where it has no more to give, this process says so and ends with 125; what it
/// watches runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrEnd;

fn given(at: *mut u8) -> *mut u8 {
    if at.is_null() {
        last_words(b"systoll: no memory left (ulimit -v, -d, or the box's); what it watched runs on unwatched\n", OWN);
    }
    at
}

// SAFETY: every call is the system allocator's own, with the arguments as they came.
unsafe impl GlobalAlloc for OrEnd {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the system allocator's.
        given(unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.realloc(at, layout, size) })
    }
}
