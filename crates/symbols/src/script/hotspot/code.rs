//! Code that HotSpot generated at run time: finds it by an address in it, and reads the methods and bytecodes it
//! executes there.

use super::layout::{Methods, Parts};
use super::methods::Heap;
use super::numbers::Numbers;
use std::cmp::Ordering;

/// Code heaps looked through, at most.
const MAX_HEAPS: u32 = 16;
/// Steps from an address back to the start of its block, at most.
const MAX_STEPS: usize = 1 << 14;
/// Bytes of a table, at most.
const MAX_TABLE: u64 = 1 << 20;
/// Bytes of three packed numbers, at most.
const THREE_NUMBERS: u64 = 15;
/// Nested inlined methods read, at most.
const MAX_INLINED: usize = 64;
/// Words of a frame, at most.
const MAX_FRAME: u32 = 1 << 16;

/// A piece of generated code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blob {
    /// Address of its `CodeBlob`.
    pub(crate) at: u64,
    pub(crate) kind: Kind,
    /// Number of words of its frames, including the return address, if HotSpot tells it.
    pub(crate) frame_words: Option<u32>,
}

/// Kind of a piece of generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The bytecode interpreter.
    Interpreter,
    /// A compiled method.
    Method,
    /// Any other code.
    Stub,
}

/// A method, and the index of the bytecode it executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) method: u64,
    pub(crate) index: Option<u32>,
}

