//! One file that was seen mapped, and what has been found out about it so far.

use crate::calls::{self, Slots};
use crate::cfi::{Cfi, Unwinding};
use crate::class::{self, Layout};
use crate::debug::{self, DebugFile};
use crate::elf::Image;
use crate::extent;
use crate::forward::{Ahead, look_ahead};
use crate::go::GoTable;
use crate::names::Names;
use crate::rule::Step;
use crate::script::Runtime;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use systoll_model::{FrameClass, Location};

/// A file, its tables read when first needed.
#[derive(Debug)]
pub(crate) struct Module {
    /// As the target saw it.
    pub(crate) path: Arc<str>,
    pub(crate) image: Image,
    class: Option<FrameClass>,
    cfi: OnceLock<Cfi>,
    names: OnceLock<Names>,
    slots: OnceLock<Slots>,
    layout: OnceLock<Layout>,
    main: OnceLock<Option<Range<u64>>>,
    runtime: OnceLock<Option<Runtime>>,
    debug: OnceLock<Option<DebugFile>>,
    fetched: OnceLock<Option<DebugFile>>,
    go: OnceLock<Option<GoTable>>,
}

impl Module {
    pub(crate) fn new(path: &str, image: Image) -> Self {
        Self {
            path: path.into(),
            class: class::of_file(path, image.soname.as_deref()),
            image,
            cfi: OnceLock::new(),
            names: OnceLock::new(),
            slots: OnceLock::new(),
            layout: OnceLock::new(),
            main: OnceLock::new(),
            runtime: OnceLock::new(),
            debug: OnceLock::new(),
            fetched: OnceLock::new(),
            go: OnceLock::new(),
        }
    }

    pub(crate) fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    pub(crate) fn cfi(&self) -> &Cfi {
        self.cfi.get_or_init(|| Cfi::read(&self.image))
    }

    /// All symbols, those of the separate debug file included, so that a name does not depend on
    /// who asked first.
    pub(crate) fn names(&self) -> &Names {
        self.names.get_or_init(|| Names::read(&self.image, self.debug_file().map(|d| &d.image), self.go()))
    }

    /// What a Go program knows of its functions.
    pub(crate) fn go(&self) -> Option<&GoTable> {
        self.go.get_or_init(|| GoTable::read(&self.image)).as_ref()
    }

    pub(crate) fn debug_file(&self) -> Option<&DebugFile> {
        self.debug.get_or_init(|| debug::find(&self.image, &self.path)).as_ref()
    }

    /// The debug file that servers have, where the file has no lines otherwise. Not asked for symbols,
    /// which are needed while the target waits.
    pub(crate) fn fetched(&self) -> Option<&DebugFile> {
        self.fetched.get_or_init(|| debug::fetch(&self.image)).as_ref()
    }

    pub(crate) fn slots(&self) -> &Slots {
        self.slots.get_or_init(|| Slots::read(&self.image))
    }

    /// The language runtime that the file is, if it is one.
    pub(crate) fn runtime(&self) -> Option<&Runtime> {
        self.runtime.get_or_init(|| Runtime::of(&self.image, &self.path)).as_ref()
    }

    /// The file's class, where all of it has the same.
    pub(crate) fn whole_class(&self) -> Option<FrameClass> {
        self.class
    }

    pub(crate) fn class(&self, addr: u64) -> FrameClass {
        if let Some(class) = self.class {
            return class;
        }
        let function = self.symbol(addr);
        self.layout().class(self.names(), self.cfi(), addr, function.as_ref().map(|f| f.name.as_ref()))
    }

    fn layout(&self) -> &Layout {
        self.layout.get_or_init(|| {
            Layout::of(&self.image, self.names(), self.slots(), self.cfi(), self.range(self.image.entry))
        })
    }

    /// Whether a place in this file's source is in a language's own library.
    pub(crate) fn is_runtimes(&self, location: &Location) -> bool {
        self.layout().is_runtimes(&location.function, location.file.as_deref())
    }

    /// Whether it is a program that brings its C library along, and calls it.
    pub(crate) fn brings_libc(&self) -> bool {
        class::is_static(&self.image) && !class::is_go(&self.image)
    }

    /// The symbol whose function `addr` lies in; none that ends before it.
    pub(crate) fn symbol(&self, addr: u64) -> Option<crate::names::Function<'_>> {
        let function = self.names().around(addr)?;
        if function.size > 0 {
            return Some(function);
        }
        // No size: believe it as far as the call frame information, or without any, its code goes.
        let covered = match self.cfi().function(addr) {
            Some(range) => range.start == function.start,
            None => function.next.is_none_or(|next| addr < next) && extent::reaches(&self.image, function.start, addr),
        };
        (covered || addr == function.start).then_some(function)
    }

    /// The range of the function around `addr`.
    pub(crate) fn range(&self, addr: u64) -> Option<Range<u64>> {
        if let Some(f) = self.symbol(addr)
            && f.size > 0
        {
            return Some(f.start..f.start.saturating_add(f.size));
        }
        self.cfi().function(addr).or_else(|| {
            let f = self.symbol(addr)?;
            Some(f.start..f.next?)
        })
    }

    /// How to get from `addr` to the caller; `next` is the instruction that will run next.
    pub(crate) fn step(&self, addr: u64, next: u64, unwinding: &mut Unwinding) -> Step {
        if let Some(step) = self.cfi().step(addr, unwinding) {
            return step;
        }
        // Nobody calls the entry point; where it has no symbol it is still short.
        const START: u64 = 64;
        let is_start = match self.range(self.image.entry) {
            Some(range) => range.contains(&addr),
            None => addr.wrapping_sub(self.image.entry) < START,
        };
        if is_start && self.image.entry != 0 {
            return Step::End;
        }
        // Called by nobody worth telling, and often by a jump.
        if calls::calls_main(&self.image, next) {
            return Step::End;
        }
        match look_ahead(&self.image, next) {
            Ahead::Return(rule) => Step::Ahead(rule),
            Ahead::NoReturn => Step::NoReturn,
            Ahead::Unknown => Step::Guess,
        }
    }

    /// The program's `main`, where this is a program.
    pub(crate) fn main(&self) -> Option<Range<u64>> {
        self.main.get_or_init(|| self.find_main()).clone()
    }

    fn find_main(&self) -> Option<Range<u64>> {
        // The C library and the loader have an entry point too.
        if self.class.is_some() || self.image.entry == 0 {
            return None;
        }
        let names = self.names();
        let by_symbol = |name: &str| names.scan(name).map(|(start, size)| start..start.saturating_add(size));
        // gccgo's programs say nowhere else what they are.
        let may_be_go = class::is_go(&self.image) || names.at_hand();
        if may_be_go && let Some(main) = by_symbol("main.main").filter(|m| !m.is_empty()) {
            return Some(main);
        }
        match calls::main_of(&self.image, self.slots()) {
            Some(start) => Some(self.range(start).filter(|r| r.start == start).unwrap_or(start..start + 1)),
            None => by_symbol("main").filter(|m| !m.is_empty()),
        }
    }
}
