//! Finds the addresses that signal handlers will return to.
//!
//! A thread in a handler returns to the interrupted code by the frame that the kernel has put on a stack. Code at such
//! an address must not be overwritten in the middle of an instruction, nor unmapped.

use crate::inproc::monitor::shared::maps::Mapped;
use crate::inproc::monitor::shared::maps::around;
use crate::sys::read_memory;
use std::collections::BTreeSet;

/// Bytes of stack that are searched for each thread, at most.
const MOST: usize = 16 << 20;
/// Bytes of a stack that are read at once.
const PIECE: usize = 256 << 10;
/// Segments as the kernel writes them into a frame of a 64-bit program: cs, gs, fs, ss, 16 bits each (struct
/// sigcontext_64 of arch/x86/include/uapi/asm/sigcontext.h).
const SEGMENTS: u64 = 0x002b_0000_0000_0033;
/// Segments in a frame from a kernel that does not store ss.
const SEGMENTS_WITHOUT_SS: u64 = 0x33;
/// Number of words from the segments back to rip, and to rsp.
const RIP: usize = 2;
const RSP: usize = 3;

/// Returns the addresses that signal handlers of a stopped thread may return to. It searches the stacks from `rsp` on
/// for signal frames; frames of handlers that have returned may be among them. Returns `None` if a stack can't be read,
/// or if the stacks are too large to be searched.
pub(crate) fn interrupted(tid: i32, rsp: u64, mapped: &[Mapped]) -> Option<Vec<u64>> {
    let (mut found, mut left) = (Vec::new(), MOST);
    let (mut todo, mut seen) = (vec![rsp], BTreeSet::new());
    while let Some(sp) = todo.pop() {
        // The frame's stack pointer leads into no mapping: there is no further stack.
        let Some(stack) = around(mapped, sp) else { continue };
        let begin = sp & !7;
        // This part was already searched, from a lower address on.
        if seen.range(..=begin).next_back().is_some_and(|low: &u64| stack.range.contains(low)) {
            continue;
        }
        seen.insert(begin);
        let len = usize::try_from(stack.range.end - begin).ok()?;
        left = left.checked_sub(len)?;
        for (rip, rsp) in frames(tid, begin, len)? {
            found.push(rip);
            todo.push(rsp);
        }
    }
    Some(found)
}

/// Returns rip and rsp of all possible frames in `len` bytes from `begin` on.
fn frames(tid: i32, begin: u64, len: usize) -> Option<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    // The last words of the piece before are kept, so that no frame is cut in two.
    let mut words: Vec<u64> = Vec::new();
    let mut at = 0;
    while at < len {
        let mut bytes = vec![0; PIECE.min(len - at)];
        if read_memory(tid, begin + at as u64, &mut bytes) != bytes.len() {
            return None;
        }
        let kept = words.len().saturating_sub(RSP);
        words.drain(..kept);
        let old = words.len();
        words.extend(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)));
        found.extend(in_words(&words, old));
        at += bytes.len();
    }
    Some(found)
}

/// Returns rip and rsp of the frames whose segments lie in `words`, from index `first` on.
fn in_words(words: &[u64], first: usize) -> impl Iterator<Item = (u64, u64)> {
    (first.max(RSP)..words.len())
        .filter(|n| matches!(words.get(*n), Some(&SEGMENTS | &SEGMENTS_WITHOUT_SS)))
        .filter_map(|n| Some((*words.get(n - RIP)?, *words.get(n - RSP)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_known_by_its_segments() {
        let words = [1, 2, 0x7000, 0x40_1000, 0x246, SEGMENTS, 9];
        assert_eq!(in_words(&words, 0).collect::<Vec<_>>(), [(0x40_1000, 0x7000)]);
        assert_eq!(in_words(&words, 6).count(), 0);
        assert_eq!(in_words(&[SEGMENTS], 0).count(), 0);
    }
}
