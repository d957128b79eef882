//! Bash: reads the lines of the functions being executed, starting from the variables that bash exports.
//!
//! Bash keeps the line of the command it runs in `line_number`, and the functions around it in the arrays that
//! scripts know as `FUNCNAME`, `BASH_SOURCE` and `BASH_LINENO`. Lines are those of bash's own messages: within an
//! `eval` or a `$(…)` of several lines they count from the end or the beginning of its text, as `$LINENO` does.

mod command;
mod layout;

use self::layout::{ARRAYS, Array, DEFINED_AT, Offsets, Table};
use super::interpreter::{Candidate, Interpreter, Look, Runtime};
use super::memory::{Memory, readable};
use super::thread::Evaluation;
use crate::lines::{MAX_NAME, ScriptLine, ScriptLines};
use crate::{PlacedFrame, RawFrame};
use std::ops::Range;
use std::sync::Arc;
use systoll_model::{FrameClass, Language};

/// Nested functions returned, at most.
const MAX_FRAMES: usize = 512;
/// Bound of a line number; a larger one is not believed.
const MAX_LINE: u32 = 1 << 26;
/// Name of a script's top level, as bash itself has it at the bottom of `FUNCNAME`.
const MAIN: &str = "main";
/// Name of a script that the shell reads from its standard input.
const STDIN: &str = "<stdin>";
/// Number of signals that a trap may be for, with EXIT, which is 0. `DEBUG`, `ERR` and `RETURN` have larger numbers.
const SIGNALS: u32 = 65;

/// A file that holds bash, with the ELF virtual addresses of its exported symbols.
#[derive(Clone, Debug)]
struct BashFile {
    at: Offsets,
    waiting: Waiting,
    /// Address of `currently_executing_command`. It is static in most versions, but `executing_line_number` reads it.
    command: Option<u64>,
}

/// Functions that are on the native stack while bash waits for a command that it has started, as ranges in their
/// file. By then `line_number` is no longer the command's.
#[derive(Clone, Debug, Default)]
struct Waiting {
    /// Code of `wait_for`.
    wait: Range<u64>,
    /// Code of `execute_command_internal`, which calls `wait_for`.
    execute: Range<u64>,
}

impl Waiting {
    /// Returns true if the stack waits for a command that this shell itself has started.
    fn is_on(&self, placed: &[PlacedFrame]) -> bool {
        let wait = placed.iter().position(|f| within(f, &self.wait));
        wait.is_some_and(|at| placed.get(at + 1).is_some_and(|f| within(f, &self.execute)))
    }

    /// Returns the address of the frame that executes the innermost command: all frames inside it serve that command.
    fn innermost_command(&self, placed: &[PlacedFrame]) -> Option<u64> {
        placed.iter().find(|f| within(f, &self.execute)).map(|f| f.sp)
    }
}

/// Returns true if a frame is one of a function of bash's file.
fn within(frame: &PlacedFrame, function: &Range<u64>) -> bool {
    frame.frame.module.is_some() && function.contains(&frame.frame.lookup())
}

/// Returns the bash in a file, if it holds one.
pub(crate) fn recognise(file: Candidate<'_>) -> Option<Box<dyn Runtime>> {
    let [variables, line, last_line, executing, trap, command, functions, script, arguments, version] =
        file.exported([
            "global_variables",
            "line_number",
            "line_number_for_err_trap",
            "executing",
            "running_trap",
            "command_execution_string",
            "shell_function_defs",
            "shell_script_filename",
            "dollar_vars",
            "dist_version",
        ]);
    version?;
    let at = Offsets {
        variables: variables?,
        line: line?,
        last_line: last_line?,
        executing: executing?,
        trap: trap?,
        command: command?,
        functions: functions?,
        script: script?,
        arguments: arguments?,
    };
    let waiting = Waiting { wait: file.function("wait_for"), execute: file.function("execute_command_internal") };
    let command = file.first_pointer_read("executing_line_number");
    Some(Box::new(BashFile { at, waiting, command }))
}

/// Returns true if `path` is a builtin that is loaded from a file of its own.
pub(crate) fn is_bundled(path: &str) -> bool {
    path.contains("/lib/bash/")
}

impl Runtime for BashFile {
    fn attach(&self, _: &mut Memory<'_, '_>, bias: u64) -> Result<Option<Box<dyn Interpreter>>, String> {
        let command = self.command.map(|at| at.wrapping_add(bias));
        Ok(Some(Box::new(Bash { at: self.at.moved(bias), waiting: self.waiting.clone(), command })))
    }

    fn evaluate(&self) -> Option<u64> {
        None
    }

    fn is_brief(&self) -> bool {
        true
    }
}

/// A bash in an address space.
#[derive(Debug)]
pub(crate) struct Bash {
    at: Offsets,
    waiting: Waiting,
    command: Option<u64>,
}

/// A function, sourced file or script that is being executed.
#[derive(Debug)]
struct Level {
    function: Arc<str>,
    file: Arc<str>,
    line: u32,
}

/// The source of commands that are in no file.
#[derive(Debug)]
struct Typed {
    source: &'static str,
    /// The name that the shell was called by.
    shell: Option<Arc<str>>,
}

impl Typed {
    /// Returns true if bash gives functions defined by such commands this file: its own name from 5.3 on.
    fn is_called(&self, file: &Arc<str>) -> bool {
        self.shell.as_ref() == Some(file) || self.source == STDIN && **file == *MAIN
    }
}

