//! Rows of the output files: CSV or JSON lines, the same columns and the same digits everywhere.

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
    columns: &'static [&'static str],
    format: Format,
    file: BufWriter<File>,
}

impl Table {
    /// Begins `<name>.csv` or `<name>.jsonl` in a directory.
    pub fn create(
        folder: &Path,
        name: &str,
        columns: &'static [&'static str],
        format: Format,
    ) -> Result<Table, SimError> {
        let ending = if format == Format::Csv { "csv" } else { "jsonl" };
        let path = folder.join(format!("{name}.{ending}"));
        let file = File::create(&path).map_err(|e| cannot_write(&path, &e))?;
        let mut table = Table { path, columns, format, file: BufWriter::with_capacity(1 << 18, file) };
        if format == Format::Csv {
            table.write(&columns.join(","))?;
        }
        Ok(table)
    }

    fn write(&mut self, line: &str) -> Result<(), SimError> {
        writeln!(self.file, "{line}").map_err(|e| cannot_write(&self.path, &e))
    }

    /// One more row.
    pub fn row(&mut self, cells: &[Cell]) -> Result<(), SimError> {
        assert_eq!(cells.len(), self.columns.len(), "a row of {} has other columns", self.path.display());
        let line = match self.format {
            Format::Csv => cells.iter().map(Cell::csv).collect::<Vec<_>>().join(","),
            Format::Jsonl => {
                let pairs =
                    self.columns.iter().zip(cells).map(|(name, cell)| format!("\"{name}\":{}", cell.json()));
                format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
            }
        };
        self.write(&line)
    }

    /// Everything is in the file after this.
    pub fn finish(mut self) -> Result<(), SimError> {
        self.file.flush().map_err(|e| cannot_write(&self.path, &e))
    }
}

/// The error of a file that cannot be written.
pub fn cannot_write(path: &Path, error: &std::io::Error) -> SimError {
    SimError::file(path, format!("cannot be written: {error}"))
}
