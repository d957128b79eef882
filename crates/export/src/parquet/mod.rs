//! Writes Parquet: the table of CSV and facts about the run, each column with its type; and makes
//! the folder layout for many such files.
//!
//! It is written by hand: the `parquet` crate takes 43 s of processor time to build, twice as much
//! as all other formats together, and this writer needs only two types and one page a column.

mod column;
mod folders;
mod run;
mod summed;
mod thrift;

pub use folders::{Labels, day};
pub use summed::SummedRuns;

use crate::comma_separated::{COLUMNS, Cell, Column, cells};
use crate::error::ExportError;
use crate::judged_recording::{JudgedRecording, JudgedRow};
use column::{Pages, Values, encoding, pages};
use std::io::{self, Write};
use std::path::PathBuf;
use thrift::Struct;

/// Version of the columns. It grows if one changes its meaning, not if one is added.
const VERSION: &str = "1";
/// Number of rows of a group, which writers and readers hold in memory at once.
const GROUP: usize = 1 << 13;
/// The first and last bytes of a file.
const MAGIC: &[u8] = b"PAR1";

/// Returns a table for a folder of many, and its path within that folder. The same recording gives
/// the same file.
///
/// # Errors
///
/// Fails as [`crate::export`] does.
pub fn for_fleet(judged: &JudgedRecording<'_>, labels: &Labels) -> Result<(PathBuf, Vec<u8>), ExportError> {
    let mut bytes = Vec::new();
    write(judged, labels, &mut bytes)?;
    Ok((folders::place(judged.recording, labels), bytes))
}

/// Writes the table.
pub(crate) fn write(judged: &JudgedRecording<'_>, labels: &Labels, out: &mut dyn Write) -> Result<(), ExportError> {
    let of_run = run::of_run(judged, labels);
    let rows = judged.rows().map(|row| row_of(judged, &row));
    write_table(rows, &of_run, &judged.command(), out)
}

/// Returns the cells of a row, without those of the run.
fn row_of(judged: &JudgedRecording<'_>, row: &JudgedRow<'_>) -> Vec<Cell> {
    [cells(judged, row), run::of_row(row)].concat()
}

/// Writes a table of rows that have the cells of one run.
fn write_table(
    mut rows: impl Iterator<Item = Vec<Cell>>,
    of_run: &[Cell],
    command: &str,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let columns: Vec<Column> = of_rows().chain(run::OF_RUNS).collect();
    let mut file = File { out, written: 0 };
    file.put(MAGIC)?;
    let (mut groups, mut count) = (Vec::new(), 0);
    loop {
        let table: Vec<Vec<Cell>> = rows.by_ref().take(GROUP).collect();
        if table.is_empty() {
            break;
        }
        count += table.len() as i64;
        groups.push(group(&mut file, &columns, &table, of_run, groups.len())?);
    }
    let mut schema = vec![Struct::default().text(4, "systoll").i32(5, columns.len() as i32)];
    schema.extend(columns.iter().map(described));
    let key = |key: &str, value: &str| Struct::default().text(1, key).text(2, value);
    let about = vec![key("systoll.schema", VERSION), key("systoll.command", command)];
    let footer = Struct::default().i32(1, 2).structs(2, schema).i64(3, count).structs(4, groups);
    let footer = footer.structs(5, about).text(6, concat!("systoll ", env!("CARGO_PKG_VERSION"))).end();
    file.put(&footer)?;
    file.put(&(footer.len() as u32).to_le_bytes())?;
    file.put(MAGIC)
}

/// Returns the columns of rows, without those of the run.
fn of_rows() -> impl Iterator<Item = Column> {
    COLUMNS.iter().chain(&run::OF_ROWS).copied()
}

/// A file, and the number of bytes written so far.
struct File<'a> {
    out: &'a mut dyn Write,
    written: u64,
}

impl File<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), ExportError> {
        self.written += bytes.len() as u64;
        Ok(self.out.write_all(bytes)?)
    }
}

/// Codes of the physical types, of "known in every row", and of "not known in every row".
const INT64: i32 = 2;
const BYTE_ARRAY: i32 = 6;
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
/// The converted type of text. Its logical type is field 1 of a union, an empty struct.
const UTF8: i32 = 0;

fn described(column: &Column) -> Struct {
    if column.is_text {
        let text = Struct::default().nested(1, Struct::default());
        return Struct::default()
            .i32(1, BYTE_ARRAY)
            .i32(3, REQUIRED)
            .text(4, column.name)
            .i32(6, UTF8)
            .nested(10, text);
    }
    Struct::default().i32(1, INT64).i32(3, OPTIONAL).text(4, column.name)
}

/// Writes a group of rows. `table` holds the columns that differ from row to row, `of_run` the
/// others.
fn group(
    file: &mut File<'_>,
    columns: &[Column],
    table: &[Vec<Cell>],
    of_run: &[Cell],
    ordinal: usize,
) -> Result<Struct, ExportError> {
    let first = columns.len() - of_run.len();
    let mut chunks = Vec::new();
    let (mut before, start) = (0, file.written);
    for (at, column) in columns.iter().enumerate() {
        let same = at.checked_sub(first).and_then(|at| of_run.get(at));
        let cells = table.iter().filter_map(|row| same.or_else(|| row.get(at)));
        let values = if column.is_text {
            Values::Texts(cells.map(text).collect())
        } else {
            Values::Numbers(cells.map(number).collect())
        };
        let pages = pages(&values)?;
        before += pages.uncompressed;
        let at = file.written;
        chunks.push(chunk(column, &pages, at, table.len()));
        file.put(pages.dictionary.as_deref().unwrap_or_default())?;
        file.put(&pages.data)?;
    }
    let size = (file.written - start) as i64;
    let group = Struct::default().structs(1, chunks).i64(2, before as i64).i64(3, table.len() as i64);
    let ordinal = i16::try_from(ordinal).map_err(io::Error::other)?;
    Ok(group.i64(5, start as i64).i64(6, size).i16(7, ordinal))
}

fn chunk(column: &Column, pages: &Pages, at: u64, rows: usize) -> Struct {
    let ahead = pages.dictionary.as_ref().map_or(0, Vec::len);
    let size = (ahead + pages.data.len()) as i64;
    let (physical, how): (_, &[i32]) = if column.is_text {
        (BYTE_ARRAY, &[encoding::PLAIN, encoding::RLE, encoding::RLE_DICTIONARY])
    } else {
        (INT64, &[encoding::PLAIN, encoding::RLE])
    };
    let meta = Struct::default().i32(1, physical).i32s(2, how).texts(3, &[column.name]).i32(4, pages.codec as i32);
    let meta = meta.i64(5, rows as i64).i64(6, pages.uncompressed as i64).i64(7, size).i64(9, at as i64 + ahead as i64);
    let meta = if ahead > 0 { meta.i64(11, at as i64) } else { meta };
    Struct::default().i64(2, at as i64).nested(3, meta)
}

fn text(cell: &Cell) -> &str {
    if let Cell::Text(text) = cell { text } else { "" }
}

/// Returns a number; those above 2^63 - 1 are cut to that.
fn number(cell: &Cell) -> Option<i64> {
    if let Cell::Number(number) = cell { number.map(|n| i64::try_from(n).unwrap_or(i64::MAX)) } else { None }
}
