//! An operation's specification as the scheduler and access control want it.

use crate::Kernel;
use scheduler::{OperationDesc, RuntimeParameters, TreeParameters};
use vocab::{Failure, OperationId, OperationType, Time};

impl Kernel {
    /// Options of an operation that the scheduler takes apart from its description.
    pub(crate) fn pass_options(&mut self, id: OperationId) {
        let Some(operation) = self.operations.get(&id) else { return };
        let options = scheduler::OperationOptions {
            enable_limiting_ancestor_check: operation.spec.spec.scheduling.enable_limiting_ancestor_check,
            ..scheduler::OperationOptions::default()
        };
        self.tell_scheduler(|s| s.set_operation_options(id, options));
    }

    /// Refuses jobs that ask for more disk than any node has (S4). As long as no node is known, or one does not count
    /// disk, every request is accepted.
    pub(crate) fn refuse_too_much_disk(&self, parsed: &controller::spec::ParsedSpec) -> Result<(), Failure> {
        let known = self.nodes.iter().filter(|node| node.register_time > Time::ZERO);
        let largest = known.map(|node| (node.disk_capacity.unwrap_or(i64::MAX), &node.address)).max();
        let Some((most, node)) = largest.filter(|_| self.nodes.recovered()) else { return Ok(()) };
        for task in &parsed.spec.tasks {
            let Some(found) = task.script.disk.0.filter(|found| *found > most) else { continue };
            let given = parsed.provided.get("tasks").and_then(|tasks| tasks.get(&task.name));
            let (given, at) = match parsed.spec.operation_type {
                OperationType::Vanilla => (given, format!("/tasks/{}", task.name)),
                _ => (parsed.provided.get("mapper"), "/mapper".to_owned()),
            };
            let field = match given.and_then(|given| given.get("disk_space_limit")) {
                Some(_) => "disk_space_limit",
                None => "disk_request/disk_space",
            };
            let path = format!("{at}/{field}");
            let text = format!(
                "{path}: expected at most {most}, the bytes of disk that node {node:?} has and no node has more of, \
                 found {found}"
            );
            return Err(Failure::new("Error parsing operation spec").because(
                Failure::new(text).with("path", path).with("max_disk_space", most).with("disk_space", found),
            ));
        }
        Ok(())
    }

    /// Everything that the scheduler must know of a spec.
    pub(crate) fn describe_for_scheduler(
        &self,
        id: OperationId,
        user: &str,
        start_time: Time,
        parsed: &controller::spec::ParsedSpec,
    ) -> Result<OperationDesc, Failure> {
        let options = &parsed.spec.scheduling;
        let default_tree = self.default_tree();
        let names: Vec<String> = options.pool_trees.clone().unwrap_or_else(|| vec![default_tree]);
        let amounts = |limits: &controller::spec::ResourceLimits| {
            let mut out = scheduler::Amounts::default();
            for r in vocab::RESOURCES {
                if let Some(raw) = limits.raw(r) {
                    out.set(r, Some(raw));
                }
            }
            out
        };
        let filter = match &options.scheduling_tag_filter {
            Some(text) => scheduler::TagFilter::parse(text).map_err(|e| {
                Failure::new(format!("/scheduling_tag_filter: {e}")).with("path", "/scheduling_tag_filter")
            })?,
            None => scheduler::TagFilter::default(),
        };
        let trees = names
            .iter()
            .map(|tree| {
                let own = options.per_tree.iter().find(|(name, _)| name == tree).map(|(_, o)| o);
                let limits = own.and_then(|o| o.resource_limits).or(options.common.resource_limits);
                TreeParameters {
                    tree: tree.clone(),
                    pool: own.and_then(|o| o.pool.clone()).or_else(|| options.pool.clone()),
                    parameters: RuntimeParameters {
                        weight: own.and_then(|o| o.weight).or(options.common.weight),
                        resource_limits: limits.as_ref().map(amounts).unwrap_or_default(),
                        scheduling_tag_filter: filter.clone(),
                    },
                    tentative: options.tentative_pool_trees.contains(tree),
                    slot_index: None,
                    was_running: false,
                }
            })
            .collect();
        let common = &options.common;
        Ok(OperationDesc {
            id,
            user: user.to_owned(),
            operation_type: parsed.spec.operation_type,
            title: parsed.spec.root.title.clone(),
            start_time,
            is_gang: options.is_gang || parsed.spec.tasks.iter().any(|t| t.gang_size.is_some()),
            preemption_mode: match options.preemption_mode {
                controller::spec::PreemptionMode::Normal => scheduler::PreemptionMode::Normal,
                controller::spec::PreemptionMode::Graceful => scheduler::PreemptionMode::Graceful,
            },
            apply_specified_resource_limits_to_demand: options.apply_specified_resource_limits_to_demand,
            erase_trees_with_pool_limit_violations: options.erase_trees_with_pool_limit_violations,
            require_specified_pools_existence: options.require_specified_pools_existence,
            fair_share_starvation_timeout: common.fair_share_starvation_timeout,
            fair_share_starvation_tolerance: common.fair_share_starvation_tolerance,
            non_preemptible_resource_usage_threshold: common
                .non_preemptible_resource_usage_threshold
                .as_ref()
                .map(amounts),
            waiting_job_timeout: options.waiting_job_timeout,
            allocation_preemption_timeout: options.allocation_preemption_timeout,
            allocation_graceful_preemption_timeout: options.allocation_graceful_preemption_timeout,
            trees,
        })
    }
}
