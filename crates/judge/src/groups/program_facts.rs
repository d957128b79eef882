//! Facts about whole programs that cures ask for, looked up once for all findings.

use crate::collections::hash::{Map, Set};
use crate::evidence::survey::RowView;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use systoll_model::{Process, ProcessId, Recording, RowId, StackId, Sysno, shape};

/// Objects that a process's claimed calls are about, and folders that it lists. Both are looked up when first asked for.
#[derive(Default)]
pub(crate) struct ProgramFacts {
    asked: OnceCell<Map<ProcessId, Map<Arc<str>, Asked>>>,
    listed: OnceCell<Map<ProcessId, Set<Arc<str>>>>,
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
        asked.get(&process).and_then(|of| of.get(object)).is_some_and(|asked| asked.several)
    }

    /// Returns true if a window shows the process listing the folder.
    pub(crate) fn is_listed(&self, (process, folder): (ProcessId, &str), recording: &Recording) -> bool {
        let listed = self.listed.get_or_init(|| listed(recording));
        listed.get(&process).is_some_and(|folders| folders.contains(folder))
    }
}

fn asked(recording: &Recording, views: &[RowView<'_>]) -> Map<ProcessId, Map<Arc<str>, Asked>> {
    let mut all: Map<ProcessId, Map<Arc<str>, Asked>> = Map::default();
    let rows = (0u32..).zip(&recording.rows).zip(views).filter(|(_, view)| !view.claimed.is_empty());
    for ((id, row), view) in rows {
        let of_process = all.entry(row.process).or_default();
        let mut last: Option<&Arc<str>> = None;
        for object in view.claimed.iter().filter_map(|claimed| claimed.claim.object.as_ref()) {
            // Most claims of a row are about the object of the one before.
            if last.is_some_and(|last| Arc::ptr_eq(last, object)) {
                continue;
            }
            last = Some(object);
            let new = || Asked { first: row.context, several: has_several_lines(recording, RowId(id), object) };
            let asked = of_process.entry(object.clone()).or_insert_with(new);
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

fn listed(recording: &Recording) -> Map<ProcessId, Set<Arc<str>>> {
    let lists: Vec<bool> = recording.rows.iter().map(|row| row.syscall == Sysno::named("getdents64")).collect();
    let mut all: Map<ProcessId, Set<Arc<str>>> = Map::default();
    if !lists.contains(&true) {
        return all;
    }
    for window in &recording.windows {
        let listings = window.calls.iter().filter(|call| lists.get(call.row.0 as usize) == Some(&true));
        for folder in listings.filter_map(|call| call.fd.as_ref()) {
            let of_process = all.entry(window.process).or_default();
            if !of_process.contains(folder) {
                of_process.insert(folder.clone());
            }
        }
    }
    all
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
