//! CPython: reads the source lines of a thread's frames, starting from the thread's state.

pub(crate) mod layout;
pub(crate) mod lines;

use self::layout::{BYTES, Chain, LENGTH, Layout, STATE, TYPE, TYPE_NAME};
use super::interpreter::{Candidate, Interpreter, Look, Runtime};
use super::memory::Memory;
use super::thread::{Evaluation, Thread};
use crate::RawFrame;
use crate::lines::{MAX_NAME, ScriptLine, ScriptLines};
use foldhash::HashMap;
use std::sync::Arc;
use systoll_model::{FrameClass, Language};

/// Interpreters looked through, at most.
const MAX_INTERPRETERS: usize = 64;
/// Threads of an interpreter looked through, at most.
const MAX_THREADS: usize = 1024;
/// Frames read of a stack, at most.
const MAX_FRAMES: usize = 512;
/// Nested evaluations read of a stack, at most.
const MAX_SEGMENTS: usize = 256;
/// Code objects remembered, at most; if there are more, all are forgotten.
const MAX_CODES: usize = 8192;
/// Bytes of a table of lines, at most.
const MAX_TABLE: u64 = 1 << 20;
/// Value of a frame's `owner` that marks the start of an evaluation: `FRAME_OWNED_BY_CSTACK` (3.12,
/// 3.13) or `FRAME_OWNED_BY_INTERPRETER` (3.14).
const OWNED_BY_EVALUATION: u8 = 3;

/// A file that holds CPython, with the ELF virtual addresses of its exported symbols.
#[derive(Clone, Copy, Debug)]
struct PythonFile {
    /// Address of `_PyRuntime`.
    runtime: u64,
    /// Address of `_PyEval_EvalFrameDefault`.
    evaluate: Option<u64>,
    /// `PY_VERSION_HEX` as far as the file tells it; without the micro version if only the file's
    /// name tells it.
    version: Option<u32>,
}

/// Returns the CPython in a file, if it holds one.
pub(crate) fn recognise(file: Candidate<'_>) -> Option<Box<dyn Runtime>> {
    let [runtime, evaluate, version] = file.exported(["_PyRuntime", "_PyEval_EvalFrameDefault", "Py_Version"]);
    let runtime = runtime?;
    let soname = || file.elf.soname.as_deref().and_then(version_in);
    let version = version.and_then(|at| file.half(at)).or_else(soname).or_else(|| version_in(file.file_name()));
    Some(Box::new(PythonFile { runtime, evaluate, version }))
}

/// Returns the version that a file's name tells: `python3.9`, `libpython3.10.so.1.0`.
fn version_in(name: &str) -> Option<u32> {
    let (_, rest) = name.split_once("python3.")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let minor: u32 = digits.parse().ok().filter(|m| *m < 256)?;
    Some(3 << 24 | minor << 16)
}

/// Returns true if `path` is an extension module that comes with Python.
pub(crate) fn is_bundled(path: &str) -> bool {
    path.contains("/lib-dynload/")
}

/// Returns true for the function of asyncio that runs whatever its loop has to do: its callers asked for none of it.
pub(crate) fn is_loop(line: &ScriptLine) -> bool {
    let of_asyncio = |file: &str| file.ends_with("/asyncio/base_events.py");
    line.language == Language::Python && &*line.function == "_run_once" && line.file.as_deref().is_some_and(of_asyncio)
}

impl Runtime for PythonFile {
    fn attach(&self, memory: &mut Memory<'_, '_>, bias: u64) -> Result<Option<Box<dyn Interpreter>>, String> {
        let runtime = bias.wrapping_add(self.runtime);
        match Layout::of(memory, runtime, self.version) {
            Some(layout) => Ok(Some(Box::new(Python::new(layout, runtime)))),
            None => Err("this version's frames are not known".to_owned()),
        }
    }

    fn evaluate(&self) -> Option<u64> {
        self.evaluate
    }
}

