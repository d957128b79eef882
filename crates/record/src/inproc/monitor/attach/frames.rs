//! Finds the addresses that signal handlers will return to.
//!
//! A thread in a handler returns to the interrupted code by the frame that the kernel has put on a stack. Code at such
//! an address must not be overwritten in the middle of an instruction, nor unmapped.

use crate::inproc::monitor::shared::maps::Mapped;
use crate::inproc::monitor::shared::maps::around;
use crate::served_pages;
use crate::sys::{range, read_memory, read_ranges};
use std::collections::BTreeSet;
use std::io::IoSliceMut;

/// Bytes of one stack that are searched, at most.
const MOST: usize = 16 << 20;
/// Bytes of all stacks that are searched, at most.
const MOST_IN_ALL: usize = 256 << 20;
/// Bytes of a stack that are read at once.
const PIECE: usize = 256 << 10;
/// Bytes of stacks, and number of their pieces, that are read by one call, at most (the second is UIO_MAXIOV).
const AT_ONCE: (usize, usize) = (1 << 20, 1024);
/// Segments as the kernel writes them into a frame of a 64-bit program: cs, gs, fs, ss, 16 bits each (struct
/// sigcontext_64 of arch/x86/include/uapi/asm/sigcontext.h).
const SEGMENTS: u64 = 0x002b_0000_0000_0033;
/// Segments in a frame from a kernel that does not store ss.
const SEGMENTS_WITHOUT_SS: u64 = 0x33;
/// Number of words from the segments back to rsp; rip lies behind that.
const RSP: usize = 3;

/// Returns the addresses that signal handlers of stopped threads may return to. `tid` is one of the threads, and
/// `pointers` are their stack pointers. It searches the stacks from there on for signal frames; frames of handlers that
/// have returned may be among them. Returns `None` if a stack can't be read, or if the stacks are too large to be
/// searched.
pub(crate) fn interrupted(tid: i32, pointers: &[u64], mapped: &[Mapped]) -> Option<Vec<u64>> {
    let (mut found, mut left) = (Vec::new(), MOST_IN_ALL);
    let (mut todo, mut seen) = (pointers.to_vec(), BTreeSet::new());
    while !todo.is_empty() {
        // The lowest pointer into a stack comes first: what is found from there on includes the rest.
        todo.sort_unstable();
        let mut parts = Vec::new();
        for sp in todo {
            // The frame's stack pointer leads into no mapping: there is no further stack.
            let Some(stack) = around(mapped, sp) else { continue };
            let begin = sp & !7;
            // This part was already searched, from a lower address on.
            if seen.range(..=begin).next_back().is_some_and(|low: &u64| stack.range.contains(low)) {
                continue;
            }
            seen.insert(begin);
            let len = usize::try_from(stack.range.end - begin).ok().filter(|len| *len <= MOST)?;
            left = left.checked_sub(len)?;
            parts.push((begin, len));
        }
        todo = Vec::new();
        for (rip, rsp) in frames(tid, &parts)? {
            found.push(rip);
            todo.push(rsp);
        }
    }
    Some(found)
}

/// Returns rip and rsp of all possible frames in parts of stacks, given by their first address and their length in
/// bytes.
fn frames(tid: i32, parts: &[(u64, usize)]) -> Option<Vec<(u64, u64)>> {
    let (mut found, mut batch, mut bytes) = (Vec::new(), Vec::new(), 0);
    for piece in parts.iter().flat_map(|part| pieces(*part)) {
        if bytes + piece.1 > AT_ONCE.0 || batch.len() == AT_ONCE.1 {
            found.extend(frames_in(tid, &batch)?);
            batch.clear();
            bytes = 0;
        }
        batch.push(piece);
        bytes += piece.1;
    }
    found.extend(frames_in(tid, &batch)?);
    Some(found)
}

/// Returns the pieces of a part of a stack. Each repeats the last words of the piece before, so that no frame is cut in
/// two.
fn pieces((begin, len): (u64, usize)) -> impl Iterator<Item = (u64, usize)> {
    (0..len).step_by(PIECE).map(move |at| {
        let first = at.saturating_sub(8 * RSP);
        (begin + first as u64, len.min(at + PIECE) - first)
    })
}

