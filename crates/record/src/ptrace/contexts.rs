//! Recognises contexts: a call from the same instruction under the same return addresses has the same context.
//!
//! Unwinding depends on the instruction pointer and on words of the stack. If each frame lies at a constant distance
//! from the one below, those words are exactly the return addresses. If the same words lie at the same distances,
//! unwinding gives the same frames, as long as the same files are mapped.

use crate::procfs::Memory;
use crate::tracee::At;
use crate::{served_pages, sys};
use std::collections::HashMap;
use systoll_model::Sysno;
use systoll_symbols::PlacedFrame;

/// Contexts that are kept for one instruction, and instructions that have contexts, at most.
const MOST_CONTEXTS: usize = 32;
const MOST_PLACES: usize = 4_096;
/// Bytes of stack read to tell contexts apart, at most. The kernel reads a page as fast as a word.
const MOST_STACK: usize = 2_048;
/// Bytes read ahead of a string: most paths are shorter.
const AHEAD: usize = 192;
const PAGE: usize = 4_096;
/// Number of reads after which a process's memory is kept open.
const OFTEN: u32 = 32;

/// The known contexts of a process, until another file is mapped.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    places: HashMap<u64, CallSite>,
    /// The stack that was read last; its allocation is reused.
    stack: Vec<u8>,
    memory: KeptMemory,
}

/// A process's memory, kept open if it is read often: opening and closing it costs as much as ten reads save.
#[derive(Debug, Default)]
struct KeptMemory {
    /// Number of reads so far.
    reads: u32,
    file: Option<Memory>,
}

impl KeptMemory {
    /// Counts a read for thread `tid`, and opens the memory if there have been enough.
    fn note_read(&mut self, tid: i32) {
        self.reads = self.reads.saturating_add(1);
        if self.reads == OFTEN {
            self.file = Memory::keep(tid);
        }
    }

    fn read(&self, tid: i32, address: u64, buffer: &mut [u8]) -> usize {
        match &self.file {
            Some(memory) if !served_pages::seen() && memory.read(address, buffer) == buffer.len() => buffer.len(),
            // Unlike a read of the open memory, this call reads the bytes before an unmapped page.
            _ => sys::read_memory(tid, address, buffer),
        }
    }
}

/// The first bytes of a string to which a call points, up to the page's end, read before they are needed.
#[derive(Debug)]
pub(super) struct ReadAhead {
    address: u64,
    bytes: [u8; AHEAD],
    /// Number of bytes read; 0 if these bytes do not contain the string's end.
    length: usize,
}

impl Default for ReadAhead {
    fn default() -> Self {
        Self { address: 0, bytes: [0; AHEAD], length: 0 }
    }
}

impl ReadAhead {
    /// Sets the address of a string, which is not read yet.
    pub(super) fn expect(&mut self, address: u64) -> &mut Self {
        (self.address, self.length) = (address, 0);
        self
    }

    /// Drops the string that was read ahead.
    pub(super) fn forget(&mut self) {
        self.length = 0;
    }

    /// Reads `stack` from `sp` on, and then the string. Returns the number of bytes of the stack that were read.
    fn read_with(&mut self, tid: i32, sp: u64, stack: &mut [u8]) -> usize {
        // Read no further than the page's end: the next page may be unmapped.
        let most = AHEAD.min(PAGE - (self.address % PAGE as u64) as usize);
        let read = sys::read_two(tid, (sp, &mut *stack), (self.address, &mut self.bytes[..most]));
        let length = read.saturating_sub(stack.len());
        self.length = if self.bytes[..length].contains(&0) { length } else { 0 };
        read.min(stack.len())
    }

    /// Copies the bytes read at `address` into `buffer`, as far as there is room. Returns `None` if another address was
    /// read.
    pub(super) fn copy(&self, address: u64, buffer: &mut [u8]) -> Option<usize> {
        let length = self.length.min(buffer.len());
        if length == 0 || address != self.address {
            return None;
        }
        buffer[..length].copy_from_slice(&self.bytes[..length]);
        Some(length)
    }
}

/// The known contexts of calls by one instruction.
#[derive(Debug, Default)]
struct CallSite {
    /// Bytes of stack, from the stack pointer on, that tell the contexts apart.
    reads: usize,
    contexts: Vec<Context>,
}

/// The return addresses of a context, and the rows of its calls.
#[derive(Debug)]
struct Context {
    words: Box<[Word]>,
    rows: Vec<(Sysno, u32)>,
}

