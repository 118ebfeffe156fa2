//! What follows from the abort of a job, by its reason (jobs-and-nodes.md 6.5). The table in `docs/scheduling.md` is for
//! people; a test compares the two.

use crate::AbortReason;

/// The party that causes an abort.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Blame {
    /// The job's own demands or behaviour.
    Operation,
    /// The node or its host.
    Node,
    /// The server, the scheduler, the loss of a node, or a request of a user.
    Cluster,
}

impl Blame {
    /// The name in the documentation.
    pub const fn as_str(self) -> &'static str {
        match self {
            Blame::Operation => "operation",
            Blame::Node => "node",
            Blame::Cluster => "cluster",
        }
    }
}

/// Consequences of an abort.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Consequences {
    /// The party that causes it.
    pub blame: Blame,
    /// The operation starts no job on the node for a while, and, before the first start of a job of the task, no job of
    /// the task anywhere.
    pub backs_off: bool,
    /// It counts towards the bound on aborts before the first start of a job of the task.
    pub counts_for_operation: bool,
    /// It counts towards the aborts after which the node starts no jobs for a while.
    pub counts_for_node: bool,
}

impl AbortReason {
    /// What follows from an abort with this reason.
    pub const fn consequences(self) -> Consequences {
        match self {
            // The node could not do what every node can.
            AbortReason::Other
            | AbortReason::JobProxyFailed
            | AbortReason::RootVolumePreparationFailed
            | AbortReason::GetSpecFailed => of(Blame::Node, true, true, true),
            // The node was too full, or does not say why: that happens to healthy nodes as well.
            AbortReason::Unknown
            | AbortReason::WaitingTimeout
            | AbortReason::NodeResourceOvercommit => of(Blame::Node, true, true, false),
            AbortReason::AccountLimitExceeded => of(Blame::Operation, true, true, false),
            // The job has run. The next run is given more memory, or thrashes as slowly as this one.
            AbortReason::JobMemoryThrashing => of(Blame::Operation, true, false, false),
            AbortReason::ResourceOverdraft => of(Blame::Operation, false, false, false),
            // Data that the job needs is not there.
            AbortReason::FailedChunks => of(Blame::Cluster, true, true, false),
            AbortReason::None
            | AbortReason::Scheduler
            | AbortReason::Preemption
            | AbortReason::UserRequest
            | AbortReason::NodeOffline
            | AbortReason::RevivalConfirmationTimeout
            | AbortReason::SpeculativeRunWon
            | AbortReason::SpeculativeRunLost
            | AbortReason::NodeBanned
            | AbortReason::NodeWithDisabledJobs
            | AbortReason::NodeFairShareTreeChanged
            | AbortReason::OperationFailed
            | AbortReason::JobRevivalDisabled
            | AbortReason::BannedInTentativeTree
            // The host was restarted, or the order never arrived: the job is lost as with a lost node.
            | AbortReason::DisappearedFromNode
            | AbortReason::Unconfirmed
            | AbortReason::OperationSuspended
            | AbortReason::InterruptionTimeout
            | AbortReason::OperationCompleted
            | AbortReason::OperationAborted
            | AbortReason::OperationFinished
            | AbortReason::InterruptionUnsupported
            | AbortReason::Abandoned
            | AbortReason::JobSettlementTimedOut
            | AbortReason::OperationIncarnationChanged
            | AbortReason::JobCountChangedByUserRequest
            | AbortReason::SchedulingTimeout
            | AbortReason::SchedulingResourceOvercommit
            | AbortReason::SchedulingOperationSuspended
            | AbortReason::SchedulingJobSpecThrottling
            | AbortReason::SchedulingOther
            | AbortReason::SchedulingOperationDisabled
            | AbortReason::SchedulingOperationIsNotAlive => of(Blame::Cluster, false, false, false),
        }
    }
}

const fn of(
    blame: Blame,
    backs_off: bool,
    counts_for_operation: bool,
    counts_for_node: bool,
) -> Consequences {
    Consequences { blame, backs_off, counts_for_operation, counts_for_node }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S12: what nodes cause backs off and is bounded; what they do not cause is neither.
    #[test]
    fn aborts_that_nodes_cause_back_off_and_count() {
        for reason in AbortReason::ALL {
            let found = reason.consequences();
            let of_the_node = found.blame == Blame::Node;
            assert!(!of_the_node || (found.backs_off && found.counts_for_operation), "{reason}");
            assert!(!found.counts_for_operation || found.backs_off, "{reason}: no count without a pause");
            assert!(!found.counts_for_node || of_the_node, "{reason}");
        }
        for reason in [AbortReason::Preemption, AbortReason::NodeOffline, AbortReason::Scheduler] {
            assert_eq!(reason.consequences(), of(Blame::Cluster, false, false, false), "{reason}");
        }
    }

    /// S12: the table for people says the same as the code, of every reason and in the same order.
    #[test]
    fn the_documented_table_of_abort_reasons_is_the_one_of_the_code() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scheduling.md");
        let page = std::fs::read_to_string(path).expect("the page");
        let section = page.split("## Aborted jobs").nth(1).expect("a section \"Aborted jobs\"");
        let section = section.split("\n## ").next().unwrap_or_default();
        let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
        let found: Vec<String> = rows
            .iter()
            .map(|row| {
                row.split('|').map(str::trim).filter(|cell| !cell.is_empty()).take(4).collect::<Vec<_>>()
            })
            .map(|cells| cells.join(" | "))
            .collect();
        let expected: Vec<String> =
            AbortReason::ALL.iter().filter(|r| **r != AbortReason::None).map(row).collect();
        assert_eq!(found, expected, "docs/scheduling.md, section \"Aborted jobs\"");
    }

    fn row(reason: &AbortReason) -> String {
        let Consequences { blame, backs_off, counts_for_operation, counts_for_node } = reason.consequences();
        let counts = match (counts_for_operation, counts_for_node) {
            (true, true) => "operation, node",
            (true, false) => "operation",
            (false, true) => "node",
            (false, false) => "nothing",
        };
        let backs_off = if backs_off { "yes" } else { "no" };
        format!("`{reason}` | {} | {backs_off} | {counts}", blame.as_str())
    }
}
