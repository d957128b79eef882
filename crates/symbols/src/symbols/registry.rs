//! [`Symbols`]: the files of a run, and the facts found about their addresses.

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

/// Frames at the root of a stack among which the C library's call of `main` is searched: glibc has three there.
const START_FRAMES: usize = 4;

/// All files mapped in a run, kept open or in memory, so that names survive the process, and the deletion or
/// replacement of the file. A run has one.
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

/// State of reading the lines of scripts.
#[derive(Debug, Default)]
pub(crate) struct ScriptNames {
    pub(crate) lines: ScriptLines,
    /// Buffer for the pages that the next walk of a script's stack reads.
    pub(crate) room: Room,
    /// Runtimes whose scripts' lines have been read.
    pub(crate) runtimes: HashSet<ModuleKey>,
    /// True if functions that were compiled at run time have been named.
    pub(crate) any_compiled: bool,
}

impl Symbols {
    /// Returns a registry without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a registry without files that finds new ones in `preloaded`.
    pub fn expecting(preloaded: Preloaded) -> Self {
        Self { modules: Modules::expecting(preloaded), ..Self::default() }
    }

    /// Makes threads, started by `spawn`, look up lines while the program runs, unless an earlier run has kept them.
    pub fn look_up_ahead(&mut self, spawn: Spawn) {
        self.lines_ahead = LinesAhead::by(spawn);
    }

    pub(crate) fn module(&self, key: ModuleKey) -> Option<&Module> {
        self.modules.get(key)
    }

    pub(crate) fn shared_module(&self, key: ModuleKey) -> Option<&Arc<Module>> {
        self.modules.shared(key)
    }

    pub(crate) fn modules(&self) -> impl Iterator<Item = (ModuleKey, &Module)> {
        self.modules.iter()
    }

    /// Returns a file's path as the target sees it; `[vdso]` for the vDSO.
    pub fn path(&self, key: ModuleKey) -> Option<Arc<str>> {
        Some(Arc::clone(&self.module(key)?.path))
    }

    /// Returns all bytes of a file; `None` if it is too large for memory or can no longer be read.
    pub fn bytes(&self, key: ModuleKey) -> Option<Vec<u8>> {
        self.module(key)?.elf.bytes.read_all()
    }

    /// Returns the current state of a file; `None` for memory, and for a file that has changed since it was mapped.
    pub fn state(&self, key: ModuleKey) -> Option<FileState> {
        self.module(key)?.elf.bytes.state()
    }

    /// Returns the file's build-id in lower-case hexadecimal digits, if it has one.
    pub fn build_id(&self, key: ModuleKey) -> Option<&str> {
        self.module(key)?.elf.build_id.as_deref()
    }

    /// Returns true if a file is a program that asks for a loader. Libraries that can be run (the C library) ask for
    /// one too, but have a soname.
    pub fn is_dynamic_program(&self, key: ModuleKey) -> bool {
        self.module(key).is_some_and(|module| module.elf.has_interpreter() && module.elf.soname.is_none())
    }

    pub(crate) fn problems(&self) -> &[Problem] {
        self.problems.all()
    }

    pub(crate) fn complain(&mut self, text: String) {
        self.problems.add(text);
    }

    /// Excludes a file that the observer itself maps into programs from loading.
    pub fn ignore(&mut self, file: &std::fs::Metadata) {
        self.modules.ignore(file);
    }

    /// Returns the file behind a mapping, loading it if it is new; `None` for memory without a file, and for unreadable
    /// files.
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

    /// Returns the facts about `addr` for unwinding; if `is_return`, `addr` is the byte before the return address.
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

    /// Returns true if `frame` is at the system call by which a signal handler returns. Unwinding has mostly found that
    /// out already.
    pub(crate) fn returns_from_signal(&mut self, frame: RawFrame) -> bool {
        let Some(module) = frame.module else { return false };
        let facts = self.facts_at(module, frame.lookup(), frame.is_return);
        if facts.address == frame.address {
            return matches!(facts.step, Step::SignalFrame);
        }
        // The facts are about the system call before this address, not about the address itself.
        self.module(module).is_some_and(|m| kernel::is_signal_return(&m.elf, frame.address, frame.is_return))
    }

