//! Detects questions for an attribute that no file has.

use super::claim::{Claim, Claims, Detector, put};
use crate::finding::Kind;
use crate::hash::Map;
use crate::replay::Step;
use crate::signs::Signs;
use systoll_model::{Moment, Sysno};

/// Number of files without the attribute from which on a question of another file is claimed.
const SEEN: u32 = 32;

/// Claims questions for an attribute that many files were asked for and none had. The claim is weak: the next file
/// may have it.
#[derive(Default)]
pub(super) struct Absent {
    /// By process, call and attribute: the number of files without it; `None` once a file has it.
    without: Map<(u32, Sysno, Vec<u8>), Option<u32>>,
}

impl Detector for Absent {
    fn looks_for(&self) -> Signs {
        Signs::ATTRIBUTE
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        for step in steps {
            let Some(line) = step.lines.attribute() else { continue };
            let Some(name) = step.observed.data(line.name, Moment::Entry) else { continue };
            let key = (step.who, step.observed.syscall, name.to_vec());
            let without = self.without.entry(key).or_insert(Some(0));
            match (step.observed.call.errno(), without.as_mut()) {
                (Some(errno), Some(n)) if line.absent.contains(&errno) => {
                    *n = n.saturating_add(1);
                    if *n > SEEN {
                        put(claims, step.index, claim());
                    }
                }
                (None, _) => *without = None,
                _ => {}
            }
        }
    }
}

fn claim() -> Claim {
    Claim {
        weak: true,
        gives_up: "an attribute that a file gets meanwhile is not noticed",
        ..Claim::of(
            Kind::Failing,
            "asks each file for an attribute that none has",
            "ask the file system once, or not at all where the attribute is not shown",
        )
    }
}
