//! Alerts of an operation (jobs-and-nodes.md 6.11): each of them one step before and one step beyond its bounds.

use crate::script::*;
use controller::FinishedJob;
use vocab::{AbortReason, JobOutcome, JobStatistics, Span, TmpfsUsage};

const GIB: i64 = 1 << 30;
const MIB: i64 = 1 << 20;

/// Jobs of one task, each with these statistics and this long; the names of the alerts after them.
fn alerts(task: &str, jobs: u32, outcome: &JobOutcome, length: Span, s: &JobStatistics) -> Vec<&'static str> {
    let mut b = Bench::new(&format!("{{max_failed_job_count=10000; tasks={{t={{command=x; {task}}}}}}}"));
    for job in 0..jobs {
        b.settle(0).expect("there is more to do");
        b.now += length;
        let report = FinishedJob {
            job_id: Bench::job_id(job),
            outcome: outcome.clone(),
            exec_start_time: Some(b.now),
            finish_time: b.now,
            statistics: Some(s.clone()),
            stderr_size: 0,
            fail_context_size: 0,
        };
        b.controller.job_finished(b.now, report).expect("it ran");
    }
    let names = |b: &Bench| b.controller.alerts().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let found = names(&b);
    assert!(found.iter().all(|name| controller::ALERTS.contains(name)), "{found:?}");
    b.controller.close_operation();
    assert_eq!(names(&b), found, "what its jobs have done stays true when it is over");
    found
}

fn used(max_memory: i64, tmpfs: i64) -> JobStatistics {
    JobStatistics {
        user_job_max_memory: max_memory,
        user_job_tmpfs: TmpfsUsage { size: 0, max_size: tmpfs },
        ..JobStatistics::default()
    }
}

#[test]
fn memory_that_nobody_uses() {
    let look = |limit: i64, s: &JobStatistics| {
        alerts(&format!("job_count=3; memory_limit={limit}"), 1, &done(), Span::from_secs(90), s)
    };
    assert_eq!(look(20 * GIB, &used(12 * GIB - 1, 0)), ["unused_memory"]);
    assert!(look(20 * GIB, &used(12 * GIB, 0)).is_empty(), "not more than 8 GiB");
    assert!(look(50 * GIB, &used(41 * GIB, 0)).is_empty(), "not more than a fifth");
    assert!(look(20 * GIB, &used(6 * GIB, 6 * GIB)).is_empty(), "what is in memory file systems is used");
    let spec = format!("job_count=3; memory_limit={}", 20 * GIB);
    let aborted = alerts(&spec, 1, &aborted(AbortReason::Preemption), Span::from_secs(90), &used(1, 0));
    assert!(aborted.is_empty(), "a job that was cut short shows nothing");
}

#[test]
fn memory_file_systems_that_nobody_fills() {
    let look = |s: &JobStatistics| {
        let spec = format!("job_count=3; memory_limit={}; tmpfs_size={}; tmpfs_path=a", 3 * GIB, 2 * GIB);
        alerts(&spec, 1, &done(), Span::from_secs(90), s)
    };
    assert_eq!(look(&used(MIB, GIB)), ["unused_tmpfs_space"]);
    assert!(look(&used(MIB, 2 * GIB - 512 * MIB)).is_empty(), "not more than 512 MiB");
    assert!(look(&used(2 * GIB, GIB)).is_empty(), "most of the memory is in use");
}

#[test]
fn processors_that_nobody_uses_or_gets() {
    let look = |jobs: u32, seconds: u64, used: u64, wait: u64| {
        let length = Span::from_secs(seconds);
        let s = JobStatistics {
            exec: length,
            user_job_cpu_user: Span::from_secs(used),
            user_job_cpu_wait: Span::from_secs(wait),
            ..JobStatistics::default()
        };
        alerts("job_count=100; cpu_limit=2", jobs, &done(), length, &s)
    };
    assert_eq!(look(10, 60, 59, 0), ["low_cpu_usage"]);
    assert!(look(10, 60, 60, 0).is_empty(), "half of the cores");
    assert!(look(9, 60, 0, 0).is_empty(), "less than ten minutes in all");
    assert!(look(90, 59, 0, 0).is_empty(), "jobs of less than a minute");
    assert_eq!(look(10, 60, 60, 61), ["high_cpu_wait"]);
    assert!(look(10, 60, 60, 60).is_empty());
}

#[test]
fn jobs_that_are_aborted_or_short() {
    let none = JobStatistics::default();
    let look = |jobs: u32, outcome: &JobOutcome, seconds: u64| {
        alerts("job_count=2000", jobs, outcome, Span::from_secs(seconds), &none)
    };
    let preempted = aborted(AbortReason::Preemption);
    assert_eq!(look(1, &preempted, 601), ["excessive_job_aborts"]);
    assert!(look(1, &preempted, 600).is_empty(), "not more than ten minutes");
    assert_eq!(look(1001, &done(), 59), ["short_jobs_duration"]);
    assert!(look(1000, &done(), 59).is_empty(), "not more than a thousand");
    assert!(look(1001, &done(), 60).is_empty());
}

#[test]
fn an_operation_that_would_take_weeks() {
    let mut b = Bench::new("{tasks={t={command=x; job_count=9}}}");
    b.settle(0).expect("the first");
    b.now += Span::from_secs(24 * 3600 + 1);
    b.finish(0, done());
    b.settle(0).expect("the second");
    let names = |b: &Bench| b.controller.alerts().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(&b), ["operation_too_long"], "seven more days and some seconds");
    b.settle(0).expect("the third");
    assert!(names(&b).is_empty(), "two at a time take half as long");
    b.controller.close_operation();
    assert!(names(&b).is_empty());
}
