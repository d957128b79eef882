//! Code that runs behind a call: for its time, result, errors and bytes, and to reset the slot.
//!
//! While counters are updated, r11 holds the result and rcx the old rdx.

use super::Options;
use super::emitter::{Emitted, Emitter, asm, at, gs, gs_at, gs32};
use super::sampling::{self, Timing};
use super::shared_slot::unless_shared;
use crate::layout::{IMAGE, Question, image, long, node, record, slot, timing};
use crate::numbers::RT_SIGRETURN;
use iced_x86::code_asm::*;

/// The positive results that count as bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bytes {
    /// No result counts as bytes.
    No,
    /// Every positive result counts as bytes.
    Yes,
    /// Positive results count at nodes that say so ([`node::TRANSFERS`]).
    ByNode,
}

/// Facts about a site that the code behind a call needs.
#[derive(Clone, Copy)]
pub(super) struct Return {
    /// Address of the site's root.
    pub(super) root: u64,
    /// The calls of the site that are timed.
    pub(super) timing: Timing,
    /// The positive results that count as bytes.
    pub(super) bytes: Bytes,
    /// True if other code, too, leads here without a call.
    pub(super) is_target: bool,
    /// Bytes by which rsp is higher here than at the call.
    pub(super) lifted: u8,
}

/// Handles a call's return. Lost: rcx, r11, flags.
pub(super) fn after(e: &mut Emitter, options: &Options, site: Return) -> Emitted {
    let (matched, figures, end, displaced) = (e.label(), e.label(), e.label(), e.label());
    if site.lifted == 0 {
        asm!(e; cmp(gs(slot::RSP), rsp););
    } else {
        asm!(e; lea(r11, qword_ptr(rsp - i32::from(site.lifted))); cmp(gs(slot::RSP), r11););
    }
    asm!(e; jne(displaced););
    e.here(matched)?;
    match site.timing {
        Timing::None => {
            aside(e)?;
            record_of(e)?;
        }
        Timing::All => timed(e, options, None)?,
        Timing::Sampled { may_wait } => {
            let (one, was) = (e.label(), e.label());
            sampling::if_timed(e, may_wait, one, was)?;
            aside(e)?;
            record_of(e)?;
            let options = *options;
            e.cold(move |e| {
                let sample = e.label();
                if may_wait {
                    e.here(was)?;
                    sampling::counts_for_itself(e)?;
                }
                e.here(one)?;
                sampling::if_sample(e, sample)?;
                timed(e, &options, None)?;
                asm!(e; jmp(figures););
                e.here(sample)?;
                if may_wait {
                    // A call that waits is timed in any case, for itself.
                    let for_itself = e.label();
                    asm!(e; mov(rcx, gs(slot::RSEQ)); test(rcx, rcx); je(for_itself););
                    asm!(e; cmp(qword_ptr(rcx + 8), 0); je(for_itself););
                    e.cold(move |e| {
                        e.here(for_itself)?;
                        asm!(e; jmp(was););
                        Ok(())
                    });
                }
                sampling::counts_for_itself(e)?;
                timed(e, &options, Some(may_wait))?;
                asm!(e; jmp(figures););
                Ok(())
            });
        }
    }
    e.here(figures)?;
    asm!(e; inc(gs_at(rdx, record::RETURNED)););
    result(e, site.bytes)?;
    outer(e, end)?;
    e.here(end)?;
    asm!(e; mov(rax, r11); mov(rdx, rcx););
    let done = e.label();
    if options.windows {
        let ask = e.label();
        asm!(e; cmp(gs(slot::WANT), 0); jne(ask););
        e.ask_cold(Question::WindowReturn, ask, done);
    }
    e.here(done)?;
    e.cold(move |e| unmatched(e, site, displaced, matched, figures, done));
    Ok(())
}

/// Saves the result in r11, and rdx in rcx.
fn aside(e: &mut Emitter) -> Emitted {
    asm!(e; mov(r11, rax); mov(rcx, rdx););
    Ok(())
}

/// Loads the record of the returning call into rdx.
fn record_of(e: &mut Emitter) -> Emitted {
    asm!(e; mov(rdx, gs(slot::NODE)); mov(rdx, at(rdx, node::RECORD)););
    Ok(())
}

