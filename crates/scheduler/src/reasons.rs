//! Typed answers to "why not": every refusal of the planner has a name that users can be shown.

use std::fmt;

macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $( $(#[$vdoc:meta])* $variant:ident = $text:literal ),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $( $(#[$vdoc])* $variant ),* }
        impl $name {
            /// All of them, in the order of declaration.
            pub const ALL: &'static [$name] = &[$( $name::$variant ),*];
            /// The public name.
            pub const fn as_str(self) -> &'static str { match self { $( $name::$variant => $text ),* } }
            /// By its public name.
            pub fn parse(name: &str) -> Option<$name> {
                match name { $( $text => Some($name::$variant), )* _ => None }
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.as_str()) }
        }
        impl From<$name> for yson::Value { fn from(x: $name) -> yson::Value { x.as_str().into() } }
    };
}

pub(crate) use reasons;

reasons! {
    /// Why an operation was passed over on a node (scheduling.md 17.4).
    Deactivation {
        /// It is gone or not enabled.
        IsNotAlive = "is_not_alive",
        /// Its filter, or that of a pool above, does not match the node.
        UnmatchedSchedulingTag = "unmatched_scheduling_tag",
        /// Not of the priority of a preemptive stage.
        IsNotEligibleForPreemptiveScheduling = "is_not_eligible_for_preemptive_scheduling",
        /// Not of the priority of the aggressive stage.
        IsNotEligibleForAggressivelyPreemptiveScheduling =
            "is_not_eligible_for_aggressively_preemptive_scheduling",
        /// No group of the controller could use what is available.
        ScheduleAllocationFailed = "schedule_allocation_failed",
        /// A pool without an active operation.
        NoBestLeafDescendant = "no_best_leaf_descendant",
        /// No group fits into the node.
        MinNeededResourcesUnsatisfied = "min_needed_resources_unsatisfied",
        /// Limits of the operation or of a pool above are reached.
        ResourceLimitsExceeded = "resource_limits_exceeded",
        /// It has what it asked for at the last update.
        NoAvailableDemand = "no_available_demand",
        /// Its jobs are too slow in this tentative tree.
        SaturatedInTentativeTree = "saturated_in_tentative_tree",
        /// It was disabled in between.
        OperationDisabled = "operation_disabled",
        /// Packing; never given here.
        BadPacking = "bad_packing",
        /// A graceful operation has its fair share.
        FairShareExceeded = "fair_share_exceeded",
        /// Too many calls to its controller at a time.
        MaxConcurrentScheduleAllocationCallsPerNodeShardViolated =
            "max_concurrent_schedule_allocation_calls_per_node_shard_violated",
        /// Too long calls to its controller.
        MaxConcurrentScheduleAllocationExecDurationPerNodeShardViolated =
            "max_concurrent_schedule_allocation_exec_duration_per_node_shard_violated",
        /// Its controller failed to use a place a moment ago.
        RecentScheduleAllocationFailed = "recent_schedule_allocation_failed",
    }
}

reasons! {
    /// Why an operation does not take part in scheduling at all (scheduling.md 3.3).
    Unschedulable {
        /// Its state is not `running`.
        IsNotRunning = "is_not_running",
        /// It is suspended.
        Suspended = "suspended",
        /// It has started everything that it needs.
        NoPendingAllocations = "no_pending_allocations",
        /// Its controller was called too often.
        MaxScheduleAllocationCallsViolated = "max_schedule_allocation_calls_violated",
        /// Too far behind in a FIFO pool (9.4).
        FifoSchedulableElementCountLimitReached = "fifo_schedulable_element_count_limit_reached",
    }
}
