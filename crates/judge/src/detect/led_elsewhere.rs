//! Finds questions by which a program follows a path, one component after another, to a name that it gives to another
//! file all the time. Together they are one question, of which only the folders on the way have the same answer again.

use super::walk::{one_more, path};
use crate::collections::hash::Set;
use crate::semantics::Key;
use crate::world::changers::{Changers, Place};
use crate::world::replay::{Meaning, Step};
use std::rc::Rc;

/// Names that processes give to other files, or take away, as far as windows show.
pub(super) struct LedElsewhere {
    pub(super) names: Rc<Changers>,
}

/// Tells whether a question follows a path whose names stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// A path whose names stay, or a question that follows no path.
    Stays,
    /// A path with a name that the process gave to another file since it was last followed.
    Moves,
    /// A path that an end of the window cuts, and that may go on to a name that the process moves.
    Cut,
}

/// Questions that follow one path, by their indices.
#[derive(Default)]
struct Way {
    steps: Vec<usize>,
    asked: Set<Key>,
    /// True if one of them told where a link leads.
    has_link: bool,
}

impl Way {
    /// Returns true if a question follows on after the newest one. The same question again begins anew, unless a link led
    /// back to it.
    fn goes_on(&self, steps: &[Step<'_>], step: &Step<'_>, here: &str) -> bool {
        let last = self.steps.last().and_then(|last| steps.get(*last));
        let again = step.meaning.as_ref().is_some_and(|meaning| self.asked.contains(&meaning.key));
        last.is_none_or(|last| goes_on(last, here) && (!again || self.has_link && !tells_link(step)))
    }

    fn push(&mut self, at: usize, step: &Step<'_>) {
        self.steps.push(at);
        self.asked.extend(step.meaning.as_ref().map(|meaning| meaning.key));
        self.has_link |= tells_link(step);
    }
}

impl LedElsewhere {
    /// Returns what the steps follow, for each step; `calls` returns the exact number of calls of a step's row. Returns
    /// `None` if the process moves no names.
    pub(super) fn follows(&self, steps: &[Step<'_>], calls: impl Fn(&Step<'_>) -> u64) -> Option<Vec<Follows>> {
        let process = steps.first()?.observed.window.process.0;
        if !self.names.moves_names(process) {
            return None;
        }
        let mut all = vec![Follows::Stays; steps.len()];
        let mut mark = |way: Way| {
            let follows = self.follows_one(process, &way.steps, steps, &calls);
            way.steps.iter().filter_map(|at| all.get_mut(*at).map(|of| *of = follows)).for_each(drop);
        };
        let mut way = Way::default();
        for (at, step) in steps.iter().enumerate() {
            let Some(here) = path(step).filter(|_| step.opened.is_none()) else { continue };
            if !way.goes_on(steps, step, here) {
                mark(std::mem::take(&mut way));
            }
            way.push(at, step);
        }
        mark(way);
        // A thread that goes on with the work of another shows a part of the way.
        let paths = |of: Follows| {
            let at = all.iter().zip(steps).filter(move |(follows, _)| **follows == of);
            at.filter_map(|(_, step)| path(step).filter(|_| step.opened.is_none())).collect::<Set<&str>>()
        };
        let moved = paths(Follows::Moves);
        if paths(Follows::Stays).iter().any(|path| moved.contains(path)) {
            for (follows, step) in all.iter_mut().zip(steps).filter(|(follows, _)| **follows == Follows::Stays) {
                if step.opened.is_none() && path(step).is_some_and(|path| moved.contains(path)) {
                    *follows = Follows::Cut;
                }
            }
        }
        Some(all)
    }
}

impl LedElsewhere {
    /// Returns what the questions of one way follow.
    fn follows_one(
        &self,
        process: u32,
        way: &[usize],
        steps: &[Step<'_>],
        calls: impl Fn(&Step<'_>) -> u64,
    ) -> Follows {
        // The same status as before, with the time of its change, shows that the name was not moved in between; that
        // there was nothing before either does not.
        let is_new = |step: &Step<'_>| {
            step.observed.call.errno().is_some() || !step.meaning.as_ref().is_some_and(Meaning::known_already)
        };
        let is_cut = way.first() == Some(&0) || way.last().is_some_and(|last| last + 1 == steps.len());
        let mut follows = Follows::Stays;
        for step in way.iter().filter_map(|at| steps.get(*at)) {
            // A row counts the questions about all folders on the way.
            let calls = calls(step) / way.len().max(1) as u64;
            match path(step).map(|path| self.names.place(process, path, calls)) {
                Some(Place::Moved) if is_new(step) => return Follows::Moves,
                Some(Place::Moved) if is_cut => follows = Follows::Cut,
                Some(Place::Above) if is_cut && step.may_be_folder() => follows = Follows::Cut,
                _ => {}
            }
        }
        follows
    }
}

/// Returns true if a question about the path `to` follows on after the question `last`: it is about the path itself, or
/// the folder or an entry of what that was about; or that told where a link leads.
fn goes_on(last: &Step<'_>, to: &str) -> bool {
    let from = path(last).unwrap_or_default();
    tells_link(last) || from == to || one_more(from, to) || one_more(to, from)
}

/// Returns true if the step told where a link leads.
fn tells_link(step: &Step<'_>) -> bool {
    step.meaning.as_ref().is_some_and(|m| m.line.chain) && step.observed.call.errno().is_none()
}
