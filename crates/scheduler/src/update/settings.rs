//! Settings that elements inherit from their parents (scheduling.md 6.2).

use crate::amounts::Amounts;
use crate::config::{PoolConfig, TreeConfig};
use crate::messages::OperationDesc;
use vocab::{RESOURCES, Span};

/// Effective settings of an element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Settings {
    pub fair_share_starvation_tolerance: f64,
    pub fair_share_starvation_timeout: Span,
    pub aggressive_starvation_enabled: bool,
    pub non_preemptible_resource_usage_threshold: Amounts,
    pub aggressive_preemption_allowed: bool,
    pub waiting_for_resources_on_node_timeout: Option<Span>,
}

impl Settings {
    pub fn of_root(tree: &TreeConfig) -> Settings {
        Settings {
            fair_share_starvation_tolerance: tree.fair_share_starvation_tolerance,
            fair_share_starvation_timeout: tree.fair_share_starvation_timeout,
            aggressive_starvation_enabled: tree.enable_aggressive_starvation,
            non_preemptible_resource_usage_threshold: tree.non_preemptible_resource_usage_threshold,
            aggressive_preemption_allowed: true,
            waiting_for_resources_on_node_timeout: tree.waiting_for_resources_on_node_timeout,
        }
    }

    /// A pool's own setting, else that of its parent.
    pub fn of_pool(parent: &Settings, pool: &PoolConfig) -> Settings {
        Settings {
            fair_share_starvation_tolerance: pool
                .fair_share_starvation_tolerance
                .unwrap_or(parent.fair_share_starvation_tolerance),
            fair_share_starvation_timeout: pool
                .fair_share_starvation_timeout
                .unwrap_or(parent.fair_share_starvation_timeout),
            aggressive_starvation_enabled: pool
                .enable_aggressive_starvation
                .unwrap_or(parent.aggressive_starvation_enabled),
            non_preemptible_resource_usage_threshold: pool
                .non_preemptible_resource_usage_threshold
                .unwrap_or(parent.non_preemptible_resource_usage_threshold),
            aggressive_preemption_allowed: pool
                .allow_aggressive_preemption
                .unwrap_or(parent.aggressive_preemption_allowed),
            waiting_for_resources_on_node_timeout: pool
                .waiting_for_resources_on_node_timeout
                .or(parent.waiting_for_resources_on_node_timeout),
        }
    }

    /// An operation can only be more modest than its pool.
    pub fn of_operation(parent: &Settings, desc: &OperationDesc, tree: &TreeConfig) -> Settings {
        let mut threshold = parent.non_preemptible_resource_usage_threshold;
        if let Some(own) = desc.non_preemptible_resource_usage_threshold {
            for r in RESOURCES {
                let smaller = match (own.get(r), threshold.get(r)) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
                threshold.set(r, smaller);
            }
        }
        let tolerance = parent.fair_share_starvation_tolerance;
        let timeout = parent.fair_share_starvation_timeout;
        Settings {
            fair_share_starvation_tolerance: desc
                .fair_share_starvation_tolerance
                .map_or(tolerance, |own| own.min(tolerance)),
            fair_share_starvation_timeout: desc
                .fair_share_starvation_timeout
                .map_or(timeout, |own| own.max(timeout)),
            non_preemptible_resource_usage_threshold: threshold,
            aggressive_preemption_allowed: parent.aggressive_preemption_allowed
                && (!desc.is_gang || tree.allow_aggressive_preemption_for_gang_operations),
            waiting_for_resources_on_node_timeout: desc
                .waiting_job_timeout
                .or(parent.waiting_for_resources_on_node_timeout),
            ..*parent
        }
    }
}
