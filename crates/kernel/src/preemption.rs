//! Orders of the scheduler about allocations that must give way, put into words for the nodes.

use crate::{Effect, Kernel};
use scheduler::Order;
use vocab::{AllocationId, InterruptionReason, JobId, OperationId, Span};
use wire::ServerMessage;

impl Kernel {
    /// Tells nodes what the scheduler has decided since the last time.
    pub(crate) fn carry_out_orders(&mut self, out: &mut Vec<Effect>) {
        for order in self.scheduler.drain_orders() {
            self.carry_out_order(order, out);
        }
    }

    /// Tells a node that has come back what it may have missed.
    pub(crate) fn repeat_orders(&mut self, address: &str, out: &mut Vec<Effect>) {
        for order in self.scheduler.standing_orders(address) {
            self.carry_out_order(order, out);
        }
    }

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

    /// Asks a job to stop, through its node.
    pub(crate) fn interrupt(
        &mut self,
        job_id: JobId,
        timeout: Span,
        reason: InterruptionReason,
        text: String,
        out: &mut Vec<Effect>,
    ) {
        let Some(node) = self.jobs.get(job_id).map(|job| job.node.clone()) else { return };
        self.tell_node(&node, ServerMessage::Interrupt { job_id, timeout, reason, text }, 0, out);
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
}
