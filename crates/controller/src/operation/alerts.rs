//! What an operation should tell its owner (jobs-and-nodes.md 6.11).
//!
//! All of it follows from the sums over jobs that are over, so it is computed when somebody looks.

use super::OperationController;
use crate::task::Task;
use vocab::{Failure, JobState, Span, Summary};

const GIB: i64 = 1 << 30;
const MINUTE: i64 = 60_000;

/// A resource is badly used if this part of it is left, and as many bytes as the alert names.
const UNUSED_PART: f64 = 0.2;
const UNUSED_MEMORY: i64 = 8 * GIB;
const UNUSED_TMPFS: i64 = GIB / 2;
/// Who needs so much of his memory is not told of an empty memory file system.
const MEMORY_IN_USE: f64 = 0.8;
/// Milliseconds of aborted jobs, and their part of all time.
const ABORTED_TIME: i64 = 10 * MINUTE;
const ABORTED_PART: f64 = 0.25;
/// Jobs that are so many and so short cost more to start than they work.
const SHORT_JOB: i64 = MINUTE;
const SHORT_JOB_COUNT: i64 = 1000;
/// Processor time is judged of jobs of at least this length, and of so much work.
const LONG_JOB: i64 = MINUTE;
const ENOUGH_EXEC: i64 = 10 * MINUTE;
const LOW_CPU_USAGE: f64 = 0.5;
const HIGH_CPU_WAIT: f64 = 0.5;
const TOO_LONG: Span = Span::from_secs(7 * 24 * 3600);

/// Names of all alerts that a controller may raise.
pub const ALERTS: &[&str] = &[
    "custom_statistics_limit_exceeded",
    "unused_memory",
    "unused_tmpfs_space",
    "low_cpu_usage",
    "high_cpu_wait",
    "operation_too_long",
    "excessive_job_aborts",
    "short_jobs_duration",
];

impl OperationController {
    /// What the operation should tell its owner, by the alert's name, one of [`ALERTS`].
    ///
    /// What its jobs have done stays true when it is over; how long it will take does not.
    pub fn alerts(&self) -> Vec<(&'static str, Failure)> {
        let mut alerts = Vec::new();
        if self.custom_names_overflow {
            let limit = self.options.custom_statistics_count_limit;
            let error = Failure::new(format!(
                "Limit for number of custom statistics of an operation exceeded: only the first {limit} names are aggregated"
            ));
            alerts.push(("custom_statistics_limit_exceeded", error.with("limit", limit)));
        }
        let of_tasks = [
            ("unused_memory", "Jobs leave much of their memory limit unused", unused_memory as Look),
            ("unused_tmpfs_space", "Jobs leave much of their memory file systems unused", unused_tmpfs),
            ("low_cpu_usage", "Jobs leave much of their cores unused", low_cpu_usage),
            ("high_cpu_wait", "Jobs often wait for a processor", high_cpu_wait),
            ("operation_too_long", "The operation will take longer than a week", too_long),
        ];
        for (name, text, look) in of_tasks {
            if name == "operation_too_long" && self.is_over() {
                continue;
            }
            let found: Vec<Failure> = self.tasks.iter().filter_map(look).collect();
            if !found.is_empty() {
                let error = found.into_iter().fold(Failure::new(text), Failure::because);
                alerts.push((name, error));
            }
        }
        alerts.extend(self.excessive_job_aborts().map(|error| ("excessive_job_aborts", error)));
        alerts.extend(self.short_jobs().map(|error| ("short_jobs_duration", error)));
        alerts
    }

    fn excessive_job_aborts(&self) -> Option<Failure> {
        let time = |states: &[JobState]| self.tasks.iter().map(|t| sum(t, states, "time/total").sum).sum();
        let aborted: i64 = time(&[JobState::Aborted]);
        let all: i64 = time(&[JobState::Completed, JobState::Failed, JobState::Aborted]);
        (aborted > ABORTED_TIME && aborted as f64 > ABORTED_PART * all as f64).then(|| {
            Failure::new("Much of the operation's time goes to jobs that are aborted")
                .with("aborted_jobs_time", aborted)
                .with("total_jobs_time", all)
        })
    }

