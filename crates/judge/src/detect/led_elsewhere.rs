//! Finds questions by which a program follows a path, one component after another, to a name that it gives to another
//! file all the time. Together they are one question, of which only the folders on the way have the same answer again.

use super::by_process::FilesByProcess;
use super::walk::{one_more, path};
use crate::hash::Set;
use crate::replay::{Meaning, Step};
use crate::semantics::{Effect, Lines, ObservedCall, SETTLED, Semantics};
use std::borrow::Cow;
use systoll_model::Recording;

/// Names that processes give to other files, or take away, as far as windows show.
pub(super) struct LedElsewhere {
    names: FilesByProcess,
}

/// Tells whether a question follows a path whose names stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// A path whose names stay, or a question that follows no path.
    Stays,
    /// A path with a name that the process gave to another file since it was last followed.
    Moves,
    /// A path that an end of the window cuts, in a process that moves names.
    Cut,
}

impl LedElsewhere {
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        Self { names: FilesByProcess::of_all(recording, semantics, moved) }
    }

    /// Returns what the steps follow, for each step; `calls` returns the exact number of calls of a step's row. Returns
    /// `None` if the process moves no names.
    pub(super) fn follows(&self, steps: &[Step<'_>], calls: impl Fn(&Step<'_>) -> u64) -> Option<Vec<Follows>> {
        let process = steps.first()?.observed.window.process.0;
        if !self.names.has(process) {
            return None;
        }
        let mut all = vec![Follows::Stays; steps.len()];
        let mut mark = |run: &[usize]| {
            // The same status as before, with the time of its change, shows that the name was not moved in between; that
            // there was nothing before either does not.
            let is_new = |step: &Step<'_>| {
                step.observed.call.errno().is_some() || !step.meaning.as_ref().is_some_and(Meaning::known_already)
            };
            // A row counts the questions about all folders on the way.
            let moves = |step: &Step<'_>| {
                is_new(step)
                    && path(step).is_some_and(|path| {
                        self.names.is_often_of(process, path, calls(step) / run.len().max(1) as u64)
                    })
            };
            let is_cut = run.first() == Some(&0) || run.last().is_some_and(|last| last + 1 == steps.len());
            let follows = match run.iter().filter_map(|at| steps.get(*at)).any(moves) {
                true => Follows::Moves,
                false if is_cut => Follows::Cut,
                false => Follows::Stays,
            };
            run.iter().filter_map(|at| all.get_mut(*at).map(|of| *of = follows)).for_each(drop);
        };
        let mut run: Vec<usize> = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let Some(here) = path(step).filter(|_| step.opened.is_none()) else { continue };
            let last = run.last().and_then(|last| steps.get(*last));
            if last.is_some_and(|last| !goes_on(last, here)) {
                mark(&run);
                run.clear();
            }
            run.push(at);
        }
        mark(&run);
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

/// Returns true if a question about the path `to` follows on after the question `last`: it is about the path itself, or
/// the folder or an entry of what that was about; or that told where a link leads.
fn goes_on(last: &Step<'_>, to: &str) -> bool {
    let from = path(last).unwrap_or_default();
    let was_link = last.meaning.as_ref().is_some_and(|m| m.line.chain) && last.observed.call.errno().is_none();
    was_link || from == to || one_more(from, to) || one_more(to, from)
}

/// Returns the names that a call gave to another file or took away. A call that opens a file or sets its mode, owner or
/// times leaves the name where it was.
fn moved(lines: &Lines, call: &ObservedCall<'_>) -> Vec<String> {
    let stays = || lines.may_open || SETTLED.iter().any(|(path, file)| lines.sets(path) || lines.sets(file));
    if !lines.does(|effect| matches!(effect, Effect::Path { .. })) || stays() || call.call.errno().is_some() {
        return Vec::new();
    }
    call.paths(lines.effects(call)).map(Cow::into_owned).collect()
}
