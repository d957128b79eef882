//! The calls by which processes change names: what windows show of them stands for those that no window shows.

use crate::collections::hash::{Map, Set};
use crate::names::changed_names::{ChangedNames, Form, Hashes};
use crate::names::paths::{PathId, Paths};
use crate::semantics::{Effect, Lines, ObservedCall, SETTLED, Semantics};
use crate::world::whole_rows::whole_rows;
use std::borrow::Cow;
use std::cell::RefCell;
use systoll_model::{Recording, Row, RowId};

/// Number of questions for each change that is rare beside them.
const RARE: u64 = 16;
/// Least number of a row's changes that windows show for the names in them to stand for the row's other changes. If each
/// of 8 random changes is of another name, at most 31 % of all are of this one, with 95 % probability (0.69^8 = 0.05).
const SHOWN: u64 = 8;

/// The calls of a row that change names.
struct Changer {
    /// Number of all calls of the row, by exact counts: those about one name are no more.
    calls: u64,
    /// True if windows show all of them.
    is_whole: bool,
    /// True if the calls move names, and do not only set what belongs to a file.
    moves: bool,
    /// Number of the calls that windows show.
    shown: u64,
    /// True if windows show a change without its name.
    unread: bool,
    changed: ChangedNames,
    /// Hashes of the folders on the way to the changed names.
    above: Set<u64>,
    /// For each [`Form`], true if changed names have it.
    forms: [bool; 3],
}

/// The rows by which processes change names, as far as windows show.
#[derive(Default)]
pub(crate) struct Changers {
    hashes: Hashes,
    /// By process.
    rows: Map<u32, Map<RowId, Changer>>,
    /// The answers of [`Changers::may_hide`], by process, path and row.
    hidden: RefCell<Map<(u32, PathId, RowId), bool>>,
}

/// Tells where a path lies in relation to names that a process moves all the time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// At such a name or below it.
    Moved,
    /// Perhaps on the way to one.
    Above,
    Elsewhere,
}

impl Changers {
    pub(crate) fn of(recording: &Recording, semantics: &Semantics) -> Self {
        let changes = |lines: &Lines| !lines.may_open && lines.does(is_change);
        let is_changer = |row: &Row| changes(semantics.lines_of(row.syscall));
        let whole = whole_rows(recording, is_changer);
        let mut made = Self::default();
        for (id, row) in (0u32..).map(RowId).zip(&recording.rows).filter(|(_, row)| is_changer(row)) {
            let changed = ChangedNames::with(made.hashes.clone());
            let changer = Changer {
                calls: row.counts.calls,
                is_whole: whole.contains(&id),
                moves: moves_names(semantics.lines_of(row.syscall)),
                shown: 0,
                unread: false,
                changed,
                above: Set::default(),
                forms: [false; 3],
            };
            made.rows.entry(row.process.0).or_default().insert(id, changer);
        }
        for observed in semantics.calls_in_windows(recording, changes) {
            let process = recording.row(observed.call.row).process.0;
            let Some(changer) = made.rows.get_mut(&process).and_then(|rows| rows.get_mut(&observed.call.row)) else {
                continue;
            };
            changer.shown += 1;
            let effects = semantics.lines_of(observed.syscall).effects(&observed);
            for effect in effects.iter().filter(|effect| is_change(*effect) && observed.call.errno().is_none()) {
                match changed_name(effect, &observed) {
                    Some(name) => changer.note(&name, &made.hashes),
                    None => changer.unread = true,
                }
            }
        }
        made
    }

    /// Returns the rows by which a process changes names, and not rarely beside the `calls` of another row.
    fn often(&self, process: u32, calls: u64) -> impl Iterator<Item = &Changer> {
        let rows = self.rows.get(&process).into_iter().flat_map(Map::values);
        rows.filter(move |row| row.calls.saturating_mul(RARE) > calls)
    }

    /// Returns true if the process moves names.
    pub(crate) fn moves_names(&self, process: u32) -> bool {
        self.often(process, 0).any(|row| row.moves)
    }

    /// Returns true if a change that no window shows may often have come between two questions about the path by a row,
    /// which is given with its number of calls.
    pub(crate) fn may_hide(&self, process: u32, path: PathId, paths: &Paths<'_>, (row, calls): (RowId, u64)) -> bool {
        let concerns = |row: &Changer| row.unread || row.shown < SHOWN || row.changed.newest(&paths.text(path)) > 0;
        let hides = || self.often(process, calls).any(|row| !row.is_whole && concerns(row));
        *self.hidden.borrow_mut().entry((process, path, row)).or_insert_with(hides)
    }

    /// Returns the place of a path in relation to the names that the process moves, and not rarely beside the `calls` of
    /// another row.
    pub(crate) fn place(&self, process: u32, path: &str, calls: u64) -> Place {
        let moving = || self.often(process, calls).filter(|row| row.moves);
        let whole = || self.hashes.of(path).last().map(|beginning| beginning.whole);
        let is_above =
            |row: &Changer| row.unread || row.has_other_form(path) || whole().is_none_or(|p| row.above.contains(&p));
        match () {
            () if moving().any(|row| row.changed.newest(path) > 0) => Place::Moved,
            () if moving().any(is_above) => Place::Above,
            () => Place::Elsewhere,
        }
    }
}

impl Changer {
    fn note(&mut self, name: &str, hashes: &Hashes) {
        self.changed.change(name, 1);
        if let Some(form) = self.forms.get_mut(Form::of(name) as usize) {
            *form = true;
        }
        let beginnings: Vec<u64> = hashes.of(name).map(|beginning| beginning.whole).collect();
        self.above.extend(beginnings.iter().rev().skip(1));
    }

    /// Returns true if some of the changed names have another form than the path: where they lie is not known.
    fn has_other_form(&self, path: &str) -> bool {
        let form = Form::of(path);
        Form::ALL.iter().zip(self.forms).any(|(of, has)| has && !form.fits(*of))
    }
}

/// Returns true if the call moves names, and does not only set what belongs to the file at a name.
fn moves_names(lines: &Lines) -> bool {
    let sets = SETTLED.iter().any(|(path, file)| lines.sets(path) || lines.sets(file));
    !sets && lines.does(|effect| matches!(effect, Effect::Path { .. } | Effect::Root))
}

/// Returns true if the effect changes a name, or what belongs to the file at a name.
fn is_change(effect: Effect) -> bool {
    matches!(effect, Effect::Path { .. } | Effect::Restates(_) | Effect::Root)
}

/// Returns the name that the effect changes; `None` if it was not read.
fn changed_name<'a>(effect: Effect, observed: &ObservedCall<'a>) -> Option<Cow<'a, str>> {
    match effect {
        Effect::Path { at, path } => observed.path(at, path),
        Effect::Restates(0) => observed.call.fd.as_deref().filter(|name| name.starts_with('/')).map(Cow::Borrowed),
        _ => None,
    }
}
