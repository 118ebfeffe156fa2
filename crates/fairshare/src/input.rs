//! What an update is computed from (fair-share.md 5, 13).

use vocab::{Resource, Resources, Share, Span, Time, Volume};

/// One pool tree at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct Input {
    /// Sum of the resource limits of all nodes of the tree.
    pub total: Resources,
    /// Options of the tree.
    pub options: TreeOptions,
    /// The root (a pool) at index 0, then pools and operations, parents before children. The order of
    /// children under one parent is the order of this list; it matters (fair-share.md 5.6).
    pub elements: Vec<Element>,
}

/// A pool or an operation.
#[derive(Clone, PartialEq, Debug)]
pub struct Element {
    /// Index of the parent in [`Input::elements`]; not looked at for the root.
    pub parent: usize,
    /// Configured weight, between 2^-26 and 2^26.
    pub weight: Option<f64>,
    /// Average of the historic usage (see [`crate::HistoricUsage`]), given exactly for the children of
    /// a pool with `infer_children_weights_from_historic_usage`; it makes the weight smaller.
    pub historic_usage: Option<f64>,
    /// Specified limits and limits by tag filter, the smaller of both; unspecified components are
    /// those of [`Resources::INFINITE`]. Not looked at for the root.
    pub resource_limits: Resources,
    /// The rest.
    pub kind: Kind,
}

/// The two kinds of element.
#[derive(Clone, PartialEq, Debug)]
pub enum Kind {
    /// Composite: the root too.
    Pool(Box<Pool>),
    /// Leaf.
    Operation(Operation),
}

/// How a pool divides among its children.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mode {
    /// By weight, everybody at once.
    #[default]
    FairShare,
    /// One after another; only operations below.
    Fifo,
}

/// A configuration map of amounts in which an absent component differs from an explicit 0.
///
/// Integer units, as in [`Resources::raw`]: `cpu` in hundredths of a core.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Configured(pub [Option<i64>; 5]);

impl Configured {
    /// Nothing is configured.
    pub const NONE: Configured = Configured([None; 5]);

    /// The component in its integer unit, if it is configured.
    pub fn raw(&self, r: Resource) -> Option<i64> {
        self.0[r as usize]
    }
    /// With one component set, in its integer unit.
    #[must_use]
    pub fn with_raw(mut self, r: Resource, raw: i64) -> Configured {
        self.0[r as usize] = Some(raw);
        self
    }
    /// Amounts; absent components are 0.
    pub fn or_zero(&self) -> Resources {
        Resources::from_raw(|r| self.raw(r).unwrap_or(0))
    }
}

/// Settings of a pool (fair-share.md 13.1).
#[derive(Clone, PartialEq, Debug)]
pub struct Pool {
    /// Must be `FairShare` at the root.
    pub mode: Mode,
    /// Components that are absent are derived from the main resource (6.2).
    pub strong_guarantee_resources: Configured,
    /// Burst and relaxed guarantees.
    pub integral_guarantees: IntegralGuarantees,
    /// Order of children in a FIFO pool.
    pub fifo_sort_parameters: Vec<FifoSortParameter>,
    /// Compute [`ElementOutput::promised_guarantee_fair_share`](crate::ElementOutput) below this pool (8.3).
    pub compute_promised_guarantee_fair_share: bool,
    /// Its strong guarantee is cut last when a donor above is short (6.4).
    pub enable_priority_strong_guarantee_adjustment: bool,
    /// May be cut in favour of priority pools below (6.4).
    pub enable_priority_strong_guarantee_adjustment_donorship: bool,
    /// The pool's half of the gang option (4.1).
    pub enable_step_function_for_gang_operations: bool,
    /// The pool's half of the FIFO reordering (9.5).
    pub enable_fifo_children_reordering_for_guarantee_utilization: bool,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool {
            mode: Mode::FairShare,
            strong_guarantee_resources: Configured::NONE,
            integral_guarantees: IntegralGuarantees::default(),
            fifo_sort_parameters: vec![FifoSortParameter::Weight, FifoSortParameter::StartTime],
            compute_promised_guarantee_fair_share: false,
            enable_priority_strong_guarantee_adjustment: false,
            enable_priority_strong_guarantee_adjustment_donorship: false,
            enable_step_function_for_gang_operations: true,
            enable_fifo_children_reordering_for_guarantee_utilization: false,
        }
    }
}

/// Kind of integral guarantee.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum GuaranteeType {
    /// No volume; configured flows and bursts are not looked at.
    #[default]
    None,
    /// Served first, up to the burst.
    Burst,
    /// Served from what the used guarantees leave over.
    Relaxed,
}

