//! What to do on a node now: starts, preemptions, aborts (scheduling.md 8.2, 10 to 14).
//!
//! A plan is data. [`Scheduler::plan`] looks at the scheduler and changes nothing: what it has given and
//! taken so far is kept beside the books, in a [`trial::Trial`] that can be rolled back to a checkpoint.
//! [`Scheduler::apply`] makes it real after looking at everything again, so that plans may be made from
//! an older state: a start with the victims that make room for it happens as a whole or not at all.
//!
//! Reading order: [`trial`] are the books of the attempt, [`attempt`] tries one operation (10), [`stage`]
//! chooses the operations (9, 11), [`preemptive`] goes through the preemptive stages (12), [`victims`]
//! says whom to preempt (13, 14), [`apply`] makes it real.

mod apply;
pub(crate) mod attempt;
mod preemptive;
mod stage;
pub(crate) mod trial;
mod victims;

use crate::candidates::ClassKey;
use crate::preemption::{LimitedElement, PreemptionGroup, Stage};
use crate::reasons::Deactivation;
use crate::scheduler::Scheduler;
use crate::slab::{AllocIdx, LeafIdx, TreeIdx};
use crate::statistics::HeartbeatStatistics;
use std::sync::Arc;
use trial::Trial;
use vocab::{AllocationId, OperationId, Resources, Time};

/// What to do on one node, not yet real.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The node.
    pub node: Arc<str>,
    /// When it was made.
    pub time: Time,
    /// Why nothing could be started there.
    pub skipped: Option<Skipped>,
    /// What to start, in order.
    pub starts: Vec<PlannedStart>,
    /// Which allocations must give way, in order.
    pub preemptions: Vec<PlannedPreemption>,
    /// Which allocations must be aborted at once: jobs are disabled on the node.
    pub aborts: Vec<AllocationId>,
    /// Operations that were tried in vain, each once in a stage, in order.
    pub refusals: Vec<Refusal>,
    /// Amounts that do not fit into what is free, each for all operations that need so much: they were
    /// not even tried ([`Deactivation::MinNeededResourcesUnsatisfied`]).
    pub misfits: Vec<Misfit>,
    /// What was looked at.
    pub statistics: HeartbeatStatistics,
    /// The preemptive stages were run.
    pub preemptive: bool,
    tree: Option<TreeIdx>,
}

/// Why nothing could be started on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Skipped {
    /// It has not reported, or no tree wants it.
    NotInTree,
    /// An allocation waits there for resources (scheduling.md 8.2, rule 6).
    WaitingAllocations,
    /// Jobs are disabled there: it has no slots (8.2, rule 4).
    NoSlots,
}

/// One allocation to start.
#[derive(Clone, PartialEq, Debug)]
pub struct PlannedStart {
    /// For this operation.
    pub operation: OperationId,
    /// For this task of it.
    pub task: u32,
    /// So much.
    pub resources: Resources,
    /// In this stage.
    pub stage: Stage,
    leaf: LeafIdx,
}

/// One allocation to be taken away.
#[derive(Clone, PartialEq, Debug)]
pub struct PlannedPreemption {
    /// Which.
    pub allocation: AllocationId,
    /// Of which operation.
    pub operation: OperationId,
    /// What it holds.
    pub resources: Resources,
    /// Its group.
    pub group: PreemptionGroup,
    /// Its level.
    pub level: u8,
    /// Why.
    pub cause: PlannedCause,
    index: AllocIdx,
}

/// Why an allocation is to be taken away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlannedCause {
    /// To make room for a start of the plan.
    Start {
        /// In this stage.
        stage: Stage,
        /// Position in [`Plan::starts`].
        start: usize,
    },
    /// The node has less than its allocations.
    NodeLimits {
        /// In this stage.
        stage: Stage,
    },
    /// Specified limits are exceeded.
    ResourceLimits {
        /// In this stage.
        stage: Stage,
        /// Whose.
        violated: LimitedElement,
    },
    /// The node has had less than its allocations for too long.
    NodeOvercommit {
        /// Since then.
        since: Time,
    },
    /// A graceful operation has more than its share.
    Graceful,
}

/// An operation that was passed over for the rest of the stage.
#[derive(Clone, PartialEq, Debug)]
pub struct Refusal {
    /// Which.
    pub operation: OperationId,
    /// Why.
    pub reason: Deactivation,
    /// Resources that were short, if that is why.
    pub unsatisfied: [bool; 5],
    leaf: LeafIdx,
}

/// An amount that did not fit into what was free.
#[derive(Clone, PartialEq, Debug)]
pub struct Misfit {
    /// The least amount that an allocation of these operations needs.
    pub needed: Resources,
    /// Resources that were short.
    pub unsatisfied: [bool; 5],
    /// Number of these operations.
    pub operations: usize,
    class: ClassKey,
    /// Members of the class that were refused in the same stage for another reason: they are not
    /// counted twice.
    except: Vec<LeafIdx>,
}

impl Scheduler {
    /// Finds what to do on a node now. Changes nothing.
    ///
    /// Call it, and [`Scheduler::apply`], after every message of the node and whenever there may be
    /// something to start there: what is due (backoffs, long overcommitment, disabled nodes) is known
    /// here.
    pub fn plan(&self, now: Time, node: &str) -> Plan {
        let mut plan = Plan {
            node: node.into(),
            time: now,
            skipped: None,
            starts: Vec::new(),
            preemptions: Vec::new(),
            aborts: Vec::new(),
            refusals: Vec::new(),
            misfits: Vec::new(),
            statistics: HeartbeatStatistics { time: now, ..HeartbeatStatistics::default() },
            preemptive: false,
            tree: None,
        };
        let index = self.node_by_name.get(node).copied();
        let Some((index, tree)) = index.and_then(|i| Some((i, self.nodes[i].tree?))) else {
            plan.skipped = Some(Skipped::NotInTree);
            return plan;
        };
        plan.tree = Some(tree);
        let n = &self.nodes[index];
        let mut trial = Trial::new(self, now, tree, index);
        plan.statistics.operation_count_by_preemption_priority = trial.tree.priorities;
        plan.statistics.resource_usage = n.usage();
        plan.statistics.resource_limits = n.limits;
        if n.limits.user_slots == 0 && self.config.enable_allocation_abort_on_zero_user_slots {
            let all = n.allocations.values().map(|a| &self.allocations[*a]);
            plan.aborts = all.filter(|a| !a.abort_ordered).map(|a| a.id).collect();
            plan.skipped = Some(Skipped::NoSlots);
            return plan;
        }
        trial.graceful(&mut plan);
        if n.must_wait() {
            plan.skipped = Some(Skipped::WaitingAllocations);
            return plan;
        }
        trial.regular_stages(&mut plan);
        trial.preemptive_stages(&mut plan);
        trial.long_overcommit(&mut plan);
        plan
    }
}
