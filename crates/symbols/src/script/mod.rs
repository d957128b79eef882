//! Lines of scripts between the frames of the interpreter that runs them.
//!
//! An interpreter keeps its own frames in the target's memory. They are read while the thread
//! waits, by where the interpreter's version keeps them, and put behind the native frame that
//! evaluates them. Everything read is checked: what can't be told has no lines, never wrong ones.
//!
//! A language is a folder with a [`Runtime`] and an `Interpreter` (`interpreter`), and a line in `languages`.

mod bash;
mod dash;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
#[cfg(test)]
mod hostile;
mod hotspot;
mod interpreter;
mod jit;
mod languages;
mod lua;
mod luajit;
mod memory;
mod perf_map;
mod perl;
mod php;
mod python;
mod ruby;
mod search;
mod thread;
mod v8;
mod zsh;

pub(crate) use interpreter::Runtime;
use interpreter::{Interpreter, Look};
pub(crate) use jit::has_map;
pub(crate) use languages::recognise;
use memory::Memory;
pub use memory::ReadMemory;
pub(crate) use memory::Room;
use thread::Evaluation;
pub use thread::Thread;

use crate::{ModuleKey, PlacedFrame, RawFrame, Symbols};
use foldhash::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;
use systoll_model::FrameClass;

/// The interpreters of an address space, and what is known of their code.
#[derive(Debug, Default)]
pub(crate) struct Interpreters {
    /// `None` where its version is not known.
    runtimes: HashMap<ModuleKey, Option<Box<dyn Interpreter>>>,
    /// The functions that its processes have compiled.
    compiled: jit::Processes,
    /// By thread: which pages its last look needed.
    needed: HashMap<i32, Vec<u64>>,
}

/// Most threads whose last look is remembered.
const MAX_LOOKED: usize = 64;

impl Clone for Interpreters {
    /// Returns an empty one: facts about one process's objects do not hold in another.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Interpreters {
    /// Returns true if scripts' lines have been asked for and can be told.
    pub(crate) fn any(&self) -> bool {
        self.runtimes.values().any(Option::is_some) || self.compiled.any()
    }

    /// Frames of a waiting thread, as unwound just now, with the lines of scripts between them. `files` are
    /// those mapped in its address space.
    pub(crate) fn with_scripts(
        &mut self,
        symbols: &mut Symbols,
        files: impl Iterator<Item = FileAt> + Clone,
        placed: &[PlacedFrame],
        stopped: Stopped<'_, '_>,
    ) -> Vec<RawFrame> {
        let native = || placed.iter().map(|p| p.frame).collect();
        let mut keys = placed.iter().filter_map(|p| p.frame.module);
        let any_compiled = placed.iter().any(|p| p.frame.module.is_none());
        let mut compilers = files.clone().filter(|_| any_compiled);
        let compiles = |key: &ModuleKey| symbols.runtime(*key).is_some_and(|runtime| runtime.compiles());
        let runtime = keys.find(|key| symbols.runtime(*key).is_some());
        let runtime = runtime.or_else(|| compilers.clone().map(|f| f.module).find(compiles));
        let Some(key) = runtime else {
            let compiler = compilers.find_map(|f| Some((f.module, symbols.compiler(f.module)?)));
            let named = compiler.and_then(|compiler| self.compiled.name(symbols, placed, stopped.thread, compiler));
            return named.unwrap_or_else(native);
        };
        let Some(bias) = files.into_iter().find(|f| f.module == key).map(|f| f.bias) else { return native() };
        let Some(runtime) = symbols.runtime(key) else { return native() };
        let wanted = self.needed.remove(&stopped.thread.tid).unwrap_or_default();
        let mut memory = Memory::ahead(stopped.read, std::mem::take(&mut symbols.scripts.room), &wanted);
        let interpreter = match self.runtimes.entry(key) {
            Entry::Occupied(known) => known.into_mut().as_mut(),
            Entry::Vacant(unknown) => match runtime.attach(&mut memory, bias) {
                Ok(None) => None,
                Ok(known) => unknown.insert(known).as_mut(),
                Err(missing) => {
                    symbols.complain_of_runtime(key, &missing);
                    unknown.insert(None).as_mut()
                }
            },
        };
        let (lines, thread) = (&mut symbols.scripts.lines, stopped.thread);
        let mut look = Look { thread, placed, memory: &mut memory, lines };
        let evaluations = interpreter.and_then(|i| i.evaluations(&mut look));
        let ended = memory.end();
        symbols.scripts.room = ended.room;
        if self.needed.len() >= MAX_LOOKED {
            self.needed.clear();
        }
        self.needed.insert(thread.tid, ended.needed);
        match evaluations {
            Some(evaluations) if !evaluations.is_empty() => {
                symbols.scripts.runtimes.insert(key);
                let compiles = runtime.compiles();
                symbols.scripts.any_compiled |= compiles;
                let evaluation = runtime.evaluate().and_then(|start| symbols.function_at(key, start));
                let evaluates = |f: &RawFrame| {
                    f.module == Some(key) && evaluation.as_ref().is_some_and(|code| code.contains(&f.lookup()))
                };
                let is_runtime = |f: &RawFrame| f.module == Some(key) || compiles && f.module.is_none();
                interleave(placed, evaluations, &is_runtime, &evaluates)
            }
            _ => native(),
        }
    }
}

