//! Makes the kernel tell the watched threads that the launcher is gone, however it ended.
//!
//! Uses a robust futex: when the thread that claims to hold the lock ends, even by SIGKILL, the kernel writes
//! FUTEX_OWNER_DIED into the lock's word (Documentation/locking/robust-futex-ABI.rst).

use crate::inproc::monitor::shared::memory::Area;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use systoll_hooks::layout::global;

/// The kernel's `struct robust_list_head`, and the one entry of its list.
#[repr(C)]
struct List {
    first: *mut Entry,
    offset: libc::c_long,
    pending: *mut Entry,
    entry: Entry,
}

/// The kernel's `struct robust_list`.
#[repr(C)]
struct Entry {
    next: *mut Entry,
}

/// A request to the kernel to mark the area's owner word when the calling thread ends. Drop it before the area is
/// unmapped.
#[derive(Debug)]
pub(crate) struct DeathNotice(Option<NonNull<List>>);

impl DeathNotice {
    /// Writes the calling thread's id into the area's word, which the kernel marks when the thread ends. If the kernel
    /// does not support that, threads notice the end because their waits time out.
    pub(crate) fn new(area: &Area) -> Self {
        let Some(word) = area.half(global::OWNER) else { return Self(None) };
        let none = std::ptr::null_mut();
        let list = Box::leak(Box::new(List { first: none, offset: 0, pending: none, entry: Entry { next: none } }));
        let entry = &raw mut list.entry;
        // The list ends at its head, whose first field is an entry.
        list.entry.next = (&raw mut list.first).cast();
        list.first = entry;
        list.offset = (word.as_ptr() as libc::c_long).wrapping_sub(entry as libc::c_long);
        word.store(nix::unistd::gettid().as_raw() as u32, Ordering::SeqCst);
        let head = NonNull::from(list);
        // SAFETY: the list is never freed, so the kernel finds it whenever the thread ends. The kernel writes to the
        // word, which lies in the area; `drop` takes it off the list before the area is unmapped. The C library's own
        // list, which this one replaces, is for robust mutexes, and we use none.
        let set = unsafe { libc::syscall(libc::SYS_set_robust_list, head.as_ptr(), 3 * size_of::<usize>()) };
        Self((set == 0).then_some(head))
    }
}

impl Drop for DeathNotice {
    fn drop(&mut self) {
        let Some(head) = self.0 else { return };
        // SAFETY: the list was leaked, so it still exists, and nothing else refers to it. An empty list's head points
        // to itself.
        unsafe { (&raw mut (*head.as_ptr()).first).write_volatile(head.as_ptr().cast()) };
    }
}
