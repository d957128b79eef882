//! Finds an interpreter's state on the heap by the words of the native stack, since no variable leads to it.

use super::interpreter::around;
use super::memory::Memory;
use std::ops::Range;

/// Bytes of a native stack searched, at most.
const MAX_STACK: u64 = 256 << 10;
/// Words of a native stack tried, at most.
const MAX_TRIED: usize = 512;
/// States found, at most.
const MAX_FOUND: usize = 64;

/// Calls `is_one` for the words of a native stack that may point to the heap, with the range of the stack. Returns
/// its results, sorted.
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

/// A script state that runs on a native stack; the innermost compares least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Running {
    /// Address on the native stack of its innermost evaluation.
    pub(crate) evaluated_at: u64,
    pub(crate) state: u64,
}
