//! Finds code that V8 compiled at run time by an address in it, and reads which functions and positions run at that
//! address.

use super::heap::{Heap, address, integer};
use super::positions::{Position, of_baseline, position};

/// Alignment of the first instruction, bytes.
const ALIGNMENT: u64 = 32;
/// Distance from a code's start to an address in it by which it is still found, at most, bytes.
const MAX_CODE: u64 = 512 << 10;
/// Words tried as the first word of an object, at most.
const MAX_TRIED: usize = 64;
/// Maps of code remembered, at most; each thread that runs scripts has one.
const MAX_MAPS: usize = 8;
/// Bytes of a table or of bytecode, at most.
const MAX_TABLE: u64 = 1 << 20;
/// Nested inlined functions read, at most.
const MAX_INLINED: usize = 64;

/// Map pointers of the code objects found so far. A word that equals one of them is probably the start of a code
/// object.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    maps: Vec<u64>,
}

/// Compiled code, and the place in it of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code {
    object: u64,
    kind: u32,
    /// Offset from the first instruction to which the call returns.
    offset: u64,
}

/// A function, and a position in its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Address of its `SharedFunctionInfo`.
    pub(crate) shared: u64,
    pub(crate) offset: Option<u32>,
}

impl Streams {
    /// Returns the code that contains the return address `ip`; `None` if there is none.
    pub(crate) fn code(&mut self, heap: &mut Heap<'_, '_, '_>, ip: u64) -> Option<Code> {
        let nearest = ip.wrapping_sub(1) & !(ALIGNMENT - 1);
        let starts = || (0..MAX_CODE / ALIGNMENT).map(|n| nearest.wrapping_sub(n * ALIGNMENT));
        let header = heap.layout.code.header;
        // Known maps come first, since most other words are not the start of a code object.
        for start in starts() {
            let Some(map) = heap.memory.word(start.wrapping_sub(header)) else { break };
            if self.maps.contains(&map)
                && let Some(code) = code_from(heap, start, ip)
            {
                return Some(code);
            }
        }
        let mut tried = 0;
        for start in starts() {
            let map = heap.memory.word(start.wrapping_sub(header))?;
            let is_candidate = address(map).is_some() && map >> 47 == 0 && !self.maps.contains(&map);
            tried += usize::from(is_candidate);
            if tried > MAX_TRIED {
                return None;
            }
            if is_candidate
                && heap.kind(map) == Some(heap.layout.types.map)
                && let Some(code) = code_from(heap, start, ip)
            {
                if self.maps.len() >= MAX_MAPS {
                    self.maps.clear();
                }
                self.maps.push(map);
                return Some(code);
            }
        }
        None
    }
}

/// Returns the code whose instructions begin at `start`, if `ip` returns into them.
fn code_from(heap: &mut Heap<'_, '_, '_>, start: u64, ip: u64) -> Option<Code> {
    let (at, types) = (&heap.layout.code, &heap.layout.types);
    let stream = start.wrapping_sub(at.header);
    let object = match at.start {
        None => heap.object(stream | 1, types.code)?,
        Some(of_start) => {
            heap.object(stream | 1, types.stream)?;
            let points_back = |heap: &mut Heap<'_, '_, '_>, slot: u64| {
                let tagged = heap.field(stream, slot)?;
                let code = heap.object(tagged, types.code)?;
                (heap.field(code, of_start)? == start).then_some(code)
            };
            (1..at.header / 8).find_map(|n| points_back(heap, n * 8))?
        }
    };
    let size = u64::from(heap.memory.half(object.wrapping_add(at.size))?);
    let offset = ip.wrapping_sub(start);
    (offset <= size && offset > 0).then_some(())?;
    let flags = heap.memory.half(object.wrapping_add(at.flags))?;
    Some(Code { object, kind: (flags & at.kind_mask) >> at.kind_shift, offset })
}

impl Code {
    /// Returns true if the code may be a copy of the interpreter's entry (`--interpreted-frames-native-stack`). Later
    /// versions give such copies the kind of the language's own functions, and neither has positions.
    pub(crate) fn may_interpret(self, heap: &mut Heap<'_, '_, '_>) -> bool {
        self.kind == heap.layout.code.interpreted || self.table(heap).is_none_or(|table| table.is_empty())
    }

    /// Returns the table of the code's positions; empty if it has none.
    fn table(self, heap: &mut Heap<'_, '_, '_>) -> Option<Vec<u8>> {
        let table = heap.field(self.object, heap.layout.code.positions)?;
        Some(heap.bytes(table, MAX_TABLE).unwrap_or_default())
    }

