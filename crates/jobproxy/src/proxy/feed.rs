//! Input of a job: rows from the disk, in the format that the job wants, into its standard input. No more is
//! read than the pipe takes, so a slow reader costs nothing.

use super::launch::pipe_into_job;
use super::pipe_watch::PipeWatch;
use super::trail::Trail;
use crate::rows;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tables::{Columns, Printer, row};
use vocab::{Failure, PipeUse, RowFlow, TableIo};
use yson::Format;

/// Bytes read from the disk at a time.
const PIECE: usize = 64 << 10;
/// Pieces at a time: the loop has other duties.
const PIECES: usize = 16;

pub(super) struct Feed {
    path: PathBuf,
    format: Format,
    /// None: nothing more goes in.
    pipe: Option<File>,
    /// The other end, to see what is left in it at the end.
    job_end: OwnedFd,
    /// None: no more rows are wanted, or there are none.
    source: Option<File>,
    printer: Printer,
    /// Read and not printed: less than a row, mostly.
    held: Vec<u8>,
    /// Printed; the first `sent` bytes are gone.
    printed: Vec<u8>,
    sent: usize,
    flow: RowFlow,
    expected: u64,
    watch: PipeWatch,
    trail: Trail,
}

impl Feed {
    /// Opens the input of a job that has one.
    pub fn open(
        job_directory: &Path,
        tables: &TableIo,
        ends: &mut super::rows::Ends,
    ) -> Result<Option<Feed>, Failure> {
        let Some(expected) = tables.input_rows else { return Ok(None) };
        let path = rows::input(job_directory);
        let source = File::open(&path)
            .map_err(|e| Failure::new(format!("Cannot open the job's input {}: {e}", path.display())))?;
        let format = Format::from_value(&tables.input_format)
            .map_err(|e| Failure::new(format!("Bad input format of the job: {e}")))?;
        let cannot = |e: io::Error| Failure::new(format!("Cannot create a pipe: {e}"));
        let (pipe, job_end) = pipe_into_job().map_err(cannot)?;
        ends.push((job_end.try_clone().map_err(cannot)?, 0));
        Ok(Some(Feed {
            path,
            format: format.clone(),
            pipe: Some(pipe),
            job_end,
            source: Some(source),
            printer: Printer::new(format, Columns::default()),
            held: Vec::new(),
            printed: Vec::new(),
            sent: 0,
            flow: RowFlow::default(),
            expected,
            watch: PipeWatch::new(),
            trail: Trail::new(),
        }))
    }

    /// To wait for room in.
    pub fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Rows that were given to the job.
    pub fn flow(&self) -> RowFlow {
        self.flow
    }

    /// What went through the pipe, and how.
    pub fn pipe_use(&self) -> PipeUse {
        self.watch.usage()
    }

    /// No more rows than are on their way.
    pub fn stop(&mut self) {
        self.source = None;
        self.held = Vec::new();
    }

    /// The job did not take everything.
    pub fn is_left_unread(&self) -> bool {
        self.flow.row_count.unsigned_abs() < self.expected || self.has_unread_bytes()
    }

    /// It did not take all that it was given.
    pub fn has_unread_bytes(&self) -> bool {
        self.sent < self.printed.len() || rustix::io::ioctl_fionread(&self.job_end).is_ok_and(|n| n > 0)
    }

    /// Saves the rows that the job was given last; gives the bytes. Nothing is given after that.
    pub fn save_context(&mut self, to: &Path) -> Result<u64, Failure> {
        if self.sent == 0 && !self.printed.is_empty() {
            self.trail.take_back();
        }
        // Rows that are long take as much again to be printed.
        (self.source, self.held, self.printed) = (None, Vec::new(), Vec::new());
        self.trail.save(&self.path, &self.format, to)
    }

    /// Fills the pipe, as far as it goes.
    pub fn pump(&mut self) -> Result<(), Failure> {
        for _ in 0..PIECES {
            if self.sent == self.printed.len() && !self.prepare()? {
                // The end of the input is what the job waits for.
                self.close();
            }
            let Some(pipe) = &mut self.pipe else { return Ok(()) };
            match pipe.write(&self.printed[self.sent..]) {
                Ok(n) => {
                    self.sent += n;
                    self.watch.carried(n);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // Whoever wants no more is not to be bothered.
                Err(_) => self.close(),
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        self.pipe = None;
        self.watch.close();
    }

    /// Makes something ready; false if there is no more.
    fn prepare(&mut self) -> Result<bool, Failure> {
        let since = Instant::now();
        let made = self.print();
        self.watch.idle_since(since);
        made
    }

    /// Prints some rows; false if there are no more.
    fn print(&mut self) -> Result<bool, Failure> {
        self.printed.clear();
        self.sent = 0;
        while let Some(source) = &mut self.source {
            // Of a row that is longer than a piece more is read each time, lest it be looked at too often.
            let wanted = PIECE.max(self.held.len()) as u64;
            let read = source.take(wanted).read_to_end(&mut self.held);
            let read = read.map_err(|e| Failure::new(format!("Cannot read the job's input: {e}")))?;
            let whole = self.count();
            let whole = self.held.len() - whole;
            let before = self.printed.len();
            self.printer.print(&self.held[..whole], &mut self.printed)?;
            self.trail.add(&self.held[..whole], self.printed.len() - before);
            self.held.drain(..whole);
            if read == 0 {
                self.source = None;
                if !self.held.is_empty() || self.flow.row_count.unsigned_abs() != self.expected {
                    let (found, expected) = (self.flow.row_count, self.expected);
                    return Err(Failure::new(format!(
                        "The job's input has {found} rows instead of {expected}"
                    )));
                }
            }
            if !self.printed.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Counts the whole rows; how many bytes are behind them.
    fn count(&mut self) -> usize {
        let mut items = row::rows(&self.held);
        for item in items.by_ref().filter(|item| row::is_row(item)) {
            self.flow.row_count += 1;
            self.flow.data_weight = self.flow.data_weight.saturating_add_unsigned(row::weight(item));
            self.flow.uncompressed_data_size =
                self.flow.uncompressed_data_size.saturating_add_unsigned(item.len() as u64);
        }
        items.rest().len()
    }
}
