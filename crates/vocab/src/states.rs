//! States and reasons, with the public names (lower snake case) and the public numbers.

use std::fmt;
use std::str::FromStr;

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $( $(#[$vdoc:meta])* $variant:ident = $text:literal ),* $(,)? }) => {
        $(#[$doc])*
        #[allow(missing_docs)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $( $(#[$vdoc])* $variant ),* }
        impl $name {
            /// All values, in the order of declaration.
            pub const ALL: &'static [$name] = &[$( $name::$variant ),*];
            /// The public name.
            pub const fn as_str(self) -> &'static str { match self { $( $name::$variant => $text ),* } }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.as_str()) }
        }
        impl FromStr for $name {
            type Err = UnknownName;
            fn from_str(text: &str) -> Result<$name, UnknownName> {
                match text {
                    $( $text => Ok($name::$variant), )*
                    _ => Err(UnknownName {
                        what: stringify!($name), text: text.chars().take(100).collect(),
                        allowed: &[$( $text ),*],
                    }),
                }
            }
        }
        impl From<$name> for yson::Value { fn from(x: $name) -> yson::Value { x.as_str().into() } }
    };
}

/// A name that is not in the list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Unknown {what} {text:?}: expected one of {allowed:?}")]
pub struct UnknownName {
    /// What was being parsed.
    pub what: &'static str,
    /// What was found.
    pub text: String,
    /// What is allowed.
    pub allowed: &'static [&'static str],
}

names! {
    /// Types of operations. Only those that are implemented can be started.
    OperationType {
        Vanilla = "vanilla", Map = "map", Merge = "merge", Sort = "sort", Reduce = "reduce",
        MapReduce = "map_reduce", JoinReduce = "join_reduce", Erase = "erase", RemoteCopy = "remote_copy",
    }
}
names! {
    /// Life of an operation, in the order of a normal life (scheduling.md 3.1).
    OperationState {
        None = "none", Starting = "starting", Orphaned = "orphaned", WaitingForAgent = "waiting_for_agent",
        Initializing = "initializing", Preparing = "preparing", Materializing = "materializing",
        ReviveInitializing = "revive_initializing", Reviving = "reviving", RevivingJobs = "reviving_jobs",
        Pending = "pending", Running = "running", Completing = "completing", Completed = "completed",
        Aborting = "aborting", Aborted = "aborted", Failing = "failing", Failed = "failed",
    }
}
impl OperationState {
    /// Completed, failed or aborted.
    pub fn is_finished(self) -> bool {
        matches!(self, OperationState::Completed | OperationState::Aborted | OperationState::Failed)
    }
    /// On the way to a finished state.
    pub fn is_finishing(self) -> bool {
        matches!(self, OperationState::Completing | OperationState::Aborting | OperationState::Failing)
    }
}
names! {
    /// States of a job (http-api.md 10.1).
    JobState {
        None = "none", Waiting = "waiting", Running = "running", Aborting = "aborting",
        Completed = "completed", Failed = "failed", Aborted = "aborted", Lost = "lost",
    }
}
impl JobState {
    /// Over, whatever the outcome.
    pub fn is_finished(self) -> bool {
        matches!(self, JobState::Completed | JobState::Failed | JobState::Aborted | JobState::Lost)
    }
}
names! {
    /// Where a job is in its life on the node (jobs-and-nodes.md 3.7).
    JobPhase {
        Created = "created", PreparingNodeDirectory = "preparing_node_directory",
        DownloadingArtifacts = "downloading_artifacts",
        PreparingSandboxDirectories = "preparing_sandbox_directories",
        PreparingRootVolume = "preparing_root_volume", RunningSetupCommands = "running_setup_commands",
        SpawningJobProxy = "spawning_job_proxy", PreparingArtifacts = "preparing_artifacts",
        PreparingJob = "preparing_job", Running = "running", FinalizingJobProxy = "finalizing_job_proxy",
        WaitingForCleanup = "waiting_for_cleanup", Cleanup = "cleanup", Finished = "finished",
    }
}
names! {
    /// Why a job was aborted (jobs-and-nodes.md 6.5).
    AbortReason {
        None = "none", Scheduler = "scheduler", FailedChunks = "failed_chunks",
        ResourceOverdraft = "resource_overdraft", Other = "other", Preemption = "preemption",
        UserRequest = "user_request", NodeOffline = "node_offline", WaitingTimeout = "waiting_timeout",
        AccountLimitExceeded = "account_limit_exceeded", GetSpecFailed = "get_spec_failed",
        Unknown = "unknown", RevivalConfirmationTimeout = "revival_confirmation_timeout",
        SpeculativeRunWon = "speculative_run_won", SpeculativeRunLost = "speculative_run_lost",
        NodeBanned = "node_banned", NodeWithDisabledJobs = "node_with_disabled_jobs",
        NodeFairShareTreeChanged = "node_fair_share_tree_changed", OperationFailed = "operation_failed",
        JobRevivalDisabled = "job_revival_disabled", BannedInTentativeTree = "banned_in_tentative_tree",
        DisappearedFromNode = "disappeared_from_node", Unconfirmed = "unconfirmed",
        OperationSuspended = "operation_suspended", JobProxyFailed = "job_proxy_failed",
        InterruptionTimeout = "interruption_timeout", NodeResourceOvercommit = "node_resource_overcommit",
        OperationCompleted = "operation_completed", OperationAborted = "operation_aborted",
        OperationFinished = "operation_finished", JobMemoryThrashing = "job_memory_thrashing",
        InterruptionUnsupported = "interruption_unsupported",
        Abandoned = "abandoned", JobSettlementTimedOut = "job_settlement_timed_out",
        RootVolumePreparationFailed = "root_volume_preparation_failed",
        OperationIncarnationChanged = "operation_incarnation_changed",
        JobCountChangedByUserRequest = "job_count_changed_by_user_request",
        SchedulingTimeout = "scheduling_timeout",
        SchedulingResourceOvercommit = "scheduling_resource_overcommit",
        SchedulingOperationSuspended = "scheduling_operation_suspended",
        SchedulingJobSpecThrottling = "scheduling_job_spec_throttling", SchedulingOther = "scheduling_other",
        SchedulingOperationDisabled = "scheduling_operation_disabled",
        SchedulingOperationIsNotAlive = "scheduling_operation_is_not_alive",
    }
}
impl AbortReason {
    /// The job never started on a node.
    pub fn is_scheduling(self) -> bool {
        self.as_str().starts_with("scheduling_")
    }
}
names! {
    /// Why a job was interrupted (jobs-and-nodes.md 6.5).
    InterruptionReason {
        None = "none", Preemption = "preemption", UserRequest = "user_request", JobSplit = "job_split",
        Unknown = "unknown", JobsDisabledOnNode = "jobs_disabled_on_node",
    }
}
