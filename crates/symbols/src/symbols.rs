//! All files ever seen in a run, and what is known of their addresses.

use crate::ahead::Ahead;
use crate::calls::{self, Callee};
use crate::cfi::Unwinding;
use crate::elf::Image;
use crate::extent;
use crate::known::{Known, Remembered};
use crate::maps::{self, Mapped};
use crate::module::Module;
use crate::rule::{REGISTERS, Step};
use crate::script;
use crate::source::{FileState, Identity, Source};
use crate::{ModuleKey, RawFrame};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use systoll_model::{FrameClass, Location, Problem, ProblemKind};

/// Most files kept open; the rest is read into memory.
const MAX_OPEN: usize = 256;
/// The largest file read into memory.
const MAX_RESIDENT: u64 = 64 << 20;
/// Frames of the C library at the root of a stack, outside `main`: glibc has three.
const START_FRAMES: usize = 4;
/// The longest function of unknown extent.
const MAX_UNKNOWN: u64 = 1 << 14;
/// Most problems kept.
const MAX_PROBLEMS: usize = 100;

/// All files ever seen mapped in a run, kept open or in memory: names survive the process, and
/// the file's deletion or replacement. One per run.
#[derive(Debug, Default)]
pub struct Symbols {
    modules: Vec<Arc<Module>>,
    /// Files that were opened before they were seen mapped.
    ahead: Ahead,
    by_file: HashMap<Identity, Option<ModuleKey>>,
    /// vDSOs, by length: the kernel maps the same pages into every process of a kind.
    vdsos: HashMap<u64, ModuleKey>,
    /// Device and inode of files that are never looked into.
    ignored: HashSet<((u32, u32), u64)>,
    remembered: Remembered,
    unwinding: Unwinding,
    classes: HashMap<RawFrame, FrameClass>,
    main_callers: HashMap<RawFrame, bool>,
    /// By file and address.
    fixed: HashMap<ModuleKey, BTreeMap<u64, bool>>,
    /// The same by file and start of the function, which takes finding out.
    fixed_functions: HashMap<(ModuleKey, u64), bool>,
    open: usize,
    problems: Vec<Problem>,
    complained: HashSet<String>,
    pub(crate) locations: HashMap<(ModuleKey, u64), Arc<[Location]>>,
    /// Lines of scripts.
    pub(crate) lines: script::Lines,
    /// Runtimes whose scripts' lines have been read.
    pub(crate) scripted: HashSet<ModuleKey>,
    /// Whether functions compiled as they run have been named.
    pub(crate) names_compiled: bool,
}

impl Symbols {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing seen yet, but files that may be mapped are known, or will be.
    pub fn expecting(ahead: Ahead) -> Self {
        Self { ahead, ..Self::default() }
    }

    pub(crate) fn module(&self, key: ModuleKey) -> Option<&Module> {
        self.modules.get(key.0 as usize).map(|module| &**module)
    }

    pub(crate) fn modules(&self) -> impl Iterator<Item = (ModuleKey, &Module)> {
        (0..).map(ModuleKey).zip(self.modules.iter().map(|module| &**module))
    }

    /// Path of a file, as the target saw it; `[vdso]` for the vDSO.
    pub fn path(&self, key: ModuleKey) -> Option<Arc<str>> {
        Some(Arc::clone(&self.module(key)?.path))
    }

    /// All bytes of a file, `None` if it is too large to be held or can't be read any more.
    pub fn bytes(&self, key: ModuleKey) -> Option<Vec<u8>> {
        self.module(key)?.image.source.read_all()
    }

    /// State of the file as it is now, `None` for memory and for files that were changed since
    /// they were seen mapped.
    pub fn state(&self, key: ModuleKey) -> Option<FileState> {
        self.module(key)?.image.source.state()
    }

    /// The file's build-id, in lower-case hexadecimal digits, if it has one.
    pub fn build_id(&self, key: ModuleKey) -> Option<&str> {
        self.module(key)?.image.build_id.as_deref()
    }

    pub(crate) fn problems(&self) -> &[Problem] {
        &self.problems
    }

    pub(crate) fn complain(&mut self, text: String) {
        if self.problems.len() < MAX_PROBLEMS && self.complained.insert(text.clone()) {
            self.problems.push(Problem::new(ProblemKind::Name, text));
        }
    }

