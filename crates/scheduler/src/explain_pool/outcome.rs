//! What keeps a pool from having more: found by looking for the lowest element, from the pool up, that
//! has everything it could take. What binds that element binds the pool.

use super::{EPS, Subject};
use crate::snapshot::KindInfo;
use vocab::Resource;

/// Why the fair share is not larger.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The tree has no nodes.
    NoNodes,
    /// Nothing below wants anything.
    NoDemand {
        /// Operations that wait for a limit of operation counts: they do not count as demand.
        waiting: i64,
    },
    /// It has all that is wanted.
    Satisfied,
    /// A limit of its own.
    OwnLimit(Limit),
    /// What is inside cannot take more: limits of pools or operations below.
    Inside {
        /// Limits that bind, from the largest demand on.
        limits: Vec<(String, Limit)>,
        /// Operations that run all at once or not at all and do not fit.
        gangs: Vec<String>,
    },
    /// A limit of a pool above.
    AncestorLimit {
        /// That pool.
        pool: String,
        /// Its limit.
        limit: Limit,
    },
    /// The cluster is divided up: the shares of siblings are at `parent`.
    ClusterFull {
        /// Resources of which nothing is left.
        resources: Vec<Resource>,
    },
    /// Something is left over, but nothing that wants it fits (gangs, jumps: fair-share.md 4.1, 16.11).
    NothingFits,
}

/// A limit that is reached.
#[derive(Clone, PartialEq, Debug)]
pub struct Limit {
    /// On this resource.
    pub resource: Resource,
    /// As an amount, in the unit of the resource.
    pub amount: f64,
    /// As a share of the cluster.
    pub share: f64,
    /// Where it was set.
    pub source: LimitSource,
}

/// Where a limit comes from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LimitSource {
    /// `resource_limits`.
    ResourceLimits,
    /// `max_share_ratio`.
    MaxShareRatio(f64),
    /// Nodes that match `scheduling_tag_filter`.
    TagFilter,
    /// Memory of nodes that the allocations of an operation can fill at best (fair-share.md 5.2).
    BestAllocation,
}

pub(super) fn find(subject: Subject<'_>) -> Outcome {
    let out = &subject.element().output();
    if subject.tree.resource_limits.is_zero() {
        return Outcome::NoNodes;
    }
    if subject.present().all(|r| out.demand_share[r] <= 0.0) {
        let waiting = subject.pool().map_or(0, |p| p.counts.operations - p.counts.running);
        return Outcome::NoDemand { waiting };
    }
    if !subject.is_short() {
        return Outcome::Satisfied;
    }
    if subject.takes_all() && !subject.is_root() {
        return match reached(subject) {
            Some(limit) => Outcome::OwnLimit(limit),
            None => inside(subject),
        };
    }
    let above = subject.ancestors().take_while(|a| !a.is_root()).filter(|a| a.takes_all());
    for ancestor in above {
        if let (Some(limit), Some(pool)) = (reached(ancestor), ancestor.pool()) {
            return Outcome::AncestorLimit { pool: pool.name.to_string(), limit };
        }
    }
    let root = &subject.tree.elements[0].output().fair_share.total;
    let full = |r: &Resource| root[*r] >= 1.0 - EPS && out.demand_share[*r] > 0.0;
    let resources: Vec<Resource> = subject.present().filter(full).collect();
    match resources.is_empty() {
        false => Outcome::ClusterFull { resources },
        true => inside(subject),
    }
}

/// The limit of an element that it has reached while more is wanted, the tightest one.
pub(super) fn reached(subject: Subject<'_>) -> Option<Limit> {
    let out = &subject.element().output();
    let binding = |r: &Resource| {
        out.fair_share.total[*r] >= out.limits_share[*r] - EPS
            && out.demand_share[*r] > out.fair_share.total[*r] + EPS
    };
    let tightness = |r: Resource| out.demand_share[r] - out.limits_share[r];
    let r = subject.present().filter(binding).max_by(|a, b| tightness(*a).total_cmp(&tightness(*b)))?;
    Some(limit_of(subject, r))
}

/// The limit of an element on a resource, and where it was set.
pub(super) fn limit_of(subject: Subject<'_>, r: Resource) -> Limit {
    let element = subject.element();
    let limits = subject.tree.limits_of(element);
    let effective = limits.raw(r);
    let own = match &element.kind {
        KindInfo::Pool(p) => p.config.resource_limits.get(r),
        KindInfo::Operation(o) => o.parameters.resource_limits.get(r),
    };
    let ratio = subject.pool().and_then(|p| p.config.max_share_ratio);
    let share = element.output().limits_share[r];
    let by_amounts = limits.share_of(&subject.tree.resource_limits)[r].min(1.0);
    let source = if matches!(element.kind, KindInfo::Operation(_)) && share < by_amounts - EPS {
        LimitSource::BestAllocation
    } else if own == Some(effective) {
        LimitSource::ResourceLimits
    } else {
        ratio.map_or(LimitSource::TagFilter, LimitSource::MaxShareRatio)
    };
    Limit { resource: r, amount: share * subject.tree.resource_limits.get(r), share, source }
}

/// At most so many names of pools and operations inside.
const SHOWN: usize = 3;

/// What below a pool stands in its own way.
fn inside(subject: Subject<'_>) -> Outcome {
    let mut found: Vec<(f64, String, Limit)> = Vec::new();
    let mut gangs = Vec::new();
    let mut stack: Vec<Subject<'_>> = subject.children().collect();
    while let Some(child) = stack.pop() {
        if !child.is_short() {
            continue;
        }
        let element = child.element();
        let name = match &element.kind {
            KindInfo::Pool(p) => format!("pool \"{}\"", p.name),
            KindInfo::Operation(o) => format!("operation {}", o.desc.id),
        };
        match &element.kind {
            KindInfo::Operation(o) if o.desc.is_gang && element.output().fair_share.total.is_zero() => {
                gangs.push(name);
            }
            _ => match reached(child) {
                Some(limit) => found.push((element.output().demand_share[limit.resource], name, limit)),
                None => stack.extend(child.children()),
            },
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    gangs.sort();
    gangs.truncate(SHOWN);
    if found.is_empty() && gangs.is_empty() {
        return Outcome::NothingFits;
    }
    Outcome::Inside {
        limits: found.into_iter().take(SHOWN).map(|(_, name, limit)| (name, limit)).collect(),
        gangs,
    }
}
