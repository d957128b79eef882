//! The objects that priced calls use: a file in memory, a pipe, a socket pair, an epoll, timers,
//! and memory for the kernel to write to.
//!
//! Invariant: every address returned is in [`Scratch`], a mapping that the kernel may overwrite, or
//! in a path string that calls only read.

use crate::sys::{self, Args};
use std::ffi::CString;
use std::path::Path;

/// Largest number of objects that are made before they are undone, below every limit of
/// descriptors.
pub(crate) const MAX_MADE: usize = 32;

/// Size of the large reads and writes, bytes.
pub(crate) const BULK: usize = 65_536;

/// Paths for look-ups.
pub(crate) struct Paths {
    /// A regular file.
    pub(crate) plain: CString,
    /// A symbolic link.
    pub(crate) link: CString,
    /// A path that does not exist.
    pub(crate) missing: CString,
}

impl Paths {
    /// Returns the first of some usual paths that exists on this box.
    pub(crate) fn of_this_box() -> Self {
        let first = |paths: &[&str], fits: fn(&std::fs::Metadata) -> bool| {
            let found = paths.iter().find(|p| Path::new(p).symlink_metadata().is_ok_and(|m| fits(&m)));
            CString::new(found.copied().unwrap_or("/")).unwrap_or_default()
        };
        Self {
            plain: first(&["/etc/passwd", "/etc/hosts", "/etc/hostname"], |m| m.is_file()),
            link: first(&["/etc/localtime", "/etc/mtab", "/proc/self"], |m| m.is_symlink()),
            missing: c"/etc/systoll-looks-for-what-is-not-there".into(),
        }
    }
}

/// Memory that the calls read and write.
#[repr(C)]
pub(crate) struct Scratch {
    pub(crate) data: [u8; BULK],
    pub(crate) out: [u8; 4096],
    pub(crate) zeros: [u8; 4096],
    pub(crate) pairs: [[i32; 2]; MAX_MADE],
    pub(crate) made: [isize; MAX_MADE],
    pub(crate) poll: libc::pollfd,
    pub(crate) event: libc::epoll_event,
    pub(crate) iov: libc::iovec,
    pub(crate) msg: libc::msghdr,
    pub(crate) length: u32,
    pub(crate) one: u32,
    pub(crate) robust: [usize; 3],
}

/// The objects, made in the child and never undone: the child's end does that. A descriptor that
/// could not be opened is the negative errno, and calls on it fail.
pub(crate) struct Fixture<'a> {
    pub(crate) paths: &'a Paths,
    scratch: *mut Scratch,
    page: usize,
    heap_end: usize,
    pub(crate) pid: usize,
    pub(crate) file: usize,
    pub(crate) sink: usize,
    pub(crate) pipe: [usize; 2],
    pub(crate) sockets: [usize; 2],
    pub(crate) epoll: usize,
    pub(crate) timer: usize,
    pub(crate) spare: usize,
}

/// Defines a function that returns the address of a field of the scratch memory.
macro_rules! field {
    ($name:ident, $field:ident) => {
        pub(crate) fn $name(&self) -> usize {
            // SAFETY: only forms an address within the live mapping.
            unsafe { (&raw mut (*self.scratch).$field) as usize }
        }
    };
}

impl<'a> Fixture<'a> {
    field!(data, data);
    field!(out, out);
    field!(zeros, zeros);
    field!(poll, poll);
    field!(epoll_event, event);
    field!(iov, iov);
    field!(msg, msg);
    field!(length, length);
    field!(one, one);
    field!(robust, robust);

    /// Returns a page that has been written to.
    pub(crate) fn page(&self) -> usize {
        self.page
    }

    /// Returns the end of the heap.
    pub(crate) fn heap_end(&self) -> usize {
        self.heap_end
    }

    /// Returns the address of the `i`th pair of descriptors.
    pub(crate) fn pair(&self, i: usize) -> usize {
        // SAFETY: the index is reduced to the length of an array in a live mapping.
        unsafe { (&raw mut (*self.scratch).pairs[i % MAX_MADE]) as usize }
    }

    /// Closes the `i`th pair.
    pub(crate) fn close_pair(&self, i: usize) {
        // SAFETY: as in `pair`; the kernel wrote plain integers there.
        let pair = unsafe { (*self.scratch).pairs[i % MAX_MADE] };
        pair.iter().for_each(|fd| sys::close(*fd as isize));
    }

