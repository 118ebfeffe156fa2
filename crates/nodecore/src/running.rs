//! What proxies report while the job lives (jobs-and-nodes.md 3.4, 3.7 step 8).

use vocab::{AbortReason, Cpu, Failure, JobId, JobStatistics, ShellRequest, Span, Time};
use wire::{JobEvent, NodeMessage};

use crate::job::{Holds, Stage};
use crate::stopping::stop_order;
use crate::{NodeCore, NodeEffect, ProxyOrder};

impl NodeCore {
    /// First call or return. Orders that were given while it was away are repeated: the proxy
    /// ignores what it knows.
    pub(crate) fn proxy_connected(&mut self, now: Time, id: JobId, fx: &mut Vec<NodeEffect>) {
        let Some(job) = self.jobs.get_mut(&id) else {
            // A proxy of a job that was given up, e.g. spawned in the last breath of an earlier agent.
            return fx.push(NodeEffect::ProxySend(id, not_wanted("Job is unknown to the node")));
        };
        job.connected = true;
        // A proxy that was away has missed what the server has confirmed since.
        let lease = self.leases.of(&job.start).filter(|_| self.leases.holds(id));
        let from = lease.map(|lease| lease.from).filter(|from| *from > Span::ZERO);
        fx.extend(from.map(|from| NodeEffect::ProxySend(id, ProxyOrder::Heard { from })));
        if job.end.is_some() {
            return fx.push(NodeEffect::ProxySend(id, not_wanted("Job is over")));
        }
        if let Some(stop) = &job.stop {
            return fx.push(NodeEffect::ProxySend(id, stop_order(stop)));
        }
        if let Some(i) = &job.interruption {
            let timeout = i.deadline.since(now);
            let order = ProxyOrder::Interrupt { reason: i.reason, timeout, text: i.text.clone() };
            fx.push(NodeEffect::ProxySend(id, order));
            return;
        }
        let deadline = match (job.stage, job.acquired_time) {
            (Stage::Spawning, Some(acquired)) => Some(acquired + job.prepare_time_limit(&self.settings)),
            _ => None,
        };
        self.timers.set(job, deadline);
    }

    pub(crate) fn job_started(&mut self, id: JobId, start_time: Time) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.stage != Stage::Spawning {
            return;
        }
        job.stage = Stage::Running;
        job.start_time = Some(start_time);
        if job.stop.is_none() {
            // Otherwise the deadline is that of the stop.
            self.timers.set(job, None);
        }
        let slot_index = job.slot;
        self.outbox.push(JobEvent::Started { job_id: id, start_time, slot_index });
    }

    pub(crate) fn job_progress(&mut self, id: JobId, statistics: JobStatistics, stderr_size: u64) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.stage == Stage::Running {
            job.statistics_fresh = true;
            job.statistics = Some(Box::new(statistics));
            job.stderr_size = stderr_size;
        }
    }

    /// Memory only grows, CPU follows the monitor. What changes is reported at once (1.5).
    pub(crate) fn job_usage(
        &mut self,
        now: Time,
        id: JobId,
        cpu: Option<Cpu>,
        total_peak: Option<i64>,
        fx: &mut Vec<NodeEffect>,
    ) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.total_peak = job.total_peak.max(total_peak.unwrap_or(0));
        if job.holds != Holds::Acquired {
            return;
        }
        let usage = job.usage_with(cpu, &self.settings);
        if usage == job.usage {
            return;
        }
        let (old, grew) = (job.usage, usage.memory > job.usage.memory);
        job.usage = usage;
        // Whoever wonders why looks at the statistics, so they come with the next heartbeat.
        job.statistics_sent = Time::ZERO;
        self.ledger.set_usage(old, usage);
        self.look_at_waiting = true;
        self.outbox.push(JobEvent::ResourceUsage { job_id: id, resource_usage: usage });
        if grew {
            self.relieve_memory(now, id, fx);
        }
    }

    /// Shells live where the job's process does, and no longer (http-api.md 8.7).
    pub(crate) fn ask_shell(
        &self,
        request_id: u64,
        job_id: JobId,
        request: ShellRequest,
        fx: &mut Vec<NodeEffect>,
    ) {
        let error = match self.jobs.get(&job_id) {
            Some(job) if job.stage == Stage::Running && job.end.is_none() => {
                return fx.push(NodeEffect::AskShell { request_id, job_id, request });
            }
            Some(job) if job.end.is_none() => Failure::coded(
                vocab::code::JOB_NOT_RUNNING,
                format!("Job {job_id} is not running: its phase is \"{}\"", job.phase()),
            ),
            Some(_) => Failure::coded(
                vocab::code::SHELL_MANAGER_SHUT_DOWN,
                "The job is over, and its shells with it",
            ),
            None => self.no_such_job(job_id),
        };
        fx.push(NodeEffect::Send(NodeMessage::Shell { request_id, result: Err(error) }));
    }

    fn no_such_job(&self, job_id: JobId) -> Failure {
        let text = format!("No such job {job_id} on node {:?}", self.settings.address);
        Failure::coded(vocab::code::NO_SUCH_JOB, text)
    }

    /// Only jobs with a slot can have written anything.
    pub(crate) fn read_stderr(
        &self,
        request_id: u64,
        job_id: JobId,
        offset: u64,
        limit: u64,
        fx: &mut Vec<NodeEffect>,
    ) {
        fx.push(match self.jobs.get(&job_id).map(|job| job.slot) {
            Some(Some(slot)) => NodeEffect::ReadStderr { request_id, job_id, slot, offset, limit },
            Some(None) => NodeEffect::Send(NodeMessage::Stderr { request_id, result: Ok(Vec::new()) }),
            None => {
                let error = self.no_such_job(job_id);
                NodeEffect::Send(NodeMessage::Stderr { request_id, result: Err(error) })
            }
        });
    }
}

fn not_wanted(text: &str) -> ProxyOrder {
    ProxyOrder::Abort { reason: AbortReason::Unknown, text: text.to_owned() }
}
