//! Attributes that are sums over subtrees (fair-share.md 6.3), and dominant resources (2.2).

use vocab::{RESOURCES, Resource, Resources, Share, Time};

use crate::input::{GuaranteeType, Operation};
use crate::state::{Scope, Update};

/// Exact sums over the operations below a pool: usage, then demand, in integer units. What is subtracted
/// again leaves nothing behind, not even where the amounts that are shown are at the end of their range.
pub(crate) type Sums = [[i128; 5]; 2];

/// Shares of an operation that follow from its own amounts alone.
pub(crate) struct OperationShares {
    pub(crate) usage: Share,
    pub(crate) demand: Share,
    pub(crate) limits: Share,
}

/// What an operation was at the previous update.
pub(crate) struct Change {
    pub(crate) element: usize,
    pub(crate) usage: Resources,
    pub(crate) demand: Resources,
    /// What its place among the children of a FIFO pool depends on.
    pub(crate) order: (Time, i64, u128),
}

impl Change {
    pub(crate) fn new(element: usize, before: &Operation) -> Change {
        Change { element, usage: before.usage, demand: before.demand, order: Change::order_of(before) }
    }

    /// Whether its place in a FIFO pool may be another one.
    pub(crate) fn moves(&self, now: &Operation) -> bool {
        self.order != Change::order_of(now)
    }

    fn order_of(operation: &Operation) -> (Time, i64, u128) {
        (operation.start_time, operation.pending_allocation_count, operation.tie)
    }
}

