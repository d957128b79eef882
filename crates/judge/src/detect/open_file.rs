//! One opening of a file, followed through the copies of its descriptor until the last of them is closed.

use crate::semantics::{Effect, INTEREST, Lines, ObservedCall, When};
use crate::world::replay::Step;
use systoll_model::ArgKind;

/// Largest number of a file's descriptors that are followed.
const MOST: usize = 8;

/// An open file. A shell copies each script that it reads to a descriptor above 9 and closes the one that it got.
pub(super) struct OpenFile {
    descriptors: Vec<i64>,
}

/// The part of a call in the life of an open file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Nothing: it is about something else.
    None,
    /// It uses one of the descriptors, or closes one of several.
    Some,
    /// It closes the last descriptor.
    Last,
}

impl OpenFile {
    /// Returns the file that was just opened as `fd`.
    pub(super) fn new(fd: i64) -> Self {
        Self { descriptors: vec![fd] }
    }

    /// Returns what the next call does with the file.
    pub(super) fn next_use(&mut self, call: &ObservedCall<'_>, lines: &Lines) -> Use {
        let arg = if lines.sets(&INTEREST) { Some(2) } else { lines.fd.filter(|arg| *arg == 0) };
        let Some(fd) = arg.map(|arg| i64::from(call.descriptor(arg as u8))) else { return Use::None };
        if names_below(call) {
            return Use::None;
        }
        let Some(at) = self.descriptors.iter().position(|open| *open == fd) else { return Use::None };
        for effect in lines.effects(call).iter() {
            match effect {
                Effect::Closes(0) => {
                    self.descriptors.swap_remove(at);
                    return if self.descriptors.is_empty() { Use::Last } else { Use::Some };
                }
                Effect::Shares if self.descriptors.len() < MOST => {
                    self.descriptors.extend(call.call.result.filter(|copy| *copy >= 0 && *copy != fd));
                }
                _ => {}
            }
        }
        Use::Some
    }
}

/// Returns true if the call names something in the folder that its descriptor leads to, and so is not about the folder
/// itself.
pub(super) fn names_below(call: &ObservedCall<'_>) -> bool {
    let kind = |arg: usize| Some(call.syscall.signature()?.args.get(arg)?.kind);
    let is_below = kind(0) == Some(ArgKind::DirFd) && kind(1) == Some(ArgKind::Path);
    is_below && !call.holds(&[When::EmptyPath(1)])
}

/// Returns the steps that use the file opened as `fd`, up to the one that closes it, each with its use.
pub(super) fn uses<'s, 'a>(fd: i64, steps: &'s [Step<'a>]) -> impl Iterator<Item = (&'s Step<'a>, Use)> + use<'s, 'a> {
    let mut file = Some(OpenFile::new(fd));
    steps.iter().filter_map(move |step| {
        let used = file.as_mut()?.next_use(&step.observed, step.lines);
        if used == Use::Last {
            file = None;
        }
        (used != Use::None).then_some((step, used))
    })
}
