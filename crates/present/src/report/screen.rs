//! The report as a whole, and the layout of its parts.

use crate::narrowing::Narrowing;
use crate::sentences::Sentences;
use crate::style::{Line, Role, Style, flow};
use crate::text::wrap;
use std::io;
use systoll_judge::{Finding, Judgement};
use systoll_model::Recording;

/// Choice of the parts of the report that are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportOptions {
    /// True for all findings and remarks, with all cures and places; false for the first few.
    pub all: bool,
    /// True for all rounds; false for those that take most of the time outside findings.
    pub rounds: bool,
    /// True for all long waits that took a part of the elapsed time; false for the longest, if much was waited.
    pub waits: bool,
    /// Duration in ns from which on every recorded call is listed, in place of the five slowest.
    pub longer_ns: Option<u64>,
    /// True for whole stacks, one frame a line, in place of the chain of callers.
    pub stacks: bool,
    /// True to list the files behind the descriptors of sampled calls.
    pub fds: bool,
    /// The calls to which the recording was narrowed down.
    pub only: Option<Narrowing>,
    /// True if the program is still running.
    pub so_far: bool,
}

/// The data from which all parts of the report are written.
pub(super) struct Report<'a> {
    pub(super) rec: &'a Recording,
    pub(super) judgement: &'a Judgement,
    pub(super) options: &'a ReportOptions,
    pub(super) style: Style,
}

/// Findings that are shown without `--all`.
pub(super) const SHOWN: usize = 5;

/// Column at which a finding's details start.
pub(super) const DETAIL: usize = 5;

/// Column at which the text beside a detail's label starts.
pub(super) const DETAIL_TEXT: usize = 12;

/// Column at which the text beside a closing line's label starts.
pub(super) const CLOSING_TEXT: usize = 14;

/// Writes the report of `rec`, judged by `judgement`.
///
/// # Errors
/// The errors of `w`.
pub fn write_report(
    w: &mut dyn io::Write,
    rec: &Recording,
    judgement: &Judgement,
    options: &ReportOptions,
    style: &Style,
) -> io::Result<()> {
    let report = Report { rec, judgement, options, style: *style };
    for line in report.lines() {
        writeln!(w, "{}", line.render(style))?;
    }
    Ok(())
}

/// Writes one finding of `judgement` as the report has it, under `number`.
///
/// # Errors
/// The errors of `w`.
pub fn write_finding(
    w: &mut dyn io::Write,
    rec: &Recording,
    judgement: &Judgement,
    number: usize,
    finding: &Finding,
    style: &Style,
) -> io::Result<()> {
    let report = Report { rec, judgement, options: &ReportOptions::default(), style: *style };
    for line in report.finding(number, finding) {
        writeln!(w, "{}", line.render(style))?;
    }
    Ok(())
}

impl Report<'_> {
    fn lines(&self) -> Vec<Line> {
        let mut lines = self.header();
        if self.rec.calls() == 0 {
            lines.extend(self.nothing_seen());
        } else if self.judgement.findings.is_empty() {
            lines.extend(self.healthy());
        } else {
            lines.extend(self.verdict());
            lines.push(Line::default());
            let above = self.remarks("to consider", &self.considered(true));
            if !above.is_empty() {
                lines.extend(above);
                lines.push(Line::default());
            }
            for (i, finding) in self.shown().iter().enumerate() {
                lines.extend(self.finding(i + 1, finding));
                lines.push(Line::default());
            }
            lines.extend(self.hidden());
        }
        lines.extend(self.closing());
        lines
    }

    pub(super) fn shown(&self) -> &[Finding] {
        let findings = &self.judgement.findings;
        if self.options.all { findings } else { &findings[..findings.len().min(SHOWN)] }
    }

    /// Returns the lines of a finding's detail: a label, and a text beside it.
    pub(super) fn detail(&self, label: &str, role: Role, text: &str) -> Vec<Line> {
        self.labelled(DETAIL, label, DETAIL_TEXT, role, text)
    }

    /// Returns lines for the report's end: a label, and a text beside it.
    pub(super) fn closing_line(&self, label: &str, role: Role, text: &str) -> Vec<Line> {
        self.labelled(2, label, CLOSING_TEXT, role, text)
    }

    pub(super) fn labelled(&self, indent: usize, label: &str, column: usize, role: Role, text: &str) -> Vec<Line> {
        let width = self.style.columns().saturating_sub(column);
        self.beside(indent, label, column, wrap(text, width).into_iter().map(|l| Line::of(role, l)).collect())
    }

    /// Returns `lines` starting at `column`, with `label` before the first.
    pub(super) fn beside(&self, indent: usize, label: &str, column: usize, lines: Vec<Line>) -> Vec<Line> {
        let mut out = vec![];
        for (i, text) in lines.into_iter().enumerate() {
            let mut line = Line::of(Role::Plain, " ".repeat(indent));
            if i == 0 {
                line.push(Role::Faint, label);
            }
            line.pad_to(column);
            line.append(text);
            out.push(line);
        }
        out
    }

    /// Lays out parts that belong together, four columns apart, on as many lines as they need.
    pub(super) fn segments(&self, first: Line, segments: Vec<Line>, indent: usize) -> Vec<Line> {
        flow(first, segments, 4, indent, self.style.columns())
    }

    /// Returns the sentences about this run.
    pub(super) fn sentences(&self) -> Sentences<'_> {
        Sentences { rec: self.rec, judgement: self.judgement }
    }

    /// Returns `about ` if tolls are estimates.
    pub(super) fn about(&self) -> &'static str {
        self.sentences().about()
    }
}
