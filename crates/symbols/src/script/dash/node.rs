//! The commands that dash has parsed (nodes.h) and the files it reads them from (input.c): the same from 0.5.11 on, on
//! x86-64.

use crate::script::memory::{Memory, readable};

/// Types of nodes.
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
/// The largest line number that is believed.
pub(crate) const MAX_LINE: u32 = 1 << 26;
/// A node's line, of those that have one.
const LINE: u64 = 4;
/// Offset of the first child of a node: of two commands, of a loop, of a pipeline.
const FIRST: u64 = 8;
/// The next command of a list, and this one.
const LISTED: u64 = 8;
/// Most commands within each other.
const MAX_DEPTH: usize = 256;
/// Most bytes of a function's name.
const MAX_NAME: usize = 512;
/// `struct funcnode.n`, behind the count of its uses, and its name in it.
const FUNCTION_NODE: u64 = 8;
const FUNCTION_NAME: u64 = 16;
/// `struct parsefile`: what was being read before, its line, its descriptor, how much is left of the line and of what
/// has been read.
const FILE_LINE: u64 = 8;
const DESCRIPTOR: u64 = 12;
const LEFT: u64 = 16;
/// Most inputs within each other.
const MAX_INPUTS: usize = 64;

/// Returns the line of a simple command.
pub(crate) fn line_of_command(memory: &mut Memory<'_, '_>, node: u64) -> Option<u32> {
    (memory.half(node)? == COMMAND).then(|| line(memory, node))?
}

fn line(memory: &mut Memory<'_, '_>, node: u64) -> Option<u32> {
    memory.half(node.wrapping_add(LINE)).filter(|line| (1..=MAX_LINE).contains(line))
}

/// Returns the line of the first command in a pipeline, or in what is started in the background: `None` if a node is
/// neither. Dash sets no line in those.
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

/// A function that is evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The line it begins at.
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

/// Something that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) address: u64,
    /// Its descriptor; negative for a text.
    pub(crate) descriptor: i32,
    /// True as long as nothing has been read from it.
    pub(crate) is_unread: bool,
}

/// Returns all that is being read, innermost first: from what the pointer at `address` points to, to the script itself.
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
