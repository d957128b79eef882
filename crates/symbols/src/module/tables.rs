//! A file that was mapped, with its tables and the facts found in them.

use super::answers::{
    FileAnswers, FrameAnswers, FrameQuestion, Functions, HasTables, KeptAnswers, LineAnswers, MOST_LAST_JUMPS,
    NameAnswers, NameCounts, NameQuestion,
};
use super::class::{self, Ownership};
use super::debug_file::{self, DebugFile};
use crate::code::{Callee, GotSlots, calls, extent, start};
use crate::elf::{ElfFile, GoTable};
use crate::names::{Function, Names};
use crate::script::{Runtime, goroutines, recognise};
use crate::unwind::{Cfi, Epilogue, RowContext, Step, find_epilogue, rule_of_go_frame};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use systoll_binfile::pclntab::Frame;
use systoll_model::{FrameClass, Location};

/// A file, whose tables are read when first needed.
#[derive(Debug)]
pub(crate) struct Module {
    /// Path of the file as the target sees it.
    pub(crate) path: Arc<str>,
    pub(crate) elf: ElfFile,
    class: Option<FrameClass>,
    cfi: OnceLock<Cfi>,
    tables: OnceLock<Names>,
    asked: FileAnswers,
    slots: OnceLock<GotSlots>,
    ownership: OnceLock<Ownership>,
    main: OnceLock<Option<Range<u64>>>,
    runtime: OnceLock<Option<Arc<dyn Runtime>>>,
    debug: OnceLock<Option<DebugFile>>,
    debug_state: OnceLock<u64>,
    fetched: OnceLock<Option<DebugFile>>,
    go: OnceLock<Option<GoTable>>,
    is_go: OnceLock<bool>,
    goroutines: OnceLock<Option<goroutines::List>>,
}

impl HasTables for Module {
    /// Returns the symbols of the file, including those of its separate debug file, so that a name does not depend on
    /// the order of questions.
    fn tables(&self) -> &Names {
        self.tables.get_or_init(|| Names::read(&self.elf, self.debug_file().map(|d| &d.elf), self.go()))
    }
}

impl Module {
    pub(crate) fn new(path: &str, elf: ElfFile) -> Self {
        Self {
            path: path.into(),
            class: class::of_file(path, elf.soname.as_deref()),
            elf,
            cfi: OnceLock::new(),
            tables: OnceLock::new(),
            asked: FileAnswers::default(),
            slots: OnceLock::new(),
            ownership: OnceLock::new(),
            main: OnceLock::new(),
            runtime: OnceLock::new(),
            debug: OnceLock::new(),
            debug_state: OnceLock::new(),
            fetched: OnceLock::new(),
            go: OnceLock::new(),
            is_go: OnceLock::new(),
            goroutines: OnceLock::new(),
        }
    }

    pub(crate) fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    pub(crate) fn cfi(&self) -> &Cfi {
        self.cfi.get_or_init(|| Cfi::read(&self.elf))
    }

