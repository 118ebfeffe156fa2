//! `summary.json` (simulator.md 9).

use super::*;
use crate::metrics::round;
use crate::output::pools::Totals;
use yson::Map;

impl Engine<'_> {
    /// Closes everything; gives what the run came to.
    pub(super) fn finish(
        mut self,
        interrupted: bool,
        begun: u64,
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
        self.note_stages();
        let measured = self.performance(begun);
        self.ledger.finish(self.now, &mut self.sink)?;
        let pools = std::mem::replace(&mut self.pools, Pools::new(self.now, Span::ZERO)).finish(self.now);
        let trees = self.scenario.trees.iter();
        let of_pools: Map =
            trees.map(|tree| (tree.name.as_str(), self.of_pools(&pools, &tree.name))).collect();
        let users = self.ledger.users.iter().filter(|(user, _)| !user.is_empty());
        let users: Map = users.map(|(user, group)| (user.as_str(), group.to_map())).collect();
        let mut summary = yson::map! {
            "scenario" => self.scenario.name.as_str(),
            "seed" => self.scenario.seed,
            "interrupted" => interrupted,
            "virtual_ms" => progress.elapsed.as_millis(),
            "cluster" => self.of_cluster(&pools),
            "trees" => self.of_trees(&pools),
            "pools" => of_pools,
            "users" => users,
            "refusals" => self.refusals.iter().map(String::as_str).collect::<Vec<_>>(),
            "violations" => self.violations.iter().take(100).map(String::as_str).collect::<Vec<_>>(),
        };
        let (violations, log) = (self.violations, self.log);
        let ran = Ran { progress, interrupted, violations, summary: summary.clone(), log };
        let performance: Map = measured.into_iter().chain(performance(&progress)).collect();
        summary.insert("performance", performance);
        self.sink.finish(summary)?;
        Ok(ran)
    }

    fn of_cluster(&self, pools: &Totals) -> Map {
        let all = &self.ledger.all;
        let total = &all.attempts;
        let by_name = |counts: &BTreeMap<String, u64>| -> Map {
            counts.iter().map(|(name, count)| (name.as_str(), *count)).collect()
        };
        let states: Map = all.states.iter().map(|(state, count)| (*state, *count)).collect();
        let counts = yson::map! {
            "operations" => states,
            "refused_submissions" => self.refused,
            "jobs_started" => total.started,
            "jobs_completed" => total.completed,
            "jobs_failed" => total.failed,
            "jobs_aborted" => total.aborted,
            "jobs_preempted" => total.preempted,
            "jobs_interrupted" => total.interrupted,
            "abort_reasons" => by_name(&self.ledger.reasons),
            "preemptions_by_kind" => by_name(&self.ledger.preemptions),
            "heartbeats" => self.counts.heartbeats_processed + self.counts.heartbeats_elided,
            "updates" => self.updates,
        };
        let (mut used, mut there) = (0.0, 0.0);
        for (_, root) in pools.roots() {
            (used, there) = (used + root.usage, there + root.online());
        }
        let over = self.nodes.iter().map(|node| node.overcommitted.total(self.now));
        let over = over.fold(Span::ZERO, |sum, more| sum + more);
        let part = |used: f64| round(if there > 0.0 { used / there } else { 0.0 });
        yson::map! {
            "cores" => self.scenario.total().cpu.as_f64(),
            "utilisation" => part(used),
            "really_used" => part(total.used_cpu_s),
            "fragmentation" => self.fragments.to_map(),
            "windowed_deficit_cpu_s" => pools.deficits(),
            "counts" => counts,
            "waste" => total.waste(),
            "memory" => self.ledger.use_of.memory().with("overcommitted_node_s", round(over.as_secs_f64())),
            "cpu" => self.ledger.use_of.cpu(),
        }
        .into_iter()
        .chain(all.waits())
        .collect()
    }

    /// Pools of a tree: what they had, and what became of the operations directly in them.
    fn of_pools(&self, pools: &Totals, tree: &str) -> Map {
        let mut out = Map::new();
        for (place, map) in pools.of_tree(tree) {
            let group = self.ledger.pools.get(place);
            let own = group.map_or(Map::new(), |group| group.to_map());
            out.insert(&place.1, map.into_iter().chain(own).collect::<Map>());
        }
        out
    }

    fn of_trees(&self, pools: &Totals) -> Map {
        let each = pools.roots().map(|(tree, root)| {
            let scheduling = self.stages.get(tree).map(Stages::to_map).unwrap_or_default();
            (tree, yson::map! {"utilisation" => root.utilisation(), "scheduling" => scheduling})
        });
        each.collect()
    }
}
