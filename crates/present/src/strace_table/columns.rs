//! The columns of `strace -c`'s table, one row each: names, heading, width, figure.

use super::StraceTable;
use systoll_model::Counts;

/// Declares the columns in the order of strace's own list. A column's first name is its name on the command line; the
/// others are those that strace 7.1 takes for it (its src/count.c), each with `_` for `-` as well. `Elapsed` columns
/// show elapsed time even in a table of time paid.
macro_rules! columns {
    ($($(#[$doc:meta])* $column:ident = $names:expr, $heading:literal, $width:literal, $time:ident, $figure:expr;)*) => {
        /// A column of `strace -c`'s table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum TableColumn {
            $($(#[$doc])* $column,)*
        }

        impl TableColumn {
            /// All columns, in the order of strace's own list.
            pub const ALL: [Self; [$($heading),*].len()] = [$(Self::$column),*];

            fn row(self) -> Row {
                match self {
                    $(Self::$column => Row {
                        names: &$names,
                        heading: $heading,
                        width: $width,
                        time: Time::$time,
                        figure: $figure,
                    },)*
                }
            }
        }
    };
}

columns! {
    /// Share of the time of all calls.
    Share = ["time-percent", "time"], "% time", 6, Chosen, |t, c| Figure::Share(t.time(c));
    /// Time of the calls, in seconds: paid, or elapsed with `-w`.
    Total = ["total-time", "time-total"], "seconds", 11, Chosen, |t, c| Figure::Seconds(t.time(c));
    /// Elapsed time of the fastest call that was timed, in seconds, as in [`TableColumn::Longest`].
    Shortest = ["min-time", "time-min", "shortest"], "shortest", 11, Elapsed, |t, c| Figure::OneCall(t.shortest(c));
    /// Elapsed time of the slowest call, in seconds, including waits and the time that watching adds.
    Longest = ["max-time", "time-max", "longest"], "longest", 11, Elapsed, |t, c| Figure::OneCall(t.longest(c));
    /// Average time of a call, in µs.
    Average = ["avg-time", "time-avg"], "usecs/call", 11, Chosen, |t, c| Figure::Usecs(t.average(c));
    /// Elapsed time of the calls, in seconds, even if [`TableColumn::Total`] shows time paid.
    WallTotal = ["wall-total", "total-wall"], "wall-total", 11, Elapsed, |t, c| Figure::Seconds(t.elapsed(c));
    /// Elapsed time of the fastest call, in seconds.
    WallShortest = ["wall-min", "min-wall"], "wall-min", 11, Elapsed, |t, c| Figure::OneCall(t.shortest(c));
    /// Elapsed time of the slowest call, in seconds, including waits and the time that watching adds.
    WallLongest = ["wall-max", "max-wall"], "wall-max", 11, Elapsed, |t, c| Figure::OneCall(t.longest(c));
    /// Average elapsed time of a call, in µs.
    WallAverage = ["wall-avg", "avg-wall"], "wall-avg", 11, Elapsed, |t, c| Figure::Usecs(t.elapsed_average(c));
    /// Number of calls.
    Calls = ["calls", "count"], "calls", 9, Chosen, |_, c| Figure::Calls(c.calls);
    /// Number of failed calls.
    Errors = ["errors", "error"], "errors", 9, Chosen, |_, c| Figure::Errors(c.failed());
    /// The system call's name.
    Name = ["name", "syscall", "syscall-name"], "syscall", 16, Chosen, |_, _| Figure::Name;
}

/// Names, heading and figure of a column.
struct Row {
    names: &'static [&'static str],
    heading: &'static str,
    /// Width of the column in strace's table, in characters. The column grows if a figure needs more.
    width: usize,
    time: Time,
    figure: fn(&StraceTable, &Counts) -> Figure,
}

/// The time that a column shows.
#[derive(PartialEq)]
enum Time {
    /// The time that the table shows: time paid, or elapsed time with `-w`.
    Chosen,
    /// Elapsed time in any table.
    Elapsed,
}

/// A system call's figure in a column. Times are in ns.
pub(super) enum Figure {
    /// A time in ns, shown as its share of the time of all calls.
    Share(Option<u64>),
    Seconds(Option<u64>),
    /// The time of a single call, ns.
    OneCall(Option<u64>),
    Usecs(Option<f64>),
    Calls(u64),
    /// A number that is not shown if it is 0.
    Errors(u64),
    /// The system call's name.
    Name,
}

impl Figure {
    /// Returns the key by which rows are sorted, largest first. Unknown figures come last.
    pub(super) fn key(&self) -> f64 {
        match self {
            Self::Share(ns) | Self::Seconds(ns) | Self::OneCall(ns) => ns.map_or(-1.0, |ns| ns as f64),
            Self::Usecs(ns) => ns.unwrap_or(-1.0),
            Self::Calls(n) | Self::Errors(n) => *n as f64,
            Self::Name => 0.0,
        }
    }

    /// Writes the figure of the system call `name`. `whole_ns` is the time of all calls.
    pub(super) fn text(&self, whole_ns: u64, name: &str) -> String {
        let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "?".into());
        match self {
            Self::Share(ns) => {
                let share = |ns: u64| if whole_ns > 0 { ns as f64 * 100.0 / whole_ns as f64 } else { 0.0 };
                or_unknown(ns.map(|ns| format!("{:.2}", share(ns))))
            }
            Self::Seconds(ns) => or_unknown(ns.map(|ns| format!("{:.6}", ns as f64 / 1e9))),
            // Nanoseconds are shown, since a call costs some 0.1 µs.
            Self::OneCall(ns) => or_unknown(ns.map(|ns| format!("{:.9}", ns as f64 / 1e9))),
            Self::Usecs(ns) => or_unknown(ns.map(|ns| format!("{:.3}", ns / 1e3))),
            Self::Errors(0) => String::new(),
            Self::Calls(n) | Self::Errors(n) => n.to_string(),
            Self::Name => name.to_owned(),
        }
    }
}

impl TableColumn {
    /// The columns that `strace -c` shows by default.
    pub const USUAL: [Self; 6] = [Self::Share, Self::Total, Self::Average, Self::Calls, Self::Errors, Self::Name];

    /// Returns the column's name on the command line, which is that of `strace -U`.
    pub fn name(self) -> &'static str {
        self.row().names.first().copied().unwrap_or_default()
    }

    /// Returns the column with this name, or with another spelling that `strace -U` takes.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.replace('_', "-");
        Self::ALL.into_iter().find(|column| column.row().names.contains(&name.as_str()))
    }

    pub(super) fn heading(self) -> &'static str {
        self.row().heading
    }

    pub(super) fn width(self) -> usize {
        self.row().width
    }

    /// Returns true if the column shows elapsed time even in a table of time paid.
    pub(super) fn is_elapsed(self) -> bool {
        self.row().time == Time::Elapsed
    }

    pub(super) fn figure(self, table: &StraceTable, counts: &Counts) -> Figure {
        (self.row().figure)(table, counts)
    }
}

/// Order of the table's rows: largest first, names from A to Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableSort {
    /// Rows are ordered by the figures of a column, even if the table does not show it.
    By(TableColumn),
    /// Rows are ordered by the system call's number.
    Nothing,
}

impl Default for TableSort {
    fn default() -> Self {
        Self::By(TableColumn::Share)
    }
}

impl TableSort {
    /// Returns the order with this name, one that `strace -S` takes.
    pub fn from_name(name: &str) -> Option<Self> {
        if matches!(name, "nothing" | "none") {
            return Some(Self::Nothing);
        }
        TableColumn::from_name(name).map(Self::By)
    }
}
