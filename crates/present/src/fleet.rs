//! The result of a query over many recordings: a table that fits the terminal, or JSON.
//!
//! The end of a column's name tells its unit: `_ns` is a time, `share` a part of processor time,
//! `money_month` money.

use crate::json::SCHEMA_VERSION;
use crate::style::{Line, Role, Style};
use crate::text::{clean, columns, shorten, wrapped};
use crate::units::{grouped, percent, time};
use serde_json::{Map, Value, json};
use std::io;
use systoll_fleet::{Answer, Cell};

/// Least width of a shortened text, in columns.
const LEAST: usize = 6;
/// Spaces between columns.
const GAP: usize = 2;

/// Writes the table under `title`, and `note` below it.
pub fn write_answer(w: &mut dyn io::Write, answer: &Answer, title: &str, note: &str, style: &Style) -> io::Result<()> {
    let width = style.columns();
    if !title.is_empty() {
        for line in wrapped(title, width) {
            writeln!(w, "{}", style.paint(Role::Strong, &line))?;
        }
        writeln!(w)?;
    }
    if answer.rows.is_empty() {
        writeln!(w, "  none")?;
    } else {
        let table = Table::of(answer);
        match table.widths(width) {
            Some(widths) => table.write(w, &widths, style)?,
            None => table.write_long(w, width, style)?,
        }
    }
    if answer.is_cut {
        writeln!(w, "  {}", style.paint(Role::Faint, "… and more: -n N shows N lines, --json and --csv all"))?;
    }
    if !note.is_empty() {
        writeln!(w)?;
        for line in wrapped(&as_headed(note, &answer.columns), width) {
            writeln!(w, "{}", style.paint(Role::Faint, &line))?;
        }
    }
    Ok(())
}

/// Converts the result to JSON with exact figures, one object a line.
pub fn answer_json(answer: &Answer, question: &str) -> Value {
    let value = |cell: &Cell| match cell {
        Cell::None => Value::Null,
        Cell::Number(number) => Value::Number(number.clone()),
        Cell::Text(text) => Value::String(text.clone()),
        Cell::Flag(flag) => Value::Bool(*flag),
    };
    let object =
        |row: &Vec<Cell>| -> Map<String, Value> { answer.columns.iter().cloned().zip(row.iter().map(value)).collect() };
    let rows: Vec<_> = answer.rows.iter().map(object).collect();
    json!({"schema": SCHEMA_VERSION, "question": question, "columns": answer.columns, "rows": rows, "more": answer.is_cut})
}