impl Interpreter for Bash {
    fn evaluations(&mut self, look: &mut Look<'_, '_, '_>) -> Option<Vec<Evaluation>> {
        let Look { memory, lines, .. } = look;
        let trap = memory.half(self.at.trap)?;
        let of_command = self.command.filter(|_| trap == 0).and_then(|at| command::first_line(memory, at));
        let waits = self.waiting.is_on(look.placed);
        let line = match of_command {
            Some(line) => line,
            None => memory.half(if waits { self.at.last_line } else { self.at.line })?,
        };
        let mut levels = self.levels(memory, line)?;
        let by_command_line = memory.word(self.at.command)? != 0;
        // Without a command, the shell reads its script, starts or ends: it is at no line.
        let idle = memory.half(self.at.executing)? == 0 && trap == 0 && !by_command_line && levels.len() <= 1;
        if idle || levels.first().is_none_or(|l| l.line == 0) {
            return Some(Vec::new());
        }
        let in_trap = if (1..=SIGNALS).contains(&trap) { self.trapped(memory, &levels) } else { None };
        if let Some(level) = in_trap.and_then(|at| levels.get_mut(at)) {
            // A trap's lines count within its own text, so none is shown.
            level.function = trap_name(trap - 1).into();
            level.line = 0;
        }
        let frames = levels.iter().map(|level| frame(lines, level)).collect::<Option<Vec<RawFrame>>>()?;
        Some(vec![Evaluation { frames, at: self.waiting.innermost_command(look.placed) }])
    }
}

impl Bash {
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn at(base: u64) -> Self {
        let at = Offsets {
            variables: 0,
            line: 8,
            last_line: 20,
            executing: 12,
            trap: 16,
            command: 24,
            functions: 32,
            script: 48,
            arguments: 56,
        };
        Self { at: at.moved(base), waiting: Waiting::default(), command: Some(base + 40) }
    }

    /// Returns the levels being executed, innermost first, each with its current line: the innermost is at `line`.
    fn levels(&self, memory: &mut Memory<'_, '_>, mut line: u32) -> Option<Vec<Level>> {
        let table = Table::of_context(memory, self.at.variables)?;
        let [functions, sources, lines] = ARRAYS.map(|name| Array::of(memory, table, name));
        let (mut functions, mut sources, mut lines) = (functions?, sources?, lines?);
        let typed = self.typed(memory)?;
        let mut levels = Vec::new();
        while levels.len() < MAX_FRAMES {
            let Some(function) = functions.next(memory)? else { break };
            let (source, called_at) = (sources.next(memory)??, lines.next(memory)??);
            let file = text(memory, source)?;
            let file = typed.as_ref().filter(|typed| typed.is_called(&file)).map_or(file, |typed| typed.source.into());
            levels.push(Level { function: text(memory, function)?, file, line });
            line = text(memory, called_at)?.parse().ok().filter(|l| *l <= MAX_LINE)?;
        }
        // Commands that come from no file have no entry at the bottom of the arrays.
        if line != 0 && levels.len() < MAX_FRAMES {
            let source = typed.map_or(STDIN, |typed| typed.source);
            levels.push(Level { function: MAIN.into(), file: source.into(), line });
        }
        Some(levels)
    }

    /// Returns how the report names commands that are in no file; `Some(None)` where the shell runs a script.
    fn typed(&self, memory: &mut Memory<'_, '_>) -> Option<Option<Typed>> {
        if memory.word(self.at.script)? != 0 {
            return Some(None);
        }
        let source = if memory.word(self.at.command)? != 0 { "-c" } else { STDIN };
        let shell = memory.pointer(self.at.arguments).and_then(|at| text(memory, at));
        Some(Some(Typed { source, shell }))
    }

    /// Returns the index of the level that stands for a running trap: the first that is at a line before its
    /// function's definition, or that is not a function's.
    fn trapped(&self, memory: &mut Memory<'_, '_>, levels: &[Level]) -> Option<usize> {
        let defined = Table::of_pointer(memory, self.at.functions);
        levels.iter().position(|level| {
            let definition = defined.and_then(|table| table.find(memory, level.function.as_bytes()));
            definition.and_then(|d| memory.half(d.wrapping_add(DEFINED_AT))).is_none_or(|at| level.line < at)
        })
    }
}

/// Returns the name of a signal's trap, as `trap -p` prints it.
fn trap_name(signal: u32) -> String {
    let name = match signal {
        0 => "EXIT",
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        10 => "USR1",
        12 => "USR2",
        13 => "PIPE",
        14 => "ALRM",
        15 => "TERM",
        17 => "CHLD",
        other => return format!("trap {other}"),
    };
    format!("trap {name}")
}

fn frame(lines: &mut ScriptLines, level: &Level) -> Option<RawFrame> {
    let line = ScriptLine {
        language: Language::Bash,
        function: Arc::clone(&level.function),
        file: Some(Arc::clone(&level.file)),
        line: Some(level.line).filter(|l| *l > 0),
    };
    lines.frame(line, FrameClass::User)
}

/// Returns the text at `address`, up to its zero byte.
fn text(memory: &mut Memory<'_, '_>, address: u64) -> Option<Arc<str>> {
    Some(readable(&memory.text(address, MAX_NAME)?).into())
}
