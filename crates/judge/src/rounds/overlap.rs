//! Finds reads that read a part of a file again: a seek goes back between them.

use super::kinds::{KindId, Kinds};
use super::stretches::{Stretch, Stretches};
use crate::collections::hash::Map;
use crate::semantics::{Effect, Semantics};
use std::collections::VecDeque;
use std::ops::Range;
use systoll_model::{Sysno, WindowCall};

/// The call whose result is the new position in the file.
const SEEK: Sysno = Sysno::named("lseek");

/// Number of newest ranges of a file that are remembered: an imported trace is one long stretch.
const KEPT: usize = 32;

/// Searches stretches for reads whose ranges overlap.
#[derive(Clone, Copy)]
pub(super) struct Overlaps<'a> {
    pub(super) kinds: &'a Kinds,
    pub(super) stretches: &'a Stretches<'a>,
    pub(super) semantics: &'a Semantics,
}

/// The position in a descriptor's file and the ranges read of it, as far as a stretch has shown them.
#[derive(Default)]
struct Seen {
    /// The position, if it is known.
    at: Option<u64>,
    /// The newest [`KEPT`] ranges that were read.
    read: VecDeque<Range<u64>>,
}

impl Overlaps<'_> {
    /// Returns true if a window shows two calls of a kind that read the same part of a file.
    pub(super) fn any_of(self, kind: KindId) -> bool {
        let syscall = self.kinds.get(kind).map(|kind| kind.syscall);
        let reads = |syscall| self.semantics.lines_of(syscall).does(|effect| matches!(effect, Effect::Reads(_)));
        let mut all = self.stretches.with(kind).iter().filter_map(|at| self.stretches.get(*at));
        syscall.is_some_and(reads) && all.any(|stretch| self.in_stretch(kind, stretch))
    }

    fn in_stretch(self, wanted: KindId, stretch: &Stretch<'_>) -> bool {
        let mut seen: Map<u64, Seen> = Map::default();
        for (kind, call) in stretch.kinds.iter().zip(stretch.calls) {
            let Some(syscall) = self.kinds.get(*kind).map(|kind| kind.syscall) else { continue };
            let Some(result) = call.result.and_then(|result| u64::try_from(result).ok()) else { continue };
            let does = |test: fn(Effect) -> bool| self.semantics.lines_of(syscall).does(test);
            if does(|effect| matches!(effect, Effect::Opens | Effect::OpensPath { .. } | Effect::Shares)) {
                seen.remove(&result);
                continue;
            }
            let file = seen.entry(call.args[0]).or_default();
            if syscall == SEEK {
                file.at = Some(result);
                continue;
            }
            let from = offset(syscall, call).or(file.at);
            if let Some(from) = from.filter(|_| *kind == wanted && result > 0) {
                let range = from..from.saturating_add(result);
                if file.read.iter().any(|other| other.start < range.end && range.start < other.end) {
                    return true;
                }
                file.read.push_back(range);
                let old = file.read.len().saturating_sub(KEPT);
                file.read.drain(..old);
            }
            if does(|effect| matches!(effect, Effect::Advances(_))) {
                file.at = file.at.and_then(|at| at.checked_add(result));
            } else if does(|effect| matches!(effect, Effect::Moves(_))) {
                file.at = None;
            }
        }
        false
    }
}

/// Returns the place in the file that the call names, if it names one.
fn offset(syscall: Sysno, call: &WindowCall) -> Option<u64> {
    let at = syscall.signature()?.args.iter().position(|arg| arg.name == "offset")?;
    call.args.get(at).copied()
}
