//! Detects files that are synced again and again, although the program told no other process in between, and files that
//! are synced and then removed by the program itself.

use super::families::done;
use super::mapped::{File, Writers};
use super::renamed::{folder, is_path, names};
use crate::causes::fact::{Fact, Facts};
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, put};
use crate::reasons::ReasonId;
use crate::results::finding::Kind;
use crate::semantics::{
    Act, Effect, Enter, Lines, ObservedCall, OwnWait, SYNCED, Semantics, Trait, is_device, may_pass_descriptors,
    removes_name,
};
use crate::world::replay::Step;
use std::sync::Arc;
use systoll_model::{Recording, Row, RowId, Window};

/// Number of syncs for each output to others up to which the program may owe them durable data.
const ANSWERS: u64 = 4;
/// Largest distance, in calls, from a file's sync to its renaming, and from there to the sync of the folder or of the
/// renamed file. Go's way of opening that file takes six calls.
const NEAR: usize = 8;

/// Least number of synced files that windows show to be removed.
const REMOVED: usize = 4;
/// Least share of the syncs, 0 to 1, for each of which the process removes a file, if it removes what it synced.
const EACH: f64 = 0.9;
/// Least ratio of synced files among the removed ones in windows to what is expected if each removed file was synced.
const EXPECTED: f64 = 0.5;

/// Least number of threads that one call wakes, or that write a file which another one syncs, if a sync was for all of them.
const TOGETHER: i64 = 2;
/// Least share of a process's syncs, 0 to 1, after which a call wakes several threads, if its syncs are for several. Six writers and a
/// thread that stores for all were accused in five of five runs without this, in none of 15 with it; no other value was tried.
const SHARED: f64 = 0.5;

/// Largest number of synced files of one name in different folders that are compared.
const ALIKE: usize = 64;

/// Claims syncs of a file that was synced before, or that the process removes, in processes that hardly tell others
/// anything.
pub(super) struct Sync<'a> {
    writers: &'a Writers,
    /// Processes with several threads.
    threaded: &'a Set<u32>,
    silent: Set<u32>,
    /// Processes in which several threads wait for most syncs together.
    shared: &'a Set<u32>,
    /// Processes that give a file another name.
    renaming: Set<u32>,
    synced: Set<(u32, Arc<str>)>,
    /// Names that processes gave to synced files.
    replaced: Set<(u32, String)>,
    /// Processes that remove the files that they synced, each with the folders of such files.
    removing: Map<u32, Set<String>>,
}

