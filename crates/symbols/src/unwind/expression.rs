//! Rows of call frame information that must be evaluated: expressions over registers and memory.

use super::arch::{RA, REGISTERS, SP, return_to};
use gimli::{
    CfaRule, EndianSlice, EvaluationResult, LittleEndian, RegisterRule, UnwindExpression, UnwindSection,
    UnwindTableRow, Value,
};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Operations of an expression evaluated, at most.
const MAX_EVALUATION: u32 = 1000;

/// Evaluator of the rows that are not plain rules.
pub(super) struct Evaluator<'e, S> {
    pub(super) section: &'e S,
    pub(super) encoding: gimli::Encoding,
    pub(super) read: &'e mut dyn FnMut(u64) -> Option<u64>,
}

impl<'a, S: UnwindSection<Slice<'a>>> Evaluator<'_, S> {
    /// Changes `regs` to the caller's registers. Returns `None` if they are unknown.
    pub(super) fn step(&mut self, row: &UnwindTableRow<usize>, regs: &mut [u64; REGISTERS]) -> Option<()> {
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                regs.get(usize::from(register.0))?.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(e) => self.value(*e, regs, None)?,
        };
        let mut next = *regs;
        next[SP] = cfa;
        for (register, how) in row.registers() {
            let Some(slot) = next.get_mut(usize::from(register.0)) else { continue };
            *slot = match how {
                RegisterRule::Offset(at) => (self.read)(cfa.wrapping_add_signed(*at))?,
                RegisterRule::ValOffset(at) => cfa.wrapping_add_signed(*at),
                RegisterRule::Register(other) => *regs.get(usize::from(other.0))?,
                RegisterRule::Expression(e) => {
                    let at = self.value(*e, regs, Some(cfa))?;
                    (self.read)(at)?
                }
                RegisterRule::ValExpression(e) => self.value(*e, regs, Some(cfa))?,
                RegisterRule::Constant(value) => *value,
                _ => continue,
            };
        }
        return_to(&mut next);
        if next[SP] <= regs[SP] && next[RA] == regs[RA] {
            return None;
        }
        *regs = next;
        Some(())
    }

    /// Returns the value of an expression. A register rule's expression starts with the CFA on its stack.
    fn value(&mut self, e: UnwindExpression<usize>, regs: &[u64; REGISTERS], start: Option<u64>) -> Option<u64> {
        let mut evaluation = e.get(self.section).ok()?.evaluation(self.encoding);
        evaluation.set_max_iterations(MAX_EVALUATION);
        if let Some(start) = start {
            evaluation.set_initial_value(start);
        }
        let mut state = evaluation.evaluate().ok()?;
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = *regs.get(usize::from(register.0))?;
                    evaluation.resume_with_register(Value::Generic(value)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                    let value = (self.read)(address)?;
                    evaluation.resume_with_memory(Value::Generic(value)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.as_result().last()?.location {
            gimli::Location::Address { address } => Some(address),
            _ => None,
        }
    }
}
