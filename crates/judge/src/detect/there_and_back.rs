//! Detects changes of the working directory that are changed back, where a window shows too few of them to tell by
//! itself, and the questions for the directory to go back to.

use crate::collections::hash::Map;
use crate::evidence::claim::{Claims, Detector, put_state};
use crate::results::finding::Kind;
use crate::semantics::{Act, CWD, FOLDER};
use crate::world::barrier::Barrier;
use crate::world::replay::Step;

/// Least number of times in windows that a process goes to a directory for that to be where it goes back to.
const BACK: usize = 4;

/// Claims changes of the working directory in processes of which nearly every second one leads to the same directory.
#[derive(Default)]
pub(super) struct ThereAndBack {
    /// By process.
    ways: Map<u32, Ways>,
}

/// The directories to which a process went.
#[derive(Default)]
struct Ways {
    /// Number of changes to each.
    to: Map<Vec<u8>, usize>,
    all: usize,
    /// Number of windows that show any.
    windows: usize,
}

impl Ways {
    /// Returns the directory to which nearly every second change leads; `None` if there is none.
    fn home(&self) -> Option<&[u8]> {
        let (home, times) = self.to.iter().max_by_key(|(to, times)| (**times, std::cmp::Reverse(*to)))?;
        // A window may begin and end on the same side.
        (*times >= BACK && (2 * times).abs_diff(self.all) <= self.windows).then_some(home)
    }
}

impl Detector for ThereAndBack {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let Some(first) = steps.first() else { return };
        // A child that the program makes in between may work there.
        if steps.iter().any(|step| step.lets(Barrier::FORKED)) {
            return;
        }
        let sets: Vec<(usize, &[u8])> =
            steps.iter().enumerate().filter_map(|(at, step)| Some((at, went(step)?))).collect();
        if sets.is_empty() {
            return;
        }
        let ways = self.ways.entry(first.who).or_default();
        for (_, to) in &sets {
            ways.all += 1;
            if !to.is_empty() {
                *ways.to.entry(to.to_vec()).or_default() += 1;
            }
        }
        ways.windows += 1;
        let Some(home) = ways.home() else { return };
        let turns = sets.windows(2).all(|two| matches!(two, [(_, a), (_, b)] if (*a == home) != (*b == home)));
        if !turns {
            return;
        }
        let set = sets.iter().filter_map(|(at, _)| steps.get(*at));
        set.for_each(|step| put_state(Kind::Toggle, step, claims));
        for (at, step) in steps.iter().enumerate() {
            let asks = step.meaning.as_ref().filter(|m| m.line.about.is(&CWD) && matches!(m.line.act, Act::Ask(_)));
            let is_home = asks.and_then(|m| m.now.as_deref()).is_some_and(|answer| answer == home);
            let leaves = || sets.iter().find(|(set, _)| *set > at).is_none_or(|(_, to)| *to != home);
            if is_home && leaves() {
                put_state(Kind::Toggle, step, claims);
            }
        }
    }
}

/// Returns the directory to which a step went; empty if its path is relative.
fn went<'s>(step: &'s Step<'_>) -> Option<&'s [u8]> {
    let meaning = step.meaning.as_ref().filter(|meaning| meaning.line.about.is(&FOLDER))?;
    Some(meaning.now.as_deref().unwrap_or_default())
}
