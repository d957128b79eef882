//! Finds the function of the program that waits for the work of a stack which has none: Node's own functions that an
//! event has called, or that go on after an `await` of theirs.
//!
//! Such a function is not on the stack, and what has called Node is forgotten. But objects lead to who gets the result:
//! first the chain of awaits, which V8 itself follows for its asynchronous stack traces; else listeners, callbacks and
//! what they enclose, beginning with the receivers and arguments on the stack.

use super::code::{Place, interpreted};
use super::heap::{Heap, address, integer};
use super::sources::Script;
use foldhash::HashSet;
use std::collections::VecDeque;

/// Objects looked into on the chain of awaits, at most.
const MAX_AWAITS: usize = 64;
/// Objects looked into from the stack's receivers and arguments on, at most.
const MAX_OBJECTS: usize = 256;
/// Elements read of an array, at most: Node's queues are rings of 2,048.
const MAX_ELEMENTS: u64 = 2048;
/// Values read of one object, at most.
const MAX_VALUES: u64 = 64;
/// Frames whose receivers and arguments are looked into, at most.
const MAX_FRAMES: usize = 12;
/// Arguments of a frame that are looked into, at most.
const MAX_ARGUMENTS: u64 = 4;
/// Functions that an object which serves one purpose holds, at most. Others are collections of functions for everyone:
/// Node's `fs` holds a hundred, the listeners of a stream in a pipeline ten.
const MAX_FUNCTIONS: usize = 24;
/// Functions of Node that call whatever is due: their receivers and arguments lead to everyone.
const DISPATCHERS: [&str; 4] = ["processTicksAndRejections", "processTimers", "listOnTimeout", "processImmediate"];
/// Prefix of the names of Node's own scripts.
const OWN: &str = "node:";
const WORD: u64 = 8;

/// Returns the place of the function of the program that waits for what the JavaScript frames with the frame pointers
/// `frames`, innermost first, do; `None` if no object leads to one.
pub(crate) fn waiting(heap: &mut Heap<'_, '_, '_>, frames: &[u64]) -> Option<Place> {
    let mut awaits = Search::new(false, MAX_AWAITS);
    let mut objects = Search::new(true, MAX_OBJECTS);
    for pointer in frames.get(..MAX_FRAMES).unwrap_or(frames) {
        let slot = |heap: &mut Heap<'_, '_, '_>, offset: i32| heap.memory.word(at(*pointer, offset));
        let function = slot(heap, heap.layout.frame.function)?;
        let Some(shared) = heap.shared(function) else { continue };
        if Script::of(heap, shared).is_none() {
            awaits.add(function);
            continue;
        }
        let is_dispatcher = heap.name(shared).is_some_and(|name| DISPATCHERS.contains(&&*name.text));
        if is_dispatcher {
            continue;
        }
        // The number of arguments counts the receiver, which comes first.
        let number = slot(heap, heap.layout.frame.arguments).filter(|n| *n <= 64).unwrap_or(1);
        for n in 0..number.min(MAX_ARGUMENTS + 1) {
            let argument = heap.memory.word(pointer.wrapping_add((2 + n) * WORD))?;
            objects.add(argument);
        }
    }
    awaits.found(heap).or_else(|| objects.found(heap))
}

fn at(pointer: u64, offset: i32) -> u64 {
    pointer.wrapping_add_signed(i64::from(offset))
}

/// A search through objects, the nearest ones first.
struct Search {
    next: VecDeque<u64>,
    seen: HashSet<u64>,
    /// True if it goes through all objects; false if only through those by which an `await` goes on.
    is_wide: bool,
    /// Number of objects that may still be looked into.
    left: usize,
}

impl Search {
    fn new(is_wide: bool, left: usize) -> Self {
        Self { next: VecDeque::new(), seen: HashSet::default(), is_wide, left }
    }

    fn add(&mut self, tagged: u64) {
        if address(tagged).is_some() && self.next.len() < 4 * MAX_OBJECTS && self.seen.insert(tagged) {
            self.next.push_back(tagged);
        }
    }

    fn found(mut self, heap: &mut Heap<'_, '_, '_>) -> Option<Place> {
        while let Some(tagged) = self.next.pop_front() {
            let Some(kind) = heap.kind(tagged) else { continue };
            self.left = self.left.checked_sub(1)?;
            if let Some(place) = self.look(heap, tagged, kind) {
                return Some(place);
            }
        }
        None
    }

