//! What goes in and what comes out: plain data.

use crate::amounts::Amounts;
use crate::formula::TagFilter;
use crate::preemption::PreemptionRecord;
use std::collections::BTreeSet;
use std::sync::Arc;
use vocab::{AllocationId, Cpu, Failure, ObjectId, OperationId, OperationType, Resources, Span, Time};
use yson::Map;

/// A pool to be created.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolDesc {
    /// Given by the caller; volumes are kept by it.
    pub id: ObjectId,
    /// Unique in the tree.
    pub name: String,
    /// Name of the parent; `<Root>` for the first level.
    pub parent: String,
    /// Options and custom attributes.
    pub options: Map,
}

/// How quickly an operation gives way (scheduling.md 14.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PreemptionMode {
    /// At once, when somebody starves.
    #[default]
    Normal,
    /// Whenever it has more than its share, with a long timeout.
    Graceful,
}

/// Everything about an operation that does not depend on the tree and does not change.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // the names are those of the operation spec, scheduling.md 18.4
pub struct OperationDesc {
    pub id: OperationId,
    /// Authenticated user: owner of ephemeral pools.
    pub user: String,
    pub operation_type: OperationType,
    /// Shown, not looked at.
    pub title: Option<String>,
    pub start_time: Time,
    pub is_gang: bool,
    pub preemption_mode: PreemptionMode,
    pub apply_specified_resource_limits_to_demand: bool,
    pub erase_trees_with_pool_limit_violations: bool,
    /// Null: the scheduler's option decides.
    pub require_specified_pools_existence: Option<bool>,
    pub fair_share_starvation_timeout: Option<Span>,
    pub fair_share_starvation_tolerance: Option<f64>,
    pub non_preemptible_resource_usage_threshold: Option<Amounts>,
    pub waiting_job_timeout: Option<Span>,
    /// Operator's option; null: the tree's.
    pub allocation_preemption_timeout: Option<Span>,
    /// Operator's option; null: the tree's.
    pub allocation_graceful_preemption_timeout: Option<Span>,
    /// At least one.
    pub trees: Vec<TreeParameters>,
}

impl OperationDesc {
    /// A vanilla operation of `user` in one tree; for everything else use `..` or the fields.
    pub fn new(id: OperationId, user: &str, start_time: Time, tree: TreeParameters) -> OperationDesc {
        OperationDesc {
            id,
            user: user.to_owned(),
            operation_type: OperationType::Vanilla,
            title: None,
            start_time,
            is_gang: false,
            preemption_mode: PreemptionMode::Normal,
            apply_specified_resource_limits_to_demand: false,
            erase_trees_with_pool_limit_violations: false,
            require_specified_pools_existence: None,
            fair_share_starvation_timeout: None,
            fair_share_starvation_tolerance: None,
            non_preemptible_resource_usage_threshold: None,
            waiting_job_timeout: None,
            allocation_preemption_timeout: None,
            allocation_graceful_preemption_timeout: None,
            trees: vec![tree],
        }
    }
}

/// An operation in one tree.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TreeParameters {
    /// Name of the tree.
    pub tree: String,
    /// Pool; none: named like the user.
    pub pool: Option<String>,
    /// May be changed at run time.
    pub parameters: RuntimeParameters,
    /// Violated limits erase the tree instead of failing the start.
    pub tentative: bool,
    /// Keep this slot index if it is free (revival).
    pub slot_index: Option<u32>,
    /// Revival: it was marked running here before the restart, so it comes first [D6].
    pub was_running: bool,
}

impl TreeParameters {
    /// In the given pool, everything else at its default.
    pub fn new(tree: &str, pool: &str) -> TreeParameters {
        TreeParameters { tree: tree.to_owned(), pool: Some(pool.to_owned()), ..TreeParameters::default() }
    }
}

/// Parameters of an operation in a tree that may be changed at run time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RuntimeParameters {
    /// Within [`config::MIN_WEIGHT`](crate::config::MIN_WEIGHT) and
    /// [`config::MAX_WEIGHT`](crate::config::MAX_WEIGHT).
    pub weight: Option<f64>,
    /// Absent components are not limited.
    pub resource_limits: Amounts,
    /// Nodes it may use.
    pub scheduling_tag_filter: TagFilter,
}

/// What an operation still wants to start: one entry for each task, in the order of preference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DemandGroup {
    /// The caller's number of the task; unique in the list.
    pub task: u32,
    /// Resources of one allocation.
    pub min_needed: Resources,
    /// How many more; at least 0.
    pub count: i64,
}

