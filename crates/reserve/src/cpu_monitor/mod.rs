//! The CPU monitor of one job (jobs-and-nodes.md 1).
//!
//! ```text
//! let mut monitor = Monitor::new(options, cpu_limit);
//! every options.check_period:
//!     let check = monitor.check(time since the start, CPU time used, |limit| write it to the container);
//!     if check.change is one that was applied: tell the node at once (1.5)
//! in reports: monitor.statistics()
//! ```
//!
//! The measured use goes through a filter, the filtered value votes against the current limit, and a
//! window of votes that leans far enough to one side moves the limit: down in small steps, up in big
//! ones. Going down takes minutes and going up about twenty seconds; that asymmetry is intended.
//!
//! Invariants:
//!
//! * The limit never leaves `[floor, hard]`.
//! * Two decisions are at least `vote_window_size` checks apart, and all votes of a window were cast
//!   against the same limit: the window is emptied whenever the threshold is crossed.
//! * A job that keeps its guarantee busy from the start never has a preemptible part.
//!
//! With reclaim off the limit here still moves, as if every decision had been carried out, so that
//! the statistics say what could have been taken; nothing is written to the container.

mod options;
mod statistics;

pub use options::{NAMES, Options, SECTION};
pub use statistics::Statistics;

use std::collections::VecDeque;
use vocab::Span;

/// State of the machine (jobs-and-nodes.md 1.3).
#[derive(Clone, PartialEq, Debug)]
pub struct Monitor {
    options: Options,
    hard: f64,
    floor: f64,
    /// The current limit, `L`.
    soft: f64,
    smoothed: Option<f64>,
    votes: VecDeque<i8>,
    sum: i64,
    last: Option<Reading>,
    /// Core-seconds.
    aggregated_smoothed: f64,
    aggregated_max: f64,
    aggregated_preemptible: f64,
}

/// A good reading of the counters.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Reading {
    at: f64,
    cpu: f64,
}

/// What one check found and did.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Check {
    /// Cores used since the check before; none without two readings.
    pub usage: Option<f64>,
    /// The filtered use; none until the first measurement.
    pub smoothed: Option<f64>,
    /// -1, 0 or +1; none if nothing was measured.
    pub vote: Option<i8>,
    /// Sum of the votes of a full window, this check's vote included; none while it is not full.
    pub votes_sum: Option<i64>,
    /// The current limit after the check.
    pub limit: f64,
    /// The limit that was decided on, if another one was.
    pub change: Option<Change>,
}

/// A decision.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Change {
    /// The limit before.
    pub from: f64,
    /// The limit decided on.
    pub to: f64,
    /// What became of it.
    pub fate: Fate,
}

/// What becomes of a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The guarantee was written; the node and the scheduler are to hear of it.
    Applied,
    /// The guarantee could not be written and is what it was. The votes are gone all the same.
    Refused,
    /// Reclaim is off: the limit moves here, and nowhere else.
    Imagined,
}

impl Monitor {
    /// The monitor of a job that starts now. `hard` is the CPU of its resource vector at start: at
    /// least 0; with 0 the monitor does nothing at all.
    pub fn new(options: Options, hard: f64) -> Monitor {
        Monitor {
            // A job below the common floor is never lowered.
            floor: hard.min(options.min_cpu_limit),
            hard,
            soft: hard,
            smoothed: None,
            votes: VecDeque::new(),
            sum: 0,
            last: None,
            aggregated_smoothed: 0.0,
            aggregated_max: 0.0,
            aggregated_preemptible: 0.0,
            options,
        }
    }

    /// One check (jobs-and-nodes.md 1.4). `since_start` is the time since the job's start, `cpu` the
    /// user and system time of job and proxy since then; `None` says that it could not be read.
    ///
    /// `apply` writes a new guarantee to the container and says whether that was possible; it is
    /// called at most once, and never if reclaim is off.
    pub fn check(&mut self, since_start: Span, cpu: Option<Span>, apply: impl FnOnce(f64) -> bool) -> Check {
        self.check_at(since_start.as_secs_f64(), cpu.map(Span::as_secs_f64), apply)
    }

