//! A thread's slot, as offsets from its gs base.

use super::stack;

/// Bytes of a slot.
pub const SIZE: u64 = 1 << SHIFT;
/// log2 of [`SIZE`].
pub const SHIFT: u32 = 22;

// A forked process continues with the words up to INHERITED.

/// u64: time stamp counter at the entry of the pending call, and bits of [`super::timing`]; zero: it is not timed.
pub const START: u64 = 0x00;
/// u64: rsp of the pending call, zero between calls.
pub const RSP: u64 = 0x08;
/// u64: node of the pending call.
pub const NODE: u64 = 0x10;
/// u64: address of the thread's rseq area; zero: there is none that may be used.
pub const RSEQ: u64 = 0x18;
/// u64: treatment of each call beside counting, one of [`super::want`].
pub const WANT: u64 = 0x20;
/// u64: bytes of [`STACK`] in use.
pub const DEPTH: u64 = 0x28;
/// u64: lower bound of the memory around the thread's stack: words that begin from here on and below [`STACK_HIGH`] can
/// be read, see [`super::stack`].
pub const STACK_LOW: u64 = 0x30;
/// u64: upper bound of that memory, see [`STACK_LOW`]; zero: no memory is known to be readable.
pub const STACK_HIGH: u64 = 0x38;
/// u32: state of the hand-shake, one of [`super::state`].
pub const STATE: u64 = 0x40;
/// u64: bits 0..48 hold the address at which the thread continues; the bits above hold the question, a
/// [`super::Question`].
pub const RESUME: u64 = 0x48;
/// u64: while a question is pending, the node that counts the call if there is no answer; then the answer, if it is a
/// node.
pub const ANSWER: u64 = 0x50;
/// u64: time stamp counter when the wait began.
pub const WAIT_START: u64 = 0x58;
/// Registers at the hook, in the order of [`super::Saved`].
pub const REGISTERS: u64 = 0x60;
/// Seven u64: a system call that the launcher asks the thread to make (rax, rdi, rsi, rdx, r10, r8, r9), see
/// [`super::state::REQUEST`].
pub const REQUEST: u64 = 0xd0;
/// u64: result of the last requested call; if several were made and one failed, that of the one that failed.
pub const REPLY: u64 = 0x108;
/// u64: [`SIGRETURNS`] when the signal mask was last about to change.
pub const MASK_SEQUENCE: u64 = 0x110;
/// Calls interrupted by a signal handler that made calls itself: entries of [`STACK_ENTRY`] bytes with rsp, start and
/// node.
pub const STACK: u64 = 0x118;
/// Bytes of an entry of [`STACK`].
pub const STACK_ENTRY: u64 = 24;
/// Bytes of [`STACK`].
pub const STACK_SIZE: u64 = 16 * STACK_ENTRY;
/// u64: offset in the slot of the header of the window that the thread writes.
pub const RING_HEADER: u64 = STACK + STACK_SIZE;
/// u64: offset in the slot of the buffer in which the window's calls are written, see [`super::ring`].
pub const RING_BUFFER: u64 = RING_HEADER + 0x08;
/// u64: offset in the slot of the next free byte for the memory of arguments.
pub const RING_DATA: u64 = RING_HEADER + 0x10;
/// u64: offset in the slot of the last written call that has not returned; zero: none.
pub const RING_UNDER_WAY: u64 = RING_HEADER + 0x18;
/// u64: descriptors below 64 whose names are in the window already, a bit for each.
pub const RING_NAMED: u64 = RING_HEADER + 0x20;
/// [`RING_SCRATCH_LEN`] words that are used while a call is written.
pub const RING_SCRATCH: u64 = RING_HEADER + 0x28;
/// Number of words in [`RING_SCRATCH`].
pub const RING_SCRATCH_LEN: u64 = 9;
/// u64: signal mask of the thread, if it is known: then bit 8 (SIGKILL's, which no mask contains) is set.
pub const MASK: u64 = RING_SCRATCH + 8 * RING_SCRATCH_LEN;
/// u64: number of `rt_sigreturn` calls made.
pub const SIGRETURNS: u64 = MASK + 8;
/// End of the words that a forked process inherits.
pub const INHERITED: u64 = SIGRETURNS + 8;