/// The shown part of a result, as text.
struct Table {
    headings: Vec<Vec<String>>,
    is_text: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn of(answer: &Answer) -> Self {
        let names: Vec<&str> = answer.columns.iter().map(String::as_str).collect();
        let of = |row: &[Cell], at: usize| told(names.get(at).copied().unwrap_or_default(), row.get(at));
        let shown: Vec<usize> = (0..names.len()).filter(|at| !is_whole(&names, *at)).collect();
        let cell = |row: &Vec<Cell>, at: usize| match is_whole(&names, at + 1) {
            true => format!("{} of {}", of(row, at), of(row, at + 1)),
            false => of(row, at),
        };
        let rows: Vec<Vec<String>> =
            answer.rows.iter().map(|row| shown.iter().map(|at| cell(row, *at)).collect()).collect();
        let text = |at: usize| !answer.rows.iter().any(|row| matches!(row.get(at), Some(Cell::Number(_))));
        let widest = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|c| columns(c)).max().unwrap_or(0);
        let headings =
            shown.iter().enumerate().map(|(place, at)| heading(names.get(*at).unwrap_or(&""), widest(place)));
        Self { headings: headings.collect(), is_text: shown.iter().map(|at| text(*at)).collect(), rows }
    }

    /// Returns the widths of the columns, with texts shortened if necessary. Returns `None` if the
    /// table is too wide even then.
    fn widths(&self, width: usize) -> Option<Vec<usize>> {
        let wide = |(at, words): (usize, &Vec<String>)| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            words.iter().chain(cells).map(|c| columns(c)).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = self.headings.iter().enumerate().map(wide).collect();
        let heads: Vec<usize> = self.headings.iter().map(|h| h.iter().map(|w| columns(w)).max().unwrap_or(0)).collect();
        let mut over = (widths.iter().sum::<usize>() + GAP * widths.len()).saturating_sub(width);
        while over > 0 {
            let least = |at: usize| heads.get(at).copied().unwrap_or(0).max(LEAST);
            let texts = widths.iter_mut().enumerate().filter(|(at, w)| self.is_text[*at] && **w > least(*at));
            *texts.max_by_key(|(_, w)| **w)?.1 -= 1;
            over -= 1;
        }
        Some(widths)
    }

    fn write(&self, w: &mut dyn io::Write, widths: &[usize], style: &Style) -> io::Result<()> {
        let lines = self.headings.iter().map(Vec::len).max().unwrap_or(0);
        for nth in 0..lines {
            let words = self.headings.iter().map(|h| (h.len() + nth).checked_sub(lines).and_then(|at| h.get(at)));
            let words: Vec<&str> = words.map(|word| word.map_or("", String::as_str)).collect();
            self.line(w, &words, widths, Some(Role::Faint), style)?;
        }
        for row in &self.rows {
            let cells: Vec<&str> = row.iter().map(String::as_str).collect();
            self.line(w, &cells, widths, None, style)?;
        }
        Ok(())
    }

    fn line(
        &self,
        w: &mut dyn io::Write,
        cells: &[&str],
        widths: &[usize],
        role: Option<Role>,
        style: &Style,
    ) -> io::Result<()> {
        let (mut line, mut start) = (Line::default(), 0);
        for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let is_text = self.is_text.get(at).copied().unwrap_or(false);
            let cell = shorten(cell, *width);
            let before = start + GAP + if is_text { 0 } else { width - columns(&cell) };
            if !cell.is_empty() {
                line.pad_to(before);
                line.push(role.unwrap_or(if is_text && at == 0 { Role::Name } else { Role::Plain }), cell);
            }
            start += GAP + width;
        }
        writeln!(w, "{}", line.render(style))
    }

    /// Writes the result with one field a line, if the table would be too wide.
    fn write_long(&self, w: &mut dyn io::Write, width: usize, style: &Style) -> io::Result<()> {
        let names: Vec<String> = self.headings.iter().map(|words| words.join(" ")).collect();
        let indent = names.iter().map(|n| columns(n)).max().unwrap_or(0).min(width / 2) + GAP;
        for (nth, row) in self.rows.iter().enumerate() {
            if nth > 0 {
                writeln!(w)?;
            }
            for (name, cell) in names.iter().zip(row) {
                let mut line = Line::of(Role::Faint, shorten(name, indent - GAP));
                line.pad_to(indent);
                line.push(Role::Plain, shorten(cell, width.saturating_sub(indent + GAP)));
                writeln!(w, "  {}", line.render(style))?;
            }
        }
        Ok(())
    }
}

/// Returns true if column `at` is the total that the column before it is a part of (`of_NAME`).
fn is_whole(names: &[&str], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| names.get(before));
    before.is_some_and(|before| names.get(at).and_then(|n| n.strip_prefix("of_")) == Some(before))
}

/// Replaces the columns' names in a note by their headings: `needless time` for `needless_ns`.
fn as_headed(note: &str, names: &[String]) -> String {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let named = |word: &str| names.iter().find(|name| *name == word).map(|name| heading(name, usize::MAX).join(" "));
    let parts = note.split_inclusive(|c| !is_of_name(c)).map(|part| {
        let word = part.trim_end_matches(|c| !is_of_name(c));
        named(word).map_or_else(|| part.to_owned(), |heading| heading + part.get(word.len()..).unwrap_or_default())
    });
    parts.collect()
}

