//! Reads the ring in which the programs report what happens to threads.

use super::call::{Map, MapType};
use super::layout::Nothing;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bytes of the ring of events: some 25,000 without text. A fork makes three, and is read within a twentieth of a second.
pub(super) const EVENTS: usize = 1 << 20;
/// Bytes of the ring of sampled calls: some 1,000 stacks, or 400 windows.
pub(super) const SAMPLES: usize = 1 << 23;
/// Bytes of the ring of threads that have mapped code: some 2,700.
pub(super) const MAPPED: usize = 1 << 16;
/// Bits of a record's length: the record is being written; it is to be skipped (BPF_RINGBUF_BUSY_BIT, _DISCARD_BIT).
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
/// Bytes of a record's header; records begin at multiples of it.
const HEADER: usize = 8;

/// The ring, mapped as the kernel lays it out: a page with our position, a page with its own, and the data twice, so
/// that a record that begins near the end goes on behind it.
#[derive(Debug)]
pub(super) struct Ring {
    pub(super) map: Map<Nothing, Nothing>,
    /// Bytes of the data, a power of two.
    bytes: usize,
    page: usize,
    ours: *mut libc::c_void,
    theirs: *mut libc::c_void,
}

// SAFETY: both mappings belong to the ring alone, and positions are read and written atomically. Records are read by one
// thread: the one to which its owner gives it.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// Makes a ring of so many bytes: a power of two, of a page or more.
    ///
    /// # Errors
    /// The kernel's: EINVAL before Linux 5.8.
    pub(super) fn new(name: &str, bytes: usize) -> Result<Self> {
        let map = Map::new(MapType::Ring, name, bytes as u32, 0)?;
        // SAFETY: reads a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let fd = map.fd().as_raw_fd();
        let new = |length, protection, offset: usize| {
            // SAFETY: a new mapping at an address of the kernel's choice.
            let at = unsafe {
                libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, fd, offset as libc::off_t)
            };
            if at == libc::MAP_FAILED { Err(Error::last_os_error()) } else { Ok(at) }
        };
        let ours = new(page, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        match new(page + 2 * bytes, libc::PROT_READ, page) {
            Ok(theirs) => Ok(Self { map, bytes, page, ours, theirs }),
            Err(e) => {
                // SAFETY: the mapping was just made, and nothing else knows it.
                unsafe { libc::munmap(ours, page) };
                Err(e)
            }
        }
    }

    /// Returns the descriptor that can be read when there is an event of which the programs want us to know at once.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd as _;
        self.map.fd().as_fd()
    }

    /// Returns the position behind the newest record.
    pub(super) fn end(&self) -> u64 {
        // SAFETY: as in `read`.
        unsafe { &*self.theirs.cast::<AtomicU64>() }.load(Ordering::Acquire)
    }

    /// Calls `each` with all records up to a position, and removes them.
    pub(super) fn read(&self, end: u64, mut each: impl FnMut(&[u8])) {
        // SAFETY: both mappings live as long as `self`, begin with the positions (bpf(2) ring buffers), and are
        // aligned to a page. Positions are written by atomic stores of the kernel and of this function.
        let (ours, theirs) = unsafe { (&*self.ours.cast::<AtomicU64>(), &*self.theirs.cast::<AtomicU64>()) };
        let mut at = ours.load(Ordering::Acquire);
        while at < end.min(theirs.load(Ordering::Acquire)) {
            let place = self.page + (at as usize & (self.bytes - 1));
            // SAFETY: the place is within the data, at a multiple of 8; a record's header is whole there, since the
            // data are mapped twice. The kernel writes the length by atomic stores.
            let header = unsafe { &*self.theirs.byte_add(place).cast::<AtomicU32>() }.load(Ordering::Acquire);
            if header & BUSY != 0 {
                break;
            }
            let length = ((header & !DISCARDED) as usize).min(self.bytes);
            if header & DISCARDED == 0 {
                // SAFETY: the record lies in the data or goes on in their second mapping, and the kernel does not
                // write it again until our position is behind it.
                let bytes =
                    unsafe { std::slice::from_raw_parts(self.theirs.byte_add(place + HEADER).cast::<u8>(), length) };
                each(bytes);
            }
            at += (HEADER + length).next_multiple_of(HEADER) as u64;
            ours.store(at, Ordering::Release);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: both mappings are our own, and no reference to them outlives `self`.
        unsafe {
            libc::munmap(self.ours, self.page);
            libc::munmap(self.theirs, self.page + 2 * self.bytes);
        }
    }
}
