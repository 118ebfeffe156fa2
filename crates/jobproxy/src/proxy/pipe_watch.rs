//! How a pipe between a job and its proxy was used (jobs-and-nodes.md 7.2, `user_job/pipes`).

use std::time::{Duration, Instant};
use vocab::{PipeUse, Span};

/// From the opening of a pipe to its end: the proxy is either busy with what goes in or has come out, or lets
/// bytes through as fast as the job takes or gives them.
pub(super) struct PipeWatch {
    bytes: u64,
    opened: Instant,
    idle: Duration,
    open_for: Option<Duration>,
}

impl PipeWatch {
    pub fn new() -> PipeWatch {
        PipeWatch { bytes: 0, opened: Instant::now(), idle: Duration::ZERO, open_for: None }
    }

    /// So many bytes went through.
    pub fn carried(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// The pipe had to wait since then.
    pub fn idle_since(&mut self, since: Instant) {
        self.idle += since.elapsed();
    }

    /// Nothing goes through any more.
    pub fn close(&mut self) {
        self.open_for.get_or_insert_with(|| self.opened.elapsed());
    }

    /// So far.
    pub fn usage(&self) -> PipeUse {
        let open_for = self.open_for.unwrap_or_else(|| self.opened.elapsed());
        let span = |d: Duration| Span(u64::try_from(d.as_micros()).unwrap_or(u64::MAX));
        PipeUse {
            bytes: i64::try_from(self.bytes).unwrap_or(i64::MAX),
            idle_time: span(self.idle),
            busy_time: span(open_for.saturating_sub(self.idle)),
        }
    }
}
