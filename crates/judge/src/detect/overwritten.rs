//! What is set for others to see and set anew before they could look.

use super::claim::{Claim, Claims, Detector, leave_out_later, put};
use crate::finding::Kind;
use crate::hash::Map;
use crate::replay::Step;
use crate::semantics::{Effect, Shown, value};
use crate::signs::Signs;

/// How long a thing must last to be seen, in ns: a reader looks no more often than this.
const GLANCE: u64 = 10_000_000;
/// Settings that were overwritten in a window before the one it ends with is left out.
const OVERWRITTEN: usize = 2;

/// Claims settings that were overwritten within a glance.
pub(super) struct Overwritten;

/// The newest setting of a thing, and how many before it are claimed.
struct Newest {
    at: usize,
    /// The descriptor it is about.
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
                // A child has the name, and what was asked was seen.
                newest.clear();
            }
            // The descriptor's number may come back as another file's.
            newest.retain(|_, n| !n.fd.is_some_and(|fd| step.lets_go(fd)));
            let Some((shown, key)) = shown(step).filter(|_| step.observed.call.errno().is_none()) else { continue };
            let before = newest.insert(key, Newest { at, fd: descriptor(step), overwritten: 0 });
            let Some((before, last)) = before.and_then(|b| Some((steps.get(b.at)?, b))) else { continue };
            if lasted(before, step).is_some_and(|ns| ns < GLANCE) {
                put(claims, before.index, claim(shown));
                newest.values_mut().filter(|n| n.at == at).for_each(|n| n.overwritten = last.overwritten + 1);
            }
        }
        // Whether the last of a window is overwritten as well lies behind it.
        for step in newest.values().filter(|n| n.overwritten >= OVERWRITTEN).filter_map(|n| steps.get(n.at)) {
            leave_out_later(step, claims);
        }
    }
}

/// What a step sets for others, and what tells it from other such things.
fn shown(step: &Step<'_>) -> Option<(&'static Shown, Vec<u8>)> {
    let shown = step.lines.shown(&step.observed)?;
    let mut key = step.observed.syscall.0.to_le_bytes().to_vec();
    for source in shown.key {
        key.extend_from_slice(&value(*source, &step.observed)?);
        key.push(0);
    }
    Some((shown, key))
}

/// The descriptor that a step is about.
fn descriptor(step: &Step<'_>) -> Option<i32> {
    let arg = step.lines.fd.and_then(|arg| u8::try_from(arg).ok())?;
    Some(step.observed.descriptor(arg))
}

/// Whether the program itself looks at files' times or its name.
fn looks(step: &Step<'_>) -> bool {
    use crate::semantics::{ATTRIBUTES, Act, FILE_STATUS, PATH};
    let asks = |m: &crate::replay::Meaning<'_>| {
        matches!(m.line.act, Act::Ask(_))
            && (m.line.about.is(&ATTRIBUTES) || m.line.about.is(&FILE_STATUS) || m.line.about.is(&PATH))
    };
    step.meaning.as_ref().is_some_and(asks) || step.effects.iter().any(|e| matches!(e, Effect::Identity))
}

/// Time from one call to the other; `None` where the recording has no times.
fn lasted(from: &Step<'_>, to: &Step<'_>) -> Option<u64> {
    to.observed.call.entry_ns.checked_sub(from.observed.call.entry_ns).filter(|ns| *ns > 0)
}

fn claim(shown: &'static Shown) -> Claim {
    Claim { gives_up: shown.gives_up, ..Claim::of(Kind::Toggle, shown.thing, shown.instead) }
}
