//! Contexts of earlier programs, for later programs of the same files to begin with.
//!
//! A context is return addresses in files and places on the stack, constants of the files but for frames whose
//! size varies, most of them in a few ways: in another process they lie elsewhere, but nothing else about them changes. So a
//! program that runs for the tenth time need not ask anew for every way to a call. `kept_contexts` keeps them
//! from one run to the next.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use systoll_hooks::assemble::{FramePointer, Step};
use systoll_hooks::layout::trunk;
use systoll_symbols::{ModuleKey, RawFrame};

/// Contexts kept for one file's sites and one caller's file.
const MOST_OF_PAIR: usize = 2048;
/// Contexts kept at all.
const MOST: usize = 100_000;
/// Programs that are known to have had one.
const MOST_PROGRAMS: usize = 64;
/// Pairs of files.
const MOST_PAIRS: usize = 4096;

/// Octaves of a row's count that may be left out where they were asked about so often in all
/// processes: below 128 calls a process's are crumbs, and asking costs as much as hundreds. The first
/// is where the unlooked-at are asked about at all.
const OFTEN: [(std::ops::Range<u32>, u32); 2] = [(FIRST_ASKED..7, 16), (7..END_OF_OFTEN, 96)];
/// See [`OFTEN`].
const FIRST_ASKED: u32 = 4;
/// From here on every process is asked.
const END_OF_OFTEN: u32 = 12;

/// A return address on the way to a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownStep {
    pub(crate) file: ModuleKey,
    /// In the file.
    pub(crate) address: u64,
    /// Where the next one lies, see [`Step::next`].
    pub(crate) next: u64,
    /// By which frame pointer, see [`Step::pointer`].
    pub(crate) pointer: Option<FramePointer>,
}

/// A context of a site.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Context {
    /// Index of the site, and its address in the file, by which it is known again.
    pub(crate) site: (usize, u64),
    /// The system call, where the site does not say which.
    pub(crate) number: Option<u32>,
    pub(crate) steps: Vec<KnownStep>,
    pub(crate) frames: Rc<[RawFrame]>,
    /// Whether a look at the stack would tell no more of who called: they lead to the user's own frame, which
    /// places on the stack that vary end them before, or there was none, as in a loader at a program's start.
    pub(crate) whole: bool,
    /// Whether `main` was on the stack when it was first met.
    pub(crate) main: bool,
}

/// What lay above a context when it was last met, from the inside outwards: the rest of the whole stack. Another run's is never
/// told: threads compare their stacks with it ([`systoll_hooks::layout::trunk`]), and ask where they differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownTrunk {
    /// Whether places are told from rbp, not from rsp at the hook.
    pub(crate) from_rbp: bool,
    pub(crate) above: Vec<KnownAbove>,
    /// Whether the last one is the stack's outermost frame.
    pub(crate) complete: bool,
}

/// A return address above a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownAbove {
    pub(crate) file: ModuleKey,
    /// In the file.
    pub(crate) address: u64,
    /// Where it lies, see [`systoll_hooks::assemble::Above::place`].
    pub(crate) place: u64,
}

impl KnownTrunk {
    /// Its frames.
    pub(crate) fn frames(&self) -> impl Iterator<Item = RawFrame> {
        self.above.iter().map(|a| RawFrame { module: Some(a.file), address: a.address, is_return: true })
    }

    /// Whether threads can compare their stacks with one of so many addresses, the last of which lies at `place`.
    pub(crate) fn can_be_compared(addresses: usize, place: Option<u64>) -> bool {
        addresses <= trunk::MOST && place.is_none_or(|place| place < trunk::REACH)
    }
}

impl Context {
    /// Whether a frame on its way varies in size.
    pub(crate) fn varies(&self) -> bool {
        self.steps.iter().any(|step| step.pointer.is_some())
    }
}

impl Hash for Context {
    /// By what tells nearly all apart: the frames say once more what the steps do.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.site.hash(state);
        self.number.hash(state);
        for step in &self.steps {
            step.address.hash(state);
            step.pointer.hash(state);
        }
    }
}

/// Where a context is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// A program of this run with the launcher's own rights has had it.
    Native,
    /// An earlier run has kept it.
    EarlierRun,
    /// A program with other rights has had it, whose word is taken for this run alone.
    Other,
}

/// A program's own file by which a context is kept whose frames vary in size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HadBy {
    pub(crate) program: ModuleKey,
    /// Whether an earlier run has kept it by this file.
    pub(crate) kept: bool,
}

/// A context, and how often calls there were asked about.
#[derive(Debug)]
pub(crate) struct KnownContext {
    pub(crate) context: Rc<Context>,
    pub(crate) origin: Origin,
    /// Who has had it, where frames on its way vary in size.
    programs: RefCell<Vec<HadBy>>,
    /// What lies above it, where threads can find that out by themselves.
    trunk: RefCell<Option<Rc<KnownTrunk>>>,
    /// Whether its whole stack was seen in this run.
    seen: Cell<bool>,
    /// Whether that was another one than what was known of it.
    is_renewed: Cell<bool>,
    asked: Cell<[u32; END_OF_OFTEN as usize]>,
}

