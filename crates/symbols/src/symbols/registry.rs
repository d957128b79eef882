//! [`Symbols`]: what is known of a run's files, and of the addresses asked for.

use super::facts::{FactsCache, FactsKey, FrameFacts};
use super::fixed::FixedFrames;
use super::modules::Modules;
use super::problems::Problems;
use crate::code::{calls, kernel};
use crate::lines::{LinesAhead, ScriptLines, Spawn};
use crate::mapped::{FileState, MapsEntry};
use crate::module::{FrameAnswers, KeptAnswers, LineAnswers, Module, NameAnswers, NameCounts, Preloaded};
use crate::script::Room;
use crate::unwind::{REGISTERS, RowContext, Step};
use crate::{ModuleKey, RawFrame};
use foldhash::{HashMap, HashSet};
use std::sync::Arc;
use systoll_model::{FrameClass, Location, Problem};

/// Frames of the C library at the root of a stack, outside `main`: glibc has three.
const START_FRAMES: usize = 4;

/// All files ever seen mapped in a run, kept open or in memory: names survive the process, and
/// the file's deletion or replacement. One per run.
#[derive(Debug, Default)]
pub struct Symbols {
    modules: Modules,
    facts: FactsCache,
    row_context: RowContext,
    classes: HashMap<RawFrame, FrameClass>,
    main_callers: HashMap<RawFrame, bool>,
    fixed: FixedFrames,
    problems: Problems,
    pub(crate) locations: HashMap<(ModuleKey, u64), Arc<[Location]>>,
    pub(crate) lines_ahead: LinesAhead,
    pub(crate) scripts: ScriptNames,
}

/// What has been read of scripts.
#[derive(Debug, Default)]
pub(crate) struct ScriptNames {
    pub(crate) lines: ScriptLines,
    /// What the next look reads pages into.
    pub(crate) room: Room,
    /// Runtimes whose scripts' lines have been read.
    pub(crate) runtimes: HashSet<ModuleKey>,
    /// Whether functions compiled as they run have been named.
    pub(crate) any_compiled: bool,
}

impl Symbols {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing seen yet, but files that may be mapped are known, or will be.
    pub fn expecting(preloaded: Preloaded) -> Self {
        Self { modules: Modules::expecting(preloaded), ..Self::default() }
    }

    /// Has lines that are not known from earlier runs looked up while the program runs, by threads that `spawn` begins.
    pub fn look_up_ahead(&mut self, spawn: Spawn) {
        self.lines_ahead = LinesAhead::by(spawn);
    }

    pub(crate) fn module(&self, key: ModuleKey) -> Option<&Module> {
        self.modules.get(key)
    }

    #[cfg(test)]
    pub(crate) fn shared_module(&self, key: ModuleKey) -> Option<&Arc<Module>> {
        self.modules.shared(key)
    }

    pub(crate) fn modules(&self) -> impl Iterator<Item = (ModuleKey, &Module)> {
        self.modules.iter()
    }

    /// Path of a file, as the target saw it; `[vdso]` for the vDSO.
    pub fn path(&self, key: ModuleKey) -> Option<Arc<str>> {
        Some(Arc::clone(&self.module(key)?.path))
    }

    /// All bytes of a file, `None` if it is too large to be held or can't be read any more.
    pub fn bytes(&self, key: ModuleKey) -> Option<Vec<u8>> {
        self.module(key)?.elf.bytes.read_all()
    }

    /// State of the file as it is now, `None` for memory and for files that were changed since
    /// they were seen mapped.
    pub fn state(&self, key: ModuleKey) -> Option<FileState> {
        self.module(key)?.elf.bytes.state()
    }

    /// The file's build-id, in lower-case hexadecimal digits, if it has one.
    pub fn build_id(&self, key: ModuleKey) -> Option<&str> {
        self.module(key)?.elf.build_id.as_deref()
    }

    /// Whether a file is a program that asks for a loader. Libraries that can be run (the C library) ask as well, but have
    /// a name for others to ask for.
    pub fn is_dynamic_program(&self, key: ModuleKey) -> bool {
        self.module(key).is_some_and(|module| module.elf.has_interpreter() && module.elf.soname.is_none())
    }

    pub(crate) fn problems(&self) -> &[Problem] {
        self.problems.all()
    }