impl Update<'_> {
    /// Usage and demand of pools. Each operation is shown on the way, while it is at hand: in a large tree
    /// that saves a way through all the memory.
    pub(crate) fn compute_usage_and_demand(
        &mut self,
        scope: Scope,
        mut show: impl FnMut(&mut Self, usize, &OperationShares),
    ) {
        match scope {
            Scope::All => {
                self.sums.fill(Sums::default());
                for e in 0..self.input.elements.len() {
                    let Some(operation) = self.operation(e) else { continue };
                    let parent = self.row(self.parent(e));
                    add(&mut self.sums[parent], &operation.usage, &operation.demand, 1);
                    if let Some(slot) = self.tree.slot_of(e) {
                        self.weights[slot] = self.weight(e);
                    }
                    let shares = self.operation_shares(e, operation);
                    show(self, e, &shares);
                }
                for &e in self.tree.pools.iter().rev() {
                    if e != 0 {
                        let (sums, parent) = (self.sums[self.row(e)], self.row(self.parent(e)));
                        add_sums(&mut self.sums[parent], &sums);
                    }
                    self.show_amounts(e);
                }
            }
            Scope::Changed { operations, pools } => {
                for change in operations {
                    let e = change.element;
                    let Some(operation) = self.operation(e) else { continue };
                    let mut more = Sums::default();
                    add(&mut more, &operation.usage, &operation.demand, 1);
                    add(&mut more, &change.usage, &change.demand, -1);
                    let mut above = e;
                    while above != 0 {
                        above = self.parent(above);
                        let row = self.row(above);
                        add_sums(&mut self.sums[row], &more);
                    }
                    let shares = self.operation_shares(e, operation);
                    show(self, e, &shares);
                }
                for &e in pools {
                    self.show_amounts(e);
                }
            }
        }
    }

    /// Shares of an operation.
    #[inline]
    pub(crate) fn operation_shares(&self, e: usize, operation: &Operation) -> OperationShares {
        // Most have no limits of their own, and divisions take longer than anything else here.
        let specified = &self.input.elements[e].resource_limits;
        let limits = match specified.dominates(&self.input.total) {
            true => self.whole,
            false => self.share(&specified.min(self.input.total)),
        };
        OperationShares {
            usage: self.share(&operation.usage),
            demand: self.share(&operation.demand),
            limits: limits.min(operation.best_allocation_share),
        }
    }

    fn show_amounts(&mut self, e: usize) {
        let [usage, demand] = self.sums[self.row(e)]
            .map(|sum| Resources::from_raw(|r| i64::try_from(sum[r as usize]).unwrap_or(i64::MAX)));
        let shares = [self.share(&usage), self.share(&demand)];
        let out = &mut self.out[e];
        out.resource_usage = usage;
        out.resource_demand = demand;
        [out.usage_share, out.demand_share] = shares;
        out.dominant_resource = dominant_resource(if usage.is_zero() { &shares[1] } else { &shares[0] });
    }

    /// Limits do not depend on operations.
    pub(crate) fn compute_limits_of_pools(&mut self) {
        let total = *self.total();
        for &e in &self.tree.pools {
            let limits = if e == 0 { total } else { self.input.elements[e].resource_limits.min(total) };
            self.out[e].limits_share = self.share(&limits);
        }
    }

    /// Ratios of integral guarantees and shares of strong ones, which no operation has, bottom-up.
    pub(crate) fn compute_guarantee_shares(&mut self) {
        let total = *self.total();
        for &e in self.tree.pools.iter().rev() {
            self.sum_up_ratios(e);
            let out = &mut self.out[e];
            out.strong_guarantee_share = out.inferred_strong_guarantee_resources.share_of(&total);
        }
        self.out[0].strong_guarantee_share =
            self.child_pools(0).iter().fold(Share::ZERO, |sum, c| sum + self.out[*c].strong_guarantee_share);
    }

    /// As [`Resources::share_of`] the total, without looking at the total again each time.
    #[inline]
    fn share(&self, amounts: &Resources) -> Share {
        let t = &self.divisors;
        Share([
            amounts.user_slots as f64 / t[0],
            amounts.cpu.as_f64() / t[1],
            amounts.gpu as f64 / t[2],
            amounts.memory as f64 / t[3],
            amounts.network as f64 / t[4],
        ])
    }

    fn sum_up_ratios(&mut self, e: usize) {
        let total = self.total();
        let (mut burst, mut flow) = (0.0, 0.0);
        if self.guarantee_type(e) != GuaranteeType::None
            && let Some(pool) = self.pool(e)
        {
            burst = max_ratio(&pool.integral_guarantees.burst_guarantee_resources, total);
            flow = max_ratio(&pool.integral_guarantees.resource_flow, total);
        }
        self.out[e].burst_ratio = burst;
        self.out[e].resource_flow_ratio = flow;
        for &c in self.child_pools(e) {
            burst += self.out[c].total_burst_ratio;
            flow += self.out[c].total_resource_flow_ratio;
        }
        self.out[e].total_burst_ratio = burst;
        self.out[e].total_resource_flow_ratio = flow;
    }
}

fn add(sums: &mut Sums, usage: &Resources, demand: &Resources, sign: i128) {
    for (sum, amounts) in sums.iter_mut().zip([usage, demand]) {
        for r in RESOURCES {
            sum[r as usize] += sign * i128::from(amounts.raw(r));
        }
    }
}

fn add_sums(sums: &mut Sums, more: &Sums) {
    for (sum, more) in sums.as_flattened_mut().iter_mut().zip(more.as_flattened()) {
        *sum += more;
    }
}

/// Largest ratio to the total over the resources that the tree has.
pub(crate) fn max_ratio(amounts: &Resources, total: &Resources) -> f64 {
    RESOURCES
        .into_iter()
        .filter(|r| total.raw(*r) > 0)
        .map(|r| amounts.get(r) / total.get(r))
        .fold(0.0, f64::max)
}

/// The first resource with strictly the largest share; `cpu` if there is none.
pub(crate) fn dominant_resource(shares: &Share) -> Resource {
    let mut best = (Resource::Cpu, 0.0);
    for r in RESOURCES {
        if shares[r] > best.1 {
            best = (r, shares[r]);
        }
    }
    best.0
}
