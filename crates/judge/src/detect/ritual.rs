//! Detects sequences whose main call is always refused, and whose other calls prepare for it and
//! are undone: flags set in order to wait for a file that can't be waited for.

use crate::collections::hash::Map;
use crate::evidence::claim::{Claim, Claims, Detector, put};
use crate::results::finding::Kind;
use crate::semantics::{Act, STATUS_FLAGS, Value};
use crate::world::replay::Step;

/// Number of a process's refusals from which on another one is claimed.
const SEEN: u32 = 2;

/// Claims the refused call, and the setting and unsetting of flags around it.
#[derive(Default)]
pub(super) struct Ritual {
    /// Number of refusals so far, by process.
    refused: Map<u32, u32>,
}

/// The calls on a descriptor.
#[derive(Default)]
struct Course<'a> {
    /// The flags before the calls set them.
    before: Option<Value<'a>>,
    /// Indices of the calls that asked for and set the flags.
    steps: Vec<usize>,
    refused: bool,
}

impl Detector for Ritual {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut courses: Map<i32, Course<'_>> = Map::default();
        for (at, step) in steps.iter().enumerate() {
            // From here on the descriptor refers to another file.
            courses.retain(|fd, _| !step.lets_go(*fd) && !step.makes_descriptor(*fd));
            if let Some(vain) = step.lines.in_vain(&step.observed) {
                let refused = self.refused.entry(step.who).or_default();
                *refused = refused.saturating_add(1);
                if *refused <= SEEN {
                    continue;
                }
                put(claims, step.index, claim());
                if let Some(course) = courses.get_mut(&step.observed.descriptor(vain.about)) {
                    course.refused = true;
                }
                continue;
            }
            let flags = step.meaning.as_ref().filter(|m| m.line.about.is(&STATUS_FLAGS));
            let Some(flags) = flags.filter(|_| step.observed.call.errno().is_none()) else { continue };
            let course = courses.entry(step.observed.descriptor(0)).or_default();
            course.steps.push(at);
            let Act::Set { .. } = flags.line.act else { continue };
            if course.refused && course.before.is_some() && flags.now == course.before {
                for at in std::mem::take(course).steps {
                    put(claims, at, claim());
                }
            } else if !course.refused && !flags.known_already() {
                course.before = flags.known.clone();
            }
        }
    }
}

fn claim() -> Claim {
    Claim {
        ..Claim::of(
            Kind::Failing,
            "prepares each file for being waited for, which regular files refuse, and undoes it",
            "look what kind of file it is before",
        )
    }
}
