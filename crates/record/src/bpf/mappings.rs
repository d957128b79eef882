//! Reads what processes have mapped as soon as they have: a short program has ended by the time its samples are taken.

use super::ring::Ring;
use crate::{limits, procfs};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time after which the thread asks if it is to end.
const PAUSE: Duration = Duration::from_millis(20);
/// Bytes of maps that wait to be taken, at most; later ones are read when they are needed.
const MOST_BYTES: usize = 32 << 20;

/// The text of /proc/PID/maps of an address space.
#[derive(Debug)]
pub(super) struct Mapped {
    /// Image that made the address space.
    pub(super) space: u64,
    pub(super) tid: i32,
    pub(super) maps: Vec<u8>,
}

#[derive(Debug, Default)]
struct Shared {
    is_to_end: AtomicBool,
    mapped: Mutex<Vec<Mapped>>,
}

/// A thread that reads maps.
#[derive(Debug)]
pub(super) struct Mappings(Arc<Shared>);

impl Mappings {
    /// Starts the thread. The kernel writes a record to `ring` when a thread has mapped code.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn read_from(ring: Arc<Ring>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let ours = Arc::clone(&shared);
        limits::spawn("maps", move || {
            while !shared.is_to_end.load(Ordering::Relaxed) {
                let mut fds = libc::pollfd { fd: ring.descriptor().as_raw_fd(), events: libc::POLLIN, revents: 0 };
                // SAFETY: one descriptor, as is said.
                unsafe { libc::poll(&raw mut fds, 1, PAUSE.as_millis() as i32) };
                ring.read(u64::MAX, |bytes| shared.add(bytes));
            }
        })?;
        Ok(Self(ours))
    }

    /// Takes all maps that were read since the last call, oldest first.
    pub(super) fn take(&self) -> Vec<Mapped> {
        std::mem::take(&mut self.0.mapped.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Mappings {
    fn drop(&mut self) {
        self.0.is_to_end.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    /// Reads the maps of a thread that has mapped code, by the record of that (`struct mapping`).
    fn add(&self, bytes: &[u8]) {
        let Some((space, tid)) = bytes.first_chunk().zip(bytes.get(8..12).and_then(|b| b.try_into().ok())) else {
            return;
        };
        let (space, tid) = (u64::from_ne_bytes(*space), i32::from_ne_bytes(tid));
        let Some(maps) = procfs::read(format!("/proc/{tid}/maps")).filter(|maps| !maps.is_empty()) else { return };
        let mut all = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        if all.iter().map(|mapped| mapped.maps.len()).sum::<usize>() < MOST_BYTES {
            all.push(Mapped { space, tid, maps });
        }
    }
}
