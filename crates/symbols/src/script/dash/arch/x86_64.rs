//! Addresses of dash's variables and functions, found from its code: a build of dash exports nothing and is stripped.
//!
//! An error message begins with the script, a line and a command: `exvwarning2` gives `outfmt` the text `%s: %d: %s:
//! `, the script in its third argument and the line, `errlinno`, in its fourth. The other variables are found from
//! these two. If a step does not find what it looks for, nothing of the file is used.

use super::Anatomy;
use crate::script::interpreter::Candidate;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};
use memchr::memmem;
use std::collections::HashMap;
use std::ops::Range;
use systoll_binfile::cfi::Functions;

/// Bytes of code searched in a file, at most; dash has 75 KiB.
const MAX_CODE: u64 = 256 << 10;
/// Bytes of texts searched in a file, at most; dash has 8 KiB.
const MAX_TEXTS: u64 = 64 << 10;
/// Formats of the beginnings of error messages, without and with a command.
const MESSAGES: [&[u8]; 2] = [b"\0%s: %d: \0", b"\0%s: %d: %s: \0"];
/// Initial text of one of dash's variables, by which the file is recognised.
const LINE_VARIABLE: &[u8] = b"\0LINENO=\0";
/// Offset of a node's line.
const NODE_LINE: u64 = 4;
/// Offset of the line in a `parsefile`.
const PARSEFILE_LINE: u64 = 8;
/// Instructions between two that belong together, at most.
const NEAR: usize = 40;

/// Effect of an instruction on a variable of dash's, on a field behind a register, or on the frame.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// The address of a variable is taken.
    Address { of: u64 },
    /// A variable is read into a register: 8 bytes if `is_wide`, otherwise 4.
    Load { from: u64, into: Register, is_wide: bool },
    /// The lower half of a register is stored in a variable.
    Store { to: u64, value: Register },
    /// A field of 4 bytes is read into a register.
    Field { offset: u64, base: Register, into: Register },
    /// A register is saved in the frame.
    Keep { slot: u64, value: Register },
}

/// The effects of a function's instructions, in the order of its code.
struct Done {
    extent: Range<u64>,
    acts: Vec<Act>,
}

/// Returns the anatomy of a file: `None` if it is not dash, `Some(None)` if it is a build that is not understood.
pub(crate) fn find(file: Candidate<'_>) -> Option<Option<Anatomy>> {
    let texts = file.elf.section(".rodata").filter(|s| s.size <= MAX_TEXTS)?;
    let code = file.elf.section(".text").filter(|s| s.size <= MAX_CODE)?;
    let data = file.elf.section(".data").filter(|s| s.size <= MAX_TEXTS)?;
    let bytes = file.elf.section_data(texts)?;
    let found = MESSAGES.map(|m| memmem::find(&bytes, m).map(|at| texts.addr + at as u64 + 1));
    let [Some(short), Some(long)] = found else { return None };
    memmem::find(&file.elf.section_data(data)?, LINE_VARIABLE)?;
    let frames = file.elf.section(".eh_frame").filter(|s| s.size <= MAX_CODE)?;
    let functions = Functions::of_eh_frame(frames.addr, &file.elf.section_data(frames)?, Some(code.addr));
    let bytes = file.elf.section_data(code)?;
    let all: Vec<Done> = functions
        .all()
        .iter()
        .filter_map(|f| {
            let start = usize::try_from(f.start.checked_sub(code.addr)?).ok()?;
            let end = usize::try_from(f.end.checked_sub(code.addr)?).ok()?;
            Some(Done { extent: f.start..f.end, acts: acts(bytes.get(start..end)?, f.start) })
        })
        .collect();
    Some(anatomy(&all, short, long))
}

fn acts(code: &[u8], at: u64) -> Vec<Act> {
    Decoder::with_ip(64, code, at, DecoderOptions::NONE).into_iter().filter_map(|i| act(&i)).collect()
}

fn act(i: &Instruction) -> Option<Act> {
    let (to, from) = (i.op0_register(), i.op1_register());
    match i.mnemonic() {
        Mnemonic::Lea if i.is_ip_rel_memory_operand() => Some(Act::Address { of: i.ip_rel_memory_address() }),
        Mnemonic::Mov if i.is_ip_rel_memory_operand() => {
            let at = i.ip_rel_memory_address();
            if to.is_gpr64() || to.is_gpr32() {
                return Some(Act::Load { from: at, into: to.full_register(), is_wide: to.is_gpr64() });
            }
            from.is_gpr32().then_some(Act::Store { to: at, value: from.full_register() })
        }
        Mnemonic::Mov if i.memory_index() == Register::None && i.memory_base().is_gpr64() => {
            let (base, offset) = (i.memory_base(), i.memory_displacement64());
            if to.is_gpr32() && base != Register::RSP {
                return Some(Act::Field { offset, base, into: to.full_register() });
            }
            let keeps = base == Register::RSP && from.is_gpr64();
            keeps.then_some(Act::Keep { slot: offset, value: from })
        }
        _ => None,
    }
}

