//! Stores the stacks that a trace tells, as a recording has them.

use crate::hash::Map;
use std::sync::Arc;
use systoll_model::{Frame, FrameClass, FrameId, Location, Module, ModuleId, Stack, StackId};

/// Largest number of different frames kept; stacks end before further ones.
const MAX_FRAMES: usize = 100_000;
/// Largest number of different stacks kept; further calls have none.
const MAX_STACKS: usize = 60_000;
/// Largest number of frames of one stack.
const MAX_DEPTH: usize = 128;
/// Largest length of a function's or a file's name, bytes.
const MAX_NAME: usize = 512;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SourceLine {
    pub(crate) file: String,
    pub(crate) line: u32,
}

/// A frame as a trace tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TracedFrame {
    /// The file that holds the frame's code.
    pub(crate) module: String,
    /// The frame's function, if it has a name.
    pub(crate) function: Option<String>,
    /// The frame's address within the file.
    pub(crate) address: u64,
    /// The frame's line in the source (`strace -kk`).
    pub(crate) source: Option<SourceLine>,
}

/// The stack of a call, in parts.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// The frames up to the user's.
    pub(crate) context: StackId,
    /// All frames of the stack.
    pub(crate) whole: StackId,
    /// The frames above the context.
    pub(crate) outer: StackId,
    /// The user's frame.
    pub(crate) user: Option<FrameId>,
    /// The function that the user's frame called.
    pub(crate) api: Option<Arc<str>>,
    pub(crate) api_module: Option<ModuleId>,
}

impl Context {
    /// The context of a call whose stack is not known.
    pub(crate) const NONE: Self =
        Self { context: StackId(0), whole: StackId(0), outer: StackId(0), user: None, api: None, api_module: None };
}

/// The modules, frames and stacks of a trace, each once. The first stack is empty.
pub(crate) struct Frames {
    pub(crate) modules: Vec<Module>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) stacks: Vec<Stack>,
    module_index: Map<String, ModuleId>,
    frame_index: Map<TracedFrame, FrameId>,
    stack_index: Map<Vec<FrameId>, StackId>,
    /// True if frames or stacks were left out.
    pub(crate) bounded: bool,
}

impl Frames {
    /// Returns a store with the empty stack only.
    pub(crate) fn new() -> Self {
        Self {
            modules: Vec::new(),
            frames: Vec::new(),
            stacks: vec![Stack::default()],
            module_index: Map::default(),
            frame_index: Map::default(),
            stack_index: Map::default(),
            bounded: false,
        }
    }

    /// Returns the parts of a stack, which has its innermost frame first.
    pub(crate) fn context(&mut self, told: &[TracedFrame]) -> Context {
        let ids: Vec<FrameId> = told.iter().take(MAX_DEPTH).map_while(|frame| self.frame(frame)).collect();
        if ids.is_empty() || self.stacks.len() + 3 > MAX_STACKS {
            self.bounded |= !ids.is_empty();
            return Context::NONE;
        }
        let class = |id: &FrameId| self.frames.get(id.0 as usize).map_or(FrameClass::Unknown, |f| f.class);
        let user = ids.iter().position(|id| class(id) == FrameClass::User);
        let to = user.map_or(ids.len(), |at| at + 1);
        let below = user.and_then(|at| at.checked_sub(1)).and_then(|at| ids.get(at)).copied();
        let below = below.and_then(|id| self.frames.get(id.0 as usize)).filter(|f| f.class == FrameClass::Libc);
        let api = below.and_then(|frame| public(frame.function()));
        let api_module = below.and_then(|frame| frame.module).filter(|_| api.is_some());
        let (context, outer) = ids.split_at(to.min(ids.len()));
        let (context, outer) = (self.stack(context), self.stack(outer));
        Context {
            context,
            outer,
            whole: self.stack(&ids),
            user: user.and_then(|at| ids.get(at)).copied(),
            api,
            api_module,
        }
    }

