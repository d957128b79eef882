//! Perl: reads the source lines of a thread's subroutines, starting from the context stacks of an interpreter.
//!
//! A build with threads keeps each interpreter apart: a thread's own is found by the key of thread-specific data
//! under which Perl stores it, the first thread's by `PL_curinterp`. Either is believed only if its innermost jump
//! buffer, which ends evaluations early, lies on the native stack of the thread.

pub(crate) mod layout;
mod names;
mod statement;

use self::layout as at;
use self::layout::{KNOWN, Layout};
use self::statement::{Sought, closest};
use super::interpreter::{Candidate, Interpreter, Look, Runtime, around};
use super::memory::{Memory, readable};
use super::thread::{Evaluation, Thread};
use crate::RawFrame;
use crate::lines::{MAX_NAME, ScriptLine, ScriptLines};
use std::ops::Range;
use systoll_model::{FrameClass, Language};

/// Stacks of contexts looked through, at most.
const MAX_STACKS: usize = 64;
/// Contexts looked through in all stacks, at most.
const MAX_CONTEXTS: u32 = 4096;
/// Nested subroutines returned, at most.
const MAX_FRAMES: usize = 512;
/// Bound of a line number; a larger one is not believed.
const MAX_LINE: u32 = 1 << 26;
/// Offsets in an interpreter at which it may keep its innermost jump buffer.
const TOP_BUFFER: Range<u64> = 0x200..0x400;
/// Nested jump buffers followed, at most.
const MAX_BUFFERS: usize = 256;

/// A file that holds Perl, with the ELF virtual addresses of its exported symbols.
#[derive(Clone, Copy, Debug)]
struct PerlFile {
    /// Revision, version and subversion: 5, 36, 0.
    version: [u8; 3],
    /// Address of `PL_curinterp`.
    first: Option<u64>,
    /// Address of `PL_thr_key`, which only builds with threads have.
    key: Option<u64>,
    /// Address of `PL_op_name`, the names of operations by type.
    operations: Option<u64>,
}

/// Returns the Perl in a file, if it holds one.
pub(crate) fn recognise(file: Candidate<'_>) -> Option<Box<dyn Runtime>> {
    let [revision, version, subversion] = file.exported(["PL_revision", "PL_version", "PL_subversion"]);
    let byte = |at: Option<u64>| file.elf.read_vaddr(at?, 1)?.first().copied();
    let version = [byte(revision)?, byte(version)?, byte(subversion)?];
    let [first, key] = file.exported(["PL_curinterp", "PL_thr_key"]);
    let [operations] = file.exported(["PL_op_name"]);
    Some(Box::new(PerlFile { version, first, key, operations }))
}

/// Returns true if `path` is an extension module that comes with Perl.
pub(crate) fn is_bundled(path: &str) -> bool {
    path.contains("/perl") && path.contains("/auto/")
}

impl Runtime for PerlFile {
    fn attach(&self, _: &mut Memory<'_, '_>, bias: u64) -> Result<Option<Box<dyn Interpreter>>, String> {
        let [revision, version, subversion] = self.version;
        let told = format!("Perl {revision}.{version}.{subversion}");
        let layout = Layout::of(version).filter(|_| revision == 5).ok_or_else(|| {
            format!(
                "of {told} it is not known where frames are kept, of 5.{} to 5.{} it is",
                KNOWN.start(),
                KNOWN.end()
            )
        })?;
        let (Some(first), Some(key)) = (self.first, self.key) else {
            return Err(format!("of {told} built without threads it is not known where frames are kept"));
        };
        Ok(Some(Box::new(Perl {
            operations: self.operations.map(|at| at.wrapping_add(bias)),
            ..Perl::new(layout, first.wrapping_add(bias), key.wrapping_add(bias))
        })))
    }

    fn evaluate(&self) -> Option<u64> {
        None
    }

    fn is_brief(&self) -> bool {
        true
    }
}

/// A Perl in an address space.
#[derive(Debug)]
pub(crate) struct Perl {
    layout: Layout,
    first: u64,
    key: u64,
    operations: Option<u64>,
    /// Offset in an interpreter of its innermost jump buffer, once it is found.
    buffer: Option<u64>,
}