/// `integral_guarantees` of a pool.
#[derive(Clone, PartialEq, Debug)]
pub struct IntegralGuarantees {
    /// Kind.
    pub guarantee_type: GuaranteeType,
    /// How fast the volume is refilled; its largest ratio to the total counts.
    pub resource_flow: Resources,
    /// The most that a burst pool is given; its largest ratio to the total counts.
    pub burst_guarantee_resources: Resources,
    /// Overrides the tree's value.
    pub relaxed_share_multiplier_limit: Option<f64>,
    /// Takes volume that overflows elsewhere.
    pub can_accept_free_volume: bool,
    /// Gives the overflow of its children to its children; overrides the tree's value.
    pub should_distribute_free_volume_among_children: Option<bool>,
}

impl Default for IntegralGuarantees {
    fn default() -> IntegralGuarantees {
        IntegralGuarantees {
            guarantee_type: GuaranteeType::None,
            resource_flow: Resources::ZERO,
            burst_guarantee_resources: Resources::ZERO,
            relaxed_share_multiplier_limit: None,
            can_accept_free_volume: true,
            should_distribute_free_volume_among_children: None,
        }
    }
}

/// One key of the order of a FIFO pool (5.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FifoSortParameter {
    /// Larger first.
    Weight,
    /// Earlier first.
    StartTime,
    /// Smaller first (`pending_job_count` of older configurations).
    PendingAllocationCount,
}

/// A leaf.
#[derive(Clone, PartialEq, Debug)]
pub struct Operation {
    /// What its running allocations hold.
    pub usage: Resources,
    /// Usage, what is about to run, and what is still needed. Dominates `usage`.
    pub demand: Resources,
    /// For FIFO order.
    pub start_time: Time,
    /// For FIFO order.
    pub pending_allocation_count: i64,
    /// All or nothing (4.1).
    pub gang: bool,
    /// Cap of the limits share by the granularity of nodes (5.2).
    pub best_allocation_share: Share,
    /// Any number that is the same in every update: breaks ties of FIFO order (D4).
    pub tie: u128,
}

impl Default for Operation {
    fn default() -> Operation {
        Operation {
            usage: Resources::ZERO,
            demand: Resources::ZERO,
            start_time: Time::ZERO,
            pending_allocation_count: 0,
            gang: false,
            best_allocation_share: Share::ONES,
            tie: 0,
        }
    }
}

/// Options of a tree that the update depends on (fair-share.md 13.2).
#[derive(Clone, PartialEq, Debug)]
pub struct TreeOptions {
    /// Drives implicit guarantees (6.2).
    pub main_resource: Resource,
    /// Time over which a volume may be spent at the least; positive.
    pub smooth_period: Span,
    /// Capacity of a pool is its flow over this time.
    pub pool_capacity_saturation_period: Span,
    /// A relaxed pool is given at most its flow times this.
    pub relaxed_share_multiplier_limit: f64,
    /// Default for pools (7.3).
    pub should_distribute_free_volume_among_children: bool,
    /// Weights of pools without one follow their guarantees (5.3); at least 1.
    pub infer_weight_from_guarantees_share_multiplier: Option<f64>,
    /// The tree's half of the gang option (4.1).
    pub enable_step_function_for_gang_operations: bool,
    /// Children that jump at the same fit factor jump one after another (4.6).
    pub enable_improved_fair_share_by_fit_factor_computation: bool,
    /// With the previous: accept a sum that exceeds by rounding only (8.2).
    pub enable_improved_fair_share_by_fit_factor_computation_distribution_gap: bool,
    /// The tree's half of the FIFO reordering (9.5).
    pub enable_fifo_children_reordering_for_guarantee_utilization: bool,
    /// Behave as the reference where Millpond differs on purpose (18): D1, D2, D10.
    pub compat_strict: bool,
}

impl Default for TreeOptions {
    fn default() -> TreeOptions {
        TreeOptions {
            main_resource: Resource::Cpu,
            smooth_period: Span::from_secs(60),
            pool_capacity_saturation_period: Span::from_secs(86_400),
            relaxed_share_multiplier_limit: 3.0,
            should_distribute_free_volume_among_children: false,
            infer_weight_from_guarantees_share_multiplier: None,
            enable_step_function_for_gang_operations: false,
            enable_improved_fair_share_by_fit_factor_computation: false,
            enable_improved_fair_share_by_fit_factor_computation_distribution_gap: false,
            enable_fifo_children_reordering_for_guarantee_utilization: false,
            compat_strict: false,
        }
    }
}

/// What a pool carries from one update to the next (7.1). One for each element of the input; those of
/// operations are not looked at.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct IntegralState {
    /// Volume that is saved up.
    pub accumulated_volume: Volume,
    /// Largest component of the integral share given at the last periodic update; it is what the pool
    /// has been spending since.
    pub last_share: f64,
}

/// Which kind of update this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cycle {
    /// One of the regular ones: volumes are refilled and spent, `last_share` is replaced.
    Periodic {
        /// Time since the previous periodic update; none after a start: volumes stay as they are.
        since_previous: Option<Span>,
    },
    /// One between two periodic ones: the state of pools is read and left as it is (7.2).
    Extra,
}
