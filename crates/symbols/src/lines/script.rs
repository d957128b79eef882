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
    /// For lines of sources, by their numbers: the lines that run, which were compiled from them.
    compiled: HashMap<u32, ScriptLine>,
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

    /// Returns the frame that stands for the line of a source, a file and its line, from which `line` was compiled.
    pub(crate) fn compiled(
        &mut self,
        line: ScriptLine,
        (file, number): (Arc<str>, u32),
        class: FrameClass,
    ) -> Option<RawFrame> {
        let source = ScriptLine { file: Some(file), line: Some(number), ..line.clone() };
        let frame = self.frame(source, class)?;
        self.compiled.entry(u32::try_from(frame.address).ok()?).or_insert(line);
        Some(frame)
    }

    /// Returns the line that runs, if the frame stands for the line of a source from which it was compiled.
    pub(crate) fn running(&self, frame: RawFrame) -> Option<&ScriptLine> {
        self.compiled.get(&u32::try_from(frame.address).ok()?).filter(|_| frame.is_script())
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

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::Language;

    #[test]
    fn a_line_of_a_source_keeps_the_line_that_runs() {
        let mut lines = ScriptLines::default();
        let script = ScriptLine {
            language: Language::JavaScript,
            function: "settings".into(),
            file: Some("/srv/out.js".into()),
            line: Some(30),
        };
        let frame = lines.compiled(script.clone(), ("/srv/a.ts".into(), 12), FrameClass::User).unwrap();
        let source = lines.get(frame).map(|(line, _)| (line.file.as_deref(), line.line));
        assert_eq!(source, Some((Some("/srv/a.ts"), Some(12))));
        assert_eq!(lines.running(frame), Some(&script));
        let plain = lines.frame(script, FrameClass::User).unwrap();
        assert_eq!((lines.running(plain), plain == frame), (None, false));
    }
}
