//! The memory in which processes count, and what is known of processes and threads that do.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use systoll_hooks::aarch64::layout::{self, entry, slot};
use systoll_hooks::aarch64::{Declined, Jump, Site};
use systoll_model::BackendKind;

/// Files whose sites are remembered, at most.
const MOST_FILES: usize = 1_024;

/// A file's code: device, inode, offset and length of the mapping.
pub(super) type CodeId = ((u32, u32), u64, u64, u64);

/// Address of mapped code, and what it is.
pub(super) type Mapped = (u64, CodeId);

/// State of the counting code for a whole run.
#[derive(Default)]
pub(crate) struct OfRun {
    /// True if processes are to count themselves.
    pub(crate) wanted: bool,
    /// True if all stop at each call all the same.
    pub(super) declines: bool,
    pub(super) sites: HashMap<CodeId, Result<Rc<[Site]>, Declined>>,
    notices: Notices,
}

impl OfRun {
    /// Returns the kind of the backend.
    pub(crate) fn kind(&self) -> BackendKind {
        if self.wanted { BackendKind::Inproc } else { BackendKind::Ptrace }
    }

    /// Remembers the sites of a file's code.
    pub(super) fn remember(&mut self, code: CodeId, sites: Result<Rc<[Site]>, Declined>) {
        if self.sites.len() < MOST_FILES {
            self.sites.insert(code, sites);
        }
    }

    /// Takes memory in which processes count into those that are marked when this thread ends.
    pub(super) fn keep(&mut self, shared: &Rc<Shared>) {
        self.notices.shared.push(shared.clone());
        self.notices.link();
    }
}

/// State of the counting code for a process.
#[derive(Clone, Default)]
pub(crate) struct OfProcess {
    pub(super) inside: Option<Inside>,
    /// Calls at which its threads stopped since it began.
    pub(super) calls: u32,
    /// True if its threads stop at each call for good.
    pub(super) declined: bool,
}

/// The counting code in a process.
#[derive(Clone)]
pub(super) struct Inside {
    pub(super) shared: Rc<Shared>,
    /// Address of the memory in the process.
    pub(super) base: u64,
    /// Address of an `svc`, for calls of ours.
    pub(super) svc: u64,
    pub(super) jumps: Vec<Jump>,
    /// Calls that are made in our code: the address behind the `svc` there, and in the file.
    pub(super) moved: Vec<(u64, u64)>,
    /// Frame records that distinguish contexts.
    pub(super) levels: u64,
    /// Code that is hooked, or has no calls, and ours.
    pub(super) known: Vec<Mapped>,
}

/// State of the counting code for a thread.
#[derive(Default)]
pub(crate) struct OfThread {
    pub(super) slot: Option<Slot>,
    /// True if the thread's own memory points to the slot.
    pub(super) on: bool,
    /// True from a question to the return of the call that it is about.
    pub(super) asked: bool,
    /// True if the kernel makes the call again that the thread has returned from.
    pub(super) restarts: bool,
    /// Signal handlers that have begun and not returned.
    pub(super) handlers: u32,
    /// True if a signal of a question that the thread blocked is still to come.
    pub(super) stray: bool,
    /// True if the thread blocks SIGTRAP.
    pub(super) blocks_traps: bool,
    /// True once the thread has stopped.
    pub(super) begun: bool,
    /// True while a call that makes a thread is left out, to be made again.
    pub(super) puts_off: bool,
    /// True while it makes a child that has its memory.
    pub(super) shares_with_child: bool,
    /// The context that has no entry yet.
    pub(super) unknown: Option<Unknown>,
}

/// A context without an entry.
#[derive(Clone, Debug)]
pub(super) struct Unknown {
    pub(super) key: u64,
    /// The return addresses that the key is made of, and those of further frame records.
    pub(super) callers: Vec<u64>,
}

/// A thread's slot, and what its entries count.
pub(super) struct Slot {
    pub(super) index: u64,
    /// Address of the pointer to it.
    pub(super) pointer: u64,
    /// Rows by entry.
    pub(super) rows: Vec<(u64, u32)>,
}

/// Memory that processes which were forked from one another share with us.
pub(super) struct Shared {
    /// The memory. Before it lie [`LINK`] bytes that are ours alone.
    memory: NonNull<u8>,
    free: RefCell<Vec<u64>>,
    made: Cell<u64>,
}

