//! How the fair share of a pool came about, as data and in words (fair-share.md 6 to 8, 12).
//!
//! [`TreeSnapshot::explain_pool`] reads nothing but the snapshot, so an explanation always fits the
//! numbers that the Orchid shows at the same moment. [`outcome`] finds what keeps the pool from having
//! more, [`guarantees`] and [`integral`] say what each kind of guarantee gave and why, [`siblings`] who
//! else wants something, [`changes`] what would help. [`words`] writes it down for people, [`value`] for
//! programs.

mod changes;
mod guarantees;
mod integral;
mod outcome;
mod siblings;
mod units;
mod value;
mod words;

pub use guarantees::{GuaranteeCut, StrongGuarantee};
pub use integral::{IntegralBound, IntegralGuarantee, Trend};
pub use outcome::{Limit, LimitSource, Outcome};
pub use siblings::{Fifo, Sibling};

use crate::snapshot::{ElementInfo, KindInfo, PoolInfo, TreeSnapshot};
use fairshare::FairShare;
use std::sync::Arc;
use vocab::{RESOURCES, Resource, Resources, Share, Time};

/// Shares that differ by less are equal, in explanations.
const EPS: f64 = 1e-6;

/// See the module page. Shares are parts of the whole cluster.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolExplanation {
    /// Name of the pool.
    pub pool: Arc<str>,
    /// Name of its tree.
    pub tree: Arc<str>,
    /// Of the snapshot.
    pub time: Time,
    /// The cluster.
    pub total: Resources,
    /// The resource that the words speak of: the one of which most is wanted, or the tree's main one.
    pub resource: Resource,
    /// What everything below wants.
    pub demand: Share,
    /// What of it could be taken if the whole cluster were offered: limits inside and own ones.
    pub limited_demand: Share,
    /// What runs.
    pub usage: Share,
    /// What it is entitled to, by origin.
    pub fair_share: FairShare,
    /// Why not more.
    pub outcome: Outcome,
    /// Its strong guarantee, if it has one.
    pub strong: Option<StrongGuarantee>,
    /// Its integral guarantee, if there are options of one.
    pub integral: Option<IntegralGuarantee>,
    /// Pool above; none for the root.
    pub parent: Option<Arc<str>>,
    /// Pools and operations of the same parent that want something, itself among them, by fair share.
    pub siblings: Vec<Sibling>,
    /// Those that were left out of `siblings`.
    pub more_siblings: usize,
    /// Its operations in their order, if it is a FIFO pool.
    pub fifo: Option<Fifo>,
    /// What would give it more, in sentences.
    pub changes: Vec<String>,
}

impl TreeSnapshot {
    /// Why a pool has the fair share that it has; none if there is no such pool.
    pub fn explain_pool(&self, name: &str) -> Option<PoolExplanation> {
        let index = self.pools.get(name)?;
        let subject = Subject { tree: self, index };
        let out = &subject.element().output();
        let resource = subject.resource();
        let outcome = outcome::find(subject);
        let strong = guarantees::strong(subject);
        let integral = integral::explain(subject);
        let (siblings, more_siblings) = siblings::of(subject, resource);
        let fifo = siblings::fifo(subject, resource);
        let mut explanation = PoolExplanation {
            pool: subject.pool().map(|p| p.name.clone()).unwrap_or_default(),
            tree: self.name.clone(),
            time: self.time,
            total: self.resource_limits,
            resource,
            demand: out.demand_share,
            limited_demand: out.limited_demand_share,
            usage: out.usage_share,
            fair_share: out.fair_share,
            outcome,
            strong,
            integral,
            parent: subject.parent().and_then(|p| Some(p.pool()?.name.clone())),
            siblings,
            more_siblings,
            fifo,
            changes: Vec::new(),
        };
        explanation.changes = changes::of(&explanation);
        Some(explanation)
    }
}

/// An element in its snapshot.
#[derive(Clone, Copy)]
struct Subject<'a> {
    tree: &'a TreeSnapshot,
    index: usize,
}

impl<'a> Subject<'a> {
    fn element(self) -> &'a ElementInfo {
        &self.tree.elements[self.index]
    }

    fn pool(self) -> Option<&'a PoolInfo> {
        match &self.element().kind {
            KindInfo::Pool(pool) => Some(pool),
            KindInfo::Operation(_) => None,
        }
    }

    fn parent(self) -> Option<Subject<'a>> {
        Some(Subject { tree: self.tree, index: self.element().parent? })
    }

    /// From the parent up; the root is the last.
    fn ancestors(self) -> impl Iterator<Item = Subject<'a>> {
        std::iter::successors(self.parent(), |s| s.parent())
    }

    fn is_root(self) -> bool {
        self.element().parent.is_none()
    }

    /// Elements that take part in the update, in no particular order.
    fn children(self) -> impl Iterator<Item = Subject<'a>> {
        let (tree, parent) = (self.tree, self.index);
        let inside = tree.elements.iter().enumerate();
        inside
            .filter(move |(_, e)| e.parent == Some(parent) && e.enabled)
            .map(move |(index, _)| Subject { tree, index })
    }

    /// Resources that the tree has.
    fn present(self) -> impl Iterator<Item = Resource> {
        let total = self.tree.resource_limits;
        RESOURCES.into_iter().filter(move |r| total.raw(*r) > 0)
    }

    /// Of which most is wanted.
    fn resource(self) -> Resource {
        let out = &self.element().output();
        let demand = &out.demand_share;
        let largest = self.present().fold(None, |best: Option<Resource>, r| match best {
            Some(b) if demand[b] >= demand[r] => best,
            _ if demand[r] > 0.0 => Some(r),
            _ => best,
        });
        largest.unwrap_or(self.tree.config.main_resource)
    }

    /// Does it want more than it has?
    fn is_short(self) -> bool {
        let out = &self.element().output();
        self.present().any(|r| out.demand_share[r] > out.fair_share.total[r] + EPS)
    }

    /// Has it everything that it could take if it were offered the whole cluster?
    fn takes_all(self) -> bool {
        let out = &self.element().output();
        self.present().all(|r| out.fair_share.total[r] + EPS >= out.limited_demand_share[r])
    }
}