/// A CPython in an address space.
#[derive(Debug)]
pub(crate) struct Python {
    layout: Layout,
    /// Address of `_PyRuntime`.
    runtime: u64,
    /// Code objects that were read, by address.
    codes: HashMap<u64, Code>,
    /// Addresses of types whose names were checked.
    types: HashMap<&'static str, u64>,
}

/// A code object as it was when last read.
#[derive(Debug)]
struct Code {
    /// Bytes of its header. Another object at the same address has a different header.
    header: Vec<u8>,
    file: Arc<str>,
    function: Arc<str>,
    class: FrameClass,
    first_line: u32,
    table: Vec<u8>,
    /// Lines as frames, by offset of the instruction.
    lines: HashMap<u32, RawFrame>,
}

impl Interpreter for Python {
    fn evaluations(&mut self, look: &mut Look<'_, '_, '_>) -> Option<Vec<Evaluation>> {
        let Look { lines, memory, .. } = look;
        let state = self.thread(memory, look.thread)?;
        match self.layout.chain {
            Chain::Objects => self.objects(lines, memory, state),
            Chain::CFrames { .. } => self.by_cframes(lines, memory, state),
            Chain::Entries { .. } => self.by_entries(lines, memory, state),
        }
    }
}

impl Python {
    pub(crate) fn new(layout: Layout, runtime: u64) -> Self {
        Self { layout, runtime, codes: HashMap::default(), types: HashMap::default() }
    }

    /// Returns the address of the thread's `PyThreadState`.
    fn thread(&self, memory: &mut Memory<'_, '_>, thread: Thread) -> Option<u64> {
        let layout = self.layout;
        let mut later = None;
        let mut interpreter = memory.pointer(self.runtime.wrapping_add(layout.interpreters))?;
        for _ in 0..MAX_INTERPRETERS {
            let mut state = memory.word(interpreter.wrapping_add(layout.threads))?;
            for _ in 0..MAX_THREADS {
                if state == 0 {
                    break;
                }
                if let Some(native) = layout.native_id
                    && memory.word(state.wrapping_add(native))? == thread.tid as u64
                {
                    return Some(state);
                }
                // The native id is not reliable: a forked child may have its parent's for a while,
                // and there is none until 3.10. Such a thread is found by `thread_id`.
                if later.is_none() {
                    let id = memory.word(state.wrapping_add(layout.thread_id))?;
                    later = thread.is(memory, id).then_some(state);
                }
                state = memory.word(state.wrapping_add(layout.next_thread))?;
            }
            interpreter = memory.word(interpreter.wrapping_add(layout.next_interpreter))?;
            if interpreter == 0 {
                break;
            }
        }
        later
    }

    fn objects(&mut self, lines: &mut ScriptLines, memory: &mut Memory<'_, '_>, state: u64) -> Option<Vec<Evaluation>> {
        let mut evaluations = Vec::new();
        let mut frame = memory.word(state.wrapping_add(self.layout.frame))?;
        while frame != 0 && evaluations.len() < MAX_SEGMENTS {
            let line = self.line(lines, memory, frame)?;
            evaluations.push(Evaluation { frames: vec![line], at: None });
            frame = memory.word(frame.wrapping_add(self.layout.previous))?;
        }
        Some(evaluations)
    }

    fn by_cframes(
        &mut self,
        lines: &mut ScriptLines,
        memory: &mut Memory<'_, '_>,
        state: u64,
    ) -> Option<Vec<Evaluation>> {
        let Chain::CFrames { current, previous, is_entry } = self.layout.chain else { return None };
        let mut evaluations = Vec::new();
        let mut room = MAX_FRAMES;
        let mut cframe = memory.word(state.wrapping_add(self.layout.frame))?;
        while cframe != 0 && evaluations.len() < MAX_SEGMENTS {
            let mut frame = memory.word(cframe.wrapping_add(current))?;
            let mut frames = Vec::new();
            while frame != 0 && room > 0 {
                room -= 1;
                frames.push(self.line(lines, memory, frame)?);
                if memory.byte(frame.wrapping_add(is_entry))? != 0 {
                    break;
                }
                frame = memory.word(frame.wrapping_add(self.layout.previous))?;
            }
            if !frames.is_empty() {
                evaluations.push(Evaluation { frames, at: Some(cframe) });
            }
            cframe = memory.word(cframe.wrapping_add(previous))?;
        }
        Some(evaluations)
    }

