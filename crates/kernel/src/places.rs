//! Allocations that outlive their jobs (jobs-and-nodes.md 6.9). A gang begins anew where it was: the allocations
//! of jobs that are aborted with it stay, and get the next runs. And an operation may want the allocation of a
//! job that has completed for the next job of the task.

use crate::jobs::Job;
use crate::nodes::Node;
use crate::{Effect, Kernel};
use controller::{Grant, JobVerdict, Reuse};
use std::collections::BTreeMap;
use vocab::{JobId, JobOutcome, OperationId, Time, object_type};
use wire::{ServerMessage, StartJob};

impl Kernel {
    /// Jobs that were given up with another one's end; what may begin anew in their places does.
    pub(crate) fn begin_anew(
        &mut self,
        now: Time,
        operation: OperationId,
        others: Vec<JobVerdict>,
        reuse: Vec<Reuse>,
        out: &mut Vec<Effect>,
    ) {
        // A suspended operation starts nothing; its jobs wait like all others.
        let goes_on = self.operations.get(&operation).is_some_and(|o| !o.suspended);
        let reuse: BTreeMap<JobId, Reuse> =
            reuse.into_iter().filter(|_| goes_on).map(|r| (r.job_id, r)).collect();
        // All of the old ones first: their nodes need the room for the new ones.
        let mut places = Vec::new();
        for other in others {
            let job_id = other.record.identity.job_id;
            match reuse.get(&job_id).filter(|_| self.keeps_its_place(job_id)) {
                None => self.drop_job(other, out),
                Some(unit) => {
                    let vacated = self.give_up_job(other, out);
                    places.extend(vacated.map(|place| (place, *unit)));
                }
            }
        }
        places.sort_by_key(|(_, unit)| (unit.task, unit.cookie));
        for (place, unit) in places {
            self.start_again(now, operation, place, unit, out);
        }
    }

    /// The place of a job that has ended, if another of its operation may follow it there.
    pub(crate) fn keep_place(&mut self, job_id: JobId, outcome: &JobOutcome) -> Option<Job> {
        let operation = self.operations.get(&self.jobs.get(job_id)?.operation)?;
        let wanted = operation.controller.keeps_allocations() && !operation.suspended;
        let stays = wanted && matches!(outcome, JobOutcome::Completed { .. }) && self.keeps_its_place(job_id);
        stays.then(|| self.vacate(job_id)).flatten()
    }

    /// Such a place is used, or left.
    pub(crate) fn follow(&mut self, now: Time, place: Job, next: Option<Reuse>, out: &mut Vec<Effect>) {
        match next {
            Some(unit) => self.start_again(now, place.operation, place, unit, out),
            None => self.leave_place(&place),
        }
    }

    /// Is the allocation of this job still the operation's, as large as it was given, and on a node that starts
    /// jobs?
    fn keeps_its_place(&self, job_id: JobId) -> bool {
        let Some(job) = self.jobs.get(job_id).filter(|job| job.stopping.is_none()) else { return false };
        let stays = self.scheduler.allocation(job.allocation).is_some_and(|a| a.preempted.is_none());
        // Cores that its monitor has given back are somebody else's by now.
        let whole =
            self.scheduler.allocation_held(job.allocation).is_some_and(|h| h.cpu >= job.resources.cpu);
        stays && whole && self.nodes.get(&job.node).is_some_and(Node::may_start_jobs)
    }

    fn start_again(&mut self, now: Time, id: OperationId, place: Job, unit: Reuse, out: &mut Vec<Effect>) {
        let job_id = JobId(self.ids.next(object_type::JOB));
        let tree = self.scheduler.allocation(place.allocation).map(|a| a.tree.to_string());
        let settled = match (self.operations.get_mut(&id), &tree) {
            (Some(operation), Some(tree)) => {
                let grant = Grant {
                    task: unit.task,
                    allocation_id: place.allocation,
                    job_id,
                    resources: place.resources,
                    tree,
                    node_address: &place.node,
                };
                let durable = operation.spec_seq.unwrap_or(self.open.seq);
                let uid = operation.uid;
                operation
                    .controller
                    .settle_again(now, grant, unit.cookie)
                    .ok()
                    .map(|settled| (settled, durable, uid))
            }
            _ => None,
        };
        let Some(((identity, description), durable, uid)) = settled else {
            // It needs more than it had, or the operation has ended.
            self.leave_place(&place);
            return;
        };
        // What the job before had grown to has gone with it.
        self.scheduler.allocation_usage(place.allocation, place.resources);
        let (node, resources) = (place.node.clone(), place.resources);
        let job = Job { confirmed: false, stopping: None, unbooked: false, ..place };
        let lease = job.lease;
        self.log_start(&identity, &job, now, false);
        self.add_job(job_id, job);
        // It waits for the end of the job before it, and for nobody else: as long as its node likes.
        let has_started_elsewhere = self.has_started_elsewhere(&identity, &node);
        let identity = self.with_ticket(identity, &node);
        let order = StartJob {
            identity,
            resources,
            description,
            waiting_timeout: None,
            has_started_elsewhere,
            lease,
            uid: Some(uid),
        };
        self.refresh_lease(now, &node, lease.is_some(), out);
        self.tell_node(&node, ServerMessage::Start(vec![order]), durable, out);
    }
}
