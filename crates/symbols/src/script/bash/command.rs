//! The line at which a command of several commands begins: a loop, a condition, a pipeline, a group.
//!
//! Bash stores no line for these (command.h): while it opens their pipes and files and forks for them, `line_number`
//! is still that of an earlier command. The first simple command in them has a line.

use crate::script::memory::Memory;

/// Value of `COMMAND.type` for a loop over words; the other types follow.
const FOR: u32 = 0;
const CASE: u32 = 1;
const WHILE: u32 = 2;
const IF: u32 = 3;
const SIMPLE: u32 = 4;
const SELECT: u32 = 5;
const CONNECTION: u32 = 6;
const UNTIL: u32 = 8;
const GROUP: u32 = 9;
const ARITHMETIC: u32 = 10;
const CONDITION: u32 = 11;
const ARITHMETIC_FOR: u32 = 12;
const SUBSHELL: u32 = 13;
/// Offset of `COMMAND.value`.
const VALUE: u64 = 24;
/// Offset of the first command in a `while_com`, an `if_com`, a `connection` or a `group_com`.
const FIRST: u64 = 8;
/// Offset of `line` in all other commands; their flags are before it.
const LINE: u64 = 4;
/// Nested commands followed, at most.
const MOST: usize = 256;

/// Returns the line of the first command within the command to which the pointer at `address` points; `None` if that
/// is not one of several commands.
pub(crate) fn first_line(memory: &mut Memory<'_, '_>, address: u64) -> Option<u32> {
    let mut command = memory.pointer(address)?;
    for depth in 0..MOST {
        let (kind, value) = (memory.half(command)?, memory.pointer(command.wrapping_add(VALUE))?);
        match kind {
            WHILE | IF | CONNECTION | UNTIL | GROUP => command = memory.pointer(value.wrapping_add(FIRST))?,
            FOR | CASE | SIMPLE | SELECT | ARITHMETIC | CONDITION | ARITHMETIC_FOR | SUBSHELL => {
                return memory.half(value.wrapping_add(LINE)).filter(|line| depth > 0 && *line > 0);
            }
            _ => return None,
        }
    }
    None
}
