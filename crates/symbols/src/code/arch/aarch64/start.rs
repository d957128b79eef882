//! Start-up code: finds `main` from the entry point, also in programs without symbols.

use super::calls::target;
use super::decode::{Addresses, Flow, Instruction, instructions};
use crate::code::{Callee, GotSlots};
use crate::elf::ElfFile;

/// Bytes of start-up code read at a time.
const START: usize = 160;
/// Jumps from one piece of start-up code to the next that are followed, at most: musl's begins with one.
const JUMPS: usize = 2;

/// Returns the address of `main`, decoded from the start-up code at the ELF entry point: the last code address that
/// this code puts into x0, the first argument of `__libc_start_main`, before it calls that function.
pub(crate) fn main_of(elf: &ElfFile, slots: &GotSlots) -> Option<u64> {
    let (mut at, mut jumps) = (elf.entry(), 0);
    loop {
        let mut code = [0; START];
        let got = elf.read_code_into(at, &mut code);
        let mut addresses = Addresses::default();
        let mut next = None;
        for i in instructions(code.get(..got)?, at) {
            match i.flow() {
                Flow::Next => {
                    if let Some((slot, to, 8)) = addresses.take(&i) {
                        let value = match slots.get(elf, slot) {
                            Some(Callee::Local(value)) => Some(value),
                            _ => None,
                        };
                        addresses.set(to, value);
                    }
                }
                flow @ (Flow::Call(_) | Flow::IndirectCall(_) | Flow::Jump(_)) => {
                    if let Some(main) = addresses.get(0).filter(|main| elf.is_code(*main)) {
                        return Some(behind_jump(elf, main));
                    }
                    if let Flow::Jump(to) = flow {
                        next = Some(to);
                        break;
                    }
                }
                Flow::Branch(_) => {}
                Flow::Return | Flow::Trap | Flow::IndirectJump(_) => break,
            }
        }
        jumps += 1;
        at = next.filter(|_| jumps <= JUMPS)?;
    }
}

/// Returns the address to which code at `at` jumps first of all; `at` itself if it does not. In programs that can be
/// moved, a jump of its own stands for `main`.
fn behind_jump(elf: &ElfFile, at: u64) -> u64 {
    let mut code = [0; 8];
    let got = elf.read_code_into(at, &mut code);
    let first = instructions(code.get(..got).unwrap_or_default(), at).find(|i| !i.is_landing_pad());
    match first.as_ref().map(Instruction::flow) {
        Some(Flow::Jump(to)) => to,
        _ => at,
    }
}

/// Returns true if the code at `after` passes the result of the call before it to another function, as the C
/// library's `exit(main(argc, argv, environ))` does: the result is in the register of the first argument already.
pub(crate) fn gives_result_on(elf: &ElfFile, after: u64) -> bool {
    let mut code = [0; 4];
    elf.read_code_into(after, &mut code) == 4
        && matches!(Instruction::new(after, u32::from_le_bytes(code)).flow(), Flow::Call(_))
}

/// Returns the address of the function that the start-up code at the entry point calls first: `__libc_start_main`.
pub(crate) fn first_call(elf: &ElfFile, slots: &GotSlots) -> Option<u64> {
    let mut code = [0; START];
    let got = elf.read_code_into(elf.entry(), &mut code);
    let call = instructions(code.get(..got)?, elf.entry())
        .find(|i| matches!(i.flow(), Flow::Call(_) | Flow::IndirectCall(_)))?;
    match target(elf, slots, &call)? {
        Callee::Local(at) => Some(at),
        Callee::Symbol(_) => None,
    }
}
