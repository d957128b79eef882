//! The hand-shake: one piece of code in each blob that asks the launcher and waits, up to a limit.
//!
//! In: rcx the address to continue at and the question, r11 a node (or table). Out: r11 the answer, or its old value;
//! rcx and flags are lost. Calls that a signal handler makes meanwhile find the slot in use and go on at once.

use super::emitter::{Emitted, Emitter, Origin, asm, at, gs, gs32};
use super::who::{quiet, who};
use super::{handshake_time, no_calls, no_program, ring, stack_walk};
use crate::layout::{GLOBAL, IMAGE, Question, Saved, WRITE_CODE, global, image, piece, slot, state};
use crate::numbers::{CLOSE, FUTEX, MADVISE, MMAP, MPROTECT, OPEN, SCHED_YIELD};
use iced_x86::code_asm::*;

/// Not FUTEX_PRIVATE_FLAG: the launcher is another process.
const FUTEX_WAIT: i32 = 0;
const FUTEX_WAKE: u32 = 1;
/// Attempts of a thread to wake a launcher that is about to sleep.
const WAKES: u32 = 64;
/// Offset in an rseq area of the thread's processor (include/uapi/linux/rseq.h: `cpu_id`).
const RSEQ_CPU_ID: i32 = 4;

/// Saved registers in the order in which they are restored: rbp, by which unwinders find the others, is the last of
/// those that the stub changes.
const SAVED: [(AsmRegister64, Saved); 14] = [
    (rax, Saved::Rax),
    (rdi, Saved::Rdi),
    (rsi, Saved::Rsi),
    (rdx, Saved::Rdx),
    (r10, Saved::R10),
    (r8, Saved::R8),
    (r9, Saved::R9),
    (rbp, Saved::Rbp),
    (rsp, Saved::Rsp),
    (rbx, Saved::Rbx),
    (r12, Saved::R12),
    (r13, Saved::R13),
    (r14, Saved::R14),
    (r15, Saved::R15),
];

/// Number of registers that the stub itself changes.
const CHANGED: usize = 8;

/// Writes the stub, its entry first.
pub(super) fn stub(e: &mut Emitter) -> Emitted {
    let (busy, out, queue, answered) = (e.label(), e.label(), e.label(), e.label());
    e.stands_for(Origin::InRcx);
    e.a.lock().bts(gs32(slot::STATE), 0u32)?;
    asm!(e; jc(busy); mov(gs(slot::RESUME), rcx); mov(gs(slot::ANSWER), r11););
    for (register, saved) in SAVED {
        asm!(e; mov(gs(saved.offset()), register););
    }
    asm!(e; mov(rbp, gs(slot::SELF)););
    e.stands_for(Origin::InSlot);
    let (given_up, fin) = (e.label(), e.label());
    let ways = ring::Ways { ask: e.label(), asked: e.label(), done: e.label() };
    ring::divide(e, ways)?;
    e.here(ways.ask)?;
    stack_walk::by_itself(e, ways.done)?;
    asm!(e; mov(r11, GLOBAL); cmp(dword_ptr(r11 + global::DEAD as i32), 0); jne(given_up););
    asm!(e; test(dword_ptr(r11 + global::OWNER as i32), global::OWNER_DIED as i32); jne(given_up););
    asm!(e; mov(r11, IMAGE + image::DEAD); cmp(dword_ptr(r11), 0); jne(given_up););
    no_program::absent(e, ways.done)?;
    who(e)?;
    no_calls::known(e, ways.done)?;
    asm!(e; rdtsc(); shl(rdx, 32u32); or(rax, rdx); mov(gs(slot::WAIT_START), rax););
    handshake_time::begin(e)?;
    e.here(queue)?;
    patience(e)?;
    enqueue(e)?;
    spin(e, answered)?;
    sleep(e, answered, out)?;
    e.here(answered)?;
    request(e, queue, fin)?;
    asm!(e; jmp(fin););
    e.here(out)?;
    give_up(e, answered)?;
    e.here(given_up)?;
    unheard(e)?;
    e.here(fin)?;
    handshake_time::end(e)?;
    stack_walk::take_answer(e)?;
    asm!(e; jmp(ways.asked););
    e.here(ways.done)?;
    asm!(e; mov(rcx, gs(slot::RESUME)); shl(rcx, 16u32); shr(rcx, 16u32););
    for (register, saved) in &SAVED[..CHANGED] {
        asm!(e; mov(*register, gs(saved.offset())););
    }
    e.stands_for(Origin::InRcx);
    asm!(e; mov(r11, gs(slot::ANSWER)); mov(gs32(slot::STATE), state::IDLE); jmp(rcx););
    taken(e, busy)
}

