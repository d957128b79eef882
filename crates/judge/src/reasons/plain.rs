//! What there is to see of a call that no detector claims, for `systoll explain --why-not`.

use crate::reasons::Plain;
use crate::semantics::Act;
use crate::world::step::{Meaning, Step};

/// Largest size of a small transfer, bytes.
const SMALL: u64 = 512;

/// Returns what there is to see of a step.
pub(crate) fn plain(step: &Step<'_>) -> Plain {
    if !step.lines.say_anything() {
        return Plain::NoQuestion;
    }
    if let Some(moved) = step.moved {
        return match moved.got {
            None => Plain::Failed,
            Some(0) => Plain::NoBytes,
            Some(1..=SMALL) => Plain::FewBytes,
            Some(_) => Plain::ManyBytes,
        };
    }
    if step.nothing {
        return Plain::FoundNothing;
    }
    if let Some(opened) = &step.opened {
        return if opened.again { Plain::OpenedAgain } else { Plain::OpenedOnce };
    }
    if let Some(meaning) = &step.meaning {
        return of_meaning(meaning);
    }
    match () {
        () if step.observed.call.errno().is_some() => Plain::Failed,
        () if step.makes.is_some() || step.ends || step.moves => Plain::MadeOnce,
        () if step.pauses => Plain::Waits,
        () => Plain::Other,
    }
}

/// Returns what there is to see of a question or a set.
fn of_meaning(meaning: &Meaning<'_>) -> Plain {
    let sets = matches!(meaning.line.act, Act::Set { .. });
    match (&meaning.known, &meaning.now) {
        _ if meaning.changes_nothing => Plain::KnownButFew,
        (_, None) if matches!(meaning.line.act, Act::Try) => Plain::Succeeds,
        (_, None) => Plain::Unread,
        (None, Some(_)) => Plain::NotKnown,
        (Some(known), Some(now)) if known == now => Plain::KnownButFew,
        _ if sets => Plain::OtherValue,
        _ => Plain::OtherAnswer,
    }
}