/// u64: the slot's own address.
pub const SELF: u64 = 0x400;
/// u64: entry of the slot in the queue: the image's number << 16, plus the slot's index, plus one.
pub const TAG: u64 = 0x408;
/// u64: address of the slot of the thread that made this one, zero in the first.
pub const PARENT: u64 = 0x410;
/// u64, not zero: the thread is about to end, or was never made.
pub const LEAVING: u64 = 0x418;
/// u64: thread id as seen by the thread's maker; zero until the call that made it returned.
pub const MADE_AS: u64 = 0x420;
/// u64: r9 of the thread's maker.
pub const MAKER_R9: u64 = 0x428;
/// u32: thread id, zero while unknown.
pub const TID: u64 = 0x430;
/// u32: process id, zero while unknown.
pub const PID: u64 = 0x438;
/// Four u64: answers of getpid, gettid, getuid, geteuid; bit 32 is set if the answer is known.
pub const ANSWERS: u64 = 0x440;
/// Number of answers in [`ANSWERS`].
pub const ANSWER_COUNT: u64 = 4;
/// End of the words that are cleared for a new thread.
pub const CLEARED: u64 = ANSWERS + 8 * ANSWER_COUNT;
/// u64: failed calls for which there was no entry in [`ERRORS`].
pub const ERRORS_LOST: u64 = 0x460;
/// u64: contexts not asked for, because the thread was waiting already.
pub const UNASKED: u64 = 0x468;

/// struct timespec: processor time of the process when this thread was about to end; zeroes if it has not noted it.
pub const CPU: u64 = 0x470;
/// Three u64: registers saved while the kernel is asked for [`CPU`].
pub const ASIDE: u64 = 0x480;

/// u64: processor time that the thread has spent on asking, ns.
pub const ASKED_NS: u64 = 0x498;
/// u64: [`SIGRETURNS`] at the beginning of the last call that a handler may cut short.
pub const SIGRETURNS_BEFORE: u64 = 0x4a0;
/// u64: number of times that the thread polls for this answer, at most; zero if the launcher is on the same
/// processor.
pub const PATIENCE: u64 = 0x4a8;
/// u32: pending calls of `execve` about which the launcher was not asked, as their file does not exist; more than one
/// if a handler makes such a call during another.
pub const EXECS_UNASKED: u64 = 0x4b0;

/// u32: number of pieces of [`FRAMES`] used so far.
pub const FRAME_COUNT: u64 = 0xf80;
/// Call frame information for one address each: [`FRAMES_LEN`] pieces of [`super::image::FRAME`] bytes, used in turn,
/// since a handler that unwinds may interrupt another.
pub const FRAMES: u64 = 0x1000;
/// Number of pieces of [`FRAMES`], a power of two.
pub const FRAMES_LEN: u64 = 16;

/// u32, not zero: the thread has changed its user, and may again. Cleared for a new thread together with the next word.
pub const USER_CHANGES: u64 = 0x4d8;
/// u32, not zero: the thread may be in another user namespace than that of [`super::image::USERS_NAMED`]. A new thread
/// has its maker's.
pub const USERS_UNNAMED: u64 = USER_CHANGES + 4;
/// u64: index in [`ANSWERS`], plus one, of the pending call that is made by number; zero: none of them.
pub const ASKED: u64 = 0x4e0;
/// u32, not zero: the thread's rseq area is being changed, and [`AREA_ASIDE`] is in use; or the thread had one that
/// could not be used, and will not get another.
pub const AREA_BUSY: u64 = 0x560;
/// Five u64: registers saved while [`AREA_BUSY`] is set.
pub const AREA_ASIDE: u64 = 0x568;

