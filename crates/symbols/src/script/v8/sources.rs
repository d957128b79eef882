//! Scripts: their names, and the lines of positions in them.

use super::heap::{Heap, Piece, address};
use foldhash::HashMap;
use std::sync::Arc;

/// Scripts whose lines are remembered, at most.
const MAX_SCRIPTS: usize = 512;
/// Units of a source whose lines are counted, at most.
const MAX_SOURCE: u32 = 4 << 20;
/// Units read of a script's name, at most.
const MAX_NAME: u32 = 4096;
/// Units at the start of a source that tell it from another of the same length.
const BEGINNING: u32 = 64;

/// Ends of lines of the scripts that were counted.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    ends: HashMap<Identity, Arc<[u32]>>,
}

/// Identity of a script within a process; it stays the same when the heap moves the script.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    number: Option<i32>,
    length: u32,
    beginning: String,
    name: Option<Arc<str>>,
}

/// A script.
pub(crate) struct Script {
    /// Address of the script's object.
    object: u64,
    /// The script's file or URL; `None` for code that was evaluated.
    pub(crate) name: Option<Arc<str>>,
}

/// A place in a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The line, from 1 on.
    pub(crate) line: u32,
    /// The column, in units of UTF-16, from 0 on.
    pub(crate) column: u32,
}

impl Script {
    /// Returns the script of a function; `None` for a function of the language's own.
    pub(crate) fn of(heap: &mut Heap<'_, '_, '_>, shared: u64) -> Option<Self> {
        let tagged = heap.field(shared, heap.layout.function_script)?;
        let object = heap.object(tagged, heap.layout.types.script)?;
        let name = heap.field(object, heap.layout.script.name)?;
        let name = heap.string(name, MAX_NAME).filter(|n| !n.is_empty());
        Some(Self { object, name: name.map(Arc::from) })
    }

    /// Returns the number that V8 gave the script.
    pub(crate) fn number(&self, heap: &mut Heap<'_, '_, '_>) -> Option<i32> {
        heap.integer(self.object, heap.layout.script.id())
    }

    /// Returns the script's source, a string.
    pub(crate) fn source(&self, heap: &mut Heap<'_, '_, '_>) -> Option<u64> {
        let source = heap.field(self.object, heap.layout.script.source)?;
        address(source).map(|_| source)
    }
}

impl Sources {
    /// Returns the line and column of an offset in a script.
    pub(crate) fn place(&mut self, heap: &mut Heap<'_, '_, '_>, script: &Script, offset: u32) -> Option<Place> {
        let at = &heap.layout.script;
        let ends = heap.field(script.object, at.line_ends)?;
        let first = heap.integer(script.object, at.first_line()).filter(|n| (0..1 << 24).contains(n)).unwrap_or(0);
        let (before, end_before) = match heap.array(ends).filter(|ends| ends.length > 0) {
            Some(known) => {
                let (mut low, mut high) = (0, known.length);
                while low < high {
                    let middle = low + (high - low) / 2;
                    let end = heap.element(&known, middle).and_then(super::heap::integer)?;
                    if i64::from(end) < i64::from(offset) { low = middle + 1 } else { high = middle }
                }
                let last = low.checked_sub(1).and_then(|n| heap.element(&known, n)).and_then(super::heap::integer);
                (u32::try_from(low).ok()?, last.and_then(|end| u32::try_from(end).ok()))
            }
            None => {
                let ends = self.ends(heap, script)?;
                let before = ends.partition_point(|end| *end < offset);
                let last = before.checked_sub(1).and_then(|n| ends.get(n)).copied();
                (u32::try_from(before).ok()?, last)
            }
        };
        let line = before.checked_add(1)?.checked_add(first.cast_unsigned())?;
        let begins = end_before.map_or(0, |end| end.saturating_add(1));
        Some(Place { line, column: offset.saturating_sub(begins) })
    }

    /// Returns the ends of a script's lines, which V8 itself has not counted yet.
    fn ends(&mut self, heap: &mut Heap<'_, '_, '_>, script: &Script) -> Option<Arc<[u32]>> {
        let source = script.source(heap)?;
        let length = heap.string_length(source).filter(|n| *n <= MAX_SOURCE)?;
        let number = script.number(heap);
        let identity =
            Identity { number, length, beginning: heap.string(source, BEGINNING)?, name: script.name.clone() };
        if let Some(known) = self.ends.get(&identity) {
            return Some(Arc::clone(known));
        }
        let mut ends = Ends::default();
        heap.pieces(source, 0..length, &mut |piece| {
            match piece {
                Piece::Narrow(bytes) => bytes.iter().for_each(|b| ends.take(u16::from(*b))),
                Piece::Wide(bytes) => bytes.as_chunks().0.iter().for_each(|b| ends.take(u16::from_le_bytes(*b))),
            }
            true
        })?;
        let ends: Arc<[u32]> = ends.finished().into();
        if self.ends.len() >= MAX_SCRIPTS {
            self.ends.clear();
        }
        self.ends.insert(identity, Arc::clone(&ends));
        Some(ends)
    }
}

/// Counter of the ends of lines as ECMAScript defines them: a line feed, a carriage return, both together, or a
/// separator of lines or paragraphs.
#[derive(Debug, Default)]
struct Ends {
    ends: Vec<u32>,
    at: u32,
    after_return: bool,
}

impl Ends {
    fn take(&mut self, unit: u16) {
        let is_end = matches!(unit, 0x0a | 0x0d | 0x2028 | 0x2029);
        // After a carriage return, a line feed is part of the same end.
        if self.after_return && unit != 0x0a {
            self.ends.push(self.at - 1);
        }
        self.after_return = unit == 0x0d;
        if is_end && !self.after_return {
            self.ends.push(self.at);
        }
        self.at += 1;
    }

    fn finished(mut self) -> Vec<u32> {
        if self.after_return {
            self.ends.push(self.at - 1);
        }
        self.ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_the_language_says() {
        let ends = |text: &str| {
            let mut ends = Ends::default();
            text.encode_utf16().for_each(|unit| ends.take(unit));
            ends.finished()
        };
        assert_eq!(ends("ab\nc\n\nd"), [2, 4, 5]);
        assert_eq!(ends("a\r\nb\rc\r"), [2, 4, 6]);
        assert_eq!(ends("a\u{2028}b\u{2029}\r\r\n"), [1, 3, 4, 6]);
        assert_eq!(ends(""), [0u32; 0]);
    }
}
