//! What nodes report about jobs, and what follows: the controller decides about the unit of work,
//! the scheduler gets the place back, the archive gets the record, the node may forget.

use crate::job_archive::{FailContext, Left, Stderr};
use crate::{Effect, Kernel, Seq, Topic};
use controller::{AdoptError, FinishedJob, HeldJob};
use cypress::Chunk;
use scheduler::{RevivedAllocation, SettleFailure};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use vocab::planted::{Bug, strikes};
use vocab::{
    AbortReason, AllocationId, Failure, InterruptionReason, JobId, JobOutcome, JobPhase, ObjectId,
    OperationId, Resources, Span, Time, code,
};
use wire::{AbortJob, JobEvent, JobReport, ServerMessage};

/// Jobs that run, and ends that nodes may report again.
#[derive(Default)]
pub(crate) struct Jobs {
    by_id: BTreeMap<JobId, Job>,
    by_allocation: BTreeMap<AllocationId, JobId>,
    /// Long stderrs that arrived before the end of their job: size and blob.
    pub uploaded: BTreeMap<JobId, (u64, u64)>,
    /// What failed jobs were reading, before their end.
    fail_contexts: BTreeMap<JobId, FailContext>,
    /// Rows that arrived before the end of their job, by output table.
    outputs: BTreeMap<JobId, BTreeMap<u32, Uploaded>>,
}

/// Rows that a running job has written to an output table.
#[derive(Clone)]
pub(crate) struct Uploaded {
    pub chunk: Chunk,
    /// Transaction and table that the account is charged for; `None` if the job was not known when they came.
    pub place: Option<(ObjectId, ObjectId)>,
}

/// Where a job runs and for whom.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub operation: OperationId,
    pub allocation: AllocationId,
    pub node: String,
    pub pool: String,
    /// What it was granted.
    pub resources: Resources,
    /// Its node has spoken of it: the order has arrived.
    pub confirmed: bool,
    /// Told to stop, and why: its end will be counted so.
    pub stopping: Option<AbortReason>,
    /// How long it may go on without word from the server; `None` if its unit may run twice at once.
    pub lease: Option<Span>,
    /// Its node was lost, and the scheduler has taken its allocation back; the job waits for the end of its lease.
    pub unbooked: bool,
}

impl Jobs {
    pub fn get(&self, job: JobId) -> Option<&Job> {
        self.by_id.get(&job)
    }
    pub fn ids(&self) -> impl Iterator<Item = JobId> {
        self.by_id.keys().copied()
    }
    /// Rows that a job has written to a table; those that came before are given back.
    pub fn keep_output(&mut self, job: JobId, table: u32, uploaded: Uploaded) -> Option<Uploaded> {
        self.outputs.entry(job).or_default().insert(table, uploaded)
    }
    /// What a job was reading when it failed; what came before is given back.
    pub fn keep_fail_context(&mut self, job: JobId, context: FailContext) -> Option<FailContext> {
        self.fail_contexts.insert(job, context)
    }
    /// What has come of a job.
    pub fn output(&self, job: JobId) -> Cow<'_, BTreeMap<u32, Uploaded>> {
        self.outputs.get(&job).map_or_else(Cow::default, Cow::Borrowed)
    }
    fn confirm(&mut self, job: JobId) {
        if let Some(job) = self.by_id.get_mut(&job) {
            job.confirmed = true;
        }
    }
    pub fn unbook(&mut self, job: JobId) {
        if let Some(job) = self.by_id.get_mut(&job) {
            job.unbooked = true;
        }
    }
    pub fn by_allocation(&self, allocation: AllocationId) -> Option<JobId> {
        self.by_allocation.get(&allocation).copied()
    }
}

impl Kernel {
    /// A started or adopted job.
    pub(crate) fn add_job(&mut self, job_id: JobId, job: Job) {
        if let Some(node) = self.nodes.get_mut(&job.node) {
            node.jobs.insert(job_id);
        }
        self.jobs.by_allocation.insert(job.allocation, job_id);
        self.jobs.by_id.insert(job_id, job);
    }

    /// The place of a job is free again. Nothing happens if it was freed before.
    pub(crate) fn release_job(&mut self, job_id: JobId) -> Option<Job> {
        let job = self.vacate(job_id)?;
        self.leave_place(&job);
        Some(job)
    }

