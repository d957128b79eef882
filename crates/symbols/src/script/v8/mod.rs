//! V8: reads the functions and lines of a thread's JavaScript frames, starting from the frame pointers of its stack.
//!
//! All code of V8 keeps frame pointers. Slots below a frame pointer tell the frame's function and, if it is
//! interpreted, its bytecode and offset. For compiled code, tables of the code object around the return address tell
//! the rest.

pub(crate) mod code;
pub(crate) mod heap;
pub(crate) mod layout;
pub(crate) mod positions;
mod source_map;
pub(crate) mod sources;
mod waiting;

use self::code::{Place, Streams, interpreted};
use self::heap::{Heap, address};
use self::layout::Layout;
use self::source_map::SourceMaps;
use self::sources::{Script, Sources, path};
use super::interpreter::{Candidate, Interpreter, Look, Runtime};
use super::memory::Memory;
use super::thread::Evaluation;
use crate::lines::{ScriptLine, ScriptLines};
use crate::{PlacedFrame, RawFrame};
use std::sync::Arc;
use systoll_model::{FrameClass, Language};

/// Frames of a stack returned, at most.
const MAX_FRAMES: usize = 512;
/// Distance from a frame pointer to the next, at most, bytes.
const MAX_FRAME: u64 = 1 << 20;
/// Name of a script's top level.
pub(crate) const LEVEL: &str = "(script)";
/// Name of a function without one.
const NAMELESS: &str = "(anonymous)";
/// File name of code that was evaluated.
pub(crate) const EVALUATED: &str = "<eval>";
/// Prefix of the names of Node's own scripts.
const OWN: &str = "node:";

/// A file that holds V8, with the layout that it exports.
#[derive(Clone, Debug)]
struct V8File {
    layout: Arc<Layout>,
}

/// Returns the V8 in a file, if it holds one that exports where its frames are.
pub(crate) fn recognise(file: Candidate<'_>) -> Option<Box<dyn Runtime>> {
    let [tells] = file.exported(["v8dbg_SmiTagMask"]);
    tells?;
    Some(Box::new(V8File { layout: Arc::new(Layout::of(file)?) }))
}

/// Returns true for the libraries that come with Node.
pub(crate) fn is_bundled(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|file| file.starts_with("libuv.so"))
}

impl Runtime for V8File {
    fn attach(&self, _: &mut Memory<'_, '_>, _: u64) -> Result<Option<Box<dyn Interpreter>>, String> {
        Ok(Some(Box::new(V8::new(Arc::clone(&self.layout)))))
    }

    fn evaluate(&self) -> Option<u64> {
        None
    }

    fn compiles(&self) -> bool {
        true
    }
}

/// V8 in an address space.
#[derive(Debug)]
pub(crate) struct V8 {
    layout: Arc<Layout>,
    streams: Streams,
    sources: Sources,
    maps: SourceMaps,
}

impl Interpreter for V8 {
    fn evaluations(&mut self, look: &mut Look<'_, '_, '_>) -> Option<Vec<Evaluation>> {
        let layout = Arc::clone(&self.layout);
        let mut told = Told::default();
        for pair in look.placed.windows(2) {
            let [frame, caller] = pair else { continue };
            // The caller was found by this frame's frame pointer, which lies below the return address.
            let Some(pointer) = caller.sp.checked_sub(16).filter(|at| *at >= frame.sp && *at > told.up_to) else {
                continue;
            };
            self.chain(&layout, look, At { ip: frame.ip, pointer }, &mut told);
        }
        if told.own == 0 && !told.pointers.is_empty() {
            self.add_waiting(&layout, look, &mut told);
        }
        // Frames outside the outermost of the program's own functions only start the program, so they are left out.
        // If no function is the program's own, all are kept.
        let own = if told.own > 0 { told.own } else { told.evaluations.len() };
        told.evaluations.truncate(own);
        Some(told.evaluations)
    }
}

/// A frame: its instruction pointer and its frame pointer.
#[derive(Clone, Copy, Debug)]
struct At {
    ip: u64,
    pointer: u64,
}

/// The state of a walk up a stack.
#[derive(Debug, Default)]
struct Told {
    evaluations: Vec<Evaluation>,
    /// Number of evaluations up to the outermost one of the program's own functions.
    own: usize,
    /// Frame pointers of the JavaScript frames, innermost first.
    pointers: Vec<u64>,
    /// Outermost frame pointer followed so far.
    up_to: u64,
}

impl V8 {
    pub(crate) fn new(layout: Arc<Layout>) -> Self {
        Self { layout, streams: Streams::default(), sources: Sources::default(), maps: SourceMaps::default() }
    }

    /// Follows frame pointers from a JavaScript frame to the call from outside. Native unwinding may lose frames in
    /// between: after code was deoptimized, a frame may return to the first byte of a function.
    fn chain(&mut self, layout: &Layout, look: &mut Look<'_, '_, '_>, from: At, told: &mut Told) {
        let (heap, lines, tid) = (&mut Heap { memory: look.memory, layout }, &mut *look.lines, look.thread.tid);
        let mut at = from;
        while told.evaluations.len() < MAX_FRAMES {
            match self.frames(heap, (look.placed, lines, tid), at) {
                Some(frames) => {
                    let is_users = |f: &RawFrame| lines.get(*f).is_some_and(|(_, class)| *class == FrameClass::User);
                    let any_own = frames.iter().any(is_users);
                    told.evaluations.push(Evaluation { frames, at: Some(at.pointer) });
                    told.pointers.push(at.pointer);
                    told.own = if any_own { told.evaluations.len() } else { told.own };
                }
                None if at.pointer == from.pointer || !is_between(heap, at.pointer) => return,
                None => {}
            }
            told.up_to = at.pointer;
            let (Some(pointer), Some(ip)) =
                (heap.memory.word(at.pointer), heap.memory.word(at.pointer.wrapping_add(8)))
            else {
                return;
            };
            if pointer <= at.pointer || pointer - at.pointer > MAX_FRAME {
                return;
            }
            at = At { ip, pointer };
        }
    }

