//! Words of preemption: groups, priorities, stages, causes, orders, the log (scheduling.md 6.6, 7, 11 to 15).
//!
//! Only data. Who is in which group is worked out in `groups`, who is preempted in `plan`, and what
//! becomes of it in `apply`.

use crate::reasons::reasons;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use vocab::{AbortReason, AllocationId, OperationId, Resources, Span, Time};
use yson::{Map, Value};

reasons! {
    /// Of what kind an allocation of an operation is, oldest first (scheduling.md 7).
    PreemptionGroup {
        /// Within the protected part of the fair share.
        NonPreemptible = "non_preemptible",
        /// Within the fair share, beyond the protected part.
        AggressivelyPreemptible = "aggressively_preemptible",
        /// Beyond the fair share.
        Preemptible = "preemptible",
    }
}

impl PreemptionGroup {
    /// Level inside a stage (scheduling.md 7.4): a stage takes allocations of its own minimal level and
    /// above.
    pub fn level(self, aggressive_preemption_allowed: bool) -> u8 {
        match self {
            PreemptionGroup::NonPreemptible => 0,
            PreemptionGroup::AggressivelyPreemptible => u8::from(aggressive_preemption_allowed),
            PreemptionGroup::Preemptible => 2,
        }
    }
}

reasons! {
    /// May an operation have others preempted for it (scheduling.md 6.6)?
    PreemptionPriority {
        /// It may not.
        None = "none",
        /// Preemptible ones.
        Normal = "normal",
        /// Aggressively preemptible ones too.
        Aggressive = "aggressive",
    }
}

reasons! {
    /// Parts of one pass over a node, in their order (scheduling.md 11, 12).
    Stage {
        /// Operations below what guarantees promise them (11.2).
        RegularHighPriority = "regular_high_priority",
        /// All others, or simply all.
        RegularMediumPriority = "regular_medium_priority",
        /// For aggressively starving operations.
        PreemptiveAggressive = "preemptive_aggressive",
        /// For starving operations; also when nobody starves.
        PreemptiveNormal = "preemptive_normal",
    }
}

impl Stage {
    /// The priority that operations need to take part; none in regular stages.
    pub fn target(self) -> Option<PreemptionPriority> {
        match self {
            Stage::RegularHighPriority | Stage::RegularMediumPriority => None,
            Stage::PreemptiveAggressive => Some(PreemptionPriority::Aggressive),
            Stage::PreemptiveNormal => Some(PreemptionPriority::Normal),
        }
    }

    /// Smallest level of the allocations that the stage may take (scheduling.md 12.2).
    pub(crate) fn minimal_level(self) -> u8 {
        if self == Stage::PreemptiveAggressive { 1 } else { 2 }
    }
}

reasons! {
    /// Kinds of preemption, for counters and events (scheduling.md 13).
    PreemptionKind {
        /// By the normal stage.
        Preemption = "preemption",
        /// By the aggressive stage.
        AggressivePreemption = "aggressive_preemption",
        /// Specified limits of the operation or of a pool above were exceeded.
        ResourceLimitsViolated = "resource_limits_violated",
        /// The node had less than its allocations for too long.
        ResourceOvercommit = "resource_overcommit",
        /// A graceful operation had more than its share.
        GracefulPreemption = "graceful_preemption",
    }
}

/// For whom an allocation was taken away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preemptor {
    /// The allocation that was started.
    pub allocation: AllocationId,
    /// Its operation.
    pub operation: OperationId,
    /// Priority of the operation itself, whatever its pools (scope `operation_only`).
    pub own_priority: PreemptionPriority,
}

/// An element whose specified limits are exceeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LimitedElement {
    /// An operation.
    Operation(OperationId),
    /// A pool, by name.
    Pool(Arc<str>),
}

impl fmt::Display for LimitedElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitedElement::Operation(id) => write!(f, "operation {id}"),
            LimitedElement::Pool(name) => write!(f, "pool \"{name}\""),
        }
    }
}