impl Interpreter for Perl {
    fn evaluations(&mut self, look: &mut Look<'_, '_, '_>) -> Option<Vec<Evaluation>> {
        let stack = look.stack()?;
        let Look { lines, memory, .. } = look;
        let interpreter = self.interpreter(memory, look.thread, &stack)?;
        let frames = self.frames(lines, memory, interpreter)?;
        Some(vec![Evaluation { frames, at: None }])
    }
}

impl Perl {
    pub(crate) fn new(layout: Layout, first: u64, key: u64) -> Self {
        Self { layout, first, key, operations: None, buffer: None }
    }

    /// Returns the interpreter that runs in the thread with the native stack `stack`.
    fn interpreter(&mut self, memory: &mut Memory<'_, '_>, thread: Thread, stack: &Range<u64>) -> Option<u64> {
        let key = memory.half(self.key)?;
        let own = thread.specific(memory, stack.end, key);
        if let Some(own) = own.filter(|own| self.runs_on(memory, *own, stack)) {
            return Some(own);
        }
        let first = memory.pointer(self.first)?;
        self.runs_on(memory, first, stack).then_some(first)
    }

    /// Returns true if the interpreter's innermost jump buffer lies on the native stack `stack`.
    fn runs_on(&mut self, memory: &mut Memory<'_, '_>, interpreter: u64, stack: &Range<u64>) -> bool {
        let on_stack = |memory: &mut Memory<'_, '_>, offset: u64| {
            let buffer = memory.word(interpreter.wrapping_add(offset));
            buffer.is_some_and(|at| around(stack).contains(&at))
        };
        if let Some(offset) = self.buffer {
            return on_stack(memory, offset);
        }
        let is_it = |offset: &u64| on_stack(memory, *offset) && is_top_buffer(memory, interpreter, *offset);
        self.buffer = TOP_BUFFER.step_by(8).find(is_it);
        self.buffer.is_some()
    }

    /// Returns the subroutines that an interpreter is in, innermost first, each with its current line.
    fn frames(&self, lines: &mut ScriptLines, memory: &mut Memory<'_, '_>, interpreter: u64) -> Option<Vec<RawFrame>> {
        let layout = self.layout;
        let mut statement = memory.pointer(interpreter.wrapping_add(layout.current_op))?;
        let operation = memory.word(interpreter.wrapping_add(at::OPERATION))?;
        statement = closest(memory, statement, Sought::At(operation));
        let mut stack = memory.pointer(interpreter.wrapping_add(layout.stack))?;
        let mut frames: Vec<RawFrame> = Vec::new();
        if let Some(name) = self.operation(memory, operation) {
            let line = ScriptLine { language: Language::Perl, function: name.into(), file: None, line: None };
            frames.extend(lines.frame(line, FrameClass::Runtime));
        }
        let mut room = MAX_CONTEXTS;
        for _ in 0..MAX_STACKS {
            let contexts = memory.word(stack.wrapping_add(at::CONTEXTS))?;
            let last = memory.half(stack.wrapping_add(at::LAST))? as i32;
            for index in (0..=last).rev() {
                room -= 1;
                if room == 0 {
                    return Some(frames);
                }
                let context = contexts.wrapping_add(index as u64 * layout.context_size);
                let Some(function) = self.function(memory, context)? else { continue };
                frames.extend(frame(lines, memory, function, statement)?);
                let begun = memory.pointer(context.wrapping_add(at::CALLER))?;
                // The operation to which the subroutine returns is null if a function in C has called it.
                let next = memory.word(context.wrapping_add(at::RETURN))?;
                statement = if next == 0 { begun } else { closest(memory, begun, Sought::Before(next)) };
                if frames.len() >= MAX_FRAMES {
                    return Some(frames);
                }
            }
            if memory.half(stack.wrapping_add(layout.stack_type))? == at::MAIN_STACK {
                break;
            }
            stack = memory.pointer(stack.wrapping_add(at::AROUND))?;
        }
        frames.extend(frame(lines, memory, "main".to_owned(), statement)?);
        Some(frames)
    }

