//! Tells terminals, and pieces of their input and output, from other transfers. A person types and
//! reads there, so one read for each key and one write for each line are needed. Input that is
//! there already can be read at once, and output without a pause can be written at once.

use crate::semantics::{TERMINALS, Way};
use crate::world::replay::{Moved, Step};
use systoll_model::{Moment, WindowCall};

/// Largest size of a piece, bytes: a cell of a screen with its position and colours, or a word.
const PIECE: u64 = 64;
/// Ratio of the work before a write to the time of the write before it from which on the output is news, which is
/// written as soon as it is known.
const NEWS: u64 = 8;
/// Least time that a write to a terminal is taken to need, ns, even if its wait leaves less.
const WRITE: u64 = 1_000;
/// Time below which a call counts as not waiting for a person if waits were not measured, ns.
const AT_ONCE: u64 = 1_000_000;

/// Returns true if the call is on a terminal.
pub(super) fn is_terminal(step: &Step<'_>) -> bool {
    let file = step.observed.call.fd.as_deref().unwrap_or_default();
    TERMINALS.iter().any(|terminal| file.starts_with(terminal))
}

/// Returns true if the call did not wait: the terminal had the input already.
pub(super) fn at_once(call: &WindowCall) -> bool {
    call.waited_ns.map_or(call.elapsed_ns < AT_ONCE, |waited| waited == 0)
}

/// Returns true if a transfer of few bytes could have been joined with others: a read of as much as was asked for, or
/// a write that does not redraw its line, as progress displays do.
pub(super) fn is_piece(step: &Step<'_>, moved: &Moved) -> bool {
    let (Some(got), Some(asked)) = (moved.got, moved.asked) else { return false };
    if !(1..=PIECE).contains(&got) || got < asked {
        return false;
    }
    moved.line.way == Way::In || ends_line(step, moved) || written(step, moved).is_some_and(|bytes| !draws_anew(bytes))
}

/// Returns true if a write ends a line, which a person reads now.
pub(super) fn ends_line(step: &Step<'_>, moved: &Moved) -> bool {
    written(step, moved).is_some_and(|bytes| bytes.ends_with(b"\n"))
}

/// Returns true if a write's output is new, since the program worked since the write before: for long, or at all if
/// the output is the same again, as with a dot for each finished step.
pub(super) fn is_news(before: &Step<'_>, step: &Step<'_>) -> bool {
    let (was, call) = (before.observed.call, step.observed.call);
    let took = was.elapsed_ns.saturating_sub(was.waited_ns.unwrap_or(0)).clamp(WRITE, AT_ONCE);
    let worked = call.entry_ns.saturating_sub(was.entry_ns.saturating_add(was.elapsed_ns));
    let [first, second] = [before, step].map(|s| s.observed.data(1, Moment::Entry));
    worked > NEWS * took || worked > took && first == second
}

/// Returns the bytes of a write if the window holds all of them.
fn written<'a>(step: &Step<'a>, moved: &Moved) -> Option<&'a [u8]> {
    let bytes = step.observed.data(1, Moment::Entry)?;
    (moved.line.way == Way::Out && moved.asked == Some(bytes.len() as u64)).then_some(bytes)
}

/// Returns true if the text moves back over existing text.
fn draws_anew(bytes: &[u8]) -> bool {
    matches!(bytes, [b'\r' | 0x08, ..] | [.., b'\r'])
}
