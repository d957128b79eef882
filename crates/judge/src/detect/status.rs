//! Detects questions for the status of an open file before each piece that is read from it.

use crate::causes::fact::Fact;
use crate::collections::hash::Map;
use crate::evidence::claim::{Claim, Claims, about_state, leave_out_later, put};
use crate::results::finding::Kind;
use crate::semantics::signs::Signs;
use crate::semantics::{Act, Effect, FILE_STATUS, Value, Way};
use crate::world::barrier::Barrier;
use crate::world::replay::Step;
use systoll_model::Sysno;

/// Number of equal answers, with reads in between, from which on another question is claimed. A program that asks
/// once more when it has read all wants to know whether the file has changed.
const ALIKE: usize = 2;

/// A system call and the descriptor that it asks about.
type Question = (Sysno, i32);

/// Questions about one descriptor with the same answer.
struct Asked<'a> {
    answer: Value<'a>,
    /// Index of the first question, which may be a later one of a series that began before the window.
    first: usize,
    again: Vec<usize>,
    /// True if something was read since the last question.
    read: bool,
}

/// Claims questions for the status of an open file from which only whole pieces were read since: a read changes at
/// most the access time, and a whole piece does not end at the end of the file.
pub(super) fn window(steps: &[Step<'_>], claims: &mut Claims) {
    // Most windows hold too few questions.
    if steps.iter().filter(|step| step.signs.any(Signs::FILE_STATUS)).count() <= ALIKE {
        return;
    }
    let mut asked: Map<Question, Asked<'_>> = Map::default();
    let mut done: Vec<Asked<'_>> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        if let Some((question, answer)) = question(step) {
            match asked.get_mut(&question).filter(|before| before.answer == answer) {
                Some(before) if before.read => {
                    before.again.push(at);
                    before.read = false;
                }
                // Nothing was read in between: it is a plain repeat.
                Some(_) => {}
                None => {
                    let new = Asked { answer, first: at, again: Vec::new(), read: false };
                    done.extend(asked.insert(question, new));
                }
            }
            continue;
        }
        let ended = |(_, fd): &Question| ends(step, *fd);
        let gone: Vec<Question> = asked.keys().filter(|question| ended(question)).copied().collect();
        done.extend(gone.iter().filter_map(|question| asked.remove(question)));
        if let Some(fd) = step.moved.and_then(|moved| moved.fd) {
            asked.iter_mut().filter(|((_, of), _)| *of == fd).for_each(|(_, before)| before.read = true);
        }
    }
    done.extend(asked.into_values());
    done.iter().filter(|asked| asked.again.len() >= ALIKE).for_each(|asked| asked.claim(steps, claims));
}

impl Asked<'_> {
    fn claim(&self, steps: &[Step<'_>], claims: &mut Claims) {
        for step in self.again.iter().filter_map(|at| steps.get(*at)) {
            if let Some(claim) = about_state(Kind::Repeat, step, claims) {
                let instead = Some("keep what it said, and ask again at the end of the file");
                put(claims, step.index, Claim { instead, facts: Fact::PerRead.into(), ..claim });
            }
        }
        self.leave_out_first(steps, claims);
    }

    /// Leaves out the first question if the series may have begun before the window, which shows neither the file's
    /// opening nor a call that ends a series.
    fn leave_out_first(&self, steps: &[Step<'_>], claims: &mut Claims) {
        let Some(first) = steps.get(self.first) else { return };
        let fd = first.observed.descriptor(0);
        if !steps.get(..self.first).unwrap_or_default().iter().any(|s| ends(s, fd)) {
            leave_out_later(first, claims);
        }
    }
}

fn question<'a>(step: &Step<'a>) -> Option<(Question, Value<'a>)> {
    let meaning = step.meaning.as_ref().filter(|m| m.line.about.is(&FILE_STATUS))?;
    let Act::Ask(_) = meaning.line.act else { return None };
    Some(((step.observed.syscall, step.observed.descriptor(0)), meaning.now.clone()?))
}

/// Returns true if the answers before and after the step may differ for good reason: it waited, wrote, reached the
/// end of the file, or made the descriptor refer to another file.
fn ends(step: &Step<'_>, fd: i32) -> bool {
    if step.lets(Barrier::OTHERS_ACT) {
        return true;
    }
    let writes = |e| matches!(e, Effect::Writes(arg) | Effect::Restates(arg) if step.observed.descriptor(arg) == fd);
    let changes = step.lets_go(fd) || step.makes_descriptor(fd) || step.effects.iter().any(writes);
    let whole =
        |m: &crate::world::replay::Moved| m.line.way == Way::In && m.asked.is_some_and(|a| a > 0 && m.got == Some(a));
    changes || step.moved.is_some_and(|moved| moved.fd == Some(fd) && !whole(&moved))
}
