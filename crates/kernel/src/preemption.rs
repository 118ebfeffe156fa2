//! Orders of the scheduler about allocations that must give way: put into words for the nodes, and
//! kept over a restart.
//!
//! Allocations are not stored, but what was asked of them is (scheduling.md 15.1): an order leaves
//! when its record is durable, and the record goes when the allocation does. A job that comes back
//! after a restart and has one is revived as what it was, on its way out; without it the job would be
//! charged again, its node would look overcommitted and one more would be asked to go.

use crate::{Effect, Kernel, Topic};
use scheduler::{Order, PREEMPTION_LOG_LIMIT, PreemptionRecord};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use vocab::batch::Table;
use vocab::planted::{Bug, strikes};
use vocab::{AllocationId, Failure, Guid, InterruptionReason, JobId, OperationId, Span};
use wire::ServerMessage;
use yson::{Map, Value};

/// First byte of keys of the log: its number follows, big-endian.
const LOG: u8 = b'l';
/// First byte of keys of orders that stand: the allocation's id follows.
const STANDING: u8 = b's';

/// What the store holds of preemptions.
#[derive(Default)]
pub(crate) struct Preemptions {
    /// Orders whose allocations are still there, or may come back.
    standing: BTreeMap<AllocationId, Arc<PreemptionRecord>>,
    /// Numbers of the oldest and behind the newest line of the log.
    first: u64,
    next: u64,
    /// Allocations of the lines of the log, oldest first, and what ran in each.
    lines: VecDeque<AllocationId>,
    jobs: BTreeMap<AllocationId, JobsOfLine>,
}

/// The scheduler knows allocations; people look for jobs.
#[derive(Clone, Copy, Default)]
pub(crate) struct JobsOfLine {
    /// The job that had to go.
    pub victim: Option<JobId>,
    /// The job that it had to go for.
    pub preemptor: Option<JobId>,
}

impl Preemptions {
    /// The order that an allocation of an earlier life was given.
    pub fn standing(&self, allocation: AllocationId) -> Option<&Arc<PreemptionRecord>> {
        self.standing.get(&allocation)
    }

    /// The jobs of a line of the log, by the allocation that was lost.
    pub fn jobs_of(&self, allocation: AllocationId) -> JobsOfLine {
        self.jobs.get(&allocation).copied().unwrap_or_default()
    }

    fn add_line(&mut self, allocation: AllocationId, jobs: JobsOfLine) {
        self.lines.push_back(allocation);
        self.jobs.insert(allocation, jobs);
        if self.lines.len() > PREEMPTION_LOG_LIMIT
            && let Some(forgotten) = self.lines.pop_front()
        {
            self.jobs.remove(&forgotten);
        }
    }

    /// Allocations that were told to go.
    pub fn allocations(&self) -> impl Iterator<Item = AllocationId> {
        self.standing.keys().copied()
    }
}

impl Kernel {
    /// Tells nodes what the scheduler has decided since the last time.
    pub(crate) fn carry_out_orders(&mut self, out: &mut Vec<Effect>) {
        for order in self.scheduler.drain_orders() {
            if let Order::Preempt(p) = &order {
                self.counters.preempted(&p.record);
                self.keep_preemption(&p.record);
            }
            self.carry_out_order(order, out);
        }
    }

    /// Tells a node that has come back what it may have missed.
    pub(crate) fn repeat_orders(&mut self, address: &str, out: &mut Vec<Effect>) {
        for order in self.scheduler.standing_orders(address) {
            self.carry_out_order(order, out);
        }
    }

    /// The timeout goes out as it was given: a node counts it from the first order that it hears.
    fn carry_out_order(&mut self, order: Order, out: &mut Vec<Effect>) {
        // Ended meanwhile: the scheduler hears of it in this turn or has heard.
        let Some(job_id) = self.jobs.by_allocation(order.allocation()) else { return };
        match order {
            Order::Preempt(p) => {
                self.note_interruption(job_id, InterruptionReason::Preemption, p.preempted_for);
                self.interrupt(job_id, p.timeout, InterruptionReason::Preemption, p.reason, out);
            }
            Order::Abort { reason, .. } => {
                self.order_abort(job_id, reason, "Jobs are disabled on this node", out);
            }
        }
    }

    /// Asks a job to stop, through its node, when everything decided so far is durable.
    pub(crate) fn interrupt(
        &mut self,
        job_id: JobId,
        timeout: Span,
        reason: InterruptionReason,
        text: String,
        out: &mut Vec<Effect>,
    ) {
        let Some(node) = self.jobs.get(job_id).map(|job| job.node.clone()) else { return };
        let after = self.current_seq();
        self.tell_node(&node, ServerMessage::Interrupt { job_id, timeout, reason, text }, after, out);
    }

