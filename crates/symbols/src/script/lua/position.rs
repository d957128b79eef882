//! The line of an instruction of Lua (`luaG_getfuncline` of ldebug.c).

use super::layout::{Layout, WholeLines};
use crate::script::memory::Memory;

/// Size of an instruction, bytes.
const INSTRUCTION: u64 = 4;
/// Size of an entry of the absolute lines, bytes: an instruction's index and its line.
const WHOLE: u64 = 8;
/// Instructions of a function, at most; a larger number is not believed.
const MAX_CODE: u64 = 1 << 27;
/// Instructions between two absolute lines, at most; Lua writes one after 128 at the latest.
const MAX_BETWEEN: u64 = 1024;

/// Returns the line of the instruction before the one with which a function continues; `Some(None)` if the function's
/// lines were stripped, `None` if the instruction is not the function's.
pub(crate) fn line(
    layout: Layout,
    memory: &mut Memory<'_, '_>,
    prototype: u64,
    instruction: u64,
) -> Option<Option<u32>> {
    let code = memory.pointer(prototype.wrapping_add(layout.code))?;
    let size = u64::from(memory.half(prototype.wrapping_add(layout.code_size))?);
    let offset = instruction.checked_sub(code)?;
    let next = offset / INSTRUCTION;
    (offset.is_multiple_of(INSTRUCTION) && next <= size && size <= MAX_CODE).then_some(())?;
    let at = next.saturating_sub(1);
    let lines = memory.word(prototype.wrapping_add(layout.lines))?;
    if lines == 0 {
        return Some(None);
    }
    match layout.whole_lines {
        None => Some(memory.half(lines.wrapping_add(at * 4))),
        Some(whole) => Some(Some(by_differences(layout, memory, (prototype, whole), (lines, at))?)),
    }
}

fn by_differences(
    layout: Layout,
    memory: &mut Memory<'_, '_>,
    (prototype, whole): (u64, WholeLines),
    (lines, at): (u64, u64),
) -> Option<u32> {
    let count = u64::from(memory.half(prototype.wrapping_add(whole.count))?);
    (count <= MAX_CODE).then_some(())?;
    let table = memory.word(prototype.wrapping_add(whole.table))?;
    let entry = |n: u64| table.wrapping_add(n * WHOLE);
    // The last absolute line at or before the instruction is the entry before `first`.
    let (mut first, mut end) = (0, count);
    while first < end {
        let middle = first + (end - first) / 2;
        if u64::from(memory.half(entry(middle))?) <= at { first = middle + 1 } else { end = middle }
    }
    let (from, mut line) = match first.checked_sub(1) {
        Some(n) => (u64::from(memory.half(entry(n))?) + 1, memory.half(entry(n).wrapping_add(4))?),
        None => (0, memory.half(prototype.wrapping_add(layout.defined))?),
    };
    let length = (at + 1).checked_sub(from)?;
    for difference in memory.bytes(lines.wrapping_add(from), length, MAX_BETWEEN)? {
        line = line.checked_add_signed(i32::from(difference.cast_signed()))?;
    }
    Some(line)
}
