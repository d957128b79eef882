//! Strands: what a row looks like from the calls about the objects that its claims are about.
//!
//! A row is a calling context, and one context may serve several lines of a script or several callers. A finding is
//! about some of its objects only: its line, API, owner and cure come from samples of calls about these, and from no
//! others.

use crate::collections::hash::Set;
use crate::detect::leads_to;
use crate::evidence::claim::{Claims, Judged};
use crate::results::finding::Kind;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use systoll_model::{
    FrameId, ObjectSample, ProcessId, Recording, RowId, RowLine, RowTrunk, Stack, StackId, Sysno, WholeStack, shape,
};

/// Ending of the name that the kernel gives a deleted file.
const DELETED: &str = " (deleted)";

/// The names of objects that a row's calls in windows are about; `None` for calls about no object, or an unknown one.
#[derive(Default)]
struct RowObjects {
    /// The claimed objects, with the kinds of their claims, as in `votes`.
    claimed: BTreeMap<Option<String>, BTreeSet<Option<Kind>>>,
    others: BTreeSet<Option<String>>,
    /// The files of claims on calls about something else, which go with the file: a shell's copies of standard output.
    goes_with: BTreeSet<Arc<str>>,
    /// The files of claims on calls about the files themselves.
    is_about: BTreeSet<Arc<str>>,
    /// Votes of the claims of each kind, and under `None` of those that only go with a file. As with a row's cause, the
    /// most votes decide.
    votes: BTreeMap<Option<Kind>, usize>,
}

/// Distinguishes samples about claimed objects from others.
struct SampleFilter {
    claimed: Names,
    others: Names,
}

impl RowObjects {
    /// Returns true if the claims that only go with a file have the most votes, and no claim is about one.
    fn is_companion(&self) -> bool {
        let most = self.votes.values().max();
        self.is_about.is_empty() && most.is_some() && self.votes.get(&None) == most
    }

    /// Returns the objects of the claims that decide about the row's cause. A row that was not split may have claims of another
    /// kind about other objects, which other lines may touch.
    fn deciding(&self) -> BTreeSet<&Option<String>> {
        let most = self.votes.values().max();
        let decides = |kind: &Option<Kind>| self.votes.get(kind) == most;
        self.claimed.iter().filter(|(_, kinds)| kinds.iter().any(decides)).map(|(name, _)| name).collect()
    }
}

/// The samples that decide about the lines and callers of each narrowed row.
type Narrowed<'a> = BTreeMap<RowId, Vec<&'a ObjectSample>>;

/// Names of objects, with their shapes and folders.
struct Names {
    /// True if some of the calls are about no object, or an unknown one.
    nameless: bool,
    names: Set<String>,
    shapes: Set<String>,
    folders: Set<String>,
}

impl Names {
    fn of<'a>(all: impl Iterator<Item = &'a Option<String>> + Clone) -> Self {
        let names: Set<String> = all.clone().flatten().cloned().collect();
        let shapes: Set<String> = names.iter().map(|name| shape(name)).collect();
        let folders = shapes.iter().filter_map(|shape| folder(shape)).collect();
        Self { nameless: all.clone().any(Option::is_none), names, shapes, folders }
    }

    fn is_empty(&self) -> bool {
        !self.nameless && self.names.is_empty()
    }
}

impl SampleFilter {
    /// Returns true if a sample is about a claimed object. Where windows do not show its name, names of its shape decide,
    /// or else those of its folder.
    fn is_claimed(&self, sample: &ObjectSample) -> bool {
        let Some(name) = sample.object.as_deref().map(living) else {
            return self.claimed.nameless && !self.others.nameless;
        };
        if self.claimed.names.contains(name) {
            return true;
        }
        if self.others.names.contains(name) {
            return false;
        }
        let shape = shape(name);
        let folder = folder(&shape).unwrap_or_default();
        let either = |of: fn(&Names) -> &Set<String>, name: &str| {
            (of(&self.claimed).contains(name), of(&self.others).contains(name))
        };
        match either(|names| &names.shapes, &shape) {
            (false, false) => either(|names| &names.folders, &folder) == (true, false),
            by_shape => by_shape == (true, false),
        }
    }
}

/// Returns the name under which a file was opened that has been deleted since.
fn living(name: &str) -> &str {
    name.strip_suffix(DELETED).unwrap_or(name)
}

/// Returns the folder of a path's shape, as samples name it.
fn folder(shape: &str) -> Option<String> {
    shape.rsplit_once('/').map(|(folder, _)| format!("{folder}/*"))
}

