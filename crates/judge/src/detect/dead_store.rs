//! Detects values that a program sets again before any call or process used them (dead stores).

use super::by_process::FilesByProcess;
use super::others_look::OTHERS_LOOK_NS;
use crate::collections::hash::Map;
use crate::evidence::claim::{Claim, Claims, Detector, leave_out_later, put};
use crate::reasons::ReasonId;
use crate::results::finding::Kind;
use crate::semantics::{
    ATTRIBUTES, Act, FILE_STATUS, FileLock, Lines, ObservedCall, PATH, SOCKET_OPTION, Semantics, StateLine, Store,
    UsedBy, Way, is_device, value,
};
use crate::world::barrier::Barrier;
use crate::world::replay::Step;
use std::sync::Arc;
use systoll_model::{Recording, Sysno};

/// Claims stores that were overwritten before they were used.
pub(super) struct DeadStore<'a> {
    recording: &'a Recording,
    /// The files whose status processes ask for.
    asked: FilesByProcess,
}

impl<'a> DeadStore<'a> {
    pub(super) fn new(recording: &'a Recording, semantics: &Semantics) -> Self {
        if !recording.rows.iter().any(|row| semantics.lines_of(row.syscall).has::<Store>()) {
            return Self { recording, asked: FilesByProcess::default() };
        }
        let is_status = |line: &StateLine| {
            matches!(line.act, Act::Ask(_)) && [&ATTRIBUTES, &FILE_STATUS, &PATH].iter().any(|s| line.about.is(s))
        };
        let asks = |lines: &Lines, call: &ObservedCall<'_>| lines.state(call).is_some_and(is_status);
        Self { recording, asked: FilesByProcess::of(recording, semantics, asks) }
    }
}

/// The key of a store: the call, and the values that tell its object from others.
type Place = (Sysno, Vec<u8>);

/// The newest store of a thing, and those before it that were overwritten.
struct Newest {
    at: usize,
    line: &'static Store,
    /// Descriptor that the stored state belongs to.
    fd: Option<i32>,
    overwritten: Vec<usize>,
    /// The name of the descriptor.
    name: Option<Arc<str>>,
}

impl Detector for DeadStore<'_> {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut newest: Map<Place, Newest> = Map::default();
        for (at, step) in steps.iter().enumerate() {
            // A question whose answer the program had uses nothing.
            let is_known = claims.get(step.index).is_some_and(|claim| claim.kind == Kind::Repeat && !claim.weak);
            let used = newest.iter().filter(|(_, of)| !is_known && of.is_used_by(step));
            let used: Vec<Place> = used.map(|(place, _)| place.clone()).collect();
            used.iter().filter_map(|place| newest.remove(place)).for_each(|of| of.claim(false, steps, claims));
            let Some((line, place)) = store(step).filter(|_| step.observed.call.errno().is_none()) else { continue };
            let calls = self.recording.row(step.observed.call.row).counts.calls;
            let asked = line.used_by == UsedBy::Others && self.asked.is_often_of_another(step, calls);
            if claims.excuse(at, ReasonId::OthersAsk, asked) {
                continue;
            }
            let before = newest.remove(&place).and_then(|before| {
                if claims.excuse(before.at, ReasonId::LastsLongEnough, before.was_seen(steps, step)) {
                    before.claim(false, steps, claims);
                    return None;
                }
                Some(before)
            });
            let overwritten = before.map_or_else(Vec::new, |mut before| {
                before.overwritten.push(before.at);
                before.overwritten
            });
            newest.insert(
                place,
                Newest { at, line, fd: descriptor(step), overwritten, name: step.observed.call.fd.clone() },
            );
        }
        newest.into_values().for_each(|of| of.claim(true, steps, claims));
    }
}

/// Returns the table's line for the store that a step makes, and the store's key.
fn store(step: &Step<'_>) -> Option<(&'static Store, Place)> {
    let line = step.line::<Store>()?;
    // A transfer of no bytes stores nothing.
    if step.moved.is_some_and(|moved| moved.got.is_none_or(|got| got == 0)) {
        return None;
    }
    let mut key = Vec::new();
    for source in line.key {
        key.extend_from_slice(&value(*source, &step.observed)?);
        key.push(0);
    }
    Some((line, (step.observed.syscall, key)))
}

/// Returns the descriptor that a step acts on.
fn descriptor(step: &Step<'_>) -> Option<i32> {
    let arg = step.lines.fd.and_then(|arg| u8::try_from(arg).ok())?;
    Some(step.observed.descriptor(arg))
}

impl Newest {
    /// Returns true if the step may use what was set, or the descriptor's number may come back as another file's.
    fn is_used_by(&self, step: &Step<'_>) -> bool {
        if step.lets(Barrier::FORKED) || self.fd.is_some_and(|fd| step.lets_go(fd)) {
            return true;
        }
        match self.line.used_by {
            UsedBy::Others => looks(step),
            UsedBy::Readers => {
                let name = step.observed.call.fd.as_deref();
                let to_others = step.moved.is_some_and(|m| m.line.way == Way::Out)
                    && !name.is_some_and(|name| name.starts_with('/') && !is_device(name));
                let takes = step.moved.is_some_and(|m| m.line.way == Way::In) && name == self.name.as_deref();
                let kept = step.lets(Barrier::SYNCED.and(Barrier::MAPPED));
                to_others || takes || kept || step.lines.has::<FileLock>() || step.lines.names()
            }
            UsedBy::Calls => {
                let any = step.lets(Barrier::PAUSED) || step.lines.fd.is_none() && !step.lines.say_anything();
                let idle = step.is_about(&SOCKET_OPTION);
                let own = descriptor(step) == self.fd || self.fd.is_some_and(|fd| step.seeks(fd));
                !idle && (any || own)
            }
        }
    }

    /// Returns true if another process may have seen the value before `step` overwrote it. If the
    /// recording has no times, it may always have.
    fn was_seen(&self, steps: &[Step<'_>], step: &Step<'_>) -> bool {
        let from = steps.get(self.at).map(|from| from.observed.call.entry_ns);
        let lasted = from.and_then(|from| step.observed.call.entry_ns.checked_sub(from)).filter(|ns| *ns > 0);
        self.line.used_by != UsedBy::Calls && lasted.is_none_or(|ns| ns >= OTHERS_LOOK_NS)
    }

    fn claim(self, cut: bool, steps: &[Step<'_>], claims: &mut Claims) {
        let overwritten = self.overwritten.len();
        if overwritten < self.line.habit {
            return;
        }
        self.overwritten.iter().for_each(|at| put(claims, *at, claim(self.line)));
        // The window ends before it shows whether the last store is overwritten too.
        if let Some(step) = steps.get(self.at).filter(|_| cut) {
            leave_out_later(step, claims);
        }
    }
}

/// Returns true if the program itself looks at files' times or its name.
fn looks(step: &Step<'_>) -> bool {
    [&ATTRIBUTES, &FILE_STATUS, &PATH].iter().any(|state| step.asks(state)) || step.lets(Barrier::IDENTITY)
}

fn claim(line: &'static Store) -> Claim {
    // A sentence names the value if other processes see it, and the program's action if only its
    // own calls use it.
    let kind = if line.used_by == UsedBy::Others { Kind::Toggle } else { Kind::SlowPath };
    Claim { gives_up: line.gives_up, ..Claim::of(kind, line.thing, line.instead) }
}