/// u64: reason why the pending `rt_sigprocmask` was not answered in place, one of the values below.
pub const WHY: u64 = 0x4e8;
/// Five u64: calls that had to be made, one for each of [`ANSWERS`] and one for `rt_sigprocmask`: it changed the mask
/// or failed, or was the thread's first question.
pub const NEEDED: u64 = 0x4f0;
/// [`WHYS`] u64: numbers of `rt_sigprocmask` calls that were made but changed nothing, by reason.
pub const MISSED: u64 = 0x518;
/// Number of reasons in [`WHY`], a power of two.
pub const WHYS: u64 = 4;
/// Value of [`WHY`]: the call seemed to change something.
pub const CHANGES: u64 = 0;
/// Value of [`WHY`]: the mask was unknown since a signal, or since another program had the processor.
pub const UNKNOWN: u64 = 1;
/// Value of [`WHY`]: a mask lies in memory that the kernel has not touched since memory was last unmapped.
pub const ELSEWHERE: u64 = 2;
/// Value of [`WHY`]: no call was answered in place at that time, see [`super::image::ELIDE`].
pub const DOWN: u64 = 3;
/// u64: mask before a call that did not ask for it.
pub const OLD_MASK: u64 = 0x538;
/// u64: [`super::image::MAPS`] right before the pending `rt_sigprocmask`.
pub const MAPS_BEFORE: u64 = 0x540;

/// struct timespec: the thread's processor time when it began to ask; the second half is zero if it asks nothing.
pub const ASKED_FROM: u64 = 0x5a0;
/// struct timespec: the thread's processor time when it continued.
pub const ASKED_TO: u64 = 0x5b0;
/// u64: number of questions that [`ASKED_NS`] covers.
pub const ASKED_TIMES: u64 = 0x5c0;
/// u64: cycles that passed in waits of a thread that may make no system call, and so can't read its processor time.
pub const QUIET_CYCLES: u64 = 0x5c8;

/// u64: number of entries of [`STACKS`] made so far.
pub const STACKS_COUNT: u64 = 0x548;
/// u64: number of entries at which the thread next asks the launcher for the bounds of its stack's memory.
pub const STACKS_ASK: u64 = 0x550;
/// u64: number of entries of [`OWN_MEMORY`] made so far.
pub const OWN_MEMORY_COUNT: u64 = 0x558;
/// u64: number of times that memory to be copied lay in no entry of [`OWN_MEMORY`].
pub const OWN_MEMORY_MISSED: u64 = 0x5e8;
/// u64: value of [`OWN_MEMORY_MISSED`] at which the thread next asks the kernel for the memory's mapping.
pub const OWN_MEMORY_ASK: u64 = 0x5f0;
/// The five words above, and [`VDSO_HIGH`], which a new thread or process does not inherit.
pub const MEMORY_WORDS: [u64; 6] =
    [STACKS_COUNT, STACKS_ASK, OWN_MEMORY_COUNT, OWN_MEMORY_MISSED, OWN_MEMORY_ASK, VDSO_HIGH];