    /// The place that a job had is free.
    pub(crate) fn leave_place(&mut self, place: &Job) {
        self.scheduler.allocation_finished(place.allocation);
        self.forget_order(place.allocation);
        self.pending_work.heard.insert(place.node.as_str().into());
    }

    /// The job is gone from its place, which is not free yet.
    pub(crate) fn vacate(&mut self, job_id: JobId) -> Option<Job> {
        let job = self.jobs.by_id.remove(&job_id)?;
        self.end_job_history(self.events.now(), job_id);
        self.jobs.by_allocation.remove(&job.allocation);
        if let Some(node) = self.nodes.get_mut(&job.node)
            && !strikes(Bug::NodeKeepsJob, 10)
        {
            node.jobs.remove(&job_id);
        }
        Some(job)
    }

    pub(crate) fn job_events(
        &mut self,
        now: Time,
        address: &str,
        events: Vec<JobEvent>,
        out: &mut Vec<Effect>,
    ) {
        for event in events {
            match event {
                JobEvent::Started { job_id, .. } | JobEvent::ResourceUsage { job_id, .. }
                    if self.is_foreign_report(now, address, job_id) => {}
                JobEvent::Started { job_id, start_time, slot_index } => {
                    self.waits_no_more(address, job_id);
                    self.jobs.confirm(job_id);
                    if let Some(operation) = self.operation_of(job_id) {
                        operation.controller.job_started(job_id, start_time);
                        operation.controller.job_placed(job_id, slot_index);
                        // That a job of its task has started is written with the next change: a job that runs tells
                        // it again after a restart.
                    }
                }
                JobEvent::ResourceUsage { job_id, resource_usage } => {
                    if let Some(job) = self.jobs.get(job_id) {
                        let held = self.scheduler.allocation_held(job.allocation);
                        self.scheduler.allocation_usage(job.allocation, resource_usage);
                        // What it has given back may be enough for somebody else.
                        if held.is_some_and(|held| !resource_usage.dominates(&held)) {
                            self.pending_work.heard.insert(address.into());
                        }
                    }
                }
                JobEvent::Finished(finished) => self.job_finished(now, address, *finished, out),
            }
        }
    }

