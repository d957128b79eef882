//! Decides for which calls the clock is read, if it is not read for all: see [`crate::layout::timing`].

use super::Options;
use super::emitter::{Emitted, Emitter, asm, at, gs, gs_at, gs32};
use super::start::{arm, start_time};
use crate::layout::timing::{BLOCK, BLOCK_BITS, IF_WAITED_BIT, MULTIPLIER, SAMPLE_BIT, SETTLED, SQUARED_MOST};
use crate::layout::{node, record, slot, timing};
use crate::numbers::never_waits;
use iced_x86::code_asm::*;

/// The marks, in the upper half of the start word.
const MARKS: u32 = 1u32 << (SAMPLE_BIT - 32) | 1u32 << (IF_WAITED_BIT - 32);

/// The marks in a start word.
pub(super) const ALL_MARKS: u64 = 1 << SAMPLE_BIT | 1 << IF_WAITED_BIT;

/// Returns the start word ([`slot::START`]) of a call that began before the thread was watched, at a site that makes the
/// calls of this number, or of any: its time is counted from `now`, a value of the clock, on. If not all calls are timed
/// (`sampled`), it is timed if it waits.
#[must_use]
pub fn start_of_pending(number: Option<u32>, sampled: bool, now: u64) -> u64 {
    match (sampled, Timing::of_sampled(number)) {
        (false, _) => now,
        (true, Timing::Sampled { may_wait: true }) => now | 1 << IF_WAITED_BIT,
        (true, _) => 0,
    }
}

/// The calls of a site that are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timing {
    /// No call.
    None,
    /// Every call.
    All,
    /// One call of a block where that is enough, otherwise every call.
    Sampled {
        /// True if calls of this site may wait for somebody.
        may_wait: bool,
    },
}

impl Timing {
    /// Returns the timing of a site that makes the calls of this number, or of any, if not all calls are timed.
    pub(super) fn of_sampled(number: Option<u32>) -> Self {
        Self::Sampled { may_wait: !number.is_some_and(never_waits) }
    }
}

/// Reads the clock before a call if necessary. In: r11 the node. Code at `asked` reads it in any case, because the call
/// belongs to a window. Lost: rcx, r11.
pub(super) fn start(e: &mut Emitter, options: &Options, asked: CodeLabel, may_wait: bool) -> Emitted {
    let (due, done) = (e.label(), e.label());
    let elide = options.elide;
    asm!(e; mov(rcx, at(r11, node::RECORD)); dec(gs_at(rcx, record::TIME_LEFT)); js(due););
    if may_wait {
        // If the thread can't tell whether it waits, all calls are timed.
        asm!(e; cmp(gs(slot::RSEQ), 0); je(asked););
        arm(e, elide)?;
        start_time(e)?;
        mark(e, IF_WAITED_BIT)?;
    } else {
        if elide {
            arm(e, elide)?;
        }
        asm!(e; mov(gs(slot::START), 0););
    }
    e.here(done)?;
    e.cold(move |e| {
        e.here(due)?;
        let (learn, settles) = (e.label(), e.label());
        asm!(e; cmp(gs_at(rcx, record::CALM), SETTLED as i32); jb(learn););
        draw(e)?;
        // The sum is the rest of this block, and the calls before the next block's sample.
        asm!(e; mov(gs_at(rcx, record::TIME_LEFT), r11););
        asm!(e; xchg(gs_at(rcx, record::TIME_AT), r11); sub(gs_at(rcx, record::TIME_LEFT), r11););
        asm!(e; add(gs_at(rcx, record::TIME_LEFT), (BLOCK - 1) as i32););
        arm(e, elide)?;
        start_time(e)?;
        mark(e, SAMPLE_BIT)?;
        asm!(e; jmp(done););
        e.here(learn)?;
        asm!(e; inc(gs_at(rcx, record::CALM)); mov(gs_at(rcx, record::TIME_LEFT), 0););
        asm!(e; cmp(gs_at(rcx, record::CALM), SETTLED as i32); jae(settles););
        e.here(asked)?;
        arm(e, elide)?;
        start_time(e)?;
        asm!(e; jmp(done););
        e.here(settles)?;
        draw(e)?;
        asm!(e; mov(gs_at(rcx, record::TIME_AT), r11); mov(gs_at(rcx, record::TIME_LEFT), r11); jmp(asked););
        Ok(())
    });
    Ok(())
}