/// Splits a column's name into words, on enough lines to make it no wider than its cells.
fn heading(name: &str, width: usize) -> Vec<String> {
    let words = clean(match name.strip_suffix("_ns") {
        Some(name) => return heading(&format!("{name}_time"), width),
        None => name,
    });
    let longest = words.split('_').map(columns).max().unwrap_or(0).max(width);
    let mut lines: Vec<String> = Vec::new();
    for word in words.split('_') {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= longest => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Writes a field as text. Escapes text that strangers chose.
fn told(name: &str, cell: Option<&Cell>) -> String {
    let number = match cell {
        None | Some(Cell::None) => return "-".into(),
        Some(Cell::Flag(flag)) => return if *flag { "yes" } else { "no" }.into(),
        Some(Cell::Text(text)) => return clean(text),
        Some(Cell::Number(number)) => number,
    };
    let float = number.as_f64().unwrap_or(f64::NAN);
    if name.ends_with("_ns") && float >= 0.0 {
        return time(number.as_u64().unwrap_or(float as u64));
    }
    if name.ends_with("share") {
        return percent(float).unwrap_or_else(|| "-".into());
    }
    let whole = number.as_u64().map(grouped);
    whole.unwrap_or_else(|| if number.is_i64() { number.to_string() } else { decimal(float, name) })
}

/// Writes a figure with a fraction: money to the hundredth, others to three figures.
fn decimal(f: f64, name: &str) -> String {
    if !f.is_finite() {
        return "-".into();
    }
    let sign = if f < 0.0 { "-" } else { "" };
    let f = f.abs();
    if name.starts_with("money") {
        return format!("{sign}{}.{:02}", grouped(f as u64), ((f.fract() * 100.0).round() as u64).min(99));
    }
    match f {
        f if f >= 99.95 => format!("{sign}{}", grouped(f.round() as u64)),
        f if f >= 9.95 => format!("{sign}{f:.1}"),
        f if f >= 0.0995 || f == 0.0 => format!("{sign}{f:.2}"),
        f if f >= 0.0005 => format!("{sign}{f:.4}"),
        f => format!("{sign}{f:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Number;

    fn answer(rows: usize) -> Answer {
        let text = |t: &str| Cell::Text(t.to_owned());
        let share = Number::from_f64(0.125).map_or(Cell::None, Cell::Number);
        let row = vec![
            text(&"shop\u{1b}[2J".repeat(9)),
            Cell::Number(7.into()),
            Cell::Number(500.into()),
            Cell::Number(1_234_567.into()),
            share,
        ];
        let columns = ["service", "hosts", "of_hosts", "needless_ns", "share"].map(str::to_owned).to_vec();
        Answer { columns, rows: vec![row; rows], is_cut: rows > 1, ..Answer::default() }
    }

    fn shown(answer: &Answer, width: usize) -> String {
        let mut out = Vec::new();
        write_answer(&mut out, answer, "title", "", &Style { color: false, width, whole_names: false }).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tables_fit_and_escape() {
        for width in [40, 60, 80, 200] {
            let told = shown(&answer(2), width);
            assert!(told.lines().all(|line| columns(line) <= width.max(60)), "{width}: {told}");
            assert!(told.contains("7 of 500") && told.contains("1.23 ms") && told.contains("12 %"), "{told}");
            assert!(!told.contains('\u{1b}'), "{told}");
        }
        assert!(shown(&answer(0), 80).contains("\n  none\n"));
    }

    #[test]
    fn a_note_names_columns_as_the_table_does() {
        let note = as_headed("needless_ns is a time; share, of needless_ns (wall_ns) of_hosts.", &answer(0).columns);
        assert_eq!(note, "needless time is a time; share, of needless time (wall_ns) of hosts.");
    }

    #[test]
    fn wide_tables_become_lines() {
        let mut wide = answer(1);
        wide.columns = (0..5).map(|n| format!("{n}{}", "x".repeat(30))).collect();
        assert!(shown(&wide, 60).lines().count() > 6);
    }

    #[test]
    fn json_is_exact() {
        let told = answer_json(&answer(1), "dearest");
        assert_eq!(told["rows"][0]["needless_ns"], 1_234_567);
        assert_eq!(told["rows"][0]["share"], 0.125);
    }

    #[test]
    fn figures_are_short() {
        let all = [1234.6, 12.34, 0.5, 0.0123, 0.00001, 0.0, -3.0].map(|f| decimal(f, "cores"));
        assert_eq!(all, ["1,235", "12.3", "0.50", "0.0123", "1.0e-5", "0.00", "-3.00"]);
        assert_eq!(decimal(1234.5, "money_month"), "1,234.50");
    }
}
