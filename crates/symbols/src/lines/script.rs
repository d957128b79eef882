//! Lines of scripts, interned so that a [`RawFrame`] can stand for one.

use crate::{ModuleKey, RawFrame};
use foldhash::HashMap;
use std::sync::Arc;
use systoll_model::FrameClass;

/// Module that marks frames of scripts.
const SCRIPTS: ModuleKey = ModuleKey(u32::MAX);
/// Distinct lines remembered, at most.
const MAX_LINES: usize = 100_000;
/// Bytes of a name, at most; longer names are cut.
pub(crate) const MAX_NAME: usize = 4096;

/// A line of a script.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ScriptLine {
    pub(crate) language: systoll_model::Language,
    pub(crate) function: Arc<str>,
    /// The file's name as the interpreter has it.
    pub(crate) file: Option<Arc<str>>,
    pub(crate) line: Option<u32>,
}

/// All lines of scripts seen in a run.
#[derive(Debug, Default)]
pub(crate) struct ScriptLines {
    lines: Vec<(ScriptLine, FrameClass)>,
    index: HashMap<ScriptLine, u32>,
}

impl ScriptLines {
    /// Returns the frame that stands for `line`; `None` if there are too many lines.
    pub(crate) fn frame(&mut self, line: ScriptLine, class: FrameClass) -> Option<RawFrame> {
        let id = match self.index.get(&line) {
            Some(id) => *id,
            None if self.lines.len() < MAX_LINES => {
                let id = u32::try_from(self.lines.len()).ok()?;
                self.lines.push((line.clone(), class));
                self.index.insert(line, id);
                id
            }
            None => return None,
        };
        Some(RawFrame { module: Some(SCRIPTS), address: u64::from(id), is_return: false })
    }

    pub(crate) fn get(&self, frame: RawFrame) -> Option<&(ScriptLine, FrameClass)> {
        let id = usize::try_from(frame.address).ok()?;
        if frame.is_script() { self.lines.get(id) } else { None }
    }
}

impl RawFrame {
    /// Returns true if the frame is a line of a script rather than an address.
    pub fn is_script(self) -> bool {
        self.module == Some(SCRIPTS)
    }
}
