//! Contexts of earlier programs, for later programs of the same files to begin with.
//!
//! A context is return addresses in files and places on the stack, all of them constants of the
//! files: in another process they lie elsewhere, but nothing else about them changes. So a
//! program that runs for the tenth time need not ask anew for every way to a call.

use super::super::assemble::{Step, grow};
use super::super::layout::NODE_SIZE;
use super::memory::Area;
use super::program::Program;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use systoll_symbols::{ModuleKey, RawFrame};

/// Contexts kept for one file's sites and one caller's file.
const MOST_OF_PAIR: usize = 2048;
/// Pairs of files.
const MOST_PAIRS: usize = 4096;

/// A context of a site.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Seed {
    /// Index of the site, and its address in the file, by which it is known again.
    site: (usize, u64),
    /// File and address in it of each return address, and where the next one lies.
    steps: Vec<(ModuleKey, u64, u64)>,
    frames: Rc<[RawFrame]>,
    /// Whether `main` was on the stack when it was first met.
    main: bool,
}

/// A node made of what is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sown {
    /// Its address.
    pub(super) node: u64,
    /// Whether a call there may be the first after `main` has begun.
    pub(super) main: bool,
}

/// All contexts seen, by the file of the site and that of the outermost frame.
#[derive(Debug, Default)]
pub(super) struct Seeds {
    pairs: HashMap<(ModuleKey, ModuleKey), Vec<Rc<Seed>>>,
    known: HashSet<Rc<Seed>>,
}

impl Seeds {
    /// Keeps a context of the site `at` (file and site) of `program`. `steps` lead to it, `frames`
    /// are the site's own and one for each step. `main`: whether `main` is on the stack.
    pub(super) fn keep(
        &mut self,
        program: &Program,
        at: (usize, usize),
        steps: &[Step],
        frames: &Rc<[RawFrame]>,
        main: bool,
    ) {
        let Some(file) = program.files.get(at.0) else { return };
        let Some(site) = file.code.blob.sites.get(at.1) else { return };
        let placed = frames.iter().skip(1).zip(steps).map(|(f, s)| Some((f.module?, f.address, s.next)));
        // Code without a file is nobody else's.
        let Some(steps) = placed.collect::<Option<Vec<_>>>() else { return };
        let Some((outermost, _, _)) = steps.last().copied() else { return };
        let pair = (file.key, outermost);
        if self.pairs.len() >= MOST_PAIRS && !self.pairs.contains_key(&pair) {
            return;
        }
        let seed = Rc::new(Seed { site: (at.1, site.address), steps, frames: Rc::clone(frames), main });
        let of_pair = self.pairs.entry(pair).or_default();
        if of_pair.len() < MOST_OF_PAIR && self.known.insert(Rc::clone(&seed)) {
            of_pair.push(seed);
        }
    }

    /// Adds what is known of the files of `program` to its trees, for pairs of files that were not
    /// both there before. The new nodes.
    pub(super) fn sow(&self, program: &mut Program, area: &Area) -> Vec<Sown> {
        let mut nodes = Vec::new();
        let biases: HashMap<ModuleKey, u64> = program.space.files().map(|f| (f.module, f.bias)).collect();
        for file in 0..program.files.len() {
            for outermost in biases.keys() {
                let Some(key) = program.files.get(file).map(|f| f.key) else { continue };
                let Some(seeds) = self.pairs.get(&(key, *outermost)) else { continue };
                if program.sown.insert((file, *outermost)) {
                    let sow = |seed: &Rc<Seed>| {
                        let node = seed.sow(program, area, file, &biases)?;
                        Some(Sown { node, main: seed.main })
                    };
                    nodes.extend(seeds.iter().filter_map(sow));
                }
            }
        }
        nodes
    }
}

impl Seed {
    fn sow(&self, program: &mut Program, area: &Area, file: usize, biases: &HashMap<ModuleKey, u64>) -> Option<u64> {
        let patched = program.files.get(file)?;
        let (site, address) = self.site;
        let root = patched.known.region + site as u64 * NODE_SIZE;
        patched.code.blob.sites.get(site).filter(|s| s.address == address)?;
        let step = |(key, address, next): &(ModuleKey, u64, u64)| {
            Some(Step { word: biases.get(key)?.wrapping_add(*address), next: *next })
        };
        let steps: Vec<Step> = self.steps.iter().map(step).collect::<Option<_>>()?;
        let node = grow(area.words(), &mut program.room, root, &steps).ok()?;
        let new = program.nodes.insert(node, Rc::clone(&self.frames)).is_none();
        let path = steps.iter().map(|s| s.word).collect();
        program.contexts.insert((file, site, path), Rc::clone(&self.frames));
        new.then_some(node)
    }
}
