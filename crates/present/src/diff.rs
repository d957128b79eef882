//! The `diff` screen: the changes, old beside new, on a terminal and as a table in Markdown.

use crate::check::place_text;
use crate::style::{Line, Role, Style, flow};
use crate::text::{clean, columns, sentence, shell_words, shorten};
use crate::units::{counted, grouped, time};
use std::io::{self, Write};
use systoll_compare::{
    By, Chance, Change, Diff, Figures, FindingChange, Key, Note, Range, RoundChange, RoundFigures, Summary, Verdict,
};
use systoll_model::short_file;

/// Changes that are shown without `--all`.
const CHANGES: usize = 20;
/// Callers that are shown below a system call without `--all`.
const BENEATH: usize = 3;
/// Columns that a row's name needs beside its figures. With fewer, the name is on a line above them.
const NAME: usize = 24;
/// Rounds that are shown without `--all`.
const ROUNDS: usize = 3;
/// Calls of a round that are named, at most.
const ROUND_CALLS: usize = 8;
/// Rows that vary by themselves and are named, at most.
const VARYING: usize = 8;

/// The part of a diff to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiffOptions {
    /// True to show the whole diff.
    pub all: bool,
    /// Rows that are shown, at most; 20 if `None`.
    pub limit: Option<usize>,
}

impl DiffOptions {
    fn rows(self) -> usize {
        self.limit.unwrap_or(if self.all { usize::MAX } else { CHANGES })
    }

    fn beneath(self) -> usize {
        if self.all { usize::MAX } else { BENEATH }
    }
}

/// Number of figures before a row's name: old, new, change, toll.
const CELLS: usize = 4;
type Cells = [String; CELLS];

/// Writes the changes, largest toll first.
///
/// # Errors
/// The errors of `w`.
pub fn write_diff(w: &mut dyn Write, diff: &Diff, options: DiffOptions, style: &Style) -> io::Result<()> {
    let mut lines = head(diff, style);
    if diff.is_empty() {
        let text = format!("no change: {} the same", counted(diff.same as u64, "row is", "rows are"));
        lines.extend([Line::default(), Line::of(Role::Good, format!("  {text}"))]);
    } else if !diff.changed.is_empty() {
        lines.push(Line::default());
        lines.extend(table(diff, options, style));
    }
    let wall = wall(diff, style);
    if !wall.is_empty() {
        lines.push(Line::default());
        lines.extend(wall);
    }
    let findings = findings(diff);
    if !findings.is_empty() {
        lines.push(Line::default());
        lines.extend(findings.into_iter().flat_map(|line| line.broken(style.columns())));
    }
    let rounds = rounds(diff, options);
    if !rounds.is_empty() {
        lines.push(Line::default());
        lines.extend(rounds.into_iter().flat_map(|line| line.broken(style.columns())));
    }
    let closing = closing(diff, options, style);
    if !closing.is_empty() {
        lines.push(Line::default());
        lines.extend(closing);
    }
    lines.iter().try_for_each(|line| writeln!(w, "{}", line.render(style)))
}

fn head(diff: &Diff, style: &Style) -> Vec<Line> {
    let room = style.columns().saturating_sub(9);
    let command = |side: &Summary| shorten(&shell_words(&side.command), room.max(16));
    let runs = |side: &Summary| counted(side.runs as u64, "run", "runs");
    let (new, old) = (command(&diff.new), command(&diff.old));
    let mut lines = vec![Line::of(Role::Strong, "systoll  ").with(Role::Plain, new.clone())];
    if new != old {
        lines.push(Line::of(Role::Plain, "         ").with(Role::Faint, format!("against {old}")));
    }
    let mut parts = vec![
        Line::of(Role::Plain, format!("{} system calls", range(diff.new.calls)))
            .with(Role::Faint, format!(", {} before", range(diff.old.calls))),
    ];
    if let (Some(new), Some(old)) = (diff.new.toll_ns, diff.old.toll_ns) {
        parts.push(
            Line::of(Role::Plain, format!("cost {}", time(new))).with(Role::Faint, format!(", {} before", time(old))),
        );
    }
    let runs = match (runs(&diff.old), runs(&diff.new)) {
        (old, new) if old == new => format!("{new} a side"),
        (old, new) => format!("{old} before, {new} now"),
    };
    parts.push(Line::of(Role::Faint, runs));
    lines.extend(flow(Line::of(Role::Plain, "         "), parts, 4, 9, style.columns()));
    lines
}