    /// Returns the places that the code executes: inlined functions first, the frame's own function last.
    pub(crate) fn places(self, heap: &mut Heap<'_, '_, '_>, shared: u64, bytecode: u64) -> Option<Vec<Place>> {
        let table = self.table(heap)?;
        if self.kind == heap.layout.code.baseline {
            let offset = self.of_baseline(heap, &table, bytecode);
            return Some(vec![Place { shared, offset }]);
        }
        // Calls from code that was deoptimized meanwhile return to its exits, which have no position.
        if self.exits(heap).is_some_and(|exits| self.offset >= exits) {
            return Some(vec![Place { shared, offset: None }]);
        }
        // A call may be the last instruction of a position, so the instruction before the return address counts.
        let Some(position) = position(&table, heap.layout.steps, self.offset - 1) else {
            return Some(vec![Place { shared, offset: None }]);
        };
        let mut places = Vec::new();
        let own = self.inlined(heap, position, &mut places)?;
        places.push(Place { shared, offset: own.offset() });
        Some(places)
    }

    /// Returns the offset of the code's deoptimization exits, which follow all calls.
    fn exits(self, heap: &mut Heap<'_, '_, '_>) -> Option<u64> {
        let data = heap.field(self.object, heap.layout.code.deoptimization)?;
        let data = heap.array(data)?;
        let exits = heap.element(&data, heap.layout.inlined.positions + 1).and_then(integer)?;
        u64::try_from(exits).ok().filter(|exits| *exits > 0)
    }

    fn of_baseline(self, heap: &mut Heap<'_, '_, '_>, table: &[u8], bytecode: u64) -> Option<u32> {
        let object = heap.object(bytecode, heap.layout.types.bytecode)?;
        let code = heap.contents(object, heap.layout.bytecode, MAX_TABLE)?;
        let at = of_baseline(table, &code, &heap.layout.bytecode_sizes, self.offset)?;
        place_in_bytecode(heap, object, at)
    }

    /// Adds the functions inlined at `position`, innermost first. Returns the position in the frame's own function.
    fn inlined(self, heap: &mut Heap<'_, '_, '_>, position: Position, places: &mut Vec<Place>) -> Option<Position> {
        if position.inlined().is_none() {
            return Some(position);
        }
        let at = &heap.layout.inlined;
        let data = heap.field(self.object, heap.layout.code.deoptimization)?;
        let data = heap.array(data)?;
        let table = heap.element(&data, at.positions)?;
        let table = heap.bytes(table, MAX_TABLE)?;
        let functions = heap.element(&data, at.functions)?;
        let functions = heap.array(functions)?;
        let count = heap.element(&data, at.count).and_then(integer)?;
        let mut position = position;
        for _ in 0..MAX_INLINED {
            let Some(number) = position.inlined() else { return Some(position) };
            // An entry holds the position in the caller, and the number of the inlined function.
            let entry = usize::try_from(number.checked_mul(16)?).ok()?;
            let (caller, rest) = table.get(entry..)?.split_first_chunk()?;
            let function = i32::from_le_bytes(*rest.first_chunk()?);
            (0..count).contains(&function).then_some(())?;
            let tagged = heap.element(&functions, u64::try_from(function).ok()?)?;
            // A weak reference has a tag bit more.
            let shared = heap.object(tagged & !2, heap.layout.types.shared)?;
            places.push(Place { shared, offset: position.offset() });
            position = Position(u64::from_le_bytes(*caller));
        }
        None
    }
}

/// Returns the position in the script of the bytecode at `at`.
pub(crate) fn place_in_bytecode(heap: &mut Heap<'_, '_, '_>, bytecode: u64, at: u64) -> Option<u32> {
    let table = heap.field(bytecode, heap.layout.bytecode_positions)?;
    let table = heap.bytes(table, MAX_TABLE)?;
    position(&table, heap.layout.steps, at)?.offset()
}

/// Returns the script position of an interpreted frame, from the two slots that hold its bytecode array and the
/// offset of its instruction. `None` if the slots are not those of an interpreted frame.
pub(crate) fn interpreted(heap: &mut Heap<'_, '_, '_>, bytecode: u64, offset: u64) -> Option<Option<u32>> {
    let object = heap.object(bytecode, heap.layout.types.bytecode)?;
    let length = heap.integer(object, heap.layout.length)?;
    // The offset counts from the object's tagged address, which is one more than its address.
    let data = i64::try_from(heap.layout.bytecode).ok()? - 1;
    let at = i64::from(integer(offset)?) - data;
    (0..i64::from(length)).contains(&at).then(|| place_in_bytecode(heap, object, at.cast_unsigned()))
}
