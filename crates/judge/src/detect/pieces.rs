//! Detects adjacent ranges that are processed one small piece after the other (missed coalescing).

use crate::collections::hash::Map;
use crate::evidence::claim::{Claim, Claims, leave_out_later, put};
use crate::results::finding::Kind;
use crate::semantics::{Between, Ranged, value};
use crate::world::barrier::Barrier;
use crate::world::replay::Step;
use systoll_model::Sysno;

/// Least number of pieces in a run.
const LONG: usize = 8;
/// Least number of pieces in a run that an edge of the window cuts.
const LONG_CUT: usize = 4;
/// Least number of pieces of any size in a run for a remark.
const SOME: usize = 5;

/// The key of a run: system call, descriptor, and the values that must be equal.
type Same = (Sysno, Option<u64>, Vec<u8>);

/// A run of adjacent pieces.
struct Run {
    line: &'static Ranged,
    steps: Vec<usize>,
    /// The end of the run's last piece.
    end: u64,
    bytes: u64,
    /// True if the window begins within the run.
    cut: bool,
    /// True if one of the pieces is larger than a small one.
    large: bool,
}

/// Claims calls whose range begins where that of the call before ended.
pub(super) fn window(steps: &[Step<'_>], claims: &mut Claims) {
    let mut runs: Map<Same, Run> = Map::default();
    for (at, step) in steps.iter().enumerate() {
        let piece = step.line::<Ranged>().and_then(|line| Some((line, same(line, step)?)));
        let own = piece.as_ref().map(|(_, same)| same);
        let over: Vec<Same> = runs
            .iter()
            .filter(|(of, run)| Some(*of) != own && run.is_ended_by(of, step))
            .map(|(of, _)| of.clone())
            .collect();
        over.iter().filter_map(|of| runs.remove(of)).for_each(|run| run.claim(false, steps, claims));
        let Some((line, same)) = piece else { continue };
        let before = runs.get(&same).map(|run| run.end);
        let from = line.begins(&step.observed, before);
        let Some(end) = from.map(|from| line.ends(&step.observed, from)) else { continue };
        let length = end.saturating_sub(from.unwrap_or(end));
        let is_small = line.is_small(from.unwrap_or(end), length);
        let fits = length > 0 && (is_small || line.any);
        let goes_on = (from == before || line.is_of_size()) && fits && line.is_whole(&step.observed);
        match runs.get_mut(&same).filter(|_| goes_on) {
            Some(run) => run.add(at, end, length, is_small),
            None => {
                let new = Run { line, steps: vec![at], end, bytes: 0, cut: at == 0, large: false };
                runs.insert(same, new).into_iter().for_each(|run| run.claim(false, steps, claims));
            }
        }
    }
    let mut left: Vec<Run> = runs.into_values().collect();
    left.sort_by_key(|run| run.steps.first().copied());
    left.into_iter().for_each(|run| run.claim(true, steps, claims));
}

/// Returns the key of a call's run; `None` if a value was not read, or the call failed.
fn same(line: &Ranged, step: &Step<'_>) -> Option<Same> {
    let mut alike = Vec::new();
    for source in line.alike {
        alike.extend_from_slice(&value(*source, &step.observed)?);
        alike.push(0);
    }
    let file = line.file.map(|arg| u64::from(step.observed.descriptor(arg) as u32));
    step.observed.call.errno().is_none().then_some((step.observed.syscall, file, alike))
}

impl Run {
    fn add(&mut self, at: usize, end: u64, length: u64, is_small: bool) {
        self.steps.push(at);
        self.end = end;
        self.bytes = self.bytes.saturating_add(length);
        self.large |= !is_small;
    }

    /// Returns true if the step may need what the calls of the run did.
    fn is_ended_by(&self, (_, file, _): &Same, step: &Step<'_>) -> bool {
        let own = |fd: Option<i32>| fd.is_some() && fd.map(|fd| u64::from(fd as u32)) == *file;
        match self.line.between {
            Between::Nothing => true,
            Between::Any => false,
            Between::Transfers => {
                let fd = step.lines.fd.and_then(|arg| u8::try_from(arg).ok()).map(|arg| step.observed.descriptor(arg));
                step.lets(Barrier::OTHERS_ACT) || fd.is_some_and(|fd| own(Some(fd)) && step.moved.is_none())
            }
        }
    }

    /// Claims all calls of a long run but one for each range that one call could have covered.
    fn claim(&self, cut: bool, steps: &[Step<'_>], claims: &mut Claims) {
        let pieces = self.steps.len().saturating_sub(1) as u64;
        let is_long = self.steps.len() >= if cut || self.cut { LONG_CUT } else { LONG };
        // The calls do not tell why the pieces are large or few, so the claim is weak then.
        let weak = self.large || !is_long;
        if weak && !(self.line.any && self.steps.len() >= SOME) {
            return;
        }
        let each = (self.line.much / (self.bytes / pieces.max(1)).max(1)).max(2);
        for (n, at) in self.steps.iter().enumerate() {
            let Some(step) = steps.get(*at) else { continue };
            if n == 0 {
                // The window does not show whether the first piece continues a run.
                if self.cut {
                    leave_out_later(step, claims);
                }
            } else if !(n as u64).is_multiple_of(each) {
                let Ranged { does, instead, gives_up, .. } = *self.line;
                let object = step.observed.call.fd.as_deref().filter(|file| file.starts_with('/'));
                let object = object.map(|file| claims.object(file));
                put(claims, step.index, Claim { object, weak, gives_up, ..Claim::of(Kind::SmallIo, does, instead) });
            }
        }
    }
}
