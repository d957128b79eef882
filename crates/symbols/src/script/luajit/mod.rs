//! LuaJIT: reads the source lines of the functions that a state is in, while they are interpreted.
//!
//! States are found as Lua's are: one that runs has its innermost C frame on the thread's native stack. Offsets are
//! those of 2.1 with 64-bit references (`LJ_GC64`), which is the default on x86-64 since 2.1. While code that LuaJIT
//! has compiled runs, a state's frames are not up to date, so no lines are returned then.

use super::interpreter::{Candidate, Interpreter, Look, Runtime};
use super::lua::{MAIN, shown};
use super::memory::Memory;
use super::search::{Running, by_stack};
use super::thread::Evaluation;
use crate::RawFrame;
use crate::lines::{MAX_NAME, ScriptLine, ScriptLines};
use std::ops::Range;
use systoll_model::{FrameClass, Language};

/// Nested functions returned, at most.
const MAX_FRAMES: usize = 512;
/// Frames followed while one stack is read, at most.
const MAX_FOLLOWED: usize = 16 << 10;
/// Bound of a line number; a larger one is not believed.
const MAX_LINE: u32 = 1 << 26;
/// Instructions of a function, at most; a larger number is not believed.
const MAX_CODE: u32 = 1 << 26;

/// Offset of an object's type (`gct`).
const KIND: u64 = 9;
/// Type of a `lua_State`.
const THREAD: u8 = 6;
/// Offset in a `lua_State` of the type of the dummy function that it stands for.
const STATE_FUNCTION: u64 = 10;
/// Offset in a `lua_State` of the base of its current frame.
const BASE: u64 = 32;
/// Offset in a `lua_State` of the end of its stack.
const STACK_END: u64 = 48;
/// Offset in a `lua_State` of the start of its stack.
const STACK: u64 = 56;
/// Offset in a `lua_State` of its innermost C frame.
const C_FRAME: u64 = 80;
/// Lowest bits of that C frame's address, which are flags.
const C_FRAME_FLAGS: u64 = 3;
/// Type of a function (`GCfunc`).
const FUNCTION: u8 = 8;
/// Offset in a `GCfunc` of the kind of function; 0 for one written in Lua.
const WHICH: u64 = 10;
/// Offset in a `GCfunc` of its first instruction's address.
const CODE: u64 = 32;
/// Size of a `GCproto`, bytes; the function's code follows it.
const PROTOTYPE: u64 = 104;
/// Offset in a `GCproto` of the number of its instructions.
const CODE_SIZE: u64 = 12;
/// Offset in a `GCproto` of the name of its source.
const SOURCE: u64 = 64;
/// Offset in a `GCproto` of its first line.
const FIRST_LINE: u64 = 72;
/// Offset in a `GCproto` of the number of its lines.
const LINE_COUNT: u64 = 76;
/// Offset in a `GCproto` of the table of lines by instruction.
const LINES: u64 = 80;
/// Offset in a `GCstr` of its text.
const TEXT: u64 = 24;
/// Bits of a value that hold a reference.
const REFERENCE: u64 = (1 << 47) - 1;
/// Lowest bits of a frame's link.
const LINK: u64 = 7;
/// Bits of a link that are zero if Lua called the function.
const LINK_KIND: u64 = 3;
/// Link of a continuation's frame.
const CONTINUATION: u64 = 2;
/// Link of the pseudo-frame of variable arguments.
const VARIADIC: u64 = 3;
/// Code of `lua_status` in a build with 64-bit references: `movzbl 0xb(%rdi), %eax`.
const STATUS: &[u8] = &[0x0f, 0xb6, 0x47, 0x0b];

/// A file that holds LuaJIT.
#[derive(Clone, Copy, Debug)]
struct LuaJitFile {
    /// True if it was built with 64-bit references.
    is_wide: bool,
}