    /// The end of a job, perhaps reported for the second time.
    pub(crate) fn job_finished(
        &mut self,
        now: Time,
        address: &str,
        mut finished: wire::FinishedJob,
        out: &mut Vec<Effect>,
    ) {
        let job_id = finished.identity.job_id;
        self.waits_no_more(address, job_id);
        if self.is_foreign_report(now, address, job_id) {
            // The sender may forget it: nothing comes of it.
            return self.release_report(address, job_id);
        }
        if self.node_of_job(job_id).is_some() || self.is_job_of(&finished.identity, address) {
            self.note_stop_by_lease(now, address, job_id, &finished.outcome);
        }
        self.lift_fence(job_id);
        let uploaded = self.jobs.uploaded.remove(&job_id).map(|(size, blob)| Stderr::Blob(size, blob));
        let inline = finished.stderr.take().map(Stderr::Inline);
        let mut left =
            Left { stderr: uploaded.or(inline), fail_context: self.jobs.fail_contexts.remove(&job_id) };
        if let Some(record) = self.owed.remove(job_id) {
            self.settle_owed(record, Some(&finished), std::mem::take(&mut left), out);
        }
        // A node that comes back after our restart may report the end of a job that this life has
        // never seen: take it over first, as if it still ran, and end it then.
        // The controller refuses if it has counted that end already.
        if self.jobs.get(job_id).is_none() {
            self.adopt_finished(address, &finished);
        }
        let has_all_output = self.has_all_output(job_id, &finished);
        let output = self.jobs.outputs.remove(&job_id).unwrap_or_default();
        // From here on they count as part of the operation's output, if they become that.
        output.values().for_each(|uploaded| self.release_uploaded(uploaded));
        let output: BTreeMap<u32, Chunk> =
            output.into_iter().map(|(n, uploaded)| (n, uploaded.chunk)).collect();
        let mut dropped: BTreeSet<u64> = output.values().map(|chunk| chunk.blob).collect();
        if has_all_output
            && matches!(finished.outcome, JobOutcome::Completed { .. })
            && let Some(operation) = self.jobs.get(job_id).map(|job| job.operation)
            && let Err(error) = self.refuse_output(operation, &finished.identity.task, &output)
        {
            finished.outcome = JobOutcome::Failed { error };
        }
        let mut kept = self.keep_place(job_id, &finished.outcome);
        let known = kept.clone().or_else(|| self.release_job(job_id));
        if let Some(job) = known
            && self.operations.contains_key(&job.operation)
        {
            let outcome = match job.stopping {
                // We told it to stop; how it died does not matter, unless it had done its work.
                Some(reason) if !matches!(finished.outcome, JobOutcome::Completed { .. }) => {
                    aborted_by_us(reason, finished.outcome)
                }
                _ if matches!(finished.outcome, JobOutcome::Completed { .. }) && !has_all_output => {
                    let text = "Rows that the job has written were lost in a restart of the server";
                    aborted_by_us(AbortReason::Other, JobOutcome::Failed { error: Failure::new(text) })
                }
                // What it has said last is mostly why (http-api.md 9.5). Errors are for all to read, what jobs print
                // is not where people have permissions (8.4).
                _ => match finished.outcome {
                    JobOutcome::Failed { error } if !self.config.access_control => {
                        match left.stderr.as_ref().and_then(Stderr::tail) {
                            Some(tail) => JobOutcome::Failed { error: error.with("stderr", tail) },
                            None => JobOutcome::Failed { error },
                        }
                    }
                    outcome => outcome,
                },
            };
            let outcome = self.name_lost_content(now, job.operation, outcome);
            if let Some(too_much) = self.take_without_room(now, job.operation, &mut left) {
                self.drop_left(too_much, out);
            }
            let report = FinishedJob {
                job_id,
                outcome,
                exec_start_time: finished.start_time,
                finish_time: finished.finish_time,
                statistics: Some(finished.statistics),
                stderr_size: left.stderr.as_ref().map_or(0, Stderr::size),
                fail_context_size: left.fail_context.map_or(0, |context| context.size),
            };
            // One that ends at once was never reported as running.
            let Some(operation) = self.operations.get_mut(&job.operation) else { return };
            operation.controller.job_placed(job_id, finished.slot_index);
            if let Some(mut verdict) = operation.controller.job_finished(now, report) {
                let event = verdict.operation_event.take();
                self.pause_on_node(now, &job, verdict.pause_on_node);
                if let Some(place) = verdict.unit_done {
                    dropped.clear();
                    self.note_output(job.operation, &verdict.record.identity.task, place, output);
                }
                let others = std::mem::take(&mut verdict.aborted_with_it);
                let reuse = std::mem::take(&mut verdict.reuse);
                self.archive_job(&mut verdict, Some(&job), std::mem::take(&mut left), out);
                self.pending_work.dirty.insert(job.operation);
                self.pending_work.demand.insert(job.operation);
                self.begin_anew(now, job.operation, others, reuse, out);
                if let Some(place) = kept.take() {
                    self.follow(now, place, verdict.next, out);
                }
                match event {
                    Some(event) => self.operation_event(now, job.operation, event, out),
                    None => self.complete_with_enough_rows(now, job.operation, out),
                }
            }
        }
        if let Some(place) = kept {
            self.leave_place(&place);
        }
        self.drop_left(left, out);
        dropped.into_iter().for_each(|blob| self.delete_blob(blob, out));
        self.release_end(address, job_id);
    }

    /// What came of jobs that were given up before their end came.
    pub(crate) fn drop_stray_output(&mut self, out: &mut Vec<Effect>) {
        let Jobs { by_id, outputs, fail_contexts, .. } = &mut self.jobs;
        let (mut stray, mut uploaded) = (Vec::new(), Vec::new());
        outputs.retain(|job, chunks| {
            let kept = by_id.contains_key(job);
            uploaded.extend(chunks.values().filter(|_| !kept).cloned());
            kept
        });
        stray.extend(uploaded.iter().map(|of| of.chunk.blob));
        fail_contexts.retain(|job, context| {
            let kept = by_id.contains_key(job);
            stray.extend((!kept).then_some(context.blob));
            kept
        });
        uploaded.iter().for_each(|of| self.release_uploaded(of));
        stray.into_iter().for_each(|blob| self.delete_blob(blob, out));
    }

