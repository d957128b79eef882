//! Lines of scripts between the frames of the interpreter that runs them.
//!
//! An interpreter keeps its own frames in the target's memory. They are read while the thread waits, by the layout of
//! the interpreter's version, and put behind the native frame that evaluates them. Everything read is checked: if a
//! stack can't be read, it gets no script lines, never wrong ones.
//!
//! A language is a folder with a [`Runtime`] and an `Interpreter` (`interpreter`), and a line in `languages`.

mod bash;
mod dash;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
pub(crate) mod goroutines;
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
pub(crate) use memory::Memory;
pub use memory::ReadMemory;
pub(crate) use memory::Room;
use thread::Evaluation;
pub use thread::Thread;

use crate::lines::ScriptLine;
use crate::{ModuleKey, PlacedFrame, RawFrame, Symbols};
use foldhash::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;
use systoll_model::{FrameClass, Language};

/// The interpreters of an address space, and the facts known about their code.
#[derive(Debug, Default)]
pub(crate) struct Interpreters {
    /// Interpreters by file; `None` if the interpreter's version is not known.
    runtimes: HashMap<ModuleKey, Option<Box<dyn Interpreter>>>,
    /// Functions that its processes have compiled at run time.
    compiled: jit::Processes,
    /// Addresses of the pages that the last stack of a thread needed, by thread id.
    needed: HashMap<i32, Vec<u64>>,
}

/// Threads whose needed pages are remembered, at most; if there are more, all are forgotten.
const MAX_LOOKED: usize = 64;

impl Clone for Interpreters {
    /// Returns a value without interpreters: facts about one process's objects do not hold in another.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Interpreters {
    /// Returns true if an interpreter's frames can be read, or a process has a map of compiled functions.
    pub(crate) fn any(&self) -> bool {
        self.runtimes.values().any(Option::is_some) || self.compiled.any()
    }

    /// Returns the frames of a waiting thread, as just unwound, with the lines of scripts between them. `files` are
    /// the files mapped in its address space.
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

/// A file that is mapped with a bias, the distance of its addresses in memory from those in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileAt {
    pub(crate) module: ModuleKey,
    pub(crate) bias: u64,
}

/// A waiting thread, and the function that reads its memory.
pub(crate) struct Stopped<'r, 'f> {
    pub(crate) thread: Thread,
    pub(crate) read: &'r mut ReadMemory<'f>,
}

/// Inserts each evaluation behind the native frame that evaluates it: the frame that holds the evaluation's address;
/// else, if there are as many evaluating frames as evaluations, the one of the same rank; else the frame of the
/// evaluation before it, at first the interpreter's innermost frame.
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
        // Evaluations are in the order of the stack, so none goes before the previous one.
        least = by_address.or(by_count).unwrap_or(least).max(least);
        if let Some(frames) = behind.get_mut(least) {
            frames.extend(evaluation.frames);
        }
    }
    placed.iter().zip(behind).flat_map(|(p, behind)| std::iter::once(p.frame).chain(behind)).collect()
}

impl Symbols {
    /// Returns the script runtime that a file holds, if it holds one.
    fn runtime(&self, key: ModuleKey) -> Option<Arc<dyn Runtime>> {
        self.module(key)?.runtime().cloned()
    }

    /// Returns the just-in-time compiler that a file holds, if its frames can't be read.
    fn compiler(&self, key: ModuleKey) -> Option<jit::Compiler> {
        jit::Compiler::of(self.module(key)?.file_name()).filter(|_| self.runtime(key).is_none())
    }

    /// Returns true if a file compiles scripts at run time and only a perf map tells the compiled functions.
    pub fn compiles(&self, key: ModuleKey) -> bool {
        self.compiler(key).is_some()
    }

    /// Returns true if a file is a script runtime whose lines can be read.
    pub fn interprets(&self, key: ModuleKey) -> bool {
        self.runtime(key).is_some()
    }

    /// Returns true if the lines of a file's scripts are to be read from its first call on.
    pub(crate) fn interprets_at_once(&self, key: ModuleKey) -> bool {
        self.runtime(key).is_some_and(|runtime| runtime.is_brief() || runtime.compiles())
    }

    /// Returns the range of the function that begins at `start`.
    fn function_at(&self, key: ModuleKey, start: u64) -> Option<Range<u64>> {
        self.module(key)?.range(start).filter(|range| range.start == start)
    }

    fn complain_of_runtime(&mut self, key: ModuleKey, missing: &str) {
        if let Some(path) = self.path(key) {
            self.complain(format!("{path}: no lines of scripts: {missing}"));
        }
    }

