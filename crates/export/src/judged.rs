//! A judged recording as all formats see it: rows with their values, and frames with names.

use std::borrow::Cow;
use systoll_judge::{Finding, Judgement};
use systoll_model::{FrameId, ModuleId, Recording, Row, RowId, shares};

/// What can be drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Value {
    /// What calls cost, ns.
    #[default]
    Toll,
    /// Time in calls in which the thread did not run, ns.
    Waited,
    /// Calls.
    Calls,
    /// What the needless ones of them cost, ns, by findings (not by remarks).
    Needless,
}

impl Value {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Toll, Self::Waited, Self::Calls, Self::Needless];

    /// Its name on the command line and in what is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Toll => "toll",
            Self::Waited => "waited",
            Self::Calls => "calls",
            Self::Needless => "needless",
        }
    }

    /// The value with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|value| value.name() == name)
    }

    /// Whether it counts nanoseconds, and not calls.
    pub fn is_time(self) -> bool {
        self != Self::Calls
    }
}

/// A recording with what the judge says of it.
pub struct Judged<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) judgement: &'a Judgement,
    rows: Vec<RowJudged<'a>>,
}

/// What findings say of one row, added up.
#[derive(Clone, Default)]
struct RowJudged<'a> {
    calls: u64,
    toll_ns: u64,
    finding: Option<&'a Finding>,
}

/// One row of the exact table.
pub(crate) struct Told<'a> {
    /// Its place in the table, from 0.
    pub(crate) index: usize,
    pub(crate) row: &'a Row,
    /// Needless calls, an estimate.
    pub(crate) needless_calls: u64,
    /// Their toll, ns.
    pub(crate) needless_ns: u64,
    /// The first finding's cause, or its kind of waste where it has no name.
    pub(crate) cause: Option<&'a str>,
    /// That finding.
    pub(crate) finding: Option<&'a Finding>,
}

impl Told<'_> {
    /// 0 also where it is not known.
    pub(crate) fn value(&self, value: Value) -> u64 {
        match value {
            Value::Toll => self.row.counts.toll_ns.unwrap_or(0),
            Value::Waited => self.row.counts.waited_ns.unwrap_or(0),
            Value::Calls => self.row.counts.calls,
            Value::Needless => self.needless_ns,
        }
    }
}

/// A function on a stack, by its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Link<'a> {
    pub(crate) function: Cow<'a, str>,
    /// Path of the file whose code it is; empty where there is none.
    pub(crate) module: &'a str,
    pub(crate) file: Option<&'a str>,
    pub(crate) line: Option<u32>,
}

/// A whole stack of a row.
pub(crate) struct WholeStack<'a> {
    /// From the system call outwards.
    pub(crate) links: Vec<Link<'a>>,
    /// The row's share, beside those of its other stacks.
    pub(crate) weight: u64,
}

/// Bytes of a name that are written: stacks repeat names, so a recording of some MiB could become files of many GiB.
const NAME: usize = 1024;

/// A name that is not too long.
pub(crate) fn short(name: &str) -> &str {
    let mut end = name.len().min(NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or_default()
}

/// The module of system calls.
pub(crate) const KERNEL: &str = "[kernel]";

impl<'a> Judged<'a> {
    /// Looks up what the judge says of each row. `recording` is one for which [`Recording::check`] holds, and
    /// `judgement` is of it.
    pub fn new(recording: &'a Recording, judgement: &'a Judgement) -> Self {
        let mut rows = vec![RowJudged::default(); recording.rows.len()];
        for finding in &judgement.findings {
            for (at, id) in finding.rows.iter().enumerate() {
                let Some(row) = rows.get_mut(id.0 as usize) else { continue };
                let part = finding.by_row.get(at).copied().unwrap_or_default();
                row.calls = row.calls.saturating_add(part.calls);
                // What starting programs takes is the programs' time: of these rows' toll it can't be more than all.
                let of_row = recording.row(*id).counts.toll_ns.unwrap_or(0);
                let toll_ns = if finding.starts { part.toll_ns.min(of_row) } else { part.toll_ns };
                row.toll_ns = row.toll_ns.saturating_add(toll_ns);
                row.finding.get_or_insert(finding);
            }
        }
        Self { recording, judgement, rows }
    }

    /// All rows, in the recording's order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Told<'a>> {
        let told = |(index, (row, judged)): (usize, (&'a Row, &RowJudged<'a>))| Told {
            index,
            row,
            needless_calls: judged.calls,
            needless_ns: judged.toll_ns,
            cause: judged.finding.map(|f| f.cause.as_deref().unwrap_or(f.kind.name())),
            finding: judged.finding,
        };
        self.recording.rows.iter().zip(&self.rows).enumerate().map(told)
    }

    /// The sum over all rows.
    pub(crate) fn total(&self, value: Value) -> u64 {
        self.rows().fold(0, |sum, told| sum.saturating_add(told.value(value)))
    }

    /// A row's whole stacks, as the pprof file has them, each with its weight beside the others: one where no two differ.
    pub(crate) fn stacks(&self, told: &Told<'a>) -> Vec<WholeStack<'a>> {
        let stacks = self.recording.told_stacks(RowId(told.index as u32));
        stacks.into_iter().map(|s| WholeStack { links: self.links(told.row, &s.frames), weight: s.weight }).collect()
    }

    /// A row's whole stacks that have a part of a value, and which: they add up to it.
    pub(crate) fn parts(&self, told: &Told<'a>, value: u64) -> Vec<(WholeStack<'a>, u64)> {
        let stacks = self.stacks(told);
        let weights: Vec<u64> = stacks.iter().map(|s| s.weight).collect();
        stacks.into_iter().zip(shares(value, &weights)).filter(|(_, part)| *part > 0).collect()
    }

    /// System call, API, and the frames outwards: inlined functions are links of their own.
    fn links(&self, row: &'a Row, frames: &[FrameId]) -> Vec<Link<'a>> {
        let syscall = row.syscall.name().map_or_else(|| Cow::Owned(row.syscall.to_string()), Cow::Borrowed);
        let mut links = vec![Link { function: syscall, module: KERNEL, file: None, line: None }];
        if let Some(api) = &row.api {
            let module = row.api_module.map_or("", |m| self.module(m));
            links.push(Link { function: Cow::Borrowed(short(api)), module, file: None, line: None });
        }
        for id in frames {
            self.frame(*id, &mut links);
        }
        links
    }

    fn frame(&self, id: FrameId, links: &mut Vec<Link<'a>>) {
        let frame = self.recording.frame(id);
        let module = frame.module.map_or("", |m| self.module(m));
        links.extend(frame.told_locations().iter().map(|l| Link {
            function: Cow::Borrowed(short(&l.function)),
            module,
            file: l.file.as_deref().map(short),
            line: l.line,
        }));
    }

    fn module(&self, id: ModuleId) -> &'a str {
        short(&self.recording.module(id).path)
    }

    /// File name of a row's program.
    pub(crate) fn program(&self, row: &Row) -> &'a str {
        short(self.recording.process(row.process).name())
    }

    /// The command as typed, on one line.
    pub(crate) fn command(&self) -> String {
        short(&systoll_present::shell_words(&self.recording.header.command)).to_owned()
    }
}