impl<'a> Sync<'a> {
    /// Counts the syncs of each process and its outputs to others, exactly.
    pub(super) fn new(
        recording: &Recording,
        semantics: &Semantics,
        [threaded, shared]: [&'a Set<u32>; 2],
        writers: &'a Writers,
    ) -> Self {
        let rows = looked_at(recording, semantics);
        let renames = |row: &&Row| semantics.lines_of(row.syscall).names() && row.counts.calls > 0;
        let renaming = recording.rows.iter().filter(renames).map(|row| row.process.0).collect();
        let mut tally: Map<u32, (u64, u64)> = Map::default();
        for (row, seen) in recording.rows.iter().zip(rows) {
            let lines = semantics.lines_of(row.syscall);
            let (syncs, shows) = tally.entry(row.process.0).or_default();
            if lines.sets(&SYNCED) {
                *syncs = syncs.saturating_add(row.counts.calls);
            } else if lines.waits && !(seen.any && seen.own) || seen.shown && lines.transfers_out() {
                *shows = shows.saturating_add(row.counts.calls);
            }
        }
        let silent = tally.into_iter().filter(|(_, (syncs, shows))| shows.saturating_mul(ANSWERS) <= *syncs);
        Self {
            writers,
            threaded,
            silent: silent.map(|(process, _)| process).collect(),
            shared,
            renaming,
            synced: Set::default(),
            replaced: Set::default(),
            removing: removing(recording, semantics),
        }
    }

    /// Returns true if a thread syncs what several others write, and writes nothing to the file itself.
    fn is_for_others(&self, thread: u32, file: &File) -> bool {
        self.writers.get(file).is_some_and(|threads| threads.len() as i64 >= TOGETHER && !threads.contains(&thread))
    }

    /// Returns true if no window shows who writes a file of a process with several threads.
    fn is_of_unknown(&self, file: &File) -> bool {
        self.threaded.contains(&file.0) && !self.writers.contains_key(file)
    }

    /// Returns true if the sync is part of replacing a whole file: it syncs the file's bytes before
    /// the file gets its name, so that the name never stands for half a file, or the folder
    /// or the file afterwards. `is_named` is true if the file gets a name right after. Returns `None` if the window's edge
    /// hides that.
    fn is_of_replacing(&self, step: &Step<'_>, (file, is_named): (&str, bool), steps: &[Step<'_>]) -> Option<bool> {
        if !self.renaming.contains(&step.observed.window.process.0) {
            return Some(false);
        }
        let (before, after) = steps.split_at(step.index);
        let gave = |[_, to]: [String; 2]| {
            is_path(&to, file) || to.rsplit_once('/').is_none_or(|(folder, _)| is_path(folder, file))
        };
        let behind = before.iter().rev().take(NEAR).any(|s| names(s).is_some_and(gave));
        if is_named || behind {
            return Some(true);
        }
        (before.len() >= NEAR && after.len() > NEAR).then_some(false)
    }
}

/// Returns the processes in which most syncs, as far as windows show the time up to the thread's next one, are followed by a call
/// that wakes several threads: these wait until what they wrote is stored, and one sync is for all of them.
pub(super) fn shared(recording: &Recording, semantics: &Semantics) -> Set<u32> {
    let mut of_processes: Map<u32, (u64, u64)> = Map::default();
    for window in &recording.windows {
        let mut wakes_several = None;
        for call in &window.calls {
            let syscall = recording.row(call.row).syscall;
            let lines = semantics.lines_of(syscall);
            if lines.sets(&SYNCED) {
                if let Some(wakes) = wakes_several.replace(false) {
                    let (syncs, shared) = of_processes.entry(window.process.0).or_default();
                    (*syncs, *shared) = (*syncs + 1, *shared + u64::from(wakes));
                }
            } else if call.result.is_some_and(|woken| woken >= TOGETHER)
                && lines.is(Trait::Wakes, &ObservedCall { window, call, syscall })
            {
                wakes_several = wakes_several.map(|_| true);
            }
        }
    }
    let is_shared = |(_, (syncs, shared)): &(u32, (u64, u64))| *shared > 0 && *shared as f64 >= SHARED * *syncs as f64;
    of_processes.into_iter().filter(is_shared).map(|(process, _)| process).collect()
}