/// Handles a call of a signal handler that interrupted the thread's hand-shake or jumped out of it. A call that asks
/// for its context gets none, and other questions are not asked. Keeps r11, the node that then counts the call.
fn taken(e: &mut Emitter, busy: CodeLabel) -> Emitted {
    let (context, aside, done) = (e.label(), e.label(), e.label());
    e.here(busy)?;
    asm!(e; bt(rcx, bit(Question::ASIDE)); jc(aside); bt(rcx, bit(Question::MATTERS)); jnc(context););
    asm!(e; mov(r11, IMAGE + image::UNHEARD););
    e.a.lock().inc(qword_ptr(r11))?;
    asm!(e; jmp(done););
    e.here(context)?;
    asm!(e; inc(gs(slot::UNASKED)); jmp(done););
    e.here(aside)?;
    asm!(e; mov(gs(slot::RING_MISSED), 1););
    e.here(done)?;
    // Clear bit by bit, so that the address in the low bits can be read at every instruction.
    for bit in 48..64u32 {
        asm!(e; btr(rcx, bit););
    }
    asm!(e; jmp(rcx););
    Ok(())
}

/// Returns the bit of a question in the word that carries it.
const fn bit(of: u16) -> u32 {
    48 + of.trailing_zeros()
}

/// Decides how often to poll for the answer before sleeping. A launcher on the thread's own processor can only answer
/// once the thread sleeps. The rseq area, which the kernel keeps up to date, is only read; without one the launcher is
/// assumed to be elsewhere.
fn patience(e: &mut Emitter) -> Emitted {
    let elsewhere = e.label();
    asm!(e; mov(r11, GLOBAL); mov(r8, at(r11, global::SPINS)););
    asm!(e; mov(rax, gs(slot::RSEQ)); test(rax, rax); je(elsewhere););
    asm!(e; mov(eax, dword_ptr(rax + RSEQ_CPU_ID)); cmp(eax, dword_ptr(r11 + global::PROCESSOR as i32)););
    asm!(e; jne(elsewhere); xor(r8d, r8d););
    e.here(elsewhere)?;
    asm!(e; mov(gs(slot::PATIENCE), r8););
    Ok(())
}

/// Queues the slot and wakes the launcher if it sleeps. r8 is kept, or zero if the launcher had to be woken, which
/// takes longer than a thread polls. All else is lost.
///
/// The launcher clears AWAKE before it checks the queues for the last time: either it sees the entry, or the thread
/// sees that it sleeps; the locked instruction keeps the order. A wake-up between that check and the sleep is lost,
/// so it is tried again.
fn enqueue(e: &mut Emitter) -> Emitted {
    let (awake, again, woken) = (e.label(), e.label(), e.label());
    asm!(e; mov(gs32(slot::STATE), state::WAITING); mov(r11, IMAGE); mov(eax, 1););
    e.a.lock().xadd(at(r11, image::TICKET), rax)?;
    asm!(e; and(eax, (image::RING_LEN - 1) as i32); mov(rdx, gs(slot::TAG)););
    asm!(e; xchg(qword_ptr(r11 + rax * 8 + image::RING as i32), rdx););
    asm!(e; mov(r11, GLOBAL); cmp(dword_ptr(r11 + global::AWAKE as i32), 0); jne(awake););
    quiet(e, awake)?;
    asm!(e; mov(r9d, WAKES););
    e.here(again)?;
    asm!(e; mov(rdi, GLOBAL + global::WAKE); mov(esi, FUTEX_WAKE); mov(edx, 1); mov(eax, FUTEX); syscall(););
    asm!(e; test(eax, eax); jne(woken); mov(r11, GLOBAL); cmp(dword_ptr(r11 + global::AWAKE as i32), 0); jne(awake););
    // Yield: the launcher, which is about to fall asleep, may need this processor for it.
    asm!(e; sub(r9d, 1); je(awake); mov(eax, SCHED_YIELD); syscall(); jmp(again););
    e.here(woken)?;
    asm!(e; xor(r8d, r8d););
    e.here(awake)?;
    Ok(())
}

/// Polls r8 times for an answer without sleeping.
fn spin(e: &mut Emitter, answered: CodeLabel) -> Emitted {
    let (again, tired) = (e.label(), e.label());
    e.here(again)?;
    asm!(e; cmp(gs32(slot::STATE), state::WAITING); jne(answered); sub(r8, 1); jle(tired); pause(); jmp(again););
    e.here(tired)?;
    Ok(())
}

