//! Why an operation is where it is: `explain` as data (scheduling.md 3.3, 4.3, 6, 9 to 14).
//!
//! Start at [`Explanation`]. `find` works it out from the state of the scheduler and changes nothing,
//! `words` says it in plain English. Everything that is said is in the data: a program need not read
//! the sentences.

mod find;
mod value;
mod words;

pub use value::NO_SLOTS;

use crate::preemption::{LimitedElement, PreemptionPriority, PreemptionRecord};
use crate::reasons::Deactivation;
use std::sync::Arc;
use vocab::{OperationId, Resource, Resources, Span, Time};

/// Why an operation is or is not being scheduled, tree by tree.
#[derive(Clone, PartialEq, Debug)]
pub struct Explanation {
    /// Which.
    pub operation: OperationId,
    /// When it was asked.
    pub time: Time,
    /// One for each tree that it is in.
    pub trees: Vec<TreeExplanation>,
}

/// The same in one tree.
#[derive(Clone, PartialEq, Debug)]
pub struct TreeExplanation {
    /// The tree.
    pub tree: Arc<str>,
    /// Full path of its pool.
    pub pool: String,
    /// What it has and is entitled to.
    pub numbers: Numbers,
    /// The one reason that counts.
    pub verdict: Verdict,
    /// How long it has had less than it should, if it has.
    pub starvation: Option<Starving>,
    /// What each node of the tree says to it, counted; absent if it does not matter.
    pub nodes: Option<NodeReasons>,
    /// What it has lost, newest last; at most [`LOSSES_SHOWN`].
    pub losses: Vec<Arc<PreemptionRecord>>,
    /// How many losses the preemption log has.
    pub loss_count: usize,
    /// What would have to change for it to get more.
    pub advice: Vec<Advice>,
}

/// Losses that an explanation repeats.
pub const LOSSES_SHOWN: usize = 3;

/// What an operation has and is entitled to. Shares are fractions of the cluster at the newest update.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Numbers {
    /// Allocations that it has, without those it is losing.
    pub running: i64,
    /// Allocations on their way out.
    pub leaving: i64,
    /// Allocations that it still wants.
    pub wanted: i64,
    /// What they hold.
    pub usage: Resources,
    /// Largest component of its fair share.
    pub fair_share: f64,
    /// Largest component of its usage.
    pub usage_share: f64,
    /// Largest component of its demand.
    pub demand_share: f64,
    /// Allocations in the three preemption groups, without those on their way out.
    pub groups: [i64; 3],
    /// It is graceful (14.4): what it has within its share is safe, the rest is asked to go.
    pub graceful: bool,
}

/// Why an operation has not more than it has.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// It waits for its turn to run (scheduling.md 4.3).
    WaitsForPool {
        /// The lowest pool whose limit is reached.
        pool: Arc<str>,
        /// `max_running_operation_count` there.
        limit: i64,
        /// Operations running there.
        running: i64,
        /// Operations before it in the queue.
        ahead: usize,
    },
    /// Its state is not `running` (yet).
    NotRunning,
    /// It is suspended.
    Suspended,
    /// All that it needs is started.
    NothingToStart,
    /// Too far behind in a FIFO pool (9.4).
    BehindInFifo {
        /// Its position; 0 = first.
        index: Option<usize>,
        /// `max_schedulable_element_count_in_fifo_pool`.
        limit: i64,
    },
    /// The newest update has not seen it or its demand yet.
    WaitsForUpdate,
    /// The tree has no nodes.
    NoNodes,
    /// No node that it may use offers slots: jobs are disabled there, or the nodes are banned.
    NoSlots {
        /// So many nodes.
        nodes: usize,
    },
    /// Tag filters leave no node.
    NoMatchingNode {
        /// The first filter of its chain that leaves none.
        filter: String,
        /// Whose filter it is.
        element: LimitedElement,
    },
    /// An allocation would not fit into any node that it may use, were it empty.
    TooLarge {
        /// What the smallest allocation needs.
        needed: Resources,
        /// The most that a node has of each resource that is short everywhere; none if different nodes
        /// are short of different ones.
        short: Vec<(Resource, i64)>,
    },
    /// Specified limits are smaller than one allocation.
    LimitTooSmall {
        /// Whose.
        element: LimitedElement,
        /// These.
        limits: Resources,
        /// What one allocation needs.
        needed: Resources,
    },
    /// Specified limits are reached.
    LimitReached {
        /// Whose.
        element: LimitedElement,
        /// These.
        limits: Resources,
        /// What is used below them.
        usage: Resources,
        /// What one allocation needs.
        needed: Resources,
    },
    /// Its controller asked for a pause (17.3).
    Backoff {
        /// Until then.
        until: Time,
    },
    /// It is graceful and has its share: it gets nothing above (9.2).
    GracefulHasItsShare,
    /// The nodes are taken, and it has what it is entitled to.
    HasItsShare,
    /// The nodes are taken; it is entitled to more and may not preempt yet.
    BelowShare,
    /// The nodes are taken; it may have others preempted.
    Preempts {
        /// With this priority.
        priority: PreemptionPriority,
        /// Only for a pool that it is in (6.6).
        for_ancestor: Option<Arc<str>>,
    },
    /// The nodes are taken; it may have others preempted, but nothing that may be taken for it would make
    /// room on any node.
    CannotPreempt {
        /// Its priority.
        priority: PreemptionPriority,
        /// Only for a pool that it is in (6.6).
        for_ancestor: Option<Arc<str>>,
    },
    /// There is room: the next pass over these nodes starts something.
    Starts {
        /// So many nodes.
        nodes: usize,
    },
}