    /// Looks into an object. Returns the place if it is a function of the program, or an `await` of one.
    fn look(&mut self, heap: &mut Heap<'_, '_, '_>, tagged: u64, kind: u16) -> Option<Place> {
        let (object, layout) = (address(tagged)?, heap.layout);
        let (types, waits) = (&layout.types, &layout.waits);
        let is = |range: (u16, u16)| (range.0..=range.1).contains(&kind);
        if is(types.functions) {
            let shared = heap.shared(tagged)?;
            let script = Script::of(heap, shared);
            match &script {
                Some(script) if is_programs(script) => return Some(begin(heap, shared)),
                Some(_) if !self.is_wide => return None,
                _ => {}
            }
            let context = heap.field(object, waits.function_context)?;
            if script.is_some() {
                self.add_context(heap, context);
            } else {
                self.add_own_context(heap, context);
            }
            self.add_values(heap, object);
        } else if is(waits.generators) {
            let function = heap.field(object, waits.generator)?;
            let shared = heap.shared(function)?;
            if Script::of(heap, shared).is_some_and(|script| is_programs(&script)) {
                return Some(await_of(heap, object, shared));
            }
            // The promise of an asynchronous function, or the requests to an asynchronous generator.
            let result = heap.field(object, waits.generator + 7 * WORD)?;
            self.add(result);
        } else if kind == waits.promise {
            let reactions = heap.field(object, waits.reactions)?;
            if heap.kind(reactions) == Some(waits.reaction) {
                self.add(reactions);
            }
        } else if kind == waits.reaction {
            // Handler of fulfilment, derived promise, next reaction.
            for field in [3, 4, 1] {
                let value = heap.field(object, field * WORD)?;
                self.add(value);
            }
        } else if kind == waits.capability {
            let promise = heap.field(object, WORD)?;
            self.add(promise);
        } else if kind == waits.request {
            let promise = heap.field(object, 4 * WORD)?;
            self.add(promise);
        } else if is(types.contexts) {
            self.add_slots(heap, object);
        } else if self.is_wide && kind >= waits.objects {
            self.add_values(heap, object);
        } else if self.is_wide && kind == *types.arrays.first()? {
            let array = heap.array(tagged)?;
            let most = self.seen.len() + MAX_VALUES as usize;
            for n in 0..array.length.min(MAX_ELEMENTS) {
                let value = heap.element(&array, n)?;
                self.add(value);
                if self.seen.len() > most {
                    break;
                }
            }
        }
        None
    }

    /// Adds the context of a function of a script, unless it is that of a module, whose variables all its functions share.
    fn add_context(&mut self, heap: &mut Heap<'_, '_, '_>, context: u64) {
        if outer(heap, context).and_then(|outer| self::outer(heap, outer)).is_some() {
            self.add(context);
        }
    }

    /// Adds the context of a function of the language, unless it is that of all such functions.
    fn add_own_context(&mut self, heap: &mut Heap<'_, '_, '_>, context: u64) {
        /// Slots of a context that belongs to one function, at most. The one of all has hundreds.
        const MAX_SLOTS: i32 = 16;
        let slots = address(context).and_then(|object| heap.integer(object, heap.layout.length));
        if is_context(heap, context) && slots.is_some_and(|slots| slots <= MAX_SLOTS) {
            self.add(context);
        }
    }

    fn add_slots(&mut self, heap: &mut Heap<'_, '_, '_>, object: u64) {
        let Some(length) = heap.integer(object, heap.layout.length) else { return };
        let length = u64::try_from(length).unwrap_or(0).min(MAX_VALUES);
        // The first slot describes the scope, the second one holds the outer context.
        for n in 2..length {
            let Some(value) = heap.field(object, heap.layout.elements + n * WORD) else { return };
            if self.is_wide || heap.kind(value).is_some_and(|kind| heap.layout.waits.carries(kind)) {
                self.add(value);
            }
        }
        if self.is_wide
            && let Some(outer) = heap.field(object, heap.layout.elements + WORD)
        {
            self.add_context(heap, outer);
        }
    }

    /// Adds the values of an object's properties and elements.
    fn add_values(&mut self, heap: &mut Heap<'_, '_, '_>, object: u64) {
        if !self.is_wide {
            return;
        }
        let values = values(heap, object).unwrap_or_default();
        let (first, last) = heap.layout.types.functions;
        let is_function = |heap: &mut Heap<'_, '_, '_>, value: u64| {
            heap.kind(value).is_some_and(|kind| (first..=last).contains(&kind))
        };
        if values.iter().filter(|value| is_function(heap, **value)).count() <= MAX_FUNCTIONS {
            values.into_iter().for_each(|value| self.add(value));
        }
    }
}