/// Times the returning call. `sample` is `Some` if the call counts for its block: of true if its kind may wait.
fn timed(e: &mut Emitter, options: &Options, sample: Option<bool>) -> Emitted {
    match sample {
        // A sample whose kind may wait has not waited, or it would count for itself.
        Some(true) => {}
        Some(false) => waited(e, record::SAMPLED_WAITED)?,
        None if options.waited => waited(e, record::WAITED)?,
        None => {}
    }
    aside(e)?;
    elapsed(e)?;
    record_of(e)?;
    time(e, options, sample.is_some())
}

/// Computes the cycles since the call's start in rax; rdx is lost.
fn elapsed(e: &mut Emitter) -> Emitted {
    asm!(e; rdtsc(); shl(rdx, 32u32); or(rax, rdx); sub(rax, gs(slot::START)););
    Ok(())
}

/// Counts the time so far as waiting if the thread was scheduled out. This path is rare and reads the clock itself,
/// since no register is left to remember it by.
fn waited(e: &mut Emitter, word: u64) -> Emitted {
    let (was, done) = (e.label(), e.label());
    asm!(e; mov(rcx, gs(slot::RSEQ)); test(rcx, rcx); je(done); cmp(qword_ptr(rcx + 8), 0); je(was););
    e.here(done)?;
    e.cold(move |e| {
        e.here(was)?;
        asm!(e; mov(r11, rax); mov(rcx, rdx););
        elapsed(e)?;
        asm!(e; mov(rdx, gs(slot::NODE)); mov(rdx, at(rdx, node::RECORD)); add(gs_at(rdx, word), rax););
        asm!(e; mov(rax, r11); mov(rdx, rcx); jmp(done););
        Ok(())
    });
    Ok(())
}

/// Counts a time. In: rax cycles, rdx the record. Lost: rax.
fn time(e: &mut Emitter, options: &Options, sample: bool) -> Emitted {
    let (longer, next, shorter, done) = (e.label(), e.label(), e.label(), e.label());
    asm!(e; add(gs_at(rdx, record::CYCLES), rax););
    if let Some(power) = options.long {
        keep_long(e, power)?;
    }
    if options.sampled {
        sampling::unless_long(e, sample)?;
    }
    if sample {
        sampling::add(e)?;
    }
    asm!(e; cmp(rax, gs_at(rdx, record::LONGEST)); ja(longer););
    e.here(next)?;
    // The shortest call has the largest complement.
    asm!(e; not(rax); cmp(rax, gs_at(rdx, record::SHORTEST)); ja(shorter););
    e.here(done)?;
    asm!(e; not(rax););
    // Zero has no highest bit.
    asm!(e; or(rax, 1); bsr(rax, rax););
    let bucket = qword_ptr(rdx + rax * 8 + record::HISTOGRAM as i32).gs();
    if sample {
        asm!(e; add(bucket, timing::BLOCK as i32););
    } else {
        asm!(e; inc(bucket););
    }
    e.cold(move |e| {
        e.here(longer)?;
        asm!(e; mov(gs_at(rdx, record::LONGEST), rax); jmp(next););
        e.here(shorter)?;
        asm!(e; mov(gs_at(rdx, record::SHORTEST), rax); jmp(done););
        Ok(())
    });
    Ok(())
}