impl KnownContext {
    /// Own files of programs that have had it, where frames on its way vary in size: which sizes frames have hangs on the
    /// program, as the loader's on how many libraries it has.
    pub(crate) fn programs(&self) -> Vec<HadBy> {
        self.programs.borrow().clone()
    }

    /// What lay above it when it was last met.
    pub(crate) fn trunk(&self) -> Option<Rc<KnownTrunk>> {
        self.trunk.borrow().clone()
    }

    /// Notes what lies above it in a program of this run. Is that not `native`, with the launcher's own rights, its word is not
    /// taken for a context that others have had.
    pub(crate) fn note_trunk(&self, trunk: Option<KnownTrunk>, native: bool) {
        if native || self.origin == Origin::Other {
            self.trunk.replace(trunk.map(Rc::new));
        }
        self.seen.set(true);
    }

    /// A program has another trunk than the known one, so that later ones are more likely to have that.
    pub(crate) fn renew_trunk(&self, trunk: Option<KnownTrunk>, native: bool) {
        self.is_renewed.set(self.is_renewed.get() || native);
        self.note_trunk(trunk, native);
    }

    /// Whether a program had another trunk than the known one.
    pub(crate) fn is_renewed(&self) -> bool {
        self.is_renewed.get()
    }

    /// Its whole stack was seen in this run.
    pub(crate) fn note_seen(&self) {
        self.seen.set(true);
    }

    /// Whether it was.
    pub(crate) fn is_seen(&self) -> bool {
        self.seen.get()
    }

    /// Whether a program whose own file is `program` has had it.
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

    /// A process was looked at there in this octave of its count: it asked, or has opened a window by itself.
    pub(crate) fn note_asked(&self, octave: u32) {
        let mut asked = self.asked.get();
        if let Some(n) = asked.get_mut(octave as usize) {
            *n += 1;
        }
        self.asked.set(asked);
    }

    /// The beginning of the first octave from `octave` on that was not asked about often enough.
    pub(crate) fn octave_to_ask(&self, octave: u32) -> u64 {
        let asked = self.asked.get();
        let often = |o: &u32| OFTEN.iter().find(|(octaves, _)| octaves.contains(o)).map(|(_, often)| *often);
        let enough = |o: &u32| often(o).is_some_and(|often| asked.get(*o as usize).is_some_and(|n| *n >= often));
        1 << (octave..63).find(|o| !enough(o)).unwrap_or(63)
    }

    /// Where calls that are no news are asked about next.
    pub(crate) fn later(&self) -> u64 {
        self.octave_to_ask(FIRST_ASKED)
    }
}

/// A site, by which its contexts are known again in other programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SiteOfFile {
    pub(crate) file: ModuleKey,
    /// Its index among the file's sites, and its address in the file.
    pub(crate) site: usize,
    pub(crate) address: u64,
    /// The system call, where the site does not say which.
    pub(crate) number: Option<u32>,
    /// Of the program it was met in.
    pub(crate) origin: Origin,
    /// That program's own file.
    pub(crate) program: Option<ModuleKey>,
}

/// Contexts by the file of the site and that of the outermost frame.
pub(crate) type Pairs = foldhash::HashMap<(ModuleKey, ModuleKey), Vec<Rc<KnownContext>>>;

/// All contexts seen, by the file of the site and that of the outermost frame.
#[derive(Debug, Default)]
pub(crate) struct KnownContexts {
    pairs: Pairs,
    known: foldhash::HashMap<Rc<Context>, Rc<KnownContext>>,
    /// Own files of programs that have had one with frames that vary in size.
    varied: HashSet<ModuleKey>,
}

impl KnownContexts {
    /// Contexts by the file of the site and that of the outermost frame.
    pub(crate) fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// Files that ways to calls lead through.
    pub(crate) fn files(&self) -> HashSet<ModuleKey> {
        let of_contexts = self.known.keys().flat_map(|context| context.frames.iter().filter_map(|frame| frame.module));
        let trunks = self.known.values().filter_map(|known| known.trunk());
        let of_trunks = trunks.flat_map(|trunk| trunk.above.iter().map(|above| above.file).collect::<Vec<_>>());
        of_contexts.chain(of_trunks).collect()
    }

    /// Keeps a context of `site`. `steps` lead to it, `frames` are the site's own and one for each step, and
    /// `whole` says whether they tell all there is to tell. `main`: whether `main` is on the stack.
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
        // Code without a file is no other program's.
        let steps = placed.collect::<Option<Vec<_>>>()?;
        let context = Context { site: (site, address), number, steps, frames: Rc::clone(frames), whole, main };
        self.add(file, context, (origin, program))
    }

    /// Takes in a context of a site of `file` that an earlier run has kept by the file `by`.
    pub(crate) fn take_in_kept(&mut self, file: ModuleKey, context: Context, trunk: Option<KnownTrunk>, by: ModuleKey) {
        let known = self.add(file, context, (Origin::EarlierRun, Some(by)));
        // What this run has seen is nearer to what comes.
        if let Some(known) = known.filter(|known| known.trunk().is_none()) {
            known.trunk.replace(trunk.map(Rc::new));
        }
    }

    /// Whether programs whose own file is `program` have had contexts with frames that vary in size.
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