/// Returns rip and rsp of all possible frames in pieces of stacks.
fn frames_in(tid: i32, pieces: &[(u64, usize)]) -> Option<Vec<(u64, u64)>> {
    let mut bytes = vec![0; pieces.iter().map(|(_, len)| len).sum()];
    if !read(tid, pieces, &mut bytes) {
        return None;
    }
    let (mut found, mut rest) = (Vec::new(), bytes.as_chunks::<8>().0);
    for (_, len) in pieces {
        let piece;
        (piece, rest) = rest.split_at_checked(len / 8)?;
        found.extend(in_words(piece));
    }
    Some(found)
}

/// Fills `bytes` with the pieces, one behind the other. Returns true if all could be read.
fn read(tid: i32, pieces: &[(u64, usize)], bytes: &mut [u8]) -> bool {
    if !served_pages::seen() {
        let from: Vec<_> = pieces.iter().map(|(at, len)| range(*at, *len)).collect();
        return bytes.is_empty() || read_ranges(tid, &from, &mut [IoSliceMut::new(bytes)]) == bytes.len();
    }
    let mut rest = bytes;
    pieces.iter().all(|(at, len)| {
        let Some((piece, behind)) = std::mem::take(&mut rest).split_at_mut_checked(*len) else { return false };
        rest = behind;
        read_memory(tid, *at, piece) == *len
    })
}

/// Returns rip and rsp of the frames whose segments lie in `words`.
fn in_words(words: &[[u8; 8]]) -> Vec<(u64, u64)> {
    const MARKS: [[u8; 8]; 2] = [SEGMENTS.to_le_bytes(), SEGMENTS_WITHOUT_SS.to_le_bytes()];
    let mut found = Vec::new();
    for (n, word) in words.iter().enumerate() {
        if (*word == MARKS[0] || *word == MARKS[1])
            && let Some([rsp, rip, ..]) = n.checked_sub(RSP).and_then(|first| words.get(first..n))
        {
            found.push((u64::from_le_bytes(*rip), u64::from_le_bytes(*rsp)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_known_by_its_segments() {
        let words = [1, 2, 0x7000, 0x40_1000, 0x246, SEGMENTS, 9].map(u64::to_le_bytes);
        assert_eq!(in_words(&words), [(0x40_1000, 0x7000)]);
        assert!(in_words(&words[3..]).is_empty() && in_words(&words[5..6]).is_empty());
    }

    /// A stack of this process, with its mapping.
    fn stack(words: &[u64]) -> (u64, Mapped) {
        let range = words.as_ptr_range();
        let range = range.start as u64..range.end as u64;
        (range.start, Mapped { range, writable: true, executable: false, shared: false, anonymous: true })
    }

    #[test]
    fn frames_are_found_in_each_stack_and_across_pieces() {
        let me = std::process::id() as i32;
        let long = PIECE / 8;
        let (mut first, mut second, third) = (vec![0u64; 3 * long], vec![0u64; 64], vec![0u64; 8]);
        // One frame lies across the first piece's end, the other leads to a further stack.
        for (at, rip, rsp) in [(long - 2, 0x1111, 8), (2 * long + 5, 0x2222, third.as_ptr() as u64)] {
            first[at..at + 4].copy_from_slice(&[rsp, rip, 0x246, SEGMENTS]);
        }
        second[60..].copy_from_slice(&[8, 0x3333, 0x246, SEGMENTS_WITHOUT_SS]);
        let (all, mut mapped): (Vec<u64>, Vec<Mapped>) =
            [&first, &second, &third].map(|s| stack(s)).into_iter().unzip();
        mapped.sort_by_key(|m| m.range.start);
        let found = |pointers: &[u64]| {
            let mut found = interrupted(me, pointers, &mapped).unwrap();
            found.sort_unstable();
            found
        };
        assert_eq!(found(&all[..2]), [0x1111, 0x2222, 0x3333]);
        assert_eq!(found(&[all[0] + 8 * long as u64, all[1]]), [0x2222, 0x3333]);
        assert!(found(&[all[1] + 61 * 8]).is_empty());
        // The same stack is searched once.
        assert_eq!(found(&[all[1] + 16, all[1], all[1] + 8]), [0x3333]);
        let gone =
            [Mapped { range: 0x1000..0x2000, writable: true, executable: false, shared: false, anonymous: true }];
        assert_eq!(interrupted(me, &[0x1800], &gone), None);
    }
}
