//! One job as the core sees it.

use std::sync::Arc;

use vocab::{
    Cpu, InterruptionReason, JobId, JobOutcome, JobPhase, JobStatistics, PreparationMeasures, Resources,
    Span, Time,
};
use wire::{FinishedJob, JobReport, StartJob};

use crate::settings::Settings;
use crate::{JobRecord, JobResult, KeptStderr, NodeEffect};

/// Where the job is on its way. It only moves forward, and may skip to `Killing`, `Uploading` or `Over`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// For resources.
    Waiting,
    /// Its ports are being tried.
    ProbingPorts {
        /// How many were in use by others.
        tried: usize,
    },
    /// Files are on their way into the cache.
    Fetching {
        /// How many are not there yet.
        missing: usize,
    },
    /// The sandbox is being made.
    PreparingSandbox,
    /// The proxy has been ordered; the user's process does not run yet.
    Spawning,
    /// The user's process runs, or is being stopped by the proxy.
    Running,
    /// The proxy is dead or deaf: the container is being killed over its head.
    Killing,
    /// Over; its long stderr or its rows are on their way to the server.
    Uploading,
    /// Over and ready to be reported.
    Over,
}

/// Which sum of the ledger the job stands in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holds {
    Pending,
    Acquired,
    Releasing,
    Nothing,
}

/// State of the sandbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Room {
    /// Not begun: nothing to clean.
    Untouched,
    /// The edge is at work in it; cleaning must wait for its answer.
    Preparing,
    /// In use.
    Ready,
    Cleaning,
    Clean,
    /// Could not be cleaned: its slot is not given away again.
    Broken,
}

/// An interruption that was delivered (scheduling.md 15.2).
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Interruption {
    pub reason: InterruptionReason,
    pub text: String,
    pub deadline: Time,
}

#[derive(Debug)]
pub(crate) struct Job {
    /// Shared with the records and orders that carry it: there are many of those.
    pub start: Arc<StartJob>,
    pub accepted_time: Time,
    pub acquired_time: Option<Time>,
    pub fetched_time: Option<Time>,
    /// When the making of the sandbox began.
    pub sandbox_time: Option<Time>,
    pub preparation: PreparationMeasures,
    pub start_time: Option<Time>,
    pub stage: Stage,
    pub holds: Holds,
    pub room: Room,
    pub slot: Option<u32>,
    pub gpus: Vec<u32>,
    pub ports: Vec<u16>,
    /// What the ledger counts.
    pub usage: Resources,
    /// Highest memory of user job and proxy (3.4).
    pub total_peak: i64,
    pub connected: bool,
    pub statistics: Option<Box<JobStatistics>>,
    /// Newer than what the server has.
    pub statistics_fresh: bool,
    pub statistics_sent: Time,
    pub stderr_size: u64,
    pub interruption: Option<Interruption>,
    /// Decided here: how the job is to end once nothing of it lives.
    pub stop: Option<JobOutcome>,
    /// The container could not be killed; try again.
    pub kill_failed: bool,
    /// How an exclusive job ended whose processes could not be killed: told when they are dead.
    pub held_result: Option<Box<JobResult>>,
    pub upload_attempts: u32,
    pub long_stderr: bool,
    pub end: Option<Box<FinishedJob>>,
    pub released: bool,
    pub deadline: Option<Time>,
}

impl Job {
    pub fn new(start: Arc<StartJob>, now: Time) -> Job {
        Job {
            usage: start.resources,
            start,
            accepted_time: now,
            acquired_time: None,
            fetched_time: None,
            sandbox_time: None,
            preparation: PreparationMeasures::default(),
            start_time: None,
            stage: Stage::Waiting,
            holds: Holds::Pending,
            room: Room::Untouched,
            slot: None,
            gpus: Vec::new(),
            ports: Vec::new(),
            total_peak: 0,
            connected: false,
            statistics: None,
            statistics_fresh: false,
            statistics_sent: Time::ZERO,
            stderr_size: 0,
            interruption: None,
            stop: None,
            kill_failed: false,
            held_result: None,
            upload_attempts: 0,
            long_stderr: false,
            end: None,
            released: false,
            deadline: None,
        }
    }

    pub fn id(&self) -> JobId {
        self.start.identity.job_id
    }

    /// No other job of its unit may run beside it (S19).
    pub fn is_exclusive(&self) -> bool {
        self.start.lease.is_some()
    }

    /// Is there anything that must be brought to the server before it hears of the end: a long stderr, rows
    /// that a completed job has written to tables, or those that a failed one was reading?
    pub fn must_upload(&self) -> bool {
        self.long_stderr || self.has_output() || self.has_fail_context()
    }

    /// The order to do so.
    pub fn upload(&self, job_id: JobId, slot: u32) -> NodeEffect {
        NodeEffect::Upload {
            job_id,
            slot,
            stderr: self.long_stderr,
            rows: self.has_output(),
            fail_context: self.has_fail_context(),
        }
    }

