//! What an update computes (fair-share.md 12).

use vocab::{Resource, Resources, Share, Volume};

use crate::numbers::LARGE_EPS;

/// Result of one update.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Output {
    /// By the index of the element in the input.
    pub elements: Vec<ElementOutput>,
    /// What operators should hear of; the numbers above are valid nevertheless.
    pub problems: Vec<Problem>,
}

/// A fair share and its parts; `total` is their sum.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
#[repr(C)]
pub struct FairShare {
    /// All together.
    pub total: Share,
    /// Beyond guarantees.
    pub weight_proportional: Share,
    /// Within the strong guarantee.
    pub strong_guarantee: Share,
    /// Within the integral guarantee.
    pub integral_guarantee: Share,
}

impl FairShare {
    /// Operations have no guarantees.
    pub fn of_operation(total: Share) -> FairShare {
        FairShare { total, weight_proportional: total, ..FairShare::default() }
    }
    /// Splits `total` in the order of priority (8).
    pub fn split(total: Share, strong_guarantee: Share, integral_guarantee: Share) -> FairShare {
        let strong = total.min(strong_guarantee);
        let integral = (total - strong).min(integral_guarantee);
        FairShare {
            strong_guarantee: strong,
            integral_guarantee: integral,
            weight_proportional: total - strong - integral,
            total,
        }
    }
}

/// Parts of a strong guarantee by priority of adjustment (6.4).
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Tiers {
    /// Of pools with `enable_priority_strong_guarantee_adjustment` below a donor: cut last.
    pub priority_pools: Share,
    /// The rest.
    pub regular_pools: Share,
}

/// Integral attributes of a burst or relaxed pool.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct IntegralOutput {
    /// `integral_pool_capacity`.
    pub capacity: Volume,
    /// `integral_pool_ratio_capacity`: cluster x seconds (D7).
    pub ratio_capacity: f64,
    /// `accumulated_resource_volume` after this update.
    pub accumulated_volume: Volume,
    /// `accumulated_resource_ratio_volume`: cluster x seconds.
    pub accumulated_ratio_volume: f64,
    /// The same over the smooth period (7.4).
    pub share_ratio_by_volume: f64,
    /// Relaxed pools: flow ratio x multiplier limit; 0 for burst pools.
    pub share_limit: f64,
    /// Largest component of the integral share given now.
    pub last_share: f64,
    /// From the configured burst, before 6.4 scaled it.
    pub specified_burst_ratio: f64,
    /// From the configured flow.
    pub specified_resource_flow_ratio: f64,
    /// Overflow of the volume in this update (7.2).
    pub overflow: Volume,
    /// Free volume taken from others in this update (7.3).
    pub accepted_free_volume: Volume,
}

impl IntegralOutput {
    /// How long the volume lasts if the pool takes its whole burst while it is refilled. None if it would
    /// last for ever.
    pub fn estimated_burst_usage_duration_seconds(&self) -> Option<f64> {
        let spent = self.specified_burst_ratio - self.specified_resource_flow_ratio;
        (spent > LARGE_EPS).then(|| self.accumulated_ratio_volume / spent)
    }
}

