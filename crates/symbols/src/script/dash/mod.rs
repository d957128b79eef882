//! Dash, `/bin/sh` of Debian: reads the lines of the functions being executed, starting from the line of dash's own
//! error messages.
//!
//! Dash keeps the line of the command it evaluates in `errlinno`, a function in the frame of `evalfun`, and the
//! command that called the function in the frame of `evalcommand`. Those frames also tell which command began to read
//! something else: a sourced file, the text of `eval`, of a trap, or behind `-c`. For a command within the text of
//! `eval`, the line is that of the `eval`.

mod arch;
mod node;
mod origin;

use self::arch::Anatomy;
use self::node::{Function, Input, MAX_LINE, inputs, line_of_command, line_of_started};
use self::origin::{Script, Texts, first_argument, opened};
use super::interpreter::{Candidate, Interpreter, Look, Runtime};
use super::memory::{Memory, readable};
use super::thread::Evaluation;
use crate::lines::{MAX_NAME, ScriptLine, ScriptLines};
use crate::{PlacedFrame, RawFrame};
use std::ops::Range;
use systoll_model::{FrameClass, Language};

/// Nested functions returned, at most.
const MAX_FRAMES: usize = 512;
/// Words of a frame searched for the command that it starts, at most.
const MAX_WORDS: u64 = 64;

/// A file that holds dash. The anatomy is `None` if the code of this build is not understood.
#[derive(Clone, Debug)]
struct DashFile(Option<Anatomy>);

/// Returns the dash in a file, if it holds one.
pub(crate) fn recognise(file: Candidate<'_>) -> Option<Box<dyn Runtime>> {
    Some(Box::new(DashFile(arch::find(file)?)))
}

/// Returns false: no modules come with dash.
pub(crate) fn is_bundled(_: &str) -> bool {
    false
}

impl Runtime for DashFile {
    fn attach(&self, _: &mut Memory<'_, '_>, bias: u64) -> Result<Option<Box<dyn Interpreter>>, String> {
        let anatomy = self.0.clone().ok_or(
            "its code is not that of dash 0.5.11 or later as Debian builds it; bash or busybox sh can run most of its \
             scripts: bash's lines are known (bash --posix SCRIPT)",
        )?;
        Ok(Some(Box::new(Dash { anatomy, bias, texts: Texts::default() })))
    }

    fn evaluate(&self) -> Option<u64> {
        None
    }

    fn is_brief(&self) -> bool {
        true
    }
}

/// A dash in an address space.
#[derive(Debug)]
pub(crate) struct Dash {
    anatomy: Anatomy,
    bias: u64,
    texts: Texts,
}

/// A command or function that a native frame tells of.
#[derive(Clone, Debug)]
enum Step {
    /// A simple command: its line, and the address of the input (`parsefile`) that was read when it began.
    Command { line: Option<u32>, input: u64 },
    /// A function that is called.
    Called(Function),
}

/// The input from which commands are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Known(Input),
    /// An input that was closed when the shell forked, by its address.
    Gone(u64),
}

impl Source {
    fn of(inputs: &[Input], address: u64) -> Self {
        inputs.iter().find(|i| i.address == address).map_or(Self::Gone(address), |input| Self::Known(*input))
    }
}

/// One level of the script: a function, a sourced file, or the script itself.
#[derive(Debug, PartialEq, Eq)]
struct Level {
    function: String,
    file: Option<String>,
    line: u32,
}

impl Interpreter for Dash {
    fn evaluations(&mut self, look: &mut Look<'_, '_, '_>) -> Option<Vec<Evaluation>> {
        let memory = &mut *look.memory;
        let levels = self.levels(memory, look.placed, look.thread.tid)?;
        let frames = levels.iter().map(|level| frame(look.lines, level)).collect::<Option<Vec<RawFrame>>>()?;
        Some(vec![Evaluation { frames, at: None }])
    }
}

/// Returns the source of the command that is being executed, in a shell whose script is `base`.
fn innermost_source(inputs: &[Input], base: Input, steps: &[Step]) -> Option<Source> {
    let innermost = steps.iter().find_map(|s| match s {
        Step::Command { input, .. } => Some(Source::of(inputs, *input)),
        Step::Called(_) => None,
    });
    let first = Source::Known(*inputs.first()?);
    // A forked shell reads no input any more, so the innermost command tells the source.
    Some(match innermost {
        Some(gone @ Source::Gone(_)) if first == Source::Known(base) => gone,
        _ => first,
    })
}

/// Returns the level of a file that the shell reads by `.`, at `line`.
fn file_level(source: Source, tid: i32, line: u32) -> Option<Level> {
    let Source::Known(file) = source else { return None };
    let path = (file.descriptor > 0).then(|| opened(tid, file.descriptor)).flatten()?;
    Some(Level { function: "main".to_owned(), file: Some(path), line })
}

impl Dash {
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn at(base: u64) -> Self {
        let anatomy = Anatomy {
            line: 0,
            function_line: 4,
            script: 8,
            input: 16,
            command: 0..1024,
            command_slot: 0,
            input_slot: 8,
            function: 1024..4096,
            function_slot: 0,
            evaluators: vec![0..1024, 4096..8192],
        };
        Self { anatomy, bias: base, texts: Texts::default() }
    }

