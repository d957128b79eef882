//! Finds long waits before `main`, in exact counts: one long call is enough, and windows may miss
//! it.

use crate::options::Options;
use crate::semantics::{Semantics, SuspectWait, Where};
use systoll_model::{FrameClass, Recording, Row, RowId};

/// Shortest length of two waits of one row before `main` for a finding, ns each.
const PAIRED_WAIT_NS: u64 = 5_000_000;
/// Index of the histogram's first bucket whose calls surely took [`PAIRED_WAIT_NS`].
const SURELY_LONG: usize = 23;

/// A row that waited before `main`.
pub(crate) struct StartupWait {
    /// The row whose calls waited.
    pub row: RowId,
    /// Name of the awaited thing, for a sentence.
    pub waits_for: &'static str,
}

/// Returns the rows of suspect calls with one long wait, or two shorter ones, before `main`.
pub(crate) fn startup_waits(recording: &Recording, semantics: &Semantics, options: &Options) -> Vec<StartupWait> {
    let rows = recording.rows.iter().enumerate();
    rows.filter_map(|(at, row)| {
        let wait = semantics.lines_of(row.syscall).suspect_wait()?;
        let id = RowId(u32::try_from(at).ok()?);
        (placed(recording, row, wait) && long(recording, id, row, options))
            .then_some(StartupWait { row: id, waits_for: wait.waits_for })
    })
    .collect()
}

fn placed(recording: &Recording, row: &Row, wait: &SuspectWait) -> bool {
    row.counts.startup_calls > 0
        && match wait.place {
            Where::Anywhere | Where::BeforeMain => {
                recording.process(row.process).main_at_ns.is_some() || in_constructor(recording, row)
            }
            Where::Constructor => in_constructor(recording, row),
        }
}

/// Returns true if the loader, or libc's list of constructors, made the call.
fn in_constructor(recording: &Recording, row: &Row) -> bool {
    recording.row_frames(row).any(|frame| {
        frame.class == FrameClass::Loader || matches!(frame.function(), "call_init" | "__libc_csu_init" | "_dl_init")
    })
}

fn long(recording: &Recording, id: RowId, row: &Row, options: &Options) -> bool {
    let counts = &row.counts;
    if counts.waited_ns.is_some() && counts.startup_waited_ns < options.long_wait_ns {
        return false;
    }
    let listed = |least: u64| recording.longest.iter().filter(|l| l.row == id && l.startup && l.ns >= least).count();
    let all_startup = counts.startup_calls >= counts.calls;
    let buckets = counts.histogram.buckets().iter().skip(SURELY_LONG);
    let surely_long = buckets.fold(0u64, |sum, calls| sum.saturating_add(*calls));
    let mean = counts.startup_waited_ns / counts.startup_calls.max(1);
    listed(options.long_wait_ns) >= 1
        || listed(PAIRED_WAIT_NS) >= 2
        || (counts.startup_calls >= 2 && mean >= PAIRED_WAIT_NS)
        || (all_startup && (counts.max_ns >= options.long_wait_ns || surely_long >= 2))
}
