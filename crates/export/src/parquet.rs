//! Parquet: the table of CSV, each column with its type.

use crate::error::ExportError;
use crate::judged::Judged;
use std::io::Write;

/// Writes one row group.
#[cfg(feature = "parquet")]
pub(crate) fn write(judged: &Judged<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    columns::write(judged, out).map_err(|error| ExportError::Io(std::io::Error::other(error)))
}

/// Says that this build has none.
#[cfg(not(feature = "parquet"))]
pub(crate) fn write(_: &Judged<'_>, _: &mut dyn Write) -> Result<(), ExportError> {
    Err(ExportError::NotBuilt)
}

#[cfg(feature = "parquet")]
mod columns {
    use crate::comma_separated::{COLUMNS, Cell, cells};
    use crate::judged::Judged;
    use parquet::basic::{LogicalType, Repetition, Type as Physical};
    use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use parquet::errors::ParquetError;
    use parquet::file::metadata::KeyValue;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::types::Type;
    use std::io::Write;
    use std::sync::Arc;

    /// Version of the columns: it grows where one changes its meaning, not where one is added.
    const VERSION: &str = "1";

    pub(super) fn write(judged: &Judged<'_>, out: &mut dyn Write) -> Result<(), ParquetError> {
        let fields = COLUMNS.iter().map(|(name, text)| field(name, *text).map(Arc::new)).collect::<Result<_, _>>()?;
        let schema = Arc::new(Type::group_type_builder("systoll").with_fields(fields).build()?);
        let about = [("systoll.schema", VERSION.to_owned()), ("systoll.command", judged.command())];
        let about = about.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec();
        let properties = Arc::new(WriterProperties::builder().set_key_value_metadata(Some(about)).build());
        let mut bytes = Vec::new();
        let mut file = SerializedFileWriter::new(&mut bytes, schema, properties)?;
        let table: Vec<Vec<Cell>> = judged.rows().map(|told| cells(judged, &told)).collect();
        let mut group = file.next_row_group()?;
        let mut at = 0;
        while let Some(mut column) = group.next_column()? {
            let cells = table.iter().filter_map(|row| row.get(at));
            if COLUMNS.get(at).is_some_and(|(_, text)| *text) {
                let texts: Vec<ByteArray> = cells.map(text).collect();
                column.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
            } else {
                let numbers: Vec<Option<i64>> = cells.map(number).collect();
                let known: Vec<i16> = numbers.iter().map(|n| i16::from(n.is_some())).collect();
                let numbers: Vec<i64> = numbers.into_iter().flatten().collect();
                column.typed::<Int64Type>().write_batch(&numbers, Some(&known), None)?;
            }
            column.close()?;
            at += 1;
        }
        group.close()?;
        file.close()?;
        out.write_all(&bytes)?;
        Ok(())
    }

    fn field(name: &str, text: bool) -> Result<Type, ParquetError> {
        let (physical, repetition) =
            if text { (Physical::BYTE_ARRAY, Repetition::REQUIRED) } else { (Physical::INT64, Repetition::OPTIONAL) };
        let logical = text.then_some(LogicalType::String);
        Type::primitive_type_builder(name, physical).with_repetition(repetition).with_logical_type(logical).build()
    }

    fn text(cell: &Cell) -> ByteArray {
        match cell {
            Cell::Text(text) => ByteArray::from(text.as_str()),
            Cell::Number(_) => ByteArray::from(""),
        }
    }

    /// Numbers beyond 2^63 - 1 are cut to that.
    fn number(cell: &Cell) -> Option<i64> {
        match cell {
            Cell::Number(number) => number.map(|n| i64::try_from(n).unwrap_or(i64::MAX)),
            Cell::Text(_) => None,
        }
    }
}
