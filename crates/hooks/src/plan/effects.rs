//! Effects of single instructions: reads, writes and jump targets.

use super::addresses::Targets;
use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, RflagsBits, UsedRegister,
};

/// The status flags, which arithmetic changes, and thus a hook.
const STATUS: u32 = RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;
/// Instructions behind a call through which flags are followed, at most; longer code counts as reading them.
const FLAG_REACH: usize = 64;

/// A look-up of instructions' effects, which keeps a buffer between calls.
pub(super) struct Effects(InstructionInfoFactory);

impl Effects {
    pub(super) fn new() -> Self {
        Self(InstructionInfoFactory::new())
    }

    fn any(&mut self, i: &Instruction, test: impl Fn(&UsedRegister) -> bool) -> bool {
        self.0.info(i).used_registers().iter().any(test)
    }

    /// Returns true if `i` may change any part of `register`, a 64-bit register.
    pub(super) fn writes(&mut self, i: &Instruction, register: Register) -> bool {
        self.any(i, |u| u.register().full_register() == register && u.access() != OpAccess::Read)
    }

    /// Returns true if the value of `register` before `i` may matter to `i`.
    pub(super) fn reads(&mut self, i: &Instruction, register: Register) -> bool {
        self.any(i, |u| u.register().full_register() == register && u.access() != OpAccess::Write)
    }

    /// Returns the value of `register` at `code[at]` if one constant reaches it on every path. Searches backwards, up
    /// to a place where paths join.
    pub(super) fn constant(
        &mut self,
        code: &[Instruction],
        at: usize,
        register: Register,
        targets: &Targets,
    ) -> Option<u32> {
        let mut after = code.get(at)?;
        for i in code.get(..at)?.iter().rev() {
            if targets.inside(i.ip(), after.ip().saturating_add(1)).is_some() || !goes_on(i) || is_call(i) {
                return None;
            }
            if self.writes(i, register) {
                return constant_of(i);
            }
            after = i;
        }
        None
    }
}

/// Returns the number that `i` puts into all of its first operand.
fn constant_of(i: &Instruction) -> Option<u32> {
    if i.op0_kind() != OpKind::Register || i.op0_register().size() < 4 {
        return None;
    }
    match (i.mnemonic(), i.try_op_kind(1).ok()?) {
        (Mnemonic::Mov, OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64) => {
            Some(i.immediate(1) as u32)
        }
        (Mnemonic::Xor | Mnemonic::Sub, OpKind::Register) if i.op0_register() == i.op1_register() => Some(0),
        _ => None,
    }
}

/// Returns true if the next instruction may follow `i` without anything else in between.
pub(super) fn goes_on(i: &Instruction) -> bool {
    matches!(i.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch) && i.mnemonic() != Mnemonic::INVALID
}

/// Returns true if `i` enters the kernel, which writes rax and preserves flags.
fn is_call(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter)
}

/// Returns true if `i` may jump.
pub(super) fn is_branch(i: &Instruction) -> bool {
    matches!(
        i.flow_control(),
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch
    )
}

/// Returns true if execution never continues from `i` to the next instruction.
pub(super) fn ends(i: &Instruction) -> bool {
    matches!(i.flow_control(), FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch)
}

/// Returns true if `i` has the same effect elsewhere (with relative addresses adapted). Returns false for a call,
/// which would push another return address; for an instruction whose faults are reported by address; and for a branch
/// that reaches no further than 127 bytes.
pub(super) fn can_move(i: &Instruction) -> bool {
    let fixed = matches!(
        i.mnemonic(),
        Mnemonic::INVALID
            | Mnemonic::Syscall
            | Mnemonic::Sysenter
            | Mnemonic::Endbr64
            | Mnemonic::Endbr32
            | Mnemonic::Jrcxz
            | Mnemonic::Jecxz
            | Mnemonic::Jcxz
            | Mnemonic::Loop
            | Mnemonic::Loope
            | Mnemonic::Loopne
            | Mnemonic::Hlt
    );
    let elsewhere = matches!(
        i.flow_control(),
        FlowControl::Call
            | FlowControl::IndirectCall
            | FlowControl::Interrupt
            | FlowControl::Exception
            | FlowControl::XbeginXabortXend
    );
    !fixed && !elsewhere
}

