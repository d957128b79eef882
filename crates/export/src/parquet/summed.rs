//! Adds up the tables of several runs of one service: rows with the same texts are one.

use super::folders::{self, Labels};
use super::{of_rows, row_of, run, write_table};
use crate::comma_separated::Cell;
use crate::error::ExportError;
use crate::judged_recording::JudgedRecording;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Columns of numbers that tell rows apart, that are not known of a sum, and of which the largest counts. All others are
/// added up.
const KEYS: [&str; 1] = ["line"];
const UNKNOWN: [&str; 2] = ["row", "pid"];
const LARGEST: [&str; 1] = ["longest_ns"];
/// Columns of texts that are kept in rows for which there was no room.
const KEPT: [&str; 3] = ["syscall", "cause", "kind"];
/// Columns of a run that are those of the first one, that are added up, and of which the smallest counts. All others are those
/// of the latest run in which they are known.
const OF_RUN_FIRST: [&str; 3] = ["run", "started_unix", "command"];
const OF_RUN_ADDED: [&str; 5] = ["wall_ns", "user_ns", "sys_ns", "own_cpu_ns", "lost"];
const OF_RUN_SMALLEST: [&str; 1] = ["exact"];

/// Runs of one service, added up.
#[derive(Clone, Debug, Default)]
pub struct SummedRuns {
    /// Path of the table, by the first run.
    place: PathBuf,
    command: String,
    of_run: Vec<Cell>,
    rows: BTreeMap<Vec<Cell>, Vec<Cell>>,
}

impl SummedRuns {
    /// Adds a run. Rows that differ from all others are kept as they are as long as there are less than `room` of these;
    /// others are added up by system call and cause.
    pub fn add(&mut self, judged: &JudgedRecording<'_>, labels: &Labels, room: usize) {
        let of_run = run::of_run(judged, labels);
        if self.of_run.is_empty() {
            (self.place, self.command) = (folders::place(judged.recording, labels), judged.command());
            self.of_run = of_run;
        } else {
            for ((column, sum), cell) in run::OF_RUNS.iter().zip(&mut self.of_run).zip(&of_run) {
                match column.name {
                    name if OF_RUN_ADDED.contains(&name) => add(sum, cell),
                    name if OF_RUN_SMALLEST.contains(&name) => *sum = sum.clone().min(cell.clone()),
                    name if OF_RUN_FIRST.contains(&name) => {}
                    _ if is_unknown(cell) => {}
                    _ => *sum = cell.clone(),
                }
            }
        }
        let most = self.rows.len().saturating_add(room);
        for told in judged.rows().filter(|told| told.row.counts.calls > 0 || told.row.counts.unreturned > 0) {
            let mut row = row_of(judged, &told);
            if self.rows.len() >= most && !self.rows.contains_key(&key_of(&row)) {
                fold(&mut row);
            }
            self.add_row(row);
        }
    }

    fn add_row(&mut self, mut row: Vec<Cell>) {
        let key = key_of(&row);
        let Some(sum) = self.rows.get_mut(&key) else {
            for (_, cell) in of_rows().zip(&mut row).filter(|(column, _)| UNKNOWN.contains(&column.name)) {
                *cell = Cell::Number(None);
            }
            self.rows.insert(key, row);
            return;
        };
        for ((column, sum), cell) in of_rows().zip(sum).zip(&row) {
            match column.name {
                name if column.is_text || KEYS.contains(&name) || UNKNOWN.contains(&name) => {}
                name if LARGEST.contains(&name) => *sum = sum.clone().max(cell.clone()),
                _ => add(sum, cell),
            }
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Returns the table's path within a folder of many. It is the same however many runs are added.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Returns the table.
    ///
    /// # Errors
    ///
    /// Fails as [`crate::export`] does.
    pub fn table(&self) -> Result<Vec<u8>, ExportError> {
        let mut bytes = Vec::new();
        let numbered = (0..).zip(self.rows.values()).map(|(number, row)| {
            let mut row = row.clone();
            if let Some(first) = row.first_mut() {
                *first = Cell::Number(Some(number));
            }
            row
        });
        write_table(numbered, &self.of_run, &self.command, &mut bytes)?;
        Ok(bytes)
    }
}

/// Returns the cells that tell a row apart.
fn key_of(row: &[Cell]) -> Vec<Cell> {
    let is_key = |(column, _): &(crate::comma_separated::Column, &Cell)| column.is_text || KEYS.contains(&column.name);
    of_rows().zip(row).filter(is_key).map(|(_, cell)| cell.clone()).collect()
}

/// Takes from a row what tells it apart from other rows of its system call.
fn fold(row: &mut [Cell]) {
    for (column, cell) in of_rows().zip(row) {
        match cell {
            Cell::Text(text) if !KEPT.contains(&column.name) => text.clear(),
            Cell::Number(line) if KEYS.contains(&column.name) => *line = None,
            _ => {}
        }
    }
}

/// Returns true for a cell without a value.
fn is_unknown(cell: &Cell) -> bool {
    match cell {
        Cell::Text(text) => text.is_empty(),
        Cell::Number(number) => number.is_none(),
    }
}

/// Adds a number; one that is not known adds nothing.
fn add(sum: &mut Cell, cell: &Cell) {
    if let (Cell::Number(sum), Cell::Number(Some(n))) = (sum, cell) {
        *sum = Some(sum.unwrap_or(0).saturating_add(*n));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_recordings::recording_of;

    #[test]
    fn runs_add_up_and_rows_beyond_the_room_are_folded() {
        let judgement = systoll_judge::Judgement::default();
        let labels = Labels { service: "shop".into(), ..Labels::default() };
        let mut sums = SummedRuns::default();
        for (calls, kernel, clock) in [(3, "6.1", "tsc"), (4, "6.2", "")] {
            let mut recording = recording_of(&[("open", calls), ("close", 1)]);
            recording.header.started_unix = calls;
            (recording.header.host.kernel, recording.header.host.clock_source) = (kernel.into(), clock.into());
            sums.add(&JudgedRecording::new(&recording, &judgement), &labels, 2);
        }
        assert_eq!(sums.rows(), 2);
        let number = |name: &str, row: &[Cell]| {
            let at = of_rows().position(|column| column.name == name).unwrap();
            row[at].clone()
        };
        let calls = |sums: &SummedRuns| sums.rows.values().map(|row| number("calls", row)).collect::<Vec<_>>();
        assert_eq!(calls(&sums), [Cell::Number(Some(2)), Cell::Number(Some(7))]);
        let recording = recording_of(&[("read", 1), ("read", 2), ("write", 5)]);
        sums.add(&JudgedRecording::new(&recording, &judgement), &labels, 0);
        let all = calls(&sums).into_iter().map(|cell| if let Cell::Number(Some(n)) = cell { n } else { 0 });
        assert_eq!((sums.rows(), all.sum::<u64>()), (4, 17));
        let of_run = |name: &str| {
            let at = run::OF_RUNS.iter().position(|column| column.name == name).unwrap();
            sums.of_run[at].clone()
        };
        assert_eq!([of_run("wall_ns"), of_run("started_unix")], [3_000, 3].map(|n| Cell::Number(Some(n))));
        // Of what was known, the latest.
        assert_eq!([of_run("kernel"), of_run("clock_source")], ["6.2", "tsc"].map(|text| Cell::Text(text.into())));
        let bytes = sums.table().unwrap();
        assert!(sums.place().to_string_lossy().contains("service=shop"));
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    }
}
