//! Time: what ended each long wait, and where the wall went.

mod children;
mod ends;
mod held;
mod kinds;
mod least;
mod needless;
mod path;
mod sleeps;
mod start;
mod talks;
mod threads;

#[cfg(test)]
mod tests;

pub use ends::WaitClass;
pub(crate) use kinds::NeedlessKind;
pub(crate) use needless::NeedlessWaits;
pub use path::{EndedWait, WallPart, WallTime};
pub use sleeps::only_sleeps;
pub use start::{Searched, Searcher, StartWork};
pub(crate) use talks::Senders;

use crate::semantics::Semantics;
use ends::Ends;
use std::collections::BTreeMap;
use systoll_model::{FrameId, Recording};
use threads::Threads;

/// The long waits of a run, judged.
#[derive(Default)]
pub(crate) struct JudgedTime {
    /// Where the run's elapsed time went, on the thread that holds the run up; `None` if long waits are not kept.
    pub(crate) wall: Option<WallTime>,
    /// The work of the program's start; `None` unless the run was watched until the program was ready.
    pub(crate) start: Option<StartWork>,
    /// Waits that served no one.
    pub(crate) needless: Vec<NeedlessWaits>,
    /// The script's line that first waited for each process, by process id, where it is known.
    pub(crate) awaited_at: BTreeMap<u32, FrameId>,
}

/// Least share of the elapsed time but for systoll's own, 0 to 1, that a program lets pass if its pace decides how often it starts
/// others. A deployment that asks each node every 0.1 s whether it is up let 70 to 80 % of its time pass.
const PACED: f64 = 0.5;

impl JudgedTime {
    /// Returns true if the run lets time pass for most of its time.
    pub(crate) fn keeps_pace(&self) -> bool {
        let Some(wall) = &self.wall else { return false };
        let of_clock = wall.by_class().into_iter().find(|(class, _)| *class == WaitClass::Clock);
        of_clock.map_or(0, |(_, ns)| ns) as f64 >= PACED * wall.wall_ns.saturating_sub(wall.systoll_ns) as f64
    }
}

/// Judges the long waits of a recording.
pub(crate) fn judged(recording: &Recording, semantics: &Semantics) -> JudgedTime {
    let start = recording.header.until.as_ref().map(|_| start::start_work(recording, semantics));
    if !recording.wait_spans.kept || recording.header.wall_ns == 0 {
        return JudgedTime { start, ..JudgedTime::default() };
    }
    let threads = Threads::of(recording, semantics);
    let ends = Ends::of(recording, &threads);
    let wall = path::wall_time(recording, &threads, &ends);
    let needless = needless::needless(recording, semantics, &threads, &ends, &wall);
    let awaited_at = children::awaited_at(recording, &threads, &ends);
    JudgedTime { wall: Some(wall), start, needless, awaited_at }
}
