//! Detects files that are rewritten again and again, each time before another process could read them (dead stores).

use super::by_process::FilesByProcess;
use super::others_look::OTHERS_LOOK_NS;
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, leave_out_later, put};
use crate::reasons::ReasonId;
use crate::results::finding::Kind;
use crate::semantics::{Effect, Lines, ObservedCall, SYNCED, Semantics, is_device};
use crate::world::barrier::Barrier;
use crate::world::replay::Step;
use systoll_model::Recording;
use systoll_model::constants::O_WRONLY;

/// Least number of times in a window that a file was rewritten for a habit.
const AGAIN: usize = 3;

/// Claims rewriting a file, in place or by moving a new one over it, if it was rewritten again within [`OTHERS_LOOK_NS`].
pub(super) struct Rewritten {
    /// The files that processes open for reading.
    read: FilesByProcess,
}

impl Rewritten {
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        let reads = |lines: &Lines, call: &ObservedCall<'_>| {
            // An opening with unknown flags may be one for reading.
            lines.may_open && call.opening_flags(lines.effects(call)).is_none_or(|flags| flags & O_WRONLY == 0)
        };
        Self { read: FilesByProcess::of(recording, semantics, reads) }
    }
}

/// One writing of a file, by the indices of its calls.
struct Writing {
    calls: Vec<usize>,
    fd: i64,
    open: bool,
    /// The path to which the file was moved, or at which it was opened.
    name: String,
}

impl Detector for Rewritten {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut done: Map<String, Vec<Writing>> = Map::default();
        let mut under_way: Vec<Writing> = Vec::new();
        // The files whose last version was followed by something that others may act on.
        let mut shown: Set<String> = Set::default();
        for (at, step) in steps.iter().enumerate() {
            let shows = step.lets(Barrier::SHOWS) && !claims.is_off(ReasonId::ShownBetween);
            if looks(step, &done) || shows {
                shown.extend(done.keys().filter(|_| shows).cloned());
                settle(&mut done, false, steps, claims);
            }
            let opened = step.opened.as_ref().filter(|opened| opened.writes && opened.anew);
            // A device keeps nothing that could be rewritten. Another process that reads the file may wait for each
            // writing: it may be a pipe with a name. One that begins later reads the last writing only.
            let opened = opened.filter(|opened| {
                let is_read = !is_device(&opened.path) && self.read.is_of_another_by_then(step);
                !is_device(&opened.path) && !claims.excuse(at, ReasonId::ReaderWaits, is_read)
            });
            if let (Some(opened), Some(fd)) = (opened, step.observed.call.result) {
                under_way.push(Writing { calls: vec![at], fd, open: true, name: opened.path.to_string() });
                continue;
            }
            if step.is_about(&SYNCED) {
                // A file that is synced has to be on the disk.
                under_way.retain(|w| w.fd != i64::from(step.observed.descriptor(0)));
                continue;
            }
            advance(at, step, &mut under_way);
            let over = |w: &Writing| !w.open && steps.get(at + 1).is_none_or(|next| moved_to(next, &w.name).is_none());
            while let Some(place) = under_way.iter().position(over) {
                let writing = under_way.swap_remove(place);
                let is_shown = shown.remove(&writing.name);
                writing.calls.iter().for_each(|at| _ = claims.excuse(*at, ReasonId::ShownBetween, is_shown));
                done.entry(writing.name.clone()).or_default().push(writing);
            }
        }
        settle(&mut done, true, steps, claims);
    }
}

/// Adds a call to the writing that it belongs to.
fn advance(at: usize, step: &Step<'_>, under_way: &mut [Writing]) {
    let own = |w: &&mut Writing| w.open && step.lines.fd == Some(0) && i64::from(step.observed.descriptor(0)) == w.fd;
    if let Some(writing) = under_way.iter_mut().rev().find(own) {
        writing.calls.push(at);
        writing.open = !step.effects.iter().any(|effect| matches!(effect, Effect::Closes(0)));
        return;
    }
    for writing in under_way.iter_mut().filter(|w| !w.open) {
        if let Some(name) = moved_to(step, &writing.name) {
            writing.calls.push(at);
            writing.name = name;
        }
    }
}

/// Returns the new path of the file `from`, if the step moves it.
fn moved_to(step: &Step<'_>, from: &str) -> Option<String> {
    let mut paths = step.observed.paths(step.effects);
    let (first, second) = (paths.next()?, paths.next()?);
    (first == from).then(|| second.into_owned())
}

/// Returns true if the program itself looks at one of the files.
fn looks(step: &Step<'_>, done: &Map<String, Vec<Writing>>) -> bool {
    let opened = step.opened.as_ref().filter(|opened| !opened.writes).map(|opened| &*opened.path);
    opened.or(step.object.as_deref()).is_some_and(|path| done.contains_key(path))
        && !step.opened.as_ref().is_some_and(|o| o.writes)
}

/// Claims the writings that were rewritten within [`OTHERS_LOOK_NS`], and forgets all of them.
fn settle(done: &mut Map<String, Vec<Writing>>, cut: bool, steps: &[Step<'_>], claims: &mut Claims) {
    for writings in std::mem::take(done).into_values() {
        let start = |w: &Writing| w.calls.first().and_then(|at| steps.get(*at)).map(|step| step.observed.call.entry_ns);
        let mut soon = |two: &[Writing]| match two {
            [one, next] => start(one).zip(start(next)).is_some_and(|(from, to)| {
                let lasts = to.saturating_sub(from) >= OTHERS_LOOK_NS;
                !one.calls.iter().fold(false, |_, at| claims.excuse(*at, ReasonId::LastsLongEnough, lasts))
            }),
            _ => false,
        };
        let overwritten: Vec<&Writing> =
            writings.windows(2).filter(|two| soon(two)).filter_map(|two| two.first()).collect();
        if overwritten.len() + 1 < AGAIN {
            continue;
        }
        for step in overwritten.iter().flat_map(|w| &w.calls).filter_map(|at| steps.get(*at)) {
            let object = writings.first().map(|writing| claims.object(&writing.name));
            put(claims, step.index, Claim { object, ..claim() });
        }
        // The window ends before it shows whether the last writing is rewritten too: leave that
        // writing out.
        let last = writings.last().filter(|_| cut).into_iter().flat_map(|w| &w.calls);
        last.filter_map(|at| steps.get(*at)).for_each(|step| leave_out_later(step, claims));
    }
}

fn claim() -> Claim {
    Claim {
        gives_up: "what the file says lags behind, and is older if the program is killed",
        ..Claim::of(
            Kind::SlowPath,
            "writes a whole file anew before anybody could look at what it said",
            "write it when it has held for a while, or once a second, and at the end",
        )
    }
}