    /// A node may forget the end of a job when the open batch is durable.
    pub(crate) fn release_end(&mut self, address: &str, job_id: JobId) {
        if self.jobs.get(job_id).is_none() {
            self.release_report(address, job_id);
        }
    }

    fn release_report(&mut self, address: &str, job_id: JobId) {
        let Some(key) = self.nodes.get(address).and_then(|node| node.key) else { return };
        let jobs = self.open.releases.entry(key).or_default();
        if !jobs.contains(&job_id) {
            jobs.push(job_id);
        }
    }

    /// Compares what a node reports with what we believe: jobs that it does not know have
    /// disappeared, jobs that we do not know are adopted or killed.
    pub(crate) fn reconcile_jobs(
        &mut self,
        now: Time,
        address: &str,
        reported: Vec<JobReport>,
        out: &mut Vec<Effect>,
    ) {
        let believed: Vec<JobId> =
            self.nodes.get(address).map(|n| n.jobs.iter().copied().collect()).unwrap_or_default();
        let there: BTreeSet<JobId> = reported.iter().map(|r| r.identity.job_id).collect();
        self.note_jobs_elsewhere(now, address, &there, &reported);
        for report in reported {
            let job_id = report.identity.job_id;
            let known = self.jobs.get(job_id).filter(|job| job.node == address);
            match known.map(|job| (job.allocation, job.operation)) {
                Some((allocation, operation)) => {
                    let measured = report.statistics.is_some();
                    let mut spent = None;
                    self.jobs.confirm(job_id);
                    if self.jobs.get(job_id).is_some_and(|job| job.unbooked) {
                        self.book_again(&report);
                    }
                    self.scheduler.allocation_usage(allocation, report.resource_usage);
                    if let Some(operation) = self.operations.get_mut(&operation) {
                        if let Some(start) = report.start_time {
                            operation.controller.job_started(job_id, start);
                        }
                        operation.controller.job_placed(job_id, report.slot_index);
                        spent = operation.controller.job(job_id).map(|view| view.spent());
                        operation.controller.job_statistics(
                            job_id,
                            report.phase,
                            report.stderr_size,
                            report.statistics,
                        );
                    }
                    if measured {
                        self.changes.touch(Topic::Operations);
                        self.count_savings(now, job_id);
                        self.record_job(now, job_id, spent.unwrap_or_default());
                    }
                }
                None if self.is_foreign_report(now, address, job_id) => {
                    let text = "The job is a job of another node";
                    let abort = AbortJob { job_id, reason: AbortReason::Unconfirmed, text: text.into() };
                    self.tell_node(address, ServerMessage::Abort(vec![abort]), 0, out);
                }
                None => {
                    let is_its_own = self.is_job_of(&report.identity, address);
                    if !is_its_own || !self.adopt_running(address, &report) {
                        if is_its_own {
                            self.fence_stranger(address, &report.identity);
                        }
                        let text = "The job is not known to the scheduler, or another run of its unit counts";
                        let abort = AbortJob { job_id, reason: AbortReason::Unconfirmed, text: text.into() };
                        self.tell_node(address, ServerMessage::Abort(vec![abort]), 0, out);
                    }
                }
            }
        }
        let is_hello = self.nodes.get(address).is_some_and(|node| node.register_time == now);
        self.heed_silence(address, &there, is_hello);
        for job_id in believed.into_iter().filter(|id| !there.contains(id)) {
            let (reason, text, may_run) = match self.whereabouts(now, address, job_id) {
                Whereabouts::OnItsWay => continue,
                Whereabouts::TimedOut(limit) => {
                    if let Some(job) = self.jobs.get(job_id) {
                        let (operation, allocation) = (job.operation, job.allocation);
                        self.note_timed_out(now, operation, job_id, address, limit);
                        // A failed call: its operation pauses before the next (scheduling.md 17.3).
                        self.scheduler.allocation_failed(now, allocation, SettleFailure::Backoff);
                    }
                    let text =
                        format!("The order to start the job has not arrived at node {address} in {limit}");
                    (AbortReason::SchedulingTimeout, text, true)
                }
                Whereabouts::Gone => {
                    let text = format!("The job has disappeared from node {address}");
                    (AbortReason::DisappearedFromNode, text, false)
                }
            };
            // Its order may be held up by a slow store still: then this one arrives right behind it.
            self.order_abort(job_id, reason, &text, out);
            self.abort_without_node(now, job_id, (reason, &text), may_run, out);
        }
    }