/// Returns the values of an object's properties: those in the object, then those beside it, then its elements.
fn values(heap: &mut Heap<'_, '_, '_>, object: u64) -> Option<Vec<u64>> {
    let waits = &heap.layout.waits;
    let map = address(heap.memory.word(object)?)?;
    let words = u64::from(heap.memory.byte(map.wrapping_add(waits.size_in_words))?);
    let first = u64::from(heap.memory.byte(map.wrapping_add(waits.first_in_words))?).max(3);
    let mut values = Vec::new();
    for n in (first..words).take(MAX_VALUES as usize) {
        values.push(heap.field(object, n * WORD)?);
    }
    let beside = heap.field(object, waits.properties)?;
    values.extend(properties(heap, beside).unwrap_or_default());
    let elements = heap.field(object, waits.elements)?;
    if let Some(elements) = heap.array(elements) {
        for n in 0..elements.length.min(MAX_VALUES) {
            values.push(heap.element(&elements, n)?);
        }
    }
    values.retain(|value| address(*value).is_some());
    Some(values)
}

/// Returns the values of the properties beside an object: of an array of them, or of a dictionary.
fn properties(heap: &mut Heap<'_, '_, '_>, tagged: u64) -> Option<Vec<u64>> {
    /// Elements of a dictionary's entry: name, value, details.
    const ENTRY: u64 = 3;
    let prefix = heap.layout.waits.dictionary;
    let (kind, object) = (heap.kind(tagged)?, address(tagged)?);
    let elements = heap.layout.elements;
    let word = |heap: &mut Heap<'_, '_, '_>, n: u64| heap.field(object, elements.wrapping_add(n * WORD));
    if kind == heap.layout.waits.property_array {
        // The length is the lower part of the number, which has the object's hash, too.
        let length = u64::try_from(heap.integer(object, heap.layout.length)? & 0x3ff).ok()?;
        return (0..length.min(MAX_VALUES)).map(|n| word(heap, n)).collect();
    }
    let length = u64::try_from(heap.integer(object, heap.layout.length)?).ok()?;
    let capacity = u64::try_from(integer(word(heap, 2)?)?).ok().filter(|n| *n <= 1 << 16)?;
    (length == prefix + capacity * ENTRY).then_some(())?;
    (0..capacity.min(4 * MAX_VALUES)).map(|n| word(heap, prefix + n * ENTRY + 1)).collect()
}

/// Returns the context around a context; `None` for the outermost one, and for anything else.
fn outer(heap: &mut Heap<'_, '_, '_>, context: u64) -> Option<u64> {
    is_context(heap, context).then_some(())?;
    let outer = heap.field(address(context)?, heap.layout.elements + WORD)?;
    is_context(heap, outer).then_some(outer)
}

fn is_context(heap: &mut Heap<'_, '_, '_>, tagged: u64) -> bool {
    let (first, last) = heap.layout.types.contexts;
    heap.kind(tagged).is_some_and(|kind| (first..=last).contains(&kind))
}

/// Returns true for a script of the program.
fn is_programs(script: &Script) -> bool {
    script.name.as_deref().is_none_or(|name| !name.starts_with(OWN))
}

/// Returns the place where a function begins.
fn begin(heap: &mut Heap<'_, '_, '_>, shared: u64) -> Place {
    Place { shared, offset: heap.begin(shared) }
}

/// Returns the place of the `await` at which a function waits.
fn await_of(heap: &mut Heap<'_, '_, '_>, generator: u64, shared: u64) -> Place {
    let offset = heap.field(generator, heap.layout.waits.generator + 3 * WORD);
    let place = offset.and_then(|offset| {
        let bytecode = heap.bytecode(shared)?;
        interpreted(heap, bytecode, offset).flatten()
    });
    Place { shared, offset: place.or_else(|| heap.begin(shared)) }
}

#[cfg(test)]
mod tests {
    use super::super::layout::Layout;
    use super::*;
    use crate::script::memory::{Memory, in_turn};

    const BASE: u64 = 0x10_000;
    const CONTEXT: u64 = 206;

    /// A heap that is written object by object, each after a map of its own.
    struct Written {
        words: Vec<u64>,
        layout: Layout,
    }

    impl Written {
        fn new() -> Self {
            // The map of maps is its own.
            Self { words: vec![BASE + 1, 255 << 32], layout: Layout::tried(false) }
        }

        /// Writes an object of a type with these words behind its map. Returns a pointer to it.
        fn object(&mut self, kind: u64, words: &[u64]) -> u64 {
            let map = BASE + 8 * self.words.len() as u64 + 1;
            let size = words.len() as u64 + 1;
            let properties = if kind == 1057 { 3 } else { size };
            self.words.extend([BASE + 1, kind << 32 | properties << 8 | size, map]);
            self.words.extend(words);
            map + 16
        }

        fn string(&mut self, text: &str) -> u64 {
            let mut bytes = text.as_bytes().to_vec();
            bytes.resize(text.len().div_ceil(8) * 8, 0);
            let words: Vec<u64> = bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
            self.object(8, &[&[(text.len() as u64) << 32], &words[..]].concat())
        }

        fn array(&mut self, kind: u64, values: &[u64]) -> u64 {
            self.object(kind, &[&[(values.len() as u64) << 32], values].concat())
        }

