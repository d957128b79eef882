//! Detects calls for which a cheaper way to the same result exists (strength reduction).

use crate::causes::fact::{Fact, Facts};
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, Saving, leave_out_later, put};
use crate::results::finding::Kind;
use crate::semantics::{FILE_STATUS, Followed, ObservedCall, Semantics, Sequel, Spare, Tie};
use crate::world::replay::Step;
use systoll_model::{Moment, Recording, RowId, WindowCall};

/// Least number of questions about one path that windows show with what follows them.
const SEEN: u64 = 8;
/// Largest share of questions that no opening follows, 0 to 1, at which a question about a path counts as a part of the
/// opening. With more, the answer decides whether the file is opened.
const UNFOLLOWED: f64 = 0.1;

/// Claims calls for which the tables have a cheaper way.
pub(super) struct SlowPath {
    /// Rows and paths of questions whose answers decide whether the file is opened.
    deciding: Map<RowId, Set<String>>,
}

impl SlowPath {
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        let mut seen: Map<(RowId, String), (u64, u64)> = Map::default();
        for window in &recording.windows {
            for (at, call) in window.calls.iter().enumerate() {
                let first = ObservedCall { window, call, syscall: recording.row(call.row).syscall };
                let lines = semantics.lines_of(first.syscall);
                let of_path = |f: &&Followed| f.sequel.tie == Tie::Path && first.holds(f.sequel.when);
                let Some(followed) = lines.sequels().iter().find(of_path) else { continue };
                let next = window.calls.get(at + 1..at + 1 + followed.sequel.within);
                let (Some(next), Some(path), None) = (next, call.object(first.syscall), call.errno()) else { continue };
                let opens = |call: &WindowCall| {
                    let syscall = recording.row(call.row).syscall;
                    followed.by().contains(&syscall) && call.object(syscall).as_deref() == Some(&*path)
                };
                // An opening after the next question belongs to that.
                let asks_again = |next: &&WindowCall| next.row == call.row;
                let is_opened = next.iter().take_while(|next| !asks_again(next)).any(opens);
                let (with, without) = seen.entry((call.row, path)).or_default();
                *(if is_opened { with } else { without }) += 1;
            }
        }
        let decides = |(with, without): &(u64, u64)| {
            let all = with + without;
            all >= SEEN && *without as f64 > UNFOLLOWED * all as f64
        };
        let mut deciding: Map<RowId, Set<String>> = Map::default();
        for ((row, path), _) in seen.into_iter().filter(|(_, of_path)| decides(of_path)) {
            deciding.entry(row).or_default().insert(path);
        }
        Self { deciding }
    }
}

impl Detector for SlowPath {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        for (at, step) in steps.iter().enumerate() {
            // A row's first reading of a meter is not needless; a wait is, from the first one on.
            if let Some(cheaper) = step.cheaper
                && (cheaper.by_wait || step.observed.call.nth > 1)
            {
                let claim = Claim::of(Kind::SlowPath, cheaper.does, cheaper.instead);
                // A change that saves only a part of a call is not worth it by itself.
                let (weak, saves) = (cheaper.saves_ns.is_some(), cheaper.saves_ns.map_or(Saving::All, Saving::Ns));
                let file =
                    step.observed.call.fd.as_deref().filter(|file| step.moved.is_some() && file.starts_with('/'));
                let object = file.filter(|_| !weak).map(|file| claims.object(file));
                let claim = Claim { by_wait: cheaper.by_wait, weak, object, saves, ..claim };
                put(claims, step.index, claim);
            }
            let paths = self.deciding.get(&step.observed.call.row);
            let path = || step.observed.call.object(step.observed.syscall);
            let decides = paths.is_some_and(|paths| path().is_some_and(|path| paths.contains(&path)));
            for followed in step.lines.sequels().iter().filter(|f| !decides || f.sequel.tie != Tie::Path) {
                follow(followed, at, steps, claims);
            }
        }
    }
}

