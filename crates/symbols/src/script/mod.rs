//! Lines of scripts between the frames of the interpreter that runs them.
//!
//! An interpreter keeps its own frames in the target's memory. They are read while the thread
//! waits, by where the interpreter's version keeps them, and put behind the native frame that
//! evaluates them. Everything read is checked: what can't be told has no lines, never wrong ones.

#[cfg(any(test, feature = "any-file"))]
pub(crate) mod any;
mod find;
#[cfg(test)]
mod hostile;
mod jit;
mod memory;
mod perf_map;
mod python;
mod python_layout;
mod python_lines;
mod ruby;
mod ruby_layout;
mod table;

pub(crate) use find::Runtime;
use memory::Memory;
pub use memory::ReadMemory;
use python::Python;
use python_layout::Layout;
use ruby::Ruby;
pub(crate) use table::Lines;

use crate::{AddressSpace, ModuleKey, PlacedFrame, RawFrame, Symbols};
use std::collections::HashMap;
use std::ops::Range;
use systoll_model::FrameClass;

/// A thread that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its id.
    pub tid: i32,
    /// Its fs base, where that is known: what `pthread_self` returns.
    pub fs_base: Option<u64>,
}

impl Thread {
    /// Whether `pthread_self` returns `id` in it.
    fn is(self, memory: &mut Memory<'_, '_>, id: u64) -> bool {
        // `struct pthread.tid` of glibc (since 2.4) and of musl (since 1.2), on x86-64.
        const TIDS: [u64; 2] = [0x2d0, 0x30];
        match self.fs_base {
            Some(base) => base == id,
            None => TIDS.iter().any(|at| memory.half(id.wrapping_add(*at)) == Some(self.tid as u32)),
        }
    }
}

/// What one evaluation on the native stack is executing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Innermost first.
    pub(crate) frames: Vec<RawFrame>,
    /// An address inside the evaluation's native frame, where there is one.
    pub(crate) at: Option<u64>,
}

/// The interpreters of an address space, and what is known of their code.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    /// `None` where its version is not known.
    runtimes: HashMap<ModuleKey, Option<Interpreter>>,
    /// What the processes in it have compiled.
    compiled: jit::Processes,
}

impl Clone for Scripts {
    /// What is known of one process's objects does not hold in another.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl AddressSpace {
    /// Whether scripts' lines have been asked for and can be told.
    pub fn runs_scripts(&self) -> bool {
        self.scripts.runtimes.values().any(Option::is_some) || self.scripts.compiled.any()
    }

    /// Frames of a waiting thread, as unwound just now, with the lines of scripts between them.
    pub fn with_scripts(
        &mut self,
        symbols: &mut Symbols,
        placed: &[PlacedFrame],
        thread: Thread,
        read: &mut ReadMemory<'_>,
    ) -> Vec<RawFrame> {
        let native = || placed.iter().map(|p| p.frame).collect();
        let mut keys = placed.iter().filter_map(|p| p.frame.module);
        let any_compiled = placed.iter().any(|p| p.frame.module.is_none());
        let mut files = self.files().filter(|_| any_compiled);
        let compiler = files.find_map(|f| Some((f.module, symbols.compiler(f.module)?)));
        drop(files);
        if let Some(compiler) = compiler {
            return self.scripts.compiled.name(symbols, placed, thread, compiler).unwrap_or_else(native);
        }
        let Some(key) = keys.find(|key| symbols.runtime(*key).is_some()) else { return native() };
        let Some(base) = self.files().find(|f| f.module == key).map(|f| f.bias) else { return native() };
        let Some(runtime) = symbols.runtime(key).cloned() else { return native() };
        let mut memory = Memory::new(read);
        let scripts = &mut self.scripts.runtimes;
        let interpreter = scripts.entry(key).or_insert_with(|| {
            let known = Interpreter::of(&mut memory, &runtime, base);
            if known.is_none() {
                symbols.complain_of_runtime(key);
            }
            known
        });
        let Some(interpreter) = interpreter else { return native() };
        match interpreter.segments(&mut symbols.lines, &mut memory, placed, thread) {
            Some(segments) if !segments.is_empty() => {
                symbols.scripted.insert(key);
                let evaluation = runtime.evaluate().and_then(|start| symbols.function_at(key, start));
                let evaluates = |f: &RawFrame| {
                    f.module == Some(key) && evaluation.as_ref().is_some_and(|code| code.contains(&f.lookup()))
                };
                interleave(placed, segments, &|f| f.module == Some(key), &evaluates)
            }
            _ => native(),
        }
    }
}

/// What reads the frames of one kind of interpreter.
#[derive(Debug)]
enum Interpreter {
    Python(Python),
    Ruby(Ruby),
}

