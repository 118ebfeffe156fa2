//! One running job, as the controller keeps it, and as lists of jobs show it.

use crate::memory::{Factors, MemoryRequest, Origins};
use crate::operation::FinishedJob;
use crate::record::{events_value, interruption_value};
use crate::spec::RootOptions;
use crate::statistics::{JobFacts, JobSamples, tree};
use vocab::{
    AbortReason, AllocationId, InterruptionReason, JobId, JobIdentity, JobOutcome, JobPhase, JobState,
    JobStatistics, OperationId, Resources, Span, Time,
};
use yson::Map;

/// The controller's record of a running job ("joblet").
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Joblet {
    pub identity: JobIdentity,
    /// Task's number.
    pub task: u32,
    /// The run of the same unit that was aborted for its memory last.
    pub predecessor: Option<JobId>,
    /// `host:port` of the node.
    pub node: Box<str>,
    /// What the scheduler granted.
    pub granted: Resources,
    pub factors: Factors,
    /// Where they came from; none if the job was taken over after a restart.
    pub origins: Option<Origins>,
    pub reserve: MemoryRequest,
    /// When the job was settled into its allocation.
    pub start_time: Time,
    /// When the user's process started.
    pub exec_start_time: Option<Time>,
    pub phase: JobPhase,
    /// Its place on the node, as soon as the node has told.
    pub slot_index: Option<u32>,
    /// Newest report.
    pub statistics: Option<Box<JobStatistics>>,
    pub stderr_size: u64,
    /// It has been told to stop, and why.
    pub interruption: Option<InterruptionReason>,
    /// For whom, if it had to make room.
    pub preempted_for: Option<(AllocationId, OperationId)>,
}

impl Joblet {
    pub fn facts(&self, task: &crate::task::Task, now: Time) -> JobFacts {
        JobFacts {
            total_time: now.since(self.start_time),
            cpu_limit: task.spec.script.cpu_limit,
            gpu_limit: task.spec.script.gpu_limit,
            memory_limit: task.spec.script.memory_limit,
            reserve: self.reserve,
            factors: self.factors,
            job_proxy_estimate: task.memory.settings().bases.job_proxy_estimate(),
        }
    }
    /// How long it has been prepared and run: the wait for resources on the node is not its fault.
    pub fn age(&self, now: Time) -> Span {
        let waited = self.statistics.as_ref().map_or(Span::ZERO, |s| s.wait_for_resources);
        now.since(self.start_time + waited)
    }
    /// How long its process has been running.
    pub fn run_time(&self, now: Time) -> Span {
        self.exec_start_time.map_or(Span::ZERO, |start| now.since(start))
    }
    pub fn state(&self) -> JobState {
        if self.exec_start_time.is_some() { JobState::Running } else { JobState::Waiting }
    }
    /// Its end as far as it is known without its node.
    pub fn as_known(&self, now: Time, outcome: JobOutcome) -> FinishedJob {
        FinishedJob {
            job_id: self.identity.job_id,
            outcome,
            exec_start_time: self.exec_start_time,
            finish_time: now,
            statistics: None,
            stderr_size: self.stderr_size,
            fail_context_size: 0,
        }
    }
}

/// A running job, for list_jobs and get_job (http-api.md 10.1).
#[derive(Clone, Copy)]
pub struct JobView<'a> {
    pub(crate) joblet: &'a Joblet,
    pub(crate) task: &'a crate::task::Task,
    pub(crate) root: &'a RootOptions,
    pub(crate) incarnation: &'a str,
}

