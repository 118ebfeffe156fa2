//! Tables of a run, in whatever form they are.

use crate::error::SimError;
use crate::output::number;
use crate::workload::open;
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;
use std::fs::File;
use std::io::BufRead;
use std::path::Path;
use yson::{JsonFormat, Value};

/// A row: the cells of some columns, empty where there is nothing.
pub(crate) struct Row<'a> {
    cells: &'a [String],
}

impl Row<'_> {
    /// A cell by the place of its column among those that were asked for.
    pub fn text(&self, column: usize) -> &str {
        &self.cells[column]
    }

    pub fn number(&self, column: usize) -> Option<f64> {
        self.cells[column].parse().ok()
    }
}

/// Calls for each row of `<name>.csv`, `<name>.jsonl` or `<name>.parquet`. False: there is no such table.
pub(crate) fn each(
    folder: &Path,
    name: &str,
    columns: &[&str],
    mut act: impl FnMut(Row<'_>),
) -> Result<bool, SimError> {
    let csv = folder.join(format!("{name}.csv"));
    let jsonl = folder.join(format!("{name}.jsonl"));
    let parquet = folder.join(format!("{name}.parquet"));
    let mut cells = vec![String::new(); columns.len()];
    if csv.exists() {
        let wrong = |e: csv::Error| SimError::file(&csv, format!("cannot be read: {e}"));
        let mut table = csv::Reader::from_reader(open(&csv)?);
        let header = table.headers().map_err(wrong)?.clone();
        let places: Vec<_> = columns.iter().map(|c| header.iter().position(|h| h == *c)).collect();
        let mut record = csv::StringRecord::new();
        while table.read_record(&mut record).map_err(wrong)? {
            for (cell, place) in cells.iter_mut().zip(&places) {
                cell.clear();
                cell.push_str(place.and_then(|place| record.get(place)).unwrap_or_default());
            }
            act(Row { cells: &cells });
        }
        return Ok(true);
    }
    if parquet.exists() {
        let wrong = |e: ParquetError| SimError::file(&parquet, format!("cannot be read: {e}"));
        let file =
            File::open(&parquet).map_err(|e| SimError::file(&parquet, format!("cannot be read: {e}")))?;
        each_of_parquet(file, columns, &mut act).map_err(wrong)?;
        return Ok(true);
    }
    if !jsonl.exists() {
        return Ok(false);
    }
    for (number, line) in open(&jsonl)?.lines().enumerate() {
        let wrong = |what: String| SimError::file(&jsonl, format!("line {}: {what}", number + 1));
        let line = line.map_err(|e| wrong(e.to_string()))?;
        let row =
            yson::json::from_json(line.as_bytes(), &JsonFormat::utf8()).map_err(|e| wrong(e.to_string()))?;
        for (cell, column) in cells.iter_mut().zip(columns) {
            *cell = match row.get(column) {
                None | Some(Value::Entity) => String::new(),
                Some(value) => value
                    .as_str()
                    .map_or_else(|| value.as_f64().map(|x| x.to_string()).unwrap_or_default(), str::to_owned),
            };
        }
        act(Row { cells: &cells });
    }
    Ok(true)
}

/// Only the columns that were asked for are read.
fn each_of_parquet(file: File, columns: &[&str], act: &mut impl FnMut(Row<'_>)) -> Result<(), ParquetError> {
    let reader = SerializedFileReader::new(file)?;
    let schema = reader.metadata().file_metadata().schema();
    let fields = schema.get_fields().iter().filter(|field| columns.contains(&field.name()));
    let wanted = ::parquet::schema::types::Type::group_type_builder(schema.name());
    let wanted = wanted.with_fields(fields.cloned().collect()).build()?;
    let mut cells = vec![String::new(); columns.len()];
    for row in reader.get_row_iter(Some(wanted))? {
        cells.iter_mut().for_each(String::clear);
        for (name, field) in row?.get_column_iter() {
            let text = match field {
                Field::Null => continue,
                Field::Long(x) => x.to_string(),
                Field::Double(x) => number(*x),
                Field::Str(text) => text.clone(),
                other => return Err(ParquetError::General(format!("column {name:?} has {other}"))),
            };
            if let Some(place) = columns.iter().position(|column| column == name) {
                cells[place] = text;
            }
        }
        act(Row { cells: &cells });
    }
    Ok(())
}
