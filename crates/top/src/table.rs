//! Makes the rows of the screen: the calls of an interval, grouped, filtered and sorted.

use crate::history::Interval;
use crate::tally::{CallerPlace, Figures, ProcessKey, RowKey};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use systoll_model::{RowId, Sysno, clean};

/// The things that rows of the screen stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupBy {
    /// A system call, made through one public function from one place.
    #[default]
    Row,
    /// A system call.
    Call,
    /// A public function.
    Api,
    /// A line, or a function if lines are not known.
    Line,
    /// A process.
    Process,
}

impl GroupBy {
    /// All groupings, in the order in which a key goes through them.
    pub const ALL: [Self; 5] = [Self::Row, Self::Call, Self::Api, Self::Line, Self::Process];

    /// Returns the grouping's name on the command line and on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Row => "row",
            Self::Call => "call",
            Self::Api => "api",
            Self::Line => "line",
            Self::Process => "process",
        }
    }
}

/// The order of rows: the largest come first, names in alphabetical order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// Processor time paid a second.
    #[default]
    Toll,
    /// Calls a second.
    Calls,
    /// Time waited a second.
    Waited,
    /// The name.
    Name,
}

impl SortBy {
    /// All orders, in the order in which a key goes through them.
    pub const ALL: [Self; 4] = [Self::Toll, Self::Calls, Self::Waited, Self::Name];

    /// Returns the order's name on the command line and on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Toll => "toll",
            Self::Calls => "calls",
            Self::Waited => "waited",
            Self::Name => "name",
        }
    }
}

/// The property that the calls of a line of the table share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// A row.
    Row(RowKey),
    /// A line of a script that makes calls of a row, known by sampling.
    RowLine(RowKey, CallerPlace),
    /// A system call.
    Call(Sysno),
    /// A public function.
    Api(Option<Arc<str>>),
    /// A place.
    Line(Option<CallerPlace>),
    /// A process.
    Process(ProcessKey, u64),
}

impl Group {
    /// Returns the group's name in parts, from the call to the caller, without characters that act
    /// on terminals.
    pub fn names(&self) -> Vec<String> {
        let api = |api: &Option<Arc<str>>| api.as_deref().map(clean);
        let named = |key: &RowKey, place: Option<&CallerPlace>| {
            let call = clean(&key.syscall.to_string());
            let api = api(&key.api).filter(|api| *api != call);
            [Some(call), api, place.map(place_text)].into_iter().flatten().collect()
        };
        match self {
            Self::Row(key) => named(key, key.place.as_ref()),
            Self::RowLine(key, place) => named(key, Some(place)),
            Self::Call(syscall) => vec![clean(&syscall.to_string())],
            Self::Api(name) => vec![api(name).unwrap_or_else(|| "(no public function)".into())],
            Self::Line(place) => vec![place.as_ref().map_or_else(|| "(no caller known)".into(), place_text)],
            Self::Process(key, instances) if *instances > 1 => {
                vec![clean(&key.program), format!("{} and {} like it", key.pid, instances - 1)]
            }
            Self::Process(key, _) => vec![clean(&key.program), key.pid.to_string()],
        }
    }
}

/// Returns a place as reports write it: `parse app.c:40`; for a script, `app.py:8 in work`.
pub(crate) fn place_text(place: &CallerPlace) -> String {
    let line = if place.line > 0 { format!(":{}", place.line) } else { String::new() };
    let (function, file) = (clean(&place.function), clean(&place.file));
    if place.is_script {
        return format!("{file}{line} in {function}");
    }
    // The placeholder of a function without a name has its module's name already.
    if file.is_empty() || function.contains("+0x") && line.is_empty() {
        return function;
    }
    format!("{function} {file}{line}")
}

/// A line of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableLine {
    /// The property that the line's calls share.
    pub group: Group,
    /// Figures of the interval.
    pub now: Figures,
    /// Figures since watching began.
    pub all: Figures,
    /// True if the figures are estimates: lines of scripts are sampled.
    pub is_sampled: bool,
    /// Rows that count the calls.
    pub keys: Vec<RowKey>,
    /// Index in `Judged::reported` of the finding or the remark that claims calls of the line.
    pub finding: Option<usize>,
}

/// The choices by which a table is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The things that lines stand for.
    pub group: GroupBy,
    /// The order of the lines.
    pub sort: SortBy,
    /// True if the smallest come first.
    pub is_reversed: bool,
    /// Text that a line's names or program contain, whatever its case.
    pub filter: String,
}

