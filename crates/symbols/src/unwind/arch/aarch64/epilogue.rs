//! Unwinds without call frame information: interprets the code ahead, up to its `ret`, and follows the stack pointer.
//!
//! This serves musl's C library and assembly. A call is assumed to leave the stack unchanged. Of two branches, either
//! serves, since both must end balanced.

use super::{FP, LINK, SP};
use crate::code::decode::{Effect, Flow, Instruction};
use crate::elf::ElfFile;
use crate::unwind::{Epilogue, Rule};
use std::collections::HashSet;

/// Instructions interpreted, at most.
const BUDGET: usize = 3000;

/// An address on the stack: the value that a register (sp or x29) had at the start, plus an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StackAddress {
    base: usize,
    offset: i64,
}

impl StackAddress {
    fn plus(self, by: i64) -> Option<Self> {
        Some(Self { offset: self.offset.checked_add(by)?, ..self })
    }
}

#[derive(Clone, Debug)]
struct State {
    /// Values of sp and x29; `None` if they are no known addresses on the stack.
    sp: Option<StackAddress>,
    fp: Option<StackAddress>,
    /// Numbers of the registers loaded so far, with the addresses from which they were loaded.
    loaded: Vec<(u8, StackAddress)>,
}

/// Interprets the code from `addr`, the next instruction that will run, up to its return.
pub(crate) fn find_epilogue(elf: &ElfFile, addr: u64) -> Epilogue {
    let start = State {
        sp: Some(StackAddress { base: SP, offset: 0 }),
        fp: Some(StackAddress { base: FP, offset: 0 }),
        loaded: Vec::new(),
    };
    let mut todo = vec![(addr, start)];
    let mut seen = HashSet::new();
    let mut sure = true;
    while let Some((mut at, mut state)) = todo.pop() {
        loop {
            let mut code = [0; 4];
            if !at.is_multiple_of(4) || !elf.is_code(at) || elf.read_code_into(at, &mut code) != 4 {
                sure = false;
                break;
            }
            if seen.len() > BUDGET {
                return Epilogue::Unknown;
            }
            let i = Instruction::new(at, u32::from_le_bytes(code));
            // A landing pad behind a call that does not return belongs to the next function.
            if !seen.insert(at) || i.is_landing_pad() && at != addr {
                break;
            }
            match i.flow() {
                Flow::Return => match returned(&state) {
                    Some(rule) => return Epilogue::Return(rule),
                    None => {
                        sure = false;
                        break;
                    }
                },
                Flow::Jump(to) => {
                    at = to;
                    continue;
                }
                Flow::Branch(to) => todo.push((to, state.clone())),
                Flow::IndirectJump(_) => {
                    sure = false;
                    break;
                }
                Flow::Trap => break,
                Flow::Call(_) | Flow::IndirectCall(_) => {}
                Flow::Next => apply(&i, &mut state),
            }
            at = at.wrapping_add(4);
        }
    }
    if sure { Epilogue::NoReturn } else { Epilogue::Unknown }
}

fn returned(state: &State) -> Option<Rule> {
    let cfa = state.sp?;
    let mut rule = Rule::new(cfa.base as u8, i32::try_from(cfa.offset).ok()?);
    for (register, from) in &state.loaded {
        // A rule has one base register. Registers saved relative to another one are left out.
        if from.base == cfa.base {
            rule.save(*register, i32::try_from(from.offset.checked_sub(cfa.offset)?).ok()?);
        } else if usize::from(*register) == LINK {
            return None;
        }
    }
    Some(rule)
}

/// Applies the effect of `i` to sp, x29 and the registers that functions preserve.
fn apply(i: &Instruction, state: &mut State) {
    let of = |state: &State, register: u8| match usize::from(register) {
        SP => state.sp,
        FP => state.fp,
        _ => None,
    };
    let set = |state: &mut State, register: u8, value: Option<StackAddress>| match usize::from(register) {
        SP => state.sp = value,
        FP => state.fp = value,
        _ => {}
    };
    match i.effect() {
        Effect::Add { to, from, by } => {
            let value = of(state, from).and_then(|from| from.plus(by));
            set(state, to, value);
        }
        Effect::Load { to, base, offset, moves, size } => {
            let at = of(state, base);
            for (register, step) in to.into_iter().zip([0, i64::from(size)]) {
                let Some(register) = register else { continue };
                state.loaded.retain(|(known, _)| *known != register);
                let from = at.and_then(|at| at.plus(offset + step));
                if let Some(from) = from.filter(|_| (19..=30).contains(&register) && size == 8) {
                    state.loaded.push((register, from));
                }
                if usize::from(register) == FP {
                    state.fp = None;
                }
            }
            if moves != 0 {
                set(state, base, at.and_then(|at| at.plus(moves)));
            }
        }
        Effect::Store { base, moves } if moves != 0 => {
            let value = of(state, base).and_then(|at| at.plus(moves));
            set(state, base, value);
        }
        Effect::Address { to, .. } => set(state, to, None),
        Effect::Other { to: Some(to) } if usize::from(to) == FP || i.writes_sp() => set(state, to, None),
        Effect::Store { .. } | Effect::Other { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::elf_of_code;

    fn rule(base: usize, offset: i32, saved: &[(u8, i32)]) -> Epilogue {
        let mut rule = Rule::new(base as u8, offset);
        for (register, at) in saved {
            assert!(rule.save(*register, *at));
        }
        Epilogue::Return(rule)
    }

    fn of(words: &[u32]) -> Epilogue {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        find_epilogue(&elf_of_code(&code), 0x1000)
    }

    #[test]
    fn code_up_to_its_return_tells_the_caller() {
        const RET: u32 = 0xd65f_03c0;
        assert_eq!(of(&[RET]), rule(SP, 0, &[]), "a leaf");
        // ldp x29, x30, [sp], #32; ret.
        assert_eq!(of(&[0xa8c2_7bfd, RET]), rule(SP, 32, &[(29, -32), (30, -24)]));
        // ldr x19, [sp, #16]; ldp x29, x30, [sp], #32; autiasp; ret.
        assert_eq!(of(&[0xf940_0bf3, 0xa8c2_7bfd, 0xd503_23bf, RET]), rule(SP, 32, &[(19, -16), (29, -32), (30, -24)]));
        // mov sp, x29; ldp x29, x30, [sp], #16; ret.
        assert_eq!(of(&[0x9100_03bf, 0xa8c1_7bfd, RET]), rule(FP, 16, &[(29, -16), (30, -8)]));
        // cbz x0, +8; brk; ret.
        assert_eq!(of(&[0xb400_0040, 0xd420_0000, RET]), rule(SP, 0, &[]));
        assert_eq!(of(&[0x1400_0000]), Epilogue::NoReturn, "a loop");
        assert_eq!(of(&[0xd61f_0220]), Epilogue::Unknown, "br x17");
        // and sp, x9, #…; ret.
        assert_eq!(of(&[0x927c_ed3f, RET]), Epilogue::Unknown);
    }
}
