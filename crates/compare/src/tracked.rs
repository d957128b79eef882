//! Follows one row through recordings of many builds.

use crate::change::{Side, SourcePlace};
use crate::diff::diff;
use crate::key::{By, Key};
use crate::names::Names;
use crate::select::Selector;
use crate::table::Keys;
use systoll_judge::Judgement;
use systoll_model::{Recording, Row};

/// The rows to follow.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Wanted {
    /// The row that differs most.
    #[default]
    Largest,
    /// The rows of this selector.
    Selected(Selector),
}

/// Rows whose number of calls differs between two recordings.
#[derive(Debug)]
pub struct Tracked {
    what: What,
    names: Names,
}

#[derive(Debug)]
enum What {
    Row(Key),
    Selected(Selector),
}

impl Tracked {
    /// Returns the `wanted` rows of the change from `old` to `new`. Returns `None` if only rows
    /// that vary by themselves differ.
    pub fn of(wanted: &Wanted, old: &Recording, new: &Recording) -> Option<Self> {
        let sides = [old, new].map(std::slice::from_ref);
        let names = Names::of(sides[0], sides[1]);
        let what = match wanted {
            Wanted::Selected(selector) => What::Selected(selector.clone()),
            Wanted::Largest => {
                let none = [Judgement::default()];
                let side = |recordings| Side { recordings, judgements: &none };
                let changes = diff(side(sides[0]), side(sides[1]), By::Row).changed;
                // A row without a caller does not tell the user where to look.
                let known = changes.iter().find(|c| c.key.function.is_some() && c.old.calls != c.new.calls);
                let any = changes.iter().find(|c| c.old.calls != c.new.calls);
                What::Row(known.or(any)?.key.clone())
            }
        };
        let tracked = Self { what, names };
        (tracked.count(old) != tracked.count(new)).then_some(tracked)
    }

    /// Returns the number of calls of the followed rows in `recording`.
    pub fn count(&self, recording: &Recording) -> u64 {
        let rows = self.rows(recording).into_iter();
        rows.fold(0u64, |sum, row| sum.saturating_add(row.counts.calls))
    }

    fn rows<'a>(&self, recording: &'a Recording) -> Vec<&'a Row> {
        let keys = Keys::new(recording, &self.names);
        let selects = |row: &&Row| match &self.what {
            What::Row(key) => keys.row(row) == *key,
            What::Selected(selector) => selector.selects(recording, row),
        };
        recording.rows.iter().filter(selects).collect()
    }

    /// Returns the name of the followed rows, e.g. `fstat < read_config`.
    pub fn name(&self, recording: &Recording) -> String {
        match &self.what {
            What::Selected(selector) => selector.chain.join(" < "),
            What::Row(key) => {
                let call = key.syscall.map(|s| s.to_string());
                let api = key.api.as_deref().filter(|api| Some(*api) != call.as_deref()).map(str::to_owned);
                let function = key.function.as_deref().map(str::to_owned);
                let parts: Vec<String> = [call, api, function].into_iter().flatten().collect();
                let program = key.program.as_deref().filter(|_| recording.processes.len() > 1);
                let program = program.map_or_else(String::new, |p| format!(" in {p}"));
                parts.join(" < ") + &program
            }
        }
    }

    /// Returns the places in the source that make the calls in `recording`: a script's lines, then
    /// the places nearest to the call.
    pub fn places(&self, recording: &Recording) -> Vec<SourcePlace> {
        let mut rows = self.rows(recording);
        rows.sort_by_key(|row| std::cmp::Reverse(row.counts.calls));
        let mut places: Vec<SourcePlace> = Vec::new();
        for row in rows.into_iter().take(MOST_ROWS) {
            let frames =
                |id: systoll_model::StackId| recording.stacks.get(id.0 as usize).map_or(&[][..], |s| &s.frames);
            let lines = row.lines.iter().map(|l| l.frame);
            let all = lines.chain(row.user).chain(frames(row.context).iter().chain(frames(row.outer)).copied());
            let located = all.filter_map(|id| recording.frames.get(id.0 as usize)).flat_map(|f| &f.locations);
            for at in located.filter(|l| l.file.is_some()) {
                let place = SourcePlace::from(at);
                if places.len() < MOST_PLACES && !places.contains(&place) {
                    places.push(place);
                }
            }
        }
        places
    }
}

/// Largest number of rows whose places are returned, and largest number of places.
const MOST_ROWS: usize = 16;
const MOST_PLACES: usize = 200;
