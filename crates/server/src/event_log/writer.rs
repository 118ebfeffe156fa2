//! The thread that writes. It never gives up: while the disk takes nothing it tries again every second,
//! and everything waits in the store.

use super::files::EventFiles;
use super::queue::{Queue, Taken};
use super::{News, Outbox};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often files are made durable. The store keeps events until then.
const SYNC_PERIOD: Duration = Duration::from_secs(1);
/// How long to wait when the disk does not take more.
const RETRY: Duration = Duration::from_secs(1);
/// Bytes of records that are read from the store at a time.
const CHUNK: usize = 4 << 20;

pub struct Writer<F> {
    files: EventFiles,
    queue: Arc<Queue>,
    outbox: Box<Outbox>,
    tell: F,
    /// When what is in the files has to be synced.
    sync_at: Option<Instant>,
    /// Nothing can be written: what was told about that, and when to try again.
    failing: Option<(String, Instant)>,
}

impl<F: Fn(News)> Writer<F> {
    pub fn new(files: EventFiles, queue: Arc<Queue>, outbox: Box<Outbox>, tell: F) -> Writer<F> {
        Writer { files, queue, outbox, tell, sync_at: None, failing: None }
    }

    pub fn run(mut self) {
        // What the files have of the life before, the store need not keep.
        (self.tell)(News::Written(self.files.last()));
        self.tell_lost();
        loop {
            let retry = self.failing.as_ref().map(|(_, at)| *at);
            let taken = self.queue.take(retry.or(self.sync_at), retry.is_some());
            let stopping = taken.stopping;
            match self.step(taken) {
                Ok(()) => self.tell_lost(),
                Err(error) => self.failed(&error),
            }
            if stopping {
                return;
            }
        }
    }

    /// Writes what came, and syncs if it is time.
    fn step(&mut self, taken: Taken) -> io::Result<()> {
        let last = self.files.last();
        for (first, stored) in &taken.records {
            // Somebody before it was left out.
            if *first > self.files.last() + 1 {
                self.catch_up()?;
            }
            self.write(*first, stored)?;
        }
        self.files.flush()?;
        if taken.behind {
            self.catch_up()?;
        }
        if self.files.last() > last {
            self.sync_at.get_or_insert_with(|| Instant::now() + SYNC_PERIOD);
        }
        let is_due = self.sync_at.is_some_and(|at| Instant::now() >= at);
        // After a failure success is good news, too.
        if is_due || self.failing.is_some() || taken.stopping && self.sync_at.is_some() {
            self.sync()?;
        }
        Ok(())
    }

    /// Takes from the store what the files do not have.
    fn catch_up(&mut self) -> io::Result<()> {
        loop {
            let from = self.files.last() + 1;
            for (first, stored) in (self.outbox)(from, CHUNK)? {
                self.write(first, &stored)?;
            }
            if self.files.last() < from {
                return Ok(());
            }
            // So that the store may forget meanwhile.
            self.sync()?;
        }
    }

    fn write(&mut self, first: u64, stored: &[u8]) -> io::Result<()> {
        for (number, event) in (first..).zip(kernel::events_of(first, stored)) {
            match event {
                Ok(event) => self.files.append(number, event)?,
                // Their numbers are missed when the next ones come.
                Err(failure) => {
                    tracing::error!(%failure, "events are lost");
                    break;
                }
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let safe = self.files.sync()?;
        self.sync_at = None;
        if self.failing.take().is_some() {
            tracing::info!("the event log is written again");
        }
        (self.tell)(News::Written(safe));
        Ok(())
    }

    fn failed(&mut self, error: &io::Error) {
        self.files.rewind();
        self.queue.fall_behind();
        self.sync_at = None;
        let error = error.to_string();
        if self.failing.as_ref().is_none_or(|(told, _)| *told != error) {
            tracing::error!(%error, "the event log cannot be written: trying again every second");
            (self.tell)(News::Failing(error.clone()));
        }
        self.failing = Some((error, Instant::now() + RETRY));
    }

    fn tell_lost(&mut self) {
        for (from, to) in self.files.take_lost() {
            tracing::error!(from, to, "events are lost");
            (self.tell)(News::Lost { from, to });
        }
    }
}
