//! An operation inside one tree.

use crate::messages::{OperationDesc, RuntimeParameters};
use crate::reasons::Deactivation;
use crate::slab::{OpIdx, PoolIdx};
use fairshare::HistoricUsage;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{AllocationId, OperationType, Resources, Share};

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
    pub schedulable: bool,
    pub fair_share: Share,
    pub demand_share: Share,
    pub demand: Resources,
    /// Position in the fixed order of the tree, which breaks ties of satisfaction [D3].
    pub rank: u32,
    /// Scheduling status `normal` (scheduling.md 6.1): a graceful operation gets nothing more.
    pub has_its_share: bool,
}

impl Published {
    pub const NOTHING: Published = Published {
        schedulable: false,
        fair_share: Share::ZERO,
        demand_share: Share::ZERO,
        demand: Resources::ZERO,
        rank: 0,
        has_its_share: true,
    };
}

/// Counts of refusals by reason since the start (scheduling.md 17.4).
///
/// Stuck operations (scheduling.md 20) will want a second set of these, cleared when starvation begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Refusals {
    pub by_reason: [u64; Deactivation::ALL.len()],
    /// How often each resource was short when no group fitted.
    pub unsatisfied: [u64; 5],
}

#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub operation: OpIdx,
    pub desc: Arc<OperationDesc>,
    pub pool: PoolIdx,
    /// Key in [`super::Pool::leaves`].
    pub place: u64,
    pub slot_index: u32,
    pub parameters: Arc<RuntimeParameters>,
    pub tentative: bool,
    pub standing: Standing,
    /// Counted as lightweight (scheduling.md 4.6).
    pub lightweight: bool,
    /// Enabled, not suspended and with something to start: could be scheduled at this moment.
    pub live: bool,
    /// Resources of its allocations.
    pub usage: Resources,
    /// By sequence number: the order of last job start (scheduling.md 7.1). Preemption groups will
    /// be borders in this order.
    pub allocations: BTreeMap<u64, AllocationId>,
    pub published: Published,
    /// Its entry in the candidates of the tree.
    pub key: Option<(u64, u32)>,
    pub refusals: Refusals,
    pub best_allocation_share: Share,
    pub historic_usage: HistoricUsage,
    pub starvation: crate::update::Starvation,
}

impl Leaf {
    /// The type of operation that may be lightweight (scheduling.md 4.6).
    pub fn is_lightweight_eligible(&self) -> bool {
        is_lightweight_eligible(&self.desc)
    }

    pub fn is_running(&self) -> bool {
        self.standing == Standing::Running
    }
}

pub(crate) fn is_lightweight_eligible(desc: &OperationDesc) -> bool {
    desc.operation_type == OperationType::Vanilla
}