/// Replaces in `parts` the lines and callers of rows with claims by those of samples about the claimed objects. `origins`
/// has for each row of `parts` the row of `recording` of which it is a part. Only rows for which `narrows` is true change.
pub(crate) fn narrow(
    parts: &mut Recording,
    origins: &[RowId],
    narrows: &dyn Fn(&RowId) -> bool,
    (recording, claims): (&Recording, &Claims),
) {
    let of_rows = objects(parts, origins, recording, claims);
    let mut siblings: BTreeMap<RowId, Vec<(RowId, &RowObjects)>> = BTreeMap::new();
    for (row, objects) in &of_rows {
        if let Some(origin) = origins.get(row.0 as usize).filter(|origin| narrows(origin)) {
            siblings.entry(*origin).or_default().push((*row, objects));
        }
    }
    let mut new: Narrowed<'_> = BTreeMap::new();
    for (origin, parts_of_row) in &siblings {
        for (row, objects) in parts_of_row.iter().filter(|(_, objects)| !objects.is_companion()) {
            let of_others = parts_of_row.iter().filter(|(of, _)| of != row);
            let of_others = of_others.flat_map(|(_, sibling)| sibling.claimed.keys().chain(&sibling.others));
            // What is claimed now and then is claimed.
            let deciding = objects.deciding();
            let others = of_others.chain(objects.claimed.keys()).chain(&objects.others);
            let others = others.filter(|name| !deciding.contains(name));
            let claimed = Names::of(deciding.iter().copied());
            let filter = SampleFilter { claimed, others: Names::of(others) };
            let samples = recording.object_samples_of(*origin).iter();
            if !filter.claimed.is_empty() && !filter.others.is_empty() {
                new.insert(*row, samples.filter(|sample| filter.is_claimed(sample)).collect());
            } else if filter.others.is_empty() {
                set_lines(parts, *row, &samples.collect::<Vec<_>>());
            }
        }
    }
    let users = users(&of_rows, &new, parts);
    for (origin, (row, objects)) in siblings.iter().flat_map(|(origin, rows)| rows.iter().map(move |row| (origin, row)))
    {
        if objects.is_companion() {
            let process = parts.row(*row).process;
            let of_objects: Vec<&Users<'_>> =
                objects.goes_with.iter().filter_map(|object| users.get(&(process, &**object))).collect();
            if of_objects.is_empty() {
                continue;
            }
            let uses = |sample: &&ObjectSample| of_objects.iter().any(|users| users.contain(sample, parts));
            new.insert(*row, recording.object_samples_of(*origin).iter().filter(uses).collect());
        }
    }
    put(parts, &new, recording, origins);
}

/// The lines of scripts that use an object, and the callers of code without such lines.
#[derive(Default)]
struct Users<'a> {
    lines: BTreeSet<FrameId>,
    callers: BTreeSet<&'a [FrameId]>,
}

impl Users<'_> {
    /// Returns true if a sample came by one of them.
    fn contain(&self, sample: &ObjectSample, parts: &Recording) -> bool {
        match sample.line {
            Some(line) => self.lines.contains(&line),
            None => self.callers.contains(&*parts.stack(sample.above).frames),
        }
    }
}