    /// The node of a job that the scheduler has forgotten is back with it.
    fn book_again(&mut self, report: &JobReport) {
        let identity = &report.identity;
        let Some(job) = self.jobs.by_id.get_mut(&identity.job_id) else { return };
        job.unbooked = false;
        let (node, resources) = (job.node.clone(), job.resources);
        self.revive_allocation(identity, node, resources, report.resource_usage);
    }

    /// Tells the scheduler of the allocation of a job that it does not know. Of one in a tree that the node has left it hears
    /// nothing: such a job goes on uncharged until it ends or is aborted.
    fn revive_allocation(
        &mut self,
        identity: &vocab::JobIdentity,
        node: String,
        resources: Resources,
        usage: Resources,
    ) {
        let Some(operation) = self.operations.get(&identity.operation_id) else { return };
        let task = operation.controller.task_names().position(|name| *name == *identity.task);
        let revived = self.scheduler.revive_allocation(&RevivedAllocation {
            allocation: identity.allocation_id,
            operation: identity.operation_id,
            tree: identity.tree.to_string(),
            node,
            task: task.and_then(|t| u32::try_from(t).ok()).unwrap_or_default(),
            resources: usage,
            ordered_cpu: resources.cpu,
            preempted: self.preemptions.standing(identity.allocation_id).cloned(),
        });
        drop(revived);
    }

    /// Where a job may be that its node does not speak of.
    fn whereabouts(&self, now: Time, address: &str, job_id: JobId) -> Whereabouts {
        let Some(job) = self.jobs.get(job_id).filter(|job| !job.confirmed) else { return Whereabouts::Gone };
        // A fresh registration says everything: what was sent on the old connection is lost.
        if self.nodes.get(address).is_none_or(|node| node.register_time == now) {
            return Whereabouts::Gone;
        }
        let limit = self.scheduler.config().schedule_allocation_time_limit;
        let view = self.operations.get(&job.operation).and_then(|o| o.controller.job(job_id));
        match view.map(|view| now.since(view.start_time())) {
            Some(age) if age < limit => Whereabouts::OnItsWay,
            Some(_) => Whereabouts::TimedOut(limit),
            None => Whereabouts::Gone,
        }
    }

    fn adopt_running(&mut self, address: &str, report: &JobReport) -> bool {
        let held = HeldJob {
            node_address: address,
            granted: report.granted,
            start_time: report.accepted_time,
            exec_start_time: report.start_time,
            phase: report.phase,
        };
        self.adopt(&report.identity, held, report.resource_usage).is_ok()
    }

    fn adopt_finished(&mut self, address: &str, finished: &wire::FinishedJob) {
        let held = HeldJob {
            node_address: address,
            granted: finished.granted,
            start_time: finished.start_time.unwrap_or(finished.finish_time),
            exec_start_time: finished.start_time,
            phase: JobPhase::Finished,
        };
        if !self.is_job_of(&finished.identity, address) {
            return;
        }
        // Refused: it was counted already, or another run of its unit counts.
        let _ = self.adopt(&finished.identity, held, Resources::ZERO);
    }

