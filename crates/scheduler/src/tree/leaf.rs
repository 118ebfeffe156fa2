//! An operation inside one tree.

use crate::candidates::{Membership, Misfits};
use crate::groups::{Bounds, Groups};
use crate::messages::{OperationDesc, RuntimeParameters};
use crate::options::OperationOptions;
use crate::preemption::PreemptionPriority;
use crate::reasons::Deactivation;
use crate::slab::{AllocIdx, OpIdx, PoolIdx};
use fairshare::HistoricUsage;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{OperationType, Resources, Share, Span, Time};

/// Is the operation marked running here, or does it wait?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    Running,
    /// In the queue of this pool, with this ticket.
    Pending {
        at: PoolIdx,
        ticket: u64,
    },
}

/// What the newest update decided; heartbeats go by it (scheduling.md 1, "tree snapshot").
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Published {
    /// Took part in the update: running here and enabled.
    pub enabled: bool,
    pub schedulable: bool,
    pub fair_share: Share,
    pub demand_share: Share,
    pub demand: Resources,
    /// Position in the fixed order of the tree, which breaks ties of satisfaction [D3].
    pub rank: u32,
    /// Position in the order of the update (scheduling.md 9.5); -1 if not schedulable.
    pub scheduling_index: i64,
    /// Scheduling status `normal` (scheduling.md 6.1): a graceful operation gets nothing more.
    pub has_its_share: bool,
    /// May have others preempted for it, or for its pools (6.6).
    pub priority: PreemptionPriority,
    /// The same with scope `operation_only`.
    pub own_priority: PreemptionPriority,
    /// Below what guarantees promise (11.2); false unless the tree asks for it.
    pub high: bool,
    /// Its aggressively preemptible allocations may be taken (6.2).
    pub aggressive_preemption_allowed: bool,
    /// A pool above does not let the normal stage take anything (12.3).
    pub normal_preemption_forbidden: bool,
    /// How long an accepted allocation may wait on its node (15.4); none: as the node likes.
    pub waiting_timeout: Option<Span>,
    pub bounds: Bounds,
}

impl Published {
    pub const NOTHING: Published = Published {
        enabled: false,
        schedulable: false,
        fair_share: Share::ZERO,
        demand_share: Share::ZERO,
        demand: Resources::ZERO,
        rank: 0,
        scheduling_index: -1,
        has_its_share: true,
        priority: PreemptionPriority::None,
        own_priority: PreemptionPriority::None,
        high: false,
        aggressive_preemption_allowed: true,
        normal_preemption_forbidden: false,
        waiting_timeout: None,
        bounds: Bounds::NOTHING,
    };
}

/// Counts of refusals by reason (scheduling.md 17.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Refusals {
    pub by_reason: [u64; Deactivation::ALL.len()],
    /// How often each resource was short when no group fitted.
    pub unsatisfied: [u64; 5],
}

impl Refusals {
    pub fn add_misfits(&mut self, misfits: &Misfits) {
        let count = &mut self.by_reason[Deactivation::MinNeededResourcesUnsatisfied as usize];
        *count = count.wrapping_add(misfits.count);
        for (sum, more) in self.unsatisfied.iter_mut().zip(misfits.short) {
            *sum = sum.wrapping_add(more);
        }
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &Refusals) -> Refusals {
        let mut out = *self;
        for (a, b) in out.by_reason.iter_mut().zip(earlier.by_reason) {
            *a = a.wrapping_sub(b);
        }
        for (a, b) in out.unsatisfied.iter_mut().zip(earlier.unsatisfied) {
            *a = a.wrapping_sub(b);
        }
        out
    }
}

/// Counts of refusals that take no room until there are some: most operations have none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(Option<Box<Refusals>>);

impl Tally {
    pub fn new(refusals: Refusals) -> Tally {
        Tally((refusals != Refusals::default()).then(|| Box::new(refusals)))
    }

    pub fn get(&self) -> Refusals {
        self.0.as_deref().copied().unwrap_or_default()
    }

    pub fn get_mut(&mut self) -> &mut Refusals {
        self.0.get_or_insert_default()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub operation: OpIdx,
    pub desc: Arc<OperationDesc>,
    /// Options that may be changed at any time.
    pub options: Arc<OperationOptions>,
    pub pool: PoolIdx,
    /// Key in [`super::Pool::leaves`].
    pub place: u64,
    pub slot_index: u32,
    pub parameters: Arc<RuntimeParameters>,
    pub tentative: bool,
    /// Its `preemption_mode`, here because every preemptive pass asks (14.4).
    pub graceful: bool,
    pub standing: Standing,
    /// Counted as lightweight (scheduling.md 4.6).
    pub lightweight: bool,
    /// Enabled, not suspended and with something to start: could be scheduled at this moment.
    pub live: bool,
    /// Least amount for one allocation (scheduling.md 5.3), of what is to be started now.
    pub need: Resources,
    /// Charged resources of its allocations: preempted ones count nothing (16.4).
    pub usage: Resources,
    /// Specified limits are exceeded.
    pub over_limits: bool,
    /// By sequence number: the order of last job start (scheduling.md 7.1).
    pub allocations: BTreeMap<u64, AllocIdx>,
    pub groups: Groups,
    pub published: Published,
    /// Its entry in the candidates of the tree.
    pub membership: Option<Membership>,
    /// Since the start, without what its class counts; see `Tree::refusals`.
    pub refusals: Tally,
    /// `refusals` when starvation began (17.4).
    pub refusals_at_starvation: Tally,
    pub best_allocation_share: Share,
    pub historic_usage: HistoricUsage,
    pub starvation: crate::update::Starvation,
    /// When it was enabled, for the check of stuck operations (20).
    pub activated: Time,
    /// When something was started last.
    pub last_success: Option<Time>,
    /// Since when limits do not even allow one allocation.
    pub limited_since: Option<Time>,
}

impl Leaf {
    /// The type of operation that may be lightweight (scheduling.md 4.6).
    pub fn is_lightweight_eligible(&self) -> bool {
        is_lightweight_eligible(&self.desc)
    }

    pub fn is_running(&self) -> bool {
        self.standing == Standing::Running
    }

    pub fn is_graceful(&self) -> bool {
        self.graceful
    }
}

pub(crate) fn is_lightweight_eligible(desc: &OperationDesc) -> bool {
    desc.operation_type == OperationType::Vanilla
}