/// A return address on the stack, and its distance from the stack pointer.
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
    /// Forgets contexts and memory, since the process has a new address space, in which it has made no call.
    pub(super) fn restart(&mut self) {
        self.clear();
        self.memory = KeptMemory::default();
    }

    /// Forgets all contexts, since other files are mapped now.
    pub(super) fn clear(&mut self) {
        self.places.clear();
    }

    /// Returns the row of a call that thread `tid` makes, if its context is known. Together with the stack, reads the
    /// string that the call points to.
    pub(super) fn find(&mut self, tid: i32, at: At, syscall: Sysno, string: Option<&mut ReadAhead>) -> Option<u32> {
        self.memory.note_read(tid);
        let place = self.places.get_mut(&at.ip)?;
        self.stack.resize(place.reads, 0);
        let read = match string {
            None if place.reads == 0 => 0,
            None => self.memory.read(tid, at.sp, &mut self.stack),
            Some(string) => string.read_with(tid, at.sp, &mut self.stack),
        };
        if read < place.reads {
            return None;
        }
        place.find(&self.stack, syscall)
    }

    /// Reads memory of the process of thread `tid` into `buffer`. Returns the number of bytes read.
    pub(super) fn read_memory(&self, tid: i32, address: u64, buffer: &mut [u8]) -> usize {
        self.memory.read(tid, address, buffer)
    }

    /// Keeps the context of a call, up to the user's frame, and the call's row.
    pub(super) fn keep(&mut self, placed: &[PlacedFrame], syscall: Sysno, row: u32) {
        let Some(words) = words(placed) else { return };
        let Some(ip) = placed.first().map(|p| p.ip) else { return };
        if self.places.len() >= MOST_PLACES && !self.places.contains_key(&ip) {
            return;
        }
        self.places.entry(ip).or_default().keep(words, syscall, row);
    }
}

impl CallSite {
    fn find(&mut self, stack: &[u8], syscall: Sysno) -> Option<u32> {
        let at = self.contexts.iter().position(|c| c.is_on(stack))?;
        let row = self.contexts[at].rows.iter().find(|(s, _)| *s == syscall).map(|(_, row)| *row);
        // Moves contexts that are found towards the front.
        self.contexts.swap(at, at / 2);
        row
    }

    fn keep(&mut self, words: Box<[Word]>, syscall: Sysno, row: u32) {
        self.reads = words.iter().map(|w| w.offset + 8).fold(self.reads, usize::max);
        if let Some(context) = self.contexts.iter_mut().find(|c| c.words == words) {
            // A wrapper through which any call can be made has many numbers in one context, so their number is bounded.
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

/// Returns the words on which unwinding depended; `None` if it depended on anything else.
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

    /// Returns the frames of a call at `ip`, with return addresses at these distances from the stack pointer.
    fn placed(ip: u64, callers: &[(usize, u64)], constant: bool) -> Vec<PlacedFrame> {
        let (mut symbols, mut space) = (Symbols::new(), AddressSpace::new());
        space.update(&mut symbols, std::process::id() as i32);
        let module = space.files().next().map(|f| f.module);
        let frame = |address, is_return| RawFrame { module, address, is_return };
        let mut frames = vec![PlacedFrame { frame: frame(ip, false), ip, sp: 0x1000, constant: true, pointer: None }];
        frames.extend(callers.iter().map(|(offset, value)| PlacedFrame {
            frame: frame(*value, true),
            ip: *value,
            sp: 0x1000 + *offset as u64 + 8,
            constant,
            pointer: None,
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
    fn a_context_is_recognized_by_all_its_return_addresses() {
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
    fn stacks_without_constant_places_are_not_kept() {
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
    fn a_string_that_ends_within_the_page_is_read_with_the_stack() {
        let me = std::process::id() as i32;
        let path = b"/etc/hosts\0 and more".to_vec();
        let words = stack(&[(8, 0x10)]);
        let (sp, mut read, mut ahead) = (words.as_ptr() as u64, vec![0; 16], ReadAhead::default());
        let address = path.as_ptr() as u64;
        assert_eq!(ahead.expect(address).read_with(me, sp, &mut read), 16);
        assert_eq!(read, words[..16]);
        let mut buffer = [0; 8];
        assert_eq!((ahead.copy(address, &mut buffer), &buffer), (Some(8), b"/etc/hos"));
        assert_eq!(ahead.copy(address + 1, &mut buffer), None);
        ahead.forget();
        assert_eq!(ahead.copy(address, &mut buffer), None);
        // The stack is returned even if the string can't be read, but no string is kept without the stack.
        assert_eq!(ahead.expect(8).read_with(me, sp, &mut read), 16);
        assert_eq!(ahead.copy(8, &mut buffer), None);
        assert_eq!(ahead.expect(address).read_with(me, 8, &mut read), 0);
        assert_eq!(ahead.copy(address, &mut buffer), None);
        let long = vec![b'a'; 2 * PAGE];
        ahead.expect(long.as_ptr() as u64).read_with(me, sp, &mut read);
        assert_eq!(ahead.copy(long.as_ptr() as u64, &mut buffer), None);
    }

    #[test]
    fn the_number_of_kept_contexts_is_limited() {
        let mut contexts = Contexts::default();
        for value in 0..100 {
            contexts.keep(&placed(7, &[(8, value)], true), Sysno(39), value as u32);
            contexts.keep(&placed(8, &[], true), Sysno(value as u32), value as u32);
        }
        assert_eq!(contexts.places[&7].contexts.len(), MOST_CONTEXTS);
        assert_eq!(contexts.places[&8].contexts[0].rows.len(), MOST_CONTEXTS);
        // If the program itself makes the call, no return address has to be read.
        let at = At { ip: 8, sp: 0 };
        assert_eq!(contexts.find(std::process::id() as i32, at, Sysno(5), None), Some(5));
        // A stack that can't be read gives no context.
        assert_eq!(contexts.find(std::process::id() as i32, At { ip: 7, sp: 0 }, Sysno(39), None), None);
    }
}
