//! Parts of the report for screens that lay out lines by themselves.

use super::screen::{DETAIL, Report, ReportOptions};
use crate::style::{Line, Role, Style};
use systoll_judge::{Finding, Judgement, Round};
use systoll_model::{Phase, Recording, RowId};

/// A line of text in parts, each with its role.
pub type Parts = Vec<(Role, String)>;

/// The recording and judgement from which parts of the report are written, as lines of a limited width.
#[derive(Clone, Copy, Debug)]
pub struct Pieces<'a> {
    /// The recording on which the report is.
    pub recording: &'a Recording,
    /// The judgement of the recording.
    pub judgement: &'a Judgement,
    /// Width of a line in columns, at most; less than 40 counts as 40.
    pub width: usize,
}

impl Pieces<'_> {
    /// Returns a finding as the report has it, under `number`: figures, callers, mechanism, cures, next command.
    pub fn finding(&self, number: usize, finding: &Finding) -> Vec<Parts> {
        self.lines(&ReportOptions::default(), |report| report.finding(number, finding))
    }

    /// Returns a remark that is worth considering, as the report has it.
    pub fn remark(&self, remark: &Finding) -> Vec<Parts> {
        self.lines(&ReportOptions::default(), |report| report.remarks("to consider", &[remark]))
    }

    /// Returns a round: its calls, count, price and line.
    pub fn round(&self, round: &Round) -> Vec<Parts> {
        self.lines(&ReportOptions { rounds: true, ..ReportOptions::default() }, |report| report.round(round))
    }

    /// Returns the chain of a row's callers, the system call's first.
    pub fn callers(&self, row: RowId) -> Vec<Parts> {
        self.lines(&ReportOptions::default(), |report| report.chain(row, Phase::Steady))
    }

    /// Returns the whole stacks that were seen of a row, one frame a line.
    pub fn stacks(&self, row: RowId) -> Vec<Parts> {
        self.lines(&ReportOptions::default(), |report| report.stacks_of(row, DETAIL))
    }

    /// Returns the files behind the descriptors of a row's sampled calls.
    pub fn descriptors(&self, row: RowId) -> Vec<Parts> {
        self.lines(&ReportOptions::default(), |report| report.fds_of(&[row]))
    }

    fn lines(&self, options: &ReportOptions, of: impl FnOnce(&Report<'_>) -> Vec<Line>) -> Vec<Parts> {
        let style = Style { color: false, width: self.width, whole_names: false };
        let report = Report { rec: self.recording, judgement: self.judgement, options, style };
        // A screen that lays out lines by itself has no flags.
        let without_flag = |(role, text): (Role, String)| (role, text.replace(": --all shows them", ""));
        of(&report).into_iter().map(|line| line.into_parts().into_iter().map(without_flag).collect()).collect()
    }
}
