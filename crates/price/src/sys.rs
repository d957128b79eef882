//! Direct system calls: no library's wrapper is part of a price.

use crate::arch::instruction;

/// The six argument registers of a call, in order.
pub(crate) type Args = [usize; 6];

/// `AT_FDCWD` in a register.
pub(crate) const CWD: usize = libc::AT_FDCWD as isize as usize;

/// Size of the kernel's signal set, bytes; libc's has 128.
pub(crate) const SIGSET_BYTES: usize = 8;

/// Makes system call `nr` through a function, as programs do. Returns rax; `-4095..=-1` is an
/// errno.
///
/// Never inlined: kernels with return mitigations make the processor's return predictor useless,
/// and the first return after a crossing is expensive (47 ns of 164 on a Zen 4 guest). A program
/// pays that at every call.
///
/// # Safety
/// The call must be sound with these arguments: pointers it writes through point to memory nothing
/// else relies on, and mappings it changes are the caller's own.
#[inline(never)]
pub(crate) unsafe fn call(nr: i64, args: Args) -> isize {
    // SAFETY: the caller guarantees it.
    unsafe { instruction(nr, args) }
}

/// Returns the errno in a result.
pub(crate) fn errno(result: isize) -> Option<u16> {
    (-4095..=-1).contains(&result).then(|| result.unsigned_abs() as u16)
}

/// Closes a descriptor of ours; does nothing for a result that is an error.
#[inline(always)]
pub(crate) fn close(fd: isize) {
    if fd >= 0 {
        // SAFETY: callers pass descriptors that they opened.
        unsafe { call(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Ends the calling process at once, without exit handlers or flushing.
pub(crate) fn exit(code: usize) -> ! {
    loop {
        // SAFETY: exit_group takes no pointers and does not come back.
        unsafe { call(libc::SYS_exit_group, [code, 0, 0, 0, 0, 0]) };
    }
}

/// Returns how often the calling thread has yielded or lost its processor.
pub(crate) fn switches() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    let args = [libc::RUSAGE_THREAD as usize, usage.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: writes one struct rusage to memory of that size; zeros are valid if it does not.
    let usage = unsafe {
        call(libc::SYS_getrusage, args);
        usage.assume_init()
    };
    usage.ru_nvcsw.wrapping_add(usage.ru_nivcsw)
}

/// Returns the processor time of the process so far, ns. It excludes the time of other processes.
pub(crate) fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one struct timespec.
    unsafe {
        call(libc::SYS_clock_gettime, [libc::CLOCK_PROCESS_CPUTIME_ID as usize, &raw mut time as usize, 0, 0, 0, 0])
    };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Returns the least processor time between two readings of [`cpu_ns`] that follow each other, ns.
pub(crate) fn cpu_reading_ns() -> u64 {
    let between = || cpu_ns().abs_diff(cpu_ns());
    (0..8).map(|_| between()).min().unwrap_or(0)
}

/// Blocks every signal in the calling thread. Returns the previous mask.
pub(crate) fn block_signals() -> u64 {
    let (all, mut old) = (u64::MAX, 0u64);
    let args = [libc::SIG_BLOCK as usize, &raw const all as usize, &raw mut old as usize, SIGSET_BYTES, 0, 0];
    // SAFETY: both sets are live and as long as the last argument says.
    unsafe { call(libc::SYS_rt_sigprocmask, args) };
    old
}

/// Sets the calling thread's signal mask.
pub(crate) fn restore_signals(mask: u64) {
    let args = [libc::SIG_SETMASK as usize, &raw const mask as usize, 0, SIGSET_BYTES, 0, 0];
    // SAFETY: the set is live and as long as the last argument says.
    unsafe { call(libc::SYS_rt_sigprocmask, args) };
}

/// Words of an affinity mask: 8,192 processors, the kernel's largest `NR_CPUS`.
const CPU_WORDS: usize = 128;

/// Pins the calling thread to its current processor. Returns the previous mask.
pub(crate) fn pin() -> Option<Affinity> {
    let (mut cpu, mut old) = (0u32, [0usize; CPU_WORDS]);
    // SAFETY: getcpu writes one u32; the others may be null.
    let got = unsafe { call(libc::SYS_getcpu, [&raw mut cpu as usize, 0, 0, 0, 0, 0]) };
    let args = [0, size_of_val(&old), &raw mut old as usize, 0, 0, 0];
    // SAFETY: writes at most as many bytes as `old` has.
    let mask = unsafe { call(libc::SYS_sched_getaffinity, args) };
    let mut one = [0usize; CPU_WORDS];
    *one.get_mut(cpu as usize / 64)? = 1 << (cpu % 64);
    let was = Affinity { mask: old, cpu };
    (errno(got).is_none() && errno(mask).is_none() && set_affinity(&one)).then_some(was)
}

/// The processors that a thread was allowed to use before [`pin`].
pub(crate) struct Affinity {
    mask: [usize; CPU_WORDS],
    cpu: u32,
}

impl Affinity {
    /// Lets the calling thread run on all these processors except the pinned one. Returns false if
    /// there is no other.
    pub(crate) fn elsewhere(&self) -> bool {
        let mut mask = self.mask;
        if let Some(word) = mask.get_mut(self.cpu as usize / 64) {
            *word &= !(1 << (self.cpu % 64));
        }
        mask.iter().any(|w| *w != 0) && set_affinity(&mask)
    }
}

fn set_affinity(mask: &[usize; CPU_WORDS]) -> bool {
    let args = [0, size_of_val(mask), mask.as_ptr() as usize, 0, 0, 0];
    // SAFETY: reads as many bytes as `mask` has.
    errno(unsafe { call(libc::SYS_sched_setaffinity, args) }).is_none()
}