    /// Stores the result of making the `i`th object.
    pub(crate) fn keep(&self, i: usize, made: isize) {
        // SAFETY: as in `pair`.
        unsafe { (*self.scratch).made[i % MAX_MADE] = made };
    }

    /// Returns the result of making the `i`th object.
    pub(crate) fn kept(&self, i: usize) -> isize {
        // SAFETY: as in `pair`.
        unsafe { (*self.scratch).made[i % MAX_MADE] }
    }

    /// Makes all objects; returns `None` if there is no memory.
    pub(crate) fn new(paths: &'a Paths) -> Option<Self> {
        let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
        let map = |bytes| made(libc::SYS_mmap, [0, bytes, prot, flags, usize::MAX, 0]);
        let (scratch, page) = (map(size_of::<Scratch>()), map(4096));
        if sys::errno(scratch as isize).is_some() || sys::errno(page as isize).is_some() {
            return None;
        }
        // SAFETY: the page has just been mapped for writing.
        unsafe { (page as *mut u8).write_volatile(1) };
        let mut fixture = Self {
            paths,
            scratch: scratch as *mut Scratch,
            page,
            heap_end: made(libc::SYS_brk, [0; 6]),
            pid: made(libc::SYS_getpid, [0; 6]),
            file: made(libc::SYS_memfd_create, [c"systoll-price".as_ptr() as usize, 1, 0, 0, 0, 0]),
            sink: made(libc::SYS_openat, [sys::CWD, c"/dev/null".as_ptr() as usize, libc::O_RDWR as usize, 0, 0, 0]),
            pipe: [usize::MAX; 2],
            sockets: [usize::MAX; 2],
            epoll: made(libc::SYS_epoll_create1, [0; 6]),
            timer: made(libc::SYS_timerfd_create, [libc::CLOCK_MONOTONIC as usize, 0, 0, 0, 0, 0]),
            spare: made(libc::SYS_dup, [2, 0, 0, 0, 0, 0]),
        };
        fixture.fill();
        Some(fixture)
    }

    fn fill(&mut self) {
        let socket = (libc::SOCK_STREAM | libc::SOCK_NONBLOCK) as usize;
        made(libc::SYS_pipe2, [self.pair(0), libc::O_NONBLOCK as usize, 0, 0, 0, 0]);
        made(libc::SYS_socketpair, [libc::AF_UNIX as usize, socket, 0, self.pair(1), 0, 0]);
        made(libc::SYS_write, [self.file, self.data(), BULK, 0, 0, 0]);
        let (data, iov, robust) = (self.data(), self.iov(), self.robust());
        // SAFETY: the mapping is live and nothing else refers to it.
        let scratch = unsafe { &mut *self.scratch };
        let both = |pair: [i32; 2]| pair.map(|fd| fd as isize as usize);
        if scratch.pairs[0] != [0; 2] {
            self.pipe = both(scratch.pairs[0]);
        }
        if scratch.pairs[1] != [0; 2] {
            self.sockets = both(scratch.pairs[1]);
        }
        scratch.poll = libc::pollfd { fd: self.pipe[0] as i32, events: libc::POLLIN, revents: 0 };
        scratch.event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        scratch.iov = libc::iovec { iov_base: data as *mut libc::c_void, iov_len: 1 };
        scratch.msg.msg_iov = iov as *mut libc::iovec;
        scratch.msg.msg_iovlen = 1;
        scratch.robust[0] = robust;
        scratch.one = 1;
        self.reset_length();
        let add = libc::EPOLL_CTL_ADD as usize;
        made(libc::SYS_epoll_ctl, [self.epoll, add, self.pipe[0], self.epoll_event(), 0, 0]);
    }

    /// Resets the length that calls read by reference.
    pub(crate) fn reset_length(&self) {
        // SAFETY: an aligned field of a live mapping.
        unsafe { (&raw mut (*self.scratch).length).write(128) };
    }
}

fn made(nr: i64, args: Args) -> usize {
    // SAFETY: the calls above only write to the scratch memory and only create mappings.
    unsafe { sys::call(nr, args) as usize }
}