    fn find_out(&mut self, key: FactsKey) -> FrameFacts {
        let FactsKey { module, addr, is_return } = key;
        let mut facts = FrameFacts { key, address: addr, lookup: addr, class: FrameClass::Unknown, step: Step::Guess };
        let Some(file) = self.modules.get(module) else { return facts };
        // A return address can be at a function's very start, which no call precedes: coroutines end with one.
        let mut uncalled = false;
        if is_return {
            facts.address = addr.wrapping_add(1);
            let starts = file.cfi().function(facts.address).is_some_and(|r| r.start == facts.address);
            uncalled = starts && calls::call_in_file(&file.elf, facts.address).is_none();
        } else if kernel::is_system_call(&file.elf, addr.wrapping_sub(kernel::CALL)) {
            facts.address = addr.wrapping_sub(kernel::CALL);
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

    /// Returns true if a file is a Go program.
    pub(crate) fn is_go(&self, key: ModuleKey) -> bool {
        self.module(key).is_some_and(Module::tells_go)
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

    /// Returns the class of the code that `frame` runs. The results of this run and of earlier ones are cached.
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
            // The address follows a system call, and the facts are about that.
            None => {
                frame.module.and_then(|key| self.module(key)).map_or(FrameClass::Unknown, |m| m.class(frame.lookup()))
            }
        };
        self.classes.insert(frame, class);
        class
    }

    /// Returns true if the function around `lookup`, which has a frame pointer, keeps its stack pointer at a fixed
    /// distance from it. The result is cached.
    pub(crate) fn is_fixed(&mut self, key: ModuleKey, lookup: u64) -> bool {
        self.fixed.at(key, self.modules.get(key), lookup)
    }

    /// Returns the results that [`Symbols::know_fixed`] takes in a later run: addresses in the file, sorted, each with
    /// true if the function there keeps its stack pointer at a fixed distance from its frame pointer.
    pub fn fixed(&self, key: ModuleKey) -> impl ExactSizeIterator<Item = (u64, bool)> + '_ {
        self.fixed.known(key)
    }

    /// Takes the results of an earlier run that decoded functions of the same file.
    pub fn know_fixed(&mut self, key: ModuleKey, known: impl IntoIterator<Item = (u64, bool)>) {
        self.fixed.learn(key, known);
    }

    /// Returns one number that stands for the separate debug files that a file can have and for their states, when
    /// this was first called; zero if there are none. The names of the file's functions depend on them.
    pub fn debug_file_state(&self, key: ModuleKey) -> u64 {
        self.module(key).map_or(0, Module::debug_file_state)
    }

    /// Takes an earlier run's answers about a file's functions and lines. The file must be the same, with the same
    /// [`Symbols::debug_file_state`]. Its symbols and debug information are then read only for new questions.
    pub fn know_names(&self, key: ModuleKey, answers: Arc<dyn KeptAnswers>) {
        if let Some(module) = self.module(key) {
            module.know_names(answers);
        }
    }

    /// Returns the number of questions about a file's symbols and lines, and the number of those that
    /// [`Symbols::know_names`] answered.
    pub fn name_counts(&self, key: ModuleKey) -> NameCounts {
        self.module(key).map_or_else(NameCounts::default, Module::name_counts)
    }

    /// Returns the names that [`Symbols::know_names`] takes in a later run.
    pub fn asked_names(&self, key: ModuleKey) -> NameAnswers {
        self.module(key).map_or_else(NameAnswers::default, Module::asked_names)
    }

    /// Returns the lines that [`Symbols::know_names`] takes in a later run.
    pub fn asked_lines(&self, key: ModuleKey) -> LineAnswers {
        self.module(key).map_or_else(LineAnswers::default, Module::asked_lines)
    }

    /// Returns the results of unwinding that [`Symbols::know_names`] takes in a later run.
    pub fn asked_frames(&self, key: ModuleKey) -> FrameAnswers {
        self.module(key).map_or_else(FrameAnswers::default, Module::asked_frames)
    }

    /// Returns true if the executable's `main` is one of the frames, or was until it left by a tail call. `main` is
    /// found by decoding start-up code, so stripped programs have it too.
    pub fn reaches_main(&mut self, stack: &[RawFrame]) -> bool {
        // The outermost frames come first, since `main` is there. A call by the C library needs a callee on the
        // stack.
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
