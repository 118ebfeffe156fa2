//! A node without processes: it keeps the node's part of the protocol and its jobs never end by
//! themselves.

use kernel::NodeKey;
use std::collections::BTreeMap;
use vocab::{
    AbortReason, Failure, InterruptionReason, JobId, JobIdentity, JobOutcome, JobPhase, JobStatistics,
    Resources, Time,
};
use wire::{
    FinishedJob, Heartbeat, Hello, JobEvent, JobReport, NodeMessage, PROTOCOL_VERSION, ServerMessage,
    StartJob,
};

/// See the module page.
pub struct Node {
    pub name: String,
    pub limits: Resources,
    pub incarnation: u64,
    /// Its connection, if there is one.
    pub key: Option<NodeKey>,
    /// Since when it has not been heard, if it is away.
    pub away_since: Option<Time>,
    pub next_heartbeat: Time,
    pub running: BTreeMap<JobId, Job>,
    /// Ends that no server has released.
    pub finished: BTreeMap<JobId, Kept>,
    /// Jobs take a while to die: they go on running until [`Node::reap`].
    pub slow: bool,
    pub dying: BTreeMap<JobId, JobOutcome>,
    /// The end of every job that it is told to start, before its process starts.
    pub prevents: Option<JobOutcome>,
    /// What it reports of itself.
    pub alerts: Vec<vocab::Failure>,
    /// Bytes of disk that it says it has.
    pub disk_capacity: Option<i64>,
    /// Its own clock; zero: it does not tell it.
    pub stamp: vocab::Span,
    pub leases_extended_until: Time,
    pub data_id: String,
    /// False: it is of release 0.1.
    pub knows_job_uids: bool,
    /// What it was told last.
    pub job_uids: Option<wire::JobUids>,
}

/// A job that runs.
#[derive(Clone, Debug)]
pub struct Job {
    pub start: StartJob,
    /// What the node accounts for it.
    pub usage: vocab::Resources,
    /// What it reports besides.
    pub statistics: Option<vocab::JobStatistics>,
    pub accepted: Time,
    /// What it has printed.
    pub stderr: Vec<u8>,
    /// It was asked to stop.
    pub interrupted: Option<InterruptionReason>,
    /// Its place, which is told with reports and with its end; the start goes without it, as if it had not come.
    pub slot: Option<u32>,
}

/// A job that is over.
#[derive(Clone, Debug)]
pub struct Kept {
    pub report: FinishedJob,
}

impl Node {
    pub fn new(name: &str, limits: Resources) -> Node {
        Node {
            name: name.to_owned(),
            limits,
            incarnation: 1,
            key: None,
            away_since: None,
            next_heartbeat: Time::ZERO,
            running: BTreeMap::new(),
            finished: BTreeMap::new(),
            slow: false,
            dying: BTreeMap::new(),
            prevents: None,
            alerts: Vec::new(),
            disk_capacity: None,
            stamp: vocab::Span::ZERO,
            leases_extended_until: Time::ZERO,
            data_id: String::new(),
            knows_job_uids: true,
            job_uids: None,
        }
    }

    fn reports(&self) -> Vec<JobReport> {
        let report = |job: &Job| JobReport {
            identity: job.start.identity.clone(),
            granted: job.start.resources,
            resource_usage: job.usage,
            phase: JobPhase::Running,
            accepted_time: job.accepted,
            start_time: Some(job.accepted),
            statistics: job.statistics.clone(),
            stderr_size: job.stderr.len() as u64,
            slot_index: job.slot,
        };
        self.running.values().map(report).collect()
    }

    pub fn hello(&self) -> Hello {
        Hello {
            protocol_version: PROTOCOL_VERSION,
            address: self.name.clone(),
            incarnation: self.incarnation,
            resource_limits: self.limits,
            tags: Vec::new(),
            job_environment: "simple".into(),
            alerts: self.alerts.clone(),
            disk_capacity: self.disk_capacity,
            stamp: self.stamp,
            data_id: self.data_id.clone(),
            knows_job_uids: self.knows_job_uids,
            authentication: Some(true),
            running: self.reports(),
            finished: self.finished.values().map(|k| k.report.clone()).collect(),
        }
    }

    pub fn heartbeat(&self) -> Heartbeat {
        Heartbeat {
            resource_limits: self.limits,
            resource_usage: self.running.values().fold(Resources::ZERO, |sum, job| sum + job.usage),
            alerts: self.alerts.clone(),
            jobs: self.reports(),
            unreleased: self.finished.keys().copied().collect(),
            stamp: self.stamp,
            leases_extended_until: self.leases_extended_until,
        }
    }

