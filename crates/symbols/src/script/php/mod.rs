//! PHP: reads the source lines of the functions being executed, starting from the engine's executor.

pub(crate) mod layout;

use self::layout as at;
use self::layout::Layout;
use super::interpreter::{Candidate, Interpreter, Look, Runtime};
use super::memory::{Memory, readable};
use super::thread::Evaluation;
use crate::RawFrame;
use crate::lines::{MAX_NAME, ScriptLine, ScriptLines};
use systoll_model::{FrameClass, Language};

/// Nested functions returned, at most.
const MAX_FRAMES: usize = 512;
/// Name of a script's top level, as in PHP's own stack traces.
const MAIN: &str = "{main}";

/// A file that holds PHP, with the ELF virtual addresses of its exported symbols.
#[derive(Clone, Copy, Debug)]
struct PhpFile {
    /// Address of `executor_globals`, which builds with threads do not have.
    executor: Option<u64>,
    /// Address of `module_registry`.
    modules: u64,
    /// Address of `execute_ex`.
    evaluate: Option<u64>,
}

/// Returns the PHP in a file, if it holds one.
pub(crate) fn recognise(file: Candidate<'_>) -> Option<Box<dyn Runtime>> {
    let [modules, executor, evaluate, version] =
        file.exported(["module_registry", "executor_globals", "execute_ex", "get_zend_version"]);
    version?;
    Some(Box::new(PhpFile { executor, modules: modules?, evaluate }))
}

/// Returns true if `path` is an extension of PHP.
pub(crate) fn is_bundled(path: &str) -> bool {
    path.contains("/php/") && path.ends_with(".so")
}

impl Runtime for PhpFile {
    fn attach(&self, memory: &mut Memory<'_, '_>, bias: u64) -> Result<Option<Box<dyn Interpreter>>, String> {
        let Some(executor) = self.executor else {
            return Err("of PHP built with threads (ZTS) it is not known where frames are kept".to_owned());
        };
        let Some(interface) = interface(memory, self.modules.wrapping_add(bias)) else { return Ok(None) };
        let layout = Layout::of(interface).ok_or_else(|| {
            let known = Layout::known();
            format!("of PHP with interface {interface} it is not known where frames are kept, of {known} it is")
        })?;
        Ok(Some(Box::new(Php::new(layout, executor.wrapping_add(bias)))))
    }

    fn evaluate(&self) -> Option<u64> {
        self.evaluate
    }

    fn is_brief(&self) -> bool {
        true
    }
}

/// Returns the number of the engine's interface, from the first module; `None` until a module is registered.
fn interface(memory: &mut Memory<'_, '_>, modules: u64) -> Option<u32> {
    let values = memory.pointer(modules.wrapping_add(at::VALUES))?;
    let engine = memory.pointer(values)?;
    memory.half(engine.wrapping_add(at::INTERFACE)).filter(|number| *number != 0)
}

/// A PHP in an address space.
#[derive(Debug)]
pub(crate) struct Php {
    layout: Layout,
    executor: u64,
}

impl Interpreter for Php {
    fn evaluations(&mut self, look: &mut Look<'_, '_, '_>) -> Option<Vec<Evaluation>> {
        let Look { lines, memory, .. } = look;
        let mut call = memory.word(self.executor.wrapping_add(self.layout.current))?;
        let mut evaluations = Vec::new();
        let mut frames = Vec::new();
        for _ in 0..MAX_FRAMES {
            if call == 0 {
                break;
            }
            frames.extend(self.frame(lines, memory, call)?);
            if memory.half(call.wrapping_add(at::INFO))? & at::TOP != 0 {
                evaluations.push(Evaluation { frames: std::mem::take(&mut frames), at: None });
            }
            call = memory.word(call.wrapping_add(at::CALLER))?;
        }
        if !frames.is_empty() {
            evaluations.push(Evaluation { frames, at: None });
        }
        Some(evaluations)
    }
}

impl Php {
    pub(crate) fn new(layout: Layout, executor: u64) -> Self {
        Self { layout, executor }
    }

    /// Returns the function of a call with the call's current line; `Some(None)` if the call has no function.
    fn frame(&self, lines: &mut ScriptLines, memory: &mut Memory<'_, '_>, call: u64) -> Option<Option<RawFrame>> {
        let Some(function) = memory.pointer(call.wrapping_add(at::FUNCTION)) else { return Some(None) };
        let kind = memory.byte(function)?;
        let name = name(memory, function)?;
        let (file, line, class) = match kind {
            at::INTERNAL => (None, None, FrameClass::Runtime),
            at::USER | at::EVALUATED => {
                let (file, line) = self.place(memory, call, function)?;
                (Some(file.into()), Some(line), FrameClass::User)
            }
            _ => return Some(None),
        };
        let function = name.unwrap_or_else(|| MAIN.to_owned()).into();
        let line = ScriptLine { language: Language::Php, function, file, line };
        Some(Some(lines.frame(line, class)?))
    }

    /// Returns the file of a function and the line that a call of it is at; `None` if that line is not the
    /// function's.
    fn place(&self, memory: &mut Memory<'_, '_>, call: u64, function: u64) -> Option<(String, u32)> {
        let at = function.wrapping_add(self.layout.file);
        let file = memory.pointer(at)?;
        let file = string(memory, file)?;
        let first = memory.half(at.wrapping_add(at::FIRST_LINE))?;
        let last = memory.half(at.wrapping_add(at::LAST_LINE))?;
        let instruction = memory.pointer(call.wrapping_add(at::INSTRUCTION))?;
        let line = memory.half(instruction.wrapping_add(at::LINE))?;
        (first..=last).contains(&line).then_some((file, line))
    }
}

/// Returns a function's name as PHP's own stack traces have it: `Class::method`; `Some(None)` for the code of a file.
fn name(memory: &mut Memory<'_, '_>, function: u64) -> Option<Option<String>> {
    let Some(name) = memory.pointer(function.wrapping_add(at::NAME)) else { return Some(None) };
    let name = without_folders(string(memory, name)?);
    let Some(class) = memory.pointer(function.wrapping_add(at::SCOPE)) else { return Some(Some(name)) };
    let class = memory.pointer(class.wrapping_add(at::CLASS_NAME))?;
    Some(Some(format!("{}::{name}", string(memory, class)?)))
}

/// Returns a function's name without the folders of its file: from 8.4 on a closure that no function is around is called
/// `{closure:/path/to/file.php:3}`.
fn without_folders(name: String) -> String {
    const CLOSURE: &str = "{closure:/";
    let file = name.strip_prefix(CLOSURE).and_then(|path| path.rsplit('/').next());
    file.map(|file| format!("{{closure:{file}")).unwrap_or(name)
}

fn string(memory: &mut Memory<'_, '_>, string: u64) -> Option<String> {
    (memory.half(string.wrapping_add(at::STRING_TYPE))? & 0xf == at::IS_STRING).then_some(())?;
    let length = memory.word(string.wrapping_add(at::LENGTH))?.min(MAX_NAME as u64);
    Some(readable(&memory.bytes(string.wrapping_add(at::TEXT), length, MAX_NAME as u64)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closures_are_named_without_folders() {
        let told = |name: &str| without_folders(name.to_owned());
        assert_eq!(told("{closure:/srv/shop/cart.php:3}"), "{closure:cart.php:3}");
        assert_eq!(told("{closure:Shop\\Cart::total():12}"), "{closure:Shop\\Cart::total():12}");
        assert_eq!((told("{closure}"), told("{closure:/")), ("{closure}".to_owned(), "{closure:".to_owned()));
    }
}
