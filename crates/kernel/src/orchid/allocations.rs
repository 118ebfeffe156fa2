//! Allocations in the Orchid, of our own: who holds what on which node, and who would have to give way
//! (scheduling.md 7).

use crate::Kernel;
use crate::jobs::Job;
use vocab::{JobId, JobState, Time};
use yson::{Map, Value};

impl Kernel {
    /// `pool_trees/<tree>/allocations`: lists by node, of the nodes that have any.
    pub(super) fn allocations_of_tree(&self, now: Time, tree: &str) -> Value {
        let nodes = self.nodes.iter().filter(|node| !node.jobs.is_empty());
        let all: Map = nodes
            .filter_map(|node| {
                let rows = self.allocation_rows(now, &node.jobs, Some(tree));
                (!rows.is_empty()).then(|| (node.address.as_str(), Value::List(rows)))
            })
            .collect();
        all.into()
    }

    /// `nodes/<address>/allocations`.
    pub(super) fn allocations_on_node(&self, now: Time, address: &str) -> Option<Value> {
        let node = self.nodes.get(address)?;
        Some(Value::List(self.allocation_rows(now, &node.jobs, None)))
    }

    fn allocation_rows<'a>(
        &self,
        now: Time,
        jobs: impl IntoIterator<Item = &'a JobId>,
        tree: Option<&str>,
    ) -> Vec<Value> {
        let rows = jobs.into_iter().filter_map(|id| self.allocation_row(now, *id, self.jobs.get(*id)?, tree));
        rows.map(Value::from).collect()
    }

    fn allocation_row(&self, now: Time, id: JobId, job: &Job, tree: Option<&str>) -> Option<Map> {
        let allocation = self.scheduler.allocation(job.allocation)?;
        if tree.is_some_and(|tree| *allocation.tree != *tree) {
            return None;
        }
        let view = self.operations.get(&job.operation)?.controller.job(id)?;
        let leaving = allocation.preempted.is_some() || job.stopping.is_some();
        let state = match view.state() {
            JobState::Waiting => "waiting",
            _ if leaving => "finishing",
            _ => "running",
        };
        let preemptor = allocation.preempted.as_ref().and_then(|p| p.cause.preemptor()).map(|p| p.operation);
        Some(
            yson::map! {
                "id" => job.allocation,
                "job_id" => id,
                "operation_id" => job.operation,
                "task_name" => view.identity().task.as_ref(),
                "pool" => job.pool.as_str(),
                "pool_tree" => &*allocation.tree,
                "state" => state,
                "resources" => allocation.resource_usage.to_value(),
                "group" => allocation.group.as_str(),
                "start_time" => view.start_time(),
                "age" => now.since(view.start_time()).as_millis() as i64,
                "preempting" => leaving,
            }
            .with_some("preempted_for", preemptor),
        )
    }
}
