//! Output of a job: what it writes to the descriptors of its tables becomes chunks on the disk, row by row
//! checked as `write_table` checks them. Each table has a descriptor, but a job may write rows of any table to any
//! of them, behind a switch (`<table_index=1>#`): programs with the SDK write all rows to the first.

use super::launch::pipe_out_of_job;
use super::pipe_watch::PipeWatch;
use crate::outcome;
use crate::rows::{self, Output};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tables::row::Row;
use tables::{Checker, Intake, RowWriter, Schema};
use vocab::{Failure, JobId, JobOutcome, PipeUse, RowFlow, TableIo};
use yson::Format;

/// Pieces read from one table at a time: the loop has other duties.
const PIECES: usize = 16;

pub(super) struct Harvest {
    sources: Vec<Source>,
    tables: Vec<Table>,
}

/// A descriptor of the job.
struct Source {
    /// None: nobody writes any more.
    pipe: Option<File>,
    intake: Intake,
    watch: PipeWatch,
}

struct Table {
    /// None: it is finished.
    rows: Option<RowWriter>,
    flow: RowFlow,
    /// Of the chunk, not on the disk yet.
    ready: Vec<u8>,
    path: PathBuf,
    /// Made when there is something for it.
    file: Option<File>,
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
        let mut harvest = Harvest { sources: Vec::new(), tables: Vec::new() };
        for (number, table) in tables.outputs.iter().enumerate() {
            let (pipe, job_end) =
                pipe_out_of_job().map_err(|e| Failure::new(format!("Cannot create a pipe: {e}")))?;
            ends.push((job_end, (tables.first_output as usize + 3 * number) as i32));
            let checker = Checker::new(Schema::parse(&table.schema)?, table.sorted_by.clone());
            harvest.sources.push(Source {
                pipe: Some(pipe),
                intake: Intake::among(format.clone(), number, tables.outputs.len()),
                watch: PipeWatch::new(),
            });
            harvest.tables.push(Table {
                rows: Some(RowWriter::new(checker)),
                flow: RowFlow::default(),
                ready: Vec::new(),
                path: rows::output(job_directory, number),
                file: None,
            });
        }
        Ok(harvest)
    }

    /// To wait for something in.
    pub fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sources.iter().filter_map(|source| source.pipe.as_ref().map(AsFd::as_fd))
    }

    /// Nobody writes any more.
    pub fn has_ended(&self) -> bool {
        self.sources.iter().all(|source| source.pipe.is_none())
    }

    /// Rows that came, by table.
    pub fn flows(&self) -> Vec<RowFlow> {
        let so_far = |table: &Table| table.rows.as_ref().map(|rows| flow_of(&rows.so_far()));
        self.tables.iter().map(|table| so_far(table).unwrap_or(table.flow)).collect()
    }

    /// What went through the pipes, and how, by descriptor.
    pub fn pipes_use(&self) -> Vec<PipeUse> {
        self.sources.iter().map(|source| source.watch.usage()).collect()
    }

    /// Takes what is there.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<(), JobOutcome> {
        let Harvest { sources, tables } = self;
        sources.iter_mut().try_for_each(|source| source.read(tables, buffer))
    }

    /// Completes the chunks of a job that has completed, and notes which there are.
    pub fn finish(&mut self, job_directory: &Path, job_id: JobId) -> Result<(), JobOutcome> {
        let Harvest { sources, tables } = self;
        for Source { intake, .. } in sources {
            let finished = intake.finish(&mut |table, row| tables[table].add(row));
            finished.map_err(|e| bad_rows(intake.table(), e))?;
        }
        let mut outputs = Vec::new();
        for (number, table) in tables.iter_mut().enumerate() {
            let Some(rows) = table.rows.take() else { continue };
            let summary = rows.finish(&mut table.ready);
            table.flow = flow_of(&summary);
            if summary.rows > 0 {
                table.put_down()?;
                outputs.push(Output { table: number, summary });
            }
        }
        rows::write_list(job_directory, job_id, &outputs).map_err(|e| disk_fault(job_directory, &e))
    }
}

impl Source {
    fn read(&mut self, tables: &mut [Table], buffer: &mut [u8]) -> Result<(), JobOutcome> {
        for _ in 0..PIECES {
            let Some(pipe) = &mut self.pipe else { return Ok(()) };
            match pipe.read(buffer) {
                Ok(0) => self.close(),
                Ok(n) => {
                    let since = Instant::now();
                    self.watch.carried(n);
                    let taken = self.intake.push(&buffer[..n], &mut |table, row| tables[table].add(row));
                    taken.map_err(|e| bad_rows(self.intake.table(), e))?;
                    tables.iter_mut().try_for_each(Table::put_down)?;
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
}

impl Table {
    fn add(&mut self, row: Row<'_>) -> Result<(), Failure> {
        self.rows.as_mut().map_or(Ok(()), |rows| rows.add(row, &mut self.ready))
    }

    fn put_down(&mut self) -> Result<(), JobOutcome> {
        if self.ready.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.ready);
        let written = match &mut self.file {
            Some(file) => file.write_all(&bytes),
            none => File::create(&self.path).and_then(|file| none.insert(file).write_all(&bytes)),
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
