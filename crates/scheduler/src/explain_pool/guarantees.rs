//! Strong guarantees: what was configured, what is left of it, what of that is used.

use super::{EPS, Subject, outcome};
use vocab::{Resource, Resources, Share};
use yson::Map;

/// The strong guarantee of a pool (fair-share.md 6.2, 6.4).
#[derive(Clone, PartialEq, Debug)]
pub struct StrongGuarantee {
    /// As configured.
    pub configured: Map,
    /// With the components that follow from the main resource.
    pub inferred: Resources,
    /// The same as a share.
    pub promised: Share,
    /// After all cuts.
    pub effective: Share,
    /// The part of the fair share that it covers.
    pub given: Share,
    /// Why `effective` is less than `promised`.
    pub cut: Option<GuaranteeCut>,
    /// Configured components of resources that the tree does not have: they guarantee nothing.
    pub absent: Vec<Resource>,
}

/// Why a strong guarantee is not what was configured. Factors are those of the worst resource.
#[derive(Clone, PartialEq, Debug)]
pub enum GuaranteeCut {
    /// The pool's own limit is below it.
    OwnLimit(outcome::Limit),
    /// Guarantees of the first level exceed the cluster: all were scaled.
    Overcommit {
        /// By this.
        factor: f64,
        /// Strong and burst guarantees of the first level together, as a share of the cluster, in the
        /// resource of which most is promised.
        promised: f64,
    },
    /// The guarantee of the parent was cut, or is less than those of its children.
    Parent {
        /// Name.
        pool: String,
        /// Scaled by this.
        factor: f64,
    },
}

pub(super) fn strong(subject: Subject<'_>) -> Option<StrongGuarantee> {
    let pool = subject.pool().filter(|_| !subject.is_root())?;
    let out = &subject.element().output();
    let configured = &pool.config.strong_guarantee_resources;
    if configured.is_empty() {
        return None;
    }
    let total = subject.tree.resource_limits;
    let promised = out.inferred_strong_guarantee_resources.share_of(&total);
    let absent = vocab::RESOURCES
        .into_iter()
        .filter(|r| total.raw(*r) == 0 && configured.get(*r).is_some_and(|amount| amount > 0))
        .collect();
    Some(StrongGuarantee {
        configured: configured.to_map(),
        inferred: out.inferred_strong_guarantee_resources,
        promised,
        effective: out.strong_guarantee_share,
        given: out.fair_share.strong_guarantee,
        cut: cut(subject, &promised),
        absent,
    })
}

fn cut(subject: Subject<'_>, promised: &Share) -> Option<GuaranteeCut> {
    let out = &subject.element().output();
    let factor = |r: Resource| out.strong_guarantee_share[r] / promised[r];
    let worst = subject
        .present()
        .filter(|r| promised[*r] > 0.0)
        .min_by(|a, b| factor(*a).total_cmp(&factor(*b)))
        .filter(|r| factor(*r) < 1.0 - EPS)?;
    if out.strong_guarantee_share[worst] >= out.limits_share[worst] - EPS && out.limits_share[worst] < 1.0 {
        return Some(GuaranteeCut::OwnLimit(outcome::limit_of(subject, worst)));
    }
    let parent = subject.parent()?;
    let factor = factor(worst);
    Some(match parent.pool() {
        Some(pool) if !parent.is_root() => GuaranteeCut::Parent { pool: pool.name.to_string(), factor },
        _ => {
            let total = subject.tree.resource_limits;
            let strong = parent.children().fold(Share::ZERO, |sum, c| {
                sum + c.element().output().inferred_strong_guarantee_resources.share_of(&total)
            });
            let burst = parent.element().output().total_burst_ratio;
            GuaranteeCut::Overcommit { factor, promised: strong.max_component() + burst }
        }
    })
}
