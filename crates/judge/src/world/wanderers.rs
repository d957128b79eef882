//! The processes that change their working directory, and the stays in between.

use crate::collections::hash::Map;
use crate::world::whole_rows::whole_rows;
use systoll_model::{Process, Recording, Row, RowId, Window};

/// Processes that change their working directory. Most do so once or twice: during a stay, a relative path is the same
/// path in each window.
#[derive(Default)]
pub(crate) struct Wanderers {
    stays: Map<u32, Stays>,
    /// By process: number of the stay in which its newest window lies.
    newest: Map<u32, usize>,
}

/// The changes of one process's working directory.
struct Stays {
    /// Beginning of each change, and the time when it and all before it were over, ns since the run's start, in order;
    /// `None` if windows do not show all of them.
    changes: Option<Vec<(u64, u64)>>,
    /// Number of the longest stay; the first, before any change, is number 0.
    longest: usize,
}

impl Stays {
    /// Returns the number of the stay that holds the whole window, if any.
    fn of(&self, window: &Window) -> Option<usize> {
        let begins = window.calls.first()?.entry_ns;
        let ends = window.calls.last()?.entry_ns;
        let changes = self.changes.as_ref()?;
        let before = changes.partition_point(|(_, end)| *end < begins);
        changes.get(before).is_none_or(|(next, _)| ends < *next).then_some(before)
    }
}

impl Wanderers {
    pub(crate) fn of(recording: &Recording) -> Self {
        let moves = |row: &Row| ["chdir", "fchdir"].contains(&row.syscall.name().unwrap_or_default());
        let whole = whole_rows(recording, moves);
        let mut changes: Map<u32, Option<Vec<(u64, u64)>>> = Map::default();
        for (id, row) in (0u32..).map(RowId).zip(&recording.rows).filter(|(_, row)| moves(row)) {
            let known = changes.entry(row.process.0).or_insert_with(|| Some(Vec::new()));
            *known = known.take().filter(|_| whole.contains(&id));
        }
        for window in recording.windows.iter().filter(|_| !whole.is_empty()) {
            let Some(Some(known)) = changes.get_mut(&window.process.0) else { continue };
            let moving = window.calls.iter().filter(|call| whole.contains(&call.row));
            known.extend(moving.map(|call| (call.entry_ns, call.entry_ns.saturating_add(call.elapsed_ns))));
        }
        let stays = changes
            .into_iter()
            .map(|(process, changes)| (process, stays(changes, recording.processes.get(process as usize))));
        Self { stays: stays.collect(), newest: Map::default() }
    }

    /// Returns true if a relative path in the window may have been another path at most of the times before.
    pub(crate) fn is_away(&self, window: &Window) -> bool {
        self.stays.get(&window.process.0).is_some_and(|stays| stays.of(window) != Some(stays.longest))
    }

    /// Returns true if the working directory may be another one than in the process's window before this one, or changes
    /// in the window. To be asked once for each window, in the order in which they are read.
    pub(crate) fn may_have_moved(&mut self, window: &Window) -> bool {
        let process = window.process.0;
        let Some(stays) = self.stays.get(&process) else { return false };
        match stays.of(window) {
            Some(stay) => self.newest.insert(process, stay) != Some(stay),
            None => {
                self.newest.remove(&process);
                true
            }
        }
    }
}

/// Returns the stays of a process by its changes; of none without times, or if several processes share an entry.
fn stays(changes: Option<Vec<(u64, u64)>>, process: Option<&Process>) -> Stays {
    let timed = |all: &Vec<(u64, u64)>| all.iter().all(|(begin, _)| *begin > 0);
    let Some((mut changes, process)) = changes.filter(timed).zip(process.filter(|process| !process.is_many())) else {
        return Stays { changes: None, longest: 0 };
    };
    changes.sort_unstable();
    let mut over = 0;
    for (_, end) in &mut changes {
        over = over.max(*end);
        *end = over;
    }
    let ends = if process.end_ns > 0 { process.end_ns } else { u64::MAX };
    let begins = std::iter::once(process.start_ns).chain(changes.iter().map(|(_, end)| *end));
    let lengths = begins.zip(changes.iter().map(|(begin, _)| *begin).chain([ends]));
    let longest = lengths.enumerate().max_by_key(|(_, (begin, end))| end.saturating_sub(*begin));
    Stays { longest: longest.map_or(0, |(at, _)| at), changes: Some(changes) }
}
