//! The innermost function and line that all calls of a round share.

use super::round::RoundPlace;
use std::cmp::Reverse;
use systoll_model::{FrameClass, FrameId, Recording, RowId};

/// Largest number of frames searched in one row.
const DEEPEST: usize = 256;

/// A function on a row's stack.
struct Link<'a> {
    place: RoundPlace,
    function: &'a str,
    file: Option<&'a str>,
}

/// Returns the functions on a row's stack, from the user's own outwards.
fn links(recording: &Recording, id: RowId) -> Vec<Link<'_>> {
    let row = recording.row(id);
    let of = |stack| recording.stack(stack).frames.iter().copied();
    // If the row has several whole stacks, the one with most calls is used.
    let most = recording.trunks_of(id).iter().max_by_key(|trunk| (trunk.weight, Reverse(trunk.stack)));
    let outer = most.filter(|_| row.lines.is_empty()).map_or(row.outer, |trunk| trunk.stack);
    let frames: Vec<FrameId> = of(row.context).chain(of(outer)).take(DEEPEST).collect();
    let script = frames.iter().any(|frame| recording.frame(*frame).language.is_some());
    let start = row.user.and_then(|user| frames.iter().position(|frame| *frame == user));
    let from_user = frames.get(start.unwrap_or(0)..).unwrap_or_default();
    // A user's frame that is a script's line is not part of the context.
    let user = row.user.filter(|_| start.is_none());
    let ours = |id: &FrameId| {
        let frame = recording.frame(*id);
        let of_user = frame.class == FrameClass::User || frame.class == FrameClass::Unknown;
        if script || user.is_some() { frame.language.is_some() } else { of_user }
    };
    let frames = user.into_iter().chain(from_user.iter().copied()).filter(|id| ours(id) || Some(*id) == row.user);
    let link = |frame: FrameId| {
        recording.frame(frame).shown_locations().iter().enumerate().map(move |(location, l)| Link {
            place: RoundPlace { frame, location },
            function: &l.function,
            file: l.file.as_deref(),
        })
    };
    frames.flat_map(link).collect()
}

/// Returns the innermost function that the stacks of all rows have in common, in its place on the first row's stack;
/// `None` if they have none in common.
pub(super) fn common_place(recording: &Recording, rows: &[RowId]) -> Option<RoundPlace> {
    let (first, others) = rows.split_first()?;
    let of_first = links(recording, *first);
    let others: Vec<Vec<Link<'_>>> = others.iter().map(|row| links(recording, *row)).collect();
    let has = |all: &[Link<'_>], wanted: &Link<'_>| {
        all.iter().any(|link| link.function == wanted.function && link.file == wanted.file)
    };
    of_first.iter().find(|link| others.iter().all(|all| has(all, link))).map(|link| link.place)
}
