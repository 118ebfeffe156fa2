//! Rows on their way into the user's process and out of it: [`feed`](super::feed) and
//! [`harvest`](super::harvest), as the loop sees them.

use super::feed::Feed;
use super::harvest::Harvest;
use crate::outcome;
use crate::protocol::JobStart;
use crate::rows;
use rustix::event::{PollFd, PollFlags};
use std::os::fd::OwnedFd;
use vocab::{Failure, InterruptionReason, JobOutcome, TableStatistics};

/// Both directions; neither in a job without tables.
#[derive(Default)]
pub(super) struct Rows {
    feed: Option<Feed>,
    harvest: Option<Harvest>,
}

/// What the user's process gets, with the number.
pub(super) type Ends = Vec<(OwnedFd, i32)>;

impl Rows {
    /// Opens the input and makes the pipes.
    pub fn open(start: &JobStart) -> Result<(Rows, Ends), JobOutcome> {
        let Some(tables) = &start.tables else { return Ok((Rows::default(), Vec::new())) };
        let mut ends = Vec::new();
        let fault = |failure: Failure| outcome::environment_fault(failure);
        if tables.input_rows.is_none() {
            // Whoever brings the input has made the directory for it; here there was nobody.
            rows::make_directory(&start.job_directory).map_err(|e| {
                let place = rows::directory(&start.job_directory);
                fault(Failure::new(format!("Cannot make {}: {e}", place.display())))
            })?;
        }
        let feed = Feed::open(&start.job_directory, tables, &mut ends).map_err(fault)?;
        let harvest = Harvest::open(&start.job_directory, tables, &mut ends).map_err(fault)?;
        Ok((Rows { feed, harvest: Some(harvest) }, ends))
    }

    /// Descriptors to poll.
    pub fn watch<'f>(&'f self, fds: &mut Vec<PollFd<'f>>) {
        let into = self.feed.iter().filter_map(Feed::pipe);
        fds.extend(into.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)));
        let out = self.harvest.iter().flat_map(Harvest::pipes);
        fds.extend(out.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    }

    /// Moves what can be moved without waiting. An outcome: the job must end.
    pub fn work(&mut self, buffer: &mut [u8]) -> Result<(), JobOutcome> {
        if let Some(feed) = &mut self.feed {
            feed.pump().map_err(outcome::environment_fault)?;
        }
        match &mut self.harvest {
            Some(harvest) => harvest.read(buffer),
            None => Ok(()),
        }
    }

    /// Nobody can write any more.
    pub fn has_ended(&self) -> bool {
        self.harvest.as_ref().is_none_or(Harvest::has_ended)
    }

    /// The job is to stop: it gets no more rows, and the end of those that it has (5.6).
    pub fn stop_feeding(&mut self) {
        if let Some(feed) = &mut self.feed {
            feed.stop();
        }
    }

    /// So far.
    pub fn statistics(&self) -> Option<Box<TableStatistics>> {
        let harvest = self.harvest.as_ref()?;
        let feed = self.feed.as_ref();
        Some(Box::new(TableStatistics {
            input: feed.map(Feed::flow).unwrap_or_default(),
            not_fully_consumed: feed.is_some_and(Feed::is_left_unread),
            outputs: harvest.flows(),
            input_pipe: feed.map(Feed::pipe_use).unwrap_or_default(),
            output_pipes: harvest.pipes_use(),
        }))
    }

    /// Puts down what a job that has failed was reading (5.5); gives the bytes.
    pub fn save_fail_context(&mut self, start: &JobStart, outcome: &JobOutcome) -> Result<u64, Failure> {
        match (&mut self.feed, outcome) {
            (Some(feed), JobOutcome::Failed { .. }) => {
                feed.save_context(&crate::rows::fail_context(&start.job_directory))
            }
            _ => Ok(0),
        }
    }

    /// What becomes of a job whose process has ended like this: output that is not rows fails it, and so may
    /// input that it did not read; completed output is put down.
    pub fn conclude(
        &mut self,
        start: &JobStart,
        ended: JobOutcome,
        interrupted: Option<InterruptionReason>,
    ) -> JobOutcome {
        let (Some(tables), Some(harvest)) = (&start.tables, &mut self.harvest) else { return ended };
        let JobOutcome::Completed { restart_needed, .. } = ended else { return ended };
        if let Some(feed) = &self.feed {
            let unread = feed.is_left_unread();
            if tables.check_input_fully_consumed && unread && interrupted.is_none() {
                let error = Failure::new("Input stream was not fully consumed by user process");
                return outcome::user_job_failed(error);
            }
            // Of an interrupted job it must be known which rows it has done: it has seen the end of them.
            let reason = interrupted.filter(|_| !restart_needed);
            if let Some(reason) = reason.filter(|_| feed.flow().row_count == 0 || feed.has_unread_bytes()) {
                return outcome::interruption_failed(reason);
            }
        }
        match harvest.finish(&start.job_directory, start.job_id) {
            Ok(()) => ended,
            Err(outcome) => outcome,
        }
    }
}
