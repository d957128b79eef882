//! Computes the changes between two sides.

use crate::change::{Change, Figures, Side, SourcePlace, Verdict};
use crate::findings::{self, FindingChange, Judged};
use crate::key::{By, Key};
use crate::names::Names;
use crate::objects::Objects;
use crate::range::Range;
use crate::rounds::{self, RoundChange};
use crate::table::{Cell, Keys, Table, missed_by_row, table};
use crate::vary::{Chance, chance, in_runtime};
use crate::waits::WallChange;
use crate::{attribution, lines, waits};
use std::collections::{BTreeMap, BTreeSet};
use systoll_model::{BackendKind, Counts, Recording};

/// The totals of one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// The command of the side's first recording.
    pub command: Vec<String>,
    /// Number of the side's recordings.
    pub runs: usize,
    /// True if the counts of all recordings are exact.
    pub exact: bool,
    /// Number of all calls.
    pub calls: Range,
    /// Cost of the calls in the median run, ns.
    pub toll_ns: Option<u64>,
    /// The program's own processor time in the median run, ns.
    pub own_cpu_ns: Option<u64>,
}

/// A reason why the sides are less comparable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A side has one recording: variation can't be distinguished from changes.
    OneRun,
    /// A recording of one side (`new` or `old`) is not exact, for this reason.
    NotExact(&'static str, String),
    /// The sides were recorded under different kernels or on different processors.
    Boxes(String, String),
    /// The sides were recorded on machines of different kinds, by name: calls are compared by name, and a library calls
    /// `open` on one and `openat` on the other.
    Machines(&'static str, &'static str),
    /// The sides were watched by different backends.
    Backends(&'static str, &'static str),
}

/// The changes between two sides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff {
    /// The granularity of the comparison.
    pub by: By,
    /// The old side.
    pub old: Summary,
    /// The new side.
    pub new: Summary,
    /// Changed rows, costliest first.
    pub changed: Vec<Change>,
    /// Rows that differ, but vary by themselves.
    pub varying: Vec<Change>,
    /// Number of rows that are the same on both sides.
    pub same: usize,
    /// Number of rows (by system call, public function and caller) that changed although no row of
    /// this granularity did.
    pub hidden: usize,
    /// Findings that only the new side has, in rows that changed.
    pub findings_new: Vec<FindingChange>,
    /// Findings that only the old side has, in rows that changed.
    pub findings_gone: Vec<FindingChange>,
    /// Rounds that came, went, or have another length or number, among rows that changed; costliest
    /// first.
    pub rounds: Vec<RoundChange>,
    /// The change of the elapsed time; `None` if it did not change, or is not known.
    pub wall: Option<WallChange>,
    /// Reasons why the sides are less comparable.
    pub notes: Vec<Note>,
}

impl Diff {
    /// Returns true if nothing changed beyond the variation.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.findings_new.is_empty() && self.findings_gone.is_empty() && self.hidden == 0
    }
}