fn anatomy(all: &[Done], short: u64, long: u64) -> Option<Anatomy> {
    let takes = |f: &Done, text: u64| f.acts.iter().any(|a| matches!(a, Act::Address { of } if *of == text));
    let told = only(all.iter().filter(|f| takes(f, short) && takes(f, long)))?;
    let argument = |register: Register, wide: bool| {
        told.acts.iter().find_map(|a| match a {
            Act::Load { from, into, is_wide } if *into == register && *is_wide == wide => Some(*from),
            _ => None,
        })
    };
    let (script, line) = (argument(Register::RDX, true)?, argument(Register::RCX, false)?);
    // Evaluators set the line from a node; the code that reports a wrong text sets it from the `parsefile`.
    let evaluators: Vec<&Done> = all.iter().filter(|f| source(f, line, NODE_LINE).is_some()).collect();
    let input = all.iter().find_map(|f| {
        let base = source(f, line, PARSEFILE_LINE)?;
        f.acts.iter().find_map(|a| match a {
            Act::Load { from, into, is_wide: true } if *into == base => Some(*from),
            _ => None,
        })
    })?;
    let function_line = beside(&evaluators, line)?;
    let loads_input =
        |f: &&&Done| f.acts.iter().any(|a| matches!(a, Act::Load { from, is_wide: true, .. } if *from == input));
    let command = only(evaluators.iter().filter(loads_input))?;
    let sets_twice = |f: &&Done| {
        let sets = |a: &&Act| matches!(a, Act::Store { to, .. } if *to == function_line);
        f.acts.iter().filter(sets).count() >= 2
    };
    let function = only(all.iter().filter(sets_twice))?;
    Some(Anatomy {
        line,
        function_line,
        script,
        input,
        command: command.extent.clone(),
        command_slot: kept(&command.acts, Register::RDI)?,
        input_slot: input_slot(&command.acts, input)?,
        function: function.extent.clone(),
        function_slot: kept(&function.acts, Register::RDI)?,
        evaluators: evaluators.iter().map(|f| f.extent.clone()).collect(),
    })
}

/// Returns the item of an iterator that has exactly one.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

/// Returns the register that points to the object from whose field at `offset` a function sets the line.
fn source(function: &Done, line: u64, offset: u64) -> Option<Register> {
    function.acts.iter().enumerate().find_map(|(n, act)| {
        let Act::Store { to, value } = act else { return None };
        (*to == line).then_some(())?;
        function.acts.get(n.saturating_sub(NEAR)..n)?.iter().rev().find_map(|a| match a {
            Act::Field { offset: at, base, into } if into == value && *at == offset => Some(*base),
            _ => None,
        })
    })
}

/// Returns the 4-byte variable that every evaluator reads before it sets the line; `None` if there are fewer than
/// three.
fn beside(evaluators: &[&Done], line: u64) -> Option<u64> {
    let mut times: HashMap<u64, usize> = HashMap::new();
    for function in evaluators {
        let set = function.acts.iter().position(|a| matches!(a, Act::Store { to, .. } if *to == line))?;
        let near = function.acts.get(set.saturating_sub(NEAR)..set)?.iter().rev();
        let mut read = near.filter_map(|a| match a {
            Act::Load { from, is_wide: false, .. } => Some(*from),
            _ => None,
        });
        *times.entry(read.next()?).or_default() += 1;
    }
    let (variable, of) = times.into_iter().max_by_key(|(variable, of)| (*of, *variable))?;
    (of >= 3 && of == evaluators.len()).then_some(variable)
}

/// Returns the offset from rsp at which a function saves `argument`.
fn kept(acts: &[Act], argument: Register) -> Option<u64> {
    acts.iter().find_map(|a| match a {
        Act::Keep { slot, value } if *value == argument => Some(*slot),
        _ => None,
    })
}

/// Returns the offset from rsp at which a function saves the `parsefile` of its beginning.
fn input_slot(acts: &[Act], input: u64) -> Option<u64> {
    let (loaded, into) = acts.iter().enumerate().find_map(|(n, a)| match a {
        Act::Load { from, into, is_wide: true } if *from == input => Some((n, *into)),
        _ => None,
    })?;
    kept(acts.get(loaded..)?.get(..NEAR).unwrap_or(acts.get(loaded..)?), into)
}