/// Returns the change of the elapsed time, and the waits that changed with it.
fn wall(diff: &Diff, style: &Style) -> Vec<Line> {
    let Some(wall) = &diff.wall else { return vec![] };
    let times = Line::of(Role::Plain, format!("{} → {}", time(wall.old_ns.median), time(wall.new_ns.median)));
    let waits = wall.waits.iter().map(|wait| {
        let (old, new) = (wait.old_ns.median, wait.new_ns.median);
        let less = if new < old { "less" } else { "more" };
        let place = wait.place.as_ref().map_or_else(String::new, |place| format!("  <  {}", place_text(place)));
        let what = format!("{} {less} waiting {}: ", time(new.abs_diff(old)), wait.class.waits_for());
        Line::of(Role::Plain, what).with(Role::Name, wait.syscall.to_string()).with(Role::Plain, place)
    });
    let first = Line::of(Role::Strong, "  wall     ");
    flow(first, std::iter::once(times).chain(waits).collect(), 3, 11, style.columns())
}

fn table(diff: &Diff, options: DiffOptions, style: &Style) -> Vec<Line> {
    let shown = &diff.changed[..diff.changed.len().min(options.rows())];
    let heads = ["old", "new", "change", "cost"].map(str::to_owned);
    let beneath = |change: &Change| change.beneath.len().min(options.beneath());
    let all = shown.iter().flat_map(|c| std::iter::once(c).chain(&c.beneath[..beneath(c)]));
    let cells: Vec<Cells> = all.map(cells).chain([heads.clone()]).collect();
    let widths: [usize; CELLS] =
        std::array::from_fn(|i| cells.iter().map(|c| c.get(i).map_or(0, |t| columns(t))).max().unwrap_or(0));
    let line = |cells: &Cells, role: Role, name: Line| {
        let mut line = Line::default();
        for (cell, width) in cells.iter().zip(widths) {
            line.push(Role::Plain, " ".repeat(2 + width.saturating_sub(columns(cell))));
            line.push(role, cell.clone());
        }
        line.push(Role::Plain, "  ");
        let room = style.columns().saturating_sub(line.width());
        if room >= NAME {
            return vec![line.joined(name.fit(room))];
        }
        vec![Line::of(Role::Plain, "  ").joined(name.fit(style.columns().saturating_sub(2))), line]
    };
    let mut lines = line(&heads, Role::Faint, Line::of(Role::Faint, diff.by.name()));
    for change in shown {
        lines.extend(line(&self::cells(change), role(change), name(change, diff.by)));
        for row in &change.beneath[..beneath(change)] {
            let who = Line::of(Role::Plain, "  ").joined(name(row, By::Caller));
            lines.extend(line(&self::cells(row), Role::Faint, who));
        }
    }
    if diff.changed.len() > shown.len() {
        let more = counted((diff.changed.len() - shown.len()) as u64, "row", "rows");
        lines.push(Line::of(Role::Faint, format!("  {more} more: --all shows them")));
    }
    lines
}

fn role(change: &Change) -> Role {
    if change.new.calls.median > change.old.calls.median { Role::Bad } else { Role::Good }
}

fn cells(change: &Change) -> Cells {
    let (old, new) = (&change.old, &change.new);
    let figure = |f: &Figures| {
        let failing = old.calls == new.calls;
        if failing { format!("{} failed", range(f.failed)) } else { range(f.calls) }
    };
    let by = if old.calls == new.calls { (old.failed, new.failed) } else { (old.calls, new.calls) };
    [figure(old), figure(new), signed(by.0.median, by.1.median), toll(old.toll_ns, new.toll_ns)]
}

fn signed(old: u64, new: u64) -> String {
    let sign = if new < old { '-' } else { '+' };
    format!("{sign}{}", grouped(new.abs_diff(old)))
}