/// Attributes of one element.
///
/// What every update looks at comes first and is kept together: a large tree is many
/// times the size of the caches.
#[derive(Clone, PartialEq, Debug)]
#[repr(C)]
pub struct ElementOutput {
    /// The result.
    pub fair_share: FairShare,
    /// What the element would take if it were offered everything: `by_sugg(1)`.
    pub limited_demand_share: Share,
    /// Limits over total, within 0 and 1 (5.2).
    pub limits_share: Share,
    /// After all adjustments (6.4).
    pub strong_guarantee_share: Share,
    /// Integral guarantee given to the element or to pools below (6.6, 6.7).
    pub proposed_integral_share: Share,
    /// Amount; of a pool: the sum over operations below.
    pub resource_usage: Resources,
    /// Amount; of a pool: the sum over operations below.
    pub resource_demand: Resources,
    /// Usage over total.
    pub usage_share: Share,
    /// Demand over total, not limited; may exceed 1.
    pub demand_share: Share,
    /// Of usage, of demand if nothing is used (2.2).
    pub dominant_resource: Resource,
    /// Effective weight (5.3).
    pub weight: f64,
    /// 6.5 from the whole cluster; strong guarantees and flows count.
    pub promised_fair_share: Share,
    /// 6.5 by the newest rule: strong guarantees count.
    pub estimated_guarantee_share: Share,
    /// 6.5 by the older rule: strong guarantees and flows count.
    pub estimated_guarantee_share_with_flow: Share,
    /// Position in a FIFO parent (5.5).
    pub fifo_index: Option<usize>,
    /// Position after reordering, if that changed anything (9.5).
    pub effective_fifo_index: Option<usize>,
    /// Own burst, after it was scaled down on overcommitment (6.4).
    pub burst_ratio: f64,
    /// Own flow.
    pub resource_flow_ratio: f64,
    /// Of the subtree, before scaling.
    pub total_burst_ratio: f64,
    /// Of the subtree.
    pub total_resource_flow_ratio: f64,
    /// Configured guarantee with derived components (6.2).
    pub inferred_strong_guarantee_resources: Resources,
    /// By priority, after adjustment by the parent.
    pub strong_guarantee_share_by_tier: Tiers,
    /// Of pools: how many segments of the functions were followed up to the fair share. All three have
    /// their breakpoints in common. `None` if the place was found without following them.
    pub function_size: Option<u32>,
    /// What guarantees alone give, below a pool that asked for it (8.3).
    pub promised_guarantee_fair_share: FairShare,
    /// Of burst and relaxed pools.
    pub integral: Option<IntegralOutput>,
}

impl ElementOutput {
    /// A share of this pool, by what it is due to.
    pub(crate) fn split(&self, total: [f64; 5]) -> FairShare {
        FairShare::split(Share(total), self.strong_guarantee_share, self.proposed_integral_share)
    }
}

/// Attributes of an operation: what [`ElementOutput`] has, without what only pools have. Programs that
/// keep the results of a large tree keep these.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OperationOutput {
    /// All of it is `weight_proportional`.
    pub fair_share: Share,
    /// All of it is `weight_proportional`.
    pub promised_guarantee_fair_share: Share,
    /// See [`ElementOutput::limited_demand_share`].
    pub limited_demand_share: Share,
    /// See [`ElementOutput::limits_share`].
    pub limits_share: Share,
    /// Amount.
    pub resource_usage: Resources,
    /// Amount.
    pub resource_demand: Resources,
    /// Usage over total.
    pub usage_share: Share,
    /// Demand over total, not limited; may exceed 1.
    pub demand_share: Share,
    /// Of usage, of demand if nothing is used (2.2).
    pub dominant_resource: Resource,
    /// Effective weight (5.3).
    pub weight: f64,
    /// See [`ElementOutput::promised_fair_share`].
    pub promised_fair_share: Share,
    /// See [`ElementOutput::estimated_guarantee_share`].
    pub estimated_guarantee_share: Share,
    /// See [`ElementOutput::estimated_guarantee_share_with_flow`].
    pub estimated_guarantee_share_with_flow: Share,
    /// Position in a FIFO parent (5.5).
    pub fifo_index: Option<u32>,
    /// Position after reordering, if that changed anything (9.5).
    pub effective_fifo_index: Option<u32>,
}

impl Default for OperationOutput {
    fn default() -> OperationOutput {
        OperationOutput {
            fair_share: Share::ZERO,
            promised_guarantee_fair_share: Share::ZERO,
            limited_demand_share: Share::ZERO,
            limits_share: Share::ZERO,
            resource_usage: Resources::ZERO,
            resource_demand: Resources::ZERO,
            usage_share: Share::ZERO,
            demand_share: Share::ZERO,
            dominant_resource: Resource::Cpu,
            weight: 1.0,
            promised_fair_share: Share::ZERO,
            estimated_guarantee_share: Share::ZERO,
            estimated_guarantee_share_with_flow: Share::ZERO,
            fifo_index: None,
            effective_fifo_index: None,
        }
    }
}

