//! `best_allocation_share` (fair-share.md 5.2): how much of the memory of the cluster an operation
//! could fill at best, given that an allocation must fit into one node.

use crate::nodes::Node;
use crate::operations::Operation;
use crate::slab::{LeafIdx, NodeIdx, OpIdx, Slab};
use crate::tree::Tree;
use std::collections::BTreeMap;
use vocab::{Resources, Share, Time};

/// When the shares of a tree were computed last.
#[derive(Clone, Debug, Default)]
pub(crate) struct BestShares {
    refreshed: Option<Time>,
    /// Version of the nodes at the previous update: the shares wait until limits are stable.
    nodes_version: u64,
}

impl Tree {
    /// Recomputes the shares of all operations if their period has passed and node limits have not
    /// changed since the previous update.
    pub(super) fn refresh_best_shares(
        &mut self,
        now: Time,
        operations: &Slab<OpIdx, Operation>,
        nodes: &Slab<NodeIdx, Node>,
    ) {
        let stable =
            std::mem::replace(&mut self.best_shares.nodes_version, self.nodes_version) == self.nodes_version;
        let period = self.config.best_allocation_share_update_period;
        let due = self.best_shares.refreshed.is_none_or(|at| now.since(at) >= period);
        if !stable || !due || self.total.is_zero() {
            return;
        }
        self.best_shares.refreshed = Some(now);
        // Operations of one kind ask for the same memory. For the other kinds one walk over the nodes counts them by
        // their size, of which there are few where machines are bought by the dozen.
        let mut usable: BTreeMap<(i64, String), i64> = BTreeMap::new();
        let mut sizes: BTreeMap<String, BTreeMap<i64, i64>> = BTreeMap::new();
        let leaves: Vec<LeafIdx> = self.leaves.keys();
        for index in leaves {
            let leaf = &self.leaves[index];
            let needed = operations[leaf.operation].total_needed();
            let demand = leaf.usage + needed;
            let quantum = if demand.user_slots > 0 { demand.memory / demand.user_slots } else { 0 };
            let mut best = self.total;
            if quantum > 0 {
                let filter = &leaf.parameters.scheduling_tag_filter;
                let key = (quantum, filter.as_str().to_owned());
                best.memory = *usable.entry(key).or_insert_with(|| {
                    let sizes = sizes.entry(filter.as_str().to_owned()).or_insert_with(|| {
                        let matching =
                            self.nodes.iter().map(|n| &nodes[*n]).filter(|n| filter.matches(&n.tags));
                        let mut sizes = BTreeMap::new();
                        matching.for_each(|n| *sizes.entry(n.limits.memory).or_default() += 1);
                        sizes
                    });
                    sizes.iter().map(|(size, nodes)| size / quantum * quantum * nodes).sum()
                });
            }
            self.leaves[index].best_allocation_share = share_or_ones(best, self.total);
        }
    }
}

/// A resource that the tree does not have must not cap anything.
fn share_or_ones(best: Resources, total: Resources) -> Share {
    Share::from_fn(|r| if total.raw(r) == 0 { 1.0 } else { best.get(r) / total.get(r) })
}
