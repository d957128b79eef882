//! Adds up a recording's counts by names that stay the same from one recording to the next.

use std::collections::HashMap;
use std::sync::Arc;
use systoll_model::{Counts, Frame, FrameId, Recording, Row, RowId, Sysno};

/// Figures since watching began, or of a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Number of calls that returned.
    pub calls: u64,
    /// Number of calls that failed.
    pub failed: u64,
    /// Processor time paid, ns.
    pub toll_ns: u64,
    /// Time waited in calls, ns. A wait is counted when its call returns.
    pub waited_ns: u64,
}

impl Figures {
    fn of(counts: &Counts) -> Self {
        Self {
            calls: counts.calls,
            failed: counts.failed(),
            toll_ns: counts.toll_ns.unwrap_or(0),
            waited_ns: counts.waited_ns.unwrap_or(0),
        }
    }

    /// Adds all figures of `other`.
    pub fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.failed = self.failed.saturating_add(other.failed);
        self.toll_ns = self.toll_ns.saturating_add(other.toll_ns);
        self.waited_ns = self.waited_ns.saturating_add(other.waited_ns);
    }

    /// Returns the growth of all figures since `before`; 0 for figures that have become smaller.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(before.calls),
            failed: self.failed.saturating_sub(before.failed),
            toll_ns: self.toll_ns.saturating_sub(before.toll_ns),
            waited_ns: self.waited_ns.saturating_sub(before.waited_ns),
        }
    }

    /// Returns the share `share`, 0 to 1, of all figures.
    pub fn part(&self, share: f64) -> Self {
        let of = |n: u64| (n as f64 * share.clamp(0.0, 1.0)).round() as u64;
        Self {
            calls: of(self.calls),
            failed: of(self.failed),
            toll_ns: of(self.toll_ns),
            waited_ns: of(self.waited_ns),
        }
    }
}

/// A place in code.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerPlace {
    /// The function.
    pub function: Arc<str>,
    /// The source file's name, else that of the module.
    pub file: Arc<str>,
    /// The line; 0 if it is not known.
    pub line: u32,
    /// True for a line of a script.
    pub is_script: bool,
}

impl CallerPlace {
    fn of(recording: &Recording, id: FrameId) -> Option<Self> {
        let frame: &Frame = recording.frames.get(id.0 as usize)?;
        let location = frame.location()?;
        let last = |path: &str| Arc::from(path.rsplit('/').next().unwrap_or(path));
        let module = || frame.module.and_then(|m| recording.modules.get(m.0 as usize)).map(|m| last(&m.path));
        let file = location.file.as_deref().map(last).or_else(module).unwrap_or_default();
        Some(Self {
            function: location.function.clone(),
            file,
            line: location.line.unwrap_or(0),
            is_script: frame.language.is_some(),
        })
    }
}

/// The names that the calls of a row share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// The program's name.
    pub program: Arc<str>,
    /// The system call.
    pub syscall: Sysno,
    /// The public function that was called.
    pub api: Option<Arc<str>>,
    /// The user's own code that made the calls; for a script the interpreter's code.
    pub place: Option<CallerPlace>,
}

/// The properties of a process that stay the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessKey {
    /// The program's name.
    pub program: Arc<str>,
    /// Process id.
    pub pid: u32,
    /// Time of the start since watching began, ns.
    pub start_ns: u64,
}

/// Counts of one row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowTally {
    /// Figures since watching began.
    pub figures: Figures,
    /// Lines of a script that make the row's calls, each with its share, 0 to 1; known by sampling.
    pub lines: Vec<(CallerPlace, f64)>,
}

/// Counts of one process image, or of several that are folded into one entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessTally {
    /// Figures since watching began.
    pub figures: Figures,
    /// Number of processes that the entry stands for.
    pub instances: u64,
    /// True if the process runs.
    pub is_alive: bool,
}

/// The counts of a recording so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// The watched command, or that of the first process.
    pub command: Vec<String>,
    /// Time since watching began, ns.
    pub at_ns: u64,
    /// Processor time of the watched processes, ns.
    pub cpu_ns: u64,
    /// Figures of all calls.
    pub total: Figures,
    /// Figures of each row.
    pub rows: HashMap<RowKey, RowTally>,
    /// Figures of each process.
    pub processes: HashMap<ProcessKey, ProcessTally>,
    /// True if tolls are calls times prices.
    pub is_estimated: bool,
    /// True if every call is counted.
    pub is_exact: bool,
    /// Problems that the recording tells of, those that spoil exactness first.
    pub problems: Vec<String>,
}

