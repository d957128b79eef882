//! The work of a program's start, by its calls: what it searched, and what it opened and read.

use crate::code::language::CodeLanguage;
use crate::collections::hash::Map;
use crate::semantics::{MISSING, Semantics};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use systoll_model::{FrameClass, Recording, Row, RowId};

/// The code that looks for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Searcher {
    /// The dynamic loader, for libraries.
    Loader,
    /// An interpreter of this language and its scripts, mostly for modules; a shell for commands.
    Language(CodeLanguage),
    /// Other programs.
    Program,
}

/// Names that one kind of code looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Searched {
    /// The code that looked.
    pub by: Searcher,
    /// Number of calls that looked for a name.
    pub asked: u64,
    /// Number of those that found none.
    pub missing: u64,
    /// Processor time of the calls that found none, ns: their part of all such calls' time.
    pub ns: u64,
}

/// What the threads of a starting program did, by their calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartWork {
    /// The searches, those with most misses first. Those that found everything are left out.
    pub searched: Vec<Searched>,
    /// Number of files opened.
    pub opened: u64,
    /// Processor time of opening files and of reading and mapping them, ns.
    pub read_ns: u64,
}

impl StartWork {
    /// Returns the processor time of all calls that found nothing, ns.
    #[must_use]
    pub fn search_ns(&self) -> u64 {
        self.searched.iter().fold(0, |sum, one| sum.saturating_add(one.ns))
    }

    /// Returns the number of calls that found nothing.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.searched.iter().fold(0, |sum, one| sum.saturating_add(one.missing))
    }
}

/// Returns the work of a run that was watched until the program was ready.
pub(super) fn start_work(recording: &Recording, semantics: &Semantics) -> StartWork {
    let mut searched: BTreeMap<Searcher, Searched> = BTreeMap::new();
    let mut work = StartWork::default();
    let about_files = about_files(recording);
    for (id, row) in (0..).map(RowId).zip(&recording.rows) {
        let lines = semantics.lines_of(row.syscall);
        let toll = row.counts.toll_ns.unwrap_or(0);
        let missing =
            MISSING.iter().filter_map(|errno| row.counts.errors.get(errno)).fold(0u64, |a, b| a.saturating_add(*b));
        let missing = missing.min(row.counts.calls);
        let in_vain = (toll as f64 * missing as f64 / row.counts.calls.max(1) as f64) as u64;
        if lines.looks_for_names() {
            let by = searcher(recording, row);
            let sum = searched.entry(by).or_insert(Searched { by, asked: 0, missing: 0, ns: 0 });
            sum.asked = sum.asked.saturating_add(row.counts.calls);
            sum.missing = sum.missing.saturating_add(missing);
            sum.ns = sum.ns.saturating_add(in_vain);
        }
        if lines.may_open {
            work.opened = work.opened.saturating_add(row.counts.calls.saturating_sub(row.counts.failed()));
            work.read_ns = work.read_ns.saturating_add(toll.saturating_sub(in_vain));
        } else if lines.may_read_files() && about_files.get(&id).is_some_and(|(files, all)| files * 2 > *all) {
            work.read_ns = work.read_ns.saturating_add(toll);
        }
    }
    work.searched = searched.into_values().filter(|sum| sum.missing > 0).collect();
    work.searched.sort_by_key(|sum| (Reverse(sum.missing), sum.by));
    work
}

/// Returns the code that makes a row's calls.
fn searcher(recording: &Recording, row: &Row) -> Searcher {
    let frames = recording.stacks.get(row.context.0 as usize).map_or(&[][..], |stack| &stack.frames);
    let class = |at: usize| recording.frames.get(frames.get(at)?.0 as usize).map(|frame| frame.class);
    if class(0) == Some(FrameClass::Loader) {
        return Searcher::Loader;
    }
    let process = recording.processes.get(row.process.0 as usize);
    process.and_then(CodeLanguage::of_program).map_or(Searcher::Program, Searcher::Language)
}

/// Counts each row's sampled calls: those about files, and all. An anonymous mapping is about none.
fn about_files(recording: &Recording) -> Map<RowId, (u64, u64)> {
    let mut seen: Map<RowId, (u64, u64)> = Map::default();
    for call in recording.windows.iter().flat_map(|window| &window.calls) {
        let (files, all) = seen.entry(call.row).or_default();
        *files += u64::from(call.fd.as_deref().is_some_and(|name| name.starts_with('/') && !name.starts_with("/dev/")));
        *all += 1;
    }
    seen
}
