//! What all tests share: a controller under a clock that they set, and short texts about it.

use controller::spec::{self, ParsedSpec};
use controller::{
    ControllerOptions, FinishedJob, Grant, JobVerdict, OperationController, OperationEvent, SettleError,
};
use vocab::*;
use yson::{Map, Value};

pub const TREE: &str = "default";

pub fn map(text: &str) -> Map {
    match yson::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}")) {
        Value::Map(m) => m,
        other => panic!("{text}: not a map but {other:?}"),
    }
}

pub fn show(value: impl Into<Value>) -> String {
    String::from_utf8(yson::to_text(&value.into())).expect("text")
}

/// Value at a path of map keys joined by `/`.
pub fn at<'v>(value: &'v Value, path: &str) -> &'v Value {
    path.split('/')
        .fold(value, |v, key| v.get(key).unwrap_or_else(|| panic!("no {key:?} of {path:?} in {v:?}")))
}

pub fn parse(text: &str) -> Result<ParsedSpec, Failure> {
    spec::parse(OperationType::Vanilla, &map(text), &ControllerOptions::default())
}

pub fn operation_id() -> OperationId {
    OperationId(Guid([7, 1, 0x103e8, 9]))
}

pub fn second(s: u64) -> Time {
    Time::from_secs(1_000 + s)
}

/// A controller whose jobs are named by their number in the order of settling.
#[derive(Clone)]
pub struct Bench {
    pub parsed: ParsedSpec,
    pub controller: OperationController,
    pub now: Time,
    pub settled: u32,
}

pub const NODE: &str = "node-1.example:9012";

impl Bench {
    pub fn new(text: &str) -> Bench {
        Bench::with(text, &ControllerOptions::default())
    }
    pub fn with(text: &str, options: &ControllerOptions) -> Bench {
        let parsed = parse(text).expect("a good spec");
        let controller = OperationController::new(operation_id(), &parsed.spec, options, second(0));
        Bench { parsed, controller, now: second(0), settled: 0 }
    }
    pub fn job_id(n: u32) -> JobId {
        JobId(Guid([n, 1, 0x10384, 5]))
    }
    pub fn settle(&mut self, task: u32) -> Result<(JobIdentity, JobDescription), SettleError> {
        self.settle_at(task, NODE)
    }
    pub fn settle_at(&mut self, task: u32, node: &str) -> Result<(JobIdentity, JobDescription), SettleError> {
        let demand = self.controller.demand();
        let needed = demand.iter().find(|d| d.task == task).map(|d| d.min_needed);
        let grant = Grant {
            task,
            allocation_id: AllocationId(Guid([self.settled, 2, 0x17fff, 5])),
            job_id: Bench::job_id(self.settled),
            resources: needed.unwrap_or(Resources::INFINITE),
            tree: TREE,
            node_address: node,
        };
        let settled = self.controller.settle(self.now, grant)?;
        self.settled += 1;
        Ok(settled)
    }
    pub fn finish(&mut self, job: u32, outcome: JobOutcome) -> Option<JobVerdict> {
        self.finish_after(job, outcome, self.now)
    }
    /// It has run since then.
    pub fn finish_after(&mut self, job: u32, outcome: JobOutcome, start: Time) -> Option<JobVerdict> {
        let report = FinishedJob {
            job_id: Bench::job_id(job),
            outcome,
            exec_start_time: Some(start),
            finish_time: self.now,
            statistics: Some(JobStatistics { user_job_max_memory: 1 << 20, ..JobStatistics::default() }),
            stderr_size: 10,
            fail_context_size: 0,
        };
        self.controller.job_finished(self.now, report)
    }
    /// `total=.. running=.. pending=.. completed=.. failed=.. aborted=.. lost=..`
    pub fn counts(&self) -> String {
        let brief = self.controller.brief_progress(self.now, OperationState::Running);
        let jobs = brief.get("jobs").expect("jobs");
        let names = ["total", "running", "pending", "completed", "failed", "aborted", "lost"];
        let shown = names.map(|n| format!("{n}={}", at(jobs, n).as_i64().expect("a count")));
        shown.join(" ")
    }
}

pub fn done() -> JobOutcome {
    JobOutcome::Completed { interrupted: None, restart_needed: false }
}
pub fn failed(code: i64) -> JobOutcome {
    let exit = Failure::coded(code::PROCESS_NON_ZERO_EXIT, format!("Process exited with code {code}"));
    let exit = exit.with("exit_code", code);
    JobOutcome::Failed { error: Failure::coded(code::USER_JOB_FAILED, "User job failed").because(exit) }
}
pub fn aborted(reason: AbortReason) -> JobOutcome {
    JobOutcome::Aborted { reason, error: Failure::new("Job aborted").with("abort_reason", reason) }
}
pub fn interrupted(restart_needed: bool) -> JobOutcome {
    JobOutcome::Completed { interrupted: Some(InterruptionReason::Preemption), restart_needed }
}

pub fn event(event: &Option<OperationEvent>) -> String {
    match event {
        None => "-".to_owned(),
        Some(OperationEvent::Completed) => "completed".to_owned(),
        Some(OperationEvent::Failed(e)) => format!("failed {}: {e}", e.code),
        Some(OperationEvent::Suspend(e)) => format!("suspend: {e}"),
    }
}