    pub(crate) fn complain(&mut self, text: String) {
        self.problems.add(text);
    }

    /// Never looks into this file: the observer maps it into programs.
    pub fn ignore(&mut self, file: &std::fs::Metadata) {
        self.modules.ignore(file);
    }

    /// The file behind a mapping, loaded if it is new. `None` for memory without one, and for
    /// files that can't be read.
    pub(crate) fn load(&mut self, pid: i32, entry: &MapsEntry) -> Option<ModuleKey> {
        self.modules.load(pid, entry, &mut self.problems)
    }

    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn push(&mut self, module: Module) -> Option<ModuleKey> {
        self.modules.push(Arc::new(module))
    }

    pub(crate) fn bias(&self, key: ModuleKey, entry: &MapsEntry) -> Option<u64> {
        self.module(key)?.elf.bias(entry.start, entry.offset)
    }

    /// What unwinding has to know of `addr`; the byte before the return address where `is_return`.
    pub(crate) fn facts_at(&mut self, module: ModuleKey, addr: u64, is_return: bool) -> FrameFacts {
        let key = FactsKey { module, addr, is_return };
        if let Some(known) = self.facts.get(key) {
            return known;
        }
        let question = key.question();
        let file = self.modules.get(module);
        let kept = file.and_then(|file| file.kept_frame(question, |bytes| FrameFacts::read(key, bytes)));
        let facts = kept.unwrap_or_else(|| {
            let facts = self.find_out(key);
            if let Some(file) = self.modules.shared(module) {
                file.note_frame(question, &facts.to_bytes());
                self.lines_ahead.want(module, file, facts.lookup);
            }
            facts
        });
        self.facts.keep(facts);
        facts
    }

    /// Whether `frame` is at the system call by which a signal's handler returns. Unwinding has mostly found that out.
    pub(crate) fn returns_from_signal(&mut self, frame: RawFrame) -> bool {
        let Some(module) = frame.module else { return false };
        let facts = self.facts_at(module, frame.lookup(), frame.is_return);
        if facts.address == frame.address {
            return matches!(facts.step, Step::SignalFrame);
        }
        // Behind a system call, whose place the facts are about.
        self.module(module).is_some_and(|m| kernel::is_signal_return(&m.elf, frame.address, frame.is_return))
    }

    fn find_out(&mut self, key: FactsKey) -> FrameFacts {
        let FactsKey { module, addr, is_return } = key;
        let mut facts = FrameFacts { key, address: addr, lookup: addr, class: FrameClass::Unknown, step: Step::Guess };
        let Some(file) = self.modules.get(module) else { return facts };
        // Returned to without having called, at its very start: what a coroutine ends with.
        let mut uncalled = false;
        if is_return {
            facts.address = addr.wrapping_add(1);
            let starts = file.cfi().function(facts.address).is_some_and(|r| r.start == facts.address);
            uncalled = starts && calls::call_in_file(&file.elf, facts.address).is_none();
        } else if kernel::is_system_call(&file.elf, addr.wrapping_sub(2)) {
            facts.address = addr.wrapping_sub(2);
            facts.lookup = facts.address;
        }
        let next = if is_return { facts.address } else { addr };
        facts.step = if kernel::is_signal_return(&file.elf, facts.address, is_return) {
            Step::SignalFrame
        } else if uncalled {
            Step::End
        } else {
            file.step(facts.lookup, next, &mut self.row_context)
        };
        facts.class = file.class(facts.lookup);
        facts
    }

