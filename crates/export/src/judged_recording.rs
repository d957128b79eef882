//! Presents a judged recording as all formats see it: rows with their values, and frames with
//! names.

use std::borrow::Cow;
use systoll_judge::{Finding, Judgement};
use systoll_model::{FrameId, ModuleId, Recording, Row, RowId, shares};

/// The quantity that the widths of a graph represent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Value {
    /// Cost of the calls, ns.
    #[default]
    Toll,
    /// Time in calls in which the thread did not run, ns.
    Waited,
    /// Number of calls.
    Calls,
    /// Cost of the needless calls, ns, by findings (not by remarks).
    Needless,
}

impl Value {
    /// All values.
    pub const ALL: [Self; 4] = [Self::Toll, Self::Waited, Self::Calls, Self::Needless];

    /// Returns the value's name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Toll => "toll",
            Self::Waited => "waited",
            Self::Calls => "calls",
            Self::Needless => "needless",
        }
    }

    /// Returns the value with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|value| value.name() == name)
    }

    /// Returns true if the value is in nanoseconds.
    pub fn is_time(self) -> bool {
        self != Self::Calls
    }
}

/// A recording and its judgement.
pub struct JudgedRecording<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) judgement: &'a Judgement,
    rows: Vec<RowFindings<'a>>,
}

/// The sums of the findings on one row, and the first of them.
#[derive(Clone, Default)]
struct RowFindings<'a> {
    calls: u64,
    toll_ns: u64,
    finding: Option<&'a Finding>,
}

/// One row of the exact table, with its findings.
pub(crate) struct JudgedRow<'a> {
    /// The row's index in the table.
    pub(crate) index: usize,
    pub(crate) row: &'a Row,
    /// Number of needless calls, estimated.
    pub(crate) needless_calls: u64,
    /// Toll of the needless calls, ns.
    pub(crate) needless_ns: u64,
    /// The first finding's cause, or its kind of waste if it has no cause.
    pub(crate) cause: Option<&'a str>,
    /// The first finding.
    pub(crate) finding: Option<&'a Finding>,
}

impl JudgedRow<'_> {
    /// Returns a value of the row; 0 if it is not known.
    pub(crate) fn value(&self, value: Value) -> u64 {
        match value {
            Value::Toll => self.row.counts.toll_ns.unwrap_or(0),
            Value::Waited => self.row.counts.waited_ns.unwrap_or(0),
            Value::Calls => self.row.counts.calls,
            Value::Needless => self.needless_ns,
        }
    }
}

/// A function on a stack, with its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Link<'a> {
    pub(crate) function: Cow<'a, str>,
    /// Path of the file that contains the code; empty if there is none.
    pub(crate) module: &'a str,
    pub(crate) file: Option<&'a str>,
    pub(crate) line: Option<u32>,
}

/// A whole stack of a row.
pub(crate) struct WholeStack<'a> {
    /// The functions from the system call outwards.
    pub(crate) links: Vec<Link<'a>>,
    /// The stack's weight among all stacks of the row.
    pub(crate) weight: u64,
}

/// Largest length of a name, bytes. Stacks repeat names: without a bound, a recording of some MiB
/// could become files of many GiB.
const NAME: usize = 1024;

/// Returns a name cut to the bound.
pub(crate) fn short(name: &str) -> &str {
    let mut end = name.len().min(NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or_default()
}

/// Name of the module of system calls.
pub(crate) const KERNEL: &str = "[kernel]";

impl<'a> JudgedRecording<'a> {
    /// Assigns findings to rows. `recording` has passed [`Recording::check`], and `judgement`
    /// belongs to it.
    pub fn new(recording: &'a Recording, judgement: &'a Judgement) -> Self {
        let mut rows = vec![RowFindings::default(); recording.rows.len()];
        for finding in &judgement.findings {
            for (at, id) in finding.rows.iter().enumerate() {
                let Some(row) = rows.get_mut(id.0 as usize) else { continue };
                let part = finding.by_row.get(at).copied().unwrap_or_default();
                row.calls = row.calls.saturating_add(part.calls);
                // The cost of starting programs is the programs' own time: it can't be more than
                // the whole toll of these rows.
                let of_row = recording.row(*id).counts.toll_ns.unwrap_or(0);
                let toll_ns = if finding.starts { part.toll_ns.min(of_row) } else { part.toll_ns };
                row.toll_ns = row.toll_ns.saturating_add(toll_ns);
                row.finding.get_or_insert(finding);
            }
        }
        Self { recording, judgement, rows }
    }

    /// Returns all rows, in the recording's order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = JudgedRow<'a>> {
        let told = |(index, (row, judged)): (usize, (&'a Row, &RowFindings<'a>))| JudgedRow {
            index,
            row,
            needless_calls: judged.calls,
            needless_ns: judged.toll_ns,
            cause: judged.finding.map(|f| f.cause.as_deref().unwrap_or(f.kind.name())),
            finding: judged.finding,
        };
        self.recording.rows.iter().zip(&self.rows).enumerate().map(told)
    }

    /// Returns the sum over all rows.
    pub(crate) fn total(&self, value: Value) -> u64 {
        self.rows().fold(0, |sum, told| sum.saturating_add(told.value(value)))
    }

    /// Returns a row's whole stacks with their weights, as the pprof file has them; one if all are
    /// the same.
    pub(crate) fn stacks(&self, told: &JudgedRow<'a>) -> Vec<WholeStack<'a>> {
        let stacks = self.recording.shown_stacks(RowId(told.index as u32));
        stacks.into_iter().map(|s| WholeStack { links: self.links(told.row, &s.frames), weight: s.weight }).collect()
    }

    /// Splits `value` over a row's whole stacks. Returns the stacks with a part; the parts add up
    /// to `value`.
    pub(crate) fn parts(&self, told: &JudgedRow<'a>, value: u64) -> Vec<(WholeStack<'a>, u64)> {
        let stacks = self.stacks(told);
        let weights: Vec<u64> = stacks.iter().map(|s| s.weight).collect();
        stacks.into_iter().zip(shares(value, &weights)).filter(|(_, part)| *part > 0).collect()
    }

    /// Returns a stack's functions: the system call, the public function, and the frames outwards.
    /// Inlined functions are separate.
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
        links.extend(frame.shown_locations().iter().map(|l| Link {
            function: Cow::Borrowed(short(&l.function)),
            module,
            file: l.file.as_deref().map(short),
            line: l.line,
        }));
    }

    fn module(&self, id: ModuleId) -> &'a str {
        short(&self.recording.module(id).path)
    }

    /// Returns the file name of a row's program.
    pub(crate) fn program(&self, row: &Row) -> &'a str {
        short(self.recording.process(row.process).name())
    }

    /// Returns the command as typed, on one line.
    pub(crate) fn command(&self) -> String {
        short(&systoll_present::shell_words(&self.recording.header.command)).to_owned()
    }
}
