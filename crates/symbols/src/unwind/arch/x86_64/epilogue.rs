//! Unwinds without call frame information: interprets the code ahead, up to its `ret`, and follows the stack pointer.
//!
//! This serves musl's C library, Go programs without `.debug_frame`, and assembly. A call is assumed to leave the stack
//! unchanged. Of two branches, either serves, since both must end balanced.

use super::{RA, RBP, RSP};
use crate::elf::ElfFile;
use crate::unwind::{Epilogue, Rule};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::HashSet;

/// Instructions interpreted, at most.
const BUDGET: usize = 3000;
/// Bytes of code read in one piece, at most.
const WINDOW: usize = 256;

/// An address on the stack: the value that a register (rsp or rbp) had at the start, plus an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StackAddress {
    base: usize,
    offset: i32,
}

impl StackAddress {
    fn plus(self, by: i64) -> Option<Self> {
        Some(Self { offset: i32::try_from(i64::from(self.offset).checked_add(by)?).ok()?, ..self })
    }
}

#[derive(Clone, Debug)]
struct State {
    /// Value of rsp; `None` if it is unknown.
    sp: Option<StackAddress>,
    /// Value of rbp, if it is a stack address.
    bp: Option<StackAddress>,
    /// DWARF numbers of the registers popped so far, with the addresses from which they were popped.
    popped: Vec<(u8, StackAddress)>,
}

/// Interprets the code from `addr`, the next instruction that will run, up to its return.
pub(crate) fn find_epilogue(elf: &ElfFile, addr: u64) -> Epilogue {
    let start = State {
        sp: Some(StackAddress { base: RSP, offset: 0 }),
        bp: Some(StackAddress { base: RBP, offset: 0 }),
        popped: Vec::new(),
    };
    let mut todo = vec![(addr, start)];
    let mut seen = HashSet::new();
    let mut sure = true;
    while let Some((at, state)) = todo.pop() {
        match follow(elf, at, addr, state, &mut seen, &mut todo) {
            End::Return(rule) => return Epilogue::Return(rule),
            End::Dead => {}
            End::Lost => sure = false,
        }
        if seen.len() > BUDGET {
            return Epilogue::Unknown;
        }
    }
    if sure { Epilogue::NoReturn } else { Epilogue::Unknown }
}

enum End {
    Return(Rule),
    Dead,
    Lost,
}

/// Follows straight code and jumps from `at`; adds branches to `todo`.
fn follow(
    elf: &ElfFile,
    mut at: u64,
    first: u64,
    mut state: State,
    seen: &mut HashSet<u64>,
    todo: &mut Vec<(u64, State)>,
) -> End {
    let mut buffer = [0; WINDOW];
    loop {
        if !elf.is_code(at) {
            return End::Lost;
        }
        let got = elf.read_code_into(at, &mut buffer);
        let mut decoder = Decoder::with_ip(64, buffer.get(..got).unwrap_or(&[]), at, DecoderOptions::NONE);
        let window_end = at.wrapping_add(got as u64);
        loop {
            // The longest instruction has 15 bytes. At the end of a segment, fewer are left.
            if decoder.ip() != at && window_end.wrapping_sub(decoder.ip()) < 16 {
                at = decoder.ip();
                break;
            }
            let i = decoder.decode();
            if i.is_invalid() {
                return End::Lost;
            }
            if !seen.insert(i.ip()) {
                return End::Dead;
            }
            if seen.len() > BUDGET {
                return End::Lost;
            }
            // A landing pad behind a call that does not return belongs to the next function.
            if i.mnemonic() == Mnemonic::Endbr64 && i.ip() != first {
                return End::Dead;
            }
            match i.flow_control() {
                FlowControl::Return => return returned(&state).map_or(End::Lost, End::Return),
                FlowControl::UnconditionalBranch => {
                    at = i.near_branch_target();
                    break;
                }
                FlowControl::ConditionalBranch => todo.push((i.near_branch_target(), state.clone())),
                FlowControl::IndirectBranch => return End::Lost,
                FlowControl::Exception | FlowControl::Interrupt => return End::Dead,
                _ if i.mnemonic() == Mnemonic::Hlt => return End::Dead,
                _ => apply(&i, &mut state),
            }
        }
    }
}

fn returned(state: &State) -> Option<Rule> {
    let cfa = state.sp?.plus(8)?;
    let mut rule = Rule::new(cfa.base as u8, cfa.offset);
    rule.save(RA as u8, -8);
    for (register, stack_address) in &state.popped {
        // A rule has one base register. Registers saved relative to another one are left out.
        if stack_address.base == cfa.base {
            rule.save(*register, stack_address.offset.checked_sub(cfa.offset)?);
        }
    }
    Some(rule)
}