impl Tally {
    /// Adds up a recording.
    pub fn of(recording: &Recording) -> Self {
        let header = &recording.header;
        let mut tally = Self {
            command: header.command.clone(),
            at_ns: header.wall_ns,
            cpu_ns: header.user_ns.saturating_add(header.sys_ns),
            is_estimated: header.toll_estimated,
            is_exact: recording.exact(),
            ..Self::default()
        };
        let mut names = Names { recording, programs: HashMap::new() };
        for process in &recording.processes {
            let key = ProcessKey { program: names.program(&process.exe), pid: process.pid, start_ns: process.start_ns };
            let entry = tally.processes.entry(key).or_default();
            entry.instances = entry.instances.saturating_add(process.instances);
            entry.is_alive |= process.end_ns == 0;
        }
        for row in recording.rows.iter().filter(|row| row.counts.calls > 0) {
            let figures = Figures::of(&row.counts);
            tally.total.add(&figures);
            let of_row = tally.rows.entry(names.key(row)).or_default();
            of_row.add(figures, &lines(recording, row));
            let process = recording.processes.get(row.process.0 as usize);
            let key = process.map(|p| ProcessKey { program: names.program(&p.exe), pid: p.pid, start_ns: p.start_ns });
            if let Some(entry) = key.and_then(|key| tally.processes.get_mut(&key)) {
                entry.figures.add(&figures);
            }
        }
        let (spoiling, others): (Vec<_>, Vec<_>) =
            recording.problems.iter().partition(|problem| problem.kind.spoils_exactness());
        tally.problems = spoiling.into_iter().chain(others).map(|problem| problem.text.to_string()).collect();
        tally
    }
}

impl RowTally {
    /// Adds the figures of a row of the same name; script lines keep their share of all calls.
    fn add(&mut self, figures: Figures, lines: &[(CallerPlace, f64)]) {
        let (mine, theirs) = (self.figures.calls as f64, figures.calls as f64);
        let all = (mine + theirs).max(1.0);
        self.lines.iter_mut().for_each(|(_, share)| *share *= mine / all);
        for (place, share) in lines {
            let part = share * theirs / all;
            match self.lines.iter_mut().find(|(known, _)| known == place) {
                Some((_, share)) => *share += part,
                None => self.lines.push((place.clone(), part)),
            }
        }
        self.figures.add(&figures);
    }
}

/// Returns the lines of a script that were seen making a row's calls, each with its part.
fn lines(recording: &Recording, row: &Row) -> Vec<(CallerPlace, f64)> {
    let mut lines: Vec<(CallerPlace, f64)> = Vec::new();
    for line in &row.lines {
        let Some(place) = CallerPlace::of(recording, line.frame) else { continue };
        match lines.iter_mut().find(|(known, _)| *known == place) {
            Some((_, share)) => *share += row.share(line),
            None => lines.push((place, row.share(line))),
        }
    }
    lines
}

/// Names of a recording's rows.
struct Names<'a> {
    recording: &'a Recording,
    /// Names of programs by their paths.
    programs: HashMap<Arc<str>, Arc<str>>,
}

impl Names<'_> {
    fn program(&mut self, exe: &Arc<str>) -> Arc<str> {
        let name = || Arc::from(exe.rsplit('/').next().unwrap_or(exe));
        self.programs.entry(exe.clone()).or_insert_with(name).clone()
    }

    fn key(&mut self, row: &Row) -> RowKey {
        let recording = self.recording;
        let exe = recording.processes.get(row.process.0 as usize).map(|process| &process.exe);
        // The script line that is seen first varies; the interpreter's own place does not.
        let native = || recording.stacks.get(row.context.0 as usize).and_then(|stack| stack.frames.last()).copied();
        let place = if row.lines.is_empty() { row.user } else { native() };
        RowKey {
            program: exe.map(|exe| self.program(exe)).unwrap_or_default(),
            syscall: row.syscall,
            api: row.api.clone(),
            place: place.and_then(|id| CallerPlace::of(recording, id)),
        }
    }
}

/// Returns the rows of a recording by their names, costliest first.
pub(crate) fn members(recording: &Recording) -> HashMap<RowKey, Vec<RowId>> {
    let mut names = Names { recording, programs: HashMap::new() };
    let mut members: HashMap<RowKey, Vec<RowId>> = HashMap::new();
    for (id, row) in (0..).map(RowId).zip(&recording.rows).filter(|(_, row)| row.counts.calls > 0) {
        members.entry(names.key(row)).or_default().push(id);
    }
    let cost = |id: &RowId| {
        let counts = recording.rows.get(id.0 as usize).map(|row| &row.counts);
        counts.map(|counts| (counts.toll_ns.unwrap_or(0), counts.calls))
    };
    members.values_mut().for_each(|rows| rows.sort_by_key(|id| (std::cmp::Reverse(cost(id)), *id)));
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_lines_add_up_to_the_whole() {
        let place = |line| CallerPlace { line, ..CallerPlace::default() };
        let figures = |calls| Figures { calls, ..Figures::default() };
        let mut tally = RowTally::default();
        tally.add(figures(30), &[(place(1), 0.5), (place(2), 0.5)]);
        tally.add(figures(10), &[(place(2), 1.0)]);
        assert_eq!(tally.figures.calls, 40);
        assert_eq!(tally.lines, [(place(1), 0.375), (place(2), 0.625)]);
    }

    #[test]
    fn figures_that_shrink_give_no_rate() {
        let (old, new) =
            (Figures { calls: 9, ..Figures::default() }, Figures { calls: 4, toll_ns: 7, ..Figures::default() });
        assert_eq!(new.since(&old), Figures { calls: 0, toll_ns: 7, ..Figures::default() });
        assert_eq!(new.part(0.5), Figures { calls: 2, toll_ns: 4, ..Figures::default() });
    }
}