        /// Writes a function of a script; without one, a function of the language.
        fn function(&mut self, script: &str, context: u64) -> u64 {
            let name = self.string("f");
            let file = self.string(script);
            let script = if script.is_empty() { 0 } else { self.object(167, &[0, file, 0, 0, 0, 0, 0]) };
            let shared = self.object(262, &[0, name, 0, script]);
            self.object(2066, &[0, 0, shared, context])
        }

        /// Writes a context within two others, the outer one of which is a module's.
        fn context(&mut self, slots: &[u64]) -> u64 {
            let native = self.array(CONTEXT, &[0, 0]);
            let module = self.array(CONTEXT, &[0, native]);
            let outer = self.array(CONTEXT, &[0, module]);
            self.array(CONTEXT, &[&[0, outer], slots].concat())
        }

        /// Writes a promise for whose result a function waits.
        fn awaited(&mut self, by: u64) -> u64 {
            let context = self.array(CONTEXT, &[0, 0, by]);
            let handler = self.function("", context);
            let reaction = self.object(163, &[0, 0, handler, 0]);
            self.object(2063, &[0, 0, reaction])
        }

        fn generator(&mut self, function: u64, promise: u64) -> u64 {
            self.object(2106, &[0, 0, function, 0, 0, 0, 0, 0, 0, promise])
        }

        /// Returns the function that waits for what a frame with this function and receiver does: the address of its
        /// `SharedFunctionInfo`.
        fn waiting(&mut self, function: u64, receiver: u64) -> Option<u64> {
            let pointer = BASE + 8 * self.words.len() as u64 + 40;
            self.words.extend([0, 0, 1, function, 0, 0, 0, receiver]);
            let words: Vec<u8> = self.words.iter().flat_map(|w| w.to_le_bytes()).collect();
            let mut read = in_turn(|address, buffer: &mut [u8]| {
                let start = address.checked_sub(BASE).map_or(usize::MAX, |at| at as usize);
                let Some(rest) = words.get(start..) else { return 0 };
                let n = rest.len().min(buffer.len());
                buffer[..n].copy_from_slice(&rest[..n]);
                n
            });
            let mut memory = Memory::new(&mut read);
            let heap = &mut Heap { memory: &mut memory, layout: &self.layout };
            waiting(heap, &[pointer]).map(|place| place.shared)
        }

        fn shared(&self, function: u64) -> Option<u64> {
            self.words.get(((function - 1 - BASE) / 8 + 3) as usize).map(|tagged| tagged - 1)
        }
    }

    #[test]
    fn awaits_lead_over_nodes_own_functions_to_the_programs() {
        let mut heap = Written::new();
        let own = heap.function("/srv/app.js", 0);
        let inner = heap.function("node:internal/fs/promises", 0);
        let nobody = heap.object(2063, &[0, 0, 0]);
        let program = heap.generator(own, nobody);
        let promise = heap.awaited(program);
        let readers = heap.generator(inner, promise);
        let context = heap.context(&[readers]);
        let resumes = heap.function("", context);
        assert_eq!(heap.waiting(resumes, 0), heap.shared(own));
        // Nobody waits for the result.
        let alone = heap.generator(inner, nobody);
        let context = heap.context(&[alone]);
        let resumes = heap.function("", context);
        assert_eq!(heap.waiting(resumes, 0), None);
    }

    #[test]
    fn listeners_and_callbacks_lead_to_the_program_and_collections_of_functions_do_not() {
        let mut heap = Written::new();
        let own = heap.function("file:///srv/app.mjs", 0);
        let context = heap.context(&[own]);
        let listener = heap.function("node:internal/streams/readable", context);
        let events = heap.array(179, &[0, 0, 1 << 32, 0, 0, 0, 0, listener, 0]);
        let listeners = heap.object(1057, &[events, 0]);
        let stream = heap.object(1057, &[0, 0, listeners]);
        let read = heap.function("node:internal/fs/streams", 0);
        assert_eq!(heap.waiting(read, stream), heap.shared(own));
        let other = heap.function("node:internal/fs/streams", 0);
        let patched: Vec<u64> = (0..=MAX_FUNCTIONS).map(|n| if n == 3 { own } else { other }).collect();
        let fs = heap.object(1057, &[&[0, 0], &patched[..]].concat());
        let stream = heap.object(1057, &[0, 0, fs]);
        assert_eq!(heap.waiting(read, stream), None);
        // What a module's variables lead to belongs to no stream.
        let native = heap.array(CONTEXT, &[0, 0]);
        let module = heap.array(CONTEXT, &[0, native, own]);
        let bare = heap.function("node:internal/streams/readable", module);
        let stream = heap.object(1057, &[0, 0, bare]);
        assert_eq!(heap.waiting(read, stream), None);
    }
}