    /// Never looks into this file: it is mapped into programs by whoever watches them.
    pub fn ignore(&mut self, file: &std::fs::Metadata) {
        use std::os::unix::fs::MetadataExt;
        let device = (nix::libc::major(file.dev()), nix::libc::minor(file.dev()));
        self.ignored.insert((device, file.ino()));
    }

    /// The file behind a mapping, loaded if it is new. `None` for memory without one, and for
    /// files that can't be read.
    pub(crate) fn load(&mut self, pid: i32, mapped: &Mapped) -> Option<ModuleKey> {
        if mapped.path != "[vdso]" && mapped.inode == 0 || self.ignored.contains(&(mapped.device, mapped.inode)) {
            return None;
        }
        let len = mapped.end.saturating_sub(mapped.start);
        if mapped.path == "[vdso]"
            && let Some(known) = self.vdsos.get(&len)
        {
            return Some(*known);
        }
        let identity = maps::identity(mapped);
        if let Some(known) = identity.and_then(|identity| self.by_file.get(&identity)) {
            return *known;
        }
        if let Some(identity) = identity.filter(|_| self.open < MAX_OPEN)
            && let Some(module) = self.ahead.find(&identity, &mapped.path)
        {
            self.open += 1;
            let key = self.push(module);
            self.by_file.insert(identity, key);
            return key;
        }
        let source = match maps::open(pid, mapped) {
            Ok(source) => source,
            Err(why) => {
                self.complain(format!("{}: no names: {why}", mapped.path));
                return None;
            }
        };
        match source {
            Source::Memory(_) => {
                let key = self.add(mapped, source)?;
                self.vdsos.insert(len, key);
                Some(key)
            }
            Source::File { identity, .. } => {
                if let Some(known) = self.by_file.get(&identity) {
                    return *known;
                }
                let key = self.resident(source).and_then(|s| self.add(mapped, s));
                self.by_file.insert(identity, key);
                key
            }
        }
    }

    /// Keeps the file open, or its bytes where too many are open already.
    fn resident(&mut self, source: Source) -> Option<Source> {
        if self.open < MAX_OPEN {
            self.open += 1;
            return Some(source);
        }
        if source.len() > MAX_RESIDENT {
            return None;
        }
        source.read_all().map(|bytes| Source::Memory(bytes.into()))
    }

    fn add(&mut self, mapped: &Mapped, source: Source) -> Option<ModuleKey> {
        let Some(image) = Image::parse(source) else {
            self.complain(format!("{}: no names: not an ELF file for x86-64", mapped.path));
            return None;
        };
        self.push(Arc::new(Module::new(&mapped.path, image)))
    }

    pub(crate) fn push(&mut self, module: Arc<Module>) -> Option<ModuleKey> {
        let key = ModuleKey(u32::try_from(self.modules.len()).ok()?);
        self.modules.push(module);
        Some(key)
    }

    pub(crate) fn bias(&self, key: ModuleKey, mapped: &Mapped) -> Option<u64> {
        self.module(key)?.image.bias(mapped.start, mapped.offset)
    }

    /// What unwinding has to know of `addr`; the byte before the return address where `is_return`.
    pub(crate) fn at(&mut self, module: ModuleKey, addr: u64, is_return: bool) -> Known {
        if let Some(known) = self.remembered.get((module, addr, is_return)) {
            return known;
        }
        let known = self.find_out(module, addr, is_return);
        self.remembered.keep(known);
        known
    }

