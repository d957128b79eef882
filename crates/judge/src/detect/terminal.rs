//! Terminals: a person types and reads there, so that a read a key and a write a line are as they should be. What is
//! there already can be read at once, and what goes out without a pause can be written at once.

use crate::replay::{Moved, Step};
use crate::semantics::{TERMINALS, Way};
use systoll_model::{Moment, WindowCall};

/// Bytes of a piece, at most: a cell of a screen with its place and its colours, a word.
const PIECE: u64 = 64;
/// Work before a write that takes so many times as long as the write before it took makes something new, told as soon
/// as it is known.
const NEWS: u64 = 8;
/// What a write to a terminal takes at least, in ns: of one that waited for room the rest can't be told.
const WRITE: u64 = 1_000;
/// Where waiting can't be told, a call of less time, in ns, did not wait for a person.
const AT_ONCE: u64 = 1_000_000;

/// Whether the call is about a terminal.
pub(super) fn is_terminal(step: &Step<'_>) -> bool {
    let file = step.observed.call.fd.as_deref().unwrap_or_default();
    TERMINALS.iter().any(|terminal| file.starts_with(terminal))
}

/// Whether the call did not wait: what it read of a terminal lay there.
pub(super) fn at_once(call: &WindowCall) -> bool {
    call.waited_ns.map_or(call.elapsed_ns < AT_ONCE, |waited| waited == 0)
}

/// Whether a transfer is one of few bytes that could have been joined with others: a read of as much as was asked for, a
/// write that does not draw its line anew, as what shows progress does.
pub(super) fn is_piece(step: &Step<'_>, moved: &Moved) -> bool {
    let (Some(got), Some(asked)) = (moved.got, moved.asked) else { return false };
    if !(1..=PIECE).contains(&got) || got < asked {
        return false;
    }
    moved.line.way == Way::In || ends_line(step, moved) || written(step, moved).is_some_and(|bytes| !draws_anew(bytes))
}

/// Whether a write ends a line: a person reads it now.
pub(super) fn ends_line(step: &Step<'_>, moved: &Moved) -> bool {
    written(step, moved).is_some_and(|bytes| bytes.ends_with(b"\n"))
}

/// Whether what a write gives is something new, for which the program worked since the write before: long, or at all
/// where it gives the same again, as a dot for each thing done.
pub(super) fn is_news(before: &Step<'_>, step: &Step<'_>) -> bool {
    let (was, call) = (before.observed.call, step.observed.call);
    let took = was.elapsed_ns.saturating_sub(was.waited_ns.unwrap_or(0)).clamp(WRITE, AT_ONCE);
    let worked = call.entry_ns.saturating_sub(was.entry_ns.saturating_add(was.elapsed_ns));
    let [first, second] = [before, step].map(|s| s.observed.data(1, Moment::Entry));
    worked > NEWS * took || worked > took && first == second
}

/// What a write gave, where it was read whole.
fn written<'a>(step: &Step<'a>, moved: &Moved) -> Option<&'a [u8]> {
    let bytes = step.observed.data(1, Moment::Entry)?;
    (moved.line.way == Way::Out && moved.asked == Some(bytes.len() as u64)).then_some(bytes)
}

/// Whether the text goes back over what stands there.
fn draws_anew(bytes: &[u8]) -> bool {
    matches!(bytes, [b'\r' | 0x08, ..] | [.., b'\r'])
}