    fn by_entries(
        &mut self,
        lines: &mut ScriptLines,
        memory: &mut Memory<'_, '_>,
        state: u64,
    ) -> Option<Vec<Evaluation>> {
        let mut evaluations = Vec::new();
        let mut frame = memory.word(state.wrapping_add(self.layout.frame))?;
        if self.layout.chain == (Chain::Entries { through_cframe: true }) {
            frame = memory.word(frame)?;
        }
        let mut frames = Vec::new();
        for _ in 0..MAX_FRAMES {
            if frame == 0 || evaluations.len() >= MAX_SEGMENTS {
                break;
            }
            if memory.byte(frame.wrapping_add(self.layout.owner))? >= OWNED_BY_EVALUATION {
                if !frames.is_empty() {
                    evaluations.push(Evaluation { frames: std::mem::take(&mut frames), at: Some(frame) });
                }
            } else {
                frames.push(self.line(lines, memory, frame)?);
            }
            frame = memory.word(frame.wrapping_add(self.layout.previous))?;
        }
        if !frames.is_empty() {
            evaluations.push(Evaluation { frames, at: None });
        }
        Some(evaluations)
    }

    /// Returns the line that a frame is at.
    fn line(&mut self, lines: &mut ScriptLines, memory: &mut Memory<'_, '_>, frame: u64) -> Option<RawFrame> {
        // From 3.14 on, the low bits of the pointer are tags.
        let address = memory.pointer(frame.wrapping_add(self.layout.code))? & !3;
        self.know(memory, address)?;
        let offset = if self.layout.chain == Chain::Objects {
            let index = memory.half(frame.wrapping_add(self.layout.instruction))? as i32;
            // From 3.10 on, the index counts code units of two bytes.
            let unit = if self.layout.minor >= 10 { 2 } else { 1 };
            index.max(0).checked_mul(unit)? as u32
        } else {
            let at = memory.word(frame.wrapping_add(self.layout.instruction))?;
            let start = address.wrapping_add(self.layout.bytecode);
            // Until the first instruction is executed, the pointer is one code unit before it.
            if at.wrapping_add(2) == start { 0 } else { u32::try_from(at.checked_sub(start)?).ok()? }
        };
        let minor = self.layout.minor;
        let code = self.codes.get_mut(&address)?;
        if let Some(frame) = code.lines.get(&offset) {
            return Some(*frame);
        }
        let line = ScriptLine {
            language: Language::Python,
            function: Arc::clone(&code.function),
            file: Some(Arc::clone(&code.file)),
            line: lines::line(minor, &code.table, code.first_line, offset),
        };
        let frame = lines.frame(line, code.class)?;
        code.lines.insert(offset, frame);
        Some(frame)
    }

    /// Reads the code object at `address` into `codes`, unless it is there unchanged.
    fn know(&mut self, memory: &mut Memory<'_, '_>, address: u64) -> Option<()> {
        let layout = self.layout;
        let len = layout.line_table + 8;
        // The reference count before the type changes all the time, so it is not compared.
        let at = address.checked_add(TYPE)?;
        if self.codes.get(&address).is_some_and(|c| memory.holds(at, &c.header)) {
            return Some(());
        }
        let header = memory.bytes(at, len - TYPE, 4096)?;
        self.expect(memory, address, "code")?;
        let mut string = |offset: u64| {
            let at = memory.pointer(address.wrapping_add(offset))?;
            self.expect(memory, at, "str")?;
            text(memory, at, layout)
        };
        let (file, function) = (string(layout.file_name)?, string(layout.name)?);
        let first_line = memory.half(address.wrapping_add(layout.first_line))?;
        let table = memory.pointer(address.wrapping_add(layout.line_table))?;
        self.expect(memory, table, "bytes")?;
        let size = memory.word(table.wrapping_add(LENGTH))?;
        let table = memory.bytes(table.wrapping_add(BYTES), size, MAX_TABLE)?;
        if self.codes.len() >= MAX_CODES {
            self.codes.clear();
        }
        let class = class(&file);
        let code = Code {
            header,
            file: file.into(),
            function: function.into(),
            class,
            first_line,
            table,
            lines: HashMap::default(),
        };
        self.codes.insert(address, code);
        Some(())
    }