    /// Returns the levels being executed, innermost first, each with its current line; `None` if they can't be read.
    fn levels(&mut self, memory: &mut Memory<'_, '_>, placed: &[PlacedFrame], tid: i32) -> Option<Vec<Level>> {
        let inputs = inputs(memory, self.anatomy.input.wrapping_add(self.bias))?;
        let base = *inputs.last()?;
        let steps = self.steps(memory, placed);
        // Without an evaluator on the stack, the shell reads its script, starts or ends: it is at no line.
        if !placed.iter().any(|f| self.evaluates(f)) {
            return Some(Vec::new());
        }
        let mut line = match self.line_of_started_here(memory, placed) {
            Some(line) => line,
            None => memory.half(self.anatomy.line.wrapping_add(self.bias)).filter(|l| *l <= MAX_LINE)?,
        };
        let mut source = innermost_source(&inputs, base, &steps)?;
        let script = self.script(memory, base, tid);
        let mut levels = Vec::new();
        let mut is_called = false;
        for step in steps {
            match step {
                Step::Called(function) => {
                    let file = script.as_ref().and_then(|script| self.texts.file_of(tid, script, &function));
                    levels.push(Level { function: function.name, file, line });
                    is_called = true;
                }
                Step::Command { line: own, input } => {
                    let around = Source::of(&inputs, input);
                    if around == source {
                        if is_called {
                            line = own?;
                        }
                    } else {
                        levels.extend(file_level(source, tid, line));
                        (source, line) = (around, own?);
                    }
                    is_called = false;
                }
            }
            if levels.len() >= MAX_FRAMES {
                return Some(levels);
            }
        }
        // The walk ends at the script itself, unless a trap runs: its commands are called by none of the script's.
        if source == Source::Known(base) || base.is_unread {
            let file = script.map(|(_, name)| name);
            levels.push(Level { function: "main".to_owned(), file, line });
        }
        levels.retain(|level| level.line > 0);
        Some(levels)
    }

    /// Returns the way to open the script itself, and its name.
    fn script(&self, memory: &mut Memory<'_, '_>, base: Input, tid: i32) -> Option<(Script, String)> {
        if base.is_unread {
            return Some((Script::Given, "-c".to_owned()));
        }
        let at = memory.pointer(self.anatomy.script.wrapping_add(self.bias))?;
        let name = readable(&memory.text(at, MAX_NAME)?);
        match base.descriptor {
            0 if first_argument(tid)? == at => Some((Script::Open(0), "<stdin>".to_owned())),
            0 => Some((Script::Named(name.clone()), name)),
            descriptor => Some((Script::Open(descriptor), name)),
        }
    }

    /// Returns the commands and functions that the frames tell of, innermost first.
    fn steps(&self, memory: &mut Memory<'_, '_>, placed: &[PlacedFrame]) -> Vec<Step> {
        let Anatomy { command, command_slot, input_slot, function, function_slot, .. } = &self.anatomy;
        let mut steps = Vec::new();
        for frame in placed {
            let mut slot = |at: u64| memory.word(frame.sp.wrapping_add(at));
            if self.is_in(frame, command) {
                let (Some(node), Some(input)) = (slot(*command_slot), slot(*input_slot)) else { break };
                steps.push(Step::Command { line: line_of_command(memory, node), input });
            } else if self.is_in(frame, function) {
                let called = slot(*function_slot).and_then(|at| Function::of(memory, at));
                let Some(called) = called else { break };
                steps.push(Step::Called(called));
            }
        }
        steps
    }

    /// Returns the line of a command that is being started (in a pipeline or in the background) or waited for:
    /// `errlinno` does not hold its line yet.
    fn line_of_started_here(&self, memory: &mut Memory<'_, '_>, placed: &[PlacedFrame]) -> Option<u32> {
        let at = placed.iter().position(|f| self.evaluates(f))?;
        let (inner, outer) = (placed.get(at.checked_sub(1)?)?, placed.get(at)?);
        if self.is_in(outer, &self.anatomy.command) {
            return None;
        }
        let words = (outer.sp.checked_sub(inner.sp)? / 8).min(MAX_WORDS);
        (0..words).find_map(|n| {
            let node = memory.pointer(inner.sp.wrapping_add(n * 8))?;
            line_of_started(memory, node)
        })
    }

    fn evaluates(&self, frame: &PlacedFrame) -> bool {
        self.anatomy.evaluators.iter().any(|evaluator| self.is_in(frame, evaluator))
    }

    fn is_in(&self, frame: &PlacedFrame, function: &Range<u64>) -> bool {
        function.contains(&frame.ip.wrapping_sub(self.bias).wrapping_sub(u64::from(frame.frame.is_return)))
    }
}

fn frame(lines: &mut ScriptLines, level: &Level) -> Option<RawFrame> {
    let line = ScriptLine {
        language: Language::Shell,
        function: level.function.as_str().into(),
        file: level.file.as_deref().map(Into::into),
        line: Some(level.line),
    };
    lines.frame(line, FrameClass::User)
}
