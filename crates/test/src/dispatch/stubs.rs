//! The only code from which calls of a counting thread reach the kernel.
//!
//! A stub is 8 bytes: a `syscall`, and a jump to the instruction after the program's own `syscall`.
//! A dispatched call is made by its site's stub, outside the handler, with the program's registers,
//! stack and signal mask: `clone`, `vfork`, `rt_sigreturn`, `sigaltstack` and interrupted waits
//! behave as without us.
//!
//! Invariant: a site keeps its stub for the life of the process: a thread or child that is still in
//! it always returns to the right place.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Number of stubs: different `syscall` instructions that blocks of a process may run. glibc has
/// some 600.
pub(super) const STUBS: usize = 4096;
/// A stub's size in bytes. The jump reads its target from memory: no code is ever written.
const STUB: u64 = 8;
/// Number of neighbouring entries that are searched for a free stub.
const PROBES: usize = 64;

/// The address that each stub jumps to; 0 for a free one.
static TARGETS: [AtomicU64; STUBS] = [const { AtomicU64::new(0) }; STUBS];

global_asm!(
    ".pushsection .text.systoll_test, \"ax\", @progbits",
    ".p2align 6",
    ".globl systoll_test_stubs",
    ".hidden systoll_test_stubs",
    ".globl systoll_test_restore",
    ".hidden systoll_test_restore",
    ".globl systoll_test_call",
    ".hidden systoll_test_call",
    ".globl systoll_test_end",
    ".hidden systoll_test_end",
    ".type systoll_test_call, @function",
    "systoll_test_stubs:",
    ".set systoll_test_at, 0",
    ".rept 4096",
    "syscall",
    "jmp *({targets} + systoll_test_at)(%rip)",
    ".set systoll_test_at, systoll_test_at + 8",
    ".endr",
    // The bytes by which unwinders and debuggers recognise a signal's return.
    "nop",
    "systoll_test_restore:",
    "mov $15, %rax",
    "syscall",
    // A call of our own: its number, then six arguments.
    "systoll_test_call:",
    "mov %rdi, %rax",
    "mov %rsi, %rdi",
    "mov %rdx, %rsi",
    "mov %rcx, %rdx",
    "mov %r8, %r10",
    "mov %r9, %r8",
    "mov 8(%rsp), %r9",
    "syscall",
    "ret",
    "systoll_test_end:",
    ".popsection",
    targets = sym TARGETS,
    options(att_syntax),
);

unsafe extern "C" {
    static systoll_test_stubs: u8;
    static systoll_test_end: u8;
    fn systoll_test_restore();
    fn systoll_test_call(number: i64, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> i64;
}

/// Returns the start of the code whose calls are let through.
pub(super) fn start() -> u64 {
    &raw const systoll_test_stubs as u64
}

/// Returns the size in bytes of the code whose calls are let through.
pub(super) fn length() -> u64 {
    &raw const systoll_test_end as u64 - start()
}

/// Returns the address that a handler of ours returns to.
pub(super) fn restorer() -> u64 {
    systoll_test_restore as *const () as u64
}

/// Makes a call that is never dispatched. Returns the kernel's result: an errno as its negative.
///
/// # Safety The requirements of the system call itself.
pub(super) unsafe fn call(number: libc::c_long, arguments: [u64; 6]) -> i64 {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the caller guarantees it; the code follows the C ABI.
    unsafe { systoll_test_call(number, a, b, c, d, e, f) }
}

/// Returns the stub for the call whose instruction ends at `target`; `None` if no stub is free.
pub(super) fn stub(target: u64) -> Option<u64> {
    let first = (target.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize;
    (0..PROBES).map(|step| (first + step) % STUBS).find_map(|at| {
        let entry = TARGETS.get(at)?;
        let seen = entry.load(SeqCst);
        let ours = seen == target
            || seen == 0
                && entry.compare_exchange(0, target, SeqCst, SeqCst).map_or_else(|now| now == target, |_| true);
        ours.then(|| start() + at as u64 * STUB)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_site_has_its_own_stub() {
        let sites: Vec<u64> = (0..STUBS as u64 / 2).map(|i| 0x7000_0000_0000 + i * 37).collect();
        let stubs: Vec<_> = sites.iter().map(|s| stub(*s).unwrap()).collect();
        assert_eq!(stubs, sites.iter().map(|s| stub(*s).unwrap()).collect::<Vec<_>>());
        let mut different = stubs.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), sites.len());
        assert!(stubs.iter().all(|s| (start()..start() + length()).contains(s) && (s - start()).is_multiple_of(STUB)));
    }

    #[test]
    fn a_stub_is_eight_bytes() {
        assert!((STUBS as u64 * STUB..STUBS as u64 * STUB + 64).contains(&length()));
        assert_eq!((restorer() - start() - 1) % STUB, 0);
    }

    #[test]
    fn a_call_of_our_own_has_its_arguments() {
        // SAFETY: getpid takes no arguments.
        assert_eq!(unsafe { call(libc::SYS_getpid, [0; 6]) }, i64::from(std::process::id()));
        let mut text = [0u8; 8];
        let mut pipe = [0i32; 2];
        // SAFETY: both arrays outlive the calls.
        let read = unsafe {
            assert_eq!(call(libc::SYS_pipe2, [pipe.as_mut_ptr() as u64, 0, 0, 0, 0, 0]), 0);
            assert_eq!(call(libc::SYS_write, [pipe[1] as u64, b"systoll".as_ptr() as u64, 7, 0, 0, 0]), 7);
            call(libc::SYS_read, [pipe[0] as u64, text.as_mut_ptr() as u64, 8, 0, 0, 0])
        };
        assert_eq!((read, &text[..7]), (7, &b"systoll"[..]));
        // SAFETY: no other code has these.
        unsafe { assert_eq!(libc::close(pipe[0]) + libc::close(pipe[1]), 0) };
    }
}