/// Returns true if `i` calls an address that is part of the instruction.
pub(super) fn is_direct_call(i: &Instruction) -> bool {
    i.flow_control() == FlowControl::Call && i.op0_kind() == OpKind::NearBranch64
}

/// Returns true if a program may intend to run `i`. Data decoded as code soon contains instructions that no program
/// may run.
pub(super) fn is_plausible(i: &Instruction) -> bool {
    let never = matches!(
        i.mnemonic(),
        Mnemonic::INVALID
            | Mnemonic::In
            | Mnemonic::Out
            | Mnemonic::Insb
            | Mnemonic::Insd
            | Mnemonic::Outsb
            | Mnemonic::Outsd
            | Mnemonic::Cli
            | Mnemonic::Sti
            | Mnemonic::Retf
            | Mnemonic::Iret
            | Mnemonic::Iretd
            | Mnemonic::Iretq
            | Mnemonic::Sysret
            | Mnemonic::Sysenter
            | Mnemonic::Enter
            | Mnemonic::Xlatb
            | Mnemonic::Int1
    );
    let twice = i.has_repe_prefix() && !i.is_string_instruction() && i.segment_prefix() != Register::None;
    !never && !twice
}

/// Returns true if the effect of `i` depends on flags that a hook changes.
pub(super) fn reads_flags(i: &Instruction) -> bool {
    i.rflags_read() & STATUS != 0
}

/// Returns true if flags set before the call at `code[at]` may be read behind it, since the kernel preserves them. No
/// code keeps flags over a return or another call (System V ABI, 3.2.1).
pub(super) fn flags_cross(code: &[Instruction], at: usize) -> bool {
    let (mut n, mut set) = (at + 1, 0);
    let mut seen = Vec::new();
    while seen.len() < FLAG_REACH {
        // A loop that reads no flags has returned to its start.
        if seen.contains(&n) {
            return false;
        }
        seen.push(n);
        let Some(i) = code.get(n) else { return false };
        if is_call(i) {
            n += 1;
            continue;
        }
        if i.rflags_read() & STATUS & !set != 0 {
            return true;
        }
        set |= i.rflags_modified() & STATUS;
        if set == STATUS {
            return false;
        }
        n = match i.flow_control() {
            FlowControl::Next => n + 1,
            // Only branches that test rcx get here without having read flags.
            FlowControl::ConditionalBranch => return true,
            FlowControl::UnconditionalBranch => match code.binary_search_by_key(&i.near_branch64(), Instruction::ip) {
                Ok(there) => there,
                Err(_) => return false,
            },
            _ => return false,
        };
    }
    true
}

/// Returns the address that `i` computes, if it computes one.
pub(super) fn computed_address(i: &Instruction, is_fixed: bool) -> Option<u64> {
    match i.mnemonic() {
        Mnemonic::Lea if i.is_ip_rel_memory_operand() => Some(i.ip_rel_memory_address()),
        // Position-dependent code has addresses as plain numbers.
        Mnemonic::Lea if is_fixed && i.memory_base() == Register::None => Some(i.memory_displacement64()),
        // All eight bytes are the address; a larger number would be two numbers in one.
        Mnemonic::Mov if is_fixed && matches!(i.try_op_kind(1), Ok(OpKind::Immediate64)) => Some(i.immediate(1)),
        Mnemonic::Mov if is_fixed && immediate(i, 1) => Some(i.immediate(1) & 0xffff_ffff),
        Mnemonic::Push if is_fixed && immediate(i, 0) => Some(i.immediate(0)),
        _ => None,
    }
}

/// Returns the address that `i` jumps to or calls, if it is part of the instruction.
pub(super) fn direct_target(i: &Instruction) -> Option<u64> {
    let leaves = matches!(
        i.flow_control(),
        FlowControl::ConditionalBranch
            | FlowControl::UnconditionalBranch
            | FlowControl::Call
            | FlowControl::XbeginXabortXend
    );
    (leaves && i.op0_kind() == OpKind::NearBranch64).then(|| i.near_branch64())
}

fn immediate(i: &Instruction, operand: u32) -> bool {
    matches!(i.try_op_kind(operand), Ok(OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64))
}