/// Writes the change in cost; nothing if it is not known.
fn toll(old: Option<u64>, new: Option<u64>) -> String {
    let (Some(old), Some(new)) = (old.or(new.map(|_| 0)), new.or(old.map(|_| 0))) else { return String::new() };
    format!("{}{}", if new < old { '-' } else { '+' }, time(new.abs_diff(old)))
}

/// Writes a count, or its lowest and highest value if it varied.
fn range(range: Range) -> String {
    if range.spread() == 0 { grouped(range.low) } else { format!("{}..{}", grouped(range.low), grouped(range.high)) }
}

/// Returns the name of a changed row, with its place.
fn name(change: &Change, by: By) -> Line {
    let mut line = who(&change.key, by);
    if matches!(by, By::Row | By::Caller | By::Line)
        && let Some(place) = change.place.as_ref().filter(|p| p.line.is_some())
        && let Some(file) = place.file.as_deref()
    {
        let own = change.key.function.as_deref() == Some(&*place.function);
        let file = clean(short_file(file));
        line.push_name(
            Role::Faint,
            if own { format!(" {file}") } else { format!(" by {} {file}", clean(&place.function)) },
        );
        line.push(Role::Faint, format!(":{}", place.line.unwrap_or(0)));
    }
    line = whereabouts(line, &change.key, by);
    if let Some(object) = &change.object {
        line.push_name(Role::Faint, format!("  {}", clean(object)));
    }
    line
}

/// Returns the name of a key, with its file and program.
fn key_name(key: &Key, by: By) -> Line {
    whereabouts(who(key, by), key, by)
}

/// Returns the system call of a key, and its caller.
fn who(key: &Key, by: By) -> Line {
    let mut line = Line::default();
    let text = |part: &Option<std::sync::Arc<str>>| part.as_deref().map(clean);
    if let Some(call) = key.syscall.filter(|_| by != By::Caller) {
        line.push(Role::Name, call.to_string());
    }
    // A function with the name of the system call is not named a second time.
    let call = key.syscall.map(|s| s.to_string());
    let callers = [text(&key.api).filter(|api| Some(api) != call.as_ref()), text(&key.function)];
    for caller in callers.into_iter().flatten() {
        if !line.is_empty() {
            line.push(Role::Faint, " < ");
        }
        line.push_name(Role::Plain, caller);
    }
    line
}

/// Adds the caller's file and program, unless a reader would assume them anyway.
fn whereabouts(mut line: Line, key: &Key, by: By) -> Line {
    let text = |part: &Option<std::sync::Arc<str>>| part.as_deref().map(clean);
    if let Some(library) = text(&key.library) {
        let own = key.program.as_deref() == key.library.as_deref();
        if line.is_empty() {
            line.push_name(Role::Plain, library);
        } else if !own {
            line.push_name(Role::Faint, format!(" {library}"));
        }
    }
    if let Some(program) = text(&key.program)
        && (line.is_empty() || by == By::Row && key.program != key.library)
    {
        line.push_name(Role::Plain, if line.is_empty() { program } else { format!("  {program}") });
    }
    if line.is_empty() {
        let words = match by {
            By::Api => "(no public function)",
            _ => "(no caller known)",
        };
        line.push(Role::Faint, words);
    }
    line
}

fn findings(diff: &Diff) -> Vec<Line> {
    let line = |label: &str, role: Role, f: &FindingChange| {
        let mut line = Line::of(role, format!("  {label}  ")).with(Role::Strong, clean(&f.id));
        line.push(Role::Plain, format!("  {} needless", counted(f.needless, "call", "calls")));
        if let Some(call) = f.syscall {
            line.push(Role::Name, format!("  {call}"));
        }
        if let Some(user) = &f.user {
            line.push_name(Role::Plain, format!(" < {}", clean(user)));
        }
        if let Some(what) = &f.what {
            line.push_name(Role::Faint, format!("  {}", clean(what)));
        }
        line.with(Role::Faint, format!("  {}", time(f.toll_ns)))
    };
    let new = diff.findings_new.iter().map(|f| line("new finding ", Role::Bad, f));
    new.chain(diff.findings_gone.iter().map(|f| line("finding gone", Role::Good, f))).collect()
}