/// Returns the lines of a table. Lines without calls in the interval come last.
pub(crate) fn lines(interval: &Interval, choice: &Choice) -> Vec<TableLine> {
    let mut lines = match choice.group {
        GroupBy::Process => processes(interval),
        _ => of_rows(interval, choice.group),
    };
    let claimed = claimed(interval);
    for line in &mut lines {
        line.finding = line.keys.iter().filter_map(|key| claimed.get(key)).min().copied();
    }
    if !choice.filter.is_empty() {
        let wanted = choice.filter.to_lowercase();
        lines.retain(|line| text(line).contains(&wanted));
    }
    lines.sort_by_cached_key(|line| {
        let rank = match choice.sort {
            SortBy::Toll => (line.now.toll_ns, line.now.calls),
            SortBy::Calls => (line.now.calls, line.now.toll_ns),
            SortBy::Waited => (line.now.waited_ns, line.now.calls),
            SortBy::Name => (0, 0),
        };
        let rank = if choice.is_reversed { (u64::MAX - rank.0, u64::MAX - rank.1) } else { rank };
        let is_idle = line.now.calls == 0;
        let idle_rank = if is_idle && choice.sort != SortBy::Name { line.all.toll_ns } else { 0 };
        (is_idle, Reverse(rank), Reverse(idle_rank), line.group.names(), line.group.clone())
    });
    if choice.is_reversed && choice.sort == SortBy::Name {
        lines.reverse();
    }
    lines
}

/// Returns the text that a filter looks at.
fn text(line: &TableLine) -> String {
    let programs: HashSet<&str> = line.keys.iter().map(|key| &*key.program).collect();
    let mut text = line.group.names().join(" ");
    for program in programs {
        text.push(' ');
        text.push_str(program);
    }
    text.to_lowercase()
}

fn of_rows(interval: &Interval, by: GroupBy) -> Vec<TableLine> {
    let mut at: HashMap<Group, usize> = HashMap::new();
    let mut lines: Vec<TableLine> = Vec::new();
    let mut add = |group: Group, now: Figures, all: Figures, is_sampled: bool, key: &RowKey| {
        let index = *at.entry(group.clone()).or_insert(lines.len());
        if index == lines.len() {
            let (now, all) = Default::default();
            lines.push(TableLine { group, now, all, is_sampled: false, keys: Vec::new(), finding: None });
        }
        if let Some(line) = lines.get_mut(index) {
            line.now.add(&now);
            line.all.add(&all);
            line.is_sampled |= is_sampled;
            line.keys.push(key.clone());
        }
    };
    for (key, row) in &interval.tally.rows {
        let now = interval.rows.get(key).copied().unwrap_or_default();
        let all = row.figures;
        match by {
            GroupBy::Call => add(Group::Call(key.syscall), now, all, false, key),
            GroupBy::Api => add(Group::Api(key.api.clone()), now, all, false, key),
            GroupBy::Row | GroupBy::Line | GroupBy::Process => {
                let group = |place: Option<&CallerPlace>| match by {
                    GroupBy::Line => Group::Line(place.or(key.place.as_ref()).cloned()),
                    // The interpreter's own places that serve a line are not told apart.
                    _ => place.map_or_else(
                        || Group::Row(key.clone()),
                        |line| Group::RowLine(RowKey { place: None, ..key.clone() }, line.clone()),
                    ),
                };
                if row.lines.is_empty() {
                    add(group(None), now, all, false, key);
                }
                for (place, share) in &row.lines {
                    let is_sampled = row.lines.len() > 1;
                    add(group(Some(place)), now.part(*share), all.part(*share), is_sampled, key);
                }
            }
        }
    }
    lines
}

fn processes(interval: &Interval) -> Vec<TableLine> {
    let line = |(key, process): (&ProcessKey, &crate::tally::ProcessTally)| {
        let keys = interval.tally.rows.keys().filter(|row| row.program == key.program).cloned().collect();
        TableLine {
            group: Group::Process(key.clone(), process.instances),
            now: interval.processes.get(key).copied().unwrap_or_default(),
            all: process.figures,
            is_sampled: false,
            keys,
            finding: None,
        }
    };
    let shown = |(_, process): &(&ProcessKey, &crate::tally::ProcessTally)| process.figures.calls > 0;
    interval.tally.processes.iter().filter(shown).map(line).collect()
}

/// Returns the rows whose calls a finding or a remark claims, each with the index of the first one in
/// `Judged::reported`.
fn claimed(interval: &Interval) -> HashMap<&RowKey, usize> {
    let judged = &interval.judged;
    let mut finding_of: HashMap<RowId, usize> = HashMap::new();
    for (at, (_, finding)) in judged.reported().enumerate() {
        for row in &finding.rows {
            finding_of.entry(*row).or_insert(at);
        }
    }
    let first = |rows: &Vec<RowId>| rows.iter().filter_map(|row| finding_of.get(row)).min().copied();
    judged.members.iter().filter_map(|(key, rows)| Some((key, first(rows)?))).collect()
}