/// Keeps a call of at least 2^`power` cycles by itself, over the oldest one if there is no room. In: rax cycles, rdx
/// the record; both are kept.
///
/// One instruction claims an entry, so that a handler's calls get others. No register is free besides the two, so
/// they are read back.
fn keep_long(e: &mut Emitter, power: u8) -> Emitted {
    let (write, done) = (e.label(), e.label());
    asm!(e; cmp(rax, 1i32 << power); jae(write););
    e.here(done)?;
    e.cold(move |e| {
        let entry = |word: u64| qword_ptr(rdx + (slot::LONG_CALLS + word) as i32).gs();
        let (known, unknown) = (e.label(), e.label());
        e.here(write)?;
        unless_shared(e, done)?;
        asm!(e; mov(edx, 1); xadd(gs(slot::LONG_COUNT), rdx); and(edx, (long::LEN - 1) as i32););
        asm!(e; imul_3(rdx, rdx, long::ENTRY as i32); mov(entry(long::CYCLES), rax););
        asm!(e; mov(rax, gs(slot::START)); mov(entry(long::START), rax););
        asm!(e; mov(rax, gs(slot::NODE)); mov(entry(long::NODE), rax); mov(entry(long::RESULT), r11););
        for (nth, register) in (0u64..).zip([rdi, rsi, rcx, r10, r8, r9]) {
            asm!(e; mov(entry(long::ARGS + 8 * nth), register););
        }
        asm!(e; mov(rax, gs(slot::NODE)); mov(rax, at(rax, node::RECORD)); mov(rax, gs_at(rax, record::ENTERED)););
        asm!(e; mov(entry(long::ENTERED), rax););
        asm!(e; mov(rax, gs(slot::RSEQ)); test(rax, rax); je(unknown););
        asm!(e; mov(rax, qword_ptr(rax + 8)); jmp(known););
        e.here(unknown)?;
        asm!(e; mov(eax, 1););
        e.here(known)?;
        asm!(e; mov(entry(long::RAN), rax); mov(rax, entry(long::CYCLES)););
        asm!(e; mov(rdx, gs(slot::NODE)); mov(rdx, at(rdx, node::RECORD)););
        asm!(e; jmp(done););
        Ok(())
    });
    Ok(())
}

/// Counts a result. In: r11 the result, rdx the record. Lost: rax, rdx.
fn result(e: &mut Emitter, bytes: Bytes) -> Emitted {
    let (bad, done) = (e.label(), e.label());
    asm!(e; cmp(r11, -4096); ja(bad););
    match bytes {
        Bytes::No => {}
        Bytes::Yes => asm!(e; test(r11, r11); jle(done); add(gs_at(rdx, record::BYTES), r11);),
        Bytes::ByNode => {
            asm!(e; test(r11, r11); jle(done););
            asm!(e; mov(rax, gs(slot::NODE)); mov(rax, at(rax, node::TRANSFERS)); and(rax, r11););
            asm!(e; add(gs_at(rdx, record::BYTES), rax););
        }
    }
    e.here(done)?;
    e.cold(move |e| failed(e, bad, done));
    Ok(())
}

/// Counts an error in the slot's table. A handler may come between any two instructions and count its own: one
/// instruction claims a free entry.
fn failed(e: &mut Emitter, bad: CodeLabel, done: CodeLabel) -> Emitted {
    let (probe, claimed, out) = (e.label(), e.label(), e.label());
    e.here(bad)?;
    asm!(e; inc(gs_at(rdx, record::FAILED)); neg(r11); shl(rdx, 12u32); or(rdx, r11););
    // Fibonacci hashing: the top bits of the product choose a group.
    asm!(e; mov(r11, ERROR_HASH); imul_2(r11, rdx););
    asm!(e; shr(r11, 64 - slot::ERROR_GROUP_BITS); shl(r11, slot::ERROR_GROUP_SHIFT););
    e.here(probe)?;
    asm!(e; xor(eax, eax); cmpxchg(gs_at(r11, slot::ERRORS), rdx); je(claimed); cmp(rax, rdx); je(claimed););
    asm!(e; add(r11, 16); test(r11b, (slot::ERROR_GROUP - 1) as i32); jne(probe););
    asm!(e; inc(gs(slot::ERRORS_LOST)); jmp(out););
    e.here(claimed)?;
    asm!(e; inc(gs_at(r11, slot::ERRORS + 8)););
    e.here(out)?;
    // The key contains the whole result.
    asm!(e; and(edx, 0xfff); neg(rdx); mov(r11, rdx); jmp(done););
    Ok(())
}

/// Multiplier of the error table's hash, 2^64 divided by the golden ratio.
pub(super) const ERROR_HASH: u64 = 0x9e37_79b9_7f4a_7c15;

