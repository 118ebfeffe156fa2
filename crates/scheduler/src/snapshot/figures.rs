//! Figures of an update for those who add them up over time: who starves, how volumes stand, what
//! would fit.

use super::{KindInfo, TreeSnapshot};
use crate::update::StarvationStatus;
use fairshare::{GuaranteeType, IntegralOutput};
use std::collections::BTreeSet;
use std::sync::Arc;
use vocab::{OperationId, RESOURCES, Resource, Resources};

/// An element of a tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Starved<'a> {
    /// By name.
    Pool(&'a Arc<str>),
    /// By id.
    Operation(OperationId),
}

impl TreeSnapshot {
    /// Pools and operations that starve, and whether they do so aggressively.
    pub fn starving(&self) -> impl Iterator<Item = (Starved<'_>, bool)> {
        self.elements.iter().filter_map(|element| {
            let aggressively = match element.starvation.status {
                StarvationStatus::NonStarving => return None,
                StarvationStatus::Starving => false,
                StarvationStatus::AggressivelyStarving => true,
            };
            let who = match &element.kind {
                KindInfo::Pool(pool) => Starved::Pool(&pool.name),
                KindInfo::Operation(operation) => Starved::Operation(operation.desc.id),
            };
            Some((who, aggressively))
        })
    }

    /// Name of the pool above a pool; none for the root.
    pub fn parent_of(&self, pool: &str) -> Option<&Arc<str>> {
        let parent = self.elements[self.pools.get(pool)?].parent?;
        match &self.elements[parent].kind {
            KindInfo::Pool(pool) => Some(&pool.name),
            KindInfo::Operation(_) => None,
        }
    }

    /// Volume and integral guarantee of a pool that has one.
    pub fn integral(&self, pool: &str) -> Option<&IntegralOutput> {
        let element = &self.elements[self.pools.get(pool)?];
        let KindInfo::Pool(info) = &element.kind else { return None };
        let has_one = info.config.integral_guarantees.guarantee_type != GuaranteeType::None;
        element.outcome.integral().filter(|_| has_one)
    }

    /// Sizes of allocations that operations want to start, each once, by components in ascending order; those
    /// of operations that may start something.
    pub fn wanted_sizes(&self) -> Vec<Resources> {
        let mut sizes = BTreeSet::new();
        for element in self.elements.iter().filter(|element| element.schedulable) {
            if let KindInfo::Operation(operation) = &element.kind {
                let wanted = operation.groups.iter().filter(|group| group.count > 0);
                sizes.extend(wanted.map(|group| RESOURCES.map(|r| group.min_needed.raw(r))));
            }
        }
        let place = |r: Resource| RESOURCES.iter().position(|other| *other == r).unwrap_or_default();
        sizes.into_iter().map(|raw| Resources::from_raw(|r| raw[place(r)])).collect()
    }
}
