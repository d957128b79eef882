//! The commands that dash has parsed (nodes.h), and the inputs from which it reads them (input.c); their layout is
//! the same from 0.5.11 on, on x86-64.

use crate::script::memory::{Memory, readable};

/// Type of a simple command's node; the types of other nodes follow.
const COMMAND: u32 = 0;
const PIPELINE: u32 = 1;
const REDIRECTED: u32 = 2;
const BACKGROUND: u32 = 3;
const SUBSHELL: u32 = 4;
const AND: u32 = 5;
const UNTIL: u32 = 10;
const FOR: u32 = 11;
const CASE: u32 = 12;
const DEFINITION: u32 = 14;
const NOT: u32 = 25;
/// Bound of a line number; a larger one is not believed.
pub(crate) const MAX_LINE: u32 = 1 << 26;
/// Offset of a node's line, if its type has one.
const LINE: u64 = 4;
/// Offset of the first child of a node: of two commands, of a loop, of a pipeline.
const FIRST: u64 = 8;
/// Offset of the command in an entry of a list; the next entry is before it.
const LISTED: u64 = 8;
/// Nested commands followed, at most.
const MAX_DEPTH: usize = 256;
/// Bytes read of a function's name, at most.
const MAX_NAME: usize = 512;
/// Offset of `struct funcnode.n`; the number of its uses is before it.
const FUNCTION_NODE: u64 = 8;
/// Offset of the function's name in `struct funcnode`.
const FUNCTION_NAME: u64 = 16;
/// Offset of the line in `struct parsefile`; the outer input is before it.
const FILE_LINE: u64 = 8;
/// Offset of the descriptor in `struct parsefile`.
const DESCRIPTOR: u64 = 12;
/// Offset in `struct parsefile` of the numbers of characters left of the line and of the buffer.
const LEFT: u64 = 16;
/// Nested inputs followed, at most.
const MAX_INPUTS: usize = 64;

/// Returns the line of a simple command.
pub(crate) fn line_of_command(memory: &mut Memory<'_, '_>, node: u64) -> Option<u32> {
    (memory.half(node)? == COMMAND).then(|| line(memory, node))?
}

fn line(memory: &mut Memory<'_, '_>, node: u64) -> Option<u32> {
    memory.half(node.wrapping_add(LINE)).filter(|line| (1..=MAX_LINE).contains(line))
}

/// Returns the line of the first command in a pipeline, or in a command started in the background, for which dash
/// sets no line itself; `None` for other nodes.
pub(crate) fn line_of_started(memory: &mut Memory<'_, '_>, node: u64) -> Option<u32> {
    match memory.half(node)? {
        PIPELINE if memory.half(node.wrapping_add(LINE))? <= 1 => {}
        BACKGROUND => {}
        _ => return None,
    }
    let mut node = node;
    for _ in 0..MAX_DEPTH {
        match memory.half(node)? {
            COMMAND | REDIRECTED | SUBSHELL | FOR | CASE | DEFINITION => return line(memory, node),
            PIPELINE => {
                let list = memory.pointer(node.wrapping_add(FIRST))?;
                node = memory.pointer(list.wrapping_add(LISTED))?;
            }
            BACKGROUND | AND..=UNTIL | NOT => node = memory.pointer(node.wrapping_add(FIRST))?,
            _ => return None,
        }
    }
    None
}

/// A function that is being executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Line at which the function begins.
    pub(crate) line: u32,
}

impl Function {
    /// Returns the function of a `struct funcnode`, if there is one.
    pub(crate) fn of(memory: &mut Memory<'_, '_>, address: u64) -> Option<Self> {
        let node = address.wrapping_add(FUNCTION_NODE);
        (memory.half(node)? == DEFINITION).then_some(())?;
        let name = memory.pointer(node.wrapping_add(FUNCTION_NAME - FUNCTION_NODE))?;
        let name = readable(&memory.text(name, MAX_NAME)?);
        (!name.is_empty()).then_some(())?;
        Some(Self { name, line: line(memory, node)? })
    }
}

/// An input from which dash reads commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) address: u64,
    /// Descriptor of the input; negative for a text.
    pub(crate) descriptor: i32,
    /// True until something is read from the input.
    pub(crate) is_unread: bool,
}

/// Returns the inputs being read, innermost first, from the one to which the pointer at `address` points to the
/// script itself.
pub(crate) fn inputs(memory: &mut Memory<'_, '_>, address: u64) -> Option<Vec<Input>> {
    let mut at = memory.pointer(address)?;
    let mut all = Vec::new();
    while all.len() < MAX_INPUTS {
        let line = memory.half(at.wrapping_add(FILE_LINE))?;
        let left = memory.word(at.wrapping_add(LEFT))?;
        let descriptor = memory.half(at.wrapping_add(DESCRIPTOR))? as i32;
        all.push(Input { address: at, descriptor, is_unread: line <= 1 && left == 0 });
        at = memory.word(at)?;
        if at == 0 {
            return Some(all);
        }
    }
    None
}
