//! Who gets what: fair-share updates, and starts on nodes with room.

use crate::jobs::Job;
use crate::{Effect, Kernel, Seq};
use controller::{Grant, SettleError};
use scheduler::{SettleFailure, Start, UpdateKind};
use std::sync::Arc;
use vocab::batch::Table;
use vocab::{AllocationId, JobId, JobIdentity, OperationState, Resources, Span, Time, object_type};
use wire::{ServerMessage, StartJob};

/// A node whose disk is too small for a job of an operation is not offered to it for this long.
const TOO_LITTLE_DISK_BACKOFF: Span = Span::from_secs(60);

impl Kernel {
    /// Runs the update that is due, or an extra one that somebody waits for (scheduling.md 5.1).
    pub(crate) fn update_shares(&mut self, now: Time, extra_allowed: bool) -> bool {
        let kind = if now >= self.periodic.update {
            self.periodic.last_update = now;
            self.periodic.update = now + self.scheduler.config().fair_share_update_period;
            UpdateKind::Periodic
        } else if self.pending_work.update && extra_allowed {
            UpdateKind::Extra
        } else {
            return false;
        };
        self.scheduler.update(now, kind);
        let notices = self.scheduler.drain_starvation_notices();
        notices.iter().for_each(|notice| self.log_starvation(notice));
        self.starvations.extend(notices);
        self.pending_work.update = false;
        // More demand than before may count now.
        self.pending_work.schedule = true;
        true
    }

    /// Starts what can be started: on nodes that were heard of, and after a change of demand or shares
    /// on all that have room. Nothing is started before the nodes of the life before are back.
    pub(crate) fn schedule(&mut self, now: Time, out: &mut Vec<Effect>) {
        if !self.nodes.recovered() {
            return;
        }
        let everywhere = std::mem::take(&mut self.pending_work.schedule);
        let heard = std::mem::take(&mut self.pending_work.heard);
        if everywhere {
            self.end_revivals(now, out);
        }
        for node in &heard {
            self.schedule_on(now, node, out);
        }
        if !everywhere {
            return;
        }
        let trees: Vec<Arc<str>> = self.scheduler.tree_names().cloned().collect();
        for tree in trees {
            if !self.scheduler.has_candidates(&tree).unwrap_or(false) {
                continue;
            }
            let nodes: Vec<Arc<str>> = match self.scheduler.nodes_with_room(&tree, Resources::ZERO) {
                Ok(nodes) => nodes.cloned().collect(),
                Err(_) => continue,
            };
            for node in nodes {
                if !heard.contains(&*node) {
                    self.schedule_on(now, &node, out);
                    if !self.scheduler.has_candidates(&tree).unwrap_or(false) {
                        break;
                    }
                }
            }
        }
    }

    fn schedule_on(&mut self, now: Time, node: &str, out: &mut Vec<Effect>) {
        if self.nodes.get(node).is_none_or(|n| n.key.is_none()) {
            return;
        }
        let plan = self.scheduler.plan(now, node);
        let ids = &mut self.ids;
        let starts = self.scheduler.apply(plan, || AllocationId(ids.next(object_type::OTHER)));
        let mut orders = Vec::with_capacity(starts.len());
        let mut after = 0;
        for start in starts {
            if let Some((order, operation_seq)) = self.settle(now, node, start) {
                after = after.max(operation_seq);
                orders.push(order);
            }
        }
        if !orders.is_empty() {
            self.refresh_lease(now, node, orders.iter().any(|order| order.lease.is_some()), out);
            // An order waits until its operation is durable, so that no job runs for an operation
            // that a crash could undo; the job itself needs no record: nodes tell of it.
            self.tell_node(node, ServerMessage::Start(orders), after, out);
        }
        // After the starts: what makes room does not leave before the newcomer is on its way.
        self.carry_out_orders(out);
    }

    /// The controller puts a job into a granted allocation; if it cannot, all is given back.
    fn settle(&mut self, now: Time, node: &str, start: Start) -> Option<(StartJob, Seq)> {
        let tree = self.scheduler.allocation(start.allocation)?.tree;
        let job_id = JobId(self.ids.next(object_type::JOB));
        let capacity = self.nodes.get(node).and_then(|node| node.disk_capacity);
        let Some(operation) = self.operations.get_mut(&start.operation) else {
            self.scheduler.allocation_failed(now, start.allocation, SettleFailure::Other);
            return None;
        };
        let disk = operation.controller.disk_space(start.task);
        if capacity.is_some_and(|capacity| disk > capacity) {
            // Disk is not a resource of the scheduler: it would offer the node again at once.
            self.scheduler.allocation_failed(now, start.allocation, SettleFailure::Other);
            self.scheduler.back_off_on_node(now, start.operation, node, now + TOO_LITTLE_DISK_BACKOFF);
            self.pending_work.demand.insert(start.operation);
            return None;
        }
        let grant = Grant {
            task: start.task,
            allocation_id: start.allocation,
            job_id,
            resources: start.resources,
            tree: &tree,
            node_address: node,
        };
        self.pending_work.dirty.insert(start.operation);
        match operation.controller.settle(now, grant) {
            Ok((identity, description)) => {
                let lease = operation.lease.filter(|_| operation.controller.is_exclusive(&identity.task));
                let job = Job {
                    operation: start.operation,
                    allocation: start.allocation,
                    node: node.to_owned(),
                    pool: operation.in_tree(&tree).map(|t| t.pool.clone()).unwrap_or_default(),
                    resources: start.resources,
                    confirmed: false,
                    stopping: None,
                    lease,
                    unbooked: false,
                };
                let durable = operation.spec_seq.unwrap_or(self.open.seq);
                let uid = Some(operation.uid);
                self.log_start(&identity, &job, now, false);
                self.add_job(job_id, job);
                let has_started_elsewhere = self.has_started_elsewhere(&identity, node);
                let identity = self.with_ticket(identity, node);
                let Start { resources, waiting_timeout, .. } = start;
                let order = StartJob {
                    identity,
                    resources,
                    description,
                    waiting_timeout,
                    has_started_elsewhere,
                    lease,
                    uid,
                };
                Some((order, durable))
            }
            Err(error) => {
                let failure = match error {
                    // The scheduler does not know of bans: it would offer the node again at once.
                    SettleError::NodeBanned(_) => SettleFailure::Backoff,
                    _ => SettleFailure::Other,
                };
                self.scheduler.allocation_failed(now, start.allocation, failure);
                self.pending_work.demand.insert(start.operation);
                None
            }
        }
    }

