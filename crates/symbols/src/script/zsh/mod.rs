//! Zsh: reads the lines of the functions being executed, starting from zsh's stack of functions (`struct funcstack`
//! of zsh.h, 5.0 to 5.9 on x86-64).
//!
//! Lines are those that zsh's own `funcfiletrace` tells.

use super::interpreter::{Candidate, Interpreter, Look, Runtime};
use super::memory::{Memory, readable};
use super::thread::Evaluation;
use crate::RawFrame;
use crate::lines::{MAX_NAME, ScriptLine};
use std::sync::Arc;
use systoll_model::{FrameClass, Language};

/// Nested functions returned, at most.
const MAX_FRAMES: usize = 512;
/// Bound of a line number; a larger one is not believed.
const MAX_LINE: u64 = 1 << 26;
/// Offset in `struct funcstack` of the function's name; the next outer function is before it.
const NAME: u64 = 8;
/// Offset of the function's file.
const FILE: u64 = 16;
/// Offset of the line at which the function is defined.
const DEFINED_AT: u64 = 32;
/// Offset of the line from which the function was called.
const CALLED_AT: u64 = 40;
/// Offset of the entry's kind.
const KIND: u64 = 48;
/// Kind of a function (`FS_FUNC`). Its lines count from its own beginning; those of sourced files and of evaluated
/// text do not.
const FUNCTION: u32 = 1;
/// Kind of evaluated text.
const EVALUATED: u32 = 2;

/// Addresses of the variables that a file exports: ELF virtual addresses, or addresses in a process.
#[derive(Clone, Copy, Debug)]
struct Variables {
    /// Address of `lineno`.
    line: u64,
    /// Address of `funcstack`.
    functions: u64,
    /// Address of `scriptfilename`.
    script: u64,
}

/// Returns the zsh in a file, if it holds one.
pub(crate) fn recognise(file: Candidate<'_>) -> Option<Box<dyn Runtime>> {
    let [functions, line, script] = file.exported(["funcstack", "lineno", "scriptfilename"]);
    Some(Box::new(Variables { line: line?, functions: functions?, script: script? }))
}

/// Returns true if `path` is a module of zsh.
pub(crate) fn is_bundled(path: &str) -> bool {
    path.contains("/zsh/") && path.ends_with(".so")
}

impl Runtime for Variables {
    fn attach(&self, _: &mut Memory<'_, '_>, bias: u64) -> Result<Option<Box<dyn Interpreter>>, String> {
        let at = |address: u64| address.wrapping_add(bias);
        let Self { line, functions, script } = *self;
        Ok(Some(Box::new(Zsh { at: Self { line: at(line), functions: at(functions), script: at(script) } })))
    }

    fn evaluate(&self) -> Option<u64> {
        None
    }

    fn is_brief(&self) -> bool {
        true
    }
}

/// A zsh in an address space.
#[derive(Debug)]
pub(crate) struct Zsh {
    at: Variables,
}

impl Zsh {
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn at(base: u64) -> Self {
        Self { at: Variables { line: base, functions: base + 8, script: base + 16 } }
    }

    /// Returns the file of the script itself, or `-c` for commands of the command line.
    fn script(&self, memory: &mut Memory<'_, '_>) -> Option<String> {
        match memory.word(self.at.script)? {
            0 => Some("-c".to_owned()),
            name => Some(readable(&memory.text(name, MAX_NAME)?)),
        }
    }
}

impl Interpreter for Zsh {
    fn evaluations(&mut self, look: &mut Look<'_, '_, '_>) -> Option<Vec<Evaluation>> {
        let Look { memory, lines, .. } = look;
        let mut line = memory.word(self.at.line)?;
        let mut function = memory.word(self.at.functions)?;
        let mut frames: Vec<RawFrame> = Vec::new();
        let mut told = |function: String, file: String, line: u64| {
            let line = Some(line).filter(|l| (1..=MAX_LINE).contains(l))? as u32;
            let (function, file): (Arc<str>, Arc<str>) = (function.into(), file.into());
            lines.frame(
                ScriptLine { language: Language::Shell, function, file: Some(file), line: Some(line) },
                FrameClass::User,
            )
        };
        while function != 0 && frames.len() < MAX_FRAMES {
            let kind = memory.half(function.wrapping_add(KIND))?;
            let defined = memory.word(function.wrapping_add(DEFINED_AT))?;
            // Evaluated text has the line of the level around it.
            if kind != EVALUATED {
                let name = memory.pointer(function.wrapping_add(NAME))?;
                let name = readable(&memory.text(name, MAX_NAME)?);
                let file = match memory.word(function.wrapping_add(FILE))? {
                    0 => self.script(memory)?,
                    file => readable(&memory.text(file, MAX_NAME)?),
                };
                let line = if kind == FUNCTION { defined.wrapping_add(line) } else { line };
                frames.push(told(name, file, line)?);
            }
            line = memory.word(function.wrapping_add(CALLED_AT))?;
            function = memory.word(function)?;
        }
        if line != 0 && frames.len() < MAX_FRAMES {
            frames.push(told("main".to_owned(), self.script(memory)?, line)?);
        }
        Some(vec![Evaluation { frames, at: None }])
    }
}