    fn find_out(&mut self, module: ModuleKey, addr: u64, is_return: bool) -> Known {
        let key = (module, addr, is_return);
        let mut known = Known { key, address: addr, lookup: addr, class: FrameClass::Unknown, step: Step::Guess };
        let Some(file) = self.modules.get(module.0 as usize) else { return known };
        // Returned to without having called, at its very start: what a coroutine ends with.
        let mut uncalled = false;
        if is_return {
            known.address = addr.wrapping_add(1);
            let starts = file.cfi().function(known.address).is_some_and(|r| r.start == known.address);
            uncalled = starts && calls::call_in_file(&file.image, known.address).is_none();
        } else if is_system_call(&file.image, addr.wrapping_sub(2)) {
            known.address = addr.wrapping_sub(2);
            known.lookup = known.address;
        }
        let next = if is_return { known.address } else { addr };
        known.step = if is_signal_return(&file.image, known.address, is_return) {
            Step::SignalFrame
        } else if uncalled {
            Step::End
        } else {
            file.step(known.lookup, next, &mut self.unwinding)
        };
        known.class = self.class(RawFrame { module: Some(module), address: known.address, is_return });
        known
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

    /// Whose code `frame` runs. Cached; fast.
    pub fn class(&mut self, frame: RawFrame) -> FrameClass {
        if let Some((_, class)) = self.lines.get(frame) {
            return *class;
        }
        let Some(module) = frame.module.and_then(|key| self.module(key)) else { return FrameClass::Unknown };
        if let Some(class) = module.whole_class() {
            return class;
        }
        if let Some(class) = self.classes.get(&frame) {
            return *class;
        }
        let class = module.class(frame.lookup());
        self.classes.insert(frame, class);
        class
    }

    /// Whether the code around `lookup`, which has a frame pointer, keeps its stack pointer at a constant
    /// distance from that. Cached.
    pub(crate) fn is_fixed(&mut self, key: ModuleKey, lookup: u64) -> bool {
        if let Some(known) = self.fixed.get(&key).and_then(|file| file.get(&lookup)) {
            return *known;
        }
        let fixed = self.find_fixed(key, lookup);
        self.fixed.entry(key).or_default().insert(lookup, fixed);
        fixed
    }

    /// What [`Symbols::know_fixed`] wants to be told in a later run: by addresses in the file, and in their
    /// order, whether the code there keeps its stack pointer at a constant distance from its frame pointer.
    pub fn fixed(&self, key: ModuleKey) -> impl ExactSizeIterator<Item = (u64, bool)> + '_ {
        let none = const { &BTreeMap::new() };
        self.fixed.get(&key).unwrap_or(none).iter().map(|(address, fixed)| (*address, *fixed))
    }

    /// Takes what an earlier run has found out about the same file by decoding its functions.
    pub fn know_fixed(&mut self, key: ModuleKey, known: impl IntoIterator<Item = (u64, bool)>) {
        self.fixed.entry(key).or_default().extend(known);
    }

    fn find_fixed(&mut self, key: ModuleKey, lookup: u64) -> bool {
        let Some(range) = self.module(key).and_then(|m| m.range(lookup)) else { return false };
        if let Some(known) = self.fixed_functions.get(&(key, range.start)) {
            return *known;
        }
        let start = range.start;
        let fixed = self.module(key).is_some_and(|m| extent::is_fixed(&m.image, range));
        self.fixed_functions.insert((key, start), fixed);
        fixed
    }

    /// Whether the call behind which `caller` stands is one of the function around `here`; `None` where
    /// that can't be told: it is none whose target the file knows.
    pub(crate) fn leads(&self, caller: RawFrame, here: RawFrame) -> Option<bool> {
        let (from, callee) = self.callee(caller)?;
        let module = self.module(here.module?)?;
        let start = module.range(here.lookup()).map(|r| r.start);
        let to = match callee {
            Callee::Local(to) => (Some(from) == here.module).then_some(to),
            Callee::Symbol(name) => module.names().export(&name).map(|(to, _)| to),
        };
        // Where nobody knows its start, a function may still not begin behind itself.
        Some(to.is_some_and(|to| start.map_or(to <= here.lookup() && here.lookup() - to < MAX_UNKNOWN, |s| s == to)))
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
        let known = module.is_some_and(|m| calls::calls_main(&m.image, frame.address));
        self.main_callers.insert(frame, known);
        known
    }
}

/// Whether there is a `syscall`, `sysenter` or `int $0x80` at `addr`.
fn is_system_call(image: &Image, addr: u64) -> bool {
    let mut code = [0; 2];
    image.read_code_into(addr, &mut code) == 2 && matches!(code, [0x0f, 0x05 | 0x34] | [0xcd, 0x80])
}

/// Whether `addr` is at `mov $__NR_rt_sigreturn,%eax; syscall`, which is what handlers return to
/// (gdb recognises it the same way): at its start for a return address, else at the `syscall`.
/// The stack pointer is at the context then.
pub(crate) fn is_signal_return(image: &Image, addr: u64, is_return: bool) -> bool {
    const MOVES: [&[u8]; 2] = [&[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0], &[0xb8, 0x0f, 0, 0, 0]];
    MOVES.iter().any(|mov| {
        let start = if is_return { addr } else { addr.wrapping_sub(mov.len() as u64) };
        let mut code = [0; 9];
        let got = image.read_code_into(start, &mut code);
        code.get(..got).and_then(|c| c.strip_prefix(*mov)).is_some_and(|rest| rest.starts_with(&[0x0f, 0x05]))
    })
}
