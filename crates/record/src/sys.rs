//! Typed wrappers of the system calls that every backend needs.

use crate::served_pages;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeSpec, TimeVal};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use std::io::IoSliceMut;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Reads memory of another process into `buffer`. Returns the number of bytes read from the start on.
pub(crate) fn read_memory(pid: i32, address: u64, buffer: &mut [u8]) -> usize {
    let readable = served_pages::readable_now(pid, address, buffer.len());
    read_ranges(pid, &[range(address, readable)], &mut [IoSliceMut::new(buffer)])
}

/// Reads private memory of a process that belongs to no file. Pages that the process has not touched are zeroes, and are
/// not read: that would allocate them, and each later change of their protection would cost the program more. A compiler's
/// arena of 1 MiB of which it used 16 KiB was given back and forth for 27 µs in place of 4. Returns the number of bytes
/// known.
pub(crate) fn read_touched(pid: i32, address: u64, buffer: &mut [u8]) -> usize {
    let Some(pages) = served_pages::pages(pid, address, buffer.len()) else { return read_memory(pid, address, buffer) };
    buffer.fill(0);
    let mut at = 0;
    for stretch in pages.chunk_by(|one, next| one == next) {
        // The first page may begin before the address.
        let (page, is_there) = (address + at as u64, stretch.first() == Some(&true));
        let len = (stretch.len() * served_pages::PAGE as usize)
            .saturating_sub((page % served_pages::PAGE) as usize)
            .min(buffer.len() - at);
        let Some(part) = buffer.get_mut(at..at + len) else { break };
        if is_there && read_memory(pid, page, part) < len {
            return at;
        }
        at += len;
    }
    at
}

/// Reads ranges of another process's memory into buffers, by one call. Returns the number of bytes read; zero if the
/// kernel refuses.
pub(crate) fn read_ranges(pid: i32, from: &[RemoteIoVec], into: &mut [IoSliceMut<'_>]) -> usize {
    process_vm_readv(Pid::from_raw(pid), into, from).unwrap_or(0)
}

/// Returns the range of another process's memory that begins at `address`.
pub(crate) fn range(address: u64, len: usize) -> RemoteIoVec {
    RemoteIoVec { base: address as usize, len }
}

/// Reads two ranges of another process's memory by one call. Returns the number of bytes read, of the first range and
/// then of the second.
pub(crate) fn read_two(pid: i32, first: (u64, &mut [u8]), second: (u64, &mut [u8])) -> usize {
    if served_pages::seen() {
        let read = read_memory(pid, first.0, first.1);
        return read + if read == first.1.len() { read_memory(pid, second.0, second.1) } else { 0 };
    }
    let from = [range(first.0, first.1.len()), range(second.0, second.1.len())];
    read_ranges(pid, &from, &mut [IoSliceMut::new(first.1), IoSliceMut::new(second.1)])
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
    let mut from: Vec<RemoteIoVec> = Vec::with_capacity(addresses.len());
    for address in addresses {
        // The kernel looks up the pages of each range anew, so adjacent pieces become one range.
        match from.last_mut().filter(|last| last.base.wrapping_add(last.len) as u64 == *address) {
            Some(last) => last.len += len,
            None => from.push(range(*address, len)),
        }
    }
    read_ranges(pid, &from, &mut [IoSliceMut::new(buffer.get_mut(..len * addresses.len()).unwrap_or_default())])
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
    times_of(UsageWho::RUSAGE_CHILDREN)
}

/// Returns the user and system time in ns of this thread, which is the launcher.
pub(crate) fn launcher_times() -> (u64, u64) {
    times_of(UsageWho::RUSAGE_THREAD)
}

fn times_of(who: UsageWho) -> (u64, u64) {
    let ns = |t: TimeVal| t.tv_sec() as u64 * 1_000_000_000 + t.tv_usec() as u64 * 1_000;
    getrusage(who).map_or((0, 0), |usage| (ns(usage.user_time()), ns(usage.system_time())))
}

/// Returns the time of CLOCK_MONOTONIC, ns.
pub(crate) fn now() -> u64 {
    clock(ClockId::CLOCK_MONOTONIC).unwrap_or(0)
}

/// Returns the time of a clock, ns; `None` if there is no such clock.
pub(crate) fn clock(id: ClockId) -> Option<u64> {
    let ns = |t: TimeSpec| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64;
    clock_gettime(id).ok().map(ns)
}

/// Returns the processor time of the calling thread. Differences of it are the cost of work, however busy the machine
/// is.
pub(crate) fn own_cpu() -> Duration {
    clock(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from_nanos)
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
