//! Rows of the output files: CSV, JSON lines or Parquet, the same columns and the same digits everywhere.

use super::column::Column;
use super::parquet::Groups;
use crate::error::SimError;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Form of the tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// With a header line.
    #[default]
    Csv,
    /// An object a line.
    Jsonl,
    /// Columns with types, for data frames.
    Parquet,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 3] = [Format::Csv, Format::Jsonl, Format::Parquet];

    /// How the names of its files end.
    pub const fn ending(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Jsonl => "jsonl",
            Format::Parquet => "parquet",
        }
    }
}

/// One value.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum Cell {
    Empty,
    Int(i64),
    /// Printed with three digits.
    Number(f64),
    Text(String),
}

impl Cell {
    /// A text, if there is one.
    pub fn text(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }

    fn plain(&self) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Int(x) => x.to_string(),
            Cell::Number(x) => number(*x),
            Cell::Text(text) => text.clone(),
        }
    }

    fn csv(&self) -> String {
        let text = self.plain();
        match text.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text,
        }
    }

    fn json(&self) -> String {
        match self {
            Cell::Empty => "null".to_owned(),
            Cell::Text(text) => {
                let bytes = yson::json::to_json(&text.as_str().into(), &yson::JsonFormat::utf8());
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Cell::Int(_) | Cell::Number(_) => self.plain(),
        }
    }
}

/// Three digits; minus zero is zero.
pub fn number(x: f64) -> String {
    let text = format!("{x:.3}");
    if text == "-0.000" { "0.000".to_owned() } else { text }
}

/// A table that is written while it grows.
pub struct Table {
    path: PathBuf,
    columns: &'static [Column],
    form: Form,
}

enum Form {
    Csv(BufWriter<File>),
    Jsonl(BufWriter<File>),
    Parquet(Box<Groups>),
}

impl Table {
    /// Begins `<name>.csv`, `<name>.jsonl` or `<name>.parquet` in a directory.
    pub fn create(
        folder: &Path,
        name: &str,
        columns: &'static [Column],
        format: Format,
    ) -> Result<Table, SimError> {
        // Whoever reads the directory must not find the table of an earlier run in another form.
        for other in Format::ALL.iter().filter(|other| **other != format) {
            let path = folder.join(format!("{name}.{}", other.ending()));
            if path.exists() {
                std::fs::remove_file(&path).map_err(|e| cannot_write(&path, &e))?;
            }
        }
        let path = folder.join(format!("{name}.{}", format.ending()));
        let file = File::create(&path).map_err(|e| cannot_write(&path, &e))?;
        let buffered = |file| BufWriter::with_capacity(1 << 18, file);
        let form = match format {
            Format::Csv => Form::Csv(buffered(file)),
            Format::Jsonl => Form::Jsonl(buffered(file)),
            Format::Parquet => Form::Parquet(Box::new(
                Groups::create(file, columns).map_err(|e| cannot_write(&path, &std::io::Error::other(e)))?,
            )),
        };
        let mut table = Table { path, columns, form };
        if let Form::Csv(file) = &mut table.form {
            let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
            writeln!(file, "{}", names.join(",")).map_err(|e| cannot_write(&table.path, &e))?;
        }
        Ok(table)
    }

    /// One more row.
    pub fn row(&mut self, cells: &[Cell]) -> Result<(), SimError> {
        assert_eq!(cells.len(), self.columns.len(), "a row of {} has other columns", self.path.display());
        let written = match &mut self.form {
            Form::Csv(file) => {
                let cells: Vec<_> = cells.iter().map(Cell::csv).collect();
                writeln!(file, "{}", cells.join(","))
            }
            Form::Jsonl(file) => {
                let pairs = self.columns.iter().zip(cells);
                let pairs = pairs.map(|(column, cell)| format!("\"{}\":{}", column.name, cell.json()));
                writeln!(file, "{{{}}}", pairs.collect::<Vec<_>>().join(","))
            }
            Form::Parquet(groups) => groups.row(cells).map_err(std::io::Error::other),
        };
        written.map_err(|e| cannot_write(&self.path, &e))
    }

    /// Everything is in the file after this.
    pub fn finish(self) -> Result<(), SimError> {
        let Table { path, form, .. } = self;
        let done = match form {
            Form::Csv(mut file) | Form::Jsonl(mut file) => file.flush(),
            Form::Parquet(groups) => groups.finish().map_err(std::io::Error::other),
        };
        done.map_err(|e| cannot_write(&path, &e))
    }
}

/// The error of a file that cannot be written.
pub fn cannot_write(path: &Path, error: &std::io::Error) -> SimError {
    SimError::file(path, format!("cannot be written: {error}"))
}
