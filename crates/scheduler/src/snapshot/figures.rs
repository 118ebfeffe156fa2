//! Figures of an update for those who add them up over time: who starves, how volumes stand, what
//! would fit.

use super::{ElementView, KindInfo, TreeSnapshot};
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

/// A pool as an update left it.
#[derive(Clone, Copy, Debug)]
pub struct PoolLook<'a> {
    /// Its name.
    pub name: &'a Arc<str>,
    /// Name of the pool above; none for the root.
    pub parent: Option<&'a Arc<str>>,
    /// No pools are below it.
    pub is_leaf: bool,
    /// Its shares.
    pub view: ElementView,
    /// Volume and integral guarantee, if it has one.
    pub integral: Option<&'a IntegralOutput>,
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

    /// All pools, sorted by name.
    pub fn pools(&self) -> impl Iterator<Item = PoolLook<'_>> {
        let as_pool = |e: usize| match &self.elements[e].kind {
            KindInfo::Pool(pool) => Some(&**pool),
            KindInfo::Operation(_) => None,
        };
        self.pools.iter().filter_map(move |(name, e)| {
            let (element, info) = (&self.elements[e], as_pool(e)?);
            let has_integral = info.config.integral_guarantees.guarantee_type != GuaranteeType::None;
            Some(PoolLook {
                name,
                parent: element.parent.and_then(as_pool).map(|parent| &parent.name),
                is_leaf: info.child_pool_count == 0,
                view: element.view(),
                integral: element.outcome.integral().filter(|_| has_integral),
            })
        })
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