    /// Does as it is told; what it answers at once.
    pub fn hear(&mut self, now: Time, message: &ServerMessage) -> Option<NodeMessage> {
        let mut events = Vec::new();
        match message {
            ServerMessage::Welcome { job_uids, .. } => {
                self.away_since = None;
                self.job_uids = *job_uids;
            }
            ServerMessage::Refuse(_) => {}
            ServerMessage::Heard { extended_until, .. } => self.leases_extended_until = *extended_until,
            ServerMessage::Start(jobs) => {
                for start in jobs {
                    let job_id = start.identity.job_id;
                    if let Some(outcome) = self.prevents.clone() {
                        let report = unstarted(start.identity.clone(), start.resources, now, outcome);
                        self.finished.insert(job_id, Kept { report: report.clone() });
                        events.push(JobEvent::Finished(Box::new(report)));
                        continue;
                    }
                    // A repeated order is harmless.
                    if !self.finished.contains_key(&job_id) {
                        let usage = start.resources;
                        let job = Job {
                            start: start.clone(),
                            usage,
                            accepted: now,
                            statistics: None,
                            // Some say nothing.
                            stderr: match start.identity.job_index % 3 {
                                0 => Vec::new(),
                                _ => format!("hi from {job_id}").into_bytes(),
                            },
                            interrupted: None,
                            slot: None,
                        };
                        self.running.entry(job_id).or_insert(job);
                        events.push(JobEvent::Started { job_id, start_time: now, slot_index: None });
                    }
                }
            }
            ServerMessage::Abort(orders) => {
                for order in orders {
                    let error = Failure::new(order.text.clone()).with("abort_reason", order.reason);
                    let outcome = JobOutcome::Aborted { reason: order.reason, error };
                    if self.slow && self.running.contains_key(&order.job_id) {
                        self.dying.entry(order.job_id).or_insert(outcome);
                        continue;
                    }
                    let report = match self.end(now, order.job_id, outcome) {
                        Some(kept) => kept.report.clone(),
                        None => disappeared(now, order.job_id),
                    };
                    events.push(JobEvent::Finished(Box::new(report)));
                }
            }
            ServerMessage::Interrupt { job_id, reason, text, .. } => match self.running.get_mut(job_id) {
                Some(job) if job.start.description.interruption_signal.is_some() => {
                    job.interrupted = Some(*reason);
                }
                Some(_) => {
                    let error = Failure::new(text.clone()).with("preemption_reason", text.as_str());
                    let reason = match reason {
                        InterruptionReason::JobsDisabledOnNode => AbortReason::NodeWithDisabledJobs,
                        _ => AbortReason::Preemption,
                    };
                    let outcome = JobOutcome::Aborted { reason, error };
                    let kept = self.end(now, *job_id, outcome).map(|kept| kept.report.clone());
                    events.extend(kept.map(Box::new).map(JobEvent::Finished));
                }
                None => {}
            },
            ServerMessage::Fail { job_id, error } => {
                let error = Failure::new("Job failed by external request").because(error.clone());
                if let Some(kept) = self.end(now, *job_id, JobOutcome::Failed { error }) {
                    events.push(JobEvent::Finished(Box::new(kept.report.clone())));
                }
            }
            ServerMessage::Release(jobs) => {
                for job in jobs {
                    self.finished.remove(job);
                }
            }
            ServerMessage::ReadStderr { .. } | ServerMessage::Shell { .. } => {}
        }
        (!events.is_empty()).then_some(NodeMessage::Jobs(events))
    }

    /// Whatever was dying is dead.
    pub fn reap(&mut self, now: Time) -> Vec<FinishedJob> {
        let dead = std::mem::take(&mut self.dying);
        dead.into_iter()
            .filter_map(|(id, outcome)| self.end(now, id, outcome).map(|k| k.report.clone()))
            .collect()
    }

    /// Ends a job; an end that is there already stays as it is.
    pub fn end(&mut self, now: Time, job_id: JobId, outcome: JobOutcome) -> Option<&Kept> {
        self.dying.remove(&job_id);
        if let Some(job) = self.running.remove(&job_id) {
            let reason = AbortReason::ResourceOverdraft;
            let is_overdraft = matches!(&outcome, JobOutcome::Aborted { reason: r, .. } if *r == reason);
            let memory_limit = job.start.description.memory_limit;
            let report = FinishedJob {
                identity: job.start.identity,
                granted: job.start.resources,
                outcome,
                start_time: Some(job.accepted),
                finish_time: now,
                statistics: JobStatistics {
                    exec: now.since(job.accepted),
                    // It had more than was reserved for it, and was seen with that.
                    user_job_max_memory: if is_overdraft { memory_limit / 4 * 3 } else { 0 },
                    ..JobStatistics::default()
                },
                stderr_size: job.stderr.len() as u64,
                stderr: (!job.stderr.is_empty()).then_some(job.stderr),
                fail_context_size: 0,
                slot_index: job.slot,
            };
            self.finished.insert(job_id, Kept { report });
        }
        self.finished.get(&job_id)
    }
}

/// The answer to an order about a job that the node does not know.
fn disappeared(now: Time, job_id: JobId) -> FinishedJob {
    let reason = AbortReason::DisappearedFromNode;
    let identity = JobIdentity {
        job_id,
        allocation_id: vocab::AllocationId::default(),
        operation_id: vocab::OperationId::default(),
        tree: "".into(),
        task: "".into(),
        cookie: 0,
        job_index: 0,
        task_job_index: 0,
        ticket: None,
    };
    let error = Failure::new("The node does not know the job").with("abort_reason", reason);
    unstarted(identity, Resources::ZERO, now, JobOutcome::Aborted { reason, error })
}

/// The end of a job that has no process.
fn unstarted(identity: JobIdentity, granted: Resources, now: Time, outcome: JobOutcome) -> FinishedJob {
    FinishedJob {
        identity,
        granted,
        outcome,
        start_time: None,
        finish_time: now,
        statistics: JobStatistics::default(),
        stderr_size: 0,
        stderr: None,
        fail_context_size: 0,
        slot_index: None,
    }
}