/// A file mapped with `bias`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileAt {
    pub(crate) module: ModuleKey,
    pub(crate) bias: u64,
}

/// A thread that waits, and what reads its memory.
pub(crate) struct Stopped<'r, 'f> {
    pub(crate) thread: Thread,
    pub(crate) read: &'r mut ReadMemory<'f>,
}

/// Puts each evaluation behind the frame that evaluates it: the one it has an address in, else by
/// counting evaluations, else all of them behind the innermost of the interpreter's frames.
fn interleave(
    placed: &[PlacedFrame],
    evaluations: Vec<Evaluation>,
    is_runtime: &dyn Fn(&RawFrame) -> bool,
    evaluates: &dyn Fn(&RawFrame) -> bool,
) -> Vec<RawFrame> {
    let innermost = placed.iter().position(|p| is_runtime(&p.frame)).unwrap_or(0);
    let evaluators: Vec<usize> =
        placed.iter().enumerate().filter(|(_, p)| evaluates(&p.frame)).map(|(i, _)| i).collect();
    let counted = evaluators.len() == evaluations.len();
    let mut behind: Vec<Vec<RawFrame>> = vec![Vec::new(); placed.len()];
    let mut least = innermost;
    for (n, evaluation) in evaluations.into_iter().enumerate() {
        let by_address = evaluation.at.and_then(|at| {
            let after = placed.iter().position(|p| p.sp > at).unwrap_or(placed.len());
            after.checked_sub(1).filter(|i| placed.get(*i).is_some_and(|p| is_runtime(&p.frame)))
        });
        let by_count = if counted { evaluators.get(n).copied() } else { None };
        // Their order is known in any case.
        least = by_address.or(by_count).unwrap_or(least).max(least);
        if let Some(frames) = behind.get_mut(least) {
            frames.extend(evaluation.frames);
        }
    }
    placed.iter().zip(behind).flat_map(|(p, behind)| std::iter::once(p.frame).chain(behind)).collect()
}

impl Symbols {
    /// The runtime in a file, if it is one.
    fn runtime(&self, key: ModuleKey) -> Option<Arc<dyn Runtime>> {
        self.module(key)?.runtime().cloned()
    }

    /// The compiler at run time that a file is, of one whose frames can't be read.
    fn compiler(&self, key: ModuleKey) -> Option<jit::Compiler> {
        jit::Compiler::of(self.module(key)?.file_name()).filter(|_| self.runtime(key).is_none())
    }

    /// Returns true if a file compiles scripts as they run, whose functions only a map tells.
    pub fn compiles(&self, key: ModuleKey) -> bool {
        self.compiler(key).is_some()
    }

    /// Returns true if a file reads scripts and runs them, and their lines can be told.
    pub fn interprets(&self, key: ModuleKey) -> bool {
        self.runtime(key).is_some()
    }

    /// Returns true if a file holds an interpreter whose lines are to be looked at from its first call on.
    pub(crate) fn interprets_at_once(&self, key: ModuleKey) -> bool {
        self.runtime(key).is_some_and(|runtime| runtime.is_brief() || runtime.compiles())
    }

    /// The function that begins at `start`.
    fn function_at(&self, key: ModuleKey, start: u64) -> Option<Range<u64>> {
        self.module(key)?.range(start).filter(|range| range.start == start)
    }

    fn complain_of_runtime(&mut self, key: ModuleKey, missing: &str) {
        if let Some(path) = self.path(key) {
            self.complain(format!("{path}: no lines of scripts: {missing}"));
        }
    }

    /// Returns true if a frame is of an interpreter whose scripts have been read, or of the modules in C
    /// that come with it.
    pub fn is_interpreter(&self, frame: RawFrame) -> bool {
        let Some(key) = frame.module.filter(|_| !self.scripts.runtimes.is_empty()) else {
            // What was compiled as it ran.
            return self.scripts.any_compiled && frame.module.is_none();
        };
        let path = || self.module(key).map_or("", |m| &m.path);
        let bundled = |p: &str| languages::is_bundled(p) || (self.scripts.any_compiled && jit::is_bundled(p));
        self.scripts.runtimes.contains(&key) || bundled(path())
    }

    /// The line of a script that a stack is about: the innermost that is not one of the language's
    /// own library, else the innermost.
    pub fn script_line(&self, stack: &[RawFrame]) -> Option<RawFrame> {
        let lines = stack.iter().filter(|f| f.is_script());
        let own = |f: &&RawFrame| self.scripts.lines.get(**f).is_some_and(|(_, class)| *class == FrameClass::User);
        // Among functions compiled as they run, those that are not may be missing.
        let whole = |f: &&RawFrame| self.scripts.lines.get(**f).is_some_and(|(line, _)| line.line.is_some());
        lines.clone().find(own).or_else(|| lines.clone().find(whole)).copied()
    }
}