impl Shared {
    /// Maps a memory file.
    ///
    /// # Errors
    /// If the file can't be made long enough, or mapped.
    pub(super) fn map(file: &File) -> std::io::Result<Self> {
        file.set_len(layout::SIZE)?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: a plain call on a descriptor of ours.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } == -1 {
            return Err(std::io::Error::last_os_error());
        }
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let alone = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let len = LINK + layout::SIZE as usize;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, rights, alone, -1, 0) };
        let start = NonNull::new(at.cast::<u8>()).filter(|_| at != libc::MAP_FAILED);
        let start = start.ok_or_else(std::io::Error::last_os_error)?;
        // SAFETY: within the mapping.
        let memory = unsafe { start.add(LINK) };
        let made = Self { memory, free: RefCell::default(), made: Cell::new(0) };
        let kind = libc::MAP_SHARED | libc::MAP_FIXED;
        // SAFETY: takes the place of a part of the mapping that was just made, to which nothing refers.
        let at =
            unsafe { libc::mmap(memory.as_ptr().cast(), layout::SIZE as usize, rights, kind, file.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED { Err(std::io::Error::last_os_error()) } else { Ok(made) }
    }

    /// Returns the word at an offset.
    pub(super) fn word(&self, offset: u64) -> &AtomicU64 {
        let within = offset.is_multiple_of(8) && offset < layout::SIZE;
        // SAFETY: the mapping has SIZE bytes as long as `self`, since the file's length is sealed. Others may change its words
        // at any time.
        unsafe { self.memory.add(if within { offset as usize } else { 0 }).cast().as_ref() }
    }

    fn half(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: as above; the half word lies in the word.
        unsafe { self.memory.add((offset & !3) as usize % layout::SIZE as usize).cast().as_ref() }
    }

    /// Takes a slot, all of whose words are zero.
    pub(super) fn take(&self) -> Option<u64> {
        self.free.borrow_mut().pop().or_else(|| {
            let next = self.made.get();
            self.made.set((next + 1).min(layout::SLOT_COUNT));
            (next < layout::SLOT_COUNT).then_some(next)
        })
    }

    /// Gives a slot back, of whose entries these are in use.
    pub(super) fn give_back(&self, index: u64, used: &[(u64, u32)]) {
        self.clear(index, used);
        for offset in (0..slot::TABLE).step_by(8) {
            self.word(slot_at(index) + offset).store(0, Ordering::Relaxed);
        }
        self.free.borrow_mut().push(index);
    }

    /// Makes entries of a slot free.
    pub(super) fn clear(&self, index: u64, used: &[(u64, u32)]) {
        for (at, _) in used {
            let start = slot_at(index) + slot::TABLE + at * entry::SIZE;
            for offset in (0..entry::ERRORS + 4 * entry::ERRNOS).step_by(8) {
                self.word(start + offset).store(0, Ordering::Relaxed);
            }
        }
    }

    /// Takes the value of a word, and leaves zero.
    pub(super) fn drain(&self, offset: u64) -> u64 {
        self.word(offset).swap(0, Ordering::Relaxed)
    }

    /// Takes the value of a word of 4 bytes, and leaves zero.
    pub(super) fn drain_half(&self, offset: u64) -> u32 {
        self.half(offset).swap(0, Ordering::Relaxed)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing refers to it any more.
        unsafe { libc::munmap(self.memory.as_ptr().sub(LINK).cast(), LINK + layout::SIZE as usize) };
    }
}

/// Returns the offset of a slot.
pub(super) fn slot_at(index: u64) -> u64 {
    layout::SLOTS + index * slot::SIZE
}

/// Makes the kernel mark the memories when this thread ends, however it ends: threads then ask nobody
/// (Documentation/locking/robust-futex-ABI.rst).
#[derive(Default)]
struct Notices {
    head: Option<NonNull<Head>>,
    shared: Vec<Rc<Shared>>,
}

/// The kernel's `struct robust_list_head`.
#[repr(C)]
struct Head {
    first: *mut u8,
    offset: libc::c_long,
    pending: *mut u8,
}

/// Distance of the list's entry, the address of the next one, before a memory. The kernel follows it, so it lies where no process
/// but this one can write: a page of the largest size that aarch64 has.
const LINK: usize = 64 << 10;

impl Notices {
    /// Makes the list of all memories that a process still has.
    fn link(&mut self) {
        let head = *self.head.get_or_insert_with(|| {
            let offset = LINK as libc::c_long + layout::OWNER as libc::c_long;
            let head = Box::leak(Box::new(Head { first: std::ptr::null_mut(), offset, pending: std::ptr::null_mut() }));
            head.first = std::ptr::from_mut(head).cast();
            // SAFETY: the list is never freed, so the kernel finds it whenever the thread ends. The C library's own list,
            // which this one replaces, is for robust mutexes, and we use none.
            unsafe { libc::syscall(libc::SYS_set_robust_list, &raw mut *head, size_of::<Head>()) };
            NonNull::from(head)
        });
        let (used, gone): (Vec<_>, Vec<_>) = self.shared.drain(..).partition(|shared| Rc::strong_count(shared) > 1);
        self.shared = used;
        let mut next: *mut u8 = head.as_ptr().cast();
        for shared in &self.shared {
            shared.half(layout::OWNER).store(nix::unistd::gettid().as_raw() as u32, Ordering::Relaxed);
            // SAFETY: within the mapping, in the part that only this thread refers to.
            unsafe {
                let entry = shared.memory.as_ptr().sub(LINK);
                entry.cast::<*mut u8>().write_volatile(next);
                next = entry;
            }
        }
        // SAFETY: the list was leaked, so it still exists, and only this thread refers to it.
        unsafe { (&raw mut (*head.as_ptr()).first).write_volatile(next) };
        drop(gone);
    }
}
