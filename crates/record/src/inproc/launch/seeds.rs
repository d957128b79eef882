//! Contexts of earlier programs, for later programs of the same files to begin with.
//!
//! A context is return addresses in files and places on the stack, all of them constants of the
//! files: in another process they lie elsewhere, but nothing else about them changes. So a
//! program that runs for the tenth time need not ask anew for every way to a call.

use super::memory::Area;
use super::program::Program;
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use systoll_hooks::assemble::{Step, grow_asking, number_site};
use systoll_hooks::layout::NODE_SIZE;
use systoll_symbols::{ModuleKey, RawFrame};

/// Contexts kept for one file's sites and one caller's file.
const MOST_OF_PAIR: usize = 2048;
/// Contexts kept at all.
const MOST: usize = 100_000;
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

/// A context of a site.
#[derive(Debug, PartialEq, Eq)]
struct What {
    /// Index of the site, and its address in the file, by which it is known again.
    site: (usize, u64),
    /// The system call, where the site does not say which.
    number: Option<u32>,
    /// File and address in it of each return address, and where the next one lies.
    steps: Vec<(ModuleKey, u64, u64)>,
    frames: Rc<[RawFrame]>,
    /// Whether `main` was on the stack when it was first met.
    main: bool,
}

impl Hash for What {
    /// By what tells nearly all apart: the frames say once more what the steps do.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.site.hash(state);
        self.number.hash(state);
        for (_, address, _) in &self.steps {
            address.hash(state);
        }
    }
}

/// A context, and how often calls there were asked about.
#[derive(Debug)]
pub(super) struct Seed {
    what: Rc<What>,
    asked: Cell<[u32; END_OF_OFTEN as usize]>,
}

impl Seed {
    /// A call of a process there was asked about, in this octave of its count.
    pub(super) fn note_asked(&self, octave: u32) {
        let mut asked = self.asked.get();
        if let Some(n) = asked.get_mut(octave as usize) {
            *n += 1;
        }
        self.asked.set(asked);
    }

    /// The beginning of the first octave from `octave` on that was not asked about often enough.
    pub(super) fn octave_to_ask(&self, octave: u32) -> u64 {
        let asked = self.asked.get();
        let often = |o: &u32| OFTEN.iter().find(|(octaves, _)| octaves.contains(o)).map(|(_, often)| *often);
        let enough = |o: &u32| often(o).is_some_and(|often| asked.get(*o as usize).is_some_and(|n| *n >= often));
        1 << (octave..63).find(|o| !enough(o)).unwrap_or(63)
    }

    /// Where calls that are no news are asked about next.
    pub(super) fn later(&self) -> u64 {
        self.octave_to_ask(FIRST_ASKED)
    }
}

/// A node made of what is known.
#[derive(Clone, Debug)]
pub(super) struct Sown {
    /// Its address.
    pub(super) node: u64,
    /// Whether a call there may be the first after `main` has begun.
    pub(super) main: bool,
    pub(super) seed: Rc<Seed>,
}

/// All contexts seen, by the file of the site and that of the outermost frame.
#[derive(Debug, Default)]
pub(super) struct Seeds {
    pairs: HashMap<(ModuleKey, ModuleKey), Vec<Rc<Seed>>>,
    known: HashMap<Rc<What>, Rc<Seed>>,
}

impl Seeds {
    /// Keeps a context of the site `at` (file and site) of `program`, of system call `number` where
    /// the site does not say. `steps` lead to it, `frames` are the site's own and one for each step.
    /// `main`: whether `main` is on the stack.
    pub(super) fn keep(
        &mut self,
        program: &Program,
        (at, number): ((usize, usize), Option<u32>),
        steps: &[Step],
        frames: &Rc<[RawFrame]>,
        main: bool,
    ) -> Option<Rc<Seed>> {
        let file = program.files.get(at.0)?;
        let site = file.code.blob.sites.get(at.1)?;
        let placed = frames.iter().skip(1).zip(steps).map(|(f, s)| Some((f.module?, f.address, s.next)));
        // Code without a file is nobody else's.
        let steps = placed.collect::<Option<Vec<_>>>()?;
        let (outermost, _, _) = steps.last().copied()?;
        let pair = (file.key, outermost);
        if self.pairs.len() >= MOST_PAIRS && !self.pairs.contains_key(&pair) {
            return None;
        }
        let what = Rc::new(What { site: (at.1, site.address), number, steps, frames: Rc::clone(frames), main });
        if let Some(known) = self.known.get(&what) {
            return Some(Rc::clone(known));
        }
        let of_pair = self.pairs.entry(pair).or_default();
        if of_pair.len() >= MOST_OF_PAIR || self.known.len() >= MOST {
            return None;
        }
        let seed = Rc::new(Seed { what: Rc::clone(&what), asked: Cell::default() });
        self.known.insert(what, Rc::clone(&seed));
        of_pair.push(Rc::clone(&seed));
        Some(seed)
    }

    /// Adds what is known of the files of `program` to its trees, for pairs of files that were not
    /// both there before. `window_at` tells for a context, and whether `main` is on its stack, at which
    /// call it is to be asked about first. The new nodes.
    pub(super) fn sow(&self, program: &mut Program, area: &Area, window_at: impl Fn(&Seed, bool) -> u64) -> Vec<Sown> {
        let mut nodes = Vec::new();
        let biases: HashMap<ModuleKey, u64> = program.space.files().map(|f| (f.module, f.bias)).collect();
        for file in 0..program.files.len() {
            for outermost in biases.keys() {
                let Some(key) = program.files.get(file).map(|f| f.key) else { continue };
                let Some(seeds) = self.pairs.get(&(key, *outermost)) else { continue };
                if program.sown.insert((file, *outermost)) {
                    let sow = |seed: &Rc<Seed>| {
                        let window_at = window_at(seed, seed.what.main);
                        let node = seed.what.sow(program, area, (file, &biases), window_at)?;
                        Some(Sown { node, main: seed.what.main, seed: Rc::clone(seed) })
                    };
                    nodes.extend(seeds.iter().filter_map(sow));
                }
            }
        }
        nodes
    }
}

impl What {
    fn sow(
        &self,
        program: &mut Program,
        area: &Area,
        (file, biases): (usize, &HashMap<ModuleKey, u64>),
        window_at: u64,
    ) -> Option<u64> {
        let patched = program.files.get(file)?;
        let (site, address) = self.site;
        let region = patched.known.region;
        let counted = patched.code.blob.sites.get(site).filter(|s| s.address == address)?;
        let root = match self.number {
            None => region + site as u64 * NODE_SIZE,
            Some(number) => {
                let (table, offset) = (region + u64::from(counted.table?), u64::from(counted.offset?));
                let root = number_site(area.words(), &mut program.room, table, number, offset).ok()?;
                program.number_roots.insert(root, (file, site));
                root
            }
        };
        let step = |(key, address, next): &(ModuleKey, u64, u64)| {
            Some(Step { word: biases.get(key)?.wrapping_add(*address), next: *next })
        };
        let steps: Vec<Step> = self.steps.iter().map(step).collect::<Option<_>>()?;
        let node = grow_asking(area.words(), &mut program.room, root, &steps, window_at).ok()?;
        let new = program.nodes.insert(node, Rc::clone(&self.frames)).is_none();
        new.then_some(node)
    }
}