/// How long something has been below its fair share (6.4).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Starving {
    /// Below since then.
    pub below_since: Time,
    /// It starves since then.
    pub since: Option<Time>,
    /// Aggressively.
    pub aggressively: bool,
    /// Timeout after which it starves.
    pub timeout: Span,
    /// Timeout after which it starves aggressively, if that is enabled.
    pub aggressive_timeout: Option<Span>,
}

/// What the nodes of a tree say to an operation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NodeReasons {
    /// Nodes of the tree.
    pub total: usize,
    /// Nodes that would start something now.
    pub ready: usize,
    /// Nodes that are passed over at present: an allocation waits there.
    pub waiting: usize,
    /// Nodes that are away: nothing is started there until they are back.
    pub offline: usize,
    /// Nodes where preemption for it would make room, if it may have others preempted; they are counted
    /// among the others too.
    pub preemptible: usize,
    /// Nodes without slots: jobs are disabled there.
    pub disabled: usize,
    /// Nodes without the spare resources that scheduling wants to see.
    pub no_spare: usize,
    /// The others, by reason.
    pub by_reason: Vec<(Deactivation, usize)>,
    /// Of those with too little, how many are short of each resource.
    pub short: Vec<(Resource, usize)>,
}

/// What would have to change.
#[derive(Clone, PartialEq, Debug)]
pub enum Advice {
    /// Others must finish in the pool, or its limit be raised.
    RaiseRunningLimit {
        /// Which pool.
        pool: Arc<str>,
        /// At least to this.
        to: i64,
    },
    /// Somebody must resume it.
    Resume,
    /// The limit must be raised, or what fills it must finish.
    RaiseLimit {
        /// Whose.
        element: LimitedElement,
        /// Something fills it; otherwise it is too small even when empty.
        in_use: bool,
        /// Of what.
        resource: Resource,
        /// At least to this, in integer units.
        to: i64,
    },
    /// Its jobs must ask for less, or a larger node must come.
    NeedLess {
        /// Of what.
        resource: Resource,
        /// At most this, in integer units.
        at_most: i64,
    },
    /// A node must come that the filter lets through, or the filter be changed.
    MatchFilter {
        /// The filter.
        filter: String,
    },
    /// Jobs must be enabled on a node, or nodes must come.
    EnableNodes,
    /// Nodes must come.
    AddNodes,
    /// Others must finish, or its pool be given more: a guarantee or a larger weight.
    MoreShare,
    /// Nothing: it is a matter of time.
    Wait {
        /// Until then, if nothing else happens before.
        until: Option<Time>,
    },
    /// Option `min_spare_allocation_resources_on_node` must be lowered: nodes with less free than that are
    /// not looked at.
    LowerSpare,
    /// Others must finish: they are protected.
    OthersFinish,
    /// Aggressive starvation must be enabled for its pool: what it may preempt is not enough on any node.
    EnableAggressiveStarvation,
}
