//! Detects locks in the kernel that are free, or nearly so: a lock in memory would then need no call.

use crate::collections::hash::Map;
use crate::evidence::claim::{Claim, Claims, put};
use crate::results::finding::Kind;
use crate::semantics::KernelLock;
use crate::world::bounds::{BESIDE, OFTEN};
use crate::world::replay::Step;

/// Longest wait for a lock that counts as free, ns: its holder was running and released it; a real
/// sleep takes longer.
const BRIEF: u64 = 20_000;

/// A lock: its id in an argument, and its number within the set.
type Lock = (u64, Vec<u8>);

/// Claims taking and releasing a lock by the same thread, if it hardly waited.
pub(super) fn window(steps: &[Step<'_>], claims: &mut Claims) {
    let mut taken: Map<Lock, usize> = Map::default();
    let mut pairs: Map<Lock, Vec<usize>> = Map::default();
    let mut edges: Vec<usize> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let Some(line) = step.line::<KernelLock>() else { continue };
        // A call that slept needed the kernel.
        let waited = step.observed.call.waited_ns.is_none_or(|ns| ns > BRIEF);
        if step.observed.call.errno().is_some() || waited {
            continue;
        }
        // The first two bytes hold the semaphore's number within the set.
        let which = step.observed.data(1, systoll_model::Moment::Entry).and_then(|sem| sem.get(..2));
        let Some(which) = which else { continue };
        let lock = (step.observed.arg(0), which.to_vec());
        if !line.leaves {
            taken.insert(lock, at);
            continue;
        }
        match taken.remove(&lock) {
            // With more calls under the lock the work there costs more than the lock.
            Some(from) if at - from <= BESIDE + 1 => pairs.entry(lock).or_default().extend([from, at]),
            Some(_) => {}
            None => edges.push(at),
        }
    }
    pairs.retain(|_, calls| calls.len() >= 2 * OFTEN);
    for at in pairs.values().flatten() {
        let Some((step, line)) = steps.get(*at).and_then(|s| Some((s, s.line::<KernelLock>()?))) else {
            continue;
        };
        put(claims, step.index, Claim { gives_up: line.gives_up, ..claim(line.instead) });
    }
    if !pairs.is_empty() {
        // Leave out the calls whose other half lies beyond the window's edge.
        edges.iter().chain(taken.values()).filter_map(|at| steps.get(*at)).for_each(|s| claims.leave_out(s.index));
    }
}

fn claim(instead: &'static str) -> Claim {
    Claim::of(Kind::SlowPath, "takes and leaves a lock of the kernel's own, which nobody else had for long", instead)
}
