//! Tells which claimed questions belong to a search for a program, as a shell makes it through the folders of PATH.
//!
//! A search asks about one last name in one folder after another until a folder has it. That the name is a program's is
//! told by a question for the right to run it, by an attempt to run it, by a program of that name that ran, or by the folders,
//! if other programs are searched for in each of them.

use crate::causes::fact::Fact;
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::Claims;
use crate::names::paths::{Parts, PathId};
use crate::semantics::signs::Signs;
use crate::semantics::{ATTEMPT, Act, NAME, PATH, asks_to_run};
use crate::world::replay::Step;
use systoll_model::{Errno, Recording, RowId};

/// Errors that lead a search to its next folder. A folder that the user may not enter is passed over as well.
const NOT_HERE: [Errno; 3] = [Errno::ENOENT, Errno::ENOTDIR, Errno::EACCES];

/// Consecutive questions about one last name: misses, then those about the path that was found.
struct Run {
    name: PathId,
    /// The folders asked about, in order; one that is asked about several times in a row stands once.
    folders: Vec<PathId>,
    /// True if the last folder has the name.
    is_found: bool,
    /// True if a question, or a program that ran, tells that the name is a program's.
    is_program: bool,
    /// True if the name is a folder's.
    is_folder: bool,
    /// True if an end of the window may have cut the run off.
    is_cut: bool,
    /// Indices of the claimed questions.
    claimed: Vec<u32>,
}

/// A run with claimed questions, which belong to a search for a program if its name turns out to be one.
struct Undecided {
    run: Run,
    window: usize,
}

/// The searches for programs that windows show.
pub(super) struct Programs<'a> {
    recording: &'a Recording,
    /// Last names of the programs that ran.
    started: Set<&'a str>,
    /// Last names of the programs that were searched for.
    sought: Set<PathId>,
    /// The folders in which they were searched for.
    folders: Set<PathId>,
    undecided: Vec<Undecided>,
}

impl<'a> Programs<'a> {
    pub(super) fn new(recording: &'a Recording) -> Self {
        let named = recording.processes.iter().flat_map(|process| [Some(&process.exe), process.argv.first()]);
        let started = named.flatten().map(|path| path.rsplit('/').next().unwrap_or(path)).collect();
        let (sought, folders) = (Set::default(), Set::default());
        Self { recording, started, sought, folders, undecided: Vec::new() }
    }

    /// Reads a window, given with its number, after all claims on it are made.
    pub(super) fn window(&mut self, window: usize, steps: &[Step<'_>], shown: Signs, claims: &Claims) {
        if !shown.any(Signs::PATH) {
            return;
        }
        let mut run: Option<Run> = None;
        let mut is_first = true;
        for step in steps.iter().filter(|step| is_about_name(step)) {
            let Some((path, parts)) = step.object.as_deref().zip(step.parts) else { continue };
            if let Some(run) = run.as_mut().filter(|run| run.asks_on(step)) {
                run.note(step, claims);
                continue;
            }
            if !run.as_ref().is_some_and(|run| run.goes_on(step, parts)) {
                let is_program = path.get(parts.slash + 1..).is_some_and(|name| self.started.contains(name));
                let next = Run::new(parts.name, is_program, std::mem::take(&mut is_first));
                self.finish_run(run.replace(next), window);
            }
            if let Some(run) = &mut run {
                run.add(step, parts, claims);
            }
        }
        self.finish_run(run.map(|run| Run { is_cut: true, ..run }), window);
    }

    fn finish_run(&mut self, run: Option<Run>, window: usize) {
        let Some(run) = run.filter(|run| !run.is_folder) else { return };
        if run.is_wide() && run.is_program {
            self.sought.insert(run.name);
            self.folders.extend(&run.folders);
        }
        if (run.is_wide() || run.is_cut) && !run.claimed.is_empty() {
            self.undecided.push(Undecided { run, window });
        }
    }

    /// Marks the claims on questions of searches for programs, in all windows. A row of which other claims are as many
    /// is told by those, and none of its claims is marked.
    pub(super) fn finish(mut self, claims: &mut Claims) {
        // A program that no folder has is searched for where the others are.
        let is_there = |run: &Run| run.is_wide() && run.folders.iter().all(|folder| self.folders.contains(folder));
        let never_found = self.undecided.iter().map(|of| &of.run).filter(|run| is_there(run)).map(|run| run.name);
        self.sought.extend(never_found.collect::<Vec<_>>());
        let runs = self.undecided.iter().filter(|of| self.sought.contains(&of.run.name));
        let calls = || runs.clone().flat_map(|of| of.run.claimed.iter().map(|index| (of.window, *index as usize)));
        let row = |(window, index): (usize, usize)| Some(self.recording.windows.get(window)?.calls.get(index)?.row);
        let mut rows: Map<RowId, (usize, usize)> = Map::default();
        calls().filter_map(row).for_each(|row| rows.entry(row).or_default().0 += 1);
        if rows.is_empty() {
            return;
        }
        for (at, window) in self.recording.windows.iter().enumerate() {
            for (index, call) in window.calls.iter().enumerate() {
                if let Some((_, all)) = rows.get_mut(&call.row).filter(|_| claims.at(at, index).is_some()) {
                    *all += 1;
                }
            }
        }
        rows.retain(|_, (of_searches, all)| 2 * *of_searches > *all);
        claims.add_fact(calls().filter(|call| row(*call).is_some_and(|row| rows.contains_key(&row))), Fact::Program);
    }
}

impl Run {
    fn new(name: PathId, is_program: bool, is_cut: bool) -> Self {
        let (folders, claimed) = (Vec::new(), Vec::new());
        Self { name, folders, is_found: false, is_program, is_folder: false, is_cut, claimed }
    }

    /// Returns true if the run went through two folders or more.
    fn is_wide(&self) -> bool {
        self.folders.len() > 1
    }

    /// Returns true if the step goes on with the search, or asks more about what it found.
    fn goes_on(&self, step: &Step<'_>, parts: Parts) -> bool {
        let errno = step.observed.call.errno();
        let is_of_search = errno.is_none_or(|errno| NOT_HERE.contains(&errno));
        parts.name == self.name && if self.is_found { self.folders.last() == Some(&parts.folder) } else { is_of_search }
    }

    /// Returns true if the step asks about the folder in which the search could not look: a shell tells in this way what it
    /// may not run from what it may not see.
    fn asks_on(&self, step: &Step<'_>) -> bool {
        !self.is_found && step.object_id.is_some() && step.object_id == self.folders.last().copied()
    }

    fn add(&mut self, step: &Step<'_>, parts: Parts, claims: &Claims) {
        if self.folders.last() != Some(&parts.folder) {
            self.folders.push(parts.folder);
        }
        self.is_found |= step.observed.call.errno().is_none();
        self.is_program |= asks_to_run(&step.observed);
        self.is_folder |= step.asks_directory();
        self.note(step, claims);
    }

    fn note(&mut self, step: &Step<'_>, claims: &Claims) {
        if claims.get(step.index).is_some() {
            self.claimed.extend(u32::try_from(step.index));
        }
    }
}

/// Returns true if the step asks about a name, or tries to run it.
fn is_about_name(step: &Step<'_>) -> bool {
    step.meaning.as_ref().is_some_and(|meaning| match meaning.line.act {
        Act::Ask(_) => meaning.line.about.is(&PATH) || meaning.line.about.is(&NAME),
        Act::Try => meaning.line.about.is(&ATTEMPT) && asks_to_run(&step.observed),
        Act::Set { .. } => false,
    })
}
