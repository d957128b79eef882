//! Counts a recording's calls by key.

use crate::key::{By, Key};
use crate::names::Names;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use systoll_judge::{Common, Group, grouped};
use systoll_model::{Counts, FrameId, Recording, Row, RowId};

/// Largest number of calls of a row that may have no sample of a script's line.
const FEW_LOOKS: u64 = 64;

/// The calls of one key in one recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) calls: u64,
    /// Lower bound of `calls`, if they come from samples.
    pub(crate) low: u64,
    /// Upper bound of `calls`, if they come from samples.
    pub(crate) high: u64,
    pub(crate) failed: u64,
    pub(crate) toll_ns: Option<u64>,
    /// The rows of the calls.
    pub(crate) rows: Vec<RowId>,
}

impl Cell {
    fn add(&mut self, id: RowId, counts: &Counts) {
        self.calls = self.calls.saturating_add(counts.calls);
        (self.low, self.high) = (self.calls, self.calls);
        self.failed = self.failed.saturating_add(counts.failed());
        self.toll_ns = sum(self.toll_ns, counts.toll_ns);
        self.rows.push(id);
    }

    fn add_group(&mut self, group: Group) {
        self.calls = self.calls.saturating_add(group.calls);
        self.low = self.low.saturating_add(group.low);
        self.high = self.high.saturating_add(group.high);
        // If only samples distinguish the calls, it is not known which ones failed.
        let failed = group.failed.filter(|_| group.low == group.high).unwrap_or(0);
        self.failed = self.failed.saturating_add(failed);
        self.toll_ns = sum(self.toll_ns, group.toll_ns);
        self.rows.extend(group.rows);
    }
}

pub(crate) fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

pub(crate) type Table = BTreeMap<Key, Cell>;

/// Returns the calls of `recording` by key.
pub(crate) fn table(recording: &Recording, by: By, names: &Names) -> Table {
    let mut table = Table::new();
    let judged = match by {
        By::Syscall | By::Row | By::Caller => {
            let keys = Keys::new(recording, names);
            for (id, row) in (0..).map(RowId).zip(&recording.rows).filter(|(_, r)| r.counts.calls > 0) {
                let key = match by {
                    By::Row => keys.row(row),
                    By::Caller => Key { syscall: None, api: None, program: None, ..keys.row(row) },
                    _ => Key { syscall: Some(row.syscall), ..Key::default() },
                };
                table.entry(key).or_default().add(id, &row.counts);
            }
            return table;
        }
        By::Api => systoll_judge::By::Api,
        By::Line => systoll_judge::By::Line,
        By::Library => systoll_judge::By::Library,
        By::Process => systoll_judge::By::Process,
    };
    let keys = Keys::new(recording, names);
    let scripts = by == By::Line && recording.rows.iter().any(|r| !r.lines.is_empty());
    for mut group in grouped(recording, judged, None).groups {
        if scripts {
            group.low = group.low.saturating_sub(unseen(recording, &group));
        }
        table.entry(keys.group(&group.common)).or_default().add_group(group);
    }
    table
}

/// Returns the number of a group's calls that another run may attribute to a script's line: the
/// calls of rows so small that no line was sampled.
fn unseen(recording: &Recording, group: &Group) -> u64 {
    let rows = group.rows.iter().filter_map(|id| recording.rows.get(id.0 as usize));
    let few = rows.filter(|r| r.lines.is_empty() && r.counts.calls <= FEW_LOOKS);
    few.fold(0u64, |sum, r| sum.saturating_add(r.counts.calls))
}

/// Returns, for each row, the number of calls of one line that the samples may have missed.
pub(crate) fn missed_by_row(recording: &Recording, names: &Names) -> BTreeMap<Key, u64> {
    let keys = Keys::new(recording, names);
    let mut missed: BTreeMap<Key, u64> = BTreeMap::new();
    for row in recording.rows.iter().filter(|r| !r.lines.is_empty() || r.counts.calls <= FEW_LOOKS) {
        let looks = row.lines.iter().fold(0u64, |sum, line| sum.saturating_add(line.looks));
        let sum = missed.entry(keys.native(row)).or_default();
        *sum =
            sum.saturating_add((row.counts.calls as f64 * systoll_judge::unseen_share(looks, row.counts.calls)) as u64);
    }
    missed
}

/// Makes keys of a recording's rows, and keeps the keys of frames.
pub(crate) struct Keys<'a> {
    recording: &'a Recording,
    names: &'a Names,
    callers: std::cell::RefCell<HashMap<FrameId, Key>>,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(recording: &'a Recording, names: &'a Names) -> Self {
        Self { recording, names, callers: Default::default() }
    }

    /// Returns a row's exact key, without a script's line: samples only estimate which line made a
    /// call.
    pub(crate) fn row(&self, row: &Row) -> Key {
        let caller = caller(self.recording, row).map(|frame| self.caller(frame)).unwrap_or_default();
        Key {
            syscall: Some(row.syscall),
            api: row.api.clone(),
            program: self.names.program(self.recording, row.process),
            ..caller
        }
    }

    /// Returns the key from the native stack, which is the same whether scripts' lines were sampled
    /// or not.
    pub(crate) fn native(&self, row: &Row) -> Key {
        let caller = last_of_context(self.recording, row).map(|frame| self.caller(frame)).unwrap_or_default();
        Key { syscall: Some(row.syscall), program: self.names.program(self.recording, row.process), ..caller }
    }

    /// Returns a frame's function and library.
    fn caller(&self, id: FrameId) -> Key {
        if let Some(known) = self.callers.borrow().get(&id) {
            return known.clone();
        }
        let key = Key { file: None, line: None, ..self.place(id) };
        self.callers.borrow_mut().insert(id, key.clone());
        key
    }

    fn place(&self, id: FrameId) -> Key {
        let Some(frame) = self.recording.frames.get(id.0 as usize) else { return Key::default() };
        let Some(place) = frame.location() else { return Key::default() };
        Key {
            function: Some(self.names.function(self.recording, frame, &place.function)),
            library: frame.module.and_then(|id| self.names.module(self.recording, id)),
            file: place.file.as_deref().map(|f| Arc::from(f.rsplit('/').next().unwrap_or(f))),
            line: place.line,
            ..Key::default()
        }
    }

    fn group(&self, common: &Common) -> Key {
        match common {
            Common::Function(id) => self.caller(*id),
            Common::Line(id) => self.place(*id),
            Common::Api(api, _) => Key { api: Some(api.clone()), ..Key::default() },
            Common::Library(id) => Key { library: self.names.module(self.recording, *id), ..Key::default() },
            Common::Process(id) => Key { program: self.names.program(self.recording, *id), ..Key::default() },
            Common::Thread { .. } | Common::File(_) | Common::Unknown | Common::None => Key::default(),
        }
    }
}

/// Returns the calling frame in the exact context: for scripts, the frame of the interpreter's
/// function.
pub(crate) fn caller(recording: &Recording, row: &Row) -> Option<FrameId> {
    if row.lines.is_empty() {
        return row.user;
    }
    last_of_context(recording, row).or(row.user)
}

fn last_of_context(recording: &Recording, row: &Row) -> Option<FrameId> {
    recording.stacks.get(row.context.0 as usize).and_then(|s| s.frames.last().copied())
}