/// Why an allocation was taken away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PreemptionCause {
    /// To start an allocation (scheduling.md 13).
    Start {
        /// In this stage.
        stage: Stage,
        /// For it.
        preemptor: Preemptor,
    },
    /// The node had less than its allocations (14.1).
    NodeLimits {
        /// In this stage.
        stage: Stage,
    },
    /// Specified limits were exceeded (14.2).
    ResourceLimits {
        /// In this stage.
        stage: Stage,
        /// Whose.
        violated: LimitedElement,
    },
    /// The node had less than its allocations for longer than
    /// `allowed_node_resources_overcommit_duration` (14.3).
    NodeOvercommit {
        /// Since then.
        since: Time,
    },
    /// The operation is graceful and has more than its share (14.4).
    Graceful,
}

impl PreemptionCause {
    /// The kind by which it is counted.
    pub fn kind(&self) -> PreemptionKind {
        match self {
            PreemptionCause::Start { stage, .. } | PreemptionCause::NodeLimits { stage } => {
                if *stage == Stage::PreemptiveAggressive {
                    PreemptionKind::AggressivePreemption
                } else {
                    PreemptionKind::Preemption
                }
            }
            PreemptionCause::ResourceLimits { .. } => PreemptionKind::ResourceLimitsViolated,
            PreemptionCause::NodeOvercommit { .. } => PreemptionKind::ResourceOvercommit,
            PreemptionCause::Graceful => PreemptionKind::GracefulPreemption,
        }
    }

    /// The stage that decided it, if one did.
    pub fn stage(&self) -> Option<Stage> {
        match self {
            PreemptionCause::Start { stage, .. }
            | PreemptionCause::NodeLimits { stage }
            | PreemptionCause::ResourceLimits { stage, .. } => Some(*stage),
            PreemptionCause::NodeOvercommit { .. } | PreemptionCause::Graceful => None,
        }
    }

    /// For whom, if for anybody.
    pub fn preemptor(&self) -> Option<&Preemptor> {
        match self {
            PreemptionCause::Start { preemptor, .. } => Some(preemptor),
            _ => None,
        }
    }
}

/// One line of the preemption log: who lost what for whom, when and why.
#[derive(Clone, PartialEq, Debug)]
pub struct PreemptionRecord {
    /// When it was decided.
    pub time: Time,
    /// The tree.
    pub tree: Arc<str>,
    /// The node.
    pub node: Arc<str>,
    /// The allocation that was lost.
    pub allocation: AllocationId,
    /// Its operation.
    pub operation: OperationId,
    /// The pool of its operation at that moment.
    pub pool: Arc<str>,
    /// What it held.
    pub resources: Resources,
    /// Its group at that moment.
    pub group: PreemptionGroup,
    /// Its level at that moment (scheduling.md 7.4).
    pub level: u8,
    /// How long the node may let its job end by itself.
    pub timeout: Span,
    /// Why.
    pub cause: PreemptionCause,
}

impl PreemptionRecord {
    /// The text that users see. To start somebody it begins with `Preempted to start allocation`
    /// (scheduling.md 13).
    pub fn reason(&self) -> String {
        let of_victim = format!("the victim was {} (level {})", self.group, self.level);
        match &self.cause {
            PreemptionCause::Start { stage, preemptor } => {
                let priority = stage.target().unwrap_or(PreemptionPriority::None);
                format!(
                    "Preempted to start allocation {} of operation {}; {of_victim}, own priority of the \
                     preemptor: {}, priority of the stage: {priority}",
                    preemptor.allocation, preemptor.operation, preemptor.own_priority
                )
            }
            PreemptionCause::NodeLimits { stage } => {
                format!("Resource limits of node \"{}\" are violated; {of_victim}, stage {stage}", self.node)
            }
            PreemptionCause::ResourceLimits { stage, violated } => {
                format!("Specified resource limits of {violated} are violated; {of_victim}, stage {stage}")
            }
            PreemptionCause::NodeOvercommit { since } => format!(
                "Resources of node \"{}\" have been overcommitted for {:.1} s; {of_victim}",
                self.node,
                self.time.since(*since).as_secs_f64()
            ),
            PreemptionCause::Graceful => {
                format!("Graceful operation has more than its fair share; {of_victim}")
            }
        }
    }

    /// The preemptor had the priority of the stage only through its pools, not by itself ("improperly
    /// preempted").
    pub fn is_improper(&self) -> bool {
        match &self.cause {
            PreemptionCause::Start { stage, preemptor } => {
                stage.target().is_some_and(|target| preemptor.own_priority < target)
            }
            _ => false,
        }
    }

