//! Recognises programs that serve their own page faults (userfaultfd(2)). Reading a page that such a program has
//! not served yet waits for the program, and only death ends that wait. Once such a program has been seen, no page of
//! any program is read before it is known to be in memory.

use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use systoll_binfile::maps::lines;

pub(crate) const PAGE: u64 = 4096;
/// Bits of an entry of `/proc/PID/pagemap` (proc(5)): the page is in memory, or in swap.
const IN_MEMORY: u64 = 1 << 63;
const IN_SWAP: u64 = 1 << 62;
/// The ioctl USERFAULTFD_IOC_NEW of include/uapi/linux/userfaultfd.h.
const NEW: u32 = 0xaa00;
/// Path prefixes of files that live in memory only; programs may serve their pages too.
const IN_MEMORY_ALONE: [&[u8]; 4] = [b"/memfd:", b"/dev/shm/", b"/SYSV", b"/dev/zero"];

static SEEN: AtomicBool = AtomicBool::new(false);

/// Notes that a program has opened, or is about to open, a descriptor by which it serves page faults.
pub(crate) fn note_seen() {
    SEEN.store(true, Ordering::Relaxed);
}

/// Returns true if a call opens a descriptor by which a program serves page faults.
pub(crate) fn opens(name: &str, args: &[u64; 6]) -> bool {
    name == "userfaultfd" || name == "ioctl" && args[1] as u32 == NEW
}

/// Returns true if a program has been seen that serves its page faults.
pub(crate) fn seen() -> bool {
    SEEN.load(Ordering::Relaxed)
}

/// Returns the number of bytes, of `len` from `address` on, that can be read without waiting for the process. Returns
/// `len` as long as no program has been seen that serves its page faults.
pub(crate) fn readable_now(pid: i32, address: u64, len: usize) -> usize {
    if seen() { resident(pid, address, len).unwrap_or(0) } else { len }
}

/// Returns for each page of a range whether it is in memory or in swap; `None` if the page map can't be read.
pub(crate) fn pages(pid: i32, address: u64, len: usize) -> Option<Vec<bool>> {
    let first = address / PAGE;
    let last = address.checked_add(len.checked_sub(1)? as u64)? / PAGE;
    let mut entries = vec![0; usize::try_from(last - first + 1).ok()?.checked_mul(8)?];
    let pagemap = systoll_files::kernel(format!("/proc/{pid}/pagemap")).ok()?;
    pagemap.read_exact_at(&mut entries, first * 8).ok()?;
    let is_there = |entry: &[u8; 8]| u64::from_ne_bytes(*entry) & (IN_MEMORY | IN_SWAP) != 0;
    Some(entries.as_chunks().0.iter().map(is_there).collect())
}

/// Returns the result of [`readable_now`] according to the kernel's page map; `None` if that can't be read.
fn resident(pid: i32, address: u64, len: usize) -> Option<usize> {
    let (first, pages) = (address / PAGE, pages(pid, address, len)?);
    let mut text = None;
    let mut is_there = |(touched, page): (bool, u64)| {
        touched || {
            let maps = text.get_or_insert_with(|| maps(pid).unwrap_or_default());
            is_of_a_file(maps, page * PAGE)
        }
    };
    let missing = pages.into_iter().zip(first..).position(|page| !is_there(page));
    Some(missing.map_or(len, |pages| ((first + pages as u64) * PAGE).saturating_sub(address) as usize))
}

fn maps(pid: i32) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    systoll_files::kernel(format!("/proc/{pid}/maps"))?.read_to_end(&mut text)?;
    Ok(text)
}

/// Returns true if an address lies in a mapped file whose pages the kernel reads in by itself.
fn is_of_a_file(maps: &[u8], address: u64) -> bool {
    let line = lines(maps).find(|line| line.range.contains(&address));
    line.is_some_and(|line| line.inode != 0 && !IN_MEMORY_ALONE.iter().any(|start| line.path.starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untouched_pages_are_not_readable() {
        let len = 4 * PAGE as usize;
        // SAFETY: new memory at a place of the kernel's choice.
        let at = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        assert_ne!(at, libc::MAP_FAILED);
        // SAFETY: within that memory.
        unsafe { at.cast::<u8>().write_volatile(1) };
        let (pid, at) = (std::process::id() as i32, at as u64);
        assert_eq!(resident(pid, at, 8), Some(8));
        let mut bytes = vec![7; len - 8];
        assert_eq!(crate::sys::read_touched(pid, at, bytes.get_mut(..1).unwrap()), 1);
        assert_eq!(bytes.first(), Some(&1));
        assert_eq!(crate::sys::read_touched(pid, at + 8, &mut bytes), len - 8);
        assert!(bytes.iter().all(|byte| *byte == 0));
        assert_eq!(pages(pid, at, len), Some(vec![true, false, false, false]), "reading has touched nothing");
        assert_eq!(resident(pid, at + 8, len - 8), Some(PAGE as usize - 8));
        assert_eq!(resident(pid, at + PAGE, 8), Some(0));
        let code = untouched_pages_are_not_readable as fn() as usize as u64;
        assert_eq!(resident(pid, code, 8), Some(8));
        assert_eq!(resident(pid, u64::MAX, 8), None);
    }

    #[test]
    fn pages_of_files_on_disk_are_readable() {
        let maps = b"1000-2000 r--p 00000000 fe:00 12 /usr/lib/libc.so.6\n2000-3000 rw-s 00000000 00:01 13 /memfd:x (deleted)\n\
            3000-4000 rw-p 00000000 00:00 0 \n";
        assert_eq!([0x1000, 0x2000, 0x3000, 0x4000].map(|at| is_of_a_file(maps, at)), [true, false, false, false]);
    }
}
