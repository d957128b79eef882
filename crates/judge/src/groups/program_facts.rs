//! Facts about whole programs that cures ask for, looked up once for all findings.

use crate::collections::hash::{Map, Set};
use crate::evidence::survey::RowView;
use crate::semantics::{Effect, Lines, ObservedCall, Semantics, Way, is_stored};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use systoll_model::{Errno, Process, ProcessId, Recording, RowId, StackId, shape};

/// Objects that a process's claimed calls are about, and folders that it lists. Both are looked up when first asked for.
#[derive(Default)]
pub(crate) struct ProgramFacts {
    asked: OnceCell<Map<(ProcessId, Arc<str>), Asked>>,
    listed: OnceCell<Set<(ProcessId, Arc<str>)>>,
    free_names: OnceCell<Set<RowId>>,
    in_place: OnceCell<Set<RowId>>,
}

/// The places whose claimed calls are about an object.
struct Asked {
    first: StackId,
    several: bool,
}

impl ProgramFacts {
    /// Returns true if claimed calls of several contexts of the process, or of several lines of one, are about the object.
    pub(crate) fn is_of_several_places(
        &self,
        (process, object): (ProcessId, &str),
        recording: &Recording,
        views: &[RowView<'_>],
    ) -> bool {
        let asked = self.asked.get_or_init(|| asked(recording, views));
        asked.get(&(process, object.into())).is_some_and(|asked| asked.several)
    }

    /// Returns true if a window shows the process listing the folder.
    pub(crate) fn is_listed(
        &self,
        (process, folder): (ProcessId, &str),
        recording: &Recording,
        semantics: &Semantics,
    ) -> bool {
        self.listed.get_or_init(|| listed(recording, semantics)).contains(&(process, folder.into()))
    }

    /// Returns true if a window shows that the row's calls look for a name that is free, to make a file of that name.
    pub(crate) fn seeks_free_name(&self, row: RowId, recording: &Recording, semantics: &Semantics) -> bool {
        self.free_names.get_or_init(|| free_names(recording, semantics)).contains(&row)
    }

    /// Returns true if windows show that the row's calls read or write parts of a file that the program changes in
    /// place.
    pub(crate) fn is_in_place(&self, row: RowId, recording: &Recording, semantics: &Semantics) -> bool {
        self.in_place.get_or_init(|| in_place(recording, semantics)).contains(&row)
    }
}

fn asked(recording: &Recording, views: &[RowView<'_>]) -> Map<(ProcessId, Arc<str>), Asked> {
    let mut all: Map<(ProcessId, Arc<str>), Asked> = Map::default();
    let rows = (0u32..).zip(&recording.rows).zip(views).filter(|(_, view)| !view.claimed.is_empty());
    for ((id, row), view) in rows {
        let mut last: Option<&Arc<str>> = None;
        for object in view.claimed.iter().filter_map(|claimed| claimed.claim.object.as_ref()) {
            // Most claims of a row are about the object of the one before.
            if last.is_some_and(|last| Arc::ptr_eq(last, object)) {
                continue;
            }
            last = Some(object);
            let new = || Asked { first: row.context, several: has_several_lines(recording, RowId(id), object) };
            let asked = all.entry((row.process, object.clone())).or_insert_with(new);
            asked.several |= asked.first != row.context;
        }
    }
    all
}

/// Returns true if calls of several lines of the row are about the object, or about objects of its shape where it has no
/// samples of its own.
fn has_several_lines(recording: &Recording, row: RowId, object: &str) -> bool {
    let samples = recording.object_samples_of(row);
    let lines = |name: &str| {
        let of_object = samples.iter().filter(|sample| sample.object.as_deref() == Some(name));
        of_object.filter_map(|sample| sample.line).collect::<BTreeSet<_>>().len()
    };
    samples.len() > 1 && (lines(object) > 1 || lines(&shape(object)) > 1)
}

fn listed(recording: &Recording, semantics: &Semantics) -> Set<(ProcessId, Arc<str>)> {
    let lists = semantics.calls_in_windows(recording, Lines::lists);
    lists.filter_map(|listing| Some((listing.window.process, listing.call.fd.clone()?))).collect()
}

/// Returns rows that ask whether names of one form exist (`a-1`, `a-2`, …) up to one that does not, of which the program
/// then makes a file.
fn free_names(recording: &Recording, semantics: &Semantics) -> Set<RowId> {
    let mut rows = Set::default();
    for window in &recording.windows {
        let mut there: Option<String> = None;
        let mut free: Option<(String, RowId)> = None;
        for call in &window.calls {
            let observed = ObservedCall { window, call, syscall: recording.row(call.row).syscall };
            let lines = semantics.lines_of(observed.syscall);
            let makes = || lines.effects(&observed).iter().any(|effect| matches!(effect, Effect::Path { .. }));
            if lines.asks_about_paths() {
                let Some(path) = call.object(observed.syscall) else { continue };
                if call.result == Some(0) {
                    there = Some(path);
                } else if call.errno() == Some(Errno::ENOENT)
                    && there.as_ref().is_some_and(|name| *name != path && form(name).eq(form(&path)))
                {
                    free = Some((path, call.row));
                }
            } else if let Some((_, row)) =
                free.take_if(|(name, _)| makes() && call.object(observed.syscall).as_ref() == Some(name))
            {
                rows.insert(row);
            }
        }
    }
    rows
}

/// Returns a name's form: its text without its numbers.
fn form(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|letter| !letter.is_ascii_digit())
}

/// One of so many writes to a file, at least, must come at another place than the one before, or after a read of the
/// file, for it to be changed in place.
const PLACES: usize = 64;

/// Returns rows that read or write files which the program changes in place: between two writes it reads, or moves the
/// position elsewhere.
fn in_place(recording: &Recording, semantics: &Semantics) -> Set<RowId> {
    // By row: all transfers between a file's first write in a window and its last, and those at another place.
    let mut counts: Map<RowId, (usize, usize)> = Map::default();
    for window in &recording.windows {
        let mut files: Map<&str, Place> = Map::default();
        for call in &window.calls {
            let Some(file) = call.fd.as_deref().filter(|name| is_stored(name)) else { continue };
            let Some(moved) = call.result.filter(|result| *result >= 0) else { continue };
            let observed = ObservedCall { window, call, syscall: recording.row(call.row).syscall };
            let lines = semantics.lines_of(observed.syscall);
            let place = files.entry(file).or_default();
            let Some(transfer) = lines.transfer(&observed) else {
                if lines.goes(&observed) {
                    place.left |= place.at != Some(moved);
                    place.at = Some(moved);
                }
                continue;
            };
            if transfer.way == Way::In {
                place.left |= place.writes;
                place.reads.push(call.row);
            } else {
                if let Some(at) = transfer.at.map(|at| observed.arg(at) as i64) {
                    place.left |= place.at.is_some_and(|known| known != at);
                    place.at = Some(at);
                }
                for row in place.reads.drain(..).filter(|_| place.writes) {
                    let (all, elsewhere) = counts.entry(row).or_default();
                    (*all, *elsewhere) = (*all + 1, *elsewhere + 1);
                }
                let (all, elsewhere) = counts.entry(call.row).or_default();
                *all += 1;
                *elsewhere += usize::from(place.left && place.writes);
                (place.left, place.writes) = (false, true);
            }
            place.at = place.at.map(|at| at.saturating_add(moved));
        }
    }
    let often = counts.into_iter().filter(|(_, (all, elsewhere))| *elsewhere > 1 && elsewhere * PLACES >= *all);
    often.map(|(row, _)| row).collect()
}

/// The place in a file that a window's calls have reached.
#[derive(Default)]
struct Place {
    /// The position, where it is known.
    at: Option<i64>,
    /// True if the window shows a write to the file.
    writes: bool,
    /// True if the place of the last write was left.
    left: bool,
    /// Rows that have read the file since the last write.
    reads: Vec<RowId>,
}

/// Returns true if a text filter's command line has names of files: a word beside its pattern or script. A number is
/// taken for an option's value (`grep -m 1 word`).
pub(crate) fn is_given_files(image: &Process) -> bool {
    let is_word = |word: &&Arc<str>| !word.starts_with('-') && !word.bytes().all(|byte| byte.is_ascii_digit());
    image.argv.iter().skip(1).filter(is_word).nth(1).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{FrameId, ObjectSample};

    #[test]
    fn several_lines_of_one_context_are_several_places() {
        let asked = |lines: &[u32], sampled: &str| {
            let sample = |line: &u32| ObjectSample {
                row: RowId(0),
                object: Some(sampled.into()),
                line: Some(FrameId(*line)),
                above: StackId(0),
                whole: StackId(0),
                looks: 4,
                weight: 400,
                squares: 40_000,
            };
            let recording = Recording { object_samples: lines.iter().map(sample).collect(), ..Recording::default() };
            has_several_lines(&recording, RowId(0), "spool/m12")
        };
        assert!(asked(&[13, 14], "spool/m12") && asked(&[13, 14], "spool/m#"));
        assert!(!asked(&[13, 13], "spool/m12") && !asked(&[13, 14], "spool/log"));
    }

    #[test]
    fn what_a_filter_reads_is_told_by_its_words() {
        let given = |command: &str| {
            is_given_files(&Process { argv: command.split(' ').map(Into::into).collect(), ..Process::default() })
        };
        for of_files in ["grep -q word a.txt", "sed -i s/a/b/ a.txt b.txt", "sed -n 1p a.txt", "sed -e 1p a.txt"] {
            assert!(given(of_files), "{of_files}");
        }
        for of_input in ["grep -q word", "grep -m 1 word", "sed s/a/b/", "sed -n -e 1p", "grep"] {
            assert!(!given(of_input), "{of_input}");
        }
    }
}
