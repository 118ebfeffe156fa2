//! The errors that a job can end with (jobs-and-nodes.md 3.8, 3.9, 4.8, 5.2, 5.6).

use cage::ProcessInfo;
use cage::sys::Exit;
use vocab::{AbortReason, Failure, InterruptionReason, JobOutcome, Span, code};
use yson::{Map, Value};

/// "User job failed" because of `inner`.
pub fn user_job_failed(inner: Failure) -> JobOutcome {
    JobOutcome::Failed { error: Failure::coded(code::USER_JOB_FAILED, "User job failed").because(inner) }
}

/// Aborted, with the attribute that tells the reason to everyone who sees only the error.
pub fn aborted(reason: AbortReason, error: Failure) -> JobOutcome {
    JobOutcome::Aborted { reason, error: error.with("abort_reason", reason) }
}

/// The process ended by itself.
pub fn of_exit(
    exit: Exit,
    restart_exit_code: Option<i32>,
    interrupted: Option<InterruptionReason>,
) -> JobOutcome {
    match exit {
        Exit::Code(n) if restart_exit_code == Some(n) => {
            JobOutcome::Completed { interrupted, restart_needed: true }
        }
        Exit::Code(0) => JobOutcome::Completed { interrupted, restart_needed: false },
        Exit::Code(n) => user_job_failed(
            Failure::coded(code::PROCESS_NON_ZERO_EXIT, format!("Process exited with code {n}"))
                .with("exit_code", i64::from(n)),
        ),
        Exit::Signal(n, core_dumped) => user_job_failed(
            Failure::coded(code::PROCESS_SIGNAL, format!("Process terminated by signal {n}"))
                .with("signal", i64::from(n))
                .with("core_dumped", core_dumped),
        ),
    }
}

/// "Memory limit exceeded" (4.8). `oom_killed`: the kernel was faster than the watchdog.
pub fn memory_limit_exceeded(
    usage: i64,
    limit: i64,
    tmpfs_usage: i64,
    oom_killed: bool,
    processes: &[ProcessInfo],
) -> JobOutcome {
    let list: Vec<Value> = processes.iter().map(process).collect();
    let mut error = Failure::coded(code::MEMORY_LIMIT_EXCEEDED, "Memory limit exceeded")
        .with("usage", usage)
        .with("limit", limit)
        .with("tmpfs_usage", tmpfs_usage)
        .with("processes", list);
    if oom_killed {
        error = error.with("oom_killed", true);
    }
    user_job_failed(error)
}

/// The sandbox takes more on disk than was asked for (4.9).
pub fn disk_overdrafted(space: (i64, Option<i64>), inodes: (i64, Option<i64>)) -> JobOutcome {
    user_job_failed(overdraft(space, inodes))
}

/// The job failed with its disk full, which the kernel kept at what was asked for (4.9). That its own error is the
/// consequence is likely and not certain, so it is kept as the cause.
pub fn disk_filled(space: (i64, Option<i64>), inodes: (i64, Option<i64>), ended: JobOutcome) -> JobOutcome {
    match ended {
        JobOutcome::Failed { error } => {
            let full = overdraft(space, inodes);
            user_job_failed(error.inner_errors.into_iter().fold(full, Failure::because))
        }
        other => other,
    }
}

fn overdraft(space: (i64, Option<i64>), inodes: (i64, Option<i64>)) -> Failure {
    let mut error =
        Failure::new("Disk usage overdraft occurred").with("usage", space.0).with("inode_usage", inodes.0);
    for (name, limit) in [("limit", space.1), ("inode_limit", inodes.1)] {
        if let Some(limit) = limit {
            error = error.with(name, limit);
        }
    }
    error
}

/// The proxy itself is too far above its reserve (4.8).
pub fn proxy_overdrafted(usage: i64, reserve: i64, overcommit_limit: i64) -> JobOutcome {
    let error = Failure::coded(code::RESOURCE_OVERDRAFT, "Job proxy exceeded its memory reserve")
        .with("usage", usage)
        .with("reserve", reserve)
        .with("overcommit_limit", overcommit_limit);
    aborted(AbortReason::ResourceOverdraft, error)
}

/// The job reads its own pages again and again (4.8).
pub fn thrashing() -> JobOutcome {
    let text = "Job has had too many major page faults for too long";
    aborted(AbortReason::JobMemoryThrashing, Failure::new(text))
}

fn process(p: &ProcessInfo) -> Value {
    Map::new()
        .with("pid", i64::from(p.pid))
        .with("name", p.name.as_str())
        .with("cmdline", p.cmdline.iter().map(|c| Value::from(c.as_str())).collect::<Vec<_>>())
        .with("rss", p.rss)
        .with("shared", p.shared)
        .into()
}