impl Heap<'_, '_, '_> {
    /// Returns the code that contains `pc`.
    pub(crate) fn blob(&mut self, pc: u64) -> Option<Blob> {
        let at = &self.layout.cache;
        let heaps = self.memory.pointer(at.heaps)?;
        let count = self.half(heaps, at.heaps_length)?.min(MAX_HEAPS);
        let data = self.pointer(heaps, at.heaps_data)?;
        let mut heaps = (0..count).filter_map(|n| self.pointer(data, 8 * u64::from(n))).collect::<Vec<_>>().into_iter();
        let holds = |this: &mut Self, heap: u64| {
            let memory = heap.wrapping_add(at.memory);
            let (low, high) = (this.pointer(memory, at.low)?, this.pointer(memory, at.high)?);
            (low..high).contains(&pc).then_some((heap, low))
        };
        let (heap, low) = heaps.find_map(|heap| holds(self, heap))?;
        let shift = self.half(heap, at.segment_shift).filter(|shift| *shift < 32)?;
        let map = self.pointer(heap.wrapping_add(at.segments), at.low)?;
        let mut segment = (pc - low) >> shift;
        // A segment's byte holds the number of segments back to the first of its block, or to one closer to it.
        for _ in 0..MAX_STEPS {
            const FREE: u8 = 0xff;
            match self.memory.byte(map.checked_add(segment)?)? {
                0 => return self.of_block(low.checked_add(segment << shift)?.checked_add(at.block)?),
                FREE => return None,
                back => segment = segment.checked_sub(u64::from(back))?,
            }
        }
        None
    }

    fn of_block(&mut self, at: u64) -> Option<Blob> {
        let layout = &self.layout.blob;
        let name = self.pointer(at, layout.name)?;
        let name = self.memory.text(name, 32)?;
        let kind = match &name[..] {
            b"Interpreter" => Kind::Interpreter,
            b"nmethod" | b"native nmethod" => Kind::Method,
            _ => Kind::Stub,
        };
        let frame_words = self.half(at, layout.frame_size).filter(|words| (1..MAX_FRAME).contains(words));
        Some(Blob { at, kind, frame_words })
    }

    fn start(&mut self, blob: Blob) -> Option<u64> {
        match self.layout.blob.code {
            (false, address) => self.pointer(blob.at, address),
            (true, offset) => Some(blob.at.wrapping_add(u64::from(self.half(blob.at, offset)?))),
        }
    }

    /// Returns the program counter at which a method was deoptimized, if `pc` is the handler to which it returns
    /// instead.
    pub(crate) fn before_it_was_given_up(&mut self, blob: Blob, pc: u64, sp: u64) -> Option<u64> {
        let handler = match self.layout.compiled.handler? {
            (false, address) => self.pointer(blob.at, address)?,
            (true, offset) => blob.at.wrapping_add(u64::from(self.half(blob.at, offset)?)),
        };
        (pc == handler).then_some(())?;
        let offset = self.half(blob.at, self.layout.compiled.original_pc).filter(|offset| *offset < MAX_FRAME * 8)?;
        self.pointer(sp, u64::from(offset))
    }

    /// Returns the places that compiled code executes when a call returns to `pc`: inlined methods first, the code's
    /// own method last.
    pub(crate) fn places(&mut self, blob: Blob, pc: u64) -> Option<Vec<Place>> {
        let own = self.pointer(blob.at, self.layout.compiled.method)?;
        Some(self.scopes(blob, pc).unwrap_or_else(|| vec![Place { method: own, index: None }]))
    }

    fn scopes(&mut self, blob: Blob, pc: u64) -> Option<Vec<Place>> {
        let tables = self.tables(blob)?;
        let offset = u32::try_from(pc.checked_sub(self.start(blob)?)?).ok()?;
        let mut scope = self.scope_at(tables.places, offset)?;
        let mut places = Vec::new();
        // The scope of a caller lies before that of the method inlined into it.
        let mut before = u32::MAX;
        while scope > 0 && scope < before && places.len() < MAX_INLINED {
            before = scope;
            let rest = tables.scopes.1.checked_sub(u64::from(scope))?.min(THREE_NUMBERS);
            let written = self.memory.bytes(tables.scopes.0.wrapping_add(u64::from(scope)), rest, THREE_NUMBERS)?;
            let mut numbers = Numbers::new(&written, self.layout.major);
            let (caller, method, index) = (numbers.next()?, numbers.next()?, numbers.next()?);
            let of_table = 8 * u64::from(method.checked_sub(1)?);
            (of_table < tables.methods.1).then_some(())?;
            let method = self.pointer(tables.methods.0, of_table)?;
            // The stored index is one more, since 0 stands for the method's entry.
            places.push(Place { method, index: index.checked_sub(1) });
            scope = caller;
        }
        (!places.is_empty()).then_some(places)
    }

    /// Returns the offset of the scope that belongs to the instruction at `offset`. The table is sorted by
    /// instruction.
    fn scope_at(&mut self, (start, size): (u64, u64), offset: u32) -> Option<u32> {
        let at = &self.layout.compiled;
        (at.pc_size >= 8 && at.pc_size < 64).then_some(())?;
        let (mut low, mut high) = (0, size / at.pc_size);
        while low < high {
            let middle = low + (high - low) / 2;
            let entry = start.wrapping_add(middle * at.pc_size);
            // Offsets are signed: that of the first entry lies before all instructions.
            match self.half(entry, at.pc)?.cast_signed().cmp(&offset.cast_signed()) {
                Ordering::Equal => return self.half(entry, at.scope),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn tables(&mut self, blob: Blob) -> Option<Tables> {
        let offset = |this: &mut Self, field: u64| this.half(blob.at, field).map(u64::from);
        match &self.layout.compiled.parts {
            Parts::Behind { metadata, scopes, places, end } => {
                let (metadata, places, end) = (offset(self, *metadata)?, offset(self, *places)?, offset(self, *end)?);
                let scopes = self.pointer(blob.at, *scopes)?.checked_sub(blob.at)?;
                let size = |from: u64, to: u64| to.checked_sub(from).filter(|size| *size <= MAX_TABLE);
                Some(Tables {
                    scopes: (blob.at.wrapping_add(scopes), size(scopes, places)?),
                    places: (blob.at.wrapping_add(places), size(places, end)?),
                    methods: (blob.at.wrapping_add(metadata), size(metadata, scopes)?),
                })
            }
            Parts::Apart { data, size, scopes, places, methods } => {
                let data = self.pointer(blob.at, *data)?;
                let (scopes, places, end) = (offset(self, *scopes)?, offset(self, *places)?, offset(self, *size)?);
                let methods = match methods {
                    Methods::Behind { metadata, code_end } => {
                        let metadata = offset(self, *metadata)? & 0xffff;
                        (blob.at.wrapping_add(offset(self, *code_end)?).wrapping_add(metadata), MAX_TABLE)
                    }
                    Methods::Mutable { data, before } => {
                        let before = offset(self, *before)?;
                        (self.pointer(blob.at, *data)?.wrapping_add(before), MAX_TABLE)
                    }
                };
                let size = |from: u64, to: u64| to.checked_sub(from).filter(|size| *size <= MAX_TABLE);
                Some(Tables {
                    scopes: (data.wrapping_add(scopes), size(scopes, end)?),
                    places: (data.wrapping_add(places), size(places, scopes)?),
                    methods,
                })
            }
        }
    }
}

/// The tables of a compiled method: the address of each, and the bound of its size in bytes.
struct Tables {
    scopes: (u64, u64),
    places: (u64, u64),
    /// The methods, which scopes name by index.
    methods: (u64, u64),
}
