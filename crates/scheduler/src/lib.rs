//! Pool trees, operation counts, snapshots, heartbeat plans, preemption (scheduling.md).
//!
//! [`Scheduler`] knows pools, operations with *grouped demand*, nodes and allocations. It decides who
//! may run, who is entitled to what, what a node should start next and who must give way. It does not
//! know jobs, specs or statistics; it reads no clock, does no IO, and makes no ids: `now`, ids and
//! demand come in as arguments, decisions go out as values. The same calls in the same order give the
//! same results.
//!
//! # Order of calls
//!
//! ```text
//! Scheduler::new(config, now)
//! create_tree, create_pool, set_pool_options, ...     the metadata tree's pools, at start and on change
//! import_volume                                       volumes of the last life
//! restore_preemption                                  the log of the last life
//! revive_operations, (heartbeat), revive_allocation   after a restart; node first, then what runs there
//!
//! register_operation  -> Admission                    refused | running | waiting
//! drain_events        -> Event::Running, ...          after any call: who may materialize now
//! set_demand, set_enabled(true)                       the controller has built its tasks
//! update(now, Periodic | Extra) -> Arc<Snapshot>      every fair_share_update_period; extra: new demand
//! nodes_with_room                                     whom to serve at once after an extra update
//!
//! a node's message:
//!   allocation_finished, allocation_usage, allocation_job_started   for everything in it, then
//!   heartbeat(now, node, report)
//!   plan(now, node) -> Plan;  apply(plan, ids) -> Vec<Start>        after every message, whatever it says:
//!                                                                   what is due is known here
//!   the caller settles a job into each start                        or says that it could not:
//!   allocation_failed                                               its victims are spared then
//!   drain_orders -> Order::Preempt | Order::Abort                   for the nodes of allocations that must
//!                                                                   give way
//!
//! standing_orders(node)                               a node comes back: what it may not have heard
//! stuck_operations(now)                               now and then: whom to fail
//! explain(operation, now)                             why it is where it is
//! unregister_operation                                finished: its place may let others run
//! remove_node                                         lost: its allocations are given back
//! ```
//!
//! An allocation that is preempted is no longer charged to its operation and pools from the moment of
//! the decision, but it stays in the books of its node until `allocation_finished`. What was started in
//! its place waits on the node until then, and nothing else is put there.
//!
//! # Where to start reading
//!
//! [`messages`](crate::OperationDesc) are the types at the border, `tree` is one pool tree with the
//! rules about pools and counts, `update` calls the fair-share crate and moves starvation on, `groups`
//! says which allocations are protected, `plan` chooses what to start and whom to preempt, `snapshot`
//! is what readers see, `explain` answers "why", `invariants` and `check_plan` are what must always
//! hold. [`config`] has all options.
#![forbid(unsafe_code)]

pub mod config;
pub mod explain_pool;
mod figures;
mod messages;
mod options;
mod reasons;

mod preemption;
mod statistics;
mod stored_preemption;

mod scheduler;

mod tree;
mod volumes;

mod allocations;
mod groups;
mod nodes;
mod operations;

mod candidates;
mod plan;
mod update;

mod audit;
mod check_plan;
mod explain;
mod invariants;
mod single_tree;
mod snapshot;
mod stuck;

mod amounts;
mod formula;
mod slab;

pub use allocations::{AllocationState, GroupSizes};
pub use amounts::Amounts;
pub use explain::{
    Advice, Explanation, LOSSES_SHOWN, NO_SLOTS, NodeReasons, Numbers, Starving, TreeExplanation, Verdict,
};
pub use fairshare::IntegralOutput;
pub use figures::PoolFigures;
pub use formula::TagFilter;
pub use messages::*;
pub use nodes::NodeState;
pub use options::OperationOptions;
pub use plan::{Misfit, Plan, PlannedCause, PlannedPreemption, PlannedStart, Refusal, Skipped};
pub use preemption::{
    LimitedElement, Order, PREEMPTION_LOG_LIMIT, Preempt, PreemptionCause, PreemptionGroup, PreemptionKind,
    PreemptionPriority, PreemptionRecord, Preemptor, Stage,
};
pub use reasons::{Deactivation, Unschedulable};
pub use scheduler::Scheduler;
pub use snapshot::{ElementView, PoolLook, Snapshot, Starved, TreeSnapshot};
pub use statistics::{
    HeartbeatStatistics, RunningJobStatistics, StarvationEnd, StarvationIntervals, StarvationNotice,
    TreeMetrics,
};
pub use volumes::PoolVolume;
