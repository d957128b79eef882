//! Where handlers of signals go back to.
//!
//! A thread that is in a handler comes back to what the signal interrupted by the frame that the kernel has put on a
//! stack. Nothing may be written over the middle of what it comes back to, and nothing unmapped.

use crate::inproc::monitor::shared::maps::Mapped;
use crate::inproc::monitor::shared::maps::around;
use crate::sys::read_memory;
use std::collections::BTreeSet;

/// Bytes of stack that are looked through, of one thread.
const MOST: usize = 16 << 20;
/// Bytes read at once.
const PIECE: usize = 256 << 10;
/// Segments as the kernel writes them into a frame of a 64-bit program: cs, gs, fs, ss, 16 bits each (struct
/// sigcontext_64 of arch/x86/include/uapi/asm/sigcontext.h).
const SEGMENTS: u64 = 0x002b_0000_0000_0033;
/// The same of a kernel that does not tell ss.
const SEGMENTS_WITHOUT_SS: u64 = 0x33;
/// Words from there back to rip and rsp.
const RIP: usize = 2;
const RSP: usize = 3;

/// The addresses that handlers of a stopped thread may go back to, by all that its stacks hold from `rsp` on: too many
/// rather than too few, for a frame that is done with may still be there. `None` where its stacks can't be read, or are
/// too large to be looked through.
pub(crate) fn interrupted(tid: i32, rsp: u64, mapped: &[Mapped]) -> Option<Vec<u64>> {
    let (mut found, mut left) = (Vec::new(), MOST);
    let (mut todo, mut seen) = (vec![rsp], BTreeSet::new());
    while let Some(sp) = todo.pop() {
        // A handler that has made its own stack pointer what it likes leads nowhere.
        let Some(stack) = around(mapped, sp) else { continue };
        let begin = sp & !7;
        // What was looked through from a lower address on needs no second look.
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

/// rip and rsp of every frame that may lie in so many bytes.
fn frames(tid: i32, begin: u64, len: usize) -> Option<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    // The last words of the piece before, so that no frame is cut.
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

/// The frames whose segments stand in `words`, from index `first` on.
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
