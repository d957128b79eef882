//! Objects of V8's heap. Each object's type is checked before the object is read.

use super::layout::Layout;
use crate::script::memory::Memory;
use std::ops::Range;
use systoll_binfile::word;

/// Nested strings followed, at most.
const MAX_DEPTH: usize = 16;
/// Parts of a string followed, at most.
const MAX_PARTS: usize = 4096;
/// Units of text read at once, at most.
const PIECE: u32 = 4096;
/// Bit of a string's type (`kUncachedExternalStringMask`): the string does not keep the address of its text.
const UNCACHED: u16 = 0x10;

/// The heap of a waiting thread.
pub(crate) struct Heap<'h, 'r, 'f> {
    pub(crate) memory: &'h mut Memory<'r, 'f>,
    pub(crate) layout: &'h Layout,
}

/// Part of a string's text.
pub(crate) enum Piece<'p> {
    /// Text in Latin-1.
    Narrow(&'p [u8]),
    /// Text in UTF-16, two bytes a unit.
    Wide(&'p [u8]),
}

/// Function that gets each piece; it returns false to end the reading.
pub(crate) type TakePiece<'t> = dyn FnMut(&Piece<'_>) -> bool + 't;

impl Heap<'_, '_, '_> {
    /// Returns the type of the object that a word points to; `None` if it points to no object.
    pub(crate) fn kind(&mut self, tagged: u64) -> Option<u16> {
        let map = self.memory.word(address(tagged)?)?;
        let kind = address(map)?.wrapping_add(self.layout.instance_type);
        let mut bytes = [0; 2];
        self.memory.fill(kind, &mut bytes)?;
        Some(u16::from_le_bytes(bytes))
    }

    /// Returns the address of an object of type `kind`; `None` for anything else.
    pub(crate) fn object(&mut self, tagged: u64, kind: u16) -> Option<u64> {
        (self.kind(tagged)? == kind).then(|| address(tagged))?
    }

    /// Returns the word at `offset` in the object at `object`.
    pub(crate) fn field(&mut self, object: u64, offset: u64) -> Option<u64> {
        self.memory.word(object.wrapping_add(offset))
    }

    /// Returns the integer in a field; `None` if it holds something else.
    pub(crate) fn integer(&mut self, object: u64, offset: u64) -> Option<i32> {
        integer(self.field(object, offset)?)
    }

    /// Returns the address of the `SharedFunctionInfo` that a `JSFunction` was made of.
    pub(crate) fn shared(&mut self, function: u64) -> Option<u64> {
        let (first, last) = self.layout.types.functions;
        (first..=last).contains(&self.kind(function)?).then_some(())?;
        let shared = self.field(address(function)?, self.layout.shared)?;
        self.object(shared, self.layout.types.shared)
    }

    /// Returns a table of at most `most` bytes.
    pub(crate) fn bytes(&mut self, tagged: u64, most: u64) -> Option<Vec<u8>> {
        let kind = self.kind(tagged)?;
        self.layout.types.bytes.contains(&kind).then_some(())?;
        self.contents(address(tagged)?, self.layout.elements, most)
    }

    /// Returns the bytes of an object that begin at `data` and whose length its length field tells: a table of bytes,
    /// or bytecode.
    pub(crate) fn contents(&mut self, object: u64, data: u64, most: u64) -> Option<Vec<u8>> {
        let length = u64::try_from(self.integer(object, self.layout.length)?).ok()?;
        self.memory.bytes(object.wrapping_add(data), length, most)
    }

    /// Returns the position and the length of an array.
    pub(crate) fn array(&mut self, tagged: u64) -> Option<Array> {
        let kind = self.kind(tagged)?;
        self.layout.types.arrays.contains(&kind).then_some(())?;
        let object = address(tagged)?;
        let length = u64::try_from(self.integer(object, self.layout.length)?).ok()?;
        Some(Array { elements: object.wrapping_add(self.layout.elements), length })
    }

    /// Returns element `n` of an array; `None` beyond its end.
    pub(crate) fn element(&mut self, array: &Array, n: u64) -> Option<u64> {
        (n < array.length).then(|| self.memory.word(array.elements.wrapping_add(n.wrapping_mul(8))))?
    }

    /// Returns the number of a string's units; `None` if the object is not a string.
    pub(crate) fn string_length(&mut self, tagged: u64) -> Option<u32> {
        (self.kind(tagged)? < self.layout.strings.first_other).then_some(())?;
        self.memory.half(address(tagged)?.wrapping_add(self.layout.strings.length))
    }

    /// Returns the first `most` units of a string; `None` if the object is not a string.
    pub(crate) fn string(&mut self, tagged: u64, most: u32) -> Option<String> {
        let length = self.string_length(tagged)?.min(most);
        let mut units: Vec<u16> = Vec::new();
        self.pieces(tagged, 0..length, &mut |piece| {
            match piece {
                Piece::Narrow(bytes) => units.extend(bytes.iter().map(|b| u16::from(*b))),
                Piece::Wide(bytes) => units.extend(bytes.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b))),
            }
            true
        })?;
        let character = |c: Result<char, _>| c.ok().filter(|c| !c.is_control()).unwrap_or(char::REPLACEMENT_CHARACTER);
        Some(char::decode_utf16(units).map(character).collect())
    }

    /// Hands the text of a string to `take`, from the first unit of `range` to its last.
    pub(crate) fn pieces(&mut self, tagged: u64, range: Range<u32>, take: &mut TakePiece<'_>) -> Option<()> {
        // Parts still to be read, the next one last.
        let mut parts = vec![(tagged, range, 0)];
        for _ in 0..MAX_PARTS {
            let Some((string, range, depth)) = parts.pop() else { return Some(()) };
            if range.is_empty() {
                continue;
            }
            let length = self.string_length(string)?;
            (range.end <= length && depth < MAX_DEPTH).then_some(())?;
            let at = &self.layout.strings;
            let (object, kind) = (address(string)?, self.kind(string)?);
            let representation = kind & at.representation;
            if representation == at.cons {
                let (first, second) = (self.field(object, at.first)?, self.field(object, at.second)?);
                let middle = self.string_length(first)?;
                let behind = range.start.saturating_sub(middle)..range.end.saturating_sub(middle);
                parts.push((second, behind, depth + 1));
                parts.push((first, range.start.min(middle)..range.end.min(middle), depth + 1));
            } else if representation == at.thin {
                parts.push((self.field(object, at.actual)?, range, depth + 1));
            } else if representation == at.sliced {
                let start = u32::try_from(self.integer(object, at.offset)?).ok()?;
                let within = range.start.checked_add(start)?..range.end.checked_add(start)?;
                parts.push((self.field(object, at.parent)?, within, depth + 1));
            } else {
                let text = if representation == 0 {
                    object.wrapping_add(at.chars)
                } else {
                    (representation == at.external && kind & UNCACHED == 0).then_some(())?;
                    self.field(object, at.resource + 8)?
                };
                let is_narrow = kind & at.encoding == at.one_byte;
                if !self.flat(text, range, is_narrow, take)? {
                    return Some(());
                }
            }
        }
        None
    }

    /// Hands over the units `range` of a text that lies in one piece. Returns false if `take` wants no more.
    fn flat(&mut self, text: u64, range: Range<u32>, is_narrow: bool, take: &mut TakePiece<'_>) -> Option<bool> {
        let width = if is_narrow { 1 } else { 2 };
        let mut at = range.start;
        while at < range.end {
            let next = range.end.min(at.saturating_add(PIECE));
            let start = text.wrapping_add(u64::from(at) * width);
            let bytes = self.memory.bytes(start, u64::from(next - at) * width, u64::from(PIECE) * 2)?;
            let piece = if is_narrow { Piece::Narrow(&bytes) } else { Piece::Wide(&bytes) };
            if !take(&piece) {
                return Some(false);
            }
            at = next;
        }
        Some(true)
    }

    /// Returns the name of a function: its own name, or else the one that V8 inferred. `None` if it can't be read.
    pub(crate) fn name(&mut self, shared: u64) -> Option<Name> {
        /// Number of a scope's locals from which on their names are in a table of their own.
        const INLINED_LOCALS: u64 = 75;
        /// Slots that may lie between the locals and the function's name, at most.
        const BETWEEN: u64 = 2;
        /// Slots read from the function's name on.
        const WITH_NAME: u64 = 5;
        let tagged = self.field(shared, self.layout.function_name)?;
        if let Some(name) = self.string(tagged, MAX_NAME) {
            return Some(Name { text: name, is_level: false, begins: None });
        }
        let scope = self.object(tagged, self.layout.types.scope)?.wrapping_add(super::layout::SLOTS);
        let at = &self.layout.scope;
        let locals = u64::try_from(self.integer(scope, at.locals * 8)?).ok().filter(|n| *n < 1 << 20)?;
        // Since V8 12.8 the function's position in the script lies before the locals.
        let told_first = at.first == 5;
        let names = at.first + if locals < INLINED_LOCALS { locals } else { 1 };
        let after = names + locals;
        let bytes = self.memory.bytes(scope.wrapping_add(after * 8), (BETWEEN + WITH_NAME) * 8, 128)?;
        let slots: Vec<u64> = (0..BETWEEN + WITH_NAME).filter_map(|n| word(&bytes, n as usize * 8)).collect();
        // After the name come the slot of its variable, the inferred name (or none) and, until V8 12.8, the position
        // in the script.
        for start in 0..=BETWEEN as usize {
            let [name, slot, made_up, first] = *slots.get(start..)?.first_chunk()?;
            let Some(own) = self.string(name, MAX_NAME).filter(|_| integer(slot).is_some()) else { continue };
            let made_up = self.string(made_up, MAX_NAME);
            let first = if told_first { self.field(scope, (at.first - 2) * 8)? } else { first };
            let is_level = own.is_empty() && made_up.is_none() && integer(first) == Some(0);
            let text = if own.is_empty() { made_up.unwrap_or_default() } else { own };
            let begins = integer(first).and_then(|first| u32::try_from(first).ok());
            return Some(Name { text, is_level, begins });
        }
        Some(Name { text: String::new(), is_level: false, begins: None })
    }

    /// Returns the offset in the script at which a function begins.
    pub(crate) fn begin(&mut self, shared: u64) -> Option<u32> {
        /// Offset of `UncompiledData::start_position`.
        const START: u64 = 16;
        if let Some(begins) = self.name(shared)?.begins {
            return Some(begins);
        }
        let data = self.field(shared, FUNCTION_DATA)?;
        let (first, last) = self.layout.waits.uncompiled;
        (first..=last).contains(&self.kind(data)?).then_some(())?;
        self.memory.half(address(data)?.wrapping_add(START))
    }

    /// Returns the bytecode of a function, a tagged pointer; `None` if it has none.
    pub(crate) fn bytecode(&mut self, shared: u64) -> Option<u64> {
        // The data is the bytecode, or a pair that begins with it, or baseline code, which keeps it in place of what
        // it needs for going back to bytecode.
        let data = self.field(shared, FUNCTION_DATA)?;
        let [types, code] = [self.layout.types.bytecode, self.layout.types.code];
        let kind = self.kind(data)?;
        let of_code = if kind == code { self.layout.code.deoptimization } else { 8 };
        let inner = if kind == types { data } else { self.field(address(data)?, of_code)? };
        let of_pair = if self.kind(inner)? == types { inner } else { self.field(address(inner)?, 8)? };
        (self.kind(of_pair)? == types).then_some(of_pair)
    }
}

/// Offset of `SharedFunctionInfo::function_data`, the first field of all versions.
const FUNCTION_DATA: u64 = 8;
/// Units read of a function's name, at most.
const MAX_NAME: u32 = 512;

/// The name of a function.
pub(crate) struct Name {
    /// The name; empty if the function has none.
    pub(crate) text: String,
    /// True if the function is the top level of a script.
    pub(crate) is_level: bool,
    /// Offset in the script at which the function begins, if it is known together with the name.
    pub(crate) begins: Option<u32>,
}

/// An array of objects.
pub(crate) struct Array {
    pub(crate) elements: u64,
    pub(crate) length: u64,
}

/// Returns the address of the object that a word points to; `None` if it points to no object.
pub(crate) fn address(tagged: u64) -> Option<u64> {
    (tagged & 3 == 1 && tagged > 4096).then_some(tagged & !3)
}

/// Returns the integer that a word holds; `None` if it holds something else.
pub(crate) fn integer(tagged: u64) -> Option<i32> {
    (tagged & 0xffff_ffff == 0).then_some((tagged >> 32) as u32 as i32)
}