/// May the operation run in a tree?
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It may.
    Running,
    /// It waits in the queue of a pool (scheduling.md 4.3).
    Pending {
        /// The lowest pool whose limit is reached.
        pool: Arc<str>,
        /// The limit of running operations there.
        limit: i64,
    },
}

/// Result of a registration.
#[derive(Clone, PartialEq, Debug)]
pub struct Registered {
    /// Trees that it is in.
    pub trees: Vec<Joined>,
    /// Trees that it is not in after all, and why.
    pub erased: Vec<(Arc<str>, Failure)>,
}

/// An operation that became an element of a tree.
#[derive(Clone, PartialEq, Debug)]
pub struct Joined {
    /// The tree.
    pub tree: Arc<str>,
    /// The pool; may be an ephemeral one that was just created.
    pub pool: Arc<str>,
    /// Running or not.
    pub admission: Admission,
    /// Slot index in the pool.
    pub slot_index: u32,
}

/// Something that happened to an operation without its asking. Collected until
/// [`Scheduler::drain_events`](crate::Scheduler::drain_events) takes them.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// Marked running in a tree (scheduling.md 4.3): it may go on to `materializing`. Also clears the
    /// alert `operation_pending`.
    Running {
        /// Which.
        operation: OperationId,
        /// Where.
        tree: Arc<str>,
    },
    /// It waits now, or it waits on another pool than before: alert `operation_pending`.
    Pending {
        /// Which.
        operation: OperationId,
        /// Where.
        tree: Arc<str>,
        /// On which pool.
        pool: Arc<str>,
        /// The limit of running operations there.
        limit: i64,
    },
    /// An ephemeral pool was created.
    EphemeralPoolCreated {
        /// Where.
        tree: Arc<str>,
        /// Its name.
        pool: Arc<str>,
    },
    /// An ephemeral pool was removed as it became empty.
    EphemeralPoolRemoved {
        /// Where.
        tree: Arc<str>,
        /// Its name.
        pool: Arc<str>,
    },
}

/// State of a node, as it reports it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NodeReport {
    /// What it has.
    pub resource_limits: Resources,
    /// What running and still releasing allocations hold; see [`crate::Scheduler::heartbeat`].
    pub resource_usage: Resources,
    /// Tags, the node's own name among them if users filter by it.
    pub tags: Arc<BTreeSet<String>>,
    /// An accepted allocation waits for resources there: nothing else may be put on it
    /// (scheduling.md 8.2, rule 6).
    pub has_waiting_allocations: bool,
}

/// What a report changed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeUpdate {
    /// The tree of the node now.
    pub tree: Option<Arc<str>>,
    /// Allocations that were there for another tree; the scheduler has forgotten them, they must be
    /// aborted with `node_fair_share_tree_changed`.
    pub lost: Vec<AllocationId>,
}

/// An allocation that was decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Start {
    /// Its id.
    pub allocation: AllocationId,
    /// For which operation.
    pub operation: OperationId,
    /// For which of its tasks.
    pub task: u32,
    /// How much.
    pub resources: Resources,
    /// How long it may wait for its resources on the node (scheduling.md 15.4); none: as the node likes.
    pub waiting_timeout: Option<Span>,
}

/// An allocation that runs already, found after a restart.
#[derive(Clone, PartialEq, Debug)]
pub struct RevivedAllocation {
    /// Its id.
    pub allocation: AllocationId,
    /// Its operation; must be registered.
    pub operation: OperationId,
    /// The tree it was started in.
    pub tree: String,
    /// The node it runs on; must have reported.
    pub node: String,
    /// Task of the operation.
    pub task: u32,
    /// What it holds now.
    pub resources: Resources,
    /// CPU that was ordered; the CPU monitor may have given some of it back.
    pub ordered_cpu: Cpu,
    /// It was told to give way before the restart, and why: it is not charged to its operation, and
    /// its node is told again (scheduling.md 15.1, 16.4).
    pub preempted: Option<Arc<PreemptionRecord>>,
}

/// Why an allocation came to nothing after it was granted (scheduling.md 17.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettleFailure {
    /// The controller is throttled: a backoff that grows.
    Throttled,
    /// The controller asks for a short pause.
    Backoff,
    /// Just give it back.
    Other,
}

/// Which kind of update (scheduling.md 5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UpdateKind {
    /// One of those that come every `fair_share_update_period`.
    Periodic,
    /// One in between, because an operation became schedulable.
    Extra,
}

/// Something that is wrong with the configuration, for the scheduler's alerts (scheduling.md 20).
#[derive(Clone, PartialEq, Debug)]
pub struct Alert {
    /// Name of the alert: `update_pools`, `update_fair_share`, ...
    pub name: &'static str,
    /// What is wrong.
    pub error: Failure,
}
