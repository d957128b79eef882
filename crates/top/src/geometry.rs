//! Divides the screen into its parts.

use ratatui::layout::Rect;

/// Height of the graph, lines.
const GRAPH: u16 = 3;
/// Least height of a screen with a graph, lines.
const GRAPH_FROM: u16 = 14;
/// Least height of a screen with findings beside the table, lines.
const FINDINGS_FROM: u16 = 10;

/// Largest number of findings beside the table.
const MOST_FINDINGS: u16 = 8;

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Toll,
    Calls,
    Each,
    Failed,
    Waited,
    Bar,
    Name,
}

/// Columns of figures: width, and the screen's width from which on they are shown.
const COLUMNS: [(Column, u16, u16); 6] = [
    (Column::Toll, 7, 0),
    (Column::Calls, 9, 24),
    (Column::Each, 8, 64),
    (Column::Failed, 10, 110),
    (Column::Waited, 7, 48),
    (Column::Bar, 11, 72),
];

/// Least width of a screen with long bars, columns.
const WIDE: u16 = 100;
const WIDE_BARS: u16 = 21;

impl Column {
    /// Returns the column's heading.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Toll => "%CPU",
            Self::Calls => "calls/s",
            Self::Each => "each",
            Self::Failed => "errors/s",
            Self::Waited => "%wait",
            Self::Bar => "work wait",
            Self::Name => "",
        }
    }
}

/// The parts of the screen with the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Areas {
    pub(crate) head: Rect,
    pub(crate) graph: Rect,
    pub(crate) headings: Rect,
    pub(crate) list: Rect,
    pub(crate) findings: Rect,
    pub(crate) foot: Rect,
}

/// The contents that a screen has to hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Number of findings.
    pub(crate) findings: usize,
    /// True for a text without a graph and keys.
    pub(crate) is_text: bool,
}

impl Contents {
    /// Returns the lines of the first findings: one of space, and two a finding.
    fn findings_height(self) -> u16 {
        let told = u16::try_from(self.findings).unwrap_or(u16::MAX).min(MOST_FINDINGS);
        if told > 0 { 1 + 2 * told } else { 0 }
    }

    /// Returns the lines of a text that shows `lines` lines of the table.
    pub(crate) fn text_height(self, lines: usize) -> u16 {
        let lines = u16::try_from(lines.max(1)).unwrap_or(u16::MAX);
        lines.saturating_add(3 + self.findings_height()).max(FINDINGS_FROM)
    }
}

impl Areas {
    /// Divides `area` into the screen's parts.
    pub(crate) fn within(area: Rect, contents: Contents) -> Self {
        let height = area.height;
        let foot = u16::from(height > 2 && !contents.is_text);
        let head = height.min(2);
        let graph = if height >= GRAPH_FROM && !contents.is_text { GRAPH } else { 0 };
        let wanted = contents.findings_height();
        let most = if contents.is_text { wanted } else { height / 3 };
        let findings = if height >= FINDINGS_FROM { wanted.min(most) } else { 0 };
        let headings = u16::from(height > 3);
        let list = height.saturating_sub(head + graph + headings + findings + foot);
        let mut top = area.y;
        let mut next = |lines: u16| {
            let rect = Rect::new(area.x, top, area.width, lines);
            top = top.saturating_add(lines);
            rect
        };
        Self {
            head: next(head),
            graph: next(graph),
            headings: next(headings),
            list: next(list),
            findings: next(findings),
            foot: next(foot),
        }
    }

    /// Returns the columns of the table, each with its first column on the screen and its width.
    pub(crate) fn columns(&self) -> Vec<(Column, u16, u16)> {
        let mut at = 0u16;
        let mut columns: Vec<(Column, u16, u16)> = Vec::new();
        for (column, width, from) in COLUMNS {
            let is_wide = self.headings.width >= WIDE;
            let width = if column == Column::Bar && is_wide { WIDE_BARS } else { width };
            if self.headings.width >= from && at.saturating_add(width) <= self.headings.width {
                columns.push((column, at, width));
                at += width;
            }
        }
        let at = at.saturating_add(2);
        columns.push((Column::Name, at, self.headings.width.saturating_sub(at)));
        columns
    }

    /// Returns the column of the table at a column of the screen.
    pub(crate) fn column_at(&self, x: u16) -> Option<Column> {
        let within = |(_, at, width): &&(Column, u16, u16)| x >= *at && x < at.saturating_add(*width);
        self.columns().iter().find(within).map(|(column, ..)| *column)
    }
}