/// Returns the LuaJIT in a file, if it holds one.
pub(crate) fn recognise(file: Candidate<'_>) -> Option<Box<dyn Runtime>> {
    let [mode, state] = file.exported(["luaJIT_setmode", "lua_newstate"]);
    mode.and(state)?;
    let [status] = file.exported(["lua_status"]);
    let code = file.elf.read_vaddr(status?, 16)?;
    Some(Box::new(LuaJitFile { is_wide: code.windows(STATUS.len()).any(|c| c == STATUS) }))
}

/// Returns false: modules that LuaJIT loads are Lua's.
pub(crate) fn is_bundled(_: &str) -> bool {
    false
}

impl Runtime for LuaJitFile {
    fn attach(&self, _: &mut Memory<'_, '_>, _: u64) -> Result<Option<Box<dyn Interpreter>>, String> {
        if !self.is_wide {
            return Err(
                "of LuaJIT without 64-bit references (LJ_GC64) it is not known where frames are kept".to_owned()
            );
        }
        Ok(Some(Box::new(LuaJit)))
    }

    fn evaluate(&self) -> Option<u64> {
        None
    }

    fn is_brief(&self) -> bool {
        true
    }
}

/// A LuaJIT in an address space.
#[derive(Debug)]
pub(crate) struct LuaJit;

/// A function on LuaJIT's stack: the address of its `GCfunc`, and that of the bytecode instruction at which it goes on
/// when the function that it has called returns; `None` if that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    function: u64,
    instruction: Option<u64>,
}

impl Interpreter for LuaJit {
    fn evaluations(&mut self, look: &mut Look<'_, '_, '_>) -> Option<Vec<Evaluation>> {
        // Code without a file was compiled at run time.
        if look.placed.iter().any(|f| f.frame.module.is_none()) {
            return Some(Vec::new());
        }
        let stack = look.stack()?;
        let frames = interpreted(look.lines, look.memory, &stack)?;
        Some(vec![Evaluation { frames, at: None }])
    }
}

/// Returns the functions that are interpreted on a native stack, innermost first, each with its current line.
pub(crate) fn interpreted(
    lines: &mut ScriptLines,
    memory: &mut Memory<'_, '_>,
    stack: &Range<u64>,
) -> Option<Vec<RawFrame>> {
    let mut room = MAX_FOLLOWED;
    let running = by_stack(memory, stack, |memory, word, native| is_running(memory, word, native, &mut room));
    let mut frames = Vec::new();
    let mut room = MAX_FOLLOWED;
    for Running { state, .. } in running {
        for call in calls(memory, state, &mut room)? {
            if frames.len() < MAX_FRAMES {
                frames.extend(frame(lines, memory, call)?);
            }
        }
    }
    Some(frames)
}

/// Returns `state` if it is a LuaJIT state that runs on the native stack `native`.
fn is_running(memory: &mut Memory<'_, '_>, state: u64, native: Range<u64>, room: &mut usize) -> Option<Running> {
    let mut field = |offset: u64| memory.pointer(state.wrapping_add(offset));
    let at = field(C_FRAME)? & !C_FRAME_FLAGS;
    native.contains(&at).then_some(())?;
    let (base, first, last) = (field(BASE)?, field(STACK)?, field(STACK_END)?);
    ((first..last).contains(&base) && (base - first).is_multiple_of(8)).then_some(())?;
    let kinds =
        memory.byte(state.wrapping_add(KIND))? == THREAD && memory.byte(state.wrapping_add(STATE_FUNCTION))? == 1;
    kinds.then_some(())?;
    calls(memory, state, room).map(|_| Running { evaluated_at: at, state })
}