impl From<OperationOutput> for ElementOutput {
    fn from(o: OperationOutput) -> ElementOutput {
        ElementOutput {
            fair_share: FairShare::of_operation(o.fair_share),
            promised_guarantee_fair_share: FairShare::of_operation(o.promised_guarantee_fair_share),
            limited_demand_share: o.limited_demand_share,
            limits_share: o.limits_share,
            resource_usage: o.resource_usage,
            resource_demand: o.resource_demand,
            usage_share: o.usage_share,
            demand_share: o.demand_share,
            dominant_resource: o.dominant_resource,
            weight: o.weight,
            promised_fair_share: o.promised_fair_share,
            estimated_guarantee_share: o.estimated_guarantee_share,
            estimated_guarantee_share_with_flow: o.estimated_guarantee_share_with_flow,
            fifo_index: o.fifo_index.map(|i| i as usize),
            effective_fifo_index: o.effective_fifo_index.map(|i| i as usize),
            ..ElementOutput::default()
        }
    }
}

impl Default for ElementOutput {
    fn default() -> ElementOutput {
        ElementOutput {
            weight: 1.0,
            dominant_resource: Resource::Cpu,
            resource_usage: Resources::ZERO,
            resource_demand: Resources::ZERO,
            usage_share: Share::ZERO,
            demand_share: Share::ZERO,
            limits_share: Share::ZERO,
            limited_demand_share: Share::ZERO,
            inferred_strong_guarantee_resources: Resources::ZERO,
            strong_guarantee_share: Share::ZERO,
            strong_guarantee_share_by_tier: Tiers::default(),
            proposed_integral_share: Share::ZERO,
            fair_share: FairShare::default(),
            promised_guarantee_fair_share: FairShare::default(),
            promised_fair_share: Share::ZERO,
            estimated_guarantee_share: Share::ZERO,
            estimated_guarantee_share_with_flow: Share::ZERO,
            burst_ratio: 0.0,
            resource_flow_ratio: 0.0,
            total_burst_ratio: 0.0,
            total_resource_flow_ratio: 0.0,
            integral: None,
            fifo_index: None,
            effective_fifo_index: None,
            function_size: None,
        }
    }
}

/// What is wrong with the configuration of a tree, or with the computation (11.2).
#[derive(Clone, PartialEq, Debug)]
pub enum Problem {
    /// Strong guarantees and resource flows of the first level exceed the cluster. Report only.
    OvercommitStrongAndFlow {
        /// Sum over the first level.
        total_strong_guarantee_resources: Resources,
        /// Total x flow ratio of the root.
        total_resource_flow: Resources,
    },
    /// Strong and burst guarantees of the first level exceed the cluster: all were scaled down.
    OvercommitStrongAndBurst {
        /// Sum over the first level.
        total_strong_guarantee_resources: Resources,
        /// Total x burst ratio of the root.
        total_burst_resources: Resources,
    },
    /// Pools with `compute_promised_guarantee_fair_share` below another one; they are passed over.
    NestedPromisedGuaranteeFairSharePools {
        /// Elements.
        pools: Vec<usize>,
    },
    /// Priority pools without a donor above; their priority is ignored.
    PriorityStrongGuaranteeAdjustmentPoolsWithoutDonor {
        /// Elements.
        pools: Vec<usize>,
    },
    /// A rule that must hold did not; the nearest feasible value was used (D6). A bug.
    Inconsistency {
        /// Where.
        element: usize,
        /// Which rule.
        rule: &'static str,
    },
}

impl Problem {
    /// Name of the condition in alerts (11.2).
    pub fn code(&self) -> &'static str {
        match self {
            Problem::OvercommitStrongAndFlow { .. } | Problem::OvercommitStrongAndBurst { .. } => {
                "pool_tree_guarantees_overcommit"
            }
            Problem::NestedPromisedGuaranteeFairSharePools { .. } => {
                "nested_promised_guarantee_fair_share_pools"
            }
            Problem::PriorityStrongGuaranteeAdjustmentPoolsWithoutDonor { .. } => {
                "priority_strong_guarantee_adjustment_pools_without_donor"
            }
            Problem::Inconsistency { .. } => "fair_share_inconsistency",
        }
    }
}