/// u64: state of the generator that draws places for windows; zero: not started.
pub const RING_SEED: u64 = 0x5d0;
/// u64: number of entries of [`LONG_CALLS`] used so far.
pub const LONG_COUNT: u64 = 0x5d8;
/// u64: state of the generator that draws which calls are timed. It begins with zero, and [`TAG`] makes its numbers
/// different in each thread, but the same in a run whose threads begin in the same order.
pub const TIME_SEED: u64 = 0x5e0;
/// u64: windows not opened for lack of room.
pub const RING_REFUSED: u64 = 0x600;
/// u64, not zero: a handler made calls while the thread was writing, and they were not written.
pub const RING_MISSED: u64 = 0x608;
/// u64: cycles that the thread has spent on writing.
pub const RING_CYCLES: u64 = 0x610;
/// u64: number of calls written so far.
pub const RING_CALLS: u64 = 0x618;
/// u64: offset in the slot of the header of the buffer that samples fill; zero: none yet.
pub const LOOK_HEADER: u64 = 0x620;
/// u64: offset in the slot of the next free byte for the memory of samples' arguments.
pub const LOOK_DATA: u64 = 0x628;
/// u64: flags of the call that is about to be written as a sample; zero: it is none.
pub const LOOK_FLAGS: u64 = 0x630;
/// u64: number of calls for which the current buffer has room.
pub const RING_MOST: u64 = 0x638;
/// u64: offset in the slot up to which the current window's pages are allocated.
pub const RING_REACH: u64 = 0x640;
/// u64: minor page faults that the thread has taken within windows to allocate more of them.
pub const RING_FAULTS: u64 = 0x648;
/// u64, not zero: the launcher should tell the bounds of the memory in which the thread's stack lies.
pub const STACK_ASKED: u64 = 0x650;
/// u64: the launcher's answer for [`STACK_LOW`].
pub const STACK_ANSWER_LOW: u64 = 0x658;
/// u64: the launcher's answer for [`STACK_HIGH`]; zero: none.
pub const STACK_ANSWER_HIGH: u64 = 0x660;
/// u64: a word that the kernel has copied from the stack.
pub const STACK_WORD: u64 = 0x668;
/// u64: what [`STACK_LOW`] is, for calls into the vDSO: Go makes these on another stack than all others, in turns with them.
pub const VDSO_LOW: u64 = 0x670;
/// u64: what [`STACK_HIGH`] is, for calls into the vDSO.
pub const VDSO_HIGH: u64 = 0x678;
/// Two struct iovec, local and remote, for copies by the kernel.
pub const RING_VECTORS: u64 = 0x680;
/// Text of a path, which ends at [`RING_PATH_END`].
pub const RING_PATH: u64 = 0x6a0;
/// End of [`RING_PATH`].
pub const RING_PATH_END: u64 = 0x6d0;
/// struct rusage in which the kernel counts page faults.
pub const RING_USAGE: u64 = 0x6d0;
/// Buffer of [`super::ring::MOST`] bytes into which the kernel copies for the thread.
pub const RING_BOUNCE: u64 = 0x760;
/// Headers of the buffers: [`super::ring::COUNT`] of [`super::ring::HEADER`] bytes.
pub const RING_HEADERS: u64 = 0x860;

/// u64: offset in the slot of the next call to make after [`REQUEST`] has succeeded; none is left at [`REQUESTS_END`].
pub const REQUESTS_NEXT: u64 = 0xc60;
/// u64: offset behind the last call, see [`REQUESTS_NEXT`].
pub const REQUESTS_END: u64 = 0xc68;
/// u64, not zero: the thread continues with [`ANSWER`] when all requested calls have been made, unless one fails.
pub const REQUESTS_LET_GO: u64 = 0xc70;
/// [`MOST_REQUESTS`] requested calls of seven u64, like [`REQUEST`].
pub const REQUESTS: u64 = 0xc80;
/// Bytes of a requested call.
pub const REQUEST_LEN: u64 = 56;
/// Number of calls in [`REQUESTS`], at most.
pub const MOST_REQUESTS: u64 = 8;

/// Memory of the stacks that the thread was on, [`stack::LEN`] entries of [`stack::ENTRY`] bytes, used in turn.
pub const STACKS: u64 = 0xe40;
/// The program's private memory other than stacks: [`stack::OWN_LEN`] entries of the same kind.
pub const OWN_MEMORY: u64 = STACKS + stack::LEN * stack::ENTRY;