    /// Returns the name of an operation that is one of Perl's own functions: `print`, `ftfile`.
    fn operation(&self, memory: &mut Memory<'_, '_>, operation: u64) -> Option<String> {
        /// Bytes read of a name, at most; every name of an operation is shorter.
        const MOST: usize = 32;
        let kind = statement::kind(memory, operation)?;
        let name = memory.pointer(self.operations?.wrapping_add(u64::from(kind) * 8))?;
        let name = String::from_utf8(memory.text(name, MOST)?).ok()?;
        // A called subroutine's name comes from its context.
        let calls = ["entersub", "null", "nextstate", "dbstate", "enteriter", "custom"];
        (kind != 0 && !calls.contains(&name.as_str())).then_some(name)
    }

    /// Returns the name of the code in a context; `Some(None)` for a block of the code around it.
    fn function(&self, memory: &mut Memory<'_, '_>, context: u64) -> Option<Option<String>> {
        let kind = memory.byte(context)?;
        match kind & at::TYPE {
            at::SUB | at::FORMAT if kind & at::FAKE == 0 => {
                let code = memory.pointer(context.wrapping_add(self.layout.sub))?;
                Some(Some(names::of_sub(memory, self.layout, code)?))
            }
            at::EVAL if kind & at::BLOCK == 0 => Some(Some("(eval)".to_owned())),
            _ => Some(None),
        }
    }
}

/// Returns true if the chain of jump buffers from `offset` on ends with the buffer that lies in the interpreter
/// itself, right behind the pointer (`Itop_env`, `Istart_env`).
fn is_top_buffer(memory: &mut Memory<'_, '_>, interpreter: u64, offset: u64) -> bool {
    let last = interpreter.wrapping_add(offset + 8);
    let mut buffer = interpreter.wrapping_add(offset);
    for step in 0..MAX_BUFFERS {
        match memory.pointer(buffer) {
            Some(next) if next == last => return step > 0,
            Some(next) => buffer = next,
            None => return false,
        }
    }
    false
}

/// Returns the line of a statement; `Some(None)` if it has none.
fn frame(
    lines: &mut ScriptLines,
    memory: &mut Memory<'_, '_>,
    function: String,
    statement: u64,
) -> Option<Option<RawFrame>> {
    let line = memory.half(statement.wrapping_add(at::LINE))?;
    let file = memory.word(statement.wrapping_add(at::FILE))?;
    if line == 0 || line > MAX_LINE || file == 0 {
        return Some(None);
    }
    let mut file = readable(&memory.text(file, MAX_NAME)?);
    // Perl numbers the texts that it evaluates, the same one anew each time.
    if file.strip_prefix("(eval ").and_then(|number| number.strip_suffix(')')).is_some_and(|n| n.parse::<u64>().is_ok())
    {
        file = "(eval)".to_owned();
    }
    let class = class(&file);
    let line =
        ScriptLine { language: Language::Perl, function: function.into(), file: Some(file.into()), line: Some(line) };
    Some(Some(lines.frame(line, class)?))
}

/// Returns `Runtime` for a file of Perl's own library (`…/perl/5.36.0/…`, `…/perl-base/…`), otherwise `User`: also
/// for modules installed from CPAN.
fn class(file: &str) -> FrameClass {
    let versioned = ["/perl/5.", "/perl5/5.", "/lib/5."].iter().any(|folder| file.contains(folder));
    let installed = ["/site_perl/", "/vendor_perl/", "/local/"].iter().any(|folder| file.contains(folder));
    if file.contains("/perl-base/") || versioned && !installed { FrameClass::Runtime } else { FrameClass::User }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_with_perl_is_told_by_its_path() {
        for ours in ["/usr/share/perl/5.36/Carp.pm", "/usr/lib/x86_64-linux-gnu/perl-base/POSIX.pm"] {
            assert_eq!(class(ours), FrameClass::Runtime, "{ours}");
        }
        for theirs in ["app.pl", "/usr/share/perl5/Image/ExifTool.pm", "/usr/local/share/perl/5.36.0/X.pm", "-e"] {
            assert_eq!(class(theirs), FrameClass::User, "{theirs}");
        }
    }
}
