//! Allocates from the C library; when no memory is left, prints why and ends the process instead of aborting.

use crate::limits::{EXIT_OF_SYSTOLL, last_words};
use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator. When it has no memory left, this process says so and exits with 125; the watched program
/// runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrEnd;

/// Bytes from which on a zeroed allocation gets large pages: whole program files are read into such allocations.
const LARGE: usize = 16 << 20;
const PAGE: usize = 4096;

/// Asks the kernel for large pages in the `size` untouched bytes at `at`: faulting in small pages one by one takes
/// longer than reading the file.
fn in_large_pages(at: *mut u8, size: usize) {
    let into_page = at.align_offset(PAGE);
    let whole = size.saturating_sub(into_page) / PAGE * PAGE;
    // SAFETY: these pages lie in the allocation, and the advice changes no byte of them. A kernel without large
    // pages refuses, which does no harm.
    unsafe { libc::madvise(at.wrapping_add(into_page).cast(), whole, libc::MADV_HUGEPAGE) };
}

/// Returns `at`; if it is null, prints that no memory is left and ends the process.
fn given(at: *mut u8) -> *mut u8 {
    if at.is_null() {
        last_words(
            b"systoll: no memory left (ulimit -v, -d, or the box's); what it watched runs on unwatched\n",
            EXIT_OF_SYSTOLL,
        );
    }
    at
}

// SAFETY: every method passes its arguments unchanged to the system allocator.
unsafe impl GlobalAlloc for OrEnd {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises us what the system allocator demands.
        given(unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller promises us what the system allocator demands.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises us what the system allocator demands.
        let at = given(unsafe { System.alloc_zeroed(layout) });
        if layout.size() >= LARGE {
            in_large_pages(at, layout.size());
        }
        at
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises us what the system allocator demands.
        given(unsafe { System.realloc(at, layout, size) })
    }
}
