//! Contexts of earlier programs, for later programs with the same files.
//!
//! A context consists of return addresses in files and their places on the stack. Both are constants of the files,
//! except for frames of varying size, most of which have few sizes. In another process the files lie elsewhere, but
//! nothing else changes. A program that runs for the tenth time need not ask anew for every context. `kept_contexts`
//! keeps contexts from run to run.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use systoll_hooks::assemble::{FramePointer, Step};
use systoll_hooks::layout::trunk;
use systoll_symbols::{ModuleKey, RawFrame};

/// Contexts kept for one file's sites and one caller's file, at most.
const MOST_OF_PAIR: usize = 2048;
/// Contexts kept in all, at most.
const MOST: usize = 100_000;
/// Programs remembered for a context, at most.
const MOST_PROGRAMS: usize = 64;
/// Pairs of files that contexts are kept for, at most.
const MOST_PAIRS: usize = 4096;

/// Ranges of octaves, and the number of processes that ask in each of their octaves; further processes do not ask
/// there. Below 128 calls a process contributes little, and a question costs as much as hundreds of calls. The first
/// octave is where processes ask that were not sampled before.
const OFTEN: [(std::ops::Range<u32>, u32); 2] = [(FIRST_ASKED..7, 16), (7..END_OF_OFTEN, 96)];
/// First octave in which processes ask, see [`OFTEN`].
const FIRST_ASKED: u32 = 4;
/// First octave in which every process asks.
const END_OF_OFTEN: u32 = 12;

/// A return address on the stack of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownStep {
    pub(crate) file: ModuleKey,
    /// The return address, as an address in that file.
    pub(crate) address: u64,
    /// Place of the next return address, see [`Step::next`].
    pub(crate) next: u64,
    /// The frame pointer by which the next return address is found, see [`Step::pointer`].
    pub(crate) pointer: Option<FramePointer>,
}

/// A context of a site.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Context {
    /// Index of the site, and the site's address in the file.
    pub(crate) site: (usize, u64),
    /// The system call, if the site does not tell it.
    pub(crate) number: Option<u32>,
    pub(crate) steps: Vec<KnownStep>,
    pub(crate) frames: Rc<[RawFrame]>,
    /// True if the rest of the stack would not tell more about the caller: the frames lead to the user's own one, or
    /// there is none, as in a loader at a program's start. False if frames of varying size end the context earlier.
    pub(crate) whole: bool,
    /// True if `main` was on the stack when the context was first seen.
    pub(crate) main: bool,
}

/// The frames above a context when it was last seen, from the inside outwards: the rest of the whole stack. Frames from
/// another run are never reported: threads compare their stacks with them ([`systoll_hooks::layout::trunk`]), and ask
/// if they differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownTrunk {
    /// True if places are relative to rbp; false if they are relative to rsp at the hook.
    pub(crate) from_rbp: bool,
    pub(crate) above: Vec<KnownAbove>,
    /// True if the last frame is the stack's outermost.
    pub(crate) complete: bool,
}

/// A return address above a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownAbove {
    pub(crate) file: ModuleKey,
    /// The return address, as an address in that file.
    pub(crate) address: u64,
    /// Place of the return address on the stack, see [`systoll_hooks::assemble::Above::place`].
    pub(crate) place: u64,
}

impl KnownTrunk {
    /// Returns the trunk's frames.
    pub(crate) fn frames(&self) -> impl Iterator<Item = RawFrame> {
        self.above.iter().map(|a| RawFrame { module: Some(a.file), address: a.address, is_return: true })
    }

    /// Returns true if threads can compare their stacks with a trunk of `addresses` addresses, the last of which lies
    /// at `place`.
    pub(crate) fn can_be_compared(addresses: usize, place: Option<u64>) -> bool {
        addresses <= trunk::MOST && place.is_none_or(|place| place < trunk::REACH)
    }
}

impl Context {
    /// Returns true if a frame of the context varies in size.
    pub(crate) fn varies(&self) -> bool {
        self.steps.iter().any(|step| step.pointer.is_some())
    }
}

impl Hash for Context {
    /// Hashes site, number and steps, which tell nearly all contexts apart; the frames repeat the steps.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.site.hash(state);
        self.number.hash(state);
        for step in &self.steps {
            step.address.hash(state);
            step.pointer.hash(state);
        }
    }
}

/// Source of a known context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// A program of this run with the launcher's own rights.
    Native,
    /// An earlier run.
    EarlierRun,
    /// A program with other rights; its contexts are believed for this run only.
    Other,
}

