//! Pauses after aborts that nodes cause (jobs-and-nodes.md 6.5; `vocab::blame` says which these are).
//!
//! Jobs of a task are started together, so their aborts come together. What is counted is therefore *rounds*: the aborts
//! of jobs that were settled before the end of the last pause are one. After each round the pause doubles.
//!
//! * Before the first start of a job of a task, the task pauses as a whole, and after too many rounds its operation
//!   fails: it may be that its jobs can start nowhere.
//! * A node pauses for the operation at any time: other nodes have shown that its jobs can start.

use std::collections::BTreeMap;
use vocab::{Failure, Span, Time};

/// Lengths of pauses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BackoffOptions {
    /// After the first round.
    pub min: Span,
    /// The longest one.
    pub max: Span,
    /// Each is this many times as long as the one before.
    pub multiplier: f64,
}

impl Default for BackoffOptions {
    fn default() -> BackoffOptions {
        BackoffOptions { min: Span::from_secs(1), max: Span::from_secs(60), multiplier: 2.0 }
    }
}

impl BackoffOptions {
    /// The pause after this many rounds.
    fn after(&self, rounds: u32) -> Span {
        let exponent = i32::try_from(rounds.saturating_sub(1)).unwrap_or(i32::MAX);
        let length = self.min.0 as f64 * self.multiplier.powi(exponent);
        // Infinity, too, is above every limit.
        if length < self.max.0 as f64 { Span(length as u64) } else { self.max }
    }
}

/// A series of rounds.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Series {
    pub rounds: u32,
    /// End of the newest pause.
    pub until: Time,
    /// The newest abort, with its job and node.
    pub last: Option<Box<Failure>>,
}

impl Series {
    /// A job that was settled at `settled` was aborted. True if that begins another pause.
    fn note(&mut self, now: Time, settled: Time, error: Failure, options: &BackoffOptions) -> bool {
        self.last = Some(Box::new(error));
        if self.rounds > 0 && settled < self.until {
            return false;
        }
        self.rounds = self.rounds.saturating_add(1);
        self.until = now + options.after(self.rounds);
        true
    }
}

/// Attempts to start the first job of a task.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct FirstStart {
    /// Nodes on which a job of the task has started: the first two different ones. Two tell of every node whether it
    /// is the only one.
    started_on: Vec<String>,
    pub aborts: Series,
    /// No job of the task is to be started before `aborts.until`.
    paused: bool,
}

impl FirstStart {
    pub fn restored(started_on: Vec<String>, aborts: Series, paused: bool) -> FirstStart {
        FirstStart { started_on, aborts, paused }
    }

    /// A job of the task has started on this node. False if that is known.
    pub fn note_start(&mut self, node: &str) -> bool {
        if self.started_on.len() == 2 || self.started_on.iter().any(|known| known == node) {
            return false;
        }
        self.started_on.push(node.to_owned());
        (self.aborts, self.paused) = (Series::default(), false);
        true
    }

    /// A job was aborted. False if a job of the task has started before.
    pub fn note_abort(&mut self, now: Time, settled: Time, error: Failure, options: &BackoffOptions) -> bool {
        if !self.started_on.is_empty() {
            return false;
        }
        self.paused |= self.aborts.note(now, settled, error, options);
        true
    }

    pub fn started_on(&self) -> &[String] {
        &self.started_on
    }

    /// A job of the task has started on another node than this one.
    pub fn started_elsewhere(&self, node: &str) -> bool {
        self.started_on.iter().any(|known| known != node)
    }

    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Ends a pause that is over. True if there was one.
    pub fn resume(&mut self, now: Time) -> bool {
        let over = self.paused && self.aborts.until <= now;
        self.paused &= !over;
        over
    }
}

/// Nodes on which jobs of an operation were aborted. The list is not stored: after a restart of the server it is empty.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct NodePauses(BTreeMap<String, Series>);

impl NodePauses {
    /// A job on this node was aborted. The operation starts nothing there before the returned time.
    pub fn note_abort(
        &mut self,
        now: Time,
        (node, settled): (&str, Time),
        error: Failure,
        options: &BackoffOptions,
    ) -> Time {
        // Whatever happened before the longest pause is forgotten, which bounds the list, too.
        self.0.retain(|_, series| now < series.until + options.max);
        let series = self.0.entry(node.to_owned()).or_default();
        series.note(now, settled, error, options);
        series.until
    }

    /// A job of the operation has started there.
    pub fn note_start(&mut self, node: &str) {
        self.0.remove(node);
    }

    /// Nodes that pause now.
    pub fn paused(&self, now: Time) -> impl Iterator<Item = (&str, &Series)> {
        self.0
            .iter()
            .filter(move |(_, series)| now < series.until)
            .map(|(node, series)| (node.as_str(), series))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Time {
        Time::from_secs(100) + Span::from_millis(milliseconds)
    }

    #[test]
    fn pauses_grow_up_to_the_longest_one() {
        let options = BackoffOptions::default();
        let pauses: Vec<u64> = (1..=8).map(|rounds| options.after(rounds).as_millis()).collect();
        assert_eq!(pauses, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(options.after(u32::MAX), options.max);
    }

    #[test]
    fn aborts_of_jobs_that_were_started_together_are_one_round() {
        let options = BackoffOptions::default();
        let mut first = FirstStart::default();
        for n in 0..100 {
            first.note_abort(at(10 + n), at(0), Failure::new("no disk"), &options);
        }
        assert_eq!((first.aborts.rounds, first.aborts.until), (1, at(1010)));
        assert!(first.is_paused() && !first.resume(at(1009)) && first.resume(at(1010)) && !first.is_paused());
        first.note_abort(at(1020), at(1010), Failure::new("no disk"), &options);
        assert_eq!((first.aborts.rounds, first.aborts.until), (2, at(3020)));
        assert!(first.note_start("a") && !first.is_paused() && !first.note_start("a"));
        assert!(!first.note_abort(at(4000), at(3500), Failure::new("no disk"), &options), "it has started");
        assert!(!first.started_elsewhere("a") && first.started_elsewhere("b"));
        assert!(first.note_start("b") && first.started_elsewhere("a") && !first.note_start("c"));
    }

    #[test]
    fn nodes_pause_one_by_one_and_are_forgotten() {
        let options = BackoffOptions::default();
        let mut nodes = NodePauses::default();
        let mut abort = |node: &str, now: u64| {
            nodes.note_abort(at(now), (node, at(now)), Failure::new("no disk"), &options);
            nodes
                .paused(at(now))
                .map(|(node, series)| format!("{node} {}", series.rounds))
                .collect::<Vec<_>>()
        };
        assert_eq!(abort("a", 0), ["a 1"]);
        assert_eq!(abort("b", 500), ["a 1", "b 1"]);
        assert_eq!(abort("a", 1000), ["a 2", "b 1"]);
        assert_eq!(abort("a", 3000), ["a 3"]);
        assert_eq!(abort("b", 100_000), ["b 1"], "after a long time it begins anew");
        nodes.note_start("b");
        assert_eq!(nodes.paused(at(100_000)).count(), 0);
    }
}