/// Returns the changes from `old` to `new`.
pub fn diff(old: Side<'_>, new: Side<'_>, by: By) -> Diff {
    let names = Names::of(old.recordings, new.recordings);
    let row_tables = Tables::of(old, new, By::Row, &names);
    let rows = row_tables.changes();
    let changed_rows: BTreeSet<&Key> = rows.iter().filter(|c| c.verdict == Verdict::Changed).map(|c| &c.key).collect();
    let judged = [old, new].map(|side| Judged::of(side, &names, &changed_rows));
    let (findings_new, findings_gone) = findings::changes(&judged[0], &judged[1]);
    let rounds = rounds::changes(old, new, &names, &changed_rows);
    let tables = (by != By::Row).then(|| Tables::of(old, new, by, &names));
    let same = tables.as_ref().unwrap_or(&row_tables).same();
    let mut all = tables.map_or_else(|| rows.clone(), |t| t.changes());
    attribution::set_apart_as_rows(&mut all, &rows, by);
    if by == By::Syscall {
        for change in &mut all {
            let made = rows.iter().filter(|r| r.key.syscall == change.key.syscall && r.verdict == Verdict::Changed);
            change.beneath = made.cloned().collect();
        }
    }
    let (changed, varying): (Vec<_>, Vec<_>) = all.into_iter().partition(|c| c.verdict == Verdict::Changed);
    let hidden = match by {
        By::Syscall => {
            let told: BTreeSet<_> = changed.iter().map(|c| c.key.syscall).collect();
            rows.iter().filter(|r| r.verdict == Verdict::Changed && !told.contains(&r.key.syscall)).count()
        }
        _ if changed.is_empty() => changed_rows.len(),
        _ => 0,
    };
    Diff {
        by,
        old: summary(old),
        new: summary(new),
        changed,
        varying,
        same,
        hidden,
        findings_new,
        findings_gone,
        rounds,
        wall: waits::change(old, new),
        notes: notes(old, new),
    }
}

/// Holds both sides' calls, by key.
struct Tables<'a> {
    old: Vec<Table>,
    new: Vec<Table>,
    sides: (Side<'a>, Side<'a>),
}

impl<'a> Tables<'a> {
    fn of(old: Side<'a>, new: Side<'a>, by: By, names: &Names) -> Self {
        let of = |side: Side<'_>| side.recordings.iter().map(|r| table(r, by, names)).collect::<Vec<_>>();
        let mut tables = Self { old: of(old), new: of(new), sides: (old, new) };
        if by == By::Line {
            tables.follow_lines();
            tables.add_unseen_lines(names);
        }
        tables
    }

    /// Gives lines of the new side the numbers they had on the old side.
    fn follow_lines(&mut self) {
        let lines = |tables: &[Table]| keys(tables).into_iter().map(|k| (k.clone(), calls(tables, k))).collect();
        let moved = lines::moved(lines(&self.old), lines(&self.new));
        for table in &mut self.new {
            *table = std::mem::take(table)
                .into_iter()
                .map(|(key, cell)| (moved.get(&key).cloned().unwrap_or(key), cell))
                .collect();
        }
    }

    /// Adds calls to a line that one recording shows and another lacks: the calls that the other's
    /// samples may have missed.
    fn add_unseen_lines(&mut self, names: &Names) {
        let mut rows: BTreeMap<Key, BTreeSet<Key>> = BTreeMap::new();
        for (tables, side) in [(&self.old, self.sides.0), (&self.new, self.sides.1)] {
            for (table, recording) in tables.iter().zip(side.recordings) {
                let keys = Keys::new(recording, names);
                for (key, cell) in table.iter().filter(|(key, _)| key.line.is_some()) {
                    let of = cell.rows.iter().filter_map(|id| recording.rows.get(id.0 as usize));
                    rows.entry(key.clone()).or_default().extend(of.map(|row| keys.native(row)));
                }
            }
        }
        for (tables, side) in [(&mut self.old, self.sides.0), (&mut self.new, self.sides.1)] {
            for (table, recording) in tables.iter_mut().zip(side.recordings) {
                let missed = missed_by_row(recording, names);
                for (key, rows) in rows.iter().filter(|(key, _)| !table.contains_key(*key)).collect::<Vec<_>>() {
                    let high =
                        rows.iter().filter_map(|row| missed.get(row)).fold(0u64, |sum, n| sum.saturating_add(*n));
                    if high > 0 {
                        table.insert(key.clone(), Cell { high, ..Cell::default() });
                    }
                }
            }
        }
    }

    fn keys(&self) -> BTreeSet<&Key> {
        keys(&self.old).into_iter().chain(keys(&self.new)).collect()
    }

    fn same(&self) -> usize {
        let same = |key: &&&Key| {
            calls(&self.old, key) == calls(&self.new, key) && failed(&self.old, key) == failed(&self.new, key)
        };
        self.keys().iter().filter(same).count()
    }