/// An executable whose programs have had a context with frames of varying size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HadBy {
    pub(crate) program: ModuleKey,
    /// True if an earlier run has kept the context for the executable.
    pub(crate) kept: bool,
}

/// A context that later programs may reuse, and how often calls at it have asked.
#[derive(Debug)]
pub(crate) struct KnownContext {
    pub(crate) context: Rc<Context>,
    pub(crate) origin: Origin,
    /// Programs that have had the context, if its frames vary in size.
    programs: RefCell<Vec<HadBy>>,
    /// Frames above the context, if threads can compare their stacks with these frames.
    trunk: RefCell<Option<Rc<KnownTrunk>>>,
    /// True if the context's whole stack was seen in this run.
    seen: Cell<bool>,
    /// True if a program of this run had another trunk than the known one.
    is_renewed: Cell<bool>,
    asked: Cell<[u32; END_OF_OFTEN as usize]>,
}

impl KnownContext {
    /// Returns the executables of programs that have had the context, if its frames vary in size: the sizes depend on
    /// the program, as the loader's depend on the number of libraries.
    pub(crate) fn programs(&self) -> Vec<HadBy> {
        self.programs.borrow().clone()
    }

    /// Returns the frames above the context when it was last seen.
    pub(crate) fn trunk(&self) -> Option<Rc<KnownTrunk>> {
        self.trunk.borrow().clone()
    }

    /// Notes the frames above the context in a program of this run. A program that is not `native`, without the
    /// launcher's own rights, is not believed for a context that others have had.
    pub(crate) fn note_trunk(&self, trunk: Option<KnownTrunk>, native: bool) {
        if native || self.origin == Origin::Other {
            self.trunk.replace(trunk.map(Rc::new));
        }
        self.seen.set(true);
    }

    /// Notes that a program has another trunk than the known one; later programs will more likely have that one too.
    pub(crate) fn renew_trunk(&self, trunk: Option<KnownTrunk>, native: bool) {
        self.is_renewed.set(self.is_renewed.get() || native);
        self.note_trunk(trunk, native);
    }

    /// Returns true if a program had another trunk than the known one.
    pub(crate) fn is_renewed(&self) -> bool {
        self.is_renewed.get()
    }

    /// Notes that the context's whole stack was seen in this run.
    pub(crate) fn note_seen(&self) {
        self.seen.set(true);
    }

    /// Returns true if the context's whole stack was seen in this run.
    pub(crate) fn is_seen(&self) -> bool {
        self.seen.get()
    }

    /// Returns true if a program with the executable `program` has had the context.
    pub(crate) fn was_had_by(&self, program: ModuleKey) -> bool {
        self.programs.borrow().iter().any(|had| had.program == program)
    }

    fn note_program(&self, new: HadBy) {
        let mut programs = self.programs.borrow_mut();
        if let Some(had) = programs.iter_mut().find(|had| had.program == new.program) {
            had.kept |= new.kept;
        } else if programs.len() < MOST_PROGRAMS {
            programs.push(new);
        }
    }

    /// Notes that a process was sampled at the context in this octave of its count: it asked, or opened a window by
    /// itself.
    pub(crate) fn note_asked(&self, octave: u32) {
        let mut asked = self.asked.get();
        if let Some(n) = asked.get_mut(octave as usize) {
            *n += 1;
        }
        self.asked.set(asked);
    }

    /// Returns the first call of the first octave, from `octave` on, in which not enough processes have asked.
    pub(crate) fn octave_to_ask(&self, octave: u32) -> u64 {
        let asked = self.asked.get();
        let often = |o: &u32| OFTEN.iter().find(|(octaves, _)| octaves.contains(o)).map(|(_, often)| *often);
        let enough = |o: &u32| often(o).is_some_and(|often| asked.get(*o as usize).is_some_and(|n| *n >= often));
        1 << (octave..63).find(|o| !enough(o)).unwrap_or(63)
    }

    /// Returns the call at which a process asks next if its calls bring nothing new.
    pub(crate) fn later(&self) -> u64 {
        self.octave_to_ask(FIRST_ASKED)
    }
}

/// A site, identified across programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SiteOfFile {
    pub(crate) file: ModuleKey,
    /// Index of the site among the file's sites.
    pub(crate) site: usize,
    pub(crate) address: u64,
    /// The system call, if the site does not tell it.
    pub(crate) number: Option<u32>,
    /// Origin of the program in which the site was seen.
    pub(crate) origin: Origin,
    /// Executable of the program in which the site was seen.
    pub(crate) program: Option<ModuleKey>,
}

