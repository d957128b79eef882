//! Typed wrappers of the system calls that this backend needs. Nearly all of its unsafe code is here.

pub(crate) use crate::sys::{children_times, now};
use crate::sys::{clock, range, read_ranges};
use crate::tracee::{Stop, Waited, wait_for};
use libc::c_void;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, FcntlArg, SealFlag, fallocate, fcntl};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal;
use nix::time::clock_getcpuclockid;
use nix::unistd::{Pid, Whence, lseek};
use std::fs::File;
use std::io::IoSliceMut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Creates a file in memory of `size` bytes, nearly all of them holes.
pub(crate) fn memory_file(size: u64) -> std::io::Result<File> {
    // Cloning moves the descriptor away from the standard streams, which may have been closed.
    let file = File::from(memfd_create(c"systoll", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?.try_clone()?);
    file.set_len(size)?;
    Ok(file)
}

/// Makes a system call. Returns its result, or the negated errno.
pub(crate) fn raw(number: libc::c_long, args: [u64; 6]) -> i64 {
    let [a, b, c, d, e, f] = args;
    // SAFETY: only [`in_child`] tries calls that touch memory, in a process of its own, and only memory that it has
    // mapped itself or owns.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result == -1 { i64::from(-(Errno::last() as i32)) } else { result }
}

/// The way in which a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Code(i32),
    Killed,
    Unknown,
}

/// Runs `work`, which may only make system calls, in a child that leaves no core file. The child's exit code is 0 if
/// `work` returns true.
pub(crate) fn in_child(work: impl FnOnce() -> bool) -> Ended {
    // SAFETY: the child of a process with threads makes system calls alone and leaves by one.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Ended::Unknown,
        0 => {
            raw(libc::SYS_prctl, [libc::PR_SET_DUMPABLE as u64, 0, 0, 0, 0, 0]);
            let good = work();
            // SAFETY: ends the child without running any code of its parent's.
            unsafe { libc::_exit(i32::from(!good)) }
        }
        pid => loop {
            match wait_for(pid, true) {
                Waited::Stop(Stop::Exited { code, .. }) => return Ended::Code(code),
                Waited::Stop(Stop::Killed { .. }) => return Ended::Killed,
                Waited::Stop(_) | Waited::NothingYet | Waited::Interrupted => {}
                Waited::NoChildren => return Ended::Unknown,
            }
        },
    }
}

/// Returns true if this process may read memory by the call that it uses for other processes.
pub(crate) fn reads_memory() -> bool {
    let (here, mut there) = (0x5157_u64.to_ne_bytes(), [0; 8]);
    let got = crate::sys::read_memory(std::process::id() as i32, here.as_ptr() as u64, &mut there);
    got == 8 && there == here
}

/// Gives the memory of a range of `file` back; the range then reads as zeroes.
pub(crate) fn punch_hole(file: &File, offset: u64, len: u64) {
    let mode = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    // If the call fails, the memory is given back when the file is closed.
    let _ = fallocate(file, mode, offset as i64, len as i64);
}

/// Returns the next range of `file`, from `offset` on, that is no hole.
pub(crate) fn data_range(file: &File, offset: u64) -> Option<(u64, u64)> {
    let start = lseek(file, offset as i64, Whence::SeekData).ok()?;
    let end = lseek(file, start, Whence::SeekHole).ok()?;
    (end > start).then_some((start as u64, end as u64))
}

/// Seals by which a file keeps its size.
pub(crate) const FIXED_SIZE: SealFlag = SealFlag::F_SEAL_SHRINK.union(SealFlag::F_SEAL_GROW);