    fn short_jobs(&self) -> Option<Failure> {
        let done = self.tasks.iter().map(|t| completed(t, "time/total"));
        let (count, time) = done.fold((0, 0i64), |(n, time), s| (n + s.count, time.saturating_add(s.sum)));
        (count > SHORT_JOB_COUNT && time / count < SHORT_JOB).then(|| {
            Failure::new("Jobs are so short that starting them is much of their cost: let each do more")
                .with("completed_job_count", count)
                .with("average_job_duration", time / count)
        })
    }
}

type Look = fn(&Task) -> Option<Failure>;

/// A statistic of a task's finished jobs in these states, all pool trees together.
fn sum(task: &Task, states: &[JobState], path: &str) -> Summary {
    let mut all = Summary::default();
    for group in task.statistics.groups().filter(|g| states.contains(&g.state)) {
        group.system_paths().filter(|(p, _)| p == path).for_each(|(_, s)| all.merge(s));
    }
    all
}

/// Only jobs that completed show what is needed: others were cut short.
fn completed(task: &Task, path: &str) -> Summary {
    sum(task, &[JobState::Completed], path)
}

fn of_task(task: &Task) -> Failure {
    Failure::new(format!("Task {:?}", task.spec.name)).with("task_name", task.spec.name.as_str())
}

/// Most memory that any of its jobs used, memory file systems included; none: no job has told.
fn used_memory(task: &Task) -> Option<i64> {
    let memory = completed(task, "user_job/max_memory");
    (memory.count > 0).then(|| memory.max.saturating_add(completed(task, "user_job/max_tmpfs_size").max))
}

fn unused_memory(task: &Task) -> Option<Failure> {
    let (limit, used) = (task.spec.script.memory_limit, used_memory(task)?);
    let unused = limit.saturating_sub(used);
    (unused > UNUSED_MEMORY && unused as f64 > UNUSED_PART * limit as f64)
        .then(|| of_task(task).with("memory_limit", limit).with("max_memory_usage", used))
}

fn unused_tmpfs(task: &Task) -> Option<Failure> {
    let size = task.spec.script.tmpfs_size();
    let needs_its_memory = used_memory(task)? as f64 > MEMORY_IN_USE * task.spec.script.memory_limit as f64;
    let used = completed(task, "user_job/max_tmpfs_size").max;
    let unused = size.saturating_sub(used);
    (!needs_its_memory && unused > UNUSED_TMPFS && unused as f64 > UNUSED_PART * size as f64)
        .then(|| of_task(task).with("tmpfs_size", size).with("max_tmpfs_usage", used))
}

/// What part of the time that was ordered of processors `time` is; none if there is too little to judge.
fn part_of_cores(task: &Task, time: i64) -> Option<f64> {
    let exec = completed(task, "time/exec");
    let cores = task.spec.script.cpu_limit.as_f64();
    let enough = exec.count > 0 && exec.sum >= ENOUGH_EXEC && exec.sum / exec.count >= LONG_JOB;
    (enough && cores > 0.0).then(|| time as f64 / (exec.sum as f64 * cores))
}

fn low_cpu_usage(task: &Task) -> Option<Failure> {
    let used = completed(task, "user_job/cpu/user").sum + completed(task, "user_job/cpu/system").sum;
    let part = part_of_cores(task, used).filter(|part| *part < LOW_CPU_USAGE)?;
    Some(of_task(task).with("cpu_limit", task.spec.script.cpu_limit.as_f64()).with("cpu_usage", part))
}

fn high_cpu_wait(task: &Task) -> Option<Failure> {
    let part = part_of_cores(task, completed(task, "user_job/cpu/wait").sum)?;
    (part > HIGH_CPU_WAIT).then(|| of_task(task).with("cpu_wait", part))
}

/// As many jobs at a time as now, each as long as those before it. A service has no end to wait for.
fn too_long(task: &Task) -> Option<Failure> {
    let (done, running) = (completed(task, "time/total"), u64::from(task.units.running()));
    if done.count == 0 || running == 0 || task.spec.restart_completed_jobs {
        return None;
    }
    let average = (done.sum / done.count).max(0).unsigned_abs();
    let rounds = u64::from(task.units.pending()).div_ceil(running);
    let left = Span::from_millis(average.saturating_mul(rounds));
    (left > TOO_LONG).then(|| {
        of_task(task)
            .with("estimated_time_left", left.as_millis() as i64)
            .with("pending_job_count", i64::from(task.units.pending()))
            .with("running_job_count", running as i64)
    })
}