/// Returns the users of each object that claims are about, by process.
fn users<'a>(
    of_rows: &'a BTreeMap<RowId, RowObjects>,
    narrowed: &Narrowed<'_>,
    parts: &'a Recording,
) -> BTreeMap<(ProcessId, &'a str), Users<'a>> {
    let mut users: BTreeMap<(ProcessId, &str), Users<'a>> = BTreeMap::new();
    for (id, objects) in of_rows {
        let row = parts.row(*id);
        let (lines, callers): (Vec<FrameId>, Vec<StackId>) = match narrowed.get(id) {
            Some(samples) => {
                let lines = samples.iter().filter_map(|sample| sample.line);
                (lines.collect(), samples.iter().map(|sample| sample.above).collect())
            }
            None => {
                let trunks = parts.trunks_of(*id).iter().map(|trunk| trunk.stack);
                (row.lines.iter().map(|line| line.frame).collect(), trunks.collect())
            }
        };
        for object in &objects.is_about {
            let of_object = users.entry((row.process, object)).or_default();
            of_object.lines.extend(&lines);
            of_object.callers.extend(callers.iter().map(|caller| &*parts.stack(*caller).frames));
        }
    }
    users
}

/// Returns the objects of the rows that have samples, as windows show them.
fn objects(
    parts: &Recording,
    origins: &[RowId],
    recording: &Recording,
    claims: &Claims,
) -> BTreeMap<RowId, RowObjects> {
    let mut of_rows: BTreeMap<RowId, RowObjects> = BTreeMap::new();
    let has_samples =
        |row: RowId| origins.get(row.0 as usize).is_some_and(|origin| !recording.object_samples_of(*origin).is_empty());
    let calls = parts.windows.iter().flat_map(|window| &window.calls);
    for (call, judged) in calls.zip(claims.iter()).filter(|(call, _)| has_samples(call.row)) {
        let objects = of_rows.entry(call.row).or_default();
        let syscall = parts.row(call.row).syscall;
        let name = call.object(syscall).map(|name| living(&name).to_owned());
        if let Judged::Claimed(claim) = judged {
            let is_about = |object: &str| match &name {
                Some(name) => leads_to(name, object) || leads_to(object, name),
                // What windows don't show may be the object; a call that makes a socket for it is not about it.
                None => has_object(syscall),
            };
            let sort = match &claim.object {
                Some(object) if !is_about(object) => {
                    objects.goes_with.insert(Arc::clone(object));
                    None
                }
                object => {
                    objects.is_about.extend(object.clone());
                    Some(claim.kind)
                }
            };
            *objects.votes.entry(sort).or_default() += claim.votes();
            objects.claimed.entry(name).or_default().insert(sort);
        } else if matches!(judged, Judged::Unclaimed) {
            objects.others.insert(name);
        }
    }
    of_rows
}

/// Returns true if calls of `syscall` are about a path or a descriptor.
fn has_object(syscall: Sysno) -> bool {
    syscall.signature().is_none_or(|call| call.fd_arg().is_some() || call.path_arg().is_some())
}

/// Puts samples in place of the rows' lines and callers.
fn put(parts: &mut Recording, new: &Narrowed<'_>, recording: &Recording, origins: &[RowId]) {
    parts.trunks.retain(|trunk| !new.contains_key(&trunk.row));
    parts.whole_stacks.retain(|whole| !new.contains_key(&whole.row));
    for (id, samples) in new {
        let is_script = origins.get(id.0 as usize).is_some_and(|row| !recording.row(*row).lines.is_empty());
        let lines = if is_script { lines(samples) } else { Vec::new() };
        let outer = outer(parts, samples, lines.first().map(|line| line.frame));
        let outer = stack(parts, outer.into_owned());
        for sample in samples {
            let (row, weight, looks) = (*id, sample.weight, sample.looks);
            parts.trunks.push(RowTrunk { row, stack: sample.above, weight, looks });
            parts.whole_stacks.push(WholeStack { row, stack: sample.whole, weight, looks });
        }
        let Some(row) = parts.rows.get_mut(id.0 as usize) else { continue };
        if is_script {
            row.user = lines.first().map(|line| line.frame);
            row.lines = lines;
        }
        row.outer = outer;
    }
    parts.trunks.sort_by_key(|trunk| trunk.row);
    parts.whole_stacks.sort_by_key(|whole| whole.row);
}

/// Sets the lines of a script's row to those of its samples by object: of many of these only the object was asked, so that
/// they show better than stacks alone how often each line makes the calls.
fn set_lines(parts: &mut Recording, id: RowId, samples: &[&ObjectSample]) {
    let lines = lines(samples);
    let first = lines.first().map(|line| line.frame);
    let is_known = |row: &systoll_model::Row| !row.lines.is_empty() && first.is_some();
    let Some(before) = parts.rows.get(id.0 as usize).filter(|row| is_known(row)).map(|row| row.user) else { return };
    let outer = (before != first).then(|| outer(parts, samples, first).into_owned());
    let outer = outer.map(|frames| stack(parts, frames));
    if let Some(row) = parts.rows.get_mut(id.0 as usize) {
        (row.user, row.lines, row.outer) = (first, lines, outer.unwrap_or(row.outer));
    }
}

/// Returns the lines of samples, those with the most calls first.
pub(crate) fn lines(samples: &[&ObjectSample]) -> Vec<RowLine> {
    let mut lines: Vec<RowLine> = Vec::new();
    for sample in samples {
        let Some(frame) = sample.line else { continue };
        match lines.iter_mut().find(|line| line.frame == frame) {
            Some(line) => {
                line.looks = line.looks.saturating_add(sample.looks);
                line.weight = line.weight.saturating_add(sample.weight);
            }
            None => lines.push(RowLine { frame, looks: sample.looks, weight: sample.weight }),
        }
    }
    lines.sort_by_key(|line| (Reverse(line.weight), line.frame));
    lines
}

/// Returns the frames above the row's context that all samples of `line` have in common; the line and its callers that all have
/// in common, if they differ below it.
fn outer<'a>(parts: &'a Recording, samples: &[&ObjectSample], line: Option<FrameId>) -> Cow<'a, [FrameId]> {
    let of_line = samples.iter().filter(|sample| sample.line == line);
    let stacks = || of_line.clone().map(|sample| &*parts.stack(sample.above).frames);
    let whole = in_common(stacks());
    match line.filter(|line| !whole.contains(line)) {
        Some(line) => {
            let from_line = |frames: &'a [FrameId]| frames.get(frames.iter().position(|frame| *frame == line)?..);
            let outwards = in_common(stacks().filter_map(from_line));
            if outwards.is_empty() { Cow::Owned(vec![line]) } else { Cow::Borrowed(outwards) }
        }
        None => Cow::Borrowed(whole),
    }
}

/// Returns the innermost frames that all stacks have in common.
fn in_common<'a>(mut stacks: impl Iterator<Item = &'a [FrameId]>) -> &'a [FrameId] {
    let Some(first) = stacks.next() else { return &[] };
    let alike = |other: &[FrameId]| first.iter().zip(other).take_while(|(a, b)| a == b).count();
    let shared = stacks.map(alike).min().unwrap_or(first.len());
    first.get(..shared).unwrap_or_default()
}

/// Adds a stack to a recording. Returns its id.
pub(crate) fn stack(recording: &mut Recording, frames: Vec<FrameId>) -> StackId {
    recording.stacks.push(Stack { frames, complete: false });
    StackId(recording.stacks.len() as u32 - 1)
}