    /// Returns `None` unless `object` is of the type called `name`.
    fn expect(&mut self, memory: &mut Memory<'_, '_>, object: u64, name: &'static str) -> Option<()> {
        let kind = memory.pointer(object.checked_add(TYPE)?)?;
        if self.types.get(name) == Some(&kind) {
            return Some(());
        }
        let at = memory.pointer(kind.checked_add(TYPE_NAME)?)?;
        let end = at.checked_add(name.len() as u64)?;
        if !memory.holds(at, name.as_bytes()) || memory.byte(end)? != 0 {
            return None;
        }
        self.types.insert(name, kind);
        Some(())
    }
}

/// Reads a string object. Bytes of file names that are not UTF-8 become `\xNN`.
fn text(memory: &mut Memory<'_, '_>, at: u64, layout: Layout) -> Option<String> {
    let length = memory.word(at.wrapping_add(LENGTH))?.min(MAX_NAME as u64);
    let state = memory.half(at.wrapping_add(STATE))?;
    // The bits are: interned (2), kind (3), compact, ascii.
    let (kind, compact, ascii) = (u64::from(state >> 2 & 7), state >> 5 & 1, state >> 6 & 1);
    if compact == 0 || !matches!(kind, 1 | 2 | 4) {
        return None;
    }
    let start = at.wrapping_add(if ascii == 1 { layout.ascii } else { layout.compact });
    let bytes = memory.bytes(start, length * kind, 4 * MAX_NAME as u64)?;
    let unit = |c: &[u8]| c.iter().rev().fold(0u32, |value, byte| value << 8 | u32::from(*byte));
    let mut text = String::new();
    for unit in bytes.chunks_exact(kind as usize).map(unit) {
        match char::from_u32(unit) {
            Some(c) => text.push(c),
            None => text.push_str(&format!("\\x{:02x}", unit & 0xff)),
        }
    }
    Some(text)
}

/// Returns `Runtime` for a file of the standard library, otherwise `User`.
fn class(file: &str) -> FrameClass {
    let library = file.rsplit_once("/lib/python3").map(|(_, rest)| rest);
    let standard = library.is_some_and(|rest| !rest.contains("/site-packages/") && !rest.contains("/dist-packages/"));
    if standard || file.starts_with("<frozen ") { FrameClass::Runtime } else { FrameClass::User }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_is_asyncios_own() {
        let line = |function: &str, file: &str| ScriptLine {
            language: Language::Python,
            function: function.into(),
            file: Some(file.into()),
            line: Some(1898),
        };
        assert!(is_loop(&line("_run_once", "/usr/lib/python3.11/asyncio/base_events.py")));
        assert!(!is_loop(&line("_run_once", "/srv/app/base_events.py")));
        assert!(!is_loop(&line("run_forever", "/usr/lib/python3.11/asyncio/base_events.py")));
    }

    #[test]
    fn versions_are_told_by_names() {
        assert_eq!(version_in("python3.9"), Some(0x0309_0000));
        assert_eq!(version_in("libpython3.10.so.1.0"), Some(0x030a_0000));
        assert_eq!(version_in("python3"), None);
        assert_eq!(version_in("libruby-3.1.so.3.1"), None);
    }
}