    fn stack(&mut self, ids: &[FrameId]) -> StackId {
        if ids.is_empty() {
            return StackId(0);
        }
        if let Some(id) = self.stack_index.get(ids) {
            return *id;
        }
        let id = StackId(self.stacks.len() as u32);
        self.stacks.push(Stack { frames: ids.to_vec(), complete: false });
        self.stack_index.insert(ids.to_vec(), id);
        id
    }

    fn frame(&mut self, told: &TracedFrame) -> Option<FrameId> {
        if let Some(id) = self.frame_index.get(told) {
            return Some(*id);
        }
        if self.frames.len() >= MAX_FRAMES {
            self.bounded = true;
            return None;
        }
        let module = (!told.module.is_empty()).then(|| self.module(&told.module));
        let file = told.module.rsplit('/').next().unwrap_or_default();
        let function = match &told.function {
            Some(name) => cut(name),
            None => Arc::from(format!("{}+{:#x}", cut(file), told.address)),
        };
        let source = told.source.as_ref();
        let location = Location { function, file: source.map(|s| cut(&s.file)), line: source.map(|s| s.line) };
        let id = FrameId(self.frames.len() as u32);
        self.frames.push(Frame {
            module,
            address: told.address,
            class: class(file),
            locations: vec![location],
            callee: None,
            language: None,
        });
        self.frame_index.insert(told.clone(), id);
        Some(id)
    }

    fn module(&mut self, path: &str) -> ModuleId {
        if let Some(id) = self.module_index.get(path) {
            return *id;
        }
        let id = ModuleId(self.modules.len() as u32);
        self.modules.push(Module { path: cut(path), build_id: None });
        self.module_index.insert(path.to_owned(), id);
        id
    }
}

fn cut(name: &str) -> Arc<str> {
    let mut end = name.len().min(MAX_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    Arc::from(name.get(..end).unwrap_or_default())
}

/// Returns the function's name if programs call it; `None` for names that libraries use among
/// themselves.
fn public(function: &str) -> Option<Arc<str>> {
    let name = function.split(['@', '(']).next().unwrap_or_default();
    (!name.is_empty() && !name.starts_with('_') && !name.contains('+')).then(|| Arc::from(name))
}

/// Returns the class of the code in a file, by the file's name.
fn class(file: &str) -> FrameClass {
    let starts = |names: &[&str]| names.iter().any(|name| file.starts_with(name));
    if starts(&["ld-linux", "ld-musl", "ld-2.", "ld.so"]) {
        FrameClass::Loader
    } else if starts(&["libc.so", "libc-2.", "libc.musl", "libpthread", "libm.so", "librt.", "libdl."]) {
        FrameClass::Libc
    } else if starts(&["libstdc++", "libc++", "libgcc_s"]) {
        FrameClass::Runtime
    } else if starts(&["[vdso]", "linux-vdso"]) {
        FrameClass::Vdso
    } else if file.is_empty() || file.starts_with('[') {
        FrameClass::Unknown
    } else {
        FrameClass::User
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(module: &str, function: &str) -> TracedFrame {
        TracedFrame { module: module.into(), function: Some(function.into()), address: 1, source: None }
    }

    #[test]
    fn the_user_is_the_first_outside_libraries() {
        let mut frames = Frames::new();
        let stack = [
            told("/lib/libc.so.6", "__xstat64"),
            told("/lib/libc.so.6", "localtime"),
            told("/bin/app", "log_line"),
            told("/bin/app", "main"),
        ];
        let found = frames.context(&stack);
        assert_eq!(found.api.as_deref(), Some("localtime"));
        assert_eq!(
            found.user.map(|id| frames.frames[id.0 as usize].function().to_owned()).as_deref(),
            Some("log_line")
        );
        let length = |id: StackId| frames.stacks[id.0 as usize].frames.len();
        assert_eq!([found.context, found.outer, found.whole].map(length), [3, 1, 4]);
        let again = frames.context(&stack);
        assert_eq!((again.whole, frames.frames.len(), frames.modules.len()), (found.whole, 4, 2));
    }

    #[test]
    fn names_that_libraries_keep_are_no_api() {
        assert_eq!(public("__tz_convert"), None);
        assert_eq!(public("read@@GLIBC_2.2.5").as_deref(), Some("read"));
    }
}