/// Offset of the interrupted code's rcx from rsp at `rt_sigreturn`: struct ucontext of asm-generic/ucontext.h, struct
/// sigcontext_64 of arch/x86/include/uapi/asm/sigcontext.h.
const CONTEXT_RCX: u64 = 152;
/// Offset of the interrupted code's rsp.
const CONTEXT_RSP: u64 = 160;
/// Offset of the interrupted code's rip.
const CONTEXT_RIP: u64 = 168;
/// The kernel's error for a call that the thread must make again (include/linux/errno.h).
const ERESTARTSYS: i32 = 512;

/// Handles a handler's end before `rt_sigreturn`, where all registers but rax and rsp are free: if the handler
/// interrupted a call that will now be made again, this call counts as failed, and the next one counts anew. Only the
/// handler's end shows that: the instruction is run once more at its own place.
pub(super) fn made_again(e: &mut Emitter) -> Emitted {
    let (look, done) = (e.label(), e.label());
    asm!(e; mov(rcx, gs(slot::RSP)); test(rcx, rcx); jne(look););
    e.here(done)?;
    e.cold(move |e| {
        let (bad, counted) = (e.label(), e.label());
        e.here(look)?;
        asm!(e; cmp(rcx, at(rsp, CONTEXT_RSP)); jne(done););
        // The processor left the address behind the call in rcx, and the kernel went back to the call. A call that has
        // not been made yet has another value there.
        asm!(e; mov(rcx, at(rsp, CONTEXT_RIP)); add(rcx, 2); cmp(rcx, at(rsp, CONTEXT_RCX)); jne(done););
        asm!(e; mov(rdx, gs(slot::NODE)); mov(rdx, at(rdx, node::RECORD)););
        asm!(e; inc(gs_at(rdx, record::ENTERED)); inc(gs_at(rdx, record::RETURNED)); mov(r11, i64::from(-ERESTARTSYS)););
        failed(e, bad, counted)?;
        e.here(counted)?;
        asm!(e; mov(eax, RT_SIGRETURN); jmp(done););
        Ok(())
    });
    Ok(())
}

/// Makes the call that this one interrupted pending again; if there is none, no call is pending. Lost: rax, rdx.
pub(super) fn outer(e: &mut Emitter, end: CodeLabel) -> Emitted {
    let (back, none) = (e.label(), e.label());
    asm!(e; cmp(gs(slot::DEPTH), 0); jne(back););
    e.here(none)?;
    asm!(e; mov(gs(slot::RSP), 0););
    e.cold(move |e| {
        e.here(back)?;
        asm!(e; mov(rdx, gs(slot::DEPTH)); sub(rdx, slot::STACK_ENTRY as i32); jb(none););
        asm!(e; mov(rax, gs_at(rdx, slot::STACK + 8)); mov(gs(slot::START), rax););
        asm!(e; mov(rax, gs_at(rdx, slot::STACK + 16)); mov(gs(slot::NODE), rax););
        // Read the stack pointer before the entry is released: a handler may use the entry at once.
        asm!(e; mov(rax, gs_at(rdx, slot::STACK)); mov(gs(slot::DEPTH), rdx); mov(gs(slot::RSP), rax););
        // The call received a signal, but our own call has made the kernel's note of that invisible.
        asm!(e; mov(rdx, gs(slot::RSEQ)); test(rdx, rdx); je(end););
        asm!(e; mov(rax, IMAGE + image::RSEQ_CS); cmp(qword_ptr(rdx + 8), rax); jne(end););
        asm!(e; mov(qword_ptr(rdx + 8), 0); jmp(end););
        Ok(())
    });
    Ok(())
}

