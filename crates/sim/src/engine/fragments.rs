//! Free cores that nobody can use (simulator.md 9): those of nodes on which no allocation fits that somebody
//! wants. Looked at when rows are sampled, because every node has to be looked at.

use super::Engine;
use crate::metrics::round;
use vocab::Resources;
use yson::Map;

/// See the module page. Cores, summed over looks.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Fragments {
    free: f64,
    useless: f64,
    looks: u64,
}

impl Fragments {
    /// Looks at which nobody wanted anything do not count.
    pub fn to_map(self) -> Map {
        let part = if self.free > 0.0 { self.useless / self.free } else { 0.0 };
        let mean = if self.looks > 0 { self.useless / self.looks as f64 } else { 0.0 };
        yson::map! {
            "samples_with_demand" => self.looks,
            "unusable_share_of_free_cores" => round(part),
            "unusable_cores" => round(mean),
        }
    }
}

impl Engine<'_> {
    pub(super) fn look_at_fragments(&mut self) {
        let Some(kernel) = self.server.kernel() else { return };
        let snapshot = kernel.scheduler().snapshot();
        // Where a smaller one does not fit the larger one need not be tried. Smaller ones come first, and of
        // thousands of sizes few are left.
        let mut wanted: Vec<Resources> = Vec::new();
        for size in snapshot.trees().flat_map(|tree| tree.wanted_sizes()) {
            if !wanted.iter().any(|smaller| size.dominates(smaller)) {
                wanted.push(size);
            }
        }
        if wanted.is_empty() {
            return;
        }
        let now = &mut self.fragments;
        now.looks += 1;
        for node in self.nodes.iter().filter(|node| node.online) {
            let free = (node.settings.resource_limits - node.core.ledger().acquired()).max(Resources::ZERO);
            let cores = free.cpu.as_f64();
            now.free += cores;
            if !wanted.iter().any(|size| free.dominates(size)) {
                now.useless += cores;
            }
        }
    }
}
