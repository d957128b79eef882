//! Detects state that others can see and that is set again before they could look (dead stores).

use super::claim::{Claim, Claims, Detector, leave_out_later, put};
use crate::finding::Kind;
use crate::hash::Map;
use crate::replay::Step;
use crate::semantics::{Effect, Shown, value};
use crate::signs::Signs;

/// Least time for which state must last to be seen, ns: a reader looks no more often.
const GLANCE: u64 = 10_000_000;
/// Number of overwritten settings in a window from which on its last setting is left out.
const OVERWRITTEN: usize = 2;

/// Claims settings that were overwritten within [`GLANCE`].
pub(super) struct Overwritten;

/// The newest setting of a piece of state, and the number of claimed ones before it.
struct Newest {
    at: usize,
    /// The descriptor that it is about.
    fd: Option<i32>,
    overwritten: usize,
}

impl Detector for Overwritten {
    fn looks_for(&self) -> Signs {
        Signs::SHOWS
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut newest: Map<Vec<u8>, Newest> = Map::default();
        for (at, step) in steps.iter().enumerate() {
            if step.forks || looks(step) {
                // A child inherits the name, and the program itself has seen what it asked for.
                newest.clear();
            }
            // The descriptor's number may be used again for another file.
            newest.retain(|_, n| !n.fd.is_some_and(|fd| step.lets_go(fd)));
            let Some((shown, key)) = shown(step).filter(|_| step.observed.call.errno().is_none()) else { continue };
            let before = newest.insert(key, Newest { at, fd: descriptor(step), overwritten: 0 });
            let Some((before, last)) = before.and_then(|b| Some((steps.get(b.at)?, b))) else { continue };
            if lasted(before, step).is_some_and(|ns| ns < GLANCE) {
                put(claims, before.index, claim(shown));
                newest.values_mut().filter(|n| n.at == at).for_each(|n| n.overwritten = last.overwritten + 1);
            }
        }
        // The window ends before it shows whether its last setting is overwritten too: leave it out.
        for step in newest.values().filter(|n| n.overwritten >= OVERWRITTEN).filter_map(|n| steps.get(n.at)) {
            leave_out_later(step, claims);
        }
    }
}

/// Returns the state that a step sets for others, and the key that identifies it.
fn shown(step: &Step<'_>) -> Option<(&'static Shown, Vec<u8>)> {
    let shown = step.lines.shown(&step.observed)?;
    let mut key = step.observed.syscall.0.to_le_bytes().to_vec();
    for source in shown.key {
        key.extend_from_slice(&value(*source, &step.observed)?);
        key.push(0);
    }
    Some((shown, key))
}

/// Returns the descriptor that a step is about.
fn descriptor(step: &Step<'_>) -> Option<i32> {
    let arg = step.lines.fd.and_then(|arg| u8::try_from(arg).ok())?;
    Some(step.observed.descriptor(arg))
}

/// Returns true if the program itself looks at files' times or its name.
fn looks(step: &Step<'_>) -> bool {
    use crate::semantics::{ATTRIBUTES, Act, FILE_STATUS, PATH};
    let asks = |m: &crate::replay::Meaning<'_>| {
        matches!(m.line.act, Act::Ask(_))
            && (m.line.about.is(&ATTRIBUTES) || m.line.about.is(&FILE_STATUS) || m.line.about.is(&PATH))
    };
    step.meaning.as_ref().is_some_and(asks) || step.effects.iter().any(|e| matches!(e, Effect::Identity))
}

/// Returns the time from one call to the other, ns; `None` if the recording has no times.
fn lasted(from: &Step<'_>, to: &Step<'_>) -> Option<u64> {
    to.observed.call.entry_ns.checked_sub(from.observed.call.entry_ns).filter(|ns| *ns > 0)
}

fn claim(shown: &'static Shown) -> Claim {
    Claim { gives_up: shown.gives_up, ..Claim::of(Kind::Toggle, shown.thing, shown.instead) }
}
