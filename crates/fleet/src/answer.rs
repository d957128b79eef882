//! The answer that an engine gives to a question.

use serde_json::{Number, Value};
use std::io::{BufRead, Read};

/// A field of an answer's table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// The value is not known.
    None,
    /// The value is a figure, with the engine's precision.
    Number(Number),
    /// The value is a text that a watched program or the user chose, so it may be hostile.
    Text(String),
    /// The value is true or false.
    Flag(bool),
}

/// The answer to a question: a table of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Names of the columns. The end of a name tells its unit (`_ns`, `share`, `money_`).
    pub columns: Vec<String>,
    /// Lines of the table, each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
    /// True if there are more lines than the limit allows.
    pub is_cut: bool,
    /// Names of files that were left out because they are no Parquet, or are not in folders as the others are; only the first of them.
    pub left_out: Vec<String>,
    /// Number of files that were left out.
    pub left_out_count: u64,
}

/// The reason why an engine's output is no answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Bad {
    /// The engine reported a failure.
    Failed { why: String, missing: Option<String> },
    /// The output ended before the answer was complete.
    CutShort,
}

/// Bytes of one line that are read, at most; the next constant is that for all lines.
const LINE: u64 = 64 << 20;
const ALL: u64 = 1 << 30;

impl Answer {
    /// Reads the output of `driver.py`.
    pub(crate) fn read(lines: impl BufRead) -> Result<Self, Bad> {
        let mut lines = lines.take(ALL);
        let mut answer = Self::default();
        let mut told = false;
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = lines.by_ref().take(LINE).read_until(b'\n', &mut line).map_err(|_| Bad::CutShort)?;
            if read == 0 {
                return Err(Bad::CutShort);
            }
            match serde_json::from_slice(&line).map_err(|_| Bad::CutShort)? {
                Value::Array(cells) if told && cells.len() == answer.columns.len() => {
                    answer.rows.push(cells.into_iter().map(cell).collect());
                }
                Value::Object(said) => {
                    let text = |name: &str| said.get(name).and_then(Value::as_str).map(str::to_owned);
                    if let Some(why) = text("error") {
                        return Err(Bad::Failed { why, missing: text("missing") });
                    }
                    if let Some(files) = said.get("left_out").and_then(Value::as_array) {
                        answer.left_out = files.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                        answer.left_out_count = said.get("count").and_then(Value::as_u64).unwrap_or(0);
                    } else if let Some(columns) = said.get("columns").and_then(Value::as_array) {
                        answer.columns = columns.iter().map(|c| c.as_str().unwrap_or_default().to_owned()).collect();
                        told = true;
                    } else if told {
                        answer.is_cut = said.get("more").and_then(Value::as_bool).unwrap_or(false);
                        return Ok(answer);
                    }
                }
                _ => return Err(Bad::CutShort),
            }
        }
    }
}

fn cell(value: Value) -> Cell {
    match value {
        Value::Null => Cell::None,
        Value::Bool(flag) => Cell::Flag(flag),
        Value::Number(number) => Cell::Number(number),
        Value::String(text) => Cell::Text(text),
        other => Cell::Text(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Answer, Bad> {
        Answer::read(text.as_bytes())
    }

    #[test]
    fn an_answer_is_whole_or_none() {
        let whole = "{\"columns\": [\"a\", \"b\"]}\n[1, \"x\"]\n[null, true]\n{\"rows\": 2, \"more\": true}\n";
        let answer = read(whole).unwrap();
        assert_eq!(answer.rows, [[Cell::Number(1.into()), Cell::Text("x".into())], [Cell::None, Cell::Flag(true)]]);
        assert!(answer.is_cut);
        for cut in 0..whole.len() - 1 {
            assert_eq!(read(&whole[..cut]), Err(Bad::CutShort), "{cut}");
        }
        assert_eq!(read("{\"columns\": [\"a\"]}\n[1, 2]\n"), Err(Bad::CutShort), "a line that is too long");
        assert_eq!(read("[1]\n"), Err(Bad::CutShort));
    }

    #[test]
    fn omitted_rows_are_counted() {
        let told = "{\"left_out\": [\"a.parquet\"], \"count\": 7}\n{\"columns\": []}\n{\"rows\": 0, \"more\": false}\n";
        let answer = read(told).unwrap();
        assert_eq!((answer.left_out, answer.left_out_count), (vec!["a.parquet".to_owned()], 7));
    }

    #[test]
    fn failures_are_reported() {
        let told = read("{\"error\": \"no\", \"missing\": \"duckdb\"}\n");
        assert_eq!(told, Err(Bad::Failed { why: "no".into(), missing: Some("duckdb".into()) }));
    }
}