    /// The order to the node.
    pub fn order(self: &Arc<Self>) -> Preempt {
        Preempt {
            allocation: self.allocation,
            operation: self.operation,
            node: self.node.clone(),
            timeout: self.timeout,
            deadline: self.time + self.timeout,
            kind: self.cause.kind(),
            reason: self.reason(),
            preempted_for: self.cause.preemptor().map(|p| (p.allocation, p.operation)),
            record: self.clone(),
        }
    }

    /// As a map, for the Orchid and the event log.
    pub fn to_map(&self) -> Map {
        let preemptor = self.cause.preemptor();
        let mut map = yson::map! {
            "time" => self.time,
            "pool_tree" => &*self.tree,
            "node" => &*self.node,
            "allocation_id" => self.allocation.to_string(),
            "operation_id" => self.operation.to_string(),
            "pool" => &*self.pool,
            "resources" => self.resources.to_value(),
            "group" => self.group,
            "level" => i64::from(self.level),
            "timeout" => self.timeout.as_millis() as i64,
            "preemption_kind" => self.cause.kind(),
            "stage" => self.cause.stage().map(Value::from),
            "preemption_reason" => self.reason(),
            "properly_starving" => preemptor.map(|_| !self.is_improper()),
        };
        map.insert(
            "preempted_for",
            preemptor.map(|p| {
                yson::map! {
                    "allocation_id" => p.allocation.to_string(),
                    "operation_id" => p.operation.to_string(),
                }
            }),
        );
        map
    }
}

/// An allocation must give way (scheduling.md 15.1).
#[derive(Clone, PartialEq, Debug)]
pub struct Preempt {
    /// Which.
    pub allocation: AllocationId,
    /// Of which operation.
    pub operation: OperationId,
    /// Where it is.
    pub node: Arc<str>,
    /// An interruptible job may end by itself for so long; others are aborted at once.
    pub timeout: Span,
    /// The same as an instant, for an order that is sent again.
    pub deadline: Time,
    /// Kind, for counters.
    pub kind: PreemptionKind,
    /// Text for users: attribute `preemption_reason` of the job's error.
    pub reason: String,
    /// Allocation and operation that it gave way for.
    pub preempted_for: Option<(AllocationId, OperationId)>,
    /// The decision: kept by the caller with the order, it brings the order back after a restart
    /// ([`RevivedAllocation`](crate::RevivedAllocation)).
    pub record: Arc<PreemptionRecord>,
}

/// Something that the node of an allocation must be told.
#[derive(Clone, PartialEq, Debug)]
pub enum Order {
    /// Let it end within a time, then abort it.
    Preempt(Preempt),
    /// Abort it at once.
    Abort {
        /// Which.
        allocation: AllocationId,
        /// Of which operation.
        operation: OperationId,
        /// Where it is.
        node: Arc<str>,
        /// Why.
        reason: AbortReason,
    },
}

impl Order {
    /// The node that must be told.
    pub fn node(&self) -> &Arc<str> {
        match self {
            Order::Preempt(p) => &p.node,
            Order::Abort { node, .. } => node,
        }
    }

    /// The allocation it is about.
    pub fn allocation(&self) -> AllocationId {
        match self {
            Order::Preempt(p) => p.allocation,
            Order::Abort { allocation, .. } => *allocation,
        }
    }
}

/// Records that the log keeps; older ones are forgotten.
pub const PREEMPTION_LOG_LIMIT: usize = 4_096;

/// The newest preemptions, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct PreemptionLog {
    records: VecDeque<Arc<PreemptionRecord>>,
}

impl PreemptionLog {
    pub fn push(&mut self, record: Arc<PreemptionRecord>) {
        if self.records.len() == PREEMPTION_LOG_LIMIT {
            self.records.pop_front();
        }
        self.records.push_back(record);
    }

    /// It did not happen after all.
    pub fn remove(&mut self, record: &Arc<PreemptionRecord>) {
        self.records.retain(|r| !Arc::ptr_eq(r, record));
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<PreemptionRecord>> + ExactSizeIterator {
        self.records.iter()
    }
}