    /// So that lists of jobs show it, and the record of the job keeps it.
    pub(crate) fn note_interruption(
        &mut self,
        job_id: JobId,
        reason: InterruptionReason,
        preempted_for: Option<(AllocationId, OperationId)>,
    ) {
        let Some(operation) = self.jobs.get(job_id).map(|job| job.operation) else { return };
        if let Some(operation) = self.operations.get_mut(&operation) {
            operation.controller.job_interrupted(job_id, reason, preempted_for);
        }
    }

    /// A line of the log with its jobs: for the Orchid and the event log.
    pub(crate) fn preemption_map(&self, record: &PreemptionRecord) -> Map {
        let jobs = self.preemptions.jobs_of(record.allocation);
        let mut map = record.to_map().with_some("job_id", jobs.victim);
        if let (Some(Value::Map(preempted_for)), Some(job)) = (map.get_mut("preempted_for"), jobs.preemptor) {
            preempted_for.insert("job_id", job);
        }
        map
    }

    /// A new line of the log, and an order that stands until its allocation is gone.
    fn keep_preemption(&mut self, record: &Arc<PreemptionRecord>) {
        self.changes.touch(Topic::Preemptions);
        let preemptor = record.cause.preemptor();
        let jobs = JobsOfLine {
            victim: self.jobs.by_allocation(record.allocation),
            preemptor: preemptor.and_then(|p| self.jobs.by_allocation(p.allocation)),
        };
        self.preemptions.add_line(record.allocation, jobs);
        self.log("allocation_preempted", self.preemption_map(record));
        let mut stored = record.to_stored();
        if let Value::Map(map) = &mut stored {
            *map = std::mem::take(map)
                .with_some("job", jobs.victim.map(|id| id.to_string()))
                .with_some("for_job", jobs.preemptor.map(|id| id.to_string()));
        }
        let stored = yson::to_binary(&stored);
        let kept = &mut self.preemptions;
        let batch = &mut self.open.batch;
        if kept.next - kept.first >= PREEMPTION_LOG_LIMIT as u64 {
            batch.delete(Table::Preemptions, log_key(kept.first));
            kept.first += 1;
        }
        batch.put(Table::Preemptions, log_key(kept.next), stored.clone());
        kept.next += 1;
        if self.jobs.by_allocation(record.allocation).is_some() {
            batch.put(Table::Preemptions, standing_key(record.allocation), stored);
            kept.standing.insert(record.allocation, record.clone());
        }
    }

    /// An allocation is gone: whatever it was told does not matter any more.
    pub(crate) fn forget_order(&mut self, allocation: AllocationId) {
        if strikes(Bug::OrderStays, 1) {
            return;
        }
        if self.preemptions.standing.remove(&allocation).is_some() {
            self.open.batch.delete(Table::Preemptions, standing_key(allocation));
        }
    }

    /// Orders to allocations that no node has reported after a restart.
    pub(crate) fn forget_lost_orders(&mut self) {
        let lost: Vec<AllocationId> =
            self.preemptions.allocations().filter(|a| self.jobs.by_allocation(*a).is_none()).collect();
        lost.into_iter().for_each(|allocation| self.forget_order(allocation));
    }

    /// Reads one record back; the log comes in order.
    pub(crate) fn restore_preemption(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let broken = || Failure::new(format!("Malformed record of a preemption: {key:?}"));
        let value = yson::parse_record(value).map_err(|_| broken())?;
        let record = Arc::new(PreemptionRecord::from_stored(&value).ok_or_else(broken)?);
        match key.split_first() {
            Some((&LOG, number)) => {
                let number = u64::from_be_bytes(number.try_into().map_err(|_| broken())?);
                let kept = &mut self.preemptions;
                if kept.first == kept.next {
                    kept.first = number;
                }
                kept.next = number + 1;
                let job = |key: &str| value.get(key).and_then(|id| id.as_str()?.parse().ok());
                kept.add_line(
                    record.allocation,
                    JobsOfLine { victim: job("job"), preemptor: job("for_job") },
                );
                self.scheduler.restore_preemption(record);
            }
            Some((&STANDING, id)) => {
                let id: [u8; 16] = id.try_into().map_err(|_| broken())?;
                self.preemptions.standing.insert(AllocationId(Guid::from_bytes(id)), record);
            }
            _ => return Err(broken()),
        }
        Ok(())
    }
}

fn log_key(number: u64) -> Vec<u8> {
    [[LOG].as_slice(), &number.to_be_bytes()].concat()
}

fn standing_key(allocation: AllocationId) -> Vec<u8> {
    [[STANDING].as_slice(), &allocation.0.to_bytes()].concat()
}
