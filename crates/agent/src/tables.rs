//! The tables of a day: what its spans have counted so far, by service.
//!
//! Each service has one table, which is written anew with all of the day's sums whenever an interval has changed it, in
//! place of the former one: so a day is one file for each service, and a reader finds a row once at any moment. Other tables
//! begin when the day is over, when these hold so much that memory is needed for others, and when the agent starts.

use crate::sinks::Sinks;
use crate::store::{Store, reason};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use systoll_export::{BoxMetrics, JudgedRecording, Labels, SummedRuns};
use systoll_judge::{Catalogue, Judgement, Options, judge};
use systoll_model::Recording;

/// Services with a table of their own, at most; further ones share one.
const SERVICES: usize = 1_000;
/// Rows of all tables, at most. They take some 60 MB.
const ROWS: usize = 60_000;
/// Part of these bounds from which on other tables begin, so that the next interval has room.
const FULL: usize = 2;
/// The service of all others.
const OTHER: &str = "other";

/// The sums of a service, and whether its file lacks some of them.
#[derive(Default)]
struct Table {
    sums: SummedRuns,
    has_changed: bool,
}

/// The tables of a day.
pub(crate) struct Tables {
    /// The day of the first span, as [`crate::clock::today`] has it.
    pub(crate) day: u64,
    services: BTreeMap<Arc<str>, Table>,
}

/// The result of [`Tables::write`].
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) files: usize,
    pub(crate) bytes: usize,
    /// The number of tables that could not be written.
    pub(crate) failed: usize,
    /// The reason why the last of these could not.
    pub(crate) failure: Option<io::Error>,
}

impl Tables {
    pub(crate) fn of_day(day: u64) -> Self {
        Self { day, services: BTreeMap::new() }
    }

    /// Adds a span's recording service by service, also to what `sinks` send. Calls are judged if some were sampled.
    pub(crate) fn add(
        &mut self,
        recording: &Recording,
        samples: Option<&Catalogue>,
        host: &str,
        metrics: &mut BoxMetrics,
        sinks: &mut Sinks,
    ) {
        for service in recording.services() {
            let part = recording.of_service(&service);
            let judgement =
                samples.map_or_else(Judgement::default, |catalogue| judge(&part, catalogue, &Options::default()));
            let judged = JudgedRecording::new(&part, &judgement);
            metrics.add(&service, &judged);
            sinks.add(&service, &judged, &part);
            self.add_run(service, &judged, host);
        }
    }

    fn add_run(&mut self, service: Arc<str>, judged: &JudgedRecording<'_>, host: &str) {
        let has_room = self.services.len() < SERVICES || self.services.contains_key(&service);
        let service = if has_room { service } else { OTHER.into() };
        let room = ROWS.saturating_sub(self.rows());
        let labels = Labels { service: service.to_string(), release: String::new(), host: host.to_owned() };
        let table = self.services.entry(service).or_default();
        table.sums.add(judged, &labels, room);
        table.has_changed = true;
    }

    fn rows(&self) -> usize {
        self.services.values().map(|table| table.sums.rows()).sum()
    }

    /// Returns true if other tables are to begin: there is little room for more, or a file was taken away, which must not
    /// come back with the next sums.
    pub(crate) fn are_over(&self, store: &Store) -> bool {
        let is_gone = |table: &Table| !table.has_changed && !store.has(table.sums.place());
        self.services.len() > SERVICES / FULL || self.rows() > ROWS / FULL || self.services.values().any(is_gone)
    }

    /// Writes the changed tables. A table that can't be written remains changed.
    pub(crate) fn write(&mut self, store: &Store) -> Written {
        let mut written = Written::default();
        for table in self.services.values_mut().filter(|table| table.has_changed) {
            let bytes = table.sums.table().map_err(reason);
            match bytes.and_then(|bytes| store.keep(table.sums.place(), &bytes).map(|()| bytes.len())) {
                Ok(bytes) => {
                    (written.files, written.bytes) = (written.files + 1, written.bytes + bytes);
                    table.has_changed = false;
                }
                Err(error) => (written.failed, written.failure) = (written.failed + 1, Some(error)),
            }
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::{Path, PathBuf};
    use systoll_model::{Counts, Process, ProcessId, Row, Stack, Sysno};

    /// Adds a span in which a service has called `getppid` so often.
    fn add(tables: &mut Tables, service: &str, calls: u64) {
        let mut recording = Recording { stacks: vec![Stack::default()], ..Recording::default() };
        recording.header.wall_ns = 1 + calls;
        recording.processes.push(Process { exe: "/bin/app".into(), ..Process::default() });
        let counts = Counts { calls, ..Counts::default() };
        recording.rows.push(Row::new(ProcessId(0), Sysno::from_name("getppid").unwrap(), counts));
        tables.add_run(service.into(), &JudgedRecording::new(&recording, &Judgement::default()), "h");
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let below = |folder: &Path| fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
        let days = below(folder);
        days.iter()
            .flat_map(|day| below(day))
            .flat_map(|service| below(&service))
            .flat_map(|host| below(&host))
            .collect()
    }

    #[test]
    fn a_day_is_one_file_for_each_service() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(place.path()).unwrap();
        let mut tables = Tables::of_day(0);
        add(&mut tables, "shop", 1);
        add(&mut tables, "web", 2);
        assert_eq!(tables.write(&store).files, 2);
        let before = files(place.path());
        add(&mut tables, "shop", 3);
        // What has not changed is not written again.
        let written = tables.write(&store);
        assert_eq!((written.files, written.failed, tables.write(&store).files), (1, 0, 0));
        assert_eq!((before.len(), files(place.path())), (2, before));
        assert!(!tables.are_over(&store));
    }

    #[test]
    fn a_table_for_which_there_is_no_room_is_written_later() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(place.path()).unwrap();
        let mut tables = Tables::of_day(0);
        add(&mut tables, "shop", 1);
        let day = place.path().join("day=1970-01-01");
        fs::write(&day, "no folder").unwrap();
        let written = tables.write(&store);
        assert!(written.files == 0 && written.failed == 1 && written.failure.is_some() && !tables.are_over(&store));
        fs::remove_file(&day).unwrap();
        assert_eq!((tables.write(&store).files, files(place.path()).len()), (1, 1));
    }

    #[test]
    fn a_file_that_was_taken_away_does_not_come_back() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(place.path()).unwrap();
        let mut tables = Tables::of_day(0);
        add(&mut tables, "shop", 1);
        assert!(tables.write(&store).files == 1 && !tables.are_over(&store));
        store.prune("1970-01-02", u64::MAX);
        assert!(tables.are_over(&store) && files(place.path()).is_empty());
    }

    #[test]
    fn other_tables_begin_before_memory_is_short() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(place.path()).unwrap();
        let mut tables = Tables::of_day(0);
        for service in 0..SERVICES + 50 {
            add(&mut tables, &format!("s{service}"), 1);
        }
        assert!(tables.are_over(&store));
        assert_eq!((tables.services.len(), tables.rows()), (SERVICES + 1, SERVICES + 1));
    }
}
