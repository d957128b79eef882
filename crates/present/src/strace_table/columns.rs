//! What the table's columns are called, by strace and by us.

/// The order of the table's rows, largest first but for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableSort {
    /// By what a column shows, whether the table has it or not.
    By(TableColumn),
    /// By number: no order of ours.
    Nothing,
}

impl Default for TableSort {
    fn default() -> Self {
        Self::By(TableColumn::Share)
    }
}

impl TableSort {
    /// The order with this name, one that `strace -S` takes.
    pub fn from_name(name: &str) -> Option<Self> {
        if matches!(name, "nothing" | "none") {
            return Some(Self::Nothing);
        }
        TableColumn::from_name(name).map(Self::By)
    }
}

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableColumn {
    /// Share of the time of all.
    Share,
    /// Time, in seconds.
    Total,
    /// The fastest call of those that were timed, in seconds: elapsed, as [`TableColumn::Longest`].
    Shortest,
    /// The slowest call, in seconds: elapsed, waiting and the watching included.
    Longest,
    /// Time a call, in µs.
    Average,
    /// Calls.
    Calls,
    /// Failed calls.
    Errors,
    /// The system call.
    Name,
    /// Elapsed time, in seconds, whatever [`TableColumn::Total`] shows.
    WallTotal,
    /// The fastest call.
    WallShortest,
    /// The slowest call.
    WallLongest,
    /// Elapsed time a call, in µs.
    WallAverage,
}

impl TableColumn {
    /// The columns that `strace -c` has.
    pub const USUAL: [Self; 6] = [Self::Share, Self::Total, Self::Average, Self::Calls, Self::Errors, Self::Name];
    /// All of them, in the order of strace's own list.
    pub const ALL: [Self; 12] = [
        Self::Share,
        Self::Total,
        Self::Shortest,
        Self::Longest,
        Self::Average,
        Self::WallTotal,
        Self::WallShortest,
        Self::WallLongest,
        Self::WallAverage,
        Self::Calls,
        Self::Errors,
        Self::Name,
    ];

    /// Its name on the command line, as `strace -U` has it.
    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    /// The column with this name, or with another spelling of it that `strace -U` takes.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.replace('_', "-");
        Self::ALL.into_iter().find(|column| column.names().contains(&name.as_str()))
    }

    /// The names that strace 7.1 takes (its src/count.c), each with `_` for `-` as well.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Share => &["time-percent", "time"],
            Self::Total => &["total-time", "time-total"],
            Self::Shortest => &["min-time", "time-min", "shortest"],
            Self::Longest => &["max-time", "time-max", "longest"],
            Self::Average => &["avg-time", "time-avg"],
            Self::Calls => &["calls", "count"],
            Self::Errors => &["errors", "error"],
            Self::Name => &["name", "syscall", "syscall-name"],
            Self::WallTotal => &["wall-total", "total-wall"],
            Self::WallShortest => &["wall-min", "min-wall"],
            Self::WallLongest => &["wall-max", "max-wall"],
            Self::WallAverage => &["wall-avg", "avg-wall"],
        }
    }

    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Share => "% time",
            Self::Total => "seconds",
            Self::Shortest => "shortest",
            Self::Longest => "longest",
            Self::Average => "usecs/call",
            Self::Calls => "calls",
            Self::Errors => "errors",
            Self::Name => "syscall",
            Self::WallTotal => "wall-total",
            Self::WallShortest => "wall-min",
            Self::WallLongest => "wall-max",
            Self::WallAverage => "wall-avg",
        }
    }

    /// strace's width; the column grows where a figure needs it.
    pub(super) fn width(self) -> usize {
        match self {
            Self::Share => 6,
            Self::Calls | Self::Errors => 9,
            Self::Name => 16,
            _ => 11,
        }
    }

    /// Whether it shows elapsed time even where the table is of time paid.
    pub(super) fn is_elapsed(self) -> bool {
        use TableColumn::*;
        matches!(self, Shortest | Longest | WallTotal | WallShortest | WallLongest | WallAverage)
    }
}