/// Handles a slot that holds another call, made by a handler that came between and whose end was not seen. Ours was put
/// aside then; if it is lost all the same, its result counts at the root.
fn unmatched(
    e: &mut Emitter,
    site: Return,
    here: CodeLabel,
    matched: CodeLabel,
    figures: CodeLabel,
    done: CodeLabel,
) -> Emitted {
    let (next, none) = (e.label(), e.label());
    e.here(here)?;
    asm!(e; mov(rcx, gs(slot::DEPTH)););
    e.here(next)?;
    asm!(e; lea(r11, qword_ptr(rsp - i32::from(site.lifted))););
    asm!(e; sub(rcx, slot::STACK_ENTRY as i32); jb(none); cmp(gs_at(rcx, slot::STACK), r11); jne(next););
    asm!(e; mov(r11, gs_at(rcx, slot::STACK + 8)); mov(gs(slot::START), r11););
    asm!(e; mov(r11, gs_at(rcx, slot::STACK + 16)); mov(gs(slot::NODE), r11););
    asm!(e; lea(r11, qword_ptr(rsp - i32::from(site.lifted))); mov(gs(slot::RSP), r11););
    asm!(e; mov(gs(slot::DEPTH), rcx); jmp(matched););
    e.here(none)?;
    if site.is_target {
        // This code may have been reached without a call.
        asm!(e; jmp(done););
        return Ok(());
    }
    asm!(e; mov(rcx, IMAGE + image::UNMATCHED););
    e.a.lock().inc(qword_ptr(rcx))?;
    asm!(e; mov(r11, rax); mov(rcx, rdx); mov(rdx, site.root); mov(gs(slot::NODE), rdx););
    asm!(e; mov(rdx, at(rdx, node::RECORD)); jmp(figures););
    Ok(())
}

/// Learns the thread's rseq area from its own registration (`rseq(area, length, flags, signature)`) once that has
/// succeeded, and forgets it when it is unregistered. A thread that has none then gets ours.
pub(super) fn rseq_learnt(e: &mut Emitter) -> Emitted {
    let (done, taken, unknown) = (e.label(), e.label(), e.label());
    asm!(e; test(rax, rax); jne(done););
    unless_shared(e, done)?;
    asm!(e; test(edx, edx); jne(taken););
    asm!(e; mov(r11, IMAGE + image::RSEQ_SIGNATURE); cmp(r10d, dword_ptr(r11)); jne(unknown););
    asm!(e; cmp(gs32(slot::AREA_BUSY), 0); jne(unknown); mov(gs(slot::RSEQ), rdi););
    e.here(done)?;
    e.cold(move |e| {
        e.here(taken)?;
        asm!(e; mov(gs(slot::RSEQ), 0); mov(rcx, IMAGE + image::GIVES_AREAS); cmp(dword_ptr(rcx), 0); jne(done););
        // From here on nothing shows when the thread waits, so its waiting time is unknown for all calls.
        e.here(unknown)?;
        asm!(e; mov(gs32(slot::AREA_BUSY), 1); mov(gs(slot::RSEQ), 0); jmp(done););
        Ok(())
    });
    super::rseq_areas::begin(e, super::rseq_areas::Begins::Again)
}

/// Asks for new code to be hooked, after an `mmap` with PROT_EXEC has succeeded. Memory without a file is all zeroes
/// and has no code yet; if it is both writable and executable, the launcher is told once.
pub(super) fn mapped(e: &mut Emitter, root: u64) -> Emitted {
    let (ask, file, done) = (e.label(), e.label(), e.label());
    asm!(e; test(edx, libc::PROT_EXEC); jne(ask););
    e.here(done)?;
    e.cold(move |e| {
        e.here(ask)?;
        asm!(e; cmp(rax, -4096); ja(done); test(r8d, r8d); jns(file););
        asm!(e; test(edx, libc::PROT_WRITE); je(done); mov(r11, IMAGE + image::WRITES_CODE););
        asm!(e; cmp(dword_ptr(r11), 0); jne(done););
        e.here(file)?;
        asm!(e; mov(r11, root););
        e.ask(Question::Mapped, done)
    });
    Ok(())
}

/// Asks the launcher to examine memory that `mprotect` has made executable.
pub(super) fn made_executable(e: &mut Emitter, root: u64) -> Emitted {
    let (ask, done) = (e.label(), e.label());
    asm!(e; test(edx, libc::PROT_EXEC); jne(ask););
    e.here(done)?;
    e.cold(move |e| {
        e.here(ask)?;
        asm!(e; test(rax, rax); jne(done); mov(r11, IMAGE + image::LOOKED); cmp(dword_ptr(r11), 0); jne(done););
        asm!(e; mov(r11, root););
        e.ask(Question::Mapped, done)
    });
    Ok(())
}