/// "Job time limit exceeded" (5.6).
pub fn time_limit_exceeded(limit: Span) -> JobOutcome {
    user_job_failed(
        Failure::coded(code::JOB_TIME_LIMIT_EXCEEDED, "Job time limit exceeded")
            .with("limit", limit.as_millis() as i64),
    )
}

/// The job stopped when it was asked to, but it is not known which rows of its input it has done (5.6).
pub fn interruption_failed(reason: InterruptionReason) -> JobOutcome {
    let text = "Job was interrupted before it had read the rows that it was given";
    let error = Failure::new(text).with("interruption_reason", reason);
    match reason {
        InterruptionReason::Preemption => aborted(AbortReason::Preemption, error),
        InterruptionReason::UserRequest => aborted(AbortReason::UserRequest, error),
        _ => aborted(AbortReason::Other, error),
    }
}

/// The job did not stop in time (3.9): a preempted job is reported as preempted.
pub fn interruption_timeout(reason: InterruptionReason, timeout: Span, text: &str) -> JobOutcome {
    let message = if text.is_empty() { "Interruption is timed out" } else { text };
    let error = Failure::coded(code::INTERRUPTION_TIMEOUT, message)
        .with("interruption_reason", reason)
        .with("interruption_timeout", timeout.as_millis() as i64);
    match reason {
        InterruptionReason::Preemption => {
            aborted(AbortReason::Preemption, error.with("preemption_reason", text))
        }
        InterruptionReason::JobsDisabledOnNode => aborted(AbortReason::NodeWithDisabledJobs, error),
        _ => aborted(AbortReason::InterruptionTimeout, error),
    }
}

/// Preemption of a job that has no signal to be asked with (3.9).
pub fn preempted(text: &str) -> JobOutcome {
    let message = if text.is_empty() { "Job preempted" } else { text };
    aborted(AbortReason::Preemption, Failure::new(message).with("preemption_reason", text))
}

/// "Job failed by external request" (3.9).
pub fn failed_by_request(cause: Option<Failure>) -> JobOutcome {
    let error = Failure::new("Job failed by external request");
    JobOutcome::Failed { error: cause.into_iter().fold(error, Failure::because) }
}

/// The node's fault: the environment could not be set up (3.8 "environment faults").
pub fn environment_fault(error: Failure) -> JobOutcome {
    aborted(AbortReason::Other, error)
}

/// The job's fault: its command or environment cannot be executed.
pub fn cannot_start(text: String) -> JobOutcome {
    user_job_failed(Failure::coded(code::PROCESS_CANNOT_START, text))
}

/// Nobody wants the result any more (9.2).
pub fn supervisor_lost(timeout: Span) -> JobOutcome {
    aborted(AbortReason::Other, Failure::new(format!("Job proxy could not reach its node for {timeout}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_become_outcomes() {
        let completed = |interrupted, restart_needed| JobOutcome::Completed { interrupted, restart_needed };
        let preempted = Some(InterruptionReason::Preemption);
        assert_eq!(of_exit(Exit::Code(0), None, None), completed(None, false));
        assert_eq!(of_exit(Exit::Code(0), Some(7), preempted), completed(preempted, false));
        assert_eq!(of_exit(Exit::Code(7), Some(7), None), completed(None, true));
        let JobOutcome::Failed { error } = of_exit(Exit::Code(42), Some(7), None) else {
            panic!("must fail")
        };
        assert_eq!(error.to_string(), "User job failed: Process exited with code 42");
        assert_eq!((error.code, error.inner_errors[0].code), (1205, 10000));
        assert_eq!(error.find_attribute("exit_code"), Some(&Value::Int(42)));
        let JobOutcome::Failed { error } = of_exit(Exit::Signal(9, false), None, None) else {
            panic!("must fail")
        };
        assert_eq!(error.to_string(), "User job failed: Process terminated by signal 9");
        assert_eq!(error.inner_errors[0].code, 10001);
    }

    #[test]
    fn aborts_carry_their_reason() {
        let JobOutcome::Aborted { reason, error } =
            interruption_timeout(InterruptionReason::Preemption, Span::from_secs(1), "pool is full")
        else {
            panic!("must be aborted")
        };
        assert_eq!(reason, AbortReason::Preemption);
        assert_eq!(error.find_attribute("abort_reason").and_then(Value::as_str), Some("preemption"));
        assert_eq!(error.code, 1210);
    }
}
