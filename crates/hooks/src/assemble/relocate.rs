//! Moves the instructions that a jump replaces.

use super::emitter::{Emitted, Emitter, Origin};
use crate::plan::Span;
use iced_x86::code_asm::r11;
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, MemoryOperand, OpAccess, OpKind,
    Register, RflagsBits,
};

/// The status flags, which arithmetic changes.
const STATUS: u32 = RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;

/// Returns the instructions of a span; `None` if they are not what the span says or can't be run elsewhere: a call
/// would push a return address that its callee does not expect, and a landing pad must stay.
pub(super) fn decode(span: &Span) -> Option<Vec<Instruction>> {
    let code = span.code();
    let mut decoder = Decoder::with_ip(64, code, span.start, DecoderOptions::NONE);
    let mut instructions = Vec::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        instructions.push(instruction);
    }
    (instructions.len() == span.instructions && span.bytes.len() >= 5).then_some(instructions)
}

/// Returns true if the instruction has the same effect anywhere, once branches and rip-relative operands are adapted.
pub(super) fn movable(instruction: &Instruction) -> bool {
    let flow = instruction.flow_control();
    let stays = matches!(
        flow,
        FlowControl::Call
            | FlowControl::IndirectCall
            | FlowControl::Interrupt
            | FlowControl::XbeginXabortXend
            | FlowControl::Exception
    );
    !stays && !matches!(instruction.code(), Code::Endbr64 | Code::Syscall | Code::Sysenter)
}

/// Returns true if the instructions behind a hook can be run elsewhere. The last may be a call: its return address is
/// pushed by way of r11, which is free unless one of the others sets it.
pub(super) fn tail_movable(tail: &[Instruction]) -> bool {
    let Some((last, others)) = tail.split_last() else { return true };
    let mut factory = InstructionInfoFactory::new();
    let sets_r11 = |i: &Instruction| {
        let used = factory.info(i).used_registers();
        used.iter().any(|u| u.register().full_register() == Register::R11 && u.access() != OpAccess::Read)
    };
    others.iter().all(movable) && (movable(last) || is_call(last) && !others.iter().any(sets_r11))
}

/// Returns true if the instruction calls an address that is part of it.
fn is_call(instruction: &Instruction) -> bool {
    instruction.flow_control() == FlowControl::Call && instruction.op0_kind() == OpKind::NearBranch64
}

/// Returns true if the instructions, run behind a hook, would see rcx, r11 or flags that the hook has changed. A
/// register that is still unwritten at the end counts as unneeded: the kernel has destroyed the registers, and
/// compilers treat flags as lost.
pub(super) fn sees_the_hook(instructions: &[Instruction]) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let (mut flags, mut registers) = (STATUS, vec![Register::RCX, Register::R11]);
    for instruction in instructions {
        if instruction.rflags_read() & flags != 0 {
            return true;
        }
        let used = factory.info(instruction).used_registers();
        let reads = |access| !matches!(access, OpAccess::Write | OpAccess::None);
        if used.iter().any(|u| reads(u.access()) && registers.contains(&u.register().full_register())) {
            return true;
        }
        // A write of 8 or 16 bits leaves the rest of the register visible.
        let wholly = |u: &&iced_x86::UsedRegister| u.access() == OpAccess::Write && u.register().size() >= 4;
        for written in used.iter().filter(wholly) {
            registers.retain(|r| *r != written.register().full_register());
        }
        flags &= !instruction.rflags_modified();
    }
    false
}

/// Address at which files are assembled as if loaded there, so that code before them has an address too.
pub(super) const BASE: u64 = 0x4000_0000_0000;

/// Writes the instructions for another place; their references stay valid.
pub(super) fn displace(e: &mut Emitter, instructions: &[Instruction]) -> Emitted {
    for instruction in instructions {
        let mut moved = *instruction;
        moved.set_ip(BASE.wrapping_add(instruction.ip()));
        if instruction.is_ip_rel_memory_operand() {
            moved.set_memory_displacement64(BASE.wrapping_add(instruction.ip_rel_memory_address()));
        }
        if is_branch(instruction) {
            moved.set_near_branch64(BASE.wrapping_add(instruction.near_branch_target()));
        }
        e.stands_for(Origin::Address(instruction.ip()));
        if is_call(instruction) {
            call(e, instruction)?;
        } else {
            e.a.add_instruction(moved)?;
        }
    }
    Ok(())
}

/// Makes a call that pushes the return address of its own place in the file.
fn call(e: &mut Emitter, instruction: &Instruction) -> Emitted {
    let back = MemoryOperand::with_base_displ(Register::RIP, BASE.wrapping_add(instruction.next_ip()) as i64);
    e.a.add_instruction(Instruction::with2(Code::Lea_r64_m, Register::R11, back)?)?;
    e.a.push(r11)?;
    e.stands_for(Origin::Address(instruction.near_branch_target()));
    e.a.jmp(BASE.wrapping_add(instruction.near_branch_target()))
}

fn is_branch(instruction: &Instruction) -> bool {
    instruction.near_branch_target() != 0
        && matches!(instruction.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch)
}