/// Returns the name that a file gets right after the first of these steps, which syncs it.
fn name_given(file: &str, steps: &[Step<'_>]) -> Option<String> {
    let mut given = steps.iter().skip(1).take(NEAR).filter_map(names);
    given.find_map(|[from, to]| is_path(&from, file).then_some(to))
}

/// Returns the processes that remove the files that they synced, one for each sync, as far as windows show the names of
/// either, if nothing else can keep such a file.
fn removing(recording: &Recording, semantics: &Semantics) -> Map<u32, Set<String>> {
    let mut counts: Map<u32, (u64, u64)> = Map::default();
    for row in &recording.rows {
        let (syncs, removals) = counts.entry(row.process.0).or_default();
        if semantics.lines_of(row.syscall).sets(&SYNCED) {
            *syncs = syncs.saturating_add(done(row));
        } else if removes_name(row.syscall) {
            *removals = removals.saturating_add(done(row));
        }
    }
    counts.retain(|_, (syncs, removals)| *syncs > 0 && *removals as f64 >= EACH * *syncs as f64);
    counts.retain(|process, _| !may_be_kept(*process, recording, semantics));
    let mut names: Map<u32, Names> = Map::default();
    let takes_path = |effect| matches!(effect, Effect::Path { .. });
    let is_of = |lines: &Lines| lines.sets(&SYNCED) || lines.does(takes_path) || lines.may_open;
    let seen = semantics.calls_in_windows(recording, is_of).filter(|o| !counts.is_empty() && o.call.errno().is_none());
    let mut others: Map<String, Set<u32>> = Map::default();
    for observed in seen {
        let process = observed.window.process.0;
        let lines = semantics.lines_of(observed.syscall);
        if lines.may_open {
            let file = observed.call.object(observed.syscall).unwrap_or_default();
            others.entry(last(&file).to_owned()).or_default().insert(process);
        }
        let names = counts.contains_key(&process).then(|| names.entry(process).or_default());
        let Some(names) = names else { continue };
        if lines.sets(&SYNCED) {
            let Some(file) = observed.call.fd.as_deref() else { continue };
            names.synced.entry(file.to_owned()).or_default().insert((observed.call.row, observed.call.nth));
        } else if removes_name(observed.syscall) {
            names.removed.extend(observed.paths(lines.effects(&observed)).next().map(|path| path.into_owned()));
        }
    }
    let opened_by_another = |process: u32, file: &str| {
        others.get(last(file)).is_some_and(|openers| openers.iter().any(|other| *other != process))
    };
    let is_removing = |(process, names): (u32, Names)| {
        let mut by_name: Map<&str, Vec<&str>> = Map::default();
        for file in names.synced.keys() {
            let alike = by_name.entry(last(file)).or_default();
            if alike.len() < ALIKE {
                alike.push(file);
            }
        }
        let was_synced = |path: &&String| {
            by_name
                .get(last(path))
                .into_iter()
                .flatten()
                .find(|file| is_path(path, file))
                .map(|file| (*file).to_owned())
        };
        let both: Set<String> = names.removed.iter().filter_map(|path| was_synced(&path)).collect();
        let shown = names.synced.len() as f64 / counts.get(&process).map_or(1, |(syncs, _)| *syncs).max(1) as f64;
        let enough = both.len() >= REMOVED && both.len() as f64 >= EXPECTED * shown * names.removed.len() as f64;
        let alone = enough && !names.synced.keys().any(|file| opened_by_another(process, file));
        // Where a file that lasts is synced as well, nothing tells its syncs from the others by their row.
        let lasts = names.synced.iter().any(|(file, times)| times.len() > 1 && !both.contains(file));
        (alone && !lasts).then(|| (process, both.iter().map(|file| folder(file).to_owned()).collect()))
    };
    names.into_iter().filter_map(is_removing).collect()
}

/// Names of files in a process's calls in windows.
#[derive(Default)]
struct Names {
    /// Synced files, each with the calls that synced it: rows, and numbers within them.
    synced: Map<String, Set<(RowId, u64)>>,
    removed: Set<String>,
}

/// Returns the last component of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns true if something may keep a file whose name the process removes: another name, by a link or a rename of any
/// file; a child, which has the process's descriptors; a process that got a descriptor in a message; or what the process
/// has a ring do, which no window shows. The counts of such calls are exact.
fn may_be_kept(process: u32, recording: &Recording, semantics: &Semantics) -> bool {
    let Some(image) = recording.processes.get(process as usize) else { return true };
    let rows = || recording.rows.iter().filter(|row| row.process.0 == process && done(row) > 0);
    let forks = |row: &&Row| semantics.lines_of(row.syscall).does(|effect| matches!(effect, Effect::Forks));
    let made: u64 = rows().filter(forks).map(done).fold(0, u64::saturating_add);
    image.is_many()
        || made >= image.threads.max(1)
        || rows().any(|row| {
            let lines = semantics.lines_of(row.syscall);
            lines.names() || lines.has::<Enter>() || may_pass_descriptors(row.syscall)
        })
}

/// The calls of a row in windows.
#[derive(Clone, Copy)]
struct Seen {
    any: bool,
    /// True if one of the calls used something other than a file.
    shown: bool,
    /// True if all the calls waited for nothing outside the process: for its own threads, or for
    /// time to pass in a thread that does not sync.
    own: bool,
}

fn looked_at(recording: &Recording, semantics: &Semantics) -> Vec<Seen> {
    let syncs = |w: &&Window| w.calls.iter().any(|c| semantics.lines_of(recording.row(c.row).syscall).sets(&SYNCED));
    let of = |w: &Window| (w.process.0, w.thread);
    let syncing: Set<(u32, u32)> = recording.windows.iter().filter(syncs).map(of).collect();
    let mut rows = vec![Seen { any: false, shown: false, own: true }; recording.rows.len()];
    for window in &recording.windows {
        let keeps = syncing.contains(&of(window));
        for call in &window.calls {
            let Some(seen) = rows.get_mut(call.row.0 as usize) else { continue };
            let syscall = recording.row(call.row).syscall;
            let own = semantics.lines_of(syscall).line::<OwnWait>(&ObservedCall { window, call, syscall });
            let file = call.fd.as_deref().is_some_and(|f| f.starts_with('/') && !is_device(f));
            seen.any = true;
            seen.shown |= !file;
            seen.own &= own.is_some_and(|own| !(own.sleeps && keeps));
        }
    }
    rows
}

impl Detector for Sync<'_> {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        for step in steps {
            let Some(meaning) = &step.meaning else { continue };
            let process = step.observed.window.process.0;
            if !meaning.line.about.is(&SYNCED) || !matches!(meaning.line.act, Act::Set { .. }) {
                continue;
            }
            let Some(file) = step.observed.call.fd.as_ref().filter(|f| f.starts_with('/')) else { continue };
            let before = !self.synced.insert((process, file.clone()));
            let is_removed = self.removing.get(&process).is_some_and(|folders| folders.contains(folder(file)));
            let owes = (is_removed || before) && !self.silent.contains(&process);
            let (thread, of) = (step.observed.window.thread, (process, file.clone()));
            let is_shared = before && (self.shared.contains(&process) || self.is_for_others(thread, &of));
            if claims.excuse(step.index, ReasonId::SharedSync, is_shared)
                || claims.excuse(step.index, ReasonId::OwesOthers, owes)
            {
            } else if is_removed {
                put(claims, step.index, of_removed());
            } else if before && self.is_of_unknown(&of) {
                claims.leave_out(step.index);
            } else if before {
                // A name that was given before already stood for a whole file. Of one that is replaced again and again, each version
                // may still be wanted.
                let given = name_given(file, steps.get(step.index..).unwrap_or_default());
                let is_named = given.is_some();
                let again = given.is_some_and(|name| !self.replaced.insert((process, name)));
                match self.is_of_replacing(step, (file, is_named), steps) {
                    Some(true) if claims.excuse(step.index, ReasonId::ReplacesFile, !again) => {}
                    Some(replaces) => {
                        let facts = Facts::default().with(Fact::Versions, replaces);
                        put(claims, step.index, Claim { facts, ..claim() });
                    }
                    None => claims.leave_out(step.index),
                }
            }
        }
    }
}

fn claim() -> Claim {
    let about =
        "waits for the disk again and again, though the program writes to no terminal, pipe or socket in between";
    Claim {
        by_wait: true,
        gives_up: "what was stored since the last sync is lost if the box goes down",
        ..Claim::of(Kind::Blocking, about, "store many together and bring them to the disk once")
    }
}

fn of_removed() -> Claim {
    Claim {
        facts: Fact::Removed.into(),
        by_wait: true,
        gives_up: "what the next start could go on with after the box went down",
        ..Claim::of(Kind::Blocking, "waits for the disk for a file that it removes itself", "leave it out")
    }
}