/// Draws a place in a block into r11.
fn draw(e: &mut Emitter) -> Emitted {
    asm!(e; mov(r11, MULTIPLIER); imul_2(r11, gs(slot::TIME_SEED)); add(r11, gs(slot::TAG)););
    asm!(e; mov(gs(slot::TIME_SEED), r11); shr(r11, 64 - BLOCK_BITS););
    Ok(())
}

/// Sets one of the upper bits of the start word.
fn mark(e: &mut Emitter, bit: u32) -> Emitted {
    asm!(e; or(gs32(slot::START + 4), (1u32 << (bit - 32)) as i32););
    Ok(())
}

/// Clears the upper half of the start word except the marks. Lost: flags.
pub(super) fn keep_marks(e: &mut Emitter) -> Emitted {
    asm!(e; and(gs32(slot::START + 4), MARKS as i32););
    Ok(())
}

/// Goes to `timed` if the returning call is timed in any case, and to `was` if it is timed because its thread was
/// scheduled out. Lost: rcx, flags.
pub(super) fn if_timed(e: &mut Emitter, may_wait: bool, timed: CodeLabel, was: CodeLabel) -> Emitted {
    if may_wait {
        asm!(e; test(gs32(slot::START + 4), (1u32 << (IF_WAITED_BIT - 32)) as i32); je(timed););
        // An area that was unregistered meanwhile shows nothing.
        asm!(e; mov(rcx, gs(slot::RSEQ)); test(rcx, rcx); je(was); cmp(qword_ptr(rcx + 8), 0); je(was););
    } else {
        asm!(e; cmp(gs(slot::START), 0); jne(timed););
    }
    Ok(())
}

/// Clears the marks, so that the call counts for itself.
pub(super) fn counts_for_itself(e: &mut Emitter) -> Emitted {
    asm!(e; and(gs32(slot::START + 4), !MARKS as i32););
    Ok(())
}

/// Goes to `sample` if the call counts for its block.
pub(super) fn if_sample(e: &mut Emitter, sample: CodeLabel) -> Emitted {
    asm!(e; cmp(gs32(slot::START + 4), 0); js(sample););
    Ok(())
}

/// Adds a sample. In: rax its cycles, rdx the record, both kept. The start is lost: no register is free, and a
/// handler's calls leave it as it is.
pub(super) fn add(e: &mut Emitter) -> Emitted {
    let (much, square) = (e.label(), e.label());
    asm!(e; inc(gs_at(rdx, record::SAMPLED)); add(gs_at(rdx, record::SAMPLED_CYCLES), rax););
    asm!(e; mov(gs(slot::START), rax); cmp(rax, SQUARED_MOST as i32); ja(much););
    e.here(square)?;
    asm!(e; imul_2(rax, rax); add(gs_at(rdx, record::SAMPLED_SQUARES), rax); mov(rax, gs(slot::START)););
    e.cold(move |e| {
        e.here(much)?;
        asm!(e; mov(eax, SQUARED_MOST as u32); jmp(square););
        Ok(())
    });
    Ok(())
}

/// After a long call, makes the row's calls count for themselves. The current block continues to its end, because after
/// an earlier end this call would stand for fewer calls than the others. In: rax the cycles, rdx the record, both kept.
/// The start may be lost.
pub(super) fn unless_long(e: &mut Emitter, sample: bool) -> Emitted {
    let (long, done) = (e.label(), e.label());
    asm!(e; cmp(rax, timing::LONG as i32); ja(long););
    e.here(done)?;
    e.cold(move |e| {
        e.here(long)?;
        if sample {
            asm!(e; mov(gs(slot::START), rax); mov(rax, gs_at(rdx, record::TIME_AT)););
            asm!(e; sub(gs_at(rdx, record::TIME_LEFT), rax); mov(gs_at(rdx, record::CALM), 0););
            asm!(e; mov(rax, gs(slot::START)); jmp(done););
        } else {
            // Once there are blocks, a long call that is no sample tells nothing about the samples.
            asm!(e; cmp(gs_at(rdx, record::CALM), SETTLED as i32); jae(done););
            asm!(e; mov(gs_at(rdx, record::CALM), 0); jmp(done););
        }
        Ok(())
    });
    Ok(())
}