    /// Rows that count as soon as the server hears of the end.
    pub fn has_output(&self) -> bool {
        let Some(end) = &self.end else { return false };
        let tables = end.statistics.tables.as_ref();
        matches!(end.outcome, JobOutcome::Completed { .. })
            && tables.is_some_and(|t| t.outputs.iter().any(|output| output.row_count > 0))
    }

    fn has_fail_context(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.fail_context_size > 0)
    }

    /// May the server hear of its end? Not before a long stderr is there.
    pub fn is_reportable(&self) -> bool {
        self.end.is_some() && self.stage != Stage::Uploading
    }

    /// Used more memory than the scheduler counted for it; its own ahead reserve does not make it so (3.4).
    pub fn is_overdrafted(&self) -> bool {
        self.total_peak > self.start.resources.memory
    }

    /// What it is to be counted with, by its peak and its guarantee (3.4). Memory never shrinks.
    pub fn usage_with(&self, cpu: Option<Cpu>, settings: &Settings) -> Resources {
        let mut usage = self.usage;
        usage.cpu = cpu.unwrap_or(usage.cpu);
        if self.total_peak > 0 {
            usage.memory = usage.memory.max(self.total_peak.saturating_add(settings.ahead_memory_reserve));
        }
        usage
    }

    /// The name of the stage for people (3.7).
    pub fn phase(&self) -> JobPhase {
        match self.stage {
            Stage::Waiting => JobPhase::Created,
            Stage::ProbingPorts { .. } => JobPhase::PreparingNodeDirectory,
            Stage::Fetching { .. } => JobPhase::DownloadingArtifacts,
            Stage::PreparingSandbox if self.has_own_root() => JobPhase::PreparingRootVolume,
            Stage::PreparingSandbox => JobPhase::PreparingSandboxDirectories,
            Stage::Spawning | Stage::Running if self.stop.is_some() => JobPhase::FinalizingJobProxy,
            Stage::Spawning if self.connected => JobPhase::PreparingJob,
            Stage::Spawning => JobPhase::SpawningJobProxy,
            Stage::Running => JobPhase::Running,
            Stage::Killing | Stage::Uploading => JobPhase::FinalizingJobProxy,
            Stage::Over => match self.room {
                Room::Preparing | Room::Ready => JobPhase::WaitingForCleanup,
                Room::Cleaning => JobPhase::Cleanup,
                Room::Untouched | Room::Clean | Room::Broken => JobPhase::Finished,
            },
        }
    }

    /// Its root file system is not the host's.
    pub fn has_own_root(&self) -> bool {
        !self.start.description.file_system.layers.is_empty()
    }

    /// How long it may take from its resources to the start of its process: what the task says, within what
    /// the node says (8.2).
    pub fn prepare_time_limit(&self, settings: &Settings) -> Span {
        let own = self.start.description.prepare_time_limit;
        own.map_or(settings.prepare_time_limit, |own| own.min(settings.prepare_time_limit))
    }

    /// How long it may wait for its resources.
    pub fn waiting_timeout(&self, settings: &Settings) -> Span {
        self.start.waiting_timeout.unwrap_or(settings.waiting_jobs_timeout)
    }

    pub fn report(&self) -> JobReport {
        JobReport {
            identity: self.start.identity.clone(),
            granted: self.start.resources,
            resource_usage: self.usage,
            phase: self.phase(),
            accepted_time: self.accepted_time,
            start_time: self.start_time,
            statistics: None,
            stderr_size: self.stderr_size,
            slot_index: self.slot,
        }
    }

    /// What to write down; only jobs with a slot have a record.
    pub fn record(&self) -> Option<JobRecord> {
        Some(JobRecord {
            start: Arc::clone(&self.start),
            accepted_time: self.accepted_time,
            acquired_time: self.acquired_time?,
            slot: self.slot?,
            gpus: self.gpus.clone(),
            ports: self.ports.clone(),
            fetched_time: self.fetched_time,
            preparation: self.preparation,
            end: self.end.clone(),
        })
    }

    /// Adds the node's own measures to what the proxy measured.
    pub fn complete_statistics(&self, mut statistics: JobStatistics, finish_time: Time) -> JobStatistics {
        let acquired = self.acquired_time.unwrap_or(finish_time);
        statistics.wait_for_resources = acquired.since(self.accepted_time);
        if let Some(fetched) = self.fetched_time {
            statistics.artifacts_download = fetched.since(acquired);
        }
        let measured = self.preparation != PreparationMeasures::default();
        statistics.preparation = measured.then(|| Box::new(self.preparation));
        statistics.prepare = self.start_time.unwrap_or(finish_time).since(self.accepted_time);
        statistics
    }

    /// Splits the kept stderr: what goes into the message, and whether there is more on disk.
    pub fn keep_stderr(&mut self, kept: KeptStderr) -> Option<Vec<u8>> {
        match kept {
            KeptStderr::None => None,
            KeptStderr::Inline(bytes) => Some(bytes),
            KeptStderr::OnDisk => {
                self.long_stderr = true;
                None
            }
        }
    }
}
