//! Who else wants something: elements of the same parent; operations of a FIFO pool in their order.

use super::{EPS, Subject};
use crate::config::Mode;
use crate::snapshot::KindInfo;
use vocab::Resource;

/// One of the elements below a parent. Shares are those of one resource.
#[derive(Clone, PartialEq, Debug)]
pub struct Sibling {
    /// Name of a pool, id of an operation.
    pub id: String,
    /// The pool that is explained.
    pub is_self: bool,
    /// Pool or operation.
    pub is_pool: bool,
    /// Effective weight.
    pub weight: f64,
    /// What it could take.
    pub demand: f64,
    /// Strong and integral guarantee.
    pub guarantee: f64,
    /// What it is entitled to.
    pub fair_share: f64,
    /// Could take more.
    pub wants_more: bool,
}

/// Operations of a FIFO pool.
#[derive(Clone, PartialEq, Debug)]
pub struct Fifo {
    /// All that run.
    pub operations: usize,
    /// Of them, from the first on: have everything they want.
    pub satisfied: usize,
    /// The first that has not, with its share and its demand.
    pub first_short: Option<(String, f64, f64)>,
    /// Have nothing.
    pub empty: usize,
}

/// At most so many are shown.
const SHOWN: usize = 10;

pub(super) fn of(subject: Subject<'_>, resource: Resource) -> (Vec<Sibling>, usize) {
    let Some(parent) = subject.parent() else { return (Vec::new(), 0) };
    let mut all: Vec<Sibling> = parent
        .children()
        .filter(|c| c.index == subject.index || !c.element().outcome.demand_share().is_zero())
        .map(|child| sibling(child, child.index == subject.index, resource))
        .collect();
    all.sort_by(|a, b| b.fair_share.total_cmp(&a.fair_share).then_with(|| a.id.cmp(&b.id)));
    let more = all.len().saturating_sub(SHOWN);
    let own = all.iter().position(|s| s.is_self).unwrap_or(0);
    if own >= SHOWN {
        all.swap(own, SHOWN - 1);
    }
    all.truncate(SHOWN);
    (all, more)
}

fn sibling(child: Subject<'_>, is_self: bool, r: Resource) -> Sibling {
    let element = child.element();
    let out = &element.output();
    Sibling {
        id: id(child),
        is_self,
        is_pool: child.pool().is_some(),
        weight: out.weight,
        demand: out.limited_demand_share[r],
        guarantee: out.strong_guarantee_share[r] + out.proposed_integral_share[r],
        fair_share: out.fair_share.total[r],
        wants_more: !child.takes_all(),
    }
}

fn id(subject: Subject<'_>) -> String {
    match &subject.element().kind {
        KindInfo::Pool(p) => p.name.to_string(),
        KindInfo::Operation(o) => o.desc.id.to_string(),
    }
}

pub(super) fn fifo(subject: Subject<'_>, r: Resource) -> Option<Fifo> {
    subject.pool().filter(|p| p.config.mode == Mode::Fifo && !subject.is_root())?;
    let mut line: Vec<Subject<'_>> =
        subject.children().filter(|c| !c.element().outcome.demand_share().is_zero()).collect();
    line.sort_by_key(|c| {
        let out = &c.element().output();
        out.effective_fifo_index.or(out.fifo_index)
    });
    let satisfied = line.iter().take_while(|c| c.takes_all()).count();
    let first_short = line.get(satisfied).map(|c| {
        let out = &c.element().output();
        (id(*c), out.fair_share.total[r], out.limited_demand_share[r])
    });
    let empty = line.iter().filter(|c| c.element().output().fair_share.total.max_component() <= EPS).count();
    Some(Fifo { operations: line.len(), satisfied, first_short, empty })
}