    /// Adds the function of the program that waits for what a stack without one does, as the outermost frame.
    fn add_waiting(&mut self, layout: &Layout, look: &mut Look<'_, '_, '_>, told: &mut Told) {
        let (heap, tid) = (&mut Heap { memory: look.memory, layout }, look.thread.tid);
        let place = waiting::waiting(heap, &told.pointers);
        let frame = place.and_then(|place| self.line(heap, (look.lines, tid), place));
        if let (Some(frame), Some(at)) = (frame, told.pointers.last()) {
            told.evaluations.push(Evaluation { frames: vec![frame], at: Some(*at) });
        }
    }

    /// Returns the functions that a frame executes, innermost first; `None` if it is not a JavaScript frame.
    fn frames(
        &mut self,
        heap: &mut Heap<'_, '_, '_>,
        (placed, lines, tid): (&[PlacedFrame], &mut ScriptLines, i32),
        at: At,
    ) -> Option<Vec<RawFrame>> {
        let layout = &heap.layout.frame;
        let mut slot = |offset: i32| heap.memory.word(at.pointer.wrapping_add_signed(i64::from(offset)));
        let (context, function) = (slot(layout.context)?, slot(layout.function)?);
        let (bytecode, offset) = (slot(layout.bytecode)?, slot(layout.offset)?);
        address(context).and(address(function))?;
        let (first, last) = heap.layout.types.contexts;
        (first..=last).contains(&heap.kind(context)?).then_some(())?;
        let shared = heap.shared(function)?;
        let known = placed.iter().find(|p| p.ip == at.ip);
        let in_file = known.is_some_and(|p| p.frame.module.is_some());
        // A frame that native unwinding did not meet is first taken for an interpreted one, if its slots allow it.
        let mut by_bytecode = if known.is_none() { interpreted(heap, bytecode, offset) } else { None };
        let code = if in_file || by_bytecode.is_some() { None } else { self.streams.code(heap, at.ip) };
        if in_file || code.is_some_and(|code| code.may_interpret(heap)) {
            by_bytecode = interpreted(heap, bytecode, offset);
        }
        let places = match (by_bytecode, code) {
            (Some(offset), _) => vec![Place { shared, offset }],
            (None, Some(code)) => code.places(heap, shared, bytecode)?,
            // Code in the file belongs to the language's own functions, which have no script. If the slot holds a
            // function of a script, it is not the frame's function.
            (None, None) if in_file && Script::of(heap, shared).is_some() => return None,
            (None, None) => vec![Place { shared, offset: None }],
        };
        Some(places.into_iter().filter_map(|place| self.line(heap, (lines, tid), place)).collect())
    }

    fn line(
        &mut self,
        heap: &mut Heap<'_, '_, '_>,
        (lines, tid): (&mut ScriptLines, i32),
        place: Place,
    ) -> Option<RawFrame> {
        let name = heap.name(place.shared)?;
        let script = Script::of(heap, place.shared);
        // A function of the language without a name, such as a promise handler, would tell the reader nothing.
        (script.is_some() || !name.text.is_empty()).then_some(())?;
        let is_own = script.as_ref().is_none_or(|s| s.name.as_deref().is_some_and(|name| name.starts_with(OWN)));
        // For Node's own scripts the function's name is enough, and their sources are long.
        let (line, origin) = match (&script, place.offset) {
            (Some(script), Some(offset)) if !is_own => {
                let at = self.sources.place(heap, script, offset);
                (at.map(|at| at.line), at.and_then(|at| self.maps.origin(heap, (script, at), tid)))
            }
            _ => (None, None),
        };
        let function = match name.text.as_str() {
            "" if name.is_level => LEVEL,
            "" => NAMELESS,
            named => named,
        };
        let file = script.map(|s| s.name.map_or_else(|| EVALUATED.into(), |name| path(&name)));
        let class = if is_own { FrameClass::Runtime } else { FrameClass::User };
        let own = ScriptLine { language: Language::JavaScript, function: function.into(), file, line };
        match origin {
            Some(origin) => lines.compiled(own, (origin.file, origin.line), class),
            None => lines.frame(own, class),
        }
    }
}

/// Returns true if a frame is one of V8's own between JavaScript functions. In place of a context it has a marker, a
/// number that tells its kind; the first kinds are calls from outside.
fn is_between(heap: &mut Heap<'_, '_, '_>, pointer: u64) -> bool {
    /// Last kind of frame that is called from outside: `ENTRY` is 1, `CONSTRUCT_ENTRY` is 2.
    const ENTRIES: u64 = 2;
    /// Bound of the numbers of kinds.
    const KINDS: u64 = 64;
    let marker = heap.memory.word(pointer.wrapping_add_signed(i64::from(heap.layout.frame.context)));
    marker.is_some_and(|marker| marker & 1 == 0 && (ENTRIES + 1..KINDS).contains(&(marker >> 1)))
}
