//! How hard the scheduler worked: stages, attempts and refusals of each tree, over all lives of the server.

use super::Engine;
use scheduler::{Deactivation, Stage};
use yson::Map;

/// See the module page.
#[derive(Clone, Default)]
pub(super) struct Stages {
    /// Passes over nodes, without and with preemptive stages.
    passes: [u64; 2],
    /// Times that a stage was run, operations tried in it, and allocations started.
    stages: [[u64; 3]; Stage::ALL.len()],
    refused: [u64; Deactivation::ALL.len()],
}

impl Stages {
    pub fn to_map(&self) -> Map {
        let by_stage = |which: usize| -> Map {
            Stage::ALL.iter().map(|stage| (stage.as_str(), self.stages[*stage as usize][which])).collect()
        };
        let refused = Deactivation::ALL.iter().zip(self.refused).filter(|(_, count)| *count > 0);
        yson::map! {
            "passes" => self.passes[0],
            "preemptive_passes" => self.passes[1],
            "stages_run" => by_stage(0),
            "attempts" => by_stage(1),
            "started" => by_stage(2),
            "failures" => refused.map(|(reason, count)| (reason.as_str(), count)).collect::<Map>(),
        }
    }
}

impl Engine<'_> {
    /// The counters of the present life of the server, before it ends.
    pub(super) fn note_stages(&mut self) {
        let Some(kernel) = self.server.kernel() else { return };
        for tree in kernel.scheduler().tree_names() {
            let Ok(metrics) = kernel.scheduler().metrics(tree) else { continue };
            let all = self.stages.entry(tree.to_string()).or_default();
            let add = |sum: &mut u64, more: u64| *sum += more;
            all.passes.iter_mut().zip(metrics.passes).for_each(|(sum, more)| add(sum, more));
            all.refused.iter_mut().zip(metrics.deactivations).for_each(|(sum, more)| add(sum, more));
            let each = metrics.stages.iter().zip(metrics.scheduled_allocations);
            for ([run, tried, started], (more, starts)) in all.stages.iter_mut().zip(each) {
                add(run, more.0);
                add(tried, more.1);
                add(started, starts);
            }
        }
    }
}