/// Sleeps until there is an answer or the time is over. Signals cut sleep short, so the clock decides.
fn sleep(e: &mut Emitter, answered: CodeLabel, out: CodeLabel) -> Emitted {
    let (again, clock, short, awake) = (e.label(), e.label(), e.label(), e.label());
    e.here(again)?;
    // A launcher that leaves says so first, and then answers those who wait: either it sees this thread, or the thread sees
    // that it leaves. The locked instructions that queued the thread keep the order.
    asm!(e; mov(r11, GLOBAL); cmp(dword_ptr(r11 + global::DEAD as i32), 0); jne(out););
    asm!(e; lea(r9, at(r11, global::LIMIT_CYCLES)); lea(r10, at(r11, global::LIMIT)););
    asm!(e; mov(rax, gs(slot::RESUME)); shr(rax, 48u32););
    asm!(e; sub(eax, Question::Mapped as i32); cmp(eax, (Question::Confine as i32) - (Question::Mapped as i32)); ja(short););
    // Each sleep is still no longer than the short limit, so that the launcher's end is noticed soon.
    asm!(e; add(r9, (global::LONG_LIMIT_CYCLES - global::LIMIT_CYCLES) as i32););
    e.here(short)?;
    quiet(e, awake)?;
    asm!(e; mov(rdi, gs(slot::SELF)); add(rdi, slot::STATE as i32); mov(esi, FUTEX_WAIT););
    asm!(e; mov(edx, state::WAITING); mov(eax, FUTEX); syscall(); jmp(clock););
    e.here(awake)?;
    asm!(e; pause(););
    e.here(clock)?;
    asm!(e; cmp(gs32(slot::STATE), state::WAITING); jne(answered); mov(r11, GLOBAL););
    asm!(e; test(dword_ptr(r11 + global::OWNER as i32), global::OWNER_DIED as i32); jne(out););
    asm!(e; rdtsc(); shl(rdx, 32u32); or(rdx, rax); mov(rax, rdx); sub(rax, gs(slot::WAIT_START)););
    asm!(e; cmp(rax, qword_ptr(r9)); jb(again););
    // The limit is over, but the launcher may be working on something long. Its clock may be a little ahead.
    asm!(e; mov(r11, GLOBAL); mov(rax, at(r11, global::BUSY)); test(rax, rax); je(out););
    asm!(e; sub(rdx, rax); cmp(rdx, at(r11, global::BUSY_CYCLES)); jl(again); jmp(out););
    Ok(())
}

/// Makes the system calls that the launcher requests, up to one that fails. Then queues again, or continues at `fin` if
/// none has failed and the launcher allows it.
fn request(e: &mut Emitter, queue: CodeLabel, fin: CodeLabel) -> Emitted {
    const FIRST_ERROR: i32 = -4095;
    let (done, next, call, reply, last, back) = (e.label(), e.label(), e.label(), e.label(), e.label(), e.label());
    asm!(e; cmp(gs32(slot::STATE), state::REQUEST); jne(done););
    e.here(next)?;
    for (register, nth) in [rax, rdi, rsi, rdx, r10, r8, r9].into_iter().zip(0..) {
        asm!(e; mov(register, requested(nth)););
    }
    asm!(e; cmp(rax, WRITE_CODE as i32); jne(call););
    write_code(e, reply)?;
    e.here(call)?;
    asm!(e; syscall(););
    e.here(reply)?;
    asm!(e; mov(gs(slot::REPLY), rax); cmp(rax, FIRST_ERROR); jae(back););
    asm!(e; mov(rcx, gs(slot::REQUESTS_NEXT)); cmp(rcx, gs(slot::REQUESTS_END)); jae(last););
    for word in (0..slot::REQUEST_LEN).step_by(8) {
        asm!(e; mov(rax, qword_ptr(rcx + word as i32).gs()); mov(requested(word / 8), rax););
    }
    asm!(e; add(rcx, slot::REQUEST_LEN as i32); mov(gs(slot::REQUESTS_NEXT), rcx); jmp(next););
    e.here(last)?;
    asm!(e; cmp(gs(slot::REQUESTS_LET_GO), 0); je(back); mov(gs(slot::REQUESTS_LET_GO), 0); jmp(fin););
    e.here(back)?;
    // The launcher is alive, so the wait begins anew.
    asm!(e; rdtsc(); shl(rdx, 32u32); or(rax, rdx); mov(gs(slot::WAIT_START), rax); jmp(queue););
    e.here(done)?;
    Ok(())
}