/// Adds seals (F_ADD_SEALS of fcntl(2)). F_SEAL_WRITE is refused while the file is mapped to be written.
///
/// # Errors
/// The kernel's error.
pub(crate) fn seal(file: &File, seals: SealFlag) -> std::io::Result<()> {
    fcntl(file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(())
}

/// Returns the seals of a file; `None` if it does not live in memory.
pub(crate) fn seals(file: &File) -> Option<SealFlag> {
    fcntl(file, FcntlArg::F_GET_SEALS).ok().map(SealFlag::from_bits_retain)
}

/// Returns true if seals forbid further writable mappings of a file, or further seals.
pub(crate) fn forbids_writing(file: &File) -> bool {
    let forbidding = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_FUTURE_WRITE | SealFlag::F_SEAL_SEAL;
    seals(file).is_some_and(|seals| seals.intersects(forbidding))
}

/// Allocates the pages of a range of ours that is about to be written, all at once instead of one by one (madvise(2),
/// MADV_POPULATE_WRITE, Linux 5.14; older kernels allocate each page when it is written).
pub(crate) fn populate(at: *mut c_void, len: usize) {
    const PAGE: usize = 4096;
    let start = at as usize / PAGE * PAGE;
    // SAFETY: the range is a mapping of ours, whose contents stay as they are.
    unsafe { libc::madvise(start as *mut c_void, at as usize + len - start, libc::MADV_POPULATE_WRITE) };
}

/// Sleeps until `word` differs from `seen`, somebody wakes the sleeper, a signal comes, or `limit` is over.
pub(crate) fn futex_wait(word: &AtomicU32, seen: u32, limit: Duration) {
    let timeout = libc::timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
    // SAFETY: `word` and `timeout` live through the call; it only reads them.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, &raw const timeout, 0, 0) };
}

/// Wakes a sleeper on `word`.
pub(crate) fn futex_wake(word: &AtomicU32) {
    // SAFETY: a wake only uses the address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1, 0, 0, 0) };
}

/// The launcher's wake word, for the signal handler below; null while no thread sleeps on it.
static WAKE: std::sync::atomic::AtomicPtr<AtomicU32> = std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());

/// True if a child or tracee may have changed since the last check.
static CHANGED: AtomicBool = AtomicBool::new(true);

/// Returns true if a child or tracee may have changed since the last call.
pub(crate) fn children_changed() -> bool {
    CHANGED.swap(false, Ordering::SeqCst)
}

extern "C" fn child_changed(_: i32) {
    CHANGED.store(true, Ordering::SeqCst);
    let word = WAKE.load(Ordering::Acquire);
    if word.is_null() {
        return;
    }
    // SAFETY: a pointer that is not null is mapped until `ChildSignal` is dropped; an atomic addition and a futex call
    // are async-signal-safe, and errno is restored.
    unsafe {
        let errno = *libc::__errno_location();
        (*word).fetch_add(1, Ordering::SeqCst);
        libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, 1, 0, 0, 0);
        *libc::__errno_location() = errno;
    }
}

/// Sets the wake word that [`ChildSignal`] increments; it must stay mapped until another word, or none, is set.
pub(crate) fn aim(word: Option<&AtomicU32>) {
    WAKE.store(word.map_or(std::ptr::null_mut(), |w| w.as_ptr().cast()), Ordering::Release);
}

/// While this lives, the end or stop of a child or tracee increments the wake word and wakes its sleeper.
pub(crate) struct ChildSignal(libc::sigaction);

impl ChildSignal {
    pub(crate) fn new() -> Self {
        // SAFETY: both structs are valid; the handler is async-signal-safe.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = child_changed as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGCHLD, &action, &mut old);
            CHANGED.store(true, Ordering::SeqCst);
            Self(old)
        }
    }
}

impl Drop for ChildSignal {
    fn drop(&mut self) {
        // SAFETY: restores the previous action.
        unsafe { libc::sigaction(libc::SIGCHLD, &self.0, std::ptr::null_mut()) };
        aim(None);
    }
}