/// Returns the calls in a state of functions written in Lua, innermost first, and takes the number of frames from
/// `room`; `None` if the frames do not end at the bottom of the stack or are more than `room`.
fn calls(memory: &mut Memory<'_, '_>, state: u64, room: &mut usize) -> Option<Vec<Call>> {
    let bottom = memory.pointer(state.wrapping_add(STACK))?.checked_add(8)?;
    let mut frame = memory.pointer(state.wrapping_add(BASE))?.checked_sub(8)?;
    let mut calls = Vec::new();
    // Instruction with which the frame's function continues after the call it made.
    let mut instruction = None;
    while frame > bottom {
        *room = room.checked_sub(1)?;
        let link = memory.word(frame)?;
        let function = memory.word(frame.checked_sub(8)?)? & REFERENCE;
        let is_variadic = link & LINK == VARIADIC;
        if function != state && !is_variadic {
            calls.extend(called(memory, Call { function, instruction })?);
        }
        let (around, next) = if link & LINK_KIND == 0 {
            let call = memory.half(link.checked_sub(4)?)?;
            (frame.checked_sub(8 * (2 + u64::from(call >> 8 & 0xff)))?, Some(link))
        } else {
            let size = link & !LINK;
            (size >= 8).then_some(())?;
            let goes_on = if link & LINK == CONTINUATION { memory.word(frame.checked_sub(16)?) } else { None };
            // The pseudo-frame of variable arguments lies between a function and what it has called.
            (frame.checked_sub(size)?, if is_variadic { instruction } else { goes_on })
        };
        (frame, instruction) = (around, next);
    }
    (frame == bottom).then_some(calls)
}

/// Returns a call if its function is written in Lua.
fn called(memory: &mut Memory<'_, '_>, call: Call) -> Option<Option<Call>> {
    (memory.byte(call.function.wrapping_add(KIND))? == FUNCTION).then_some(())?;
    Some((memory.byte(call.function.wrapping_add(WHICH))? == 0).then_some(call))
}

/// Returns the line of a call; `None` if its function can't be read.
fn frame(lines: &mut ScriptLines, memory: &mut Memory<'_, '_>, call: Call) -> Option<Option<RawFrame>> {
    let code = memory.pointer(call.function.wrapping_add(CODE))?;
    let prototype = code.checked_sub(PROTOTYPE)?;
    let source = memory.pointer(prototype.wrapping_add(SOURCE))?;
    let file = shown(&memory.text(source.wrapping_add(TEXT), MAX_NAME)?);
    let first = memory.half(prototype.wrapping_add(FIRST_LINE)).filter(|l| *l <= MAX_LINE)?;
    let function = match first {
        0 => MAIN.to_owned(),
        line => format!("function <{}:{line}>", file.rsplit('/').next().unwrap_or(&file)),
    };
    let line = match call.instruction {
        Some(instruction) => Some(line(memory, (prototype, code), first, instruction)?),
        None => None,
    };
    let line = ScriptLine { language: Language::Lua, function: function.into(), file: Some(file.into()), line };
    Some(Some(lines.frame(line, FrameClass::User)?))
}

/// Returns the line of the instruction before `next` (`lj_debug_line` of lj_debug.c); `None` if `next` is not in the
/// function's code.
fn line(memory: &mut Memory<'_, '_>, (prototype, code): (u64, u64), first: u32, next: u64) -> Option<u32> {
    let size = memory.half(prototype.wrapping_add(CODE_SIZE)).filter(|s| *s <= MAX_CODE)?;
    let count = memory.half(prototype.wrapping_add(LINE_COUNT))?;
    let lines = memory.pointer(prototype.wrapping_add(LINES))?;
    let offset = next.checked_sub(code)?;
    let at = (offset / 4).checked_sub(1)?;
    (offset.is_multiple_of(4) && at < u64::from(size)).then_some(())?;
    let Some(entry) = at.checked_sub(1) else { return Some(first) };
    let difference = match count {
        0..256 => u32::from(memory.byte(lines.wrapping_add(entry))?),
        256..65_536 => memory.half(lines.wrapping_add(entry * 2))? & 0xffff,
        _ => memory.half(lines.wrapping_add(entry * 4))?,
    };
    first.checked_add(difference).filter(|line| (1..=MAX_LINE).contains(line))
}
