//! What must hold between any two turns, by name. One definition for tests, the simulator and the
//! debug mode of the server; everything is compared with everything, so this is slow.

use crate::Kernel;
use crate::operation::Operation;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{AllocationId, JobId};

impl Kernel {
    /// Violated invariants: name, then what was found. Empty if all is well.
    ///
    /// - `KERNEL-1`: no unit of work has two jobs, unless one is the copy of the other, and never three.
    /// - `KERNEL-5`: kernel, controllers, nodes and scheduler speak of the same jobs and allocations.
    /// - `KERNEL-6`: an operation is either unfinished or in the archive, and an alias leads to one.
    /// - `KERNEL-7`: once all nodes are back, an order to give way stands for every allocation that the
    ///   scheduler has taken away, and for none that is gone.
    /// - `KERNEL-8`: no node owes the end of a job that runs.
    /// - `KERNEL-9`: what accounts use, how many transactions and locks users have, and which contents transactions and
    ///   unfinished operations need, is what a recount finds. Each content that is kept is charged to an account.
    /// - `AUDIT`: what the audit in production has found.
    /// - `SCHED-*`: those of the scheduler.
    pub fn check_invariants(&self) -> Vec<String> {
        let mut found = self.scheduler.check_invariants();
        self.check_units(&mut found);
        self.check_jobs(&mut found);
        self.check_operations(&mut found);
        self.check_orders(&mut found);
        let held = self.operations.values().flat_map(Operation::holds);
        found.extend(self.tree.check_sums(held).into_iter().map(|text| format!("KERNEL-9: {text}")));
        found.extend(self.audit.found().map(|text| format!("AUDIT: {text}")));
        found
    }

    fn check_units(&self, found: &mut Vec<String>) {
        let mut units: BTreeMap<_, JobId> = BTreeMap::new();
        for operation in self.operations.values() {
            for view in operation.controller.running_jobs() {
                let identity = view.identity();
                let unit = (identity.operation_id, identity.task.as_ref(), identity.cookie);
                // The copy of a slow job has the id of that job for its competition's, and so has that job.
                let role = view.competition().map(|original| original == identity.job_id);
                let unit = (unit, role);
                if let Some(other) = units.insert(unit, identity.job_id) {
                    found.push(format!("KERNEL-1: unit {unit:?} has jobs {other} and {}", identity.job_id));
                }
            }
        }
    }

    fn check_jobs(&self, found: &mut Vec<String>) {
        let known: BTreeSet<JobId> = self.jobs.ids().collect();
        let of_controllers: BTreeSet<JobId> = self
            .operations
            .values()
            .flat_map(|o| o.controller.running_jobs().map(|view| view.identity().job_id))
            .collect();
        let on_nodes: BTreeSet<JobId> = self.nodes.iter().flat_map(|n| n.jobs.iter().copied()).collect();
        for (what, others) in [("controllers", &of_controllers), ("nodes", &on_nodes)] {
            for job in known.symmetric_difference(others) {
                let side = if known.contains(job) { "only the kernel" } else { what };
                found.push(format!(
                    "KERNEL-5: {side} knows job {job}, and the other of kernel and {what} does not"
                ));
            }
        }
        for id in &known {
            let Some(job) = self.jobs.get(*id) else { continue };
            if self.jobs.by_allocation(job.allocation) != Some(*id) {
                found.push(format!("KERNEL-5: allocation {} does not lead to its job {id}", job.allocation));
            }
            if !self.operations.contains_key(&job.operation) {
                found.push(format!("KERNEL-5: job {id} of operation {}, which is not there", job.operation));
            }
        }
        for id in self.owed.jobs().filter(|id| known.contains(id)) {
            found.push(format!("KERNEL-8: the end of job {id}, which runs, is owed"));
        }
        for operation in self.operations.keys() {
            let booked = self.scheduler.allocations_of(*operation).unwrap_or_default();
            for allocation in booked.into_iter().filter(|a| self.jobs.by_allocation(*a).is_none()) {
                found.push(format!("KERNEL-5: allocation {allocation} of operation {operation} has no job"));
            }
        }
    }

    fn check_orders(&self, found: &mut Vec<String>) {
        if self.reviving || !self.leases.held_back.is_empty() {
            return;
        }
        let leaving = |a: &AllocationId| self.scheduler.allocation(*a).is_some_and(|a| a.preempted.is_some());
        for allocation in self.jobs.ids().filter_map(|id| Some(self.jobs.get(id)?.allocation)) {
            if leaving(&allocation) && self.preemptions.standing(allocation).is_none() {
                found.push(format!("KERNEL-7: allocation {allocation} is on its way out, and has no order"));
            }
        }
        for allocation in self.preemptions.allocations() {
            if self.jobs.by_allocation(allocation).is_none() {
                found.push(format!("KERNEL-7: an order stands for allocation {allocation}, which is gone"));
            }
        }
    }

    fn check_operations(&self, found: &mut Vec<String>) {
        for operation in self.operations.values() {
            if self.finished.contains(operation.id) || operation.state.is_finished() {
                found.push(format!("KERNEL-6: operation {} is both finished and not", operation.id));
            }
        }
        for (alias, id) in &self.aliases {
            if !self.operations.contains_key(id) && !self.finished.contains(*id) {
                found.push(format!("KERNEL-6: alias {alias} leads to {id}, which is not there"));
            }
        }
    }
}
