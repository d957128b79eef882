//! Finds an interpreter's state on the heap, to which no variable leads, by the words of the native stack.

use super::interpreter::around;
use super::memory::Memory;
use std::ops::Range;

/// Most of a native stack that is looked through, in bytes, and most words of it that are tried.
const MAX_STACK: u64 = 256 << 10;
const MAX_TRIED: usize = 512;
/// Most that are found.
const MAX_FOUND: usize = 64;

/// Returns what `is_one` makes of words of a native stack that may point to the heap, in order. `is_one` is given a word
/// and where the stack lies.
pub(crate) fn by_stack<T: Ord>(
    memory: &mut Memory<'_, '_>,
    stack: &Range<u64>,
    mut is_one: impl FnMut(&mut Memory<'_, '_>, u64, Range<u64>) -> Option<T>,
) -> Vec<T> {
    let native = around(&(stack.start & !7..stack.end));
    let mut tried: Vec<u64> = Vec::new();
    let mut found = Vec::new();
    for at in (native.start..native.end.min(native.start.saturating_add(MAX_STACK))).step_by(8) {
        let Some(word) = memory.word(at) else { break };
        let might = word.is_multiple_of(8) && word >= 0x1000 && !native.contains(&word);
        if !might || tried.contains(&word) {
            continue;
        }
        tried.push(word);
        found.extend(is_one(memory, word, native.clone()));
        if tried.len() >= MAX_TRIED || found.len() >= MAX_FOUND {
            break;
        }
    }
    found.sort_unstable();
    found
}

/// A state of a script's that runs on a native stack; the innermost is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Running {
    /// Where on the native stack its innermost evaluation lies.
    pub(crate) evaluated_at: u64,
    pub(crate) state: u64,
}