/// Reads pieces of another process's memory, given by address and length, into buffers of that length. Returns the
/// number of bytes read in all.
pub(crate) fn read_pieces(pid: i32, from: &[(u64, usize)], into: &mut [Vec<u8>]) -> usize {
    /// Pieces that the kernel reads in one call, at most (UIO_MAXIOV).
    const MOST: usize = 1024;
    let mut all = 0;
    for (from, into) in from.chunks(MOST).zip(into.chunks_mut(MOST)) {
        let theirs: Vec<_> = from.iter().map(|(at, len)| range(*at, *len)).collect();
        let mut ours: Vec<_> = into.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        all += read_ranges(pid, &theirs, &mut ours);
    }
    all
}

/// Returns the processor time in ns that process `pid` has used, including all its threads, even those that have ended;
/// `None` once the process has been waited for. For another process with running threads, the kernel returns the value
/// at the last tick of their timers, some milliseconds ago.
pub(crate) fn process_cpu(pid: i32) -> Option<u64> {
    clock(clock_getcpuclockid(Pid::from_raw(pid)).ok()?)
}

/// Returns the time stamp counter.
pub(crate) fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has it. A process that gave it up by PR_SET_TSC would get SIGSEGV; systoll does
    // not.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Returns true if programs may set their gs base themselves (HWCAP2_FSGSBASE, asm/hwcap2.h).
pub(crate) fn has_fsgsbase() -> bool {
    // SAFETY: getauxval only looks up a number.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & 2 != 0 }
}

/// Returns the number of processors on which this thread may run. Ignores CPU quotas, since reading them takes a dozen
/// files of control groups.
pub(crate) fn processors() -> usize {
    count(&sched_getaffinity(Pid::from_raw(0)).unwrap_or_default()).max(1)
}

fn count(set: &CpuSet) -> usize {
    (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).count()
}

/// Returns the processor on which this thread runs; a number that no processor has if it is unknown.
pub(crate) fn processor() -> u32 {
    // SAFETY: sched_getcpu takes nothing.
    u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(i32::MAX as u32)
}

/// Makes this thread avoid `processor`, if it may run on others.
pub(crate) fn keep_off(processor: usize) {
    if let Ok(mut may) = sched_getaffinity(Pid::from_raw(0))
        && may.unset(processor).is_ok()
    {
        // The kernel refuses if no processor is left.
        let _ = sched_setaffinity(Pid::from_raw(0), &may);
    }
}

/// Returns the processors on which this thread may run; `None` if they are unknown.
pub(crate) fn may_run_on() -> Option<CpuSet> {
    sched_getaffinity(Pid::from_raw(0)).ok()
}

/// Makes this thread run on `processors` only, if the kernel allows that.
pub(crate) fn run_on(processors: &CpuSet) {
    // If the kernel refuses, the thread runs where its maker may.
    let _ = sched_setaffinity(Pid::from_raw(0), processors);
}

/// The saved processor affinity of this thread, restored when dropped.
pub(crate) struct SavedAffinity(CpuSet);

impl SavedAffinity {
    /// Saves the thread's affinity; returns `None` if it is unknown.
    pub(crate) fn as_it_is() -> Option<Self> {
        sched_getaffinity(Pid::from_raw(0)).ok().map(Self)
    }

    /// Pins the thread to `processor`. Returns true if it may run there.
    pub(crate) fn on(&self, processor: usize) -> bool {
        let mut only = CpuSet::new();
        let may = self.0.is_set(processor).unwrap_or(false) && only.set(processor).is_ok();
        may && sched_setaffinity(Pid::from_raw(0), &only).is_ok()
    }

    /// Makes the thread, and threads that it starts from now on, avoid `processor`. Returns true if there are others.
    pub(crate) fn off(&self, processor: usize) -> bool {
        let mut others = self.0;
        others.unset(processor).is_ok() && sched_setaffinity(Pid::from_raw(0), &others).is_ok()
    }
}

impl Drop for SavedAffinity {
    fn drop(&mut self) {
        let _ = sched_setaffinity(Pid::from_raw(0), &self.0);
    }
}