    /// Returns the rows that differ, those with the largest weight first.
    fn changes(&self) -> Vec<Change> {
        let mut changes: Vec<Change> = self.keys().into_iter().filter_map(|key| self.change(key)).collect();
        let objects =
            [self.sides.0, self.sides.1].map(|side| side.recordings.iter().map(Objects::of).collect::<Vec<_>>());
        for change in &mut changes {
            let more_on_new = change.new.calls.median >= change.old.calls.median;
            let (tables, side, objects) = if more_on_new {
                (&self.new, self.sides.1, &objects[1])
            } else {
                (&self.old, self.sides.0, &objects[0])
            };
            let found = tables.iter().zip(side.recordings).zip(objects).rev();
            let found =
                found.filter_map(|((table, recording), objects)| Some((table.get(&change.key)?, recording, objects)));
            for (cell, recording, objects) in found.take(1) {
                change.place = place(recording, cell);
                change.object = objects.of_rows(&cell.rows);
            }
        }
        attribution::set_apart(&mut changes);
        changes.sort_by(|a, b| b.weight().total_cmp(&a.weight()).then_with(|| a.key.cmp(&b.key)));
        changes
    }

    fn change(&self, key: &Key) -> Option<Change> {
        let (old, new) = (figures(&self.old, key), figures(&self.new, key));
        if old.calls == new.calls && old.failed == new.failed {
            return None;
        }
        Some(Change {
            verdict: self.verdict(key, &old, &new),
            key: key.clone(),
            old,
            new,
            place: None,
            object: None,
            beneath: Vec::new(),
        })
    }

    fn verdict(&self, key: &Key, old: &Figures, new: &Figures) -> Verdict {
        let (a, b) = (self.by_chance(key, false), self.by_chance(key, true));
        let most = a.calls.high.max(b.calls.high);
        let runs = self.old.len().min(self.new.len());
        // A count that depends on chance alone must differ by much, another count by any amount.
        let firm = a.firm.differs(b.firm, 0);
        let slack = match (most, firm) {
            (0, _) | (_, true) => 0,
            (most, false) if runs > 1 => (most / 2).max(16),
            // The threads of a runtime poll for as long as a run takes.
            (_, false) if a.runtime || b.runtime => u64::MAX,
            (most, false) => (most / 16 * 15).max(256),
        };
        if old.calls.differs(new.calls, slack) || old.failed.differs(new.failed, slack) {
            return Verdict::Changed;
        }
        match a.chance.or(b.chance) {
            Some(chance) if runs < 2 => Verdict::ByChance(chance),
            _ => Verdict::Varies,
        }
    }

    fn by_chance(&self, key: &Key, new: bool) -> ByChance {
        let (tables, side) = if new { (&self.new, self.sides.1) } else { (&self.old, self.sides.0) };
        let mut main = None;
        let mut runtime = false;
        let (mut firm, mut by) = (Vec::new(), Vec::new());
        for (table, recording) in tables.iter().zip(side.recordings) {
            let Some(cell) = table.get(key) else {
                firm.push(0);
                by.push(0);
                continue;
            };
            let (mut calls, mut of_runtime) = (0u64, 0u64);
            for row in cell.rows.iter().filter_map(|id| recording.rows.get(id.0 as usize)) {
                if let Some(chance) = chance(recording, row) {
                    calls = calls.saturating_add(row.counts.calls);
                    main.get_or_insert(chance);
                    of_runtime =
                        of_runtime.saturating_add(if in_runtime(recording, row) { row.counts.calls } else { 0 });
                }
            }
            runtime |= of_runtime > calls / 2;
            by.push(calls.min(cell.calls));
            firm.push(cell.calls.saturating_sub(calls));
        }
        ByChance { chance: main, runtime, calls: Range::of(&by), firm: Range::of(&firm) }
    }
}

