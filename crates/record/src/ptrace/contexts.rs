//! Contexts that were walked before: a call from the same place under the same return addresses has the same.
//!
//! A walk goes by the instruction pointer and by words of the stack. Where each frame lies at a constant distance
//! from the one below, these words are the return addresses and nothing else: found alike at the same distances,
//! they make the same walk, as long as the same files are mapped.

use crate::sys;
use crate::tracee::At;
use std::collections::HashMap;
use systoll_model::Sysno;
use systoll_symbols::PlacedFrame;

/// Contexts kept for one instruction, and instructions kept, at most.
const MOST_CONTEXTS: usize = 32;
const MOST_PLACES: usize = 4_096;
/// Stack read to tell contexts apart, at most, bytes. The kernel reads a page as fast as a word.
const MOST_STACK: usize = 2_048;

/// The contexts of a process, until something else is mapped.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    places: HashMap<u64, Place>,
    /// The stack that was read last, kept for its room.
    stack: Vec<u8>,
}

/// What calls by one instruction came through.
#[derive(Debug, Default)]
struct Place {
    /// Stack that tells them apart, bytes from the stack pointer on.
    reads: usize,
    contexts: Vec<Context>,
}

/// Return addresses, and the rows of the calls they led to.
#[derive(Debug)]
struct Context {
    words: Box<[Word]>,
    rows: Vec<(Sysno, u32)>,
}

/// A return address and its distance from the stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    offset: usize,
    value: u64,
}

impl Context {
    fn is_on(&self, stack: &[u8]) -> bool {
        self.words.iter().all(|w| stack.get(w.offset..w.offset + 8) == Some(&w.value.to_ne_bytes()))
    }
}

impl Contexts {
    /// Forgets everything: other files are mapped.
    pub(super) fn clear(&mut self) {
        self.places.clear();
    }

    /// The row of a call that thread `tid` makes, where its context is known.
    pub(super) fn find(&mut self, tid: i32, at: At, syscall: Sysno) -> Option<u32> {
        let place = self.places.get_mut(&at.ip)?;
        self.stack.resize(place.reads, 0);
        if place.reads > 0 && sys::read_memory(tid, at.sp, &mut self.stack) != place.reads {
            return None;
        }
        place.find(&self.stack, syscall)
    }

    /// Keeps the context of a call, up to the user's frame, and the row it belongs to.
    pub(super) fn keep(&mut self, placed: &[PlacedFrame], syscall: Sysno, row: u32) {
        let Some(words) = words(placed) else { return };
        let Some(ip) = placed.first().map(|p| p.ip) else { return };
        if self.places.len() >= MOST_PLACES && !self.places.contains_key(&ip) {
            return;
        }
        self.places.entry(ip).or_default().keep(words, syscall, row);
    }
}

impl Place {
    fn find(&mut self, stack: &[u8], syscall: Sysno) -> Option<u32> {
        let at = self.contexts.iter().position(|c| c.is_on(stack))?;
        let row = self.contexts[at].rows.iter().find(|(s, _)| *s == syscall).map(|(_, row)| *row);
        // Those in use come first.
        self.contexts.swap(at, at / 2);
        row
    }

    fn keep(&mut self, words: Box<[Word]>, syscall: Sysno, row: u32) {
        self.reads = words.iter().map(|w| w.offset + 8).fold(self.reads, usize::max);
        if let Some(context) = self.contexts.iter_mut().find(|c| c.words == words) {
            // A wrapper of any call comes to many numbers in one context.
            if context.rows.len() < MOST_CONTEXTS && !context.rows.iter().any(|(s, _)| *s == syscall) {
                context.rows.push((syscall, row));
            }
            return;
        }
        if self.contexts.len() < MOST_CONTEXTS {
            self.contexts.push(Context { words, rows: vec![(syscall, row)] });
        }
    }
}

