//! `summary.json` (simulator.md 9).

use super::*;
use crate::output::pools::Sums;
use yson::{Map, Value};

impl Engine<'_> {
    /// Closes everything; gives what the run came to.
    pub(super) fn finish(
        mut self,
        interrupted: bool,
        performance: &mut dyn FnMut(&Progress) -> Map,
    ) -> Result<Ran, SimError> {
        if !interrupted && !self.scenario.stop_when_idle {
            self.now = self.end;
        }
        let progress = self.progress();
        let whole = !interrupted && self.violations.is_empty();
        if self.faults.is_some() && whole && progress.operations > 0 {
            self.violations.push(format!("LIVE-1: {} operations have not ended", progress.operations));
        }
        self.ledger.finish(&mut self.sink)?;
        let pools = std::mem::replace(&mut self.pools, Pools::new(self.now, Span::ZERO)).finish(self.now);
        let total = &self.ledger.total;
        let mut reasons = Map::new();
        for (reason, count) in &self.ledger.reasons {
            reasons.insert(reason, *count);
        }
        let mut states = Map::new();
        for (state, count) in &self.ledger.states {
            states.insert(state, *count);
        }
        let counts = yson::map! {
            "operations" => states,
            "refused_submissions" => self.refused,
            "jobs_started" => total.started,
            "jobs_completed" => total.completed,
            "jobs_failed" => total.failed,
            "jobs_aborted" => total.aborted,
            "jobs_preempted" => total.preempted,
            "jobs_interrupted" => total.interrupted,
            "abort_reasons" => reasons,
            "updates" => self.updates,
        };
        let waste = yson::map! {
            "allocated_cpu_s" => round(total.cpu_s),
            "preempted_cpu_s" => round(total.preempted_cpu_s),
            "lost_cpu_s" => round(total.lost_cpu_s),
            "overdrafted_jobs" => total.overdrafted,
            "jobs_lost_with_nodes" => total.node_lost,
        };
        let trees: Map = self
            .scenario
            .trees
            .iter()
            .map(|tree| (tree.name.as_str(), pools_of(&pools, &tree.name)))
            .collect();
        let mut summary = yson::map! {
            "scenario" => self.scenario.name.as_str(),
            "seed" => self.scenario.seed,
            "interrupted" => interrupted,
            "virtual_ms" => progress.elapsed.as_millis(),
            "cluster" => yson::map! {
                "cores" => self.scenario.total().cpu.as_f64(),
                "utilisation" => self.utilisation(&pools, progress.elapsed),
                "counts" => counts,
                "waste" => waste,
                "memory" => self.ledger.use_of.memory(),
                "cpu" => self.ledger.use_of.cpu(),
                "operation_wait_s" => percentiles(std::mem::take(&mut self.ledger.waits_ms)),
            },
            "pools" => trees,
            "refusals" => self.refusals.iter().map(String::as_str).collect::<Vec<_>>(),
            "violations" => self.violations.iter().take(100).map(String::as_str).collect::<Vec<_>>(),
        };
        let ran = Ran { progress, interrupted, violations: self.violations, summary: summary.clone() };
        summary.insert("performance", performance(&progress));
        self.sink.finish(summary)?;
        Ok(ran)
    }
}

impl Engine<'_> {
    /// Part of the cores of the whole cluster that was allocated.
    fn utilisation(&self, pools: &BTreeMap<(String, String), Sums>, elapsed: Span) -> Value {
        let roots = pools.iter().filter(|((_, pool), _)| pool == "<Root>");
        let used: f64 = roots.map(|(_, sums)| sums.usage).sum();
        let there = self.scenario.total().cpu.as_f64() * elapsed.as_secs_f64();
        round(if there > 0.0 { used / there } else { 0.0 })
    }
}

/// Three digits are plenty, and the same everywhere.
pub(super) fn round(x: f64) -> Value {
    ((x * 1000.0).round() / 1000.0).into()
}

fn pools_of(pools: &BTreeMap<(String, String), Sums>, tree: &str) -> Map {
    let of_tree = pools.iter().filter(|((t, _), _)| t == tree);
    let mut out = Map::new();
    for ((_, pool), sums) in of_tree {
        let mut map = yson::map! {
            "demand_cpu_s" => round(sums.demand),
            "usage_cpu_s" => round(sums.usage),
            "fair_share_cpu_s" => round(sums.fair_share),
            "integral_cpu_s" => round(sums.integral),
            "usage_deviation_cpu_s" => round(sums.usage_deviation),
            "guaranteed_cpu_s" => round(sums.guaranteed),
            "violation_cpu_s" => yson::map! {
                "raw" => round(sums.violation),
                "after_timeout" => round(sums.violation_after_timeout),
            },
        };
        if let Some((min, max, last)) = sums.volume {
            map.insert("min_volume_cpu_s", round(min));
            map.insert("max_volume_cpu_s", round(max));
            map.insert("final_volume_cpu_s", round(last));
        }
        out.insert(pool, map);
    }
    out
}

pub(super) fn percentiles(mut ms: Vec<u64>) -> Map {
    ms.sort_unstable();
    let at = |p: f64| {
        let index = ((ms.len() as f64 * p).ceil() as usize).saturating_sub(1);
        round(ms.get(index).copied().unwrap_or(0) as f64 / 1000.0)
    };
    yson::map! {
        "count" => ms.len(), "p50" => at(0.5), "p90" => at(0.9), "p95" => at(0.95), "p99" => at(0.99), "max" => at(1.0),
    }
}