/// Applies the effect of `i` to rsp and rbp.
fn apply(i: &Instruction, state: &mut State) {
    let to = if i.op_count() > 0 && i.op0_kind() == OpKind::Register { i.op0_register() } else { Register::None };
    let wide = to.full_register();
    match i.mnemonic() {
        Mnemonic::Call | Mnemonic::Cmp | Mnemonic::Test => {}
        Mnemonic::Push | Mnemonic::Pushfq => state.sp = state.sp.and_then(|s| s.plus(-8)),
        Mnemonic::Popfq => state.sp = state.sp.and_then(|s| s.plus(8)),
        Mnemonic::Pop => pop(wide, state),
        Mnemonic::Leave => {
            state.sp = state.bp;
            pop(Register::RBP, state);
        }
        Mnemonic::Sub if wide == Register::RSP => {
            state.sp = constant(i).and_then(|by| state.sp?.plus(by.checked_neg()?))
        }
        Mnemonic::Add if wide == Register::RSP => state.sp = constant(i).and_then(|by| state.sp?.plus(by)),
        Mnemonic::Lea | Mnemonic::Mov if wide == Register::RSP || wide == Register::RBP => {
            let value = if i.code() == Code::Lea_r64_m { address(i, state) } else { copied(i, state) };
            if wide == Register::RSP { state.sp = value } else { state.bp = value }
        }
        _ if wide == Register::RSP => state.sp = None,
        _ if wide == Register::RBP => state.bp = None,
        _ => {}
    }
}

fn pop(register: Register, state: &mut State) {
    let from = state.sp;
    state.sp = from.and_then(|s| s.plus(8));
    match register {
        Register::RSP => state.sp = None,
        Register::RBP => state.bp = None,
        _ => {}
    }
    if let (Some(from), Some(number)) = (from, preserved(register)) {
        state.popped.retain(|(r, _)| *r != number);
        state.popped.push((number, from));
    }
}

/// Returns the DWARF number of a register that functions preserve.
fn preserved(register: Register) -> Option<u8> {
    Some(match register {
        Register::RBX => 3,
        Register::RBP => RBP as u8,
        Register::R12 => 12,
        Register::R13 => 13,
        Register::R14 => 14,
        Register::R15 => 15,
        _ => return None,
    })
}

fn constant(i: &Instruction) -> Option<i64> {
    matches!(i.op1_kind(), OpKind::Immediate8to64 | OpKind::Immediate32to64).then(|| i.immediate(1) as i64)
}

fn stack_address(register: Register, state: &State) -> Option<StackAddress> {
    match register {
        Register::RSP => state.sp,
        Register::RBP => state.bp,
        _ => None,
    }
}

fn address(i: &Instruction, state: &State) -> Option<StackAddress> {
    if i.memory_index() != Register::None {
        return None;
    }
    stack_address(i.memory_base(), state)?.plus(i.memory_displacement64() as i64)
}

fn copied(i: &Instruction, state: &State) -> Option<StackAddress> {
    (i.op1_kind() == OpKind::Register).then(|| stack_address(i.op1_register(), state))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::elf_of_code as elf;

    fn rule(base: usize, offset: i32, saved: &[(u8, i32)]) -> Epilogue {
        let mut rule = Rule::new(base as u8, offset);
        rule.save(RA as u8, -8);
        for (register, at) in saved {
            assert!(rule.save(*register, *at));
        }
        Epilogue::Return(rule)
    }

    #[test]
    fn counts_what_is_popped_before_the_return() {
        assert_eq!(find_epilogue(&elf(&[0xc3]), 0x1000), rule(RSP, 8, &[]));
        // The code is: add $0x18,%rsp; pop %rbx; pop %rbp; ret
        let code = [0x48, 0x83, 0xc4, 0x18, 0x5b, 0x5d, 0xc3];
        assert_eq!(find_epilogue(&elf(&code), 0x1000), rule(RSP, 0x18 + 24, &[(3, -24), (6, -16)]));
        // The code is: leave; ret
        assert_eq!(find_epilogue(&elf(&[0xc9, 0xc3]), 0x1000), rule(RBP, 16, &[(6, -16)]));
    }

    #[test]
    fn takes_the_branch_that_returns() {
        // The code is: jne 1f; ud2; 1: pop %rbx; ret
        let code = [0x75, 0x02, 0x0f, 0x0b, 0x5b, 0xc3];
        assert_eq!(find_epilogue(&elf(&code), 0x1000), rule(RSP, 16, &[(3, -16)]));
        // The code is: push %rax; call +0; pop %rcx; ret
        let code = [0x50, 0xe8, 0, 0, 0, 0, 0x59, 0xc3];
        assert_eq!(find_epilogue(&elf(&code), 0x1000), rule(RSP, 8, &[]));
    }

    #[test]
    fn recognizes_code_that_never_returns_and_unknown_code() {
        assert_eq!(find_epilogue(&elf(&[0xeb, 0xfe]), 0x1000), Epilogue::NoReturn);
        assert_eq!(find_epilogue(&elf(&[0x0f, 0x05, 0xf4]), 0x1000), Epilogue::NoReturn);
        // The code is: jmp *%rax
        assert_eq!(find_epilogue(&elf(&[0xff, 0xe0]), 0x1000), Epilogue::Unknown);
        // The code is: and $-16,%rsp; ret
        assert_eq!(find_epilogue(&elf(&[0x48, 0x83, 0xe4, 0xf0, 0xc3]), 0x1000), Epilogue::Unknown);
        assert_eq!(find_epilogue(&elf(&[0x90]), 0x5000), Epilogue::Unknown);
    }
}