/// The words that a walk went by; `None` where it went by more than these.
fn words(placed: &[PlacedFrame]) -> Option<Box<[Word]>> {
    let (first, callers) = placed.split_first()?;
    first.frame.module?;
    let word = |frame: &PlacedFrame| {
        if !frame.constant || !frame.frame.is_return {
            return None;
        }
        frame.frame.module?;
        let below = frame.sp.checked_sub(8)?.checked_sub(first.sp)?;
        let offset = usize::try_from(below).ok().filter(|o| o + 8 <= MOST_STACK)?;
        Some(Word { offset, value: frame.ip })
    };
    callers.iter().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_symbols::{AddressSpace, RawFrame, Symbols};

    /// A walk from `ip` through return addresses at distances from the stack pointer.
    fn placed(ip: u64, callers: &[(usize, u64)], constant: bool) -> Vec<PlacedFrame> {
        let (mut symbols, mut space) = (Symbols::new(), AddressSpace::new());
        space.update(&mut symbols, std::process::id() as i32);
        let module = space.files().next().map(|f| f.module);
        let frame = |address, is_return| RawFrame { module, address, is_return };
        let mut frames = vec![PlacedFrame { frame: frame(ip, false), ip, sp: 0x1000, constant: true }];
        frames.extend(callers.iter().map(|(offset, value)| PlacedFrame {
            frame: frame(*value, true),
            ip: *value,
            sp: 0x1000 + *offset as u64 + 8,
            constant,
        }));
        frames
    }

    fn stack(words: &[(usize, u64)]) -> Vec<u8> {
        let mut stack = vec![0; 256];
        for (offset, value) in words {
            stack[*offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
        }
        stack
    }

    #[test]
    fn a_context_is_told_by_all_its_return_addresses() {
        let mut contexts = Contexts::default();
        let (one, other) = ([(8, 0x10), (40, 0x20)], [(8, 0x10), (40, 0x21)]);
        contexts.keep(&placed(7, &one, true), Sysno(39), 1);
        contexts.keep(&placed(7, &other, true), Sysno(39), 2);
        contexts.keep(&placed(7, &other, true), Sysno(0), 3);
        let place = contexts.places.get_mut(&7).unwrap();
        assert_eq!(place.reads, 48);
        for _ in 0..3 {
            assert_eq!(place.find(&stack(&one), Sysno(39)), Some(1));
            assert_eq!(place.find(&stack(&other), Sysno(39)), Some(2));
            assert_eq!(place.find(&stack(&other), Sysno(0)), Some(3));
        }
        assert_eq!(place.find(&stack(&one), Sysno(0)), None);
        assert_eq!(place.find(&stack(&[(8, 0x10), (40, 0x22)]), Sysno(39)), None);
        assert_eq!(place.find(&stack(&one)[..47], Sysno(39)), None);
        contexts.clear();
        assert!(contexts.places.is_empty());
    }

    #[test]
    fn what_lies_at_no_constant_place_is_walked_again() {
        let mut contexts = Contexts::default();
        contexts.keep(&placed(7, &[(8, 0x10)], false), Sysno(39), 1);
        contexts.keep(&placed(7, &[(MOST_STACK, 0x10)], true), Sysno(39), 1);
        let mut unknown = placed(7, &[(8, 0x10)], true);
        unknown[1].frame.module = None;
        contexts.keep(&unknown, Sysno(39), 1);
        contexts.keep(&[], Sysno(39), 1);
        assert!(contexts.places.is_empty());
    }

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let mut contexts = Contexts::default();
        for value in 0..100 {
            contexts.keep(&placed(7, &[(8, value)], true), Sysno(39), value as u32);
            contexts.keep(&placed(8, &[], true), Sysno(value as u32), value as u32);
        }
        assert_eq!(contexts.places[&7].contexts.len(), MOST_CONTEXTS);
        assert_eq!(contexts.places[&8].contexts[0].rows.len(), MOST_CONTEXTS);
        // No word has to be read where the program itself calls.
        let at = At { ip: 8, sp: 0 };
        assert_eq!(contexts.find(std::process::id() as i32, at, Sysno(5)), Some(5));
        // What can't be read is not known.
        assert_eq!(contexts.find(std::process::id() as i32, At { ip: 7, sp: 0 }, Sysno(39)), None);
    }
}