impl Interpreter {
    /// That of a file mapped with `bias`; `None` where its version is not known.
    fn of(memory: &mut Memory<'_, '_>, runtime: &Runtime, bias: u64) -> Option<Self> {
        match *runtime {
            Runtime::Python { runtime, version, .. } => {
                let runtime = bias.wrapping_add(runtime);
                Some(Self::Python(Python::new(Layout::of(memory, runtime, version)?, runtime)))
            }
            Runtime::Ruby { vm, version, .. } => Some(Self::Ruby(Ruby::new(version, bias.wrapping_add(vm))?)),
        }
    }

    fn segments(
        &mut self,
        lines: &mut Lines,
        memory: &mut Memory<'_, '_>,
        placed: &[PlacedFrame],
        thread: Thread,
    ) -> Option<Vec<Segment>> {
        match self {
            Self::Python(python) => python.segments(lines, memory, thread),
            Self::Ruby(ruby) => ruby.segments(lines, memory, placed.first()?.sp..placed.last()?.sp),
        }
    }
}

/// Puts each segment behind the frame that evaluates it: the one it has an address in, else by
/// counting evaluations, else all of them behind the innermost of the interpreter's frames.
fn interleave(
    placed: &[PlacedFrame],
    segments: Vec<Segment>,
    is_runtime: &dyn Fn(&RawFrame) -> bool,
    evaluates: &dyn Fn(&RawFrame) -> bool,
) -> Vec<RawFrame> {
    let innermost = placed.iter().position(|p| is_runtime(&p.frame)).unwrap_or(0);
    let evaluations: Vec<usize> =
        placed.iter().enumerate().filter(|(_, p)| evaluates(&p.frame)).map(|(i, _)| i).collect();
    let counted = evaluations.len() == segments.len();
    let mut behind: Vec<Vec<RawFrame>> = vec![Vec::new(); placed.len()];
    let mut least = innermost;
    for (n, segment) in segments.into_iter().enumerate() {
        let by_address = segment.at.and_then(|at| {
            let after = placed.iter().position(|p| p.sp > at).unwrap_or(placed.len());
            after.checked_sub(1).filter(|i| placed.get(*i).is_some_and(|p| is_runtime(&p.frame)))
        });
        let by_count = if counted { evaluations.get(n).copied() } else { None };
        // Their order is known in any case.
        least = by_address.or(by_count).unwrap_or(least).max(least);
        if let Some(frames) = behind.get_mut(least) {
            frames.extend(segment.frames);
        }
    }
    placed.iter().zip(behind).flat_map(|(p, behind)| std::iter::once(p.frame).chain(behind)).collect()
}

impl Symbols {
    /// The runtime in a file, if it is one.
    fn runtime(&self, key: ModuleKey) -> Option<&Runtime> {
        self.module(key)?.runtime()
    }

    /// The compiler at run time that a file is.
    fn compiler(&self, key: ModuleKey) -> Option<jit::Compiler> {
        jit::Compiler::of(self.module(key)?.file_name())
    }

    /// The function that begins at `start`.
    fn function_at(&self, key: ModuleKey, start: u64) -> Option<Range<u64>> {
        self.module(key)?.range(start).filter(|range| range.start == start)
    }

    fn complain_of_runtime(&mut self, key: ModuleKey) {
        if let Some(path) = self.path(key) {
            self.complain(format!("{path}: no lines of scripts: this version's frames are not known"));
        }
    }

    /// Whether a frame is of an interpreter whose scripts have been read, or of the modules in C
    /// that come with it.
    pub fn is_interpreter(&self, frame: RawFrame) -> bool {
        let Some(key) = frame.module.filter(|_| !self.scripted.is_empty()) else {
            // What was compiled as it ran.
            return self.names_compiled && frame.module.is_none();
        };
        let path = || self.module(key).map_or("", |m| &m.path);
        // Python's own modules in C, and Ruby's.
        let bundled = |p: &str| {
            p.contains("/lib-dynload/")
                || (p.contains("/ruby/") && ruby::is_bundled(p))
                || (self.names_compiled && jit::is_bundled(p))
        };
        self.scripted.contains(&key) || bundled(path())
    }

    /// The line of a script that a stack is about: the innermost that is not one of the language's
    /// own library, else the innermost.
    pub fn script_line(&self, stack: &[RawFrame]) -> Option<RawFrame> {
        let lines = stack.iter().filter(|f| f.is_script());
        let own = |f: &&RawFrame| self.lines.get(**f).is_some_and(|(_, class)| *class == FrameClass::User);
        // Among functions compiled as they run, those that are not may be missing.
        let whole = |f: &&RawFrame| self.lines.get(**f).is_some_and(|(line, _)| line.line.is_some());
        lines.clone().find(own).or_else(|| lines.clone().find(whole)).copied()
    }
}
