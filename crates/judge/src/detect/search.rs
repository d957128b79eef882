//! Detects searches for one thing after another in directories that never hold any.

use crate::causes::fact::Fact;
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, put};
use crate::names::paths::PathId;
use crate::results::finding::Kind;
use crate::semantics::{Effect, MISSING, Semantics};
use crate::world::bounds::REMEMBERED;
use crate::world::replay::Step;
use systoll_model::{Recording, Sysno, Window, WindowCall};

/// Least number of directories searched in a row for one thing for a long search.
const LONG: usize = 6;
/// Number of different things that a directory lacked from which on it counts as empty.
const KNOWN: usize = 2;
/// Least number of searches that ended, for each directory in which they effectively ended. If things lie in many directories,
/// the program looks into each for good reason, and windows show too little to tell which directories hold something.
const ENDED: usize = 2;
/// Number of misses, for each search that ended and one more, from which on it does not matter
/// where searches ended. A search may be so long that windows rarely hold a whole one, and no
/// program needs to look into so many directories for each thing.
const ENDLESS: usize = 64;

/// Least ratio of misses to calls that found something, by exact counts, at which hardly anything lies where the
/// program looks. Then neither ends nor a second thing that the directory lacks are required. A second thing that the
/// program looks for is required only if the directories lie in each other: a program that looks for one name in each
/// folder on its way does not search.
const HARDLY: u64 = 16;
/// Least number of misses at which hardly anything lies where the program looks.
const MANY: u64 = 100;

/// A directory, with the working directory if it is relative.
type Directory = (Option<u32>, PathId);

/// The results of looking into a directory.
#[derive(Default)]
struct Yield {
    held: bool,
    missed: Vec<PathId>,
}

/// The ends of a program's searches.
#[derive(Default)]
struct Ends {
    searches: usize,
    /// Number of misses that windows show before the ends in each directory.
    directories: Map<Directory, usize>,
    /// Number of misses in long searches.
    misses: usize,
    /// The first [`KNOWN`] things that long searches looked for.
    sought: Vec<PathId>,
}

impl Ends {
    /// Returns the effective number of directories in which searches end (Kish), at least 1: a few short searches at
    /// the program's start hardly count beside the long ones of its work.
    fn effective_directories(&self) -> f64 {
        let misses = || self.directories.values().map(|misses| *misses as f64);
        let squares: f64 = misses().map(|misses| misses * misses).sum();
        (misses().sum::<f64>().powi(2) / squares.max(1.0)).max(1.0)
    }
}

/// Claims misses of long searches in directories in which nothing was ever found.
pub(super) struct Search {
    /// By process: the program and the working directory that it shares with other processes.
    places: Vec<Place>,
    yields: Map<(u32, Directory), Yield>,
    ends: Map<u32, Ends>,
    /// Programs and calls that hardly ever find anything.
    vain: Set<(u32, Sysno)>,
    /// Programs that have a window with enough misses for a long search.
    seeks: Set<u32>,
}

/// The properties of a process's searches that other processes share: processes of one program find the same things
/// in a directory, and a relative directory is the same if neither process changed its working directory.
#[derive(Clone, Copy)]
struct Place {
    program: u32,
    folder: u32,
}

/// Returns one place for each process. A program may be started anew for each item, so that windows show too little
/// of each process.
fn places(recording: &Recording, semantics: &Semantics) -> Vec<Place> {
    let mut moved: Set<u32> = Set::default();
    for row in &recording.rows {
        if semantics.lines_of(row.syscall).does(|e| matches!(e, Effect::WorkingDirectory)) {
            moved.insert(row.process.0);
        }
    }
    let mut programs: Map<&str, u32> = Map::default();
    let mut places: Vec<Place> = Vec::with_capacity(recording.processes.len());
    for (at, process) in (0u32..).zip(&recording.processes) {
        let program = *programs.entry(&process.exe).or_insert(at);
        // Parents come before their children. In a stranger's recording they may not; such a process shares nothing.
        let inherited = match process.parent {
            Some(parent) if parent.0 < at && !moved.contains(&parent.0) => places.get(parent.0 as usize),
            Some(_) => None,
            None => Some(&Place { program: 0, folder: 0 }),
        };
        let folder = inherited.filter(|_| !moved.contains(&at)).map_or(at + 1, |place| place.folder);
        places.push(Place { program, folder });
    }
    places
}

/// Returns true if the window has enough misses for a long search.
fn may_search(window: &Window) -> bool {
    let missed = |call: &&WindowCall| call.errno().is_some_and(|errno| MISSING.contains(&errno));
    window.calls.iter().filter(missed).nth(LONG - 1).is_some()
}

/// Returns the programs that have a window which may hold a long search.
fn seeks(recording: &Recording, places: &[Place]) -> Set<u32> {
    let many = recording.windows.iter().filter(|window| may_search(window));
    many.filter_map(|window| places.get(window.process.0 as usize)).map(|place| place.program).collect()
}

