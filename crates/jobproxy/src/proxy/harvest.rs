//! Output of a job: what it writes to the descriptors of its tables becomes chunks on the disk, row by row
//! checked as `write_table` checks them.

use super::launch::pipe_out_of_job;
use super::pipe_watch::PipeWatch;
use crate::outcome;
use crate::rows::{self, Output};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tables::{Checker, Schema, Writer};
use vocab::{Failure, JobId, JobOutcome, PipeUse, RowFlow, TableIo};
use yson::Format;

/// Pieces read from one table at a time: the loop has other duties.
const PIECES: usize = 16;

pub(super) struct Harvest(Vec<Table>);

struct Table {
    /// None: nobody writes any more.
    pipe: Option<File>,
    /// None: it is finished.
    writer: Option<Writer>,
    flow: RowFlow,
    path: PathBuf,
    /// Made when there is something for it.
    file: Option<File>,
    watch: PipeWatch,
}

impl Harvest {
    /// Makes the pipes of all output tables.
    pub fn open(
        job_directory: &Path,
        tables: &TableIo,
        ends: &mut super::rows::Ends,
    ) -> Result<Harvest, Failure> {
        let format = Format::from_value(&tables.output_format)
            .map_err(|e| Failure::new(format!("Bad output format of the job: {e}")))?;
        let mut opened = Vec::new();
        for (number, table) in tables.outputs.iter().enumerate() {
            let (pipe, job_end) =
                pipe_out_of_job().map_err(|e| Failure::new(format!("Cannot create a pipe: {e}")))?;
            ends.push((job_end, (tables.first_output as usize + 3 * number) as i32));
            let checker = Checker::new(Schema::parse(&table.schema)?, table.sorted_by.clone());
            opened.push(Table {
                pipe: Some(pipe),
                writer: Some(Writer::new(format.clone(), checker)),
                flow: RowFlow::default(),
                path: rows::output(job_directory, number),
                file: None,
                watch: PipeWatch::new(),
            });
        }
        Ok(Harvest(opened))
    }

    /// To wait for something in.
    pub fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().filter_map(|table| table.pipe.as_ref().map(AsFd::as_fd))
    }

    /// Nobody writes any more.
    pub fn has_ended(&self) -> bool {
        self.0.iter().all(|table| table.pipe.is_none())
    }

    /// Rows that came, by table.
    pub fn flows(&self) -> Vec<RowFlow> {
        self.0.iter().map(|table| table.flow).collect()
    }

    /// What went through the pipes, and how, by table.
    pub fn pipes_use(&self) -> Vec<PipeUse> {
        self.0.iter().map(|table| table.watch.usage()).collect()
    }

    /// Takes what is there.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<(), JobOutcome> {
        self.0.iter_mut().enumerate().try_for_each(|(number, table)| table.read(number, buffer))
    }

    /// Completes the chunks of a job that has completed, and notes which there are.
    pub fn finish(&mut self, job_directory: &Path, job_id: JobId) -> Result<(), JobOutcome> {
        let mut outputs = Vec::new();
        for (number, table) in self.0.iter_mut().enumerate() {
            let Some(writer) = table.writer.take() else { continue };
            let mut last = Vec::new();
            let summary = writer.finish(&mut last).map_err(|e| bad_rows(number, e))?;
            table.flow = flow_of(&summary);
            if summary.rows > 0 {
                table.append(&last)?;
                outputs.push(Output { table: number, summary });
            }
        }
        rows::write_list(job_directory, job_id, &outputs).map_err(|e| disk_fault(job_directory, &e))
    }
}

impl Table {
    fn read(&mut self, number: usize, buffer: &mut [u8]) -> Result<(), JobOutcome> {
        let mut ready = Vec::new();
        for _ in 0..PIECES {
            let (Some(pipe), Some(writer)) = (&mut self.pipe, &mut self.writer) else { return Ok(()) };
            match pipe.read(buffer) {
                Ok(0) => self.close(),
                Ok(n) => {
                    let since = Instant::now();
                    self.watch.carried(n);
                    writer.push(&buffer[..n], &mut ready).map_err(|e| bad_rows(number, e))?;
                    self.flow = flow_of(&writer.so_far());
                    if !ready.is_empty() {
                        self.append(&ready)?;
                        ready.clear();
                    }
                    self.watch.idle_since(since);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => self.close(),
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        self.pipe = None;
        self.watch.close();
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), JobOutcome> {
        let written = match &mut self.file {
            Some(file) => file.write_all(bytes),
            none => File::create(&self.path).and_then(|file| none.insert(file).write_all(bytes)),
        };
        written.map_err(|e| disk_fault(&self.path, &e))
    }
}

fn flow_of(summary: &tables::Summary) -> RowFlow {
    let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    RowFlow {
        row_count: signed(summary.rows),
        data_weight: signed(summary.weight),
        uncompressed_data_size: signed(summary.size),
    }
}

/// No other run of the unit would do better: the whole operation fails (3.8).
fn bad_rows(table: usize, cause: Failure) -> JobOutcome {
    let error = Failure::new(format!("Output table {table} cannot have what the job has written"))
        .with("table_index", table as u64)
        .with("fatal", true);
    outcome::user_job_failed(error.because(cause))
}

fn disk_fault(path: &Path, error: &io::Error) -> JobOutcome {
    let text = format!("Cannot write output of the job to {}: {error}", path.display());
    outcome::environment_fault(Failure::new(text))
}