    /// [`Monitor::check`] with both times in seconds, for callers whose readings are finer than a
    /// microsecond.
    pub fn check_at(&mut self, at: f64, cpu: Option<f64>, apply: impl FnOnce(f64) -> bool) -> Check {
        let Some((usage, dt)) = self.measure(at, cpu) else {
            return self.nothing_new();
        };
        let a = self.options.smoothing_factor;
        // The first measurement only seeds the filter: a job is not taken for idle while it starts.
        let smoothed = self.smoothed.map_or(self.hard, |before| a * usage + (1.0 - a) * before);
        self.smoothed = Some(smoothed);
        let vote = self.vote(smoothed);
        let (votes_sum, decision) = self.count(vote);
        let change = decision.map(|to| self.decide(to, apply));
        self.aggregated_smoothed += smoothed * dt;
        self.aggregated_preemptible += (self.hard - self.soft) * dt;
        self.aggregated_max += self.hard * dt;
        Check {
            usage: Some(usage),
            smoothed: Some(smoothed),
            vote: Some(vote),
            votes_sum,
            limit: self.soft,
            change,
        }
    }

    /// The use since the last good reading, and how long that was.
    fn measure(&mut self, at: f64, cpu: Option<f64>) -> Option<(f64, f64)> {
        if self.hard <= 0.0 || at < self.options.start_delay.as_secs_f64() {
            return None;
        }
        let reading = Reading { at, cpu: cpu? };
        match self.last {
            // A counter that went backwards says nothing about the time before.
            Some(last) if reading.cpu >= last.cpu => {
                // The true time that went by, whatever the period is meant to be.
                let dt = reading.at - last.at;
                // Two readings of one instant say nothing.
                if dt.is_nan() || dt <= 0.0 {
                    return None;
                }
                self.last = Some(reading);
                Some(((reading.cpu - last.cpu) / dt, dt))
            }
            _ => {
                self.last = Some(reading);
                None
            }
        }
    }

    fn vote(&self, smoothed: f64) -> i8 {
        let ratio = smoothed / self.soft;
        if ratio < self.options.relative_lower_bound {
            -1
        } else if ratio > self.options.relative_upper_bound {
            1
        } else {
            0
        }
    }

    /// Adds a vote; gives the sum of a full window, and the limit it asks for if that is another one.
    fn count(&mut self, vote: i8) -> (Option<i64>, Option<f64>) {
        self.votes.push_back(vote);
        self.sum += i64::from(vote);
        let full = i64::try_from(self.votes.len()).is_ok_and(|n| n >= self.options.vote_window_size);
        if !full {
            return (None, None);
        }
        let (sum, threshold) = (self.sum, self.options.vote_decision_threshold);
        let wanted = if sum > threshold {
            (self.soft * self.options.increase_coefficient).min(self.hard)
        } else if sum < -threshold {
            (self.soft * self.options.decrease_coefficient).max(self.floor)
        } else {
            self.sum -= self.votes.pop_front().map_or(0, i64::from);
            return (Some(sum), None);
        };
        self.votes.clear();
        self.sum = 0;
        (Some(sum), (wanted != self.soft).then_some(wanted))
    }

    fn decide(&mut self, to: f64, apply: impl FnOnce(f64) -> bool) -> Change {
        let from = self.soft;
        let fate = match self.options.enable_cpu_reclaim {
            false => Fate::Imagined,
            true if apply(to) => Fate::Applied,
            true => Fate::Refused,
        };
        if fate != Fate::Refused {
            self.soft = to;
        }
        Change { from, to, fate }
    }

    fn nothing_new(&self) -> Check {
        Check {
            usage: None,
            smoothed: self.smoothed,
            vote: None,
            votes_sum: None,
            limit: self.soft,
            change: None,
        }
    }

    /// Its options.
    pub fn options(&self) -> &Options {
        &self.options
    }
    /// The current limit, cores.
    pub fn limit(&self) -> f64 {
        self.soft
    }
    /// What the job was started with, cores: the limit is never above it.
    pub fn hard_limit(&self) -> f64 {
        self.hard
    }
    /// The limit is never below it.
    pub fn floor(&self) -> f64 {
        self.floor
    }
    /// The filtered use; none until the first measurement.
    pub fn smoothed(&self) -> Option<f64> {
        self.smoothed
    }
    /// Votes since the window was last emptied, oldest first.
    pub fn votes(&self) -> impl ExactSizeIterator<Item = i8> + '_ {
        self.votes.iter().copied()
    }
}