/// Returns the programs and calls that hardly ever find anything.
fn vain(recording: &Recording, places: &[Place]) -> Set<(u32, Sysno)> {
    let mut tally: Map<(u32, Sysno), (u64, u64)> = Map::default();
    for row in &recording.rows {
        let Some(place) = places.get(row.process.0 as usize) else { continue };
        let missed = row.counts.errors.iter().filter(|(errno, _)| MISSING.contains(errno));
        let missed = missed.fold(0u64, |sum, (_, n)| sum.saturating_add(*n));
        let (misses, all) = tally.entry((place.program, row.syscall)).or_default();
        *misses = misses.saturating_add(missed);
        *all = all.saturating_add(row.counts.calls);
    }
    let vain =
        |(misses, all): (u64, u64)| misses >= MANY && misses >= HARDLY.saturating_mul(all.saturating_sub(misses));
    tally.into_iter().filter(|(_, counts)| vain(*counts)).map(|(key, _)| key).collect()
}

/// A call that did not find the name.
struct Miss {
    index: usize,
    syscall: Sysno,
    directory: Directory,
    stem: PathId,
    /// True if the directory lies in the one searched right before.
    below: bool,
    /// True if the window shows no call with a path before this one.
    from_before: bool,
}

impl Detector for Search {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let Some(process) = steps.first().map(|s| s.observed.window.process.0 as usize) else { return };
        let Some(Place { program, folder }) = self.places.get(process).copied() else { return };
        if !self.seeks.contains(&program) {
            return;
        }
        let mut run: Vec<Miss> = Vec::new();
        let mut before = "";
        let mut any = false;
        for step in steps {
            let Some((path, parts)) = step.object.as_deref().zip(step.parts) else { continue };
            let directory = path.get(..parts.slash).unwrap_or_default();
            let below = directory.strip_prefix(before).is_some_and(|rest| rest.starts_with('/')) && !before.is_empty();
            before = directory;
            // A relative directory depends on the working directory.
            let of = (!directory.starts_with('/')).then_some(folder);
            let (directory, stem) = ((of, parts.folder), parts.stem);
            let errno = step.observed.call.errno();
            let missing = errno.is_some_and(|e| MISSING.contains(&e));
            let sought = run.last().is_some_and(|last| last.stem == stem);
            // A search that began before the window may be long.
            let long = run.len() >= LONG || run.first().is_some_and(|first| first.from_before);
            let led_here = run.len();
            if !sought || !missing {
                self.finish(program, &mut run, claims);
            }
            if missing {
                let from_before = !any;
                run.push(Miss {
                    index: step.index,
                    syscall: step.observed.syscall,
                    directory,
                    stem,
                    below,
                    from_before,
                });
            } else if errno.is_none() {
                self.found(program, directory, if sought && long { led_here } else { 0 });
            }
            any = true;
        }
        self.finish(program, &mut run, claims);
    }
}

impl Search {
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        let may = recording.windows.iter().any(may_search);
        let places = if may { places(recording, semantics) } else { Vec::new() };
        let seeks = seeks(recording, &places);
        let vain = if may { vain(recording, &places) } else { Set::default() };
        Self { places, yields: Map::default(), ends: Map::default(), vain, seeks }
    }

    fn yield_of(&mut self, program: u32, directory: Directory) -> Option<&mut Yield> {
        let key = (program, directory);
        let room = self.yields.len() < REMEMBERED || self.yields.contains_key(&key);
        room.then(|| self.yields.entry(key).or_default())
    }

    /// Notes that something was found, after the misses of a long search if `led_here` is not 0.
    fn found(&mut self, program: u32, directory: Directory, led_here: usize) {
        if led_here > 0 {
            let ends = self.ends.entry(program).or_default();
            ends.searches += 1;
            *ends.directories.entry(directory).or_default() += led_here;
        }
        if let Some(known) = self.yield_of(program, directory) {
            known.held = true;
        }
    }

    fn ends_alike(&self, program: u32) -> bool {
        let alike = |e: &Ends| {
            e.searches as f64 >= ENDED as f64 * e.effective_directories() || e.misses >= ENDLESS * (e.searches + 1)
        };
        self.ends.get(&program).is_some_and(alike)
    }

    /// Ends a run of misses. Counts it as a search if it is long, and claims the misses in
    /// directories that hold nothing.
    fn finish(&mut self, program: u32, run: &mut Vec<Miss>, claims: &mut Claims) {
        let directories = || run.iter().map(|miss| miss.directory).collect::<Set<Directory>>().len();
        let mut long = run.len() >= LONG && directories() >= LONG;
        let wide = long;
        let mut several = false;
        if long {
            let ends = self.ends.entry(program).or_default();
            ends.misses += run.len();
            let stem = run.first().map(|miss| miss.stem).filter(|stem| !ends.sought.contains(stem));
            ends.sought.extend(stem.filter(|_| ends.sought.len() < KNOWN));
            several = ends.sought.len() >= KNOWN || run.iter().all(|miss| !miss.below);
            long = self.ends_alike(program);
        }
        for miss in run.drain(..) {
            let vain = wide && several && self.vain.contains(&(program, miss.syscall));
            let Some(known) = self.yield_of(program, miss.directory) else { continue };
            if !known.held && (vain || long && known.missed.len() >= KNOWN) {
                put(claims, miss.index, claim());
            }
            if known.missed.len() < KNOWN && !known.missed.contains(&miss.stem) {
                known.missed.push(miss.stem);
            }
        }
    }
}

fn claim() -> Claim {
    Claim {
        facts: Fact::Search.into(),
        gives_up: "what lay only in the directories left out is no longer found",
        ..Claim::of(
            Kind::Failing,
            "directories that hold nothing of what is looked for",
            "put the directories that hold most first, and leave out those that hold nothing",
        )
    }
}