fn rounds(diff: &Diff, options: DiffOptions) -> Vec<Line> {
    let most = if options.all { usize::MAX } else { ROUNDS };
    let line = |change: &RoundChange| {
        let (word, role) = round_word(change);
        let mut line = Line::of(role, format!("  {word}  ")).with(Role::Plain, round_text(change));
        if let Some(place) = &change.place {
            let file = place.file.as_deref().map(|f| clean(short_file(f)));
            let at = place.line.map_or_else(String::new, |n| format!(":{n}"));
            line.push_name(Role::Plain, format!("  < {}", clean(&place.function)));
            line.push_name(Role::Faint, file.map_or_else(String::new, |file| format!(" {file}{at}")));
        }
        line.with(Role::Faint, format!("  {}", toll(Some(change.old.toll_ns), Some(change.new.toll_ns))))
    };
    diff.rounds.iter().take(most).map(line).collect()
}

/// Returns the word for the change of a round, and its colour.
fn round_word(change: &RoundChange) -> (&'static str, Role) {
    let (old, new) = (&change.old, &change.new);
    match (old.count.high, new.count.high) {
        (0, _) => ("new pattern     ", Role::Bad),
        (_, 0) => ("pattern gone    ", Role::Good),
        _ if new.calls_each() > 1.1 * old.calls_each() => ("pattern longer  ", Role::Bad),
        _ if old.calls_each() > 1.1 * new.calls_each() => ("pattern shorter ", Role::Good),
        _ if new.count.median > old.count.median => ("more often      ", Role::Bad),
        _ => ("less often      ", Role::Good),
    }
}

/// Writes the calls of a round on both sides: `6,000 × (openat, close) → 6,000 × (openat, fstat, close)`. If only one
/// side has the round, or only its number changed, writes its calls once.
fn round_text(change: &RoundChange) -> String {
    let (old, new) = (round_calls(&change.old), round_calls(&change.new));
    let count = |figures: &RoundFigures| range(figures.count);
    match (change.old.count.high, change.new.count.high) {
        (0, _) => format!("{} × ({new})", count(&change.new)),
        (_, 0) => format!("{} × ({old})", count(&change.old)),
        _ if old == new => format!("{} → {} × ({new})", count(&change.old), count(&change.new)),
        _ => format!("{} × ({old}) → {} × ({new})", count(&change.old), count(&change.new)),
    }
}

fn round_calls(figures: &RoundFigures) -> String {
    let mut parts: Vec<String> = figures
        .calls
        .iter()
        .take(ROUND_CALLS)
        .map(|part| match part.each {
            each if each >= 1.5 => format!("{} ×{}", part.syscall, grouped(each.round() as u64)),
            _ => part.syscall.to_string(),
        })
        .collect();
    if let Some(more) = figures.calls.len().checked_sub(ROUND_CALLS).filter(|more| *more > 0) {
        parts.push(format!("{more} more"));
    }
    parts.join(", ")
}

fn closing(diff: &Diff, options: DiffOptions, style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut say = |label: &str, role: Role, parts: Vec<Line>| {
        let first = Line::of(role, format!("  {label:<9}"));
        lines.extend(flow(first, parts, 2, 11, style.columns()));
    };
    if diff.hidden > 0 {
        let rows = counted(diff.hidden as u64, "row", "rows");
        let text = match diff.by {
            By::Syscall => format!("as many calls, but from other callers, in {rows}: --by row"),
            _ => format!("{rows} changed that this grouping does not distinguish: --by row"),
        };
        say("moved", Role::Plain, vec![Line::of(Role::Plain, text)]);
    }
    if !diff.varying.is_empty() {
        let most = if options.all { usize::MAX } else { VARYING };
        let mut parts: Vec<Line> = diff.varying.iter().take(most).map(|c| varying(c, diff.by)).collect();
        if let Some(more) = diff.varying.len().checked_sub(most).filter(|n| *n > 0) {
            parts.push(Line::of(Role::Faint, format!("and {more} more")));
        }
        say("varies", Role::Faint, parts);
    }
    for note in &diff.notes {
        let role = if matches!(note, Note::OneRun) { Role::Faint } else { Role::Warn };
        say("note", role, vec![Line::of(Role::Plain, note_text(note))]);
    }
    lines
}

