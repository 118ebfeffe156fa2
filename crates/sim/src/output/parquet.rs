//! Tables as Parquet: rows are held until a group of them is full, so a run of any length needs the memory of
//! one group. Without compression, as the crate is built here: dictionaries make columns of words small.

use super::column::{Column, Kind};
use super::table::{Cell, number};
use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use ::parquet::data_type::{ByteArray, DataType};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;
use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;

/// Rows of a group.
const GROUP: usize = 1 << 16;

/// See the module page.
pub(super) struct Groups {
    file: SerializedFileWriter<BufWriter<File>>,
    columns: Vec<Held>,
    rows: usize,
}

/// Values of a column since the last group; levels are 1 where there is one and 0 where there is none.
struct Held {
    levels: Vec<i16>,
    values: Values,
}

enum Values {
    Int(Vec<i64>),
    Number(Vec<f64>),
    Text(Vec<ByteArray>),
}

impl Groups {
    pub fn create(file: File, columns: &[Column]) -> Result<Groups, ParquetError> {
        let fields = columns.iter().map(|column| field(column).map(Arc::new));
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("rows").with_fields(fields).build()?;
        // Not the version of the crate: the same run is the same file.
        let made = WriterProperties::builder().set_created_by("millpond".to_owned());
        let file = SerializedFileWriter::new(
            BufWriter::with_capacity(1 << 18, file),
            Arc::new(schema),
            Arc::new(made.build()),
        )?;
        let held = |column: &Column| Held {
            levels: Vec::new(),
            values: match column.kind {
                Kind::Int => Values::Int(Vec::new()),
                Kind::Number => Values::Number(Vec::new()),
                Kind::Text => Values::Text(Vec::new()),
            },
        };
        Ok(Groups { file, columns: columns.iter().map(held).collect(), rows: 0 })
    }

    pub fn row(&mut self, cells: &[Cell]) -> Result<(), ParquetError> {
        for (held, cell) in self.columns.iter_mut().zip(cells) {
            held.levels.push(i16::from(*cell != Cell::Empty));
            match (&mut held.values, cell) {
                (_, Cell::Empty) => {}
                (Values::Int(all), Cell::Int(x)) => all.push(*x),
                // The digits that the other forms have.
                (Values::Number(all), Cell::Number(x)) => all.push(number(*x).parse().unwrap_or(f64::NAN)),
                (Values::Text(all), Cell::Text(x)) => all.push(ByteArray::from(x.as_str())),
                (_, other) => panic!("a cell {other:?} stands in a column of another kind"),
            }
        }
        self.rows += 1;
        if self.rows == GROUP { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for held in &mut self.columns {
            let Some(mut column) = group.next_column()? else { break };
            let levels = std::mem::take(&mut held.levels);
            match (column.untyped(), &mut held.values) {
                (ColumnWriter::Int64ColumnWriter(to), Values::Int(all)) => write(to, all, &levels)?,
                (ColumnWriter::DoubleColumnWriter(to), Values::Number(all)) => write(to, all, &levels)?,
                (ColumnWriter::ByteArrayColumnWriter(to), Values::Text(all)) => write(to, all, &levels)?,
                _ => return Err(ParquetError::General("a column of another kind".to_owned())),
            }
            column.close()?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    /// Everything is in the file after this.
    pub fn finish(mut self) -> Result<(), ParquetError> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.file.close().map(drop)
    }
}

fn write<T: DataType>(
    to: &mut ColumnWriterImpl<'_, T>,
    all: &mut Vec<T::T>,
    levels: &[i16],
) -> Result<(), ParquetError> {
    to.write_batch(all, Some(levels), None)?;
    all.clear();
    Ok(())
}

/// Every cell may be empty.
fn field(column: &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::Int => (Physical::INT64, None),
        Kind::Number => (Physical::DOUBLE, None),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let field = Type::primitive_type_builder(column.name, physical);
    field.with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build()
}
