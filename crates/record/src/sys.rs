//! Typed wrappers of the system calls that every backend needs.

use crate::served_pages;
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

/// Reads memory of another process into `buffer`. Returns the number of bytes read from the start on.
pub(crate) fn read_memory(pid: i32, address: u64, buffer: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let there = served_pages::readable_now(pid, address, buffer.len());
    let remote = libc::iovec { iov_base: address as usize as *mut c_void, iov_len: there };
    // SAFETY: the local range is `buffer` itself; the kernel looks the remote one up in the other process, where a bad
    // address is an error.
    let n = unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) };
    usize::try_from(n).unwrap_or(0)
}

/// Reads two ranges of another process's memory by one call. Returns the number of bytes read, of the first range and
/// then of the second.
pub(crate) fn read_two(pid: i32, first: (u64, &mut [u8]), second: (u64, &mut [u8])) -> usize {
    if served_pages::seen() {
        let read = read_memory(pid, first.0, first.1);
        return read + if read == first.1.len() { read_memory(pid, second.0, second.1) } else { 0 };
    }
    let vector = |address: *mut c_void, length| libc::iovec { iov_base: address, iov_len: length };
    let remote = [
        vector(first.0 as usize as *mut c_void, first.1.len()),
        vector(second.0 as usize as *mut c_void, second.1.len()),
    ];
    let local =
        [vector(first.1.as_mut_ptr().cast(), first.1.len()), vector(second.1.as_mut_ptr().cast(), second.1.len())];
    // SAFETY: the local ranges are the two buffers; the kernel looks the remote ones up in the other process, where a
    // bad address is an error.
    let n = unsafe { libc::process_vm_readv(pid, local.as_ptr(), 2, remote.as_ptr(), 2, 0) };
    usize::try_from(n).unwrap_or(0)
}

/// Reads equally long pieces of another process's memory into `buffer`, one behind the other, by one call. Returns the
/// number of bytes read, up to the first piece that is not mapped.
pub(crate) fn read_pieces(pid: i32, addresses: &[u64], buffer: &mut [u8]) -> usize {
    /// Ranges that the kernel accepts in one call (`UIO_MAXIOV`).
    const MOST: usize = 1024;
    if let [address] = addresses {
        return read_memory(pid, *address, buffer);
    }
    let addresses = addresses.get(..MOST).unwrap_or(addresses);
    let Some(len) = buffer.len().checked_div(addresses.len()) else { return 0 };
    if served_pages::seen() {
        let pieces = addresses.iter().zip(buffer.chunks_mut(len.max(1)));
        let read: Vec<usize> = pieces.map(|(address, piece)| read_memory(pid, *address, piece)).collect();
        let whole = read.iter().take_while(|read| **read == len).count();
        return whole * len + read.get(whole).copied().unwrap_or(0);
    }
    let mut remote: Vec<libc::iovec> = Vec::with_capacity(addresses.len());
    for address in addresses {
        // The kernel looks up the pages of each range anew, so adjacent pieces become one range.
        match remote.last_mut().filter(|last| (last.iov_base as u64).wrapping_add(last.iov_len as u64) == *address) {
            Some(last) => last.iov_len += len,
            None => remote.push(libc::iovec { iov_base: *address as usize as *mut c_void, iov_len: len }),
        }
    }
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: len * addresses.len() };
    // SAFETY: the local range lies in `buffer`; the kernel looks the remote ones up in the other process, where a bad
    // address is an error. The counts are those of the vectors.
    let n = unsafe { libc::process_vm_readv(pid, &local, 1, remote.as_ptr(), remote.len() as u64, 0) };
    usize::try_from(n).unwrap_or(0)
}

/// Returns the reason why threads can't wait for each other here; `None` if they can. Some sandboxes refuse futex(2),
/// and then the C library aborts the process.
pub(crate) fn forbids_futex() -> Option<String> {
    static WHY: OnceLock<Option<String>> = OnceLock::new();
    let ask = || {
        let word = AtomicU32::new(0);
        // SAFETY: a wake without a sleeper only uses the address, which lives through the call.
        let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1, 0, 0, 0) };
        let why = std::io::Error::last_os_error();
        (result < 0).then(|| format!("futex(2) is refused here: {}", crate::error::reason(&why)))
    };
    WHY.get_or_init(ask).clone()
}

/// Returns the user and system time in ns of all reaped children of this process.
pub(crate) fn children_times() -> (u64, u64) {
    // SAFETY: getrusage fills the struct, for which zeroes are valid.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}

/// Returns the time of CLOCK_MONOTONIC, ns.
pub(crate) fn now() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is valid to be written to; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Returns the processor time of the calling thread. Differences of it are the cost of work, however busy the machine
/// is.
pub(crate) fn own_cpu() -> std::time::Duration {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a timespec of ours; the clock exists since Linux 2.6.12.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    std::time::Duration::new(t.tv_sec.max(0) as u64, t.tv_nsec.clamp(0, 999_999_999) as u32)
}

/// Returns the effective and permitted capabilities of a process, 0 being the caller (capget(2)).
fn capabilities(pid: i32) -> Option<(u64, u64)> {
    /// The constant _LINUX_CAPABILITY_VERSION_3 of linux/capability.h.
    const VERSION: u32 = 0x2008_0522;
    let header = [VERSION, pid as u32];
    // Receives the low halves of the effective, permitted and inheritable sets, then the high halves.
    let mut data = [0u32; 6];
    // SAFETY: the kernel reads a header of two words and writes six.
    let result = unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), data.as_mut_ptr()) };
    let whole = |i: usize| u64::from(data[i]) | u64::from(data[i + 3]) << 32;
    (result == 0).then(|| (whole(0), whole(1)))
}

/// Returns true if a process has all capabilities in force that this one may have.
pub(crate) fn has_our_capabilities(pid: i32) -> bool {
    let theirs = capabilities(pid);
    capabilities(0).zip(theirs).is_some_and(|((_, ours), (theirs, _))| ours & !theirs == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_up_to_its_end() {
        let here = [7u8; 32];
        let mut there = [0; 32];
        assert_eq!(read_memory(std::process::id() as i32, here.as_ptr() as u64, &mut there), 32);
        assert_eq!(here, there);
        assert_eq!(read_memory(std::process::id() as i32, 8, &mut there), 0);
    }

    #[test]
    fn pieces_are_read_up_to_the_first_that_is_not_there() {
        let (one, two) = ([1u8; 16], [2u8; 16]);
        let (own, [one, two]) = (std::process::id() as i32, [one.as_ptr() as u64, two.as_ptr() as u64]);
        let read = |addresses: &[u64], len| {
            let mut there = vec![0; len];
            let got = read_pieces(own, addresses, &mut there);
            there.truncate(got);
            there
        };
        assert_eq!(read(&[two, one, two], 48), [[2; 16], [1; 16], [2; 16]].concat());
        assert_eq!(read(&[two, 8, one], 48), [2; 16]);
        assert_eq!(read(&[one, one + 8, two + 4, two], 32), [[1; 8], [1; 8], [2; 8], [2; 8]].concat());
        assert_eq!(read(&[one, one + 8, 8, 16, two], 40), [1; 16]);
        assert_eq!((read(&[8, one], 32), read(&[], 32)), (vec![], vec![]));
        assert_eq!(read(&[one], 16), [1; 16]);
    }
}