/// Claims one of two calls that belong together.
fn follow(followed: &Followed, at: usize, steps: &[Step<'_>], claims: &mut Claims) {
    let sequel = followed.sequel;
    let is_first = |s: &&Step<'_>| s.observed.call.errno() == sequel.refusal && s.observed.holds(sequel.when);
    let Some(first) = steps.get(at).filter(is_first) else { return };
    // A program must know that a path is a directory before it reads it. A question about a descriptor concerns a
    // file that was opened before.
    if sequel.tie == Tie::Path && (first.asks_directory() || !by_path(first)) {
        return;
    }
    let next = steps.get(at + 1..(at + 1 + sequel.within).min(steps.len())).unwrap_or_default();
    let second = next.iter().find(|second| {
        followed.by().contains(&second.observed.syscall)
            // A second peek takes no data either.
            && !(second.observed.syscall == first.observed.syscall && second.observed.holds(sequel.when))
            && second.observed.call.errno().is_none()
            && second.observed.holds(sequel.then_when)
            && tied(sequel.tie, first, second)
    });
    let Some(second) = second else { return };
    if sequel.once && !came_before(followed, at, steps) {
        // A call before the window may have been one of those that may follow.
        if !begins(first, steps.get(..at).unwrap_or_default()) {
            leave_out_later(first, claims);
        }
        return;
    }
    // One question may be on purpose. Two about a path that is then opened are a habit.
    let weak = sequel.unsure && !asked_otherwise(sequel, at, steps);
    let spare = if sequel.spare == Spare::First { first } else { second };
    let object = spare.object.as_deref().filter(|_| sequel.tie == Tie::Path).map(|path| claims.object(path));
    let facts = Facts::default().with(Fact::OpenedNext, sequel.tie == Tie::Path);
    let claim = Claim { weak, object, facts, ..Claim::of(Kind::SlowPath, sequel.does, sequel.instead) };
    // This claim replaces a weak one of a repeated question: leaving the question to the opening
    // gives nothing up.
    let keeps = |old: &Claim| old.weak && old.kind == Kind::Repeat && sequel.tie == Tie::Path;
    if claims.get(spare.index).is_some_and(keeps) {
        claims.set(spare.index, claim);
    } else {
        put(claims, spare.index, claim);
    }
}

fn tied(tie: Tie, first: &Step<'_>, second: &Step<'_>) -> bool {
    match tie {
        Tie::Descriptor | Tie::Process => first.observed.descriptor(0) == second.observed.descriptor(0),
        Tie::Interest => {
            let of = |step: &Step<'_>| [0, 2].map(|arg| step.observed.descriptor(arg));
            of(first) == of(second)
        }
        Tie::Question => {
            let of = |step: &Step<'_>| step.lines.fd.and_then(|_| step.observed.call.args.first().copied());
            let asked = |step: &Step<'_>| step.observed.data(1, Moment::Entry).map(<[u8]>::to_vec);
            first.object.as_deref() == second.object.as_deref()
                && of(first) == of(second)
                && asked(first) == asked(second)
        }
        Tie::Made => first.observed.call.result == Some(second.observed.descriptor(0).into()),
        Tie::Path => {
            // A program that is about to write may have to know what was there.
            let opened = second.opened.as_ref().filter(|o| !o.writes).map(|o| &*o.path);
            opened.is_some() && first.object.as_deref() == opened
        }
    }
}

/// Returns true if one of the calls that may follow was made on the same descriptor before.
fn came_before(followed: &Followed, at: usize, steps: &[Step<'_>]) -> bool {
    let Some(fd) = steps.get(at).map(|first| first.observed.descriptor(0)) else { return false };
    let before = steps.get(..at).unwrap_or_default().iter().rev();
    let mut same = before.take_while(|s| !makes(s, fd)).filter(|s| s.observed.descriptor(0) == fd);
    same.any(|s| followed.by().contains(&s.observed.syscall) && s.observed.call.errno().is_none())
}

fn makes(step: &Step<'_>, fd: i32) -> bool {
    step.makes_descriptor(fd) || step.lets_go(fd)
}

/// Returns true if one of the steps `before` made the descriptor of the call.
fn begins(first: &Step<'_>, before: &[Step<'_>]) -> bool {
    before.iter().any(|s| makes(s, first.observed.descriptor(0)))
}

fn by_path(step: &Step<'_>) -> bool {
    step.meaning.as_ref().is_none_or(|m| !m.line.about.is(&FILE_STATUS))
}

/// Returns true if another question about the same path comes before the same opening.
fn asked_otherwise(sequel: &Sequel, at: usize, steps: &[Step<'_>]) -> bool {
    let Some(object) = steps.get(at).and_then(|s| s.object.as_deref()) else { return false };
    let questions = |other: &&Step<'_>| {
        let asks =
            other.lines.sequels().iter().any(|f| f.sequel.tie == Tie::Path && other.observed.holds(f.sequel.when));
        asks && by_path(other) && other.object.as_deref() == Some(object)
    };
    let before = steps.get(at.saturating_sub(sequel.within)..at).unwrap_or_default();
    let after = steps.get(at + 1..(at + 1 + sequel.within).min(steps.len())).unwrap_or_default();
    before.iter().rev().take_while(|s| s.opened.is_none()).any(|s| questions(&s))
        || after.iter().take_while(|s| s.opened.is_none()).any(|s| questions(&s))
}