/// Contexts by the file of the site and that of the outermost frame.
pub(crate) type Pairs = foldhash::HashMap<(ModuleKey, ModuleKey), Vec<Rc<KnownContext>>>;

/// All contexts seen so far.
#[derive(Debug, Default)]
pub(crate) struct KnownContexts {
    pairs: Pairs,
    known: foldhash::HashMap<Rc<Context>, Rc<KnownContext>>,
    /// Executables of programs that have had a context with frames of varying size.
    varied: HashSet<ModuleKey>,
}

impl KnownContexts {
    /// Returns the contexts by the file of the site and that of the outermost frame.
    pub(crate) fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// Returns the files in which frames of contexts and trunks lie.
    pub(crate) fn files(&self) -> HashSet<ModuleKey> {
        let of_contexts = self.known.keys().flat_map(|context| context.frames.iter().filter_map(|frame| frame.module));
        let trunks = self.known.values().filter_map(|known| known.trunk());
        let of_trunks = trunks.flat_map(|trunk| trunk.above.iter().map(|above| above.file).collect::<Vec<_>>());
        of_contexts.chain(of_trunks).collect()
    }

    /// Keeps a context of `site`. `steps` lead to it; `frames` are the site's own frame and one for each step. `whole`
    /// is [`Context::whole`]; `main` is true if `main` is on the stack.
    pub(crate) fn keep(
        &mut self,
        site: SiteOfFile,
        steps: &[Step],
        (frames, whole): (&Rc<[RawFrame]>, bool),
        main: bool,
    ) -> Option<Rc<KnownContext>> {
        let SiteOfFile { file, site, address, number, origin, program } = site;
        let placed =
            frames.iter().skip(1).zip(steps).map(|(f, s)| {
                Some(KnownStep { file: f.module?, address: f.address, next: s.next, pointer: s.pointer })
            });
        // Code without a file belongs to this process only.
        let steps = placed.collect::<Option<Vec<_>>>()?;
        let context = Context { site: (site, address), number, steps, frames: Rc::clone(frames), whole, main };
        self.add(file, context, (origin, program))
    }

    /// Adds a context of a site of `file` that an earlier run has kept for the executable `by`.
    pub(crate) fn take_in_kept(&mut self, file: ModuleKey, context: Context, trunk: Option<KnownTrunk>, by: ModuleKey) {
        let known = self.add(file, context, (Origin::EarlierRun, Some(by)));
        // Frames seen in this run take precedence.
        if let Some(known) = known.filter(|known| known.trunk().is_none()) {
            known.trunk.replace(trunk.map(Rc::new));
        }
    }

    /// Returns true if programs with the executable `program` have had contexts with frames of varying size.
    pub(crate) fn knows_varying_of(&self, program: ModuleKey) -> bool {
        self.varied.contains(&program)
    }

    fn add(&mut self, file: ModuleKey, context: Context, met: (Origin, Option<ModuleKey>)) -> Option<Rc<KnownContext>> {
        let (varies, (origin, program)) = (context.varies(), met);
        let known = self.known_again(file, context, origin)?;
        if let Some(program) = program.filter(|_| varies && origin != Origin::Other) {
            known.note_program(HadBy { program, kept: origin == Origin::EarlierRun });
            self.varied.insert(program);
        }
        Some(known)
    }

    fn known_again(&mut self, file: ModuleKey, context: Context, origin: Origin) -> Option<Rc<KnownContext>> {
        let pair = (file, context.steps.last()?.file);
        if self.pairs.len() >= MOST_PAIRS && !self.pairs.contains_key(&pair) {
            return None;
        }
        let context = Rc::new(context);
        if let Some(known) = self.known.get(&context) {
            return Some(Rc::clone(known));
        }
        let of_pair = self.pairs.entry(pair).or_default();
        if of_pair.len() >= MOST_OF_PAIR || self.known.len() >= MOST {
            return None;
        }
        let (asked, programs, trunk, seen, is_renewed) = Default::default();
        let seed =
            Rc::new(KnownContext { context: Rc::clone(&context), origin, programs, trunk, seen, is_renewed, asked });
        self.known.insert(context, Rc::clone(&seed));
        of_pair.push(Rc::clone(&seed));
        Some(seed)
    }
}