impl<'a> JobView<'a> {
    /// Which job.
    pub fn identity(&self) -> &'a JobIdentity {
        &self.joblet.identity
    }
    /// `waiting` until its process runs, then `running`.
    pub fn state(&self) -> JobState {
        self.joblet.state()
    }
    /// Where it is in its life on the node.
    pub fn phase(&self) -> JobPhase {
        self.joblet.phase
    }
    /// `host:port` of its node.
    pub fn address(&self) -> &'a str {
        &self.joblet.node
    }
    /// When it was settled.
    pub fn start_time(&self) -> Time {
        self.joblet.start_time
    }
    /// What the scheduler granted.
    pub fn granted(&self) -> Resources {
        self.joblet.granted
    }
    /// The run of the same unit that was aborted for its memory last.
    pub fn predecessor(&self) -> Option<JobId> {
        self.joblet.predecessor
    }
    /// The competition that it takes part in, named by the slow job that was copied.
    pub fn competition(&self) -> Option<JobId> {
        self.task.copies.competition(self.joblet.identity.cookie)
    }
    /// Bytes of stderr so far.
    pub fn stderr_size(&self) -> u64 {
        self.joblet.stderr_size
    }
    /// It can be asked to stop (jobs-and-nodes.md 6.8).
    pub fn is_interruptible(&self) -> bool {
        self.task.spec.script.interruption_signal.is_some()
    }
    /// Rank in its gang.
    pub fn gang_rank(&self) -> Option<u32> {
        self.task.rank_of(self.joblet.identity.cookie)
    }
    /// Part of its input that it has read; 0 without tables.
    pub fn progress(&self) -> f64 {
        let read = self.joblet.statistics.as_ref().and_then(|s| s.tables.as_ref()).map(|t| t.input.row_count);
        match self.task.rows_of(self.joblet.identity.cookie).map(|rows| rows.end - rows.start) {
            Some(all) if all > 0 => (read.unwrap_or(0) as f64 / all as f64).clamp(0.0, 1.0),
            _ => 0.0,
        }
    }
    /// Statistics so far.
    pub fn samples(&self, now: Time) -> JobSamples {
        JobSamples::new(&self.joblet.facts(self.task, now), self.joblet.statistics.as_deref())
    }
    /// The `statistics` of get_job.
    pub fn statistics(&self, now: Time) -> Map {
        tree::of_job(&self.samples(now))
    }
    /// The `brief_statistics` of list_jobs.
    pub fn brief_statistics(&self, now: Time) -> Map {
        tree::brief(&self.samples(now))
    }
    /// Element of list_jobs; `pool` and `brief_statistics` are the caller's to add.
    pub fn to_value(&self) -> Map {
        let j = self.joblet;
        identity_value(&j.identity, self.task.spec.job_type, j.predecessor, self.competition())
            .with("state", self.state())
            .with("controller_state", self.state())
            .with("address", &*j.node)
            .with("addresses", yson::map! { "default" => &*j.node })
            .with("start_time", j.start_time)
            .with("progress", self.progress())
            .with("operation_incarnation", self.incarnation)
            .with_some("gang_rank", self.gang_rank())
            .with_some("exec_attributes", j.slot_index.map(exec_attributes))
            .with_some("stderr_size", (j.stderr_size > 0).then_some(j.stderr_size))
            .with_some("interruption_info", j.interruption.map(|r| interruption_value(r, j.preempted_for)))
            .with("is_stale", false)
            .with("events", events_value(j.start_time, j.exec_start_time, j.phase, None))
    }
}

/// `exec_attributes` of a job (http-api.md 10.1).
pub(crate) fn exec_attributes(slot_index: u32) -> Map {
    yson::map! { "slot_index" => slot_index }
}

/// The keys that say which job it is, after which (jobs-and-nodes.md 2.4) and beside which (6.7).
pub(crate) fn identity_value(
    identity: &JobIdentity,
    job_type: &str,
    predecessor: Option<JobId>,
    competition: Option<JobId>,
) -> Map {
    yson::map! {
        "id" => identity.job_id,
        "operation_id" => identity.operation_id,
        "type" => job_type,
        "task_name" => identity.task.as_ref(),
        "pool_tree" => identity.tree.as_ref(),
        "job_cookie" => u64::from(identity.cookie),
        "allocation_id" => identity.allocation_id,
        "has_spec" => true,
        "has_competitors" => competition.is_some(),
    }
    .with_some("job_competition_id", competition)
    .with_some("predecessor_type", predecessor.map(|_| AbortReason::ResourceOverdraft))
    .with_some("predecessor_job_id", predecessor)
}