/// A key's calls on one side: those whose number depends on chance (`calls`), and the others
/// (`firm`).
struct ByChance {
    chance: Option<Chance>,
    /// True if most of the calls are made by a language's runtime itself.
    runtime: bool,
    calls: Range,
    firm: Range,
}

fn keys(tables: &[Table]) -> BTreeSet<&Key> {
    tables.iter().flat_map(|t| t.keys()).collect()
}

fn range(tables: &[Table], key: &Key, of: impl Fn(&Cell) -> u64) -> Range {
    Range::of(&tables.iter().map(|t| t.get(key).map_or(0, &of)).collect::<Vec<_>>())
}

/// Returns the range of a key's calls, with the uncertainty of samples.
fn calls(tables: &[Table], key: &Key) -> Range {
    let (low, high) = (range(tables, key, |c| c.low), range(tables, key, |c| c.high));
    Range { low: low.low, median: range(tables, key, |c| c.calls).median, high: high.high }
}

fn failed(tables: &[Table], key: &Key) -> Range {
    range(tables, key, |c| c.failed)
}

fn figures(tables: &[Table], key: &Key) -> Figures {
    let mut tolls: Vec<u64> = tables.iter().filter_map(|t| t.get(key)?.toll_ns).collect();
    tolls.sort_unstable();
    Figures { calls: calls(tables, key), failed: failed(tables, key), toll_ns: tolls.get(tolls.len() / 2).copied() }
}

/// Returns the place of the row with most calls.
fn place(recording: &Recording, cell: &Cell) -> Option<SourcePlace> {
    let rows = cell.rows.iter().filter_map(|id| recording.rows.get(id.0 as usize));
    let row = rows.filter(|r| r.user.is_some()).max_by_key(|r| r.counts.calls)?;
    recording.frames.get(row.user?.0 as usize)?.location().map(SourcePlace::from)
}

fn summary(side: Side<'_>) -> Summary {
    let totals: Vec<Counts> = side.recordings.iter().map(Recording::total).collect();
    let middle = |mut of: Vec<u64>| {
        of.sort_unstable();
        of.get(of.len() / 2).copied()
    };
    Summary {
        command: side.recordings.first().map(|r| r.header.command.clone()).unwrap_or_default(),
        runs: side.recordings.len(),
        exact: side.recordings.iter().all(Recording::exact),
        calls: Range::of(&totals.iter().map(|t| t.calls).collect::<Vec<_>>()),
        toll_ns: middle(totals.iter().filter_map(|t| t.toll_ns).collect()),
        own_cpu_ns: middle(side.recordings.iter().filter_map(Recording::own_cpu_ns).collect()),
    }
}

fn notes(old: Side<'_>, new: Side<'_>) -> Vec<Note> {
    let mut notes = Vec::new();
    if old.recordings.len().min(new.recordings.len()) < 2 {
        notes.push(Note::OneRun);
    }
    for (name, side) in [("old", old), ("new", new)] {
        if let Some(recording) = side.recordings.iter().find(|r| !r.exact()) {
            let why = recording.problems.iter().find(|p| p.kind.spoils_exactness());
            notes.push(Note::NotExact(name, why.map_or_else(|| "calls were lost".into(), |p| p.text.clone())));
        }
    }
    if let (Some(a), Some(b)) = (old.recordings.first(), new.recordings.first()) {
        let on = |r: &Recording| format!("{}, Linux {}", r.header.host.cpu, r.header.host.kernel);
        if on(a) != on(b) {
            notes.push(Note::Boxes(on(a), on(b)));
        }
        if let (Some(a), Some(b)) = (a.header.machine, b.header.machine)
            && a != b
        {
            notes.push(Note::Machines(a.name(), b.name()));
        }
        let (a, b): (BackendKind, BackendKind) = (a.header.backend, b.header.backend);
        if a != b {
            notes.push(Note::Backends(a.name(), b.name()));
        }
    }
    notes
}