    /// Takes over a job of an earlier life, if its unit of work is still to be done; `usage` is what its
    /// node accounts for it now.
    fn adopt(
        &mut self,
        identity: &vocab::JobIdentity,
        held: HeldJob<'_>,
        usage: Resources,
    ) -> Result<(), AdoptError> {
        let operation = self.operations.get_mut(&identity.operation_id).ok_or(AdoptError::Unknown)?;
        let (node, resources, start_time) = (held.node_address.to_owned(), held.granted, held.start_time);
        operation.controller.adopt_job(identity, held)?;
        let pool = operation.in_tree(&identity.tree).map(|t| t.pool.clone()).unwrap_or_default();
        let told_to_go = self.preemptions.standing(identity.allocation_id).cloned();
        self.revive_allocation(identity, node.clone(), resources, usage);
        let job = Job {
            lease: self.lease_of(identity.operation_id, &identity.task),
            unbooked: false,
            operation: identity.operation_id,
            allocation: identity.allocation_id,
            node,
            pool,
            resources,
            confirmed: true,
            stopping: None,
        };
        self.add_job(identity.job_id, job.clone());
        self.log_start(identity, &job, start_time, true);
        if let Some(record) = told_to_go {
            let preempted_for = record.cause.preemptor().map(|p| (p.allocation, p.operation));
            self.note_interruption(identity.job_id, InterruptionReason::Preemption, preempted_for);
        }
        self.pending_work.dirty.insert(identity.operation_id);
        self.pending_work.demand.insert(identity.operation_id);
        Ok(())
    }

    /// A job that runs no more and that its node may never report: lost with the node, or lost on the way.
    pub(crate) fn abort_lost_job(
        &mut self,
        now: Time,
        job_id: JobId,
        reason: AbortReason,
        text: &str,
        out: &mut Vec<Effect>,
    ) {
        self.abort_without_node(now, job_id, (reason, text), false, out);
    }

    /// A job that is given up although its node may still run it.
    pub(crate) fn abort_unheard_job(
        &mut self,
        now: Time,
        job_id: JobId,
        reason: AbortReason,
        text: &str,
        out: &mut Vec<Effect>,
    ) {
        self.abort_without_node(now, job_id, (reason, text), true, out);
    }

    fn abort_without_node(
        &mut self,
        now: Time,
        job_id: JobId,
        (reason, text): (AbortReason, &str),
        may_run: bool,
        out: &mut Vec<Effect>,
    ) {
        let Some(job) = self.release_job(job_id) else { return };
        let Some(operation) = self.operations.get_mut(&job.operation) else { return };
        let error = Failure::new(text).with("abort_reason", reason);
        let verdict = operation.controller.give_up_job(now, job_id, reason, error);
        self.settle_fence(job_id, &job, may_run);
        let Some(mut verdict) = verdict else { return };
        let event = verdict.operation_event.take();
        self.pause_on_node(now, &job, verdict.pause_on_node);
        self.archive_job(&mut verdict, Some(&job), Left::default(), out);
        self.pending_work.dirty.insert(job.operation);
        self.pending_work.demand.insert(job.operation);
        let others = std::mem::take(&mut verdict.aborted_with_it);
        let reuse = std::mem::take(&mut verdict.reuse);
        self.begin_anew(now, job.operation, others, reuse, out);
        if let Some(event) = event {
            self.operation_event(now, job.operation, event, out);
        }
    }

    /// The node of an aborted job gets nothing of its operation for a while.
    fn pause_on_node(&mut self, now: Time, job: &Job, until: Option<Time>) {
        if let Some(until) = until {
            self.scheduler.back_off_on_node(now, job.operation, &job.node, until);
        }
    }

    /// Allocations that the scheduler has taken away.
    pub(crate) fn abort_allocations(
        &mut self,
        now: Time,
        allocations: &[AllocationId],
        reason: AbortReason,
        out: &mut Vec<Effect>,
    ) {
        for allocation in allocations {
            if let Some(job) = self.jobs.by_allocation.get(allocation).copied() {
                let text = format!("Job aborted: {reason}");
                self.order_abort(job, reason, &text, out);
                self.abort_unheard_job(now, job, reason, &text, out);
            }
        }
    }

    /// Tells the node to kill a job; its end comes as a report.
    pub(crate) fn order_abort(
        &mut self,
        job_id: JobId,
        reason: AbortReason,
        text: &str,
        out: &mut Vec<Effect>,
    ) {
        let Some(job) = self.jobs.by_id.get_mut(&job_id) else { return };
        job.stopping.get_or_insert(reason);
        let node = job.node.clone();
        let abort = AbortJob { job_id, reason, text: text.to_owned() };
        self.tell_node(&node, ServerMessage::Abort(vec![abort]), 0, out);
    }