fn varying(change: &Change, by: By) -> Line {
    let line = key_name(&change.key, by);
    let (old, new) = if change.old.calls == change.new.calls {
        (change.old.failed, change.new.failed)
    } else {
        (change.old.calls, change.new.calls)
    };
    let why = match change.verdict {
        Verdict::ByChance(Chance::Scheduling) => " (by scheduling)",
        Verdict::ByChance(Chance::Memory) => " (by where memory lies)",
        Verdict::ByChance(Chance::Attribution) => " (callers not seen each time)",
        _ => "",
    };
    line.with(Role::Faint, format!(" {} → {}{why}", range(old), range(new)))
}

/// Writes a note as text.
pub(crate) fn note_text(note: &Note) -> String {
    match note {
        Note::OneRun => "one recording a side: only what depends on scheduling or memory is known to vary by itself; \
                         give several a side for more"
            .into(),
        Note::NotExact(side, why) => format!("the {side} side's counts are not exact: {}", sentence(why)),
        Note::Boxes(old, new) => format!("other boxes: {} before, {} now", sentence(old), sentence(new)),
        Note::Machines(old, new) => format!(
            "{old} before, {new} now: calls are compared by name, and their libraries make some by other names there"
        ),
        Note::Backends(old, new) => format!("watched in other ways: {old} before, {new} now"),
    }
}

/// Writes the changes as a table in Markdown, for a pull request.
///
/// # Errors
/// The errors of `w`.
pub fn write_diff_markdown(w: &mut dyn Write, diff: &Diff, options: DiffOptions) -> io::Result<()> {
    writeln!(w, "### System calls: {} → {}\n", range(diff.old.calls), range(diff.new.calls))?;
    if diff.is_empty() {
        writeln!(w, "No change: {} the same.", counted(diff.same as u64, "row is", "rows are"))?;
    }
    if !diff.changed.is_empty() {
        writeln!(w, "| {} | old | new | change | cost |\n|:---|---:|---:|---:|---:|", diff.by.name())?;
    }
    let row = |w: &mut dyn Write, change: &Change, indent: &str, by: By| {
        let [old, new, by_how_much, toll] = cells(change);
        let plain = Style { color: false, ..Style::default() };
        let name = markdown(&name(change, by).render(&plain));
        writeln!(w, "| {indent}{name} | {old} | {new} | {by_how_much} | {toll} |")
    };
    for change in diff.changed.iter().take(options.rows()) {
        row(w, change, "", diff.by)?;
        for beneath in change.beneath.iter().take(options.beneath()) {
            row(w, beneath, "&nbsp;&nbsp;", By::Caller)?;
        }
    }
    let more = diff.changed.len().saturating_sub(options.rows());
    if more > 0 {
        writeln!(w, "\n{} more.", counted(more as u64, "row", "rows"))?;
    }
    for (label, findings) in [("New finding", &diff.findings_new), ("Finding gone", &diff.findings_gone)] {
        for f in findings {
            let calls = counted(f.needless, "needless call", "needless calls");
            writeln!(w, "\n**{label}:** {} ({calls})", markdown(&f.id))?;
        }
    }
    for change in diff.rounds.iter().take(ROUNDS) {
        writeln!(w, "\n**{}:** {}", round_word(change).0.trim_end(), markdown(&round_text(change)))?;
    }
    if !diff.varying.is_empty() {
        let rows = counted(diff.varying.len() as u64, "row varies", "rows vary");
        writeln!(w, "\n<sub>{rows} by itself, left out above.</sub>")?;
    }
    diff.notes.iter().try_for_each(|note| writeln!(w, "\n<sub>{}</sub>", markdown(&note_text(note))))
}

/// Escapes strangers' text for Markdown: none of it becomes markup, a cell's border or HTML.
fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' | '~' | '@' | '!' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}
