//! Lua: reads the source lines of the functions that a state is in, starting from the state's calls.
//!
//! No variable leads to a state, but functions that run in one have its address on the native stack. A state is
//! believed if its stack and its calls are consistent, and if the jump buffer of its innermost protected call lies on
//! the native stack of the thread: a coroutine that waits or has ended has none there. If states have resumed each
//! other, their buffers lie on the stack in the same order.

pub(crate) mod layout;
mod position;

use self::layout as at;
use self::layout::{KNOWN, Layout};
use super::interpreter::{Candidate, Interpreter, Look, Runtime};
use super::memory::{Memory, readable};
use super::search::{Running, by_stack};
use super::thread::Evaluation;
use crate::RawFrame;
use crate::lines::{MAX_NAME, ScriptLine, ScriptLines};
use std::ops::Range;
use systoll_model::{FrameClass, Language};

/// Nested functions returned, at most.
const MAX_FRAMES: usize = 512;
/// Calls followed while one stack is read, at most.
const MAX_CALLS: usize = 16 << 10;
/// Bound of a line number; a larger one is not believed.
const MAX_LINE: u32 = 1 << 26;
/// Bytes shown of a source that is a text, at most.
const MAX_SHOWN: usize = 40;
/// Name of a file's top level, as in Lua's own tracebacks.
pub(crate) const MAIN: &str = "main chunk";

/// A file that holds Lua.
#[derive(Clone, Copy, Debug)]
struct LuaFile {
    /// Minor version: 4 for 5.4.6.
    minor: u32,
    /// Patch version: 6 for 5.4.6.
    release: u32,
}

/// Returns the Lua in a file, if it holds one.
pub(crate) fn recognise(file: Candidate<'_>) -> Option<Box<dyn Runtime>> {
    /// Bytes at the start of `lua_ident` that hold the version.
    const MOST: u64 = 64;
    let [ident, state] = file.exported(["lua_ident", "lua_newstate"]);
    state?;
    let (minor, release) = version(&file.elf.read_vaddr(ident?, MOST)?)?;
    Some(Box::new(LuaFile { minor, release }))
}

/// Returns the minor and the patch version in `$LuaVersion: Lua 5.4.6  Copyright …` (4 and 6) or `$Lua: Lua 5.1.5
/// Copyright …` (1 and 5).
fn version(ident: &[u8]) -> Option<(u32, u32)> {
    let text = ident.utf8_chunks().next()?.valid();
    let told = text.split_once(": Lua 5.")?.1.split(' ').next()?;
    match told.split_once('.') {
        Some((minor, release)) => Some((minor.parse().ok()?, release.parse().ok()?)),
        None => Some((told.parse().ok()?, 0)),
    }
}

/// Returns true if `path` is an extension module for Lua.
pub(crate) fn is_bundled(path: &str) -> bool {
    path.contains("/lua/5.") && path.ends_with(".so")
}

impl Runtime for LuaFile {
    fn attach(&self, _: &mut Memory<'_, '_>, _: u64) -> Result<Option<Box<dyn Interpreter>>, String> {
        let Self { minor, release } = *self;
        let layout = Layout::of(minor, release).ok_or_else(|| {
            let (first, last) = (KNOWN.start(), KNOWN.end());
            format!("of Lua 5.{minor}.{release} it is not known where frames are kept, of 5.{first} to 5.{last} it is")
        })?;
        Ok(Some(Box::new(Lua::new(layout))))
    }

    fn evaluate(&self) -> Option<u64> {
        None
    }

    fn is_brief(&self) -> bool {
        true
    }
}

/// A Lua in an address space.
#[derive(Debug)]
pub(crate) struct Lua {
    layout: Layout,
}

impl Interpreter for Lua {
    fn evaluations(&mut self, look: &mut Look<'_, '_, '_>) -> Option<Vec<Evaluation>> {
        let stack = look.stack()?;
        let Look { lines, memory, .. } = look;
        let mut frames = Vec::new();
        let mut room = MAX_CALLS;
        let running = by_stack(memory, &stack, |memory, word, native| self.is_running(memory, word, native, &mut room));
        for Running { state, .. } in running {
            self.frames(lines, memory, state, &mut frames)?;
        }
        Some(vec![Evaluation { frames, at: None }])
    }
}

impl Lua {
    pub(crate) fn new(layout: Layout) -> Self {
        Self { layout }
    }

    /// Returns `state` with its jump buffer if it is a Lua state that runs on the native stack `native`.
    fn is_running(
        &self,
        memory: &mut Memory<'_, '_>,
        state: u64,
        native: Range<u64>,
        room: &mut usize,
    ) -> Option<Running> {
        let field = |memory: &mut Memory<'_, '_>, offset: u64| memory.pointer(state.wrapping_add(offset));
        (memory.byte(state.wrapping_add(at::KIND))? == at::THREAD).then_some(())?;
        let jump = field(memory, self.layout.jump).filter(|jump| native.contains(jump))?;
        // The buffer around it belongs to the same state, and lies further out on the stack.
        let around = memory.word(jump)?;
        (around == 0 || around > jump && native.contains(&around)).then_some(())?;
        let (first, last) = (field(memory, self.layout.stack)?, field(memory, self.layout.stack_last)?);
        let call = field(memory, self.layout.call)?;
        let function = memory.pointer(call.wrapping_add(self.layout.function))?;
        ((first..last).contains(&function) && (function - first).is_multiple_of(16)).then_some(())?;
        self.calls(memory, state, room).map(|_| Running { evaluated_at: jump, state })
    }