    pub(crate) fn evaluate(
        &self,
        module: ModuleKey,
        addr: u64,
        regs: &mut [u64; REGISTERS],
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<()> {
        self.module(module)?.cfi().evaluate(addr, regs, read)
    }

    /// Whose code `frame` runs. Cached, in this run and from earlier ones; fast.
    pub fn class(&mut self, frame: RawFrame) -> FrameClass {
        if let Some((_, class)) = self.scripts.lines.get(frame) {
            return *class;
        }
        let Some(module) = frame.module.and_then(|key| self.module(key)) else { return FrameClass::Unknown };
        if let Some(class) = module.whole_class() {
            return class;
        }
        if let Some(class) = self.classes.get(&frame) {
            return *class;
        }
        let facts = frame.module.map(|key| self.facts_at(key, frame.lookup(), frame.is_return));
        let class = match facts.filter(|facts| facts.address == frame.address) {
            Some(facts) => facts.class,
            // Behind a system call, whose place the facts are about.
            None => {
                frame.module.and_then(|key| self.module(key)).map_or(FrameClass::Unknown, |m| m.class(frame.lookup()))
            }
        };
        self.classes.insert(frame, class);
        class
    }

    /// Whether the code around `lookup`, which has a frame pointer, keeps its stack pointer at a constant
    /// distance from that. Cached.
    pub(crate) fn is_fixed(&mut self, key: ModuleKey, lookup: u64) -> bool {
        self.fixed.at(key, self.modules.get(key), lookup)
    }

    /// What [`Symbols::know_fixed`] wants to be told in a later run: by addresses in the file, and in their
    /// order, whether the code there keeps its stack pointer at a constant distance from its frame pointer.
    pub fn fixed(&self, key: ModuleKey) -> impl ExactSizeIterator<Item = (u64, bool)> + '_ {
        self.fixed.known(key)
    }

    /// Takes what an earlier run has found out about the same file by decoding its functions.
    pub fn know_fixed(&mut self, key: ModuleKey, known: impl IntoIterator<Item = (u64, bool)>) {
        self.fixed.learn(key, known);
    }

    /// Which separate debug files a file may have, and in which state these are, as one number: zero where there is
    /// none. What its functions are called depends on them too. As they were when this was first asked.
    pub fn debug_file_state(&self, key: ModuleKey) -> u64 {
        self.module(key).map_or(0, Module::debug_file_state)
    }

    /// Takes what an earlier run was answered about a file's functions and lines, where the file is the same and
    /// [`Symbols::debug_file_state`] says the same: its symbols and its debug information are then read only when
    /// something new is asked.
    pub fn know_names(&self, key: ModuleKey, answers: Arc<dyn KeptAnswers>) {
        if let Some(module) = self.module(key) {
            module.know_names(answers);
        }
    }

    /// How much was asked of a file's symbols and lines, and how much of it [`Symbols::know_names`] was told.
    pub fn name_counts(&self, key: ModuleKey) -> NameCounts {
        self.module(key).map_or_else(NameCounts::default, Module::name_counts)
    }

    /// What [`Symbols::know_names`] wants to be told in a later run, but for lines.
    pub fn asked_names(&self, key: ModuleKey) -> NameAnswers {
        self.module(key).map_or_else(NameAnswers::default, Module::asked_names)
    }

    /// The lines that [`Symbols::know_names`] wants to be told in a later run.
    pub fn asked_lines(&self, key: ModuleKey) -> LineAnswers {
        self.module(key).map_or_else(LineAnswers::default, Module::asked_lines)
    }

    /// What unwinding found out, which [`Symbols::know_names`] wants to be told in a later run.
    pub fn asked_frames(&self, key: ModuleKey) -> FrameAnswers {
        self.module(key).map_or_else(FrameAnswers::default, Module::asked_frames)
    }

    /// Whether the executable's `main` is one of the frames, or was until it left by a jump.
    /// It is found by decoding start-up code, so that stripped programs have one too.
    pub fn reaches_main(&mut self, stack: &[RawFrame]) -> bool {
        // Outermost first: that's where main is. A call by the C library needs a callee on the stack.
        stack.iter().skip(1).rev().take(START_FRAMES).any(|frame| self.calls_main(*frame))
            || stack.iter().rev().any(|frame| self.is_main(*frame))
    }

    fn is_main(&self, frame: RawFrame) -> bool {
        let module = frame.module.and_then(|key| self.module(key));
        module.and_then(Module::main).is_some_and(|main| main.contains(&frame.lookup()))
    }

    fn calls_main(&mut self, frame: RawFrame) -> bool {
        if !frame.is_return || self.class(frame) != FrameClass::Libc {
            return false;
        }
        if let Some(known) = self.main_callers.get(&frame) {
            return *known;
        }
        let module = frame.module.and_then(|key| self.module(key));
        let known = module.is_some_and(|m| m.calls_main(frame.address));
        self.main_callers.insert(frame, known);
        known
    }
}
