//! How fast it was: section `performance` of the summary, the only one that differs from run to run.
//! The simulation has no clock; whoever runs it may lend one.

use super::*;
use crate::metrics::{Spread, round};
use yson::Map;

/// What the edge measures with.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// Nanoseconds since some time of its own.
    pub now: fn() -> u64,
    /// Most bytes that the process has had.
    pub peak_memory: fn() -> Option<u64>,
}

/// Share updates as they are measured.
#[derive(Default)]
pub(super) struct Took {
    /// Nanoseconds.
    each: Spread,
    total: u64,
    count: u64,
}

impl Took {
    pub fn add(&mut self, nanoseconds: u64) {
        self.each.add(nanoseconds, 1.0);
        self.total += nanoseconds;
        self.count += 1;
    }
}

impl Engine<'_> {
    /// `begun`: by the clock of the meter.
    pub(super) fn performance(&self, begun: u64) -> Map {
        let Some(meter) = self.options.meter else { return Map::new() };
        let seconds = (meter.now)().saturating_sub(begun).max(1) as f64 / 1e9;
        let rate = |count: u64| (count as f64 / seconds).round();
        let took = &self.server.took;
        let mean = took.total as f64 / took.count.max(1) as f64;
        let progress = self.progress();
        yson::map! {
            "wall_s" => round(seconds),
            "virtual_seconds_per_second" => (progress.elapsed.as_secs_f64() / seconds).round(),
            "heartbeats_processed" => self.counts.heartbeats_processed,
            "heartbeats_elided" => self.counts.heartbeats_elided,
            "heartbeats_processed_per_second" => rate(self.counts.heartbeats_processed),
            "heartbeats_elided_per_second" => rate(self.counts.heartbeats_elided),
            "allocations_started_per_second" => rate(self.ledger.all.attempts.started),
            "updates_per_second" => rate(self.updates),
            "update_ms" => yson::map! {
                "mean" => round(mean / 1e6),
                "p99" => round(took.each.at(0.99) as f64 / 1e6),
            },
            "updates_share_of_time" => round(took.total as f64 / 1e9 / seconds),
            "threads" => self.options.threads.clamp(1, 2) as u64,
        }
        .with_some("peak_memory_bytes", (meter.peak_memory)())
    }
}