    /// Returns the calls of a state, innermost first, and takes their number from `room`; `None` if they do not end
    /// with its outermost call or are more than `room`.
    fn calls(&self, memory: &mut Memory<'_, '_>, state: u64, room: &mut usize) -> Option<Vec<u64>> {
        let mut call = memory.pointer(state.wrapping_add(self.layout.call))?;
        let mut calls = Vec::new();
        let base = state.wrapping_add(self.layout.base_call);
        let base = if self.layout.array.is_some() { memory.pointer(base)? } else { base };
        if let Some(array) = self.layout.array {
            (call >= base && (call - base).is_multiple_of(array.size)).then_some(())?;
        }
        loop {
            *room = room.checked_sub(1)?;
            calls.push(call);
            if call == base {
                return Some(calls);
            }
            call = match self.layout.array {
                Some(array) => call.checked_sub(array.size)?,
                None => memory.pointer(call.wrapping_add(self.layout.previous))?,
            };
        }
    }

    /// Adds the active functions of a `lua_State` to `frames`, innermost first, each with its current line.
    fn frames(
        &self,
        lines: &mut ScriptLines,
        memory: &mut Memory<'_, '_>,
        state: u64,
        frames: &mut Vec<RawFrame>,
    ) -> Option<()> {
        let mut room = MAX_CALLS;
        for (n, call) in self.calls(memory, state, &mut room)?.into_iter().enumerate() {
            if frames.len() >= MAX_FRAMES {
                break;
            }
            let value = memory.pointer(call.wrapping_add(self.layout.function))?;
            if memory.byte(value.wrapping_add(at::VALUE_KIND))? & at::KIND_MASK != at::FUNCTION {
                continue;
            }
            let closure = memory.pointer(value)?;
            (memory.byte(closure.wrapping_add(at::KIND))? & at::KIND_MASK == at::FUNCTION).then_some(())?;
            if self.layout.array.is_some() && memory.byte(closure.wrapping_add(at::IS_C))? != 0 {
                continue;
            }
            let saved = match self.layout.array {
                Some(array) if n == 0 => state.wrapping_add(array.instruction),
                _ => call.wrapping_add(self.layout.instruction),
            };
            let instruction = memory.pointer(saved)?;
            let prototype = memory.pointer(closure.wrapping_add(self.layout.prototype))?;
            frames.push(self.frame(lines, memory, prototype, instruction)?);
        }
        Some(())
    }

    fn frame(
        &self,
        lines: &mut ScriptLines,
        memory: &mut Memory<'_, '_>,
        prototype: u64,
        instruction: u64,
    ) -> Option<RawFrame> {
        let line = position::line(self.layout, memory, prototype, instruction)?.filter(|l| (1..=MAX_LINE).contains(l));
        let source = memory.pointer(prototype.wrapping_add(self.layout.source))?;
        let file = shown(&memory.text(source.wrapping_add(at::TEXT), MAX_NAME)?);
        let defined = memory.half(prototype.wrapping_add(self.layout.defined))?;
        let function = match defined {
            0 => MAIN.to_owned(),
            1..=MAX_LINE => format!("function <{}:{defined}>", file.rsplit('/').next().unwrap_or(&file)),
            _ => return None,
        };
        let line = ScriptLine { language: Language::Lua, function: function.into(), file: Some(file.into()), line };
        lines.frame(line, FrameClass::User)
    }
}

/// Returns the name of a function's source as Lua shows it: the file's name, or the beginning of a text.
pub(crate) fn shown(source: &[u8]) -> String {
    match source {
        [b'@' | b'=', name @ ..] => readable(name),
        text => {
            let line = text.split(|b| *b == b'\n').next().unwrap_or_default();
            let dots = if line.len() < text.len() || line.len() > MAX_SHOWN { "..." } else { "" };
            format!("[string \"{}{dots}\"]", readable(line.get(..MAX_SHOWN).unwrap_or(line)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_as_lua_tells_them() {
        assert_eq!(version(b"$LuaVersion: Lua 5.4.6  Copyright (C) 1994-2023"), Some((4, 6)));
        assert_eq!(version(b"$Lua: Lua 5.1.5 Copyright (C) 1994-2012 Lua.org"), Some((1, 5)));
        assert_eq!(version(b"$Lua: Lua 5.1 Copyright"), Some((1, 0)));
        assert_eq!(version(b"$LuaVersion: Lua 6.0.0  "), None);
        assert!(Layout::of(5, 0).is_none() && Layout::of(0, 2).is_none());
    }

    #[test]
    fn sources_are_shown_as_lua_shows_them() {
        assert_eq!(shown(b"@src/a.lua"), "src/a.lua");
        assert_eq!(shown(b"=(command line)"), "(command line)");
        assert_eq!(shown(b"return 1"), "[string \"return 1\"]");
        assert_eq!(shown(b"x = 1\ny = 2"), "[string \"x = 1...\"]");
    }
}