    /// A job of the same task has started on another node.
    pub(crate) fn has_started_elsewhere(&self, identity: &JobIdentity, node: &str) -> bool {
        let operation = self.operations.get(&identity.operation_id);
        operation.is_some_and(|o| o.controller.has_started_elsewhere(&identity.task, node))
    }

    /// Nodes have come back in any order; groups of preemption go by the start of the jobs, as before
    /// the restart (scheduling.md 21).
    fn order_revived_allocations(&mut self) {
        let mut starts: Vec<_> = self
            .jobs
            .ids()
            .filter_map(|id| {
                let job = self.jobs.get(id)?;
                let view = self.operations.get(&job.operation)?.controller.job(id)?;
                Some((view.start_time(), view.identity().job_index, job.allocation))
            })
            .collect();
        starts.sort_unstable();
        for (_, _, allocation) in starts {
            self.scheduler.allocation_job_started(allocation);
        }
    }

    /// After a restart, when all expected nodes have spoken: what nobody reported is lost.
    fn end_revivals(&mut self, now: Time, out: &mut Vec<Effect>) {
        let first = std::mem::take(&mut self.reviving);
        let held_back = std::mem::take(&mut self.leases.held_back);
        if !first && held_back.is_empty() {
            return;
        }
        let ids: Vec<_> = match first {
            true => self.operations.keys().copied().collect(),
            false => held_back.into_iter().collect(),
        };
        let mut revived = false;
        for id in ids {
            let is_reviving = self.operations.get(&id).is_some_and(|o| o.controller.is_reviving());
            // Its units may run on nodes that have not come back (S19).
            if is_reviving && self.is_held_back(now, id) {
                self.leases.held_back.insert(id);
                continue;
            }
            revived = true;
            self.log_unreported(id, vocab::AbortReason::RevivalConfirmationTimeout);
            let Some(operation) = self.operations.get_mut(&id) else { continue };
            let (verdicts, event) = operation.controller.end_revival(now);
            if operation.state == OperationState::RevivingJobs {
                operation.enter(now, OperationState::Running);
            }
            self.tell_scheduler(|s| s.set_enabled(id, true));
            self.note_merge(id);
            self.pending_work.dirty.insert(id);
            self.pending_work.demand.insert(id);
            for verdict in verdicts {
                self.drop_job(verdict, out);
            }
            match event {
                Some(event) => self.operation_event(now, id, event, out),
                None => self.complete_with_enough_rows(now, id, out),
            }
        }
        if !first && !revived {
            return;
        }
        self.order_revived_allocations();
        if self.leases.held_back.is_empty() {
            self.forget_lost_orders();
        }
        self.advance_operations(now);
        self.scheduler.update(now, UpdateKind::Extra);
    }

    /// Records of operations that have changed in this turn: each part once, however much happened.
    pub(crate) fn persist_operations(&mut self) {
        use crate::records::{
            ARCHIVED, CONTROLLER, DYNAMIC, STATIC, VAULT, dynamic_record, operation_key, static_record,
        };
        for id in std::mem::take(&mut self.pending_work.dirty) {
            let Some(operation) = self.operations.get_mut(&id) else { continue };
            self.alerts_due.insert(id);
            let batch = &mut self.open.batch;
            if operation.spec_seq.is_none() {
                batch.put(Table::Operations, operation_key(id, STATIC, &[]), static_record(operation));
                if let Some(vault) = &operation.secure_vault {
                    let record = yson::to_binary(&vault.clone().into());
                    batch.put(Table::Operations, operation_key(id, VAULT, &[]), record);
                }
                operation.spec_seq = Some(self.open.seq);
            }
            if std::mem::take(&mut operation.dirty) {
                batch.put(Table::Operations, operation_key(id, DYNAMIC, &[]), dynamic_record(operation));
            }
            if std::mem::take(&mut operation.has_archived) {
                let bytes = operation.archived_bytes.to_be_bytes();
                batch.put(Table::Operations, operation_key(id, ARCHIVED, &[]), bytes);
            }
            for part in operation.controller.take_dirty() {
                let key = operation_key(id, CONTROLLER, &part.part.to_be_bytes());
                batch.put(Table::Operations, key, part.bytes);
            }
        }
    }
}