    /// The operation's time is up: its jobs end as failed, with what they have written and measured
    /// (jobs-and-nodes.md 3.9, 6.4).
    pub(crate) fn end_gracefully(&mut self, job_id: JobId, out: &mut Vec<Effect>) {
        let Some(node) = self.jobs.get(job_id).map(|job| job.node.clone()) else { return };
        let after = self.current_seq();
        let error = Failure::new("Operation time limit exceeded");
        self.tell_node(&node, ServerMessage::Fail { job_id, error }, after, out);
    }

    /// Sends to a node if it is connected, not before `after` is durable.
    pub(crate) fn tell_node(
        &mut self,
        address: &str,
        message: ServerMessage,
        after: Seq,
        out: &mut Vec<Effect>,
    ) {
        let Some(node) = self.nodes.get_mut(address) else { return };
        let Some(key) = node.key else { return };
        // An order never overtakes an older one.
        node.last_order = node.last_order.max(after);
        let after = node.last_order;
        self.open.urgent |= after == self.open.seq;
        out.push(Effect::ToNode { node: key, after, message });
    }

    /// `abort_job`.
    pub(crate) fn abort_job(
        &mut self,
        job_id: JobId,
        interrupt_timeout: Option<Span>,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let job = self.jobs.get(job_id).cloned().ok_or_else(|| no_such_job(job_id))?;
        match interrupt_timeout.filter(|t| *t > Span::ZERO) {
            None => self.order_abort(job_id, AbortReason::UserRequest, "Job aborted by user request", out),
            Some(timeout) => {
                let interruptible = self
                    .operations
                    .get(&job.operation)
                    .and_then(|o| o.controller.job(job_id))
                    .is_some_and(|view| view.is_interruptible());
                if !interruptible {
                    let message = format!(
                        "Job {job_id} cannot be interrupted: its task has no \"interruption_signal\""
                    );
                    return Err(
                        Failure::coded(code::INTERRUPTION_UNSUPPORTED, message).with("job_id", job_id)
                    );
                }
                let text = "Job interrupted by user request".to_owned();
                self.note_interruption(job_id, InterruptionReason::UserRequest, None);
                self.interrupt(job_id, timeout, InterruptionReason::UserRequest, text, out);
            }
        }
        Ok(())
    }

    /// `abandon_job`: its unit counts as done, the process is killed.
    pub(crate) fn abandon_job(
        &mut self,
        now: Time,
        job_id: JobId,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let job = self.jobs.get(job_id).cloned().ok_or_else(|| no_such_job(job_id))?;
        let operation = self.operations.get_mut(&job.operation).ok_or_else(|| no_such_job(job_id))?;
        let mut verdict = operation.controller.abandon_job(now, job_id).ok_or_else(|| no_such_job(job_id))?;
        let event = verdict.operation_event.take();
        self.pending_work.dirty.insert(job.operation);
        self.pending_work.demand.insert(job.operation);
        self.drop_job(verdict, out);
        if let Some(event) = event {
            self.operation_event(now, job.operation, event, out);
        }
        Ok(())
    }

    fn operation_of(&mut self, job_id: JobId) -> Option<&mut crate::Operation> {
        let id = self.jobs.get(job_id)?.operation;
        self.operations.get_mut(&id)
    }
}

/// See [`Kernel::whereabouts`].
enum Whereabouts {
    /// The order to start it may still be on its way.
    OnItsWay,
    /// For longer than this.
    TimedOut(Span),
    /// Nobody will ever speak of it.
    Gone,
}

/// Unknown or finished job: 203 and, for those who look for it, 1916 inside (http-api.md 3.2 [X]).
pub(crate) fn no_such_job(job_id: JobId) -> Failure {
    let message = format!("No such job {job_id}");
    Failure::coded(code::NO_SUCH_JOB, message.clone())
        .with("job_id", job_id)
        .because(Failure::coded(code::API_NO_SUCH_JOB, message))
}

fn aborted_by_us(reason: AbortReason, outcome: JobOutcome) -> JobOutcome {
    let error = match outcome {
        JobOutcome::Aborted { error, .. } | JobOutcome::Failed { error } => error,
        JobOutcome::Completed { .. } => Failure::new("Job aborted"),
    };
    JobOutcome::Aborted { reason, error: error.with("abort_reason", reason) }
}