/// Failed calls by node and errno: groups of [`ERROR_GROUP`] entries of 16 bytes, each a key (record << 12 | errno,
/// zero: free) and a count.
pub const ERRORS: u64 = 0x2000;
/// Bytes of a group of [`ERRORS`].
pub const ERROR_GROUP: u64 = 1 << ERROR_GROUP_SHIFT;
/// log2 of [`ERROR_GROUP`].
pub const ERROR_GROUP_SHIFT: u32 = 8;
/// Number of groups of [`ERRORS`].
pub const ERROR_GROUPS: u64 = 1 << ERROR_GROUP_BITS;
/// log2 of [`ERROR_GROUPS`].
pub const ERROR_GROUP_BITS: u32 = 6;

/// Pages from which the kernel has read a mask: twice [`GOOD_LEN`] entries of two u64, an address on the page and
/// [`super::image::MAPS`] before the read. A page has a place in either half.
pub const GOOD_READ: u64 = 0x6000;
/// Pages to which the kernel has written a mask, in the form of [`GOOD_READ`].
pub const GOOD_WRITTEN: u64 = 0x6800;
/// Entries in each half of [`GOOD_READ`] and [`GOOD_WRITTEN`], a power of two.
pub const GOOD_LEN: u64 = 64;
/// log2 of the bytes of such an entry.
pub const GOOD_SHIFT: u32 = 4;

/// The records, from the first one on.
pub const RECORDS: u64 = 0x8000;
/// Number of records in a slot.
pub const RECORD_COUNT: u64 = (LONG_CALLS - RECORDS) / super::record::SIZE;
/// Entries of [`super::long`], used in turn.
pub const LONG_CALLS: u64 = RINGS - super::long::LEN * super::long::ENTRY;
/// Buffers for windows that the thread writes, [`super::ring::COUNT`] of [`super::ring::BUFFER`] bytes. They lie at the
/// end, so that without windows nothing of them is touched.
pub const RINGS: u64 = SIZE - super::ring::COUNT * super::ring::BUFFER;

/// Returns the offset in a slot of the record of context `index`; `None` if there is no room for it. Most counting
/// happens at contexts: their records are adjacent, so that a thread touches few pages.
#[must_use]
pub const fn record_offset(index: u64) -> Option<u64> {
    if index < RECORD_COUNT { Some(RECORDS + index * super::record::SIZE) } else { None }
}

/// Returns the offset in a slot of the record of root `index`; `None` if there is no room for it. Little is counted at
/// roots, whose records lie at the slot's other end.
#[must_use]
pub const fn root_record_offset(index: u64) -> Option<u64> {
    match RECORD_COUNT.checked_sub(index + 1) {
        Some(at) => record_offset(at),
        None => None,
    }
}

/// Returns the index of the record at `offset` in a slot; `None` if none begins there.
#[must_use]
pub const fn record_at(offset: u64) -> Option<u64> {
    match offset.checked_sub(RECORDS) {
        Some(distance)
            if distance.is_multiple_of(super::record::SIZE) && distance / super::record::SIZE < RECORD_COUNT =>
        {
            Some(distance / super::record::SIZE)
        }
        _ => None,
    }
}

const _: () = {
    assert!(VDSO_HIGH == VDSO_LOW + 8 && VDSO_HIGH < RING_VECTORS && STACK_WORD < VDSO_LOW);
    assert!(STACK_HIGH == STACK_LOW + 8 && stack::LEN.is_power_of_two() && stack::OWN_LEN.is_power_of_two());
    assert!(REQUESTS + MOST_REQUESTS * REQUEST_LEN <= STACKS);
    assert!(OWN_MEMORY + stack::OWN_LEN * stack::ENTRY <= FRAME_COUNT && MAPS_BEFORE < STACKS_COUNT);
    assert!(OWN_MEMORY_COUNT < AREA_BUSY && TIME_SEED < OWN_MEMORY_MISSED);
    assert!(OWN_MEMORY_ASK < RING_REFUSED);
};
