//! Lists the keys, and the meanings of the columns.

use systoll_present::{Parts, Role};

/// The keys, each with its action.
const KEYS: [(&str, &str); 14] = [
    ("q", "leave; what is watched runs on as it was"),
    ("up, down", "select a line (also j, k, PgUp, PgDn, Home, End, the wheel)"),
    ("Enter", "that line closely: callers, stacks, a window, its finding"),
    ("Esc", "back; in the table: clear the filter"),
    ("f", "all findings with their cures, rounds, problems"),
    ("/", "only lines with this text"),
    ("g, 1 to 5", "group by row, call, api, line or process"),
    ("s", "sort by the next column"),
    ("t c w n", "sort by toll, calls, waiting, name"),
    ("r", "the smallest first"),
    ("p, space", "hold the figures, and go on"),
    ("m", "leave the mouse to the terminal, to select text"),
    ("click", "select a line; once more: Enter; a heading: sort by it"),
    ("?", "this page"),
];

/// The columns of the table, each with its meaning.
const COLUMNS: [(&str, &str); 8] = [
    ("%CPU", "processor time that the calls took, of one processor"),
    ("calls/s", "calls that returned, a second"),
    ("each", "processor time of one call"),
    ("errors/s", "calls that failed, a second; on wide screens"),
    ("%wait", "time waited in them, counted as calls return; threads add up"),
    ("work, wait", "both as bars: the longest is that of the line that took most"),
    ("[1]", "the number of the finding that calls these needless"),
    ("~", "an estimate: lines of scripts are sampled"),
];

/// Returns the page's lines.
pub(super) fn lines() -> Vec<Parts> {
    let entry =
        |(what, text): &(&str, &str)| vec![(Role::Strong, format!("  {what:<12}")), (Role::Plain, (*text).to_owned())];
    let mut lines: Vec<Parts> = vec![vec![]];
    lines.extend(KEYS.iter().map(entry));
    lines.push(vec![]);
    lines.extend(COLUMNS.iter().map(entry));
    lines
}