    /// Returns true if a frame belongs to a script runtime whose lines have been read, or to an extension module that
    /// comes with one.
    pub fn is_interpreter(&self, frame: RawFrame) -> bool {
        let Some(key) = frame.module.filter(|_| !self.scripts.runtimes.is_empty()) else {
            // Code that is in no file was compiled at run time.
            return self.scripts.any_compiled && frame.module.is_none();
        };
        let path = || self.module(key).map_or("", |m| &m.path);
        let bundled = |p: &str| languages::is_bundled(p) || (self.scripts.any_compiled && jit::is_bundled(p));
        self.scripts.runtimes.contains(&key) || bundled(path())
    }

    /// Returns the script line that stands for a stack: the innermost of the user's own code, but for the outermost level
    /// of a text which was evaluated the line that did so; else, in Java, the outermost that tells what its thread is
    /// for; else the innermost that has a line number. Lines outside of an event loop only started it.
    pub fn script_line(&self, stack: &[RawFrame]) -> Option<RawFrame> {
        let is_loop = |f: &RawFrame| self.scripts.lines.get(*f).is_some_and(|(line, _)| python::is_loop(line));
        let in_loop = stack.iter().position(is_loop).and_then(|at| stack.get(..=at));
        let stack = in_loop.unwrap_or(stack);
        let lines = stack.iter().filter(|f| f.is_script());
        let own = |f: &&RawFrame| self.scripts.lines.get(**f).is_some_and(|(_, class)| *class == FrameClass::User);
        let line = |f: RawFrame| self.scripts.lines.get(f).map(|(line, _)| line);
        let is_level = |(at, f): &(usize, &RawFrame)| {
            let outer = || stack.iter().skip(at + 1).filter_map(|f| line(*f));
            line(**f).is_some_and(|line| is_level_of_text(line, outer()))
        };
        // A frame without a line number is not taken: in a stack of compiled functions, the interpreted ones may be
        // missing.
        let whole = |f: &&RawFrame| self.scripts.lines.get(**f).is_some_and(|(line, _)| line.line.is_some());
        let tells_task = |f: &&RawFrame| {
            let line = self.scripts.lines.get(**f).map(|(line, _)| line);
            line.is_some_and(|line| line.language == Language::Java && hotspot::tells_task(&line.function))
        };
        let task = || stack.iter().rev().filter(|f| f.is_script()).filter(whole).find(tells_task);
        let numbered = || stack.iter().enumerate().filter(|(_, f)| f.is_script() && own(f));
        let own_line = numbered().find(|f| !is_level(f)).or_else(|| numbered().next()).map(|(_, f)| f);
        own_line.or_else(task).or_else(|| lines.clone().find(whole)).copied()
    }
}

/// Returns true for a line at the outermost level of a text that the program evaluated (`eval`, `exec`), which is in no
/// file that a reader could open. `outer` are the lines that called it. PHP names such a text by the place that evaluates
/// it; Ruby gives its level the name of the method that does.
fn is_level_of_text<'l>(line: &ScriptLine, mut outer: impl Iterator<Item = &'l ScriptLine>) -> bool {
    let is_text = |line: &ScriptLine| {
        let file = line.file.as_deref().unwrap_or_default();
        file == "<string>" || file == v8::EVALUATED || file.starts_with("(eval")
    };
    let is_level = ["<module>", "(eval)", v8::LEVEL].contains(&&*line.function) || line.function.ends_with("__ANON__");
    is_text(line) && (is_level || outer.any(|outer| outer.function == line.function && !is_text(outer)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_of_an_evaluated_text_is_told_by_who_evaluates_it() {
        let line = |function: &str, file: &str| ScriptLine {
            language: Language::Perl,
            function: function.into(),
            file: Some(file.into()),
            line: Some(1),
        };
        let outer = [line("eval", "<internal:kernel>"), line("settings", "/srv/app.rb")];
        let is_level = |own: ScriptLine| is_level_of_text(&own, outer.iter());
        let levels = [("<module>", "<string>"), ("(eval)", "(eval 7)"), ("main::__ANON__", "(eval 7)")];
        levels.iter().for_each(|(function, file)| assert!(is_level(line(function, file)), "{function}"));
        // Ruby's has the name of the method around it; a method that was defined there has its own.
        assert!(is_level(line("settings", "(eval)")) && !is_level(line("made", "(eval)")));
        assert!(!is_level(line("made", "(eval 7)")) && !is_level(line("made", v8::EVALUATED)));
        assert!(!is_level(line("<module>", "/srv/app.py")) && !is_level(line("settings", "/srv/app.rb")));
    }
}
