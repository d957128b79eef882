//! Facts about a program's code that is in no file, and the search for calls in it.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::ops::Range;

/// Searches of a program's new memory, and bytes of it, at most; only run-time compilers come near that.
pub(crate) const MOST_LOOKS: u32 = 1000;

pub(crate) const MOST_BYTES: u64 = 64 << 20;

/// Bytes read at a time.
const PIECE: u64 = 1 << 16;

/// Bytes before a call in which its number is searched.
const REACH: usize = 24;

/// Bytes of the instruction `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Bound above the numbers of all system calls.
const HIGHEST: u64 = 600;

/// Code of a program that is in no file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Generated {
    pub(crate) looks: u32,
    pub(crate) bytes: u64,
    /// Number of instruction sequences that look like system calls.
    pub(crate) calls: u64,
    /// True if some memory was writable and executable at once.
    pub(crate) written_in_place: bool,
    /// Number of the calls found in such memory.
    pub(crate) in_place: u64,
    /// True if the code was searched when the program ended.
    pub(crate) seen_at_end: bool,
    /// True if there was more code than was searched.
    pub(crate) too_much: bool,
}

impl Generated {
    /// Returns true if the program has such code.
    pub(crate) fn any(&self) -> bool {
        self.looks > 0
    }
}

/// Returns the number of instruction sequences in memory that look like system calls. `read` fills a buffer from an
/// address on and returns the number of bytes read.
pub(crate) fn calls_in(range: Range<u64>, read: impl Fn(u64, &mut [u8]) -> usize) -> u64 {
    let mut buffer = vec![0; (PIECE as usize) + REACH + 1];
    let (mut at, mut calls) = (range.start, 0);
    while at < range.end {
        // Each piece begins a little before the end of the last one, so that no call lies across a seam.
        let from = at.saturating_sub(REACH as u64).max(range.start);
        let end = range.end.min(at.saturating_add(PIECE + 1));
        let Some(bytes) = buffer.get_mut(..(end - from) as usize) else { return calls };
        let got = read(from, bytes);
        let bytes = bytes.get(..got).unwrap_or_default();
        let skip = (at - from) as usize;
        let behind = bytes.get(skip..).unwrap_or_default();
        let found = memchr::memmem::find_iter(behind, &SYSCALL).filter(|n| is_call(bytes, skip + n));
        calls += found.count() as u64;
        at = at.saturating_add(PIECE);
    }
    calls
}

/// Returns true if the bytes of a `syscall` at `n` are one: shortly before, a call's number is put into eax, and from
/// there on instructions follow each other up to it.
fn is_call(bytes: &[u8], n: usize) -> bool {
    (n.saturating_sub(REACH)..n).any(|start| {
        let Some(before) = bytes.get(start..n) else { return false };
        let mut decoder = Decoder::with_ip(64, before, 0, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut first = true;
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            let good = instruction.flow_control() == FlowControl::Next && !instruction.is_invalid();
            if !good || first && !puts_number(&instruction) {
                return false;
            }
            first = false;
        }
        !first
    })
}

fn puts_number(i: &Instruction) -> bool {
    let whole = matches!(i.op0_register(), Register::EAX | Register::RAX);
    let constant = matches!(i.try_op_kind(1), Ok(OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64));
    match i.mnemonic() {
        // A function that makes any call, as libc's `syscall`, moves the number from a register or from the stack.
        Mnemonic::Mov if constant => whole && i.immediate(1) < HIGHEST,
        Mnemonic::Mov => i.op0_register() == Register::RAX && i.segment_prefix() == Register::None,
        Mnemonic::Xor => whole && i.op0_register() == i.op1_register(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(bytes: &[u8]) -> u64 {
        let read = |at: u64, buffer: &mut [u8]| {
            let from = bytes.get(at as usize..).unwrap_or_default();
            let len = buffer.len().min(from.len());
            buffer[..len].copy_from_slice(&from[..len]);
            len
        };
        calls_in(0..bytes.len() as u64, read)
    }

    const MOV_39: [u8; 5] = [0xb8, 39, 0, 0, 0];

    #[test]
    fn a_call_has_a_number() {
        assert_eq!(calls(&[&MOV_39[..], &SYSCALL].concat()), 1);
        let with_arguments = [&MOV_39[..], &[0x48, 0x89, 0xf7, 0x31, 0xf6], &SYSCALL].concat();
        assert_eq!(calls(&with_arguments), 1);
        assert_eq!(calls(&[&[0x31, 0xc0][..], &SYSCALL].concat()), 1);
        // mov %rdi,%rax; mov %rsi,%rdi, and mov 8(%rsp),%rax: functions for any call
        assert_eq!(calls(&[&[0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7][..], &SYSCALL].concat()), 1);
        assert_eq!(calls(&[&[0x48, 0x8b, 0x44, 0x24, 8][..], &SYSCALL].concat()), 1);
        // These are no calls: a number among the code's constants, a number that no call has, and code that control
        // flow does not reach.
        assert_eq!(calls(&[&[0x90; 30][..], &SYSCALL].concat()), 0);
        assert_eq!(calls(&[&[0xb8, 39, 0, 0, 1][..], &SYSCALL].concat()), 0);
        assert_eq!(calls(&[&MOV_39[..], &[0xc3], &SYSCALL].concat()), 0);
        assert_eq!(calls(&[]), 0);
    }

    #[test]
    fn none_is_missed_or_counted_twice_at_a_seam() {
        let call = [&MOV_39[..], &SYSCALL].concat();
        for shift in 0..40 {
            let mut bytes = vec![0x90; 3 * PIECE as usize];
            for seam in [PIECE as usize, 2 * PIECE as usize] {
                bytes[seam - 20 + shift..][..7].copy_from_slice(&call);
            }
            assert_eq!(calls(&bytes), 2, "{shift}");
        }
    }

    #[test]
    fn chance_seldom_makes_a_call() {
        let mut state = 1u64;
        let bytes: Vec<u8> = (0..4 << 20)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        assert_eq!(calls(&bytes), 0);
    }
}