/// Returns word `nth` of the launcher's request.
fn requested(nth: u64) -> AsmMemoryOperand {
    gs(slot::REQUEST + 8 * nth)
}

/// Writes over code as [`WRITE_CODE`] says; its words are in the registers of a system call's arguments. The pages
/// are writable only during the write, and executable all the time, so that no policy forbids making them executable
/// again. rax is negative if the kernel refuses; nothing is written if it refuses the first change.
///
/// One call makes all adjacent pages private to the process: a page fault at each page's first byte takes half as
/// long again. Kernels before 5.14 don't know that call, and any may refuse it; then those faults occur.
fn write_code(e: &mut Emitter, reply: CodeLabel) -> Emitted {
    let (next, write, byte, end) = (e.label(), e.label(), e.label(), e.label());
    asm!(e; mov(eax, MPROTECT); syscall(); test(rax, rax); jne(reply););
    e.here(next)?;
    asm!(e; cmp(at(r8, piece::LEN), 0); je(end); mov(rsi, at(r8, piece::OWN)); test(rsi, rsi); je(write););
    asm!(e; mov(rdi, at(r8, piece::AT)); add(rdi, r9); and(rdi, -4096););
    asm!(e; mov(edx, libc::MADV_POPULATE_WRITE); mov(eax, MADVISE); syscall(););
    e.here(write)?;
    asm!(e; mov(rcx, at(r8, piece::LEN)); mov(rdi, at(r8, piece::AT)); add(rdi, r9););
    asm!(e; lea(rsi, at(r8, piece::BYTES)); lea(r8, qword_ptr(rsi + rcx + 7)); and(r8, -8););
    // Don't use a string instruction: the program decides its direction.
    e.here(byte)?;
    asm!(e; mov(al, byte_ptr(rsi)); mov(byte_ptr(rdi), al); add(rsi, 1); add(rdi, 1); sub(rcx, 1); jne(byte););
    asm!(e; jmp(next););
    e.here(end)?;
    asm!(e; mov(rdi, requested(1)); mov(rsi, requested(2)); mov(rdx, requested(4)); mov(eax, MPROTECT););
    asm!(e; syscall(); jmp(reply););
    Ok(())
}

/// Withdraws the question, unless the answer has just come, and notes that the launcher is gone.
fn give_up(e: &mut Emitter, answered: CodeLabel) -> Emitted {
    asm!(e; mov(eax, state::WAITING); mov(ecx, state::FILLING););
    e.a.lock().cmpxchg(gs32(slot::STATE), ecx)?;
    asm!(e; jne(answered); mov(r11, IMAGE + image::DEAD); mov(dword_ptr(r11), 1););
    asm!(e; mov(r11, IMAGE + image::UNANSWERED););
    e.a.lock().inc(qword_ptr(r11))?;
    Ok(())
}

/// Notes a question that no launcher heard, if counts suffer from that.
fn unheard(e: &mut Emitter) -> Emitted {
    let context = e.label();
    part_alone(e)?;
    asm!(e; mov(rax, gs(slot::RESUME)); bt(rax, bit(Question::MATTERS)); jnc(context););
    asm!(e; mov(r11, IMAGE + image::UNHEARD););
    e.a.lock().inc(qword_ptr(r11))?;
    e.here(context)?;
    Ok(())
}

/// Without a launcher, nobody gives the process an image of its own before it changes its rights. Therefore the thread
/// maps a private copy of the image itself, in place and with its contents: from then on the process writes nothing
/// that others read. This needs the right to open the file of a mapping, which root has.
fn part_alone(e: &mut Emitter) -> Emitted {
    const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let (parts, done) = (e.label(), e.label());
    asm!(e; mov(rax, gs(slot::RESUME)); shr(rax, 48u32); cmp(eax, Question::Identity as i32); je(parts););
    asm!(e; cmp(eax, Question::Confine as i32); jne(done););
    e.here(parts)?;
    quiet(e, done)?;
    asm!(e; mov(rdi, IMAGE + image::MAPPED_FILE); mov(esi, libc::O_RDWR | libc::O_CLOEXEC); xor(edx, edx););
    asm!(e; mov(eax, OPEN); syscall(); test(rax, rax); js(done););
    asm!(e; mov(r8, rax); mov(rdi, IMAGE); mov(rsi, image::SIZE); mov(edx, libc::PROT_READ | libc::PROT_WRITE););
    asm!(e; mov(r10d, PRIVATE); xor(r9d, r9d); mov(eax, MMAP); syscall(););
    asm!(e; mov(rdi, r8); mov(eax, CLOSE); syscall(););
    e.here(done)?;
    Ok(())
}
