//! Memory from the C library; where there is none left, a word and an end instead of an abort.

use crate::limits::{OWN, last_words};
use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator. Where it has no more to give, this process says so and ends with 125; what it
/// watches runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrEnd;

/// Zeroed memory of so many bytes is what whole program files are read into.
const LARGE: usize = 16 << 20;
const PAGE: usize = 4096;

/// Asks the kernel for large pages in `size` bytes at `at`, which nothing has touched yet: to fault in small ones, one
/// by one, takes longer than to read the file.
fn in_large_pages(at: *mut u8, size: usize) {
    let into_page = at.align_offset(PAGE);
    let whole = size.saturating_sub(into_page) / PAGE * PAGE;
    // SAFETY: these pages lie in the allocation, and the advice changes no byte of them. Where the kernel knows no
    // large pages it says so, and nothing is lost.
    unsafe { libc::madvise(at.wrapping_add(into_page).cast(), whole, libc::MADV_HUGEPAGE) };
}

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
        let at = given(unsafe { System.alloc_zeroed(layout) });
        if layout.size() >= LARGE {
            in_large_pages(at, layout.size());
        }
        at
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.realloc(at, layout, size) })
    }
}
