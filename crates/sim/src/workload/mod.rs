//! Workload in the native format (simulator.md 4): JSON lines, one operation each, read as a stream.

mod after;
mod curve;
mod merge;
mod operation;
pub mod oracle;
mod zstd;

pub(crate) use curve::mean_of;
pub use curve::{Curve, Curves};
pub use merge::Workload;
pub use operation::{CpuUsage, Explicit, MemoryCurve, Operation, Part, RunningJob, Task};

use crate::error::SimError;
use flate2::bufread::MultiGzDecoder;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use zstd::Zstd;

/// The first bytes of a gzip file.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// The first bytes of a zstd file.
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Longest line: an operation with a million explicit jobs has room.
const LINE_MAX: u64 = 256 << 20;

/// Opens a file, plain, in gzip or in zstd, whatever it is called; `-` is standard input.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>, SimError> {
    let raw: io::Result<Box<dyn Read>> = match path {
        path if path == Path::new("-") => Ok(Box::new(io::stdin())),
        path => File::open(path).map(|file| Box::new(file) as Box<dyn Read>),
    };
    raw.and_then(unpacked).map_err(|e| SimError::file(path, format!("cannot be read: {e}")))
}

fn unpacked(mut input: Box<dyn Read>) -> io::Result<Box<dyn BufRead>> {
    let mut head = Vec::new();
    input.by_ref().take(ZSTD.len() as u64).read_to_end(&mut head)?;
    let (gzip, zstd) = (head.starts_with(GZIP), head == ZSTD);
    let whole = BufReader::with_capacity(1 << 16, Cursor::new(head).chain(input));
    Ok(match (gzip, zstd) {
        (true, _) => Box::new(BufReader::new(MultiGzDecoder::new(whole))),
        (_, true) => Box::new(BufReader::with_capacity(1 << 16, Zstd::new(whole))),
        _ => Box::new(whole),
    })
}

/// By the name: `work.yson`, `work.yson.gz`, `work.yson.zst`.
fn is_yson(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
    name.ends_with(".yson")
}

/// The operations of one file, in their order.
pub struct Reader {
    path: PathBuf,
    input: Box<dyn BufRead>,
    line: u64,
    buffer: Vec<u8>,
    /// Lines are YSON, not JSON.
    is_yson: bool,
    /// Files of measured curves that operations have named.
    curves: BTreeMap<PathBuf, Curves>,
}

impl Reader {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Reader, SimError> {
        Ok(Reader {
            path: path.to_owned(),
            input: open(path)?,
            line: 0,
            buffer: Vec::new(),
            is_yson: is_yson(path),
            curves: BTreeMap::new(),
        })
    }

    /// Reads lines that stand in no file.
    pub fn of(lines: Vec<u8>) -> Reader {
        let (path, curves) = (PathBuf::from("(inline)"), BTreeMap::new());
        let input = Box::new(Cursor::new(lines));
        Reader { path, input, line: 0, buffer: Vec::new(), is_yson: false, curves }
    }

    /// Number of the line that was read last.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error about the line that was read last.
    pub fn error(&self, pointer: &str, message: String) -> SimError {
        let file = self.path.display().to_string();
        SimError { file, line: Some(self.line), pointer: pointer.to_owned(), message }
    }

    /// Reads the curves that tasks name.
    fn with_curves(&mut self, mut operation: Operation) -> Result<Operation, SimError> {
        let folder = self.path.parent().unwrap_or(Path::new("")).to_owned();
        for (number, task) in operation.tasks.iter_mut().enumerate() {
            let Some(CpuUsage::Named { file, key }) = &task.cpu_usage else { continue };
            let file = folder.join(file);
            if !self.curves.contains_key(&file) {
                let curves = Curves::load(&file)?;
                self.curves.insert(file.clone(), curves);
            }
            let found = self.curves.get(&file).and_then(|curves| curves.of(key));
            let found = found.ok_or_else(|| {
                let what = format!("no curve {key:?} in {}", file.display());
                self.error(&format!("/tasks/{number}/cpu_usage/key"), what)
            })?;
            task.cpu_usage = Some(CpuUsage::Curves(found));
        }
        Ok(operation)
    }

    /// The next operation; none at the end.
    pub fn take_next(&mut self) -> Result<Option<Operation>, SimError> {
        loop {
            self.buffer.clear();
            self.line += 1;
            let read = self.input.by_ref().take(LINE_MAX).read_until(b'\n', &mut self.buffer);
            let read = read.map_err(|e| self.error("", format!("cannot be read: {e}")))?;
            if read == 0 {
                return Ok(None);
            }
            if read as u64 == LINE_MAX && self.buffer.last() != Some(&b'\n') {
                return Err(self.error("", format!("the line is longer than {LINE_MAX} bytes")));
            }
            if self.buffer.trim_ascii().is_empty() {
                continue;
            }
            let line = self.buffer.trim_ascii_end();
            let value = match self.is_yson {
                // Lines of a fragment end with semicolons.
                true => yson::parse(line.strip_suffix(b";").unwrap_or(line)).map_err(|e| e.to_string()),
                false => yson::json::from_json(line, &yson::JsonFormat::utf8()).map_err(|e| e.to_string()),
            };
            let value = value.map_err(|e| self.error("", e))?;
            let kind = if self.is_yson { "a map" } else { "a JSON object" };
            let map = value.as_map().ok_or_else(|| self.error("", format!("expected {kind}")))?;
            let operation = Operation::read(map, self.line);
            let operation = operation.map_err(|e| SimError::field(&self.path, Some(self.line), e))?;
            return self.with_curves(operation).map(Some);
        }
    }
}