/// All processors except the one on which this thread runs.
pub(crate) struct Away(CpuSet);

impl Away {
    /// Processor mask with every bit set: gives a process all processors back.
    pub(crate) const EVERYWHERE: u64 = u64::MAX;

    /// Returns the processors for process `pid` other than ours, if it may run everywhere, so that setting that again
    /// later changes nothing. Returns `None` if it may not, or if there are more processors than [`Away::EVERYWHERE`]
    /// has bits.
    pub(crate) fn from_here(pid: i32) -> Option<Self> {
        let mut may = sched_getaffinity(Pid::from_raw(pid)).ok()?;
        let set = count(&may);
        (set > 1 && Some(set) == few_online()).then_some(())?;
        may.unset(usize::try_from(processor()).ok()?).ok()?;
        Some(Self(may))
    }

    /// Keeps the process away from this processor until it is freed.
    pub(crate) fn keep(&self, pid: i32) {
        let _ = sched_setaffinity(Pid::from_raw(pid), &self.0);
    }
}

/// Returns the number of processors online; `None` if there may be more than 64.
fn few_online() -> Option<usize> {
    static ONLINE: OnceLock<Option<usize>> = OnceLock::new();
    let list = |name: &str| {
        let text =
            String::from_utf8(systoll_files::read_kernel(format!("/sys/devices/system/cpu/{name}"), 64).ok()?).ok()?;
        text.trim().split(',').map(range_of).collect::<Option<Vec<_>>>()
    };
    *ONLINE.get_or_init(|| {
        let few = list("possible")?.iter().all(|range| *range.end() < 64);
        few.then(|| list("online"))?.map(|all| all.into_iter().map(Iterator::count).sum())
    })
}

/// Parses a range as sysfs writes it: `0-3`, or one number.
fn range_of(text: &str) -> Option<std::ops::RangeInclusive<usize>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

/// Makes this thread, which works without pauses, yield as soon as others have something to do, by giving it short
/// turns (sched(7), SCHED_OTHER's slice; before Linux 6.12 this has no effect). Its share of the processor stays the
/// same.
pub(crate) fn take_short_turns() {
    /// The first version of struct sched_attr (include/uapi/linux/sched/types.h).
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    const SHORTEST_NS: u64 = 100_000;
    const SIZE: u32 = size_of::<Attributes>() as u32;
    let mut attributes = Attributes::default();
    // SAFETY: the size is that of the struct, which lives through the calls; 0 is this thread.
    unsafe {
        if libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, SIZE, 0) != 0 {
            return;
        }
        if attributes.policy == libc::SCHED_OTHER as u32 {
            attributes = Attributes { size: SIZE, runtime: SHORTEST_NS, ..attributes };
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
        }
    }
}

/// Returns the bytes of a System V shared memory segment.
pub(crate) fn segment_size(id: i32) -> Option<u64> {
    // SAFETY: a zeroed shmid_ds is valid to be written to, and is read after the kernel has filled it.
    unsafe {
        let mut about: libc::shmid_ds = std::mem::zeroed();
        (libc::shmctl(id, libc::IPC_STAT, &mut about) == 0).then_some(about.shm_segsz as u64)
    }
}

/// Returns true if a process or thread of this number exists, zombies included.
pub(crate) fn exists(pid: i32) -> bool {
    !matches!(signal::kill(Pid::from_raw(pid), None), Err(errno) if errno != Errno::EPERM)
}

/// Returns true if process `pid` has a thread `tid`, including ended ones that were not waited for.
pub(crate) fn thread_exists(pid: i32, tid: i32) -> bool {
    // SAFETY: signal 0 only asks.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, 0) };
    result == 0 || Errno::last() != Errno::ESRCH
}

/// Kills a child of ours that has not run an instruction of its program.
pub(crate) fn kill(pid: i32) {
    let _ = signal::kill(Pid::from_raw(pid), signal::Signal::SIGKILL);
}