    /// Returns the functions of the file.
    pub(crate) fn names(&self) -> Functions<'_> {
        Functions { asked: &self.asked, file: self }
    }

    /// Takes an earlier run's answers, see [`crate::Symbols::know_names`].
    pub(crate) fn know_names(&self, answers: Arc<dyn KeptAnswers>) {
        self.asked.know(answers);
    }

    /// Returns the numbers of questions asked, see [`crate::Symbols::name_counts`].
    pub(crate) fn name_counts(&self) -> NameCounts {
        self.asked.counts()
    }

    /// Returns all answers about names, see [`crate::Symbols::asked_names`].
    pub(crate) fn asked_names(&self) -> NameAnswers {
        self.asked.all()
    }

    /// Returns all answers about lines, see [`crate::Symbols::asked_lines`].
    pub(crate) fn asked_lines(&self) -> LineAnswers {
        self.asked.all_lines()
    }

    /// Returns all results of unwinding, see [`crate::Symbols::asked_frames`].
    pub(crate) fn asked_frames(&self) -> FrameAnswers {
        self.asked.all_frames()
    }

    /// Returns the result of `read` for the bytes that an earlier run stored about an address.
    pub(crate) fn kept_frame<T>(&self, question: FrameQuestion, read: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        self.asked.kept_frame(question, read)
    }

    /// Records a result of unwinding for later runs.
    pub(crate) fn note_frame(&self, question: FrameQuestion, found: &[u8]) {
        self.asked.note_frame(question, found);
    }

    /// Returns the lines that an earlier run found at an address. If the user has named servers to ask, an empty list
    /// counts as unknown.
    pub(crate) fn kept_lines(&self, address: u64) -> Option<Arc<[Location]>> {
        self.asked.kept_lines(address).filter(|lines| !lines.is_empty() || !debug_file::servers_are_named())
    }

    /// Records the lines at an address for later runs.
    pub(crate) fn note_lines(&self, address: u64, lines: Arc<[Location]>) {
        self.asked.note_lines(address, lines);
    }

    /// Returns Go's table of functions, if the file is a Go program with one.
    pub(crate) fn go(&self) -> Option<&GoTable> {
        self.go.get_or_init(|| GoTable::read(&self.elf)).as_ref()
    }

    /// Returns true if the file is a Go program with a table of functions, and reads as little of the file as
    /// possible.
    pub(crate) fn tells_go(&self) -> bool {
        match self.go.get() {
            Some(table) => table.is_some(),
            None => *self.is_go.get_or_init(|| GoTable::is_in(&self.elf)),
        }
    }

    /// Returns the variables by which the goroutines of a Go program are found.
    pub(crate) fn goroutines(&self) -> Option<goroutines::List> {
        *self.goroutines.get_or_init(|| goroutines::List::of(&self.elf, &self.path).filter(|_| self.tells_go()))
    }

    /// Returns one number that stands for the debug files, see [`crate::Symbols::debug_file_state`].
    pub(crate) fn debug_file_state(&self) -> u64 {
        *self.debug_state.get_or_init(|| debug_file::state(&self.elf, &self.path))
    }

    pub(crate) fn debug_file(&self) -> Option<&DebugFile> {
        self.debug.get_or_init(|| debug_file::find(&self.elf, &self.path)).as_ref()
    }

    /// Returns the debug file from the servers, for a file that has no lines otherwise. It is not used for symbols,
    /// which are needed while the target waits.
    pub(crate) fn fetched(&self) -> Option<&DebugFile> {
        self.fetched.get_or_init(|| debug_file::fetch(&self.elf)).as_ref()
    }

    pub(crate) fn slots(&self) -> &GotSlots {
        self.slots.get_or_init(|| GotSlots::read(&self.elf))
    }

    /// Returns the address of the call that returns to `after`.
    pub(crate) fn call_before(&self, after: u64) -> Option<u64> {
        let find = || Some(Function::nameless(calls::call_in_file(&self.elf, after)?.ip()..after));
        self.asked.ask(NameQuestion::CallBefore(after), find).map(|call| call.start)
    }

    /// Returns true if the call that returns to `after` is the C library's call of `main`, through a pointer.
    pub(crate) fn calls_main(&self, after: u64) -> bool {
        let mut call = [0; calls::MAX_CALL as usize];
        start::gives_result_on(&self.elf, after)
            && self.call_before(after).is_some_and(|at| {
                let len = after.saturating_sub(at).min(calls::MAX_CALL) as usize;
                let call = call.get_mut(..len).unwrap_or_default();
                self.elf.read_code_into(at, call) == len && calls::is_indirect(call)
            })
    }

    /// Returns true if the code of the function that starts at `start` extends to the instruction at `addr`.
    pub(crate) fn reaches(&self, start: u64, addr: u64) -> bool {
        let distance = addr.checked_sub(start).and_then(|distance| u16::try_from(distance).ok());
        let find = || extent::reaches(&self.elf, start, addr).then(Function::default);
        distance
            .filter(|distance| *distance < extent::MOST_REACH && start.leading_zeros() >= extent::MOST_REACH.ilog2())
            .and_then(|distance| self.asked.ask(NameQuestion::Reaches(start, distance), find))
            .is_some()
    }

    /// Returns the target of the call that returns to `after`, if the file determines it.
    pub(crate) fn called_before(&self, after: u64) -> Option<Callee> {
        self.ask_callee(NameQuestion::CalledBefore(after), || {
            calls::target(&self.elf, self.slots(), &calls::call_in_file(&self.elf, after)?)
        })
    }

    /// Returns the targets of the tail calls of the function at `start`, if the file determines them.
    pub(crate) fn last_jumps(&self, start: u64) -> Vec<Callee> {
        let mut found: Option<Vec<Callee>> = None;
        let mut find = |n: usize| {
            let all = found.get_or_insert_with(|| match self.range(start).filter(|range| range.start == start) {
                Some(range) => calls::tail_jumps(&self.elf, self.slots(), range),
                None => Vec::new(),
            });
            all.get(n).cloned()
        };
        let jump = |n: usize| match u8::try_from(n).ok().filter(|n| *n < MOST_LAST_JUMPS) {
            Some(number) => self.ask_callee(NameQuestion::LastJump(start, number), || find(n)),
            None => find(n),
        };
        (0..).map_while(jump).collect()
    }

    fn ask_callee(&self, question: NameQuestion, find: impl FnOnce() -> Option<Callee>) -> Option<Callee> {
        let as_function = |callee| match callee {
            Callee::Local(to) => Function::nameless(to..to),
            Callee::Symbol(name) => Function { name, ..Function::default() },
        };
        let called = self.asked.ask(question, || find().map(as_function))?;
        Some(if called.name.is_empty() { Callee::Local(called.start) } else { Callee::Symbol(called.name) })
    }

    /// Returns the range of the function around `addr` by call frame information.
    fn framed(&self, addr: u64) -> Option<Range<u64>> {
        let find = || self.cfi().function(addr).map(Function::nameless);
        self.asked.ask(NameQuestion::Framed(addr), find).map(|f| f.extent())
    }

    /// Returns the language runtime that the file holds; `None` if it holds none.
    pub(crate) fn runtime(&self) -> Option<&Arc<dyn Runtime>> {
        let find = || {
            let mut found = None;
            let is_one = self.asked.ask(NameQuestion::Runtime, || {
                found = recognise(&self.elf, &self.path);
                found.as_ref().map(|_| Function::default())
            });
            found.or_else(|| is_one.and_then(|_| recognise(&self.elf, &self.path)))
        };
        self.runtime.get_or_init(find).as_ref()
    }

    /// Returns the file's class, if all of its code has the same.
    pub(crate) fn whole_class(&self) -> Option<FrameClass> {
        self.class
    }

    pub(crate) fn class(&self, addr: u64) -> FrameClass {
        if let Some(class) = self.class {
            return class;
        }
        let function = self.symbol(addr);
        self.ownership().class(self.names(), &|| self.cfi(), addr, function.as_ref().map(|f| f.name.as_ref()))
    }

    fn ownership(&self) -> &Ownership {
        self.ownership.get_or_init(|| {
            Ownership::of(&self.elf, self.names(), &|| self.slots(), &|| self.cfi(), self.range(self.elf.entry()))
        })
    }

    /// Returns true if a source location of this file is in a language's own library.
    pub(crate) fn is_runtimes(&self, location: &Location) -> bool {
        class::is_runtimes(&self.elf, &location.function, location.file.as_deref())
    }

    /// Returns true if the file is a program that contains its C library and calls it.
    pub(crate) fn brings_libc(&self) -> bool {
        class::is_static(&self.elf) && !class::is_go(&self.elf)
    }

    /// Returns the function around `addr` by symbols; `None` if the symbol ends before `addr`.
    pub(crate) fn symbol(&self, addr: u64) -> Option<Function> {
        let function = self.names().around(addr)?;
        if function.size > 0 {
            return Some(function);
        }
        // The symbol has no size, so it is assumed to extend as far as the call frame information or, without any, as
        // its code.
        let covered = match self.framed(addr) {
            Some(range) => range.start == function.start,
            None => function.next.is_none_or(|next| addr < next) && extent::reaches(&self.elf, function.start, addr),
        };
        (covered || addr == function.start).then_some(function)
    }

    /// Returns the range of the function around `addr` by a symbol with a size, or by call frame information.
    pub(crate) fn range_by_tables(&self, addr: u64) -> Option<Range<u64>> {
        let sized = self.symbol(addr).filter(|f| f.size > 0);
        sized.map(|f| f.start..f.start.saturating_add(f.size)).or_else(|| self.framed(addr))
    }

    /// Returns the range of the function around `addr` by a table or, if none has it, by its code.
    pub(crate) fn range(&self, addr: u64) -> Option<Range<u64>> {
        self.range_by_tables(addr).or_else(|| {
            let f = self.symbol(addr)?;
            Some(f.start..f.next?)
        })
    }

    /// Returns the step from `addr` to the caller; `next` is the instruction that will run next.
    pub(crate) fn step(&self, addr: u64, next: u64, unwinding: &mut RowContext) -> Step {
        if let Some(step) = self.cfi().step(addr, unwinding) {
            return step;
        }
        // Go's functions have no call frame information, but Go's table has the sizes of their frames, which the
        // run-time needs too.
        match self.go().and_then(|go| go.frame(addr)) {
            Some(Frame::Outermost) => return Step::End,
            Some(Frame::Bytes(bytes)) => {
                if let Some(rule) = rule_of_go_frame(bytes) {
                    return Step::Rule(rule);
                }
            }
            None => {}
        }
        // The kernel or the loader jumps to the entry point, so it has no caller. Without a symbol, it is assumed to
        // be short.
        const START: u64 = 64;
        let is_start = match self.range(self.elf.entry()) {
            Some(range) => range.contains(&addr),
            None => addr.wrapping_sub(self.elf.entry()) < START,
        };
        if is_start && self.elf.entry() != 0 {
            return Step::End;
        }
        // The caller is start-up code, which often jumps here. No report shows that code, so the stack ends.
        if self.calls_main(next) {
            return Step::End;
        }
        match find_epilogue(&self.elf, next) {
            Epilogue::Return(rule) => Step::Epilogue(rule),
            Epilogue::NoReturn => Step::NoReturn,
            Epilogue::Unknown => Step::Guess,
        }
    }

    /// Returns the range of the program's `main`; `None` if the file is not a program.
    pub(crate) fn main(&self) -> Option<Range<u64>> {
        self.main.get_or_init(|| self.names().main(|| self.find_main())).clone()
    }

    fn find_main(&self) -> Option<Range<u64>> {
        // The C library and the loader have an entry point too.
        if self.class.is_some() || self.elf.entry() == 0 {
            return None;
        }
        let names = self.tables();
        let by_symbol = |name: &str| names.scan(name).filter(|main| !main.is_empty());
        // Programs made by gccgo can be recognized only by this name.
        let may_be_go = class::is_go(&self.elf) || names.at_hand();
        if may_be_go && let Some(main) = by_symbol("main.main") {
            return Some(main);
        }
        match start::main_of(&self.elf, self.slots()) {
            Some(start) => Some(self.range(start).filter(|r| r.start == start).unwrap_or(start..start + 1)),
            None => by_symbol("main"),
        }
    }
}
